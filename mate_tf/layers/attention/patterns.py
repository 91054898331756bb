"""Attention patterns: small functions of token features that say who may attend to whom.

A pattern takes the features of the query tokens and of the key tokens, shaped so that they
broadcast against each other, and returns a bool tensor, True where the query may attend to the
key, of a shape that broadcasts to [..., F, T]. Padding is no concern of a pattern: the evaluators
mask it as a key.

Shapes: B batch, F from (queries), T to (keys).
"""

import dataclasses
from collections.abc import Callable

import tensorflow as tf

from mate_tf.config import AttentionConfig
from mate_tf.features.token_features import TokenFeatures
from mate_tf.layers.attention.grammar import RelatedTags, allowed_tags

Pattern = Callable[[TokenFeatures, TokenFeatures], tf.Tensor]


def everywhere(query: TokenFeatures, key: TokenFeatures) -> tf.Tensor:
    """Every token to every token (TAPAS)."""
    del query, key
    return tf.constant(True)


def same_row(query: TokenFeatures, key: TokenFeatures) -> tf.Tensor:
    """Tokens of the same row; the column headers are a row of their own."""
    return tf.equal(query.row_ids, key.row_ids)


def same_column(query: TokenFeatures, key: TokenFeatures) -> tf.Tensor:
    """Tokens of the same column, its header included."""
    return tf.equal(query.column_ids, key.column_ids)


def global_token(query: TokenFeatures, key: TokenFeatures) -> tf.Tensor:
    """To and from the tokens outside the table: [CLS], the question and [SEP]."""
    return tf.equal(query.segment_ids, 0) | tf.equal(key.segment_ids, 0)


@dataclasses.dataclass(frozen=True)
class AnyOf:
    """Allowed where at least one of the patterns allows it."""

    patterns: tuple[Pattern, ...]

    def __init__(self, *patterns: Pattern):
        object.__setattr__(self, "patterns", patterns)

    def __call__(self, query: TokenFeatures, key: TokenFeatures) -> tf.Tensor:
        allowed = self.patterns[0](query, key)
        for pattern in self.patterns[1:]:
            allowed |= pattern(query, key)
        return allowed


@dataclasses.dataclass(frozen=True)
class HeadGroup:
    """Consecutive attention heads that share a pattern.

    Attributes:
        num_heads: how many.
        pattern: who may attend to whom.
        sort_by: the token feature that brings tokens that attend to each other together, None
            where no order does.
        adds_itself: whether each token attends to itself although the pattern, which sees features
            alone, may not say so.
    """

    num_heads: int
    pattern: Pattern
    sort_by: str | None
    adds_itself: bool = False


def head_groups(config: AttentionConfig, num_heads: int) -> tuple[HeadGroup, ...]:
    """The definition of each architecture, in the order of its heads (MATE paper, section 3).

    Raises:
        ValueError: for TableETC, whose pattern also hangs on positions and on global tokens.
    """
    if config.has_global_tokens:
        raise ValueError(
            f"expected an architecture of patterns, got {config.architecture!r}; see "
            "mate_tf/layers/attention/table_etc.py"
        )
    if config.architecture in ("tapas", "tableformer", "linformer", "grammar_soft"):
        return (HeadGroup(num_heads, everywhere, None),)
    if config.architecture == "grammar_hard":
        related = RelatedTags(allowed_tags(config.grammar_rules))
        return (HeadGroup(num_heads, related, None, adds_itself=True),)
    if config.architecture == "sat":
        return (HeadGroup(num_heads, AnyOf(same_row, same_column, global_token), None),)
    row_heads = int(num_heads * config.row_heads_ratio)
    groups = (
        HeadGroup(row_heads, AnyOf(same_row, global_token), "row_ids"),
        HeadGroup(num_heads - row_heads, AnyOf(same_column, global_token), "column_ids"),
    )
    return tuple(group for group in groups if group.num_heads)


def pattern_mask(pattern: Pattern, query: TokenFeatures, key: TokenFeatures) -> tf.Tensor:
    """The pattern between each query and each real key.

    Args:
        query: features [..., F].
        key: features [..., T].

    Returns:
        bool, broadcasts to [..., F, T].

    Raises:
        ValueError: if the pattern returns something else than bools of such a shape.
    """
    query = query.map(lambda feature: tf.expand_dims(feature, -1))  # [..., F, 1]
    key = key.map(lambda feature: tf.expand_dims(feature, -2))  # [..., 1, T]
    allowed = tf.convert_to_tensor(pattern(query, key))
    pairs = tf.broadcast_static_shape(query.input_mask.shape, key.input_mask.shape)
    _check_allowed(pattern, allowed, pairs)
    return allowed & tf.greater(key.input_mask, 0)


def _check_allowed(pattern: Pattern, allowed: tf.Tensor, pairs: tf.TensorShape) -> None:
    try:
        fits = tf.broadcast_static_shape(allowed.shape, pairs).is_compatible_with(pairs)
    except ValueError:
        fits = False
    if allowed.dtype != tf.bool or not fits:
        name = getattr(pattern, "__name__", type(pattern).__name__)
        raise ValueError(
            f"expected pattern {name!r} to return bool of a shape that broadcasts to {pairs}, got "
            f"{allowed.dtype.name} of shape {allowed.shape}"
        )


def group_mask(group: HeadGroup, features: TokenFeatures) -> tf.Tensor:
    """All pairs of a sequence that a head group's pattern allows, as queries and real keys.

    Args:
        features: int [B, S] each.

    Returns:
        bool [B, S or 1, S].
    """
    mask = pattern_mask(group.pattern, features, features)
    if group.adds_itself:
        real = tf.greater(features.input_mask, 0)[:, None]  # [B, 1, S]
        mask |= tf.eye(tf.shape(real)[-1], dtype=tf.bool) & real
    return mask
