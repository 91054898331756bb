"""The questions of a file, and a model's answers to them."""

import itertools
import pathlib
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from mate_tf.answers.sequences import answer_sequences
from mate_tf.datasets.tasks import TASKS
from mate_tf.records.conversion_file import task_of
from mate_tf.records.splits import QUESTIONS, read_questions
from mate_tf.tables.table import Question, Table


class Asked(NamedTuple):
    """The questions of a file.

    Attributes:
        task: the name of the data set's reader.
        split: the file's name without its ending.
        pairs: tables and questions.
    """

    task: str
    split: str
    pairs: list[tuple[Table, Question]]


def read_asked(
    path: str | pathlib.Path, task: str | None = None, limit: int | None = None
) -> Asked:
    """Reads the questions of a JSON Lines file, or of all shards of one.

    Args:
        path: the file.
        task: a name in TASKS; by default what conversion.json beside the file says, or else JSONL.
        limit: only so many, from the file's start.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if it has another ending or no questions, or the task has no tables.
    """
    file = pathlib.Path(path)
    if file.suffix != QUESTIONS:
        raise ValueError(f"expected a {QUESTIONS} file of questions, got {file}")
    task = task or task_of(file.parent)
    if task not in TASKS or not TASKS[task].has_tables:
        known = ", ".join(name for name, reader in TASKS.items() if reader.has_tables)
        raise ValueError(f"expected a task about tables, one of {known}, got {task} ({file})")
    pairs = list(itertools.islice(read_questions(file.parent, file.stem), limit))
    if not pairs:
        raise ValueError(f"expected questions in {file}, found none")
    return Asked(task, file.stem, pairs)


def answer_asked(
    predictor: Any,
    asked: Asked,
    history: str | None = None,
    pairs: Iterable[tuple[Table, Question]] | None = None,
) -> Iterator[tuple[Table, Question, Any]]:
    """Yields each table and question with its answer, or with the error why there is none.

    Args:
        predictor: a `Predictor`.
        asked: the questions.
        history: "predicted" puts the model's own answers before a question of a sequence, "gold"
            those that the data has. By default it is predicted for SQA and gold for other tasks,
            most of whose questions have none.
        pairs: asked in place of those of `asked`.
    """
    pairs = asked.pairs if pairs is None else pairs
    history = history or ("predicted" if asked.task == "SQA" else "gold")
    if history == "predicted":
        yield from answer_sequences(predictor.answer_all, pairs)
    else:
        yield from predictor.answer_all(pairs)
