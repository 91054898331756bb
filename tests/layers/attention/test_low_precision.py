"""In bfloat16 the linear evaluators err at most twice as much as the dense one."""

import numpy as np
import pytest
import tensorflow as tf

from mate_tf.config import AttentionConfig
from mate_tf.layers.attention.dense import DenseAttention
from mate_tf.layers.attention.multi_view import MultiViewAttention
from mate_tf.layers.attention.patterns import head_groups, pattern_mask
from mate_tf.layers.attention.projections import heads_first
from mate_tf.layers.attention.tiles import TiledAttention
from scripts.draw_attention import table_tokens

HEADS, HEAD_SIZE = 4, 16
POLICY = "mixed_bfloat16"
PATTERN = AttentionConfig("mate", "dense", bucket_size=0)
FEATURES, LABELS = table_tokens(["q"] * 9, ["h"] * 5, [["c"] * 5] * 30)


def in_float64(query, key, value) -> np.ndarray:
    """The pattern's attention in float64, from the inputs as bfloat16 has them."""
    query, key, value = (tensor.numpy().astype(np.float64) for tensor in (query, key, value))
    scores = np.einsum("bhfe,bhte->bhft", query, key) / HEAD_SIZE**0.5
    first = 0
    for group in head_groups(PATTERN, HEADS):
        mask = pattern_mask(group.pattern, FEATURES, FEATURES).numpy()[:, None]
        heads = slice(first, first + group.num_heads)
        scores[:, heads] = np.where(mask, scores[:, heads], -np.inf)
        first += group.num_heads
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    return np.einsum("bhft,bhte->bhfe", weights, value)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize(
    "fast",
    [
        # A window that holds the longest column, so that both compute the same pairs.
        MultiViewAttention(HEADS, HEAD_SIZE, bucket_size=32, global_size=14, dtype=POLICY),
        TiledAttention(
            HEADS,
            HEAD_SIZE,
            AttentionConfig("mate", "multi_view", bucket_size=16, coverage=1.0),
            dtype=POLICY,
        ),
    ],
    ids=["multi-view", "tiles"],
)
def test_errs_at_most_twice_as_much_as_dense(fast, seed):
    random = np.random.default_rng(seed)
    shape = (1, HEADS, len(LABELS), HEAD_SIZE)
    query, key, value = (tf.constant(random.normal(size=shape), tf.bfloat16) for _ in range(3))
    expected = in_float64(query, key, value)

    def error(layer) -> float:
        projected = map(heads_first, (query, key, value))
        actual = heads_first(layer.attend(*projected, layer.plan(FEATURES), None))
        assert actual.dtype == tf.bfloat16
        return float(np.sqrt(np.mean((actual.numpy().astype(np.float64) - expected) ** 2)))

    dense = error(DenseAttention(HEADS, HEAD_SIZE, PATTERN, dtype=POLICY))
    assert dense > 0
    assert error(fast) <= 2 * dense
