import re

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

from mate_tf.config import GRAMMAR_RULES, AttentionConfig, MateConfig
from mate_tf.layers.attention import patterns
from mate_tf.tables.part_of_speech import NUM_TAG_IDS
from tests.layers.small_layers import QUESTION, cells, features_of
from tests.small import cases

# [CLS], header of columns 1 and 2, one body row, padding.
FEATURES = features_of([[QUESTION, *cells(2, 2)]], 6)
CONFIGS = [
    *map(AttentionConfig, ("tapas", "sat", "mate", "tableformer", "mate_tableformer")),
    *(AttentionConfig("grammar_hard", grammar_rules=rules) for rules in GRAMMAR_RULES),
]


def mask_of(config: AttentionConfig, group: int) -> np.ndarray:
    pattern = patterns.head_groups(config, num_heads=2)[group].pattern
    mask = patterns.pattern_mask(pattern, FEATURES, FEATURES)
    return np.broadcast_to(mask.numpy(), [1, 6, 6])[0]


@cases(
    "config, group, body_cell_sees",
    (AttentionConfig("tapas"), 0, [1, 1, 1, 1, 1, 0]),
    (AttentionConfig("sat"), 0, [1, 1, 0, 1, 1, 0]),
    (AttentionConfig("mate", "dense"), 0, [1, 0, 0, 1, 1, 0]),
    (AttentionConfig("mate", "dense"), 1, [1, 1, 0, 1, 0, 0]),
)
def test_a_body_cell_sees(config, group, body_cell_sees):
    np.testing.assert_array_equal(mask_of(config, group)[3], body_cell_sees)


@given(
    question=st.integers(1, 6),
    columns=st.integers(1, 4),
    rows=st.integers(0, 6),
    padding=st.integers(0, 4),
    config=st.sampled_from(CONFIGS),
    ratio=st.sampled_from([0.0, 0.5, 1.0]),
    bucket_size=st.integers(0, 9),
    global_size=st.integers(1, 9),
)
def test_the_condition_of_the_universal_approximation_theorem(
    question, columns, rows, padding, config, ratio, bucket_size, global_size
):
    """MATE paper, appendix C: a token attends to itself, and to and from the first one."""
    tokens = [QUESTION] * question + cells(rows + 1, columns)
    tags = np.zeros([1, len(tokens) + padding], np.int32)
    tags[0, 1:question] = np.random.default_rng(rows).integers(0, NUM_TAG_IDS, question - 1)
    padded = features_of([tokens], tags.size)._replace(part_of_speech_ids=tf.constant(tags))
    if isinstance(config, MateConfig):
        sizes = ratio, bucket_size, global_size
        config = AttentionConfig(config.architecture, "dense", *sizes)
    real = padded.input_mask[0].numpy().astype(bool)
    for group in patterns.head_groups(config, num_heads=4):
        mask = np.broadcast_to(patterns.group_mask(group, padded)[0], [len(real)] * 2)
        in_window = patterns.window_pairs(padded, group.sort_by, config)
        if in_window is not None:
            mask = mask & in_window[0].numpy()
        np.testing.assert_array_equal(mask[0], real)
        assert mask[real, 0].all()
        assert np.diag(mask)[real].all()


def test_a_column_longer_than_the_window_loses_its_ends():
    # One column of six tokens behind two global ones, in buckets of two: buckets 1 and 3 do not
    # meet, so 2 * 2 * 2 of 36 ordered pairs are missing.
    column = features_of([[QUESTION] * 2 + cells(6, 1)], 8)
    pairs = patterns.window_pairs(
        column, patterns.column, AttentionConfig(bucket_size=2, global_size=2)
    )
    assert np.sum(pairs[0, 2:, 2:]) == 28
    assert patterns.window_pairs(column, patterns.column, AttentionConfig(coverage=1.0)) is None


@cases("shape, dtype", ((1, 6, 5), tf.bool), ((2, 1, 6, 6), tf.bool), ((1, 6, 6), tf.float32))
def test_a_pattern_of_another_shape_or_type_is_refused_by_name(shape, dtype):
    def odd(query, key):
        return tf.zeros(shape, dtype)

    got = re.escape(f"got {dtype.name} of shape {shape}")
    with pytest.raises(ValueError, match=f"pattern 'odd' to return bool .*{got}"):
        patterns.pattern_mask(odd, FEATURES, FEATURES)


@pytest.mark.parametrize("ratio, heads", [(0.0, [12]), (0.25, [3, 9]), (0.3, [3, 9]), (1.0, [12])])
def test_row_heads_come_first_and_round_down(ratio, heads):
    groups = patterns.head_groups(AttentionConfig("mate", "dense", ratio), 12)
    assert [group.num_heads for group in groups] == heads
    assert groups[0].sort_by == (patterns.row if ratio else patterns.column)
