"""Tables with texts about them: your own (docs/training.md), or those of a data set."""

import dataclasses
from collections.abc import Callable, Collection, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from mate_tf.datasets.interactions import read_tables
from mate_tf.datasets.json_lines import naming, read_named_lines, table_reader
from mate_tf.datasets.tasks import TASKS, Division, read_split, splits_there
from mate_tf.reading.files import read_file
from mate_tf.tables.linked_table import plain_table
from mate_tf.tables.table import Question, Table

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
        return _read_described_interactions(directory, split, is_text)
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


def _read_described_interactions(
    directory: str | Path, split: str, is_text: Callable[[Any], bool]
) -> Iterator[DescribedTable]:
    for table, interaction in read_tables(directory, split):
        questions = filter(is_text, interaction.questions)
        texts = _not_blank(question.original_text or question.text for question in questions)
        yield DescribedTable(interaction.id or table.table_id, table, texts)


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
