"""Synthetic statements about a table, in pairs of a true and a false one.

Both of a pair are of one operation and of cells of the same columns, and a table's pairs are spread
evenly over the operations: neither says anything of the label (Eisenschlos et al., 2020, section
3.2, make a true and a false statement each on its own).
"""

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from mate_tf.statements.drawing import draw_true
from mate_tf.statements.excerpts import Excerpt, ExcerptSize, cell_lengths, draw_excerpt
from mate_tf.statements.expressions import OPERATIONS, Statement
from mate_tf.statements.falsification import falsified
from mate_tf.statements.pairs import Pair, StatementsError, make_pair
from mate_tf.statements.typed_table import TypedTable
from mate_tf.statements.wording import verbalize
from mate_tf.tables.table import Table
from mate_tf.tables.wordpiece import Wordpiece

_SPECIAL_TOKENS = 2


@dataclass(frozen=True)
class SyntheticConfig:
    """How many statements are made of a table, and how long they are.

    Attributes:
        excerpts_per_table: excerpts drawn of each table.
        pairs_per_excerpt: pairs of a true and a false statement about each.
        max_seq_length: tokens of a statement with its excerpt, special tokens included.
        max_statement_tokens: of them, those of the statement.
        max_rows, max_columns: of an excerpt.
        seed: of everything that is drawn, with the table's identifier.

    Raises:
        ValueError: if there is nothing to make, or no excerpt of two rows and columns fits.
    """

    excerpts_per_table: int = 8
    pairs_per_excerpt: int = 3
    max_seq_length: int = 128
    max_statement_tokens: int = 40
    max_rows: int = 8
    max_columns: int = 4
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("excerpts_per_table", "pairs_per_excerpt", "max_statement_tokens"):
            if getattr(self, name) < 1:
                raise ValueError(f"expected {name} of at least 1, got {getattr(self, name)}")
        _ = self.excerpt_size

    @property
    def excerpt_size(self) -> ExcerptSize:
        tokens = self.max_seq_length - self.max_statement_tokens - _SPECIAL_TOKENS
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
        excerpt = draw_excerpt(table, lengths, columns, numbers, config.excerpt_size, name, rng)
        if excerpt is None:
            continue
        drawn += 1
        pairs = _pairs_of(excerpt, wordpiece, config, made, rng)
        yield from pairs
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
    excerpt: Excerpt,
    wordpiece: Wordpiece,
    config: SyntheticConfig,
    made: Counter[str],
    rng: random.Random,
) -> list[Pair]:
    """Makes pairs of the operations that there are fewest of, and counts them in `made`."""
    table = TypedTable(excerpt.table)
    others = None if excerpt.other_rows is None else TypedTable(excerpt.other_rows)
    if not table.of_kind("number"):  # of the rows that were drawn
        return []
    pairs: list[Pair] = []
    by_need = sorted(OPERATIONS, key=lambda operation: (made[operation], rng.random()))
    for operation in by_need:
        if len(pairs) == config.pairs_per_excerpt:
            break
        true = draw_true(operation, table, rng)
        changed = None if true is None else falsified(true, table, others, rng)
        if true is None or changed is None:
            continue
        change, false = changed
        texts = _worded(true, false, table, rng)
        lengths = wordpiece.ids_and_lengths(texts)[1]
        if texts[0] == texts[1] or max(lengths) > config.max_statement_tokens:
            continue
        made[operation] += 1
        name = f"{table.table.table_id}:{operation}/{change}"
        pairs.append(make_pair(table.table, name, operation, texts))
    return pairs


def _worded(
    true: Statement, false: Statement, table: TypedTable, rng: random.Random
) -> tuple[str, str]:
    """Both in the same wording, as far as they are alike."""
    seed = rng.random()
    first, second = (
        verbalize(statement, table, random.Random(seed)) for statement in (true, false)
    )
    return first, second
