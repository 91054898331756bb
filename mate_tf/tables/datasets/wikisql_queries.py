"""Queries of WikiSQL, executed on their table: the cells, the aggregation and the answer.

A query selects one column of the rows that fulfil all of its conditions, and may aggregate it
(Zhong et al., 2017). Texts are compared by their words and signs, whatever their case and spacing.
"""

import math
import operator
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from mate_tf.tables.supervision import parse_number, words_and_signs
from mate_tf.tables.table import Coordinates, cell_text

TYPES = ("text", "real")
QUERY_AGGREGATIONS = ("", "MAX", "MIN", "COUNT", "SUM", "AVG")
OPERATORS = ("=", ">", "<")

_COMPARE = {"=": operator.eq, ">": operator.gt, "<": operator.lt}
_OF_ANSWERS = {"COUNT": "COUNT", "SUM": "SUM", "AVG": "AVERAGE"}
_EXTREMES = {"MAX": max, "MIN": min}
_FIRST_NUMBER = re.compile(r"[-+]?(?:\d*\.\d+|\d+)", re.ASCII)


class Condition(NamedTuple):
    """That a cell of a column is equal to, greater or less than a value."""

    column: int
    operator: str
    value: Any


class Query(NamedTuple):
    """SELECT aggregation(column) WHERE condition AND condition ..."""

    column: int
    aggregation: str
    conditions: tuple[Condition, ...]


class Answer(NamedTuple):
    """What a query yields, in the terms of `Question`; NO_ANSWER if nothing."""

    coordinates: Coordinates
    aggregation: str
    number: float | None
    texts: tuple[str, ...]


NO_ANSWER = Answer((), "NONE", None, ())


def execute(rows: Sequence[Sequence[Any]], types: Sequence[str], query: Query) -> Answer:
    """Executes a query.

    MAX and MIN are answered by every cell that holds the extreme value, without an aggregation.
    The value of a condition on a column of numbers is the first number in it. COUNT of no row is
    0; any other query without rows, and a sum of what are not numbers, has no answer.

    Args:
        rows: the table's body, cells as the release has them: texts and numbers.
        types: for each column one of TYPES.
        query: the query, with columns that exist.
    """
    selected = [
        i
        for i, row in enumerate(rows)
        if all(_holds(row[c.column], types[c.column], c) for c in query.conditions)
    ]
    kind = types[query.column]
    if query.aggregation in _EXTREMES:
        typed = ((i, _typed(rows[i][query.column], kind)) for i in selected)
        values = {i: value for i, value in typed if value is not None}
        extreme = _EXTREMES[query.aggregation](values.values(), default=None)
        selected = [i for i, value in values.items() if value == extreme]
    cells = [rows[i][query.column] for i in selected]
    coordinates = tuple((i, query.column) for i in selected)
    aggregation = _OF_ANSWERS.get(query.aggregation, "NONE")
    if aggregation == "NONE":
        texts = tuple(map(cell_text, cells))
        if query.aggregation:
            texts = texts[:1]  # one value, in however many cells
        number = _number(cells[0]) if len(texts) == 1 else None
        return Answer(coordinates, aggregation, number, texts)
    result = float(len(cells)) if aggregation == "COUNT" else _sum(cells)
    if result is None:
        return NO_ANSWER
    if aggregation == "AVERAGE":
        result /= len(cells)
    text = str(int(result)) if result.is_integer() else repr(result)
    return Answer(coordinates, aggregation, result, (text,))


def _sum(cells: Sequence[Any]) -> float | None:
    numbers = [number for number in map(_number, cells) if number is not None]
    if not cells or len(numbers) < len(cells):
        return None
    try:
        return math.fsum(numbers)
    except OverflowError:
        return None


def _holds(cell: Any, kind: str, condition: Condition) -> bool:
    compare = _COMPARE[condition.operator]
    if kind == "text":
        return compare(
            words_and_signs(cell_text(cell)), words_and_signs(cell_text(condition.value))
        )
    number, limit = _number(cell), _number(condition.value)
    if limit is None and (match := _FIRST_NUMBER.search(cell_text(condition.value))):
        limit = float(match[0])
    return number is not None and limit is not None and compare(number, limit)


def _typed(cell: Any, kind: str) -> Any:
    return cell_text(cell) if kind == "text" else _number(cell)


def _number(cell: Any) -> float | None:
    try:
        number = float(cell) if isinstance(cell, int | float) else parse_number(cell_text(cell))
    except OverflowError:  # an integer of more than 308 digits
        return None
    return number if number is not None and math.isfinite(number) else None


def execute_as_original(
    rows: Sequence[Sequence[Any]], types: Sequence[str], query: Query
) -> Answer:
    """Executes a query as the authors' release of TAPAS does, whose checkpoints learnt from it.

    MAX and MIN are answered by one cell, the last or the first with the extreme value. Any answer
    of one cell that reads as a number is that number ("12.0" for "12", 5.5 for "5,5"), and no row
    is the number NaN. A condition, or MAX or MIN, that compares values of different types leaves
    no answer, and neither does a sum of one text; a sum of several has their texts for an answer.
    """
    try:
        return _execute_as_original(rows, types, query)
    except (_IncomparableError, TypeError, OverflowError):  # Python's own, of such cells
        return NO_ANSWER


class _IncomparableError(ValueError):
    """Values of different types, or a text that is no number."""


def _execute_as_original(
    rows: Sequence[Sequence[Any]], types: Sequence[str], query: Query
) -> Answer:
    typed = [list(map(_original_typed, row, types)) for row in rows]
    coordinates = [
        (i, query.column)
        for i, row in enumerate(typed)
        if all(_original_holds(row[c.column], types[c.column], c) for c in query.conditions)
    ]
    if query.aggregation in _EXTREMES and len(coordinates) > 1:
        extreme = _EXTREMES[query.aggregation]
        coordinates = [extreme(coordinates, key=lambda at: (typed[at[0]][at[1]], at))]
    aggregation = _OF_ANSWERS.get(query.aggregation, "NONE")
    values = [typed[i][j] for i, j in coordinates]
    number: float | None = None
    if aggregation == "COUNT":
        number = float(len(values))
    elif not values:
        number = math.nan
    elif len(values) == 1:
        try:
            number = _original_number(values[0])
        except _IncomparableError:
            if aggregation != "NONE":
                raise
    elif aggregation != "NONE" and all(isinstance(value, int | float) for value in values):
        number = float(sum(values))
        number = number / len(values) if aggregation == "AVERAGE" else number
    texts = [str(number)] if number is not None else [str(rows[i][j]) for i, j in coordinates]
    return Answer(tuple(coordinates), aggregation, number, tuple(texts))


def _original_holds(cell: Any, kind: str, condition: Condition) -> bool:
    value = _original_typed(condition.value, kind)
    if not isinstance(cell, type(value)):
        raise _IncomparableError
    if isinstance(value, str):
        cell, value = words_and_signs(cell), words_and_signs(value)
    return _COMPARE[condition.operator](cell, value)


def _original_typed(cell: Any, kind: str) -> Any:
    return cell if kind == "text" else _original_number(cell)


def _original_number(value: Any) -> float:
    if not isinstance(value, int | float | str):
        raise _IncomparableError
    number = parse_number(value if isinstance(value, str) else repr(value), original=True)
    if number is None:
        raise _IncomparableError
    return number
