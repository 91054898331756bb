"""A short training that is interrupted in all ways, as functions for tests/forked.py.

Shapes: B batch.
"""

import contextlib
import ctypes
import dataclasses
import json
import os
import pathlib
import shutil
import signal
import threading
from collections.abc import Callable, Iterator
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from mate_tf.layers.basic import Dropout
from mate_tf.training.config import TrainingConfig
from mate_tf.training.distribution import is_chief
from mate_tf.training.loop import Evaluator, train
from mate_tf.training.trainer import Progress, Task
from tests.small import ENCODER

CONFIG = TrainingConfig(
    num_steps=60,
    learning_rate=0.01,
    summary_interval=5,
    eval_interval=4,
    checkpoint_interval=3,
    ema_decay=0.9,
    encoder=ENCODER,
)
BATCH_SIZE = 8
NUM_TOKENS = BATCH_SIZE * 2  # of a batch


class Regression(keras.Model):
    """Small enough to be traced in an instant, with dropout and weights that nothing uses."""

    normalized_by = ()

    def __init__(self, dropout: float):
        super().__init__()
        self.dropout = Dropout(dropout)
        self.hidden = keras.layers.Dense(8, activation="tanh", name="hidden")
        self.unused = keras.layers.Dense(1, name="unused")
        # tf.train.Checkpoint does not look into the dicts of Keras 3 layers.
        self.heads = {"last": keras.layers.Dense(1, name="last")}
        for layer, size in ((self.hidden, 3), (self.heads["last"], 8), (self.unused, 8)):
            layer.build((None, size))
        self.built = True

    def call(self, inputs, training=False):
        return self.heads["last"](self.dropout(self.hidden(inputs), training=training))

    def model_inputs(self, batch):
        return (batch["x"],)

    def compute_task_loss(self, batch, outputs):
        errors = tf.square(outputs - batch["y"])
        return {"loss": tf.reduce_mean(errors), "errors": errors}


def make_task(dropout: float = 0.5, evaluations: Iterator[float] | None = None) -> Task:
    """Sums of numbers; what is evaluated follows from the weights alone, or is given."""
    keras.utils.set_random_seed(3)
    model = Regression(dropout)
    inputs = np.random.default_rng(0).normal(size=(40, 3)).astype(np.float32)
    labels = inputs.sum(axis=1, keepdims=True)
    mask = np.repeat([[1, 1, 0]], 40, axis=0)

    def train_dataset(step: int) -> tf.data.Dataset:
        data = {"x": inputs, "y": labels, "input_mask": mask}
        dataset = tf.data.Dataset.from_tensor_slices(data)
        return dataset.shuffle(40, seed=5).repeat().batch(BATCH_SIZE, True).skip(step)

    def evaluate():
        loss = float(np.mean(np.square(model(inputs).numpy() - labels)))
        accuracy = -loss if evaluations is None else next(evaluations)
        return {"loss": loss, "accuracy": accuracy}

    return Task(model, train_dataset, evaluate, "accuracy")


def run(model_dir: pathlib.Path) -> None:
    """Trains, and keeps at the end all that a resumed run has to have the same."""
    task = make_task()
    train(task, CONFIG, model_dir)
    values = [variable.numpy() for variable in task.model.variables]  # together, by all workers
    if is_chief():
        np.savez(model_dir / "end.npz", *values)


# Where something happens to a run: before a function is called.
POINTS: dict[str, tuple[Any, str]] = {
    "step": (Progress, "add"),
    "save": (tf.train.CheckpointManager, "save"),
    # The files of the checkpoint are there, "checkpoint" does not name it yet.
    "name": (tf.train.CheckpointManager, "_record_state"),
    # It does, and the one that is too old is still there.
    "sweep": (tf.train.CheckpointManager, "_sweep"),
    "evaluation": (Evaluator, "_write"),
}


def at(point: str, count: int, happens: Callable[[], Any]) -> None:
    """Lets something happen when a point is reached for the n-th time."""
    owner, name = POINTS[point]
    original, calls = getattr(owner, name), []

    def function(*args, **kwargs):
        calls.append(name)
        if len(calls) == count:
            happens()
        return original(*args, **kwargs)

    setattr(owner, name, function)


def kill(delay: float = 0.0) -> None:
    """Kills this process, which goes on for some seconds first."""
    if delay:
        threading.Timer(delay, kill).start()
    else:
        os.kill(os.getpid(), signal.SIGKILL)


def terminate(times: int = 1) -> None:
    for _ in range(times):
        os.kill(os.getpid(), signal.SIGTERM)


def run_until(model_dir: pathlib.Path, point: str, count: int, happens: Callable) -> None:
    """The run, to which something happens at a point that it comes to for the n-th time."""
    at(point, count, happens)
    run(model_dir)


def run_to_nan(model_dir: pathlib.Path, of_loss: bool, step: int) -> None:
    """The run, whose loss or, where that is still a number, whose gradient is none at a step."""
    task = make_task()
    compute_loss = task.model.compute_task_loss

    def train_dataset(done: int) -> tf.data.Dataset:
        steps = tf.data.Dataset.counter(done + 1)
        return tf.data.Dataset.zip(task.train_dataset(done), steps).map(
            lambda batch, number: batch | {"step": tf.fill([BATCH_SIZE], number)}
        )

    def broken_loss(batch, logits):
        loss = compute_loss(batch, logits)["loss"]

        def broken():
            # The root's slope at zero is infinite, and its product with zero is not a number.
            return loss * np.nan if of_loss else loss + tf.sqrt(0.0 * loss)

        return {"loss": tf.cond(batch["step"][0] == step, broken, lambda: loss)}

    task.model.compute_task_loss = broken_loss
    train(dataclasses.replace(task, train_dataset=train_dataset), CONFIG, model_dir)


def mount_small_disk(folder: pathlib.Path, size: int) -> bool:
    """Makes a folder a disk of so many bytes, for this process alone; whether it may."""
    new_user, new_mounts = 0x10000000, 0x00020000  # CLONE_NEWUSER, CLONE_NEWNS
    libc = ctypes.CDLL(None, use_errno=True)
    if os.getuid():
        new_mounts |= new_user
    folder.mkdir()
    options = f"size={size}".encode()
    return (
        libc.unshare(new_mounts) == 0
        and libc.mount(b"none", b"/", None, 1 << 18 | 1 << 14, None) == 0  # private to us
        and libc.mount(b"tmpfs", os.fsencode(folder), b"tmpfs", 0, options) == 0
    )


NOT_PERMITTED = 77


def run_on_full_disk(
    model_dir: pathlib.Path, copy_to: pathlib.Path, point: str, count: int
) -> None:
    """The run, whose disk is full from a point on until it has failed; then it goes on."""
    if not mount_small_disk(model_dir, 4 << 20):
        raise SystemExit(NOT_PERMITTED)
    ballast = model_dir / "ballast"

    def fill() -> None:
        with ballast.open("wb", buffering=0) as file, contextlib.suppress(OSError):
            while True:
                file.write(bytes(4096))

    at(point, count, fill)
    try:
        run(model_dir)
    except OSError as error:
        (copy_to / "message").write_text(str(error))
    ballast.unlink()
    run(model_dir)
    shutil.copytree(model_dir, copy_to, dirs_exist_ok=True)


def run_worker(
    model_dir: pathlib.Path, hosts: list[str], index: int, step: int, happens: Callable
) -> None:
    """The run of one of several workers, to which something happens at a step; at 0 nothing."""
    cluster = {"cluster": {"worker": hosts}, "task": {"type": "worker", "index": index}}
    os.environ["TF_CONFIG"] = json.dumps(cluster)
    with tf.distribute.MultiWorkerMirroredStrategy().scope():
        try:
            run_until(model_dir, "step", step, happens)
        except ConnectionError as error:
            (model_dir / "message").write_text(str(error))
            raise SystemExit(3) from error
