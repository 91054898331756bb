"""MATE's attention in time and memory linear in the sequence length.

Each head sorts the tokens by row or by column. The first ones, the global tokens, attend to the
full sequence. The long rest is cut into buckets. Its tokens attend to the global tokens and to a
window: their own bucket and both neighbours (MATE paper, section 3, figures 2 and 7).

Shapes: B batch, S sequence, P padded sequence (G + N * R), G global, L long (N * R), N buckets,
R radius (bucket size), W window (3 * R), H heads, E head size,
D hidden, F from, T to.
"""

from typing import Any, NamedTuple

import tensorflow as tf

from mate_tf.config import MateConfig
from mate_tf.features.token_features import TokenFeatures
from mate_tf.layers.attention.patterns import (
    HeadGroup,
    Heads,
    num_buckets,
    ordered_features,
    pattern_mask,
    sequence_length,
    token_order,
)
from mate_tf.layers.attention.relations import RelationBias
from mate_tf.layers.attention.softmax import Attended, weighted_sum
from mate_tf.layers.attention.views import (
    MultiView,
    Places,
    group_views,
    in_sequence,
    places,
    views_of,
    with_neighbours,
)
from mate_tf.layers.basic import SeededDropout


def multi_view_attention(
    query: MultiView, key: MultiView, value: MultiView, **options: Any
) -> tf.Tensor:
    """The attention of the paper's figure 7.

    The printed figure joins the two contexts on the last axis, and uses a name that it does not
    define. Here they are joined along the sequence.

    Args:
        query: the global and long views of the queries.
        key: all views of the keys except the long one.
        value: all views of the values except the long one.
        global_mask: bool, broadcasts to [B, H, G, S]; True where a global token may attend to a
            token of the unsorted sequence.
        long_mask: bool, broadcasts to [B, H, N, R, G + W]; True where a token of a bucket may
            attend to a global token or a token of its window.
        global_bias: float, broadcasts to [B, H, G, S]; added to the scores after their division.
        long_bias: float, broadcasts to [B, H, N, R, G + W]; the same.
        temperature: the scores are divided by it and by sqrt(E).
        dropout: applied to the attention probabilities.
        scores_are_small: bool, the result of `softmax.scores_are_small`, without biases; or None.

    Returns:
        float [B, H, G + N * R, E], in the head group's order, padding included.
    """
    global_context, long_context = multi_view_contexts(query, key, value, **options)
    shape = tf.shape(global_context)
    long_context = tf.reshape(long_context, [shape[0], shape[1], -1, shape[3]])
    return tf.concat([global_context, long_context], axis=2)


def multi_view_contexts(
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
) -> tuple[tf.Tensor, tf.Tensor]:
    """The two parts of `multi_view_attention`, with its arguments.

    Returns:
        The contexts of the global tokens, float [B, H, G, E], and of the buckets, float
        [B, H, N, R, E], in the head group's order, padding included.
    """
    head_size = query.global_.shape[-1]
    scale = tf.cast(1.0 / (temperature * head_size**0.5), query.global_.dtype)

    from_global = tf.einsum("BHFE,BHTE->BHFT", query.global_ * scale, key.full)
    if global_bias is not None:
        from_global += global_bias
    global_context = weighted_sum(
        [Attended(from_global, global_mask, value.full, "BHFT,BHTE->BHFE")],
        None if dropout is None else dropout.fold_in(0),
        scores_are_small,
    )

    with tf.control_dependencies([global_context]):  # its scores are freed by then
        long = query.long * scale
    to_global = tf.einsum("BHNFE,BHTE->BHNFT", long, key.global_)
    to_window = tf.einsum("BHNFE,BHNTE->BHNFT", long, key.window)
    sizes = [tf.shape(to_global)[-1], tf.shape(to_window)[-1]]
    masks = [None, None] if long_mask is None else tf.split(long_mask, sizes, axis=-1)
    if long_bias is not None:
        of_global, of_window = tf.split(long_bias, sizes, axis=-1)
        to_global += of_global
        to_window += of_window
    long_context = weighted_sum(
        [
            Attended(to_global, masks[0], value.global_, "BHNFT,BHTE->BHNFE"),
            Attended(to_window, masks[1], value.window, "BHNFT,BHNTE->BHNFE"),
        ],
        None if dropout is None else dropout.fold_in(1),
        scores_are_small,
    )
    return global_context, long_context


_QUERY_VIEWS, _KEY_VIEWS = ("global_", "long"), ("full", "global_", "window")


class GroupPlan(NamedTuple):
    """What the layers of an encoder share for one head group.

    Attributes:
        global_mask: bool [B, 1, G, S].
        long_mask: bool [B, 1, N, R, G + W].
        global_relations: one-hot, float [B, K, G, S], or None.
        long_relations: one-hot, float [B, K, N, R, G + W], or None.
    """

    global_mask: tf.Tensor
    long_mask: tf.Tensor
    global_relations: tf.Tensor | None = None
    long_relations: tf.Tensor | None = None


class MultiViewPlan(NamedTuple):
    """What the layers of an encoder share.

    Attributes:
        groups: the plan of each head group.
        places: the places of the tokens in all groups' views.
    """

    groups: tuple[GroupPlan, ...]
    places: Places


def group_plan(
    features: TokenFeatures,
    order: tf.Tensor,
    group: HeadGroup,
    config: MateConfig,
    relations: RelationBias | None = None,
) -> GroupPlan:
    """Masks a head group's views by its pattern; depends only on the token features.

    Args:
        features: int [B, S] each.
        order: int32 [B, S], the group's order of the tokens.
        group: the head group.
        config: the bucket and global sizes.
        relations: those of any layer of the encoder, or None.
    """
    bucket_size, global_size = config.bucket_size, config.global_size
    length = sequence_length(features)
    buckets = num_buckets(length, bucket_size, global_size)
    ordered = ordered_features(features, order, global_size + buckets * bucket_size)  # [B, P]
    global_ = ordered.map(lambda feature: feature[:, :global_size])  # [B, G]

    def in_buckets(feature: tf.Tensor) -> tf.Tensor:
        return tf.reshape(feature[:, global_size:], [-1, buckets, bucket_size])  # [B, N, R]

    def keys_of_buckets(feature: tf.Tensor) -> tf.Tensor:
        repeated = tf.repeat(feature[:, None, :global_size], buckets, axis=1)  # [B, N, G]
        window = with_neighbours(in_buckets(feature), axis=1)  # [B, N, W]
        return tf.concat([repeated, window], axis=-1)

    long = ordered.map(in_buckets)
    long_keys = ordered.map(keys_of_buckets)  # [B, N, G + W]
    long_mask = pattern_mask(group.pattern, long, long_keys)  # [B, N, R, G + W]
    if not config.original_bucketing:
        # Rolling joins the two ends of the long part, and repeats buckets if there are few.
        index = tf.range(buckets)
        exists = [index >= 0, index + 1 < buckets, index >= 1]  # its own, the next, the previous
        in_window = tf.repeat(tf.stack(exists, axis=1), bucket_size, axis=1)[:, None]  # [N, 1, W]
        long_mask &= tf.pad(in_window, [[0, 0], [0, 0], [global_size, 0]], constant_values=True)
    global_relations = long_relations = None
    if relations is not None:
        global_relations = relations.one_hot(global_, features)  # [B, K, G, S]
        long_relations = relations.one_hot(long, long_keys)  # [B, K, N, R, G + W]
    return GroupPlan(
        global_mask=pattern_mask(group.pattern, global_, features)[:, None],
        long_mask=long_mask[:, None],
        global_relations=global_relations,
        long_relations=long_relations,
    )


class MultiViews:
    """A window of buckets in each head's order; see `kinds.Implementation`."""

    def __init__(self, heads: Heads) -> None:
        self._heads = heads

    def plan(self, features: TokenFeatures, training: bool = False) -> MultiViewPlan:
        """The orders and masks of the views."""
        heads, attention = self._heads, self._heads.attention
        assert isinstance(attention, MateConfig)
        orders = [token_order(features, sort_by) for _, sort_by in heads.sorted_groups]
        plans = (
            group_plan(features, order, group, attention, heads.relations)
            for order, group in zip(orders, heads.groups, strict=True)
        )
        sizes = [group.num_heads for group in heads.groups]
        where = places(orders, sizes, attention.bucket_size, attention.global_size)
        return MultiViewPlan(tuple(plans), where)

    def attend(
        self,
        query: tf.Tensor,
        key: tf.Tensor,
        value: tf.Tensor,
        plan: MultiViewPlan,
        dropout: SeededDropout | None,
        training: bool = False,
    ) -> tf.Tensor:
        """The context, computed in each group's order. float [B, S, H, E]."""
        are_small = self._heads.scores_are_small(query, key, training)
        given = ((query, _QUERY_VIEWS), (key, _KEY_VIEWS), (value, _KEY_VIEWS))
        of_all = [views_of(tensor, plan.places, names) for tensor, names in given if training]
        contexts: list[tuple[tf.Tensor, tf.Tensor]] = []
        first_head = 0
        for index, group in enumerate(plan.groups):
            if training:
                views, keys, values = (of_groups[index] for of_groups in of_all)
            else:  # one group after the other, which halves the memory
                with tf.control_dependencies([one for pair in contexts for one in pair]):
                    views, keys, values = (
                        group_views(tf.identity(tensor), plan.places.indices[index], names)
                        for tensor, names in given
                    )
            global_bias = long_bias = None
            if self._heads.relations is not None:
                global_bias = self._heads.relation_scores(
                    views.global_, group.global_relations, first_head
                )  # [B, h, G, S]
                long_bias = self._heads.relation_scores(
                    views.long, group.long_relations, first_head
                )  # [B, h, N, R, G + W]
            contexts.append(
                multi_view_contexts(
                    views,
                    keys,
                    values,
                    global_mask=group.global_mask,
                    long_mask=group.long_mask,
                    global_bias=global_bias,
                    long_bias=long_bias,
                    temperature=self._heads.temperature,
                    dropout=None if dropout is None else dropout.fold_in(index),
                    scores_are_small=are_small,
                )
            )
            first_head += views.long.shape[1]
        return in_sequence(contexts, plan.places)
