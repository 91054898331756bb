"""Calibrations keep the order of scores and make them probabilities."""

import dataclasses
import json
import types

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special
from sklearn.metrics import roc_auc_score

from mate_tf.answers.answer import Answer, SelectedCell
from mate_tf.answers.calibration import (
    SIGNS,
    Calibration,
    calibration_in,
    fit_calibration,
    signs_of,
    surest_threshold,
)
from mate_tf.evaluation.scoring import Observed, calibrate
from mate_tf.tables.operators import OPERATORS
from tests.small import cases

NUMBER = 4000


def synthetic(temperature: float = 1.0, offset: float = 0.0, seed: int = 0):
    """Scores, and verdicts that are right as often as the calibrated scores say."""
    rng = np.random.default_rng(seed)
    logits = rng.normal(0.5, 2.0, NUMBER)
    correct = rng.random(NUMBER) < special.expit(logits / temperature + offset)
    return special.expit(logits), correct


@cases("temperature, offset", (1.0, 0.0), (3.0, 0.0), (0.5, 0.0), (1.0, -1.5), (4.0, 1.0))
def test_the_calibration_of_synthetic_scores_is_found(temperature, offset):
    scores, correct = synthetic(temperature, offset)
    found = fit_calibration(scores, correct)
    # Five standard errors, of the information that the observations have of slope and offset.
    logits = special.logit(scores)
    chances = special.expit(logits / temperature + offset)
    weights = chances * (1.0 - chances)
    design = np.stack([logits, np.ones_like(logits)])
    errors = 5.0 * np.sqrt(np.diag(np.linalg.inv(design * weights @ design.T)))
    assert 1.0 / found.temperature == pytest.approx(1.0 / temperature, abs=errors[0])
    assert found.offset == pytest.approx(offset, abs=errors[1])


@given(
    st.floats(0.05, 20.0),
    st.floats(-5.0, 5.0),
    st.lists(st.floats(0.0, 1.0), min_size=2, max_size=20),
)
def test_the_order_of_scores_stays(temperature, offset, scores):
    calibrated = Calibration(temperature, offset).apply(np.sort(scores))
    assert (np.diff(calibrated) >= 0.0).all()
    assert ((calibrated >= 0.0) & (calibrated <= 1.0)).all()


@given(
    st.lists(st.integers(1, 99), min_size=1, max_size=15),
    st.lists(st.integers(1, 99), min_size=1, max_size=15),
)
def test_with_few_answers_it_is_where_likelihood_and_prior_are_largest(right, wrong):
    scores = np.array(right + wrong) / 100.0
    correct = np.arange(len(scores)) < len(right)
    found = fit_calibration(scores, correct)
    slope, offset = 1.0 / found.temperature, found.offset
    logits = special.logit(scores)
    errors = special.expit(slope * logits + offset) - correct
    # The gradient of the negative logarithm: of the observations, and of the prior around (1, 0).
    gradient = np.array([errors @ logits + slope - 1.0, errors.sum() + offset])
    if slope == pytest.approx(0.01):  # the highest temperature, where a slope below 0 was better
        assert gradient[0] > 0.0
        gradient = gradient[1:]
    np.testing.assert_allclose(gradient, 0.0, atol=1e-6)


def test_scores_of_0_and_1_are_not_believed_beyond_doubt():
    calibration = fit_calibration([1.0] * 60 + [0.0] * 60, [True, False, False] * 40)
    calibrated = calibration.apply([0.0, 1.0])
    np.testing.assert_allclose(calibrated, [1 / 3, 1 / 3], atol=0.1)


def test_a_score_that_is_wrong_way_round_keeps_its_order_and_the_default_changes_nothing():
    scores, correct = synthetic()
    assert fit_calibration(scores, ~correct).temperature == pytest.approx(100.0)
    np.testing.assert_allclose(Calibration().apply(scores), scores, rtol=1e-9)


@cases(
    "scores, correct, message",
    ([], [], "right and wrong answers to fit a calibration to, got 0 right of 0"),
    ([0.5, 0.6], [True, True], "got 2 right of 2; ask more questions"),
    ([0.5, 0.6], [False, False], "got 0 right of 2"),
    ([0.5, 0.6], [True], r"a verdict on each, got the shapes \(2,\) and \(1,\)"),
    ([0.5, 1.5], [True, False], "expected scores between 0 and 1, got 1.5"),
    ([0.5, np.nan], [True, False], "expected scores between 0 and 1, got nan"),
)
def test_what_cannot_be_fitted_says_what_is_missing(scores, correct, message):
    with pytest.raises(ValueError, match=message):
        fit_calibration(scores, correct)


@cases("temperature, offset", (0.0, 0.0), (-1.0, 0.0), (1.0, np.nan))
def test_a_calibration_that_would_lose_the_order_is_refused(temperature, offset):
    with pytest.raises(ValueError, match="a finite temperature above 0, a finite offset"):
        Calibration(temperature, offset)


def test_signs_that_tell_right_from_wrong_get_weights():
    rng = np.random.default_rng(0)
    logits, is_count = rng.normal(0.0, 1.0, NUMBER), rng.random(NUMBER) < 0.5
    correct = rng.random(NUMBER) < special.expit(logits - 2.0 * is_count)
    none = dict.fromkeys(SIGNS, 0.0)
    signs = [none | {"count": float(one)} for one in is_count]
    found = fit_calibration(special.expit(logits), correct, signs)
    # Five standard errors, as of slope and offset above.
    assert found.weights["count"] == pytest.approx(-2.0, abs=0.5)
    assert all(abs(found.weights[name]) < 1e-6 for name in SIGNS if name != "count")
    after = np.array(list(map(found.apply, special.expit(logits), signs)))
    assert roc_auc_score(correct, after) > roc_auc_score(correct, logits) + 0.03


@cases(
    "correct, precision, threshold",
    ([True, True, False, True], 0.7, 0.2),
    ([True, True, False, False], 0.7, 0.6),
    ([False, False, False, False], 0.5, 1.0),
)
def test_the_threshold_is_the_lowest_above_which_enough_is_right(correct, precision, threshold):
    assert surest_threshold([0.9, 0.6, 0.4, 0.2], correct, precision) == threshold


def observed(number: int, absences: np.ndarray, is_absent: np.ndarray) -> Observed:
    """So many answers, every other right, and as many refusals."""
    correct = np.arange(number) % 2 == 0
    signs = [dict.fromkeys(SIGNS, 0.0)] * number
    return Observed(np.linspace(0.1, 0.9, number), correct, signs, absences, is_absent)


def test_a_refusal_is_said_where_97_of_100_such_are_right():
    absences, is_absent = synthetic(temperature=2.0)
    refusal = calibrate([observed(NUMBER, absences, is_absent)]).refusal
    assert refusal is not None and not refusal.weights
    said = refusal.apply(absences) >= refusal.sure
    assert 0.97 <= is_absent[said].mean() < 0.98
    # The next likely ones would lower it.
    others = np.sort(absences[~said])[::-1]
    more = absences >= others[:50].min()
    assert is_absent[more].mean() < 0.97
    few = is_absent & (np.cumsum(is_absent) < 20)
    assert calibrate([observed(NUMBER, absences, few)]).refusal is None


def test_a_start_is_kept_where_answers_are_few():
    start = Calibration(4.0, 0.5, {"count": -1.0}, 0.7, 0.3)
    none = dict.fromkeys(SIGNS, 0.0)
    few = fit_calibration([0.9, 0.2], [True, False], [none, none], start)
    assert few.offset == pytest.approx(0.5, abs=0.3)
    assert few.weights["count"] == pytest.approx(-1.0)
    assert abs(1 / few.temperature - 0.25) < abs(
        1 / fit_calibration([0.9, 0.2], [True, False]).temperature - 0.25
    )


@given(
    st.sampled_from(list(OPERATORS)),
    st.lists(st.floats(0, 1), min_size=2, max_size=6),
    st.tuples(st.integers(0, 10**6), st.integers(0, 10**4)),
    st.text(max_size=30),
)
def test_every_answer_has_all_signs_and_none_is_extreme(aggregation, scores, size, question):
    score, of_other, *of_cells = scores
    cells = tuple(SelectedCell(0, 0, "", of_cell) for of_cell in of_cells)
    answer = Answer((), cells, aggregation, score=score, row_from="words")
    answer = dataclasses.replace(answer, alternatives=(Answer(score=of_other),))
    table = types.SimpleNamespace(
        num_rows=size[0], num_columns=size[1], header=("name", "size"), rows=(("", question),)
    )
    signs = signs_of(answer, table, question)
    assert tuple(signs) == SIGNS
    assert all(abs(value) < 20.0 for value in signs.values())


def test_a_calibration_comes_back_from_its_file(tmp_path):
    calibration = Calibration(1.5, -0.5, {"count": 0.25}, 0.4, 0.2, Calibration(2.0, sure=0.5))
    path = tmp_path / "calibration.json"
    path.write_text(json.dumps(dataclasses.asdict(calibration)))
    assert calibration_in(path) == calibration
    path.write_text('{"temperature": 2.0, "offset": 0.5}')  # as the first version wrote it
    assert calibration_in(path) == Calibration(2.0, 0.5)
    for text in ('{"weights": {"luck": 1.0}}', '{"sure": 2.0}'):
        path.write_text(text)
        with pytest.raises(ValueError, match=r"expected (weights of|thresholds from 0 to 1)"):
            calibration_in(path)
