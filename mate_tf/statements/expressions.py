"""The grammar of statements: what a statement says of a table, as a tree.

A statement compares two expressions; an expression selects the value of a column, aggregates a
column, counts rows, takes a difference, or is a constant. Conditions choose the rows, and what they
compare a column with is an expression again, so that operations nest (Eisenschlos et al., 2020,
section 3.2; their operands of conditions are constants alone, and there are no differences).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

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
