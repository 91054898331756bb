"""Scores of answers by the official definition of each task, and calibration of their own scores.

SQA's are those of its release (Iyyer et al., 2017): ALL is the share of questions with the right
cells, SEQ that of the sequences in which all questions have them.

Shapes: N answers.
"""

import dataclasses
import re
import string
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from mate_tf.answers.answer import Answer
from mate_tf.answers.calibration import Calibration, fit_calibration, signs_of, surest_threshold
from mate_tf.datasets.tasks import find_task
from mate_tf.datasets.wtq import split_question_id
from mate_tf.evaluation.official import Denotation, Official, denotation_correct
from mate_tf.evaluation.predictions import match_predictions
from mate_tf.tables.operators import ABSENT
from mate_tf.tables.table import Coordinates, Question, Table

_Scores = Sequence[float] | np.ndarray
_Correct = Sequence[bool] | np.ndarray
_HITS_AT = (1, 3, 5)
_Gold = Sequence[str | Denotation]
_WITHOUT_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLE = re.compile(r"\b(?:an?|the)\b")
_VERDICTS = [("no",), ("yes",)]  # by their class
# Least shares that are right: of answers said plainly, of probable ones and of refusals. The last
# is high, for a header in other words than the question's looks like one that is not there.
_RIGHT_OF_SURE, _RIGHT_OF_PROBABLE, _RIGHT_OF_REFUSALS = 0.75, 0.45, 0.97
_FEWEST = 20  # questions that their table does not answer, and others, to fit refusals to


def is_correct(
    task: str, prediction: Answer, question: Question, gold: _Gold | None = None
) -> bool:
    """Whether an answer is right, by the main score of its task: the first of `score`'s.

    A refused question is wrong. `gold` is the release's answer where it differs (`read_official`).
    ValueError if the task is unknown or the question has no gold answer.
    """
    return bool(next(iter(_scores(task, prediction, question, gold).values())))


def score(
    task: str,
    predictions: Mapping[str, Answer],
    pairs: Iterable[tuple[Table, Question]],
    official: Official | None = None,
) -> dict[str, float]:
    """All scores of a task, each from 0 to 1, over all of its questions.

    There is one prediction for each question, by its id. `official` is what the release says beyond
    the questions. ValueError if answers are to other questions, the task is unknown, or a question
    has no gold answer. In this order, if the task has them:

        denotation_accuracy: of questions with answers, unless their task has other scores.
        accuracy: of questions with a class and without answers, such as TABFACT's.
        all, all_d, seq, all_position_0 and so on: of SQA; the share of questions with the right
            cells, with the right denotation, of sequences with the right cells, and of the
            questions of one position.
        exact_match, f1: of HYBRIDQA and LINKED_JSONL; and hits_at_1, hits_at_3, hits_at_5 of a
            model that selects cells, if there are enough alternatives.
        All but those of sequences again for each official part, with "_" and its name.
        expected_calibration_error, auroc: of the scores of given answers; the second where some
            are right and some wrong.
    """
    matched = match_predictions(predictions, pairs)
    official = official or Official()
    hits = _hits_at(task, [prediction for prediction, _, _ in matched])
    _require_classes(matched)
    scores = {
        question.question_id: _scores(
            task, prediction, question, official.golds.get(question.question_id), hits
        )
        for prediction, _, question in matched
    }
    metrics = _means(scores)
    if find_task(task).in_sequences:
        correct = {id_: bool(question_scores["all"]) for id_, question_scores in scores.items()}
        metrics |= sequence_accuracies(correct)
    for part, ids in official.parts.items():
        means = _means({id_: scores[id_] for id_ in scores if id_ in ids})
        metrics |= {f"{name}_{part}": value for name, value in means.items()}
    answered = [(answer, question) for answer, _, question in matched if answer.answered]
    if not answered:
        return metrics
    given = [answer.score for answer, _ in answered]
    right = [bool(next(iter(scores[question.question_id].values()))) for _, question in answered]
    metrics["expected_calibration_error"] = expected_calibration_error(given, right)
    area = auroc(given, right)
    return metrics if area is None else metrics | {"auroc": area}


def _scores(
    task: str,
    prediction: Answer,
    question: Question,
    gold: _Gold | None,
    hits: Sequence[int] = (),
) -> dict[str, float]:
    """The scores of one question, the main one first."""
    found = find_task(task)
    score_one = _score_text if found.is_linked else _score_stated
    if found.in_sequences:
        score_one = _score_sequential
    scores = score_one(prediction, question, question.answers if gold is None else gold)
    for k in hits:
        scores[f"hits_at_{k}"] = hits_at(k, prediction.ranked_cells, question.answer_coordinates)
    return dict.fromkeys(scores, 0.0) if prediction.error else scores


def _score_answer(prediction: Answer, question: Question, gold: _Gold) -> dict[str, float]:
    if question.aggregation == ABSENT:
        return {"denotation_accuracy": float(prediction.absent)}
    _require_gold(bool(gold), question)
    if prediction.class_index is not None:
        raise ValueError(
            f"expected an answer from the table, got class {prediction.class_index} (question "
            f"'{question.question_id}'); a classifier does not answer questions"
        )
    return {"denotation_accuracy": float(denotation_correct(prediction.items, gold))}


def _score_class(prediction: Answer, question: Question, gold: _Gold) -> dict[str, float]:
    _require_gold(question.class_index is not None, question)
    return {"accuracy": float(_class_index(prediction) == question.class_index)}


def _require_classes(matched: Iterable[tuple[Answer, Table, Question]]) -> None:
    """ValueError if no statement has a class: they were asked of a model without yes and no."""
    statements = [
        (prediction, question)
        for prediction, _, question in matched
        if prediction.answered and question.class_index is not None and not question.answers
    ]
    if statements and all(_class_index(prediction) is None for prediction, _ in statements):
        prediction, question = statements[0]
        raise ValueError(
            f"expected the class of a classifier, or yes or no, got the answer '{prediction.text}' "
            f"(question '{question.question_id}')"
        )


def _class_index(prediction: Answer) -> int | None:
    """The class; of a model for table questions 1 for yes and 0 for no, whichever it puts first."""
    indices = (
        one.class_index if one.items not in _VERDICTS else _VERDICTS.index(one.items)
        for one in (prediction.guess, *prediction.alternatives)
    )
    return next((index for index in indices if index is not None), None)


def _score_stated(prediction: Answer, question: Question, gold: _Gold) -> dict[str, float]:
    is_classified = question.class_index is not None and not gold
    return (_score_class if is_classified else _score_answer)(prediction, question, gold)


def _score_sequential(prediction: Answer, question: Question, gold: _Gold) -> dict[str, float]:
    # For a few questions the release has cells outside the table, which are not kept here.
    _require_gold(bool(gold or question.answer_coordinates), question)
    return {
        "all": float(cells_correct(prediction.coordinates, question)),
        "all_d": float(denotation_correct(prediction.items, gold)),
    }


def _score_text(prediction: Answer, question: Question, gold: _Gold) -> dict[str, float]:
    _require_gold(bool(gold), question)
    texts = [item.text if isinstance(item, Denotation) else item for item in gold]
    return {
        "exact_match": max(exact_match(prediction.text, text) for text in texts),
        "f1": max(f1(prediction.text, text) for text in texts),
    }


def _require_gold(has_gold: bool, question: Question) -> None:
    if not has_gold:
        raise ValueError(
            f"expected a gold answer to score against, such as 'answers' or of a statement its "
            f"'class_index', got none (question '{question.question_id}')"
        )


def _hits_at(task: str, predictions: Sequence[Answer]) -> list[int]:
    """The k of Hits@k that there are enough alternatives for."""
    if not find_task(task).is_linked or not any(prediction.cells for prediction in predictions):
        return []
    # The alternatives of an answer that was not given begin with it.
    most = max(prediction.answered + len(prediction.alternatives) for prediction in predictions)
    return [k for k in _HITS_AT if k <= most]


def _means(scores: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
    """The mean of each score over the questions that have it."""
    names = dict.fromkeys(name for question_scores in scores.values() for name in question_scores)
    return {name: float(np.mean([s[name] for s in scores.values() if name in s])) for name in names}


def normalize_answer(text: str) -> str:
    """An answer's lower-case words without articles and ASCII punctuation."""
    return " ".join(_ARTICLE.sub(" ", text.lower().translate(_WITHOUT_PUNCTUATION)).split())


def exact_match(prediction: str, gold: str) -> float:
    """1 for two answers that are equal once normalised, otherwise 0."""
    return float(normalize_answer(prediction) == normalize_answer(gold))


def f1(prediction: str, gold: str) -> float:
    """The harmonic mean of precision and recall of an answer's words; 1 for two empty answers."""
    predicted = Counter(normalize_answer(prediction).split())
    expected = Counter(normalize_answer(gold).split())
    total = predicted.total() + expected.total()
    return 2 * (predicted & expected).total() / total if total else 1.0


def hits_at(k: int, ranked: Iterable[tuple[int, int]], gold: Collection[tuple[int, int]]) -> float:
    """1 where one of the k best cells holds the answer, otherwise 0 (MATE, section 6).

    `gold` are all cells that hold the answer; without any there is no hit, as in the release.
    """
    best = list(dict.fromkeys(ranked))[:k]
    return float(not set(best).isdisjoint(gold))


def cells_correct(cells: Coordinates, question: Question) -> bool:
    """Whether exactly the gold cells are selected; never where a gold answer has no cells."""
    gold = set(question.answer_coordinates)
    return set(cells) == gold and bool(gold or not question.answers)


def sequence_accuracies(correct: Mapping[str, bool]) -> dict[str, float]:
    """SEQ, and ALL among the questions of each position, from whether each id's answer is right."""
    by_sequence: defaultdict[str, list[bool]] = defaultdict(list)
    by_position: defaultdict[int, list[bool]] = defaultdict(list)
    for question_id, is_right in correct.items():
        sequence, position = split_question_id(question_id)
        by_sequence[sequence].append(is_right)
        by_position[position].append(is_right)
    return {"seq": float(np.mean([all(answers) for answers in by_sequence.values()]))} | {
        f"all_position_{position}": float(np.mean(by_position[position]))
        for position in sorted(by_position)
    }


def expected_calibration_error(scores: _Scores, correct: _Correct, bins: int = 10) -> float:
    """The mean distance between scores and accuracy, over equal bins of scores (Guo et al., 2017).

    Bins are weighted by their answers. ValueError if there are no answers, not as many scores, or a
    score is no probability.
    """
    scores, correct = _checked(scores, correct)
    binned = np.minimum((scores * bins).astype(np.int64), bins - 1)  # [N]; a score of 1 in the last
    gaps = np.bincount(binned, weights=scores - correct, minlength=bins)  # [bins]
    return float(np.sum(np.abs(gaps)) / len(scores))


def auroc(scores: _Scores, correct: _Correct) -> float | None:
    """The chance that a right answer has a higher score than a wrong one; ties count half.

    None where all answers are right or all are wrong. Errors are those of
    `expected_calibration_error`.
    """
    scores, correct = _checked(scores, correct)
    if correct.all() or not correct.any():
        return None
    _, inverse, counts = np.unique(scores, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[inverse]  # of equal scores their mean
    right, wrong = correct.sum(), (~correct).sum()
    return float((ranks[correct].sum() - right * (right + 1) / 2) / (right * wrong))


def _checked(scores: _Scores, correct: _Correct) -> tuple[np.ndarray, np.ndarray]:
    """float64 [N] and bool [N]."""
    scores, correct = np.asarray(scores, np.float64), np.asarray(correct, np.bool_)
    if scores.shape != correct.shape or scores.ndim != 1:
        raise ValueError(
            f"expected a score for each of {correct.size} answers, got {scores.size} scores"
        )
    if not scores.size:
        raise ValueError("expected at least 1 answer, got 0")
    wrong = scores[~((scores >= 0) & (scores <= 1))]  # also NaN
    if wrong.size:
        raise ValueError(f"expected scores from 0 to 1, got {wrong[0]}")
    return scores, correct


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
    right_of_sure: Sequence[float] = (_RIGHT_OF_SURE,),
    start: Calibration | None = None,
) -> Calibration:
    """The calibration of a model by its answers to one or several sets of questions.

    Of the answers to each set that are said plainly its share is right, and of the probable ones
    0.45; the higher threshold counts. With a start, such as that of the model before a training,
    the calibration is near it where the answers are few, and has its thresholds. Errors are those
    of `fit_calibration`.
    """
    scores, correct, signs, absences, is_absent = Observed.together(observed)
    fitted = fit_calibration(scores, correct, signs, start)
    refusal = None if start is None else start.refusal
    if min(is_absent.sum(), (~is_absent).sum()) >= _FEWEST:
        before, refusal = refusal, fit_calibration(absences, is_absent, start=refusal)
        least = surest_threshold(refusal.apply(absences), is_absent, _RIGHT_OF_REFUSALS)
        least = least if before is None else before.sure
        refusal = dataclasses.replace(refusal, sure=least, probably=least)
    if start is not None:
        sure, probably = start.sure, start.probably
    else:
        sure = probably = 0.0
        calibrated = [apply_each(fitted, one.scores, one.signs) for one in observed]
        for one, score, share in zip(observed, calibrated, right_of_sure, strict=True):
            sure = max(sure, surest_threshold(score, one.correct, share))
        for one, score in zip(observed, calibrated, strict=True):
            is_less = score < sure
            least = surest_threshold(score[is_less], one.correct[is_less], _RIGHT_OF_PROBABLE)
            probably = max(probably, min(least, sure))
    return dataclasses.replace(fitted, sure=sure, probably=probably, refusal=refusal)


def apply_each(
    calibration: Calibration, scores: Sequence[float] | np.ndarray, signs: Sequence[dict]
) -> np.ndarray:
    """Calibrated scores of answers with their own signs, float64 [N]."""
    pairs = zip(scores, signs, strict=True)
    return np.array([float(calibration.apply(score, own_signs)) for score, own_signs in pairs])
