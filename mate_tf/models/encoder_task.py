"""The base of all models: an encoder with a head and its loss."""

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar

import keras
import tensorflow as tf

from mate_tf.config import EncoderConfig
from mate_tf.dataclass_json import from_dict
from mate_tf.features.token_features import PART_OF_SPEECH, TAPAS_FEATURES, TokenFeatures
from mate_tf.layers.basic import Dropout
from mate_tf.layers.compilation import portable_graph, without_gradients
from mate_tf.layers.encoder import TableEncoder
from mate_tf.task_configs import TaskConfig


def add_linear(
    layer: keras.layers.Layer, name: str, shape: tuple[int, ...], initializer: Any
) -> None:
    """Gives a layer the weights of a linear map, NAME_weights of a shape [D, ...] and NAME_bias."""
    for part, size, start in (("weights", shape, initializer), ("bias", shape[1:], "zeros")):
        setattr(layer, f"{name}_{part}", layer.add_weight(size, start, name=f"{name}_{part}"))


def add_pooled_head(
    layer: keras.layers.Layer, shape: tuple[int, int], weights: str, bias: str, stddev: float = 0.02
) -> tuple[keras.Variable, keras.Variable]:
    """Weights [size, D] and bias of a linear map of the pooled output; without autocast."""
    initializer = keras.initializers.TruncatedNormal(stddev=stddev)
    return (
        layer.add_weight(shape, initializer, autocast=False, name=weights),
        layer.add_weight(shape[:1], "zeros", autocast=False, name=bias),
    )


def pooled_logits(
    pooled_output: tf.Tensor, weights: keras.Variable, bias: keras.Variable
) -> tf.Tensor:
    """That linear map of the pooled output [B, D]: float32 [B, size]."""
    pooled = tf.cast(pooled_output, tf.float32)
    product = tf.matmul(pooled, tf.convert_to_tensor(weights.value), transpose_b=True)
    return product + bias.value


class EncoderTask(keras.Model):
    """A model with an encoder, made from the configs of both; without the task's, of its defaults.

    A subclass names the class of its task's config, makes its head and registers itself with Keras.

    Attributes:
        normalized_by: features of a batch, [B, ...], by whose sum over a whole step (all replicas
            and accumulated parts) the loss is divided. A part of such a step has that sum as
            "mean_NAME", for a mean part.
        label: the feature of a batch that labels without a name are.
    """

    normalized_by: ClassVar[tuple[str, ...]] = ()
    label: ClassVar[str] = "label_ids"
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
        self.build()  # at once: made while `fit` traces its step, they would be lost by an error

    def make_layers(self) -> None:
        """Makes the layers of the head; by default its dropout."""
        rate = self.task_config.output_dropout
        self.dropout = Dropout(rate, name="dropout", dtype=self.dtype_policy)

    def make_weights(self) -> None:
        """Creates the weights of the head."""

    def make_class_weights(self) -> None:
        """Creates those of classes, named and shaped as in the published checkpoints."""
        shape = self.task_config.num_classes, self.encoder_config.hidden_size
        names = "output_weights_cls", "output_bias_cls"
        self.output_weights, self.output_bias = add_pooled_head(self, shape, *names)

    def build(self, input_shape=None) -> None:
        """Creates the weights, once; they do not depend on the input."""
        if self.built:
            return
        self.encoder.build()
        self.make_weights()

    @property
    def feature_names(self) -> tuple[str, ...]:
        """The token features that the model reads."""
        tags = [PART_OF_SPEECH] if self.encoder_config.attention.is_grammar_guided else []
        return (*TAPAS_FEATURES, *tags)

    def compute_task_loss(
        self, batch: Mapping[str, tf.Tensor], outputs: Mapping[str, tf.Tensor]
    ) -> dict[str, tf.Tensor]:
        """The loss of a batch of features and labels, as "loss" [], with all it is made of."""
        raise NotImplementedError

    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
        """The task's loss in `fit` and `evaluate`, float32 [], unless `compile` was given another.

        The labels are among the features x, or they are y: by name, or those of `label` alone.
        Sample weights are float [B], or masked_lm_weights. ValueError if a label is missing.
        """
        if getattr(self, "loss", None) is not None:
            return super().compute_loss(x, y, y_pred, sample_weight, training)
        batch = dict(x) if isinstance(x, Mapping) else {}
        given = TokenFeatures.of(x)._asdict().items()
        batch |= {name: feature for name, feature in given if feature is not None}
        if y is not None:
            batch |= y if isinstance(y, Mapping) else {self.label: y}
        if sample_weight is not None:
            batch["masked_lm_weights"] = sample_weight
        batch = {n: tf.cast(v, tf.float32) if v.dtype == "float64" else v for n, v in batch.items()}
        try:
            losses = self.compute_task_loss(batch, y_pred)
        except KeyError as error:
            raise ValueError(f"expected the label {error} in x or y, got {sorted(batch)}") from None
        loss = losses["loss"]
        if sample_weight is not None and "example_loss" in losses:
            weights = tf.cast(tf.reshape(sample_weight, [-1]), tf.float32)  # [B]
            loss = tf.reduce_mean(losses["example_loss"] * weights)
        total = tf.add_n([loss, *map(tf.reduce_sum, self.losses)])
        return total / tf.distribute.get_strategy().num_replicas_in_sync  # as Keras's losses

    def export(self, filepath, *args, input_signature=None, **kwargs) -> None:
        """As in Keras, at any time after `build`; by default of int32 [B, S] features by name."""
        if input_signature is None:
            shape = (None, self.encoder_config.fixed_length)
            names = self.feature_names
            input_signature = [{name: tf.TensorSpec(shape, tf.int32, name) for name in names}]
        with portable_graph(), without_gradients():
            super().export(filepath, *args, input_signature=input_signature, **kwargs)

    def model_inputs(self, batch: Mapping[str, tf.Tensor]) -> tuple[Any, ...]:
        """The positional arguments of the model, from a batch of records."""
        return (TokenFeatures.from_dict(batch),)

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
