"""From tables to statements or questions about one part of them, and what is left out.

Synthetic statements about tables, each of them true of one excerpt and false of another.

The two excerpts are of the same table, and are alike but for their rows, or for the cells of one
column; as many statements are true of the one as of the other. So neither the statement alone nor
the excerpt alone says anything of the label (Eisenschlos et al., 2020, section 3.2, make a true and
a false statement each on its own, with another constant in the false one).
"""

import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol

from mate_tf.datasets.described_tables import DescribedTable
from mate_tf.datasets.tasks import Division
from mate_tf.features.wordpiece import Wordpiece
from mate_tf.synthesis.counterfactual import counterfactual_pairs
from mate_tf.synthesis.excerpts import Excerpts, ExcerptSize, cell_lengths, draw_excerpts
from mate_tf.synthesis.pairs import Pair, Source, StatementsError, make_pair
from mate_tf.synthesis.statement_drawing import draw_true
from mate_tf.synthesis.statement_execution import OPERATIONS, is_refuted
from mate_tf.synthesis.statement_wording import verbalize
from mate_tf.synthesis.typed_table import TypedTable
from mate_tf.tables.table import Question, Table

_SPECIAL_TOKENS = 2
_ATTEMPTS = 4


@dataclass(frozen=True)
class SyntheticConfig:
    """How many statements are made of a table, and how long they are.

    Attributes:
        excerpts_per_table: excerpts drawn of each table.
        operations_per_excerpt: of each operation, two statements about an excerpt and another
            one: each is true of one of them, and false of the other.
        max_seq_length: tokens of a statement with its excerpt, special tokens included.
        max_statement_tokens: of them, those of the statement.
        max_rows, max_columns: of an excerpt.
        seed: of everything that is drawn, with the table's identifier.

    Raises:
        ValueError: if there is nothing to make, or no excerpt of two rows and columns fits.
    """

    excerpts_per_table: int = 8
    operations_per_excerpt: int = 3
    max_seq_length: int = 128
    max_statement_tokens: int = 40
    max_rows: int = 8
    max_columns: int = 4
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("excerpts_per_table", "operations_per_excerpt", "max_statement_tokens"):
            if getattr(self, name) < 1:
                raise ValueError(f"expected {name} of at least 1, got {getattr(self, name)}")
        _ = self.excerpt_size

    @property
    def excerpt_size(self) -> ExcerptSize:
        tokens = self.max_seq_length - self.max_statement_tokens - _SPECIAL_TOKENS
        if tokens < 1:
            raise ValueError(
                f"expected max_seq_length above {self.max_statement_tokens + _SPECIAL_TOKENS}, "
                f"which a statement may take alone, got {self.max_seq_length}"
            )
        return ExcerptSize(tokens, self.max_rows, self.max_columns)


def synthetic_pairs(table: Table, wordpiece: Wordpiece, config: SyntheticConfig) -> Iterator[Pair]:
    """Yields pairs of statements about excerpts of a table, the same for the same seed and name.

    Raises:
        StatementsError: if none can be made, with the reason, before the first is yielded.
    """
    typed = TypedTable(table)
    columns, numbers = typed.of_kind(), typed.of_kind("number")
    if table.num_rows < 2:
        raise StatementsError("one row", f"expected 2 rows, got 1 (table '{table.table_id}')")
    if not numbers or len(columns) < 2:
        raise StatementsError(
            "no column of numbers beside another",
            f"expected a column of numbers and another one, both with a name of their own and "
            f"different values (table '{table.table_id}')",
        )
    rng = random.Random(f"{config.seed}/{table.table_id}")
    lengths = cell_lengths(wordpiece, table)
    made = Counter[str]()
    drawn = 0
    for number in range(config.excerpts_per_table):
        name = f"{table.table_id}#{number}"
        excerpts = draw_excerpts(table, lengths, columns, numbers, config.excerpt_size, name, rng)
        if excerpts is None:
            continue
        drawn += 1
        yield from _pairs_of(excerpts, wordpiece, config, made, rng)
    if not drawn:
        raise StatementsError(
            "no excerpt fits",
            f"expected two rows of two columns in {config.excerpt_size.max_tokens} tokens "
            f"(table '{table.table_id}'); raise max_seq_length",
        )
    if not made:
        raise StatementsError(
            "no statement found", f"expected a statement (table '{table.table_id}')"
        )


def _pairs_of(
    excerpts: Excerpts,
    wordpiece: Wordpiece,
    config: SyntheticConfig,
    made: Counter[str],
    rng: random.Random,
) -> Iterator[Pair]:
    """Makes pairs of the operations that there are fewest of, and counts them in `made`."""
    first, second = TypedTable(excerpts.first), TypedTable(excerpts.second)
    kinds = [[column.kind for column in table.columns] for table in (first, second)]
    if kinds[0] != kinds[1] or not (first.of_kind("number") and second.of_kind("number")):
        return
    num_operations = 0
    by_need = sorted(OPERATIONS, key=lambda operation: (made[operation], rng.random()))
    for operation in by_need:
        if num_operations == config.operations_per_excerpt:
            break
        texts = [
            _telling(operation, here, there, rng)
            for here, there in ((first, second), (second, first))
        ]
        present = [text for text in texts if text is not None]
        if len(set(present)) < len(texts):
            continue
        lengths = wordpiece.ids_and_lengths(present)[1]
        if max(lengths) > config.max_statement_tokens:
            continue
        made[operation] += 1
        num_operations += 1
        tables = (excerpts.first, excerpts.second)
        for text, here, there in zip(present, tables, reversed(tables), strict=True):
            name = here.table_id or ""
            yield make_pair(operation, (here, text), (there, text), name, excerpts.way)


def _telling(operation: str, here: TypedTable, there: TypedTable, rng: random.Random) -> str | None:
    """A statement that is true here and false there, in words; None where none was found."""
    for _ in range(_ATTEMPTS):
        statement = draw_true(operation, here, rng)
        if statement is None:
            return None
        if is_refuted(statement, there):
            return verbalize(statement, here, rng)
    return None


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
