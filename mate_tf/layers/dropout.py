"""Dropout whose mask is a function of a seed.

Keras's layer draws its seed where it is applied: computed a second time, as the recomputation of
activations does, it drops other units, and the gradients are silently wrong. Here the seed can be
drawn beforehand and handed in.
"""

from typing import Any, NamedTuple

import keras
import tensorflow as tf


class SeededDropout(NamedTuple):
    """Dropout that drops the same units each time it is applied to a tensor of the same shape.

    Attributes:
        rate: probability of a unit to be dropped.
        seed: int32 [2].
    """

    rate: float
    seed: tf.Tensor

    def __call__(self, tensor: tf.Tensor) -> tf.Tensor:
        """Sets units to zero and scales the others by 1 / (1 - rate)."""
        return tf.nn.experimental.stateless_dropout(tensor, self.rate, self.seed)

    def fold_in(self, index: int) -> "SeededDropout":
        """One that drops other units, for another tensor; the same one for the same index."""
        seed = tf.random.experimental.stateless_fold_in(self.seed, index)
        return self._replace(seed=seed)


@keras.saving.register_keras_serializable(package="mate_tf")
class Dropout(keras.layers.Layer):
    """Keras's Dropout, whose seed a caller may draw beforehand and hand in.

    Called on float [...]; returns the same shape. The replicas of a strategy drop different units.

    Args:
        rate: probability of a unit to be dropped.
        seed: where its random numbers start; None draws it from Keras's own.

    Raises:
        ValueError: if the rate is not from 0 to below 1.
    """

    def __init__(self, rate: float, seed: int | None = None, **kwargs):
        super().__init__(**kwargs)
        if not 0.0 <= rate < 1.0:
            raise ValueError(f"expected a dropout rate from 0 to below 1, got {rate}")
        self.rate = rate
        self.seed = seed
        self.seed_generator = keras.random.SeedGenerator(seed) if rate else None
        self.built = True

    def draw_seed(self) -> tf.Tensor:
        """The seed of the next mask, int32 [2]; zeros where nothing is dropped."""
        if self.seed_generator is None:
            return tf.zeros([2], tf.int32)
        return draw_seed(self.seed_generator)

    def call(
        self, inputs: tf.Tensor, training: bool = False, seed: tf.Tensor | None = None
    ) -> tf.Tensor:
        """Drops units in training.

        Args:
            inputs: float [...].
            training: whether to.
            seed: of `draw_seed`; drawn here where it is not given.
        """
        if not training or not self.rate:
            return inputs
        return SeededDropout(self.rate, self.draw_seed() if seed is None else seed)(inputs)

    def compute_output_shape(self, input_shape):
        return input_shape

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | {"rate": self.rate, "seed": self.seed}


def draw_seed(generator: keras.random.SeedGenerator) -> tf.Tensor:
    """A seed for TensorFlow's stateless random numbers, int32 [2], of each replica its own."""
    # The generator's state is int64, for the sake of devices that have no int32 variables.
    state = generator.next()
    seed = tf.cast(tf.math.floormod(state, tf.constant(tf.int32.max, state.dtype)), tf.int32)
    replica = tf.distribute.get_replica_context()
    # Every replica's generator is in the same state.
    if replica is None or replica.num_replicas_in_sync == 1:
        return seed
    return tf.random.experimental.stateless_fold_in(seed, replica.replica_id_in_sync_group)
