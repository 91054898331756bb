"""Answers in a file: written, read back and matched with their questions."""

import json

import pytest

from mate_tf.answers.answer import Answer, SelectedCell
from mate_tf.evaluation.predictions import match_predictions, read_predictions, write_predictions
from mate_tf.tables.table import Question, Table
from tests.small import cases

TABLE = Table(("a",), (("1",),))
CELL = SelectedCell(0, 1, "3 é", 0.5)
ANSWER = Answer(("3 é",), (CELL,), score=0.25, number=3.0, alternatives=(Answer(("x",)),))


def test_what_is_written_is_read_back_in_its_order(tmp_path):
    path = tmp_path / "dev.jsonl"
    written = {
        "q2": ANSWER,
        "\ud800": Answer(("\udfff",)),  # halves of surrogate pairs, which UTF-8 cannot hold
        "q1": Answer.of(ValueError("too long")),
    }
    write_predictions(path, written.items())
    read = read_predictions(path)
    assert list(read.items()) == list(written.items())
    first = path.read_text(encoding="utf-8").splitlines()[0]
    assert "é" in first
    assert json.loads(first) == {"id": "q2"} | ANSWER.to_dict()


def test_a_file_of_the_first_version_is_read(tmp_path):
    other = {"answer": ["a", "b"], "cells": [[0, 0], [2, 1]], "cell_scores": [0.5, 0.75]}
    other |= {"aggregation": "NONE", "value": None, "class_index": None}
    other |= {"score": 0.5, "answered": True}
    line = {"id": "q1", **other, "cells": [[0, 0]], "alternatives": [other], "rows_dropped": 2}
    del line["cell_scores"]  # the very first had none
    (tmp_path / "dev.jsonl").write_text(json.dumps(line))
    answer = read_predictions(tmp_path / "dev.jsonl")["q1"]
    assert (answer.items, answer.coordinates, answer.score) == (("a", "b"), ((0, 0),), 0.5)
    assert answer.rows_dropped == 2
    (alternative,) = answer.alternatives
    assert alternative.coordinates == ((0, 0), (2, 1))
    assert alternative.ranked_cells == ((2, 1), (0, 0))


@cases(
    "line, message",
    ("{", "expected valid JSON"),
    ("[]", "expected answer to be an object, got list"),
    ('{"items": [], "score": 0}', "expected a text as 'id', got None"),
    ('{"id": "q2"}', "expected the keys items, score in answer, which lacks them"),
    (json.dumps({"id": "q1"} | ANSWER.to_dict()), "one prediction a question, .* for 'q1'"),
)
def test_a_line_that_is_no_prediction_is_refused_with_file_and_line(tmp_path, line, message):
    path = tmp_path / "dev.jsonl"
    write_predictions(path, [("q1", ANSWER)])
    with path.open("a") as file:
        file.write(line)
    with pytest.raises(ValueError, match=rf"{message}.*\(file '{path}', line 2\)"):
        read_predictions(path)


def test_no_file_is_left_of_predictions_that_break_off(tmp_path):
    def broken():
        yield "q1", ANSWER
        raise RuntimeError("stopped")

    with pytest.raises(RuntimeError, match="stopped"):
        write_predictions(tmp_path / "dev.jsonl", broken())
    assert not list(tmp_path.iterdir())


def test_predictions_are_matched_in_the_questions_order():
    predicted = {"q2": Answer(("b",)), "q1": Answer(("a",))}
    pairs = [(TABLE, Question("?", "q1")), (TABLE, Question("?", "q2"))]
    matched = match_predictions(predicted, pairs)
    assert [(p.text, q.question_id) for p, _, q in matched] == [("a", "q1"), ("b", "q2")]


@cases(
    "predicted, asked, message",
    (["x", "q1"], ["q1"], "for 1 questions, got 2 in 'file', 1 of them for other.*first 'x'"),
    (["x"], ["q1"], "for 1 questions, got 1 in 'file', 1 of them for other.*first 'x'"),
    (["q1"], ["q1", "q2"], "for 2 questions, got 1 in 'file', and none for 1 .*first 'q2'"),
    ([], ["q1"], "for 1 questions, got 0 in 'file', and none for 1 .*first 'q1'"),
    ([], [], "expected at least 1 question, got 0"),
)
def test_predictions_for_other_questions_are_refused(predicted, asked, message):
    by_id = {id_: Answer() for id_ in predicted}
    pairs = [(TABLE, Question("?", id_)) for id_ in asked]
    with pytest.raises(ValueError, match=message):
        match_predictions(by_id, pairs, "file")
