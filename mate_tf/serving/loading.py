"""A model that answers questions, from where it is stored."""

import pathlib

import tensorflow as tf

from mate_tf.config import EncoderConfig, read_json
from mate_tf.dataclass_json import from_dict
from mate_tf.serving.export import check_longest
from mate_tf.serving.folder import CONFIG_FILE, VOCAB_FILE, check_exported
from mate_tf.serving.stored_calibration import read_calibration
from mate_tf.tables.features import FeatureBuilder, FeatureConfig
from mate_tf.tables.part_of_speech import Tagger
from mate_tf.tables.token_features import PART_OF_SPEECH, TokenFeatures
from mate_tf.tables.wordpiece import Wordpiece
from mate_tf.tasks.kinds import KINDS
from mate_tf.tasks.predictor import Predictor


def from_pretrained(
    directory: str | pathlib.Path,
    tagger: Tagger | None = None,
    min_score: float = 0.0,
    num_alternatives: int = 0,
    calibrated: bool = True,
    **feature_overrides,
) -> Predictor:
    """Loads an exported model, which needs none of the code that made it.

    Args:
        directory: what `export_saved_model` wrote.
        tagger: tags questions for a model with grammar-guided attention, as its training did.
        min_score: where the score is lower, there is no answer (`Answer.answered`).
        num_alternatives: the most alternatives that an answer gets.
        calibrated: whether scores follow the folder's calibration, where it has one
            (`write_calibration`).
        **feature_overrides: fields of `FeatureConfig` to change, such as drop_rows_to_fit.

    Raises:
        FileNotFoundError: if there is no exported model.
        ValueError: if it is of a kind or has an option that is not known here, max_seq_length is
            changed to more than it takes, or min_score or num_alternatives is out of its range.
    """
    directory = pathlib.Path(directory)
    check_exported(directory)
    config = read_json(directory / CONFIG_FILE)
    kind = config.get("kind")
    if kind not in KINDS:
        raise ValueError(
            f"expected a model of one of the kinds {', '.join(KINDS)} at {directory}, got {kind}; "
            "export it again"
        )
    encoder_config = EncoderConfig.from_dict(config["encoder"])
    feature_config = from_dict(FeatureConfig, config["features"] | feature_overrides, "features")
    check_longest(encoder_config, feature_config)
    builder = FeatureBuilder(Wordpiece(directory / VOCAB_FILE), feature_config, tagger)
    # The predictor keeps the function, the function keeps the model.
    signature = tf.saved_model.load(str(directory)).signatures["features"]
    names = signature.structured_input_signature[1]

    def run(features: TokenFeatures):
        if PART_OF_SPEECH in names and features.part_of_speech_ids is None:
            raise ValueError(
                f"expected a tagger for the model in {directory}, whose attention grammar guides"
            )
        return signature(**{name: getattr(features, name) for name in names})

    return Predictor(
        run,
        builder,
        fixed_length=encoder_config.fixed_length,
        task_config=from_dict(KINDS[kind].config, config["task"], "task"),
        calibration=read_calibration(directory) if calibrated else None,
        min_score=min_score,
        num_alternatives=num_alternatives,
    )
