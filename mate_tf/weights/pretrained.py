"""A published fine-tuned model, whole: encoder, heads and weights."""

import pathlib
from typing import Any

from mate_tf.config import AttentionConfig, EncoderConfig
from mate_tf.tasks.classification import ClassificationConfig, SequenceClassification
from mate_tf.tasks.masked_lm import MaskedLanguageModel, MaskedLMConfig
from mate_tf.tasks.span_reading import SpanReading, SpanReadingConfig
from mate_tf.tasks.table_qa import TableQAConfig, TableQuestionAnswering
from mate_tf.weights.hugging_face_config import hugging_face_config, hugging_face_task_config
from mate_tf.weights.initial import kind_of_weights, load_weights, locate_weights
from mate_tf.weights.tf1 import CONFIG_FILE

TaskConfig = TableQAConfig | ClassificationConfig | SpanReadingConfig | MaskedLMConfig
Model = TableQuestionAnswering | SequenceClassification | SpanReading | MaskedLanguageModel
_MODELS: dict[type, type] = {
    TableQAConfig: TableQuestionAnswering,
    ClassificationConfig: SequenceClassification,
    SpanReadingConfig: SpanReading,
    MaskedLMConfig: MaskedLanguageModel,
}


def load_pretrained(
    path: str | pathlib.Path,
    task_config: TaskConfig | None = None,
    *,
    revision: str | None = None,
    attention: AttentionConfig | None = None,
    **encoder_overrides: Any,
) -> Model:
    """The model of a fine-tuned checkpoint, with every variable from there.

    Args:
        path: a Hugging Face folder of TAPAS or BERT, the name of one on the Hub, or a TF1
            checkpoint of TAPAS with its bert_config.json beside it.
        task_config: the heads; None for those that the Hugging Face folder describes.
        revision: of a name on the Hub.
        attention: how tokens attend to each other; None for all to all, as TAPAS was trained.
        **encoder_overrides: other fields of `EncoderConfig`, such as position="absolute" for a TF1
            checkpoint whose name does not end in "_reset".

    Returns:
        The model of the task config's kind, built.

    Raises:
        ValueError: if the checkpoint lacks a variable of the model or does not fit it, or if there
            is no task config.
        FileNotFoundError, ModuleNotFoundError, OSError: as `load_weights`.

    Example:
        model = load_pretrained(
            "google/tapas-base-finetuned-wtq",
            attention=AttentionConfig("mate", "multi_view"),
        )
    """
    location = locate_weights(path, revision)
    overrides = encoder_overrides | {"attention": attention or AttentionConfig("tapas")}
    kind = kind_of_weights(location)
    if kind == "hugging_face":
        encoder_config = hugging_face_config(location, **overrides)
        task_config = task_config or hugging_face_task_config(location)
    elif kind == "tf1":
        folder = location if location.is_dir() else location.parent
        encoder_config = EncoderConfig.from_bert_config(folder / CONFIG_FILE, **overrides)
    else:
        raise ValueError(f"expected a published checkpoint, got the run in {location}")
    if task_config is None:
        raise ValueError(f"expected a task_config, for none is described in {location}")
    model = _MODELS[type(task_config)](encoder_config, task_config)
    model.build()
    load_weights(model, location, require_all=True)
    return model
