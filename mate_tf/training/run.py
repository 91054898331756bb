"""A training run and its folder: what it was made from, its config, and the training itself."""

import dataclasses
import hashlib
import json
import os
import pathlib
import shutil
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf
from absl import logging

from mate_tf.dataclass_json import differences, from_dict
from mate_tf.records.records import complete_file
from mate_tf.records.splits import split_files
from mate_tf.tables.text_files import complete_text_file, read_json
from mate_tf.tasks import task_of
from mate_tf.training.config import RunConfig
from mate_tf.weights.run import read_run_config

CONFIG_FILE = "config.json"
INPUTS_FILE = "inputs.json"
_MAY_CHANGE = ("skip_corrupt", "recompute")  # when a run goes on


def train_run(
    config: RunConfig,
    data_dir: pathlib.Path,
    model_dir: pathlib.Path,
    init_checkpoint: str | None = None,
    *,
    on_begin: Callable[[], None] | None = None,
    **load_options,
) -> dict[str, float]:
    """Trains as the config says, or goes on where the run in the folder stopped.

    Call it in the scope of the strategy to train with.

    Args:
        config: what is trained, and how.
        data_dir: the folder of records (`check_examples`).
        model_dir: the run's folder, new or of the same run.
        init_checkpoint: weights to start from, as `load_weights` takes them; None for random ones.
        on_begin: is called by the chief before the first step of a run that was not refused.
        **load_options: of `load_weights`.

    Returns:
        The metrics of the last evaluation.

    Raises:
        FileNotFoundError, ValueError: if data, weights or folder do not fit the config.
    """
    import keras

    from mate_tf.training.distribution import is_chief
    from mate_tf.training.examples import SPLITS, build_model, make_task, save_conversion
    from mate_tf.training.loop import train
    from mate_tf.weights.initial import load_weights

    task_spec = task_of(config.task)
    task_spec.check_data(config, data_dir)
    keras.utils.set_random_seed(config.seed)
    with tf.distribute.get_strategy().scope():
        model = build_model(config)
        source = None
        begins = tf.train.latest_checkpoint(model_dir) is None
        if init_checkpoint and begins:
            vocab_file = data_dir / "vocab.txt"
            report = load_weights(model, init_checkpoint, vocab_file=vocab_file, **load_options)
            logging.info("%s", report)
            source = report.source
            if source.startswith(os.path.normpath(init_checkpoint)):  # not on the Hub
                init_checkpoint = os.path.abspath(init_checkpoint)
        evaluation = task_spec.dev_evaluation(config, data_dir, model)
        task = make_task(config, data_dir, model, evaluation)
        # Only now, so that a refused run leaves no folder behind.
        if is_chief():
            save_config(config, model_dir)
            save_conversion(config, data_dir, model_dir)
            names = [
                f"{split}{records.suffix}" for split in SPLITS for records in config.record_sets
            ]
            inputs = RunInputs(
                data_dir=os.path.abspath(data_dir),
                files=data_files(data_dir, names),
                init_checkpoint=init_checkpoint,
                init_revision=load_options.get("revision"),
                reset_heads=load_options.get("reset_heads", False),
                loaded_from=source and os.path.abspath(source),
            )
            save_inputs(inputs, model_dir, begins, may_differ=config.skip_corrupt)
            with complete_file(model_dir / "vocab.txt") as unfinished:
                shutil.copyfile(data_dir / "vocab.txt", unfinished)
            if begins and on_begin is not None:
                on_begin()
        return train(task, config, model_dir)


@dataclasses.dataclass(frozen=True)
class InputFile:
    """A file of the data: its name, and the SHA-256 of its bytes in hexadecimal digits."""

    name: str
    sha256: str


@dataclasses.dataclass(frozen=True)
class RunInputs:
    """What a run was made from.

    Attributes:
        data_dir: the folder of records.
        files: its record files.
        init_checkpoint: the weights that the run was told to start from; None for random ones.
        init_revision: of weights on the Hub.
        reset_heads: whether all heads started anew.
        loaded_from: the checkpoint or folder where these weights were.
    """

    data_dir: str
    files: tuple[InputFile, ...]
    init_checkpoint: str | None = None
    init_revision: str | None = None
    reset_heads: bool = False
    loaded_from: str | None = None

    def began_with(self, init_checkpoint: str | None) -> bool:
        """Whether these are its first weights; paths on this machine are stored in full."""
        whole = init_checkpoint and os.path.abspath(init_checkpoint)
        return self.init_checkpoint in (init_checkpoint, whole)


def data_files(data_dir: str | pathlib.Path, splits: Sequence[str]) -> tuple[InputFile, ...]:
    """The record files of a folder's splits; errors as `split_files`."""
    files = []
    for path in (path for split in splits for path in split_files(data_dir, split)):
        with open(path, "rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        files.append(InputFile(os.path.basename(path), digest))
    return tuple(files)


def save_inputs(
    inputs: RunInputs,
    model_dir: str | pathlib.Path,
    begins: bool,
    may_differ: bool = False,
) -> None:
    """Writes to a run's folder what the run is made from; a run that goes on must be the same.

    Args:
        inputs: what this run is made from; no first weights means those of the run so far.
        model_dir: the run's folder.
        begins: whether the run has no checkpoint yet.
        may_differ: whether the data may have changed since.

    Raises:
        ValueError: if the run in the folder was made from other records or first weights.
    """
    path = pathlib.Path(model_dir) / INPUTS_FILE
    if begins or not path.exists():
        with complete_text_file(path) as file:
            file.write(json.dumps(dataclasses.asdict(inputs), indent=2) + "\n")
        return
    there = load_inputs(model_dir)
    different = sorted({file.name for file in {*there.files} ^ {*inputs.files}})
    if different and not may_differ:
        raise ValueError(
            f"expected the records that the run in {model_dir} began with, got others in "
            f"{inputs.data_dir}: {', '.join(different)}; choose another folder for the run"
        )
    _check_same_start(inputs, there, model_dir)


def _check_same_start(inputs: RunInputs, there: RunInputs, model_dir: str | pathlib.Path) -> None:
    if inputs.init_checkpoint is None:
        return
    here, said = (
        f"{of.init_checkpoint or 'random ones'}"
        f"{f' ({of.init_revision})' if of.init_revision else ''}"
        f"{' with new heads' if of.reset_heads else ''}"
        for of in (inputs, there)
    )
    same_options = (inputs.init_revision, inputs.reset_heads) == (
        there.init_revision,
        there.reset_heads,
    )
    if not (same_options and there.began_with(inputs.init_checkpoint)):
        raise ValueError(
            f"expected the first weights that the run in {model_dir} began with, {said}, got "
            f"{here}; choose another folder for the run, or name no weights to go on with it"
        )


def load_inputs(model_dir: str | pathlib.Path) -> RunInputs:
    """What the run in a folder was made from.

    Raises:
        FileNotFoundError: if the folder does not say.
        ValueError: if the file is not from `save_inputs`.
    """
    path = pathlib.Path(model_dir) / INPUTS_FILE
    try:
        return from_dict(RunInputs, read_json(path), "inputs")
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def save_config(config: RunConfig, model_dir: str | pathlib.Path) -> None:
    """Writes the full config to a run's folder, or checks that it is the same as there.

    Raises:
        ValueError: if the folder is that of a run with another config, or holds a checkpoint of
            something else.
    """
    path = pathlib.Path(model_dir) / CONFIG_FILE
    here = config_values(config)
    if path.exists():
        there = config_values(load_config(model_dir))
        here |= {name: there[name] for name in _MAY_CHANGE}
        different = differences(there, here)
        if different:
            raise ValueError(
                f"expected the config of the run in {model_dir}, got another: "
                f"{', '.join(different)}; choose another folder or the same config"
            )
        return
    if latest := tf.train.latest_checkpoint(str(model_dir)):
        raise ValueError(
            f"expected a new folder or that of a run, got {model_dir} with the checkpoint "
            f"{pathlib.Path(latest).name} and without {CONFIG_FILE}; choose another folder"
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    with complete_text_file(path) as file:
        file.write(json.dumps(here, indent=2) + "\n")


def load_config(model_dir: str | pathlib.Path) -> RunConfig:
    """The config in a run's folder; errors as `read_run_config`, or ValueError for wrong values."""
    task, values = read_run_config(model_dir)
    try:
        return from_dict(task.training_config_class, values)
    except ValueError as error:
        raise ValueError(f"{pathlib.Path(model_dir) / CONFIG_FILE}: {error}") from None


def config_values(config: RunConfig) -> dict[str, Any]:
    """A config as a run's file holds it, with tuples instead of lists."""
    return {"kind": task_of(config.task).name} | dataclasses.asdict(config)
