"""Scores of answers by task, SQA's sequences, what scores are worth, and HybridQA's scores."""

import csv

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mate_tf.answers.answer import Answer, SelectedCell
from mate_tf.datasets.wtq import split_question_id
from mate_tf.evaluation.official import Denotation, Official, write_official
from mate_tf.evaluation.scoring import (
    auroc,
    cells_correct,
    exact_match,
    expected_calibration_error,
    f1,
    hits_at,
    is_correct,
    normalize_answer,
    score,
)
from mate_tf.tables.table import Question, Table
from tests.small import cases, stored_cases

TABLE = Table(("a", "b"), (("1", "2"), ("3", "4")))
WITH_GOLD = ("WTQ", "WIKISQL_SUPERVISED", "JSONL", "TABFACT", "HYBRIDQA")


def scored(task, *answered, official=None):
    """Scores of pairs of a prediction's and a question's fields."""
    predictions, pairs = {}, []
    for number, (prediction, question) in enumerate(answered):
        id_ = question.pop("id", f"q{number}")
        predictions[id_] = Answer(**prediction)
        pairs.append((TABLE, Question("?", id_, **question)))
    return score(task, predictions, pairs, official)


@stored_cases("task, prediction, question, correct")
def test_an_answer_is_right_by_the_definition_of_its_task(task, prediction, question, correct):
    cells = tuple(SelectedCell(*cell, "z", 1.0) for cell in prediction.get("cells", ()))
    answer = Answer(**prediction | {"cells": cells})
    assert is_correct(task, answer, Question("?", "q", **question)) is correct


@cases(
    "task, message",
    *((task, r"expected a gold answer .*, got none \(question 'q'\)") for task in WITH_GOLD),
    ("NQ", r"expected a task of .*'WTQ'.*, got 'NQ'"),
)
def test_a_question_without_gold_answer_or_of_an_unknown_task_is_refused(task, message):
    with pytest.raises(ValueError, match=message):
        is_correct(task, Answer(), Question("?", "q"))


def test_scores_of_an_unknown_task_are_refused():
    with pytest.raises(ValueError, match=r"expected a task of .*'WTQ'.*, got 'NQ'"):
        scored("NQ", ({}, {}))


@cases(
    "task, prediction, question, message",
    ("TABFACT", {"items": ("x",)}, {"class_index": 1}, "a classifier, or yes or no, got .* 'x'"),
    ("WTQ", {"class_index": 1}, {"answers": ("x",)}, "answer from the table, got class 1"),
)
def test_answers_of_another_kind_of_model_are_refused(task, prediction, question, message):
    with pytest.raises(ValueError, match=rf"{message} \(question 'q0'\)"):
        scored(task, (prediction, question))


RIGHT, WRONG = ({"items": (item,), "score": 0.5} for item in "12")


@cases(
    "predictions, expected",
    (
        [
            *(RIGHT | {"score": 1.0}, WRONG | {"score": 0.0}, WRONG),
            # Neither says how much it trusts itself.
            *({"error": "too long", "answered": False}, {"answered": False, "score": 0.1}),
        ],
        (1 / 5, 0.5 / 3, 1.0),
    ),
    ([RIGHT], (1.0, 0.5, None)),
    ([WRONG], (0.0, 0.5, None)),
    ([{"answered": False}], (0.0, None, None)),
)
def test_scores_are_judged_where_there_are_some_and_their_area_where_they_differ(
    predictions, expected
):
    metrics = scored("WTQ", *((one, {"answers": ("1",)}) for one in predictions))
    names = "denotation_accuracy", "expected_calibration_error", "auroc"
    assert metrics.keys() <= {*names}
    for name, value in zip(names, expected, strict=True):
        assert metrics.get(name) == (value if value is None else pytest.approx(value))


def test_own_questions_may_have_answers_or_classes():
    metrics = scored(
        "JSONL",
        ({"items": ("1",)}, {"answers": ("1",)}),
        ({"class_index": 2}, {"class_index": 2}),
        ({"class_index": 1}, {"class_index": 2}),
    )
    assert (metrics["denotation_accuracy"], metrics["accuracy"]) == (1.0, 0.5)


def test_a_statement_is_judged_by_the_first_verdict_of_a_model_for_questions():
    other = {"items": ("Oslo",), "alternatives": (Answer(("no",)), Answer(("yes",)))}
    metrics = scored(
        "TABFACT",
        ({"items": ("yes",)}, {"class_index": 1}),
        ({"items": ("yes",)}, {"class_index": 0}),
        (other, {"class_index": 0}),
        ({"answered": False, "alternatives": (Answer(("yes",)),)}, {"class_index": 1}),
        ({"items": ("Oslo",)}, {"class_index": 1}),  # no verdict among its alternatives: wrong
    )
    assert metrics["accuracy"] == 0.6


def test_sequences_are_scored_by_questions_positions_and_as_a_whole():
    def turn(id_, predicted, gold, answer="z"):
        question = {"id": id_, "answer_coordinates": (gold,), "answers": ("z",)}
        return {"cells": (SelectedCell(*predicted, "z", 1.0),), "items": (answer,)}, question

    metrics = scored(
        "SQA",
        turn("nt-1-0_0", (0, 0), (0, 0)),
        turn("nt-1-0_1", (0, 1), (0, 1), answer="y"),
        # The same question by another annotator is another sequence.
        turn("nt-1-1_0", (0, 0), (0, 0)),
        turn("nt-1-1_1", (0, 0), (0, 1)),
    )
    expected = {"all": 0.75, "all_d": 0.75, "seq": 0.5}
    expected |= {"all_position_0": 1.0, "all_position_1": 0.5}
    assert {name: metrics[name] for name in expected} == expected


def test_parts_are_scored_for_themselves():
    metrics = scored(
        "TABFACT",
        ({"class_index": 1}, {"id": "a", "class_index": 1}),
        ({"class_index": 1}, {"id": "b", "class_index": 0}),
        official=Official(parts={"simple": frozenset("a"), "complex": frozenset("b")}),
    )
    assert [metrics[f"accuracy{part}"] for part in ("", "_simple", "_complex")] == [0.5, 1.0, 0.0]


def test_official_golds_come_before_the_questions_own():
    gold = (Denotation.from_text("12,467", canonical="12467.0"),)
    for official, accuracy in ((Official({"nt-1": gold}), 1.0), (None, 0.0)):
        question = ({"items": ("12467",)}, {"id": "nt-1", "answers": ("12,467",)})
        assert scored("WTQ", question, official=official)["denotation_accuracy"] == accuracy


def cell(row, score, *others):
    alternatives = tuple(Answer(**cell(*other)) for other in others)
    return {"cells": (SelectedCell(row, 0, "", score),), "alternatives": alternatives}


UNANSWERED = {"answered": False, "alternatives": tuple(Answer(**cell(n, 0.1)) for n in (1, 2, 3))}


@cases(
    "predictions, hits",
    # They reach as far as there are alternatives,
    (
        [
            cell(1, 0.9, (2, 0.5), (3, 0.4)),
            cell(2, 0.9, (3, 0.5), (1, 0.4)),
            cell(2, 0.9, (3, 0.5)),
        ],
        (0.25, 0.5),
    ),
    # and no further where a question is not answered.
    ([cell(2, 0.9, (1, 0.5), (3, 0.4)), UNANSWERED, UNANSWERED], (0.5, 0.75)),
    # A reader that selects no cells has none.
    ([{"items": ("x y",)}] * 3, (None, None)),
)
def test_hits_are_counted_among_the_cells_that_are_ranked(predictions, hits):
    gold = {"answers": ("x",), "answer_coordinates": ((1, 0), (9, 0))}
    without_cell = predictions[-1], {"answers": ("x",)}
    metrics = scored("HYBRIDQA", *((one, dict(gold)) for one in predictions), without_cell)
    assert (metrics.get("hits_at_1"), metrics.get("hits_at_3")) == hits
    assert "hits_at_5" not in metrics


@cases(
    "cells, gold, answers, correct",
    (((1, 0), (0, 0)), ((0, 0), (1, 0)), ("a", "b"), True),
    (((0, 0),), ((0, 0), (1, 0)), ("a", "b"), False),
    (((0, 0), (1, 0)), ((0, 0),), ("a",), False),
    ((), ((0, 0),), ("a",), False),
    ((), (), (), True),
    # The gold cell is in the header: no prediction has it, and none is not it either.
    ((), (), ("Name",), False),
)
def test_cells_are_compared_as_sets(cells, gold, answers, correct):
    question = Question("?", answers=answers, answer_coordinates=gold)
    assert cells_correct(cells, question) is correct


def test_an_id_names_its_sequence_and_its_position_or_is_refused():
    ids = {"nt-639-0_1": ("nt-639-0", 1), "my_own_12": ("my_own", 12), "_0": ("", 0)}
    assert {id_: split_question_id(id_) for id_ in ids} == ids
    for id_ in ("nt-639", "nt-639-0_", "nt-639-0_x", "nt_²", "nt_-1", ""):
        with pytest.raises(ValueError, match=f"such as 'nt-639-0_1', got '{id_}'"):
            split_question_id(id_)


def test_cells_are_written_as_the_official_script_reads_them(tmp_path):
    path = tmp_path / "pred.tsv"
    cells = (SelectedCell(0, 1, "", 1.0), SelectedCell(2, 3, "", 1.0))
    write_official("SQA", path, {"nt-639-0_1": Answer(cells=cells), "nt-640-2_0": Answer()})
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    assert rows[0] == {
        "id": "nt-639",
        "annotator": "0",
        "position": "1",
        "answer_coordinates": "['(0, 1)', '(2, 3)']",
    }
    assert (rows[1]["annotator"], rows[1]["answer_coordinates"]) == ("2", "[]")
    with pytest.raises(ValueError, match="expected an id such as 'nt-639-0_1', got 'mine_1'"):
        write_official("SQA", path, {"mine_1": Answer()})


ANSWERS = st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=1, max_size=50)


@given(ANSWERS, st.integers(1, 20))
def test_the_error_equals_its_definition(answers, bins):
    scores, correct = zip(*answers, strict=True)
    total = 0.0
    for number in range(bins):
        members = [(s, c) for s, c in answers if min(int(s * bins), bins - 1) == number]
        if members:
            mean_score, accuracy = np.mean(members, axis=0)
            total += len(members) / len(answers) * abs(mean_score - accuracy)
    # Sums of at most 50 numbers up to 1, each rounded to half a unit in the last place.
    assert expected_calibration_error(scores, correct, bins) == pytest.approx(total, abs=50 / 2**50)


@given(ANSWERS)
def test_the_area_is_the_chance_that_a_right_answer_scores_higher(answers):
    right = [score for score, is_right in answers if is_right]
    wrong = [score for score, is_right in answers if not is_right]
    area = auroc(*zip(*answers, strict=True))
    if right and wrong:
        wins = [(a > b) + 0.5 * (a == b) for a in right for b in wrong]
        assert area == pytest.approx(np.mean(wins))
    else:
        assert area is None


@pytest.mark.parametrize("metric", [expected_calibration_error, auroc])
@cases(
    "scores, correct, message",
    ([], [], "expected at least 1 answer, got 0"),
    ([0.5], [True, False], "expected a score for each of 2 answers, got 1 scores"),
    ([0.5, 1.5], [True, False], "expected scores from 0 to 1, got 1.5"),
    ([0.5, float("nan")], [True, False], "expected scores from 0 to 1, got nan"),
)
def test_what_is_no_list_of_probabilities_is_refused(metric, scores, correct, message):
    with pytest.raises(ValueError, match=message):
        metric(scores, correct)


WORDS = st.lists(st.sampled_from(["the", "a", "Oslo", "oslo", "3", "%", "it's"])).map(" ".join)


@cases(
    "text, normalized",
    *(("The  Asian\telephant !", "asian elephant"), ("it's", "its"), ("A-an", "aan")),
    *(("–the–", "– –"), ("theatre", "theatre"), ("1,000.5", "10005"), ("Über", "über")),
    ("A", ""),
)
def test_case_ascii_punctuation_articles_and_white_space_do_not_count(text, normalized):
    assert normalize_answer(text) == normalized


@cases(
    "prediction, gold, exact, overlap",
    *(("the Oslo.", "oslo", 1.0, 1.0), ("Oslo and Rome", "Rome", 0.0, 0.5)),
    *(("Rome Rome", "Rome", 0.0, 2 / 3), ("Rome", "Oslo", 0.0, 0.0), ("", "Oslo", 0.0, 0.0)),
    *(("The", "a", 1.0, 1.0), ("", "", 1.0, 1.0)),
)
def test_words_are_counted_as_often_as_they_come(prediction, gold, exact, overlap):
    assert exact_match(prediction, gold) == exact
    assert f1(prediction, gold) == pytest.approx(overlap)


@given(WORDS, WORDS)
def test_f1_is_symmetric_from_0_to_1_and_1_for_a_match(prediction, gold):
    assert 0 <= f1(prediction, gold) == f1(gold, prediction) <= 1
    assert exact_match(prediction, gold) <= f1(prediction, gold)


@cases("k, expected", (1, 0.0), (2, 0.0), (3, 1.0), (5, 1.0))
def test_a_hit_is_any_of_the_answers_cells_among_the_k_best(k, expected):
    ranked = [(0, 0), (0, 0), (1, 1), (2, 0)]  # three cells, one twice
    assert hits_at(k, ranked, {(2, 0), (9, 9)}) == expected
    assert hits_at(k, ranked, set()) == hits_at(k, [], {(0, 0)}) == 0.0
