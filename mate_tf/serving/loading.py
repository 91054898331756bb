"""A model that answers questions, from where it is stored."""

import dataclasses
import functools
import pathlib

import tensorflow as tf

from mate_tf.answers.predictor import ModelFunction, Predictor
from mate_tf.features.builder import FeatureBuilder
from mate_tf.features.token_features import PART_OF_SPEECH, TokenFeatures
from mate_tf.features.wordpiece import Wordpiece
from mate_tf.layers.inference import inference_function
from mate_tf.serving.export import check_longest
from mate_tf.serving.folder import DEFAULT_MODEL, is_exported
from mate_tf.serving.stored_model import find_model
from mate_tf.tables.part_of_speech import Tagger


def from_pretrained(
    path: str | pathlib.Path = DEFAULT_MODEL,
    *,
    revision: str | None = None,
    architecture: str | None = None,
    dtype: str | None = None,
    tagger: Tagger | None = None,
    min_score: float = 0.0,
    num_alternatives: int = 0,
    calibrated: bool = True,
    **feature_overrides,
) -> Predictor:
    """Loads a model that answers questions about tables, by its name or path.

    An exported model is asked through its own graph, which starts in the least time; with an
    architecture or a dtype, and where it is stored otherwise, the model is made anew with its
    weights (`inference_function`).

    Args:
        path: an exported model's folder, that of a run, a Hugging Face folder of TAPAS or BERT, or
            the name of one on the Hub ("google/tapas-base-finetuned-wtq", with the extra "hub");
            without it, the small model that comes with the package.
        revision: of a name on the Hub: a commit, branch or tag.
        architecture: how tokens attend to each other, in place of what the model was trained with:
            a name of mate_tf/presets.py that adds no weights, such as "mate", which reads tables
            far beyond 512 tokens.
        dtype: "mixed_bfloat16" is faster on processors that compute in it, "float32" exact.
        tagger: tags questions for a model with grammar-guided attention, as its training did.
        min_score: where the score is lower, there is no answer (`Answer.answered`).
        num_alternatives: the most alternatives that an answer gets.
        calibrated: whether scores follow the model's calibration, where it has one
            (`write_calibration`).
        **feature_overrides: fields of `FeatureConfig` to change, such as drop_rows_to_fit.

    Raises:
        FileNotFoundError: if there is no model.
        ModuleNotFoundError, OSError: if a name needs the extra "hub", or is not on the Hub or out
            of reach.
        ValueError: if it answers no questions, has an option that is not known here or another
            vocabulary than it was trained with, max_seq_length is changed to more than it takes, or
            min_score or num_alternatives is out of its range.

    Example:
        model = from_pretrained("google/tapas-base-finetuned-wtq", architecture="mate")
        answers = model.answer(Table.from_csv("table.csv"), ["who won?", "when?"])
    """
    stored = find_model(path, revision, architecture)
    known = {field.name for field in dataclasses.fields(stored.feature_config)}
    if unknown := sorted(feature_overrides.keys() - known):
        raise ValueError(
            f"expected feature options among {', '.join(sorted(known))}, got {unknown[0]!r}"
        )
    feature_config = dataclasses.replace(stored.feature_config, **feature_overrides)
    check_longest(stored.encoder_config, feature_config)
    wordpiece = Wordpiece(stored.vocab_file)
    wordpiece.check_fits(stored.encoder_config.vocab_size)
    model = functools.cache(stored.model)  # one for the answers and what they attended to
    is_graph = is_exported(pathlib.Path(path)) and architecture is None and dtype is None
    run = _exported_function(path) if is_graph else inference_function(model(dtype or "float32"))
    return Predictor(
        run,
        FeatureBuilder(wordpiece, feature_config, tagger),
        fixed_length=stored.encoder_config.fixed_length,
        task_config=stored.task_config,
        calibration=stored.calibration if calibrated else None,
        min_score=min_score,
        num_alternatives=num_alternatives,
        keras_model=lambda: model("float32"),
    )


def _exported_function(directory: str | pathlib.Path) -> ModelFunction:
    """What the signature "features" of an exported model computes."""
    # The predictor keeps the function, the function keeps the model.
    signature = tf.saved_model.load(str(directory)).signatures["features"]
    names = signature.structured_input_signature[1]

    def run(features: TokenFeatures):
        if PART_OF_SPEECH in names and features.part_of_speech_ids is None:
            raise ValueError(
                f"expected a tagger for the model in {directory}, whose attention grammar guides"
            )
        return signature(**{name: getattr(features, name) for name in names})

    return run
