"""The kinds of models; of those that answer questions the config, outputs and decoding."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import tensorflow as tf

from mate_tf.answers.answer import Answer
from mate_tf.answers.decoding import decode_cells, decode_classes
from mate_tf.answers.span_answers import decode_spans
from mate_tf.config import EncoderConfig
from mate_tf.features.token_features import TokenFeatures
from mate_tf.features.wordpiece import Wordpiece
from mate_tf.models.classification import ClassificationConfig, SequenceClassification
from mate_tf.models.encoder_task import EncoderTask
from mate_tf.models.masked_lm import MaskedLanguageModel, MaskedLMConfig
from mate_tf.models.span_reading import SpanReading, SpanReadingConfig
from mate_tf.models.table_qa import TableQAConfig, TableQuestionAnswering
from mate_tf.tables.table import Table

TaskConfig = TableQAConfig | ClassificationConfig | SpanReadingConfig
TaskModel = TableQuestionAnswering | SequenceClassification | SpanReading


class Asked(NamedTuple):
    """What a batch of questions is asked with.

    Attributes:
        tables: those asked; one a question, where the kind of model needs them.
        features: int32 [B, S].
        wordpiece: what the features were made with, to find a span's text in its cell.
        histogram_row: whether the features end in a histogram row, which is never an answer.
    """

    tables: Sequence[Table]
    features: TokenFeatures
    wordpiece: Wordpiece
    histogram_row: bool


class Kind(NamedTuple):
    """A kind of model.

    Attributes:
        config: the class of its task config.
        model: its class, made of an encoder's config and a task's.
        outputs: those of its outputs that answers are read from; a model may lack some.
        needs_tables: whether it answers from tables alone, and takes no sentence.
        decode: reads the answers off a batch's outputs, from the task config, what was asked, the
            outputs and the most alternatives that an answer gets.
    """

    config: type[TaskConfig]
    model: Callable[[EncoderConfig, Any], TaskModel]
    outputs: tuple[str, ...]
    needs_tables: bool
    decode: Callable[[Any, Asked, Mapping[str, tf.Tensor], int], list[Answer]]


def _decode_cells(config, asked, outputs, number):
    return decode_cells(config, asked.tables, asked.features, outputs, asked.histogram_row, number)


def _decode_classes(config, asked, outputs, number):
    return decode_classes(config, outputs, number)


def _decode_spans(config, asked, outputs, number):
    tables, features, wordpiece, histogram_row = asked
    return decode_spans(config, tables, features, outputs, wordpiece, histogram_row, number)


KINDS = {
    "table_qa": Kind(
        TableQAConfig,
        TableQuestionAnswering,
        ("token_probabilities", "aggregation_logits", "column_logits", "token_logits"),
        needs_tables=True,
        decode=_decode_cells,
    ),
    "classification": Kind(
        ClassificationConfig,
        SequenceClassification,
        ("class_logits",),
        needs_tables=False,
        decode=_decode_classes,
    ),
    "span_reading": Kind(
        SpanReadingConfig,
        SpanReading,
        ("span_logits", "class_logits"),
        needs_tables=True,
        decode=_decode_spans,
    ),
}


# Every kind that can be trained: those that answer, and the one of pre-training.
MODELS: dict[str, type[EncoderTask]] = {
    "table_qa": TableQuestionAnswering,
    "classification": SequenceClassification,
    "span_reading": SpanReading,
    "masked_lm": MaskedLanguageModel,
}


def kind_of(config: Any) -> str:
    """The name of the kind of model that has such a task config; ValueError if none has."""
    for name, model in MODELS.items():
        if type(config) is model.config_class:
            return name
    raise ValueError(
        f"expected the task config of a model of one of the kinds {', '.join(MODELS)}, got a "
        f"{type(config).__name__}"
    )


def model_of(encoder_config: EncoderConfig, task_config: Any, dtype: str = "float32") -> Any:
    """The model of its task config's kind with its first weights.

    Args:
        encoder_config: of its encoder.
        task_config: of its heads.
        dtype: the Keras policy that it computes by, such as "mixed_bfloat16".
    """
    model = MODELS[kind_of(task_config)](encoder_config, task_config, dtype=dtype)
    model.build()
    return model


def answering_kind(config: TaskConfig | MaskedLMConfig) -> str:
    """The same of a model that answers.

    Raises:
        ValueError: if it is that of a model that does not, such as one of masked words.
    """
    if (name := kind_of(config)) in KINDS:
        return name
    raise ValueError(
        f"expected a model that answers, of one of the kinds {', '.join(KINDS)}, got one with a "
        f"{type(config).__name__}; fine-tune it first"
    )
