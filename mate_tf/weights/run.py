"""The weights of a run of our own: into its own model, or into another for chains of tasks.

SQA, then WTQ, is such a chain. A run's folder holds checkpoints, or weights alone in half
precision: model.safetensors. That is half the size of a checkpoint's weights and has none of the
optimizer's, and is enough to answer, to serve and to start the next run from.
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
from mate_tf.tasks import TASKS, TaskSpec
from mate_tf.weights.loading import (
    ENCODER,
    LoadReport,
    assign_variables,
    check_num_heads,
    encoder_of,
    open_safetensors,
    variables_by_name,
)

FILE = "model.safetensors"
BEST_FOLDER = "best"  # of a run's: holds the weights of its best evaluation
CALIBRATION = "calibration.json"  # of the weights, where `mate-tf calibrate` wrote it
_DESCRIPTION = ("config.json", "conversion.json", "vocab.txt")  # what a run's folder says of them
_STEP = "step"
# How a checkpoint of training/loop.py names a weight: "weights/PATH/.ATTRIBUTES/VARIABLE_VALUE",
# with "/" and "." of the path escaped.
_KEY = re.compile(r"weights/([^/]+)/\.ATTRIBUTES/VARIABLE_VALUE")
_ESCAPED = {".S": "/", "..": "."}


class StoredWeight(NamedTuple):
    """A weight in a file, not yet read."""

    shape: tuple[int, ...]
    read: Callable[[], np.ndarray]


class RunWeights:
    """The weights in a checkpoint or in a file of half precision, which is opened once.

    Args:
        prefix: of the checkpoint's files, or the path of model.safetensors.

    Attributes:
        weights: by their path in the model, without the optimizer's and the random state.

    Raises:
        ValueError: if the file is not what it should be.
    """

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix
        self._metadata: Mapping[str, str] | None = None
        self.weights: dict[str, StoredWeight] = {}
        if os.path.basename(prefix) == FILE:
            file = open_safetensors(prefix)
            self._metadata = file.metadata() or {}
            for name in file.keys():  # noqa: SIM118, a safetensors file is no mapping
                shape = tuple(file.get_slice(name).get_shape())
                self.weights[name] = StoredWeight(shape, functools.partial(_single, file, name))
            return
        reader = tf.train.load_checkpoint(prefix)
        for key, shape in reader.get_variable_to_shape_map().items():
            if match := _KEY.fullmatch(key):
                path = re.sub(r"\.[S.]", lambda found: _ESCAPED[found.group()], match.group(1))
                read = functools.partial(reader.get_tensor, key)
                self.weights[path] = StoredWeight(tuple(shape), read)

    @property
    def step(self) -> int:
        """The step of the run that they are of; ValueError where a file does not say so."""
        if self._metadata is None:
            return int(self.prefix.rpartition("-")[2])
        if not self._metadata.get(_STEP, "").isdecimal():
            raise ValueError(
                f"expected the weights of a run with their step in {self.prefix}, got "
                f"{self._metadata}"
            )
        return int(self._metadata[_STEP])

    def restore(self, model: keras.layers.Layer) -> None:
        """Assigns them to the model of the run's config, built.

        Raises:
            ValueError: if a weight of either is missing in the other, or has another shape there;
                the model is then as it was.
        """
        weights = weights_by_path(model)
        here = {path: tuple(weight.shape) for path, weight in weights.items()}
        there = {path: weight.shape for path, weight in self.weights.items()}
        paths = {**here, **there}
        if different := [path for path in paths if here.get(path) != there.get(path)]:
            path = different[0]
            raise ValueError(
                f"expected the weights of this model in {self.prefix}, got {len(different)} others "
                f"among {len(paths)}, such as variable {path!r}: its shape is "
                f"{there.get(path, 'none')} there and {here.get(path, 'none')} in the model; make "
                "the model from the config of the run"
            )
        for path, weight in weights.items():
            weight.assign(self.weights[path].read())


def _single(file, name: str) -> np.ndarray:
    return file.get_tensor(name).astype(np.float32)


def run_weights(directory: str | pathlib.Path) -> RunWeights:
    """The weights of a run's best evaluation, or before the first one the latest.

    Raises:
        FileNotFoundError: if the folder holds no checkpoint and no weights.
        ValueError: as `RunWeights`.
    """
    directory = pathlib.Path(directory)
    for folder in (directory / BEST_FOLDER, directory):
        if prefix := tf.train.latest_checkpoint(str(folder)):
            return RunWeights(prefix)
    if (directory / FILE).is_file():
        return RunWeights(str(directory / FILE))
    raise FileNotFoundError(f"expected a checkpoint in {directory}, found none")


def weights_by_path(model: keras.layers.Layer) -> dict[str, keras.Variable]:
    """The weights by their path in the model, as checkpoints of runs keep them.

    Raises:
        ValueError: if two have the same path.
    """
    root = f"{model.name}/"  # numbered, where a process makes several models
    weights = {weight.path.removeprefix(root): weight for weight in model.weights}
    if len(weights) != len(model.weights):
        raise ValueError(f"expected weights of different paths in {model.name}")
    return weights


def read_run_config(directory: str | pathlib.Path) -> tuple[TaskSpec, dict[str, Any]]:
    """The task of a run and the values in its config.json.

    Raises:
        FileNotFoundError: if the folder does not hold one.
        ValueError: if it is not a run's.
    """
    path = pathlib.Path(directory) / "config.json"
    if not path.is_file():
        raise FileNotFoundError(f"expected config.json in {directory}; is it a run's folder?")
    values = read_json_object(path)
    kind = values.pop("kind", None)
    if not isinstance(kind, str) or kind not in TASKS:
        raise ValueError(
            f"{path}: expected the config of a run of one of the kinds {', '.join(TASKS)}, got "
            f"{kind!r}"
        )
    return TASKS[kind], values


def load_run(
    model: keras.layers.Layer, directory: str | pathlib.Path, **options: Any
) -> LoadReport:
    """Loads the weights of a run (`run_weights`) into a model of another task or attention.

    Variables at the same place of the model go together.

    Args:
        model: a built `TableEncoder` or a model with one as `.encoder`.
        directory: the run's.
        **options: of `assign_variables`.

    Raises:
        FileNotFoundError: if it holds no checkpoint.
        ValueError: if it does not fit the model.
    """
    directory = pathlib.Path(directory)
    stored = run_weights(directory)
    config = read_json_object(directory / "config.json")
    check_num_heads(model, config["encoder"].get("num_heads"), directory / "config.json")
    names = _names(model)
    tensors = {}
    for path, tensor in stored.weights.items():
        # What the model's encoder lacks is named as in checkpoints, with its layer.
        other = ENCODER + path if path.startswith("encoder/") else path
        if path not in names and other in names.values():
            # A head at another place of the run's model has the name of this model's: masked words
            # and table questions both have an output_bias.
            other += " (of another head)"
        tensors[names.get(path, other)] = tensor.read
    return assign_variables(model, tensors, stored.prefix, **options)


def export_weights(directory: str | pathlib.Path, output: str | pathlib.Path) -> pathlib.Path:
    """Writes the weights of a run's best evaluation alone, in half precision.

    The run's config, vocabulary and conversion are copied too. The folder answers questions, and
    other runs start from it, as from the run itself. A calibration in it was for other weights and
    is removed.

    Args:
        directory: a run's.
        output: the folder to write.

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
    stored = run_weights(directory)
    tensors = {path: weight.read() for path, weight in stored.weights.items()}
    content = packed(tensors, stored.step)
    output.mkdir(parents=True, exist_ok=True)
    # First, so that an interruption leaves no weights beside the config of others.
    for name in (FILE, CALIBRATION):
        (output / name).unlink(missing_ok=True)
    for name in _DESCRIPTION:
        shutil.copyfile(directory / name, output / name)
    with complete_file(output / FILE) as unfinished:  # save_file lets nobody else read it
        pathlib.Path(unfinished).write_bytes(content)
    return output / FILE


def packed(tensors: Mapping[str, np.ndarray], step: int) -> bytes:
    """The content of a file of weights in half precision, by their path in the model.

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
