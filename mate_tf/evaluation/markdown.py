"""Tables in Markdown that an evaluation shows beside its scores; TensorBoard draws them."""

import collections
import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

NUM_SHOWN = 10  # answers of an evaluation


class ShownAnswer(NamedTuple):
    """A question's answer, for a person to judge.

    Attributes:
        question: its text.
        gold: the right answer.
        predicted: the model's answer.
        cells: where it is from, (row, column) of the body, counted from zero.
        is_right: whether it counts as right.
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
    """How often each gold name (rows) was taken for each name (columns).

    Args:
        golds: one or more names.
        predicted: as many, of the same examples.
        names: the order of rows and columns; other names follow.
    """
    names = list(dict.fromkeys([*names, *golds, *predicted]))
    counts = collections.Counter(zip(golds, predicted, strict=True))
    rows = [(gold, *(str(counts[gold, name]) for name in names)) for gold in names]
    return _table((r"gold \ predicted", *names), rows)


def evaluations_table(evaluations: Sequence[Mapping[str, float]]) -> str:
    """A row for each evaluation of a run, each with its "step" and some of the metrics."""
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
