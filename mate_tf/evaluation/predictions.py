"""A model's answers in a file: JSON Lines, an object a question in the data's order.

    {"id": "nt-7", "answer": ["Lima"], "cells": [[0, 1]], "cell_scores": [0.93],
     "aggregation": "NONE", "value": null, "class_index": null, "score": 0.9, "answered": true,
     "alternatives": [{"answer": ["Rome"], ...}]}

"cells" are (row, column) of the body, counted from zero, and "cell_scores" their probabilities;
"rows_dropped" says how many rows the model did not see, where it is some; "error" says why a
question was not accepted, which then has no answer.

What a model answered to questions, matched with them.
"""

import json
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mate_tf.answers.answer import Answer
from mate_tf.tables.table import AGGREGATIONS, Coordinates, Question, Table
from mate_tf.tables.text_files import complete_text_file, read_json_values


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


def write_predictions(path: str | Path, predictions: Iterable[Prediction]) -> None:
    """Writes predictions; the file appears only once it is complete."""
    # Half a surrogate pair, which is no UTF-8, is escaped as JSON escapes it.
    with complete_text_file(path, errors="backslashreplace") as file:
        file.writelines(map(_line, predictions))


def read_predictions(path: str | Path) -> dict[str, Prediction]:
    """Reads predictions by question id, in the file's order.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if a line is not what `write_predictions` writes or a question has two; it
            names file and line.
    """
    predictions: dict[str, Prediction] = {}
    for number, record in read_json_values(path):
        where = f"(file '{path}', line {number})"
        prediction = _prediction(record, _QUESTION, where)
        if prediction.question_id in predictions:
            raise ValueError(
                f"expected one prediction a question, got a second for "
                f"'{prediction.question_id}' {where}"
            )
        predictions[prediction.question_id] = prediction
    return predictions


def _line(prediction: Prediction) -> str:
    record = {
        "id": prediction.question_id,
        **_record(prediction),
        "alternatives": [_record(other) for other in prediction.alternatives],
        **({"rows_dropped": prediction.rows_dropped} if prediction.rows_dropped else {}),
        **({"error": prediction.error} if prediction.error else {}),
    }
    return json.dumps(record, ensure_ascii=False, allow_nan=False) + "\n"


def _record(prediction: Prediction) -> dict[str, Any]:
    return {name: getattr(prediction, name) for name in _ANSWER}


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _is_index(value: Any) -> bool:
    return type(value) is int and value >= 0


def _is_list(value: Any, is_item: Callable[[Any], bool] = lambda _: True) -> bool:
    return isinstance(value, list) and all(map(is_item, value))


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


# Keys, each with a check of its value and what that is to be: of any answer, and of a question's.
_Kinds = Mapping[str, tuple[Callable[[Any], bool], str]]
_ANSWER: _Kinds = {
    "answer": (lambda v: _is_list(v, _is_text), "a list of texts"),
    "cells": (
        lambda v: _is_list(v, lambda cell: _is_list(cell, _is_index) and len(cell) == 2),
        "a list of [row, column]",
    ),
    "cell_scores": (lambda v: _is_list(v, _is_number), "a list of numbers"),
    "aggregation": (lambda v: v in AGGREGATIONS, f"one of {AGGREGATIONS}"),
    "value": (lambda v: v is None or _is_number(v), "a number or null"),
    "number": (lambda v: v is None or _is_number(v), "a number or null"),
    "class_index": (lambda v: v is None or _is_index(v), "an index or null"),
    "score": (lambda v: _is_number(v) and 0 <= v <= 1, "a number from 0 to 1"),
    "answered": (lambda v: isinstance(v, bool), "true or false"),
}
_QUESTION: _Kinds = {
    "id": (_is_text, "a text"),
    **_ANSWER,
    "alternatives": (_is_list, "a list"),
    "rows_dropped": (_is_index, "a count"),
    "error": (_is_text, "a text"),
}
_OPTIONAL = ("cell_scores", "number", "alternatives", "rows_dropped", "error")


def _prediction(record: Any, kinds: _Kinds, where: str, question_id: str = "") -> Prediction:
    """The prediction of a line's object, or of an alternative in it, which has no id."""
    if not isinstance(record, dict):
        raise ValueError(f"expected an object, got {type(record).__name__} {where}")
    if unknown := [key for key in record if key not in kinds]:
        raise ValueError(f"expected keys among {list(kinds)}, got {unknown} {where}")
    required = [key for key in kinds if key not in _OPTIONAL]
    if missing := [key for key in required if key not in record]:
        raise ValueError(f"expected the keys {required}, missing {missing} {where}")
    for key, value in record.items():
        is_kind, meaning = kinds[key]
        if not is_kind(value):
            raise ValueError(f"expected {meaning} as '{key}', got {value!r:.80} {where}")
    values = {key: _as_tuple(value) for key, value in record.items()}
    id_ = values.pop("id", question_id)
    scores = values.setdefault("cell_scores", (0.0,) * len(values["cells"]))
    if len(scores) != len(values["cells"]):
        raise ValueError(
            f"expected {len(values['cells'])} 'cell_scores', got {len(scores)} {where}"
        )
    values["alternatives"] = tuple(
        _prediction(other, _ANSWER, where, id_) for other in values.get("alternatives", ())
    )
    return Prediction(id_, **values)


def _as_tuple(value: Any) -> Any:
    return tuple(map(_as_tuple, value)) if isinstance(value, list) else value
