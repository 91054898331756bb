"""Expressions that differ from one in a single thing: an aggregation, a column, a condition..."""

from collections.abc import Iterator
from dataclasses import replace

from mate_tf.statements.expressions import (
    AGGREGATIONS,
    Aggregate,
    Comparator,
    Condition,
    Constant,
    Count,
    Difference,
    Expression,
    Select,
)
from mate_tf.statements.typed_table import TypedTable

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
