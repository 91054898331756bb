"""Tile by tile, everything that the pattern allows: against dense evaluation of the pattern."""

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from mate_tf.attention.dense import DenseAttention
from mate_tf.attention.tiles import TiledAttention, tiles_meet
from mate_tf.config import AttentionConfig
from mate_tf.tables.token_features import TokenFeatures

HIDDEN = 8
# Some 60 products of unit size are summed in float32, in another order.
TOLERANCE = 1e-5


def features_of(examples, length: int) -> TokenFeatures:
    """Examples as lists of (segment, column, row), padded to a length."""
    ids = np.zeros((3, len(examples), length), np.int32)
    mask = np.zeros((len(examples), length), np.int32)
    for index, tokens in enumerate(examples):
        mask[index, : len(tokens)] = 1
        if tokens:
            ids[:, index, : len(tokens)] = np.transpose(tokens)
    zeros = np.zeros_like(mask)
    segment, column, row = ids
    fields = (zeros, mask, segment, column, row, zeros, zeros, zeros, zeros)
    return TokenFeatures(*map(tf.constant, fields))


def tiled_and_dense(ratio: float, tile: int, **options):
    tiled = TiledAttention(
        4,
        4,
        AttentionConfig(
            row_heads_ratio=ratio,
            bucket_size=tile,
            coverage=1.0,
            **{"architecture": "mate", **options},
        ),
    )
    dense = DenseAttention(
        4,
        4,
        AttentionConfig(
            evaluator="dense",
            row_heads_ratio=ratio,
            bucket_size=0,
            **{"architecture": "mate", **options},
        ),
    )
    random = np.random.default_rng(0)
    for layer in (tiled, dense):
        layer.build((None, None, HIDDEN))
    for ours, theirs in zip(tiled.weights, dense.weights, strict=True):
        value = random.normal(0, 0.5, ours.shape)
        ours.assign(value)
        theirs.assign(value)
    return tiled, dense


def hidden_states(batch: int, length: int) -> tf.Tensor:
    random = np.random.default_rng(1)
    return tf.constant(random.normal(size=(batch, length, HIDDEN)), tf.float32)


TOKENS = st.lists(
    st.one_of(st.just((0, 0, 0)), st.tuples(st.just(1), st.integers(1, 5), st.integers(0, 6))),
    max_size=30,
)


@settings(max_examples=50)
@given(
    examples=st.lists(TOKENS, min_size=1, max_size=3),
    more=st.integers(1, 4),
    tile=st.integers(1, 12),
    ratio=st.sampled_from([0.0, 0.25, 0.5, 1.0]),
    options=st.sampled_from(
        [
            {},
            {"architecture": "mate_tableformer"},
            {"architecture": "mate_tableformer", "relation_kind": "embedding"},
        ]
    ),
)
def test_equals_the_pattern_for_any_tokens(examples, more, tile, ratio, options):
    length = max(map(len, examples)) + more
    features = features_of(examples, length)
    tiled, dense = tiled_and_dense(ratio, tile, **options)
    inputs = hidden_states(len(examples), length)
    actual, expected = tiled(inputs, features).numpy(), dense(inputs, features).numpy()
    assert np.isfinite(actual).all()
    real = features.input_mask.numpy()[..., None]
    np.testing.assert_allclose(actual * real, expected * real, atol=TOLERANCE)


@pytest.mark.parametrize("architecture", ["mate", "mate_tableformer"])
def test_gradients_equal_those_of_the_pattern(architecture):
    table = [(0, 0, 0)] * 3 + [(1, c + 1, r) for r in range(6) for c in range(3)]
    features = features_of([table, table[:9]], 23)
    layers = tiled_and_dense(0.5, 4, architecture=architecture)
    inputs = hidden_states(2, 23)
    real = tf.cast(features.input_mask, tf.float32)[..., None]
    gradients = []
    for layer in layers:
        with tf.GradientTape() as tape:
            tape.watch(inputs)
            loss = tf.reduce_sum(tf.sin(layer(inputs, features)) * real)
        gradients.append(tape.gradient(loss, [inputs, *(w.value for w in layer.weights)]))
    for ours, theirs in zip(*gradients, strict=True):
        scale = max(1.0, float(tf.reduce_max(tf.abs(theirs))))
        np.testing.assert_allclose(ours, theirs, atol=TOLERANCE * scale)


def test_only_tiles_of_one_column_and_of_the_question_meet():
    table = [(0, 0, 0)] * 2 + [(1, c + 1, r) for c in range(3) for r in range(4)]
    features = features_of([table], 16)
    tiles = features.map(lambda feature: tf.reshape(feature, [1, 8, 2]))
    expected = np.zeros((8, 8), bool)
    expected[:7, 0] = expected[0, :7] = True  # the question, and all but the padding
    for column in range(3):
        expected[1 + 2 * column : 3 + 2 * column, 1 + 2 * column : 3 + 2 * column] = True
    expected[7, 7] = True
    np.testing.assert_array_equal(tiles_meet(tiles, "column_ids").numpy()[0], expected)


def test_lengths_unknown_to_the_graph_work():
    tiled, dense = tiled_and_dense(0.5, 4)
    table = [(0, 0, 0)] * 3 + [(1, c + 1, r) for r in range(6) for c in range(3)]
    signature = [tf.TensorSpec([None, None, HIDDEN])] + [tf.TensorSpec([None, None], tf.int32)] * 9
    run = tf.function(lambda x, *f: tiled(x, TokenFeatures(*f)), input_signature=signature)
    for length in (21, 26):
        features = features_of([table], length)
        inputs = hidden_states(1, length)
        np.testing.assert_allclose(
            run(inputs, *features)[:, :21], dense(inputs, features)[:, :21], atol=TOLERANCE
        )
