"""Statements about a table as trees, and whether they are true, false or undefined.

A statement compares two expressions: the value of a column, an aggregate, a count of rows, a
difference, or a constant. Conditions choose the rows. They compare a column with an expression
again, so operations nest (Eisenschlos et al., 2020, section 3.2; there conditions have constants
alone, and there are no differences).

Numbers compare in single precision, as everywhere in this project. Sums, averages and differences
are first rounded to two decimals, as statements give them. Dates compare by the fields that both
have. Texts are equal or not, without regard to case and white space.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np

from experiments.synthesis.typed_table import NotDrawnError, TypedTable, Value
from mate_tf.features.english import normalize_for_match
from mate_tf.features.numeric import Date, ranks, text_values

Comparator = Literal["equal", "greater", "less"]
Aggregation = Literal["sum", "average", "minimum", "maximum", "range", "first", "last"]

COMPARATORS: tuple[Comparator, ...] = get_args(Comparator)
AGGREGATIONS: tuple[Aggregation, ...] = get_args(Aggregation)
# What a statement is counted under; see `operation_of`.
OPERATIONS = ("selection", "comparison", "count", *AGGREGATIONS, "difference", "nesting")
_OPPOSITES: dict[Comparator, Comparator] = {"greater": "less", "less": "greater"}
_DECIMALS = 2
_FEWEST_AGGREGATED = 2
_LARGEST_EXACT = 2.0**24


@dataclass(frozen=True)
class Constant:
    """A text, which counts as a number or a date if it is compared with one."""

    text: str


@dataclass(frozen=True)
class Condition:
    """The rows whose value in a column, counted from 0, compares so with an expression's value."""

    column: int
    comparator: Comparator
    operand: "Expression"


@dataclass(frozen=True)
class Select:
    """The one value that a column has in the rows that meet all conditions."""

    column: int
    conditions: tuple[Condition, ...]


@dataclass(frozen=True)
class Aggregate:
    """An aggregation of a column over the rows that meet all conditions, in the table's order."""

    aggregation: Aggregation
    column: int
    conditions: tuple[Condition, ...] = ()


@dataclass(frozen=True)
class Count:
    """The number of rows that meet all conditions."""

    conditions: tuple[Condition, ...]


@dataclass(frozen=True)
class Difference:
    """How far two numbers are apart, never negative."""

    left: "Expression"
    right: "Expression"


Expression = Constant | Select | Aggregate | Count | Difference


@dataclass(frozen=True)
class Statement:
    """Two expressions and how they compare."""

    left: Expression
    comparator: Comparator
    right: Expression

    @property
    def sides(self) -> tuple[Expression, Expression]:
        return self.left, self.right


class UndefinedError(NotDrawnError):
    """A statement is neither true nor false of a table."""


def parts(expression: Expression) -> Iterator[Expression]:
    """The expressions that an expression is made of, itself left out."""
    inner: tuple[Expression, ...] = ()
    if isinstance(expression, Difference):
        inner = (expression.left, expression.right)
    elif not isinstance(expression, Constant):
        inner = tuple(condition.operand for condition in expression.conditions)
    for part in inner:
        yield part
        yield from parts(part)


def operation_of(statement: Statement) -> str:
    """The one of OPERATIONS that a statement is counted under.

    It is "nesting" if a computed value chooses rows, or is compared with, or subtracted from, a
    computed value, but for two cells.
    """
    computed = [side for side in statement.sides if not isinstance(side, Constant)]
    are_cells = all(isinstance(side, Select) for side in computed)
    if any(map(_is_nested, statement.sides)) or (len(computed) > 1 and not are_cells):
        return "nesting"
    match computed[0] if computed else statement.left:
        case Aggregate(aggregation):
            return aggregation
        case Count():
            return "count"
        case Difference():
            return "difference"
    is_selection = len(computed) == 1 and statement.comparator == "equal"
    return "selection" if is_selection else "comparison"


def _is_nested(expression: Expression) -> bool:
    if isinstance(expression, Difference):
        inner = (expression.left, expression.right)
        return not all(isinstance(part, Select) and not _is_nested(part) for part in inner)
    return any(not isinstance(part, Constant) for part in parts(expression))


def variants(expression: Expression, table: TypedTable) -> Iterator[Expression]:
    """Expressions that differ in one thing: aggregation, column, a condition, or an operand."""
    match expression:
        case Difference(left, right):
            yield from (Difference(other, right) for other in variants(left, table))
            yield from (Difference(left, other) for other in variants(right, table))
            return
        case Constant():
            return
        case Aggregate():
            for aggregation in AGGREGATIONS:
                if aggregation != expression.aggregation:
                    yield replace(expression, aggregation=aggregation)
    if not isinstance(expression, Count):
        # With a condition on the column, "the Year where Year is 2004" would change nothing.
        taken = {condition.column for condition in expression.conditions}
        for column in table.select(table.columns[expression.column].kind, but=expression.column):
            if column not in taken:
                yield replace(expression, column=column)
    for i, condition in enumerate(expression.conditions):
        for other in _other_conditions(condition, table):
            conditions = (*expression.conditions[:i], other, *expression.conditions[i + 1 :])
            yield replace(expression, conditions=conditions)


def _other_conditions(condition: Condition, table: TypedTable) -> Iterator[Condition]:
    if condition.comparator in _OPPOSITES:
        yield replace(condition, comparator=_OPPOSITES[condition.comparator])
    if not isinstance(condition.operand, Constant):
        for other in variants(condition.operand, table):
            # The highest Points is a condition on Points alone.
            if not isinstance(other, Aggregate) or other.column == condition.column:
                yield replace(condition, operand=other)
        return
    column = table.columns[condition.column]
    for cell, value in dict(zip(column.cells, column.values, strict=True)).items():
        if value is not None and cell != condition.operand.text:
            yield replace(condition, operand=Constant(cell))


def execute(statement: Statement, table: TypedTable) -> bool:
    """Whether a statement is true of a table.

    UndefinedError for a selection of no rows or of different values, an aggregate of fewer than two
    rows or of a cell without a number, an order of texts, a comparison of different kinds, or a
    statement of constants alone.
    """
    left, right = statement.sides
    if isinstance(left, Constant):
        value = evaluate(right, table)
        return _compare(_operand(left, value, table), statement.comparator, value)
    value = evaluate(left, table)
    return _compare(value, statement.comparator, _operand(right, value, table))


def is_refuted(statement: Statement, table: TypedTable) -> bool:
    """Whether a statement is false of a table, or about a row that is not there (Russell, 1905)."""
    try:
        return not execute(statement, table)
    except UndefinedError:
        inner = (part for side in statement.sides for part in (side, *parts(side)))
        chosen = (part for part in inner if isinstance(part, (Select, Aggregate, Count)))
        return any(_selects_nothing(one, table) for part in chosen for one in part.conditions)


def _selects_nothing(condition: Condition, table: TypedTable) -> bool:
    if condition.comparator != "equal" or not isinstance(condition.operand, Constant):
        return False
    try:
        return not selected_rows((condition,), table)
    except UndefinedError:
        return False


def evaluate(expression: Expression, table: TypedTable) -> Value:
    """The value of an expression that is no constant; UndefinedError as `execute`."""
    match expression:
        case Select(column, conditions):
            values = _values(column, conditions, table)
            if not values or any(value != values[0] for value in values):
                raise UndefinedError(f"expected rows of one value, got {len(values)} rows")
            return values[0]
        case Aggregate(aggregation, column, conditions):
            return _aggregate(aggregation, _values(column, conditions, table))
        case Count(conditions):
            return float(len(selected_rows(conditions, table)))
        case Difference(left, right):
            first, second = _numbers([evaluate(side, table) for side in (left, right)])
            return round(abs(first - second), _DECIMALS)
    raise UndefinedError("expected an expression about the table, got a constant")


def selected_rows(conditions: Iterable[Condition], table: TypedTable) -> list[int]:
    """The rows that meet all conditions; UndefinedError as `execute`.

    A row without a value in a condition's column does not.
    """
    rows = list(range(table.num_rows))
    for condition in conditions:
        values = table.columns[condition.column].values
        present = [(row, value) for row in rows if (value := values[row]) is not None]
        if not present:
            return []
        operand = _operand(condition.operand, present[0][1], table)
        rows = [row for row, value in present if _compare(value, condition.comparator, operand)]
    return rows


def _aggregate(aggregation: Aggregation, values: list[Value]) -> Value:
    if len(values) < _FEWEST_AGGREGATED:
        raise UndefinedError(f"expected at least {_FEWEST_AGGREGATED} rows, got {len(values)}")
    if aggregation in ("first", "last"):
        return values[0 if aggregation == "first" else -1]
    if aggregation in ("minimum", "maximum"):
        return _extreme(values, is_largest=aggregation == "maximum")
    numbers = _numbers(values)
    if aggregation == "range":
        return round(max(numbers) - min(numbers), _DECIMALS)
    total = sum(numbers)
    return round(total / len(numbers) if aggregation == "average" else total, _DECIMALS)


def _extreme(values: list[Value], is_largest: bool) -> Value:
    ordered = ranks({i: value for i, value in enumerate(values) if not isinstance(value, str)})
    if len(ordered) < len(values):
        raise UndefinedError("expected values that have an order")
    first = min(ordered, key=lambda i: ordered[i][is_largest])
    tied = (i for i, rank in ordered.items() if rank[is_largest] == ordered[first][is_largest])
    if any(values[i] != values[first] for i in tied):  # such as 1940 and 14 July 1940
        raise UndefinedError("expected one value first, got several that are as far")
    return values[first]


def _values(column: int, conditions: Iterable[Condition], table: TypedTable) -> list[Value]:
    values = [table.columns[column].values[row] for row in selected_rows(conditions, table)]
    present = [value for value in values if value is not None]
    if len(present) < len(values):
        raise UndefinedError("expected a value in each row, got an empty cell")
    return present


def _numbers(values: list[Value]) -> list[float]:
    numbers = [value for value in values if isinstance(value, float)]
    if len(numbers) < len(values):
        raise UndefinedError("expected numbers")
    _check_exact(numbers)
    return numbers


def _check_exact(numbers: Iterable[float]) -> None:
    """Refuses numbers so large that two of them may be the same in single precision."""
    if any(abs(number) > _LARGEST_EXACT for number in numbers):
        raise UndefinedError(f"expected numbers up to {_LARGEST_EXACT:.0f}")


def _operand(expression: Expression, like: Value, table: TypedTable) -> Value:
    """An expression's value; a constant's as it is compared with another value."""
    if not isinstance(expression, Constant):
        return evaluate(expression, table)
    if isinstance(like, str):
        return normalize_for_match(expression.text)
    for value in text_values(expression.text):
        if type(value) is type(like):
            return value
    raise UndefinedError(f"expected a {type(like).__name__.lower()}, got {expression.text!r}")


def _compare(left: Value, comparator: Comparator, right: Value) -> bool:
    if isinstance(left, str) or isinstance(right, str):
        if comparator != "equal" or type(left) is not type(right):
            raise UndefinedError("expected values that have an order, got a text")
        return left == right
    if isinstance(left, Date) is not isinstance(right, Date):
        raise UndefinedError("expected two numbers or two dates, got one of each")
    if isinstance(left, float) and isinstance(right, float):
        _check_exact((left, right))
        first, second = float(np.float32(left)), float(np.float32(right))
    else:
        ordered = ranks({0: left, 1: right})
        if not ordered:
            raise UndefinedError("expected dates with fields in common")
        first, second = ordered[0][0], ordered[1][0]
    return {"equal": first == second, "greater": first > second, "less": first < second}[comparator]
