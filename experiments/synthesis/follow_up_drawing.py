"""Draws questions that follow another one, whose answer is marked in the table.

Their words say too little without it: "and in 1996?", "who coaches them?", "and the next one?".
"""

import random
from functools import partial

from experiments.synthesis.drawn import (
    MOST_SELECTED,
    Drawers,
    Drawn,
    draw_columns,
    key_and_subject,
    ordered_rows,
    subject,
)
from experiments.synthesis.typed_table import TypedTable, need, pick

_MOST_MARKED = 8


def _cells(rows: tuple[int, ...], column: int) -> tuple[tuple[int, int], ...]:
    return tuple((row, column) for row in rows)


def _group(table: TypedTable, column: int, rng: random.Random) -> tuple[int, ...]:
    """Rows with one value in some column, the answer to the question before: two or more."""
    key = pick(table.select(but=column), rng)
    rows = table.rows_like(rng.randrange(table.num_rows), key)
    need(2 <= len(rows) <= _MOST_MARKED and table.has_values(rows, column))
    return rows


def _value(table: TypedTable, rng: random.Random) -> Drawn:
    """The same about rows with another value: "what about Rome?"."""
    target, key = draw_columns(table, rng, 2)
    if rng.random() < 0.6:
        key = subject(table, rng, but=target)
    row, other = rng.sample(range(table.num_rows), 2)
    rows, before = table.rows_like(row, key), table.rows_like(other, key)
    need(0 < len(rows) <= MOST_SELECTED and 0 < len(before) <= MOST_SELECTED)
    need(row not in before and table.has_values(rows + before, target))
    cells, marks = {"v": (row, key)}, _cells(before, target)
    return Drawn("follow_value", target, rows, {"K": key}, cells, before=marks)


def _column(table: TypedTable, rng: random.Random) -> Drawn:
    """Another column of the same row or rows: "and its capital?", "who coaches them?"."""
    named = subject(table, rng)
    target = pick(table.select(but=named), rng)
    rows: tuple[int, ...] = (rng.randrange(table.num_rows),)
    if rng.random() < 0.4:
        rows = _group(table, named, rng)
    need(len(rows) <= MOST_SELECTED and table.has_values(rows, target))
    need(table.has_values(rows, named) and (len(rows) == 1 or table.are_different(rows, target)))
    form = "follow_column" if len(rows) == 1 else "follow_columns"
    return Drawn(form, target, rows, {"T": target}, before=_cells(rows, named))


def _neighbour(table: TypedTable, rng: random.Random) -> Drawn:
    """The row after or before: "and the next one?"."""
    target, row = subject(table, rng), rng.randrange(table.num_rows)
    name, other = rng.choice((("next", row + 1), ("previous", row - 1)))
    need(0 <= other < table.num_rows and table.are_different((row, other), target))
    return Drawn(f"follow_{name}", target, (other,), {}, before=_cells((row,), target))


def _extreme(table: TypedTable, rng: random.Random) -> Drawn:
    """The other end of an order, or the next in it: "and the smallest?", "and the second?"."""
    by, target = key_and_subject(table, rng, "number", "date")
    order, kind = ordered_rows(table, by), table.columns[by].kind
    need(len(order) > 2 and table.are_different(order, by))
    name = rng.choice(("largest", "smallest"))
    first, second, *_, last = order if name == "smallest" else order[::-1]
    need(table.has_values((first, second, last), target))
    columns = {"N": by}
    if rng.random() < 0.3:
        return Drawn("follow_second", target, (second,), columns, before=((first, target),))
    form = f"follow_{name}_{kind}"
    return Drawn(form, target, (first,), columns, before=((last, target),))


def _draw_among_them(table: TypedTable, rng: random.Random) -> Drawn:
    """The one of several rows with the most or the least: "which of them is the oldest?"."""
    by, target = key_and_subject(table, rng, "number", "date")
    rows, name = _group(table, target, rng), rng.choice(("largest", "smallest"))
    order = [row for row in ordered_rows(table, by) if row in rows]
    need(len(order) == len(rows) and table.are_different(rows, by))
    row = order[-1 if name == "largest" else 0]
    form = f"follow_{name}_of_{table.columns[by].kind}"
    return Drawn(form, target, (row,), {"N": by}, before=_cells(rows, target))


def _like(table: TypedTable, rng: random.Random) -> Drawn:
    """Those of several rows with a value, or how many they are: "which of them are full?"."""
    key, target = key_and_subject(table, rng)
    rows = _group(table, target, rng)
    row = pick(rows, rng)
    both = tuple(r for r in table.rows_like(row, key) if r in rows)
    need(0 < len(both) < len(rows))
    is_count = rng.random() < 0.4
    need(is_count or len(both) <= MOST_SELECTED)
    form, operator = ("follow_count_like", "COUNT") if is_count else ("follow_like", "NONE")
    cells, marks = {"v": (row, key)}, _cells(rows, target)
    return Drawn(form, target, both, {"K": key}, cells, operator, before=marks)


def _count(table: TypedTable, rng: random.Random) -> Drawn:
    """How many rows the answer before has."""
    target = subject(table, rng)
    rows = _group(table, target, rng)
    marks = _cells(rows, target)
    return Drawn("follow_count", target, rows, {"T": target}, aggregation="COUNT", before=marks)


def _total(operator: str, table: TypedTable, rng: random.Random) -> Drawn:
    """The sum or average of a column over the rows of the answer before, or over all."""
    by, target = key_and_subject(table, rng, "number")
    form = f"follow_{operator.lower()}"
    if rng.random() < 0.5:
        rows = _group(table, target, rng)
        need(table.has_values(rows, by))
        marks = _cells(rows, target)
        return Drawn(form, by, rows, {"N": by}, aggregation=operator, before=marks)
    everything = tuple(range(table.num_rows))
    need(table.has_values(everything, by))
    marks, form = ((rng.choice(everything), by),), f"{form}_all"
    return Drawn(form, by, everything, {"N": by}, aggregation=operator, before=marks)


FOLLOW_UPS: Drawers = {
    "follow_value": (8, _value),
    "follow_column": (8, _column),
    "follow_neighbour": (3, _neighbour),
    "follow_extreme": (4, _extreme),
    "follow_of_them": (4, _draw_among_them),
    "follow_like": (3, _like),
    "follow_count": (2, _count),
    "follow_sum": (2, partial(_total, "SUM")),
    "follow_average": (1, partial(_total, "AVERAGE")),
}
