"""What share of its pattern an attention computes, on given tables.

Shapes: B batch, S sequence, F from, T to.
"""

from typing import NamedTuple

import tensorflow as tf

from mate_tf.config import AttentionConfig
from mate_tf.features.token_features import TokenFeatures
from mate_tf.layers.attention.buckets import window_pairs
from mate_tf.layers.attention.patterns import HeadGroup, group_mask, head_groups


class Coverage(NamedTuple):
    """Of one head group, over the examples of a batch that have pairs of table tokens.

    Attributes:
        mean: float, from 0 to 1; NaN without such an example.
        minimum: float, the least covered example's.
    """

    mean: tf.Tensor
    minimum: tf.Tensor


def coverage(
    features: TokenFeatures, attention: AttentionConfig, num_heads: int
) -> tuple[Coverage, ...]:
    """The coverage of each head group of an attention, in the order of its heads.

    Of an example it is the share of the ordered pairs of real table tokens, allowed by the
    group's pattern, that are computed. The published window of 42 tokens has 16 % for the column
    heads on WikiTableQuestions' tables of 2,048 to 8,192 tokens.

    Args:
        features: int [B, S] each; takes memory for B * S * S pairs.
        attention: the architecture, its window or its coverage of 1.0.
        num_heads: of the attention.
    """
    return tuple(
        _group_coverage(features, group, attention) for group in head_groups(attention, num_heads)
    )


def _group_coverage(
    features: TokenFeatures, group: HeadGroup, attention: AttentionConfig
) -> Coverage:
    real = tf.greater(features.input_mask, 0) & tf.equal(features.segment_ids, 1)  # [B, S]
    allowed = group_mask(group, features)  # [B, F or 1, T]
    allowed &= real[:, :, None] & real[:, None]  # [B, F, T]
    in_window = window_pairs(features, group.sort_by, attention)
    computed = allowed if in_window is None else allowed & in_window

    def count(pairs: tf.Tensor) -> tf.Tensor:
        return tf.reduce_sum(tf.cast(pairs, tf.float64), axis=[1, 2])  # [B]

    has_pairs = count(allowed) > 0
    shares = tf.boolean_mask(count(computed) / count(allowed), has_pairs)
    return Coverage(tf.reduce_mean(shares), tf.reduce_min(shares))
