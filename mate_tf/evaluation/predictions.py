"""A model's answers in a file: JSON Lines, an object a question in the data's order.

    {"id": "nt-7", "answered": true, "answer": "Lima", "items": ["Lima"], "cells": [{"row": 0,
     "column": 1, "text": "Lima", "score": 0.93}], "aggregation": "NONE", ...}

It is the answer's JSON form (mate_tf/answers/answer.py) with the question's "id".
"""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path

from mate_tf.answers.answer import Answer
from mate_tf.tables.table import Question, Table
from mate_tf.tables.text_files import complete_text_file, read_json_values


def match_predictions(
    predictions: Mapping[str, Answer],
    pairs: Iterable[tuple[Table, Question]],
    file: str | Path = "predictions",
) -> list[tuple[Answer, Table, Question]]:
    """Pairs answers with their questions, in the questions' order.

    Args:
        predictions: the answers by question id.
        pairs: the questions, each with its table.
        file: where the answers are from, for errors.

    Raises:
        ValueError: if there is no question, a question without answer or an answer to another
            question.
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


def write_predictions(path: str | Path, answers: Iterable[tuple[str, Answer]]) -> None:
    """Writes answers with their questions' ids; the file appears once it is complete."""
    # Half a surrogate pair, which UTF-8 cannot hold, is escaped as JSON escapes it.
    with complete_text_file(path, errors="backslashreplace") as file:
        for id_, answer in answers:
            record = {"id": id_} | answer.to_dict()
            file.write(json.dumps(record, ensure_ascii=False, allow_nan=False) + "\n")


def read_predictions(path: str | Path) -> dict[str, Answer]:
    """Reads answers by question id, in the file's order; also files of the first version.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if a line is not what `write_predictions` writes, or a question has two; it
            names file and line.
    """
    predictions: dict[str, Answer] = {}
    for number, record in read_json_values(path):
        where = f"(file '{path}', line {number})"
        id_ = record.pop("id", None) if isinstance(record, dict) else ""
        if not isinstance(id_, str):
            raise ValueError(f"expected a text as 'id', got {id_!r} {where}")
        try:
            answer = Answer.from_dict(record)
        except ValueError as error:
            raise ValueError(f"{error} {where}") from None
        if id_ in predictions:
            raise ValueError(
                f"expected one prediction a question, got a second for '{id_}' {where}"
            )
        predictions[id_] = answer
    return predictions
