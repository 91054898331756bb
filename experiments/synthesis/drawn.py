"""A question before it has words, and what the draws of such questions share."""

import datetime
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from experiments.synthesis.typed_table import Kind, NotDrawnError, TypedTable, need, pick
from mate_tf.features.numeric import Date, ranks

MOST_SELECTED = 4  # cells that answer a question without aggregation
YES, NO = ("yes", "y"), ("no", "n")


@dataclass(frozen=True)
class Drawn:
    """A question before it has words.

    Attributes:
        form: which of FORMS it may take.
        column, rows: of the cells that answer, ascending.
        columns, cells, words: by the name of a field of the form, columns that the words name,
            cells (row, column) that they quote, and other words.
        aggregation: one of OPERATORS.
        answer: where it is not a cell's text or a number that is computed.
        along: the columns of the cells that answer, where these are in one row.
        before: the cells that answered the question before, of one that follows another.
    """

    form: str
    column: int
    rows: tuple[int, ...]
    columns: Mapping[str, int]
    cells: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    aggregation: str = "NONE"
    answer: str = ""
    words: Mapping[str, str] = field(default_factory=dict)
    along: tuple[int, ...] = ()
    before: tuple[tuple[int, int], ...] = ()

    @property
    def coordinates(self) -> tuple[tuple[int, int], ...]:
        """(row, column) of the cells that answer."""
        return tuple((row, c) for row in self.rows for c in self.along or (self.column,))


# What draws the questions of each operation, and how often, relative to the others.
Drawers = dict[str, tuple[int, Callable[[TypedTable, random.Random], Drawn]]]


def says_yes_or_no(table: TypedTable, column: int) -> bool:
    values = {cell.strip().lower() for cell in table.columns[column].cells}
    return values <= {*YES, *NO} and len(values) == 2


def subject(table: TypedTable, rng: random.Random, but: int | None = None) -> int:
    """A column that rows are called by: mostly the first whose cells all differ."""
    columns = table.subjects(but=but)
    telling = [c for c in columns if not says_yes_or_no(table, c)]
    whole = [c for c in telling if len(table.unique_rows(c)) == table.num_rows]
    return whole[0] if whole and rng.random() < 0.6 else pick(telling or columns, rng)


def key_and_subject(table: TypedTable, rng: random.Random, *kinds: Kind) -> tuple[int, int]:
    """A column of one of these kinds, and another one that rows are called by."""
    key = pick(table.select(*kinds), rng)
    return key, subject(table, rng, but=key)


def two_rows(table: TypedTable, target: int, by: int, rng: random.Random) -> list[int]:
    """Two rows that have a value to compare, and whose names no other row has."""
    rows = [row for row in table.unique_rows(target) if table.has_values((row,), by)]
    need(len(rows) >= 2)
    return rng.sample(rows, 2)


def draw_columns(table: TypedTable, rng: random.Random, count: int) -> list[int]:
    columns = table.select()
    need(len(columns) >= count)
    return rng.sample(columns, count)


def date_in(table: TypedTable, row: int, column: int) -> Date:
    value = table.columns[column].values[row]
    if not isinstance(value, Date):
        raise NotDrawnError("expected a date in each row")
    return value


def round_between(low: float, high: float) -> str:
    """A number with few digits above one number and below another, as people say thresholds."""
    for exponent in range(7, -1, -1):
        for step in (10**exponent, 5 * 10**exponent // 10):
            number = step and (high - 1e-9) // step * step
            if step and low < number < high:
                return f"{number:,.0f}" if number >= 10_000 else f"{number:.0f}"
    raise NotDrawnError(f"expected a whole number between {low} and {high}")


def days_of(date: Date) -> float:
    """The day of a whole date, as a number."""
    return float(datetime.date(*date[:3]).toordinal())  # type: ignore[arg-type]


def numbers_of(table: TypedTable, rows: tuple[int, ...], column: int) -> list[float]:
    """The numbers in some rows of a column of numbers."""
    values = (table.columns[column].values[row] for row in rows)
    return [value for value in values if isinstance(value, float)]


def frequent_value(
    table: TypedTable, column: int, rng: random.Random
) -> tuple[int, tuple[int, ...]]:
    """A row, and all rows with its value: of four random rows, the one with the most frequent."""
    candidates = [rng.randrange(table.num_rows) for _ in range(4)]
    row = max(candidates, key=lambda r: len(table.rows_like(r, column)))
    return row, table.rows_like(row, column)


def ordered_rows(table: TypedTable, column: int) -> list[int]:
    """The rows with a value, from the smallest to the largest; they all have to be comparable."""
    values = table.columns[column].values
    present = {row: value for row, value in enumerate(values) if value is not None}
    order = ranks({row: value for row, value in present.items() if not isinstance(value, str)})
    need(len(order) == len(present) >= 2)
    return sorted(present, key=lambda row: order[row][0])
