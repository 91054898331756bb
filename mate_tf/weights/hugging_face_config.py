"""What the config.json of a Hugging Face folder says of an encoder and of its head."""

import pathlib
from typing import Any

from mate_tf.config import EncoderConfig, read_json
from mate_tf.dataclass_json import from_dict
from mate_tf.tasks.classification import ClassificationConfig
from mate_tf.tasks.masked_lm import MaskedLMConfig
from mate_tf.tasks.table_qa import TableQAConfig

_CONFIG = "config.json"
_KINDS = ("bert", "tapas")
_AGGREGATIONS = ["NONE", "SUM", "AVERAGE", "COUNT"]
# TapasConfig's names of TableQAConfig's fields; of a value of null the default counts.
_TABLE_QA = {
    "num_aggregation_labels": "num_aggregation_labels",
    "use_answer_as_supervision": "use_answer_as_supervision",
    "select_one_column": "select_one_column",
    "allow_empty_column_selection": "allow_empty_column_selection",
    "average_logits_per_cell": "average_logits_per_cell",
    "init_cell_selection_weights_to_zero": "init_cell_selection_weights_to_zero",
    "temperature": "temperature",
    "aggregation_temperature": "agg_temperature",
    "positive_label_weight": "positive_weight",
    "cell_selection_preference": "cell_select_pref",
    "aggregation_loss_weight": "aggregation_loss_importance",
    "answer_loss_importance": "answer_loss_importance",
    "huber_loss_delta": "huber_loss_delta",
    "use_normalized_answer_loss": "use_normalized_answer_loss",
    "average_approximation_function": "average_approximation_function",
    "use_gumbel_for_cells": "use_gumbel_for_cells",
    "use_gumbel_for_aggregation": "use_gumbel_for_agg",
    "max_num_rows": "max_num_rows",
    "max_num_columns": "max_num_columns",
}
# Where TapasConfig's default is not ours.
_TAPAS_DEFAULTS = {
    "num_aggregation_labels": 0,
    "use_answer_as_supervision": False,
    "max_num_rows": 64,
    "max_num_columns": 32,
}


def hugging_face_config(directory: str | pathlib.Path, **overrides: Any) -> EncoderConfig:
    """The encoder configuration of a Hugging Face folder.

    Args:
        directory: holds config.json of a BERT or TAPAS model.
        **overrides: fields of `EncoderConfig` that the file does not know, such as attention.

    Raises:
        FileNotFoundError: if there is no config.json.
        ValueError: if it describes another kind of model, or a value is not of its field's type.
    """
    config = read_config(directory)
    values: dict[str, Any] = {"activation": "gelu"}
    if config["model_type"] == "tapas" and not config.get("reset_position_index_per_cell", True):
        values["position"] = "absolute"
    path = pathlib.Path(directory) / _CONFIG
    return EncoderConfig.from_bert_config(path, **(values | overrides))


def hugging_face_task_config(
    directory: str | pathlib.Path,
) -> TableQAConfig | ClassificationConfig | MaskedLMConfig | None:
    """The head that a Hugging Face folder describes.

    Of TapasForQuestionAnswering it has the limits of 64 rows and 32 columns that the model was
    trained with, beyond which ids count as the last, and its means that count padding;
    `dataclasses.replace` changes them, as `published_model` does with the limits.

    Args:
        directory: holds config.json of a BERT or TAPAS model.

    Returns:
        That of a TapasForQuestionAnswering, a ...ForSequenceClassification, a ...ForMaskedLM or a
        BertForPreTraining; None for a model with another head or none.

    Raises:
        FileNotFoundError: if there is no config.json.
        ValueError: if it describes another kind of model, or other aggregations, or a value
            is not of its field's type.
    """
    config = read_config(directory)
    architectures = config.get("architectures") or []
    if any(name.endswith("ForSequenceClassification") for name in architectures):
        return ClassificationConfig(num_classes=_num_classes(config))
    if any(name.endswith("ForMaskedLM") for name in architectures):
        return MaskedLMConfig(next_sentence=False)
    if "BertForPreTraining" in architectures:
        return MaskedLMConfig()
    if "TapasForQuestionAnswering" in architectures:
        return _table_qa_config(config, pathlib.Path(directory) / _CONFIG)
    return None


def read_config(directory: str | pathlib.Path) -> dict[str, Any]:
    """The config.json of a BERT or TAPAS folder.

    Raises:
        FileNotFoundError: if there is none.
        ValueError: if it is not JSON, or describes another kind of model.
    """
    path = existing(directory, _CONFIG)
    config = read_json(path)
    kind = config.get("model_type")
    if kind not in _KINDS:
        raise ValueError(f"expected model_type 'bert' or 'tapas' in {path}, got {kind!r}")
    return config


def existing(directory: str | pathlib.Path, name: str) -> pathlib.Path:
    """A file of a folder; FileNotFoundError where it is missing."""
    path = pathlib.Path(directory) / name
    if not path.is_file():
        raise FileNotFoundError(f"expected {name} in {directory}")
    return path


def _num_classes(config: dict[str, Any]) -> int:
    """Hugging Face writes the labels' names only where they are not its default, two."""
    return len(config.get("id2label") or {}) or config.get("num_labels") or 2


def _table_qa_config(config: dict[str, Any], path: pathlib.Path) -> TableQAConfig:
    labels = config.get("aggregation_labels")
    names = [labels[key] for key in sorted(labels, key=int)] if labels else _AGGREGATIONS
    if names != _AGGREGATIONS:
        raise ValueError(f"expected aggregation_labels {_AGGREGATIONS} in {path}, got {names}")
    values = {
        ours: config[theirs] for theirs, ours in _TABLE_QA.items() if config.get(theirs) is not None
    }
    values = _TAPAS_DEFAULTS | values
    values["cell_loss_importance"] = 0.0 if config.get("disable_per_token_loss") else 1.0
    values["answer_loss_cutoff"] = config.get("answer_loss_cutoff")
    values["count_padding"] = True
    return from_dict(TableQAConfig, values, f"the configuration of {path}")
