"""Tables that statements are made about, with sentences about them where there are some."""

from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path

from mate_tf.statements.pairs import ENTAILED
from mate_tf.tables.datasets.described_tables import (
    TABLES,
    TEXTS,
    DescribedTable,
    Reader,
    read_corpus,
    read_described_tables,
    read_table_folder,
)
from mate_tf.tables.datasets.tabfact import read_tabfact

LAYOUTS = (TABLES, TEXTS, "WTQ", "TABFACT")

Source = DescribedTable | ValueError  # why a table could not be read


def read_sources(layout: str, directory: str | Path, splits: Sequence[str]) -> Iterator[Source]:
    """Yields each table of some splits, in the order of the files.

    Args:
        layout: one of LAYOUTS. "TABLES" and "TEXTS" are as `read_corpus` has them, with texts that
            are true of their tables; "WTQ" has no such texts; TabFact's are the entailed ones.
        directory: the folder.
        splits: those that are read; "TABLES" has none.

    Raises:
        FileNotFoundError: if there is no table.
        ValueError: if a file that lists tables is malformed, or a table of WTQ or TABFACT. Another
            malformed table is yielded as its error.
    """
    directory = Path(directory)
    if layout == TABLES:
        yield from _read_each(read_table_folder(directory))
        return
    for split in splits:
        if layout == TEXTS:
            yield from _read_each(read_described_tables(directory / f"{split}.jsonl"))
        elif layout == "WTQ":
            for described in read_corpus(layout, directory, split):
                yield described._replace(texts=())  # they are questions
        else:
            yield from _read_tabfact(directory, split)


def _read_each(readers: Iterator[Reader]) -> Iterator[Source]:
    for read in readers:
        try:
            yield read()
        except ValueError as error:
            yield error


def _read_tabfact(directory: Path, split: str) -> Iterator[Source]:
    pairs = read_tabfact(directory, split)
    for name, of_table in groupby(pairs, key=lambda pair: pair[0].table_id):
        statements = list(of_table)
        entailed = [q.text for _, q in statements if q.class_index == ENTAILED]
        yield DescribedTable(name, statements[0][0], tuple(entailed))
