"""A model as a SavedModel, and back as something that answers questions.

The folder is a plain SavedModel with two signatures, and carries the vocabulary and the
configuration in `assets.extra`, so that a raw table can be asked where only the folder is.

Shapes: B batch, S sequence, A aggregations.
"""

import dataclasses
import json
import pathlib
import shutil

import tensorflow as tf

from mate_tf.config import EncoderConfig
from mate_tf.tables.features import FeatureBuilder, FeatureConfig
from mate_tf.tables.part_of_speech import Tagger
from mate_tf.tables.token_features import PART_OF_SPEECH, TAPAS_FEATURES, TokenFeatures
from mate_tf.tables.wordpiece import Wordpiece
from mate_tf.tasks.predictor import Predictor
from mate_tf.tasks.table_qa import TableQuestionAnswering

_EXTRA = "assets.extra"
_CONFIG_FILE = "mate_tf.json"
_VOCAB_FILE = "vocab.txt"
_OUTPUTS = ("token_probabilities", "aggregation_logits")


def export_saved_model(
    model: TableQuestionAnswering,
    vocab_file: str | pathlib.Path,
    feature_config: FeatureConfig,
    directory: str | pathlib.Path,
) -> None:
    """Writes a model as a SavedModel that takes any batch, and any length up to the model's limit.

    Its signatures, `serving_default` on serialized tf.Examples (string [B], the TAPAS schema) and
    `features` on the token features that it reads (int32 [B, S]), return token_probabilities
    float32 [B, S] and, where the model computes, aggregation_logits float32 [B, A]. With a
    Linformer, S is its sequence_length: examples are padded to it, features have to be.

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
    directory = pathlib.Path(directory)
    _check_longest(model.encoder_config, feature_config)
    vocabulary_size = len(Wordpiece(vocab_file).vocabulary)
    if vocabulary_size > model.encoder_config.vocab_size:
        raise ValueError(
            f"expected a vocabulary of at most {model.encoder_config.vocab_size} pieces for this "
            f"model, got {vocabulary_size} in {vocab_file}"
        )
    if directory.exists():
        if any(directory.iterdir()) and not (directory / "saved_model.pb").is_file():
            raise ValueError(f"expected an empty folder or an exported model at {directory}")
        shutil.rmtree(directory)

    def run(features: TokenFeatures) -> dict[str, tf.Tensor]:
        outputs = model(features, training=False)
        return {name: tf.cast(outputs[name], tf.float32) for name in _OUTPUTS if name in outputs}

    fixed_length = model.encoder_config.fixed_length
    is_grammar_guided = model.encoder_config.attention.is_grammar_guided
    names = (*TAPAS_FEATURES, *([PART_OF_SPEECH] if is_grammar_guided else ()))

    @tf.function(input_signature=[tf.TensorSpec([None, None], tf.int32, name) for name in names])
    def features_signature(*features):
        return run(TokenFeatures(*features))

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, "examples")])
    def examples_signature(examples):
        spec = {name: tf.io.RaggedFeature(tf.int64, row_splits_dtype=tf.int64) for name in names}
        parsed = tf.io.parse_example(examples, spec)
        return run(TokenFeatures(*(_padded(parsed[name], fixed_length) for name in names)))

    module = tf.Module()
    module.weights = [weight.value for weight in model.weights]
    tf.saved_model.save(
        module,
        str(directory),
        signatures={
            "serving_default": examples_signature,
            "features": features_signature.get_concrete_function(),
        },
        # Nobody trains an exported model.
        options=tf.saved_model.SaveOptions(experimental_custom_gradients=False),
    )
    extra = directory / _EXTRA
    extra.mkdir()
    shutil.copyfile(vocab_file, extra / _VOCAB_FILE)
    config = {
        "encoder": model.encoder_config.to_dict(),
        "task": model.task_config.to_dict(),
        "features": dataclasses.asdict(feature_config),
    }
    (extra / _CONFIG_FILE).write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")


def serving_features(trained_on: FeatureConfig, max_seq_length: int) -> FeatureConfig:
    """How features are made for a model that was trained on records made in this way.

    A sequence is made of the same as in training. What was only for training, the labels, is left
    away, and no row is dropped unless whoever asks allows it (`load_predictor`).

    Args:
        trained_on: how the training's features were made.
        max_seq_length: the longest input, in tokens; examples may have been shorter.
    """
    return dataclasses.replace(
        trained_on,
        max_seq_length=max_seq_length,
        drop_rows_to_fit=False,
        label_answer_spans=False,
        add_aggregation_candidates=False,
    )


def load_predictor(
    directory: str | pathlib.Path, tagger: Tagger | None = None, **feature_overrides
) -> Predictor:
    """Loads an exported model, which needs none of the code that made it.

    Args:
        directory: what `export_saved_model` wrote.
        tagger: tags questions for a model with grammar-guided attention, as its training did.
        **feature_overrides: fields of `FeatureConfig` to change, such as drop_rows_to_fit.

    Raises:
        FileNotFoundError: if there is no exported model.
        ValueError: if max_seq_length is changed to more than the model takes.
    """
    directory = pathlib.Path(directory)
    for name in ("saved_model.pb", f"{_EXTRA}/{_CONFIG_FILE}", f"{_EXTRA}/{_VOCAB_FILE}"):
        if not (directory / name).is_file():
            raise FileNotFoundError(
                f"expected an exported model at {directory}, which has no {name}; "
                "experiments/export.py writes one"
            )
    config = json.loads((directory / _EXTRA / _CONFIG_FILE).read_text(encoding="utf-8"))
    encoder_config = EncoderConfig.from_dict(config["encoder"])
    feature_config = FeatureConfig(**(config["features"] | feature_overrides))
    _check_longest(encoder_config, feature_config)
    builder = FeatureBuilder(Wordpiece(directory / _EXTRA / _VOCAB_FILE), feature_config, tagger)
    # The predictor keeps the function, the function keeps the model.
    signature = tf.saved_model.load(str(directory)).signatures["features"]
    names = signature.structured_input_signature[1]

    def run(features: TokenFeatures):
        if PART_OF_SPEECH in names and features.part_of_speech_ids is None:
            raise ValueError(
                f"expected a tagger for the model in {directory}, whose attention grammar guides"
            )
        return signature(**{name: getattr(features, name) for name in names})

    return Predictor(run, builder, fixed_length=encoder_config.fixed_length)


def _check_longest(encoder: EncoderConfig, features: FeatureConfig) -> None:
    """ValueError where features could be longer than the encoder takes."""
    limit, longest = encoder.longest_sequence, features.max_seq_length
    if limit is not None and (longest is None or longest > limit):
        what = "sequence_length" if limit == encoder.fixed_length else "position embeddings"
        raise ValueError(
            f"expected max_seq_length of at most {limit}, the {what} of this model, got {longest}"
        )


def _padded(values: tf.RaggedTensor, length: int | None) -> tf.Tensor:
    """int32 [B, S] of ragged integers [B, (S)]: S is the longest, or the length if that is more."""
    dense = tf.cast(values.to_tensor(), tf.int32)
    missing = tf.maximum(0, (length or 0) - tf.shape(dense)[1])
    return tf.pad(dense, [[0, 0], [0, missing]])
