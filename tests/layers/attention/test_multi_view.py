"""The multi-view evaluator against the dense one, and its views against the paper's definition."""

import numpy as np
import pytest
import tensorflow as tf

from mate_tf.config import MateConfig
from mate_tf.layers.attention.kinds import MultiViewAttention, SelfAttention
from mate_tf.layers.attention.multi_view import MultiView, MultiViewEmbedding, multi_view_attention
from tests.layers import small_layers as small
from tests.small import cases


def test_original_bucketing_joins_the_ends():
    features = small.features_of([[small.QUESTION] * 2 + small.cells(9, 1)], 12)
    configs = (MateConfig("mate", "multi_view", 0.0, 2, 2, asked) for asked in (False, True))
    layers = small.random_weights(*(SelfAttention(1, 4, config) for config in configs))
    apart, joined = (layer(small.hidden_states(1, 12), features) for layer in layers)
    # The column's first bucket sees the last one only where the ends are joined.
    assert np.abs(joined - apart)[0, 2:4].max() > 1e-3


def test_views_show_the_global_part_the_buckets_and_neighbours_in_an_order_of_integers():
    embedding = tf.reshape(tf.range(8.0), [1, 8, 1, 1])
    order = tf.constant([[7, 6, 5, 4, 3, 2, 1, 0]])
    views = MultiViewEmbedding(bucket_size=2, global_size=2)(embedding, order)
    assert isinstance(views, MultiView)
    np.testing.assert_array_equal(views.full[0, 0, :, 0], range(8))
    np.testing.assert_array_equal(views.global_[0, 0, :, 0], [7, 6])
    np.testing.assert_array_equal(views.long[0, 0, :, :, 0], [[5, 4], [3, 2], [1, 0]])
    np.testing.assert_array_equal(
        views.window[0, 0, :, :, 0], [[5, 4, 3, 2, 1, 0], [3, 2, 1, 0, 5, 4], [1, 0, 5, 4, 3, 2]]
    )
    layer = MultiViewEmbedding(4, 2, dtype="mixed_bfloat16")
    with pytest.raises(ValueError, match=r"an order of integers, got bfloat16; .*'int32'"):
        layer(tf.zeros([1, 300, 1, 1]), tf.range(300.0)[None])


def test_function_without_masks_is_the_papers_figure():
    random = np.random.default_rng(2)
    embedding = MultiViewEmbedding(bucket_size=2, global_size=2)
    order = tf.range(8)[None]
    query, key, value = (
        embedding(tf.constant(random.normal(size=(1, 8, 1, 4)), tf.float32), order)
        for _ in range(3)
    )
    actual = multi_view_attention(query, key, value)
    # Three buckets, ends joined: every window holds them all, and the global part too.
    expected = small.attention_in_float64(query.full, key.full, value.full)
    np.testing.assert_allclose(actual, expected, atol=1e-5)


@cases(
    "make, message",
    (lambda: MultiViewAttention(2, 4, bucket_size=0), "bucket_size of at least 1.*got 0"),
    (lambda: MultiViewAttention(2, 4, global_size=0), "global_size of at least 1.*got 0"),
    (
        lambda: MultiViewAttention(2, 4, row_heads_ratio=1.5),
        "row_heads_ratio between 0 and 1, got 1.5",
    ),
    (lambda: MultiViewAttention(0, 4), "num_heads and head_size of at least 1, got 0 and 4"),
    (lambda: MultiViewEmbedding(0, 4), "bucket_size and global_size of at least 1"),
    (lambda: MultiViewAttention(2, 4)(small.hidden_states(1, 4)), "token features or a plan"),
)
def test_what_cannot_work_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()
