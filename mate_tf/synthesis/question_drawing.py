"""Draws questions of each operation from a table: what is asked, and which cells answer.

An operation is the kind of a question: what has to be done with a table to answer it. They are
those of WikiTableQuestions that one column's cells answer, selected, counted, added up or averaged
(Pasupat and Liang, 2015, table 3, but for differences, which are no such answer).
"""

import random
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from mate_tf.features.numeric import ranks
from mate_tf.synthesis.typed_table import TypedTable

_ATTEMPTS = 12
_MOST_SELECTED = 4  # cells that a question without aggregation has as its answer
_LARGEST_SUM = 1e7
_SHARE_OF_ALL_ROWS = 0.4  # of sums and averages


@dataclass(frozen=True)
class Drawn:
    """A question before it has words.

    Attributes:
        operation: one of OPERATIONS.
        column: of the cells that answer.
        rows: of these cells, ascending.
        aggregation: NONE, COUNT, SUM or AVERAGE.
        columns: those that the words name, by the name of their place.
        cells: the cells (row, column) that the words quote, likewise.
    """

    operation: str
    column: int
    rows: tuple[int, ...]
    aggregation: str = "NONE"
    columns: Mapping[str, int] = field(default_factory=dict)
    cells: Mapping[str, tuple[int, int]] = field(default_factory=dict)


class _NoneThereError(Exception):
    """The table has no such question, or the one that was drawn is none."""


def draw(operation: str, table: TypedTable, rng: random.Random) -> Drawn | None:
    """A question of one of OPERATIONS; None where none was found."""
    for _ in range(_ATTEMPTS):
        try:
            return _DRAWERS[operation](table, rng)
        except _NoneThereError:
            continue
    return None


def _look_up(table: TypedTable, rng: random.Random) -> Drawn:
    """The cell beside another one, whose value is in no other row."""
    target, key = _two_columns(table, rng)
    row = rng.choice(_some(_unique_rows(table, key)))
    _require(_has_value(table, row, target))
    return Drawn(
        "look_up", target, (row,), columns={"T": target, "K": key}, cells={"v": (row, key)}
    )


def _look_up_by_two(table: TypedTable, rng: random.Random) -> Drawn:
    """The cell in the one row that has two values, of which neither would do."""
    target, first, second = _columns(table, rng, 3)
    row = rng.randrange(table.num_rows)
    _require(all(_has_value(table, row, column) for column in (target, first, second)))
    with_first, with_second = (_rows_like(table, row, column) for column in (first, second))
    _require(len(with_first) > 1 and len(with_second) > 1)
    _require(set(with_first) & set(with_second) == {row})
    return Drawn(
        "look_up_by_two",
        target,
        (row,),
        columns={"T": target, "K": first, "L": second},
        cells={"v": (row, first), "w": (row, second)},
    )


def _select(table: TypedTable, rng: random.Random) -> Drawn:
    """The cells of all rows that have a value, of several rows."""
    target, key = _two_columns(table, rng)
    row = rng.randrange(table.num_rows)
    rows = _rows_like(table, row, key)
    _require(2 <= len(rows) <= _MOST_SELECTED and _are_different(table, rows, target))
    return Drawn("select", target, rows, columns={"T": target, "K": key}, cells={"v": (row, key)})


def _other(table: TypedTable, rng: random.Random) -> Drawn:
    """The other one of two rows that share a value."""
    target, key = _two_columns(table, rng)
    row = rng.choice(_some(_unique_rows(table, target)))
    rows = _rows_like(table, row, key)
    _require(len(rows) == 2 and _are_different(table, rows, target))
    other = sum(rows) - row
    return Drawn(
        "other",
        target,
        (other,),
        columns={"T": target, "K": key},
        cells={"a": (row, target), "v": (row, key)},
    )


def _extreme(operation: str, pick: Callable) -> Callable[[TypedTable, random.Random], Drawn]:
    def drawn(table: TypedTable, rng: random.Random) -> Drawn:
        by = rng.choice(_some(table.of_kind("number", "date")))
        order = _ordered_rows(table, by)
        row = pick(order)
        _require(len(_rows_like(table, row, by)) == 1)
        kind = table.columns[by].kind
        if rng.random() < 0.15:  # the value itself
            return Drawn(f"{operation}_{kind}_value", by, (row,), columns={"N": by})
        target = rng.choice(_some([c for c in table.of_kind() if c != by]))
        _require(_has_value(table, row, target))
        return Drawn(f"{operation}_{kind}", target, (row,), columns={"T": target, "N": by})

    return drawn


def _position(table: TypedTable, rng: random.Random) -> Drawn:
    """The first or the last cell of a column, as the table has it."""
    target = rng.choice(_some(_subjects(table)))
    name, row = rng.choice((("first", 0), ("last", table.num_rows - 1)))
    _require(_has_value(table, row, target))
    return Drawn(f"position_{name}", target, (row,), columns={"T": target})


def _neighbour(table: TypedTable, rng: random.Random) -> Drawn:
    """The cell below or above another."""
    target = rng.choice(_some(_subjects(table)))
    row = rng.choice(_some(_unique_rows(table, target)))
    name, other = rng.choice((("next", row + 1), ("previous", row - 1)))
    _require(0 <= other < table.num_rows and _has_value(table, other, target))
    _require(_are_different(table, (row, other), target))
    return Drawn(
        f"position_{name}", target, (other,), columns={"T": target}, cells={"a": (row, target)}
    )


def _comparison(table: TypedTable, rng: random.Random) -> Drawn:
    """The one of two cells whose row has the larger or smaller number."""
    by = rng.choice(_some(table.of_kind("number", "date")))
    target = rng.choice(_some([c for c in _subjects(table) if c != by]))
    rows = [row for row in _unique_rows(table, target) if _has_value(table, row, by)]
    _require(len(rows) >= 2)
    pair = rng.sample(rows, 2)
    order = _ordered_rows(table, by)
    _require(all(row in order for row in pair))
    _require(_are_different(table, tuple(pair), by))
    name, row = rng.choice(
        (("less", min(pair, key=order.index)), ("more", max(pair, key=order.index)))
    )
    return Drawn(
        f"comparison_{name}_{table.columns[by].kind}",
        target,
        (row,),
        columns={"T": target, "N": by},
        cells={"a": (pair[0], target), "b": (pair[1], target)},
    )


def _beyond(table: TypedTable, rng: random.Random) -> Drawn:
    """The cells of the few rows that have more, or less, than some cell's number."""
    target, by, threshold, name, rows = _beyond_rows(table, rng)
    _require(1 <= len(rows) <= _MOST_SELECTED and _are_different(table, rows, target))
    return Drawn(
        f"beyond_{name}_{table.columns[by].kind}",
        target,
        rows,
        columns={"T": target, "N": by},
        cells={"v": (threshold, by)},
    )


def _count_beyond(table: TypedTable, rng: random.Random) -> Drawn:
    target, by, threshold, name, rows = _beyond_rows(table, rng)
    _require(len(rows) > 0)
    return Drawn(
        f"count_{name}_{table.columns[by].kind}",
        target,
        rows,
        "COUNT",
        columns={"T": target, "N": by},
        cells={"v": (threshold, by)},
    )


def _count(table: TypedTable, rng: random.Random) -> Drawn:
    """How many rows have a value; one that many have rather than one that few have."""
    key = rng.choice(_some(table.of_kind()))
    target = rng.choice(_some([c for c in _subjects(table) if c != key]))
    candidates = [rng.randrange(table.num_rows) for _ in range(4)]
    row = max(candidates, key=lambda r: len(_rows_like(table, r, key)))
    rows = _rows_like(table, row, key)
    _require(len(rows) > 0 and all(_has_value(table, r, target) for r in rows))
    return Drawn(
        "count", target, rows, "COUNT", columns={"T": target, "K": key}, cells={"v": (row, key)}
    )


def _count_of_value(table: TypedTable, rng: random.Random) -> Drawn:
    """How often a value stands in its column."""
    key = rng.choice(_some(table.of_kind("text")))
    candidates = [rng.randrange(table.num_rows) for _ in range(4)]
    row = max(candidates, key=lambda r: len(_rows_like(table, r, key)))
    rows = _rows_like(table, row, key)
    _require(len(rows) > 1)
    return Drawn("count_of_value", key, rows, "COUNT", columns={"K": key}, cells={"v": (row, key)})


def _count_all(table: TypedTable, rng: random.Random) -> Drawn:
    """How many rows there are, by a column whose cells all differ."""
    columns = [c for c in _subjects(table) if len(_unique_rows(table, c)) == table.num_rows]
    target = rng.choice(_some(columns))
    rows = tuple(range(table.num_rows))
    return Drawn("count_all", target, rows, "COUNT", columns={"T": target})


def _total(aggregation: str) -> Callable[[TypedTable, random.Random], Drawn]:
    def drawn(table: TypedTable, rng: random.Random) -> Drawn:
        target = rng.choice(_some(table.of_kind("number")))
        rows = tuple(range(table.num_rows))
        columns, cells = {"N": target}, {}
        operation = aggregation.lower()
        if rng.random() >= _SHARE_OF_ALL_ROWS:
            key = rng.choice(_some([c for c in table.of_kind() if c != target]))
            row = rng.randrange(table.num_rows)
            rows = _rows_like(table, row, key)
            columns |= {"K": key}
            cells = {"v": (row, key)}
            operation = f"{operation}_where"
        _require(len(rows) > 1 and all(_has_value(table, row, target) for row in rows))
        total = sum(abs(number(table, row, target)) for row in rows)
        _require(total < _LARGEST_SUM)
        return Drawn(operation, target, rows, aggregation, columns=columns, cells=cells)

    return drawn


_DRAWERS: dict[str, Callable[[TypedTable, random.Random], Drawn]] = {
    "look_up": _look_up,
    "look_up_by_two": _look_up_by_two,
    "select": _select,
    "other": _other,
    "largest": _extreme("largest", lambda order: order[-1]),
    "smallest": _extreme("smallest", lambda order: order[0]),
    "position": _position,
    "neighbour": _neighbour,
    "comparison": _comparison,
    "beyond": _beyond,
    "count": _count,
    "count_of_value": _count_of_value,
    "count_beyond": _count_beyond,
    "count_all": _count_all,
    "sum": _total("SUM"),
    "average": _total("AVERAGE"),
}
OPERATIONS = tuple(_DRAWERS)


def number(table: TypedTable, row: int, column: int) -> float:
    """The number in a cell of a column of numbers."""
    value = table.columns[column].values[row]
    assert isinstance(value, float)
    return value


def _beyond_rows(
    table: TypedTable, rng: random.Random
) -> tuple[int, int, int, str, tuple[int, ...]]:
    """A column, a column of numbers or dates, a row of it, and the rows beyond that one."""
    by = rng.choice(_some(table.of_kind("number", "date")))
    target = rng.choice(_some([c for c in _subjects(table) if c != by]))
    order = _ordered_rows(table, by)
    threshold = rng.choice(order)
    alike = set(_rows_like(table, threshold, by))
    at = [index for index, row in enumerate(order) if row in alike]
    name, rows = rng.choice((("less", order[: at[0]]), ("more", order[at[-1] + 1 :])))
    _require(all(_has_value(table, row, target) for row in rows))
    return target, by, threshold, name, tuple(sorted(rows))


def _ordered_rows(table: TypedTable, column: int) -> list[int]:
    """The rows with a value, from the smallest to the largest; all have one, or it is no order."""
    values = table.columns[column].values
    present = {row: value for row, value in enumerate(values) if value is not None}
    order = ranks({row: value for row, value in present.items() if not isinstance(value, str)})
    _require(len(order) == len(present) >= 2)
    return sorted(present, key=lambda row: order[row][0])


def _subjects(table: TypedTable) -> list[int]:
    """The columns that rows may be called by: those of texts, or else all."""
    return table.of_kind("text") or table.of_kind()


def _two_columns(table: TypedTable, rng: random.Random) -> tuple[int, int]:
    first, second = _columns(table, rng, 2)
    return first, second


def _columns(table: TypedTable, rng: random.Random, count: int) -> list[int]:
    columns = table.of_kind()
    _require(len(columns) >= count)
    return rng.sample(columns, count)


def _rows_like(table: TypedTable, row: int, column: int) -> tuple[int, ...]:
    """The rows whose value in a column is that of a row; none where it has none."""
    values = table.columns[column].values
    if values[row] is None:
        return ()
    return tuple(other for other, value in enumerate(values) if value == values[row])


def _unique_rows(table: TypedTable, column: int) -> list[int]:
    """The rows whose value in a column no other row has."""
    values = table.columns[column].values
    times = Counter(value for value in values if value is not None)
    return [row for row, value in enumerate(values) if value is not None and times[value] == 1]


def _are_different(table: TypedTable, rows: tuple[int, ...], column: int) -> bool:
    """Whether some rows all have a value in a column, each another one."""
    values = [table.columns[column].values[row] for row in rows]
    return None not in values and len(set(values)) == len(values)


def _has_value(table: TypedTable, row: int, column: int) -> bool:
    return table.columns[column].values[row] is not None


def _some(choices: list) -> list:
    _require(bool(choices))
    return choices


def _require(condition: bool) -> None:
    if not condition:
        raise _NoneThereError
