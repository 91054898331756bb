"""Calibrated scores: of the answers with a score of 0.8, eight of ten are right."""

import dataclasses
import json
import pathlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from mate_tf.dataclass_json import from_dict

# Half the distance from 1 to the next number in single precision: nearer scores are rounding.
_EPSILON = 2.0**-24
_LEAST_SLOPE = 0.01  # of logits: the highest temperature is 100
_MOST_STEPS = 100
_SMALLEST = 1e-10


@dataclasses.dataclass(frozen=True)
class Calibration:
    """A map of scores to probabilities that keeps their order (Guo et al., 2017, section 4.2).

    The logit of a score is divided by the temperature and shifted by the offset. The defaults
    change nothing.

    Attributes:
        temperature: above 1 where scores are too extreme.
        offset: below 0 where they are too high throughout.

    Raises:
        ValueError: if the temperature is not above 0, or one of the two is not finite.
    """

    temperature: float = 1.0
    offset: float = 0.0

    def __post_init__(self) -> None:
        if not (0.0 < self.temperature < np.inf and np.isfinite(self.offset)):
            raise ValueError(
                "expected a finite temperature above 0 and a finite offset, got "
                f"{self.temperature} and {self.offset}"
            )

    def apply(self, scores: ArrayLike) -> np.ndarray:
        """Calibrated scores, float64 of the same shape.

        A score within 2^-24 of 0 or 1 counts as 2^-24 away: even a sure model may be wrong.

        Raises:
            ValueError: if a score is not between 0 and 1.
        """
        return sigmoid(_logits(scores) / self.temperature + self.offset)


def calibration_in(path: pathlib.Path) -> Calibration | None:
    """The calibration in a file; None without one. ValueError if it holds something else."""
    if not path.is_file():
        return None
    try:
        return from_dict(Calibration, json.loads(path.read_text(encoding="utf-8")))
    except ValueError as error:  # includes what is not JSON or not UTF-8
        raise ValueError(f"{path}: {error}") from None


def fit_calibration(scores: ArrayLike, correct: Sequence[bool] | np.ndarray) -> Calibration:
    """The calibration that makes observed answers most likely.

    Maximum likelihood (Platt, 1999). The prior is normal around "change nothing" (1 for the inverse
    of the temperature, 0 for the offset, standard deviations 1). It hardly matters with hundreds of
    answers; with few, or with scores that separate right from wrong, it keeps both numbers finite.
    The order of scores is kept even where it is wrong: the temperature is then 100, the highest.

    Args:
        scores: float [N], between 0 and 1.
        correct: bool [N], whether the answer was right.

    Raises:
        ValueError: if there are not as many scores as verdicts, a score is not between 0 and 1, or
            there are no right or no wrong answers.
    """
    logits, is_correct = _logits(scores), np.asarray(correct, bool)
    if logits.shape != is_correct.shape or logits.ndim != 1:
        raise ValueError(
            "expected a list of scores and a verdict on each, got the shapes "
            f"{logits.shape} and {is_correct.shape}"
        )
    right = int(is_correct.sum())
    if not 0 < right < len(is_correct):
        raise ValueError(
            "expected right and wrong answers to fit a calibration to, got "
            f"{right} right of {len(is_correct)}; ask more questions"
        )
    signs = np.where(is_correct, 1.0, -1.0)  # [N]

    design = np.stack([logits, np.ones_like(logits)])  # [2, N]
    unchanged = np.array([1.0, 0.0])  # a slope, the inverse of the temperature, and an offset

    def loss(found: np.ndarray) -> float:
        """The negative log posterior, which is strictly convex."""
        prior = 0.5 * np.square(found - unchanged).sum()
        return float(np.logaddexp(0.0, -signs * (found @ design)).sum() + prior)

    found = unchanged
    for _ in range(_MOST_STEPS):
        chances = sigmoid(found @ design)  # [N]
        gradient = design @ (chances - is_correct) + found - unchanged
        hessian = (design * (chances * (1.0 - chances))) @ design.T + np.eye(2)
        if found[0] == _LEAST_SLOPE and gradient[0] > 0.0:  # only the offset is left to change
            step = np.array([0.0, -gradient[1] / hessian[1, 1]])
        else:
            step = -np.linalg.solve(hessian, gradient)
        before, size = found, 1.0
        while size > _SMALLEST:  # Newton's step, or a part of it
            found = before + size * step
            found[0] = max(found[0], _LEAST_SLOPE)
            if loss(found) < loss(before):
                break
            size, found = size / 2, before
        if np.abs(found - before).max() < _SMALLEST:
            break
    return Calibration(temperature=float(1.0 / found[0]), offset=float(found[1]))


def sigmoid(values: ArrayLike) -> np.ndarray:
    """1 / (1 + exp(-x)) of each value, float64; exact for large and for small ones."""
    negated = np.negative(values, dtype=np.float64)
    return np.exp(-np.logaddexp(0.0, negated))


def softmax(logits: ArrayLike) -> np.ndarray:
    """The softmax of the last axis, float64."""
    logits = np.asarray(logits, np.float64)
    exponentials = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return exponentials / exponentials.sum(axis=-1, keepdims=True)


def _logits(scores: ArrayLike) -> np.ndarray:
    scores = np.asarray(scores, np.float64)
    is_score = (scores >= 0.0) & (scores <= 1.0)
    if not is_score.all():
        raise ValueError(f"expected scores between 0 and 1, got {scores[~is_score].ravel()[0]}")
    chances = np.clip(scores, _EPSILON, 1.0 - _EPSILON)
    return np.log(chances) - np.log1p(-chances)
