import pytest

from mate_tf.answers.answer import Answer, SelectedCell
from mate_tf.evaluation.official import Official
from mate_tf.evaluation.scoring import is_correct, score
from mate_tf.evaluation.wtq import Denotation
from mate_tf.tables.table import Question, Table

CELL = SelectedCell(0, 1, "z", 1.0)
TABLE = Table(("a", "b"), (("1", "2"), ("3", "4")))


def scored(task, *answered, official=None):
    """Scores of pairs of a prediction's and a question's fields."""
    predictions, pairs = {}, []
    for number, (prediction, question) in enumerate(answered):
        id_ = question.pop("id", f"q{number}")
        predictions[id_] = Answer(**prediction)
        pairs.append((TABLE, Question("?", id_, **question)))
    return score(task, predictions, pairs, official)


@pytest.mark.parametrize(
    ("task", "prediction", "question", "correct"),
    [
        ("WTQ", {"items": ("2.0",)}, {"answers": ("2",)}, True),
        ("WTQ", {"items": ("2",)}, {"answers": ("2", "3")}, False),
        ("WIKISQL", {"items": ("b", "a")}, {"answers": ("A", "B")}, True),
        ("JSONL", {"items": ("x",)}, {"answers": ("x",), "class_index": 1}, True),
        ("JSONL", {"class_index": 1}, {"class_index": 1}, True),
        ("TABFACT", {"class_index": 0}, {"class_index": 1}, False),
        ("TABFACT", {"answered": False}, {"class_index": 0}, False),
        ("SST2", {"class_index": 1}, {"class_index": 1}, True),
        (
            "SQA",
            {"cells": (SelectedCell(0, 1, "z", 1.0),)},
            {"answer_coordinates": ((0, 1),), "answers": ("z",)},
            True,
        ),
        ("SQA", {"items": ("z",)}, {"answer_coordinates": ((0, 1),), "answers": ("z",)}, False),
        ("HYBRIDQA", {"items": ("the Oslo",)}, {"answers": ("oslo",)}, True),
        ("HYBRIDQA", {"items": ("Oslo", "Rome")}, {"answers": ("Oslo",)}, False),
        # Not accepted: wrong even where nothing would be right.
        ("HYBRIDQA", {"error": "too long"}, {"answers": ("The",)}, False),
        ("SQA", {"error": "too long"}, {"answers": ("z",)}, False),
    ],
)
def test_an_answer_is_right_by_the_definition_of_its_task(task, prediction, question, correct):
    assert is_correct(task, Answer(**prediction), Question("?", "q", **question)) is correct


@pytest.mark.parametrize("task", ["WTQ", "WIKISQL_SUPERVISED", "JSONL", "TABFACT", "HYBRIDQA"])
def test_a_question_without_gold_answer_is_refused(task):
    with pytest.raises(ValueError, match=r"expected a gold answer .*, got none \(question 'q'\)"):
        is_correct(task, Answer(), Question("?", "q"))


@pytest.mark.parametrize(
    ("task", "prediction", "question", "message"),
    [
        (
            "TABFACT",
            {"items": ("x",)},
            {"class_index": 1},
            "a classifier, got .* 'x'",
        ),
        ("WTQ", {"class_index": 1}, {"answers": ("x",)}, "answer from the table, got class 1"),
    ],
)
def test_answers_of_another_kind_of_model_are_refused(task, prediction, question, message):
    with pytest.raises(ValueError, match=rf"{message} \(question 'q0'\)"):
        scored(task, (prediction, question))


def test_an_unknown_task_is_refused():
    with pytest.raises(ValueError, match=r"expected a task of .*'WTQ'.*, got 'NQ'"):
        is_correct("NQ", Answer(), Question("?", "q"))


def test_predictions_for_other_questions_are_refused():
    with pytest.raises(ValueError, match=r"for 1 questions, got 1 .* the first 'q1'"):
        score("WTQ", {"q1": Answer()}, [(TABLE, Question("?", "q2", answers=("a",)))])


def test_denotation_accuracy_and_what_the_scores_are_worth():
    metrics = scored(
        "WTQ",
        ({"items": ("1",), "score": 1.0}, {"answers": ("1",)}),
        ({"items": ("1",), "score": 0.0}, {"answers": ("2",)}),
        ({"items": ("1",), "score": 0.5}, {"answers": ("2",)}),
        # Neither says how much it trusts itself.
        ({"error": "too long", "answered": False}, {"answers": ("2",)}),
        ({"answered": False, "score": 0.1}, {"answers": ("2",)}),
    )
    assert metrics == {
        "denotation_accuracy": pytest.approx(1 / 5),
        "expected_calibration_error": pytest.approx(0.5 / 3),
        "auroc": 1.0,
    }


@pytest.mark.parametrize("answer", ["1", "2"])
def test_where_all_are_right_or_all_wrong_no_area_is_given(answer):
    metrics = scored("WTQ", ({"items": (answer,), "score": 0.5}, {"answers": ("1",)}))
    assert set(metrics) == {"denotation_accuracy", "expected_calibration_error"}


def test_where_nothing_was_answered_scores_are_not_judged():
    metrics = scored("WTQ", ({"answered": False}, {"answers": ("1",)}))
    assert metrics == {"denotation_accuracy": 0.0}


def test_own_questions_may_have_answers_or_classes():
    metrics = scored(
        "JSONL",
        ({"items": ("1",)}, {"answers": ("1",)}),
        ({"class_index": 2}, {"class_index": 2}),
        ({"class_index": 1}, {"class_index": 2}),
    )
    assert (metrics["denotation_accuracy"], metrics["accuracy"]) == (1.0, 0.5)


def test_sequences_are_scored_by_questions_positions_and_as_a_whole():
    def turn(id_, predicted, gold, answer="z"):
        question = {"id": id_, "answer_coordinates": (gold,), "answers": ("z",)}
        return {"cells": (SelectedCell(*predicted, "z", 1.0),), "items": (answer,)}, question

    metrics = scored(
        "SQA",
        turn("nt-1-0_0", (0, 0), (0, 0)),
        turn("nt-1-0_1", (0, 1), (0, 1), answer="y"),
        turn("nt-2-0_0", (0, 0), (0, 0)),
        turn("nt-2-0_1", (0, 0), (0, 1)),
    )
    expected = {
        "all": 0.75,
        "all_d": 0.75,
        "seq": 0.5,
        "all_position_0": 1.0,
        "all_position_1": 0.5,
    }
    assert {name: metrics[name] for name in expected} == expected


def test_parts_are_scored_for_themselves():
    metrics = scored(
        "TABFACT",
        ({"class_index": 1}, {"id": "a", "class_index": 1}),
        ({"class_index": 1}, {"id": "b", "class_index": 0}),
        official=Official(parts={"simple": frozenset("a"), "complex": frozenset("b")}),
    )
    names = ("accuracy", "accuracy_simple", "accuracy_complex")
    assert [metrics[name] for name in names] == [0.5, 1.0, 0.0]


def test_official_golds_come_before_the_questions_own():
    question = ({"items": ("12467",)}, {"id": "nt-1", "answers": ("12,467",)})
    gold = (Denotation.from_text("12,467", canonical="12467.0"),)
    assert scored("WTQ", question, official=Official({"nt-1": gold}))["denotation_accuracy"] == 1.0
    question = ({"items": ("12467",)}, {"id": "nt-1", "answers": ("12,467",)})
    assert scored("WTQ", question)["denotation_accuracy"] == 0.0


def cell(row, score, *others):
    alternatives = tuple(Answer(**cell(*other)) for other in others)
    return {"cells": (SelectedCell(row, 0, "", score),), "alternatives": alternatives}


def test_hits_reach_as_far_as_there_are_alternatives():
    gold = {"answers": ("x",), "answer_coordinates": ((1, 0), (9, 0))}
    metrics = scored(
        "HYBRIDQA",
        (cell(1, 0.9, (2, 0.5), (3, 0.4)), dict(gold)),
        (cell(2, 0.9, (3, 0.5), (1, 0.4)), dict(gold)),
        (cell(2, 0.9, (3, 0.5)), dict(gold)),
        (cell(2, 0.9, (3, 0.5)), {"answers": ("x",)}),
    )
    assert (metrics["hits_at_1"], metrics["hits_at_3"]) == (0.25, 0.5)
    assert "hits_at_5" not in metrics


def test_hits_reach_no_further_where_a_question_is_not_answered():
    gold = {"answers": ("x",), "answer_coordinates": ((1, 0),)}
    unanswered = {
        "answered": False,
        "alternatives": tuple(Answer(**cell(row, 0.1)) for row in (1, 2, 3)),
    }
    metrics = scored("HYBRIDQA", (cell(2, 0.9, (1, 0.5), (3, 0.4)), dict(gold)), (unanswered, gold))
    assert (metrics["hits_at_1"], metrics["hits_at_3"]) == (0.5, 1.0)
    assert "hits_at_5" not in metrics


def test_a_reader_that_selects_no_cells_has_no_hits():
    metrics = scored("HYBRIDQA", ({"items": ("x",)}, {"answers": ("x y",)}))
    assert (metrics["exact_match"], metrics["f1"]) == (0.0, pytest.approx(2 / 3))
    assert not [name for name in metrics if name.startswith("hits")]
