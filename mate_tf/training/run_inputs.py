"""What a run was made from beside its config: data and first weights, as JSON in its folder."""

import dataclasses
import hashlib
import json
import os
import pathlib
from collections.abc import Sequence

from mate_tf.dataclass_json import from_dict
from mate_tf.tables.splits import split_files
from mate_tf.tables.text_files import complete_text_file, read_json

INPUTS_FILE = "inputs.json"


@dataclasses.dataclass(frozen=True)
class InputFile:
    """A file of the data by its name and the SHA-256 of its bytes, in hexadecimal digits."""

    name: str
    sha256: str


@dataclasses.dataclass(frozen=True)
class RunInputs:
    """What a run was made from.

    Attributes:
        data_dir: the folder of records.
        files: its record files.
        init_checkpoint: the weights that it began with, as they were asked for; None for random.
        init_revision: of weights on the Hub.
        reset_heads: whether all heads began anew.
        loaded_from: the checkpoint or folder that these were at the time.
    """

    data_dir: str
    files: tuple[InputFile, ...]
    init_checkpoint: str | None = None
    init_revision: str | None = None
    reset_heads: bool = False
    loaded_from: str | None = None

    def began_with(self, init_checkpoint: str | None) -> bool:
        """Whether these are its first weights; what is not on the Hub is kept by its whole path."""
        whole = init_checkpoint and os.path.abspath(init_checkpoint)
        return self.init_checkpoint in (init_checkpoint, whole)


def data_files(data_dir: str | pathlib.Path, splits: Sequence[str]) -> tuple[InputFile, ...]:
    """The record files of a folder's splits; errors as `split_files`."""
    files = []
    for path in (path for split in splits for path in split_files(data_dir, split)):
        with open(path, "rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        files.append(InputFile(os.path.basename(path), digest))
    return tuple(files)


def save_inputs(
    inputs: RunInputs,
    model_dir: str | pathlib.Path,
    begins: bool,
    may_differ: bool = False,
) -> None:
    """Writes to a run's folder what the run is made from; where it goes on, checks that it is.

    Args:
        inputs: what this run is made from; first weights that are None are those of the run so
            far, where it goes on.
        model_dir: the run's folder.
        begins: whether the run begins here, having no checkpoint yet.
        may_differ: whether the data may be other than that of the run so far.

    Raises:
        ValueError: if the run in the folder was made from other records or first weights.
    """
    path = pathlib.Path(model_dir) / INPUTS_FILE
    if begins or not path.exists():
        with complete_text_file(path) as file:
            file.write(json.dumps(dataclasses.asdict(inputs), indent=2) + "\n")
        return
    there = load_inputs(model_dir)
    different = sorted({file.name for file in {*there.files} ^ {*inputs.files}})
    if different and not may_differ:
        raise ValueError(
            f"expected the records that the run in {model_dir} began with, got others in "
            f"{inputs.data_dir}: {', '.join(different)}; choose another folder for the run"
        )
    _check_same_start(inputs, there, model_dir)


def _check_same_start(inputs: RunInputs, there: RunInputs, model_dir: str | pathlib.Path) -> None:
    if inputs.init_checkpoint is None:
        return
    here, said = (
        f"{of.init_checkpoint or 'random ones'}"
        f"{f' ({of.init_revision})' if of.init_revision else ''}"
        f"{' with new heads' if of.reset_heads else ''}"
        for of in (inputs, there)
    )
    same_options = (inputs.init_revision, inputs.reset_heads) == (
        there.init_revision,
        there.reset_heads,
    )
    if not (same_options and there.began_with(inputs.init_checkpoint)):
        raise ValueError(
            f"expected the first weights that the run in {model_dir} began with, {said}, got "
            f"{here}; choose another folder for the run, or name no weights to go on with it"
        )


def load_inputs(model_dir: str | pathlib.Path) -> RunInputs:
    """Reads what the run in a folder was made from.

    Raises:
        FileNotFoundError: if the folder does not say.
        ValueError: if the file is not one of `save_inputs`.
    """
    path = pathlib.Path(model_dir) / INPUTS_FILE
    try:
        return from_dict(RunInputs, read_json(path), "inputs")
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
