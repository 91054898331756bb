import pytest

from mate_tf.features.tokenized_table import MAX_VALUES, histogram_cells
from mate_tf.tables.table import Table


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (["b", "a", "b"], "b 2, a 1"),
        (["d", "c", "b", "a"], "d 1, c 1, b 1"),
        (["a", "b", "c", "c", "d", "d"], "c 2, d 2, a 1"),
        ([" Rio  Branco ", "rio branco", "Rio"], "Rio  Branco 2, Rio 1"),
        (["", "7", " ", "7", ""], "7 2"),
        (["", "\t"], ""),
    ],
)
def test_most_frequent_values_then_the_first_to_appear(cells, expected):
    assert MAX_VALUES == 3
    assert histogram_cells(Table.from_rows([["x"], *[[cell] for cell in cells]])) == (expected,)


def test_each_column_has_its_own():
    table = Table.from_rows([["a", "a"], ["x", "1"], ["y", "1"]])
    assert histogram_cells(table) == ("x 1, y 1", "1 2")
