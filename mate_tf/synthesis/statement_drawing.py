"""Draws true statements of each operation from a table.

Expressions that differ from one in a single thing: an aggregation, a column, a condition...
"""

import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import get_args

from mate_tf.synthesis.statement_execution import (
    AGGREGATIONS,
    Aggregate,
    Aggregation,
    Comparator,
    Condition,
    Constant,
    Count,
    Difference,
    Expression,
    Select,
    Statement,
    UndefinedError,
    execute,
    operation_of,
    selected_rows,
)
from mate_tf.synthesis.statement_wording import constant_text
from mate_tf.synthesis.typed_table import TypedTable

_OPPOSITES: dict[Comparator, Comparator] = {"greater": "less", "less": "greater"}


def variants(expression: Expression, table: TypedTable) -> Iterator[Expression]:
    """Expressions with another aggregation, column, condition, or operand of one."""
    match expression:
        case Aggregate():
            for aggregation in AGGREGATIONS:
                if aggregation != expression.aggregation:
                    yield replace(expression, aggregation=aggregation)
            yield from _with_other_column(expression, table)
            yield from _with_other_conditions(expression, table)
        case Select():
            yield from _with_other_column(expression, table)
            yield from _with_other_conditions(expression, table)
        case Count():
            yield from _with_other_conditions(expression, table)
        case Difference(left, right):
            yield from (Difference(other, right) for other in variants(left, table))
            yield from (Difference(left, other) for other in variants(right, table))


def _with_other_column(expression: Select | Aggregate, table: TypedTable) -> Iterator[Expression]:
    # A condition on the new column, such as the Year of the Year 2004, would be no change to judge.
    taken = {condition.column for condition in expression.conditions} | {expression.column}
    for column in table.of_kind(table.columns[expression.column].kind):
        if column not in taken:
            yield replace(expression, column=column)


def _with_other_conditions(
    expression: Select | Aggregate | Count, table: TypedTable
) -> Iterator[Expression]:
    for i, condition in enumerate(expression.conditions):
        for other in _other_conditions(condition, table):
            conditions = (*expression.conditions[:i], other, *expression.conditions[i + 1 :])
            yield replace(expression, conditions=conditions)


def _other_conditions(condition: Condition, table: TypedTable) -> Iterator[Condition]:
    column = table.columns[condition.column]
    if condition.comparator in _OPPOSITES:
        yield replace(condition, comparator=_OPPOSITES[condition.comparator])
    if not isinstance(condition.operand, Constant):
        yield from (
            replace(condition, operand=other)
            for other in variants(condition.operand, table)
            # The highest Points is a condition on Points alone.
            if not isinstance(other, Aggregate) or other.column == condition.column
        )
        return
    for cell, value in dict(zip(column.cells, column.values, strict=True)).items():
        if value is not None and cell != condition.operand.text:
            yield replace(condition, operand=Constant(cell))


_ATTEMPTS = 30
_COUNTS_DRAWN = 6
_SHARE_OF_EQUALITIES = 0.7
_SHARE_OF_FILTERED = 0.4
_SHARE_OF_SECOND_CONDITIONS = 0.15


def draw_true(operation: str, table: TypedTable, rng: random.Random) -> Statement | None:
    """A true statement of an operation (`operation_of`); None where none was found.

    Args:
        operation: one of OPERATIONS.
        table: what it is about.
        rng: draws it.
    """
    for _ in range(_ATTEMPTS):
        try:
            statement = _DRAWERS[operation](table, rng)
            if operation_of(statement) == operation and execute(statement, table):
                return statement
        except (UndefinedError, _NoneThereError):
            continue
    return None


class _NoneThereError(Exception):
    """The table has no such column, or none but one."""


def _selection(table: TypedTable, rng: random.Random) -> Statement:
    left = _select(rng.choice(_some(table.of_kind())), table, rng)
    return Statement(left, "equal", Constant(constant_text(left, table)))


def _comparison(table: TypedTable, rng: random.Random) -> Statement:
    column = rng.choice(_some(table.of_kind("number", "date")))
    left = _select(column, table, rng)
    if rng.random() < 0.5:
        return _ordered(left, _select(column, table, rng), table, rng)
    return _ordered(left, Constant(rng.choice(table.columns[column].cells)), table, rng)


def _count(table: TypedTable, rng: random.Random) -> Statement:
    return _about(_count_of_rows(table, rng), table, rng)


def _count_of_rows(table: TypedTable, rng: random.Random) -> Count:
    """Counts rows; of several counts one whose value is drawn, for most of them would be 1."""
    by_value: dict[int, Count] = {}
    for _ in range(_COUNTS_DRAWN):
        count = Count(_conditions(table, rng))
        by_value.setdefault(len(selected_rows(count.conditions, table)), count)
    return by_value[rng.choice(sorted(by_value))]


def _aggregate(aggregation: Aggregation) -> Callable[[TypedTable, random.Random], Statement]:
    def draw(table: TypedTable, rng: random.Random) -> Statement:
        return _about(_aggregate_of(aggregation, table, rng), table, rng)

    return draw


def _aggregate_of(aggregation: Aggregation, table: TypedTable, rng: random.Random) -> Aggregate:
    with_dates = aggregation in ("minimum", "maximum")
    columns = table.of_kind("number", "date") if with_dates else table.of_kind("number")
    column = rng.choice(_some(columns))
    is_filtered = rng.random() < _SHARE_OF_FILTERED
    conditions = _conditions(table, rng, but=column) if is_filtered else ()
    return Aggregate(aggregation, column, conditions)


def _difference(table: TypedTable, rng: random.Random) -> Statement:
    column = rng.choice(_some(table.of_kind("number")))
    left, right = _select(column, table, rng), _select(column, table, rng)
    return _about(Difference(left, right), table, rng)


def _nesting(table: TypedTable, rng: random.Random) -> Statement:
    return rng.choice(_NESTINGS)(table, rng)


def _selection_of_extreme(table: TypedTable, rng: random.Random) -> Statement:
    by = rng.choice(_some(table.of_kind("number", "date")))
    column = rng.choice(_some([column for column in table.of_kind() if column != by]))
    extreme = Aggregate(rng.choice(("minimum", "maximum")), by)
    left = Select(column, (Condition(by, "equal", extreme),))
    return Statement(left, "equal", Constant(constant_text(left, table)))


def _count_beside_average(table: TypedTable, rng: random.Random) -> Statement:
    return _about(Count((_beside_average(table, rng),)), table, rng)


def _aggregate_beside_average(table: TypedTable, rng: random.Random) -> Statement:
    condition = _beside_average(table, rng)
    columns = [column for column in table.of_kind("number") if column != condition.column]
    aggregation = rng.choice(get_args(Aggregation))
    return _about(Aggregate(aggregation, rng.choice(_some(columns)), (condition,)), table, rng)


def _range(table: TypedTable, rng: random.Random) -> Statement:
    column = rng.choice(_some(table.of_kind("number")))
    sides = (Aggregate("maximum", column), Aggregate("minimum", column))
    return _about(Difference(*sides), table, rng)


def _two_aggregates(table: TypedTable, rng: random.Random) -> Statement:
    left = _aggregate_of(rng.choice(get_args(Aggregation)), table, rng)
    # Of the same aggregation: that a maximum is above the minimum needs no table.
    others = [
        other
        for other in variants(left, table)
        if isinstance(other, Aggregate) and other.aggregation == left.aggregation
    ]
    return _ordered(left, rng.choice(_some(others)), table, rng)


def _two_counts(table: TypedTable, rng: random.Random) -> Statement:
    return _ordered(_count_of_rows(table, rng), _count_of_rows(table, rng), table, rng)


def _cell_beside_aggregate(table: TypedTable, rng: random.Random) -> Statement:
    column = rng.choice(_some(table.of_kind("number")))
    return _ordered(_select(column, table, rng), Aggregate("average", column), table, rng)


_DRAWERS: dict[str, Callable[[TypedTable, random.Random], Statement]] = {
    "selection": _selection,
    "comparison": _comparison,
    "count": _count,
    **{aggregation: _aggregate(aggregation) for aggregation in get_args(Aggregation)},
    "difference": _difference,
    "nesting": _nesting,
}
_NESTINGS = (
    _selection_of_extreme,
    _count_beside_average,
    _aggregate_beside_average,
    _range,
    _two_aggregates,
    _two_counts,
    _cell_beside_aggregate,
)


def _about(left: Expression, table: TypedTable, rng: random.Random) -> Statement:
    """Compares an expression with a constant: its value, or one that a variant of it has."""
    if rng.random() < _SHARE_OF_EQUALITIES:
        return Statement(left, "equal", Constant(constant_text(left, table)))
    other = rng.choice(_some(list(variants(left, table))))
    return _ordered(left, Constant(constant_text(other, table)), table, rng)


def _ordered(
    left: Expression, right: Expression, table: TypedTable, rng: random.Random
) -> Statement:
    """Compares two expressions as they do compare."""
    if left == right:
        raise _NoneThereError
    if rng.random() < 0.5 and not isinstance(right, Constant):
        left, right = right, left
    comparators: list[Comparator] = list(get_args(Comparator))
    if isinstance(right, Constant):
        comparators.remove("equal")
    for comparator in comparators:
        statement = Statement(left, comparator, right)
        if execute(statement, table):
            return statement
    raise _NoneThereError


def _select(column: int, table: TypedTable, rng: random.Random) -> Select:
    """Selects the value of a random row, by its value in another column."""
    row = rng.randrange(table.num_rows)
    others = [other for other in table.of_kind() if other != column]
    by = [rng.choice(_some(others))]
    others.remove(by[0])
    if others and rng.random() < _SHARE_OF_SECOND_CONDITIONS:
        by.append(rng.choice(others))
    return Select(column, tuple(_equal(key, row, table) for key in by))


def _equal(column: int, row: int, table: TypedTable) -> Condition:
    if table.columns[column].values[row] is None:
        raise _NoneThereError
    return Condition(column, "equal", Constant(table.columns[column].cells[row]))


def _conditions(
    table: TypedTable, rng: random.Random, but: int | None = None
) -> tuple[Condition, ...]:
    """One or two conditions of a random row's cells, on other columns than one."""
    columns = [column for column in table.of_kind() if column != but]
    number = 2 if rng.random() < _SHARE_OF_SECOND_CONDITIONS else 1
    row = rng.randrange(table.num_rows)
    conditions = []
    for column in rng.sample(columns, min(number, len(_some(columns)))):
        condition = _equal(column, row, table)
        if table.columns[column].kind != "text" and rng.random() < 0.7:
            comparator: Comparator = rng.choice(("greater", "less"))
            condition = Condition(column, comparator, condition.operand)
        conditions.append(condition)
    return tuple(conditions)


def _beside_average(table: TypedTable, rng: random.Random) -> Condition:
    column = rng.choice(_some(table.of_kind("number")))
    comparator: Comparator = rng.choice(("greater", "less"))
    return Condition(column, comparator, Aggregate("average", column))


def _some(columns: list) -> list:
    if not columns:
        raise _NoneThereError
    return columns
