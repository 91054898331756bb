"""Who may attend to whom in each architecture."""

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

from mate_tf.config import AttentionConfig
from mate_tf.features.token_features import TokenFeatures
from mate_tf.layers.attention.patterns import (
    group_mask,
    head_groups,
    pad_features,
    pattern_mask,
    window_pairs,
)
from scripts.draw_attention import table_tokens

# [CLS], header of columns 1 and 2, one body row, padding.
ROWS = [0, 0, 0, 1, 1, 0]
COLUMNS = [0, 1, 2, 1, 2, 0]
SEGMENTS = [0, 1, 1, 1, 1, 0]
MASK = [1, 1, 1, 1, 1, 0]


def features() -> TokenFeatures:
    zeros = tf.zeros([1, 6], tf.int32)
    return TokenFeatures(
        zeros,
        tf.constant([MASK]),
        tf.constant([SEGMENTS]),
        tf.constant([COLUMNS]),
        tf.constant([ROWS]),
        zeros,
        zeros,
        zeros,
        zeros,
    )


def mask_of(config: AttentionConfig, group: int) -> np.ndarray:
    pattern = head_groups(config, num_heads=2)[group].pattern
    mask = pattern_mask(pattern, features(), features())
    return np.broadcast_to(mask.numpy(), [1, 6, 6])[0]


@pytest.mark.parametrize(
    "config, group, body_cell_sees",
    [
        (AttentionConfig("tapas", "dense"), 0, [1, 1, 1, 1, 1, 0]),
        (AttentionConfig("sat", "dense"), 0, [1, 1, 0, 1, 1, 0]),
        (AttentionConfig("mate", "dense"), 0, [1, 0, 0, 1, 1, 0]),
        (AttentionConfig("mate", "dense"), 1, [1, 1, 0, 1, 0, 0]),
    ],
)
def test_a_body_cell_sees(config, group, body_cell_sees):
    np.testing.assert_array_equal(mask_of(config, group)[3], body_cell_sees)


@pytest.mark.parametrize("architecture", ["tapas", "sat", "mate"])
def test_the_first_token_attends_to_and_is_attended_by_all(architecture):
    config = AttentionConfig(architecture, "dense")
    for group in range(len(head_groups(config, 2))):
        mask = mask_of(config, group)
        np.testing.assert_array_equal(mask[0], MASK)
        assert mask[:, 0].all()
        assert np.diag(mask)[:5].all()


@given(
    question=st.integers(1, 6),
    columns=st.integers(1, 4),
    rows=st.integers(0, 6),
    padding=st.integers(0, 4),
    architecture=st.sampled_from(["tapas", "sat", "mate", "tableformer", "mate_tableformer"]),
    ratio=st.sampled_from([0.0, 0.5, 1.0]),
    bucket_size=st.integers(0, 9),
    global_size=st.integers(1, 9),
)
def test_the_condition_of_the_universal_approximation_theorem(
    question, columns, rows, padding, architecture, ratio, bucket_size, global_size
):
    """MATE paper, appendix C: a token attends to itself, and to and from the first one."""
    table, _ = table_tokens(["q"] * question, ["h"] * columns, [["c"] * columns] * rows)
    padded = pad_features(table, table.input_mask.shape[1] + padding)
    config = AttentionConfig(
        architecture, "dense", ratio, bucket_size=bucket_size, global_size=global_size
    )
    real = padded.input_mask[0].numpy().astype(bool)
    for group in head_groups(config, num_heads=4):
        mask = np.broadcast_to(group_mask(group, padded)[0], [len(real)] * 2)
        in_window = window_pairs(padded, group.sort_by, config)
        if in_window is not None:
            mask = mask & in_window[0].numpy()
        np.testing.assert_array_equal(mask[0], real)
        assert mask[real, 0].all()
        assert np.diag(mask)[real].all()


def test_a_column_longer_than_the_window_loses_its_ends():
    # One column of six tokens behind two global ones, in buckets of two: buckets 1 and 3 do not
    # meet, so 2 * 2 * 2 of 36 ordered pairs are missing.
    column, _ = table_tokens(["q"] * 2, ["h"], [["c"]] * 5)
    for neighbours, computed in ((1, 28), (2, 36)):
        config = AttentionConfig(bucket_size=2, global_size=2, num_neighbours=neighbours)
        pairs = window_pairs(column, "column_ids", config)
        assert np.sum(pairs[0, 2:, 2:]) == computed
    assert window_pairs(column, "column_ids", AttentionConfig(coverage=1.0)) is None


@pytest.mark.parametrize(
    "returned, got",
    [
        (lambda: tf.ones([1, 6, 5], tf.bool), r"bool of shape \(1, 6, 5\)"),
        (lambda: tf.ones([2, 1, 6, 6], tf.bool), r"bool of shape \(2, 1, 6, 6\)"),
        (lambda: tf.ones([1, 6, 6]), r"float32 of shape \(1, 6, 6\)"),
    ],
)
def test_a_pattern_of_another_shape_or_type_is_refused_by_name(returned, got):
    def odd(query, key):
        return returned()

    with pytest.raises(ValueError, match=f"pattern 'odd' to return bool .*got {got}"):
        pattern_mask(odd, features(), features())


@pytest.mark.parametrize("ratio, heads", [(0.0, [12]), (0.25, [3, 9]), (0.3, [3, 9]), (1.0, [12])])
def test_row_heads_come_first_and_round_down(ratio, heads):
    groups = head_groups(AttentionConfig("mate", "dense", ratio), 12)
    assert [group.num_heads for group in groups] == heads
    assert groups[0].sort_by == ("row_ids" if ratio else "column_ids")
