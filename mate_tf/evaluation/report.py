"""The report of an evaluation beside its scores: kinds of questions, tables, robustness.

Robustness is how much answers depend on the order of a table's rows and columns. The order says
nothing about the answer, so that each change of the answer is an error (TableFormer paper, sections
4.1 and 5.2).

Shape letters: Q questions, N perturbations.
"""

import collections
import dataclasses
import itertools
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from mate_tf.answers.answer import Answer
from mate_tf.datasets.supervision import parse_number
from mate_tf.features.english import says
from mate_tf.features.normalization import normalize_denotation
from mate_tf.reading.text_files import read_json
from mate_tf.tables.operators import ABSENT
from mate_tf.tables.table import Coordinates, Question, Table, id_bytes

NUM_SHOWN = 10  # answers of an evaluation
HOW_MANY, IN_A_CELL, NOT_IN_A_CELL = "how many", "how many, in a cell", "how many, not in a cell"
# The first of which the words have a meaning is the kind.
_MEANINGS = {
    "yes or no": ("yes or no",),
    "average": ("average",),
    "difference": ("difference",),
    "A or B": ("one of two",),
    "total": ("total",),
    HOW_MANY: ("how many",),
    "next or previous": ("next", "previous"),
    "superlative": ("superlative",),
    "first, last or nth": ("first", "last", "second or so"),
}


class KindCounts(NamedTuple):
    """How many questions of a kind there are, and how many were answered rightly."""

    questions: int
    right: int


def kind_of(table: Table, question: Question) -> str:
    """The kind of a question with answers, by its words; or that it has none."""
    if question.aggregation == ABSENT:
        return "not in the table"
    text = question.text.lower()
    kind = next((kind for kind, meanings in _MEANINGS.items() if says(text, *meanings)), "")
    if kind == HOW_MANY:
        answers = set(map(normalize_denotation, question.answers))
        cells = (normalize_denotation(cell) for row in table.rows for cell in row)
        return IN_A_CELL if any(cell in answers for cell in cells) else NOT_IN_A_CELL
    if not kind and len(question.answers) > 1:
        return "list"
    is_number = len(question.answers) == 1 and parse_number(question.answers[0]) is not None
    return kind or ("look-up, a number" if is_number else "look-up")


def find_kinds(name: str, predictions: Mapping[str, Answer]) -> dict[str, str]:
    """The kind of each question by its id.

    Args:
        name: "confidence" for how sure its answer is said to be, or "refused"; "ids" for what
            stands behind its id's last colon; or a JSON file with an object of ids and kinds.
        predictions: the answers by the questions' ids.

    ValueError if the file has anything else.
    """
    if name == "confidence":
        return {id_: it.confidence if it.answered else "refused" for id_, it in predictions.items()}
    if name == "ids":
        return {id_: id_.rpartition(":")[2] for id_ in predictions}
    kinds = read_json(name)
    if not isinstance(kinds, dict) or not all(isinstance(kind, str) for kind in kinds.values()):
        raise ValueError(f"expected an object of question ids and kinds in {name}")
    return kinds


def by_kind(
    right: Mapping[str, bool],
    pairs: Iterable[tuple[Table, Question]],
    kinds: Mapping[str, str] | None = None,
) -> dict[str, KindCounts]:
    """How many questions of each kind there are and are right, the most frequent kind first.

    `right` is by question id, and so are `kinds`; None for those of the words. "other" is what the
    kinds lack.
    """
    counts: dict[str, KindCounts] = {}
    for table, question in pairs:
        id_ = question.question_id
        kind = kind_of(table, question) if kinds is None else kinds.get(id_, "other")
        before = counts.get(kind, KindCounts(0, 0))
        counts[kind] = KindCounts(before.questions + 1, before.right + right[id_])
    return dict(sorted(counts.items(), key=lambda item: -item[1].questions))


class ShownAnswer(NamedTuple):
    """A question's text, right answer and predicted one, for a person to judge.

    `cells` are (row, column) of the body, counted from zero.
    """

    question: str
    gold: str
    predicted: str
    cells: Iterable[tuple[int, int]]
    is_right: bool


def answers_table(answers: Iterable[ShownAnswer]) -> str:
    """A row for each answer, which may also be the list that JSON makes of it."""
    rows = [
        (
            question,
            gold,
            predicted,
            ", ".join(f"({row}, {column})" for row, column in cells),
            "yes" if is_right else "no",
        )
        for question, gold, predicted, cells, is_right in answers
    ]
    return _table(("question", "gold", "predicted", "cells (row, column)", "right"), rows)


def confusion_table(
    golds: Sequence[str], predicted: Sequence[str], names: Sequence[str] = ()
) -> str:
    """How often each gold name (rows) was taken for each name (columns), of the same examples.

    `names` are the order of rows and columns; other names follow.
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


# Two scores that rounding alone may put in either order.
TIE = 1e-5

Pair = tuple[Table, Question]
Answered = tuple[Table, Question, Answer | ValueError]


def measure_robustness(
    answer_all: Callable[[Sequence[Pair]], Iterable[Answered]],
    pairs: Sequence[Pair],
    is_correct: Callable[[Answer | ValueError, Question], bool],
    num_perturbations: int = 1,
    seed: int = 0,
) -> dict[str, float]:
    """Answers questions on their tables as they are, and on tables in random orders.

    If rows at the end of a long table are dropped, another order drops other rows, which counts as
    variation too. Results and errors are those of `robustness_metrics`.

    Args:
        answer_all: Predictor.answer_all, or predictions.answer_sequences with it. Its order may
            depend only on the questions' names. Ties are seen only if answers have alternatives.
        pairs: Q questions with their gold answers and tables.
        is_correct: of an answer, or of the error of a question that was not accepted.
        num_perturbations: N. Number n has the orders of seed + n, the same for all questions about
            a table.
        seed: of the orders.
    """

    def outcomes(asked: Sequence[Pair]) -> list[tuple[bool, bool]]:
        answered = answer_all(asked)
        return [(is_correct(answer, question), is_tied(answer)) for _, question, answer in answered]

    first = outcomes(pairs)
    others = [
        outcomes([reorder(*pair, random_order(pair[0], seed + n)) for pair in pairs])
        for n in range(num_perturbations)
    ]
    tied = [
        [here[1] or there[1] for here, there in zip(first, other, strict=True)] for other in others
    ]
    after = [[is_right for is_right, _ in other] for other in others]
    return robustness_metrics([is_right for is_right, _ in first], after, tied)


def is_tied(answer: Answer | ValueError) -> bool:
    """Whether the scores of the answer and the next best one differ by at most `TIE`."""
    if isinstance(answer, ValueError) or not answer.alternatives:
        return False
    return abs(answer.score - answer.alternatives[0].score) <= TIE


def robustness_metrics(
    before: Sequence[bool] | np.ndarray,
    after: Sequence[Sequence[bool]] | np.ndarray,
    tied: Sequence[Sequence[bool]] | np.ndarray | None = None,
) -> dict[str, float]:
    """The TableFormer paper's measures of robustness (section 4.1, equation 5).

    Given is whether each answer is right on the tables as they are, bool [Q], and on the perturbed
    ones, bool [N, Q], and whether another answer was as good, before or after, bool [N, Q]; without
    it, nowhere. ValueError if there is nothing to compare, or not as many answers after as before.

    Returns:
        Each from 0 to 1, over all perturbations except for the first: "accuracy";
        "perturbed_accuracy"; "variation_percentage", the share of answers that turned from right to
        wrong or from wrong to right, a lower bound of those that changed; and
        "tied_variation_percentage", the part of these that rounding decides.
    """
    first, others = np.asarray(before, bool), np.asarray(after, bool)  # [Q], [N, Q]
    if not (first.size and others.size) or others.shape[1:] != first.shape:
        raise ValueError(
            "expected answers to the same questions, at least 1, before and after at least 1 "
            f"perturbation, got {first.size} before and {list(map(len, after))} after"
        )
    changed = others != first
    ties = np.zeros_like(others) if tied is None else np.asarray(tied, bool)
    return {
        "accuracy": float(first.mean()),
        "perturbed_accuracy": float(others.mean()),
        "variation_percentage": float(changed.mean()),
        "tied_variation_percentage": float((changed & ties).mean()),
    }


class Order(NamedTuple):
    """An order of rows and columns: for each place the former one, both counted from zero."""

    rows: tuple[int, ...]
    columns: tuple[int, ...]

    def inverse(self) -> "Order":
        """The order that undoes this one."""
        return Order(*(tuple(sorted(range(len(old)), key=old.__getitem__)) for old in self))


def random_order(table: Table, seed: int) -> Order:
    """A random order of a table's rows and columns, by the seed and the table's name and size.

    So all questions of a conversation see the same table.
    """
    rng = random.Random(b"%d " % seed + id_bytes(table.table_id))
    sizes = table.num_rows, table.num_columns
    return Order(*(tuple(rng.sample(range(size), size)) for size in sizes))


def reorder(table: Table, question: Question, order: Order) -> tuple[Table, Question]:
    """A table in another order, and a question about it.

    A header moves with its column, and coordinates with their cells. Coordinates outside of the
    table, which a conversion refuses, stay as they are.

    Example:
        >>> table = Table.from_rows([["city", "year"], ["Rome", 2004], ["Bonn", 2005]])
        >>> question = Question("?", answer_coordinates=((1, 0),))
        >>> table, question = reorder(table, question, Order(rows=(1, 0), columns=(1, 0)))
        >>> [table.rows[row][column] for row, column in question.answer_coordinates]
        ['Bonn']
    """
    to = order.inverse()

    def grid(cells: tuple[tuple[str, ...], ...]) -> tuple[tuple[str, ...], ...]:
        return tuple(tuple(cells[row][column] for column in order.columns) for row in order.rows)

    def moved(cells: Coordinates) -> Coordinates:
        return tuple(
            (to.rows[row], to.columns[column])
            if 0 <= row < table.num_rows and 0 <= column < table.num_columns
            else (row, column)
            for row, column in cells
        )

    reordered = dataclasses.replace(
        table,
        header=tuple(table.header[column] for column in order.columns),
        rows=grid(table.rows),
        expansions=grid(table.expansions) if table.expansions else (),
    )
    return reordered, dataclasses.replace(
        question,
        answer_coordinates=moved(question.answer_coordinates),
        previous_coordinates=moved(question.previous_coordinates),
    )
