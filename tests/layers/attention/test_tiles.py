"""Tile by tile, everything that the pattern allows: against dense evaluation of the pattern."""

from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from mate_tf.config import AttentionConfig
from mate_tf.layers.attention.kinds import MultiViewAttention, SelfAttention
from mate_tf.layers.attention.patterns import head_groups, heads_first, pattern_mask
from mate_tf.layers.attention.tiles import tile_plan, tiles_meet
from mate_tf.layers.basic import SeededDropout
from tests.layers import small_layers as small

TABLE = [small.QUESTION] * 3 + small.cells(6, 3)
RELATIONS = [
    {},
    {"architecture": "mate_tableformer"},
    {"architecture": "mate_tableformer", "relation_kind": "embedding"},
]


def tiled_and_dense(ratio: float = 0.5, tile: int = 4, **options):
    common: dict[str, Any] = {"architecture": "mate", "row_heads_ratio": ratio, **options}
    tiled = AttentionConfig(evaluator="multi_view", bucket_size=tile, coverage=1.0, **common)
    dense = AttentionConfig(evaluator="dense", bucket_size=0, **common)
    return small.random_weights(SelfAttention(4, 4, tiled), SelfAttention(4, 4, dense))


@pytest.mark.medium
@settings(max_examples=40)
@given(
    examples=st.lists(small.ANY_TOKENS, min_size=1, max_size=3),
    more=st.integers(1, 4),
    tile=st.integers(1, 12),
    ratio=st.sampled_from([0.0, 0.25, 0.5, 1.0]),
    options=st.sampled_from(RELATIONS),
)
def test_equals_the_pattern_for_any_tokens(examples, more, tile, ratio, options):
    length = max(map(len, examples)) + more
    features = small.features_of(examples, length)
    tiled, dense = tiled_and_dense(ratio, tile, **options)
    inputs = small.hidden_states(len(examples), length)
    small.assert_same_where(features.input_mask, tiled(inputs, features), dense(inputs, features))


@pytest.mark.parametrize(
    ("options", "compiled"), [*((o, False) for o in RELATIONS), (RELATIONS[2], True)]
)
def test_gradients_equal_those_of_the_pattern(options, compiled):
    # With XLA the list of pairs is padded. An empty example has queries with nothing to attend to.
    features = small.features_of([TABLE, TABLE[:9], []], 23)
    inputs = small.hidden_states(3, 23)
    actual, expected = (
        tf.function(
            lambda inputs, features, layer=layer: small.gradients(
                layer, inputs, features, features.input_mask
            ),
            jit_compile=compiled and index == 0,
            autograph=False,
        )(inputs, features)
        for index, layer in enumerate(tiled_and_dense(tile=6, **options))
    )
    small.assert_same_gradients(actual, expected)


def test_only_tiles_of_one_column_and_of_the_question_meet():
    table = [small.QUESTION] * 2 + sorted(small.cells(4, 3))
    features = small.features_of([table], 16)
    tiles = features.map(lambda feature: tf.reshape(feature, [1, 8, 2]))
    expected = np.zeros((8, 8), bool)
    expected[:7, 0] = expected[0, :7] = True  # the question, and all but the padding
    for column in range(3):
        expected[1 + 2 * column : 3 + 2 * column, 1 + 2 * column : 3 + 2 * column] = True
    expected[7, 7] = True
    np.testing.assert_array_equal(tiles_meet(tiles, "column_ids").numpy()[0], expected)


@pytest.mark.parametrize(
    ("cells", "by_row", "by_column"), [((60, 1), 4, 32), ((1, 60), 32, 4), ((8, 8), 4, 4)]
)
def test_tiles_are_larger_where_most_of_them_meet(cells, by_row, by_column):
    features = small.features_of([small.cells(*cells)], 64)
    plans = [tile_plan(features, sort_by, 4) for sort_by in ("row_ids", "column_ids")]
    assert [int(plan.tile_size) for plan in plans] == [by_row, by_column]


def test_lengths_unknown_to_the_graph_work():
    tiled, dense = tiled_and_dense()
    run = small.of_any_length(tiled)
    for length in (21, 26):
        features, inputs = small.features_of([TABLE], length), small.hidden_states(1, length)
        small.assert_same_where(features.input_mask, run(inputs, features), dense(inputs, features))


@pytest.mark.medium
def test_the_same_program_of_xla_serves_any_number_of_pairs():
    tiled, dense = tiled_and_dense(tile=8)
    compiled = tf.function(tiled, jit_compile=True)
    short = small.cells(2, 30)  # columns of two tokens: each tile meets its neighbours
    long = small.cells(30, 2)  # half of all pairs meet
    one = small.cells(60, 1)  # all meet
    for tables in ([short, []], [long, []], [one, one], [short, one]):
        features, inputs = small.features_of(tables, 64), small.hidden_states(2, 64)
        found = compiled(inputs, features)
        small.assert_same_where(features.input_mask, found, dense(inputs, features))
    assert compiled.experimental_get_tracing_count() == 1


def test_xla_without_lengths_computes_the_same():
    tiled, dense = tiled_and_dense()
    inputs = small.hidden_states(1, 24), small.features_of([TABLE], 24)
    found = small.of_any_length(tiled, jit_compile=True)(*inputs)
    small.assert_same_where(inputs[1].input_mask, found, dense(*inputs))


def test_the_pairs_of_a_plan_are_those_that_meet_and_then_the_others():
    features = small.features_of([TABLE, []], 24)
    plan = tile_plan(features, "column_ids", 4)
    meet = tiles_meet(
        plan.tiles.map(lambda feature: tf.reshape(feature, [2, 6, 4])), "column_ids"
    ).numpy()
    pairs = np.stack([plan.query_tile, plan.key_tile], axis=1)
    example, query, key = np.nonzero(meet)
    expected = np.stack([6 * example + query, 6 * example + key], axis=1)
    np.testing.assert_array_equal(pairs[: int(plan.num_pairs)], expected)
    assert len(np.unique(pairs, axis=0)) == len(pairs) == 2 * 6 * 6


@pytest.mark.medium
@pytest.mark.parametrize("compiled", [False, True], ids=["", "XLA"])
def test_the_gradient_knows_what_dropout_dropped(compiled):
    """The context is linear in the values: it is the sum of the values times their gradients."""
    attention = AttentionConfig("mate", "multi_view", 0.0, bucket_size=8, coverage=1.0)
    layer = small.random_weights(SelfAttention(4, 4, attention, dropout=0.5))
    features = small.features_of([TABLE], 24)
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


BFLOAT16: dict[str, Any] = {"num_heads": 4, "head_size": 16, "dtype": "mixed_bfloat16"}
PATTERN = AttentionConfig("mate", "dense", bucket_size=0)
LONG = small.features_of([[small.QUESTION] * 9 + small.cells(31, 5)], 164)


def in_float64(query, key, value) -> np.ndarray:
    """The pattern's attention in float64, from the inputs as bfloat16 has them."""
    masks = [
        np.repeat(pattern_mask(group.pattern, LONG, LONG)[:, None], group.num_heads, axis=1)
        for group in head_groups(PATTERN, 4)
    ]
    added = np.where(np.concatenate(masks, axis=1), 0.0, -np.inf)
    return small.attention_in_float64(query, key, value, added)


@pytest.mark.parametrize(
    "fast",
    [
        # A window that holds the longest column, so that both compute the same pairs.
        MultiViewAttention(**BFLOAT16, bucket_size=32, global_size=14),
        SelfAttention(**BFLOAT16, attention=AttentionConfig(bucket_size=16, coverage=1.0)),
    ],
    ids=["multi-view", "tiles"],
)
def test_errs_in_bfloat16_at_most_twice_as_much_as_dense(fast):
    dense = SelfAttention(**BFLOAT16, attention=PATTERN)
    for seed in range(8):
        random = np.random.default_rng(seed)
        inputs = [tf.constant(random.normal(size=(1, 4, 164, 16)), tf.bfloat16) for _ in range(3)]
        expected = in_float64(*inputs)

        def error(layer, inputs=inputs, expected=expected) -> float:
            context = layer.attend(*map(heads_first, inputs), layer.plan(LONG), None)
            assert context.dtype == tf.bfloat16
            actual = heads_first(context).numpy().astype(np.float64)
            return float(np.sqrt(np.mean((actual - expected) ** 2)))

        assert 0 < error(fast) <= 2 * error(dense)
