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
from tests.layers.small_layers import QUESTION, attention_in_float64, cells, features_of

HEADS, HEAD_SIZE = 4, 16
POLICY = "mixed_bfloat16"
PATTERN = AttentionConfig("mate", "dense", bucket_size=0)
TABLE = [QUESTION] * 9 + cells(31, 5)
FEATURES = features_of([TABLE], len(TABLE))


def in_float64(query, key, value) -> np.ndarray:
    """The pattern's attention in float64, from the inputs as bfloat16 has them."""
    masks = [
        np.repeat(pattern_mask(group.pattern, FEATURES, FEATURES)[:, None], group.num_heads, axis=1)
        for group in head_groups(PATTERN, HEADS)
    ]
    added = np.where(np.concatenate(masks, axis=1), 0.0, -np.inf)
    return attention_in_float64(query, key, value, added)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize(
    "fast",
    [
        # A window that holds the longest column, so that both compute the same pairs.
        MultiViewAttention(HEADS, HEAD_SIZE, bucket_size=32, global_size=14, dtype=POLICY),
        TiledAttention(
            HEADS, HEAD_SIZE, AttentionConfig(bucket_size=16, coverage=1.0), dtype=POLICY
        ),
    ],
    ids=["multi-view", "tiles"],
)
def test_errs_at_most_twice_as_much_as_dense(fast, seed):
    random = np.random.default_rng(seed)
    shape = (1, HEADS, len(TABLE), HEAD_SIZE)
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
