"""conversion.json, which says how a folder's records were made, and features are made later."""

import dataclasses
import hashlib
import json
import os
from typing import TYPE_CHECKING

from mate_tf.dataclass_json import from_dict
from mate_tf.features.config import FeatureConfig, PretrainingConfig
from mate_tf.paths import Path, as_path, complete_file

if TYPE_CHECKING:
    from mate_tf.datasets.tasks import Division

CONVERSION_FILE = "conversion.json"


@dataclasses.dataclass(frozen=True)
class Conversion:
    """How a folder's records were made.

    Attributes:
        task, tagger: the name of the data set's reader, and what tagged parts of speech, if known.
        features: the limits, and what a sequence contains.
        vocabulary_sha256: of the vocabulary's file, in hexadecimal digits.
        division: how a split was divided by its tables, as text; None if none was.
        pretraining: for pre-training records, what was drawn of each table; None for others.
    """

    task: str | None
    features: FeatureConfig
    tagger: str | None
    vocabulary_sha256: str
    division: str | None = None
    pretraining: PretrainingConfig | None = None


def conversion_of(
    task: str | None,
    config: FeatureConfig,
    vocab_file: Path,
    tagger: str | None,
    division: "Division | None" = None,
) -> Conversion:
    """A conversion with a vocabulary; FileNotFoundError if there is no such file."""
    divided = None if division is None else str(division)
    return Conversion(task, config, tagger, file_sha256(vocab_file), divided)


def write_conversion(directory: Path, conversion: Conversion) -> None:
    """Writes the folder's conversion.json."""
    text = json.dumps(dataclasses.asdict(conversion), indent=2) + "\n"
    with complete_file(os.path.join(directory, CONVERSION_FILE)) as unfinished:
        as_path(unfinished).write_bytes(text.encode())


def has_conversion(directory: Path) -> bool:
    """Whether the folder has a conversion.json; early versions wrote none."""
    return as_path(os.path.join(directory, CONVERSION_FILE)).exists()


def read_conversion(directory: Path) -> Conversion:
    """Reads the folder's conversion.json. Options that it does not name have their defaults.

    FileNotFoundError if the folder has none; ValueError if its content is another's.
    """
    path = os.path.join(directory, CONVERSION_FILE)
    if not has_conversion(directory):
        raise FileNotFoundError(
            f"expected {CONVERSION_FILE} in {directory}, found none; `mate-tf data` writes it to a "
            "folder of records, `mate-tf train` to the folder of a run; for records of TAPAS's "
            "release name a --config"
        )
    try:
        values = json.loads(as_path(path).read_text(encoding="utf-8"))
        return from_dict(Conversion, values, "conversion")
    except ValueError as error:
        raise ValueError(
            f"expected {path} to say how the records were made, got an error: {error}"
        ) from None


def task_of(directory: Path) -> str:
    """The task of the questions in a folder; JSONL, your own, if there is no conversion.json.

    ValueError if conversion.json names no task, and as `read_conversion`.
    """
    if not has_conversion(directory):
        return "JSONL"
    task = read_conversion(directory).task
    if task is None:
        path = os.path.join(directory, CONVERSION_FILE)
        raise ValueError(f"expected a task in {path}, got null; name the task (--task)")
    return task


def check_vocabulary(directory: Path) -> None:
    """ValueError unless the folder's vocabulary is the one that its records were made with.

    A folder without conversion.json is accepted; errors also as `read_conversion`.
    """
    if not has_conversion(directory):
        return
    vocab_file = os.path.join(directory, "vocab.txt")
    expected, actual = read_conversion(directory).vocabulary_sha256, file_sha256(vocab_file)
    if actual != expected:
        raise ValueError(
            f"expected the vocabulary that the records were made with, SHA-256 {expected[:12]}..., "
            f"got {actual[:12]}... ({vocab_file}); copy the right one there or make the records "
            "again"
        )


def file_sha256(path: Path) -> str:
    """The SHA-256 of a file, in hexadecimal digits."""
    with as_path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
