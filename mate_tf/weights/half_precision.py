"""A model's weights alone, in half precision: model.safetensors in a run's folder.

Half the size of a checkpoint's, without the optimizer's, and enough to answer, to serve and to
start the next run from.
"""

import functools
import os
import pathlib
from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from mate_tf.tables.records import complete_file

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
