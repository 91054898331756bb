"""What ends a training run before its time, and what is said then."""

import contextlib
import errno
import os
import pathlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType
from typing import Any

import tensorflow as tf
from absl import logging

_DISK_IS_FULL = {errno.ENOSPC, errno.EDQUOT}
_LOST = (
    tf.errors.UnavailableError,
    tf.errors.DeadlineExceededError,
    tf.errors.AbortedError,
    tf.errors.CancelledError,
)


class Terminated(SystemExit):
    """Training has ended, with all that it did saved, because SIGTERM asked it to."""

    def __init__(self) -> None:
        super().__init__(128 + signal.SIGTERM)


class Termination:
    """Notes that SIGTERM came, as a machine sends it before it is taken away.

    A second one ends the process at once. In a thread that is not the main one, which gets no
    signals, none is noted.
    """

    def __init__(self) -> None:
        self.is_asked = False

    def __enter__(self) -> "Termination":
        self._is_main = threading.current_thread() is threading.main_thread()
        if self._is_main:
            self._previous = signal.signal(signal.SIGTERM, self._note)
        return self

    def __exit__(self, *_: Any) -> None:
        if self._is_main:
            signal.signal(signal.SIGTERM, self._previous)

    def _note(self, number: int, frame: FrameType | None) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        self.is_asked = True
        logging.warning("SIGTERM: ending after this step; a second one ends at once")


@contextlib.contextmanager
def explained(model_dir: pathlib.Path) -> Iterator[None]:
    """Says of an error in a run's training what is left of the run and what to do.

    Raises:
        FloatingPointError: for one of the numbers.
        OSError: where the disk is full.
        ConnectionError: where another worker is no longer there.
    """
    try:
        yield
    except FloatingPointError as error:
        raise FloatingPointError(
            f"{error}; {_what_is_left(model_dir)}; begin another run, with a lower learning_rate, "
            f"where there is a checkpoint from it (--init_checkpoint={model_dir})"
        ) from error
    except (OSError, tf.errors.ResourceExhaustedError) as error:
        if not _is_disk_full(error):
            raise
        raise OSError(
            f"expected room for checkpoints and summaries in {model_dir}, got none; "
            f"{_what_is_left(model_dir)}; make room and start again in the same way"
        ) from error
    except _LOST as error:
        if not isinstance(tf.distribute.get_strategy(), tf.distribute.MultiWorkerMirroredStrategy):
            raise
        raise ConnectionError(
            f"expected all workers to answer, got one that does not; {_what_is_left(model_dir)}; "
            "start all workers again in the same way"
        ) from error


def check_finite(variables: list[tf.Variable], step: int) -> None:
    """Refuses numbers that a checkpoint must not be made of.

    Raises:
        FloatingPointError: if one of the variables is not finite.
    """
    if not tf.reduce_all([tf.reduce_all(tf.math.is_finite(variable)) for variable in variables]):
        raise FloatingPointError(f"expected finite weights, got NaN or infinity at step {step}")


def remove_unfinished(folder: pathlib.Path) -> None:
    """Removes what is left of a checkpoint that was not finished: it may fill a disk."""
    for path in folder.glob("ckpt-*_temp"):
        for file in path.iterdir():
            file.unlink()
        path.rmdir()


def _is_disk_full(error: OSError | tf.errors.ResourceExhaustedError) -> bool:
    if isinstance(error, OSError):
        return error.errno in _DISK_IS_FULL
    # The other resource is memory.
    return any(os.strerror(number) in str(error) for number in _DISK_IS_FULL)


def _what_is_left(model_dir: pathlib.Path) -> str:
    latest = tf.train.latest_checkpoint(str(model_dir))
    if latest is None:
        return f"there is no checkpoint in {model_dir} yet"
    return f"the checkpoint of step {latest.rpartition('-')[2]} in {model_dir} is as it was"
