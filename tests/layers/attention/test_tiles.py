"""All that the pattern allows, tile by tile in rounds: against the dense evaluation."""

import dataclasses
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from mate_tf.config import AttentionConfig
from mate_tf.layers.attention import tiles
from mate_tf.layers.attention.kinds import MultiViewAttention, SelfAttention
from mate_tf.layers.attention.patterns import (
    GroupInputs,
    Projected,
    column,
    everywhere,
    head_groups,
    pattern_mask,
    row,
)
from mate_tf.layers.attention.tiles import (
    Rounds,
    attend_in_rounds,
    pairs_of_round,
    tile_plan,
    tiles_meet,
)
from mate_tf.layers.basic import SeededDropout
from tests.layers import small_layers as small
from tests.layers.attention.test_evaluators import tile_by_tile
from tests.small import cases

TABLE = [small.QUESTION] * 3 + small.cells(6, 3)
NUMBERS = [1, 600, 2**20]  # of a round: for two heads and tiles of 4 tokens, 1, 9 and all pairs
RELATIONS = [
    {},
    {"architecture": "mate_tableformer"},
    {"architecture": "mate_tableformer", "relation_kind": "embedding"},
    {"architecture": "mate_neighbours"},
]


def tiled_and_dense(tile: int = 4, **options):
    pair = tile_by_tile(options, row_heads_ratio=0.5, bucket_size=tile)
    return small.random_weights(*(SelfAttention(4, 4, attention) for attention in pair))


def test_tiles_of_one_column_and_of_the_question_meet_and_come_first_in_a_plan():
    table = [small.QUESTION] * 2 + sorted(small.cells(4, 3))
    features = small.features_of([table], 16)
    of_tiles = features.map(lambda feature: tf.reshape(feature, [1, 8, 2]))
    expected = np.zeros((8, 8), bool)
    expected[:7, 0] = expected[0, :7] = True  # the question, and all but the padding
    for place in range(1, 7, 2):
        expected[place : place + 2, place : place + 2] = True
    expected[7, 7] = True
    np.testing.assert_array_equal(tiles_meet(of_tiles, column).numpy()[0], expected)
    features = small.features_of([TABLE, []], 24)
    plan = tile_plan(features, column, 4)
    meet = tiles_meet(plan.tiles.map(lambda f: tf.reshape(f, [2, 6, 4])), column).numpy()
    pairs = np.stack([plan.query_tile, plan.key_tile], axis=1)
    example, query, key = np.nonzero(meet)
    expected = np.stack([6 * example + query, 6 * example + key], axis=1)
    np.testing.assert_array_equal(pairs[: int(plan.num_pairs)], expected)
    assert len(np.unique(pairs, axis=0)) == len(pairs) == 2 * 6 * 6


@cases("cells, by_row, by_column", ((60, 1), 4, 32), ((1, 60), 32, 4), ((8, 8), 4, 4))
def test_tiles_are_larger_where_most_of_them_meet(cells, by_row, by_column):
    features = small.features_of([small.cells(*cells)], 64)
    plans = [tile_plan(features, sort_by, 4) for sort_by in (row, column)]
    assert [int(plan.tile_size) for plan in plans] == [by_row, by_column]


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


@pytest.mark.medium
@pytest.mark.parametrize("compiled", [False, True], ids=["", "XLA"])
def test_the_gradient_knows_what_dropout_dropped(compiled, numbers):
    """The context is linear in the values: it is the sum of the values times their gradients."""
    attention = AttentionConfig("mate", "multi_view", 0.0, bucket_size=8, coverage=1.0)
    layer = small.random_weights(SelfAttention(4, 4, attention, dropout=0.5))
    features = small.features_of([TABLE], 24)
    projected = small.random_heads(2, 1, 24, 4, 4)  # [B, S, H, E] here

    @tf.function(jit_compile=compiled, autograph=False)
    def loss_and_gradient(projected, features):
        with tf.GradientTape() as tape:
            tape.watch(projected.value)
            dropout = SeededDropout(0.5, layer.dropout.draw_seed())
            context = layer.attend(projected, layer.plan(features), dropout)
            loss = tf.reduce_sum(context[:, :21])
        return loss, tape.gradient(loss, projected.value)

    losses = set()
    for _ in range(3):
        loss, gradient = loss_and_gradient(projected, features)
        losses.add(float(loss))
        # 336 numbers of unit size are summed.
        np.testing.assert_allclose(loss, tf.reduce_sum(projected.value * gradient), atol=1e-3)
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


@cases(
    "fast",
    # A window that holds the longest column, so that both compute the same pairs.
    MultiViewAttention(**BFLOAT16, bucket_size=32, global_size=14),
    SelfAttention(**BFLOAT16, attention=AttentionConfig(bucket_size=16, coverage=1.0)),
    ids=["multi-view", "tiles"],
)
def test_errs_in_bfloat16_at_most_twice_as_much_as_dense(fast):
    dense = SelfAttention(**BFLOAT16, attention=PATTERN)
    for seed in range(8):
        heads = small.random_heads(seed, 1, 4, 164, 16, dtype=tf.bfloat16)
        expected = in_float64(*heads)
        error, of_dense = (
            np.linalg.norm(small.context_of(layer, heads, LONG) - expected)
            for layer in (fast, dense)
        )
        assert 0 < error <= 2 * of_dense


@pytest.fixture(params=NUMBERS, ids=["a pair", "some pairs", "all pairs"])
def numbers(request, monkeypatch) -> None:
    monkeypatch.setattr(tiles, "_NUMBERS", request.param)


@pytest.mark.medium
@pytest.mark.parametrize(
    ("numbers", "compiled"),
    [(number, False) for number in NUMBERS] + [(NUMBERS[1], True)],
    ids=["a pair", "some pairs", "all pairs", "some pairs, XLA"],
    indirect=["numbers"],
)
@pytest.mark.parametrize("options", RELATIONS, ids=["", "relations", "embedding", "neighbours"])
def test_gradients_of_any_number_of_rounds_are_the_same(options, compiled, numbers):
    # An empty example has queries with nothing to attend to.
    features = small.features_of([TABLE, TABLE[:9], []], 23)
    inputs = small.hidden_states(3, 23)
    actual, expected = (
        tf.function(
            lambda inputs, features, layer=layer: small.gradients(
                layer, inputs, features, features.input_mask, training=True
            ),
            jit_compile=compiled and index == 0,
            autograph=False,
        )(inputs, features)
        for index, layer in enumerate(tiled_and_dense(**options))
    )
    small.assert_same_gradients(actual, expected)


def all_pairs(num_tiles: int, size: int) -> Rounds:
    """All pairs of tiles of two tokens of a sequence without padding, in rounds of a size."""
    features = small.features_of([[small.QUESTION] * (2 * num_tiles)], 2 * num_tiles)
    plan = dataclasses.replace(tile_plan(features, row, 2), tile_size=2)
    assert int(plan.num_pairs) == num_tiles**2
    return Rounds(plan.num_pairs, size, lambda s: pairs_of_round(plan, size, everywhere, None, s))


def float64(*shape: int, seed: int = 0) -> tf.Tensor:
    return tf.constant(np.random.default_rng(seed).normal(size=shape))


@pytest.mark.parametrize("size", [1, 4, 5, 9])
def test_in_float64_context_and_gradients_are_those_of_the_definition(size, monkeypatch):
    monkeypatch.setattr("mate_tf.layers.attention.tiles._COARSER_TIME", 100.0)
    inputs = [8 * float64(3, 2, 2, 5, seed=seed) for seed in range(3)]  # [T, H, R, E]
    results = []
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(inputs)
        given = GroupInputs(Projected(*inputs))
        results.append(attend_in_rounds(all_pairs(3, size), given))
        joined = (tf.reshape(tf.transpose(one, [1, 0, 2, 3]), [2, 6, 5]) for one in inputs)
        query, key, value = joined
        weights = tf.nn.softmax(tf.matmul(query, key, transpose_b=True))
        context = tf.reshape(weights @ value, [2, 3, 2, 5])
        results.append(tf.transpose(context, [1, 0, 2, 3]))
        losses = [tf.reduce_sum(tf.sin(result)) for result in results]
    # Scores up to some hundred: their exponentials lose as many units in the last place.
    np.testing.assert_allclose(*results, rtol=0, atol=1e-12)
    for found, expected in zip(*(tape.gradient(loss, inputs) for loss in losses), strict=True):
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-11)


def test_the_layers_of_an_encoder_share_a_program():
    tiled, _ = tiled_and_dense()
    features = small.features_of([TABLE], 24)

    def programs(num_layers: int) -> int:
        @tf.function(autograph=False)
        def run(hidden):
            plan = tiled.plan(features)
            for _ in range(num_layers):
                hidden = tiled(hidden, plan=plan)
            return hidden

        graph = run.get_concrete_function(small.hidden_states(1, 24)).graph
        return len(graph.as_graph_def().library.function)

    assert programs(3) == programs(1)


MEMORY = """
import resource
import tensorflow as tf
from mate_tf.config import AttentionConfig
from mate_tf.layers.attention.kinds import SelfAttention
from tests.layers import small_layers as small

layer = SelfAttention(2, 4, AttentionConfig("mate", "multi_view", coverage=1.0))
small.random_weights(layer)

@tf.function(autograph=False)
def run(hidden, features):
    return small.gradients(layer, hidden, features, features.input_mask)

def peak(tokens):
    features = small.features_of([tokens], len(tokens))
    run(small.hidden_states(1, len(tokens)), features)
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024

before = peak(small.cells(40, 1))
print(peak({tokens}) - before)
"""


@pytest.mark.slow
@pytest.mark.parametrize("tokens", ["small.cells(12000, 1)", "small.cells(1, 1, 12000)"])
def test_a_long_column_and_a_huge_cell_need_memory_linear_in_their_length(tokens):
    """One number for each pair of tokens would be 144 million: 549 MB for each head."""
    program = MEMORY.replace("{tokens}", tokens)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    # A round's largest tensors have 32 MB. A gradient has some ten of them, twice while it sums.
    assert float(done.stdout) < 500
