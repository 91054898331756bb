import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mate_tf.tables.numeric import (
    EQUAL,
    GREATER,
    LESS,
    Date,
    column_values,
    parse_text,
    ranks,
    relations,
    text_values,
)


def year(number: int) -> Date:
    return Date(number, None, None)


@pytest.mark.parametrize(
    ("text", "spans"),
    [
        ("1,000.5 of -3", [((0, 7), [1000.5]), ((10, 13), [-3.0])]),
        ("a-5", [((2, 3), [5.0])]),
        ("1,23", [((0, 1), [1.0]), ((2, 4), [23.0])]),
        ("2004", [((0, 4), [2004.0, year(2004)])]),
        ("2017", [((0, 4), [2017.0])]),
        ("the 1990s", [((4, 9), [year(1990)])]),
        ("may 5, 2010", [((0, 11), [Date(2010, 5, 5)])]),
        ("monday, jan 12", [((0, 14), [Date(None, 1, 12)])]),
        ("2006-11", [((0, 7), [Date(2006, 11, None)])]),
        ("12.01.2009", [((0, 10), [Date(2009, 1, 12)])]),
        ("jan", []),
        ("february", [((0, 8), [Date(None, 2, None)])]),
        ("feb 30", [((4, 6), [30.0])]),
        ("first of twelve", [((0, 5), [1.0]), ((9, 15), [12.0])]),
        ("the 21st", [((4, 8), [21.0])]),
        ("1e5", [((0, 3), [100000.0])]),
        ("1e39 inf nan", [((0, 1), [1.0]), ((2, 4), [39.0])]),
        ("thirteen", []),
        ("", []),
    ],
)
def test_numbers_and_dates_in(text, spans):
    got = [((span.begin, span.end), list(span.values)) for span in parse_text(text)]
    assert got == spans


@given(st.text() | st.text("0123456789.,-+ marchy2004"))
def test_spans_are_in_order_and_not_nested(text):
    spans = parse_text(text)
    assert all(0 <= s.begin < s.end <= len(text) and s.values for s in spans)
    for first, second in itertools.pairwise(spans):
        assert first.begin < second.begin and first.end < second.end


def test_values_of_a_text_ignore_case_and_white_space():
    assert text_values("May  5,\n2010 or Two") == (Date(2010, 5, 5), 2.0)


@pytest.mark.parametrize(
    ("cells", "values"),
    [
        (["3 km", "x", "5 km", "7 km"], {0: 3.0, 2: 5.0, 3: 7.0}),
        (["3", "x", "y", "7"], {}),
        (["1999", "2003"], {0: year(1999), 1: year(2003)}),
        (["1999", "2050"], {0: 1999.0, 1: 2050.0}),
        (["may 1999", "7", "8", "9", "10"], {1: 7.0, 2: 8.0, 3: 9.0, 4: 10.0}),
        ([], {}),
    ],
)
def test_a_column_has_values_of_one_type_where_most_cells_have_it(cells, values):
    assert column_values(cells) == values


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({0: 5.0, 2: 1.0, 3: 5.0, 4: 9.0}, {0: (2, 2), 2: (1, 3), 3: (2, 2), 4: (3, 1)}),
        ({0: year(2001), 1: Date(1999, 5, None)}, {0: (2, 1), 1: (1, 2)}),
        ({0: year(2001), 1: Date(None, 5, None)}, {}),
        ({}, {}),
    ],
)
def test_ranks_count_from_both_ends_and_equals_share_one(values, expected):
    assert ranks(values) == expected


def test_relations_are_added_up_over_the_questions_values_of_the_columns_type():
    values = {0: 1.0, 1: 2.0, 2: 3.0}
    asked = [2.0, 3.0, year(2000)]
    assert relations(asked, values) == {0: GREATER, 1: EQUAL | GREATER, 2: LESS | EQUAL}
    assert relations([year(2000)], values) == {}
    assert relations([], values) == {}
    assert relations(asked, {}) == {}
    assert relations([Date(None, 5, None)], {0: Date(1999, 6, 1)}) == {0: LESS}
