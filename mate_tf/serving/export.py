"""A model as a SavedModel, and its signatures.

There are up to three: on serialized examples, on token features, on raw tables. The last, `tables`,
takes questions and tables as text and returns answers as text; its graph holds wordpieces and the
reading of numbers and outputs. To load a folder that has it, the operations of tensorflow_text are
needed, in Python `import tensorflow_text`. In `assets.extra` the folder carries the vocabulary, the
configuration, a text about the signatures and perhaps a calibration.

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

from mate_tf.config import EncoderConfig
from mate_tf.features.config import FeatureConfig
from mate_tf.features.token_features import PART_OF_SPEECH, TAPAS_FEATURES, TokenFeatures
from mate_tf.features.wordpiece import Wordpiece
from mate_tf.layers.compilation import portable_graph, without_gradients
from mate_tf.models.classification import ClassificationConfig
from mate_tf.models.encoder_task import EncoderTask, TaskConfig
from mate_tf.models.table_qa import TableQAConfig
from mate_tf.serving.folder import (
    CONFIG_FILE,
    EXTRA,
    SIGNATURES_FILE,
    VOCAB_FILE,
    WARM_UP_FILE,
    write_calibration,
)
from mate_tf.serving.loading import StoredModel, check_longest
from mate_tf.tasks import answering_task
from mate_tf.weights.run import weights_by_path

Outputs = dict[str, tf.Tensor]

_RAW_INPUT = dict(
    questions=tf.TensorSpec([None], tf.string, "questions"),
    headers=tf.TensorSpec([None, None], tf.string, "headers"),
    cells=tf.TensorSpec([None, None, None], tf.string, "cells"),
    num_rows=tf.TensorSpec([None], tf.int32, "num_rows"),
    num_columns=tf.TensorSpec([None], tf.int32, "num_columns"),
)
# Options of the features that need more than raw input, or have no code in the graph.
_REFUSED = (
    "drop_rows_to_fit",
    "histogram_row",
    "original_conversion",
    "prune_columns",
    "use_context_heading",
    "use_document_title",
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
            [B, A]; where it chooses a column first, column_logits [B, C] and token_logits [B, S].
        classification: class_logits [B, C].
        span reading: span_logits [B, N], in the order of `span_bounds`; perhaps class_logits.

    With a Linformer, S is its sequence_length; examples are padded to it, features must have it.

    The third, `tables`, takes raw text: questions string [B], headers string [B, C], cells string
    [B, R, C], and each table's num_rows and num_columns, int32 [B]. It returns

        table question answering: answers and aggregations string [B], scores float32 [B],
            cell_scores float32 [B, R, C] and selected bool [B, R, C].
        classification: answers string [B], class_indices int32 [B], scores float32 [B] and
            class_logits [B, C].

    `describe_signatures` says how these answers differ from the library's, and `why_no_tables`
    which models lack the signature. Input beyond a limit is a tf.errors.InvalidArgumentError for
    the whole batch.

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
    # Under the names in checkpoints of runs (mate_tf/weights/run.py).
    module.weights = {path: weight.value for path, weight in weights_by_path(model).items()}
    with portable_graph(), without_gradients():
        signatures = exported_signatures(model, wordpiece, feature_config)
        tf.saved_model.save(module, str(unfinished), signatures=signatures)
    (unfinished / EXTRA).mkdir()
    shutil.copyfile(vocab_file, unfinished / VOCAB_FILE)
    config = {
        "kind": answering_task(model.task_config).name,
        "encoder": model.encoder_config.to_dict(),
        "task": dataclasses.asdict(model.task_config),
        "features": dataclasses.asdict(feature_config),
    }
    (unfinished / CONFIG_FILE).write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")
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


def why_no_tables(encoder: EncoderConfig, task: TaskConfig, features: FeatureConfig) -> str | None:
    """Why a model has no signature `tables`; None where it has one."""
    if not isinstance(task, TableQAConfig | ClassificationConfig):
        return (
            f"a model of the kind {answering_task(task).name} reads its answers outside the graph"
        )
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
    output_names = answering_task(task).outputs

    names = (*TAPAS_FEATURES, *([PART_OF_SPEECH] if encoder.attention.is_grammar_guided else ()))
    of_features = [tf.TensorSpec([None, None], tf.int32, name) for name in names]

    @tf.function(input_signature=of_features, autograph=False)
    def model_outputs(*features):
        outputs = model(TokenFeatures(*features), training=False)
        kept = [name for name in output_names if name in outputs]
        return {name: tf.cast(outputs[name], tf.float32) for name in kept}

    # So the folder holds the model's graph once.
    run = model_outputs.get_concrete_function()

    @tf.function(input_signature=of_features)
    def features_signature(*features):
        return run(*features)

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, "examples")])
    def examples_signature(examples):
        spec = {name: tf.io.RaggedFeature(tf.int64, row_splits_dtype=tf.int64) for name in names}
        parsed = tf.io.parse_example(examples, spec)
        padded = (_padded(parsed[name], encoder.fixed_length) for name in names)
        return run(*padded)

    @tf.function(input_signature=list(_RAW_INPUT.values()), autograph=False)
    def tables_signature(*given):
        from mate_tf.serving.raw_text.answers import cell_answers, class_answers
        from mate_tf.serving.raw_text.features import RawInput, build_features

        asked = build_features(wordpiece, feature_config, encoder.fixed_length, RawInput(*given))
        outputs = _finite(run(*asked.tokens[: len(names)]))
        if isinstance(task, ClassificationConfig):
            return class_answers(task, outputs)
        return cell_answers(task, asked, outputs)

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
        inputs = function.structured_input_signature
        specs = [*inputs[0], *inputs[1].values()]
        lines += [name, *(f"  takes {_described(spec.name, spec)}" for spec in specs)]
        outputs = function.structured_outputs.items()
        lines += [*(f"  returns {_described(key, spec)}" for key, spec in outputs), ""]
    if why_no_tables is None:
        lines += [_OF_TABLES]
    else:
        lines += [f"There is no signature `tables` on raw tables: {why_no_tables}."]
    return "\n".join(lines) + "\n"


_OF_TABLES = """\
The signature `tables` asks questions about tables that are given as text, in UTF-8. Tables of
different sizes are padded to one [B, R, C], with anything; num_rows (without the header) and
num_columns say how large each is. A batch with a table beyond a limit is refused. The answers are
those of the library (`mate_tf.from_pretrained`), except that

- scores are the model's, without the calibration that the folder may have;
- there is no conversation (prev_label_ids are 0), no least score and no alternatives;
- numbers and dates are read in the graph. In rare texts this changes column_ranks,
  inv_column_ranks, numeric_relations and what is computed: beside letters that are not ASCII the
  end of a word is not seen; a length of time in words has each unit once, the longest first; where
  values are read by themselves (columns of text, the words of a question, models of before numbers
  were read by column) only ASCII digits are read, of values that overlap without one being within
  the other ("1 may 5", "4 may 2004.", "1,1024") each begins where the last one ended, and a number
  too large for single precision, or a February 29 that is not in its year, is not read;
- sums are added up one by one in double precision, not exactly.

What is loaded needs the operations of tensorflow_text: in Python `import tensorflow_text` first.
TensorFlow Serving has them."""


def _described(name: str, spec) -> str:
    return f"{name}: {spec.dtype.name} {list(spec.shape)}"


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
