"""How each kind of model is trained."""

from collections.abc import Callable
from typing import Any, NamedTuple

from mate_tf.training import measures, table_qa
from mate_tf.training.config import (
    ClassificationTrainingConfig,
    MaskedLMTrainingConfig,
    SpanReadingTrainingConfig,
    TableQATrainingConfig,
)


class TrainingKind(NamedTuple):
    """The config of a run, and what is done beside its steps."""

    config_class: type[Any]
    check_data: Callable[..., None]  # ValueError for records that the model cannot learn from
    dev_evaluation: Callable[..., Any]  # makes what measures the model on the dev split


TRAINING_KINDS = {
    "table_qa": TrainingKind(
        TableQATrainingConfig, table_qa.check_table_qa, table_qa.table_qa_evaluation
    ),
    "classification": TrainingKind(
        ClassificationTrainingConfig,
        measures.check_classification,
        measures.classification_evaluation,
    ),
    "span_reading": TrainingKind(
        SpanReadingTrainingConfig, measures.check_span_reading, measures.span_reading_evaluation
    ),
    "masked_lm": TrainingKind(
        MaskedLMTrainingConfig, measures.check_masked_lm, measures.masked_lm_evaluation
    ),
}
