"""Weights to start from, wherever they are: Hugging Face, the Hub, a TF1 checkpoint or a run."""

import functools
import math
import pathlib
import re
from collections.abc import Callable, Sequence
from typing import Any

import keras
import tensorflow as tf
from absl import logging

from mate_tf.config import TYPE_FEATURES, EncoderConfig, LinformerConfig, read_json_object
from mate_tf.features.wordpiece import read_vocabulary
from mate_tf.models.encoder_task import EncoderTask
from mate_tf.paths import as_path
from mate_tf.task_configs import TableQAConfig, TaskConfig
from mate_tf.weights.folder import find_tf1_checkpoint, kind_of_weights, locate_weights
from mate_tf.weights.hugging_face import (
    hugging_face_config,
    hugging_face_task_config,
    load_hugging_face,
    read_config,
    weight_files,
)
from mate_tf.weights.loading import LoadReport, assign_variables, check_num_heads
from mate_tf.weights.run import load_run, open_safetensors

Shapes = Sequence[Sequence[int]]

_BERT_CONFIG = "bert_config.json"
_WEIGHTS_OF_LAYER = 16  # six matrices with their biases, two normalisations
_SIZES_OF_TASK = ("num_classes", "hidden_size")
# The optimizer's slots and counters, of no use to a model.
_NOT_WEIGHTS = ("/adam_m", "/adam_v", "/accum")
_COUNTERS = ("global_step", "counter")
# TAPAS has its mark of an empty text in the place of BERT's first unused piece.
_SAME = {"[EMPTY]", "[unused0]"}
# The heads of published models, and the options that use them. All have one of tokens.
_HEADS = {
    r"output_(weights|bias)_agg": "operators of TableQAConfig",
    r"output_(weights|bias)_cls": "ClassificationConfig or num_classes of SpanReadingConfig",
    r"loss/span_output_(weights|bias)": "kind='span' of SpanReadingConfig",
    r"loss/span_hidden_(weights|bias)": "hidden_size of SpanReadingConfig",
    r"loss/(start|end)_output_(weights|bias)": "kind='boundary' of SpanReadingConfig",
}
_COLUMNS = {r"column_output_(weights|bias)": "select_one_column of TableQAConfig"}


def load_weights(
    model: keras.layers.Layer,
    path: str | pathlib.Path,
    *,
    revision: str | None = None,
    vocab_file: str | pathlib.Path | None = None,
    reset_heads: bool = False,
    require_all: bool = False,
) -> LoadReport:
    """Loads published weights, or those of a run, into a model; says what was loaded and what not.

    The model is a built `TableEncoder` or has one as `.encoder`. The path is a Hugging Face folder
    of BERT or TAPAS, the name of one on the Hub, which may have a revision, a TF1 checkpoint of
    BERT, TAPAS or MATE (its prefix or folder), or a run's folder. The data's vocabulary is compared
    with a vocab.txt beside the weights, and makes BERT's weights fit for positions that restart in
    each cell. `reset_heads` leaves everything but the encoder at its initial value; `require_all`
    makes it an error that the weights lack a variable.

    FileNotFoundError if there are no weights; ModuleNotFoundError and OSError as `download`;
    ValueError if they do not fit the model or the vocabulary, or there is a revision for weights
    that are not on the Hub.
    """
    location = locate_weights(path, revision)
    folder = location if location.is_dir() else location.parent
    pieces = [] if vocab_file is None else read_vocabulary(vocab_file)
    if vocab_file is not None and (folder / "vocab.txt").is_file():
        _check_same_vocabulary(pieces, vocab_file, folder / "vocab.txt")
    load = _LOADERS[kind_of_weights(location)]
    cls_id = pieces.index("[CLS]") if "[CLS]" in pieces else None
    return load(model, location, reset_heads=reset_heads, require_all=require_all, cls_id=cls_id)


def _check_same_vocabulary(
    here: list[str], data_vocab: str | pathlib.Path, weights_vocab: pathlib.Path
) -> None:
    """Refuses other pieces than the weights'; fewer, and [EMPTY] for [unused0], are accepted."""
    there = read_vocabulary(weights_vocab)
    remedy = f"make the data with --vocab_file={weights_vocab}"
    for line, (piece, expected) in enumerate(zip(here, there, strict=False), start=1):
        if piece != expected and {piece, expected} != _SAME:
            raise ValueError(
                f"expected the piece {expected!r} of {weights_vocab} in line {line} of "
                f"{data_vocab}, got {piece!r}; {remedy}"
            )
    if len(here) > len(there):
        raise ValueError(
            f"expected at most the {len(there)} pieces of {weights_vocab}, got {len(here)} in "
            f"{data_vocab}; {remedy}"
        )


def load_tf1_checkpoint(
    model: keras.layers.Layer, path: str | pathlib.Path, **options: Any
) -> LoadReport:
    """Loads a checkpoint of BERT, TAPAS or MATE by names; the options are of `assign_variables`."""
    prefix = find_tf1_checkpoint(as_path(path))
    if prefix is None:
        raise FileNotFoundError(f"expected a TF1 checkpoint at {path}, found no .index file")
    config = as_path(prefix).parent / _BERT_CONFIG
    if config.is_file():
        check_num_heads(model, read_json_object(config).get("num_attention_heads"), config)
    reader = tf.train.load_checkpoint(prefix)
    tensors = {
        name: functools.partial(reader.get_tensor, name)
        for name in reader.get_variable_to_shape_map()
        if not name.endswith(_NOT_WEIGHTS) and name not in _COUNTERS
    }
    return assign_variables(model, tensors, prefix, **options)


_LOADERS: dict[str, Callable[..., LoadReport]] = {
    "hugging_face": load_hugging_face,
    "run": load_run,
    "tf1": load_tf1_checkpoint,
}


def published_configs(
    path: str | pathlib.Path,
    task_config: TaskConfig | None = None,
    *,
    revision: str | None = None,
    **encoder_options: Any,
) -> tuple[pathlib.Path, EncoderConfig, TaskConfig]:
    """Where a published fine-tuned checkpoint is, and its configs; arguments as of `load_weights`.

    The heads are a given task config's, or those that a Hugging Face folder describes; a TF1
    checkpoint has its bert_config.json beside it. The options are fields of `EncoderConfig`, such
    as position="absolute" for a TF1 checkpoint without "_reset" in its name. Errors are those of
    `load_weights`; ValueError also for a run, and for no task config.
    """
    location = locate_weights(path, revision)
    kind = kind_of_weights(location)
    if kind == "hugging_face":
        encoder_config = hugging_face_config(location, **encoder_options)
        task_config = task_config or hugging_face_task_config(location)
    elif kind == "tf1":
        folder = location if location.is_dir() else location.parent
        encoder_config = EncoderConfig.from_bert_config(folder / _BERT_CONFIG, **encoder_options)
    else:
        raise ValueError(f"expected a published checkpoint, got the run in {location}")
    if task_config is None:
        raise ValueError(f"expected a task_config, for none is described in {location}")
    return location, encoder_config, task_config


def restore_published(model: EncoderTask, location: pathlib.Path) -> None:
    """Loads every variable of a built model from its checkpoint, and logs what was loaded.

    ValueError if the checkpoint lacks a variable, does not fit, or has a head that is not used; but
    for that of pre-training.
    """
    report = load_weights(model, location, require_all=True)
    logging.info("%s", report)
    heads = _HEADS
    if isinstance(model.task_config, TableQAConfig) and not (
        # Transformers stores a head for columns also where it is not in use.
        kind_of_weights(location) == "hugging_face"
        and read_config(location).get("select_one_column") is False
    ):
        heads = heads | _COLUMNS
    uses = (
        (name, use)
        for name in report.ignored
        for pattern, use in heads.items()
        if re.fullmatch(pattern, name)
    )
    if lost := dict(uses):
        raise ValueError(
            f"expected a task config that uses {', '.join(lost)} of {report.source}, got one "
            f"without, {model.task_config}; take {', '.join(dict.fromkeys(lost.values()))}"
        )


def check_sizes(source: str, encoder: EncoderConfig, task: Any, shapes: Shapes) -> None:
    """ValueError where a configuration, perhaps somebody else's, is larger than its weights."""
    hidden = encoder.hidden_size
    features = zip(TYPE_FEATURES, encoder.type_vocab_sizes, strict=True)
    rows = [encoder.vocab_size]
    rows += [size for name, size in features if name not in encoder.disabled_features]
    rows += [encoder.max_position_embeddings] * (encoder.position != "none")
    rows += [getattr(task, name, None) or 0 for name in _SIZES_OF_TASK]
    rows += [len(getattr(task, "operators", ()))]
    least = hidden * sum(rows)
    least += encoder.num_layers * (4 * hidden**2 + 2 * hidden * encoder.intermediate_size)
    if isinstance(encoder.attention, LinformerConfig):
        least += encoder.attention.sequence_length * encoder.attention.projected_length
    number = sum(math.prod(shape) for shape in shapes)
    if least > number or encoder.num_layers * _WEIGHTS_OF_LAYER > len(shapes):
        raise ValueError(
            f"expected weights of the configuration's size in {source}, at least {least:,} numbers "
            f"in {encoder.num_layers} layers, got {number:,} in {len(shapes)} weights"
        )


def published_shapes(location: pathlib.Path) -> Shapes:
    """The shapes of the weights in a Hugging Face folder or a TF1 checkpoint."""
    if kind_of_weights(location) == "hugging_face":
        files = map(open_safetensors, weight_files(location))
        names = ((file, name) for file in files for name in file.keys())  # noqa: SIM118
        return [file.get_slice(name).get_shape() for file, name in names]
    prefix = find_tf1_checkpoint(location)
    return list(tf.train.load_checkpoint(prefix).get_variable_to_shape_map().values())
