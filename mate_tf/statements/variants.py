"""Statements that differ from one in a single thing: a constant, a column, an aggregation...

A false statement is a true one so changed and executed again (Eisenschlos et al., 2020, change the
constant of a side alone).
"""

import random
from collections.abc import Callable, Iterator
from dataclasses import replace

from mate_tf.statements.execution import UndefinedError, execute
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
    Statement,
    operation_of,
)
from mate_tf.statements.typed_table import TypedTable
from mate_tf.statements.wording import constant_text
from mate_tf.tables.normalization import normalize_for_match

CHANGES = ("absent", "constant", "left", "right", "comparator")
_SHARE_OF_ABSENT = 0.5
_OPPOSITES: dict[Comparator, Comparator] = {"greater": "less", "less": "greater"}


def falsified(
    statement: Statement, table: TypedTable, other_rows: TypedTable | None, rng: random.Random
) -> tuple[str, Statement] | None:
    """A false statement of the same operation that differs from a true one in a single thing.

    What is changed is drawn first, so that no kind of change is rarer for having fewer ways, except
    that every second change, where it can be, is to a constant that is nowhere in the table.

    Args:
        statement: the true one.
        table: what it is about.
        other_rows: of the same columns, whose values are such constants; None where there are none.
        rng: draws the change.

    Returns:
        One of CHANGES and the statement; None where no change makes it false.
    """
    order = [change for change in CHANGES if change != "absent"]
    rng.shuffle(order)
    if rng.random() < _SHARE_OF_ABSENT:
        order.insert(0, "absent")
    for change in order:
        about = other_rows if change == "absent" else table
        if about is None:
            continue
        candidates = list(_CHANGED[change](statement, about))
        rng.shuffle(candidates)
        for candidate in candidates:
            if change == "absent" and _mentions(table, candidate.right):
                continue
            if operation_of(candidate) == operation_of(statement) and _is_false(candidate, table):
                return change, candidate
    return None


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


def _other_constants(statement: Statement, table: TypedTable) -> Iterator[Statement]:
    """The value of a variant of the left side, in place of its own, or another number of rows."""
    if not isinstance(statement.right, Constant):
        return
    if isinstance(statement.left, Select):
        column = table.columns[statement.left.column]
        for cell, value in dict(zip(column.cells, column.values, strict=True)).items():
            if value is not None:
                yield replace(statement, right=Constant(cell))
        return
    texts = set()
    for variant in variants(statement.left, table):
        try:
            texts.add(constant_text(variant, table))
        except UndefinedError:
            continue
    if isinstance(statement.left, Count):
        texts |= set(map(str, range(table.num_rows + 1)))
        if statement.comparator == "less":
            texts.discard("0")  # what needs no table
    yield from (replace(statement, right=Constant(text)) for text in sorted(texts))


def _other_left(statement: Statement, table: TypedTable) -> Iterator[Statement]:
    yield from (replace(statement, left=other) for other in variants(statement.left, table))


def _other_right(statement: Statement, table: TypedTable) -> Iterator[Statement]:
    yield from (replace(statement, right=other) for other in variants(statement.right, table))


def _opposite(statement: Statement, table: TypedTable) -> Iterator[Statement]:
    if statement.comparator in _OPPOSITES:
        yield replace(statement, comparator=_OPPOSITES[statement.comparator])


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


def _is_false(statement: Statement, table: TypedTable) -> bool:
    try:
        return not execute(statement, table)
    except UndefinedError:
        return False


def _mentions(table: TypedTable, expression: Expression) -> bool:
    cells = {normalize_for_match(cell) for column in table.columns for cell in column.cells}
    return isinstance(expression, Constant) and normalize_for_match(expression.text) in cells


_CHANGED: dict[str, Callable[[Statement, TypedTable], Iterator[Statement]]] = {
    "absent": _other_constants,
    "constant": _other_constants,
    "left": _other_left,
    "right": _other_right,
    "comparator": _opposite,
}
