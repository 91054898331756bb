"""What all models of a task are: an encoder, a head, and the configs of both."""

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar

import keras
import tensorflow as tf

from mate_tf.config import EncoderConfig
from mate_tf.dataclass_json import from_dict
from mate_tf.features.token_features import TokenFeatures
from mate_tf.layers.encoder import TableEncoder


@dataclasses.dataclass(frozen=True)
class TaskConfig:
    """What a task's heads and loss are made of; each task has its own options."""


class EncoderTask(keras.Model):
    """A model with an encoder, made of the encoder's config and its task's.

    A subclass names the class of its task's config, whose defaults it takes for None, adds its head
    and registers itself with Keras; saved, it comes back from both configs.

    Attributes:
        normalized_by: features of a batch, [B, ...], whose sum over a whole step, all replicas and
            accumulated parts, its loss divides by. A part of such a step has that sum as
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

    def model_inputs(self, batch: Mapping[str, tf.Tensor]) -> tuple[Any, ...]:
        """What of a batch of records the model is called on."""
        return (TokenFeatures.from_dict(batch),)

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | {
            "encoder_config": self.encoder_config.to_dict(),
            "task_config": dataclasses.asdict(self.task_config),
        }

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> "EncoderTask":
        config = dict(config)
        return cls(
            EncoderConfig.from_dict(config.pop("encoder_config")),
            from_dict(cls.config_class, config.pop("task_config"), "task"),
            **config,
        )
