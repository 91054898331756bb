import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

from mate_tf.features.token_features import TokenFeatures
from mate_tf.layers.compilation import portable_graph
from mate_tf.layers.embedding import first_index_in_cell, original_first_index_in_cell, summed_rows
from tests.layers.small_layers import token_features


@pytest.mark.parametrize("zero_beyond", [False, True])
@pytest.mark.parametrize("is_portable", [False, True])
@pytest.mark.parametrize("dtype", [tf.float32, tf.bfloat16], ids=lambda dtype: dtype.name)
def test_sums_rows_and_has_sparse_gradients(zero_beyond, is_portable, dtype):
    random = np.random.default_rng(0)
    tables = [tf.Variable(tf.cast(random.normal(size=(rows, 4)), dtype)) for rows in (7, 3, 5)]
    ids = [tf.constant(random.integers(-1, 8, (2, 6)), tf.int32) for _ in tables]

    def defined(*tables):
        total = 0.0
        for table, one in zip(tables, ids, strict=True):
            rows = table.shape[0]
            inside = tf.cast((one >= 0) & (one < rows), tf.float32)[..., None]
            gathered = tf.cast(tf.gather(table, tf.clip_by_value(one, 0, rows - 1)), tf.float32)
            total += gathered * inside if zero_beyond else gathered
        return total

    def ours(*tables):
        if not is_portable:
            return summed_rows(tables, ids, zero_beyond)
        with portable_graph():
            return summed_rows(tables, ids, zero_beyond)

    results = []
    weights = tf.constant(random.normal(size=(2, 6, 4)), tf.float32)
    for function in (ours, defined):
        with tf.GradientTape() as tape:
            total = function(*map(tf.convert_to_tensor, tables))
            loss = tf.reduce_sum(total * weights)
        results.append((total, tape.gradient(loss, tables)))
    (total, gradients), (expected, wanted) = results
    assert total.dtype == tf.float32
    np.testing.assert_allclose(total, expected, atol=1e-6)
    for found, one in zip(gradients, wanted, strict=True):
        assert isinstance(found, tf.IndexedSlices)
        # Some rows are summed up a few times, in the table's dtype.
        np.testing.assert_allclose(
            tf.cast(tf.convert_to_tensor(found), tf.float32),
            tf.cast(tf.convert_to_tensor(one), tf.float32),
            atol=1e-6 if dtype == tf.float32 else 8 * 2.0**-7,
        )


def table(question: int, cells: list[int], columns: int, padding: int) -> TokenFeatures:
    """A question, then cells of the given numbers of tokens in row-major order, then padding."""
    cell = np.repeat(np.arange(len(cells)), cells)
    row, column = (
        np.pad(ids, (question, padding)) for ids in (cell // columns, cell % columns + 1)
    )
    return token_features(row_ids=row, column_ids=column)


def test_each_cell_begins_anew_padding_counts_on_and_rows_beyond_256_do_not_alias():
    begins = first_index_in_cell(table(question=2, cells=[1, 2, 3], columns=2, padding=2))
    np.testing.assert_array_equal(begins, [[0, 0, 2, 3, 3, 5, 5, 5, 0, 0]])
    tokens = table(question=1, cells=[1] * 2 * 300, columns=2, padding=0)
    own = np.arange(601)[None]
    np.testing.assert_array_equal(first_index_in_cell(tokens), own)
    assert (original_first_index_in_cell(tokens).numpy() < own).any()


@given(
    question=st.integers(1, 5),
    cells=st.lists(st.integers(1, 4), min_size=1, max_size=30),
    columns=st.integers(1, 6),
    padding=st.integers(0, 5),
)
def test_equals_the_original_below_256_rows(question, cells, columns, padding):
    tokens = table(question, cells, columns, padding)
    np.testing.assert_array_equal(first_index_in_cell(tokens), original_first_index_in_cell(tokens))
