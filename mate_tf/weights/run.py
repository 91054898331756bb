"""The weights of a run of our own into another model, for chains such as SQA, then WTQ."""

import functools
import pathlib
import re

import keras
import tensorflow as tf

from mate_tf.config import read_json
from mate_tf.weights.loading import ENCODER, LoadReport, assign_variables, check_num_heads
from mate_tf.weights.names import variables_by_name, weights_by_path

# How a checkpoint of training/loop.py names a weight: "weights/PATH/.ATTRIBUTES/VARIABLE_VALUE",
# with "/" and "." of the path escaped.
_KEY = re.compile(r"weights/([^/]+)/\.ATTRIBUTES/VARIABLE_VALUE")
_ESCAPED = {".S": "/", "..": "."}


def load_run(
    model: keras.layers.Layer, directory: str | pathlib.Path, **options: bool
) -> LoadReport:
    """Loads the latest checkpoint of a run's folder into a model of another task or attention.

    Variables at the same place of the model go together.

    Args:
        model: a built model with a `TableEncoder` as `.encoder`.
        directory: a run's, with config.json and checkpoints.
        **options: of `assign_variables`.

    Returns:
        What was loaded, what is new, what was ignored.

    Raises:
        FileNotFoundError: if it holds no checkpoint.
        ValueError: if it does not fit the model.
    """
    directory = pathlib.Path(directory)
    prefix = tf.train.latest_checkpoint(str(directory))
    if prefix is None:
        raise FileNotFoundError(f"expected a checkpoint in {directory}, found none")
    config = read_json(directory / "config.json")
    check_num_heads(model, config["encoder"].get("num_heads"), directory / "config.json")
    names = _names(model)
    reader = tf.train.load_checkpoint(prefix)
    tensors = {}
    for key in reader.get_variable_to_shape_map():
        if match := _KEY.fullmatch(key):
            path = re.sub(r"\.[S.]", lambda found: _ESCAPED[found.group()], match.group(1))
            # What the encoder does not have is to name its layer as checkpoints do.
            other = ENCODER + path if path.startswith("encoder/") else path
            tensors[names.get(path, other)] = functools.partial(reader.get_tensor, key)
    return assign_variables(model, tensors, prefix, **options)


def _names(model: keras.layers.Layer) -> dict[str, str]:
    """The checkpoint names of a model's variables by their path in it."""
    of_variables = {id(variable): name for name, variable in variables_by_name(model).items()}
    return {
        path: of_variables[id(variable)]
        for path, variable in weights_by_path(model).items()
        if id(variable) in of_variables
    }
