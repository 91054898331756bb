"""Tables with what is written about them: one's own, or those of a data set.

docs/pretraining.md describes the layouts of one's own.
"""

import dataclasses
import functools
from collections.abc import Callable, Collection, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from mate_tf.datasets.json_lines import (
    name_by_content,
    name_by_place,
    naming_line,
    read_table,
    table_from_json,
)
from mate_tf.datasets.tasks import TASKS, Division, read_split, splits_there
from mate_tf.tables.linked_table import LinkedTable
from mate_tf.tables.table import Question, Table
from mate_tf.tables.text_files import SeenIds, read_json_values

TEXTS, TABLES = "TEXTS", "TABLES"
# Beside one's own, the data sets of questions, which are then the texts of their tables.
LAYOUTS = (TEXTS, TABLES, *(name for name, task in TASKS.items() if task.has_tables))
_TABLE_FILES = (".csv", ".tsv", ".tab")
_TABLES_REMEMBERED = 256
_KEYS = ("id", "table", "texts")


class DescribedTable(NamedTuple):
    """A table and what is written about it.

    Attributes:
        name: tells it from the others of its split.
        table: the table.
        texts: sentences or questions about it, none of them blank.
    """

    name: str
    table: Table
    texts: tuple[str, ...] = ()

    @property
    def texts_with_titles(self) -> tuple[str, ...]:
        """Its document's title and the heading above it, where it has them, and the texts."""
        titles = (self.table.document_title, self.table.context_heading)
        return (*filter(str.strip, titles), *self.texts)


# Reads a table, which may fail, of a file that itself is as it should be.
Reader = Callable[[], DescribedTable]


def read_corpus(
    layout: str,
    directory: str | Path,
    split: str,
    division: Division | None = None,
    without: Collection[str] = (),
) -> Iterator[DescribedTable]:
    """Yields the tables of a split with their texts, in the files' order.

    Args:
        layout: one of LAYOUTS. "TEXTS" are files {split}.jsonl, "TABLES" a folder of CSV and TSV
            files, all of the split "train"; of a data set each table has all questions of the
            split about it as texts, and they are read before the first is yielded.
        directory: the folder.
        split: one of its splits, or a part of the one that is divided.
        division: divides a split by its tables.
        without: ids of tables that are left out, such as those of the training split.

    Raises:
        FileNotFoundError, ValueError: as the layout's reader.
    """
    of_parts = division is not None and split in division.names
    source = division.split if division is not None and of_parts else split
    if layout == TEXTS:
        corpus = _read_all(read_described_tables(Path(directory) / f"{source}.jsonl"))
    elif layout == TABLES:
        corpus = _read_all(read_table_folder(directory))
    else:
        corpus = gather_questions(read_split(layout, str(directory), source))
    for described in corpus:
        table_id = described.table.table_id
        if table_id in without:
            continue
        if division is None or not of_parts or division.part_of(table_id) == split:
            yield described


def corpus_splits(layout: str, directory: str | Path) -> tuple[list[str], list[str]]:
    """The splits that are in a folder, and why others are not read; errors as `splits_there`."""
    if layout == TABLES:
        return ["train"], []
    return splits_there("JSONL" if layout == TEXTS else layout, str(directory))


def read_described_tables(path: str | Path) -> Iterator[Reader]:
    """Yields what reads the tables of a file of JSON Lines.

    A line is an object with "table", an object or the path of a file as in `read_json_lines`, and,
    where they are known, "texts", a list, and "id".

    Raises:
        FileNotFoundError: if the file is missing; of a reader, if a table's file is.
        OSError: of a reader, if a table's file cannot be opened.
        ValueError: if a line is malformed, or two have one id; of a reader, if its table is
            malformed. All errors name file and line.
    """
    path = Path(path)
    remembered = functools.lru_cache(_TABLES_REMEMBERED)(read_table)
    names = SeenIds()
    for number, record in read_json_values(path):
        with naming_line(path, number):
            _check_record(record)
            name = str(record.get("id", f"{path.stem}-{number}"))
            if not names.add(name):
                raise ValueError(f"expected an id of its own for each line, got {name!r} again")
        yield functools.partial(_read_record, path, number, record, name, remembered)


def _read_record(
    path: Path,
    number: int,
    record: dict[str, Any],
    name: str,
    read_file: Callable[[Path, str], Table],
) -> DescribedTable:
    with naming_line(path, number):
        source = record["table"]
        if isinstance(source, dict):
            table = table_from_json(source, name_by_content(source))
        else:
            table = read_file(path.parent / source, name_by_place(source))
        return DescribedTable(name, table, _not_blank(record.get("texts", ())))


def read_table_folder(directory: str | Path) -> Iterator[Reader]:
    """Yields what reads the CSV and TSV files in a folder and those below, by their paths.

    Raises:
        FileNotFoundError: if there is none.
        ValueError: of a reader, as `Table.from_csv`.
    """
    directory = Path(directory)
    files = sorted(path for path in directory.rglob("*") if path.suffix.lower() in _TABLE_FILES)
    if not files:
        raise FileNotFoundError(f"expected tables (.csv, .tsv) in {directory}, found none")
    for path in files:
        yield functools.partial(_read_file, path, path.relative_to(directory).as_posix())


def _read_file(path: Path, name: str) -> DescribedTable:
    return DescribedTable(name, dataclasses.replace(Table.from_csv(path), table_id=name))


def gather_questions(pairs: Iterable[tuple[Any, Question]]) -> Iterator[DescribedTable]:
    """Yields each table with all the questions about it, in the order of the first ones."""
    texts: dict[str, list[str]] = {}
    tables: dict[str, Table] = {}
    for item, question in pairs:
        table = item.table if isinstance(item, LinkedTable) else item
        tables.setdefault(table.table_id, table)
        texts.setdefault(table.table_id, []).append(question.text)
    for table_id, table in tables.items():
        yield DescribedTable(table_id, table, _not_blank(texts[table_id]))


def _read_all(readers: Iterable[Reader]) -> Iterator[DescribedTable]:
    return (read() for read in readers)


def _not_blank(texts: Iterable[str]) -> tuple[str, ...]:
    return tuple(filter(str.strip, texts))


def _check_record(record: Any) -> None:
    if not isinstance(record, dict):
        raise ValueError(f"expected an object, got {type(record).__name__}")
    if "table" not in record:
        raise ValueError("expected the key 'table', which is missing")
    if unknown := [key for key in record if key not in _KEYS]:
        raise ValueError(f"expected keys among {list(_KEYS)}, got {unknown}")
    texts = record.get("texts", [])
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise ValueError(f"expected a list of texts for 'texts', got {texts!r}")
    for key, kinds in (("table", str | dict), ("id", str | int)):
        if key in record and not isinstance(record[key], kinds):
            raise ValueError(f"expected a text or an object for '{key}', got {record[key]!r}")
