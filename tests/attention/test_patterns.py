"""Who may attend to whom in each architecture."""

import numpy as np
import pytest
import tensorflow as tf

from mate_tf.attention.patterns import head_groups, pattern_mask
from mate_tf.config import AttentionConfig
from mate_tf.tables.token_features import TokenFeatures

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


@pytest.mark.parametrize("ratio, heads", [(0.0, [12]), (0.25, [3, 9]), (0.3, [3, 9]), (1.0, [12])])
def test_row_heads_come_first_and_round_down(ratio, heads):
    groups = head_groups(AttentionConfig("mate", "dense", ratio), 12)
    assert [group.num_heads for group in groups] == heads
    assert groups[0].sort_by == ("row_ids" if ratio else "column_ids")
