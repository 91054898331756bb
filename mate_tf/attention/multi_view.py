"""MATE's attention in time and memory linear in the sequence length.

Each head sorts the tokens, by row or by column, and attends through four views of them: the global
tokens attend to the full sequence; the long rest, in buckets, attends to the global tokens and to
a window of its own and both neighbour buckets (MATE paper, section 3, figures 2 and 7).

Shapes: B batch, S sequence, P padded sequence (G + N * R), G global, L long (N * R), N buckets,
R radius (bucket size), W window (3 * R, or more with more neighbours), H heads, E head size,
D hidden, F from, T to.
"""

import dataclasses
from typing import NamedTuple

import keras
import tensorflow as tf

from mate_tf.attention.buckets import (
    num_buckets,
    ordered_features,
    sequence_length,
    token_order,
    token_rank,
)
from mate_tf.attention.patterns import HeadGroup, head_groups, pattern_mask
from mate_tf.attention.projections import HeadProjections, refuse_token_weights
from mate_tf.attention.relations import RelationBias
from mate_tf.attention.softmax import masked_softmax
from mate_tf.config import AttentionConfig
from mate_tf.dropout import SeededDropout
from mate_tf.tables.token_features import TokenFeatures

# The fields of AttentionConfig that MultiViewAttention takes one by one.
OPTIONS = (
    "row_heads_ratio",
    "bucket_size",
    "global_size",
    "original_bucketing",
    "architecture",
    "relation_kind",
    "disabled_relations",
    "scale_relations",
    "num_neighbours",
)


@dataclasses.dataclass(frozen=True)
class MultiView:
    """Views of one tensor in one head group's order.

    Attributes:
        full: [B, H, S, E], the tensor as it came, unsorted.
        global_: [B, H, G, E], the first G tokens of the order.
        long: [B, H, N, R, E], the others in buckets.
        window: [B, H, N, W, E], each bucket, then the next, then the previous one.
    """

    full: tf.Tensor
    global_: tf.Tensor
    long: tf.Tensor
    window: tf.Tensor


@keras.saving.register_keras_serializable(package="mate_tf")
class MultiViewEmbedding(keras.layers.Layer):
    """Builds the full, global, long and window views of an embedding (MATE paper, figure 7).

    Called on an embedding [B, H, S, E] and an order of its tokens int [B, S]; returns a
    `MultiView`. A sequence that does not divide into buckets is padded with zeros at the end of
    its order, one shorter than the global part too: masking is the caller's.

    Args:
        bucket_size: R, tokens in a bucket.
        global_size: G, tokens in the global part.
        num_neighbours: buckets on each side of a bucket that its window holds, 1 in the paper.

    Raises:
        ValueError: if a size is below 1.

    Example:
        >>> embedding = tf.reshape(tf.range(6.0), [1, 1, 6, 1])
        >>> views = MultiViewEmbedding(bucket_size=2, global_size=2)(
        ...     embedding, tf.constant([[5, 4, 3, 2, 1, 0]])
        ... )
        >>> views.long[0, 0, :, :, 0].numpy().tolist()
        [[3.0, 2.0], [1.0, 0.0]]
    """

    def __init__(self, bucket_size: int, global_size: int, num_neighbours: int = 1, **kwargs):
        super().__init__(**kwargs)
        if bucket_size < 1 or global_size < 1:
            raise ValueError(
                f"expected bucket_size and global_size of at least 1, got {bucket_size} and "
                f"{global_size}"
            )
        if num_neighbours < 1:
            raise ValueError(f"expected num_neighbours of at least 1, got {num_neighbours}")
        self.bucket_size = bucket_size
        self.global_size = global_size
        self.num_neighbours = num_neighbours

    def call(self, embedding: tf.Tensor, order: tf.Tensor) -> MultiView:
        length = embedding.shape[2] or tf.shape(embedding)[2]
        buckets = num_buckets(length, self.bucket_size, self.global_size)
        missing = self.global_size + buckets * self.bucket_size - length
        in_order = permuted(embedding, order)  # [B, H, S, E]
        in_order = tf.pad(in_order, [[0, 0], [0, 0], [0, missing], [0, 0]])  # [B, H, P, E]
        # Split, not sliced: the gradient of a split is one concatenation.
        sizes = [self.global_size, buckets * self.bucket_size]
        global_, tail = tf.split(in_order, sizes, axis=2)
        long = bucketed(tail, buckets)  # [B, H, N, R, E]
        return MultiView(
            full=embedding,
            global_=global_,
            long=long,
            window=with_neighbours(long, axis=2, num_neighbours=self.num_neighbours),
        )

    def get_config(self):
        return super().get_config() | {
            "bucket_size": self.bucket_size,
            "global_size": self.global_size,
            "num_neighbours": self.num_neighbours,
        }


@tf.custom_gradient
def permuted(tensor: tf.Tensor, order: tf.Tensor):
    """Brings the sequence into an order, [B, H, S, E] by a permutation int32 [B, S].

    TensorFlow sums up the gradient of a gather index by index; a permutation's is the gather by
    its inverse, at a fraction of the cost.
    """

    def gradient(upstream: tf.Tensor) -> tuple[tf.Tensor, None]:
        return permuted(upstream, token_rank(order)), None

    return tf.gather(tensor, order, axis=2, batch_dims=1), gradient


def bucketed(tail: tf.Tensor, buckets: int | tf.Tensor) -> tf.Tensor:
    """Cuts [B, H, L, E] into [B, H, N, R, E]."""
    batch, heads, length, size = (
        static if static is not None else dynamic
        for static, dynamic in zip(tail.shape, tf.unstack(tf.shape(tail)), strict=True)
    )
    return tf.reshape(tail, [batch, heads, buckets, length // buckets, size])


def neighbour_offsets(num_neighbours: int) -> list[int]:
    """Which buckets a window holds, in its order: its own, the next, the previous, ..."""
    offsets = [0]
    for distance in range(1, num_neighbours + 1):
        offsets += [distance, -distance]
    return offsets


def with_neighbours(long: tf.Tensor, axis: int, num_neighbours: int = 1) -> tf.Tensor:
    """Each bucket followed by the next and the previous one, the ends joined.

    Args:
        long: [..., N, R, ...], the buckets on `axis`.
        num_neighbours: how many on each side.

    Returns:
        [..., N, W, ...].
    """
    offsets = neighbour_offsets(num_neighbours)
    return tf.concat([tf.roll(long, -offset, axis) for offset in offsets], axis=axis + 1)


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
) -> tf.Tensor:
    """The attention of the paper's figure 7.

    The figure, as printed, joins the two contexts on the last axis and uses a name that it does
    not define; they are joined on the sequence here.

    Args:
        query: views of the projected queries.
        key: views of the projected keys.
        value: views of the projected values.
        global_mask: bool, broadcasts to [B, H, G, S]; True where a global token may attend to a
            token of the full sequence, in the sequence's own order.
        long_mask: bool, broadcasts to [B, H, N, R, G + W]; True where a token of a bucket may
            attend to a global token or to one of its window.
        global_bias: float, broadcasts to [B, H, G, S]; added to the scores after their division.
        long_bias: float, broadcasts to [B, H, N, R, G + W]; the same.
        temperature: the scores are divided by it and by sqrt(E).
        dropout: applied to the attention probabilities.

    Returns:
        float [B, H, G + N * R, E], in the head group's order, its padding included.
    """
    head_size = query.full.shape[-1]
    scale = tf.cast(1.0 / (temperature * head_size**0.5), query.full.dtype)

    from_global = tf.einsum("BHFE,BHTE->BHFT", query.global_ * scale, key.full)
    if global_bias is not None:
        from_global += global_bias
    global_probs = masked_softmax(from_global, global_mask)  # [B, H, G, S]
    if dropout is not None:
        global_probs = dropout.fold_in(0)(global_probs)
    global_context = tf.einsum("BHFT,BHTE->BHFE", global_probs, value.full)

    long = query.long * scale
    to_global = tf.einsum("BHNFE,BHTE->BHNFT", long, key.global_)
    to_window = tf.einsum("BHNFE,BHNTE->BHNFT", long, key.window)
    scores = tf.concat([to_global, to_window], axis=-1)  # [B, H, N, R, G + W]
    if long_bias is not None:
        scores += long_bias
    long_probs = masked_softmax(scores, long_mask)
    if dropout is not None:
        long_probs = dropout.fold_in(1)(long_probs)
    sizes = [tf.shape(to_global)[-1], tf.shape(to_window)[-1]]
    probs_to_global, probs_to_window = tf.split(long_probs, sizes, axis=-1)
    long_context = tf.einsum("BHNFT,BHTE->BHNFE", probs_to_global, value.global_) + tf.einsum(
        "BHNFT,BHNTE->BHNFE", probs_to_window, value.window
    )

    shape = tf.shape(long_context)
    long_context = tf.reshape(
        long_context, [shape[0], shape[1], shape[2] * shape[3], head_size]
    )  # [B, H, L, E]
    return tf.concat([global_context, long_context], axis=2)


class GroupPlan(NamedTuple):
    """What the layers of an encoder share for one head group.

    Attributes:
        order: int32 [B, S], positions in the group's order.
        rank: int32 [B, S], its inverse.
        global_mask: bool [B, 1, G, S].
        long_mask: bool [B, 1, N, R, G + W].
        global_relations: one-hot, float [B, K, G, S]; None for an architecture without.
        long_relations: one-hot, float [B, K, N, R, G + W]; the same.
    """

    order: tf.Tensor
    rank: tf.Tensor
    global_mask: tf.Tensor
    long_mask: tf.Tensor
    global_relations: tf.Tensor | None = None
    long_relations: tf.Tensor | None = None


def group_plan(
    features: TokenFeatures,
    group: HeadGroup,
    config: AttentionConfig,
    relations: RelationBias | None = None,
) -> GroupPlan:
    """Orders the tokens for a head group and masks its views by the group's pattern.

    Args:
        features: int [B, S] each.
        group: the head group; it has an order.
        config: the bucket and global sizes.
        relations: of any layer of the encoder, where it has them.

    Returns:
        The plan, which depends on the token features alone.
    """
    assert group.sort_by is not None
    bucket_size, global_size = config.bucket_size, config.global_size
    order = token_order(features, group.sort_by)  # [B, S]
    length = sequence_length(features)
    buckets = num_buckets(length, bucket_size, global_size)
    ordered = ordered_features(features, order, global_size + buckets * bucket_size)  # [B, P]
    global_ = ordered.map(lambda feature: feature[:, :global_size])  # [B, G]

    def in_buckets(feature: tf.Tensor) -> tf.Tensor:
        return tf.reshape(feature[:, global_size:], [-1, buckets, bucket_size])  # [B, N, R]

    def keys_of_buckets(feature: tf.Tensor) -> tf.Tensor:
        repeated = tf.repeat(feature[:, None, :global_size], buckets, axis=1)  # [B, N, G]
        window = with_neighbours(in_buckets(feature), 1, config.num_neighbours)  # [B, N, W]
        return tf.concat([repeated, window], axis=-1)

    long = ordered.map(in_buckets)
    long_keys = ordered.map(keys_of_buckets)  # [B, N, G + W]
    long_mask = pattern_mask(group.pattern, long, long_keys)  # [B, N, R, G + W]
    if not config.original_bucketing:
        exists = _neighbour_exists(buckets, bucket_size, config.num_neighbours)  # [N, 1, W]
        long_mask &= tf.pad(exists, [[0, 0], [0, 0], [global_size, 0]], constant_values=True)
    global_relations = long_relations = None
    if relations is not None:
        global_relations = relations.one_hot(global_, features)  # [B, K, G, S]
        long_relations = relations.one_hot(long, long_keys)  # [B, K, N, R, G + W]
    return GroupPlan(
        order=order,
        rank=token_rank(order),
        global_mask=pattern_mask(group.pattern, global_, features)[:, None],
        long_mask=long_mask[:, None],
        global_relations=global_relations,
        long_relations=long_relations,
    )


def _neighbour_exists(buckets: int | tf.Tensor, bucket_size: int, num_neighbours: int) -> tf.Tensor:
    """False in the buckets that would follow the last one or precede the first.

    Rolling joins the two ends of the long part, and with few buckets it shows the same bucket
    several times.

    Returns:
        bool [N, 1, W].
    """
    index = tf.range(buckets)
    exists = tf.stack(
        [
            (index + offset >= 0) & (index + offset < buckets)
            for offset in neighbour_offsets(num_neighbours)
        ],
        axis=1,
    )  # [N, 2 * num_neighbours + 1]
    return tf.repeat(exists, bucket_size, axis=1)[:, None]


@keras.saving.register_keras_serializable(package="mate_tf")
class MultiViewAttention(HeadProjections):
    """MATE's self-attention, linear in the sequence length (MATE paper, section 3).

    Called on hidden states float [B, S, D] and token features int [B, S]; returns float
    [B, S, D]. Any S is taken: what does not divide into buckets is padded inside. A question
    longer than the global part loses sight of distant buckets.

    Args:
        num_heads: H.
        head_size: E.
        row_heads_ratio: share of the heads that attend within rows, rounded down to heads.
        bucket_size: R; a token sees its own bucket and both neighbours.
        global_size: G; the first tokens of each order, which see all and are seen by all.
        original_bucketing: the authors' release's join of the first and last bucket and its
            repeated keys with fewer than three buckets.
        architecture: "mate", or "mate_tableformer" to learn biases for TableFormer's relations;
            the next three say how (see `AttentionConfig`).
        num_neighbours: buckets on each side that a token sees.
        **kwargs: temperature, dropout and initializer_range of `HeadProjections`, and Keras's.

    Raises:
        ValueError: if a size or the ratio cannot work.

    Example:
        >>> from mate_tf.tables.token_features import TokenFeatures
        >>> ids = tf.constant([[0, 0, 1, 1, 2, 2]])
        >>> zeros, ones = tf.zeros_like(ids), tf.ones_like(ids)
        >>> features = TokenFeatures(
        ...     input_ids=ones, input_mask=ones, segment_ids=tf.minimum(ids, 1),
        ...     column_ids=tf.constant([[0, 0, 1, 2, 1, 2]]), row_ids=ids, prev_label_ids=zeros,
        ...     column_ranks=zeros, inv_column_ranks=zeros, numeric_relations=zeros)
        >>> layer = MultiViewAttention(num_heads=2, head_size=4, bucket_size=2, global_size=2)
        >>> layer(tf.ones([1, 6, 8]), features).shape
        TensorShape([1, 6, 8])
    """

    def __init__(
        self,
        num_heads: int,
        head_size: int,
        row_heads_ratio: float = 0.5,
        bucket_size: int = 42,
        global_size: int = 116,
        original_bucketing: bool = False,
        architecture: str = "mate",
        relation_kind: str = "scalar",
        disabled_relations: tuple[int, ...] = (),
        scale_relations: bool = False,
        num_neighbours: int = 1,
        **kwargs,
    ):
        attention = AttentionConfig(
            architecture=architecture,
            evaluator="multi_view",
            row_heads_ratio=row_heads_ratio,
            bucket_size=bucket_size,
            global_size=global_size,
            original_bucketing=original_bucketing,
            relation_kind=relation_kind,
            disabled_relations=tuple(disabled_relations),
            scale_relations=scale_relations,
            num_neighbours=num_neighbours,
        )
        super().__init__(num_heads, head_size, attention, **kwargs)
        self.views = MultiViewEmbedding(
            bucket_size, global_size, num_neighbours, name="views", dtype=self.dtype_policy
        )

    def plan(
        self, features: TokenFeatures, token_weights: tf.Tensor | None = None
    ) -> tuple[GroupPlan, ...]:
        """The orders and masks, which depend on the token features alone."""
        refuse_token_weights(token_weights)
        return tuple(
            group_plan(features, group, self.attention, self.relations)
            for group in head_groups(self.attention, self.num_heads)
        )

    def attend_group(
        self,
        query: tf.Tensor,
        key: tf.Tensor,
        value: tf.Tensor,
        plan: GroupPlan,
        first_head: int,
        dropout: SeededDropout | None,
    ) -> tf.Tensor:
        """The context, computed in the group's order. float [B, h, S, E]."""
        query_views = self.views(query, plan.order)
        global_bias = long_bias = None
        if self.relations is not None:
            global_bias = self.relation_scores(
                query_views.global_, plan.global_relations, first_head
            )  # [B, h, G, S]
            long_bias = self.relation_scores(
                query_views.long, plan.long_relations, first_head
            )  # [B, h, N, R, G + W]
        context = multi_view_attention(
            query_views,
            self.views(key, plan.order),
            self.views(value, plan.order),
            global_mask=plan.global_mask,
            long_mask=plan.long_mask,
            global_bias=global_bias,
            long_bias=long_bias,
            temperature=self.temperature,
            dropout=dropout,
        )  # [B, h, P, E]
        length = tf.shape(plan.rank)[1]
        return permuted(context[:, :, :length], plan.rank)

    def get_config(self):
        config = super().get_config()
        attention = config.pop("attention")
        return config | {name: attention[name] for name in OPTIONS}
