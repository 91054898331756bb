"""A model as a SavedModel.

The folder has up to three signatures. In `assets.extra` it carries the vocabulary, the
configuration, a text about the signatures and perhaps a calibration, so that a raw table can be
asked with the folder alone.

Shapes: B batch, S sequence, R rows of a table, C columns or classes, A aggregations, N spans.
"""

import dataclasses
import json
import pathlib
import shutil

import tensorflow as tf

from mate_tf.features.config import FeatureConfig
from mate_tf.features.wordpiece import Wordpiece
from mate_tf.layers.compilation import portable_graph
from mate_tf.layers.custom_gradient import without_gradients
from mate_tf.models.encoder_task import EncoderTask
from mate_tf.serving.folder import (
    CONFIG_FILE,
    EXTRA,
    SIGNATURES_FILE,
    VOCAB_FILE,
    write_calibration,
)
from mate_tf.serving.loading import StoredModel, check_longest
from mate_tf.serving.signatures import describe_signatures, exported_signatures, why_no_tables
from mate_tf.tasks import answering_task
from mate_tf.weights.run import weights_by_path


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
    if directory.exists():
        shutil.rmtree(directory)
    unfinished.rename(directory)


def export_stored(stored: StoredModel, directory: str | pathlib.Path) -> None:
    """Writes a stored model as a SavedModel, with its calibration; errors as above."""
    export_saved_model(stored.model(), stored.vocab_file, stored.feature_config, directory)
    if stored.calibration is not None:
        write_calibration(directory, stored.calibration)
