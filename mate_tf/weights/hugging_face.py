"""BERT and TAPAS weights from a Hugging Face folder: config.json and safetensors."""

import contextlib
import functools
import json
import pathlib
import re
from typing import Any

import keras
import numpy as np

from mate_tf.weights.hugging_face_config import existing, read_config
from mate_tf.weights.loading import LoadReport, assign_variables, check_num_heads
from mate_tf.weights.names import variables_by_name

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
_NOT_WEIGHTS = ("position_ids",)
_DECODER = "cls/predictions/decoder/weight"
_WORD_BIAS = "cls/predictions/output_bias"
_WORDS = "bert/embeddings/word_embeddings"


def load_hugging_face(
    model: keras.layers.Layer, directory: str | pathlib.Path, **options: Any
) -> LoadReport:
    """Loads the weights of a Hugging Face folder into a model; no pickle is ever read.

    The heads of TapasForQuestionAnswering, TapasForSequenceClassification, TapasForMaskedLM and
    their BERT counterparts go by the names of the TF1 checkpoints.

    Args:
        model: a built `TableEncoder` or a model with one as `.encoder`.
        directory: holds config.json, and model.safetensors or the shards of
            model.safetensors.index.json.
        **options: of `assign_variables`.

    Returns:
        What was loaded, what is new, what was ignored.

    Raises:
        FileNotFoundError: if a file is missing.
        ValueError: if it does not fit the model.
    """
    config = read_config(directory)
    file = pathlib.Path(directory) / "config.json"
    check_num_heads(model, config.get("num_attention_heads"), file)
    shards = _shards(directory)
    with contextlib.ExitStack() as stack:
        tensors: dict[str, Any] = {}
        for path in shards:
            file = stack.enter_context(_opened(path))
            for stored in file.keys():  # noqa: SIM118, a safetensors file is no mapping
                name = _tf1_name(stored)
                if not name.endswith(_NOT_WEIGHTS):
                    tensors[name] = functools.partial(_read, file, stored, name)
        source = str(shards[0] if len(shards) == 1 else existing(directory, _SHARDS))
        if _DECODER in tensors and _WORD_BIAS in variables_by_name(model):
            _check_tied(tensors.pop(_DECODER)(), tensors, source)
        return assign_variables(model, tensors, source, **options)


def _shards(directory: str | pathlib.Path) -> list[pathlib.Path]:
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


@contextlib.contextmanager
def _opened(path: pathlib.Path):
    import safetensors

    try:
        with safetensors.safe_open(path, framework="numpy") as file:
            yield file
    except safetensors.SafetensorError as error:
        raise ValueError(f"expected safetensors in {path}: {error}") from None


def _read(file, stored: str, name: str) -> np.ndarray:
    """PyTorch keeps kernels as [out, in]."""
    value = file.get_tensor(stored)
    return value.T if name.endswith("/kernel") else value


def _tf1_name(stored: str) -> str:
    """The TF1 checkpoint's name of a Hugging Face tensor."""
    for pattern, replacement in _RENAMED:
        stored = re.sub(pattern, replacement, stored)
    return stored.replace(".", "/")


def _check_tied(decoder: np.ndarray, tensors: dict[str, Any], source: str) -> None:
    """Whether words are predicted with their embeddings, as ours and the release's are."""
    words = tensors[_WORDS]() if _WORDS in tensors else None
    if words is None or not np.array_equal(decoder, words):
        raise ValueError(
            f"expected cls.predictions.decoder.weight to equal the word embeddings in {source}, "
            "got another; a decoder of its own has no place in a model here"
        )
