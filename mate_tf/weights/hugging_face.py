"""BERT and TAPAS weights from a Hugging Face folder: config.json and model.safetensors."""

import json
import pathlib
import re
from typing import Any

import keras
import numpy as np

from mate_tf.config import EncoderConfig
from mate_tf.weights.loading import LoadReport, assign_variables

_RENAMED = (
    (r"^(bert|tapas)\.", ""),
    (r"^aggregation_classifier\.weight$", "output_weights_agg"),
    (r"^aggregation_classifier\.bias$", "output_bias_agg"),
    (r"^(embeddings|encoder|pooler)\.", r"bert.\1."),
    (r"\.layer\.(\d+)\.", r".layer_\1."),
    (r"embeddings(_\d)?\.weight$", r"embeddings\1"),
    (r"LayerNorm\.weight$", "LayerNorm.gamma"),
    (r"LayerNorm\.bias$", "LayerNorm.beta"),
    (r"(dense|query|key|value)\.weight$", r"\1.kernel"),
)
_NOT_WEIGHTS = ("position_ids",)


def hugging_face_config(directory: str | pathlib.Path, **overrides: Any) -> EncoderConfig:
    """The encoder configuration of a Hugging Face folder.

    Args:
        directory: holds config.json of a BERT or TAPAS model.
        **overrides: fields of `EncoderConfig` that the file does not know, such as attention.

    Raises:
        FileNotFoundError: if there is no config.json.
        ValueError: if it describes another kind of model.
    """
    path = _existing(directory, "config.json")
    config = json.loads(path.read_text(encoding="utf-8"))
    kind = config.get("model_type")
    if kind not in ("bert", "tapas"):
        raise ValueError(f"expected model_type 'bert' or 'tapas' in {path}, got {kind!r}")
    values: dict[str, Any] = {"activation": "gelu"}
    if kind == "tapas" and not config.get("reset_position_index_per_cell", True):
        values["position"] = "absolute"
    return EncoderConfig.from_bert_config(config, **(values | overrides))


def load_hugging_face(model: keras.layers.Layer, directory: str | pathlib.Path) -> LoadReport:
    """Loads the weights of a Hugging Face folder into a model; no pickle is ever read.

    Args:
        model: a built `TableEncoder` or a model with one as `.encoder`.
        directory: holds config.json and model.safetensors.

    Returns:
        What was loaded, what is new, what was ignored.

    Raises:
        FileNotFoundError: if there is no model.safetensors.
        ValueError: if it does not fit the model.
    """
    import safetensors

    path = _existing(directory, "model.safetensors")
    try:
        with safetensors.safe_open(path, framework="numpy") as file:
            tensors = {}
            for stored in file.keys():  # noqa: SIM118, a safetensors file is no mapping
                name = _tf1_name(stored)
                if name.endswith(_NOT_WEIGHTS):
                    continue
                tensors[name] = lambda stored=stored, name=name: _oriented(
                    name, file.get_tensor(stored)
                )
            return assign_variables(model, tensors, str(path))
    except safetensors.SafetensorError as error:
        raise ValueError(f"expected safetensors in {path}: {error}") from None


def _existing(directory: str | pathlib.Path, name: str) -> pathlib.Path:
    path = pathlib.Path(directory) / name
    if not path.is_file():
        raise FileNotFoundError(f"expected {name} in {directory}")
    return path


def _tf1_name(stored: str) -> str:
    """The TF1 checkpoint's name of a Hugging Face tensor."""
    for pattern, replacement in _RENAMED:
        stored = re.sub(pattern, replacement, stored)
    return stored.replace(".", "/")


def _oriented(name: str, value: np.ndarray) -> np.ndarray:
    """PyTorch keeps kernels as [out, in]."""
    return value.T if name.endswith("/kernel") else value
