"""The weights of a run of our own: into its own model, or into another for chains of tasks.

SQA, then WTQ, is such a chain. A run's folder may hold weights alone, in half precision, in place
of checkpoints.

A model's weights alone, in half precision: model.safetensors in a run's folder.

Half the size of a checkpoint's, without the optimizer's, and enough to answer, to serve and to
start the next run from.
"""

import functools
import os
import pathlib
import re
import shutil
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import keras
import numpy as np
import tensorflow as tf

from mate_tf.config import read_json_object
from mate_tf.records.records import complete_file
from mate_tf.weights import run as half_precision
from mate_tf.weights.loading import (
    ENCODER,
    LoadReport,
    assign_variables,
    check_num_heads,
    encoder_of,
    variables_by_name,
    weights_by_path,
)

FILE = "model.safetensors"
_STEP = "step"


class StoredWeight(NamedTuple):
    """A weight in a file, not yet read."""

    shape: tuple[int, ...]
    read: Callable[[], np.ndarray]


def is_half_precision(path: str) -> bool:
    """Whether a path is one of `write`'s, not the prefix of a checkpoint."""
    return os.path.basename(path) == FILE


def packed(tensors: Mapping[str, np.ndarray], step: int) -> bytes:
    """The content of a file of weights, in half precision.

    Args:
        tensors: the weights by their path in the model.
        step: of their run.

    Raises:
        ValueError: if a weight is not finite, or too large for half precision.
    """
    from safetensors.numpy import save

    single = {name: np.asarray(value, np.float32) for name, value in tensors.items()}
    largest = float(np.finfo(np.float16).max)
    for name, value in single.items():
        if not (np.abs(value) <= largest).all():
            raise ValueError(f"expected weights up to {largest:.0f}, got a larger one in {name!r}")
    return save(
        {name: value.astype(np.float16) for name, value in single.items()},
        metadata={_STEP: str(step), "format": "mate_tf"},
    )


def write(content: bytes, directory: pathlib.Path) -> pathlib.Path:
    """Writes what `packed` made to a folder's file, which appears once it is complete."""
    path = directory / FILE
    with complete_file(path) as unfinished:  # safetensors' save_file lets nobody else read it
        pathlib.Path(unfinished).write_bytes(content)
    return path


def stored_in(path: str) -> Mapping[str, StoredWeight]:
    """The weights in a file of `write`, read in single precision.

    Raises:
        ValueError: if it is none.
    """
    with _opened(path) as file:
        return {
            name: StoredWeight(
                tuple(file.get_slice(name).get_shape()), functools.partial(_read, path, name)
            )
            for name in file.keys()  # noqa: SIM118, a safetensors file is no mapping
        }


def step_in(path: str) -> int:
    """The step that the weights in a file of `write` are of; errors as `stored_in`."""
    with _opened(path) as file:
        metadata = file.metadata() or {}
    if not metadata.get(_STEP, "").isdecimal():
        raise ValueError(f"expected the weights of a run with their step in {path}, got {metadata}")
    return int(metadata[_STEP])


def _read(path: str, name: str) -> np.ndarray:
    with _opened(path) as file:
        return file.get_tensor(name).astype(np.float32)


def _opened(path: str):
    import safetensors

    try:
        return safetensors.safe_open(path, framework="numpy")
    except safetensors.SafetensorError as error:
        raise ValueError(f"expected safetensors in {path}: {error}") from None


BEST_FOLDER = "best"  # of a run's: holds the weights of its best evaluation
_DESCRIPTION = ("config.json", "conversion.json", "vocab.txt")  # what a run's folder says of them
CALIBRATION = "calibration.json"  # of them too, where serving/stored_calibration.py wrote it
# How a checkpoint of training/loop.py names a weight: "weights/PATH/.ATTRIBUTES/VARIABLE_VALUE",
# with "/" and "." of the path escaped.
_KEY = re.compile(r"weights/([^/]+)/\.ATTRIBUTES/VARIABLE_VALUE")
_ESCAPED = {".S": "/", "..": "."}


def load_run(
    model: keras.layers.Layer, directory: str | pathlib.Path, **options: Any
) -> LoadReport:
    """Loads the weights of a run into a model of another task or attention.

    They are those of its best evaluation, or before the first one the latest. Variables at
    the same place of the model go together.

    Args:
        model: a built `TableEncoder` or a model with one as `.encoder`.
        directory: a run's, with config.json and checkpoints.
        **options: of `assign_variables`.

    Returns:
        What was loaded, what is new, what was ignored.

    Raises:
        FileNotFoundError: if it holds no checkpoint.
        ValueError: if it does not fit the model.
    """
    directory = pathlib.Path(directory)
    prefix = checkpoint_of_run(directory)
    stored = _stored_in(prefix)
    config = read_json_object(directory / "config.json")
    check_num_heads(model, config["encoder"].get("num_heads"), directory / "config.json")
    names = _names(model)
    tensors = {}
    for path, tensor in stored.items():
        # What the encoder does not have is to name its layer as checkpoints do.
        other = ENCODER + path if path.startswith("encoder/") else path
        tensors[names.get(path, other)] = tensor.read
    return assign_variables(model, tensors, prefix, **options)


def restore_weights(model: keras.layers.Layer, directory: str | pathlib.Path) -> int:
    """Loads the weights of a run into its own model: those of its best evaluation.

    Of a run without one yet they are the latest.

    Args:
        model: the model of the run's config, built.
        directory: a run's, with checkpoints.

    Returns:
        Their step.

    Raises:
        FileNotFoundError: if it holds no checkpoint.
        ValueError: as `restore_checkpoint`.
    """
    prefix = checkpoint_of_run(directory)
    restore_checkpoint(model, prefix)
    return step_of(prefix)


def restore_checkpoint(model: keras.layers.Layer, prefix: str) -> None:
    """Loads the weights of a checkpoint of a run, or of its exported model, into such a model.

    Args:
        model: built.
        prefix: of the checkpoint's files.

    Raises:
        ValueError: if a weight of either is missing in the other, or has another shape there; the
            model is then as it was.
    """
    stored = _stored_in(prefix)
    weights = weights_by_path(model)
    hint = "; make the model from the config of the run"
    if missing := [path for path in weights if path not in stored]:
        shape = tuple(weights[missing[0]].shape)
        raise ValueError(
            f"expected variable {missing[0]!r} of shape {shape} in {prefix}, which lacks "
            f"{len(missing)} of the model's {len(weights)} variables{hint}"
        )
    if ignored := sorted(stored.keys() - weights.keys()):
        raise ValueError(
            f"expected a model with variable {ignored[0]!r} of shape {stored[ignored[0]].shape}, "
            f"got one that lacks {len(ignored)} of the {len(stored)} variables in {prefix}{hint}"
        )
    for path, weight in weights.items():
        if stored[path].shape != tuple(weight.shape):
            raise ValueError(
                f"expected shape {tuple(weight.shape)} for variable {path!r}, got "
                f"{stored[path].shape} in {prefix}{hint}"
            )
    for path, weight in weights.items():
        weight.assign(stored[path].read())


def checkpoint_of_run(directory: str | pathlib.Path) -> str:
    """The prefix of the checkpoint of a run's best evaluation, or before the first one the latest.

    Of a folder with weights alone it is the file that holds them.

    Raises:
        FileNotFoundError: if it holds no checkpoint and no weights.
    """
    directory = pathlib.Path(directory)
    for folder in (directory / BEST_FOLDER, directory):
        if prefix := tf.train.latest_checkpoint(str(folder)):
            return prefix
    if (directory / half_precision.FILE).is_file():
        return str(directory / half_precision.FILE)
    raise FileNotFoundError(f"expected a checkpoint in {directory}, found none")


def step_of(prefix: str) -> int:
    """The step that a checkpoint of a run is of."""
    if half_precision.is_half_precision(prefix):
        return half_precision.step_in(prefix)
    return int(prefix.rpartition("-")[2])


def export_weights(directory: str | pathlib.Path, output: str | pathlib.Path) -> pathlib.Path:
    """Writes the weights of a run's best evaluation alone, in half precision.

    With them go what a run's folder says of them: its config, how its records were made, and the
    vocabulary. The folder answers questions, and other runs start from it, as from the run itself;
    a calibration that is in it was of other weights and is removed.

    Args:
        directory: a run's.
        output: the folder to write, made where it is missing.

    Returns:
        The file of the weights.

    Raises:
        FileNotFoundError: if there is no run, or it has no checkpoint yet.
        ValueError: if a weight is too large for half precision, or the folder to write is a run's.
    """
    directory, output = pathlib.Path(directory), pathlib.Path(output)
    if directory.resolve() == output.resolve():
        raise ValueError(f"expected another folder than the run's, got {output}")
    if any(tf.train.latest_checkpoint(str(folder)) for folder in (output, output / BEST_FOLDER)):
        raise ValueError(f"expected a folder without checkpoints, got that of a run, {output}")
    if missing := [name for name in _DESCRIPTION if not (directory / name).is_file()]:
        raise FileNotFoundError(f"expected a run in {directory}, which has no {missing[0]}")
    prefix = checkpoint_of_run(directory)
    tensors = {path: stored.read() for path, stored in _stored_in(prefix).items()}
    content = half_precision.packed(tensors, step_of(prefix))
    output.mkdir(parents=True, exist_ok=True)
    # Interrupted, it leaves no weights beside what is said of others.
    for name in (half_precision.FILE, CALIBRATION):
        (output / name).unlink(missing_ok=True)
    for name in _DESCRIPTION:
        shutil.copyfile(directory / name, output / name)
    return half_precision.write(content, output)


def _stored_in(prefix: str) -> Mapping[str, StoredWeight]:
    """The weights in a checkpoint by their path in the model.

    The optimizer's and the random state are none.
    """
    if half_precision.is_half_precision(prefix):
        return half_precision.stored_in(prefix)
    reader = tf.train.load_checkpoint(prefix)
    stored = {}
    for key, shape in reader.get_variable_to_shape_map().items():
        if match := _KEY.fullmatch(key):
            path = re.sub(r"\.[S.]", lambda found: _ESCAPED[found.group()], match.group(1))
            stored[path] = StoredWeight(tuple(shape), functools.partial(reader.get_tensor, key))
    return stored


def _names(model: keras.layers.Layer) -> dict[str, str]:
    """The checkpoint names of a model's variables by their path in it."""
    of_variables = {id(variable): name for name, variable in variables_by_name(model).items()}
    # An encoder alone is a part of the run's model.
    prefix = "encoder/" if encoder_of(model) is model else ""
    return {
        prefix + path: of_variables[id(variable)]
        for path, variable in weights_by_path(model).items()
        if id(variable) in of_variables
    }
