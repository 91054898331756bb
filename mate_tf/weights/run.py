"""The weights of a run of our own: into its own model, or into another for chains of tasks.

A run's folder holds checkpoints, and in `best` the weights of its best evaluation:
model.safetensors, and model.onnx where there is a graph. A folder of weights alone has these beside
its config, in half precision. TensorFlow and Keras are imported only for checkpoints and models.
"""

import functools
import os
import pathlib
import tempfile
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from mate_tf.answers.onnx_runtime import GRAPH_FILE
from mate_tf.answers.onnx_runtime import WEIGHTS_FILE as FILE
from mate_tf.config import read_json_object
from mate_tf.paths import as_path, complete_file, is_remote
from mate_tf.task_configs import TASK_CONFIGS
from mate_tf.weights.folder import CALIBRATION_FILE

if TYPE_CHECKING:
    import keras

BEST_FOLDER = "best"  # of a run: the weights of its best evaluation
DESCRIPTION = ("config.json", "conversion.json", "vocab.txt")  # what a run's folder says of them
_STEP = "step"
_KINDS = ("F32", "F16", "float32", "float16")  # of safetensors, and of TensorFlow


class StoredWeight(NamedTuple):
    """A weight in a file, not yet read."""

    shape: tuple[int, ...]
    read: Callable[[], np.ndarray]


class RunWeights:
    """The weights in a checkpoint or in a file of half precision, by their path in the model.

    Given the prefix of the checkpoint's files, or the path of model.safetensors; ValueError if the
    file is not what it should be.
    """

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix
        self._metadata: Mapping[str, str] | None = None
        self.weights: dict[str, StoredWeight] = {}
        if os.path.basename(prefix) == FILE:
            file = open_safetensors(prefix)
            self._metadata = file.metadata() or {}

            def single(name: str) -> np.ndarray:
                return file.get_tensor(name).astype(np.float32)

            for name in file.keys():  # noqa: SIM118, a safetensors file is no mapping
                stored, read = file.get_slice(name), functools.partial(single, name)
                self._add(name, stored.get_dtype(), stored.get_shape(), read)
            return
        import tensorflow as tf

        # Not tf.train.load_checkpoint, which in ram:// takes a prefix for a folder.
        reader = tf.compat.v1.train.NewCheckpointReader(prefix)
        kinds, shapes = reader.get_variable_to_dtype_map(), reader.get_variable_to_shape_map()
        for path, key in _keys_of_weights(reader).items():
            self._add(path, kinds[key].name, shapes[key], functools.partial(reader.get_tensor, key))

    def _add(self, path: str, kind: str, shape: Sequence[int], read: Callable) -> None:
        if kind not in _KINDS:
            raise ValueError(
                f"expected weights of {_KINDS}, got {kind} for {path!r} in {self.prefix}"
            )
        self.weights[path] = StoredWeight(tuple(shape), read)

    @property
    def step(self) -> int:
        """The step of the run that they are of; ValueError where a file does not say so."""
        if self._metadata is None:
            return int(self.prefix.rpartition("-")[2])
        step = self._metadata.get(_STEP, "")
        if not step.isdecimal():
            raise ValueError(
                f"expected the weights of a run with their step in {self.prefix}, got "
                f"{self._metadata}"
            )
        return int(step)

    @property
    def shapes(self) -> list[tuple[int, ...]]:
        return [weight.shape for weight in self.weights.values()]

    def restore(self, model: "keras.layers.Layer") -> None:
        """Assigns them to the run's own model, built; ValueError, and nothing, if it is another."""
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


def open_safetensors(path: str | os.PathLike[str]) -> Any:
    """An open file of weights, whose tensors are read one by one; ValueError if it is none."""
    import safetensors

    try:
        if not is_remote(path):
            return safetensors.safe_open(path, framework="numpy")
        with tempfile.NamedTemporaryFile() as copy:  # removed, it can still be read
            copy.write(as_path(path).read_bytes())
            copy.flush()
            return safetensors.safe_open(copy.name, framework="numpy")
    except safetensors.SafetensorError as error:
        raise ValueError(f"expected safetensors in {path}: {error}") from None


def _keys_of_weights(reader) -> dict[str, str]:
    """The keys of the weights in a checkpoint of training/loop.py, by their path in the model.

    A weight that the optimizer has as well is kept under the optimizer's name.
    """
    from tensorflow.core.protobuf.trackable_object_graph_pb2 import TrackableObjectGraph

    graph = TrackableObjectGraph.FromString(reader.get_tensor("_CHECKPOINTABLE_OBJECT_GRAPH"))
    root = {child.local_name: child.node_id for child in graph.nodes[0].children}
    if "weights" not in root:
        return {}
    return {
        child.local_name: attribute.checkpoint_key
        for child in graph.nodes[root["weights"]].children
        for attribute in graph.nodes[child.node_id].attributes
    }


def latest_checkpoint(folder: pathlib.Path) -> str | None:
    """The prefix of the latest checkpoint in a folder; None if it has none.

    It is the one that TensorFlow's list, the file `checkpoint`, names. Where the list is missing or
    damaged, or names files that are gone, it is the whole one with the highest number.
    """
    whole = [
        file.with_suffix("")
        for file in folder.glob("ckpt-*.index")
        if any(folder.glob(f"{file.stem}.data-*"))
    ]
    if not (whole or (folder / "checkpoint").exists()):
        return None
    import tensorflow as tf

    if listed := tf.train.latest_checkpoint(str(folder)):
        return str(listed)
    newest = max(whole, key=lambda path: int(path.name.rpartition("-")[2]), default=None)
    return None if newest is None else str(newest)


def run_weights(directory: str | pathlib.Path) -> RunWeights:
    """The weights of a run's best evaluation, or else the latest; FileNotFoundError if none."""
    directory = as_path(directory)
    if folder := folder_of_weights(directory):
        return RunWeights(str(folder / FILE))
    if prefix := latest_checkpoint(directory):
        return RunWeights(prefix)
    raise FileNotFoundError(f"expected a checkpoint in {directory}, found none")


def folder_of_weights(directory: pathlib.Path) -> pathlib.Path | None:
    """The folder with a run's model.safetensors: that of its best evaluation, or its own."""
    folders = (directory / BEST_FOLDER, directory)
    return next((folder for folder in folders if (folder / FILE).is_file()), None)


def write_best(directory: pathlib.Path, model: "keras.layers.Layer", step: int) -> None:
    """Keeps a model's weights as those of the run's best evaluation.

    The last ones go, with their graph and calibration.
    """
    (directory / CALIBRATION_FILE).unlink(missing_ok=True)
    _write_file(directory / BEST_FOLDER, packed(numpy_weights(model), step, exactly=True))


def weights_by_path(model: "keras.layers.Layer") -> "dict[str, keras.Variable]":
    """The weights by their path in the model, as checkpoints of runs keep them."""
    root = f"{model.name}/"  # numbered, where a process makes several models
    weights = {weight.path.removeprefix(root): weight for weight in model.weights}
    if len(weights) != len(model.weights):
        raise ValueError(f"expected weights of different paths in {model.name}")
    return weights


def read_run_config(directory: str | pathlib.Path) -> tuple[str, dict[str, Any]]:
    """The kind of a run's model and the values in its config; FileNotFoundError or ValueError."""
    path = as_path(directory) / "config.json"
    if not path.is_file():
        raise FileNotFoundError(f"expected config.json in {directory}; is it a run's folder?")
    values = read_json_object(path)
    kind = values.pop("kind", None)
    if not isinstance(kind, str) or kind not in TASK_CONFIGS:
        raise ValueError(
            f"{path}: expected the config of a run of one of the kinds {', '.join(TASK_CONFIGS)}, "
            f"got {kind!r}"
        )
    return kind, values


def export_weights(directory: str | pathlib.Path, output: str | pathlib.Path) -> pathlib.Path:
    """Writes the weights of a run's best evaluation alone, in half precision; returns their file.

    The run's config, vocabulary, conversion and calibration are copied too, so that the folder
    answers questions, and other runs start from it. FileNotFoundError if there is no run, or it has
    no checkpoint yet; ValueError if a weight is too large for half precision, or the folder to
    write is a run's.
    """
    directory, output = as_path(directory), as_path(output)
    if directory.resolve() == output.resolve():
        raise ValueError(f"expected another folder than the run's, got {output}")
    if missing := [name for name in DESCRIPTION if not (directory / name).is_file()]:
        raise FileNotFoundError(f"expected a run in {directory}, which has no {missing[0]}")
    stored = run_weights(directory)
    tensors = {path: weight.read() for path, weight in stored.weights.items()}
    content = packed(tensors, stored.step)
    names = [name for name in (*DESCRIPTION, CALIBRATION_FILE) if (directory / name).is_file()]
    return write_weights(output, content, {name: (directory / name).read_bytes() for name in names})


def write_weights(
    output: pathlib.Path, content: bytes, others: Mapping[str, bytes]
) -> pathlib.Path:
    """Writes weights and other files to a folder; ValueError for a run's. Returns the weights'."""
    if latest_checkpoint(output) or (output / BEST_FOLDER).is_dir():
        raise ValueError(f"expected a folder without checkpoints, got that of a run, {output}")
    output.mkdir(parents=True, exist_ok=True)
    # First, so that an interruption leaves no weights beside the config of others.
    for name in (FILE, CALIBRATION_FILE):
        (output / name).unlink(missing_ok=True)
    for name, text in others.items():
        (output / name).write_bytes(text)
    return _write_file(output, content)


def _write_file(folder: pathlib.Path, content: bytes) -> pathlib.Path:
    """Writes the file of weights, whole or not at all; the graph of others goes."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / GRAPH_FILE).unlink(missing_ok=True)
    with complete_file(folder / FILE) as unfinished:  # save_file lets nobody else read it
        as_path(unfinished).write_bytes(content)
    return folder / FILE


def numpy_weights(model: "keras.layers.Layer") -> dict[str, np.ndarray]:
    """The values of a model's weights by their path in it."""
    return {path: np.asarray(weight) for path, weight in weights_by_path(model).items()}


def packed(tensors: Mapping[str, np.ndarray], step: int, exactly: bool = False) -> bytes:
    """The content of a file of weights in half precision, by their path in the model.

    Kept `exactly` they are in single precision where half would change one. ValueError if a weight
    is not finite, or too large for the precision.
    """
    from safetensors.numpy import save

    single = {name: np.asarray(value, np.float32) for name, value in tensors.items()}
    with np.errstate(over="ignore"):
        fits = all(np.array_equal(value.astype(np.float16), value) for value in single.values())
    dtype = np.float32 if exactly and not fits else np.float16
    largest = float(np.finfo(dtype).max)
    for name, value in single.items():
        if not (np.abs(value) <= largest).all():
            raise ValueError(f"expected weights up to {largest:g}, got a larger one in {name!r}")
    return save(
        {name: value.astype(dtype) for name, value in single.items()},
        metadata={_STEP: str(step), "format": "mate_tf"},
    )
