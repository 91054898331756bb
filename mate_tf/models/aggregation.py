"""Choosing what to compute from the selected cells: logits and losses (TAPAS, section 3).

Shapes: B batch, S sequence, D hidden, A aggregations, of which 0 is NONE, 1 SUM, 2 AVERAGE and
3 COUNT.
"""

from typing import Literal

import keras
import numpy as np
import tensorflow as tf

AverageApproximation = Literal["ratio", "first_order", "second_order"]
_EPSILON = 1e-10
_LARGEST = 1e30  # expected sum or average: times any loss's factor a number of single precision
_SMALLEST = float(np.finfo(np.float32).tiny)  # of a number with a finite logarithm


def log_aggregation_probability(logits):
    """Log of the probability that some function is applied, [B, A] to [B]."""
    return tf.reduce_logsumexp(logits[:, 1:], axis=-1) - tf.reduce_logsumexp(logits, axis=-1)


def needs_aggregation(logits, answer, label_ids, cell_select_pref: float):
    """Decides which examples have an answer that must be computed.

    An answer that is no number is selected; a number that is in no cell is computed; for a number
    that is also in a cell, the model's own preference decides. No gradient passes.

    Args:
        logits: float32 [B, A].
        answer: float32 [B], NaN where the answer is no number.
        label_ids: int32 [B, S], 1 for the tokens of the answer.
        cell_select_pref: up to this probability of an aggregation, cells are selected.

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
    """The number to expect when cells and aggregation are drawn as the model believes.

    Args:
        probabilities: float32 [B, S], that the token is selected.
        numeric_values: float32 [B, S], the number of the token's cell, NaN without one.
        numeric_values_scale: float32 [B, S], over how many tokens the cell spreads; an infinite
            one makes a token count for nothing.
        row_ids: int32 [B, S]; question, padding and headers (row 0) do not count.
        logits: float32 [B, 4].
        temperature: softens the choice among SUM, AVERAGE and COUNT.
        average_approximation: how the expected average is estimated: the ratio of the expected
            sum and count, or a Taylor expansion of one over the count to the order given.

    Returns:
        float32 [B].
    """
    scale = tf.where(numeric_values_scale > 0, numeric_values_scale, 1.0)  # NaN becomes 1
    weights = probabilities / scale * tf.cast(row_ids > 0, tf.float32)  # [B, S]
    values = tf.where(tf.math.is_nan(numeric_values), 0.0, numeric_values)  # [B, S]
    count = tf.reduce_sum(weights, axis=1, keepdims=True)  # [B, 1]
    total = tf.reduce_sum(weights * values, axis=1, keepdims=True)  # [B, 1]
    total = tf.clip_by_value(total, -_LARGEST, _LARGEST)  # of infinity the gradients are none
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
    return tf.reduce_sum(results * tf.nn.softmax(logits[:, 1:] / temperature), axis=1)


def logistic_noise(shape, seed):
    """Noise that makes the logit of a decision one of the binary concrete distribution.

    The sigmoid of (logit + noise) / temperature is a relaxed draw (Maddison et al., 2017).

    Args:
        shape: of the noise.
        seed: int32 [2].
    """
    uniform = tf.random.stateless_uniform(shape, seed, _SMALLEST)
    return tf.math.log(uniform) - tf.math.log1p(-uniform)


def gumbel_noise(shape, seed):
    """Noise that makes the softmax of (logits + noise) / temperature a relaxed draw.

    Args:
        shape: of the noise.
        seed: int32 [2].
    """
    uniform = tf.random.stateless_uniform(shape, seed, _SMALLEST)
    return -tf.math.log(-tf.math.log(uniform))


def answer_loss(result, answer, computed, huber_loss_delta: float, normalize: bool = False):
    """Huber loss between the expected and the true number.

    Args:
        result: float32 [B], what `expected_result` gave.
        answer: float32 [B], NaN without a number.
        computed: float32 [B], 1 where the answer is computed; the loss is 0 elsewhere.
        huber_loss_delta: the error beyond which the loss grows linearly.
        normalize: whether both are first divided by the larger of them.

    Returns:
        float32 [B].
    """
    answer = tf.where(tf.math.is_nan(answer), 0.0, answer)
    error = tf.abs(answer - result)
    if normalize:
        error /= tf.stop_gradient(tf.maximum(tf.abs(result), tf.abs(answer)) + _EPSILON)
    near = tf.minimum(error, huber_loss_delta)
    loss = 0.5 * tf.square(near) + huber_loss_delta * (error - near)
    return tf.where(computed > 0, loss, 0.0)  # no product, for the loss may be infinite


@keras.saving.register_keras_serializable(package="mate_tf")
class AggregationHead(keras.layers.Layer):
    """Logits of the aggregations, in float32: the encoder's pooled output [B, D] to [B, A].

    The weights have the names of the original's checkpoints.
    """

    def __init__(self, num_aggregation_labels: int = 4, **kwargs) -> None:
        super().__init__(dtype="float32", **{k: v for k, v in kwargs.items() if k != "dtype"})
        self.num_aggregation_labels = num_aggregation_labels

    def build(self, input_shape) -> None:
        self.output_weights_agg = self.add_weight(
            (self.num_aggregation_labels, input_shape[-1]),
            keras.initializers.TruncatedNormal(stddev=0.02),
            name="output_weights_agg",
        )
        self.output_bias_agg = self.add_weight(
            (self.num_aggregation_labels,), "zeros", name="output_bias_agg"
        )

    def call(self, pooled_output):
        return tf.matmul(pooled_output, self.output_weights_agg, transpose_b=True) + (
            self.output_bias_agg
        )

    def get_config(self):
        return super().get_config() | {"num_aggregation_labels": self.num_aggregation_labels}
