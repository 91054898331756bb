"""HybridQA's scores as its release computes them, Hits@k, and what is wrong with wrong answers.

More than half of a sample of PointR's errors are near misses: the answer is right, but in other
words (Eisenschlos et al., 2021, section 7).
"""

import json
import re
import string
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from mate_tf.evaluation.markdown import ShownAnswer, answers_table
from mate_tf.features.numeric import parse_text
from mate_tf.tables.text_files import complete_text_file

_WITHOUT_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLE = re.compile(r"\b(?:an?|the)\b")


def normalize_answer(text: str) -> str:
    """An answer's lower-case words without articles and ASCII punctuation.

    "it's" is one word here, unlike in `normalize_words`, by which answers are found.
    """
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


def write_official(path: str | Path, answers: Mapping[str, str]) -> None:
    """Writes answers by question id for the release's evaluation and leaderboard."""
    entries = [{"question_id": id_, "pred": answer} for id_, answer in answers.items()]
    with complete_text_file(path) as file:
        file.write(json.dumps(entries, indent=1) + "\n")


RIGHT = "right"
NEAR_MISSES = ("same number", "words too many", "words missing")


def kind_of_error(prediction: str, gold: str) -> str:
    """How an answer, "" for none, differs from the gold one.

    Returns:
        "right" for an exact match; of the near misses "same number" if only the spelling of numbers
        differs ("1" for "one"), "words too many" or "words missing" if one has all words of the
        other; otherwise "some words alike", "other words" or "no answer".
    """
    if exact_match(prediction, gold):
        return RIGHT
    predicted, expected = (Counter(normalize_answer(text).split()) for text in (prediction, gold))
    if not predicted:
        return "no answer"
    if _with_numbers(prediction) == _with_numbers(gold):
        return "same number"
    if expected and expected <= predicted:
        return "words too many"
    if predicted <= expected:
        return "words missing"
    return "some words alike" if predicted & expected else "other words"


def _with_numbers(text: str) -> tuple[list[float], str]:
    """The numbers of a text, in their order, and the rest of it."""
    text = text.lower()
    numbers, rest, end = list[float](), list[str](), 0
    for span in parse_text(text):
        of_span = [value for value in span.values if isinstance(value, float)]
        if of_span and span.begin >= end:
            numbers.append(of_span[0])
            rest.append(text[end : span.begin])
            end = span.end
    return numbers, normalize_answer(" ".join([*rest, text[end:]]))


class Judged(NamedTuple):
    """An answer to a question, the gold one, and whether the cell that was read holds that."""

    question: str
    gold: str
    prediction: str
    is_hit: bool


def error_report(answers: Iterable[Judged], num_shown: int = 5) -> str:
    """Counts wrong answers by what is wrong, and shows at most a number of each, in Markdown."""
    by_kind: defaultdict[str, list[Judged]] = defaultdict(list)
    for answer in answers:
        by_kind[kind_of_error(answer.prediction, answer.gold)].append(answer)
    total = sum(map(len, by_kind.values()))
    right = len(by_kind.pop(RIGHT, []))
    kinds = sorted(by_kind, key=lambda kind: -len(by_kind[kind]))
    near = sum(len(by_kind[kind]) for kind in NEAR_MISSES if kind in by_kind)
    lines = [f"{total - right} of {total} answers are wrong, {near} of them near misses.\n\n"]
    lines.append("| what is wrong | answers | with the answer in the cell |\n|---|---|---|\n")
    for kind in kinds:
        hits = sum(answer.is_hit for answer in by_kind[kind])
        lines.append(f"| {kind} | {len(by_kind[kind])} | {hits} |\n")
    for kind in kinds:
        shown = (
            ShownAnswer(a.question, a.gold, a.prediction, (), False)
            for a in by_kind[kind][:num_shown]
        )
        lines.append(f"\n## {kind}\n\n{answers_table(shown)}")
    return "".join(lines)
