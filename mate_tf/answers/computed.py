"""What is computed from selected cells, in double precision.

Two cells are compared by their ranks within their columns, as the model sees them: the features say
which value is larger, whether they are numbers, dates or lengths of time. "Which of the two" is
answered by what the two rows are called: by the column whose cells the question mentions.

Shapes: k body cells of a table, row by row.
"""

import dataclasses
import datetime
import math
from typing import NamedTuple

import numpy as np

from mate_tf.answers.answer import Answer, SelectedCell, format_number
from mate_tf.features.numeric import values_in_column
from mate_tf.tables.columns import Column, unlike_units
from mate_tf.tables.table import PAIRED, Table
from mate_tf.tables.values import Date, clock_text

_IN_WORDS = {"SUM": "sum", "AVERAGE": "average", "DIFFERENCE": "difference"}


class TokenFacts(NamedTuple):
    """What the tokens of a table's body cells say about them.

    Attributes:
        ranks: float64 [k], the place of the cell's value within its column; 0 without a value.
        mentioned: float64 [k], the share of the cell's tokens that are in the question.
        places: float64 [k], where in the question these are, on average; 0 without one.
    """

    ranks: np.ndarray
    mentioned: np.ndarray
    places: np.ndarray


def answer_of_cells(
    table: Table,
    cells: tuple[SelectedCell, ...],
    aggregation: str,
    score: float,
    facts: TokenFacts | None = None,
) -> Answer | None:
    """The answer that cells give, by themselves or computed from.

    All but PAIRED leave out rows that are totals, unless there are no other cells; COUNT and
    DISTINCT also leave out empty cells. SUM, AVERAGE and DIFFERENCE take the cells that are
    numbers in their columns (tables/columns.py); where their units cannot be added, the answer is
    the cells themselves, and its note says so. The difference of dates is in days, or in years
    where one has no day.

    Args:
        table: the table.
        cells: in table order; two for PAIRED.
        aggregation: one of AGGREGATIONS.
        score: the answer's.
        facts: of all cells of the table; what compares cells has no answer without them.

    Returns:
        None where the cells do not have what the aggregation needs, such as a number.
    """
    by_themselves = Answer(
        tuple(cell.text for cell in cells),
        cells,
        score=score,
        number=table.column(cells[0].column).numbers[cells[0].row] if len(cells) == 1 else None,
        assumed=table.all_assumed,
    )
    if aggregation == "NONE":
        return by_themselves
    if aggregation not in PAIRED:
        cells = tuple(cell for cell in cells if cell.row not in table.total_rows) or cells
    elif len(cells) != 2:
        return None
    columns = [table.column(cell.column) for cell in cells]
    numbers = [column.numbers[cell.row] for column, cell in zip(columns, cells, strict=True)]
    texts = [cell.text.strip().lower() for cell in cells]
    computed = dataclasses.replace(by_themselves, cells=cells, aggregation=aggregation)
    if aggregation in ("COUNT", "DISTINCT"):
        given = [text for text in texts if text]
        count = float(len(given if aggregation == "COUNT" else set(given)))
        return _with_number(computed, count, format_number(count))
    if aggregation in _IN_WORDS:
        pairs = list(zip(columns, cells, strict=True))
        if unlike := unlike_units(column.units[cell.row] for column, cell in pairs):
            name = _IN_WORDS[aggregation]
            note = f"no {name} was computed, because the numbers are in {' and '.join(unlike)}"
            has_number = any(number is not None for number in numbers)
            return dataclasses.replace(by_themselves, note=note) if has_number else None
        value = _calculated(table, columns, cells, numbers, aggregation)
        if value is None:
            return None
        is_time = all(column.kind == "duration" for column in columns)
        return _with_number(computed, value, clock_text(value) if is_time else format_number(value))
    if facts is None:
        return None
    places = [cell.row * table.num_columns + cell.column for cell in cells]
    ranks = facts.ranks[places]
    if aggregation in ("MAX", "MIN"):
        if not (ranks > 0).any():
            return None
        order = np.where(ranks > 0, ranks, np.inf if aggregation == "MIN" else -np.inf)
        best = int(order.argmin() if aggregation == "MIN" else order.argmax())
        return dataclasses.replace(
            computed, items=(cells[best].text,), value=numbers[best], number=numbers[best]
        )
    if not (ranks > 0).all():
        if aggregation != "IS_EQUAL":
            return None
        return dataclasses.replace(computed, items=(_yes_or_no(texts[0] == texts[1]),))
    names = _named_cells(table, cells, facts)
    if aggregation in ("GREATER", "LESS"):
        is_second = ranks[1] > ranks[0] if aggregation == "GREATER" else ranks[1] < ranks[0]
        row, column = divmod(names[int(is_second)], table.num_columns)
        return dataclasses.replace(computed, items=(table.rows[row][column],))
    first, second = ranks if facts.places[names[0]] <= facts.places[names[1]] else ranks[::-1]
    holds = {"IS_GREATER": first > second, "IS_LESS": first < second, "IS_EQUAL": first == second}
    return dataclasses.replace(computed, items=(_yes_or_no(bool(holds[aggregation])),))


def _with_number(answer: Answer, value: float, text: str) -> Answer:
    return dataclasses.replace(answer, items=(text,), value=value, number=value)


def _yes_or_no(holds: bool) -> str:
    return "yes" if holds else "no"


def _calculated(
    table: Table,
    columns: list[Column],
    cells: tuple[SelectedCell, ...],
    numbers: list[float | None],
    aggregation: str,
) -> float | None:
    """The sum, average or difference of the cells with a number; None where there are too few."""
    given = [number for number in numbers if number is not None]
    if aggregation != "DIFFERENCE":
        total = math.fsum(given)
        return (total if aggregation == "SUM" else total / len(given)) if given else None
    if len(given) == 2:
        return abs(given[0] - given[1])
    values = [values_in_column(table, cell.column).get(cell.row) for cell in cells]
    return _between(*(value if isinstance(value, Date) else None for value in values))


def _between(one: Date | None, other: Date | None) -> float | None:
    if one is None or other is None or one.year is None or other.year is None:
        return None
    if None in (one.month, one.day, other.month, other.day):
        return float(abs(one.year - other.year))
    days = [datetime.date(*date[:3]).toordinal() for date in (one, other)]  # type: ignore[arg-type]
    return float(abs(days[0] - days[1]))


def _named_cells(table: Table, cells: tuple[SelectedCell, ...], facts: TokenFacts) -> list[int]:
    """The cells that name the rows of two cells: of the other column that is mentioned most."""
    width = table.num_columns
    mentioned = facts.mentioned.reshape(-1, width)[[cell.row for cell in cells]].sum(axis=0)
    if width > 1:
        mentioned[[cell.column for cell in cells]] = -1.0
    column = int(mentioned.argmax())
    return [cell.row * width + column for cell in cells]
