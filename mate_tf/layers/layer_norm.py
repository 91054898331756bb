"""Layer normalisation (Ba et al., 2016) in few passes over memory.

Keras's takes a dozen on a CPU, four times as long in bfloat16, and there are two in each layer of
an encoder. Means are products with a vector here, which XLA and TensorFlow do well.

Shapes: N rows, D values in each.
"""

import functools

import keras
import tensorflow as tf

from mate_tf.layers.compilation import OnePass
from mate_tf.layers.custom_gradient import custom_gradient


@keras.saving.register_keras_serializable(package="mate_tf")
class LayerNorm(keras.layers.Layer):
    """Normalises the last axis to mean 0 and variance 1, then scales and shifts it.

    Called on float [..., D] and, where there is one, a residual of the same shape that is added to
    it before; returns [..., D] of the layer's compute dtype. It computes in float32, of whatever
    dtype the inputs are, and keeps for the gradient what it was called on alone.

    Args:
        epsilon: added to the variance.
    """

    def __init__(self, epsilon: float = 1e-12, **kwargs):
        super().__init__(autocast=False, **kwargs)  # float32 inputs stay what they are
        self.epsilon = epsilon

    def build(self, input_shape) -> None:
        size = (input_shape[-1],)
        options = dict(dtype="float32", autocast=False)
        self.gamma = self.add_weight(size, "ones", name="gamma", **options)
        self.beta = self.add_weight(size, "zeros", name="beta", **options)

    def call(self, inputs: tf.Tensor, residual: tf.Tensor | None = None) -> tf.Tensor:
        forward, backward = _passes(self.epsilon, self.compute_dtype)
        gamma, beta = tf.convert_to_tensor(self.gamma), tf.convert_to_tensor(self.beta)
        rows = tf.reshape(inputs, [-1, gamma.shape[0]])  # [N, D]
        terms = [rows] if residual is None else [rows, tf.reshape(residual, tf.shape(rows))]

        @custom_gradient
        def normalised(gamma: tf.Tensor, beta: tf.Tensor, *terms: tf.Tensor):
            def gradient(upstream: tf.Tensor):
                of_sum, of_gamma, of_beta = backward(upstream, gamma, *terms)
                return of_gamma, of_beta, *(tf.cast(of_sum, term.dtype) for term in terms)

            # A function on a tape is another program, of other roundings.
            return forward(*map(tf.stop_gradient, (gamma, beta, *terms))), gradient

        outputs = tf.reshape(normalised(gamma, beta, *terms), tf.shape(inputs))
        return tf.ensure_shape(outputs, inputs.shape)

    def compute_output_shape(self, input_shape, *_):
        return input_shape

    def get_config(self):
        return super().get_config() | {"epsilon": self.epsilon}


@functools.cache
def _passes(epsilon: float, dtype: str) -> tuple[OnePass, OnePass]:
    """Forward and backward, of all layers alike: XLA compiles each only once for a shape."""

    def normal_of(*terms: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """What has mean 0 and variance 1, float32 [N, D], and what it was multiplied by [N, 1]."""
        total = tf.cast(terms[0], tf.float32)
        for term in terms[1:]:
            total += tf.cast(term, tf.float32)
        centred = total - _mean(total)
        scale = tf.math.rsqrt(_mean(centred * centred) + epsilon)
        return centred * scale, scale

    def normalised_sum(gamma: tf.Tensor, beta: tf.Tensor, *terms: tf.Tensor) -> tf.Tensor:
        normal, _ = normal_of(*terms)
        return tf.cast(normal * gamma + beta, dtype)

    def gradients(
        upstream: tf.Tensor, gamma: tf.Tensor, *terms: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        """By the sum [N, D], gamma and beta [D]."""
        normal, scale = normal_of(*terms)
        upstream = tf.cast(upstream, tf.float32)
        of_normal = upstream * gamma
        of_sum = scale * (of_normal - _mean(of_normal) - normal * _mean(of_normal * normal))
        return of_sum, tf.reduce_sum(upstream * normal, 0), tf.reduce_sum(upstream, 0)

    return OnePass(normalised_sum), OnePass(gradients)


def _mean(rows: tf.Tensor) -> tf.Tensor:
    """Of each row: float32 [N, D] to [N, 1]."""
    size = tf.shape(rows)[1]
    return tf.matmul(rows, tf.fill([size, 1], 1.0 / tf.cast(size, tf.float32)))
