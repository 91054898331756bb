"""A second, naive executor: columns of plain numbers and texts, statements by brute force.

It knows no dates and no rounding but that of computed values, and gives None for the undefined.
"""

from mate_tf.synthesis.statement_execution import (
    Aggregate,
    Constant,
    Count,
    Difference,
    Select,
    Statement,
)
from mate_tf.tables.table import Table


def is_true(statement: Statement, table: Table) -> bool | None:
    left, right = (_value(side, table) for side in (statement.left, statement.right))
    if left is None or right is None:
        return None
    return _holds(left, statement.comparator, right)


def _holds(left, comparator, right) -> bool | None:
    first, second = _number(left), _number(right)
    if first is None or second is None:
        return left == right if comparator == "equal" else None
    distance = round(first, 2) - round(second, 2)
    return {"equal": distance == 0, "greater": distance > 0, "less": distance < 0}[comparator]


def _number(value) -> float | None:
    try:
        return float(value)
    except ValueError:
        return None


def _rows(conditions, table: Table) -> list[tuple[str, ...]]:
    rows = list(table.rows)
    for condition in conditions:
        operand = _value(condition.operand, table)
        if operand is None:
            return []
        rows = [
            row
            for row in rows
            if row[condition.column]
            and _holds(row[condition.column], condition.comparator, operand)
        ]
    return rows


def _value(expression, table: Table):
    match expression:
        case Constant(text):
            return text
        case Count(conditions):
            return str(len(_rows(conditions, table)))
        case Select(column, conditions):
            values = {row[column] for row in _rows(conditions, table)}
            return values.pop() if len(values) == 1 and "" not in values else None
        case Difference(left, right):
            sides = [_value(side, table) for side in (left, right)]
            return None if None in sides else str(abs(float(sides[0]) - float(sides[1])))
        case Aggregate(aggregation, column, conditions):
            cells = [row[column] for row in _rows(conditions, table)]
            if len(cells) < 2 or "" in cells:
                return None
            if aggregation in ("first", "last"):
                return cells[0 if aggregation == "first" else -1]
            numbers = [number for cell in cells if (number := _number(cell)) is not None]
            if len(numbers) < len(cells):
                return None
            total, average = sum(numbers), sum(numbers) / len(numbers)
            of_all = {"sum": total, "average": average}
            of_all |= {"minimum": min(numbers), "maximum": max(numbers)}
            of_all["range"] = max(numbers) - min(numbers)
            return str(round(of_all[aggregation], 2))
    raise AssertionError(expression)
