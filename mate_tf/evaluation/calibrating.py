"""Fits a model's scores to questions with known answers.

Shapes: N questions.
"""

import dataclasses
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from mate_tf.answers.answer import Answer
from mate_tf.answers.calibration import (
    Calibration,
    fit_calibration,
    signs_of,
    surest_threshold,
)
from mate_tf.evaluation.scoring import is_correct
from mate_tf.tables.operators import ABSENT
from mate_tf.tables.table import Question, Table

RIGHT_OF_SURE = 0.75  # the least share of the answers said plainly
_RIGHT_OF_PROBABLE = 0.45
_RIGHT_OF_REFUSALS = 0.75
_FEWEST = 20  # questions that their table does not answer, and others, to fit refusals to


class Observed(NamedTuple):
    """A model's answers, and what is known of them; for a refusal of its best guess."""

    scores: np.ndarray  # float64 [N], not calibrated
    correct: np.ndarray  # bool [N]
    signs: list[dict[str, float]]  # N
    absences: np.ndarray  # float64 [N], `Answer.absence`
    is_absent: np.ndarray  # bool [N], whether the table does not answer the question

    @classmethod
    def together(cls, several: Sequence["Observed"]) -> "Observed":
        """All answers of several sets."""
        scores, correct, absences, is_absent = (
            np.concatenate([getattr(one, name) for one in several])
            for name in ("scores", "correct", "absences", "is_absent")
        )
        signs = [each for one in several for each in one.signs]
        return cls(scores, correct, signs, absences, is_absent)

    @property
    def num_right(self) -> int:
        """The right answers."""
        return int(self.correct.sum())


def observe(
    answers: Iterable[tuple[Table | None, Question, Answer | ValueError]], task: str
) -> Observed:
    """The answers of a model without calibration, each with an alternative; errors are left out."""
    guesses, correct, signs, is_absent = [], [], [], []
    for table, question, answer in answers:
        answer = Answer.of(answer)
        guess = answer.guess
        if not guess.items:
            continue
        if answer.absent:
            guess = dataclasses.replace(guess, alternatives=answer.alternatives[1:])
        guesses.append(guess)
        signs.append(signs_of(guess, table, question.text))
        is_absent.append(question.aggregation == ABSENT)
        correct.append(not is_absent[-1] and is_correct(task, guess, question))
    return Observed(
        np.array([guess.score for guess in guesses]),
        np.array(correct, bool),
        signs,
        np.array([guess.absence for guess in guesses]),
        np.array(is_absent, bool),
    )


def calibrate(
    observed: Sequence[Observed],
    right_of_sure: Sequence[float] = (RIGHT_OF_SURE,),
    start: Calibration | None = None,
) -> Calibration:
    """The calibration of a model by its answers to one or several sets of questions.

    Of the answers to each set that are said plainly its share is right, and of the probable ones
    0.45; the higher threshold counts. With a start, such as that of the model before a training,
    the calibration is near it where the answers are few, and has its thresholds.

    Raises:
        ValueError: as `fit_calibration`.
    """
    scores, correct, signs, absences, is_absent = Observed.together(observed)
    fitted = fit_calibration(scores, correct, signs, start)
    refusal = None if start is None else start.refusal
    if min(is_absent.sum(), (~is_absent).sum()) >= _FEWEST:
        before, refusal = refusal, fit_calibration(absences, is_absent, signs, refusal)
        after = apply_each(refusal, absences, signs)
        least = surest_threshold(after, is_absent, _RIGHT_OF_REFUSALS)
        least = least if before is None else before.sure
        refusal = dataclasses.replace(refusal, sure=least, probably=least)
    if start is not None:
        thresholds = start.sure, start.probably
    else:
        sure = probably = 0.0
        calibrated = [apply_each(fitted, one.scores, one.signs) for one in observed]
        for one, score, share in zip(observed, calibrated, right_of_sure, strict=True):
            sure = max(sure, surest_threshold(score, one.correct, share))
        for one, score in zip(observed, calibrated, strict=True):
            is_less = score < sure
            least = surest_threshold(score[is_less], one.correct[is_less], _RIGHT_OF_PROBABLE)
            probably = max(probably, min(least, sure))
        thresholds = sure, probably
    return dataclasses.replace(fitted, sure=thresholds[0], probably=thresholds[1], refusal=refusal)


def apply_each(
    calibration: Calibration, scores: Sequence[float] | np.ndarray, signs: Sequence[dict]
) -> np.ndarray:
    """Calibrated scores of answers with their own signs, float64 [N]."""
    pairs = zip(scores, signs, strict=True)
    return np.array([float(calibration.apply(score, own_signs)) for score, own_signs in pairs])
