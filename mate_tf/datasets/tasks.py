"""The data sets that records can be made of: their splits, who reads them, who finds the answers.

A reader takes the data set's folder and a split and yields each table and question; the table is
None for a sentence alone, and a LinkedTable where cells link to passages.
"""

import functools
import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from mate_tf.datasets.division import Division
from mate_tf.datasets.hybridqa import read_hybridqa
from mate_tf.datasets.json_lines import read_json_lines, read_linked_json_lines
from mate_tf.datasets.passages import expand_cells
from mate_tf.datasets.sqa import read_sqa
from mate_tf.datasets.sst2 import read_sst2
from mate_tf.datasets.supervision import check_supervision, supervise, supervise_linked
from mate_tf.datasets.tabfact import read_tabfact
from mate_tf.datasets.wikisql import read_wikisql
from mate_tf.datasets.wtq import read_wtq
from mate_tf.tables.linked_table import plain_table
from mate_tf.tables.table import Question

Pairs = Iterator[tuple[Any, Question]]


class Task(NamedTuple):
    """A data set.

    Attributes:
        read: its reader.
        splits: those that it may have; () for whatever .jsonl files are in the folder.
        supervise: from table, question, strict and original to the question with the cells of its
            answer (supervision.supervise); None where they are not asked for, or given.
        expand: from what the reader yields, the question and original to the table that is
            converted; None where the reader yields it.
        has_tables: whether its questions are about tables.
        has_original: whether the reader takes `original`, for the authors' release's own reading.
    """

    read: Callable[..., Pairs]
    splits: tuple[str, ...] = ()
    supervise: Callable[..., Question] | None = None
    expand: Callable[..., Any] | None = None
    has_tables: bool = True
    has_original: bool = True


def _read_json_lines(directory: str, split: str) -> Pairs:
    return read_json_lines(Path(directory) / f"{split}.jsonl")


def _read_linked_json_lines(directory: str, split: str) -> Pairs:
    return read_linked_json_lines(Path(directory) / f"{split}.jsonl")


def _read_sentences(directory: str, split: str) -> Pairs:
    return ((None, sentence) for sentence in read_sst2(directory, split))


def _supervise_stated(table, question: Question, strict: bool, original: bool) -> Question:
    """Of one's own questions all but those that are to be classified."""
    is_classified = question.class_index is not None and not question.answers
    return question if is_classified else supervise(table, question, strict, original)


def _supervise_linked(table, question: Question, strict: bool, original: bool) -> Question:
    return supervise_linked(table, question, original)  # which is never strict


TASKS = {
    "WTQ": Task(read_wtq, ("train", "dev", "test"), supervise),
    "SQA": Task(read_sqa, ("train", "dev", "test"), check_supervision),
    "WIKISQL": Task(
        functools.partial(read_wikisql, supervised=False), ("train", "dev", "test"), supervise
    ),
    "WIKISQL_SUPERVISED": Task(read_wikisql, ("train", "dev", "test"), check_supervision),
    "TABFACT": Task(
        read_tabfact, ("train", "dev", "test", "simple_test", "complex_test", "small_test")
    ),
    "HYBRIDQA": Task(
        read_hybridqa, ("train", "dev", "test"), _supervise_linked, expand=expand_cells
    ),
    "JSONL": Task(_read_json_lines, supervise=_supervise_stated, has_original=False),
    "LINKED_JSONL": Task(
        _read_linked_json_lines,
        supervise=_supervise_linked,
        expand=expand_cells,
        has_original=False,
    ),
    "SST2": Task(_read_sentences, ("train", "dev"), has_tables=False, has_original=False),
}


def read_split(
    task: str,
    directory: str,
    split: str,
    original: bool = False,
    division: Division | None = None,
) -> Pairs:
    """The questions of a split in the files' order; errors as the task's reader has them.

    Args:
        task: a name in TASKS.
        directory: its folder.
        split: one of its splits, or a part of the one that is divided.
        original: whether to read as the authors' release does.
        division: divides a split by the tables of its questions.
    """
    options = {"original": original} if TASKS[task].has_original else {}
    if division is None or split not in division.names:
        return TASKS[task].read(directory, split, **options)
    pairs = TASKS[task].read(directory, division.split, **options)
    return (pair for pair in pairs if division.part_of(plain_table(pair[0]).table_id) == split)


def splits_there(task: str, directory: str, original: bool = False) -> tuple[list[str], list[str]]:
    """The splits of a data set whose files are in a folder, and why the others are not read.

    Raises:
        FileNotFoundError: if none is.
        ValueError: if the beginning of one cannot be read.
    """
    if not TASKS[task].splits:
        there = sorted(path.stem for path in Path(directory).glob("*.jsonl"))
        if not there:
            raise FileNotFoundError(f"no .jsonl file in {directory}")
        return there, []
    there, absent = [], []
    for split in TASKS[task].splits:
        try:
            # A reader opens its files when the first question is asked for.
            list(itertools.islice(read_split(task, directory, split, original), 1))
        except FileNotFoundError as error:
            absent.append(f"{split}: {error}")
        else:
            there.append(split)
    if not there:
        raise FileNotFoundError(f"no split of {task} is there: {absent[0]}")
    return there, absent
