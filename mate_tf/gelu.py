"""Gaussian error linear units (Hendrycks and Gimpel, 2016), in training at a fraction of the cost.

TensorFlow's gradient of them keeps several tensors of the size of the input, the widest of an
encoder, and passes over memory a dozen times: a quarter of a training step on a CPU.
"""

import math

import tensorflow as tf

from mate_tf.compilation import OnePass
from mate_tf.custom_gradient import custom_gradient

_CUBIC = 0.044715  # of the approximation, their section 4
_SLOPE = math.sqrt(2.0 / math.pi)


def gelu(inputs: tf.Tensor, approximate: bool, training: bool | None = False) -> tf.Tensor:
    """An input x times P(X <= x) of a standard normal X (their section 2).

    Args:
        inputs: float [...].
        approximate: by the hyperbolic tangent.
        training: keeps the input alone for the gradient, and computes in few passes over memory;
            else as a graph's optimizer fuses it with the projection before it.

    Returns:
        float [...].
    """
    if not training:
        return tf.nn.gelu(inputs, approximate)
    forward, derivative = _FUNCTIONS[approximate]

    @custom_gradient
    def with_gradient(inputs: tf.Tensor):
        def gradient(upstream: tf.Tensor) -> tf.Tensor:
            return tf.ensure_shape(derivative(inputs, upstream), inputs.shape)

        # A function on a tape is another program, of other roundings: recomputation would differ.
        outputs = forward(tf.stop_gradient(inputs))
        return tf.ensure_shape(outputs, inputs.shape), gradient

    return with_gradient(inputs)


def _exact(inputs: tf.Tensor) -> tf.Tensor:
    wide = _widened(inputs)
    return tf.cast(wide * _normal_cdf(wide), inputs.dtype)


def _exact_gradient(inputs: tf.Tensor, upstream: tf.Tensor) -> tf.Tensor:
    wide = _widened(inputs)
    density = tf.exp(-0.5 * tf.square(wide)) / math.sqrt(2.0 * math.pi)
    return _scaled(upstream, _normal_cdf(wide) + wide * density)


def _normal_cdf(values: tf.Tensor) -> tf.Tensor:
    return 0.5 * (1.0 + tf.math.erf(values / math.sqrt(2.0)))


def _approximate(inputs: tf.Tensor) -> tf.Tensor:
    wide = _widened(inputs)
    return tf.cast(0.5 * wide * (1.0 + _tanh(wide)), inputs.dtype)


def _approximate_gradient(inputs: tf.Tensor, upstream: tf.Tensor) -> tf.Tensor:
    wide = _widened(inputs)
    tanh = _tanh(wide)
    inner = _SLOPE * (1.0 + 3.0 * _CUBIC * tf.square(wide))
    return _scaled(upstream, 0.5 * (1.0 + tanh + wide * (1.0 - tf.square(tanh)) * inner))


def _tanh(values: tf.Tensor) -> tf.Tensor:
    return tf.tanh(_SLOPE * (values + _CUBIC * values * tf.square(values)))


def _widened(values: tf.Tensor) -> tf.Tensor:
    """In float32 where it is of fewer bits."""
    return tf.cast(values, tf.float32) if values.dtype.size < 4 else values


def _scaled(upstream: tf.Tensor, factor: tf.Tensor) -> tf.Tensor:
    return tf.cast(tf.cast(upstream, factor.dtype) * factor, upstream.dtype)


_FUNCTIONS = {
    False: (OnePass(_exact), OnePass(_exact_gradient)),
    True: (OnePass(_approximate), OnePass(_approximate_gradient)),
}
