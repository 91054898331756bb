"""A table as questions and statements see it: columns with types, and excerpts of it.

A question or a statement is made about an excerpt alone, so nothing it depends on is ever cut.

Shape letters: R rows and C columns of a table's body; r and c of an excerpt's.
"""

import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple, TypeVar

import numpy as np

from mate_tf.dataclass_json import require, require_fields
from mate_tf.features.english import normalize_for_match
from mate_tf.features.numeric import NumericValue, column_values, parse_text
from mate_tf.features.wordpiece import Wordpiece
from mate_tf.tables.table import Question, Table

Kind = Literal["text", "number", "date"]
Value = NumericValue | str
Drawn = TypeVar("Drawn")

FEWEST = 2  # rows, and columns, of an excerpt
# How the second of two excerpts differs from the first: it has other rows; or in one column the
# cells of other rows; or the cells of one column in another order.
WAYS = ("elsewhere", "replaced", "swapped")
_SPECIAL_TOKENS = 2
_FEWEST_TABLE_TOKENS = (FEWEST + 1) * FEWEST
_ATTEMPTS = 8


class Made(NamedTuple):
    """A question with its table, or a true statement and then a false one."""

    operation: str  # under which it is counted
    examples: tuple[tuple[Table, Question], ...]


class NothingMadeError(ValueError):
    """Nothing can be made of a table, or of a sentence about it."""

    def __init__(self, reason: str, message: str):
        super().__init__(message)
        self.reason = reason  # a few words, the same for all tables that they are true of


class NotDrawnError(ValueError):
    """The draw is no question or statement about the table; another one may be."""


@dataclass(frozen=True)
class TypedColumn:
    """A column.

    Attributes:
        name: how texts call it; "" if it has no name of its own, so no text mentions it.
        kind: the type of all cells that have a value.
        cells: their texts, without line breaks.
        values: the number, date or normalized text of each cell; None if it has none.
    """

    name: str
    kind: Kind
    cells: tuple[str, ...]
    values: tuple[Value | None, ...]


@dataclass(frozen=True)
class TypedTable:
    """A table and its columns."""

    table: Table

    @cached_property
    def columns(self) -> tuple[TypedColumn, ...]:
        names = [" ".join(name.split()) for name in self.table.header]
        times = Counter(map(normalize_for_match, names))
        return tuple(
            _typed(name if times[normalize_for_match(name)] == 1 else "", cells)
            for name, cells in zip(names, zip(*self.table.rows, strict=True), strict=True)
        )

    @property
    def num_rows(self) -> int:
        return self.table.num_rows

    def select(self, *kinds: Kind, but: int | None = None) -> list[int]:
        """The columns of these kinds, by default of any, that have a name and varied values."""
        return [
            index
            for index, column in enumerate(self.columns)
            if column.name and (not kinds or column.kind in kinds) and index != but
            if len({*column.values} - {None}) > 1
        ]

    def subjects(self, but: int | None = None) -> list[int]:
        """The columns that rows may be called by: the texts, or all columns if there are none."""
        columns = self.select("text") or self.select()
        return [column for column in columns if column != but]

    def has_values(self, rows: Sequence[int], column: int) -> bool:
        """Whether each of some rows has a value in a column."""
        return all(self.columns[column].values[row] is not None for row in rows)

    def are_different(self, rows: Sequence[int], column: int) -> bool:
        """Whether each of some rows has a value in a column that none of the others has."""
        values = {self.columns[column].values[row] for row in rows}
        return self.has_values(rows, column) and len(values) == len(rows)

    def rows_like(self, row: int, column: int) -> tuple[int, ...]:
        """The rows with the same value in a column as a row; none if that row has none."""
        values = self.columns[column].values
        if values[row] is None:
            return ()
        return tuple(other for other, value in enumerate(values) if value == values[row])

    def unique_rows(self, column: int) -> list[int]:
        """The rows whose value in a column no other row has."""
        values = self.columns[column].values
        times = Counter(values)
        return [row for row, value in enumerate(values) if value is not None and times[value] == 1]


def _typed(name: str, texts: tuple[str, ...]) -> TypedColumn:
    cells = tuple(" ".join(text.split()) for text in texts)
    name = name if any(map(str.isalnum, name)) else ""
    parsed = column_values(cells)
    if parsed and all(_is_plain(cells[row]) for row in parsed):
        kind: Kind = "number" if isinstance(next(iter(parsed.values())), float) else "date"
        return TypedColumn(name, kind, cells, tuple(parsed.get(row) for row in range(len(cells))))
    values = (normalize_for_match(cell) if any(map(str.isalnum, cell)) else None for cell in cells)
    return TypedColumn(name, "text", cells, tuple(values))


def _is_plain(cell: str) -> bool:
    """Whether a cell holds a number or a date and no other word: "$1,200" or "45 %", not "3-2"."""
    text = normalize_for_match(cell)
    spans = parse_text(text)
    if len(spans) != 1:
        return False
    around = text[: spans[0].begin] + text[spans[0].end :]
    return not any(map(str.isalnum, around))


def pick(choices: Sequence[Drawn], rng: random.Random) -> Drawn:
    """One of some choices; NotDrawnError if there are none."""
    need(len(choices) > 0)
    return rng.choice(choices)


def need(condition: bool) -> None:
    """NotDrawnError unless the condition holds."""
    if not condition:
        raise NotDrawnError("expected a table that has what was drawn")


def draw_often(times: int, draw: Callable[[], Drawn | None]) -> Drawn | None:
    """The first result of several draws; None if each gave None or raised NotDrawnError."""
    for _ in range(times):
        try:
            drawn = draw()
        except NotDrawnError:
            continue
        if drawn is not None:
            return drawn
    return None


def require_sizes(config: Any, fewest: int, *names: str) -> None:
    """ValueError where a field of a config is less than the fewest."""
    require_fields(config, lambda size: size >= fewest, f"of at least {fewest}", *names)


def table_tokens(max_seq_length: int, max_text_tokens: int) -> int:
    """How many tokens are left for a table beside a text; ValueError if too few for any."""
    fewest = max_text_tokens + _SPECIAL_TOKENS + _FEWEST_TABLE_TOKENS
    require(
        max_seq_length >= fewest,
        f"expected max_seq_length of at least {fewest}, {max_text_tokens} of them for the text, "
        f"got {max_seq_length}",
    )
    return max_seq_length - max_text_tokens - _SPECIAL_TOKENS


def cell_lengths(wordpiece: Wordpiece, table: Table) -> np.ndarray:
    """The number of wordpieces of each cell, the header's first: int [R+1, C]."""
    texts = [cell for row in (table.header, *table.rows) for cell in row]
    return wordpiece.ids_and_lengths(texts)[1].reshape(table.num_rows + 1, table.num_columns)


def excerpt(table: Table, columns: Sequence[int], origins: np.ndarray, name: str) -> Table:
    """A table of c columns, whose cells are from the rows in `origins`, int [r, c]."""
    rows = (
        tuple(table.rows[row][column] for row, column in zip(row_origins, columns, strict=True))
        for row_origins in origins.tolist()
    )
    header = tuple(table.header[column] for column in columns)
    return Table(header, tuple(rows), name, table.document_title, table.context_heading)


def draw_run(
    table: Table,
    lengths: np.ndarray,
    max_tokens: int,
    max_rows: int,
    name: str,
    rng: random.Random,
) -> Table | None:
    """Draws some columns and a run of rows, as many as fit, or None; arguments as `draw_two`."""
    columns: Sequence[int] = range(table.num_columns)
    if rng.random() >= 0.5:
        columns = sorted(rng.sample(columns, rng.randint(FEWEST, table.num_columns)))
    costs = lengths[:, columns].sum(axis=1)  # [R+1]
    most = min(table.num_rows, max_rows)
    if most < FEWEST:
        return None
    num_rows = rng.randint(FEWEST, most)
    start = 0 if rng.random() < 0.5 else rng.randint(0, table.num_rows - num_rows)
    rows = np.arange(start, start + num_rows)
    rows = rows[np.cumsum(costs[rows + 1]) <= max_tokens - costs[0]]
    if len(rows) < FEWEST:
        return None
    return excerpt(table, columns, np.tile(rows[:, None], len(columns)), name)


def draw_two(
    table: Table,
    lengths: np.ndarray,
    columns: Sequence[int],
    needed: Sequence[int],
    max_tokens: int,
    max_rows: int,
    max_columns: int,
    name: str,
    rng: random.Random,
) -> tuple[str, Table, Table] | None:
    """Draws two different excerpts of the same size and columns; rows that do not fit are left out.

    Args:
        lengths: the number of wordpieces of the table's cells, int [R+1, C].
        columns, needed: those that may be taken, and those of which one has to be.
        max_tokens: wordpieces of each excerpt, header included.
        name: the first one's identifier; the second's is the same with "b".

    Returns:
        One of WAYS and the excerpts; None if none fitted or all were alike.
    """
    if len(columns) < FEWEST or not needed or table.num_rows < FEWEST:
        return None
    for _ in range(_ATTEMPTS):
        num_columns = rng.randint(FEWEST, min(max_columns, len(columns)))
        one = rng.choice(needed)
        others = [column for column in columns if column != one]
        chosen = sorted([one, *rng.sample(others, num_columns - 1)])
        num_rows = rng.randint(FEWEST, min(max_rows, table.num_rows))
        rows = np.array(rng.sample(range(table.num_rows), num_rows))
        costs = lengths[:, chosen].sum(axis=1)  # [R+1]
        fitting = np.cumsum(costs[rows + 1]) <= max_tokens - costs[0]
        if np.count_nonzero(fitting) < FEWEST:
            continue
        origins = np.tile(np.sort(rows[fitting])[:, None], num_columns)  # [r, c]
        for way in rng.sample(WAYS, len(WAYS)):
            second = _second_origins(way, origins, table.num_rows, rng)
            if second is None or costs[0] + lengths[second + 1, chosen].sum() > max_tokens:
                continue
            first = excerpt(table, chosen, origins, name)
            other = excerpt(table, chosen, second, f"{name}b")
            if first.rows != other.rows:
                return way, first, other
    return None


def _second_origins(
    way: str, origins: np.ndarray, num_rows: int, rng: random.Random
) -> np.ndarray | None:
    """The rows that the second excerpt's cells are from, int [r, c]; None if there are too few."""
    size, num_columns = origins.shape
    second = origins.copy()
    column = rng.randrange(num_columns)
    if way == "swapped":
        second[:, column] = rng.sample(origins[:, column].tolist(), size)
        return second
    beyond = sorted(set(range(num_rows)) - set(origins[:, 0].tolist()))
    if len(beyond) < size:
        return None
    others = np.sort(rng.sample(beyond, size))
    columns = slice(column, column + 1) if way == "replaced" else slice(None)
    second[:, columns] = others[:, None]
    return second
