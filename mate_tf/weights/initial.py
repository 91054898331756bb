"""Weights to start from, wherever they are: Hugging Face, the Hub, a TF1 checkpoint or a run.

Of a Hugging Face folder of BERT or TAPAS config.json and safetensors are read. All tensors go into
a model's variables by the names of the TF1 checkpoints.

Shapes: V rows of a table, D hidden, A aggregations.
"""

import dataclasses
import functools
import json
import math
import pathlib
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from absl import logging

from mate_tf.config import TYPE_FEATURES, EncoderConfig, LinformerConfig, read_json_object
from mate_tf.dataclass_json import from_dict, require
from mate_tf.features.wordpiece import read_vocabulary
from mate_tf.layers.encoder import TableEncoder
from mate_tf.models.encoder_task import EncoderTask
from mate_tf.paths import as_path
from mate_tf.tables.operators import TAPAS_OPERATORS
from mate_tf.task_configs import (
    ClassificationConfig,
    MaskedLMConfig,
    TableQAConfig,
    TaskConfig,
)
from mate_tf.weights.folder import find_tf1_checkpoint, kind_of_weights, locate_weights
from mate_tf.weights.run import FILE, open_safetensors, run_weights, weights_by_path

Shapes = Sequence[Sequence[int]]
Tensors = Mapping[str, Callable[[], np.ndarray]]

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
    r"column_output_(weights|bias)": "select_one_column of TableQAConfig",
    r"output_(weights|bias)_agg": "operators of TableQAConfig",
    r"output_(weights|bias)_cls": "ClassificationConfig or num_classes of SpanReadingConfig",
    r"loss/span_output_(weights|bias)": "kind='span' of SpanReadingConfig",
    r"loss/span_hidden_(weights|bias)": "hidden_size of SpanReadingConfig",
    r"loss/(start|end)_output_(weights|bias)": "kind='boundary' of SpanReadingConfig",
}
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
_TAPAS_DEFAULTS = {"use_answer_as_supervision": False, "max_num_rows": 64, "max_num_columns": 32}
_SHARDS = "model.safetensors.index.json"
_PICKLES = ("pytorch_model.bin", "pytorch_model.bin.index.json", "tf_model.h5")
# What makes the checkpoints' names of those in a Hugging Face folder, one after the other.
_OF_HUGGING_FACE = (
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
ENCODER = "bert/"
_TYPES = "bert/embeddings/token_type_embeddings"
_POSITIONS = "bert/embeddings/position_embeddings"
_WORDS = "bert/embeddings/word_embeddings"
_POOLER = "bert/pooler/dense/"
# The heads that read the pooled token. TapasForMaskedLM has none of them, and no pooler.
_OF_POOLED = {"output_weights_agg", "output_weights_cls", "cls/seq_relationship/output_weights"}
_OF_OPERATORS = ("output_weights_agg", "output_bias_agg")
_BIAS_OF_NEW_OPERATORS = -4.0
_LAYER = re.compile(r"bert/encoder/layer_(\d+)/")
# What TableFormer, Linformer and TableETC add to BERT; checkpoints to start from lack it.
_OF_AN_ARCHITECTURE = "/self/(relative_|proj_seq_length)|/global_embeddings$"
_RANDOM_STATE = "seed_generator_state"
_PATH_OF_WORDS = "embedding/word_embeddings"
# The same of paths in an encoder.
_OF_ENCODER = (
    (r"^embedding/", "embeddings/"),
    (r"^layer_", "encoder/layer_"),
    (r"/attention/(?!output/)(?:relations/)?", "/attention/self/"),
    (r"/attention_layer_norm/", "/attention/output/LayerNorm/"),
    (r"/output_layer_norm/", "/output/LayerNorm/"),
    (r"/layer_norm/", "/LayerNorm/"),
    (r"(intermediate|output|pooler)/(kernel|bias)$", r"\1/dense/\2"),
    (r"proj_seq_length$", "proj_seq_length/kernel"),
)


@dataclasses.dataclass(frozen=True)
class LoadReport:
    """The names of variables that a checkpoint gave to a model, and of others."""

    source: str  # the checkpoint
    loaded: tuple[str, ...]  # took its values
    new: tuple[str, ...]  # of the model, left as they were, for the checkpoint lacks them
    ignored: tuple[str, ...]  # of the checkpoint, which the model lacks
    reset: tuple[str, ...] = ()  # of both, left as they were, for heads start anew
    moved_first_position: bool = False  # whether its embedding became part of [CLS]'s

    def __str__(self) -> str:
        lines = [f"loaded {len(self.loaded)} variables from {self.source}"]
        for kind, names in (
            ("heads among them", [name for name in self.loaded if not name.startswith(ENCODER)]),
            ("not in it, left at their initial value", self.new),
            ("in it, but left at their initial value", self.reset),
            ("in it, but not in the model", self.ignored),
        ):
            lines += [f"{kind}: {', '.join(names)}"] if names else []
        if self.moved_first_position:
            lines.append("what it says of the first position, where [CLS] stands, went to [CLS]")
        return "; ".join(lines)


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
    path = _existing(directory, _CONFIG)
    config = read_json_object(path)
    kind = config.get("model_type")
    if kind not in ("bert", "tapas"):
        raise ValueError(f"expected model_type 'bert' or 'tapas' in {path}, got {kind!r}")
    return config


def _existing(directory: str | pathlib.Path, name: str) -> pathlib.Path:
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
    source = str(shards[0] if len(shards) == 1 else pathlib.Path(directory) / _SHARDS)
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
    if (directory / FILE).is_file():
        return [directory / FILE]
    if not (directory / _SHARDS).is_file():
        pickles = [name for name in _PICKLES if (directory / name).is_file()]
        raise FileNotFoundError(
            f"expected {FILE} in {directory}"
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
    return [_existing(directory, name) for name in names]


def _read(file, stored: str, name: str) -> np.ndarray:
    value = file.get_tensor(stored)
    return value.T if name.endswith("/kernel") else value  # PyTorch keeps them as [out, in]


def _tf1_name(stored: str) -> str:
    """The TF1 checkpoint's name of a Hugging Face tensor."""
    for pattern, replacement in _OF_HUGGING_FACE:
        stored = re.sub(pattern, replacement, stored)
    return stored.replace(".", "/")


def load_run(
    model: keras.layers.Layer, directory: str | pathlib.Path, **options: Any
) -> LoadReport:
    """Loads a run (`run_weights`) by the places of variables; options are of `assign_variables`."""
    directory = as_path(directory)
    stored = run_weights(directory)
    config = read_json_object(directory / _CONFIG)
    check_num_heads(model, config["encoder"].get("num_heads"), directory / _CONFIG)
    variable_names = {id(variable): name for name, variable in variables_by_name(model).items()}
    # An encoder alone is a part of the run's model.
    prefix = "encoder/" if encoder_of(model) is model else ""
    names = {
        prefix + path: variable_names[id(variable)]
        for path, variable in weights_by_path(model).items()
        if id(variable) in variable_names
    }
    tensors = {}
    for path, tensor in stored.weights.items():
        # What the model's encoder lacks is named as in checkpoints, with its layer.
        other = ENCODER + path if path.startswith("encoder/") else path
        if path not in names and other in names.values():
            # A head at another place of the run's model has the name of this model's: masked words
            # and table questions both have an output_bias.
            other += " (of another head)"
        tensors[names.get(path, other)] = tensor.read
    task = config.get("task")
    names_of_rows = task.get("operators", ()) if isinstance(task, dict) else ()
    return assign_variables(model, tensors, stored.prefix, operators=names_of_rows, **options)


_LOADERS: dict[str, Callable[..., LoadReport]] = {
    "hugging_face": load_hugging_face,
    "run": load_run,
    "tf1": load_tf1_checkpoint,
}


def assign_variables(
    model: keras.layers.Layer,
    tensors: Tensors,
    source: str,
    *,
    reset_heads: bool = False,
    require_all: bool = False,
    cls_id: int | None = None,
    operators: Sequence[str] = TAPAS_OPERATORS,
) -> LoadReport:
    """Assigns tensors, functions that read one, by their TF1 names to a model's variables.

    BERT has one table of sentence types: its rows become the first rows of the segment table, and
    the six other type tables stay as they are. A position table longer than the model's is cut. A
    pooler may be missing: weights for masked words only have none.

    The source is named in messages; `reset_heads` and `require_all` are as of `load_weights`, but
    for a pooler that no head reads. With the index of [CLS] in the vocabulary, BERT's position of
    [CLS] is made fit for positions that restart in each cell. The operators are those of the
    aggregation head's rows, which go to their places in the model.

    ValueError if a tensor of the encoder is missing, the checkpoint has more layers, a tensor has
    another shape than its variable, or, with `require_all`, a variable has no tensor.
    """
    variables = variables_by_name(model)
    _check_layers(encoder_of(model).config.num_layers, tensors, source)
    is_bert = _TYPES in tensors
    has_pooler = any(name.startswith(_POOLER) for name in tensors)
    loaded, new, reset, used = [], [], [], set()
    for name, variable in variables.items():
        stored = _TYPES if is_bert and name == f"{_TYPES}_0" else name
        if stored not in tensors:
            may_be_new = (
                re.search(_OF_AN_ARCHITECTURE, name)
                or (is_bert and name.startswith(_TYPES))
                or (not has_pooler and name.startswith(_POOLER))
            )
            if name.startswith(ENCODER) and not may_be_new:
                raise ValueError(f"expected variable {name!r} in {source}, which does not have it")
            new.append(name)
            continue
        used.add(stored)
        if reset_heads and not name.startswith(ENCODER):
            reset.append(name)
            continue
        value = np.asarray(tensors[stored](), np.float32)
        if name.endswith(_OF_OPERATORS) and len(value) == len(operators):
            value = _known_operator_rows(model, value, operators, variable.numpy())
        variable.assign(_fitted(name, value, variable, is_bert, source))
        loaded.append(name)
    without = new + reset
    if not _OF_POOLED & set(variables):
        without = [name for name in without if not name.startswith(_POOLER)]
    if require_all and without:
        raise ValueError(
            f"expected every variable of the model in {source}, which has none for "
            f"{', '.join(without)}; they would be left at their initial value"
        )
    ignored = sorted(name for name in tensors if name not in used)
    moved = False
    if is_bert and cls_id is not None and encoder_of(model).config.position == "per_cell":
        _move_first_position(variables[_WORDS], variables[_POSITIONS], cls_id)
        moved = True
    return LoadReport(source, tuple(loaded), tuple(new), tuple(ignored), tuple(reset), moved)


def _move_first_position(words: keras.Variable, positions: keras.Variable, cls_id: int) -> None:
    """Moves what is special about the first position into the embedding of [CLS].

    In BERT only [CLS] stands there, with an embedding several times as large as the others, which
    would drown the first word of each cell. BERT's own sequences come out the same. [V, D] each.
    """
    word_vectors, position_vectors = words.numpy(), positions.numpy()
    word_vectors[cls_id] += position_vectors[0] - position_vectors[1]
    position_vectors[0] = position_vectors[1]
    words.assign(word_vectors)
    positions.assign(position_vectors)


def check_num_heads(model: keras.layers.Layer, num_heads: int | None, file: object) -> None:
    """Refuses weights with another number of attention heads (None: unknown); no shape shows it."""
    expected = encoder_of(model).config.num_heads
    if num_heads not in (None, expected):
        raise ValueError(
            f"expected {expected} attention heads (num_heads of the model), got {num_heads} in "
            f"{file}"
        )


def _check_layers(num_layers: int, tensors: Tensors, source: str) -> None:
    layers = {name: int(match[1]) for name in sorted(tensors) if (match := _LAYER.match(name))}
    if beyond := [name for name, layer in layers.items() if layer >= num_layers]:
        raise ValueError(
            f"expected {num_layers} layers (num_layers of the model), got "
            f"{len(set(layers.values()))} in {source}, with variable {beyond[0]!r}"
        )


def _fitted(
    name: str, value: np.ndarray, variable: keras.Variable, is_bert: bool, source: str
) -> np.ndarray:
    """The value in the variable's shape: tables [V, D] may be cut or filled up."""
    expected = tuple(variable.shape)
    if value.shape == expected:
        return value
    same_rows = value.ndim and value.shape[1:] == expected[1:]
    if same_rows and len(value) > expected[0] and name == _POSITIONS:
        return value[: expected[0]]
    if same_rows and is_bert and name == f"{_TYPES}_0":
        filled = variable.numpy()
        filled[: len(value)] = value[: len(filled)]
        return filled
    hint = "" if name.startswith(ENCODER) else "; reset_heads leaves the heads out"
    raise ValueError(
        f"expected shape {expected} for variable {name!r}, got {value.shape} in {source}{hint}"
    )


def _known_operator_rows(
    model: keras.layers.Layer, value: np.ndarray, operators: Sequence[str], start: np.ndarray
) -> np.ndarray:
    """The rows of an aggregation head, [A] or [A, D], in the order of the model's operators.

    One that is new to the weights keeps its own, and a bias with which it is unlikely.
    """
    names = model.task_config.operators
    if lost := [name for name in operators if name not in names]:
        raise ValueError(
            f"expected a model with the operators of the weights, {', '.join(operators)}, got one "
            f"without {', '.join(lost)}; reset_heads leaves the heads out"
        )
    rows = start if start.ndim > 1 else np.full_like(start, _BIAS_OF_NEW_OPERATORS)
    rows[[names.index(name) for name in operators]] = value
    return rows


def variables_by_name(model: keras.layers.Layer) -> dict[str, keras.Variable]:
    """The variables of an encoder, or of a model that has one, by their checkpoint names.

    Those of heads have their own names, or those of the model's `checkpoint_variables`. ValueError
    if the variables do not exist yet, or two would have one name.
    """
    encoder = encoder_of(model)
    if not encoder.built:
        raise ValueError(f"expected a built model, got {model.name!r} without variables")
    root = encoder.embedding.word_embeddings.path.removesuffix(_PATH_OF_WORDS)
    names = {}
    for variable in encoder.weights:
        if not variable.path.endswith(_RANDOM_STATE):
            name = variable.path.removeprefix(root)
            for pattern, replacement in _OF_ENCODER:
                name = re.sub(pattern, replacement, name)
            names[f"{ENCODER}{name}"] = variable
    if hasattr(model, "checkpoint_variables"):
        names |= model.checkpoint_variables()
    known = {id(variable) for variable in names.values()}
    for variable in model.weights:
        if id(variable) in known or variable.path.endswith(_RANDOM_STATE):
            continue
        if variable.name in names:
            raise ValueError(f"two variables are named {variable.name!r} in model {model.name!r}")
        names[variable.name] = variable
    return names


def encoder_of(model: keras.layers.Layer) -> TableEncoder:
    """The model itself where it is an encoder, or else its `.encoder`."""
    return model if isinstance(model, TableEncoder) else model.encoder


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
    lost = {
        name: use
        for name in report.ignored
        for pattern, use in _HEADS.items()
        if re.fullmatch(pattern, name)
    }
    if not isinstance(model.task_config, TableQAConfig) or (
        # Transformers stores a head for columns also where it is not in use.
        kind_of_weights(location) == "hugging_face"
        and read_config(location).get("select_one_column") is False
    ):
        lost = {name: use for name, use in lost.items() if not name.startswith("column_")}
    if lost:
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
