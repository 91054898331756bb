"""Calibrated scores: of the answers with a score of 0.8, eight of ten are right.

A logistic regression gives them, on the score and on signs: what else is known of an answer, such
as its operator, how far ahead of the next best it is, and what the question asks.
"""

import dataclasses
import json
import math
import pathlib
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike

from mate_tf.answers.answer import Answer, Confidence
from mate_tf.dataclass_json import from_dict
from mate_tf.features import english
from mate_tf.tables.operators import OPERATORS
from mate_tf.tables.table import Table

# Half the distance from 1 to the next number in single precision: nearer scores are rounding.
_EPSILON = 2.0**-24
_NAMED = 0.5  # the least share of a name's words that names it
_FARTHEST = 6.0  # a logit beyond it says no more, as a sign
_WORDS = {  # signs, and the meanings of words that give them
    "asks how many": ("an amount", "total"),
    "asks for an extreme": ("superlative",),
    "asks for a neighbour": ("next", "previous"),
    "asks for a place": ("first", "last", "second or so"),
    "asks for a difference": ("difference", "than"),
    "asks for one of two": ("or",),
}
_OF_OPERATORS = tuple(dict.fromkeys(it.sign for it in OPERATORS.values() if it.sign))
SIGNS = (
    *_OF_OPERATORS,
    *("several cells", "count of one cell", "least cell", "ahead of the next answer"),
    *("rows", "columns", "words"),
    *_WORDS,
    *("row of model and words", "row of the words alone", "column named", "row named", "absence"),
)
_START_COUNTS = 50  # answers
_LEAST_SLOPE = 0.01  # of logits: the highest temperature is 100
_MOST_STEPS = 100
_SMALLEST = 1e-10


@dataclasses.dataclass(frozen=True)
class Calibration:
    """A map of scores to probabilities (Platt, 1999; Guo et al., 2017, section 4.2).

    The logit of a score is divided by the temperature and shifted by the offset, and by the weights
    of the answer's signs. The defaults change nothing.

    Attributes:
        temperature: above 1 where scores are too extreme.
        offset: below 0 where they are too high throughout.
        weights: of SIGNS by name; those that are missing are 0.
        sure: the least score of an answer that is said plainly.
        probably: the least score of one that is probable; below it an answer is "not sure".
        refusal: the same for how likely a refusal is right, from how likely the model thinks that
            the table does not answer the question; `sure` is the least score of a refusal. None
            leaves refusals as they are.

    Raises:
        ValueError: if the temperature is not above 0, a number is not finite, a sign is unknown, or
            a threshold is not from 0 to 1.
    """

    temperature: float = 1.0
    offset: float = 0.0
    weights: Mapping[str, float] = dataclasses.field(default_factory=dict)
    sure: float = 0.0
    probably: float = 0.0
    refusal: "Calibration | None" = None

    def __post_init__(self) -> None:
        numbers = [self.offset, *self.weights.values()]
        if not (0.0 < self.temperature < np.inf and np.isfinite(numbers).all()):
            raise ValueError(
                "expected a finite temperature above 0, a finite offset and finite weights, got "
                f"{self.temperature}, {self.offset} and {dict(self.weights)}"
            )
        if unknown := [name for name in self.weights if name not in SIGNS]:
            raise ValueError(f"expected weights of {SIGNS}, got {unknown}")
        if not 0.0 <= self.probably <= self.sure <= 1.0:
            raise ValueError(
                f"expected thresholds from 0 to 1, got {self.probably} (probably) and {self.sure}"
            )

    def confidence(self, score: float) -> Confidence:
        """How an answer with a calibrated score is said."""
        if score >= self.sure:
            return "sure"
        return "probably" if score >= self.probably else "not sure"

    def apply(self, scores: ArrayLike, signs: Mapping[str, float] | None = None) -> np.ndarray:
        """Calibrated scores, float64 of the same shape, of answers with the same signs.

        A score within 2^-24 of 0 or 1 counts as 2^-24 away: even a sure model may be wrong. What is
        not between 0 and 1 is a ValueError.
        """
        shift = sum(weight * (signs or {}).get(name, 0.0) for name, weight in self.weights.items())
        return sigmoid(_logits(scores) / self.temperature + self.offset + shift)


def calibration_in(path: pathlib.Path) -> Calibration | None:
    """The calibration in a file; None without one. ValueError if it holds something else."""
    if not path.is_file():
        return None
    try:
        return from_dict(Calibration, json.loads(path.read_text(encoding="utf-8")))
    except ValueError as error:  # includes what is not JSON or not UTF-8
        raise ValueError(f"{path}: {error}") from None


def calibrated(
    answer: Answer, calibration: Calibration, table: Table | None, question: str
) -> Answer:
    """The answer with its score and its alternatives' scores calibrated; their order stays.

    A refusal that is not likely right, or whose guess is in the row and the column that the
    question names, becomes its guess, "not sure". So does each answer to a question that is not
    English. The signs take one alternative, if there is one. The table is None for a sentence
    alone.
    """
    guess = answer
    if answer.absent and answer.alternatives:
        others = answer.alternatives[1:]
        guess = dataclasses.replace(answer.alternatives[0], alternatives=others)
    if not guess.items:
        return answer
    signs = signs_of(guess, table, question) if calibration.weights else {}

    def rescored(other: Answer) -> Answer:
        return dataclasses.replace(other, score=float(calibration.apply(other.score, signs)))

    alternatives = tuple(map(rescored, guess.alternatives))
    guess = dataclasses.replace(rescored(guess), alternatives=alternatives)
    guess = dataclasses.replace(guess, confidence=calibration.confidence(guess.score))
    if not english.is_english(question):
        note = " ".join(filter(None, [guess.note, "questions are read in English"]))
        return dataclasses.replace(guess, confidence="not sure", note=note)
    if not answer.absent:
        return guess
    if (refusal := calibration.refusal) is not None:
        refusal_score = float(refusal.apply(answer.score, signs))
        is_named = min(signs.get("row named", 0.0), signs.get("column named", 0.0)) >= _NAMED
        if refusal_score < refusal.sure or is_named:
            return dataclasses.replace(guess, confidence="not sure")
        answer = dataclasses.replace(answer, score=refusal_score)
    not_given = dataclasses.replace(guess, alternatives=(), confidence="not sure")
    return dataclasses.replace(answer, alternatives=(not_given, *alternatives))


def signs_of(answer: Answer, table: Table | None, question: str) -> dict[str, float]:
    """The signs of an answer, each between about -6 and 6; arguments as of `calibrated`."""
    aggregation, text = answer.aggregation, question.lower()
    scores = [cell.score for cell in answer.cells]
    ahead = 0.0  # by how much its logit is above that of the next best answer
    if answer.alternatives:
        ahead = float(_logits(answer.score)) - float(_logits(answer.alternatives[0].score))
    rows, columns = (0, 0) if table is None else (table.num_rows, table.num_columns)
    values = [
        *(float(OPERATORS[aggregation].sign == sign) for sign in _OF_OPERATORS),
        float(aggregation == "NONE" and len(scores) > 1),
        float(aggregation == "COUNT" and len(scores) == 1),
        _near(_logits(min(scores, default=0.5))),
        _near(ahead),
        math.log(max(rows, 1)),
        math.log(max(columns, 1)),
        len(text.split()) / 10,
        *(float(english.says(text, *meanings)) for meanings in _WORDS.values()),
        float(answer.row_from == "both"),
        float(answer.row_from == "words"),
        *_named(answer, table, question),
        _near(_logits(answer.absence)),
    ]
    return dict(zip(SIGNS, values, strict=True))


def _named(answer: Answer, table: Table | None, question: str) -> tuple[float, float]:
    """How far the question names the answer's column, and one of its rows: shares of words."""
    if table is None or not answer.cells:
        return 0.0, 0.0
    given = english.content_words(question)
    chosen = {(cell.row, cell.column) for cell in answer.cells}
    header = [table.header[column] for column in {column for _, column in chosen}]
    rows = [
        english.most_named(
            [text for column, text in enumerate(table.rows[row]) if (row, column) not in chosen],
            given,
        )
        for row in {row for row, _ in chosen}
    ]
    return english.most_named(header, given), float(np.mean(rows))


def _near(logit: ArrayLike) -> float:
    return float(np.clip(logit, -_FARTHEST, _FARTHEST))


def surest_threshold(
    scores: ArrayLike, correct: Sequence[bool] | np.ndarray, precision: float
) -> float:
    """The lowest score above which at least a share of the answers is right; 1 without one."""
    scores = np.asarray(scores, np.float64)
    order = np.argsort(-scores, kind="stable")
    right = np.cumsum(np.asarray(correct, np.float64)[order]) / np.arange(1, len(order) + 1)
    fits = np.flatnonzero(right >= precision)
    return float(scores[order[fits[-1]]]) if len(fits) else 1.0


def fit_calibration(
    scores: ArrayLike,
    correct: Sequence[bool] | np.ndarray,
    signs: Sequence[Mapping[str, float]] | None = None,
    start: Calibration | None = None,
) -> Calibration:
    """The calibration that makes observed answers most likely; its thresholds are 0.

    Maximum likelihood (Platt, 1999). The prior is normal around "change nothing" (1 for the inverse
    of the temperature, 0 for offset and weights), with standard deviations of 1, so that all
    numbers are finite. Around a start it is narrower, and counts as much as 50 answers like these.
    The order of scores is kept even where it is wrong: the temperature is then 100, the highest.

    Scores are float [N] between 0 and 1, verdicts bool [N]; without signs these are left out.

    Raises:
        ValueError: if there are not as many scores as verdicts, a score is not between 0 and 1, or
            there are, without a start, no right or no wrong answers.
    """
    logits, is_correct = _logits(scores), np.asarray(correct, bool)
    if logits.shape != is_correct.shape or logits.ndim != 1:
        raise ValueError(
            "expected a list of scores and a verdict on each, got the shapes "
            f"{logits.shape} and {is_correct.shape}"
        )
    right = int(is_correct.sum())
    if start is None and not 0 < right < len(is_correct):
        raise ValueError(
            "expected right and wrong answers to fit a calibration to, got "
            f"{right} right of {len(is_correct)}; ask more questions"
        )
    sides = np.where(is_correct, 1.0, -1.0)  # [N]
    rows = [logits, np.ones_like(logits)]
    if signs is not None:
        rows += [np.array([answer_signs[name] for answer_signs in signs]) for name in SIGNS]
    design = np.stack(rows)  # [P, N]
    # A slope, the inverse of the temperature; an offset; the weights.
    precision = np.eye(len(rows))
    if start is not None and logits.size:  # of their information about the numbers at most
        precision += design @ design.T * (_START_COUNTS / (4 * logits.size))
    start = start or Calibration()
    before_all = [1.0 / start.temperature, start.offset]
    mean = np.array([*before_all, *(start.weights.get(name, 0.0) for name in SIGNS)][: len(rows)])

    def loss(point: np.ndarray) -> float:
        """The negative log posterior, which is strictly convex."""
        prior = 0.5 * (point - mean) @ precision @ (point - mean)
        return float(np.logaddexp(0.0, -sides * (point @ design)).sum() + prior)

    point = mean
    for _ in range(_MOST_STEPS):
        chances = sigmoid(point @ design)  # [N]
        gradient = design @ (chances - is_correct) + precision @ (point - mean)
        hessian = (design * (chances * (1.0 - chances))) @ design.T + precision
        if point[0] == _LEAST_SLOPE and gradient[0] > 0.0:  # only the others are left to change
            step = np.concatenate([[0.0], -np.linalg.solve(hessian[1:, 1:], gradient[1:])])
        else:
            step = -np.linalg.solve(hessian, gradient)
        before, size = point, 1.0
        while size > _SMALLEST:  # Newton's step, or a part of it
            point = before + size * step
            point[0] = max(point[0], _LEAST_SLOPE)
            if loss(point) < loss(before):
                break
            size, point = size / 2, before
        if np.abs(point - before).max() < _SMALLEST:
            break
    weights = {} if signs is None else dict(zip(SIGNS, point[2:].tolist(), strict=True))
    return Calibration(float(1.0 / point[0]), float(point[1]), weights)


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
