"""The sum of embeddings and its gradients against plain gathers."""

import numpy as np
import pytest
import tensorflow as tf

from mate_tf.layers.compilation import portable_graph
from mate_tf.layers.embedding import summed_rows


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
