"""Block-sparse attention: all pairs that a sorted pattern allows, and few others.

In a head group's order, tokens that may attend to each other are neighbours. So a tile of
consecutive queries meets few tiles of keys: those of its row or column, and those of the question.
Only pairs of tiles that meet are computed, once each, a few at a time. The cost is the sum of the
squared lengths of rows or columns, and the memory is linear in the length. All pairs would cost the
squared length of the sequence, and a window leaves pairs out.

A round computes the scores of some pairs. A running maximum and a running sum join the rounds of a
query in one softmax (FlashAttention: Dao et al., 2022, algorithms 1 and 4). The gradient computes
the scores again, so nothing that is kept grows with the number of pairs.

Shapes: B batch, S sequence, R tile (bucket size), N tiles of a sequence, P padded sequence (N * R),
T all tiles (B * N), M pairs of tiles of a round, t query tiles among them, H heads, h heads of a
group, E head size, K relations, F from, T to.
"""

import dataclasses
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import tensorflow as tf

from mate_tf.config import MateConfig
from mate_tf.features.token_features import TokenFeatures
from mate_tf.layers.attention import patterns
from mate_tf.layers.attention.patterns import GroupInputs, Projected
from mate_tf.layers.attention.relations import RelationBias, relation_scores
from mate_tf.layers.attention.softmax import MASKED, exponentials, masked_logits
from mate_tf.layers.basic import kept_units
from mate_tf.layers.compilation import OnePass, custom_gradient
from mate_tf.private_apis import compiles_with_xla

# Numbers in the tensors of a round that grow with its pairs: 64 MB of float32.
_NUMBERS = 2**24
# Where most tiles meet, as in one long column, larger tiles are faster: so many times larger, and
# this share of the time for as many pairs of tokens (on a CPU).
_COARSER, _COARSER_TIME = 8, 0.55


class TilePairs(NamedTuple):
    """The pairs of tiles of a round, those of a query tile side by side."""

    query_tile: tf.Tensor  # int32 [M], indices of tiles, ascending
    key_tile: tf.Tensor  # int32 [M]
    mask: tf.Tensor  # bool [M, 1, R, R], the pattern
    relations: tf.Tensor | None  # one-hot, float [M, K, R, R]

    def num_query_tiles(self) -> int | tf.Tensor:
        """t; in XLA the most that there may be."""
        if compiles_with_xla():
            return self.query_tile.shape[0]
        return self.query_tile[-1] - self.query_tile[0] + 1

    def gathered(self, tiles: Projected) -> Projected:
        """The tiles of each pair: float [T, H, R, E] to [M, H, R, E] each."""
        return Projected(
            tf.gather(tiles.query, self.query_tile),
            tf.gather(tiles.key, self.key_tile),
            tf.gather(tiles.value, self.key_tile),
        )

    def scores(self, query: tf.Tensor, key: tf.Tensor, *tables: tf.Tensor) -> tf.Tensor:
        """The scores of gathered tiles, [M, H, R, R]."""
        scores = tf.einsum("MHFE,MHTE->MHFT", query, key)
        if self.relations is None:
            return scores
        return scores + relation_scores(query, self.relations, *tables)


class Sums(NamedTuple):
    """The softmax over some of the keys."""

    context: tf.Tensor  # float [t, H, R, E], the sum of the values, each times exp(score - highest)
    total: tf.Tensor  # float [t, H, R], the sum of these weights
    highest: tf.Tensor  # float [t, H, R], the largest score so far; 0 if all are known to be small


class Rounds:
    """All pairs of tiles that meet, for the layers of an encoder.

    A round has at most `size` of the `num_pairs` pairs, int32; `pairs` returns those of the round
    that starts with a pair, int32. `first` are those of the first round; None in XLA. In a graph
    the layers share one program for each direction, which is made once.
    """

    def __init__(
        self,
        num_pairs: tf.Tensor,
        size: int | tf.Tensor,
        pairs: Callable[[tf.Tensor], TilePairs],
    ) -> None:
        self.num_pairs = num_pairs
        self.size = size
        self._pairs = pairs
        self.first = None if compiles_with_xla() else pairs(tf.zeros([], tf.int32))
        self._shared: dict[Callable[..., Any], Callable[..., Any]] = {}

    def run(self, add_round: Callable[..., Any], state: Any) -> Any:
        """Calls a function of the first pair's index, the pairs and the state for each round."""

        def body(start: tf.Tensor, state: Any) -> tuple[tf.Tensor, Any]:
            return start + self.size, add_round(start, self._pairs(start), state)

        start = tf.zeros([], tf.int32)
        _, state = tf.while_loop(
            lambda start, _: start < self.num_pairs, body, (start, state), parallel_iterations=1
        )
        return state

    def call_shared(self, function: Callable[..., Any], *inputs: Any) -> Any:
        """A function of these rounds and some tensors."""
        if tf.executing_eagerly():
            return function(self, *inputs)
        if function not in self._shared:
            self._shared[function] = tf.function(
                lambda *inputs: function(self, *inputs),
                autograph=False,
                experimental_attributes={"_noinline": True},
            )
        return self._shared[function](*inputs)


def attend_in_rounds(rounds: Rounds, inputs: GroupInputs) -> tf.Tensor:
    """Attention between some pairs of tiles, float [T, H, R, E] each, the queries already scaled.

    Returns float [T, H, R, E]; zero for a query without a key.
    """

    @custom_gradient
    def attended(query: tf.Tensor, key: tf.Tensor, value: tf.Tensor, *tables: tf.Tensor):
        given = inputs._replace(projected=Projected(query, key, value), tables=tables)
        context, log_total = rounds.call_shared(_forward, given)

        def gradient(upstream: tf.Tensor) -> list[tf.Tensor]:
            # The sum of a query's probabilities, each times its gradient.
            mean = tf.reduce_sum(tf.cast(upstream * context, log_total.dtype), -1)  # [T, H, R]
            return rounds.call_shared(_backward, given, upstream, mean, log_total)

        return context, gradient

    return attended(*inputs.projected, *inputs.tables)


def _forward(rounds: Rounds, inputs: GroupInputs) -> tuple[tf.Tensor, tf.Tensor]:
    """The context [T, H, R, E], and the logarithm of the sum of exponentials [T, H, R]."""
    query, lowest = inputs.projected.query, _lowest(inputs)
    wide = lowest.dtype

    def add_round(start: tf.Tensor, pairs: TilePairs, state: Sums) -> Sums:
        queries = pairs.query_tile[0] + tf.range(pairs.num_query_tiles())  # [t]
        before = Sums(*(tf.gather(one, queries) for one in state))
        new = _sums(start, pairs, inputs, before.highest)
        kept = tf.exp(before.highest - new.highest)  # [t, H, R]
        after = Sums(
            before.context * kept[..., None] + tf.cast(new.context, wide),
            before.total * kept + new.total,
            new.highest,
        )
        both = zip(state, after, strict=True)
        return Sums(*(tf.tensor_scatter_nd_update(old, queries[:, None], one) for old, one in both))

    def in_rounds() -> tuple[tf.Tensor, tf.Tensor]:
        state = Sums(tf.zeros(tf.shape(query), wide), tf.zeros_like(lowest), lowest)
        return _finished(rounds.run(add_round, state), query)

    first = rounds.first
    if first is None:
        return in_rounds()

    def in_one_round() -> tuple[tf.Tensor, tf.Tensor]:
        return _finished(_sums(tf.constant(0), first, inputs, lowest), query)

    return tf.cond(rounds.num_pairs <= rounds.size, in_one_round, in_rounds)


def _lowest(inputs: GroupInputs) -> tf.Tensor:
    """A lower bound of the scores, float [T, H, R], at least float32."""
    # Above all masked scores, so a query without a key gets no weights and no gradient.
    query = inputs.projected.query
    wide = query.dtype if query.dtype.size > 4 else tf.float32
    lowest = tf.fill(tf.shape(query)[:-1], tf.constant(MASKED / 2, wide))
    if inputs.scores_are_small is None:
        return lowest
    return tf.where(inputs.scores_are_small, tf.zeros_like(lowest), lowest)


def _sums(start: tf.Tensor, pairs: TilePairs, inputs: GroupInputs, highest: tf.Tensor) -> Sums:
    """The sums of one round, from the highest scores before it, [t, H, R]."""
    query, key, value = pairs.gathered(inputs.projected)
    scores = pairs.scores(query, key, *inputs.tables)
    tile, number = pairs.query_tile - pairs.query_tile[0], pairs.num_query_tiles()

    def by_exponentials() -> tuple[tf.Tensor, ...]:
        weights, totals = exponentials(scores, pairs.mask)
        return tf.ensure_shape(weights, scores.shape), totals[..., 0], highest

    def by_softmax() -> tuple[tf.Tensor, ...]:
        logits = masked_logits(highest.dtype, [scores], [pairs.mask])  # [M, H, R, R]
        tile_max = tf.math.unsorted_segment_max(tf.reduce_max(logits, axis=-1), tile, number)
        tile_max = tf.maximum(highest, tile_max)  # [t, H, R]
        weights = tf.exp(logits - tf.gather(tile_max, tile)[..., None])
        return tf.cast(weights, scores.dtype), tf.reduce_sum(weights, axis=-1), tile_max

    def by_tile(values: tf.Tensor) -> tf.Tensor:
        """The sums of each query tile: [M, ...] to [t, ...]."""
        if compiles_with_xla():
            return tf.math.unsorted_segment_sum(values, tile, number)
        return tf.math.segment_sum(values, tile)

    if inputs.scores_are_small is None:
        weights, totals, highest = by_softmax()  # [M, H, R, R], [M, H, R], [t, H, R]
    else:
        weights, totals, highest = tf.cond(inputs.scores_are_small, by_exponentials, by_softmax)
    if inputs.dropout is not None:
        weights = inputs.dropout.fold_in(start)(weights)
    parts = tf.einsum("MHFT,MHTE->MHFE", weights, value)
    return Sums(by_tile(parts), by_tile(totals), highest)


def _finished(sums: Sums, query: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """The context, and the logarithm of the sum of exponentials."""
    total = tf.cast(sums.total, sums.context.dtype)[..., None]
    context = tf.cast(tf.math.divide_no_nan(sums.context, total), query.dtype)
    some = tf.where(sums.total > 0, sums.total, tf.ones_like(sums.total))
    return tf.ensure_shape(context, query.shape), sums.highest + tf.math.log(some)


def _backward(
    rounds: Rounds,
    inputs: GroupInputs,
    upstream: tf.Tensor,
    mean: tf.Tensor,
    log_total: tf.Tensor,
) -> list[tf.Tensor]:
    """The gradients of query, key, value and tables."""
    wide, narrow = log_total.dtype, inputs.projected.query.dtype

    def add_round(start: tf.Tensor, pairs: TilePairs, sums: list[tf.Tensor]) -> list[tf.Tensor]:
        query, key, value = pairs.gathered(inputs.projected)
        sources = [query, key, *inputs.tables]
        with tf.GradientTape() as tape:
            tape.watch(sources)
            scores = pairs.scores(*sources)
        pair_upstream, pair_mean, pair_total = (
            tf.gather(one, pairs.query_tile) for one in (upstream, mean, log_total)
        )
        to_weights = tf.einsum("MHFE,MHTE->MHFT", pair_upstream, value)
        kept = () if inputs.dropout is None else inputs.dropout.fold_in(start).draw(scores)
        both = _weights_and_gradient(
            scores, pairs.mask, pair_total[..., None], to_weights, pair_mean[..., None], *kept
        )
        weights, to_scores = (tf.ensure_shape(one, scores.shape) for one in both)
        to_query, to_key, *to_tables = tape.gradient(scores, sources, to_scores)
        to_value = tf.einsum("MHFT,MHFE->MHTE", weights, pair_upstream)
        tiles_of_pairs = (pairs.query_tile, pairs.key_tile, pairs.key_tile)
        parts = [tf.cast(part, wide) for part in (to_query, to_key, to_value, *to_tables)]
        by_tile = zip(sums, tiles_of_pairs, parts, strict=False)
        return [
            *(tf.tensor_scatter_nd_add(sum_, tile[:, None], part) for sum_, tile, part in by_tile),
            *(sum_ + part for sum_, part in zip(sums[3:], parts[3:], strict=True)),
        ]

    sources = (*inputs.projected, *inputs.tables)
    sums = rounds.run(add_round, [tf.zeros(tf.shape(one), wide) for one in sources])
    return [tf.cast(total, narrow) for total in sums]


@OnePass
def _weights_and_gradient(
    scores: tf.Tensor,
    mask: tf.Tensor,
    log_total: tf.Tensor,
    to_weights: tf.Tensor,
    mean: tf.Tensor,
    *kept: tf.Tensor,
) -> tuple[tf.Tensor, tf.Tensor]:
    """The weights after dropout and the gradient of the scores, [M, H, R, R], in one pass.

    `to_weights` is the gradient of the weights after dropout; `log_total` and `mean` are
    [M, H, R, 1], and `kept` what `kept_units` takes, if there is dropout.
    """
    wide, narrow = log_total.dtype, scores.dtype
    weights = tf.exp(masked_logits(wide, [scores], [mask]) - log_total)
    dropped = tf.cast(weights, narrow)
    if kept:
        dropped, to_weights = kept_units(dropped, *kept), kept_units(to_weights, *kept)
    return dropped, tf.cast(weights * (tf.cast(to_weights, wide) - mean), narrow)


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

    It computes what `patterns.Dense` computes for the pattern without a window.
    """

    attention: MateConfig

    asks_in = (False, True)  # the gradient knows the sums that either way gives

    def plan_group(self, features: TokenFeatures, group: patterns.HeadGroup) -> TilePlan:
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

    def attend_group(self, inputs: GroupInputs, plan: TilePlan) -> tf.Tensor:
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
        tiles = Projected(*map(in_tiles, (query * scale, *key_and_value)))
        inputs = inputs._replace(projected=tiles, tables=tables)
        context = attend_in_rounds(plan.rounds, inputs)  # [T, h, R, E]
        context = tf.reshape(context, [-1, number, num_heads, size, head_size])
        context = tf.transpose(context, [0, 2, 1, 3, 4])  # [B, h, N, R, E]
        context = tf.reshape(context, [-1, num_heads, number * size, head_size])
        return patterns.in_sequence(context, plan.order, plan.rank)
