"""The data sets that records are made of: their splits, readers and supervision.

A reader takes the data set's folder and a split and yields each table and question. The table is
None for a sentence without a table, and a LinkedTable if cells link to passages. For pre-training
the same data sets, and your own tables (docs/training.md), are tables with texts about them.
"""

import bisect
import dataclasses
import functools
import hashlib
import itertools
import os
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from mate_tf.dataclass_json import require
from mate_tf.datasets.hybridqa import expand_cells, read_hybridqa
from mate_tf.datasets.interactions import read_interactions, read_tables
from mate_tf.datasets.json_lines import (
    naming,
    read_json_lines,
    read_linked_json_lines,
    read_named_lines,
    table_reader,
)
from mate_tf.datasets.supervision import check_supervision, supervise, supervise_linked
from mate_tf.datasets.tabfact import read_tabfact
from mate_tf.datasets.wikisql import read_wikisql
from mate_tf.datasets.wtq import read_sqa, read_wtq
from mate_tf.reading.files import read_file
from mate_tf.reading.text_files import read_lines
from mate_tf.tables.linked_table import plain_table
from mate_tf.tables.table import Question, Table

_SHARD = re.compile(r"-\d{5}-of-\d{5}$")
_PART = re.compile(r"([^\s:=,/\\]+)=(\d+)", re.ASCII)


@dataclasses.dataclass(frozen=True)
class Division:
    """A split and the parts that take its place.

    A table's part follows from the hash of its name, so that all questions about it are in one.

    Attributes:
        split: the split.
        parts: names, each with its percentage of the tables; one may be that of the split.
        moved: tables that are in another part than the hash says, each with its part.
        by_questions: whether questions are divided instead; `moved` then has each of them.
    """

    split: str
    parts: tuple[tuple[str, int], ...]
    moved: tuple[tuple[str, str], ...] = ()
    by_questions: bool = False

    def __post_init__(self) -> None:
        percentages, names = [percentage for _, percentage in self.parts], self.names
        where = f"(division of the split {self.split!r})"
        require(
            bool(percentages) and min(percentages) >= 1 and sum(percentages) == 100,
            f"expected percentages of at least 1 that add up to 100, got {percentages} {where}",
        )
        message = f"expected parts of different names, got {list(names)} {where}"
        require(len(set(names)) == len(names), message)

    @classmethod
    def from_text(cls, text: str) -> "Division":
        """Reads a division as on the command line, "dev:train=72,calibration=8,dev=20"."""
        split, colon, parts = text.partition(":")
        matches = [_PART.fullmatch(part.strip()) for part in parts.split(",")]
        is_division = bool(split and colon) and all(matches)
        expected = "expected SPLIT:PART=PERCENT,PART=PERCENT,... for a division"
        require(is_division, f"{expected}, got {text!r}")
        return cls(split, tuple((match[1], int(match[2])) for match in matches if match))

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the parts."""
        return tuple(name for name, _ in self.parts)

    def divided(self, splits: Sequence[str]) -> list[str]:
        """The names of splits with the parts in place of the divided one, or a ValueError."""
        message = f"expected one of the splits {list(splits)} to divide, got {self.split!r}"
        require(self.split in splits, message)
        others = [name for name in splits if name != self.split]
        if twice := sorted(set(others) & set(self.names)):
            raise ValueError(
                f"expected parts with other names than the splits {others}, got {twice} "
                f"(division of the split {self.split!r})"
            )
        at = splits.index(self.split)
        return [*splits[:at], *self.names, *splits[at + 1 :]]

    def filled(self, table_ids: Iterable[str]) -> "Division":
        """The division with at least one table in each part; ValueError if there are too few.

        An empty part gets the table whose hash is nearest to the part's range, from a part that has
        more than one. Names, which may be repeated, are read only until no part is empty.
        """
        parts: dict[str, str] = {}
        empty = dict.fromkeys(self.names)
        for table_id in table_ids:
            parts[table_id] = self.part_of(table_id)
            empty.pop(parts[table_id], None)
            if not empty:
                return self
        if len(parts) < len(self.parts):
            raise ValueError(
                f"expected at least {len(self.parts)} tables to divide into "
                f"{', '.join(self.names)}, got {len(parts)} in the split {self.split!r}; add "
                "tables, or do not divide the split"
            )
        moved = dict(self.moved)
        for (name, percentage), end in zip(self.parts, self._ends, strict=True):
            if name not in empty:
                continue
            counts = Counter(parts.values())
            _, chosen = min(
                (max(end - percentage - _position(id_), _position(id_) - end + 1), id_)
                for id_, part in parts.items()
                if counts[part] > 1
            )
            parts[chosen] = moved[chosen] = name
        return dataclasses.replace(self, moved=tuple(sorted(moved.items())))

    def divide_questions(self, question_ids: Iterable[str]) -> "Division":
        """The division of these questions, in the order of their hashes, whatever their tables."""
        ids = sorted(question_ids, key=lambda id_: (_position(id_), id_))
        numbers = [round(len(ids) * end / 100) for end in self._ends]
        names = (self.names[bisect.bisect(numbers, place)] for place in range(len(ids)))
        return dataclasses.replace(
            self, moved=tuple(zip(ids, names, strict=True)), by_questions=True
        )

    @functools.cached_property
    def _moved(self) -> dict[str, str]:
        return dict(self.moved)

    @functools.cached_property
    def _ends(self) -> list[int]:
        return list(itertools.accumulate(percentage for _, percentage in self.parts))

    def part_of(self, id_: str) -> str:
        """The name of the part that a table, or a question, is in."""
        if id_ in self._moved:
            return self._moved[id_]
        return self.names[bisect.bisect(self._ends, _position(id_))]

    def __str__(self) -> str:
        parts = ",".join(f"{name}={percentage}" for name, percentage in self.parts)
        return f"{self.split}:{parts}"


def _position(table_id: str) -> int:
    """The hash of a table's name, a number from 0 to 99."""
    digest = hashlib.sha256(table_id.encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:8]) % 100


def read_sst2(directory: str | Path, split: str) -> Iterator[tuple[None, Question]]:
    """Yields each sentence of SST-2 (Socher et al., 2013) as a question, without a table.

    The classes are negative (0) and positive (1). A line of {split}.tsv, "train" or "dev", is a
    sentence, a tab and its label; ValueError, with file and line, for another.
    """
    path = Path(directory) / f"{split}.tsv"
    for number, line in read_lines(path):
        sentence, tab, label = line.rpartition("\t")
        # The release in GLUE begins with the names of the columns.
        if number == 1 and (sentence, label) == ("sentence", "label"):
            continue
        is_labelled = tab and sentence.strip() and label.strip() in ("0", "1")
        where = f"(file '{path}', line {number})"
        require(bool(is_labelled), f"expected a sentence, a tab and 0 or 1, got {line!r} {where}")
        yield None, Question(sentence, f"{split}-{number}", class_index=int(label))


Pairs = Iterator[tuple[Any, Question]]


class Task(NamedTuple):
    """A data set.

    Attributes:
        read: its reader.
        splits: its possible splits; () means all .jsonl files in the folder.
        supervise: as supervision.supervise; None if no cells are needed, or they are given.
        expand: as hybridqa.expand_cells; None if the reader yields the table to convert.
        has_tables: whether its questions are about tables.
        has_original: whether the reader takes `original`, to read as the authors' release does.
        in_sequences: whether its questions follow each other, and are scored so.
    """

    read: Callable[..., Pairs]
    splits: tuple[str, ...] = ()
    supervise: Callable[..., Question] | None = None
    expand: Callable[..., Any] | None = None
    has_tables: bool = True
    has_original: bool = True
    in_sequences: bool = False

    @property
    def is_linked(self) -> bool:
        """Whether cells link to passages."""
        return self.expand is not None


def folders(directory: str) -> list[Path]:
    """The folder, or those between commas, whose JSON Lines are read one after the other."""
    is_one = os.path.isdir(directory)
    return [Path(folder) for folder in ([directory] if is_one else directory.split(","))]


def _read_json_lines(directory: str, split: str) -> Pairs:
    files = [folder / f"{split}.jsonl" for folder in folders(directory)]
    shards = [shard for folder in folders(directory) for shard in _shards(folder, split)]
    there = [*filter(Path.exists, files), *shards]
    return itertools.chain.from_iterable(map(read_json_lines, there or files[:1]))


def _shards(folder: Path, split: str) -> list[Path]:
    """The shards of a split in JSON Lines, in order; FileNotFoundError if one is missing."""
    files = sorted(folder.glob(f"{split}-?????-of-?????.jsonl"))
    expected = int(files[0].stem[-5:]) if files else 0
    if len(files) != expected:
        raise FileNotFoundError(
            f"expected {expected} shards of the split {split!r} in {folder}, got {len(files)}"
        )
    return files


def _supervise_stated(table, question: Question, strict: bool, original: bool) -> Question:
    """Supervises your own questions, except those to classify."""
    is_classified = question.class_index is not None and not question.answers
    return question if is_classified else supervise(table, question, strict, original)


_SPLITS = ("train", "dev", "test")
TASKS = {
    "WTQ": Task(read_wtq, _SPLITS, supervise),
    "SQA": Task(read_sqa, _SPLITS, check_supervision, in_sequences=True),
    "WIKISQL": Task(functools.partial(read_wikisql, supervised=False), _SPLITS, supervise),
    "WIKISQL_SUPERVISED": Task(read_wikisql, _SPLITS, check_supervision),
    "TABFACT": Task(read_tabfact, (*_SPLITS, "simple_test", "complex_test", "small_test")),
    "HYBRIDQA": Task(read_hybridqa, _SPLITS, supervise_linked, expand_cells),
    "INTERACTIONS": Task(read_interactions, _SPLITS, _supervise_stated),
    "JSONL": Task(_read_json_lines, (), _supervise_stated, has_original=False),
    "LINKED_JSONL": Task(
        lambda directory, split: read_linked_json_lines(Path(directory) / f"{split}.jsonl"),
        (),
        supervise_linked,
        expand_cells,
        has_original=False,
    ),
    "SST2": Task(read_sst2, ("train", "dev"), has_tables=False, has_original=False),
}


def find_task(name: str) -> Task:
    """The data set of a name; ValueError if it is unknown."""
    if name not in TASKS:
        raise ValueError(f"expected a task of {list(TASKS)}, got {name!r}")
    return TASKS[name]


def read_split(
    task: str, directory: str, split: str, original: bool = False, division: Division | None = None
) -> Pairs:
    """The questions of a split, or of a part of the divided one; errors as the task's reader.

    With `original` they are read as the authors' release reads them.
    """
    options = {"original": original} if TASKS[task].has_original else {}
    if division is None or split not in division.names:
        return TASKS[task].read(directory, split, **options)
    pairs = TASKS[task].read(directory, division.split, **options)

    def id_of(item: Any, question: Question) -> str:
        return question.question_id if division.by_questions else plain_table(item).table_id

    return (pair for pair in pairs if division.part_of(id_of(*pair)) == split)


def splits_there(task: str, directory: str, original: bool = False) -> tuple[list[str], list[str]]:
    """The splits in a folder, and why the others are not read; errors as `read_split`."""
    if not TASKS[task].splits:
        files = [file for folder in folders(directory) for file in folder.glob("*.jsonl")]
        names = (_SHARD.sub("", file.stem) for file in files)
        there = sorted({name for name in names if not name.endswith(".left_out")})
        if not there:
            raise FileNotFoundError(f"expected a .jsonl file in {directory}, found none")
        return there, []
    there, absent = [], []
    for split in TASKS[task].splits:
        try:
            # A reader opens its files when it reads the first question.
            list(itertools.islice(read_split(task, directory, split, original), 1))
        except FileNotFoundError as error:
            absent.append(f"{split}: {error}")
        else:
            there.append(split)
    if not there:
        raise FileNotFoundError(f"expected a split of {task} in {directory}; {absent[0]}")
    return there, absent


TEXTS, TABLES, INTERACTIONS = "TEXTS", "TABLES", "INTERACTIONS"
# Your own, and the data sets of questions; the questions are then the texts of their tables.
LAYOUTS = (TEXTS, TABLES, *(name for name, task in TASKS.items() if task.has_tables))
# Files of a folder that are tables. Files in JSON and HTML often are something else.
_TABLE_FILES = (".csv", ".tsv", ".tab", ".xlsx", ".xlsm", ".parquet")
_KINDS = {
    "id": (str | int, "a text"),
    "table": (str | dict, "an object or the path of a file"),
    "texts": (list, "a list of texts"),
}


class DescribedTable(NamedTuple):
    """A table, by a name of its own in its split, and texts about it, none of them blank."""

    name: str
    table: Table
    texts: tuple[str, ...] = ()

    @property
    def texts_with_titles(self) -> tuple[str, ...]:
        """The document's title and the heading above the table, if it has them, and the texts."""
        titles = (self.table.document_title, self.table.context_heading)
        return (*filter(str.strip, titles), *self.texts)


# A table, or why it cannot be read where the file or the folder that lists it is fine.
Source = DescribedTable | ValueError


def read_corpus(
    layout: str,
    directory: str | Path,
    split: str,
    division: Division | None = None,
    without: Collection[str] = (),
) -> Iterator[DescribedTable]:
    """Yields the tables of a split, without those whose ids are in `without`.

    A division divides a split by its tables. Errors are those of `read_layout`.
    """
    if division is None or split not in division.names:
        division = Division(split, ((split, 100),))
    for described in read_layout(layout, directory, division.split):
        if isinstance(described, ValueError):
            raise described
        table_id = described.table.table_id
        if table_id not in without and division.part_of(table_id) == split:
            yield described


def read_layout(
    layout: str,
    directory: str | Path,
    split: str,
    is_text: Callable[[Any], bool] = lambda question: True,
) -> Iterator[Source]:
    """Yields the tables of a split with their texts, in the files' order.

    The layout is one of LAYOUTS. "TEXTS" means files {split}.jsonl; "TABLES" means a folder of
    tables, whatever the split; "INTERACTIONS" means those of the release, each with its questions
    as texts. In another data set each table has all questions about it as texts, and all are read
    before the first is yielded. `is_text` says which questions are texts. Errors are those of the
    layout's reader; where a table of "TEXTS" or "TABLES" cannot be read, its error is yielded.
    """
    if layout == TEXTS:
        return _read_described_tables(Path(directory) / f"{split}.jsonl")
    if layout == TABLES:
        return _read_table_folder(Path(directory))
    if layout == INTERACTIONS:
        return (
            DescribedTable(
                interaction.id or table.table_id,
                table,
                _not_blank(
                    question.original_text or question.text
                    for question in filter(is_text, interaction.questions)
                ),
            )
            for table, interaction in read_tables(directory, split)
        )
    return _gather_questions(read_split(layout, str(directory), split), is_text)


def corpus_splits(layout: str, directory: str | Path) -> tuple[list[str], list[str]]:
    """The splits in a folder, and why the others are not read; errors as `splits_there`."""
    if layout == TABLES:
        return ["train"], []
    return splits_there("JSONL" if layout == TEXTS else layout, str(directory))


def _read_described_tables(path: Path) -> Iterator[Source]:
    """Reads lines with "table", as in `read_json_lines`, and perhaps "texts", a list, and "id"."""
    read_table = table_reader(path.parent)
    for where, name, record in read_named_lines(path, _KINDS, ("table",), "line"):
        texts = record.get("texts", ())
        if not all(isinstance(text, str) for text in texts):
            raise ValueError(f"expected a list of texts for 'texts', got {texts!r} {where}")
        try:
            with naming(where):
                table = read_table(record["table"])
        except ValueError as error:
            yield error
        else:
            yield DescribedTable(name, table, _not_blank(texts))


def _read_table_folder(directory: Path) -> Iterator[Source]:
    """Reads each table's file in a folder and below."""
    files = sorted(path for path in directory.rglob("*") if path.suffix.lower() in _TABLE_FILES)
    if not files:
        endings = ", ".join(_TABLE_FILES)
        raise FileNotFoundError(f"expected tables ({endings}) in {directory}, found none")
    for path in files:
        name = path.relative_to(directory).as_posix()
        try:
            table = dataclasses.replace(read_file(path), table_id=name)
        except ValueError as error:
            yield error
        else:
            yield DescribedTable(name, table)


def _gather_questions(
    pairs: Iterable[tuple[Any, Question]], is_text: Callable[[Any], bool]
) -> Iterator[DescribedTable]:
    """Yields each table with all questions about it, in the order of their first questions."""
    gathered: dict[str, tuple[Table, list[str]]] = {}
    for item, question in pairs:
        table = plain_table(item)
        texts = gathered.setdefault(table.table_id, (table, []))[1]
        if is_text(question):
            texts.append(question.text)
    for table_id, (table, texts) in gathered.items():
        yield DescribedTable(table_id, table, _not_blank(texts))


def _not_blank(texts: Iterable[str]) -> tuple[str, ...]:
    return tuple(filter(str.strip, texts))
