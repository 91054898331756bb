"""What a model answered to questions, matched with them."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from mate_tf.tables.table import Coordinates, Question, Table
from mate_tf.tasks.answers import Answer


@dataclass(frozen=True)
class Prediction:
    """What a model answered to a question.

    Attributes:
        question_id: the question's.
        answer: the answer as a list of texts, which is () where there is none.
        cells: the cells it comes from, (row, column) in the body, counted from zero.
        cell_scores: the probability of each of them.
        aggregation: what was computed from them.
        value: the computed number, None where none was computed or it is not finite.
        number: the answer's number without its unit: the computed one, or that of a single cell.
        class_index: the class, of a model that classifies.
        score: the probability that the answer is right, as far as the model knows.
        answered: False where the score was below what was asked for, or there is an error.
        alternatives: the next best answers, the best first, without alternatives of their own.
        rows_dropped: rows that the model did not see.
        error: why the question was not accepted; "" where it was.
    """

    question_id: str
    answer: tuple[str, ...] = ()
    cells: Coordinates = ()
    cell_scores: tuple[float, ...] = ()
    aggregation: str = "NONE"
    value: float | None = None
    number: float | None = None
    class_index: int | None = None
    score: float = 0.0
    answered: bool = True
    alternatives: tuple["Prediction", ...] = ()
    rows_dropped: int = 0
    error: str = ""

    @property
    def text(self) -> str:
        """The answer as one text."""
        return ", ".join(self.answer)

    @property
    def ranked_cells(self) -> Coordinates:
        """The answer's cells and those of its alternatives, each once, the best first."""
        ranked = [
            cell
            for answer in (self, *self.alternatives)
            for cell, _ in sorted(
                zip(answer.cells, answer.cell_scores, strict=True), key=lambda pair: -pair[1]
            )
        ]
        return tuple(dict.fromkeys(ranked))


def prediction_of(question_id: str, answer: Answer | ValueError) -> Prediction:
    """The prediction of an answer, or of the error of a question that was not accepted."""
    if isinstance(answer, ValueError):
        return Prediction(question_id, answered=False, error=str(answer))
    return Prediction(
        question_id,
        answer.items,
        tuple((cell.row, cell.column) for cell in answer.cells),
        tuple(cell.score for cell in answer.cells),
        answer.aggregation,
        _finite(answer.value),
        _finite(answer.number),
        answer.class_index,
        answer.score,
        answer.answered,
        tuple(prediction_of(question_id, other) for other in answer.alternatives),
        answer.rows_dropped,
    )


def _finite(number: float | None) -> float | None:
    """JSON has no other."""
    return number if number is not None and math.isfinite(number) else None


def match_predictions(
    predictions: Mapping[str, Prediction],
    pairs: Iterable[tuple[Table, Question]],
    file: str | Path = "predictions",
) -> list[tuple[Prediction, Table, Question]]:
    """Pairs the predictions with the questions that they answer, in the questions' order.

    Args:
        predictions: by question id.
        pairs: the questions, each with its table.
        file: what the predictions were read from, for errors.

    Raises:
        ValueError: if there is no question, a question without prediction or a prediction for
            another question.
    """
    pairs = list(pairs)
    if not pairs:
        raise ValueError("expected at least 1 question, got 0")
    questions = {question.question_id for _, question in pairs}
    counts = (
        f"expected predictions for {len(questions)} questions, got {len(predictions)} in '{file}'"
    )
    if unknown := [id_ for id_ in predictions if id_ not in questions]:
        raise ValueError(
            f"{counts}, {len(unknown)} of them for other questions, the first '{unknown[0]}'; "
            "predict the same file of questions"
        )
    if missing := [q.question_id for _, q in pairs if q.question_id not in predictions]:
        raise ValueError(
            f"{counts}, and none for {len(missing)} questions, the first '{missing[0]}'; "
            "predict all of them"
        )
    return [(predictions[question.question_id], table, question) for table, question in pairs]
