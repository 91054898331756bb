"""From tables to the statements of one part of them, and what was made and left out."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator

from mate_tf.statements.counterfactual import counterfactual_pairs
from mate_tf.statements.pairs import Pair, StatementsError
from mate_tf.statements.sources import Source
from mate_tf.statements.synthetic import SyntheticConfig, synthetic_pairs
from mate_tf.tables.datasets.described_tables import DescribedTable
from mate_tf.tables.division import Division
from mate_tf.tables.table import Question, Table
from mate_tf.tables.wordpiece import Wordpiece

KINDS = ("synthetic", "counterfactual")

Make = Callable[[DescribedTable], Iterator[Pair | StatementsError]]


class CreationSummary:
    """How many pairs of each operation were made, and what was left out and why, as text."""

    def __init__(self) -> None:
        self.tables = 0
        self.tables_used = 0
        self.pairs = Counter[str]()
        self.left_out = Counter[str]()
        self._first: dict[str, str] = {}

    def add_left_out(self, what: str, error: ValueError) -> None:
        """Counts a table or a sentence of which nothing was made."""
        reason = error.reason if isinstance(error, StatementsError) else "malformed"
        self.left_out[f"{what}: {reason}"] += 1
        self._first.setdefault(f"{what}: {reason}", str(error).split("\n")[0])

    def __str__(self) -> str:
        total = 2 * sum(self.pairs.values())
        lines = [f"{total} statements about {self.tables_used} of {self.tables} tables"]
        lines += [
            f"  {operation}: {count} true, {count} false"
            for operation, count in sorted(self.pairs.items())
        ]
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
    """Yields the statements about the tables of a part, true and false in turn.

    A table that is another's copy, by its header and its cells, is left out, so that no part has
    what is in another one.

    Args:
        sources: all tables.
        part: the name of the part.
        division: into which part a table belongs, by its identifier.
        makers: of pairs.
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
        made = 0
        for make in makers:
            for pair in _pairs(make, source, summary):
                made += 1
                summary.pairs[pair.operation] += 1
                yield from (pair.true, pair.false)
        summary.tables_used += made > 0


def _pairs(make: Make, source: DescribedTable, summary: CreationSummary) -> Iterator[Pair]:
    try:
        for pair in make(source):
            if isinstance(pair, StatementsError):
                summary.add_left_out("sentence", pair)
            else:
                yield pair
    except StatementsError as error:
        summary.add_left_out("table", error)
