"""Each head group's order of the tokens, and its cut into a global part and buckets.

Sorted by row or by column, tokens that may attend to each other stand together. The first G of
an order are its global part; the rest, its long part, is cut into N buckets of R tokens, padded
where it does not divide (MATE paper, section 3 and figure 2).

Shapes: B batch, S sequence, P padded sequence (G + N * R), G global, N buckets, R radius (bucket
size), F from, T to.
"""

import tensorflow as tf

from mate_tf.config import AttentionConfig
from mate_tf.features.token_features import TokenFeatures


def num_buckets(length: int | tf.Tensor, bucket_size: int, global_size: int) -> int | tf.Tensor:
    """Buckets that hold what the global part leaves over; at least one."""
    tail = length - global_size
    if isinstance(length, int):
        return max(1, -(-tail // bucket_size))
    return tf.maximum(1, -(-tail // bucket_size))


def sequence_length(features: TokenFeatures) -> int | tf.Tensor:
    """S, as an int where the shape is static."""
    static = features.input_ids.shape[-1]
    return tf.shape(features.input_ids)[-1] if static is None else static


def pad_features(features: TokenFeatures, length: int | tf.Tensor) -> TokenFeatures:
    """Appends padding tokens, all features zero, to reach a length."""
    missing = length - sequence_length(features)
    return features.map(lambda feature: tf.pad(feature, [[0, 0], [0, missing]]))


def token_order(features: TokenFeatures, sort_by: str) -> tf.Tensor:
    """Positions of the tokens sorted by a feature, ties as they stand, padding last.

    Returns:
        int32 [B, S].
    """
    ids = getattr(features, sort_by)
    key = tf.where(features.input_mask > 0, ids, ids.dtype.max)  # [B, S]
    return tf.argsort(key, axis=-1, stable=True)


def token_rank(order: tf.Tensor) -> tf.Tensor:
    """The inverse of an order: where each token stands in it. int32 [B, S]."""
    return tf.argsort(order, axis=-1, stable=True)


def ordered_features(
    features: TokenFeatures, order: tf.Tensor, length: int | tf.Tensor
) -> TokenFeatures:
    """The features in an order int32 [B, S], padded to a length: int [B, P] each."""
    ordered = features.map(lambda feature: tf.gather(feature, order, batch_dims=1))
    return pad_features(ordered, length)


def first_tokens(tensor: tf.Tensor, length: int | tf.Tensor) -> tf.Tensor:
    """The first tokens of float [B, H, S, E], without the padding behind them.

    As tensor[:, :, :length], whose gradient, a strided slice's, takes a CPU many times as long.
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
    """The pairs that the multi-view evaluator computes, for the dense one to imitate.

    A pair is computed if one of the two is in the global part, or if their buckets are at most
    `num_neighbours` apart.

    Args:
        rank: int32 [B, S], where each token stands in its head group's order.
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
    """The pairs that a head group's window holds, bool [B, F, T]; None where there is no window.

    Args:
        features: int [B, S] each.
        sort_by: the feature that the group sorts by, None without an order.
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
