"""The small layers of an encoder: affine maps with activations, normalisation, dropout.

Layer normalisation (Ba et al., 2016) and, in training, Gaussian error linear units (Hendrycks and
Gimpel, 2016) take few passes over memory here. Keras's layer normalisation takes a dozen on a CPU.
TensorFlow's gradient of the units keeps several tensors as large as the widest input and takes a
quarter of a training step. The mask of dropout depends only on a seed. Keras's layer draws its seed
in each call, so a block that is computed twice, as in `recomputed`, would drop other units.

Shapes: D hidden, U units, N rows.
"""

import functools
import math
from typing import Any, NamedTuple

import keras
import tensorflow as tf

from mate_tf.layers.compilation import OnePass, Within, constant_kernels, custom_gradient
from mate_tf.private_apis import compiles_with_xla

# Weights start at zero, since they are read from a file next. Random numbers for all of them would
# take as long as half an answer.
weights_at_zero = Within("weights_at_zero")


def normal_initializer(stddev: float) -> keras.initializers.Initializer:
    """A truncated normal distribution, or zeros within `weights_at_zero`."""
    if weights_at_zero.is_on:
        return keras.initializers.Zeros()
    return keras.initializers.TruncatedNormal(stddev=stddev)


def attributes(layer: keras.layers.Layer, *names: str) -> dict[str, Any]:
    """Some attributes of a layer by name, for its config."""
    return {name: getattr(layer, name) for name in names}


def gelu(inputs: tf.Tensor, approximate: bool, training: bool | None = False) -> tf.Tensor:
    """An input x times P(X <= x) of a standard normal X (their section 2): float [...].

    It is exact, or approximated by the hyperbolic tangent. In training only the input is kept for
    the gradient; otherwise it is TensorFlow's own op, which fuses with the projection before it.
    """
    if not training:
        return tf.nn.gelu(inputs, approximate)
    forward, derivative = _gelu_passes(approximate)

    @custom_gradient
    def with_gradient(inputs: tf.Tensor):
        def gradient(upstream: tf.Tensor) -> tf.Tensor:
            return tf.ensure_shape(derivative(inputs, upstream), inputs.shape)

        # On a tape a function is another program that rounds differently: recomputation would too.
        outputs = forward(tf.stop_gradient(inputs))
        return tf.ensure_shape(outputs, inputs.shape), gradient

    return with_gradient(inputs)


@functools.cache
def _gelu_passes(approximate: bool) -> tuple[OnePass, OnePass]:
    """Forward and backward, at least in float32."""

    def widened(values: tf.Tensor) -> tf.Tensor:
        return tf.cast(values, tf.float32) if values.dtype.size < 4 else values

    def forward(inputs: tf.Tensor) -> tf.Tensor:
        return tf.cast(tf.nn.gelu(widened(inputs), approximate), inputs.dtype)

    def slope(wide: tf.Tensor) -> tf.Tensor:
        if not approximate:  # faster than by a tape
            cdf = 0.5 * (1.0 + tf.math.erf(wide / math.sqrt(2.0)))
            return cdf + wide * (tf.exp(-0.5 * tf.square(wide)) / math.sqrt(2.0 * math.pi))
        with tf.GradientTape() as tape:
            tape.watch(wide)
            outputs = tf.nn.gelu(wide, approximate)
        return tape.gradient(outputs, wide)

    def gradient(inputs: tf.Tensor, upstream: tf.Tensor) -> tf.Tensor:
        return tf.cast(widened(upstream) * slope(widened(inputs)), upstream.dtype)

    return OnePass(forward), OnePass(gradient)


@keras.saving.register_keras_serializable(package="mate_tf")
def gelu_tanh(inputs: tf.Tensor) -> tf.Tensor:
    """The approximation of `gelu`, of float [...], which Keras has under no name."""
    return tf.nn.gelu(inputs, approximate=True)


@keras.saving.register_keras_serializable(package="mate_tf")
class Linear(keras.layers.Dense):
    """Keras's Dense, computed on a matrix so that TensorFlow fuses product, bias and activation.

    Called on float [..., D]; returns float [..., U]. Dense multiplies tensors of higher rank, which
    TensorFlow's CPU kernels do not fuse, so it takes up to three times as long. All else is
    Dense's: its arguments, LoRA, and quantization, by which it computes as Dense does.

    The activation may also be "gelu_tanh"; "gelu" is the exact one. `initializer_range` is the
    standard deviation of a truncated normal `kernel_initializer`.
    """

    def __init__(
        self,
        units: int,
        activation: Any = None,
        initializer_range: float = 0.02,
        kernel_initializer: Any = None,
        **kwargs,
    ):
        activation = gelu_tanh if activation == "gelu_tanh" else activation
        initializer = kernel_initializer or normal_initializer(initializer_range)
        super().__init__(units, activation, kernel_initializer=initializer, **kwargs)

    def call(self, inputs: tf.Tensor, training: bool | None = None) -> tf.Tensor:
        # Not keras.Variable.value alone: convert_to_tensor applies the mixed-precision cast.
        if constant_kernels.is_on and not tf.executing_eagerly():
            with tf.init_scope():
                value = tf.convert_to_tensor(self.kernel).numpy()
            kernel = tf.constant(value)
        else:
            kernel = tf.convert_to_tensor(self.kernel)
        outputs = tf.matmul(tf.reshape(inputs, [-1, kernel.shape[0]]), kernel)
        if self.bias is not None:
            outputs = tf.nn.bias_add(outputs, tf.convert_to_tensor(self.bias))  # [prod(...), U]
        if self.activation in (keras.activations.gelu, gelu_tanh):
            outputs = gelu(outputs, self.activation is gelu_tanh, training)
        else:
            outputs = self.activation(outputs)
        if inputs.shape.rank == 2:
            return outputs
        return tf.reshape(outputs, tf.concat([tf.shape(inputs)[:-1], [self.units]], 0))

    def quantize(self, mode: str | None = None, type_check: bool = True, **kwargs) -> None:
        """As Dense, which refuses its subclasses unless it is told not to check."""
        super().quantize(mode, type_check=False, **kwargs)

    def load_own_variables(self, store: Any) -> None:
        """Loads weights; becomes int8 if those are, since the layers around do not save it."""
        kernel = store["0"]
        is_int8 = kernel.dtype == "int8" and kernel.shape == self.kernel.shape
        if is_int8 and self.quantization_mode is None:
            self.quantize("int8")
        super().load_own_variables(store)


@keras.saving.register_keras_serializable(package="mate_tf")
class LayerNorm(keras.layers.Layer):
    """Normalises the last axis to mean 0 and variance 1, then scales and shifts it.

    Called on float [..., D] and optionally a residual of the same shape, which is added first;
    returns [..., D] of the layer's compute dtype. It always computes in float32, and keeps only its
    inputs for the gradient. `epsilon` is added to the variance.
    """

    def __init__(self, epsilon: float = 1e-12, **kwargs):
        super().__init__(autocast=False, **kwargs)  # float32 inputs stay what they are
        self.epsilon = epsilon
        self.supports_masking = True

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
                to_sum, to_gamma, to_beta = backward(upstream, gamma, *terms)
                return to_gamma, to_beta, *(tf.cast(to_sum, term.dtype) for term in terms)

            # On a tape a function is another program that rounds differently.
            return forward(*map(tf.stop_gradient, (gamma, beta, *terms))), gradient

        outputs = tf.reshape(normalised(gamma, beta, *terms), tf.shape(inputs))
        return tf.ensure_shape(outputs, inputs.shape)

    def compute_output_shape(self, input_shape, *_):
        return input_shape

    def get_config(self):
        return super().get_config() | attributes(self, "epsilon")


@functools.cache
def _passes(epsilon: float, dtype: str) -> tuple[OnePass, OnePass]:
    """Forward and backward, shared by all layers: XLA compiles each once for a shape."""

    def normal_of(*terms: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """The normalised sum, float32 [N, D], and the factor it was scaled by, [N, 1]."""
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
        """The gradients with respect to the sum [N, D], gamma and beta [D]."""
        normal, scale = normal_of(*terms)
        upstream = tf.cast(upstream, tf.float32)
        to_normal = upstream * gamma
        to_sum = scale * (to_normal - _mean(to_normal) - normal * _mean(to_normal * normal))
        return to_sum, tf.reduce_sum(upstream * normal, 0), tf.reduce_sum(upstream, 0)

    return OnePass(normalised_sum), OnePass(gradients)


def _mean(rows: tf.Tensor) -> tf.Tensor:
    """The mean of each row: float32 [N, D] to [N, 1]."""
    size = tf.shape(rows)[1]
    return tf.matmul(rows, tf.fill([size, 1], 1.0 / tf.cast(size, tf.float32)))


class SeededDropout(NamedTuple):
    """Dropout that drops the same units of each tensor of the same shape."""

    rate: float  # the probability that a unit is dropped
    seed: tf.Tensor  # int32 [2]
    # For the gradient; otherwise it draws the random numbers again, and none are kept in between.
    keeps_mask: bool = True

    def __call__(self, tensor: tf.Tensor) -> tf.Tensor:
        """Sets units to zero and scales the others by 1 / (1 - rate)."""
        units = self.draw(tensor)

        @custom_gradient
        def kept(tensor: tf.Tensor):
            def gradient(upstream: tf.Tensor) -> tf.Tensor:
                again = units
                if not self.keeps_mask:
                    again = self._replace(seed=seeds_after(self.seed, upstream)).draw(tensor)
                return tf.ensure_shape(_kept(upstream, *again), tensor.shape)

            dropped = _kept(tf.stop_gradient(tensor), *units)
            return tf.ensure_shape(dropped, tensor.shape), gradient

        return kept(tensor)

    def draw(self, tensor: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        """The random bits of a tensor's units, and the other arguments of `kept_units`."""
        # 16 bits for each unit, half as many as in TensorFlow's dropout, which takes most of its
        # time to draw them. So the rate is a multiple of 2^-16.
        size, share = tf.size(tensor), min(round(self.rate * 2**16), 2**16 - 1)
        words = tf.random.stateless_uniform([(size + 1) // 2], self.seed, None, None, tf.uint32)
        bits = tf.reshape(tf.bitcast(words, tf.uint16), [-1])[:size]
        scale = tf.constant(2**16 / (2**16 - share))
        return tf.reshape(bits, tf.shape(tensor)), tf.constant(share, tf.uint16), scale

    def fold_in(self, index: int) -> "SeededDropout":
        """Dropout of other units, for another tensor; the same for the same index."""
        return self._replace(seed=tf.random.experimental.stateless_fold_in(self.seed, index))


def seeds_after(seeds: tf.Tensor, tensor: tf.Tensor) -> tf.Tensor:
    """The same seeds, int32 [...], but not before the tensor, float [...], is there."""
    # Without it, TensorFlow and XLA would draw early what a gradient draws again, or take the
    # first result, and keep it. XLA follows only data.
    is_nan = tf.reduce_any(tf.math.is_nan(tf.reshape(tensor, [-1])[:1]))
    return seeds + tf.cast(is_nan, seeds.dtype)


def kept_units(
    tensor: tf.Tensor, bits: tf.Tensor, dropped: tf.Tensor, scale: tf.Tensor
) -> tf.Tensor:
    """The units whose random bits are at least a number, scaled; zero for the others."""
    return tf.where(
        bits >= dropped, tensor * tf.cast(scale, tensor.dtype), tf.zeros([], tensor.dtype)
    )


_kept = OnePass(kept_units)


@keras.saving.register_keras_serializable(package="mate_tf")
class Dropout(keras.layers.Layer):
    """Keras's Dropout, but callers may draw the seed first and pass it in.

    Called on float [...]; returns the same shape. The replicas of a strategy drop different units.
    `rate` is the probability that a unit is dropped; ValueError if it is not from 0 to below 1. The
    random numbers start at `seed`; None draws it from Keras's.
    """

    def __init__(self, rate: float, seed: int | None = None, **kwargs):
        super().__init__(**kwargs)
        if not 0.0 <= rate < 1.0:
            raise ValueError(f"expected a dropout rate from 0 to below 1, got {rate}")
        self.rate = rate
        self.seed = seed
        self.seed_generator = keras.random.SeedGenerator(seed) if rate else None
        self.built = self.supports_masking = True

    def draw_seed(self) -> tf.Tensor:
        """The seed of the next mask, int32 [2]; zeros if nothing is dropped."""
        if self.seed_generator is None:
            return tf.zeros([2], tf.int32)
        # The generator's state is int64, because some devices have no int32 variables.
        state = self.seed_generator.next()
        seed = tf.cast(tf.math.floormod(state, tf.constant(tf.int32.max, state.dtype)), tf.int32)
        replica = tf.distribute.get_replica_context()
        # The generators of all replicas are in the same state.
        if replica is None or replica.num_replicas_in_sync == 1:
            return seed
        return tf.random.experimental.stateless_fold_in(seed, replica.replica_id_in_sync_group)

    def call(
        self, inputs: tf.Tensor, training: bool = False, seed: tf.Tensor | None = None
    ) -> tf.Tensor:
        """Drops units of float [...] in training; the seed is from `draw_seed`, None draws one."""
        if not training or not self.rate:
            return inputs
        seed = self.draw_seed() if seed is None else seed
        return SeededDropout(self.rate, seed, keeps_mask=not compiles_with_xla())(inputs)

    def compute_output_shape(self, input_shape):
        return input_shape

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | attributes(self, "rate", "seed")
