"""Choosing what to compute from the selected cells: logits and losses (TAPAS, section 3).

Shapes: B batch, S sequence, D hidden, A aggregations, of which 0 is NONE, 1 SUM, 2 AVERAGE and
3 COUNT; others are learned only where they are known.
"""

from typing import Literal

import numpy as np
import tensorflow as tf

AverageApproximation = Literal["ratio", "first_order", "second_order"]
_EPSILON = 1e-10
_LARGEST = 1e30  # of an expected sum or average: still single precision times a loss's factor
_SMALLEST = float(np.finfo(np.float32).tiny)  # still has a finite logarithm


def log_aggregation_probability(logits):
    """Log of the probability that some function is applied, [B, A] to [B]."""
    return tf.reduce_logsumexp(logits[:, 1:], axis=-1) - tf.reduce_logsumexp(logits, axis=-1)


def needs_aggregation(logits, answer, label_ids, cell_select_pref: float):
    """Decides which examples have an answer to compute.

    An answer that is not a number is selected. A number that is in no cell is computed. For a
    number that is also in a cell, the model's own preference decides. No gradient passes.

    Args:
        logits: float32 [B, A].
        answer: float32 [B], NaN where the answer is no number.
        label_ids: int32 [B, S], 1 for the tokens of the answer.
        cell_select_pref: cells are selected up to this probability of an aggregation.

    Returns:
        float32 [B], 1 for an answer to compute.
    """
    prefers_cells = tf.exp(log_aggregation_probability(logits)) <= cell_select_pref  # [B]
    has_cells = tf.reduce_sum(label_ids, axis=1) > 0
    computed = ~tf.math.is_nan(answer) & ~(prefers_cells & has_cells)
    return tf.stop_gradient(tf.cast(computed, tf.float32))


def aggregation_loss(logits, aggregation_ids):
    """Cross-entropy with the known aggregation: [B, A] and int32 [B] to float32 [B]."""
    return tf.nn.sparse_softmax_cross_entropy_with_logits(aggregation_ids, logits)


def expected_result(
    probabilities,
    numeric_values,
    numeric_values_scale,
    row_ids,
    logits,
    temperature: float = 1.0,
    average_approximation: AverageApproximation = "ratio",
):
    """The expected number, if cells and aggregation are drawn as the model believes.

    Args:
        probabilities: float32 [B, S], that the token is selected.
        numeric_values: float32 [B, S], the number of the token's cell, NaN without one.
        numeric_values_scale: float32 [B, S], the number of the cell's tokens; infinite for a token
            that counts for nothing.
        row_ids: int32 [B, S]; question, padding and headers (row 0) do not count.
        logits: float32 [B, A].
        temperature: softens the choice among SUM, AVERAGE and COUNT.
        average_approximation: how the expected average is estimated: as the ratio of the expected
            sum and count, or by a Taylor expansion of 1 / count to the given order.

    Returns:
        float32 [B].
    """
    scale = tf.where(numeric_values_scale > 0, numeric_values_scale, 1.0)  # NaN becomes 1
    weights = probabilities / scale * tf.cast(row_ids > 0, tf.float32)  # [B, S]
    values = tf.where(tf.math.is_nan(numeric_values), 0.0, numeric_values)  # [B, S]
    count = tf.reduce_sum(weights, axis=1, keepdims=True)  # [B, 1]
    total = tf.reduce_sum(weights * values, axis=1, keepdims=True)  # [B, 1]
    total = tf.clip_by_value(total, -_LARGEST, _LARGEST)  # infinity has no gradients
    if average_approximation == "ratio":
        average = total / (count + _EPSILON)
    else:
        others = count - weights + 1.0  # [B, S], the count if this token is selected
        inverse = 1.0 / others
        if average_approximation == "second_order":
            variances = weights * (1.0 - weights)
            variance = tf.reduce_sum(variances, axis=1, keepdims=True) - variances  # [B, S]
            inverse *= 1.0 + variance / tf.square(others)
        average = tf.reduce_sum(weights * values * inverse, axis=1, keepdims=True)  # [B, 1]
        average = tf.clip_by_value(average, -_LARGEST, _LARGEST)
    results = tf.concat([total, average, count], axis=1)  # [B, 3]
    return tf.reduce_sum(results * tf.nn.softmax(logits[:, 1:4] / temperature), axis=1)


def logistic_noise(shape, seed):
    """Noise for a relaxed draw: the sigmoid of (logit + noise) / temperature.

    This is the binary concrete distribution (Maddison et al., 2017); `seed` is int32 [2].
    """
    uniform = tf.random.stateless_uniform(shape, seed, _SMALLEST)
    return tf.math.log(uniform) - tf.math.log1p(-uniform)


def gumbel_noise(shape, seed):
    """Noise for a relaxed draw: the softmax of (logits + noise) / temperature; seed int32 [2]."""
    uniform = tf.random.stateless_uniform(shape, seed, _SMALLEST)
    return -tf.math.log(-tf.math.log(uniform))


def answer_loss(result, answer, computed, huber_loss_delta: float, normalize: bool = False):
    """Huber loss between the expected and the true number.

    Args:
        result: float32 [B], of `expected_result`.
        answer: float32 [B], NaN without a number.
        computed: float32 [B], 1 where the answer is computed; the loss is 0 elsewhere.
        huber_loss_delta: the error beyond which the loss grows linearly.
        normalize: whether both are first divided by the larger one.

    Returns:
        float32 [B].
    """
    answer = tf.where(tf.math.is_nan(answer), 0.0, answer)
    error = tf.abs(answer - result)
    if normalize:
        error /= tf.stop_gradient(tf.maximum(tf.abs(result), tf.abs(answer)) + _EPSILON)
    near = tf.minimum(error, huber_loss_delta)
    loss = 0.5 * tf.square(near) + huber_loss_delta * (error - near)
    return tf.where(computed > 0, loss, 0.0)  # not a product: the loss may be infinite
