"""A training run's model as a SavedModel."""

import pathlib

from mate_tf.serving.export import export_saved_model, longest_input, serving_features
from mate_tf.tables.conversion_file import read_conversion
from mate_tf.tasks.kinds import KINDS, answering_kind
from mate_tf.training.run_config import load_config
from mate_tf.weights.run import restore_weights


def export_run(
    model_dir: str | pathlib.Path,
    directory: str | pathlib.Path,
    max_seq_length: int | None = None,
) -> int:
    """Exports the weights of a run's best evaluation, as `export_saved_model` does.

    Args:
        model_dir: the run's folder.
        directory: the folder to write; an exported model in it is replaced.
        max_seq_length: the longest input; None for `longest_input` of the run's encoder.

    Returns:
        The step of the weights.

    Raises:
        FileNotFoundError: if there is no run, or it has no weights yet.
        ValueError: as `export_saved_model`, and if the run's model answers nothing.
    """
    model_dir = pathlib.Path(model_dir)
    if not model_dir.is_dir():
        raise FileNotFoundError(f"expected the folder of a run at {model_dir}, found none")
    config = load_config(model_dir)
    features = read_conversion(model_dir).features
    model = KINDS[answering_kind(config.task)].model(config.encoder, config.task)
    model.build()
    step = restore_weights(model, model_dir)
    features = serving_features(features, max_seq_length or longest_input(config.encoder))
    export_saved_model(model, model_dir / "vocab.txt", features, directory)
    return step
