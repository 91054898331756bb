"""What is wrong with wrong answers (Eisenschlos et al., 2021, section 7).

More than half of a sample of PointR's errors are near misses: what is said is right, but said in
other words.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import NamedTuple

from mate_tf.evaluation.hybridqa import exact_match, normalize_answer
from mate_tf.evaluation.markdown import ShownAnswer, answers_table
from mate_tf.tables.numeric import parse_text

RIGHT = "right"
NEAR_MISSES = ("same number", "words too many", "words missing")


def kind_of_error(prediction: str, gold: str) -> str:
    """Says how an answer differs from the gold one.

    Args:
        prediction: what was answered; "" where nothing was.
        gold: the gold answer.

    Returns:
        "right" where they match exactly; of the near misses "same number" where they differ in how
        a number is written alone ("1" for "one"), "words too many" and "words missing" where one
        has all words of the other; otherwise "some words alike", "other words" or "no answer".
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
    """The numbers that a text has, in their order, and the rest of it."""
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
    """An answer to a question.

    Attributes:
        question: its text.
        gold: what is right.
        prediction: what was answered.
        is_hit: whether the cell that was read holds the right answer.
    """

    question: str
    gold: str
    prediction: str
    is_hit: bool


def error_report(answers: Iterable[Judged], num_shown: int = 5) -> str:
    """Counts the wrong answers by what is wrong with them, and shows some of each, in Markdown.

    Args:
        answers: of a split.
        num_shown: how many of each kind are shown at most.
    """
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
