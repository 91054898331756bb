"""Two random excerpts of a table, of the same size and columns, that fit a sequence each.

A statement is made about the excerpts alone, so that nothing that it depends on is ever cut. The
authors' release divides tables into parts of at most 50 cells for the same purpose.

Shape letters: R rows and C columns of a table's body; r and c, of an excerpt's.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from mate_tf.features.wordpiece import Wordpiece
from mate_tf.tables.table import Table

_FEWEST = 2  # rows, and columns
_ATTEMPTS = 8


# How the second excerpt differs from the first: of other rows; with one column's cells those of
# other rows; with one column's cells in another order.
WAYS = ("elsewhere", "replaced", "swapped")


class Excerpts(NamedTuple):
    """Two excerpts of a table.

    Attributes:
        way: one of WAYS.
        first: some of its rows and columns, in their order.
        second: as many rows, of the same columns.
    """

    way: str
    first: Table
    second: Table


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


def draw_excerpts(
    table: Table,
    lengths: np.ndarray,
    columns: Sequence[int],
    needed: Sequence[int],
    size: ExcerptSize,
    name: str,
    rng: random.Random,
) -> Excerpts | None:
    """Draws how many columns and rows to take, and which; as many rows less as do not fit.

    Args:
        table: the table.
        lengths: of its cells in wordpieces, int [R+1, C].
        columns: those that may be taken.
        needed: of them, those of which one is taken.
        size: the limits, of each excerpt.
        name: the first one's identifier; the second's is the same with "b".
        rng: draws them.

    Returns:
        The excerpts; None where two rows of two columns never fitted, or nothing differed.
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
        origins = np.tile(np.sort(rows[fitting])[:, None], num_columns)  # [r, c]: rows of table
        for way in rng.sample(WAYS, len(WAYS)):
            second = _second_origins(way, origins, table.num_rows, rng)
            if second is None or costs[0] + lengths[second + 1, chosen].sum() > size.max_tokens:
                continue
            excerpts = Excerpts(
                way,
                _excerpt(table, chosen, origins, name),
                _excerpt(table, chosen, second, f"{name}b"),
            )
            if excerpts.first.rows != excerpts.second.rows:
                return excerpts
    return None


def _second_origins(
    way: str, origins: np.ndarray, num_rows: int, rng: random.Random
) -> np.ndarray | None:
    """The rows that the second excerpt's cells are from, int [r, c]; None if there are none."""
    size = len(origins)
    second = origins.copy()
    column = rng.randrange(origins.shape[1])
    if way == "swapped":
        second[:, column] = rng.sample(origins[:, column].tolist(), size)
        return second
    beyond = sorted(set(range(num_rows)) - set(origins[:, 0].tolist()))
    if len(beyond) < size:
        return None
    others = np.sort(rng.sample(beyond, size))
    if way == "replaced":
        second[:, column] = others
    else:
        second[:] = others[:, None]
    return second


def _excerpt(table: Table, columns: Sequence[int], origins: np.ndarray, name: str) -> Table:
    rows = (
        tuple(table.rows[row][column] for row, column in zip(of_row, columns, strict=True))
        for of_row in origins.tolist()
    )
    return Table(
        tuple(table.header[column] for column in columns),
        tuple(rows),
        name,
        table.document_title,
        table.context_heading,
    )
