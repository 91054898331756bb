"""Tables that statements are made about, with sentences about them where there are some."""

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import groupby
from pathlib import Path

from mate_tf.statements.pairs import ENTAILED
from mate_tf.tables.datasets.described_tables import (
    DescribedTable,
    Reader,
    read_described_tables,
    read_table_folder,
)
from mate_tf.tables.datasets.tabfact import read_tabfact
from mate_tf.tables.datasets.wtq import read_wtq_table

Source = DescribedTable | ValueError  # why a table could not be read


def read_sources(kind: str, directory: str | Path, splits: Sequence[str]) -> Iterator[Source]:
    """Yields each table of a folder, in the order of their names or of the files.

    Args:
        kind: "CSV" for tables in .csv and .tsv files, in folders below too; "JSONL" for .jsonl
            files as `read_described_tables` reads them, whose texts are true sentences; "WTQ" for
            WikiTableQuestions' folder `csv`; "TABFACT" for TabFact's statements that are entailed.
        directory: the folder; for WTQ and TABFACT, the release.
        splits: of TABFACT.

    Raises:
        FileNotFoundError: if there is no table.
        ValueError: if a file of JSON Lines, or one of the release that lists tables, is malformed.
            A malformed table is yielded as its error.
    """
    directory = Path(directory)
    if kind == "TABFACT":
        yield from _read_tabfact(directory, splits)
    else:
        for read in _readers(kind, directory):
            try:
                yield read()
            except ValueError as error:
                yield error


def _readers(kind: str, directory: Path) -> Iterator[Reader]:
    if kind == "CSV":
        yield from read_table_folder(directory)
    elif kind == "JSONL":
        if not (paths := sorted(directory.glob("*.jsonl"))):
            raise FileNotFoundError(f"expected a .jsonl file in {directory}, found none")
        for path in paths:
            yield from read_described_tables(path)
    else:
        if not (paths := sorted((directory / "csv").rglob("*.csv"))):
            raise FileNotFoundError(f"expected tables in {directory / 'csv'}, found none")
        for path in paths:
            yield partial(_read_wtq, directory, path.relative_to(directory).as_posix())


def _read_wtq(directory: Path, name: str) -> DescribedTable:
    return DescribedTable(name, read_wtq_table(directory, name))


def _read_tabfact(directory: Path, splits: Sequence[str]) -> Iterator[Source]:
    for split in splits:
        pairs = read_tabfact(directory, split)
        for name, of_table in groupby(pairs, key=lambda pair: pair[0].table_id):
            statements = list(of_table)
            entailed = [q.text for _, q in statements if q.class_index == ENTAILED]
            yield DescribedTable(name, statements[0][0], tuple(entailed))
