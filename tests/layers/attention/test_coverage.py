"""Coverage, counted by hand on small tables."""

import math

import numpy as np
import pytest
import tensorflow as tf

from mate_tf.config import AttentionConfig
from mate_tf.features.token_features import TokenFeatures
from mate_tf.layers.attention.coverage import coverage


def batch_of(*tables, length=24) -> TokenFeatures:
    """Tables of (rows, columns), one token a cell, behind a question of two tokens."""
    fields: dict[str, list[list[int]]] = {
        name: [] for name in ("input_mask", "segment_ids", "column_ids", "row_ids")
    }
    for rows, columns in tables:
        cells = [(r, c + 1) for r in range(rows) for c in range(columns)]
        padding = [0] * (length - 2 - len(cells))
        fields["input_mask"].append([1, 1] + [1] * len(cells) + padding)
        fields["segment_ids"].append([0, 0] + [1] * len(cells) + padding)
        fields["row_ids"].append([0, 0] + [r for r, _ in cells] + padding)
        fields["column_ids"].append([0, 0] + [c for _, c in cells] + padding)
    zeros = np.zeros((len(tables), length), int)
    return TokenFeatures(
        *(tf.constant(fields.get(name, zeros), tf.int32) for name in TokenFeatures._fields)
    )


def test_a_column_longer_than_the_window_loses_its_ends():
    # One column of six tokens behind two global ones, in buckets of two: buckets 1 and 3 do not
    # meet, so 2 * 2 * 2 of 36 ordered pairs are missing.
    config = AttentionConfig("mate", bucket_size=2, global_size=2, row_heads_ratio=0.0)
    ((mean, minimum),) = coverage(batch_of((6, 1)), config, num_heads=2)
    assert float(mean) == float(minimum) == pytest.approx(28 / 36)


def test_mean_and_minimum_are_over_the_examples():
    config = AttentionConfig("mate", bucket_size=2, global_size=2)
    rows, columns = coverage(batch_of((6, 1), (1, 1), (0, 0)), config, num_heads=2)
    assert (float(rows.mean), float(rows.minimum)) == (1.0, 1.0)
    assert float(columns.mean) == pytest.approx((28 / 36 + 1) / 2)
    assert float(columns.minimum) == pytest.approx(28 / 36)


@pytest.mark.parametrize(
    "config",
    [
        AttentionConfig("mate", "dense", bucket_size=0),
        AttentionConfig("mate", bucket_size=2, global_size=2, num_neighbours=3),
        AttentionConfig("mate", bucket_size=2, coverage=1.0),
        AttentionConfig("tapas"),
    ],
)
def test_nothing_is_missing_without_a_window_or_with_a_wide_one(config):
    for mean, minimum in coverage(batch_of((6, 1), (4, 4)), config, num_heads=2):
        assert (float(mean), float(minimum)) == (1.0, 1.0)


def test_no_table_has_no_coverage():
    ((mean, _),) = coverage(batch_of((0, 0)), AttentionConfig("tapas"), num_heads=2)
    assert math.isnan(float(mean))
