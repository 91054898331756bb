"""The views of a sequence in a head group's order, and the way back from them.

Each view is one gather of a projection's rows. Sorting the tokens, cutting them into buckets,
rolling the buckets and putting heads first changes only the rows' indices, which all layers of an
encoder share. The gradients are gathers too; TensorFlow's would sum index by index.

Shapes: B batch, S sequence, P padded sequence (G + N * R), G global, N buckets, R radius (bucket
size), W window (3 * R), H heads, h heads of a group, E head size.
"""

from collections.abc import Sequence
from typing import NamedTuple

import keras
import tensorflow as tf

from mate_tf.layers.attention.patterns import num_buckets, token_rank
from mate_tf.layers.custom_gradient import custom_gradient


class MultiView(NamedTuple):
    """Views of one tensor in one head group's order, or some of them.

    Attributes:
        full: [B, H, S, E], the unsorted tensor, heads first.
        global_: [B, H, G, E], the first G tokens of the order.
        long: [B, H, N, R, E], the others in buckets.
        window: [B, H, N, W, E], each bucket, then the next, then the previous one.
    """

    full: tf.Tensor = None
    global_: tf.Tensor = None
    long: tf.Tensor = None
    window: tf.Tensor = None


class ViewIndices(NamedTuple):
    """The indices, among the rows [S * H, E], of one head group's views.

    Attributes:
        full: int32 [B, h, S].
        global_: int32 [B, h, G].
        long: int32 [B, h, N, R].
        window: int32 [B, h, N, W].
    """

    full: tf.Tensor
    global_: tf.Tensor
    long: tf.Tensor
    window: tf.Tensor


class Places(NamedTuple):
    """The places of all heads' tokens in their views.

    Attributes:
        indices: the view indices of each head group.
        row: int32 [B, S, H]: each token's row in the concatenated global and long parts of all
            groups.
    """

    indices: tuple[ViewIndices, ...]
    row: tf.Tensor


def places(
    orders: Sequence[tf.Tensor],
    group_sizes: Sequence[int],
    bucket_size: int,
    global_size: int,
) -> Places:
    """The rows of all head groups' views.

    A sequence that does not fill its buckets, or its global part, is padded with its first token at
    the end of its order.

    Args:
        orders: int32 [B, S] for each group, a permutation of the positions.
        group_sizes: h of each group, in the order of the heads.
        bucket_size: R.
        global_size: G.
    """
    batch = tf.shape(orders[0])[0]
    length = orders[0].shape[1] or tf.shape(orders[0])[1]
    buckets = num_buckets(length, bucket_size, global_size)
    long_size = buckets * bucket_size
    everything = tf.repeat(tf.range(length)[None], batch, axis=0)  # [B, S]
    indices, rows, first_head, first_row = [], [], 0, 0
    for order, num_heads in zip(orders, group_sizes, strict=True):
        padded = tf.pad(order, [[0, 0], [0, global_size + long_size - length]])  # [B, P]
        global_, long = tf.split(padded, [global_size, long_size], axis=1)
        long = tf.reshape(long, [batch, buckets, bucket_size])
        window = with_neighbours(long, axis=1)
        heads = tf.range(first_head, first_head + num_heads)
        of_views = (everything, global_, long, window)
        indices.append(
            ViewIndices(*(_rows(positions, heads, sum(group_sizes)) for positions in of_views))
        )
        rank, head = token_rank(order)[:, :, None], tf.range(num_heads)
        in_global = first_row + head * global_size + rank
        first_row += num_heads * global_size
        in_long = first_row + head * long_size + rank - global_size
        first_row += num_heads * long_size
        rows.append(tf.where(rank < global_size, in_global, in_long))  # [B, S, h]
        first_head += num_heads
    return Places(tuple(indices), tf.concat(rows, axis=-1))


def _rows(positions: tf.Tensor, heads: tf.Tensor, num_heads: int) -> tf.Tensor:
    """The rows [B, h, ...] of some heads at positions [B, ...]."""
    heads = tf.reshape(heads, [-1] + [1] * (positions.shape.rank - 1))
    return positions[:, None] * num_heads + heads


def with_neighbours(long: tf.Tensor, axis: int) -> tf.Tensor:
    """Each bucket followed by the next and the previous one, the ends joined.

    Args:
        long: [..., N, R, ...], the buckets on `axis`.

    Returns:
        [..., N, W, ...].
    """
    return tf.concat([long, tf.roll(long, -1, axis), tf.roll(long, 1, axis)], axis=axis + 1)


def views_of(embedding: tf.Tensor, where: Places, names: Sequence[str]) -> list[MultiView]:
    """Some views of an embedding, of each head group.

    Args:
        embedding: float [B, S, H, E].
        where: the places of its tokens.
        names: which views; among them "global_", and "long" or "window".
    """

    @custom_gradient
    def gathered(embedding: tf.Tensor):
        of_groups = (group_views(embedding, indices, names) for indices in where.indices)
        views = [getattr(view, name) for view in of_groups for name in names]

        def gradient(*upstream: tf.Tensor) -> tf.Tensor:
            of_groups = [MultiView(**view) for view in _named(upstream, names)]
            parts = []
            for view in of_groups:
                long = [] if view.long is None else [view.long]
                if view.window is not None:
                    long.append(_summed_window(view.window))
                parts.append((view.global_, tf.add_n(long)))
            in_order = in_sequence(parts, where)  # [B, S, H, E]
            if "full" not in names:
                return in_order
            full = tf.concat([view.full for view in of_groups], axis=1)  # [B, H, S, E]
            return in_order + tf.transpose(full, [0, 2, 1, 3])

        return views, gradient

    return [MultiView(**view) for view in _named(gathered(embedding), names)]


def group_views(embedding: tf.Tensor, indices: ViewIndices, names: Sequence[str]) -> MultiView:
    """The views of one head group, with TensorFlow's own gradient, which is slower."""
    rows = _as_rows(embedding)
    return MultiView(
        **{name: tf.gather(rows, getattr(indices, name), batch_dims=1) for name in names}
    )


def in_sequence(parts: Sequence[tuple[tf.Tensor, tf.Tensor]], where: Places) -> tf.Tensor:
    """Brings results in the order of each group back into the order of the sequence.

    Args:
        parts: for each head group the results of its global part, float [B, h, G, E], and of its
            buckets, float [B, h, N, R, E].
        where: the places of the tokens.

    Returns:
        float [B, S, H, E].
    """

    @custom_gradient
    def gathered(*parts: tf.Tensor):
        rows = tf.concat([_as_rows(part) for part in parts], axis=1)  # [B, H * P, E]

        def gradient(upstream: tf.Tensor) -> list[tf.Tensor]:
            views = views_of(upstream, where, ("global_", "long"))
            length = tf.shape(upstream)[1]
            gradients = []
            for view in views:
                first_of_long = tf.shape(view.global_)[2]
                gradients.append(_without_padding(view.global_, length))
                gradients.append(_without_padding(view.long, length - first_of_long))
            return gradients

        return tf.gather(rows, where.row, batch_dims=1), gradient

    return gathered(*(part for group in parts for part in group))


def _as_rows(tensor: tf.Tensor) -> tf.Tensor:
    """[B, ..., E] to [B, prod(...), E]."""
    return tf.reshape(tensor, [tf.shape(tensor)[0], -1, tensor.shape[-1]])


def _named(views: Sequence[tf.Tensor], names: Sequence[str]) -> list[dict[str, tf.Tensor]]:
    """Splits a flat list of all groups' views into the named views of each group."""
    starts = range(0, len(views), len(names))
    return [dict(zip(names, views[start : start + len(names)], strict=True)) for start in starts]


def _summed_window(window: tf.Tensor) -> tf.Tensor:
    """Sums each bucket's copies over all windows: [B, h, N, W, E] to [B, h, N, R, E]."""
    own, following, previous = tf.split(window, 3, axis=3)
    return own + tf.roll(following, 1, axis=2) + tf.roll(previous, -1, axis=2)


def _without_padding(part: tf.Tensor, length: tf.Tensor) -> tf.Tensor:
    """A part of an order, [B, h, ..., E], with zeros beyond a length."""
    shape = tf.shape(part)[2:-1]
    is_real = tf.reshape(tf.range(tf.reduce_prod(shape)) < length, shape)
    return tf.where(is_real[..., None], part, tf.zeros([], part.dtype))


@keras.saving.register_keras_serializable(package="mate_tf")
class MultiViewEmbedding(keras.layers.Layer):
    """Builds the full, global, long and window views of an embedding (MATE paper, figure 7).

    Called on an embedding [B, S, H, E] and an order of its tokens int [B, S]; returns a
    `MultiView`. The sequence is padded as in `places`. The padding has no gradient, and the caller
    has to mask it.

    Args:
        bucket_size: R, the tokens of a bucket.
        global_size: G, the tokens of the global part.

    Raises:
        ValueError: if a size is below 1.

    Example:
        >>> embedding = tf.reshape(tf.range(6.0), [1, 6, 1, 1])
        >>> views = MultiViewEmbedding(bucket_size=2, global_size=2)(
        ...     embedding, tf.constant([[5, 4, 3, 2, 1, 0]])
        ... )
        >>> views.long[0, 0, :, :, 0].numpy().tolist()
        [[3.0, 2.0], [1.0, 0.0]]
    """

    def __init__(self, bucket_size: int, global_size: int, **kwargs):
        if kwargs.pop("num_neighbours", 1) != 1:  # an option of former versions
            raise ValueError("expected num_neighbours of 1, the only number that there still is")
        super().__init__(**kwargs)
        if bucket_size < 1 or global_size < 1:
            raise ValueError(
                f"expected bucket_size and global_size of at least 1, got {bucket_size} and "
                f"{global_size}"
            )
        self.bucket_size = bucket_size
        self.global_size = global_size

    def call(self, embedding: tf.Tensor, order: tf.Tensor) -> MultiView:
        order = tf.convert_to_tensor(order)
        if not order.dtype.is_integer:
            raise ValueError(
                f"expected an order of integers, got {order.dtype.name}; a keras.Input of it has "
                "dtype='int32'"
            )
        heads = [embedding.shape[2]]
        where = places([tf.cast(order, tf.int32)], heads, self.bucket_size, self.global_size)
        (views,) = views_of(embedding, where, ViewIndices._fields)
        return views

    def get_config(self):
        return super().get_config() | {
            "bucket_size": self.bucket_size,
            "global_size": self.global_size,
        }
