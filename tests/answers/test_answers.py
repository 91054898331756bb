"""Answers with calibrated scores, and none where the score is too low."""

import dataclasses

import pytest

from mate_tf.answers.answer import (
    Answer,
    SelectedCell,
    answer_of_cells,
    apply_min_score,
    calibrated,
    no_answer,
)
from mate_tf.answers.calibration import Calibration

CELLS = (SelectedCell(0, 1, "1.5 km", 0.9), SelectedCell(2, 1, "2 km", 0.7))


def answer_with_others() -> Answer:
    candidates = (
        answer_of_cells(CELLS[:number], aggregation, score)
        for number, aggregation, score in ((2, "SUM", 0.4), (1, "NONE", 0.3), (2, "COUNT", 0.1))
    )
    answer, *others = [found for found in candidates if found is not None]
    return dataclasses.replace(answer, alternatives=tuple(others))


@pytest.mark.parametrize("min_score", [0.0, 0.3, 0.4])
def test_an_answer_of_enough_score_is_given(min_score):
    answer = answer_with_others()
    assert apply_min_score(answer, min_score) is answer


def test_below_the_score_asked_for_there_is_no_answer_but_what_it_would_have_been():
    answer = answer_with_others()
    refused = apply_min_score(answer, 0.41)
    assert not refused.answered
    assert (refused.items, refused.text, refused.cells, refused.value) == ((), "", (), None)
    assert (refused.score, refused.aggregation, refused.number) == (0.4, "NONE", None)
    would_be, *others = refused.alternatives
    assert would_be == dataclasses.replace(answer, alternatives=())
    assert tuple(others) == answer.alternatives


def test_no_answer_stays_none_at_any_score():
    assert apply_min_score(no_answer(), 0.0) == no_answer()
    assert calibrated(no_answer(), Calibration(2.0, 3.0)) == no_answer()


def test_a_calibration_changes_scores_and_nothing_else():
    calibration = Calibration(2.0, -0.5)
    answer = answer_with_others()
    changed = calibrated(answer, calibration)
    pairs = zip([changed, *changed.alternatives], [answer, *answer.alternatives], strict=True)
    for after, before in pairs:
        assert after.score == pytest.approx(calibration.apply(before.score))
        assert dataclasses.replace(after, score=0.0, alternatives=()) == dataclasses.replace(
            before, score=0.0, alternatives=()
        )


@pytest.mark.parametrize(
    ("cells", "aggregation", "items", "number"),
    [
        (CELLS, "NONE", ("1.5 km", "2 km"), None),
        (CELLS[:1], "NONE", ("1.5 km",), 1.5),
        (CELLS, "SUM", ("3.5",), 3.5),
        (CELLS, "COUNT", ("2",), 2.0),
    ],
)
def test_one_item_has_a_number_without_its_unit(cells, aggregation, items, number):
    answer = answer_of_cells(cells, aggregation, 0.5)
    assert (answer.items, answer.number) == (items, number)
    assert answer.value == (None if aggregation == "NONE" else number)


def test_cells_without_numbers_have_no_sum():
    assert answer_of_cells((SelectedCell(0, 0, "Ulm", 1.0),), "SUM", 0.5) is None
