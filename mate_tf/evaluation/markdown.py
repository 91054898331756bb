"""What an evaluation shows beside its scores, as tables in Markdown, which TensorBoard draws."""

import collections
import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

NUM_SHOWN = 10  # answers of an evaluation


class ShownAnswer(NamedTuple):
    """A question's answer, for a person to judge.

    Attributes:
        question: its text.
        gold: what is right.
        predicted: what the model says.
        cells: where it is from, (row, column) of the body, counted from zero.
        is_right: whether that counts as right.
    """

    question: str
    gold: str
    predicted: str
    cells: Iterable[tuple[int, int]]
    is_right: bool


def answers_table(answers: Iterable[ShownAnswer]) -> str:
    """A row for each answer."""
    rows = [
        (
            answer.question,
            answer.gold,
            answer.predicted,
            ", ".join(f"({row}, {column})" for row, column in answer.cells),
            "yes" if answer.is_right else "no",
        )
        for answer in answers
    ]
    return _table(("question", "gold", "predicted", "cells (row, column)", "right"), rows)


def confusion_table(
    golds: Sequence[str], predicted: Sequence[str], names: Sequence[str] = ()
) -> str:
    """How often what was taken for what: a row for each gold name, a column for each predicted.

    Args:
        golds: names, one or more.
        predicted: as many, of the same examples.
        names: in the order of rows and columns; others that occur follow them.
    """
    names = list(dict.fromkeys([*names, *golds, *predicted]))
    counts = collections.Counter(zip(golds, predicted, strict=True))
    rows = [(gold, *(str(counts[gold, name]) for name in names)) for gold in names]
    return _table((r"gold \ predicted", *names), rows)


def evaluations_table(evaluations: Sequence[Mapping[str, float]]) -> str:
    """A row for each evaluation of a run, the earliest first.

    Args:
        evaluations: each its "step" and its metrics, of which some may be absent.
    """
    names = [name for name in dict.fromkeys(itertools.chain(*evaluations)) if name != "step"]
    rows = [
        (str(one["step"]), *(f"{one[name]:.4f}" if name in one else "" for name in names))
        for one in evaluations
    ]
    return _table(("step", *names), rows)


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "".join(f"| {' | '.join(map(_cell, line))} |\n" for line in lines)


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", r"\|")
