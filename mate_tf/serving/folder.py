"""Folders of models that answer: exported ones, runs, and the one that comes with the package.

An exported model is a SavedModel, with what a reader needs in `assets.extra`.
"""

import pathlib

from mate_tf.weights.hub import is_hub_name

EXTRA = "assets.extra"
CONFIG_FILE = f"{EXTRA}/mate_tf.json"
VOCAB_FILE = f"{EXTRA}/vocab.txt"
SIGNATURES_FILE = f"{EXTRA}/signatures.txt"
CALIBRATION_FILE = "calibration.json"
# A run reduced to its weights (experiments/export_weights.py); its README.md says what it is.
DEFAULT_MODEL = pathlib.Path(__file__).resolve().parents[1] / "default_model"
VARIABLES = "variables/variables"  # the prefix of a checkpoint


def check_exported(directory: pathlib.Path) -> None:
    """FileNotFoundError where a folder is no exported model."""
    for name in ("saved_model.pb", CONFIG_FILE, VOCAB_FILE):
        if not (directory / name).is_file():
            raise FileNotFoundError(
                f"expected an exported model at {directory}, which has no {name}; "
                "experiments/export.py writes one"
            )


def calibration_file(directory: pathlib.Path) -> pathlib.Path:
    """Where the calibration of an exported model, or of a run, is or would be."""
    return directory / (EXTRA if is_exported(directory) else "") / CALIBRATION_FILE


def check_named(path: str) -> None:
    """FileNotFoundError where nothing that answers can be at a path, nor be called so on the Hub.

    It looks at names alone, so that a wrong one does not have to wait for TensorFlow.
    """
    folder = pathlib.Path(path)
    if (folder / "saved_model.pb").is_file():
        check_exported(folder)
    elif not (folder / "config.json").is_file() and (folder.exists() or not is_hub_name(path)):
        raise FileNotFoundError(
            f"expected a model at {path}, found none: no exported model "
            "(experiments/export.py writes one), run or Hugging Face folder"
        )


def is_exported(directory: pathlib.Path) -> bool:
    """Whether a folder is an exported model, perhaps one of another program."""
    return (directory / "saved_model.pb").is_file()
