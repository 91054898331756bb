"""A published fine-tuned model, whole: encoder, heads and weights."""

import pathlib
import re
from typing import Any

from absl import logging

from mate_tf.answers.tasks import TaskConfig, TaskModel, model_of
from mate_tf.config import AttentionConfig, EncoderConfig
from mate_tf.models.masked_lm import MaskedLanguageModel, MaskedLMConfig
from mate_tf.models.table_qa import TableQAConfig
from mate_tf.weights.hugging_face import hugging_face_config, hugging_face_task_config, read_config
from mate_tf.weights.initial import kind_of_weights, load_weights, locate_weights
from mate_tf.weights.loading import LoadReport
from mate_tf.weights.tf1 import CONFIG_FILE

# Heads that published models were trained with, and what of a task config uses them. A token head
# alone says nothing of the task: the releases' classifiers have one too, with its columns.
_HEADS = {
    r"output_(weights|bias)_agg": "num_aggregation_labels=4 of TableQAConfig",
    r"output_(weights|bias)_cls": "ClassificationConfig or num_classes of SpanReadingConfig",
    r"loss/span_output_(weights|bias)": "kind='span' of SpanReadingConfig",
    r"loss/span_hidden_(weights|bias)": "hidden_size of SpanReadingConfig",
    r"loss/(start|end)_output_(weights|bias)": "kind='boundary' of SpanReadingConfig",
}
_COLUMNS = {r"column_output_(weights|bias)": "select_one_column of TableQAConfig"}


def load_pretrained(
    path: str | pathlib.Path,
    task_config: TaskConfig | MaskedLMConfig | None = None,
    *,
    revision: str | None = None,
    attention: AttentionConfig | None = None,
    **encoder_overrides: Any,
) -> TaskModel | MaskedLanguageModel:
    """The model of a fine-tuned checkpoint, with every variable from there and every head of it.

    What was loaded and what was not is logged. A head of pre-training may be left out.

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
        ValueError: if the checkpoint lacks a variable of the model or does not fit it, if it has a
            head that the task config does not use, or if there is no task config.
        FileNotFoundError, ModuleNotFoundError, OSError: as `load_weights`.

    Example:
        model = load_pretrained(
            "google/tapas-base-finetuned-wtq",
            attention=AttentionConfig("mate", "multi_view"),
        )
    """
    location, encoder_config, task_config = published_configs(
        path, task_config, revision=revision, attention=attention, **encoder_overrides
    )
    model = model_of(encoder_config, task_config)
    restore_published(model, location)
    return model


def published_configs(
    path: str | pathlib.Path,
    task_config: TaskConfig | MaskedLMConfig | None = None,
    *,
    revision: str | None = None,
    attention: AttentionConfig | None = None,
    **encoder_overrides: Any,
) -> tuple[pathlib.Path, EncoderConfig, Any]:
    """Where a fine-tuned checkpoint is, and its configs; arguments and errors as `load_pretrained`.

    Returns:
        Where its weights are, the encoder's config and that of its task.
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
    return location, encoder_config, task_config


def restore_published(model: TaskModel | MaskedLanguageModel, location: pathlib.Path) -> None:
    """Loads every variable of a built model from its checkpoint; errors as `load_pretrained`."""
    report = load_weights(model, location, require_all=True)
    logging.info("%s", report)
    _check_heads(model.task_config, location, report)


def _check_heads(
    task_config: TaskConfig | MaskedLMConfig, location: pathlib.Path, report: LoadReport
) -> None:
    """ValueError where a head was left out that the checkpoint was trained with."""
    heads = _HEADS
    if isinstance(task_config, TableQAConfig) and _chooses_columns(location):
        heads = heads | _COLUMNS
    lost = {
        name: use
        for name in report.ignored
        for pattern, use in heads.items()
        if re.fullmatch(pattern, name)
    }
    if lost:
        raise ValueError(
            f"expected a task config that uses {', '.join(lost)} of {report.source}, got one "
            f"without, {task_config}; take {', '.join(dict.fromkeys(lost.values()))}"
        )


def _chooses_columns(location: pathlib.Path) -> bool:
    """Whether a head for columns is in use; transformers stores one also where it is not."""
    is_hugging_face = kind_of_weights(location) == "hugging_face"
    return not is_hugging_face or read_config(location).get("select_one_column") is not False
