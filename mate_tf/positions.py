"""Where each token's cell begins, for position indices that restart in each cell.

Question and padding are one cell that begins at index 0.

Shapes: B batch, S sequence.
"""

import tensorflow as tf

from mate_tf.tables.token_features import TokenFeatures


def first_index_in_cell(features: TokenFeatures) -> tf.Tensor:
    """The index of the first token of each token's cell, cells being runs of equal ids.

    Args:
        features: int [B, S] each, the table's tokens in row-major order.

    Returns:
        int32 [B, S].
    """
    row_ids, column_ids = features.row_ids, features.column_ids
    changed = (row_ids[:, 1:] != row_ids[:, :-1]) | (column_ids[:, 1:] != column_ids[:, :-1])
    begins = tf.pad(changed, [[0, 0], [1, 0]], constant_values=True)  # [B, S]
    length = tf.shape(row_ids)[1]
    index = tf.range(length)[None]  # [1, S]
    runs = tf.cumsum(tf.cast(begins, tf.int32), axis=1) - 1  # [B, S], the cell's number
    first = _segment_min(tf.broadcast_to(index, tf.shape(runs)), runs, length)
    outside_table = (row_ids == 0) & (column_ids == 0)
    return tf.where(outside_table, 0, first)


def original_first_index_in_cell(features: TokenFeatures) -> tf.Tensor:
    """The same by the authors' release's cell number, column * 256 + row.

    Row r >= 256 of a column then shares a number with row r - 256 of the next column, and both
    take the smaller first index.
    """
    cells = features.column_ids * 256 + features.row_ids  # [B, S]
    index = tf.broadcast_to(tf.range(tf.shape(cells)[1])[None], tf.shape(cells))
    return _segment_min(index, tf.minimum(cells, 256 * 256 - 1), 256 * 256)


def _segment_min(
    values: tf.Tensor, segments: tf.Tensor, num_segments: int | tf.Tensor
) -> tf.Tensor:
    """The smallest value of each token's segment, segments being apart in each row. [B, S]."""
    batch = tf.shape(values)[0]
    offset = tf.range(batch)[:, None] * num_segments  # [B, 1]
    flat = tf.reshape(segments + offset, [-1])
    smallest = tf.math.unsorted_segment_min(tf.reshape(values, [-1]), flat, batch * num_segments)
    return tf.reshape(tf.gather(smallest, flat), tf.shape(values))
