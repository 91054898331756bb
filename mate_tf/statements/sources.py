"""Tables that statements are made about, and sentences about them where there are some."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

from mate_tf.statements.pairs import ENTAILED
from mate_tf.tables.datasets.json_lines import read_table, table_from_json
from mate_tf.tables.datasets.tabfact import read_tabfact
from mate_tf.tables.datasets.wtq import read_wtq_table
from mate_tf.tables.table import Table
from mate_tf.tables.text_files import read_json_values

_DELIMITED = (".csv", ".tsv", ".tab")
_KEYS = ("table", "texts", "id")


class Source(NamedTuple):
    """A table, or why it could not be read, and true sentences about it."""

    table: Table | ValueError
    sentences: tuple[str, ...] = ()


def read_sources(kind: str, directory: str | Path, splits: Sequence[str]) -> Iterator[Source]:
    """Yields each table of a folder, in the order of their names or of the files.

    Args:
        kind: "CSV" for tables in .csv and .tsv files, in folders below too; "JSONL" for .jsonl
            files of objects with "table" (an object or a file, as in docs/own_data.md) and, where
            there are some, "texts", true sentences about it; "WTQ" for WikiTableQuestions' folder
            `csv`; "TABFACT" for TabFact's statements that are entailed.
        directory: the folder; for WTQ and TABFACT, the release.
        splits: of TABFACT.

    Raises:
        FileNotFoundError: if there is no table.
        ValueError: if a file of JSON Lines, or one of the release that lists tables, is malformed.
            A malformed table is yielded as its error.
    """
    directory = Path(directory)
    if kind == "TABFACT":
        return _read_tabfact(directory, splits)
    if kind == "JSONL":
        paths = sorted(directory.glob("*.jsonl"))
    else:
        folder = directory / "csv" if kind == "WTQ" else directory
        paths = sorted(path for path in folder.rglob("*") if path.suffix.lower() in _DELIMITED)
    if not paths:
        wanted = ".jsonl file" if kind == "JSONL" else "table in a .csv or .tsv file"
        raise FileNotFoundError(f"expected a {wanted} in {directory}, found none")
    if kind == "JSONL":
        return (source for path in paths for source in _read_json_lines(path))
    names = [path.relative_to(directory).as_posix() for path in paths]
    if kind == "WTQ":
        return (_source(partial(read_wtq_table, directory, name)) for name in names)
    return (_source(partial(_read_delimited, directory, name)) for name in names)


def _source(read: Callable[[], Table], sentences: Sequence[str] = ()) -> Source:
    try:
        return Source(read(), tuple(sentences))
    except ValueError as error:
        return Source(error)


def _read_delimited(directory: Path, name: str) -> Table:
    return replace(Table.from_csv(directory / name), table_id=name)


def _read_json_lines(path: Path) -> Iterator[Source]:
    for number, record in read_json_values(path):
        where = f"(file '{path}', line {number})"
        if not isinstance(record, dict) or "table" not in record or not set(record) <= set(_KEYS):
            raise ValueError(f"expected an object with {_KEYS}, got {record!r:.80} {where}")
        table, texts = record["table"], record.get("texts", [])
        if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
            raise ValueError(f"expected a list of texts as 'texts', got {texts!r:.80} {where}")
        name = str(record.get("id", f"{path.stem}-{number}"))
        yield _source(partial(_read_json_table, table, path.parent, name), texts)


def _read_json_table(table: Any, folder: Path, name: str) -> Table:
    if isinstance(table, dict):
        return table_from_json(table, name)
    if isinstance(table, str):
        return replace(read_table(folder / table), table_id=table)
    raise ValueError(f"expected an object or a file's path, got {table!r:.80} (table '{name}')")


def _read_tabfact(directory: Path, splits: Sequence[str]) -> Iterator[Source]:
    for split in splits:
        pairs = read_tabfact(directory, split)
        for _, of_table in groupby(pairs, key=lambda pair: pair[0].table_id):
            statements = list(of_table)
            entailed = [q.text for _, q in statements if q.class_index == ENTAILED]
            yield Source(statements[0][0], tuple(entailed))
