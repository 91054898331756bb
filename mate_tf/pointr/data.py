"""Records of both stages, and what became of the questions that they are made of.

What the reader learns from: of each question one cell, and the answer in it.
"""

import dataclasses
import os
import pathlib
import shutil
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from mate_tf.datasets.supervision import SupervisionError, supervise_linked
from mate_tf.datasets.tasks import Task
from mate_tf.features.builder import FeatureBuilder
from mate_tf.features.config import FeatureConfig
from mate_tf.features.wordpiece import Wordpiece
from mate_tf.pointr.answering import Pointed
from mate_tf.pointr.inputs import cell_table
from mate_tf.records.conversion import Outcome, Summary, convert_all
from mate_tf.records.conversion_file import conversion_of
from mate_tf.records.records import complete_file
from mate_tf.records.splits import prepare_folder, split_writer
from mate_tf.tables.linked_table import LinkedTable
from mate_tf.tables.table import Question, Table
from mate_tf.training.examples import SPLITS


def reading_cells(all_pointed: Iterable[Pointed]) -> Iterator[tuple[Table, Question]]:
    """Yields the cell that each question is read in to train or to choose the best weights.

    Where several cells hold the answer it is the one that the pointer ranks best: it knows the
    question's reasons, where another cell may hold the words by chance. Where none of the ranked
    cells does, it is the first in the table; where none at all does, it is the best cell, for the
    conversion to count the answer as cut off. Of several answers those are kept that it holds.

    Args:
        all_pointed: questions with the pointer's ranking.
    """
    for pointed in all_pointed:
        known, question, _ = pointed
        try:
            gold = supervise_linked(known, question).answer_coordinates
        except SupervisionError:
            gold = ()
        ranked = [cell for cell in pointed.cells if cell in gold]
        best = [*ranked, *gold, *pointed.cells, (0, 0)][0]
        yield cell_table(known, *best), _answers_in(known, best, question)


def _answers_in(known: LinkedTable, cell: tuple[int, int], question: Question) -> Question:
    """The question with those of its answers that the cell holds; with all where it holds none."""
    row, column = cell
    table = Table(("",), ((known.table.rows[row][column],),), known.table.table_id)
    alone = LinkedTable(table, ((known.passages[row][column],),))
    held = []
    for answer in question.answers:
        try:
            supervise_linked(alone, Question(question.text, answers=(answer,)))
        except SupervisionError:
            continue
        held.append(answer)
    return dataclasses.replace(
        question, answers=tuple(held) or question.answers, answer_coordinates=()
    )


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
