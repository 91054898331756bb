"""A training run and its folder: what it was made from, its config, and the training itself."""

import contextlib
import dataclasses
import itertools
import json
import os
import pathlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import keras
import tensorflow as tf
from absl import logging

from mate_tf.dataclass_json import differences, from_dict
from mate_tf.paths import absolute, as_path, complete_file, is_remote
from mate_tf.reading.text_files import complete_text_file, read_json
from mate_tf.records.conversion_file import file_sha256
from mate_tf.records.splits import QUESTIONS, has_questions, split_files
from mate_tf.task_configs import model_kind
from mate_tf.training import examples
from mate_tf.training.config import (
    ClassificationTrainingConfig,
    MaskedLMTrainingConfig,
    RunConfig,
    SpanReadingTrainingConfig,
    TableQATrainingConfig,
)
from mate_tf.training.distribution import describe_devices, is_chief
from mate_tf.training.loop import explained, train
from mate_tf.training.table_qa import check_table_qa, known_records, table_qa_evaluation
from mate_tf.weights.initial import load_weights
from mate_tf.weights.run import latest_checkpoint, read_run_config

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

CONFIG_FILE = "config.json"
INPUTS_FILE = "inputs.json"
_MAY_CHANGE = ("skip_corrupt", "recompute")  # when a run goes on


class TrainingKind(NamedTuple):
    """The config of a run, and what is done beside its steps."""

    config_class: type[Any]
    check_data: Callable[..., None]  # ValueError for records that the model cannot learn from
    dev_evaluation: Callable[..., Any]  # makes what measures the model on the dev split


TRAINING_KINDS = {
    "table_qa": TrainingKind(TableQATrainingConfig, check_table_qa, table_qa_evaluation),
    "classification": TrainingKind(
        ClassificationTrainingConfig,
        examples.check_classification,
        examples.classification_evaluation,
    ),
    "span_reading": TrainingKind(
        SpanReadingTrainingConfig, examples.check_span_reading, examples.span_reading_evaluation
    ),
    "masked_lm": TrainingKind(
        MaskedLMTrainingConfig, examples.check_masked_lm, examples.masked_lm_evaluation
    ),
}


def train_run(
    config: RunConfig,
    data_dir: pathlib.Path,
    model_dir: pathlib.Path,
    init_checkpoint: str | None = None,
    *,
    on_begin: Callable[[], None] = lambda: None,
    **load_options,
) -> dict[str, float]:
    """Trains as the config says, or goes on where the run in the folder stopped.

    Call it in the scope of the strategy to train with. `data_dir` is a folder of records
    (`check_examples`). Weights to start from and options are as of `load_weights`; without them
    weights are random. The chief calls `on_begin` before the first step of a run that was not
    refused. FileNotFoundError or ValueError if data, weights or folder do not fit the config, or
    another process trains in the folder.
    """
    kind, vocab_file = TRAINING_KINDS[model_kind(config.task)], data_dir / "vocab.txt"
    kind.check_data(config, data_dir)
    keras.utils.set_random_seed(config.seed)
    with tf.distribute.get_strategy().scope(), contextlib.ExitStack() as held:
        model = examples.build_model(config)
        source = None
        begins = latest_checkpoint(model_dir) is None
        if init_checkpoint and begins:
            report = load_weights(model, init_checkpoint, vocab_file=vocab_file, **load_options)
            logging.info("%s", report)
            source = report.source
            if source.startswith(os.path.normpath(init_checkpoint)):  # not on the Hub
                init_checkpoint = absolute(init_checkpoint)
        evaluation = kind.dev_evaluation(config, data_dir, model)
        known = None
        if isinstance(config, TableQATrainingConfig) and config.known_share:
            made = examples.records_conversion(config, data_dir)
            known = held.enter_context(known_records(made, vocab_file))
        task = examples.make_task(config, data_dir, model, evaluation, known)
        # Only now, so that a refused run leaves no folder behind.
        if is_chief():
            held.enter_context(explained(model_dir))
            held.enter_context(_only_training(model_dir))
            has_dev = has_questions(data_dir, "dev")
            questions = {QUESTIONS: split_files(data_dir, "dev", QUESTIONS)} if has_dev else {}
            save_config(config, model_dir)
            examples.save_conversion(config, data_dir, model_dir)
            inputs = RunInputs(
                data_dir=absolute(data_dir),
                files=data_files(examples.record_files(config, data_dir) | questions),
                init_checkpoint=init_checkpoint,
                init_revision=load_options.get("revision"),
                reset_heads=load_options.get("reset_heads", False),
                loaded_from=source and absolute(source),
            )
            save_inputs(inputs, model_dir, begins, may_differ=config.skip_corrupt)
            with complete_file(model_dir / "vocab.txt") as unfinished:
                tf.io.gfile.copy(str(vocab_file), unfinished)
            if begins:
                on_begin()
        logging.info("%s", describe_devices(config.dtype))
        has_start = bool(init_checkpoint) and not load_options.get("reset_heads")
        return train(task, config, model_dir, has_start)


@contextlib.contextmanager
def _only_training(model_dir: pathlib.Path) -> Iterator[None]:
    """Holds the folder's lock, where the system has one; it ends with the process."""
    if fcntl is None or is_remote(model_dir):
        yield
        return
    model_dir.mkdir(parents=True, exist_ok=True)
    folder = os.open(model_dir, os.O_RDONLY)
    try:
        try:
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            reason = "found one; wait for it, or name another folder"
            raise ValueError(f"expected no other training in {model_dir}, {reason}") from None
        except OSError:  # some file systems have no locks
            pass
        yield
    finally:
        os.close(folder)


@dataclasses.dataclass(frozen=True)
class InputFile:
    """A file of the data: its name, and the SHA-256 of its bytes in hexadecimal digits."""

    name: str
    sha256: str


@dataclasses.dataclass(frozen=True)
class RunInputs:
    """The origin of a run: a folder of records with its files, and first weights."""

    data_dir: str
    files: tuple[InputFile, ...]
    init_checkpoint: str | None = None  # what it was told to start from; None for random weights
    init_revision: str | None = None  # of weights on the Hub
    reset_heads: bool = False
    loaded_from: str | None = None  # the checkpoint or folder where these weights were


def data_files(files_by_split: Mapping[Any, Sequence[str]]) -> tuple[InputFile, ...]:
    """The record files (`record_files`) with the checksums of their contents."""
    paths = itertools.chain(*files_by_split.values())
    return tuple(InputFile(os.path.basename(path), file_sha256(path)) for path in paths)


def save_inputs(
    inputs: RunInputs, model_dir: str | pathlib.Path, begins: bool, may_differ: bool = False
) -> None:
    """Writes to a run's folder what the run is made from; ValueError for a run made from others.

    No first weights means those of the run so far. `begins` says whether the run has no checkpoint
    yet, `may_differ` whether the data may have changed since.
    """
    path = as_path(model_dir) / INPUTS_FILE
    if begins or not path.exists():
        with complete_text_file(path) as file:
            file.write(json.dumps(dataclasses.asdict(inputs), indent=2) + "\n")
        return
    there = load_inputs(model_dir)
    names = {file.name for file in there.files}
    # Earlier versions noted the records alone.
    files = {it for it in inputs.files if it.name in names or not it.name.endswith(QUESTIONS)}
    different = sorted({file.name for file in {*there.files} ^ files})
    if different and not may_differ:
        raise ValueError(
            f"expected the data that the run in {model_dir} began with, got others in "
            f"{inputs.data_dir}: {', '.join(different)}; choose another folder for the run"
        )
    given = inputs.init_checkpoint
    if given is None:
        return
    first, here = (
        (one.init_checkpoint or "random ones")
        + (f" ({one.init_revision})" if one.init_revision else "")
        + (" with new heads" if one.reset_heads else "")
        for one in (there, inputs)
    )
    # As paths on this machine are stored.
    if first not in (here, here.replace(given, absolute(given), 1)):
        raise ValueError(
            f"expected the first weights that the run in {model_dir} began with, {first}, got "
            f"{here}; choose another folder for the run, or name no weights to go on with it"
        )


def load_inputs(model_dir: str | pathlib.Path) -> RunInputs:
    """The origin of the run in a folder; errors as `read_json`, with the file."""
    path = as_path(model_dir) / INPUTS_FILE
    try:
        return from_dict(RunInputs, read_json(path), "inputs")
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def save_config(config: RunConfig, model_dir: str | pathlib.Path) -> None:
    """Writes the config to a run's folder; ValueError if another is there or a checkpoint alone."""
    path = as_path(model_dir) / CONFIG_FILE
    here = config_values(config)
    if path.exists():
        there = config_values(load_config(model_dir))
        here |= {name: there[name] for name in _MAY_CHANGE}
        if different := differences(there, here):
            raise ValueError(
                f"expected the config of the run in {model_dir}, got another: "
                f"{', '.join(different)}; choose another folder or the same config"
            )
        return
    if latest := latest_checkpoint(as_path(model_dir)):
        raise ValueError(
            f"expected a new folder or that of a run, got {model_dir} with the checkpoint "
            f"{pathlib.Path(latest).name} and without {CONFIG_FILE}; choose another folder"
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    with complete_text_file(path) as file:
        file.write(json.dumps(here, indent=2) + "\n")


def load_config(model_dir: str | pathlib.Path) -> RunConfig:
    """The config in a run's folder; errors as `read_run_config`, or ValueError for wrong values."""
    kind, values = read_run_config(model_dir)
    try:
        return from_dict(TRAINING_KINDS[kind].config_class, values)
    except ValueError as error:
        raise ValueError(f"{as_path(model_dir) / CONFIG_FILE}: {error}") from None


def config_values(config: RunConfig) -> dict[str, Any]:
    """A config as a run's file holds it, with tuples instead of lists."""
    return {"kind": model_kind(config.task)} | dataclasses.asdict(config)
