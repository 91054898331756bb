"""The affine map that all projections share.

Shapes: D hidden, U units.
"""

import keras
import tensorflow as tf

from mate_tf.compilation import has_constant_kernels
from mate_tf.gelu import gelu


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
