"""The folders of models that answer: exported ones, runs, and the one that comes with the package.

An exported model is a SavedModel, with what a reader needs in `assets.extra`. Slow imports are
inside the functions that need them, so that a wrong name is reported at once.
"""

import dataclasses
import json
import pathlib
from typing import TYPE_CHECKING

from mate_tf.tables.text_files import complete_text_file
from mate_tf.weights.hub import is_hub_name

if TYPE_CHECKING:
    from mate_tf.answers.calibration import Calibration

EXTRA = "assets.extra"
CONFIG_FILE = f"{EXTRA}/mate_tf.json"
VOCAB_FILE = f"{EXTRA}/vocab.txt"
SIGNATURES_FILE = f"{EXTRA}/signatures.txt"
WARM_UP_FILE = f"{EXTRA}/tf_serving_warmup_requests"  # as TensorFlow Serving calls it
CALIBRATION_FILE = "calibration.json"
# A run reduced to its weights (`export_weights`); its README.md describes it.
DEFAULT_MODEL = pathlib.Path(__file__).resolve().parents[1] / "default_model"
SAVED_MODEL = "saved_model.pb"  # who has it is an exported model, ours or another program's
VARIABLES = "variables/variables"  # the prefix of a checkpoint


def check_exported(directory: pathlib.Path) -> None:
    """FileNotFoundError where a folder is not an exported model."""
    for name in (SAVED_MODEL, CONFIG_FILE, VOCAB_FILE):
        if not (directory / name).is_file():
            raise FileNotFoundError(
                f"expected an exported model at {directory}, which has no {name}; "
                "`mate-tf export` writes one"
            )


def calibration_file(directory: pathlib.Path) -> pathlib.Path:
    """The file for the calibration of an exported model or of a run."""
    return directory / (EXTRA if is_exported(directory) else "") / CALIBRATION_FILE


def check_named(path: str) -> None:
    """FileNotFoundError where a path leads to no model, and is no name for one on the Hub.

    It looks at names only, so that a wrong one does not wait for TensorFlow.
    """
    folder = pathlib.Path(path)
    if (folder / SAVED_MODEL).is_file():
        check_exported(folder)
    elif not (folder / "config.json").is_file() and (folder.exists() or not is_hub_name(path)):
        raise FileNotFoundError(
            f"expected a model at {path}, found none: no exported model "
            "(`mate-tf export` writes one), run or Hugging Face folder"
        )


def is_exported(directory: pathlib.Path) -> bool:
    """Whether a folder is a SavedModel, ours or another program's."""
    return (directory / SAVED_MODEL).is_file()


def check_calibrates(directory: str | pathlib.Path) -> None:
    """FileNotFoundError where a folder is neither an exported model nor a run."""
    from mate_tf.records.conversion_file import CONVERSION_FILE

    directory = pathlib.Path(directory)
    if is_exported(directory) or not (directory / CONVERSION_FILE).is_file():
        check_exported(directory)


def write_calibration(directory: str | pathlib.Path, calibration: "Calibration") -> None:
    """Stores a calibration in a model's folder, in place of an earlier one.

    Raises:
        FileNotFoundError: if the folder is neither an exported model nor a run.
    """
    directory = pathlib.Path(directory)
    check_calibrates(directory)
    text = json.dumps(dataclasses.asdict(calibration), indent=2) + "\n"
    with complete_text_file(calibration_file(directory)) as file:
        file.write(text)


def read_calibration(directory: str | pathlib.Path) -> "Calibration | None":
    """The calibration in the folder of an exported model or of a run; None without one.

    Raises:
        ValueError: if the file is not one of `write_calibration`.
    """
    from mate_tf.answers.calibration import calibration_in

    return calibration_in(calibration_file(pathlib.Path(directory)))
