"""What the binaries share that read a file of questions: flags and reading."""

import itertools
import pathlib
from typing import Any, NamedTuple

from absl import flags

DATA = flags.DEFINE_string(
    "data",
    None,
    "JSON Lines file of questions with tables, of experiments/create_data.py or your own",
)
TASK = flags.DEFINE_string(
    "task",
    None,
    "of the questions, such as SQA; by default what their folder's conversion.json says",
)
LIMIT = flags.DEFINE_integer(
    "limit", None, "only so many questions, from the file's start", lower_bound=1
)


class Asked(NamedTuple):
    """The questions of a file.

    Attributes:
        task: the name of the data set's reader.
        split: the file's name without its ending.
        pairs: tables and questions.
    """

    task: str
    split: str
    pairs: list[tuple[Any, Any]]


def read_asked() -> Asked:
    """The questions that --data, --task and --limit name.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if it has another ending or no questions, or the task has no tables.
    """
    from mate_tf.datasets.tasks import TASKS
    from mate_tf.records.conversion_file import task_of
    from mate_tf.records.splits import QUESTIONS, read_questions

    file = pathlib.Path(DATA.value)
    if file.suffix != QUESTIONS:
        raise ValueError(f"expected a {QUESTIONS} file of questions as --data, got {file}")
    task = TASK.value or task_of(file.parent)
    if task not in TASKS or not TASKS[task].has_tables:
        known = ", ".join(name for name, reader in TASKS.items() if reader.has_tables)
        raise ValueError(f"expected a task about tables, one of {known}, got {task} ({file})")
    pairs = list(itertools.islice(read_questions(file.parent, file.stem), LIMIT.value))
    if not pairs:
        raise ValueError(f"expected questions in {file}, found none")
    return Asked(task, file.stem, pairs)
