"""The authors' and BERT's TF1 checkpoints into a model."""

import functools
import pathlib
from typing import Any

import keras
import tensorflow as tf

from mate_tf.config import read_json_object
from mate_tf.weights.loading import LoadReport, assign_variables, check_num_heads

CONFIG_FILE = "bert_config.json"
# The optimizer's slots and counters, of no use to a model.
_NOT_WEIGHTS = ("/adam_m", "/adam_v", "/accum")
_COUNTERS = ("global_step", "counter")


def find_tf1_checkpoint(path: str | pathlib.Path) -> str | None:
    """The prefix of the checkpoint at a prefix or in a folder; None where there is none.

    A folder's is the one that its `checkpoint` file names, or else its only one.

    Raises:
        ValueError: if a folder has several and does not say which.
    """
    prefix = str(path)
    if pathlib.Path(prefix).is_dir():
        if latest := tf.train.latest_checkpoint(prefix):
            return latest
        found = [str(file.with_suffix("")) for file in sorted(pathlib.Path(prefix).glob("*.index"))]
        if len(found) > 1:
            names = ", ".join(pathlib.Path(one).name for one in found)
            raise ValueError(
                f"expected one TF1 checkpoint in {path}, got {len(found)}: {names}; name one by "
                f"its prefix, such as {found[0]}"
            )
        return found[0] if found else None
    return prefix if pathlib.Path(prefix + ".index").exists() else None


def load_tf1_checkpoint(
    model: keras.layers.Layer, path: str | pathlib.Path, **options: Any
) -> LoadReport:
    """Loads a name-based checkpoint of BERT, TAPAS or MATE into a model.

    Args:
        model: a built `TableEncoder` or a model with one as `.encoder`.
        path: the checkpoint's prefix (".../model.ckpt") or its folder. A bert_config.json beside it
            is compared with the model.
        **options: of `assign_variables`.

    Returns:
        What was loaded, what is new, what was ignored.

    Raises:
        FileNotFoundError: if there is no checkpoint.
        ValueError: if it does not fit the model, or as `find_tf1_checkpoint`.
    """
    prefix = find_tf1_checkpoint(path)
    if prefix is None:
        raise FileNotFoundError(f"expected a TF1 checkpoint at {path}, found no .index file")
    config = pathlib.Path(prefix).parent / CONFIG_FILE
    if config.is_file():
        check_num_heads(model, read_json_object(config).get("num_attention_heads"), config)
    reader = tf.train.load_checkpoint(prefix)
    tensors = {
        name: functools.partial(reader.get_tensor, name)
        for name in reader.get_variable_to_shape_map()
        if not name.endswith(_NOT_WEIGHTS) and name not in _COUNTERS
    }
    return assign_variables(model, tensors, prefix, **options)
