"""A calibration of the scores of an exported model, in the model's folder."""

import dataclasses
import json
import pathlib

from mate_tf.dataclass_json import from_dict
from mate_tf.serving.folder import CALIBRATION_FILE, check_exported
from mate_tf.tables.text_files import complete_text_file
from mate_tf.tasks.calibration import Calibration


def write_calibration(directory: str | pathlib.Path, calibration: Calibration) -> None:
    """Stores a calibration of an exported model's scores in its folder, in place of another.

    Raises:
        FileNotFoundError: if there is no exported model.
    """
    directory = pathlib.Path(directory)
    check_exported(directory)
    text = json.dumps(dataclasses.asdict(calibration), indent=2) + "\n"
    with complete_text_file(directory / CALIBRATION_FILE) as file:
        file.write(text)


def read_calibration(directory: str | pathlib.Path) -> Calibration | None:
    """The calibration in an exported model's folder, None where there is none.

    Raises:
        ValueError: if the file is not one of `write_calibration`.
    """
    path = pathlib.Path(directory) / CALIBRATION_FILE
    if not path.is_file():
        return None
    try:
        return from_dict(Calibration, json.loads(path.read_text(encoding="utf-8")))
    except ValueError as error:  # includes what is not JSON or not UTF-8
        raise ValueError(f"{path}: {error}") from None
