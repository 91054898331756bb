"""Scores that mean what they say: of the answers with a score of 0.8, eight of ten are right."""

import dataclasses
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

# Half the distance from 1 to the next number in single precision: nearer scores are rounding.
_EPSILON = 2.0**-24
_HIGHEST_TEMPERATURE = 100.0


@dataclasses.dataclass(frozen=True)
class Calibration:
    """A map of scores to probabilities that keeps their order (Guo et al., 2017, section 4.2).

    The logit of a score is divided by the temperature and shifted by the offset. As it stands it
    changes nothing.

    Attributes:
        temperature: above 1 where the scores are too sure.
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

        A score nearer than 2^-24 to 0 or 1 counts as so near, for a model that is never unsure is
        not always right.

        Raises:
            ValueError: if a score is not between 0 and 1.
        """
        return special.expit(_logits(scores) / self.temperature + self.offset)


def fit_calibration(scores: ArrayLike, correct: Sequence[bool] | np.ndarray) -> Calibration:
    """The calibration that makes observed answers most likely.

    Maximum likelihood (Platt, 1999), with the normal distribution around "change nothing" (1 for
    the inverse of the temperature, 0 for the offset, standard deviations 1) as the prior: with
    hundreds of answers it is of no account, and with few, or with a score that tells right from
    wrong, it keeps both numbers finite. The order of scores is kept even where it was wrong: the
    temperature is then the highest allowed, 100.

    Args:
        scores: float [N], between 0 and 1.
        correct: bool [N], whether the answer was right.

    Raises:
        ValueError: if scores and verdicts are not as many, a score is not between 0 and 1, or
            there are no right or no wrong answers.
    """
    from scipy import optimize  # a second

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

    def loss(parameters: np.ndarray) -> tuple[float, np.ndarray]:
        """The negative log posterior and its gradient; it is strictly convex."""
        slope, offset = parameters
        margins = signs * (slope * logits + offset)  # [N]
        slopes = -signs * special.expit(-margins)  # [N]
        prior = 0.5 * ((slope - 1.0) ** 2 + offset**2)
        gradient = np.array([slopes @ logits + slope - 1.0, slopes.sum() + offset])
        return float(np.logaddexp(0.0, -margins).sum() + prior), gradient

    found = optimize.minimize(
        loss,
        np.array([1.0, 0.0]),
        jac=True,
        method="L-BFGS-B",
        bounds=[(1.0 / _HIGHEST_TEMPERATURE, None), (None, None)],
    )
    slope, offset = found.x
    return Calibration(temperature=float(1.0 / slope), offset=float(offset))


def _logits(scores: ArrayLike) -> np.ndarray:
    scores = np.asarray(scores, np.float64)
    is_score = (scores >= 0.0) & (scores <= 1.0)
    if not is_score.all():
        raise ValueError(f"expected scores between 0 and 1, got {scores[~is_score].ravel()[0]}")
    return special.logit(np.clip(scores, _EPSILON, 1.0 - _EPSILON))
