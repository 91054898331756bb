"""A model's answers in a file: JSON Lines, an object a question in the data's order.

    {"id": "nt-7", "answer": ["Lima"], "cells": [[0, 1]], "cell_scores": [0.93],
     "aggregation": "NONE", "value": null, "class_index": null, "score": 0.9, "answered": true,
     "alternatives": [{"answer": ["Rome"], ...}]}

"cells" are (row, column) of the body, counted from zero, and "cell_scores" their probabilities;
"rows_dropped" says how many rows the model did not see, where it is some; "error" says why a
question was not accepted, which then has no answer.
"""

import json
import math
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from mate_tf.evaluation.predictions import Prediction
from mate_tf.tables.table import AGGREGATIONS
from mate_tf.tables.text_files import complete_text_file, read_json_values


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
