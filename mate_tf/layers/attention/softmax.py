"""Sums of values weighted by a masked softmax of attention scores.

Shapes: B batch, H heads, F from, T to, t some of these, E head size, ... any axes before them.
"""

import functools
from collections.abc import Sequence
from typing import NamedTuple

import tensorflow as tf

from mate_tf.layers.basic import SeededDropout
from mate_tf.layers.compilation import OnePass, compiles_one_pass, custom_gradient, portable_graph
from mate_tf.private_apis import compiles_with_xla

# Large enough to vanish in the softmax. Small enough that a query without a key, such as padding,
# gets finite, equal probabilities.
MASKED = -1e9
# exp(60) is 1e26: float32 holds the sum of a million such weights times values of a million. And
# exp(-60) times a millionth is far above its smallest number.
_SMALL = 60.0


class Attended(NamedTuple):
    """Some of the keys."""

    scores: tf.Tensor  # float [..., F, t]
    mask: tf.Tensor | None  # bool, broadcasts to the scores; False for a key that takes no part
    values: tf.Tensor  # float, the values of the keys
    equation: str  # of tf.einsum, from [..., F, t] and the values to [..., F, E]


def weighted_sum(
    attended: Sequence[Attended],
    dropout: SeededDropout | None = None,
    scores_are_small: tf.Tensor | None = None,
) -> tf.Tensor:
    """The sum of the values of all T keys, weighted by a softmax of their scores: [..., F, E].

    It is computed in float32, whatever the dtype of the scores. If the scores are small (the result
    of `scores_are_small`), so are their exponentials, and no maximum is subtracted first. For a
    query without a key it is finite, and has no other meaning.
    """

    def by_softmax() -> tf.Tensor:
        scores, masks, *_ = zip(*attended, strict=True)
        probabilities = masked_softmax(scores, masks)
        if dropout is not None:
            probabilities = dropout(probabilities)
        split = [probabilities]
        if len(attended) > 1:
            sizes = [tf.shape(part.scores)[-1] for part in attended]
            split = tf.split(probabilities, sizes, axis=-1)
        parts = zip(split, attended, strict=True)
        return tf.add_n([tf.einsum(part.equation, weights, part.values) for weights, part in parts])

    def by_exponentials() -> tf.Tensor:
        sums, totals = [], []
        for part in attended:
            given = [part.scores] if part.mask is None else [part.scores, part.mask]
            weights, total = exponentials(*given)
            weights = tf.ensure_shape(weights, part.scores.shape)
            sums.append(tf.einsum(part.equation, weights, part.values))
            totals.append(total)
        return tf.ensure_shape(_quotient(*sums, *totals), sums[0].shape)

    if scores_are_small is None or dropout is not None:
        return by_softmax()
    return tf.cond(scores_are_small, by_exponentials, by_softmax)


def dense_attention(
    query: tf.Tensor,
    key: tf.Tensor,
    value: tf.Tensor,
    mask: tf.Tensor | None = None,
    *,
    bias: tf.Tensor | None = None,
    temperature: float = 1.0,
    dropout: SeededDropout | None = None,
    scores_are_small: tf.Tensor | None = None,
) -> tf.Tensor:
    """Scaled dot-product attention over all pairs (Vaswani et al., 2017, equation 1).

    Args:
        query: float [B, H, F, E].
        key, value: float [B, H, T, E].
        mask: bool, broadcasts to [B, H, F, T]; True where a query may attend to a key.
        bias: float, broadcasts to [B, H, F, T]; added to the scores after their division.
        temperature: the scores are divided by it and by sqrt(E).
        dropout: applied to the attention probabilities.
        scores_are_small: as in `weighted_sum`.

    Returns float [B, H, F, E].
    """
    query *= tf.cast(1.0 / (temperature * query.shape[-1] ** 0.5), query.dtype)
    scores = tf.einsum("BHFE,BHTE->BHFT", query, key)
    if bias is not None:
        scores += bias
    attended = [Attended(scores, mask, value, "BHFT,BHTE->BHFE")]
    return weighted_sum(attended, dropout, scores_are_small)


def scores_are_small(
    query: tf.Tensor, key: tf.Tensor, scale: float, *biases: tf.Tensor
) -> tf.Tensor | None:
    """Whether float32 holds the exponentials of all scores, judged by the vectors' lengths.

    The scores are products of float [..., E] times a scale, and one bias or none. None if it is
    unknown or no help: without compiling, and within XLA, which optimizes this itself.
    """
    if compiles_with_xla() or not compiles_one_pass() or query.dtype == tf.float16:
        return None
    largest = _largest_product(query, key) * scale
    for bias in biases:
        largest += tf.cast(tf.reduce_max(tf.abs(bias)), tf.float32)
    return largest <= _SMALL


@OnePass
def _largest_product(query: tf.Tensor, key: tf.Tensor) -> tf.Tensor:
    """The longest query's length times the longest key's."""

    def longest(vectors: tf.Tensor) -> tf.Tensor:
        size = tf.shape(vectors)[-1]
        squares = tf.square(tf.cast(tf.reshape(vectors, [-1, size]), tf.float32))
        # A product with ones, because XLA sums rows number by number.
        return tf.sqrt(tf.reduce_max(tf.matmul(squares, tf.ones([size, 1]))))

    return longest(query) * longest(key)


@OnePass
def exponentials(scores: tf.Tensor, mask: tf.Tensor | None = None) -> tuple[tf.Tensor, tf.Tensor]:
    """Exponentials of small scores [..., F, t], in their dtype; their sums, float32 [..., F, 1]."""
    wide = tf.cast(scores, tf.float32)
    weights = tf.exp(wide if mask is None else tf.where(mask, wide, MASKED))
    return tf.cast(weights, scores.dtype), tf.reduce_sum(weights, axis=-1, keepdims=True)


@OnePass
def _quotient(*sums_and_totals: tf.Tensor) -> tf.Tensor:
    """The sum of the first half divided by the sum of the second half."""
    half = len(sums_and_totals) // 2
    wide = tf.add_n([tf.cast(part, tf.float32) for part in sums_and_totals[:half]])
    quotient = tf.math.divide_no_nan(wide, tf.add_n(sums_and_totals[half:]))
    return tf.cast(quotient, sums_and_totals[0].dtype)


def masked_softmax(scores: Sequence[tf.Tensor], masks: Sequence[tf.Tensor | None]) -> tf.Tensor:
    """Softmax over the last axis, in float32, from parts [..., F, t] to [..., F, T] of their dtype.

    The masks, bool, broadcast to the parts; all are None, or none. False entries get probability 0,
    unless the whole row is False.
    """
    dtype = scores[0].dtype
    if dtype == tf.bfloat16 and _is_exact():
        return _softmax(masked_logits(dtype, scores, masks))
    return tf.cast(tf.nn.softmax(masked_logits(tf.float32, scores, masks)), dtype)


def masked_logits(
    dtype: tf.DType, scores: Sequence[tf.Tensor], masks: Sequence[tf.Tensor | None]
) -> tf.Tensor:
    """The parts [..., F, t] of the scores as one, `MASKED` added where a mask is False."""
    logits = tf.cast(_joined(scores), dtype)
    if masks[0] is None:
        return logits
    # A sum instead of a selection, because its gradient costs nothing.
    return logits + tf.cast(tf.where(_joined(masks), 0.0, MASKED), dtype)


def _joined(parts: Sequence[tf.Tensor]) -> tf.Tensor:
    return tf.concat(parts, axis=-1) if len(parts) > 1 else parts[0]


@custom_gradient
def _softmax(logits: tf.Tensor):
    """Softmax of bfloat16 with a gradient in float32."""
    probabilities = tf.nn.softmax(logits)

    def gradient(upstream: tf.Tensor) -> tf.Tensor:
        return tf.ensure_shape(_softmax_gradient(probabilities, upstream), logits.shape)

    return probabilities, gradient


@OnePass
def _softmax_gradient(probabilities: tf.Tensor, upstream: tf.Tensor) -> tf.Tensor:
    wide, upstream = tf.cast(probabilities, tf.float32), tf.cast(upstream, tf.float32)
    mean = tf.reduce_sum(wide * upstream, axis=-1, keepdims=True)
    return tf.cast(wide * (upstream - mean), probabilities.dtype)


def _is_exact() -> bool:
    """Whether TensorFlow computes the softmax of bfloat16 in float32, as oneDNN and CUDA do."""
    # XLA and Eigen do not, and an exported model may run anywhere.
    return not compiles_with_xla() and not portable_graph.is_on and _is_exact_here()


@functools.cache
def _is_exact_here() -> bool:
    with tf.init_scope():
        logits = tf.cast(tf.random.stateless_normal([8, 1000], seed=[0, 0]), tf.bfloat16)
        narrow = tf.function(tf.nn.softmax, autograph=False)(logits)
        wide = tf.cast(tf.nn.softmax(tf.cast(logits, tf.float32)), tf.bfloat16)
        # They differ by at most one unit in the last place.
        return bool(tf.reduce_all(tf.abs(narrow - wide) <= 2.0**-7 * wide))
