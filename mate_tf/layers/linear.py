"""The affine map that all projections share.

Shapes: D hidden, U units.

Gaussian error linear units (Hendrycks and Gimpel, 2016), in training at a fraction of the cost.

TensorFlow's gradient of them keeps several tensors of the size of the input, the widest of an
encoder, and passes over memory a dozen times: a quarter of a training step on a CPU.
"""

import math

import keras
import tensorflow as tf

from mate_tf.layers.compilation import OnePass, has_constant_kernels
from mate_tf.layers.custom_gradient import custom_gradient

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


@keras.saving.register_keras_serializable(package="mate_tf")
class Linear(keras.layers.Layer):
    """y = activation(x W + b), computed on a matrix so that TensorFlow fuses it.

    Called on float [..., D]; returns float [..., U]. Keras's Dense multiplies tensors of higher
    rank in a way that TensorFlow's CPU kernels do not fuse, at up to three times the cost.

    Args:
        units: U.
        activation: "gelu" (exact), "gelu_tanh" (the approximation), "tanh" or None.
        initializer_range: standard deviation of the kernel's truncated normal initializer.
    """

    def __init__(
        self,
        units: int,
        activation: str | None = None,
        initializer_range: float = 0.02,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.units = units
        self.activation = activation
        self.initializer_range = initializer_range

    def build(self, input_shape) -> None:
        self.kernel = self.add_weight(
            shape=(input_shape[-1], self.units),
            initializer=keras.initializers.TruncatedNormal(stddev=self.initializer_range),
            name="kernel",
        )
        self.bias = self.add_weight(shape=(self.units,), initializer="zeros", name="bias")

    def call(self, inputs: tf.Tensor, training: bool | None = None) -> tf.Tensor:
        kernel = self._constant_kernel() if has_constant_kernels() else self._cast_kernel()
        bias = tf.convert_to_tensor(self.bias)
        outputs = tf.matmul(tf.reshape(inputs, [-1, kernel.shape[0]]), kernel)
        outputs = tf.nn.bias_add(outputs, bias)  # [prod(...), U]
        if self.activation in ("gelu", "gelu_tanh"):
            outputs = gelu(outputs, self.activation == "gelu_tanh", training)
        elif self.activation == "tanh":
            outputs = tf.tanh(outputs)
        if inputs.shape.rank == 2:
            return outputs
        return tf.reshape(outputs, tf.concat([tf.shape(inputs)[:-1], [self.units]], 0))

    def _cast_kernel(self) -> tf.Tensor:
        # Not keras.Variable.value alone: convert_to_tensor applies the mixed-precision cast.
        return tf.convert_to_tensor(self.kernel)

    def _constant_kernel(self) -> tf.Tensor:
        with tf.init_scope():
            value = self._cast_kernel().numpy()
        return tf.constant(value)

    def compute_output_shape(self, input_shape):
        return (*input_shape[:-1], self.units)

    def get_config(self):
        return super().get_config() | {
            "units": self.units,
            "activation": self.activation,
            "initializer_range": self.initializer_range,
        }
