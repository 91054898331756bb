"""Attention in rounds of a few pairs of tiles: any number of rounds, against all pairs at once."""

import dataclasses
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from mate_tf.config import AttentionConfig
from mate_tf.layers.attention import tiles
from mate_tf.layers.attention.kinds import SelfAttention
from mate_tf.layers.attention.patterns import everywhere
from mate_tf.layers.attention.rounds import Rounds, Weighing, attend_in_rounds
from mate_tf.layers.attention.tiles import pairs_of_round, tile_plan
from mate_tf.layers.basic import SeededDropout
from tests.layers import small_layers as small

TABLE = [small.QUESTION] * 3 + small.cells(6, 3)
EMBEDDING = {"architecture": "mate_tableformer", "relation_kind": "embedding"}


@pytest.fixture(params=[1, 600, 2**20], ids=["a pair", "some pairs", "all pairs"])
def numbers(request, monkeypatch) -> None:
    """The limit of a round: for two heads and tiles of 4 tokens, 1, 9 and all pairs."""
    monkeypatch.setattr(tiles, "_NUMBERS", request.param)


def tiled_and_dense(**options):
    common: dict[str, Any] = {"architecture": "mate", **options}
    tiled = AttentionConfig(evaluator="multi_view", bucket_size=4, coverage=1.0, **common)
    dense = AttentionConfig(evaluator="dense", bucket_size=0, **common)
    return small.random_weights(SelfAttention(4, 4, tiled), SelfAttention(4, 4, dense))


@pytest.mark.medium
@pytest.mark.parametrize("options", [{}, EMBEDDING], ids=["", "relations"])
def test_any_number_of_rounds_gives_the_same(options, numbers):
    tiled, dense = tiled_and_dense(**options)

    @settings(max_examples=12)
    @given(examples=st.lists(small.ANY_TOKENS, min_size=1, max_size=3))
    def check(examples):
        features = small.features_of(examples, 25)
        inputs = small.hidden_states(len(examples), 25)
        found, expected = tiled(inputs, features), dense(inputs, features)
        small.assert_same_where(features.input_mask, found, expected)

    check()


@pytest.mark.medium
@pytest.mark.parametrize("compiled", [False, True], ids=["", "XLA"])
@pytest.mark.parametrize("options", [{}, EMBEDDING], ids=["", "relations"])
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
    plan = dataclasses.replace(tile_plan(features, "row_ids", 2), tile_size=2)
    assert int(plan.num_pairs) == num_tiles**2
    return Rounds(
        plan.num_pairs, size, lambda start: pairs_of_round(plan, size, everywhere, None, start)
    )


def float64(*shape: int, seed: int = 0) -> tf.Tensor:
    return tf.constant(np.random.default_rng(seed).normal(size=shape))


@pytest.mark.parametrize("size", [1, 4, 5, 9])
def test_in_float64_context_and_gradients_are_those_of_the_definition(size, monkeypatch):
    monkeypatch.setattr("mate_tf.layers.attention.tiles._COARSER_TIME", 100.0)
    inputs = [8 * float64(3, 2, 2, 5, seed=seed) for seed in range(3)]  # [T, H, R, E]
    results = []
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(inputs)
        results.append(attend_in_rounds(all_pairs(3, size), *inputs, Weighing()))
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


@pytest.mark.parametrize("size", [4, 9])
def test_the_gradient_drops_in_each_round_what_the_context_did(size):
    """The context is linear in the values: it is the sum of the values times their gradients."""
    query, key, value = (float64(3, 2, 2, 5, seed=seed) for seed in range(3))
    weighing = Weighing(dropout=SeededDropout(0.5, tf.constant([1, 2])))
    with tf.GradientTape() as tape:
        tape.watch(value)
        context = attend_in_rounds(all_pairs(3, size), query, key, value, weighing)
        total = tf.reduce_sum(context)
    np.testing.assert_allclose(total, tf.reduce_sum(value * tape.gradient(total, value)))
    undropped = attend_in_rounds(all_pairs(3, size), query, key, value, Weighing())
    assert np.abs(context - undropped).max() > 0.1


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
