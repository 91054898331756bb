"""Scores of spans of tokens: of their first and last token together, or apart (MATE, section 4.2).

Shapes: B batch, S sequence, D hidden, U hidden units of the head, N spans.
"""

import functools

import keras
import tensorflow as tf

from mate_tf.gelu import gelu
from mate_tf.tasks.span_reading_config import SpanKind
from mate_tf.tasks.spans import over_spans


@keras.saving.register_keras_serializable(package="mate_tf")
class SpanHead(keras.layers.Layer):
    """Scores spans, in float32 whatever the encoder uses.

    Called on the encoder's sequence output [B, S, D]; returns the scores of all spans, valid or
    not, [B, N] and, for kind "boundary", those of the tokens as first and as last [B, S].

    A linear map of two concatenated vectors is the sum of a map of each, so each token is mapped
    once and not once a span. The weights have the names of the original's checkpoints.
    """

    def __init__(
        self,
        kind: SpanKind = "span",
        max_span_length: int = 10,
        hidden_size: int | None = None,
        activation: str = "gelu",
        **kwargs,
    ) -> None:
        super().__init__(dtype="float32", **{k: v for k, v in kwargs.items() if k != "dtype"})
        self.kind = kind
        self.max_span_length = max_span_length
        self.hidden_size = hidden_size
        self.activation = activation

    def build(self, input_shape) -> None:
        size = input_shape[-1]
        if self.kind == "boundary":
            self._add("start", size)
            self._add("end", size)
            return
        if self.hidden_size is not None:
            self.span_hidden_weights = self.add_weight(
                (2 * size, self.hidden_size),
                keras.initializers.TruncatedNormal(stddev=0.02),
                name="span_hidden_weights",
            )
            self.span_hidden_bias = self.add_weight(
                (self.hidden_size,), "zeros", name="span_hidden_bias"
            )
        self._add("span", self.hidden_size or 2 * size)

    def _add(self, name: str, size: int) -> None:
        initializer = keras.initializers.TruncatedNormal(stddev=0.02)
        for part, shape, start in (("weights", (size,), initializer), ("bias", (), "zeros")):
            weight = self.add_weight(shape, start, name=f"{name}_output_{part}")
            setattr(self, f"{name}_output_{part}", weight)

    def call(
        self, sequence_output: tf.Tensor, training: bool | None = None
    ) -> tuple[tf.Tensor, tuple[tf.Tensor, tf.Tensor] | None]:
        if self.kind == "boundary":
            starts = tf.linalg.matvec(sequence_output, self.start_output_weights)  # [B, S]
            ends = tf.linalg.matvec(sequence_output, self.end_output_weights)  # [B, S]
            starts, ends = starts + self.start_output_bias, ends + self.end_output_bias
            return over_spans(tf.add, starts, ends, self.max_span_length), (starts, ends)
        if self.hidden_size is None:
            of_start, of_end = tf.split(self.span_output_weights, 2)  # [D] each
            starts = tf.linalg.matvec(sequence_output, of_start)  # [B, S]
            ends = tf.linalg.matvec(sequence_output, of_end)  # [B, S]
            scores = over_spans(tf.add, starts, ends, self.max_span_length)
        else:
            of_start, of_end = tf.split(self.span_hidden_weights, 2)  # [D, U] each
            starts = tf.matmul(sequence_output, of_start) + self.span_hidden_bias  # [B, S, U]
            ends = tf.matmul(sequence_output, of_end)  # [B, S, U]
            score = functools.partial(self._score, training=training)
            scores = over_spans(score, starts, ends, self.max_span_length)
        return scores + self.span_output_bias, None

    def _score(self, starts: tf.Tensor, ends: tf.Tensor, training: bool | None) -> tf.Tensor:
        hidden = gelu(starts + ends, self.activation == "gelu_tanh", training)
        return tf.linalg.matvec(hidden, self.span_output_weights)

    def get_config(self):
        return super().get_config() | {
            "kind": self.kind,
            "max_span_length": self.max_span_length,
            "hidden_size": self.hidden_size,
            "activation": self.activation,
        }
