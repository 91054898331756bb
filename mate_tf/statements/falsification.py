"""False statements: true ones of other rows, or true ones with a single thing changed.

What is changed is a constant, a column, an aggregation... and the statement is executed again
(Eisenschlos et al., 2020, change the constant of a side alone).
"""

import random
from collections.abc import Callable, Iterator
from dataclasses import replace

from mate_tf.statements.drawing import draw_true
from mate_tf.statements.execution import UndefinedError, execute
from mate_tf.statements.expressions import (
    Condition,
    Constant,
    Count,
    Difference,
    Expression,
    Select,
    Statement,
    operation_of,
    parts,
)
from mate_tf.statements.typed_table import TypedTable
from mate_tf.statements.variants import OPPOSITES, variants
from mate_tf.statements.wording import constant_text
from mate_tf.tables.normalization import normalize_for_match

CHANGES = ("elsewhere", "absent", "constant", "left", "right", "comparator")
_SHARE_OF_ELSEWHERE = 0.5
_SHARE_OF_ABSENT = 0.25


def falsified(
    statement: Statement, table: TypedTable, other_rows: TypedTable | None, rng: random.Random
) -> tuple[str, Statement] | None:
    """A false statement of the same operation as a true one.

    Where there are other rows, every second is a true statement of those ("elsewhere"), and every
    fourth has a constant of theirs that is nowhere in the table ("absent"). All others differ from
    the true one in a single thing of the table's own: a "constant", something on the "left" or on
    the "right", or the "comparator". What is changed is drawn first, so that no kind of change is
    rarer for having fewer ways.

    Args:
        statement: the true one.
        table: what it is about.
        other_rows: of the same columns; None where there are none.
        rng: draws the change.

    Returns:
        One of CHANGES and the statement; None where none was found.
    """
    order = list(CHANGES[2:])
    rng.shuffle(order)
    if other_rows is not None:
        draw = rng.random()
        if draw < _SHARE_OF_ELSEWHERE:
            order.insert(0, "elsewhere")
        elif draw < _SHARE_OF_ELSEWHERE + _SHARE_OF_ABSENT:
            order.insert(0, "absent")
    for change in order:
        for candidate in _candidates(change, statement, table, other_rows, rng):
            if operation_of(candidate) == operation_of(statement) and _is_false(candidate, table):
                return change, candidate
    return None


def _candidates(
    change: str,
    statement: Statement,
    table: TypedTable,
    other_rows: TypedTable | None,
    rng: random.Random,
) -> list[Statement]:
    if change == "elsewhere":
        assert other_rows is not None
        if any(
            here.kind != there.kind
            for here, there in zip(table.columns, other_rows.columns, strict=True)
        ):
            return []
        true = draw_true(operation_of(statement), other_rows, rng)
        return [] if true is None else [true]
    about = table
    if change == "absent":
        assert other_rows is not None
        about = other_rows
    candidates = list(_CHANGED[change](statement, about))
    rng.shuffle(candidates)
    if change == "absent":
        candidates = [one for one in candidates if not _is_cell(one.right, table)]
    return candidates


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
    if statement.comparator in OPPOSITES:
        yield replace(statement, comparator=OPPOSITES[statement.comparator])


def _is_false(statement: Statement, table: TypedTable) -> bool:
    """Whether it is false, of a row that is not there too."""
    try:
        return not execute(statement, table)
    except UndefinedError:
        conditions = _conditions_of(statement.left) + _conditions_of(statement.right)
        return any(
            condition.comparator == "equal"
            and isinstance(condition.operand, Constant)
            and not _is_cell(condition.operand, table)
            for condition in conditions
        )


def _conditions_of(expression: Expression) -> list[Condition]:
    found = [one for one in (expression, *parts(expression)) if not isinstance(one, Constant)]
    return [
        condition
        for one in found
        if not isinstance(one, Difference)
        for condition in one.conditions
    ]


def _is_cell(expression: Expression, table: TypedTable) -> bool:
    if not isinstance(expression, Constant):
        return False
    text = normalize_for_match(expression.text)
    return any(
        text == normalize_for_match(cell) for column in table.columns for cell in column.cells
    )


_CHANGED: dict[str, Callable[[Statement, TypedTable], Iterator[Statement]]] = {
    "absent": _other_constants,
    "constant": _other_constants,
    "left": _other_left,
    "right": _other_right,
    "comparator": _opposite,
}
