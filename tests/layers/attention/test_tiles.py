"""Tile by tile, everything that the pattern allows: against dense evaluation of the pattern."""

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from mate_tf.config import AttentionConfig
from mate_tf.features.token_features import TokenFeatures
from mate_tf.layers.attention.dense import DenseAttention
from mate_tf.layers.attention.tiles import TiledAttention, list_sizes, tile_plan, tiles_meet
from mate_tf.layers.basic import SeededDropout

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
            evaluator="multi_view",
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


def gradients_of(layer, inputs, features, compiled: bool = False):
    """Of a loss over the real tokens, by the inputs and by the weights."""
    real = tf.cast(features.input_mask, tf.float32)[..., None]

    @tf.function(jit_compile=compiled, autograph=False)
    def gradients(inputs, features):
        with tf.GradientTape() as tape:
            tape.watch(inputs)
            loss = tf.reduce_sum(tf.sin(layer(inputs, features)) * real)
        weights = [weight.value for weight in layer.weights]
        return tape.gradient(loss, [inputs, *weights])

    return gradients(inputs, features)


TABLE = [(0, 0, 0)] * 3 + [(1, c + 1, r) for r in range(6) for c in range(3)]


@pytest.mark.parametrize(
    ("architecture", "kind", "compiled"),
    [
        ("mate", "scalar", False),
        ("mate_tableformer", "scalar", False),
        ("mate_tableformer", "embedding", False),
        ("mate_tableformer", "embedding", True),
    ],
)
def test_gradients_equal_those_of_the_pattern(architecture, kind, compiled):
    # With XLA the list of pairs is padded. An empty example has queries with nothing to attend to.
    features = features_of([TABLE, TABLE[:9], []], 23)
    tiled, dense = tiled_and_dense(0.5, 6, architecture=architecture, relation_kind=kind)
    inputs = hidden_states(3, 23)
    actual = gradients_of(tiled, inputs, features, compiled)
    for ours, theirs in zip(actual, gradients_of(dense, inputs, features), strict=True):
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
    signature = [tf.TensorSpec([None, None, HIDDEN])] + [tf.TensorSpec([None, None], tf.int32)] * 9
    run = tf.function(lambda x, *f: tiled(x, TokenFeatures(*f)), input_signature=signature)
    for length in (21, 26):
        features = features_of([TABLE], length)
        inputs = hidden_states(1, length)
        np.testing.assert_allclose(
            run(inputs, *features[:9])[:, :21], dense(inputs, features)[:, :21], atol=TOLERANCE
        )


def few_columns(num_columns: int, num_rows: int) -> list[tuple[int, int, int]]:
    return [(1, c + 1, r) for r in range(num_rows) for c in range(num_columns)]


@pytest.mark.parametrize(
    "tables",
    [
        [few_columns(30, 2)],  # columns of two tokens: each tile meets its neighbours
        [few_columns(2, 30)],  # columns of 30: half of all pairs meet
        [few_columns(1, 60)],  # one column: all meet
        [few_columns(30, 2), few_columns(1, 60), []],
    ],
    ids=["short columns", "long columns", "one column", "a batch"],
)
def test_the_same_program_of_xla_serves_any_number_of_pairs(tables):
    tiled, dense = tiled_and_dense(0.5, 4)
    features = features_of(tables, 64)
    inputs = hidden_states(len(tables), 64)
    compiled = tf.function(tiled, jit_compile=True)(inputs, features).numpy()
    assert np.isfinite(compiled).all()
    real = features.input_mask.numpy()[..., None]
    np.testing.assert_allclose(compiled * real, dense(inputs, features) * real, atol=TOLERANCE)


def test_xla_without_lengths_is_refused():
    tiled, _ = tiled_and_dense(0.5, 4)
    signature = [tf.TensorSpec([None, None, HIDDEN])] + [tf.TensorSpec([None, None], tf.int32)] * 9
    run = tf.function(lambda x, *f: tiled(x, TokenFeatures(*f)), signature, jit_compile=True)
    with pytest.raises(ValueError, match=r"batch size and a sequence length known.*got None and"):
        run(hidden_states(1, 24), *features_of([TABLE], 24)[:9])


@pytest.mark.parametrize(
    ("num_tiles", "batch_size", "sizes"),
    [
        (1, 1, [1]),
        (2, 3, [12]),
        (3, 1, [9]),
        (8, 1, [24, 40, 56, 64]),
        (32, 2, [192, 320, 448, 704, 1216, 2048]),
    ],
)
def test_lists_are_padded_to_few_sizes_of_which_the_last_holds_all(num_tiles, batch_size, sizes):
    assert list_sizes(num_tiles, batch_size) == sizes


def test_the_pairs_of_a_plan_are_those_that_meet_and_then_the_others():
    features = features_of([TABLE, []], 24)
    plan = tile_plan(features, "column_ids", 4)
    meet = tiles_meet(
        plan.tiles.map(lambda feature: tf.reshape(feature, [2, 6, 4])), "column_ids"
    ).numpy()
    pairs = np.stack([plan.query_tile, plan.key_tile], axis=1)
    example, query, key = np.nonzero(meet)
    expected = np.stack([6 * example + query, 6 * example + key], axis=1)
    np.testing.assert_array_equal(pairs[: int(plan.num_pairs)], expected)
    assert len(np.unique(pairs, axis=0)) == len(pairs) == 2 * 6 * 6


@pytest.mark.parametrize("compiled", [False, True], ids=["", "XLA"])
def test_the_gradient_knows_what_dropout_dropped(compiled):
    """The context is linear in the values: it is the sum of the values times their gradients."""
    layer = TiledAttention(
        4, 4, AttentionConfig("mate", "multi_view", bucket_size=6, coverage=1.0), dropout=0.5
    )
    layer.build((None, None, HIDDEN))
    features = features_of([TABLE], 24)
    random = np.random.default_rng(2)
    query, key, value = (
        tf.constant(random.normal(size=(1, 24, 4, 4)), tf.float32) for _ in range(3)
    )

    @tf.function(jit_compile=compiled, autograph=False)
    def loss_and_gradient(query, key, value, features):
        with tf.GradientTape() as tape:
            tape.watch(value)
            dropout = SeededDropout(0.5, layer.dropout.draw_seed())
            context = layer.attend(query, key, value, layer.plan(features), dropout)
            loss = tf.reduce_sum(context[:, :21])
        return loss, tape.gradient(loss, value)

    losses = set()
    for _ in range(3):
        loss, gradient = loss_and_gradient(query, key, value, features)
        losses.add(float(loss))
        # 336 numbers of unit size are summed.
        np.testing.assert_allclose(loss, tf.reduce_sum(value * gradient), atol=1e-3)
    assert len(losses) == 3
