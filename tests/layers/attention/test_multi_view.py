"""The multi-view evaluator against the dense one, and its views against the paper's definition."""

import dataclasses

import keras
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from mate_tf.config import AttentionConfig
from mate_tf.features.token_features import TokenFeatures
from mate_tf.layers.attention.dense import DenseAttention
from mate_tf.layers.attention.multi_view import (
    OPTIONS,
    MultiViewAttention,
    multi_view_attention,
)
from mate_tf.layers.attention.views import MultiView, MultiViewEmbedding

HIDDEN = 12
# Both evaluators sum at most 64 products of unit size in float32, whose rounding is 6e-8 each.
TOLERANCE = 1e-5


def table_features(question: int, rows: int, columns: int, length: int) -> TokenFeatures:
    """A question of some tokens and a table of one token a cell, cut or padded to a length."""
    segment = [0] * question + [1] * ((rows + 1) * columns)
    column = [0] * question + [c + 1 for _ in range(rows + 1) for c in range(columns)]
    row = [0] * question + [r for r in range(rows + 1) for _ in range(columns)]
    return features_of(segment, column, row, length)


def features_of(segment, column, row, length: int) -> TokenFeatures:
    def fit(values):
        return tf.constant([(list(values) + [0] * length)[:length]], tf.int32)

    zeros = fit([])
    return TokenFeatures(
        input_ids=zeros,
        input_mask=fit([1] * len(segment)),
        segment_ids=fit(segment),
        column_ids=fit(column),
        row_ids=fit(row),
        prev_label_ids=zeros,
        column_ranks=zeros,
        inv_column_ranks=zeros,
        numeric_relations=zeros,
    )


def both_evaluators(config: AttentionConfig, heads: int):
    """A multi-view layer and a dense one with the same weights and pairs."""
    fast = MultiViewAttention(heads, 4, **{option: getattr(config, option) for option in OPTIONS})
    oracle = DenseAttention(heads, 4, attention=dataclasses.replace(config, evaluator="dense"))
    for layer in (fast, oracle):
        layer.build((None, None, HIDDEN))
    random = np.random.default_rng(0)
    for ours, theirs in zip(fast.weights, oracle.weights, strict=True):
        assert ours.path.split("/", 1)[1] == theirs.path.split("/", 1)[1]
        value = random.normal(0, 0.5, ours.shape)
        ours.assign(value)
        theirs.assign(value)
    return fast, oracle


def hidden_states(length: int) -> tf.Tensor:
    return tf.constant(np.random.default_rng(1).normal(size=(1, length, HIDDEN)), tf.float32)


@settings(max_examples=40)
@given(
    bucket_size=st.integers(1, 9),
    global_size=st.integers(1, 12),
    ratio=st.sampled_from([0.0, 0.25, 0.5, 1.0]),
    relations=st.sampled_from(
        [
            {},
            {"architecture": "mate_tableformer"},
            {"architecture": "mate_tableformer", "relation_kind": "embedding"},
            {
                "architecture": "mate_tableformer",
                "disabled_relations": (2, 4, 6),
            },
        ]
    ),
    question=st.integers(0, 14),
    rows=st.integers(0, 7),
    columns=st.integers(1, 5),
    length=st.integers(1, 40),
)
def test_equals_dense_evaluation_of_the_computed_pairs(
    bucket_size, global_size, ratio, relations, question, rows, columns, length
):
    config = AttentionConfig("mate", "multi_view", ratio, bucket_size, global_size)
    config = dataclasses.replace(config, **relations)
    fast, oracle = both_evaluators(config, heads=4)
    features = table_features(question, rows, columns, length)
    inputs = hidden_states(length)
    actual, expected = fast(inputs, features), oracle(inputs, features)
    assert np.isfinite(actual.numpy()).all()
    real = features.input_mask.numpy()[..., None]
    np.testing.assert_allclose(actual * real, expected * real, atol=TOLERANCE)


@settings(max_examples=25)
@given(ids=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=24))
def test_equals_dense_evaluation_for_tokens_in_any_order(ids):
    row, column = zip(*ids, strict=True)
    segment = [int(r + c > 0) for r, c in ids]
    features = features_of(segment, column, row, len(ids) + 3)
    fast, oracle = both_evaluators(AttentionConfig("mate", "multi_view", 0.5, 3, 4), heads=2)
    inputs = hidden_states(len(ids) + 3)
    real = features.input_mask.numpy()[..., None]
    np.testing.assert_allclose(
        fast(inputs, features) * real, oracle(inputs, features) * real, atol=TOLERANCE
    )


@pytest.mark.parametrize("num_neighbours", [1, 2, 3])
@pytest.mark.parametrize("length", [7, 19, 26])
def test_more_neighbours_are_what_dense_evaluation_restricts_to(num_neighbours, length):
    config = AttentionConfig(
        "mate", "multi_view", 0.5, bucket_size=3, global_size=4, num_neighbours=num_neighbours
    )
    fast, oracle = both_evaluators(config, heads=2)
    features = table_features(question=3, rows=7, columns=3, length=length)
    inputs = hidden_states(length)
    real = features.input_mask.numpy()[..., None]
    np.testing.assert_allclose(
        fast(inputs, features) * real, oracle(inputs, features) * real, atol=TOLERANCE
    )


def test_a_window_over_everything_is_the_pattern_itself():
    features = table_features(question=3, rows=4, columns=3, length=18)
    inputs = hidden_states(18)
    fast, _ = both_evaluators(AttentionConfig("mate", "multi_view", 0.5, 64, 3), heads=2)
    unrestricted = DenseAttention(2, 4, attention=AttentionConfig("mate", "dense", 0.5, 0, 0))
    unrestricted.build((None, None, HIDDEN))
    for ours, theirs in zip(unrestricted.weights, fast.weights, strict=True):
        ours.assign(theirs)
    np.testing.assert_allclose(
        fast(inputs, features), unrestricted(inputs, features), atol=TOLERANCE
    )


def test_original_bucketing_joins_the_ends_only_when_asked():
    features = table_features(question=2, rows=8, columns=1, length=12)
    inputs = hidden_states(12)
    outputs = {
        original: both_evaluators(
            AttentionConfig("mate", "multi_view", 0.0, 2, 2, original), heads=1
        )[0](inputs, features).numpy()
        for original in (False, True)
    }
    # The column's first bucket sees the last one only where the ends are joined.
    assert np.abs(outputs[True] - outputs[False])[0, 2:4].max() > 1e-3


@pytest.mark.parametrize("training", [False, True])
def test_gradients_equal_those_of_the_dense_evaluation(training):
    config = AttentionConfig("mate", "multi_view", 0.5, 3, 4)
    layers = both_evaluators(config, heads=2)
    features = table_features(question=4, rows=5, columns=3, length=22)
    inputs = hidden_states(22)
    gradients = []
    for layer in layers:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(layer(inputs, features, training=training) ** 2)
        gradients.append(tape.gradient(loss, [w.value for w in layer.trainable_weights]))
    for ours, theirs in zip(*gradients, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=TOLERANCE, rtol=TOLERANCE)


def test_unknown_lengths_compute_what_known_ones_do():
    fast, _ = both_evaluators(AttentionConfig("mate", "multi_view", 0.5, 3, 4), heads=2)
    spec = [tf.TensorSpec([None, None], tf.int32)] * 9

    @tf.function(input_signature=[tf.TensorSpec([None, None, HIDDEN]), spec])
    def dynamic(inputs, features):
        return fast(inputs, TokenFeatures(*features))

    for length in (1, 4, 19):
        features = table_features(question=4, rows=5, columns=3, length=length)
        np.testing.assert_allclose(
            dynamic(hidden_states(length), list(features[:9])),
            fast(hidden_states(length), features),
            atol=1e-6,
        )


def test_compiles_with_xla():
    fast, _ = both_evaluators(AttentionConfig("mate", "multi_view", 0.5, 3, 4), heads=2)
    features = table_features(question=4, rows=5, columns=3, length=20)
    compiled = tf.function(fast, jit_compile=True)
    np.testing.assert_allclose(
        compiled(hidden_states(20), features), fast(hidden_states(20), features), atol=1e-5
    )


def test_views_show_the_global_part_the_buckets_and_their_neighbours():
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


def test_views_pad_what_does_not_divide():
    views = MultiViewEmbedding(bucket_size=4, global_size=2)(
        tf.reshape(tf.range(7.0), [1, 7, 1, 1]) + 1.0, tf.range(7)[None]
    )
    np.testing.assert_array_equal(views.long[0, 0, :, :, 0], [[3, 4, 5, 6], [7, 1, 1, 1]])


def test_an_order_that_is_not_of_integers_is_refused():
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
    actual = multi_view_attention(query, key, value).numpy()[0, 0]
    all_keys, all_values = key.full.numpy()[0, 0], value.full.numpy()[0, 0]
    for position in range(8):
        # Three buckets, ends joined: every window holds them all, and the global part too.
        scores = np.exp(all_keys @ query.full.numpy()[0, 0, position] / 2.0)
        np.testing.assert_allclose(actual[position], scores @ all_values / scores.sum(), atol=1e-5)


def test_saved_layer_comes_back_with_its_configuration():
    layer = MultiViewAttention(4, 8, row_heads_ratio=0.25, bucket_size=5, global_size=7)
    again = keras.layers.deserialize(keras.layers.serialize(layer))
    assert isinstance(again, MultiViewAttention)
    assert again.attention == layer.attention
    assert again.get_config() == layer.get_config()


@pytest.mark.parametrize(
    "arguments, message",
    [
        (dict(bucket_size=0), "bucket_size of at least 1.*got 0"),
        (dict(global_size=0), "global_size of at least 1.*got 0"),
        (dict(row_heads_ratio=1.5), "row_heads_ratio between 0 and 1, got 1.5"),
    ],
)
def test_sizes_that_cannot_work_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        MultiViewAttention(2, 4, **arguments)


def test_heads_that_cannot_work_are_refused():
    with pytest.raises(ValueError, match=r"num_heads and head_size of at least 1, got 0 and 4"):
        MultiViewAttention(0, 4)
    with pytest.raises(ValueError, match=r"bucket_size and global_size of at least 1"):
        MultiViewEmbedding(0, 4)


def test_call_without_features_is_refused():
    layer = MultiViewAttention(2, 4)
    with pytest.raises(ValueError, match=r"expected token features or a plan"):
        layer(hidden_states(4))
