"""Reading an answer in a table: the span of tokens that answers a question (MATE, section 4.2).

Shapes: B batch, S sequence, D hidden, N spans, C classes.
"""

from collections.abc import Mapping

import keras
import tensorflow as tf

from mate_tf.config import EncoderConfig
from mate_tf.dropout import Dropout
from mate_tf.tables.token_features import TokenFeatures
from mate_tf.tasks.cell_selection import LOG_ZERO
from mate_tf.tasks.encoder_task import EncoderTask
from mate_tf.tasks.span_head import SpanHead
from mate_tf.tasks.span_reading_config import SpanReadingConfig
from mate_tf.tasks.spans import answer_bounds, answer_spans, body_cells, valid_spans


@keras.saving.register_keras_serializable(package="mate_tf")
class SpanReading(EncoderTask):
    """Finds the span of a table's text that answers a question.

    A span is within one cell of the table's body and has at most `max_span_length` tokens; the
    spans are in the order of `spans.span_bounds`. Call it with TokenFeatures of int32 [B, S]; it
    returns a dict of float32 tensors:

        span_logits [B, N]: the score of each span, -10000 where it is not valid.
        span_probabilities [B, N]: their softmax, 0 where they are not valid.
        start_logits, end_logits [B, S]: with kind "boundary".
        class_logits [B, C]: with `num_classes`.
    """

    config_class = SpanReadingConfig
    task_config: SpanReadingConfig

    def __init__(
        self, encoder_config: EncoderConfig, task_config: SpanReadingConfig | None = None, **kwargs
    ) -> None:
        super().__init__(encoder_config, task_config, **kwargs)
        config = self.task_config
        self.dropout = Dropout(config.output_dropout, name="dropout", dtype=self.dtype_policy)
        self.head = SpanHead(
            config.kind,
            config.max_span_length,
            config.hidden_size,
            encoder_config.activation,
            name="span_head",
        )

    def build(self, input_shape=None) -> None:
        """Creates the weights; they do not depend on the input."""
        hidden_size = self.encoder_config.hidden_size
        self.encoder.build()
        self.head.build((None, None, hidden_size))
        if num_classes := self.task_config.num_classes:
            # Without autocast: logits are float32, whatever the encoder uses.
            self.output_weights = self.add_weight(
                shape=(num_classes, hidden_size),
                initializer=keras.initializers.TruncatedNormal(stddev=0.02),
                autocast=False,
                name="output_weights_cls",
            )
            self.output_bias = self.add_weight(
                shape=(num_classes,), initializer="zeros", autocast=False, name="output_bias_cls"
            )
        self.built = True

    def checkpoint_variables(self) -> dict[str, keras.Variable]:
        """The variables whose names in checkpoints have a scope."""
        return {f"loss/{variable.name}": variable for variable in self.head.weights}

    def call(self, features: TokenFeatures, training: bool = False) -> dict[str, tf.Tensor]:
        features = TokenFeatures.of(features)
        encoded = self.encoder(features, training=training)
        scores, of_tokens = self.head(self.dropout(encoded.sequence_output, training=training))
        cells = body_cells(features.row_ids, features.column_ids)
        valid = valid_spans(cells, self.task_config.max_span_length)  # [B, N]
        logits = tf.where(valid, scores, LOG_ZERO)  # [B, N]
        outputs = {
            "span_logits": logits,
            "span_probabilities": tf.where(valid, tf.nn.softmax(logits), 0.0),
        }
        if of_tokens is not None:
            outputs["start_logits"], outputs["end_logits"] = of_tokens  # [B, S] each
        if self.task_config.num_classes:
            pooled = tf.cast(encoded.pooled_output, tf.float32)  # [B, D]
            logits = tf.matmul(pooled, self.output_weights, transpose_b=True)
            outputs["class_logits"] = logits + self.output_bias  # [B, C]
        return outputs

    def compute_task_loss(
        self, batch: Mapping[str, tf.Tensor], outputs: Mapping[str, tf.Tensor]
    ) -> dict[str, tf.Tensor]:
        """The negative log-probability of the answer, summed over the spans that are one.

        An example without such a span adds nothing to it.

        Args:
            batch: the token features and label_ids [B, S]; with classes also
                classification_class_index [B, 1].
            outputs: what the model returned for the batch.

        Returns:
            "loss", the mean over the batch of "example_loss" [B], which is the sum of "span_loss"
            [B] and, with classes, "class_loss" [B].
        """
        cells = body_cells(batch["row_ids"], batch["column_ids"])
        if self.task_config.kind == "boundary":
            span_loss = self._boundary_loss(batch, outputs, cells)
        else:
            answers = answer_spans(batch["label_ids"], cells, self.task_config.max_span_length)
            span_loss = _cross_entropy(answers, outputs["span_logits"])
        losses = {"span_loss": span_loss}
        example_loss = span_loss
        if self.task_config.num_classes:
            losses["class_loss"] = tf.nn.sparse_softmax_cross_entropy_with_logits(
                tf.reshape(batch["classification_class_index"], [-1]), outputs["class_logits"]
            )
            example_loss += losses["class_loss"]
        return {"loss": tf.reduce_mean(example_loss), "example_loss": example_loss} | losses

    def _boundary_loss(self, batch, outputs, cells):
        starts, ends = answer_bounds(batch["label_ids"], cells)  # [B, S] each
        start_logits, end_logits = outputs["start_logits"], outputs["end_logits"]
        if not self.task_config.count_padding:
            real = batch["input_mask"] > 0  # [B, S]
            start_logits = tf.where(real, start_logits, LOG_ZERO)
            end_logits = tf.where(real, end_logits, LOG_ZERO)
        return _cross_entropy(starts, start_logits) + _cross_entropy(ends, end_logits)


def _cross_entropy(correct: tf.Tensor, logits: tf.Tensor) -> tf.Tensor:
    """Minus the log-probabilities of all that is correct: bool and float32 [B, N] to [B]."""
    return -tf.reduce_sum(tf.where(correct, tf.nn.log_softmax(logits), 0.0), axis=1)
