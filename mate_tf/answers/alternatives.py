"""The answer from a table's cells, what is computed from them, and the best other answers.

Computing is in double precision. Two cells are compared by their ranks within their columns, as the
model sees them: the features say which value is larger, whether they are numbers, dates or lengths
of time. "Which of the two" is answered by what the two rows are called: by the column whose cells
the question mentions.

Candidates are every aggregation of the answer's cells, and each other cell by itself. Where a
column is chosen first, so is every aggregation of the cells selected in each other column.
The best are kept that have some probability and repeat neither a better one nor the answer
(`is_repeated`). A score is the mean probability of the cells, with their column's, times that of
the aggregation. It may be above the answer's, which is of the likeliest column and aggregation.

Shapes: k body cells of the table, row by row; A aggregations; n sets of cells.
"""

import dataclasses
import datetime
import math
from typing import NamedTuple

import numpy as np

from mate_tf.answers.answer import Answer, SelectedCell, format_number, is_repeated
from mate_tf.features.numeric import values_in_column
from mate_tf.tables.columns import Column, unlike_units
from mate_tf.tables.table import AGGREGATIONS, PAIRED, Table
from mate_tf.tables.values import Date, clock_text

_NONE, _COUNT = AGGREGATIONS.index("NONE"), AGGREGATIONS.index("COUNT")
_IN_WORDS = {"SUM": "sum", "AVERAGE": "average", "DIFFERENCE": "difference"}


class TokenFacts(NamedTuple):
    """What the tokens of a table say about its cells.

    Attributes:
        ranks: float64 [k], the place of the cell's value within its column; 0 without a value.
        mentioned: float64 [k], the share of the cell's tokens that are in the question.
        places: float64 [k], where in the question these are, on average; 0 without one.
        names: float64 [columns], the share of each header's tokens that are in the question.
    """

    ranks: np.ndarray
    mentioned: np.ndarray
    places: np.ndarray
    names: np.ndarray

    def of_table(self, cells: slice, table: int) -> "TokenFacts":
        """Those of one table of a batch."""
        return TokenFacts(
            self.ranks[cells], self.mentioned[cells], self.places[cells], self.names[table]
        )


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


class CellProbabilities(NamedTuple):
    """The probabilities of a table's cells and of the aggregations."""

    table: Table
    cells: np.ndarray  # float64 [k], given that its column is the answer's; -inf where not seen
    with_columns: np.ndarray  # float64 [k], these times the probability of the column
    aggregations: np.ndarray  # float64 [A]
    selected_in_columns: np.ndarray  # bool [k], those of each column if it is the answer's
    facts: TokenFacts | None = None
    plain: bool = False  # `TableQAConfig.plain_answers`


def likeliest_answer(probabilities: CellProbabilities, places: np.ndarray) -> Answer:
    """The likeliest aggregation of the cells at some places, int [at least one].

    It is the cells themselves where they lack what the aggregation needs, such as a number; and
    the cell itself where a single number would be counted, if answers are to be plain.
    """
    cells, score = _cells(probabilities, places), probabilities.with_columns[places].mean()
    likeliest = int(probabilities.aggregations.argmax())
    if probabilities.plain and likeliest == _COUNT and len(cells) == 1:
        of_both = float(score * probabilities.aggregations[[_NONE, _COUNT]].sum())
        itself = answer_of_cells(probabilities.table, cells, "NONE", of_both)
        if itself is not None and itself.number is not None:
            return itself
    for aggregation in (likeliest, _NONE):
        if aggregation == _NONE != likeliest and AGGREGATIONS[likeliest] in PAIRED:
            best = places[probabilities.cells[places].argmax()][np.newaxis]
            cells = _cells(probabilities, best)
        answer = _answer(probabilities, cells, score, aggregation)
        if answer is not None:
            return answer
    raise AssertionError("cells themselves are always an answer")


def best_others(
    probabilities: CellProbabilities, places: np.ndarray, answer: Answer, number: int
) -> list[Answer]:
    """The best alternatives to the answer from the cells at some places, at most a number."""
    sets = [places, *_selections_of_other_columns(probabilities, places)]
    means = np.array([probabilities.with_columns[members].mean() for members in sets])  # [n]
    of_sets = np.outer(means, probabilities.aggregations).ravel()  # [n * A]
    is_other = probabilities.cells > -np.inf  # [k]
    is_other[places] = False
    others = np.flatnonzero(is_other)
    of_others = probabilities.with_columns[others] * probabilities.aggregations[_NONE]
    scores = np.concatenate([of_sets, of_others])
    found: list[Answer] = []
    for index in np.argsort(-scores, kind="stable").tolist():
        if len(found) == number or scores[index] <= 0.0:
            break
        if index < len(of_sets):
            members, aggregation = divmod(index, len(probabilities.aggregations))
            places_of, score = sets[members], means[members]
        else:
            place, aggregation = others[index - len(of_sets)], _NONE
            places_of, score = place[np.newaxis], probabilities.with_columns[place]
        cells = _cells(probabilities, places_of)
        other = _answer(probabilities, cells, score, aggregation)
        if other is not None and not is_repeated(other, [answer, *found]):
            found.append(other)
    return found


def _selections_of_other_columns(
    probabilities: CellProbabilities, places: np.ndarray
) -> list[np.ndarray]:
    """The places of the cells selected in each column without any of the given places."""
    width = probabilities.table.num_columns
    is_other = np.ones(width, bool)
    is_other[places % width] = False
    # Column by column.
    selected = probabilities.selected_in_columns.reshape(-1, width).T & is_other[:, np.newaxis]
    columns, rows = np.nonzero(selected)
    of_columns = np.split(rows * width + columns, 1 + np.flatnonzero(np.diff(columns)))
    return of_columns if len(columns) else []


def _cells(probabilities: CellProbabilities, places: np.ndarray) -> tuple[SelectedCell, ...]:
    rows, columns = np.divmod(places, probabilities.table.num_columns)
    return tuple(
        SelectedCell(row, column, probabilities.table.rows[row][column], probability)
        for row, column, probability in zip(
            rows.tolist(), columns.tolist(), probabilities.cells[places].tolist(), strict=True
        )
    )


def _answer(
    probabilities: CellProbabilities,
    cells: tuple[SelectedCell, ...],
    score: float,
    aggregation: int,
) -> Answer | None:
    of_aggregation = probabilities.aggregations[aggregation]
    return answer_of_cells(
        probabilities.table,
        cells,
        AGGREGATIONS[aggregation],
        float(score * of_aggregation),
        probabilities.facts,
    )
