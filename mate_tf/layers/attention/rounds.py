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

from mate_tf.layers.attention.relations import relation_scores
from mate_tf.layers.attention.softmax import MASKED, exponentials
from mate_tf.layers.basic import SeededDropout
from mate_tf.layers.compilation import custom_gradient
from mate_tf.private_apis import compiles_with_xla


class TilePairs(NamedTuple):
    """The pairs of tiles of a round, those of a query tile side by side.

    Attributes:
        query_tile: int32 [M], indices of tiles, ascending.
        key_tile: int32 [M].
        mask: bool [M, 1, R, R], the pattern.
        relations: one-hot, float [M, K, R, R], or None.
    """

    query_tile: tf.Tensor
    key_tile: tf.Tensor
    mask: tf.Tensor
    relations: tf.Tensor | None


class Weighing(NamedTuple):
    """What else decides the weights, in one layer.

    Attributes:
        tables: the heads' weights of the relations; see `relation_scores`.
        dropout: applied to the attention probabilities, or None.
        scores_are_small: bool, the result of `softmax.scores_are_small`; None with relations.
    """

    tables: tuple[tf.Tensor, ...] = ()
    dropout: SeededDropout | None = None
    scores_are_small: tf.Tensor | None = None


class Sums(NamedTuple):
    """The softmax over some of the keys.

    Attributes:
        context: float [t, H, R, E], the sum of the values, each times exp(score - highest).
        total: float [t, H, R], the sum of these weights.
        highest: float [t, H, R], the largest score so far; zero if all are known to be small.
    """

    context: tf.Tensor
    total: tf.Tensor
    highest: tf.Tensor


class Rounds:
    """All pairs of tiles that meet, for the layers of an encoder.

    In a graph the layers share one program for each direction, which is made once.

    Args:
        num_pairs: int32, the number of pairs.
        size: the largest number of pairs of a round.
        pairs: returns the pairs of the round that starts with a pair, int32.

    Attributes:
        first: the pairs of the first round; None in XLA.
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


def attend_in_rounds(
    rounds: Rounds, query: tf.Tensor, key: tf.Tensor, value: tf.Tensor, weighing: Weighing
) -> tf.Tensor:
    """Attention between some pairs of tiles.

    Args:
        rounds: the pairs of tiles.
        query: float [T, H, R, E], already scaled.
        key: float [T, H, R, E].
        value: float [T, H, R, E].
        weighing: relations and dropout.

    Returns:
        float [T, H, R, E]; zero for a query without a key.
    """

    @custom_gradient
    def attended(query: tf.Tensor, key: tf.Tensor, value: tf.Tensor, *tables: tf.Tensor):
        given = weighing._replace(tables=tables)
        context, log_total = rounds.call_shared(_forward, query, key, value, given)

        def gradient(upstream: tf.Tensor) -> list[tf.Tensor]:
            # The sum of a query's probabilities, each times its gradient.
            mean = tf.reduce_sum(tf.cast(upstream * context, log_total.dtype), -1)  # [T, H, R]
            return rounds.call_shared(
                _backward, query, key, value, given, upstream, mean, log_total
            )

        return context, gradient

    return attended(query, key, value, *weighing.tables)


def _forward(
    rounds: Rounds, query: tf.Tensor, key: tf.Tensor, value: tf.Tensor, weighing: Weighing
) -> tuple[tf.Tensor, tf.Tensor]:
    """The context [T, H, R, E], and the logarithm of the sum of exponentials [T, H, R]."""
    lowest = _lowest(query, weighing)
    wide = lowest.dtype

    def add_round(start: tf.Tensor, pairs: TilePairs, state: Sums) -> Sums:
        tiles = pairs.query_tile[0] + tf.range(_num_query_tiles(pairs))
        before = Sums(*(tf.gather(one, tiles) for one in state))
        new = _sums(start, pairs, (query, key, value), weighing, before.highest)
        kept = tf.exp(before.highest - new.highest)  # [t, H, R]
        after = Sums(
            before.context * kept[..., None] + tf.cast(new.context, wide),
            before.total * kept + new.total,
            new.highest,
        )
        pairs_of_states = zip(state, after, strict=True)
        return Sums(
            *(tf.tensor_scatter_nd_update(old, tiles[:, None], new) for old, new in pairs_of_states)
        )

    def in_rounds() -> tuple[tf.Tensor, tf.Tensor]:
        state = Sums(tf.zeros(tf.shape(query), wide), tf.zeros_like(lowest), lowest)
        return _finished(rounds.run(add_round, state), query)

    first = rounds.first
    if first is None:
        return in_rounds()

    def in_one_round() -> tuple[tf.Tensor, tf.Tensor]:
        zero = tf.zeros([], tf.int32)
        return _finished(_sums(zero, first, (query, key, value), weighing, lowest), query)

    return tf.cond(rounds.num_pairs <= rounds.size, in_one_round, in_rounds)


def _lowest(query: tf.Tensor, weighing: Weighing) -> tf.Tensor:
    """What no score is below, float [T, H, R], at least float32."""
    # Above all masked scores, so a query without a key gets no weights and no gradient.
    wide = query.dtype if query.dtype.size > 4 else tf.float32
    lowest = tf.fill(tf.shape(query)[:-1], tf.constant(MASKED / 2, wide))
    if weighing.scores_are_small is None:
        return lowest
    return tf.where(weighing.scores_are_small, tf.zeros_like(lowest), lowest)


def _sums(
    start: tf.Tensor,
    pairs: TilePairs,
    query_key_value: tuple[tf.Tensor, tf.Tensor, tf.Tensor],
    weighing: Weighing,
    highest: tf.Tensor,
) -> Sums:
    """The sums of one round, from the highest scores before it, [t, H, R]."""
    query, key, value = _gathered(pairs, *query_key_value)  # [M, H, R, E]
    scores = _scores(pairs, query, key, *weighing.tables)
    tile, number = pairs.query_tile - pairs.query_tile[0], _num_query_tiles(pairs)

    def by_exponentials() -> tuple[tf.Tensor, ...]:
        weights, totals = exponentials(scores, pairs.mask)
        return tf.ensure_shape(weights, scores.shape), totals[..., 0], highest

    def by_softmax() -> tuple[tf.Tensor, ...]:
        logits = _logits(pairs, scores, highest.dtype)  # [M, H, R, R]
        of_tile = tf.math.unsorted_segment_max(tf.reduce_max(logits, axis=-1), tile, number)
        of_tile = tf.maximum(highest, of_tile)  # [t, H, R]
        weights = tf.exp(logits - tf.gather(of_tile, tile)[..., None])
        return tf.cast(weights, scores.dtype), tf.reduce_sum(weights, axis=-1), of_tile

    if weighing.scores_are_small is None:
        weights, totals, highest = by_softmax()  # [M, H, R, R], [M, H, R], [t, H, R]
    else:
        weights, totals, highest = tf.cond(weighing.scores_are_small, by_exponentials, by_softmax)
    if weighing.dropout is not None:
        weights = weighing.dropout.fold_in(start)(weights)
    parts = tf.einsum("MHFT,MHTE->MHFE", weights, value)
    return Sums(_sums_by_tile(parts, tile, number), _sums_by_tile(totals, tile, number), highest)


def _finished(sums: Sums, query: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """The context, and the logarithm of the sum of exponentials."""
    total = tf.cast(sums.total, sums.context.dtype)[..., None]
    context = tf.cast(tf.math.divide_no_nan(sums.context, total), query.dtype)
    some = tf.where(sums.total > 0, sums.total, tf.ones_like(sums.total))
    return tf.ensure_shape(context, query.shape), sums.highest + tf.math.log(some)


def _backward(
    rounds: Rounds,
    query: tf.Tensor,
    key: tf.Tensor,
    value: tf.Tensor,
    weighing: Weighing,
    upstream: tf.Tensor,
    mean: tf.Tensor,
    log_total: tf.Tensor,
) -> list[tf.Tensor]:
    """The gradients of query, key, value and tables."""
    wide, narrow = log_total.dtype, query.dtype
    inputs = (query, key, value, *weighing.tables)

    def add_round(start: tf.Tensor, pairs: TilePairs, sums: list[tf.Tensor]) -> list[tf.Tensor]:
        of_query, of_key, of_value = _gathered(pairs, query, key, value)
        sources = [of_query, of_key, *weighing.tables]
        with tf.GradientTape() as tape:
            tape.watch(sources)
            scores = _scores(pairs, *sources)
        of_context, of_mean, of_total = (
            tf.gather(one, pairs.query_tile) for one in (upstream, mean, log_total)
        )
        weights = tf.exp(_logits(pairs, scores, wide) - of_total[..., None])  # [M, H, R, R]
        dropped = tf.cast(weights, narrow)
        of_weights = tf.einsum("MHFE,MHTE->MHFT", of_context, of_value)
        if weighing.dropout is not None:
            dropout = weighing.dropout.fold_in(start)
            dropped, of_weights = dropout(dropped), dropout(of_weights)
        of_scores = weights * (tf.cast(of_weights, wide) - of_mean[..., None])
        to_query, to_key, *to_tables = tape.gradient(scores, sources, tf.cast(of_scores, narrow))
        to_value = tf.einsum("MHFT,MHFE->MHTE", dropped, of_context)
        parts = (to_query, to_key, to_value)
        tiles = (pairs.query_tile, pairs.key_tile, pairs.key_tile)
        return [
            *(
                tf.tensor_scatter_nd_add(total, tile[:, None], tf.cast(part, wide))
                for total, tile, part in zip(sums, tiles, parts, strict=False)
            ),
            *(total + tf.cast(part, wide) for total, part in zip(sums[3:], to_tables, strict=True)),
        ]

    sums = rounds.run(add_round, [tf.zeros(tf.shape(one), wide) for one in inputs])
    return [tf.cast(total, narrow) for total in sums]


def _scores(pairs: TilePairs, query: tf.Tensor, key: tf.Tensor, *tables: tf.Tensor) -> tf.Tensor:
    """The scores of a round, [M, H, R, R]."""
    scores = tf.einsum("MHFE,MHTE->MHFT", query, key)
    if pairs.relations is None:
        return scores
    return scores + relation_scores(query, pairs.relations, *tables)


def _logits(pairs: TilePairs, scores: tf.Tensor, wide: tf.DType) -> tf.Tensor:
    return tf.cast(scores, wide) + tf.where(pairs.mask, tf.zeros([], wide), MASKED)


def _gathered(pairs: TilePairs, query: tf.Tensor, key: tf.Tensor, value: tf.Tensor) -> tuple:
    """The tiles of each pair: float [M, H, R, E] each."""
    return (
        tf.gather(query, pairs.query_tile),
        tf.gather(key, pairs.key_tile),
        tf.gather(value, pairs.key_tile),
    )


def _num_query_tiles(pairs: TilePairs) -> int | tf.Tensor:
    """t; in XLA the most that there may be."""
    if compiles_with_xla():
        return pairs.query_tile.shape[0]
    return pairs.query_tile[-1] - pairs.query_tile[0] + 1


def _sums_by_tile(values: tf.Tensor, tile: tf.Tensor, number: int | tf.Tensor) -> tf.Tensor:
    """Sums the values of each query tile: [M, ...] to [t, ...]."""
    if compiles_with_xla():
        return tf.math.unsorted_segment_sum(values, tile, number)
    return tf.math.segment_sum(values, tile)
