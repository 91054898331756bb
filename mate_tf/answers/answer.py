"""An answer, its JSON form, and what is computed from cells.

The JSON form is what `mate-tf ask --json` prints, the server replies and files of predictions
hold; docs/tables.md says what its keys mean.

Shapes: k body cells of a table, row by row.
"""

import dataclasses
import datetime
import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from mate_tf.answers.drawing import answer_html
from mate_tf.dataclass_json import from_dict, require
from mate_tf.features.numeric import values_in_column
from mate_tf.tables.cell_texts import format_number
from mate_tf.tables.columns import unlike_units
from mate_tf.tables.operators import ABSENT, OPERATORS, Operator
from mate_tf.tables.table import Coordinates, Table
from mate_tf.tables.values import Date, clock_text

Confidence = Literal["sure", "probably", "not sure"]
_VERDICTS: Mapping[Confidence, str] = {
    "sure": "answer",
    "probably": "probably",
    "not sure": "not sure, best guess",
}
RowFrom = Literal["", "both", "words"]


@dataclasses.dataclass(frozen=True)
class SelectedCell:
    """A body cell that answers the question.

    Attributes:
        row: counted from zero, without the header.
        column: counted from zero.
        text: the cell's text.
        score: the probability that the cell is selected; where a span was read, the span's.
    """

    row: int
    column: int
    text: str
    score: float


@dataclasses.dataclass(frozen=True)
class Answer:
    """The answer to a question about a table.

    Attributes:
        items: the answer as a list: texts of cells, one computed number, a class or a span.
        cells: the cells it comes from, in table order.
        aggregation: what was computed from them, one of OPERATORS.
        value: the computed number; None where nothing was computed.
        score: the probability of the answer, calibrated where the model has a calibration. For
            cells it is their mean probability, times that of their column where a column is chosen
            first, times that of the aggregation.
        number: the answer as a number without its unit, such as 3.5 for "3.5 km": the computed
            one, or that of a single cell or span. Lengths of time are in seconds.
        class_index: the number of the class; of classifiers only.
        rows_dropped: rows of the table that the model did not see.
        coverage: which rows it saw, where it did not see all: "read 60 of 50,000 rows, chosen by
            the question".
        alternatives: the best other answers, best first; these have no alternatives themselves.
        confidence: "sure", "probably" or "not sure", by the two thresholds of the calibration.
        answered: False where there is no answer: nothing of the table was seen, the table does not
            answer the question (`absent`, and the score says how likely that is right), or the
            score is below the least one asked for. The alternatives then begin with the best guess.
        error: why the question was refused; "" where it was not.
        note: why nothing was computed from the cells, such as unlike units; "" otherwise.
        assumed: sentences that say what was assumed about the table and the columns of the cells.
        absence: how likely the table does not answer the question, as the model has it.
        row_from: "words" where the question's words name the row (views.py) and the model had
            another, "both" where it had the same, "" where they name none.
        rows: the rows of the table that a follow-up was about; None for all.
    """

    items: tuple[str, ...] = ()
    cells: tuple[SelectedCell, ...] = ()
    aggregation: str = "NONE"
    value: float | None = None
    score: float = 0.0
    number: float | None = None
    class_index: int | None = None
    rows_dropped: int = 0
    coverage: str = ""
    alternatives: tuple["Answer", ...] = ()
    confidence: Confidence = "sure"
    answered: bool = True
    error: str = ""
    note: str = ""
    assumed: tuple[str, ...] = ()
    absence: float = dataclasses.field(default=0.0, compare=False)
    row_from: RowFrom = dataclasses.field(default="", compare=False)
    rows: tuple[int, ...] | None = dataclasses.field(default=None, compare=False)

    @classmethod
    def of(cls, result: "Answer | ValueError") -> "Answer":
        """The result of asking: an answer, or the error of a question that was refused."""
        if isinstance(result, ValueError):
            return cls(answered=False, error=str(result))
        return result

    @property
    def absent(self) -> bool:
        """Whether the model says that the table does not answer the question."""
        return self.aggregation == ABSENT

    @property
    def guess(self) -> "Answer":
        """The answer, or the best guess where none is given."""
        return self if self.answered or not self.alternatives else self.alternatives[0]

    @property
    def sure(self) -> bool:
        """Whether the answer is said plainly."""
        return self.confidence == "sure"

    @property
    def verdict(self) -> str:
        """The words before the answer's text, or before its guess where there is none."""
        if self.answered:
            return _VERDICTS[self.confidence]
        refusal = "the table does not seem to say" if self.absent else "no answer"
        return f"{refusal}; best guess" if self.guess.items else refusal

    @property
    def text(self) -> str:
        """The items, joined by commas."""
        return ", ".join(self.items)

    @property
    def coordinates(self) -> Coordinates:
        """(row, column) of the cells."""
        return tuple((cell.row, cell.column) for cell in self.cells)

    @property
    def ranked_cells(self) -> Coordinates:
        """(row, column) of its cells and the alternatives' cells, each once, the best first."""
        answers = (self, *self.alternatives)
        ranked = [sorted(answer.cells, key=lambda cell: -cell.score) for answer in answers]
        return tuple(dict.fromkeys((cell.row, cell.column) for cells in ranked for cell in cells))

    def to_dict(self) -> dict[str, Any]:
        """The JSON form; a number that is not finite becomes None."""
        return {
            "answered": self.answered,
            "confidence": self.confidence,
            **self._own_dict(),
            "rows_dropped": self.rows_dropped,
            **({"coverage": self.coverage} if self.coverage else {}),
            "alternatives": [other._own_dict() for other in self.alternatives],
            "assumed": list(self.assumed),
            **({"error": self.error} if self.error else {}),
        }

    def __repr__(self) -> str:
        text = f"{self.guess.text!r:.60}, {self.verdict}, score={self.score:.3f}"
        return f"<Answer {text}, aggregation={self.aggregation}, {len(self.cells)} cells>"

    def _repr_html_(self) -> str:
        return answer_html(self)

    def _own_dict(self) -> dict[str, Any]:
        return {
            "answer": self.text,
            "items": list(self.items),
            "cells": [dataclasses.asdict(cell) for cell in self.cells],
            "aggregation": self.aggregation,
            "value": _finite(self.value),
            "number": _finite(self.number),
            "class_index": self.class_index,
            "score": self.score,
            **({"note": self.note} if self.note else {}),
        }

    @classmethod
    def from_dict(cls, values: Any, name: str = "answer") -> "Answer":
        """The answer of a JSON form; also of the first version's, in files of predictions.

        ValueError if a key is unknown or missing, or a value is not what it should be.
        """
        if not isinstance(values, Mapping):
            raise ValueError(f"expected {name} to be an object, got {type(values).__name__}")
        values = _upgraded(values)
        values.pop("answer", None)
        if missing := [key for key in ("items", "score") if key not in values]:
            raise ValueError(f"expected the keys {', '.join(missing)} in {name}, which lacks them")
        others = values.pop("alternatives", ())
        require(isinstance(others, Sequence), f"expected a list as {name}.alternatives")
        answer = from_dict(cls, values, name)
        _check(answer, name)
        alternatives = tuple(cls.from_dict(other, f"{name}.alternatives") for other in others)
        return dataclasses.replace(answer, alternatives=alternatives)


def _upgraded(values: Mapping[str, Any]) -> dict[str, Any]:
    """Values with "items" and objects as "cells", where these were "answer" and pairs."""
    values = dict(values)
    if "items" in values or not isinstance(values.get("answer"), list):
        return values
    cells = values.get("cells", [])
    scores = values.pop("cell_scores", [0.0] * len(cells))
    values["items"] = values.pop("answer")
    values["cells"] = [
        {"row": row, "column": column, "text": "", "score": score}
        for (row, column), score in zip(cells, scores, strict=True)
    ]
    return values


def _check(answer: Answer, name: str) -> None:
    aggregation, score, index = answer.aggregation, answer.score, answer.class_index
    known = ", ".join(OPERATORS)
    expected = f"expected one of {known} as {name}.aggregation, got {aggregation!r}"
    require(aggregation in OPERATORS, expected)
    require(0 <= score <= 1, f"expected {name}.score from 0 to 1, got {score}")
    require(index is None or index >= 0, f"expected an index as {name}.class_index, got {index}")
    for cell in answer.cells:
        require(min(cell.row, cell.column) >= 0, f"expected a place in {name}.cells, got {cell}")
    for number in (answer.value, answer.number, *(cell.score for cell in answer.cells)):
        require(number == _finite(number), f"expected finite numbers in {name}, got {number}")


def _finite(number: float | None) -> float | None:
    return number if number is not None and math.isfinite(number) else None


def no_answer(score: float = 0.0, alternatives: tuple[Answer, ...] = ()) -> Answer:
    """The answer that is none."""
    return Answer(score=score, alternatives=alternatives, answered=False)


def is_repeated(answer: Answer, others: list[Answer]) -> bool:
    """Whether one of the others has the same items, and is no selection of different cells."""
    return any(
        answer.items == other.items
        and (
            {answer.aggregation, other.aggregation} != {"NONE"}
            or answer.coordinates == other.coordinates
        )
        for other in others
    )


def apply_min_score(answer: Answer, min_score: float) -> Answer:
    """The answer if its score is high enough; otherwise none, with it as an alternative."""
    if not answer.answered or answer.score >= min_score:
        return answer
    not_given = dataclasses.replace(answer, alternatives=())
    return no_answer(answer.score, (not_given, *answer.alternatives))


class TableFacts(NamedTuple):
    """Facts about a table's cells, from its tokens; R rows and C columns of the table."""

    table: Table
    mentioned: np.ndarray  # float64 [R, C], the share of a cell's tokens that are in the question
    num_tokens: np.ndarray  # int64 [R, C]; 0 for a cell that is not in the sequence
    ranks: np.ndarray  # float64 [R, C], the place of a value in its column; 0 without a value
    positions: np.ndarray  # float64 [R, C], where in the question mentions are; 0 without one
    names: np.ndarray  # float64 [C], the share of each header's tokens in the question
    relations: np.ndarray  # float64 [R, C], the bits of `numeric_relations`, others where no number


def answer_of_cells(
    table: Table,
    cells: tuple[SelectedCell, ...],
    aggregation: str,
    score: float,
    facts: TableFacts | None = None,
) -> Answer | None:
    """The answer that cells give, by themselves or computed from; computing is in double precision.

    Operators in a column, but those of two cells, leave out rows that are totals, unless there are
    no other cells; COUNT and DISTINCT also leave out empty cells. SHARE is the cells' part of their
    column's sum in percent, or of its number of rows where not each row has a number. Where units
    cannot be added, the answer is the cells themselves, and its note says so. The difference of
    dates is in days, or in years where one has no day; the value of one of times is in seconds.
    Cells are compared by their ranks. "Which of the two" is answered by what their rows are called:
    by the column whose cells the question mentions.

    The cells are in table order; the facts are of all cells of the table. None where the cells lack
    what the aggregation needs, such as a number, or the facts.
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
    operator = OPERATORS[aggregation]
    if operator.takes_two and len(cells) != 2:
        return None
    if not (operator.takes_two or operator.along_row):
        cells = tuple(cell for cell in cells if cell.row not in table.total_rows) or cells
    columns = [table.column(cell.column) for cell in cells]
    numbers = [column.numbers[cell.row] for column, cell in zip(columns, cells, strict=True)]
    texts = [cell.text.strip().lower() for cell in cells]

    def computed(*items: str, value: float | None = None) -> Answer:
        result = dataclasses.replace(by_themselves, cells=cells, aggregation=aggregation)
        return dataclasses.replace(result, items=items, value=value, number=value)

    if aggregation in ("YES", "NO"):
        return computed(aggregation.lower())
    if aggregation == "HEADER":
        return computed(*dict.fromkeys(table.header[cell.column] for cell in cells))
    kind = aggregation.removeprefix("ROW_")
    if aggregation == "SHARE":
        share = _share(table, cells)
        return None if share is None else computed(format_number(share), value=share)
    if aggregation in ("COUNT", "DISTINCT"):
        given = [text for text in texts if text]
        count = float(len(given if aggregation == "COUNT" else set(given)))
        return computed(format_number(count), value=count)
    if operator.compute is not None:
        units = [column.units[cell.row] for column, cell in zip(columns, cells, strict=True)]
        if unlike := unlike_units(units, with_unknown=not operator.takes_two):
            several = " and ".join(unlike)
            note = f"no {kind.lower()} was computed, because the numbers are in {several}"
            has_number = any(number is not None for number in numbers)
            return dataclasses.replace(by_themselves, note=note) if has_number else None
        value = _calculated(table, cells, numbers, operator)
        if value is None:
            return None
        is_time = all(column.kind in ("duration", "time") for column in columns)
        return computed(clock_text(value) if is_time else format_number(value), value=value)
    indices = [cell.row for cell in cells], [cell.column for cell in cells]
    if operator.along_row:  # MAX or MIN; ranks are those of columns
        order = np.array(numbers, np.float64)  # NaN without a number
    elif facts is None:
        return None
    else:
        order = np.where(facts.ranks[indices] > 0, facts.ranks[indices], np.nan)
    if kind in ("MAX", "MIN"):
        if np.isnan(order).all():
            return None
        best = int(np.nanargmax(order if kind == "MAX" else -order))
        return computed(cells[best].text, value=numbers[best])
    if np.isnan(order).any():
        is_equal = "yes" if texts[0] == texts[1] else "no"
        return computed(is_equal) if aggregation == "IS_EQUAL" else None
    assert facts is not None, "cells of two rows are compared by their ranks"
    rows, column = indices[0], _naming_column(cells, facts)
    if aggregation in ("GREATER", "LESS"):
        first, second = order if aggregation == "GREATER" else -order
        return computed(table.rows[rows[int(second > first)]][column])
    positions = facts.positions[rows, column]
    first, second = order if positions[0] <= positions[1] else order[::-1]
    holds = {"IS_GREATER": first > second, "IS_LESS": first < second, "IS_EQUAL": first == second}
    return computed("yes" if holds[aggregation] else "no")


def _share(table: Table, cells: tuple[SelectedCell, ...]) -> float | None:
    """The part of their column that cells are, in percent; None of a sum of 0 or unlike units."""
    column = table.column(cells[0].column)
    rows = [row for row in range(table.num_rows) if row not in table.total_rows]
    numbers = {row: column.numbers[row] for row in rows}
    if None in numbers.values():
        return 100.0 * len(cells) / len(rows) if rows else None
    total = math.fsum(numbers.values())  # type: ignore[arg-type]
    if not total or unlike_units([column.units[row] for row in rows], with_unknown=True):
        return None
    return 100.0 * math.fsum(column.numbers[cell.row] or 0.0 for cell in cells) / total


def _calculated(
    table: Table, cells: tuple[SelectedCell, ...], numbers: list[float | None], operator: Operator
) -> float | None:
    """The result of the cells with a number, or of two dates or times; None of too few."""
    given = [number for number in numbers if number is not None]
    assert operator.compute is not None
    if len(given) >= (2 if operator.takes_two else 1):
        return operator.compute(given)
    if not operator.takes_two:
        return None
    values = [values_in_column(table, cell.column).get(cell.row) for cell in cells]
    if all(table.column(cell.column).kind == "time" for cell in cells):
        seconds = [value for value in values if isinstance(value, float)]
        return operator.compute(seconds) if len(seconds) == 2 else None
    return _between(*(value if isinstance(value, Date) else None for value in values))


def _between(one: Date | None, other: Date | None) -> float | None:
    """The days between two dates, or the years where one has no day."""
    if one is None or other is None or one.year is None or other.year is None:
        return None
    if None in (one.month, one.day, other.month, other.day):
        return float(abs(one.year - other.year))
    days = [datetime.date(*date[:3]).toordinal() for date in (one, other)]  # type: ignore[arg-type]
    return float(abs(days[0] - days[1]))


def _naming_column(cells: tuple[SelectedCell, ...], facts: TableFacts) -> int:
    """The column that names the rows of two cells: the other one that is mentioned most."""
    mentioned = facts.mentioned[[cell.row for cell in cells]].sum(axis=0)
    if len(mentioned) > 1:
        mentioned[[cell.column for cell in cells]] = -1.0
    return int(mentioned.argmax())
