import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mate_tf.evaluation.predictions import (
    Prediction,
    match_predictions,
    prediction_of,
    read_predictions,
    write_predictions,
)
from mate_tf.tables.table import AGGREGATIONS, Question, Table
from mate_tf.tasks.answers import Answer, SelectedCell

TABLE = Table(("a",), (("1",),))
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


def test_a_question_that_was_not_accepted_has_its_error_and_no_answer():
    prediction = prediction_of("q1", ValueError("expected at most 4 tokens, got 9"))
    assert (prediction.answered, prediction.answer, prediction.cells) == (False, (), ())
    assert prediction.error == "expected at most 4 tokens, got 9"


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan])
def test_a_value_that_json_cannot_say_is_left_to_the_answers_text(value):
    answer = Answer((str(value),), "", (), "SUM", value, 0.5, number=value)
    assert (prediction_of("q1", answer).value, prediction_of("q1", answer).number) == (None, None)


def test_cells_are_ranked_by_their_scores_then_by_the_alternatives():
    others = (
        Prediction("q1", cells=((3, 0), (0, 0)), cell_scores=(0.3, 0.4)),
        Prediction("q1", cells=((4, 0),), cell_scores=(0.9,)),
    )
    best = Prediction("q1", cells=((0, 0), (1, 0)), cell_scores=(0.6, 0.7), alternatives=others)
    assert best.ranked_cells == ((1, 0), (0, 0), (3, 0), (4, 0))


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


def test_predictions_are_matched_in_the_questions_order():
    predicted = {"q2": Prediction("q2"), "q1": Prediction("q1")}
    pairs = [(TABLE, Question("?", "q1")), (TABLE, Question("?", "q2"))]
    matched = match_predictions(predicted, pairs)
    assert [(p.question_id, q.question_id) for p, _, q in matched] == [("q1", "q1"), ("q2", "q2")]


@pytest.mark.parametrize(
    ("predicted", "asked", "message"),
    [
        (["x", "q1"], ["q1"], "for 1 questions, got 2 in 'file', 1 of them for other.*first 'x'"),
        (["x"], ["q1"], "for 1 questions, got 1 in 'file', 1 of them for other.*first 'x'"),
        (["q1"], ["q1", "q2"], "for 2 questions, got 1 in 'file', and none for 1 .*first 'q2'"),
        ([], ["q1"], "for 1 questions, got 0 in 'file', and none for 1 .*first 'q1'"),
        ([], [], "expected at least 1 question, got 0"),
    ],
)
def test_predictions_for_other_questions_are_refused(predicted, asked, message):
    by_id = {id_: Prediction(id_) for id_ in predicted}
    pairs = [(TABLE, Question("?", id_)) for id_ in asked]
    with pytest.raises(ValueError, match=message):
        match_predictions(by_id, pairs, "file")
