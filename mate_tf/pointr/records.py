"""Records of both stages, and what became of the questions that they are made of."""

import os
import pathlib
import shutil
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from mate_tf.tables.conversion import Outcome, Summary, convert_all
from mate_tf.tables.conversion_file import conversion_of
from mate_tf.tables.datasets.tasks import Task
from mate_tf.tables.feature_config import FeatureConfig
from mate_tf.tables.features import FeatureBuilder
from mate_tf.tables.records import complete_file
from mate_tf.tables.splits import prepare_folder, split_writer
from mate_tf.tables.table import Question
from mate_tf.tables.wordpiece import Wordpiece
from mate_tf.training.examples import SPLITS

Item = TypeVar("Item")
# Wraps what takes long, with a name, as tqdm does.
Progress = Callable[[Iterable[Item], str], Iterable[Item]]


def prepare_records(
    directory: pathlib.Path,
    task: str,
    features: FeatureConfig,
    vocab_file: str | os.PathLike[str],
    splits: list[str],
) -> None:
    """Makes a folder for splits, with the vocabulary, that says how its records are made.

    Raises:
        FileNotFoundError, ValueError: as `prepare_folder`.
    """
    prepare_folder(directory, conversion_of(task, features, vocab_file, None), splits)
    with complete_file(directory / "vocab.txt") as unfinished:
        shutil.copyfile(vocab_file, unfinished)


def write_split(
    directory: pathlib.Path,
    name: str,
    task: Task,
    features: FeatureConfig,
    pairs: Iterable[tuple[Any, Question]],
    progress: Progress,
    max_answer_length: int | None = None,
) -> str:
    """Writes a split's records and questions to a folder that was prepared for it.

    Args:
        directory: the folder.
        name: the split's; what cannot be learned is left out of "train".
        task: of the data set.
        features: how they are made.
        pairs: the questions, with what the task's reader yields.
        progress: shows it.
        max_answer_length: tokens beyond which an answer cannot be read; None for no end.

    Returns:
        What became of the questions.

    Raises:
        ValueError: if there is nothing to train on, or to choose the best weights by.
    """
    builder = FeatureBuilder(Wordpiece(directory / "vocab.txt"), features)
    outcomes = convert_all(task, builder, pairs, is_training=name == "train")
    summary, num_long = Summary(), 0
    with split_writer(str(directory), name) as write:
        for outcome in progress(outcomes, f"{directory.name} {name}"):
            summary.add(outcome)
            num_long += _num_labelled(outcome) > (max_answer_length or _num_labelled(outcome))
            write(outcome)
    if name in SPLITS and not summary.num_kept:
        raise ValueError(f"expected examples in the split '{name}', got none: {summary}")
    report = f"{name}: {summary}\n  whole within {features.max_seq_length} tokens: "
    report += f"{summary.num_whole} of {summary.num_sized}"
    return f"{report}\n  answers too long to be read: {num_long}" if num_long else report


def _num_labelled(outcome: Outcome) -> int:
    return 0 if outcome.features is None else int(outcome.features["label_ids"].sum())
