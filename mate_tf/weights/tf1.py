"""The authors' and BERT's TF1 checkpoints into a model."""

import pathlib

import keras
import tensorflow as tf

from mate_tf.weights.loading import LoadReport, assign_variables

# The optimizer's slots and counters, of no use to a model.
_NOT_WEIGHTS = ("/adam_m", "/adam_v", "/accum")
_COUNTERS = ("global_step", "counter")


def load_tf1_checkpoint(model: keras.layers.Layer, path: str | pathlib.Path) -> LoadReport:
    """Loads a name-based checkpoint of BERT, TAPAS or MATE into a model.

    Args:
        model: a built `TableEncoder` or a model with one as `.encoder`.
        path: the checkpoint's prefix (".../model.ckpt") or its folder.

    Returns:
        What was loaded, what is new, what was ignored.

    Raises:
        FileNotFoundError: if there is no checkpoint.
        ValueError: if it does not fit the model.
    """
    prefix = str(path)
    if pathlib.Path(prefix).is_dir():
        prefix = tf.train.latest_checkpoint(prefix) or prefix
    if not pathlib.Path(prefix + ".index").exists():
        raise FileNotFoundError(f"expected a TF1 checkpoint at {path}, found no .index file")
    reader = tf.train.load_checkpoint(prefix)
    tensors = {
        name: lambda name=name: reader.get_tensor(name)
        for name in reader.get_variable_to_shape_map()
        if not name.endswith(_NOT_WEIGHTS) and name not in _COUNTERS
    }
    return assign_variables(model, tensors, prefix)
