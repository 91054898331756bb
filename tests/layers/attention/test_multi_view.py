"""The multi-view evaluator against the dense one, and its views against the paper's definition."""

import dataclasses

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from mate_tf.config import AttentionConfig, MateConfig
from mate_tf.layers.attention.kinds import MultiViewAttention, SelfAttention
from mate_tf.layers.attention.multi_view import MultiView, MultiViewEmbedding, multi_view_attention
from tests.layers import small_layers as small
from tests.small import cases

OF_OTHERS = {"evaluator", "coverage"}
SMALL = MateConfig("mate", "multi_view", 0.5, bucket_size=3, global_size=4)
TABLE = [small.QUESTION] * 4 + small.cells(6, 3)


def multi_view(config: MateConfig, heads: int) -> MultiViewAttention:
    options = dataclasses.asdict(config) | {"dense_up_to": 0}
    return MultiViewAttention(heads, 4, **{k: options[k] for k in options.keys() - OF_OTHERS})


def dense(config: MateConfig, heads: int) -> SelfAttention:
    return SelfAttention(heads, 4, attention=dataclasses.replace(config, evaluator="dense"))


@pytest.mark.medium
@settings(max_examples=45)
@given(
    bucket_size=st.integers(1, 9),
    global_size=st.integers(1, 12),
    ratio=st.sampled_from([0.0, 0.25, 0.5, 1.0]),
    relations=st.sampled_from(
        [
            {"architecture": "mate"},
            {"architecture": "mate_neighbours"},
            {"architecture": "mate_tableformer"},
            {"architecture": "mate_tableformer", "relation_kind": "embedding"},
            {"architecture": "mate_tableformer", "disabled_relations": (2, 4, 6)},
        ]
    ),
    tokens=small.TABLES | small.ANY_TOKENS,
    length=st.integers(1, 40),
)
def test_equals_dense_evaluation(bucket_size, global_size, ratio, relations, tokens, length):
    sizes = dict(row_heads_ratio=ratio, bucket_size=bucket_size, global_size=global_size)
    config = AttentionConfig(evaluator="multi_view", **sizes, **relations)
    fast, oracle = small.random_weights(multi_view(config, 4), dense(config, 4))
    features, inputs = small.features_of([tokens], length), small.hidden_states(1, length)
    small.assert_same_where(features.input_mask, fast(inputs, features), oracle(inputs, features))


def test_a_window_over_everything_is_the_pattern_and_original_bucketing_joins_the_ends():
    window = dataclasses.replace(SMALL, bucket_size=64, global_size=3)
    everything = MateConfig("mate", "dense", 0.5, 0, 0)
    fast, unrestricted = small.random_weights(multi_view(window, 2), dense(everything, 2))
    features, inputs = small.features_of([TABLE], 18), small.hidden_states(1, 18)
    small.assert_same_where(
        features.input_mask, fast(inputs, features), unrestricted(inputs, features)
    )
    features = small.features_of([[small.QUESTION] * 2 + small.cells(9, 1)], 12)
    configs = (MateConfig("mate", "multi_view", 0.0, 2, 2, asked) for asked in (False, True))
    layers = small.random_weights(*(multi_view(config, 1) for config in configs))
    apart, joined = (layer(small.hidden_states(1, 12), features) for layer in layers)
    # The column's first bucket sees the last one only where the ends are joined.
    assert np.abs(joined - apart)[0, 2:4].max() > 1e-3


@pytest.mark.medium
@settings(max_examples=20)
@given(
    bucket_size=st.integers(1, 5),
    global_size=st.integers(1, 6),
    tokens=small.TABLES | small.ANY_TOKENS,
    length=st.integers(1, 24),
    training=st.booleans(),
)
def test_gradients_equal_the_dense_evaluations(bucket_size, global_size, tokens, length, training):
    config = dataclasses.replace(SMALL, bucket_size=bucket_size, global_size=global_size)
    features = small.features_of([tokens, tokens[::-1]], length)
    inputs = small.hidden_states(2, length)
    layers = small.random_weights(multi_view(config, 3), dense(config, 3))
    small.assert_same_gradients(
        *(
            small.gradients(layer, inputs, features, features.input_mask, training=training)
            for layer in layers
        )
    )


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
