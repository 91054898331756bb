"""Predictions made of answers, and matched with the questions."""

import math

import pytest

from mate_tf.answers.answer import Answer
from mate_tf.evaluation.predictions import Prediction, match_predictions, prediction_of
from mate_tf.tables.table import Question, Table

TABLE = Table(("a",), (("1",),))


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
