"""The data sets that records can be made of: their splits and who reads them.

A reader takes the data set's folder and a split and yields each table and question; the table is
None for a sentence alone.
"""

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from mate_tf.tables.datasets.json_lines import read_json_lines
from mate_tf.tables.datasets.sst2 import read_sst2
from mate_tf.tables.datasets.wtq import read_wtq
from mate_tf.tables.table import Question, Table

Pairs = Iterator[tuple[Table | None, Question]]


class Task(NamedTuple):
    """A data set.

    Attributes:
        read: its reader.
        splits: those that it may have; () for whatever .jsonl files are in the folder.
        find_answers: whether cells are to be found for the answers; not so in classification.
        has_tables: whether its questions are about tables.
        has_original: whether the reader takes `original`, for the authors' release's own reading.
    """

    read: Callable[..., Pairs]
    splits: tuple[str, ...] = ()
    find_answers: bool = True
    has_tables: bool = True
    has_original: bool = False


def _read_json_lines(directory: str, split: str) -> Pairs:
    return read_json_lines(Path(directory) / f"{split}.jsonl")


def _read_sentences(directory: str, split: str) -> Pairs:
    return ((None, sentence) for sentence in read_sst2(directory, split))


TASKS = {
    "WTQ": Task(read_wtq, ("train", "dev", "test")),
    "JSONL": Task(_read_json_lines),
    "SST2": Task(_read_sentences, ("train", "dev"), find_answers=False, has_tables=False),
}


def read_split(task: str, directory: str, split: str, original: bool = False) -> Pairs:
    """The questions of a split in the files' order; errors as the task's reader has them."""
    options = {"original": original} if TASKS[task].has_original else {}
    return TASKS[task].read(directory, split, **options)


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
