"""How well the scores of answers say which of them are right.

Shapes: N answers.
"""

from collections.abc import Sequence

import numpy as np

_Scores = Sequence[float] | np.ndarray
_Correct = Sequence[bool] | np.ndarray


def expected_calibration_error(scores: _Scores, correct: _Correct, bins: int = 10) -> float:
    """The mean distance of scores from accuracy, over bins of like scores (Guo et al., 2017).

    Bins are equally wide, and weigh as much as they hold answers. Defined also where all answers
    are right, or all wrong.

    Args:
        scores: N probabilities, 0 to 1.
        correct: for each whether its answer is right.
        bins: their number.

    Returns:
        0 for scores that are right on average in each bin, to 1.

    Raises:
        ValueError: if there are no answers, not as many of the one as of the other, or a score is
            no probability.
    """
    scores, correct = _checked(scores, correct)
    if bins < 1:
        raise ValueError(f"expected at least 1 bin, got {bins}")
    of_bin = np.minimum((scores * bins).astype(np.int64), bins - 1)  # [N]; a score of 1 in the last
    gaps = np.bincount(of_bin, weights=scores - correct, minlength=bins)  # [bins]
    return float(np.sum(np.abs(gaps)) / len(scores))


def auroc(scores: _Scores, correct: _Correct) -> float | None:
    """The chance that a right answer has a higher score than a wrong one; ties count half.

    Args:
        scores: N probabilities, 0 to 1.
        correct: for each whether its answer is right.

    Returns:
        0.5 for scores that say nothing, 1 for those that part right from wrong; None where there
        is nothing to part, since all answers are right or all wrong.

    Raises:
        ValueError: as `expected_calibration_error`.
    """
    from sklearn.metrics import roc_auc_score

    scores, correct = _checked(scores, correct)
    if correct.all() or not correct.any():
        return None
    return float(roc_auc_score(correct, scores))


def _checked(scores: _Scores, correct: _Correct) -> tuple[np.ndarray, np.ndarray]:
    """float64 [N] and bool [N]."""
    scores, correct = np.asarray(scores, np.float64), np.asarray(correct, np.bool_)
    if scores.shape != correct.shape or scores.ndim != 1:
        raise ValueError(
            f"expected a score for each of {correct.size} answers, got {scores.size} scores"
        )
    if not scores.size:
        raise ValueError("expected at least 1 answer, got 0")
    is_probability = (scores >= 0) & (scores <= 1)  # NaN is none
    if not is_probability.all():
        worst = scores[~is_probability][0]
        raise ValueError(f"expected scores from 0 to 1, got {worst}")
    return scores, correct
