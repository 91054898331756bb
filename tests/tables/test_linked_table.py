import pytest

from mate_tf.tables.linked_table import LinkedTable, Passage
from tests.datasets.linked_tables import BERGEN, CITIES, NORWAY, OSLO


def test_passages_are_listed_once_and_row_by_row():
    assert list(CITIES.distinct_passages()) == [OSLO, NORWAY, BERGEN]


@pytest.mark.parametrize(
    ("link", "title"),
    [("/wiki/New_York_City", "New York City"), ("/wiki/AC/DC", "AC/DC"), ("Oslo", "Oslo")],
)
def test_a_title_is_what_the_address_spells(link, title):
    assert Passage(link, "").title == title


@pytest.mark.parametrize("passages", [(), (((),) * 3,), (((),) * 3, ((),) * 2)])
def test_passages_of_another_shape_than_the_body_are_refused(passages):
    message = r"expected passages for 2 rows of 3 cells, got rows of .* \(table 'cities'\)"
    with pytest.raises(ValueError, match=message):
        LinkedTable(CITIES.table, passages)
