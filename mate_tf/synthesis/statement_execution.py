"""Executes a statement on a table: true, false, or undefined.

Numbers compare in single precision, as everywhere in this project; sums, averages and differences
are first rounded to two decimals, as statements give them. Dates compare by the fields that both
have, texts by equality alone, without regard to case and white space.

The grammar of statements: what a statement says of a table, as a tree.

A statement compares two expressions; an expression selects the value of a column, aggregates a
column, counts rows, takes a difference, or is a constant. Conditions choose the rows, and what they
compare a column with is an expression again, so that operations nest (Eisenschlos et al., 2020,
section 3.2; their operands of conditions are constants alone, and there are no differences).
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

from mate_tf.features.normalization import normalize_for_match
from mate_tf.features.numeric import Date, ranks, text_values
from mate_tf.synthesis.typed_table import TypedTable, Value

Comparator = Literal["equal", "greater", "less"]
Aggregation = Literal["sum", "average", "minimum", "maximum"]

AGGREGATIONS: tuple[Aggregation, ...] = ("sum", "average", "minimum", "maximum")
# What a statement is called by; see `operation_of`.
OPERATIONS = ("selection", "comparison", "count", *AGGREGATIONS, "difference", "nesting")


@dataclass(frozen=True)
class Constant:
    """A text, which is a number or a date where it is compared with one."""

    text: str


@dataclass(frozen=True)
class Condition:
    """Rows whose value in a column, counted from 0, compares with an expression's."""

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
    """Sum, average, minimum or maximum of a column over the rows that meet all conditions."""

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


def parts(expression: Expression) -> Iterator[Expression]:
    """The expressions that one is made of, itself left out."""
    if isinstance(expression, Difference):
        inner: tuple[Expression, ...] = (expression.left, expression.right)
    elif isinstance(expression, Constant):
        inner = ()
    else:
        inner = tuple(condition.operand for condition in expression.conditions)
    for part in inner:
        yield part
        yield from parts(part)


def operation_of(statement: Statement) -> str:
    """The one of OPERATIONS that a statement is counted under.

    That is "nesting" where an operation works on what another one gives: where rows are chosen by
    what is computed, or what is computed is compared with, or taken from, what is computed. The
    values of two cells that are compared, or taken from each other, are no such thing.
    """
    sides = (statement.left, statement.right)
    if any(_is_nested(side) for side in sides):
        return "nesting"
    computed = [side for side in sides if not isinstance(side, Constant)]
    if len(computed) > 1 and not all(isinstance(side, Select) for side in computed):
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


DECIMALS = 2
_FEWEST_AGGREGATED = 2
_LARGEST_EXACT = 2.0**24


class UndefinedError(ValueError):
    """A statement is neither true nor false of a table."""


def execute(statement: Statement, table: TypedTable) -> bool:
    """Whether a statement is true of a table.

    Raises:
        UndefinedError: if it is undefined: a selection of no rows or of different values, an
            aggregate of fewer than two rows or of a cell without a number, an order of texts, a
            comparison of different kinds, or nothing that is of the table.
    """
    left, right = statement.left, statement.right
    if isinstance(left, Constant):
        if isinstance(right, Constant):
            raise UndefinedError("expected an expression about the table, got two constants")
        value = evaluate(right, table)
        return _compare(_constant(left, value), statement.comparator, value)
    value = evaluate(left, table)
    return _compare(value, statement.comparator, _operand(right, value, table))


def is_refuted(statement: Statement, table: TypedTable) -> bool:
    """Whether a statement is false of a table, or of a row that is not there (Russell, 1905)."""
    try:
        return not execute(statement, table)
    except UndefinedError:
        sides = (statement.left, statement.right)
        return any(
            _selects_nothing(condition, table)
            for side in sides
            for part in (side, *parts(side))
            if isinstance(part, (Select, Aggregate, Count))
            for condition in part.conditions
        )


def _selects_nothing(condition: Condition, table: TypedTable) -> bool:
    if condition.comparator != "equal" or not isinstance(condition.operand, Constant):
        return False
    try:
        return not selected_rows((condition,), table)
    except UndefinedError:
        return False


def evaluate(expression: Expression, table: TypedTable) -> Value:
    """The value of an expression other than a constant.

    Raises:
        UndefinedError: as `execute`.
    """
    match expression:
        case Select(column, conditions):
            values = _values(column, conditions, table)
            if not values or any(value != values[0] for value in values):
                raise UndefinedError(f"expected rows of one value, got {len(values)} rows")
            return values[0]
        case Aggregate():
            return _aggregate(expression, table)
        case Count(conditions):
            return float(len(selected_rows(conditions, table)))
        case Difference(left, right):
            sides = [evaluate(side, table) for side in (left, right)]
            numbers = _numbers(sides)
            return round(abs(numbers[0] - numbers[1]), DECIMALS)
    raise UndefinedError("expected an expression about the table, got a constant")


def selected_rows(conditions: Iterable[Condition], table: TypedTable) -> list[int]:
    """The rows that meet all conditions; one without a value in a condition's column does not.

    Raises:
        UndefinedError: as `execute`.
    """
    rows = list(range(table.num_rows))
    for condition in conditions:
        values = table.columns[condition.column].values
        present = [row for row in rows if values[row] is not None]
        if not present:
            return []
        operand = _operand(condition.operand, _present(values[present[0]]), table)
        rows = [
            row for row in present if _compare(_present(values[row]), condition.comparator, operand)
        ]
    return rows


def _aggregate(expression: Aggregate, table: TypedTable) -> Value:
    values = _values(expression.column, expression.conditions, table)
    if len(values) < _FEWEST_AGGREGATED:
        raise UndefinedError(f"expected at least {_FEWEST_AGGREGATED} rows, got {len(values)}")
    if expression.aggregation in ("minimum", "maximum"):
        return _extreme(values, is_largest=expression.aggregation == "maximum")
    total = sum(_numbers(values))
    if expression.aggregation == "average":
        total /= len(values)
    return round(total, DECIMALS)


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
    values = table.columns[column].values
    return [_present(values[row]) for row in selected_rows(conditions, table)]


def _present(value: Value | None) -> Value:
    if value is None:
        raise UndefinedError("expected a value in each row, got an empty cell")
    return value


def _numbers(values: Iterable[Value]) -> list[float]:
    values = list(values)
    numbers = [value for value in values if isinstance(value, float)]
    if len(numbers) < len(values):
        raise UndefinedError("expected numbers")
    _check_exact(numbers)
    return numbers


def _check_exact(numbers: Iterable[float]) -> None:
    """Refuses numbers so large that a cell's, in single precision, may be another's."""
    if any(abs(number) > _LARGEST_EXACT for number in numbers):
        raise UndefinedError(f"expected numbers up to {_LARGEST_EXACT:.0f}")


def _operand(expression: Expression, value: Value, table: TypedTable) -> Value:
    if isinstance(expression, Constant):
        return _constant(expression, value)
    return evaluate(expression, table)


def _constant(constant: Constant, like: Value) -> Value:
    """What a constant is where it is compared with a value."""
    if isinstance(like, str):
        return normalize_for_match(constant.text)
    for value in text_values(constant.text):
        if type(value) is type(like):
            return value
    raise UndefinedError(f"expected a {type(like).__name__.lower()}, got {constant.text!r}")


def _compare(left: Value, comparator: Comparator, right: Value) -> bool:
    if isinstance(left, str) or isinstance(right, str):
        if comparator != "equal" or type(left) is not type(right):
            raise UndefinedError("expected values that have an order, got a text")
        return left == right
    if isinstance(left, Date) is not isinstance(right, Date):
        raise UndefinedError("expected two numbers or two dates, got one of each")
    of_left, of_right = _ranks(left, right)
    if comparator == "equal":
        return of_left == of_right
    return of_left > of_right if comparator == "greater" else of_left < of_right


def _ranks(left: float | Date, right: float | Date) -> tuple[float, float]:
    """Two numbers in the order of both."""
    if isinstance(left, float) and isinstance(right, float):
        _check_exact((left, right))
        return _single(left), _single(right)
    ordered = ranks({0: left, 1: right})
    if not ordered:
        raise UndefinedError("expected dates with fields in common")
    return ordered[0][0], ordered[1][0]


def _single(number: float) -> float:
    return float(np.float32(number))
