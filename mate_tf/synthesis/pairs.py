"""Tables that statements are made about, with sentences about them where there are some.

A true statement about a table and a false one that is as like it as can be.
"""

from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from mate_tf.datasets.described_tables import (
    TABLES,
    TEXTS,
    DescribedTable,
    Reader,
    read_corpus,
    read_described_tables,
    read_table_folder,
)
from mate_tf.datasets.tabfact import read_tabfact
from mate_tf.tables.table import Question, Table

REFUTED, ENTAILED = 0, 1  # the classes, as TabFact's


class Pair(NamedTuple):
    """A true and a false statement.

    Attributes:
        operation: what they are counted under.
        true, false: what each is about, and the statement as a question with a class.
    """

    operation: str
    true: tuple[Table, Question]
    false: tuple[Table, Question]

    @property
    def examples(self) -> tuple[tuple[Table, Question], ...]:
        return self.true, self.false


class StatementsError(ValueError):
    """Nothing can be made of a table: no statement, or no question.

    Attributes:
        reason: a few words, the same for all tables that it is true of.
    """

    def __init__(self, reason: str, message: str):
        super().__init__(message)
        self.reason = reason


def make_pair(
    operation: str, true: tuple[Table, str], false: tuple[Table, str], name: str, way: str = ""
) -> Pair:
    """A pair of tables and texts, whose identifiers are of what `kind_of_id` gives.

    Args:
        operation: what they are counted under.
        true, false: what each statement is about, and its text.
        name: what both identifiers begin with.
        way: in which the two differ; "" where all of the operation differ in the same.
    """
    kind = f"{operation}/{way}" if way else operation
    examples = [
        (table, Question(text, f"{name}:{kind}:{label}", class_index=label))
        for (table, text), label in ((true, ENTAILED), (false, REFUTED))
    ]
    return Pair(operation, *examples)


def kind_of_id(question_id: str) -> tuple[str, str]:
    """The operation of a statement and the way of its pair, by its identifier.

    Both are "" where the identifier is not a pair's; a counterfactual pair has no way.
    """
    parts = question_id.rsplit(":", 2)
    operation, _, way = parts[1].partition("/") if len(parts) == 3 else ("", "", "")
    return operation, way


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
