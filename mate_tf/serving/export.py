"""A model as a SavedModel with its signatures, or as a folder that other machines load.

The folder for other machines (`share`) is that of a run reduced to its weights
(mate_tf/weights/run.py), with a card: README.md, whose head the Hub reads. A SavedModel carries the
same but for the card in `assets.extra`: by it, and not by the SavedModel, our own readers answer.

Shapes: B batch, S sequence, R rows of a table, C columns or classes, A aggregations, N spans.
"""

import dataclasses
import importlib.util
import json
import pathlib
import shutil
from collections.abc import Mapping
from typing import Any

import tensorflow as tf
from absl import logging

from mate_tf.answers.predictor import DECODINGS, answering_kind
from mate_tf.config import EncoderConfig
from mate_tf.features.config import FeatureConfig
from mate_tf.features.token_features import TokenFeatures
from mate_tf.features.wordpiece import Wordpiece
from mate_tf.layers.compilation import portable_graph, without_gradients
from mate_tf.models.encoder_task import EncoderTask
from mate_tf.records.conversion_file import CONVERSION_FILE, conversion_of
from mate_tf.serving.onnx_graph import add_graph, include_weights, why_no_graph
from mate_tf.serving.stored import StoredModel, check_longest
from mate_tf.task_configs import ClassificationConfig, TableQAConfig, TaskConfig
from mate_tf.weights.folder import EXTRA, SIGNATURES_FILE, WARM_UP_FILE, write_calibration
from mate_tf.weights.run import numpy_weights, packed, weights_by_path, write_weights

Outputs = dict[str, tf.Tensor]
_NONE: Mapping[str, bytes] = {}
CARD = "README.md"
# What a card may say of a model beside what is known of it: keys of the Hub's metadata.
_FIELDS = ("base_model", "datasets", "language", "license", "metrics", "tags")

_TEXT_INPUT = dict(
    questions=tf.TensorSpec([None], tf.string, "questions"),
    headers=tf.TensorSpec([None, None], tf.string, "headers"),
    cells=tf.TensorSpec([None, None, None], tf.string, "cells"),
    num_rows=tf.TensorSpec([None], tf.int32, "num_rows"),
    num_columns=tf.TensorSpec([None], tf.int32, "num_columns"),
)
# Options of the features that need more than this, or have no code in the graph.
_REFUSED = (
    *("cell_trim_length", "drop_rows_to_fit", "histogram_row", "original_conversion"),
    *("prune_columns", "trim_cells", "use_context_heading", "use_document_title"),
)


def export_saved_model(
    model: EncoderTask,
    vocab_file: str | pathlib.Path,
    feature_config: FeatureConfig,
    directory: str | pathlib.Path,
) -> None:
    """Writes a model as a SavedModel for any batch, and any length up to the model's limit.

    The signatures `serving_default`, on serialized tf.Examples (string [B], the TAPAS schema), and
    `features`, on token features (int32 [B, S]), return float32 outputs of the task:

        table question answering: token_probabilities [B, S]; where it computes, aggregation_logits
            [B, A]; where it chooses a column first, column_logits [B, C] and token_logits [B, S];
            with operators along a row also row_scores [B, S].
        classification: class_logits [B, C].
        span reading: span_logits [B, N], in the order of `span_bounds`; perhaps class_logits.

    With a Linformer, S is its sequence_length; examples are padded to it, features must have it.

    The third, `tables`, takes text: questions string [B], headers string [B, C], cells string
    [B, R, C], and each table's num_rows and num_columns, int32 [B]. It returns answers string [B]
    and scores float32 [B]; of cells also aggregations string [B], cell_scores float32 [B, R, C] and
    selected bool [B, R, C]; of classes class_indices int32 [B] and class_logits [B, C].
    docs/serving.md says what it reads and answers, and `why_no_tables` which models lack it.

    Input beyond a limit is a tf.errors.InvalidArgumentError for the whole batch.

    Args:
        model: the built model.
        vocab_file: the wordpiece vocabulary that it was trained with.
        feature_config: how its features are made, as in training; max_seq_length is the longest
            input that a reader of the folder accepts.
        directory: the folder to write; an exported model in it is replaced.

    Raises:
        ValueError: if the folder holds something else, the vocabulary is not the model's, or
            max_seq_length is more than the model takes.
    """
    directory = pathlib.Path(directory).resolve()  # replaces a link's target, not the link
    check_longest(model.encoder_config, feature_config)
    wordpiece = Wordpiece(vocab_file)
    wordpiece.check_fits(model.encoder_config.vocab_size)
    is_model = (directory / "saved_model.pb").is_file()
    if directory.exists() and not is_model and any(directory.iterdir()):
        raise ValueError(f"expected an empty folder or an exported model at {directory}")
    # Written beside it and then moved: an interruption leaves the earlier model.
    unfinished = directory.with_name(f"{directory.name}.unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)

    module = tf.Module()
    module.weights = {path: weight.value for path, weight in weights_by_path(model).items()}
    with portable_graph(), without_gradients():
        signatures = exported_signatures(model, wordpiece, feature_config)
        tf.saved_model.save(module, str(unfinished), signatures=signatures)
    _write_folder(unfinished / EXTRA, model, pathlib.Path(vocab_file), feature_config)
    reason = why_no_tables(model.encoder_config, model.task_config, feature_config)
    description = describe_signatures(signatures, reason)
    (unfinished / SIGNATURES_FILE).write_text(description, encoding="utf-8")
    with tf.io.TFRecordWriter(str(unfinished / WARM_UP_FILE)) as file:
        file.write(_warm_up_request(signatures))
    if directory.exists():
        shutil.rmtree(directory)
    unfinished.rename(directory)


def export_stored(stored: StoredModel, directory: str | pathlib.Path) -> None:
    """Writes a stored model as a SavedModel, with its calibration; errors as above."""
    export_saved_model(stored.model(), stored.vocab_file, stored.feature_config, directory)
    if stored.calibration is not None:
        write_calibration(directory, stored.calibration)


def export_onnx(
    stored: StoredModel, directory: str | pathlib.Path, single_file: bool = False
) -> None:
    """Writes a model's weights with a graph for ONNX Runtime, and its calibration.

    Args:
        stored: the model.
        directory: the folder to write; a model of weights in it is replaced.
        single_file: whether the graph holds the weights, and the folder has no others. Then our own
            readers do not load it; docs/onnx.md says how other programs do.

    Raises:
        ValueError: if the model has no graph (`why_no_graph`), the folder is a run's, or the
            weights take more than the 2 GB that fit in a file of ONNX.
    """
    directory = pathlib.Path(directory)
    if reason := why_no_graph(stored.encoder_config, stored.task_config):
        raise ValueError(f"expected a model with a graph for ONNX Runtime: {reason}")
    _write_folder(directory, stored.model(), stored.vocab_file, stored.feature_config, stored)
    if single_file:
        include_weights(directory)


def _write_folder(
    folder: pathlib.Path,
    model: EncoderTask,
    vocab_file: pathlib.Path,
    features: FeatureConfig,
    stored: StoredModel | None = None,
    others: Mapping[str, bytes] = _NONE,
) -> None:
    """Writes a model's weights, config, vocabulary and conversion, other files, and its graph.

    With a stored model also the step and the calibration of that.
    """
    task = model.task_config
    config = {"kind": answering_kind(task), "encoder": model.encoder_config.to_dict()}
    conversion = conversion_of(None, features, vocab_file, None)
    described = {
        "config.json": _json(config | {"task": dataclasses.asdict(task)}),
        CONVERSION_FILE: _json(dataclasses.asdict(conversion)),
        "vocab.txt": vocab_file.read_bytes(),
    }
    step = (stored and stored.step) or 0
    write_weights(folder, packed(numpy_weights(model), step, exactly=True), {**described, **others})
    if reason := add_graph(folder):
        logging.info("no model.onnx in %s: %s", folder, reason)
    if stored is not None and stored.calibration is not None:
        write_calibration(folder, stored.calibration)


def _json(values: Any) -> bytes:
    return f"{json.dumps(values, indent=2)}\n".encode()


def why_no_tables(encoder: EncoderConfig, task: TaskConfig, features: FeatureConfig) -> str | None:
    """Why a model has no signature `tables`; None where it has one."""
    if not isinstance(task, TableQAConfig | ClassificationConfig):
        kind = answering_kind(task)
        return f"a model of the kind {kind} reads its answers outside the graph"
    if importlib.util.find_spec("tensorflow_text") is None:
        return "it was exported without tensorflow-text, which some systems do not have"
    if encoder.attention.is_grammar_guided:
        return "grammar-guided attention needs a tagger of parts of speech"
    refused = [name for name in _REFUSED if getattr(features, name)]
    if refused:
        return f"features with {', '.join(refused)} are not made in the graph"
    return None


def exported_signatures(
    model: EncoderTask, wordpiece: Wordpiece, feature_config: FeatureConfig
) -> dict[str, Any]:
    """The concrete signatures of a built model: `serving_default`, `features`, perhaps `tables`."""
    encoder, task = model.encoder_config, model.task_config
    output_names = DECODINGS[answering_kind(task)].outputs

    names = model.feature_names
    specs = [tf.TensorSpec([None, None], tf.int32, name) for name in names]

    @tf.function(input_signature=specs, autograph=False)
    def model_outputs(*features):
        outputs = model(TokenFeatures(*features), training=False)
        kept = [name for name in output_names if name in outputs]
        return {name: tf.cast(outputs[name], tf.float32) for name in kept}

    # So the folder holds the model's graph once.
    run = model_outputs.get_concrete_function()

    @tf.function(input_signature=specs)
    def features_signature(*features):
        return run(*features)

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, "examples")])
    def examples_signature(examples):
        spec = {name: tf.io.RaggedFeature(tf.int64, row_splits_dtype=tf.int64) for name in names}
        parsed = tf.io.parse_example(examples, spec)
        padded = (_padded(parsed[name], encoder.fixed_length) for name in names)
        return run(*padded)

    @tf.function(input_signature=list(_TEXT_INPUT.values()), autograph=False)
    def tables_signature(*given):
        from mate_tf.serving.text_signature import (
            TextInput,
            build_features,
            cell_answers,
            class_answers,
        )

        given = TextInput(*given)
        tokens, columns = build_features(wordpiece, feature_config, encoder.fixed_length, given)
        outputs = _finite(run(*tokens[: len(names)]))
        if isinstance(task, ClassificationConfig):
            return class_answers(task, outputs)
        return cell_answers(task, tokens, columns, outputs)

    signatures = {"serving_default": examples_signature, "features": features_signature}
    if why_no_tables(encoder, task, feature_config) is None:
        signatures["tables"] = tables_signature
    return {name: function.get_concrete_function() for name, function in signatures.items()}


def _warm_up_request(signatures: Mapping[str, Any]) -> bytes:
    """A short question that TensorFlow Serving asks when it loads the model: a PredictionLog.

    Its protocol buffers are not in TensorFlow. The numbers of the fields are those of
    tensorflow_serving/apis: prediction_log.proto, predict.proto and model.proto.
    """
    name = "tables" if "tables" in signatures else "features"
    specs = tf.nest.flatten(signatures[name].structured_input_signature)
    if name == "tables":
        ones = {tf.string: tf.constant("a"), tf.int32: tf.constant(1)}
        inputs = {spec.name: tf.fill([1] * spec.shape.rank, ones[spec.dtype]) for spec in specs}
    else:
        inputs = {spec.name: tf.zeros([1, 128], spec.dtype) for spec in specs}
    request = _message(1, _message(1, b"model") + _message(3, name.encode()))
    for key, value in inputs.items():
        tensor = tf.make_tensor_proto(value).SerializeToString()
        request += _message(2, _message(1, key.encode()) + _message(2, tensor))
    return _message(6, _message(1, request))


def _message(number: int, content: bytes) -> bytes:
    """A field of a protocol buffer: its number, its length and its content."""
    size, length = len(content), bytearray([8 * number + 2])
    while size > 127:
        length.append(size % 128 + 128)
        size //= 128
    return bytes([*length, size]) + content


def describe_signatures(signatures: Mapping[str, Any], why_no_tables: str | None) -> str:
    """A text for readers of the folder: what the signatures take and return."""
    lines = ["The signatures of this model; a dimension that is None may be of any size.", ""]
    for name, function in signatures.items():
        given, named = function.structured_input_signature
        parts = [("takes", spec.name, spec) for spec in (*given, *named.values())]
        parts += [("returns", *output) for output in function.structured_outputs.items()]
        lines += [name, *(f"  {how} {of}: {s.dtype.name} {list(s.shape)}" for how, of, s in parts)]
        lines += [""]
    tables_note = _TABLES_NOTE
    if why_no_tables is not None:
        tables_note = f"There is no signature `tables` on text: {why_no_tables}."
    return "\n".join([*lines, tables_note]) + "\n"


_TABLES_NOTE = """\
`tables` takes tables of different sizes padded to one, with anything; num_rows (without the header)
and num_columns say how large each is. It reads numbers in plain notation and ISO dates alone, and
its scores are not calibrated. Loading it needs the operations of tensorflow_text: in Python `import
tensorflow_text` first; TensorFlow Serving has them."""


def _finite(outputs: Outputs) -> Outputs:
    """The outputs; an error at run time where they are not finite."""
    return {
        name: tf.debugging.check_numerics(values, f"expected finite {name} of the model")
        for name, values in outputs.items()
    }


def _padded(values: tf.RaggedTensor, length: int | None) -> tf.Tensor:
    """int32 [B, S] from ragged integers [B, (S)]: S is at least the length."""
    dense = tf.cast(values.to_tensor(), tf.int32)
    missing = tf.maximum(0, (length or 0) - tf.shape(dense)[1])
    return tf.pad(dense, [[0, 0], [0, missing]])


def share(
    stored: StoredModel, folder: str | pathlib.Path, name: str = "", **fields: Any
) -> pathlib.Path:
    """Writes the folder of a model; `PretrainedPredictor.save_pretrained` says the rest."""
    folder = pathlib.Path(folder)
    model = stored.model()
    own_card = stored.vocab_file.with_name(CARD)
    if not fields and own_card.is_file():
        card = own_card.read_bytes()
    else:
        card = card_of(stored, name or str(folder), model.count_params(), **fields).encode()
    _write_folder(folder, model, stored.vocab_file, stored.feature_config, stored, {CARD: card})
    return folder


def card_of(stored: StoredModel, name: str, num_weights: int, **fields: Any) -> str:
    """The card of a model: what the Hub reads, and how it is used."""
    if unknown := sorted(fields.keys() - set(_FIELDS)):
        raise ValueError(f"expected {', '.join(_FIELDS)} of a model's card, got {unknown[0]!r}")
    encoder = stored.encoder_config
    is_classifier = isinstance(stored.task_config, ClassificationConfig)
    head = {
        "language": "en",
        "library_name": "mate_tf",
        "pipeline_tag": "text-classification" if is_classifier else "table-question-answering",
        **fields,
        "tags": list(dict.fromkeys(["tables", "mate", "tensorflow", *fields.get("tags", ())])),
    }
    # What is JSON is YAML too.
    lines = [f"{key}: {json.dumps(value, ensure_ascii=False)}" for key, value in head.items()]
    calibration = "Its scores are not calibrated."
    if stored.calibration is not None:
        calibration = (
            "Its scores are calibrated: of the answers with a score of 0.8, eight of ten were "
            f"right. From {stored.calibration.sure:.2f} on an answer is said plainly, from "
            f"{stored.calibration.probably:.2f} on as probable."
        )
    does = "Tells which statements about tables are true."
    return _CARD.format(
        head="\n".join(lines),
        name=name,
        does=does if is_classifier else "Answers questions about tables.",
        millions=num_weights / 1e6,
        layers=encoder.num_layers,
        width=encoder.hidden_size,
        attention=encoder.attention.architecture,
        longest=stored.feature_config.max_seq_length,
        calibration=calibration,
    )


_CARD = """\
---
{head}
---

# {name}

{does} It has {millions:.1f} million weights, {layers} layers of width {width}, and the attention
`{attention}`. It reads questions with tables of up to {longest} tokens. {calibration}

    pip install 'mate_tf[hub]'

```python
from mate_tf import Table, from_pretrained

model = from_pretrained("{name}")
answer = model.answer(Table.from_csv("table.csv"), "which one is the largest?")
print(answer.text, answer.score, answer.cells)
```
"""
