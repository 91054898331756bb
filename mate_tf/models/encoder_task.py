"""The base of all models: an encoder with a head and its loss."""

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar

import keras
import tensorflow as tf

from mate_tf.config import EncoderConfig
from mate_tf.dataclass_json import from_dict
from mate_tf.features.token_features import TokenFeatures
from mate_tf.layers.encoder import TableEncoder
from mate_tf.task_configs import TaskConfig


class EncoderTask(keras.Model):
    """A model with an encoder, made from the configs of both; without the task's, of its defaults.

    A subclass names the class of its task's config, makes its head and registers itself with Keras.

    Attributes:
        normalized_by: features of a batch, [B, ...], by whose sum over a whole step (all replicas
            and accumulated parts) the loss is divided. A part of such a step has that sum as
            "mean_NAME", for a mean part.
    """

    normalized_by: ClassVar[tuple[str, ...]] = ()
    config_class: ClassVar[type[TaskConfig]]
    task_config: Any

    def __init__(
        self, encoder_config: EncoderConfig, task_config: Any | None = None, **kwargs
    ) -> None:
        super().__init__(**kwargs)
        self.encoder_config = encoder_config
        self.task_config = task_config or self.config_class()
        self.encoder = TableEncoder(encoder_config, name="encoder", dtype=self.dtype_policy)
        self.make_layers()

    def make_layers(self) -> None:
        """Makes the layers of the head."""

    def make_weights(self) -> None:
        """Creates the weights of the head."""

    def build(self, input_shape=None) -> None:
        """Creates the weights; they do not depend on the input."""
        self.encoder.build()
        self.make_weights()
        self.built = True

    def model_inputs(self, batch: Mapping[str, tf.Tensor]) -> tuple[Any, ...]:
        """The positional arguments of the model, from a batch of records."""
        return (TokenFeatures.from_dict(batch),)

    def add_pooled_head(
        self, size: int, weights: str, bias: str, stddev: float = 0.02
    ) -> tuple[keras.Variable, keras.Variable]:
        """Weights [size, D] and bias of a linear map of the pooled output; without autocast."""
        initializer = keras.initializers.TruncatedNormal(stddev=stddev)
        shape = (size, self.encoder_config.hidden_size)
        return (
            self.add_weight(shape=shape, initializer=initializer, autocast=False, name=weights),
            self.add_weight(shape=(size,), initializer="zeros", autocast=False, name=bias),
        )

    def pooled_logits(
        self, pooled_output: tf.Tensor, weights: keras.Variable, bias: keras.Variable
    ) -> tf.Tensor:
        """That linear map of the pooled output [B, D]: float32 [B, size]."""
        pooled = tf.cast(pooled_output, tf.float32)
        product = tf.matmul(pooled, tf.convert_to_tensor(weights.value), transpose_b=True)
        return product + bias.value

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | {
            "encoder_config": self.encoder_config.to_dict(),
            "task_config": dataclasses.asdict(self.task_config),
        }

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> "EncoderTask":
        config = dict(config)
        encoder_config = EncoderConfig.from_dict(config.pop("encoder_config"))
        task_config = from_dict(cls.config_class, config.pop("task_config"), "task")
        return cls(encoder_config, task_config, **config)
