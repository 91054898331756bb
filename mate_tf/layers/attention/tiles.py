"""Exact multi-view attention: all pairs that a sorted pattern allows, and few others.

In a head group's order, tokens that may attend to each other are neighbours. So a tile of
consecutive queries meets few tiles of keys: those of its row or column, and those of the question.
Only pairs of tiles that meet are computed, once each, and a segmented softmax joins those of a
query. The cost is the sum of the squared lengths of rows or columns. All pairs would cost the
squared length of the sequence, and the window of `MultiViewAttention` leaves pairs out.

The number of tiles that meet depends on the tables. XLA has no lists of unknown length, so the list
is padded to the next of a few static sizes.

Shapes: B batch, S sequence, R tile (bucket size), N tiles of a sequence, M pairs of tiles that
are computed, H heads, E head size, K relations, F from, T to.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import ClassVar, NamedTuple

import keras
import tensorflow as tf

from mate_tf.config import AttentionConfig
from mate_tf.features.token_features import TokenFeatures
from mate_tf.layers.attention.by_length import LinearAttention
from mate_tf.layers.attention.patterns import (
    Pattern,
    first_tokens,
    head_groups,
    num_buckets,
    ordered_features,
    pattern_mask,
    sequence_length,
    token_order,
    token_rank,
)
from mate_tf.layers.attention.relations import RelationBias, relation_scores
from mate_tf.layers.attention.softmax import MASKED, exponentials
from mate_tf.layers.basic import SeededDropout
from mate_tf.layers.custom_gradient import custom_gradient
from mate_tf.private_apis import compiles_with_xla


def at_chosen_size(
    function: Callable[..., tf.Tensor], sizes: list[int], needed: tf.Tensor, *inputs: tf.Tensor
) -> tf.Tensor:
    """Calls a function with the smallest size that suffices, because XLA's shapes are static.

    The gradient computes the function again at that size. TensorFlow's own would keep the results
    of all sizes for all layers.

    Args:
        function: takes a size and the inputs, and returns a tensor, the same at each call.
        sizes: ascending; the last always suffices.
        needed: int32, the size that is needed.
        *inputs: float, the inputs to differentiate by.
    """
    index = tf.reduce_sum(tf.cast(needed > tf.constant(sizes[:-1], tf.int32), tf.int32))

    @custom_gradient
    def call(*inputs: tf.Tensor):
        def gradient(upstream: tf.Tensor) -> list[tf.Tensor]:
            def gradient_at(size: int) -> list[tf.Tensor]:
                sources = [tf.identity(tensor) for tensor in inputs]
                with tf.GradientTape() as tape:
                    tape.watch(sources)
                    result = function(size, *sources)
                gradients = tape.gradient(result, sources, upstream)
                # The gradient of a gather is a list of slices, whose length depends on the size.
                return [tf.convert_to_tensor(one) for one in gradients]

            return tf.switch_case(index, [partial(gradient_at, size) for size in sizes])

        branches = [partial(function, size, *inputs) for size in sizes]
        return tf.switch_case(index, branches), gradient

    return call(*inputs)


# With a larger share of the pairs of tiles, all pairs are faster (on a CPU).
_MOST = 0.6


@custom_gradient
def permuted(tensor: tf.Tensor, order: tf.Tensor):
    """Permutes the sequence of [B, H, S, E] by an order int32 [B, S].

    Its gradient is the gather by the inverse. TensorFlow's would sum index by index, at many times
    the cost.
    """

    def gradient(upstream: tf.Tensor) -> tuple[tf.Tensor, None]:
        return permuted(upstream, token_rank(order)), None

    return tf.gather(tensor, order, axis=2, batch_dims=1), gradient


class TilePairs(NamedTuple):
    """The pairs of tiles that one head group computes.

    Attributes:
        query_tile: int32 [M], indices of tiles.
        key_tile: int32 [M].
        mask: bool [M, 1, R, R], the pattern.
        relations: one-hot, float [M, K, R, R], or None.
    """

    query_tile: tf.Tensor
    key_tile: tf.Tensor
    mask: tf.Tensor
    relations: tf.Tensor | None


class TilePlan(NamedTuple):
    """What the layers of an encoder share for one head group.

    Attributes:
        order: int32 [B, S], positions in the group's order.
        rank: int32 [B, S], its inverse.
        tiles: int [B * N, R] each, the token features in the group's order.
        query_tile: int32 [B * N * N], all pairs of tiles, those that meet first; tiles are numbered
            through the batch.
        key_tile: int32 [B * N * N].
        num_pairs: int32, the number of pairs that meet.
        pairs: the pairs that meet; None in XLA, where each layer makes them at its size.
    """

    order: tf.Tensor
    rank: tf.Tensor
    tiles: TokenFeatures
    query_tile: tf.Tensor
    key_tile: tf.Tensor
    num_pairs: tf.Tensor
    pairs: TilePairs | None = None


def tile_plan(features: TokenFeatures, sort_by: str, tile_size: int) -> TilePlan:
    """Orders the tokens and lists the tiles that meet.

    Args:
        features: int [B, S] each.
        sort_by: the feature to sort by; tokens of the table that attend to each other share it.
        tile_size: R.
    """
    order = token_order(features, sort_by)  # [B, S]
    tiles = num_buckets(sequence_length(features), tile_size, 0)
    ordered = ordered_features(features, order, tiles * tile_size)
    ordered = ordered.map(lambda feature: tf.reshape(feature, [-1, tiles, tile_size]))  # [B, N, R]
    meet = tf.reshape(tiles_meet(ordered, sort_by), [-1])  # [B * N * N]
    pairs = tf.argsort(tf.where(meet, 0, 1), stable=True)
    query_tile = pairs // tiles  # of the batch's B * N
    return TilePlan(
        order=order,
        rank=token_rank(order),
        tiles=ordered.map(lambda feature: tf.reshape(feature, [-1, tile_size])),
        query_tile=query_tile,
        key_tile=query_tile // tiles * tiles + pairs % tiles,
        num_pairs=tf.reduce_sum(tf.cast(meet, tf.int32)),
    )


def list_sizes(num_tiles: int, batch_size: int) -> list[int]:
    """The lengths to which a list of pairs is padded, up to all N * N of each example.

    As a rule each tile meets itself and, both ways, the question's tile: three pairs for a tile.
    What is added to these doubles from size to size.
    """
    of_a_tile, more = [3], 2
    while of_a_tile[-1] < num_tiles:
        of_a_tile.append(3 + more)
        more *= 2
    return [batch_size * num_tiles * min(size, num_tiles) for size in of_a_tile]


def tile_pairs(
    plan: TilePlan,
    size: int | tf.Tensor,
    pattern: Pattern,
    relations: RelationBias | None = None,
) -> TilePairs:
    """The first pairs of a plan, masked by a pattern; all False where the tiles do not meet.

    Args:
        plan: the order and the pairs.
        size: M.
        pattern: the pattern of the head group.
        relations: those of any layer of the encoder, or None.
    """
    meets = tf.range(size) < plan.num_pairs  # [M]
    # The first tile with itself fills up the list, so no example depends on another.
    query_tile = tf.where(meets, plan.query_tile[:size], 0)
    key_tile = tf.where(meets, plan.key_tile[:size], 0)
    query = plan.tiles.map(lambda feature: tf.gather(feature, query_tile))  # [M, R]
    key = plan.tiles.map(lambda feature: tf.gather(feature, key_tile))  # [M, R]
    return TilePairs(
        query_tile=query_tile,
        key_tile=key_tile,
        mask=(pattern_mask(pattern, query, key) & meets[:, None, None])[:, None],
        relations=None if relations is None else relations.one_hot(query, key),
    )


def tiles_meet(tiles: TokenFeatures, sort_by: str) -> tf.Tensor:
    """Which tiles may hold a query and a key that attend to each other.

    Tiles meet if their ranges of the sorted feature overlap or one has a token outside the table.
    Each tile also meets itself, so that each query has a key.

    Args:
        tiles: features [B, N, R], in the order of the feature.
        sort_by: the feature's name.

    Returns:
        bool [B, N, N], queries by keys.
    """
    real = tf.greater(tiles.input_mask, 0)  # [B, N, R]
    ids = getattr(tiles, sort_by)
    lowest = tf.reduce_min(tf.where(real, ids, ids.dtype.max), axis=-1)  # [B, N]
    highest = tf.reduce_max(tf.where(real, ids, ids.dtype.min), axis=-1)
    is_global = tf.reduce_any(real & tf.equal(tiles.segment_ids, 0), axis=-1)
    any_real = tf.reduce_any(real, axis=-1)

    overlap = (lowest[:, :, None] <= highest[:, None]) & (lowest[:, None] <= highest[:, :, None])
    meet = overlap | is_global[:, :, None] | is_global[:, None]
    meet &= any_real[:, :, None] & any_real[:, None]
    return meet | tf.eye(tf.shape(real)[1], dtype=tf.bool)


def tiled_attention(
    pairs: TilePairs,
    query: tf.Tensor,
    key: tf.Tensor,
    value: tf.Tensor,
    *tables: tf.Tensor,
    temperature: float = 1.0,
    dropout: SeededDropout | None = None,
    scores_are_small: tf.Tensor | None = None,
) -> tf.Tensor:
    """Attention between some pairs of tiles.

    Args:
        pairs: the pairs of tiles, their masks and relations.
        query: float [B * N, H, R, E], tiles in the group's order.
        key: float [B * N, H, R, E].
        value: float [B * N, H, R, E].
        *tables: the heads' weights of the relations; see `relation_scores`.
        temperature: the scores are divided by it and by sqrt(E).
        dropout: applied to the attention probabilities.
        scores_are_small: bool, the result of `softmax.scores_are_small`; None with relations.

    Returns:
        float [B * N, H, R, E].
    """
    num_tiles = tf.shape(query)[0]
    query_tile, key_tile = pairs.query_tile, pairs.key_tile
    scale = tf.cast(1.0 / (temperature * query.shape[-1] ** 0.5), query.dtype)
    scores = tf.einsum(
        "MHFE,MHTE->MHFT", tf.gather(query * scale, query_tile), tf.gather(key, key_tile)
    )
    if pairs.relations is not None:
        scores += relation_scores(tf.gather(query, query_tile), pairs.relations, *tables)

    def by_exponentials() -> tuple[tf.Tensor, tf.Tensor]:
        weights, totals = exponentials(scores, pairs.mask)
        return tf.ensure_shape(weights, scores.shape), totals[..., 0]

    def by_softmax() -> tuple[tf.Tensor, tf.Tensor]:
        logits = tf.cast(scores, tf.float32) + tf.where(pairs.mask, 0.0, MASKED)  # [M, H, R, R]
        # The softmax does not depend on what is subtracted, so no gradient is needed.
        highest = tf.stop_gradient(tf.reduce_max(logits, axis=-1))  # [M, H, R]
        highest = tf.math.unsorted_segment_max(highest, query_tile, num_tiles)  # [B * N, H, R]
        weights = tf.exp(logits - tf.gather(highest, query_tile)[..., None])  # [M, H, R, R]
        return tf.cast(weights, scores.dtype), tf.reduce_sum(weights, axis=-1)

    if scores_are_small is None:
        weights, totals = by_softmax()  # [M, H, R, R], [M, H, R]
    else:
        weights, totals = tf.cond(scores_are_small, by_exponentials, by_softmax)
    if dropout is not None:
        weights = dropout(weights)
    parts = tf.einsum("MHFT,MHTE->MHFE", weights, tf.gather(value, key_tile))
    context = _sums_by_tile(parts, query_tile, num_tiles)  # [B * N, H, R, E]
    total = _sums_by_tile(totals, query_tile, num_tiles)  # [B * N, H, R]
    return tf.math.divide_no_nan(context, tf.cast(total, context.dtype)[..., None])


def _sums_by_tile(values: tf.Tensor, tile: tf.Tensor, num_tiles: tf.Tensor) -> tf.Tensor:
    """Sums the values of each tile: [M, ...] to [B * N, ...]."""
    if compiles_with_xla():  # there the pairs that fill up the list are not sorted
        return tf.math.unsorted_segment_sum(values, tile, num_tiles)
    return tf.math.segment_sum(values, tile)


@keras.saving.register_keras_serializable(package="mate_tf")
class TiledAttention(LinearAttention):
    """Self-attention of an architecture with sorted heads, at coverage 1.0.

    Called on hidden states float [B, S, D] and token features int [B, S]; returns float
    [B, S, D]: what `DenseAttention` returns for the pattern without a window.

    Raises:
        ValueError: if the attention has no coverage of 1.0, or its architecture is another layer's.
    """

    break_even: ClassVar[Mapping[str, tuple[int, int]]] = {
        "float32": (512, 448),
        "bfloat16": (832, 384),
    }

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        if self.attention.coverage is None:
            raise ValueError(
                f"layer {self.name!r}, a TiledAttention, expected an attention with coverage 1.0, "
                "got None; a MultiViewAttention attends within a window"
            )

    def dense_is_faster(self, features: TokenFeatures, training: bool) -> bool | tf.Tensor:
        """Also if most tiles of a table meet, as when one column holds most of the text."""
        is_short = super().dense_is_faster(features, training)
        if is_short is True or training or not self.dense_up_to() or compiles_with_xla():
            return is_short
        tile_size = self.attention.bucket_size
        tiles = num_buckets(tf.shape(features.input_ids)[1], tile_size, 0)
        all_pairs = tf.shape(features.input_ids)[0] * tiles * tiles
        meet = tf.zeros([], tf.float32)
        for group in head_groups(self.attention, self.num_heads):
            assert group.sort_by is not None
            pairs = tile_plan(features, group.sort_by, tile_size).num_pairs
            share = tf.cast(pairs, tf.float32) / tf.cast(all_pairs, tf.float32)
            meet += share * group.num_heads / self.num_heads
        is_dense = is_short | (meet > _MOST)
        return bool(is_dense) if tf.executing_eagerly() else is_dense

    def linear_plan(self, features: TokenFeatures) -> tuple[TilePlan, ...]:
        """The orders and the pairs of tiles."""
        plans = []
        for group in head_groups(self.attention, self.num_heads):
            assert group.sort_by is not None
            plan = tile_plan(features, group.sort_by, self.attention.bucket_size)
            if not compiles_with_xla():
                pairs = tile_pairs(plan, plan.num_pairs, group.pattern, self.relations)
                plan = plan._replace(pairs=pairs)
            plans.append(plan)
        return tuple(plans)

    def attend_linear(
        self,
        query: tf.Tensor,
        key: tf.Tensor,
        value: tf.Tensor,
        plan: tuple[TilePlan, ...],
        dropout: SeededDropout | None,
        training: bool = False,
    ) -> tf.Tensor:
        """The context, group by group. float [B, S, H, E]."""
        are_small = self.scores_are_small(query, key, training)
        attend_group = partial(self._attend_tiles, are_small=are_small)
        return self.by_groups(attend_group, query, key, value, plan, dropout)

    def _attend_tiles(
        self,
        query: tf.Tensor,
        key: tf.Tensor,
        value: tf.Tensor,
        plan: TilePlan,
        first_head: int,
        dropout: SeededDropout | None,
        are_small: tf.Tensor | None,
    ) -> tf.Tensor:
        """The context, computed in the group's order. float [B, h, S, E]."""
        inputs = [self._to_tiles(tensor, plan) for tensor in (query, key, value)]
        if self.relations is not None:
            inputs += self.relation_tables(first_head, query.shape[1])
        attention = partial(
            tiled_attention,
            temperature=self.temperature,
            dropout=dropout,
            scores_are_small=are_small,
        )

        def attention_at(size: int, *inputs: tf.Tensor) -> tf.Tensor:
            pairs = tile_pairs(plan, size, self._pattern(first_head), self.relations)
            return attention(pairs, *inputs)

        if plan.pairs is not None:
            context = attention(plan.pairs, *inputs)  # [B * N, h, R, E]
        else:
            sizes = list_sizes(*self._static_sizes(plan))
            context = at_chosen_size(attention_at, sizes, plan.num_pairs, *inputs)
        return self._from_tiles(context, plan)

    def _static_sizes(self, plan: TilePlan) -> tuple[int, int]:
        """N and B."""
        batch_size, length = plan.order.shape
        if batch_size is None or length is None:
            raise ValueError(
                "expected a batch size and a sequence length known to the graph, for XLA, got "
                f"{batch_size} and {length}; trace the function with shapes, or without jit_compile"
            )
        return num_buckets(length, self.attention.bucket_size, 0), batch_size

    def _pattern(self, first_head: int) -> Pattern:
        """The pattern of the group that starts with a head."""
        groups = head_groups(self.attention, self.num_heads)
        return [group.pattern for group in groups for _ in range(group.num_heads)][first_head]

    def _to_tiles(self, tensor: tf.Tensor, plan: TilePlan) -> tf.Tensor:
        """[B, h, S, E] to [B * N, h, R, E]."""
        size = self.attention.bucket_size
        heads = tensor.shape[1]
        length = _length(plan)
        tiles = num_buckets(length, size, 0)
        tensor = permuted(tensor, plan.order)
        tensor = tf.pad(tensor, [[0, 0], [0, 0], [0, tiles * size - length], [0, 0]])
        tensor = tf.reshape(tensor, [-1, heads, tiles, size, self.head_size])
        tensor = tf.transpose(tensor, [0, 2, 1, 3, 4])  # [B, N, h, R, E]
        return tf.reshape(tensor, [-1, heads, size, self.head_size])

    def _from_tiles(self, tensor: tf.Tensor, plan: TilePlan) -> tf.Tensor:
        """[B * N, h, R, E] to [B, h, S, E]."""
        size, heads = self.attention.bucket_size, tensor.shape[1]
        length = _length(plan)
        tiles = num_buckets(length, size, 0)
        tensor = tf.reshape(tensor, [-1, tiles, heads, size, self.head_size])
        tensor = tf.transpose(tensor, [0, 2, 1, 3, 4])  # [B, h, N, R, E]
        tensor = tf.reshape(tensor, [-1, heads, tiles * size, self.head_size])
        return permuted(first_tokens(tensor, length), plan.rank)

    @classmethod
    def default_attention(cls) -> AttentionConfig:
        """MATE, in tiles of 64."""
        return AttentionConfig("mate", "multi_view", bucket_size=64, coverage=1.0)


def _length(plan: TilePlan) -> int | tf.Tensor:
    """S, an int if the shape is static."""
    return plan.order.shape[1] or tf.shape(plan.order)[1]
