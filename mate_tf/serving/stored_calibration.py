"""A calibration of the scores of an exported model, or of a run's, in the model's folder."""

import dataclasses
import json
import pathlib

from mate_tf.dataclass_json import from_dict
from mate_tf.serving.folder import calibration_file, check_exported, is_exported
from mate_tf.tables.conversion_file import CONVERSION_FILE
from mate_tf.tables.text_files import complete_text_file
from mate_tf.tasks.calibration import Calibration


def check_calibrates(directory: str | pathlib.Path) -> None:
    """FileNotFoundError where a folder is neither an exported model's nor a run's."""
    directory = pathlib.Path(directory)
    if is_exported(directory) or not (directory / CONVERSION_FILE).is_file():
        check_exported(directory)


def write_calibration(directory: str | pathlib.Path, calibration: Calibration) -> None:
    """Stores a calibration of a model's scores in its folder, in place of another.

    Raises:
        FileNotFoundError: if the folder is neither an exported model's nor a run's.
    """
    directory = pathlib.Path(directory)
    check_calibrates(directory)
    text = json.dumps(dataclasses.asdict(calibration), indent=2) + "\n"
    with complete_text_file(calibration_file(directory)) as file:
        file.write(text)


def read_calibration(directory: str | pathlib.Path) -> Calibration | None:
    """The calibration in an exported model's folder or a run's, None where there is none.

    Raises:
        ValueError: if the file is not one of `write_calibration`.
    """
    path = calibration_file(pathlib.Path(directory))
    if not path.is_file():
        return None
    try:
        return from_dict(Calibration, json.loads(path.read_text(encoding="utf-8")))
    except ValueError as error:  # includes what is not JSON or not UTF-8
        raise ValueError(f"{path}: {error}") from None
