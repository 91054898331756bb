"""An answer and its JSON form.

The JSON form is what `mate-tf ask --json` prints, the server replies and files of predictions
hold; docs/tables.md says what its keys mean.
"""

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np

from mate_tf.answers.calibration import Calibration, logit_of, signs_of
from mate_tf.dataclass_json import from_dict, require
from mate_tf.tables.columns import read_column
from mate_tf.tables.table import ABSENT, AGGREGATIONS, Coordinates, Question, Table

NOT_IN_TABLE = "the table does not seem to say"  # where an answer is `absent`


def format_number(value: float) -> str:
    """Writes a number plainly: integers in full, others to 12 digits."""
    if not math.isfinite(value):
        return str(value)
    if value.is_integer():
        return str(int(value))
    return np.format_float_positional(float(f"{value:.12g}"), trim="-")


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
        aggregation: what was computed from them, one of AGGREGATIONS.
        value: the computed number; None where nothing was computed.
        score: the probability of the answer, calibrated where the model has a calibration. For
            cells it is their mean probability, times that of their column where a column is chosen
            first, times that of the aggregation.
        number: the answer as a number without its unit, such as 3.5 for "3.5 km": the computed
            one, or that of a single cell or span. Lengths of time are in seconds.
        class_index: the number of the class; of classifiers only.
        rows_dropped: rows at the table's end that the model did not see.
        alternatives: the best other answers, best first; these have no alternatives themselves.
        sure: False where the score is below the model's threshold.
        answered: False where there is no answer: nothing of the table was seen, the table does not
            answer the question (`absent`), or the score is below the least one asked for. The
            alternatives then begin with the answer not given; of the last the score is its score.
        error: why the question was refused; "" where it was not.
        note: why nothing was computed from the cells, such as unlike units; "" otherwise.
        assumed: sentences that say what was assumed about the table and the columns of the cells.
        row_from: "words" where the question's words name the row (row_words.py) and the model had
            another, "both" where it had the same, "" where they name none.
    """

    items: tuple[str, ...] = ()
    cells: tuple[SelectedCell, ...] = ()
    aggregation: str = "NONE"
    value: float | None = None
    score: float = 0.0
    number: float | None = None
    class_index: int | None = None
    rows_dropped: int = 0
    alternatives: tuple["Answer", ...] = ()
    sure: bool = True
    answered: bool = True
    error: str = ""
    note: str = ""
    assumed: tuple[str, ...] = ()
    row_from: RowFrom = dataclasses.field(default="", compare=False)

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
            **self._own_dict(),
            **({} if self.sure else {"sure": False}),
            "rows_dropped": self.rows_dropped,
            "alternatives": [other._own_dict() for other in self.alternatives],
            "assumed": list(self.assumed),
            **({"error": self.error} if self.error else {}),
        }

    def _repr_html_(self) -> str:
        from mate_tf.answers.drawing import answer_html

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

        Raises:
            ValueError: if a key is unknown or missing, or a value is not what it should be.
        """
        if not isinstance(values, Mapping):
            raise ValueError(f"expected {name} to be an object, got {type(values).__name__}")
        values = _of_first_version(values)
        values.pop("answer", None)
        if missing := [key for key in ("items", "score") if key not in values]:
            raise ValueError(f"expected the keys {', '.join(missing)} in {name}, which lacks them")
        others = values.pop("alternatives", ())
        require(isinstance(others, Sequence), f"expected a list as {name}.alternatives")
        answer = from_dict(cls, values, name)
        _check(answer, name)
        alternatives = tuple(cls.from_dict(other, f"{name}.alternatives") for other in others)
        return dataclasses.replace(answer, alternatives=alternatives)


def _of_first_version(values: Mapping[str, Any]) -> dict[str, Any]:
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
    require(
        aggregation in AGGREGATIONS,
        f"expected one of {AGGREGATIONS} as {name}.aggregation, got {aggregation!r}",
    )
    require(0 <= score <= 1, f"expected {name}.score from 0 to 1, got {score}")
    require(index is None or index >= 0, f"expected an index as {name}.class_index, got {index}")
    for cell in answer.cells:
        require(min(cell.row, cell.column) >= 0, f"expected a place in {name}.cells, got {cell}")
    for number in (answer.value, answer.number, *(cell.score for cell in answer.cells)):
        require(number == _finite(number), f"expected finite numbers in {name}, got {number}")


def _finite(number: float | None) -> float | None:
    return number if number is not None and math.isfinite(number) else None


def number_of_text(text: str) -> float | None:
    """The number that a text alone is, without its unit; None if it is none."""
    return read_column([text]).numbers[0]


def no_answer(score: float = 0.0, alternatives: tuple[Answer, ...] = ()) -> Answer:
    """What is returned where there is no answer."""
    return Answer(score=score, alternatives=alternatives, answered=False)


def is_repeated(answer: Answer, others: list[Answer]) -> bool:
    """Whether one of the others is the same answer.

    Answers are the same where their items are, except for two selections of different cells.
    """
    return any(
        answer.items == other.items
        and (
            answer.aggregation != "NONE"
            or other.aggregation != "NONE"
            or answer.coordinates == other.coordinates
        )
        for other in others
    )


def calibrated(
    answer: Answer, calibration: Calibration, table: Table | None, question: str
) -> Answer:
    """The answer with its score and its alternatives' scores calibrated; their order stays.

    Args:
        answer: with at least one alternative, if there is one, for the signs.
        calibration: of the model.
        table: what was asked; None for a sentence alone.
        question: the question's text.
    """
    if answer.absent and answer.alternatives:
        first, *others = answer.alternatives
        first = dataclasses.replace(first, alternatives=tuple(others))
        first = calibrated(first, calibration, table, question)
        not_given = (dataclasses.replace(first, alternatives=()), *first.alternatives)
        return dataclasses.replace(answer, alternatives=not_given)
    if not answer.items:
        return answer
    signs = answer_signs(answer, table, question) if calibration.weights else None
    score, *others = calibration.apply(
        [answer.score, *(other.score for other in answer.alternatives)], signs
    ).tolist()
    alternatives = tuple(
        dataclasses.replace(other, score=of_other)
        for other, of_other in zip(answer.alternatives, others, strict=True)
    )
    is_sure = score >= calibration.threshold
    return dataclasses.replace(answer, score=score, alternatives=alternatives, sure=is_sure)


def answer_signs(answer: Answer, table: Table | None, question: str) -> dict[str, float]:
    """The signs by which an answer's score is calibrated; arguments as of `calibrated`."""
    ahead = 0.0
    if answer.alternatives:
        ahead = logit_of(answer.score) - logit_of(answer.alternatives[0].score)
    scores = [cell.score for cell in answer.cells]
    size = (0, 0) if table is None else (table.num_rows, table.num_columns)
    return signs_of(answer.aggregation, scores, ahead, size, question, answer.row_from)


def apply_min_score(answer: Answer, min_score: float) -> Answer:
    """The answer if its score is high enough; otherwise none, with it as an alternative."""
    if not answer.answered or answer.score >= min_score:
        return answer
    not_given = dataclasses.replace(answer, alternatives=())
    return no_answer(answer.score, (not_given, *answer.alternatives))


def with_history(question: Question, previous: Answer | ValueError | None) -> Question:
    """The question with texts and cells of the answer before it; none after an error or None."""
    if not isinstance(previous, Answer):
        return dataclasses.replace(question, previous_coordinates=(), previous_answers=())
    return dataclasses.replace(
        question,
        previous_coordinates=previous.coordinates,
        previous_answers=previous.items,
    )
