"""BERT and TAPAS from a Hugging Face folder: configs from config.json, weights from safetensors."""

import dataclasses
import functools
import json
import pathlib
import re
from typing import Any

import keras
import numpy as np

from mate_tf.config import EncoderConfig, read_json_object
from mate_tf.dataclass_json import from_dict, require
from mate_tf.tables.operators import TAPAS_OPERATORS
from mate_tf.task_configs import ClassificationConfig, MaskedLMConfig, TableQAConfig
from mate_tf.weights.loading import (
    LoadReport,
    assign_variables,
    check_num_heads,
    variables_by_name,
)
from mate_tf.weights.run import open_safetensors

_CONFIG = "config.json"
# Where TapasConfig names a field of TableQAConfig in another way; null stands for the default.
_TABLE_QA = {
    "positive_weight": "positive_label_weight",
    "cell_select_pref": "cell_selection_preference",
}
# What it has besides, in its names, is read as what a release's configuration names.
_GONE = {
    "average_logits_per_cell": "average_logits_per_cell",
    "use_gumbel_for_cells": "use_gumbel_for_cells",
    "use_gumbel_for_aggregation": "use_gumbel_for_agg",
    "aggregation_temperature": "agg_temperature",
    "aggregation_loss_weight": "aggregation_loss_importance",
    "answer_loss_importance": "answer_loss_importance",
}
# Where TapasConfig's default differs from ours.
_TAPAS_DEFAULTS = {
    "use_answer_as_supervision": False,
    "max_num_rows": 64,
    "max_num_columns": 32,
}
_WEIGHTS = "model.safetensors"
_SHARDS = "model.safetensors.index.json"
_PICKLES = ("pytorch_model.bin", "pytorch_model.bin.index.json", "tf_model.h5")
_RENAMED = (
    (r"^(bert|tapas)\.", ""),
    (r"^aggregation_classifier\.weight$", "output_weights_agg"),
    (r"^aggregation_classifier\.bias$", "output_bias_agg"),
    (r"^classifier\.weight$", "output_weights_cls"),
    (r"^classifier\.bias$", "output_bias_cls"),
    # One bias under two names, of which a file may hold either or both.
    (r"^cls\.predictions\.(decoder\.)?bias$", "cls.predictions.output_bias"),
    (r"^cls\.seq_relationship\.weight$", "cls.seq_relationship.output_weights"),
    (r"^cls\.seq_relationship\.bias$", "cls.seq_relationship.output_bias"),
    (r"^(embeddings|encoder|pooler)\.", r"bert.\1."),
    (r"\.layer\.(\d+)\.", r".layer_\1."),
    (r"embeddings(_\d)?\.weight$", r"embeddings\1"),
    (r"LayerNorm\.weight$", "LayerNorm.gamma"),
    (r"LayerNorm\.bias$", "LayerNorm.beta"),
    (r"(dense|query|key|value)\.weight$", r"\1.kernel"),
)
_DECODER = "cls/predictions/decoder/weight"
_WORD_BIAS = "cls/predictions/output_bias"
_WORDS = "bert/embeddings/word_embeddings"


def hugging_face_config(directory: str | pathlib.Path, **overrides: Any) -> EncoderConfig:
    """The configuration of the encoder in a folder with config.json of a BERT or TAPAS model.

    The overrides are fields of `EncoderConfig` that the file does not know, such as attention.
    FileNotFoundError, or ValueError for another kind of model or a value of the wrong type.
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
    """The head that the folder describes; None for a model with another head or none.

    TapasForQuestionAnswering keeps the limits of 64 rows and 32 columns that it was trained with
    (ids beyond count as the last), and its means that count padding; `published_model` lifts the
    limits. Errors are those of `hugging_face_config`; ValueError also for other aggregations.
    """
    config = read_config(directory)
    architectures = config.get("architectures") or []
    if any(name.endswith("ForSequenceClassification") for name in architectures):
        # The labels' names are there only where they are not the default, two.
        count = len(config.get("id2label") or {}) or config.get("num_labels") or 2
        return ClassificationConfig(num_classes=count)
    if any(name.endswith("ForMaskedLM") for name in architectures):
        return MaskedLMConfig(next_sentence=False)
    if "BertForPreTraining" in architectures:
        return MaskedLMConfig()
    if "TapasForQuestionAnswering" in architectures:
        return _table_qa_config(config, pathlib.Path(directory) / _CONFIG)
    return None


def read_config(directory: str | pathlib.Path) -> dict[str, Any]:
    """The config.json of a BERT or TAPAS folder; FileNotFoundError or ValueError."""
    path = existing(directory, _CONFIG)
    config = read_json_object(path)
    kind = config.get("model_type")
    if kind not in ("bert", "tapas"):
        raise ValueError(f"expected model_type 'bert' or 'tapas' in {path}, got {kind!r}")
    return config


def existing(directory: str | pathlib.Path, name: str) -> pathlib.Path:
    """A file of a folder; FileNotFoundError where it is missing."""
    path = pathlib.Path(directory) / name
    if not path.is_file():
        raise FileNotFoundError(f"expected {name} in {directory}")
    return path


def _table_qa_config(config: dict[str, Any], path: pathlib.Path) -> TableQAConfig:
    labels = config.get("aggregation_labels")
    expected = list(TAPAS_OPERATORS)
    names = [labels[key] for key in sorted(labels, key=int)] if labels else expected
    count = config.get("num_aggregation_labels") or 0
    require(names == expected, f"expected aggregation_labels {expected} in {path}, got {names}")
    require(
        count in (0, len(names)),
        f"expected num_aggregation_labels of 0 or {len(names)} in {path}, got {count}",
    )
    fields = (field.name for field in dataclasses.fields(TableQAConfig))
    given = {name: config.get(_TABLE_QA.get(name, name)) for name in fields}
    given |= {ours: config.get(name) for name, ours in _GONE.items()}
    values = {name: value for name, value in given.items() if value is not None}
    values = _TAPAS_DEFAULTS | values | {"operators": names[:count]}
    values["cell_loss_importance"] = 0.0 if config.get("disable_per_token_loss") else 1.0
    values["answer_loss_cutoff"] = config.get("answer_loss_cutoff")
    values["count_padding"] = True
    return from_dict(TableQAConfig, values, f"the configuration of {path}")


def load_hugging_face(
    model: keras.layers.Layer, directory: str | pathlib.Path, **options: Any
) -> LoadReport:
    """Loads a Hugging Face folder into a model; the options are of `assign_variables`."""
    config = read_config(directory)
    check_num_heads(model, config.get("num_attention_heads"), pathlib.Path(directory) / _CONFIG)
    shards = weight_files(directory)
    tensors: dict[str, Any] = {}
    for path in shards:
        file = open_safetensors(path)
        for stored in file.keys():  # noqa: SIM118, a safetensors file is no mapping
            name = _tf1_name(stored)
            if not name.endswith("position_ids"):
                tensors[name] = functools.partial(_read, file, stored, name)
    source = str(shards[0] if len(shards) == 1 else existing(directory, _SHARDS))
    if _DECODER in tensors and _WORD_BIAS in variables_by_name(model):
        decoder = tensors.pop(_DECODER)()
        # Here words are predicted with their embeddings.
        if _WORDS not in tensors or not np.array_equal(decoder, tensors[_WORDS]()):
            raise ValueError(
                "expected cls.predictions.decoder.weight to equal the word embeddings in "
                f"{source}, got another; a decoder of its own has no place in a model here"
            )
    return assign_variables(model, tensors, source, **options)


def weight_files(directory: str | pathlib.Path) -> list[pathlib.Path]:
    """The files that hold the weights."""
    directory = pathlib.Path(directory)
    if (directory / _WEIGHTS).is_file():
        return [directory / _WEIGHTS]
    if not (directory / _SHARDS).is_file():
        pickles = [name for name in _PICKLES if (directory / name).is_file()]
        raise FileNotFoundError(
            f"expected {_WEIGHTS} in {directory}"
            + (f", which has {', '.join(pickles)}" if pickles else "")
            + "; only safetensors are read: take a revision that has them (of many models one of "
            "a conversion's pull request, refs/pr/1 or another number), or write them with "
            "transformers' from_pretrained and save_pretrained"
        )
    try:
        files = json.loads((directory / _SHARDS).read_text(encoding="utf-8"))["weight_map"]
        if not all(isinstance(name, str) for name in files.values()):
            raise TypeError("a file's name that is no text")
        names = sorted(set(files.values()))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"expected a weight_map in {directory / _SHARDS}, got {error!r}") from None
    return [existing(directory, name) for name in names]


def _read(file, stored: str, name: str) -> np.ndarray:
    value = file.get_tensor(stored)
    return value.T if name.endswith("/kernel") else value  # PyTorch keeps them as [out, in]


def _tf1_name(stored: str) -> str:
    """The TF1 checkpoint's name of a Hugging Face tensor."""
    for pattern, replacement in _RENAMED:
        stored = re.sub(pattern, replacement, stored)
    return stored.replace(".", "/")
