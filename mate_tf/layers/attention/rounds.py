"""Attention between pairs of tiles in bounded memory, some pairs at a time.

A round computes the scores of some pairs. A running maximum and a running sum join the rounds of a
query in one softmax (FlashAttention: Dao et al., 2022, algorithms 1 and 4). The gradient computes
the scores again, so nothing that is kept grows with the number of pairs.

Shapes: T tiles, R tokens of a tile, M pairs of tiles of a round, t query tiles among them, H heads,
E head size, K relations, F from, T to.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import tensorflow as tf

from mate_tf.layers.attention.patterns import Projected
from mate_tf.layers.attention.relations import relation_scores
from mate_tf.layers.attention.softmax import MASKED, exponentials
from mate_tf.layers.basic import SeededDropout, kept_units
from mate_tf.layers.compilation import OnePass, custom_gradient
from mate_tf.private_apis import compiles_with_xla


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


class Weighing(NamedTuple):
    """The other inputs of the weights, in one layer."""

    tables: tuple[tf.Tensor, ...] = ()  # the heads' weights of the relations; see `relation_scores`
    dropout: SeededDropout | None = None  # applied to the attention probabilities
    scores_are_small: tf.Tensor | None = None  # as `softmax.scores_are_small`


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


def attend_in_rounds(rounds: Rounds, tiles: Projected, weighing: Weighing) -> tf.Tensor:
    """Attention between some pairs of tiles, float [T, H, R, E] each, the queries already scaled.

    Returns float [T, H, R, E]; zero for a query without a key.
    """

    @custom_gradient
    def attended(query: tf.Tensor, key: tf.Tensor, value: tf.Tensor, *tables: tf.Tensor):
        inputs = Projected(query, key, value), weighing._replace(tables=tables)
        context, log_total = rounds.call_shared(_forward, *inputs)

        def gradient(upstream: tf.Tensor) -> list[tf.Tensor]:
            # The sum of a query's probabilities, each times its gradient.
            mean = tf.reduce_sum(tf.cast(upstream * context, log_total.dtype), -1)  # [T, H, R]
            return rounds.call_shared(_backward, *inputs, upstream, mean, log_total)

        return context, gradient

    return attended(*tiles, *weighing.tables)


def _forward(rounds: Rounds, tiles: Projected, weighing: Weighing) -> tuple[tf.Tensor, tf.Tensor]:
    """The context [T, H, R, E], and the logarithm of the sum of exponentials [T, H, R]."""
    lowest = _lowest(tiles.query, weighing)
    wide = lowest.dtype

    def add_round(start: tf.Tensor, pairs: TilePairs, state: Sums) -> Sums:
        queries = pairs.query_tile[0] + tf.range(pairs.num_query_tiles())  # [t]
        before = Sums(*(tf.gather(one, queries) for one in state))
        new = _sums(start, pairs, tiles, weighing, before.highest)
        kept = tf.exp(before.highest - new.highest)  # [t, H, R]
        after = Sums(
            before.context * kept[..., None] + tf.cast(new.context, wide),
            before.total * kept + new.total,
            new.highest,
        )
        both = zip(state, after, strict=True)
        return Sums(*(tf.tensor_scatter_nd_update(old, queries[:, None], one) for old, one in both))

    def in_rounds() -> tuple[tf.Tensor, tf.Tensor]:
        state = Sums(tf.zeros(tf.shape(tiles.query), wide), tf.zeros_like(lowest), lowest)
        return _finished(rounds.run(add_round, state), tiles.query)

    first = rounds.first
    if first is None:
        return in_rounds()

    def in_one_round() -> tuple[tf.Tensor, tf.Tensor]:
        return _finished(_sums(tf.constant(0), first, tiles, weighing, lowest), tiles.query)

    return tf.cond(rounds.num_pairs <= rounds.size, in_one_round, in_rounds)


def _lowest(query: tf.Tensor, weighing: Weighing) -> tf.Tensor:
    """A lower bound of the scores, float [T, H, R], at least float32."""
    # Above all masked scores, so a query without a key gets no weights and no gradient.
    wide = query.dtype if query.dtype.size > 4 else tf.float32
    lowest = tf.fill(tf.shape(query)[:-1], tf.constant(MASKED / 2, wide))
    if weighing.scores_are_small is None:
        return lowest
    return tf.where(weighing.scores_are_small, tf.zeros_like(lowest), lowest)


def _sums(
    start: tf.Tensor, pairs: TilePairs, tiles: Projected, weighing: Weighing, highest: tf.Tensor
) -> Sums:
    """The sums of one round, from the highest scores before it, [t, H, R]."""
    query, key, value = pairs.gathered(tiles)
    scores = pairs.scores(query, key, *weighing.tables)
    tile, number = pairs.query_tile - pairs.query_tile[0], pairs.num_query_tiles()

    def by_exponentials() -> tuple[tf.Tensor, ...]:
        weights, totals = exponentials(scores, pairs.mask)
        return tf.ensure_shape(weights, scores.shape), totals[..., 0], highest

    def by_softmax() -> tuple[tf.Tensor, ...]:
        logits = _logits(scores, pairs.mask, highest.dtype)  # [M, H, R, R]
        tile_max = tf.math.unsorted_segment_max(tf.reduce_max(logits, axis=-1), tile, number)
        tile_max = tf.maximum(highest, tile_max)  # [t, H, R]
        weights = tf.exp(logits - tf.gather(tile_max, tile)[..., None])
        return tf.cast(weights, scores.dtype), tf.reduce_sum(weights, axis=-1), tile_max

    def by_tile(values: tf.Tensor) -> tf.Tensor:
        """The sums of each query tile: [M, ...] to [t, ...]."""
        if compiles_with_xla():
            return tf.math.unsorted_segment_sum(values, tile, number)
        return tf.math.segment_sum(values, tile)

    if weighing.scores_are_small is None:
        weights, totals, highest = by_softmax()  # [M, H, R, R], [M, H, R], [t, H, R]
    else:
        weights, totals, highest = tf.cond(weighing.scores_are_small, by_exponentials, by_softmax)
    if weighing.dropout is not None:
        weights = weighing.dropout.fold_in(start)(weights)
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
    tiles: Projected,
    weighing: Weighing,
    upstream: tf.Tensor,
    mean: tf.Tensor,
    log_total: tf.Tensor,
) -> list[tf.Tensor]:
    """The gradients of query, key, value and tables."""
    wide, narrow = log_total.dtype, tiles.query.dtype

    def add_round(start: tf.Tensor, pairs: TilePairs, sums: list[tf.Tensor]) -> list[tf.Tensor]:
        query, key, value = pairs.gathered(tiles)
        sources = [query, key, *weighing.tables]
        with tf.GradientTape() as tape:
            tape.watch(sources)
            scores = pairs.scores(*sources)
        pair_upstream, pair_mean, pair_total = (
            tf.gather(one, pairs.query_tile) for one in (upstream, mean, log_total)
        )
        to_weights = tf.einsum("MHFE,MHTE->MHFT", pair_upstream, value)
        kept = () if weighing.dropout is None else weighing.dropout.fold_in(start).draw(scores)
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

    inputs = (*tiles, *weighing.tables)
    sums = rounds.run(add_round, [tf.zeros(tf.shape(one), wide) for one in inputs])
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
    weights = tf.exp(_logits(scores, mask, wide) - log_total)
    dropped = tf.cast(weights, narrow)
    if kept:
        dropped, to_weights = kept_units(dropped, *kept), kept_units(to_weights, *kept)
    return dropped, tf.cast(weights * (tf.cast(to_weights, wide) - mean), narrow)


def _logits(scores: tf.Tensor, mask: tf.Tensor, wide: tf.DType) -> tf.Tensor:
    """The scores, masked."""
    return tf.cast(scores, wide) + tf.where(mask, tf.zeros([], wide), MASKED)
