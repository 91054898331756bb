"""Draws what a question of each operation asks about a table, before it has words."""

import random
from functools import partial

from experiments.synthesis.drawn import (
    MOST_SELECTED,
    YES,
    Drawers,
    Drawn,
    date_in,
    draw_columns,
    frequent_value,
    key_and_subject,
    numbers_of,
    ordered_rows,
    round_between,
    says_yes_or_no,
    subject,
    two_rows,
)
from experiments.synthesis.fact_drawing import FACTS
from experiments.synthesis.follow_up_drawing import FOLLOW_UPS
from experiments.synthesis.row_drawing import ALONG_ROWS
from experiments.synthesis.typed_table import TypedTable, draw_often, need, pick
from mate_tf.tables.notations import MONTHS

_ATTEMPTS = 12
_LARGEST_SUM = 1e7
# What "how much" asks for.
_OF_AMOUNTS = ("price", "cost", "amount", "total", "fare", "ticket", "salary", "pay", "budget")


def _look_up(table: TypedTable, rng: random.Random) -> Drawn:
    """The cell beside another one, whose value no other row has."""
    target, key = draw_columns(table, rng, 2)
    if rng.random() < 0.5:
        key = subject(table, rng, but=target)
    row = pick(table.unique_rows(key), rng)
    need(table.has_values((row,), target))
    return Drawn("look_up", target, (row,), {"T": target, "K": key}, {"v": (row, key)})


def _look_up_by_two(table: TypedTable, rng: random.Random) -> Drawn:
    """The cell in the one row that has two values, each of which is in other rows too."""
    target, first, second = draw_columns(table, rng, 3)
    row = rng.randrange(table.num_rows)
    need(all(table.has_values((row,), column) for column in (target, first, second)))
    with_first, with_second = (set(table.rows_like(row, column)) for column in (first, second))
    need(len(with_first) > 1 and len(with_second) > 1 and with_first & with_second == {row})
    columns = {"T": target, "K": first, "L": second}
    cells = {"v": (row, first), "w": (row, second)}
    return Drawn("look_up_by_two", target, (row,), columns, cells)


def _select(table: TypedTable, rng: random.Random) -> Drawn:
    """The cells of the rows, at least two, that have a value."""
    target, key = draw_columns(table, rng, 2)
    row = rng.randrange(table.num_rows)
    rows = table.rows_like(row, key)
    need(2 <= len(rows) <= MOST_SELECTED and table.are_different(rows, target))
    return Drawn("select", target, rows, {"T": target, "K": key}, {"v": (row, key)})


def _other(table: TypedTable, rng: random.Random) -> Drawn:
    """The other of two rows that share a value."""
    target, key = draw_columns(table, rng, 2)
    row = pick(table.unique_rows(target), rng)
    rows = table.rows_like(row, key)
    need(len(rows) == 2 and table.are_different(rows, target))
    cells = {"a": (row, target), "v": (row, key)}
    return Drawn("other", target, (sum(rows) - row,), {"T": target, "K": key}, cells)


def _extreme(name: str, place: int, table: TypedTable, rng: random.Random) -> Drawn:
    """The cell of the row that has the largest or smallest number or date, or that one itself."""
    by = pick(table.select("number", "date"), rng)
    row = ordered_rows(table, by)[place]
    need(len(table.rows_like(row, by)) == 1)
    form = f"{name}_{table.columns[by].kind}"
    if rng.random() < 0.15:
        return Drawn(f"{form}_value", by, (row,), {"N": by})
    target = subject(table, rng, but=by)
    if rng.random() < 0.3:
        target = pick(table.select(but=by), rng)
    need(table.has_values((row,), target))
    return Drawn(form, target, (row,), {"T": target, "N": by})


def _position(table: TypedTable, rng: random.Random) -> Drawn:
    """The first or the last cell of a column, in the table's order."""
    target = subject(table, rng)
    name, row = rng.choice((("first", 0), ("last", table.num_rows - 1)))
    need(table.has_values((row,), target))
    return Drawn(f"position_{name}", target, (row,), {"T": target})


def _neighbour(table: TypedTable, rng: random.Random) -> Drawn:
    """The cell below or above another."""
    target = subject(table, rng)
    row = pick(table.unique_rows(target), rng)
    name, other = rng.choice((("next", row + 1), ("previous", row - 1)))
    need(0 <= other < table.num_rows and table.are_different((row, other), target))
    return Drawn(f"position_{name}", target, (other,), {"T": target}, {"a": (row, target)})


def _comparison(table: TypedTable, rng: random.Random) -> Drawn:
    """The one of two cells whose row has the larger or smaller number or date."""
    by, target = key_and_subject(table, rng, "number", "date")
    pair = two_rows(table, target, by, rng)
    order = ordered_rows(table, by)
    need(table.are_different(pair, by))
    name, operator, choose = rng.choice((("less", "LESS", min), ("more", "GREATER", max)))
    answer = table.columns[target].cells[choose(pair, key=order.index)]
    columns, cells = {"T": target, "N": by}, {"a": (pair[0], target), "b": (pair[1], target)}
    form = f"comparison_{name}_{table.columns[by].kind}"
    return Drawn(form, by, tuple(sorted(pair)), columns, cells, operator, answer)


def _draw_two(operation: str, table: TypedTable, rng: random.Random) -> Drawn:
    """The difference of two rows' numbers, or whether the first has more, less or as much."""
    by = pick(table.select("number", *(("date",) if operation == "is_more" else ())), rng)
    target = subject(table, rng, but=by)
    first, second = two_rows(table, target, by, rng)
    cells, columns = {"a": (first, target), "b": (second, target)}, {"N": by}
    pair = tuple(sorted((first, second)))
    if operation == "difference":
        one, other = numbers_of(table, (first, second), by)
        need(one != other)
        if one < other:
            cells = {"a": cells["b"], "b": cells["a"]}
        return Drawn("difference", by, pair, columns, cells, "DIFFERENCE")
    order = ordered_rows(table, by)
    is_same = second in table.rows_like(first, by)
    form, operator, holds = "is_equal", "IS_EQUAL", is_same
    if operation == "is_more":
        need(not is_same)
        name, operator = rng.choice((("more", "IS_GREATER"), ("less", "IS_LESS")))
        form = f"is_{name}_{table.columns[by].kind}"
        holds = (order.index(first) > order.index(second)) == (name == "more")
    return Drawn(form, by, pair, columns, cells, operator, "yes" if holds else "no")


def _extreme_where(table: TypedTable, rng: random.Random) -> Drawn:
    """The largest or smallest number of the rows, at least two, that have a value."""
    by = pick(table.select("number"), rng)
    key = pick(table.select("text", but=by), rng)
    row, rows = frequent_value(table, key, rng)
    need(len(rows) > 1 and table.has_values(rows, by))
    name, operator, choose = rng.choice((("largest", "MAX", max), ("smallest", "MIN", min)))
    answer = table.columns[by].cells[choose(rows, key=ordered_rows(table, by).index)]
    columns, cells = {"N": by, "K": key}, {"v": (row, key)}
    return Drawn(f"{name}_where", by, rows, columns, cells, operator, answer)


def _distinct(table: TypedTable, rng: random.Random) -> Drawn:
    """How many different values a column has."""
    key = pick(table.select("text"), rng)
    cells = table.columns[key].cells
    different = {cell.strip().lower() for cell in cells}
    need(all(cells) and len(different) < len(cells))
    rows, answer = tuple(range(table.num_rows)), str(len(different))
    return Drawn("distinct", key, rows, {"K": key}, {}, "DISTINCT", answer)


def _draw_yes_or_no(table: TypedTable, rng: random.Random) -> Drawn:
    """A question about a column of yes and no: of a row, or which rows, or how many."""
    key = pick([c for c in table.select("text") if says_yes_or_no(table, c)], rng)
    target = subject(table, rng, but=key)
    if rng.random() < 0.35:
        row = pick(table.unique_rows(target), rng)
        return Drawn("has", key, (row,), {"K": key}, {"a": (row, target)})
    row = rng.randrange(table.num_rows)
    rows = table.rows_like(row, key)
    is_yes = table.columns[key].cells[row].strip().lower() in YES
    form = "having" if is_yes else "not_having"
    columns = {"T": target, "K": key}
    need(table.has_values(rows, target))
    if rng.random() < 0.4:
        return Drawn(f"count_{form}", target, rows, columns, {}, "COUNT")
    need(table.are_different(rows, target) and len(rows) <= 2 * MOST_SELECTED)
    return Drawn(form, target, rows, columns)


def _amount(form: str, table: TypedTable, rng: random.Random) -> Drawn:
    """The number beside another cell, asked for by "how much" or "how many"."""
    numbers = table.select("number")
    if form == "amount":
        names = {c: table.columns[c].name.lower() for c in numbers}
        numbers = [c for c in numbers if any(amount in names[c] for amount in _OF_AMOUNTS)]
    target = pick(numbers, rng)
    key = subject(table, rng, but=target)
    row = pick(table.unique_rows(key), rng)
    need(table.has_values((row,), target))
    return Drawn(form, target, (row,), {"T": target}, {"v": (row, key)})


def _beyond(aggregation: str, table: TypedTable, rng: random.Random) -> Drawn:
    """The cells of the rows that have more, or less, than a number or date; or a count of them."""
    by, target = key_and_subject(table, rng, "number", "date")
    order = ordered_rows(table, by)
    name = rng.choice(("less", "more"))
    kind: str = table.columns[by].kind
    cells, words = {}, {}
    if rng.random() < 0.5:
        threshold = rng.choice(order)
        like = [order.index(row) for row in table.rows_like(threshold, by)]
        beyond = order[: min(like)] if name == "less" else order[max(like) + 1 :]
        cells = {"v": (threshold, by)}
    elif kind == "date":
        years = {row: date_in(table, row, by).year for row in order}
        need(None not in years.values())
        year = rng.choice([*years.values()])
        beyond = [row for row, y in years.items() if y != year and (y > year) == (name == "more")]  # type: ignore[operator]
        kind, words = "year", {"t": str(year)}
    else:
        at = rng.randrange(1, len(order))
        beyond = order[:at] if name == "less" else order[at:]
        text = round_between(*numbers_of(table, (order[at - 1], order[at]), by))
        kind, words = "round", {"t": text}
    rows = tuple(sorted(beyond))
    need(len(rows) > 0 and table.has_values(rows, target))
    if aggregation == "NONE":
        need(len(rows) <= MOST_SELECTED and table.are_different(rows, target))
    form = f"{'beyond' if aggregation == 'NONE' else 'count'}_{name}_{kind}"
    columns = {"T": target, "N": by}
    return Drawn(form, target, rows, columns, cells, aggregation, words=words)


def _within(table: TypedTable, rng: random.Random) -> Drawn:
    """The rows whose date is in a month or a year, how many they are, or a sum of theirs."""
    by, target = key_and_subject(table, rng, "date")
    dates = [date_in(table, row, by) for row in range(table.num_rows)]
    drawn = rng.choice(dates)
    months = [(date.year, date.month) for date in dates]
    if rng.random() < 0.5 and drawn.month and len({date.year for date in dates}) == 1:
        text = MONTHS[drawn.month - 1]
        text = text if rng.random() < 0.5 else f"{text} {drawn.year}"
        rows = tuple(row for row, month in enumerate(months) if month == months[dates.index(drawn)])
    else:
        need(drawn.year is not None and len({date.year for date in dates}) > 1)
        text, rows = str(drawn.year), tuple(r for r, d in enumerate(dates) if d.year == drawn.year)
    columns, words = {"T": target, "N": by}, {"t": text}
    need(table.has_values(rows, target))
    if rng.random() < 0.4:
        return Drawn("count_within", target, rows, columns, {}, "COUNT", words=words)
    numbers = table.select("number")
    if numbers and len(rows) > 1 and rng.random() < 0.4:
        summed = rng.choice(numbers)
        need(table.has_values(rows, summed))
        return Drawn("sum_within", summed, rows, {"M": summed}, {}, "SUM", words=words)
    need(len(rows) <= MOST_SELECTED and table.are_different(rows, target))
    return Drawn("within", target, rows, columns, words=words)


def _top(table: TypedTable, rng: random.Random) -> Drawn:
    """The cells of the two or three rows with the largest or smallest numbers."""
    by, target = key_and_subject(table, rng, "number")
    order = ordered_rows(table, by)
    number, name = rng.choice((2, 3)), rng.choice(("most", "least"))
    need(len(order) > number + 1 and table.are_different(order, by))
    rows = tuple(sorted(order[-number:] if name == "most" else order[:number]))
    need(table.are_different(rows, target))
    text = rng.choice((str(number), {2: "two", 3: "three"}[number]))
    return Drawn(f"top_{name}", target, rows, {"T": target, "N": by}, words={"t": text})


def _count(table: TypedTable, rng: random.Random) -> Drawn:
    """How many rows have a value."""
    key, target = key_and_subject(table, rng)
    row, rows = frequent_value(table, key, rng)
    need(len(rows) > 0 and table.has_values(rows, target))
    return Drawn("count", target, rows, {"T": target, "K": key}, {"v": (row, key)}, "COUNT")


def _count_of_value(table: TypedTable, rng: random.Random) -> Drawn:
    """How often a value stands in its column."""
    key = pick(table.select("text"), rng)
    row, rows = frequent_value(table, key, rng)
    need(len(rows) > 1)
    return Drawn("count_of_value", key, rows, {"K": key}, {"v": (row, key)}, "COUNT")


def _count_all(table: TypedTable, rng: random.Random) -> Drawn:
    """How many rows there are, by a column whose cells all differ."""
    rows = tuple(range(table.num_rows))
    target = pick([c for c in table.subjects() if table.are_different(rows, c)], rng)
    return Drawn("count_all", target, rows, {"T": target}, aggregation="COUNT")


def _total(aggregation: str, table: TypedTable, rng: random.Random) -> Drawn:
    """The sum or average of a column, over all rows or those that have a value."""
    target = pick(table.select("number"), rng)
    rows = tuple(range(table.num_rows))
    form, columns, cells = aggregation.lower(), {"N": target}, {}
    if rng.random() >= 0.4:
        key = pick(table.select(but=target), rng)
        row = rng.randrange(table.num_rows)
        rows = table.rows_like(row, key)
        form, columns, cells = f"{form}_where", columns | {"K": key}, {"v": (row, key)}
    need(len(rows) > 1 and table.has_values(rows, target))
    need(sum(map(abs, numbers_of(table, rows, target))) < _LARGEST_SUM)
    return Drawn(form, target, rows, columns, cells, aggregation)


_DRAWERS: Drawers = {
    "look_up": (28, _look_up),
    "look_up_by_two": (5, _look_up_by_two),
    "select": (5, _select),
    "other": (6, _other),
    "largest": (10, partial(_extreme, "largest", -1)),
    "smallest": (7, partial(_extreme, "smallest", 0)),
    "position": (5, _position),
    "neighbour": (8, _neighbour),
    "comparison": (7, _comparison),
    "beyond": (6, partial(_beyond, "NONE")),
    "within": (4, _within),
    "top": (2, _top),
    "count": (7, _count),
    "count_of_value": (3, _count_of_value),
    "count_beyond": (4, partial(_beyond, "COUNT")),
    "count_all": (3, _count_all),
    "sum": (6, partial(_total, "SUM")),
    "average": (5, partial(_total, "AVERAGE")),
    "difference": (5, partial(_draw_two, "difference")),
    "is_more": (3, partial(_draw_two, "is_more")),
    "is_equal": (1, partial(_draw_two, "is_equal")),
    "extreme_where": (2, _extreme_where),
    "distinct": (2, _distinct),
    "yes_and_no": (5, _draw_yes_or_no),
    "amount": (5, partial(_amount, "amount")),
    "how_many": (6, partial(_amount, "how_many")),
    **FACTS,
    **ALONG_ROWS,
}
OPERATIONS = tuple(_DRAWERS)
_DRAWERS |= FOLLOW_UPS  # where they are named
SHARES = {name: share for name, (share, _) in _DRAWERS.items()}


def draw(operation: str, table: TypedTable, rng: random.Random) -> Drawn | None:
    """A question of one of SHARES; None if none was found."""
    return draw_often(_ATTEMPTS, lambda: _DRAWERS[operation][1](table, rng))
