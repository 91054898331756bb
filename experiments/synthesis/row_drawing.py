"""Draws questions whose answer lies along a row: of two columns, or of a series of columns.

A series is a run of columns of one kind, such as months, whose names the answer may be.
"""

import random
import re
from functools import partial
from typing import NamedTuple

from experiments.synthesis import WORDS
from experiments.synthesis.drawn import Drawers, Drawn, date_in, round_between
from experiments.synthesis.typed_table import TypedTable, need, pick

_FEWEST = 3  # columns of a series
_SERIES = {
    unit: [{*names.lower().split(",")} for names in lists]
    for unit, lists in WORDS["series"].items()
}
_PATTERNS = {
    "year": re.compile(r"(?:19|20)\d\d"),
    "round": re.compile(r"(?:round |r|game |set |lap )?\d{1,2}"),
    "week": re.compile(r"(?:week |w|wk )\d{1,2}"),
    "quarter": re.compile(r"q[1-4](?: \d{4})?|[1-4](?:st|nd|rd|th) quarter"),
}


class Series(NamedTuple):
    """The columns of one kind in a table, and what one of them is called."""

    unit: str
    columns: tuple[int, ...]


def series_of(table: TypedTable) -> Series | None:
    """The longest series of a table; None without one."""
    found = []
    names = [column.name.lower() for column in table.columns]
    for unit, lists in _SERIES.items():
        found += [(unit, [i for i, name in enumerate(names) if name in names_]) for names_ in lists]
    for unit, pattern in _PATTERNS.items():
        found.append((unit, [i for i, name in enumerate(names) if pattern.fullmatch(name)]))
    unit, columns = max(found, key=lambda one: len(one[1]))
    return Series(unit, tuple(columns)) if len(columns) >= _FEWEST else None


def _row_and_series(
    table: TypedTable, rng: random.Random, *, numeric: bool = True
) -> tuple[int, tuple[int, int], Series]:
    """A row, the cell that it is called by, and the series."""
    series = series_of(table)
    need(series is not None)
    assert series is not None
    row, target = _named_row(table, series.columns, rng)
    need(all(table.has_values((row,), column) for column in series.columns))
    need(not numeric or all(table.columns[c].kind == "number" for c in series.columns))
    return row, (row, target), series


def _named_row(table: TypedTable, columns: tuple[int, ...], rng: random.Random) -> tuple[int, int]:
    """A row, and the column that it is called by, which is none of some others."""
    target = pick([c for c in table.subjects() if c not in columns][:1], rng)
    return pick(table.unique_rows(target), rng), target


def _numbers(table: TypedTable, row: int, columns: tuple[int, ...]) -> list[float]:
    values = [table.columns[column].values[row] for column in columns]
    need(all(isinstance(value, float) for value in values))
    return values  # type: ignore[return-value]


def _draw_series(operator: str, table: TypedTable, rng: random.Random) -> Drawn:
    """The sum, average or extreme of a row over its series."""
    row, name, (unit, columns) = _row_and_series(table, rng)
    numbers = _numbers(table, row, columns)
    answer = ""
    if operator in ("MAX", "MIN"):
        choose = max if operator == "MAX" else min
        answer = table.columns[columns[numbers.index(choose(numbers))]].cells[row]
    form, cells = f"row_{operator.lower()}", {"a": name}
    aggregation, words = f"ROW_{operator}", {"U": unit}
    return Drawn(form, columns[0], (row,), {}, cells, aggregation, answer, words, columns)


def _draw_two(operator: str, table: TypedTable, rng: random.Random) -> Drawn:
    """The sum or the difference of two numbers of a row."""
    is_year, columns = _PATTERNS["year"].fullmatch, table.columns
    numbers = [c for c in table.select("number") if not is_year(columns[c].cells[0])]
    series = series_of(table)
    need(len(numbers) >= 2)
    first, second = rng.sample(numbers, 2)
    if series is not None and rng.random() < 0.7:
        first, second = rng.sample(series.columns, 2)
    row, target = _named_row(table, (first, second), rng)
    one, other = _numbers(table, row, (first, second))
    if operator == "DIFFERENCE" and one < other:
        first, second = second, first
    form = "row_difference" if operator == "DIFFERENCE" else "row_sum_two"
    return _two_cells(form, (row, target), first, second, f"ROW_{operator}")


def _two_cells(
    form: str, name: tuple[int, int], first: int, second: int, aggregation: str
) -> Drawn:
    columns, along = {"A": first, "B": second}, tuple(sorted((first, second)))
    return Drawn(form, first, (name[0],), columns, {"a": name}, aggregation, along=along)


def _days(table: TypedTable, rng: random.Random) -> Drawn:
    """The days between two dates of a row."""
    dates = table.select("date")
    need(len(dates) >= 2)
    first, second = rng.sample(dates, 2)
    row, target = _named_row(table, (first, second), rng)
    one, other = (date_in(table, row, c)[:3] for c in (first, second))
    need(None not in (*one, *other) and one != other)
    if one > other:
        first, second = second, first
    return _two_cells("row_days", (row, target), first, second, "ROW_DIFFERENCE")


def _header_extreme(table: TypedTable, rng: random.Random) -> Drawn:
    """The column of a series in which a row has its largest or smallest number."""
    row, name, (unit, columns) = _row_and_series(table, rng)
    numbers = _numbers(table, row, columns)
    side = rng.choice(("most", "least"))
    best = (max if side == "most" else min)(numbers)
    need(numbers.count(best) == 1)
    chosen = (columns[numbers.index(best)],)
    return _header(f"header_{side}", table, row, name, chosen, {}, U=unit)


def _header_like(table: TypedTable, rng: random.Random) -> Drawn:
    """The columns of a series in which a row has a value."""
    row, name, (unit, columns) = _row_and_series(table, rng, numeric=False)
    said = rng.choice(columns)
    value = table.columns[said].values[row]
    chosen = tuple(c for c in columns if table.columns[c].values[row] == value)
    need(len(chosen) < len(columns))
    return _header("header_like", table, row, name, chosen, {"v": (row, said)}, U=unit)


def _header_beyond(table: TypedTable, rng: random.Random) -> Drawn:
    """The columns of a series in which a row has more, or less, than a number."""
    row, name, (unit, columns) = _row_and_series(table, rng)
    numbers = sorted(set(_numbers(table, row, columns)))
    need(len(numbers) > 1)
    at, side = rng.randrange(1, len(numbers)), rng.choice(("above", "below"))
    text = round_between(numbers[at - 1], numbers[at])
    beyond = {*(numbers[at:] if side == "above" else numbers[:at])}
    chosen = tuple(c for c in columns if table.columns[c].values[row] in beyond)
    return _header(f"header_{side}", table, row, name, chosen, {}, U=unit, t=text)


def _header(form, table, row, name, chosen, cells, **words) -> Drawn:
    answer = ", ".join(table.table.header[column] for column in chosen)
    cells = {"a": name} | cells
    return Drawn(form, chosen[0], (row,), {}, cells, "HEADER", answer, words, chosen)


ALONG_ROWS: Drawers = {
    "row_sum": (8, partial(_draw_series, "SUM")),
    "row_average": (4, partial(_draw_series, "AVERAGE")),
    "row_max": (3, partial(_draw_series, "MAX")),
    "row_min": (3, partial(_draw_series, "MIN")),
    "row_sum_two": (3, partial(_draw_two, "SUM")),
    "row_difference": (5, partial(_draw_two, "DIFFERENCE")),
    "row_days": (2, _days),
    "header": (10, _header_extreme),
    "header_like": (8, _header_like),
    "header_beyond": (6, _header_beyond),
}
