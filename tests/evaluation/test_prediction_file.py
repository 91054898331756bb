"""Predictions in a file: written, read back, and what is refused."""

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mate_tf.answers.answer import Answer, SelectedCell
from mate_tf.evaluation.predictions import (
    Prediction,
    prediction_of,
    read_predictions,
    write_predictions,
)
from mate_tf.tables.table import AGGREGATIONS

LINE = {
    "id": "q1",
    "answer": ["1"],
    "cells": [[0, 0]],
    "cell_scores": [0.5],
    "aggregation": "NONE",
    "value": None,
    "number": None,
    "class_index": None,
    "score": 0.25,
    "answered": True,
    "alternatives": [],
}
NUMBERS = st.floats(allow_nan=False, allow_infinity=False)
SCORES = st.floats(0, 1)
CELLS = st.lists(st.tuples(st.integers(0, 300), st.integers(0, 9), SCORES), max_size=3)


@st.composite
def predictions(draw, question_id, num_alternatives=2):
    cells = draw(CELLS)
    return Prediction(
        question_id,
        tuple(draw(st.lists(st.text(st.characters(exclude_categories=())), max_size=3))),
        tuple((row, column) for row, column, _ in cells),
        tuple(score for _, _, score in cells),
        draw(st.sampled_from(AGGREGATIONS)),
        draw(st.none() | NUMBERS),
        draw(st.none() | NUMBERS),
        draw(st.none() | st.integers(0, 9)),
        draw(SCORES),
        draw(st.booleans()),
        tuple(draw(predictions(question_id, 0)) for _ in range(num_alternatives)),
        draw(st.integers(0, 9)) if num_alternatives else 0,
        draw(st.text()) if num_alternatives else "",
    )


@st.composite
def files(draw):
    ids = draw(st.lists(st.text(st.characters(exclude_categories=())), unique=True, max_size=4))
    return [draw(predictions(id_)) for id_ in ids]


@given(files())
def test_what_is_written_is_read_back_in_its_order(tmp_path_factory, written):
    path = tmp_path_factory.mktemp("predictions") / "dev.jsonl"
    write_predictions(path, written)
    read = read_predictions(path)
    assert list(read) == [prediction.question_id for prediction in written]
    assert list(read.values()) == written


def test_a_line_is_an_object_with_the_names_of_an_answer(tmp_path):
    path = tmp_path / "dev.jsonl"
    cell = SelectedCell(0, 1, "3 é", 0.5)
    answer = Answer(("3 é",), "3 é", (cell,), "NONE", None, 0.25, number=3.0)
    write_predictions(path, [prediction_of("q1", answer)])
    assert "é" in path.read_text(encoding="utf-8")
    assert json.loads(path.read_text(encoding="utf-8")) == LINE | {
        "answer": ["3 é"],
        "cells": [[0, 1]],
        "number": 3.0,
    }


def changed(**values):
    return json.dumps(LINE | values)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "expected valid JSON"),
        ("[]", "expected an object, got list"),
        (changed(answers=[]), r"expected keys among .*, got \['answers'\]"),
        (json.dumps({"id": "q1"}), r"missing \['answer', 'cells', 'aggregation'"),
        (changed(id=3), "expected a text as 'id', got 3"),
        (changed(answer="1"), "expected a list of texts as 'answer', got '1'"),
        (changed(answer=[1]), "expected a list of texts as 'answer'"),
        (changed(cells=[[0]]), r"expected a list of \[row, column\] as 'cells'"),
        (changed(cells=[[0, -1]]), r"expected a list of \[row, column\] as 'cells'"),
        (changed(cells=[[0, True]]), r"expected a list of \[row, column\] as 'cells'"),
        (changed(cell_scores=[]), "expected 1 'cell_scores', got 0"),
        (changed(aggregation="MAX"), "expected one of .* as 'aggregation', got 'MAX'"),
        (changed(value="1"), "expected a number or null as 'value'"),
        (changed(value=math.nan), "expected a number or null as 'value', got nan"),
        (changed(class_index=-1), "expected an index or null as 'class_index'"),
        (changed(score=1.5), "expected a number from 0 to 1 as 'score', got 1.5"),
        (changed(answered=1), "expected true or false as 'answered'"),
        (changed(alternatives={}), "expected a list as 'alternatives'"),
        (changed(alternatives=[3]), "expected an object, got int"),
        (changed(alternatives=[LINE]), r"got \['id', 'alternatives'\]"),
        (changed(), "expected one prediction a question, got a second for 'q1'"),
    ],
)
def test_a_line_that_is_no_prediction_is_refused_with_file_and_line(tmp_path, line, message):
    path = tmp_path / "dev.jsonl"
    path.write_text(f"{changed()}\n{line}\n")
    with pytest.raises(ValueError, match=rf"{message}.*\(file '{path}', line 2\)"):
        read_predictions(path)


def test_cells_may_come_without_scores(tmp_path):
    path = tmp_path / "dev.jsonl"
    path.write_text(json.dumps({k: v for k, v in LINE.items() if k != "cell_scores"}))
    assert read_predictions(path)["q1"].cell_scores == (0.0,)


def test_no_file_is_left_of_predictions_that_break_off(tmp_path):
    def broken():
        yield Prediction("q1")
        raise RuntimeError("stopped")

    with pytest.raises(RuntimeError, match="stopped"):
        write_predictions(tmp_path / "dev.jsonl", broken())
    assert not list(tmp_path.iterdir())
