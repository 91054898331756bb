import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mate_tf.evaluation.scoring import auroc, expected_calibration_error

ANSWERS = st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=1, max_size=50)


@pytest.mark.parametrize(
    ("scores", "correct", "bins", "expected"),
    [
        ([1.0, 0.0], [True, False], 10, 0.0),
        ([1.0, 1.0], [False, False], 10, 1.0),
        ([0.75, 0.75, 0.75, 0.75], [True, True, True, False], 10, 0.0),
        # Bin 0 holds 0.1 and 0.3, wrong and right; bin 1 holds 0.5, right.
        ([0.1, 0.3, 0.5], [False, True, True], 2, (2 * abs(0.2 - 0.5) + abs(0.5 - 1)) / 3),
        ([0.2, 0.9], [True, False], 1, abs(0.55 - 0.5)),
    ],
)
def test_the_error_is_the_distance_of_scores_from_accuracy_bin_by_bin(
    scores, correct, bins, expected
):
    assert expected_calibration_error(scores, correct, bins) == pytest.approx(expected)


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
    assert expected_calibration_error(scores, correct, bins) == pytest.approx(
        total, abs=50 * 2**-50
    )


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


def test_the_area_of_one_kind_of_answers_is_undefined_and_the_error_is_not():
    assert auroc([0.2, 0.9], [True, True]) is None
    assert auroc([0.2, 0.9], [False, False]) is None
    assert expected_calibration_error([0.2, 0.9], [False, False]) == pytest.approx(0.55)


@pytest.mark.parametrize("metric", [expected_calibration_error, auroc])
@pytest.mark.parametrize(
    ("scores", "correct", "message"),
    [
        ([], [], "expected at least 1 answer, got 0"),
        ([0.5], [True, False], "expected a score for each of 2 answers, got 1 scores"),
        ([0.5, 1.5], [True, False], "expected scores from 0 to 1, got 1.5"),
        ([0.5, float("nan")], [True, False], "expected scores from 0 to 1, got nan"),
    ],
)
def test_what_is_no_list_of_probabilities_is_refused(metric, scores, correct, message):
    with pytest.raises(ValueError, match=message):
        metric(scores, correct)


def test_no_bins_are_refused():
    with pytest.raises(ValueError, match="expected at least 1 bin, got 0"):
        expected_calibration_error([0.5], [True], bins=0)
