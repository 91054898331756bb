"""ETC's global tokens over a table: what they stand for, and what each token is to each other.

Of G global tokens the first half stands for rows, the header row first, and the second half for
columns (MATE paper, section 5.1). A pair of tokens has an integer label: for two tokens of the
sequence their distance, clipped, and for the others whether the token belongs to the row or column
that the global one stands for (ETC: Ainslie et al., 2020, section 3).

Shapes: B batch, S sequence, G global, F from (queries), T to (keys).
"""

import tensorflow as tf

from mate_tf.config import AttentionConfig
from mate_tf.features.token_features import TokenFeatures

# The labels of pairs with a global token; what a token is to a global one comes back, counted from
# FROM_GLOBAL, as what the global one is to the token. Clipped distances are counted from DISTANCE.
LABEL_NAMES = (
    "token to another global token",
    "token to its row",
    "token to its column",
    "global token to another token",
    "row to its token",
    "column to its token",
    "global token to another",
    "global token to itself",
)
FROM_GLOBAL, GLOBAL_TO_GLOBAL, DISTANCE = 3, 6, len(LABEL_NAMES)


def num_labels(attention: AttentionConfig) -> int:
    """How many labels there are: eight, and the distances in both directions."""
    return DISTANCE + 2 * attention.max_relative_distance + 1


def real_tokens(features: TokenFeatures) -> tf.Tensor:
    """Which tokens are no padding. bool [B, S]."""
    return tf.greater(features.input_mask, 0)


def membership(features: TokenFeatures, attention: AttentionConfig) -> tf.Tensor:
    """What each token is to each global token, as a label from 0 to 2.

    Only tokens of the table belong to a row or column; one of column 0 belongs to a row alone.

    Args:
        features: int [B, S] each.
        attention: how many global tokens there are, and whether rows share them.

    Returns:
        int32 [B, S, G].

    Raises:
        ValueError: if an example has more rows or columns than there are global tokens for, and
            they are not shared. In a graph it is an `InvalidArgumentError` when it runs; compiled
            by XLA, which drops assertions, what is beyond belongs to no global token.
    """
    half = attention.num_global_tokens // 2
    in_table = real_tokens(features) & tf.equal(features.segment_ids, 1)  # [B, S]
    row = tf.where(in_table, tf.cast(features.row_ids, tf.int32), -1)
    column = tf.where(in_table, tf.cast(features.column_ids, tf.int32) - 1, -1)
    checks = []
    if attention.share_global_tokens:
        row = tf.where(row >= 0, row % half, -1)
        column = tf.where(column >= 0, column % half, -1)
    else:
        checks = [
            *_at_most(half, row, "rows, the header row among them,", attention),
            *_at_most(half, column, "columns", attention),
        ]
    with tf.control_dependencies(checks):
        numbers = tf.range(half)
        own_row = tf.cast(tf.equal(row[..., None], numbers), tf.int32)  # [B, S, G / 2]
        own_column = tf.cast(tf.equal(column[..., None], numbers), tf.int32)
        return tf.concat([own_row, 2 * own_column], axis=-1)


def _at_most(limit: int, ids: tf.Tensor, what: str, attention: AttentionConfig) -> list:
    """Refuses ids of `limit` and more: at once where they are known, else by the assertion."""
    count = tf.reduce_max(ids) + 1
    before = (
        f"expected at most {limit} {what} with num_global_tokens {attention.num_global_tokens}, got"
    )
    after = "in an example; raise num_global_tokens or set share_global_tokens"
    known = tf.get_static_value(count)
    if known is None:
        return [tf.debugging.Assert(count <= limit, [before, count, after])]
    if known > limit:
        raise ValueError(f"{before} {known} {after}")
    return []


def occupied(membership: tf.Tensor) -> tf.Tensor:
    """Which global tokens stand for something; the others are masked as keys, as padding is.

    Args:
        membership: int32 [B, S, G].

    Returns:
        bool [B, G].
    """
    return tf.reduce_any(membership > 0, axis=1)


def between_globals(num_global_tokens: int) -> tf.Tensor:
    """Whether a global token meets itself, as a label from 0 to 1. int32 [G, G]."""
    return tf.eye(num_global_tokens, dtype=tf.int32)


def distance_label(query: tf.Tensor, key: tf.Tensor, max_distance: int) -> tf.Tensor:
    """How far each key stands behind each query, clipped, as a label from 0.

    Args:
        query: positions int32 [..., F].
        key: positions int32 [..., T].
        max_distance: M.

    Returns:
        int32 [..., F, T], from 0 to 2 * M.
    """
    distance = key[..., None, :] - query[..., None]
    return tf.clip_by_value(distance, -max_distance, max_distance) + max_distance


def within_radius(query: tf.Tensor, key: tf.Tensor, radius: int) -> tf.Tensor:
    """Which keys a token attends to locally: those at most `radius` tokens away.

    Args:
        query: positions int32 [..., F].
        key: positions int32 [..., T].

    Returns:
        bool [..., F, T].
    """
    return tf.abs(key[..., None, :] - query[..., None]) <= radius
