"""Attention patterns: which tokens may attend to which, and in what order each head sees them.

A pattern is a small function of the features of query and key tokens, which broadcast against each
other. It returns a bool tensor that broadcasts to [..., F, T], True where the query may attend to
the key. Patterns ignore padding; the attention layers mask it as a key.

Sorted by row or by column, tokens that may attend to each other are neighbours. The first G tokens
of an order are its global part. The rest, its long part, is cut into N buckets of R tokens, with
padding at its end (MATE paper, section 3 and figure 2).

Shapes: B batch, S sequence, P padded sequence (G + N * R), G global, N buckets, R radius (bucket
size), F from (queries), T to (keys).
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
        sort_by: the token feature whose order brings tokens that attend to each other together;
            None if there is none.
        adds_itself: whether each token attends to itself, whatever the pattern says.
    """

    num_heads: int
    pattern: Pattern
    sort_by: str | None
    adds_itself: bool = False


def head_groups(config: AttentionConfig, num_heads: int) -> tuple[HeadGroup, ...]:
    """The definition of each architecture, in the order of its heads (MATE paper, section 3).

    Raises:
        ValueError: for TableETC, whose pattern also depends on positions and global tokens.
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
        ValueError: if the pattern returns anything but bools of such a shape.
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
    """The pairs of queries and real keys of a sequence that a head group's pattern allows.

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


def num_buckets(
    length: int | tf.Tensor, bucket_size: int | tf.Tensor, global_size: int
) -> int | tf.Tensor:
    """The number of buckets of the long part; at least one."""
    number = -(-(length - global_size) // bucket_size)
    return max(1, number) if isinstance(number, int) else tf.maximum(1, number)


def sequence_length(features: TokenFeatures) -> int | tf.Tensor:
    """S, an int if the shape is static."""
    static = features.input_ids.shape[-1]
    return tf.shape(features.input_ids)[-1] if static is None else static


def pad_features(features: TokenFeatures, length: int | tf.Tensor) -> TokenFeatures:
    """Appends padding tokens, whose features are zero, up to a length."""
    missing = length - sequence_length(features)
    return features.map(lambda feature: tf.pad(feature, [[0, 0], [0, missing]]))


def token_order(features: TokenFeatures, sort_by: str) -> tf.Tensor:
    """Positions of the tokens sorted by a feature; ties keep their order, padding comes last.

    Returns:
        int32 [B, S].
    """
    ids = getattr(features, sort_by)
    key = tf.where(features.input_mask > 0, ids, ids.dtype.max)  # [B, S]
    return tf.argsort(key, axis=-1, stable=True)


def token_rank(order: tf.Tensor) -> tf.Tensor:
    """The inverse of an order: each token's place in it. int32 [B, S]."""
    return tf.argsort(order, axis=-1, stable=True)


def ordered_features(
    features: TokenFeatures, order: tf.Tensor, length: int | tf.Tensor
) -> TokenFeatures:
    """The features in an order int32 [B, S], padded to a length: int [B, P] each."""
    ordered = features.map(lambda feature: tf.gather(feature, order, batch_dims=1))
    return pad_features(ordered, length)


def first_tokens(tensor: tf.Tensor, length: int | tf.Tensor) -> tf.Tensor:
    """The first tokens of float [B, H, S, E], without the padding after them.

    The same as tensor[:, :, :length], whose gradient is many times slower on a CPU.
    """
    return tf.slice(tensor, [0, 0, 0, 0], [-1, -1, length, -1])


def bucket_ids(rank: tf.Tensor, bucket_size: int, global_size: int) -> tf.Tensor:
    """The bucket of each token, from 1; 0 for the global part. int32 [B, S]."""
    return tf.maximum((rank - global_size) // bucket_size + 1, 0)


def computed_pairs(
    rank: tf.Tensor,
    bucket_size: int,
    global_size: int,
    original_bucketing: bool,
    num_neighbours: int = 1,
) -> tf.Tensor:
    """The pairs that `MultiViewAttention` computes, so that `DenseAttention` can do the same.

    A pair is computed if one of the two is in the global part, or if their buckets are at most
    `num_neighbours` apart.

    Args:
        rank: int32 [B, S], each token's place in its head group's order.
        original_bucketing: adds the authors' release's join of distant buckets.
        num_neighbours: how many buckets before a token's own, and as many after, it attends to.

    Returns:
        bool [B, F, T].
    """
    bucket = bucket_ids(rank, bucket_size, global_size)  # [B, S]
    query, key = bucket[:, :, None], bucket[:, None, :]
    distance = tf.abs(query - key)
    allowed = (distance <= num_neighbours) | (query == 0) | (key == 0)
    if original_bucketing:
        allowed |= distance == tf.shape(rank)[-1] // bucket_size - 2
    return allowed


def window_pairs(
    features: TokenFeatures, sort_by: str | None, config: AttentionConfig
) -> tf.Tensor | None:
    """The pairs within a head group's window, bool [B, F, T]; None if there is no window.

    Args:
        features: int [B, S] each.
        sort_by: the feature that the group sorts by, or None.
        config: the window's sizes.
    """
    if sort_by is None or config.bucket_size == 0 or config.coverage is not None:
        return None
    return computed_pairs(
        token_rank(token_order(features, sort_by)),
        config.bucket_size,
        config.global_size,
        config.original_bucketing,
        config.num_neighbours,
    )
