"""MATE's attention in time and memory linear in the sequence length.

Each head sorts the tokens by row or by column. The first ones, the global tokens, attend to the
full sequence. The long rest is cut into buckets. Its tokens attend to the global tokens and to a
window: their own bucket and both neighbours (MATE paper, section 3, figures 2 and 7).

Shapes: B batch, S sequence, P padded sequence (G + N * R), G global, L long (N * R), N buckets,
R radius (bucket size), W window (3 * R), H heads, h heads of a group, E head size, F from, T to.
"""

import dataclasses
from collections.abc import Sequence
from typing import NamedTuple

import keras
import tensorflow as tf

from mate_tf.config import MateConfig
from mate_tf.dataclass_json import require
from mate_tf.features.token_features import TokenFeatures
from mate_tf.layers.attention import patterns
from mate_tf.layers.attention.relations import relation_scores
from mate_tf.layers.attention.softmax import Attended, dense_attention, weighted_sum
from mate_tf.layers.basic import SeededDropout, attributes
from mate_tf.layers.compilation import custom_gradient


class MultiView(NamedTuple):
    """Views of one tensor in one head group's order, or some of them."""

    full: tf.Tensor = None  # [B, H, S, E], the unsorted tensor, heads first
    global_: tf.Tensor = None  # [B, H, G, E], the first G tokens of the order
    long: tf.Tensor = None  # [B, H, N, R, E], the others in buckets
    window: tf.Tensor = None  # [B, H, N, W, E], each bucket, then the next, then the previous one


class ViewIndices(NamedTuple):
    """The tokens of a head group's views, as indices of the sequence.

    A sequence that does not fill its buckets, or its global part, is padded with its first token at
    the end of its order.
    """

    order: tf.Tensor  # int32 [B, P]
    global_: tf.Tensor  # int32 [B, G]
    long: tf.Tensor  # int32 [B, N, R]
    window: tf.Tensor  # int32 [B, N, W]
    rank: tf.Tensor  # int32 [B, S], each token's place in the order


def view_indices(order: tf.Tensor, bucket_size: int, global_size: int) -> ViewIndices:
    """The indices by an order, a permutation of the positions: int32 [B, S]."""
    batch = tf.shape(order)[0]
    length = order.shape[1] or tf.shape(order)[1]
    buckets = patterns.num_buckets(length, bucket_size, global_size)
    long_size = buckets * bucket_size
    padded = tf.pad(order, [[0, 0], [0, global_size + long_size - length]])  # [B, P]
    global_, long = tf.split(padded, [global_size, long_size], axis=1)
    long = tf.reshape(long, [batch, buckets, bucket_size])
    return ViewIndices(
        padded, global_, long, with_neighbours(long, axis=1), patterns.token_rank(order)
    )


def with_neighbours(long: tf.Tensor, axis: int) -> tf.Tensor:
    """Each bucket followed by the next and the previous one, the ends joined.

    [..., N, R, ...] to [..., N, W, ...], the buckets on `axis`.
    """
    return tf.concat([long, tf.roll(long, -1, axis), tf.roll(long, 1, axis)], axis=axis + 1)


def make_views(full: tf.Tensor, indices: ViewIndices, names: Sequence[str]) -> MultiView:
    """Some views of a tensor float [B, h, S, E]; "global_", and "long" or "window" or both.

    The gradient is a gather too. TensorFlow's own would sum index by index, at many times the cost.
    """

    @custom_gradient
    def gathered(full: tf.Tensor):
        def gradient(*upstream: tf.Tensor) -> tf.Tensor:
            views = dict(zip(names, upstream, strict=True))
            copies = [views["long"]] if "long" in views else []
            if "window" in views:
                own, following, previous = tf.split(views["window"], 3, axis=3)
                copies += [own, tf.roll(following, 1, axis=2), tf.roll(previous, -1, axis=2)]
            ordered = joined(views["global_"], tf.add_n(copies))
            return patterns.in_sequence(ordered, indices.order, indices.rank)

        chosen = (getattr(indices, name) for name in names)
        return [tf.gather(full, index, axis=2, batch_dims=1) for index in chosen], gradient

    return MultiView(full, **dict(zip(names, gathered(full), strict=True)))


def joined(global_: tf.Tensor, long: tf.Tensor) -> tf.Tensor:
    """The parts of an order, [B, h, G, E] and [B, h, N, R, E], as one: [B, h, P, E]."""
    shape = tf.shape(global_)
    return tf.concat([global_, tf.reshape(long, [shape[0], shape[1], -1, shape[3]])], axis=2)


@keras.saving.register_keras_serializable(package="mate_tf")
class MultiViewEmbedding(keras.layers.Layer):
    """Builds the full, global, long and window views of an embedding (MATE paper, figure 7).

    Called on an embedding [B, S, H, E] and an order of its tokens int [B, S]; returns a
    `MultiView`. The sequence is padded as in `ViewIndices`. The padding has no gradient, and the
    caller has to mask it. `bucket_size` is R, `global_size` G; ValueError if one is below 1.

    Example:
        >>> embedding = tf.reshape(tf.range(6.0), [1, 6, 1, 1])
        >>> views = MultiViewEmbedding(bucket_size=2, global_size=2)(
        ...     embedding, tf.constant([[5, 4, 3, 2, 1, 0]])
        ... )
        >>> views.long[0, 0, :, :, 0].numpy().tolist()
        [[3.0, 2.0], [1.0, 0.0]]
    """

    def __init__(self, bucket_size: int, global_size: int, **kwargs):
        super().__init__(**kwargs)
        expected = "expected bucket_size and global_size of at least 1"
        require(min(bucket_size, global_size) > 0, f"{expected}, got {bucket_size}, {global_size}")
        self.bucket_size = bucket_size
        self.global_size = global_size

    def call(self, embedding: tf.Tensor, order: tf.Tensor) -> MultiView:
        order = tf.convert_to_tensor(order)
        remedy = "a keras.Input of it has dtype='int32'"
        message = f"expected an order of integers, got {order.dtype.name}; {remedy}"
        require(order.dtype.is_integer, message)
        indices = view_indices(tf.cast(order, tf.int32), self.bucket_size, self.global_size)
        return make_views(patterns.heads_first(embedding), indices, ("global_", "long", "window"))

    def get_config(self):
        return super().get_config() | attributes(self, "bucket_size", "global_size")


def multi_view_attention(
    query: MultiView,
    key: MultiView,
    value: MultiView,
    *,
    global_mask: tf.Tensor | None = None,
    long_mask: tf.Tensor | None = None,
    global_bias: tf.Tensor | None = None,
    long_bias: tf.Tensor | None = None,
    temperature: float = 1.0,
    dropout: SeededDropout | None = None,
    scores_are_small: tf.Tensor | None = None,
) -> tf.Tensor:
    """The attention of the paper's figure 7.

    The printed figure joins the two contexts on the last axis, and uses a name that it does not
    define. Here they are joined along the sequence.

    Args:
        query: the global and long views of the queries.
        key: all views of the keys except the long one.
        value: the same of the values.
        global_mask: bool, broadcasts to [B, H, G, S]; True where a global token may attend to a
            token of the unsorted sequence.
        long_mask: bool, broadcasts to [B, H, N, R, G + W]; True where a token of a bucket may
            attend to a global token or a token of its window.
        global_bias: float, of the global mask's shape; added to the scores after their division.
        long_bias: the same for the long mask.
        temperature: the scores are divided by it and by sqrt(E).
        dropout: applied to the attention probabilities.
        scores_are_small: bool, the result of `softmax.scores_are_small`, without biases; or None.

    Returns float [B, H, G + N * R, E], in the head group's order, padding included.
    """
    global_context = dense_attention(
        *(query.global_, key.full, value.full, global_mask),
        bias=global_bias,
        temperature=temperature,
        dropout=dropout and dropout.fold_in(0),
        scores_are_small=scores_are_small,
    )
    with tf.control_dependencies([global_context]):  # its scores are freed by then
        scale = 1.0 / (temperature * query.long.shape[-1] ** 0.5)
        long = query.long * tf.cast(scale, query.long.dtype)
    to_global = tf.einsum("BHNFE,BHTE->BHNFT", long, key.global_)
    to_window = tf.einsum("BHNFE,BHNTE->BHNFT", long, key.window)
    sizes = [tf.shape(to_global)[-1], tf.shape(to_window)[-1]]
    masks = [None, None] if long_mask is None else tf.split(long_mask, sizes, axis=-1)
    if long_bias is not None:
        global_part, window_part = tf.split(long_bias, sizes, axis=-1)
        to_global += global_part
        to_window += window_part
    long_context = weighted_sum(
        [
            Attended(to_global, masks[0], value.global_, "BHNFT,BHTE->BHNFE"),
            Attended(to_window, masks[1], value.window, "BHNFT,BHNTE->BHNFE"),
        ],
        dropout and dropout.fold_in(1),
        scores_are_small,
    )
    return joined(global_context, long_context)


class GroupPlan(NamedTuple):
    """The tensors that the layers of an encoder share for one head group."""

    indices: ViewIndices
    global_mask: tf.Tensor  # bool [B, 1, G, S]
    long_mask: tf.Tensor  # bool [B, 1, N, R, G + W]
    global_relations: tf.Tensor | None  # one-hot, float [B, K, G, S]
    long_relations: tf.Tensor | None  # one-hot, float [B, K, N, R, G + W]


@dataclasses.dataclass(eq=False)
class MultiViews(patterns.ByGroups):
    """A window of buckets in each head's order."""

    attention: MateConfig

    def plan_group(self, features: TokenFeatures, group: patterns.HeadGroup) -> GroupPlan:
        bucket_size, global_size = self.attention.bucket_size, self.attention.global_size
        assert group.sort_by is not None, group.name
        order = patterns.token_order(features, group.sort_by)
        buckets = patterns.num_buckets(patterns.sequence_length(features), bucket_size, global_size)
        padded = global_size + buckets * bucket_size  # P
        ordered = patterns.ordered_features(features, order, padded)  # [B, P]
        global_ = ordered.map(lambda feature: feature[:, :global_size])  # [B, G]

        def in_buckets(feature: tf.Tensor) -> tf.Tensor:
            return tf.reshape(feature[:, global_size:], [-1, buckets, bucket_size])  # [B, N, R]

        def keys_of_buckets(feature: tf.Tensor) -> tf.Tensor:
            repeated = tf.repeat(feature[:, None, :global_size], buckets, axis=1)  # [B, N, G]
            window = with_neighbours(in_buckets(feature), axis=1)  # [B, N, W]
            return tf.concat([repeated, window], axis=-1)

        long = ordered.map(in_buckets)
        long_keys = ordered.map(keys_of_buckets)  # [B, N, G + W]
        long_mask = patterns.pattern_mask(group.pattern, long, long_keys)  # [B, N, R, G + W]
        if not self.attention.original_bucketing:
            # Rolling joins the two ends of the long part, and repeats buckets if there are few.
            index = tf.range(buckets)
            # Its own bucket, the next one, the previous one.
            exists = [index >= 0, index + 1 < buckets, index >= 1]
            in_window = tf.repeat(tf.stack(exists, axis=1), bucket_size, axis=1)  # [N, W]
            with_global = tf.pad(in_window, [[0, 0], [global_size, 0]], constant_values=True)
            long_mask &= with_global[:, None]
        global_relations = long_relations = None
        if (relations := self.heads.relations_of(group)) is not None:
            global_relations = relations.one_hot(global_, features)  # [B, K, G, S]
            long_relations = relations.one_hot(long, long_keys)  # [B, K, N, R, G + W]
        return GroupPlan(
            indices=view_indices(order, bucket_size, global_size),
            global_mask=patterns.pattern_mask(group.pattern, global_, features)[:, None],
            long_mask=long_mask[:, None],
            global_relations=global_relations,
            long_relations=long_relations,
        )

    def attend_group(self, inputs: patterns.GroupInputs, plan: GroupPlan) -> tf.Tensor:
        query, *key_and_value = inputs.projected
        queries = make_views(query, plan.indices, ("global_", "long"))
        keys, values = (
            make_views(one, plan.indices, ("global_", "window")) for one in key_and_value
        )
        global_bias = long_bias = None
        if plan.global_relations is not None:
            global_bias = relation_scores(queries.global_, plan.global_relations, *inputs.tables)
            long_bias = relation_scores(queries.long, plan.long_relations, *inputs.tables)
        context = multi_view_attention(
            queries,
            keys,
            values,
            global_mask=plan.global_mask,
            long_mask=plan.long_mask,
            global_bias=global_bias,
            long_bias=long_bias,
            temperature=self.heads.temperature,
            dropout=inputs.dropout,
            scores_are_small=inputs.scores_are_small,
        )
        return patterns.in_sequence(context, plan.indices.order, plan.indices.rank)
