"""Random excerpts of a table: some of its columns and rows, in their order, that fit a sequence.

A statement is made about the excerpt alone, so that nothing that it depends on is ever cut. The
authors' release divides tables into parts of at most 50 cells for the same purpose.

Shape letters: R rows and C columns of a table's body.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from mate_tf.tables.table import Table
from mate_tf.tables.wordpiece import Wordpiece

_FEWEST = 2  # rows, and columns
_ATTEMPTS = 8


class Excerpt(NamedTuple):
    """Part of a table.

    Attributes:
        table: the part.
        other_rows: some rows of the same columns that are not in it; None where fewer than two are
            left.
    """

    table: Table
    other_rows: Table | None


@dataclass(frozen=True)
class ExcerptSize:
    """How large excerpts may be.

    Attributes:
        max_tokens: wordpieces of the excerpt, header included.
        max_rows: body rows.
        max_columns: columns.

    Raises:
        ValueError: if one is too small for two rows of two columns.
    """

    max_tokens: int
    max_rows: int
    max_columns: int

    def __post_init__(self) -> None:
        fewest = {"max_tokens": (_FEWEST + 1) * _FEWEST, "max_rows": _FEWEST}
        for name, least in (fewest | {"max_columns": _FEWEST}).items():
            if getattr(self, name) < least:
                raise ValueError(f"expected {name} of at least {least}, got {getattr(self, name)}")


def cell_lengths(wordpiece: Wordpiece, table: Table) -> np.ndarray:
    """The number of wordpieces of each cell, the header's first: int [R+1, C]."""
    texts = [cell for row in (table.header, *table.rows) for cell in row]
    return wordpiece.ids_and_lengths(texts)[1].reshape(table.num_rows + 1, table.num_columns)


def draw_excerpt(
    table: Table,
    lengths: np.ndarray,
    columns: Sequence[int],
    needed: Sequence[int],
    size: ExcerptSize,
    name: str,
    rng: random.Random,
) -> Excerpt | None:
    """Draws how many columns and rows to take, and which; as many rows less as do not fit.

    Args:
        table: the table.
        lengths: of its cells in wordpieces, int [R+1, C].
        columns: those that may be taken.
        needed: of them, those of which one is taken.
        size: the limits.
        name: the excerpt's identifier.
        rng: draws them.

    Returns:
        The excerpt; None where two rows of two columns never fitted.
    """
    if len(columns) < _FEWEST or not needed or table.num_rows < _FEWEST:
        return None
    for _ in range(_ATTEMPTS):
        num_columns = rng.randint(_FEWEST, min(size.max_columns, len(columns)))
        one = rng.choice(needed)
        others = [column for column in columns if column != one]
        chosen = sorted([one, *rng.sample(others, num_columns - 1)])
        num_rows = rng.randint(_FEWEST, min(size.max_rows, table.num_rows))
        rows = np.array(rng.sample(range(table.num_rows), num_rows))
        costs = lengths[:, chosen].sum(axis=1)  # [R+1]
        fitting = np.cumsum(costs[rows + 1]) <= size.max_tokens - costs[0]
        if np.count_nonzero(fitting) < _FEWEST:
            continue
        within = sorted(rows[fitting].tolist())
        beyond = sorted(set(range(table.num_rows)) - set(within))
        others = sorted(rng.sample(beyond, min(len(beyond), size.max_rows)))
        return Excerpt(
            _part(table, chosen, within, name),
            _part(table, chosen, others, name) if len(others) >= _FEWEST else None,
        )
    return None


def _part(table: Table, columns: Sequence[int], rows: Sequence[int], name: str) -> Table:
    return Table(
        tuple(table.header[column] for column in columns),
        tuple(tuple(table.rows[row][column] for column in columns) for row in rows),
        name,
        table.document_title,
        table.context_heading,
    )
