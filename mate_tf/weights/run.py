"""The weights of a run of our own: into its own model, or into another for chains of tasks.

SQA, then WTQ, is such a chain.
"""

import functools
import pathlib
import re
from collections.abc import Callable, Mapping
from typing import NamedTuple

import keras
import numpy as np
import tensorflow as tf

from mate_tf.config import read_json
from mate_tf.weights.loading import ENCODER, LoadReport, assign_variables, check_num_heads
from mate_tf.weights.names import encoder_of, variables_by_name, weights_by_path

BEST_FOLDER = "best"  # of a run's: holds the weights of its best evaluation
# How a checkpoint of training/loop.py names a weight: "weights/PATH/.ATTRIBUTES/VARIABLE_VALUE",
# with "/" and "." of the path escaped.
_KEY = re.compile(r"weights/([^/]+)/\.ATTRIBUTES/VARIABLE_VALUE")
_ESCAPED = {".S": "/", "..": "."}


def load_run(
    model: keras.layers.Layer, directory: str | pathlib.Path, **options: bool
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
    config = read_json(directory / "config.json")
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

    Raises:
        FileNotFoundError: if it holds no checkpoint.
    """
    best = pathlib.Path(directory) / BEST_FOLDER
    prefix = tf.train.latest_checkpoint(str(best)) or tf.train.latest_checkpoint(str(directory))
    if prefix is None:
        raise FileNotFoundError(f"expected a checkpoint in {directory}, found none")
    return prefix


def step_of(prefix: str) -> int:
    """The step that a checkpoint of a run is of."""
    return int(prefix.rpartition("-")[2])


class _Stored(NamedTuple):
    """A weight in a checkpoint, not yet read."""

    shape: tuple[int, ...]
    read: Callable[[], np.ndarray]


def _stored_in(prefix: str) -> Mapping[str, _Stored]:
    """The weights in a checkpoint by their path in the model.

    The optimizer's and the random state are none.
    """
    reader = tf.train.load_checkpoint(prefix)
    stored = {}
    for key, shape in reader.get_variable_to_shape_map().items():
        if match := _KEY.fullmatch(key):
            path = re.sub(r"\.[S.]", lambda found: _ESCAPED[found.group()], match.group(1))
            stored[path] = _Stored(tuple(shape), functools.partial(reader.get_tensor, key))
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
