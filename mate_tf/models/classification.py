"""Classifying a sequence: a sentence, or a statement about a table.

Shapes: B batch, S sequence, D hidden, C classes.
"""

from collections.abc import Mapping

import keras
import tensorflow as tf

from mate_tf.features.token_features import TokenFeatures
from mate_tf.models.encoder_task import EncoderTask, pooled_logits
from mate_tf.task_configs import ClassificationConfig


@keras.saving.register_keras_serializable(package="mate_tf")
class SequenceClassification(EncoderTask):
    """A linear layer on the pooled first token (Devlin et al., 2019): class_logits [B, C]."""

    config_class = ClassificationConfig
    label = "classification_class_index"
    task_config: ClassificationConfig

    def make_weights(self) -> None:
        self.make_class_weights()

    def call(self, features: TokenFeatures, training: bool = False) -> dict[str, tf.Tensor]:
        pooled = self.encoder(features, training=training).pooled_output  # [B, D]
        pooled = self.dropout(pooled, training=training)
        return {"class_logits": pooled_logits(pooled, self.output_weights, self.output_bias)}

    def compute_task_loss(
        self, batch: Mapping[str, tf.Tensor], outputs: Mapping[str, tf.Tensor]
    ) -> dict[str, tf.Tensor]:
        """Cross-entropy with classification_class_index [B, 1]: its mean "loss", "example_loss"."""
        labels = tf.reshape(batch["classification_class_index"], [-1])
        example_loss = tf.nn.sparse_softmax_cross_entropy_with_logits(
            labels, outputs["class_logits"]
        )
        return {"loss": tf.reduce_mean(example_loss), "example_loss": example_loss}
