"""Block-sparse attention: all pairs that a sorted pattern allows, and few others.

In a head group's order, tokens that may attend to each other are neighbours. So a tile of
consecutive queries meets few tiles of keys: those of its row or column, and those of the question.
Only pairs of tiles that meet are computed, once each, a few at a time (`rounds.py`). The cost is
the sum of the squared lengths of rows or columns, and the memory is linear in the length. All pairs
would cost the squared length of the sequence, and a window leaves pairs out.

Shapes: B batch, S sequence, R tile (bucket size), N tiles of a sequence, P padded sequence (N * R),
M pairs of tiles of a round, T all tiles (B * N), h heads of a group, E head size, K relations, F
from, T to.
"""

import dataclasses
from functools import partial

import tensorflow as tf

from mate_tf.config import MateConfig
from mate_tf.features.token_features import TokenFeatures
from mate_tf.layers.attention import patterns
from mate_tf.layers.attention.relations import RelationBias
from mate_tf.layers.attention.rounds import Rounds, TilePairs, Weighing, attend_in_rounds
from mate_tf.private_apis import compiles_with_xla

# Numbers in the tensors of a round that grow with its pairs: 64 MB of float32.
_NUMBERS = 2**24
# Where most tiles meet, as in one long column, larger tiles are faster: so many times larger, and
# this share of the time for as many pairs of tokens (on a CPU).
_COARSER, _COARSER_TIME = 8, 0.55


@dataclasses.dataclass(frozen=True, eq=False)  # no tuple: Keras refuses one with other things
class TilePlan:
    """The tensors that the layers of an encoder share for one head group."""

    order: tf.Tensor  # int32 [B, P], positions in the group's order
    rank: tf.Tensor  # int32 [B, S], each token's place in it
    tiles: TokenFeatures  # int [T, R] each, the token features in the group's order
    # All pairs of tiles, those that meet first; tiles are numbered through the batch.
    query_tile: tf.Tensor  # int32 [B * N * N]
    key_tile: tf.Tensor  # int32 [B * N * N]
    num_pairs: tf.Tensor  # int32, the number of pairs that meet
    tile_size: int | tf.Tensor  # R; known only when the graph runs, except in XLA
    rounds: Rounds | None = None  # the pairs that meet, masked; `tile_plan` leaves them out


def tile_plan(features: TokenFeatures, sort_by: patterns.SortKey, tile_size: int) -> TilePlan:
    """Orders the tokens by a key and lists the tiles that meet.

    The size is the smaller of two, of which the faster one is taken.
    """
    order = patterns.token_order(features, sort_by)  # [B, S]
    length = patterns.sequence_length(features)

    def tiles_of(size: int | tf.Tensor) -> TokenFeatures:
        number = patterns.num_buckets(length, size, 0)
        ordered = patterns.ordered_features(features, order, number * size)
        return ordered.map(lambda feature: tf.reshape(feature, [-1, number, size]))  # [B, N, R]

    def count(size: int) -> tf.Tensor:
        return tf.reduce_sum(tf.cast(tiles_meet(tiles_of(size), sort_by), tf.float32))

    fine, coarse = tile_size, _COARSER * tile_size
    size: int | tf.Tensor = fine
    if not compiles_with_xla() and not (isinstance(length, int) and length <= fine):
        coarse_is_faster = count(coarse) * _COARSER**2 * _COARSER_TIME < count(fine)
        size = tf.where(coarse_is_faster, coarse, fine)
    tiles = tiles_of(size)
    number = tf.shape(tiles.input_mask)[1]
    meet = tf.reshape(tiles_meet(tiles, sort_by), [-1])  # [B * N * N]
    pairs = tf.argsort(tf.where(meet, 0, 1), stable=True)
    query_tile = pairs // number
    return TilePlan(
        order=tf.pad(order, [[0, 0], [0, number * size - length]]),
        rank=patterns.token_rank(order),
        tiles=tiles.map(lambda feature: tf.reshape(feature, [-1, size])),
        query_tile=query_tile,
        key_tile=query_tile // number * number + pairs % number,
        num_pairs=tf.reduce_sum(tf.cast(meet, tf.int32)),
        tile_size=size,
    )


def tiles_meet(tiles: TokenFeatures, sort_by: patterns.SortKey) -> tf.Tensor:
    """Which tiles may hold a query and a key that attend to each other.

    Tiles meet if their ranges of the key overlap or one has a token outside the table.
    Each tile also meets itself, so that each query has a key.

    From features [B, N, R] in the order of the key; returns bool [B, N, N], queries by keys.
    """
    real = tf.greater(tiles.input_mask, 0)  # [B, N, R]
    ids = sort_by(tiles)  # [B, N, R]
    lowest = tf.reduce_min(tf.where(real, ids, ids.dtype.max), axis=-1)  # [B, N]
    highest = tf.reduce_max(tf.where(real, ids, ids.dtype.min), axis=-1)
    is_global = tf.reduce_any(real & tf.equal(tiles.segment_ids, 0), axis=-1)
    any_real = tf.reduce_any(real, axis=-1)

    overlap = (lowest[:, :, None] <= highest[:, None]) & (lowest[:, None] <= highest[:, :, None])
    meet = overlap | is_global[:, :, None] | is_global[:, None]
    meet &= any_real[:, :, None] & any_real[:, None]
    return meet | tf.eye(tf.shape(real)[1], dtype=tf.bool)


def pairs_of_round(
    plan: TilePlan,
    most: int | tf.Tensor,
    pattern: patterns.Pattern,
    relations: RelationBias | None,
    start: tf.Tensor,
) -> TilePairs:
    """Up to `most` pairs that meet, from one on, masked by a pattern.

    XLA's shapes are static: there the list is filled up with pairs that are all masked.
    """
    size = most if compiles_with_xla() else tf.minimum(most, plan.num_pairs - start)
    index = start + tf.range(size)  # [M]
    meets = index < plan.num_pairs
    index = tf.minimum(index, plan.num_pairs - 1)
    query_tile, key_tile = (tf.gather(tiles, index) for tiles in (plan.query_tile, plan.key_tile))
    query = plan.tiles.map(lambda feature: tf.gather(feature, query_tile))  # [M, R]
    key = plan.tiles.map(lambda feature: tf.gather(feature, key_tile))  # [M, R]
    mask = patterns.pattern_mask(pattern, query, key)  # [M, R, R]
    if compiles_with_xla():
        mask &= meets[:, None, None]
    one_hot = None if relations is None else relations.one_hot(query, key)
    return TilePairs(query_tile, key_tile, mask[:, None], one_hot)


@dataclasses.dataclass(eq=False)
class Tiles(patterns.ByGroups):
    """All pairs that a sorted pattern allows, and few others.

    It computes what `dense.Dense` computes for the pattern without a window.
    """

    attention: MateConfig

    def plan_group(self, features: TokenFeatures, group: patterns.HeadGroup) -> TilePlan:
        """The order and the pairs of tiles."""
        assert group.sort_by is not None, group.name
        plan = tile_plan(features, group.sort_by, self.attention.bucket_size)
        size = plan.tile_size
        most = _NUMBERS // (group.num_heads * size * (size + self.heads.head_size))
        most = max(1, most) if isinstance(most, int) else tf.maximum(1, most)
        if compiles_with_xla():  # a list that is filled up should not be long
            most = min(most, 2 * (plan.tiles.input_mask.shape[0] or most))
        relations = self.heads.relations_of(group)
        pairs = partial(pairs_of_round, plan, most, group.pattern, relations)
        return dataclasses.replace(plan, rounds=Rounds(plan.num_pairs, most, pairs))

    def scores_are_small(self, projected: patterns.Projected, training: bool) -> tf.Tensor | None:
        """As of `Heads`, in training too: the gradient knows the sums that either way gives."""
        return self.heads.scores_are_small(projected, training=False)

    def attend_group(self, inputs: patterns.GroupInputs, plan: TilePlan) -> tf.Tensor:
        """The context, computed in the group's order. float [B, h, S, E]."""
        query, *key_and_value = inputs.projected
        heads, size = self.heads, plan.tile_size
        num_heads, head_size = query.shape[1], heads.head_size
        number = tf.shape(plan.order)[1] // size  # N
        scale = tf.cast(heads.scale, query.dtype)

        def in_tiles(tensor: tf.Tensor) -> tf.Tensor:
            tensor = patterns.in_order(tensor, plan.order, plan.rank)  # [B, h, P, E]
            tensor = tf.reshape(tensor, [-1, num_heads, number, size, head_size])
            tensor = tf.transpose(tensor, [0, 2, 1, 3, 4])  # [B, N, h, R, E]
            return tf.reshape(tensor, [-1, num_heads, size, head_size])

        # Vectors are multiplied by queries, which are scaled.
        tables = (*inputs.tables[:1], *(vectors / scale for vectors in inputs.tables[1:]))
        assert plan.rounds is not None
        tiles = patterns.Projected(*map(in_tiles, (query * scale, *key_and_value)))
        weighing = Weighing(tables, inputs.dropout, inputs.scores_are_small)
        context = attend_in_rounds(plan.rounds, tiles, weighing)  # [T, h, R, E]
        context = tf.reshape(context, [-1, number, num_heads, size, head_size])
        context = tf.transpose(context, [0, 2, 1, 3, 4])  # [B, h, N, R, E]
        context = tf.reshape(context, [-1, num_heads, number * size, head_size])
        return patterns.in_sequence(context, plan.order, plan.rank)
