"""How the records in a folder were made: its conversion.json.

Whoever trains, evaluates or exports makes and reads features in the same way.
"""

import dataclasses
import hashlib
import json
import os

import tensorflow as tf

from mate_tf.dataclass_json import from_dict
from mate_tf.datasets.tasks import Division
from mate_tf.features.config import FeatureConfig, PretrainingConfig
from mate_tf.records.records import complete_file

CONVERSION_FILE = "conversion.json"


@dataclasses.dataclass(frozen=True)
class Conversion:
    """How a folder's records were made.

    Attributes:
        task: the name of the data set's reader; None where that is not known.
        features: the limits, and what is in a sequence.
        tagger: what tagged parts of speech; None for nothing, or where that is not known.
        vocabulary_sha256: of the vocabulary's file, in hexadecimal digits.
        division: how a split was divided by its tables, as text; None where none was.
        pretraining: what was drawn of each table, of records to pre-train on; None of others.
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
    vocab_file: str | os.PathLike[str],
    tagger: str | None,
    division: Division | None = None,
) -> Conversion:
    """A conversion with a vocabulary; FileNotFoundError where there is none."""
    divided = None if division is None else str(division)
    return Conversion(task, config, tagger, file_sha256(vocab_file), divided)


def write_conversion(directory: str | os.PathLike[str], conversion: Conversion) -> None:
    """Says in the folder's conversion.json how its records were made."""
    path = os.path.join(directory, CONVERSION_FILE)
    with complete_file(path) as unfinished, tf.io.gfile.GFile(unfinished, "w") as file:
        file.write(json.dumps(dataclasses.asdict(conversion), indent=2) + "\n")


def has_conversion(directory: str | os.PathLike[str]) -> bool:
    """Whether the folder says how its records were made; one of an earlier conversion does not."""
    return tf.io.gfile.exists(os.path.join(directory, CONVERSION_FILE))


def read_conversion(directory: str | os.PathLike[str]) -> Conversion:
    """Reads from the folder's conversion.json how its records were made.

    Options of the features that it does not name came later, and are off.

    Raises:
        FileNotFoundError: if the folder has no conversion.json.
        ValueError: if that is not what `write_conversion` writes.
    """
    path = os.path.join(directory, CONVERSION_FILE)
    if not has_conversion(directory):
        raise FileNotFoundError(
            f"expected {CONVERSION_FILE} in {directory}; experiments/create_data.py writes it to a "
            "folder of records, experiments/finetune.py to that of a run"
        )
    with tf.io.gfile.GFile(path) as file:
        try:
            return from_dict(Conversion, json.loads(file.read()), "conversion")
        except ValueError as error:
            raise ValueError(f"expected how the records were made, got {path}: {error}") from None


def task_of(directory: str | os.PathLike[str]) -> str:
    """The task of the questions in a folder; JSONL, one's own, where it has no conversion.json.

    Raises:
        ValueError: if conversion.json does not name the task, or is not what `write_conversion`
            writes.
    """
    if not has_conversion(directory):
        return "JSONL"
    task = read_conversion(directory).task
    if task is None:
        raise ValueError(
            f"expected a task in {os.path.join(directory, CONVERSION_FILE)}, got null; say which"
        )
    return task


def check_vocabulary(directory: str | os.PathLike[str]) -> None:
    """Whether the folder's vocabulary is the one that its records were made with.

    Folders that say nothing of it, of an earlier conversion, are accepted.

    Raises:
        ValueError: if it is another, or conversion.json is not what `write_conversion` writes.
    """
    if not has_conversion(directory):
        return
    vocab_file = os.path.join(directory, "vocab.txt")
    expected, actual = read_conversion(directory).vocabulary_sha256, file_sha256(vocab_file)
    if actual != expected:
        raise ValueError(
            f"expected the vocabulary that the records were made with, SHA-256 {expected[:12]}..., "
            f"got {actual[:12]}... ({vocab_file}); copy it there or make the records again"
        )


def file_sha256(path: str | os.PathLike[str]) -> str:
    """SHA-256 of a file, in hexadecimal digits."""
    with tf.io.gfile.GFile(path, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()
