"""The questions of a PointR, and the records that both stages learn from."""

import dataclasses
import os
import pathlib
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeVar

from mate_tf.datasets.supervision import SupervisionError, supervise_linked
from mate_tf.datasets.tasks import Task, read_split
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

Item = TypeVar("Item")
# Wraps what takes long, with a name, as tqdm does.
Progress = Callable[[Iterable[Item], str], Iterable[Item]]


@dataclasses.dataclass(frozen=True)
class Source:
    """The questions of a data set.

    Attributes:
        task: the name of its reader, of tables with passages.
        directory: its folder.
        splits: its names for the splits "train" and "dev", and for others to answer.
    """

    task: str
    directory: str
    splits: Mapping[str, str]

    def read(self, name: str) -> Iterator[tuple[LinkedTable, Question]]:
        """The questions of a split, by our name for it; errors as the task's reader."""
        return read_split(self.task, self.directory, self.splits[name])

    def state(self) -> dict[str, int]:
        """Numbers that change if a file of the folder does; no file is read."""
        files = [entry for entry in pathlib.Path(self.directory).rglob("*") if entry.is_file()]
        states = [file.stat() for file in files]
        return {
            "files": len(files),
            "bytes": sum(state.st_size for state in states),
            "changed": max((state.st_mtime_ns for state in states), default=0),
        }


def reading_cells(all_pointed: Iterable[Pointed]) -> Iterator[tuple[Table, Question]]:
    """Yields the cell that the reader trains on for each question, with what it answers.

    Of several cells that hold the answer it is the one that the pointer ranks best: the pointer
    knows the reasons of the question, and another cell may hold the words by chance. If none of the
    ranked cells holds it, it is the first in the table that does. If no cell does, it is the best
    cell, and the conversion counts the answer as cut off. Answers that the cell lacks are left out.

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
    """The question with those of its answers that the cell holds; with all if it holds none."""
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
    """Writes a split's records and questions to a prepared folder.

    Args:
        directory: the folder.
        name: the split's; questions that teach nothing are left out of "train".
        task: of the data set.
        features: how the features are made.
        pairs: the questions, each with what the task's reader yields.
        progress: wraps them.
        max_answer_length: the most tokens of an answer that can be read; None for no limit.

    Returns:
        What became of the questions.

    Raises:
        ValueError: if "train" or "dev" is empty.
    """
    builder = FeatureBuilder(Wordpiece(directory / "vocab.txt"), features)
    outcomes = convert_all(task, builder, pairs, is_training=name == "train")
    summary, num_long = Summary(), 0
    with split_writer(str(directory), name) as write:
        for outcome in progress(outcomes, f"{directory.name} {name}"):
            summary.add(outcome)
            num_long += max_answer_length is not None and _num_labels(outcome) > max_answer_length
            write(outcome)
    if name in SPLITS and not summary.num_kept:
        raise ValueError(f"expected examples in the split '{name}', got none: {summary}")
    report = f"{name}: {summary}\n  whole within {features.max_seq_length} tokens: "
    report += f"{summary.num_whole} of {summary.num_sized}"
    return f"{report}\n  answers too long to be read: {num_long}" if num_long else report


def _num_labels(outcome: Outcome) -> int:
    return 0 if outcome.features is None else int(outcome.features["label_ids"].sum())
