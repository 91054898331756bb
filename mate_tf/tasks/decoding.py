"""The kinds of models that answer questions, and how each one's outputs are read.

Shapes: B batch, S sequence, C columns or classes, A aggregations, N spans.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from mate_tf.config import EncoderConfig
from mate_tf.tables.table import Table
from mate_tf.tables.token_features import TokenFeatures
from mate_tf.tables.wordpiece import Wordpiece
from mate_tf.tasks.answers import Answer
from mate_tf.tasks.cell_answers import decode_cells
from mate_tf.tasks.class_answers import decode_classes
from mate_tf.tasks.classification import ClassificationConfig, SequenceClassification
from mate_tf.tasks.span_answers import decode_spans
from mate_tf.tasks.span_reading import SpanReading, SpanReadingConfig
from mate_tf.tasks.table_qa import TableQAConfig, TableQuestionAnswering

TaskConfig = TableQAConfig | ClassificationConfig | SpanReadingConfig
TaskModel = TableQuestionAnswering | SequenceClassification | SpanReading


class Kind(NamedTuple):
    """A kind of model.

    Attributes:
        config: the class of its task config.
        model: its class, made of an encoder's config and a task's.
        outputs: those of its outputs that answers are read from; a model may lack some.
    """

    config: type[TaskConfig]
    model: Callable[[EncoderConfig, Any], TaskModel]
    outputs: tuple[str, ...]


KINDS = {
    "table_qa": Kind(
        TableQAConfig,
        TableQuestionAnswering,
        ("token_probabilities", "aggregation_logits", "column_logits", "token_logits"),
    ),
    "classification": Kind(ClassificationConfig, SequenceClassification, ("class_logits",)),
    "span_reading": Kind(SpanReadingConfig, SpanReading, ("span_logits", "class_logits")),
}


def kind_of(config: TaskConfig) -> str:
    """The name of the kind of model that has such a task config.

    Raises:
        ValueError: if it is that of a model that does not answer, such as one of masked words.
    """
    for name, kind in KINDS.items():
        if type(config) is kind.config:
            return name
    raise ValueError(
        f"expected a model that answers, of one of the kinds {', '.join(KINDS)}, got one with a "
        f"{type(config).__name__}; fine-tune it first"
    )


def decode_batch(
    config: TaskConfig,
    tables: Sequence[Table | None],
    features: TokenFeatures,
    outputs: Mapping[str, tf.Tensor],
    wordpiece: Wordpiece,
    histogram_row: bool = False,
    num_alternatives: int = 0,
) -> list[Answer]:
    """Reads the answers off a model's outputs for a batch.

    Args:
        config: the model's task config, which says what kind it is.
        tables: the tables asked, B of them; None for a sentence alone, which can be classified.
        features: int32 [B, S].
        outputs: what the model returned (`KINDS`).
        wordpiece: what the features were made with, to find a span's text in its cell.
        histogram_row: whether the features end in a histogram row, which is never an answer.
        num_alternatives: the most alternatives that an answer gets.

    Raises:
        ValueError: if an output is not finite, an id is beyond its table's size, or a question that
            needs a table has none.
    """
    _check_finite(KINDS[kind_of(config)], outputs)
    if isinstance(config, ClassificationConfig):
        return decode_classes(config, outputs, num_alternatives)
    with_tables = [table for table in tables if table is not None]
    if len(with_tables) < len(tables):
        raise ValueError(
            f"expected a table for each of {len(tables)} questions, got {len(with_tables)}; only a "
            "classifier takes a sentence alone"
        )
    if isinstance(config, SpanReadingConfig):
        return decode_spans(
            config, with_tables, features, outputs, wordpiece, histogram_row, num_alternatives
        )
    return decode_cells(config, with_tables, features, outputs, histogram_row, num_alternatives)


def _check_finite(kind: Kind, outputs: Mapping[str, tf.Tensor]) -> None:
    """ValueError where a number that answers are read from is none."""
    for name in kind.outputs:
        if name not in outputs:
            continue
        values = np.asarray(outputs[name])  # [B, ...]
        broken = np.flatnonzero(~np.isfinite(values.reshape(len(values), -1)).all(axis=1))  # [b]
        if len(broken):
            raise ValueError(
                f"expected finite {name} of the model, got NaN or infinity for {len(broken)} of "
                f"{len(values)} questions; see whether its weights are finite, and take a "
                "checkpoint of which they are"
            )
