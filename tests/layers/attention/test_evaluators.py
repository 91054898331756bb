"""Efficient evaluators against all pairs, for any tokens and sizes: outputs and gradients.

They compute any pattern, so that a new one is a config's name and an entry of PATTERNS.
"""

import dataclasses
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from mate_tf import config
from mate_tf.config import AttentionConfig, MateConfig, TableETCConfig
from mate_tf.layers.attention import patterns, tiles
from mate_tf.layers.attention.kinds import SelfAttention
from tests.layers import small_layers as small


@dataclasses.dataclass(frozen=True)
class DiagonalConfig(MateConfig):
    """Every head attends along the table's diagonals."""

    architecture: str = "diagonal"


def diagonal(features):
    """The same for the tokens of a diagonal; negative below the first."""
    return features.column_ids - features.row_ids


def same_diagonal(query, key):
    return tf.equal(diagonal(query), diagonal(key))


def diagonal_heads(_, num_heads):
    pattern = patterns.any_of(same_diagonal, patterns.global_token)
    return (patterns.HeadGroup(num_heads, pattern, diagonal, "diagonal heads"),)


@pytest.fixture(scope="module", autouse=True)
def registered():
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(config._KINDS, "diagonal", DiagonalConfig)
        patch.setitem(patterns.PATTERNS, "diagonal", diagonal_heads)
        yield


def window(options: dict[str, Any], **sizes: Any) -> tuple[AttentionConfig, AttentionConfig]:
    """Configs of an efficient evaluator and of all pairs."""
    efficient: Any = AttentionConfig(evaluator="multi_view", **sizes, **options)
    return efficient, dataclasses.replace(efficient, evaluator="dense")


def tile_by_tile(
    options: dict[str, Any], row_heads_ratio: float, bucket_size: int
) -> tuple[AttentionConfig, AttentionConfig]:
    both = {"architecture": "mate", "row_heads_ratio": row_heads_ratio, **options}
    tiled = AttentionConfig(evaluator="multi_view", bucket_size=bucket_size, coverage=1.0, **both)
    return tiled, AttentionConfig(evaluator="dense", bucket_size=0, **both)


def global_local(num_global_tokens: int, **sizes: Any) -> tuple[AttentionConfig, AttentionConfig]:
    share = num_global_tokens < 12
    by_blocks = TableETCConfig(
        num_global_tokens=num_global_tokens, share_global_tokens=share, **sizes
    )
    return by_blocks, dataclasses.replace(by_blocks, evaluator="dense")


OF_MATE: dict[str, Any] = dict(
    options=st.sampled_from(
        [
            {"architecture": "mate"},
            {"architecture": "diagonal"},
            {"architecture": "mate_neighbours"},
            {"architecture": "mate_tableformer"},
            {"architecture": "mate_tableformer", "relation_kind": "embedding"},
            {"architecture": "mate_tableformer", "disabled_relations": (2, 4, 6)},
        ]
    ),
    row_heads_ratio=st.sampled_from([0.0, 0.25, 0.5, 1.0]),
    bucket_size=st.integers(1, 12),
)
PAIRS = {
    "windows": st.builds(window, global_size=st.integers(1, 12), **OF_MATE),
    "tiles": st.builds(tile_by_tile, **OF_MATE),
    "table_etc": st.builds(
        global_local,
        num_global_tokens=st.sampled_from([2, 6, 12, 16]),
        local_radius=st.integers(1, 20),
        max_relative_distance=st.integers(0, 14),
    ),
}
LONGEST = {"windows": 40, "tiles": 26, "table_etc": 60}
EXAMPLES = st.lists(small.ANY_TOKENS, min_size=1, max_size=3) | small.TABLES.map(lambda it: [it])


def layers_and_inputs(pair, examples, length):
    """The two layers with the same weights; hidden states, features, and which outputs count."""
    features = small.features_of(examples, length)
    num_global = getattr(pair[0], "num_global_tokens", 0)
    counts = np.pad(features.input_mask, [(0, 0), (num_global, 0)], constant_values=1)
    hidden = small.hidden_states(len(examples), num_global + length)
    layers = small.random_weights(*(SelfAttention(4, 4, attention) for attention in pair))
    return layers, hidden, features, counts


@pytest.mark.medium
@pytest.mark.parametrize("kind", PAIRS)
def test_outputs_equal_those_of_all_pairs(kind):
    @settings(max_examples=60)
    @given(
        pair=PAIRS[kind],
        examples=EXAMPLES,
        length=st.integers(1, LONGEST[kind]),
        # Of a round of tiles: for four heads and tiles of 4 tokens one pair, a few, or all.
        numbers=st.sampled_from([1, 600, 2**20]),
    )
    def check(pair, examples, length, numbers):
        layers, hidden, features, counts = layers_and_inputs(pair, examples, length)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(tiles, "_NUMBERS", numbers)
            found, expected = (layer(hidden, features) for layer in layers)
        small.assert_same_where(counts, found, expected)

    check()


@pytest.mark.medium
@pytest.mark.parametrize("kind", ["windows", "table_etc"])  # test_tiles.py has the others
def test_gradients_equal_those_of_all_pairs(kind):
    @settings(max_examples=20)
    @given(
        pair=PAIRS[kind],
        tokens=small.TABLES | small.ANY_TOKENS,
        length=st.integers(1, 24),
        training=st.booleans(),
    )
    def check(pair, tokens, length, training):
        examples = [tokens, tokens[::-1], []]
        layers, *inputs = layers_and_inputs(pair, examples, length)
        found = (small.gradients(layer, *inputs, training=training) for layer in layers)
        small.assert_same_gradients(*found)

    check()


def test_tokens_outside_the_table_come_first_in_any_order():
    features = small.random_features(small.LENGTH)
    order = patterns.token_order(features, diagonal)
    is_outside = (features.segment_ids == 0) & (features.input_mask > 0)
    ordered = tf.gather(is_outside, order, batch_dims=1)
    number = tf.math.count_nonzero(is_outside, axis=1, dtype=tf.int32)
    np.testing.assert_array_equal(ordered, tf.sequence_mask(number, ordered.shape[1]))
    assert tf.reduce_min(diagonal(features)) < 0 < tf.reduce_min(number)
