"""Reading an answer in a table: the span of tokens that answers a question (MATE, section 4.2).

The spans of a sequence are in an order that depends only on its length: those of one token by
their place, then those of two, up to the longest.

Shapes: B batch, S sequence, D hidden, U hidden units of the head, L longest span, N spans, C
classes.
"""

from collections.abc import Callable, Mapping

import keras
import tensorflow as tf

from mate_tf.features.token_features import TokenFeatures
from mate_tf.layers.basic import gelu
from mate_tf.layers.encoder import cell_numbers
from mate_tf.models.encoder_task import EncoderTask, add_linear, pooled_logits
from mate_tf.task_configs import LOG_ZERO, SpanKind, SpanReadingConfig


class SpanHead(keras.layers.Layer):
    """Scores spans, in float32 whatever the encoder uses.

    From the sequence output [B, S, D] to the scores of all spans, valid or not, [B, N] and, for
    kind "boundary", those of the tokens as first and as last, [B, S].

    A linear map of two concatenated vectors is the sum of a map of each, so each token is mapped
    once, not once a span. The weights are named as in the original's checkpoints.
    """

    def __init__(
        self,
        kind: SpanKind = "span",
        max_span_length: int = 10,
        hidden_size: int | None = None,
        activation: str = "gelu",
        name: str | None = None,
    ) -> None:
        super().__init__(dtype="float32", name=name)
        self.kind = kind
        self.max_span_length = max_span_length
        self.hidden_size = hidden_size
        self.activation = activation

    def build(self, input_shape) -> None:
        size = input_shape[-1]
        shapes: dict[str, tuple[int, ...]]
        if self.kind == "boundary":
            shapes = {"start_output": (size,), "end_output": (size,)}
        elif self.hidden_size is None:
            shapes = {"span_output": (2 * size,)}
        else:
            hidden = self.hidden_size
            shapes = {"span_hidden": (2 * size, hidden), "span_output": (hidden,)}
        for name, shape in shapes.items():
            add_linear(self, name, shape, keras.initializers.TruncatedNormal(stddev=0.02))

    def call(
        self, sequence_output: tf.Tensor, training: bool | None = None
    ) -> tuple[tf.Tensor, tuple[tf.Tensor, tf.Tensor] | None]:
        if self.kind == "boundary":
            starts = tf.linalg.matvec(sequence_output, self.start_output_weights)  # [B, S]
            ends = tf.linalg.matvec(sequence_output, self.end_output_weights)  # [B, S]
            starts, ends = starts + self.start_output_bias, ends + self.end_output_bias
            return over_spans(tf.add, starts, ends, self.max_span_length), (starts, ends)
        if self.hidden_size is None:
            halves = tf.split(self.span_output_weights, 2)  # [D] each
            starts, ends = (tf.linalg.matvec(sequence_output, half) for half in halves)  # [B, S]
            scores = over_spans(tf.add, starts, ends, self.max_span_length)
        else:
            start_weights, end_weights = tf.split(self.span_hidden_weights, 2)  # [D, U] each
            starts = tf.matmul(sequence_output, start_weights) + self.span_hidden_bias  # [B, S, U]
            ends = tf.matmul(sequence_output, end_weights)  # [B, S, U]

            def score(starts: tf.Tensor, ends: tf.Tensor) -> tf.Tensor:
                hidden = gelu(starts + ends, self.activation == "gelu_tanh", training)
                return tf.linalg.matvec(hidden, self.span_output_weights)

            scores = over_spans(score, starts, ends, self.max_span_length)
        return scores + self.span_output_bias, None


@keras.saving.register_keras_serializable(package="mate_tf")
class SpanReading(EncoderTask):
    """Finds the span of a table's text that answers a question.

    A span is within one cell of the table's body and has at most `max_span_length` tokens. Call it
    with TokenFeatures of int32 [B, S]; it returns a dict of float32 tensors:

        span_logits [B, N]: the score of each span, -10000 where it is not valid.
        span_probabilities [B, N]: their softmax, 0 where they are not valid.
        start_logits, end_logits [B, S]: with kind "boundary".
        class_logits [B, C]: with `num_classes`.
    """

    config_class = SpanReadingConfig
    task_config: SpanReadingConfig

    def make_layers(self) -> None:
        super().make_layers()
        config = self.task_config
        self.head = SpanHead(
            config.kind,
            config.max_span_length,
            config.hidden_size,
            self.encoder_config.activation,
            name="span_head",
        )

    def make_weights(self) -> None:
        self.head.build((None, None, self.encoder_config.hidden_size))
        if self.task_config.num_classes:
            self.make_class_weights()

    def checkpoint_variables(self) -> dict[str, keras.Variable]:
        """The variables whose names in checkpoints have a scope."""
        return {f"loss/{variable.name}": variable for variable in self.head.weights}

    def call(self, features: TokenFeatures, training: bool = False) -> dict[str, tf.Tensor]:
        features = TokenFeatures.of(features)
        encoded = self.encoder(features, training=training)
        scores, token_logits = self.head(self.dropout(encoded.sequence_output, training=training))
        cells = body_cells(features.row_ids, features.column_ids)
        valid = valid_spans(cells, self.task_config.max_span_length)  # [B, N]
        logits = tf.where(valid, scores, LOG_ZERO)  # [B, N]
        outputs = {
            "span_logits": logits,
            "span_probabilities": tf.where(valid, tf.nn.softmax(logits), 0.0),
        }
        if token_logits is not None:
            outputs["start_logits"], outputs["end_logits"] = token_logits  # [B, S] each
        if self.task_config.num_classes:
            outputs["class_logits"] = pooled_logits(
                encoded.pooled_output, self.output_weights, self.output_bias
            )  # [B, C]
        return outputs

    def compute_task_loss(
        self, batch: Mapping[str, tf.Tensor], outputs: Mapping[str, tf.Tensor]
    ) -> dict[str, tf.Tensor]:
        """The negative log-probability of the answer, summed over the spans that are one; else 0.

        A batch has the token features and label_ids [B, S]; with classes also
        classification_class_index [B, 1]. "loss" is the mean over the batch of "example_loss" [B],
        which is the sum of "span_loss" [B] and, with classes, "class_loss" [B].
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
    """The negative log-probabilities of what is correct, summed: [B, N] to float32 [B]."""
    return -tf.reduce_sum(tf.where(correct, tf.nn.log_softmax(logits), 0.0), axis=1)


def over_spans(
    combine: Callable[[tf.Tensor, tf.Tensor], tf.Tensor],
    starts: tf.Tensor,
    ends: tf.Tensor,
    max_span_length: int,
) -> tf.Tensor:
    """Combines a value of each span's first token with one of its last: [B, S, ...] each to [B, N].

    `combine` makes [B, s] of two tensors [B, s, ...], for any s. This shifts the sequence once for
    each length up to L, so no tensor has a vector for each span.
    """
    length = starts.shape[1]
    if length is None:
        length = tf.shape(starts)[1]
        counts = [tf.maximum(length - offset, 0) for offset in range(max_span_length)]
    else:
        counts = list(range(length, max(length - max_span_length, 0), -1))
    return tf.concat(
        [combine(starts[:, :count], ends[:, o:]) for o, count in enumerate(counts)], axis=1
    )


def body_cells(row_ids: tf.Tensor, column_ids: tf.Tensor) -> tf.Tensor:
    """Numbers the cells of the table's body in the order of the sequence: int32 [B, S].

    It is 0 for a token outside the body, where no span may be. Ids are int [B, S]. A histogram row
    is like any other row here.
    """
    in_body = (row_ids > 0) & (column_ids > 0)  # [B, S]
    return tf.where(in_body, cell_numbers(row_ids, column_ids), 0)


def valid_spans(cells: tf.Tensor, max_span_length: int) -> tf.Tensor:
    """Which spans are within one cell of the body: int32 [B, S] of `body_cells` to bool [B, N]."""
    return over_spans(_same, cells, cells, max_span_length)


def answer_bounds(label_ids: tf.Tensor, cells: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Where answers begin and end: bool [B, S] each. An answer is a run of labels within a cell.

    Labels are int [B, S], above 0 for the tokens of an answer; cells are those of `body_cells`. In
    the release a run goes on into the next cell.
    """
    labelled = (label_ids > 0) & (cells > 0)  # [B, S]
    same = tf.pad(cells[:, 1:] == cells[:, :-1], [[0, 0], [1, 0]])  # [B, S], as the one before
    goes_on = same & labelled & tf.roll(labelled, 1, axis=1)  # [B, S]
    return labelled & ~goes_on, labelled & ~tf.roll(goes_on, -1, axis=1)


def answer_spans(label_ids: tf.Tensor, cells: tf.Tensor, max_span_length: int) -> tf.Tensor:
    """Which spans are answers of at most L tokens: bool [B, N]; arguments as `answer_bounds`.

    In the release every beginning also goes with the end of another answer that is near enough.
    """
    starts, ends = answer_bounds(label_ids, cells)
    answers = tf.cumsum(tf.cast(starts, tf.int32), axis=1)  # [B, S], counted from 1
    first, last = tf.where(starts, answers, 0), tf.where(ends, answers, 0)
    return over_spans(_same, first, last, max_span_length)


def _same(start: tf.Tensor, end: tf.Tensor) -> tf.Tensor:
    return (start == end) & (start > 0)
