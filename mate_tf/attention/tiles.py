"""Exact multi-view attention: everything that a sorted pattern allows, and little else.

In a head group's order tokens that may attend to each other stand together, so a tile of
consecutive queries meets few tiles of keys: its own row's or column's, and those that hold a
question. Only the pairs of tiles that meet are computed, each once, and a softmax over segments
joins those of a query. The cost follows the sum of the squared lengths of rows or columns, where
the window of `MultiViewAttention` leaves pairs out and all pairs cost the square of the sequence.

Shapes: B batch, S sequence, R tile (bucket size), N tiles of a sequence, M pairs of tiles that
meet in the batch, H heads, E head size, K relations, F from, T to.
"""

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
from mate_tf.attention.multi_view import permuted
from mate_tf.attention.patterns import HeadGroup, head_groups, pattern_mask
from mate_tf.attention.projections import HeadProjections, refuse_token_weights
from mate_tf.attention.relations import RelationBias
from mate_tf.attention.softmax import MASKED, Dropout
from mate_tf.config import AttentionConfig
from mate_tf.tables.token_features import TokenFeatures


class TilePlan(NamedTuple):
    """What the layers of an encoder share for one head group.

    Attributes:
        order: int32 [B, S], positions in the group's order.
        rank: int32 [B, S], its inverse.
        query_tile: int32 [M], ascending; tiles are numbered through the batch, B * N of them.
        key_tile: int32 [M].
        mask: bool [M, 1, R, R], the pattern.
        relations: one-hot, float [M, K, R, R]; None for an architecture without.
    """

    order: tf.Tensor
    rank: tf.Tensor
    query_tile: tf.Tensor
    key_tile: tf.Tensor
    mask: tf.Tensor
    relations: tf.Tensor | None


def tile_plan(
    features: TokenFeatures,
    group: HeadGroup,
    tile_size: int,
    relations: RelationBias | None = None,
) -> TilePlan:
    """Orders the tokens for a head group and lists the tiles that meet.

    Args:
        features: int [B, S] each.
        group: the head group; two tokens of the table that its pattern lets attend to each other
            have the same value of the feature it sorts by.
        tile_size: R.
        relations: of any layer of the encoder, where it has them.
    """
    assert group.sort_by is not None
    order = token_order(features, group.sort_by)  # [B, S]
    tiles = num_buckets(sequence_length(features), tile_size, 0)
    ordered = ordered_features(features, order, tiles * tile_size)
    ordered = ordered.map(lambda feature: tf.reshape(feature, [-1, tiles, tile_size]))  # [B, N, R]
    pairs = tf.cast(tf.where(tiles_meet(ordered, group.sort_by)), tf.int32)  # [M, 3]
    example, query_tile, key_tile = tf.unstack(pairs, axis=1)
    query_tile, key_tile = example * tiles + query_tile, example * tiles + key_tile
    flat = ordered.map(lambda feature: tf.reshape(feature, [-1, tile_size]))  # [B * N, R]
    query = flat.map(lambda feature: tf.gather(feature, query_tile))  # [M, R]
    key = flat.map(lambda feature: tf.gather(feature, key_tile))  # [M, R]
    return TilePlan(
        order=order,
        rank=token_rank(order),
        query_tile=query_tile,
        key_tile=key_tile,
        mask=pattern_mask(group.pattern, query, key)[:, None],
        relations=None if relations is None else relations.one_hot(query, key),
    )


def tiles_meet(tiles: TokenFeatures, sort_by: str) -> tf.Tensor:
    """Which tiles may hold a query and a key that attend to each other.

    Those whose ranges of the sorted feature overlap, those with a token outside the table, and
    each tile with itself, so that no query is without a key.

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
    query: tf.Tensor,
    key: tf.Tensor,
    value: tf.Tensor,
    plan: TilePlan,
    *,
    bias: tf.Tensor | None = None,
    temperature: float = 1.0,
    dropout: Dropout | None = None,
) -> tf.Tensor:
    """Attention between the tiles that meet.

    Args:
        query: float [B * N, H, R, E], tiles in the group's order.
        key: float [B * N, H, R, E].
        value: float [B * N, H, R, E].
        plan: the pairs of tiles and their masks.
        bias: float [M, H, R, R]; added to the scores after their division.
        temperature: the scores are divided by it and by sqrt(E).
        dropout: applied to the attention probabilities.

    Returns:
        float [B * N, H, R, E].
    """
    num_tiles = tf.shape(query)[0]
    query *= tf.cast(1.0 / (temperature * query.shape[-1] ** 0.5), query.dtype)
    scores = tf.einsum(
        "MHFE,MHTE->MHFT", tf.gather(query, plan.query_tile), tf.gather(key, plan.key_tile)
    )
    if bias is not None:
        scores += bias
    logits = tf.cast(scores, tf.float32) + tf.where(plan.mask, 0.0, MASKED)  # [M, H, R, R]
    # The softmax does not depend on what is subtracted, so its gradient is none of our business.
    highest = tf.stop_gradient(tf.reduce_max(logits, axis=-1))  # [M, H, R]
    highest = tf.math.segment_max(highest, plan.query_tile)  # [B * N, H, R]
    weights = tf.exp(logits - tf.gather(highest, plan.query_tile)[..., None])  # [M, H, R, R]
    total = tf.math.segment_sum(tf.reduce_sum(weights, axis=-1), plan.query_tile)  # [B * N, H, R]
    weights = tf.cast(weights, value.dtype)
    if dropout is not None:
        weights = dropout(weights)
    parts = tf.einsum("MHFT,MHTE->MHFE", weights, tf.gather(value, plan.key_tile))
    context = tf.math.unsorted_segment_sum(parts, plan.query_tile, num_tiles)  # [B * N, H, R, E]
    return context / tf.cast(total, context.dtype)[..., None]


@keras.saving.register_keras_serializable(package="mate_tf")
class TiledAttention(HeadProjections):
    """Self-attention of an architecture with sorted heads, at coverage 1.0.

    Called on hidden states float [B, S, D] and token features int [B, S]; returns float
    [B, S, D]: what `DenseAttention` returns for the pattern without a window.
    """

    def plan(
        self, features: TokenFeatures, token_weights: tf.Tensor | None = None
    ) -> tuple[TilePlan, ...]:
        """The orders, the pairs of tiles and their masks."""
        refuse_token_weights(token_weights)
        return tuple(
            tile_plan(features, group, self.attention.bucket_size, self.relations)
            for group in head_groups(self.attention, self.num_heads)
        )

    def attend_group(
        self,
        query: tf.Tensor,
        key: tf.Tensor,
        value: tf.Tensor,
        plan: TilePlan,
        first_head: int,
        dropout: Dropout | None,
    ) -> tf.Tensor:
        """The context, computed in the group's order. float [B, h, S, E]."""
        tiles = self._to_tiles(query, plan)
        bias = None
        if plan.relations is not None:
            bias = self.relation_scores(
                tf.gather(tiles, plan.query_tile), plan.relations, first_head
            )  # [M, h, R, R]
        context = tiled_attention(
            tiles,
            self._to_tiles(key, plan),
            self._to_tiles(value, plan),
            plan,
            bias=bias,
            temperature=self.temperature,
            dropout=dropout,
        )  # [B * N, h, R, E]
        return self._from_tiles(context, plan)

    def _to_tiles(self, tensor: tf.Tensor, plan: TilePlan) -> tf.Tensor:
        """[B, h, S, E] to [B * N, h, R, E]."""
        size = self.attention.bucket_size
        heads = tensor.shape[1]
        length = tf.shape(tensor)[2]
        tiles = num_buckets(length, size, 0)
        tensor = permuted(tensor, plan.order)
        tensor = tf.pad(tensor, [[0, 0], [0, 0], [0, tiles * size - length], [0, 0]])
        tensor = tf.reshape(tensor, [-1, heads, tiles, size, self.head_size])
        tensor = tf.transpose(tensor, [0, 2, 1, 3, 4])  # [B, N, h, R, E]
        return tf.reshape(tensor, [-1, heads, size, self.head_size])

    def _from_tiles(self, tensor: tf.Tensor, plan: TilePlan) -> tf.Tensor:
        """[B * N, h, R, E] to [B, h, S, E]."""
        size, heads = self.attention.bucket_size, tensor.shape[1]
        length = tf.shape(plan.rank)[1]
        tiles = num_buckets(length, size, 0)
        tensor = tf.reshape(tensor, [-1, tiles, heads, size, self.head_size])
        tensor = tf.transpose(tensor, [0, 2, 1, 3, 4])  # [B, h, N, R, E]
        tensor = tf.reshape(tensor, [-1, heads, tiles * size, self.head_size])
        return permuted(tensor[:, :, :length], plan.rank)

    @classmethod
    def default_attention(cls) -> AttentionConfig:
        """MATE, in tiles of 64."""
        return AttentionConfig("mate", "multi_view", bucket_size=64, coverage=1.0)
