"""Draws questions and statements that are true or not, and what else is asked of sets of rows.

A question that holds is answered by the cells that show it. One that does not is answered by the
cells that contradict it, or by none where there is nothing to see.
"""

import random
from functools import partial
from typing import Any

from experiments.synthesis.drawn import (
    MOST_SELECTED,
    Drawers,
    Drawn,
    date_in,
    draw_columns,
    frequent_value,
    key_and_subject,
    numbers_of,
    ordered_rows,
    round_between,
    subject,
)
from experiments.synthesis.typed_table import TypedTable, need, pick

_PLACES = {2: ("second", "2nd"), 3: ("third", "3rd"), 4: ("fourth", "4th")}


def _verdict(holds: bool) -> dict[str, Any]:
    return {"aggregation": "YES" if holds else "NO", "answer": "yes" if holds else "no"}


def _fact(table: TypedTable, rng: random.Random) -> Drawn:
    """Whether a row has a value."""
    key, target = key_and_subject(table, rng)
    row = pick(table.unique_rows(target), rng)
    need(table.has_values((row,), key))
    holds = rng.random() < 0.5
    alike = table.rows_like(row, key)
    others = [r for r in range(table.num_rows) if r not in alike and table.has_values((r,), key)]
    said = row if holds else pick(others, rng)
    cells = {"a": (row, target), "v": (said, key)}
    return Drawn("fact", key, (row,), {"K": key}, cells, **_verdict(holds))


def _fact_beyond(table: TypedTable, rng: random.Random) -> Drawn:
    """Whether a row has more, or less, than a number or a year."""
    by, target = key_and_subject(table, rng, "number", "date")
    row = pick([r for r in table.unique_rows(target) if table.has_values((r,), by)], rng)
    name, kind = rng.choice(("more", "less")), table.columns[by].kind
    if kind == "date":
        year = date_in(table, row, by).year
        need(year is not None)
        bound = year + rng.choice((-10, -5, -3, -2, -1, 1, 2, 3, 5, 10))  # type: ignore[operator]
        is_above, text = year > bound, str(bound)  # type: ignore[operator]
    else:
        is_above, text = _bound(table, ordered_rows(table, by), row, by, rng)
    form, cells, words = f"fact_{name}_{kind}", {"a": (row, target)}, {"t": text}
    verdict = _verdict(is_above == (name == "more"))
    return Drawn(form, by, (row,), {"N": by}, cells, words=words, **verdict)


def _bound(
    table: TypedTable, order: list[int], row: int, by: int, rng: random.Random
) -> tuple[bool, str]:
    """A round number near a row's, and whether the row's is above it."""
    at, is_above = order.index(row), rng.random() < 0.5
    other = at - rng.randint(1, 3) if is_above else at + rng.randint(1, 3)
    need(0 <= other < len(order))
    low, high = sorted((at, other))
    return is_above, round_between(*numbers_of(table, (order[low], order[high]), by))


def _exists(table: TypedTable, rng: random.Random) -> Drawn:
    """Whether there is a row with a value; creation takes it away from half of the tables."""
    target, key = draw_columns(table, rng, 2)
    if rng.random() < 0.4:
        key = target
    row, rows = frequent_value(table, key, rng)
    need(0 < len(rows) <= 2 * MOST_SELECTED)
    return Drawn("exists", key, rows, {"T": target, "K": key}, {"v": (row, key)}, **_verdict(True))


def _exists_both(table: TypedTable, rng: random.Random) -> Drawn:
    """Whether there is a row with two values, each of which there is."""
    target, first, second = draw_columns(table, rng, 3)
    row, other = rng.randrange(table.num_rows), rng.randrange(table.num_rows)
    rows = tuple(sorted({*table.rows_like(row, first)} & {*table.rows_like(other, second)}))
    need(table.has_values((row,), first) and table.has_values((other,), second))
    need(len(rows) <= 2 * MOST_SELECTED)
    columns = {"T": target, "K": first, "L": second}
    cells = {"v": (row, first), "w": (other, second)}
    return Drawn("exists_both", second, rows, columns, cells, **_verdict(bool(rows)))


def _any_or_all(name: str, table: TypedTable, rng: random.Random) -> Drawn:
    """Whether any row, or each, has more or less than a number."""
    by, target = key_and_subject(table, rng, "number")
    order, side = ordered_rows(table, by), rng.choice(("more", "less"))
    need(len(order) == table.num_rows)
    numbers = numbers_of(table, tuple(order), by)
    at = rng.choice((0, len(order), rng.randrange(1, len(order))))
    spread = max(abs(numbers[0]), abs(numbers[-1]), 1.0) * rng.uniform(0.02, 0.3)
    ends = (numbers[0] - spread, *numbers, numbers[-1] + spread)
    text = round_between(max(ends[at], 0.0), ends[at + 1])
    beyond, within = (order[at:], order[:at]) if side == "more" else (order[:at], order[at:])
    holds = bool(beyond) if name == "any" else not within
    rows = beyond if name == "any" or holds else within
    columns, words = {"T": target, "N": by}, {"t": text}
    form = f"{name}_{side}"
    return Drawn(form, by, tuple(sorted(rows)), columns, words=words, **_verdict(holds))


def _all_like(table: TypedTable, rng: random.Random) -> Drawn:
    """Whether each row has a value."""
    columns = [c for c, column in enumerate(table.columns) if column.name and all(column.values)]
    key = pick(columns, rng)
    target = subject(table, rng, but=key)
    row, rows = frequent_value(table, key, rng)
    others = tuple(sorted({*range(table.num_rows)} - {*rows}))
    need(2 * len(rows) >= table.num_rows)
    columns_, cells = {"T": target, "K": key}, {"v": (row, key)}
    return Drawn("all_like", key, others or rows, columns_, cells, **_verdict(not others))


def _count_fact(table: TypedTable, rng: random.Random) -> Drawn:
    """Whether more, or fewer, rows than a number have a value."""
    key, target = key_and_subject(table, rng)
    row, rows = frequent_value(table, key, rng)
    need(len(rows) > 1 and table.has_values(rows, target))
    number, side = len(rows) + rng.randint(-2, 2), rng.choice(("more", "less"))
    need(number > 0)
    holds = len(rows) > number if side == "more" else len(rows) < number
    columns, cells, words = {"T": target, "K": key}, {"v": (row, key)}, {"n": str(number)}
    form = f"count_fact_{side}"
    return Drawn(form, target, rows, columns, cells, words=words, **_verdict(holds))


def _not_like(table: TypedTable, rng: random.Random) -> Drawn:
    """The rows without a value, or how many they are."""
    key, target = key_and_subject(table, rng, "text")
    row, rows = frequent_value(table, key, rng)
    others = tuple(sorted({*range(table.num_rows)} - {*rows}))
    need(len(rows) > 0 and len(others) > 0 and table.has_values(others, target))
    columns, cells = {"T": target, "K": key}, {"v": (row, key)}
    if rng.random() < 0.4:
        return Drawn("count_not_like", target, others, columns, cells, "COUNT")
    need(len(others) <= 2 * MOST_SELECTED and table.are_different(others, target))
    return Drawn("not_like", target, others, columns, cells)


def _ranked(table: TypedTable, rng: random.Random) -> Drawn:
    """The row with the second, third or fourth number from the top or the bottom."""
    by, target = key_and_subject(table, rng, "number")
    order, name = ordered_rows(table, by), rng.choice(("most", "least"))
    place = rng.choice((2, 2, 3, 4))
    need(len(order) > place)
    from_end = order[::-1] if name == "most" else order
    need(table.are_different(from_end[: place + 1], by))
    row, text = from_end[place - 1], rng.choice(_PLACES[place])
    need(table.has_values((row,), target))
    return Drawn(f"ranked_{name}", target, (row,), {"T": target, "N": by}, words={"p": text})


def _spread(table: TypedTable, rng: random.Random) -> Drawn:
    """The difference between the largest and the smallest number."""
    by = pick(table.select("number"), rng)
    target, order = subject(table, rng, but=by), ordered_rows(table, by)
    need(table.are_different((order[0], order[-1]), by))
    rows = tuple(sorted((order[0], order[-1])))
    return Drawn("spread", by, rows, {"T": target, "N": by}, aggregation="DIFFERENCE")


def _share(table: TypedTable, rng: random.Random) -> Drawn:
    """The part of a sum that the rows with a value have, in percent, or of all rows."""
    key = pick(table.select("text"), rng)
    row, rows = frequent_value(table, key, rng)
    everything = tuple(range(table.num_rows))
    need(0 < len(rows) < table.num_rows)
    cells = {"v": (row, key)}
    if rng.random() < 0.4:
        target = subject(table, rng, but=key)
        need(len(rows) > 1 and table.has_values(everything, target))
        need(table.columns[target].kind == "text")
        share, columns = 100 * len(rows) / table.num_rows, {"T": target, "K": key}
        form, column = "share_of_rows", target
    else:
        column = pick(table.select("number"), rng)
        need(table.has_values(everything, column))
        numbers = numbers_of(table, everything, column)
        need(min(numbers) >= 0.0)
        share = 100 * sum(numbers_of(table, rows, column)) / sum(numbers)
        form, columns = "share", {"N": column}
    return Drawn(form, column, rows, columns, cells, "SHARE", f"{share:.10g}")


def _both_beyond(table: TypedTable, rng: random.Random) -> Drawn:
    """The rows that have a value and more, or less, than a number; or how many they are."""
    by = pick(table.select("number"), rng)
    key = pick(table.select("text", but=by), rng)
    target = pick([c for c in table.subjects(but=by) if c != key], rng)
    row, rows = frequent_value(table, key, rng)
    need(len(rows) > 1)
    order, name = ordered_rows(table, by), rng.choice(("more", "less"))
    at = rng.randrange(1, len(order))
    text = round_between(*numbers_of(table, (order[at - 1], order[at]), by))
    both = tuple(sorted({*rows} & {*(order[at:] if name == "more" else order[:at])}))
    need(0 < len(both) < len(rows) and table.are_different(both, target))
    columns, words = {"T": target, "N": by, "K": key}, {"t": text}
    is_count = rng.random() < 0.4
    form = f"{'count_both' if is_count else 'both'}_{name}"
    aggregation = "COUNT" if is_count else "NONE"
    need(is_count or len(both) <= MOST_SELECTED)
    return Drawn(form, target, both, columns, {"v": (row, key)}, aggregation, words=words)


FACTS: Drawers = {
    "fact": (6, _fact),
    "fact_beyond": (4, _fact_beyond),
    "exists": (6, _exists),
    "exists_both": (2, _exists_both),
    "any": (2, partial(_any_or_all, "any")),
    "all": (2, partial(_any_or_all, "all")),
    "all_like": (1, _all_like),
    "count_fact": (2, _count_fact),
    "not_like": (4, _not_like),
    "ranked": (5, _ranked),
    "spread": (2, _spread),
    "share": (4, _share),
    "both_beyond": (5, _both_beyond),
}
