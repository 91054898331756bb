"""From tables to statements or questions about one part of them, and what is left out."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Protocol

from mate_tf.statements.counterfactual import counterfactual_pairs
from mate_tf.statements.pairs import StatementsError
from mate_tf.statements.sources import Source
from mate_tf.statements.synthetic import SyntheticConfig, synthetic_pairs
from mate_tf.tables.datasets.described_tables import DescribedTable
from mate_tf.tables.division import Division
from mate_tf.tables.table import Question, Table
from mate_tf.tables.wordpiece import Wordpiece

KINDS = ("synthetic", "counterfactual")


class Made(Protocol):
    """What is made at once, such as a true statement and a false one."""

    @property
    def operation(self) -> str:
        """What it is counted under."""

    @property
    def examples(self) -> tuple[tuple[Table, Question], ...]:
        """The statements or questions, each with its table."""


Make = Callable[[DescribedTable], Iterator[Made | StatementsError]]


class CreationSummary:
    """How many examples of each operation were made, and what was left out and why, as text."""

    def __init__(self, what: str = "statements") -> None:
        self.tables = 0
        self.tables_used = 0
        self.examples = Counter[str]()
        self.left_out = Counter[str]()
        self._what = what
        self._first: dict[str, str] = {}

    def add_left_out(self, what: str, error: ValueError) -> None:
        """Counts a table or a sentence of which nothing was made."""
        reason = error.reason if isinstance(error, StatementsError) else "malformed"
        self.left_out[f"{what}: {reason}"] += 1
        self._first.setdefault(f"{what}: {reason}", str(error).split("\n")[0])

    def __str__(self) -> str:
        total = self.examples.total()
        lines = [f"{total} {self._what} about {self.tables_used} of {self.tables} tables"]
        lines += [f"  {operation}: {count}" for operation, count in sorted(self.examples.items())]
        for reason, count in self.left_out.most_common():
            lines += [f"  left out: {count} {reason}", f"    {self._first[reason]}"]
        return "\n".join(lines)


def maker(kind: str, wordpiece: Wordpiece, config: SyntheticConfig) -> Make:
    """What makes one of KINDS of pairs of a table; its errors end or are among what it yields."""
    if kind == "synthetic":
        return lambda source: synthetic_pairs(source.table, wordpiece, config)
    if kind == "counterfactual":
        return lambda source: counterfactual_pairs(source.table, source.texts, config.seed)
    raise ValueError(f"expected a kind of {KINDS}, got {kind!r}")


def create_part(
    sources: Iterable[Source],
    part: str,
    division: Division,
    makers: Iterable[Make],
    summary: CreationSummary,
) -> Iterator[tuple[Table, Question]]:
    """Yields what is made of the tables of a part, such as statements, true and false in turn.

    A table that is another's copy, by its header and its cells, is left out, so that no part has
    what is in another one.

    Args:
        sources: all tables.
        part: the name of the part.
        division: into which part a table belongs, by its identifier.
        makers: of statements or questions.
        summary: is added to.
    """
    makers = list(makers)
    seen: set[int] = set()
    for source in sources:
        if isinstance(source, ValueError):
            if part == division.names[0]:  # it has no name to be divided by
                summary.tables += 1
                summary.add_left_out("table", source)
            continue
        table = source.table
        content = hash((table.header, table.rows))
        is_copy = content in seen
        seen.add(content)
        if division.part_of(table.table_id) != part:
            continue
        summary.tables += 1
        if is_copy:
            reason = f"expected each table once (table '{table.table_id}')"
            summary.add_left_out("table", StatementsError("a copy of another", reason))
            continue
        is_used = False
        for make in makers:
            for made in _made(make, source, summary):
                is_used = True
                summary.examples[made.operation] += len(made.examples)
                yield from made.examples
        summary.tables_used += is_used


def _made(make: Make, source: DescribedTable, summary: CreationSummary) -> Iterator[Made]:
    try:
        for made in make(source):
            if isinstance(made, StatementsError):
                summary.add_left_out("sentence", made)
            else:
                yield made
    except StatementsError as error:
        summary.add_left_out("table", error)
