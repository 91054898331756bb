"""Cell probabilities of a batch against the obvious loops, one token at a time."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from mate_tf.answers.decoding import Asked, group_body_cells, mean_by_cell, select_cells
from mate_tf.features.token_features import TokenFeatures
from mate_tf.tables.table import Table


def empty_table(rows: int, columns: int, name: str = "table") -> Table:
    return Table(("",) * columns, (("",) * columns,) * rows, name)


def asked(tables, column_ids, row_ids, histogram_row=False) -> Asked:
    rows = np.asarray(row_ids)
    features = TokenFeatures(*[rows] * 9)._replace(column_ids=np.asarray(column_ids))
    return Asked(tables, features, histogram_row=histogram_row)


@st.composite
def batches(draw):
    """Tables, and columns, rows and values of the tokens of a batch, [B, S] each."""
    sizes = draw(st.lists(st.tuples(st.integers(1, 4), st.integers(1, 4)), min_size=1, max_size=4))
    length = draw(st.integers(1, 12))
    shape = (len(sizes), length)
    rows = draw(arrays.arrays(np.int32, shape, elements=st.integers(0, 4)))
    columns = draw(arrays.arrays(np.int32, shape, elements=st.integers(0, 4)))
    values = draw(arrays.arrays(np.float32, shape, elements=st.floats(0, 1, width=32)))
    limits = np.array(sizes)
    rows, columns = np.minimum(rows, limits[:, :1]), np.minimum(columns, limits[:, 1:])
    return [empty_table(*size) for size in sizes], columns, rows, values


def means_by_loops(tables, columns, rows, values, histogram_row) -> list[float]:
    found = []
    for table, *tokens in zip(tables, columns, rows, values, strict=True):
        last = max(tokens[1])
        for row in range(1, table.num_rows + 1):
            for column in range(1, table.num_columns + 1):
                of_cell = [
                    float(value)
                    for c, r, value in zip(*tokens, strict=True)
                    if (c, r) == (column, row) and not (histogram_row and r == last)
                ]
                found.append(sum(of_cell) / len(of_cell) if of_cell else -np.inf)
    return found


@given(batches(), st.booleans())
def test_a_cell_has_the_mean_of_its_tokens(batch, histogram_row):
    tables, columns, rows, values = batch
    cells = group_body_cells(asked(tables, columns, rows, histogram_row))
    expected = means_by_loops(tables, columns, rows, values, histogram_row)
    np.testing.assert_allclose(mean_by_cell(values, cells), expected, rtol=1e-12)
    sizes = [table.num_rows * table.num_columns for table in tables]
    assert np.diff(cells.begins).tolist() == sizes
    assert cells.examples.tolist() == [i for i, size in enumerate(sizes) for _ in range(size)]
    widths = [(table.num_rows, table.num_columns) for table in tables]
    assert cells.columns.tolist() == [
        c for height, width in widths for _ in range(height) for c in range(width)
    ]


def select_by_loops(probabilities, groups, threshold, otherwise) -> list[bool]:
    selected = [p > threshold for p in probabilities]
    for group, number in enumerate(otherwise):
        members = [i for i, g in enumerate(groups) if g == group and probabilities[i] > -np.inf]
        if not any(selected[i] for i in members):
            for i in sorted(members, key=lambda i: -probabilities[i])[:number]:
                selected[i] = True
    return selected


@given(
    st.lists(
        st.tuples(st.sampled_from([-np.inf, 0.0, 0.2, 0.3, 0.5, 0.6, 1.0]), st.integers(0, 3)),
        min_size=1,
        max_size=20,
    ),
    st.sampled_from([0.5, 0.9, np.inf]),
    st.lists(st.integers(0, 3), min_size=4, max_size=4),
)
def test_each_group_has_its_cells_above_the_threshold_or_its_best(pairs, threshold, otherwise):
    probabilities, groups = map(np.array, zip(*pairs, strict=True))
    selected = select_cells(probabilities, groups, threshold, np.array(otherwise))
    assert selected.tolist() == select_by_loops(probabilities, groups, threshold, otherwise)


@pytest.mark.parametrize(
    ("column_ids", "row_ids", "message"),
    [
        ([[1], [1]], [[2], [4]], r"expected tokens of at most 3 rows, got 4 \(table 'b'\)"),
        ([[9], [1]], [[1], [4]], r"expected tokens of at most 3 rows, got 4 \(table 'b'\)"),
        ([[3], [3]], [[1], [1]], r"expected tokens of at most 2 columns, got 3 \(table 'a'\)"),
    ],
)
def test_tokens_of_another_table_are_refused(column_ids, row_ids, message):
    with pytest.raises(ValueError, match=message):
        tables = [empty_table(5, 2, "a"), empty_table(3, 3, "b")]
        group_body_cells(asked(tables, column_ids, row_ids))
