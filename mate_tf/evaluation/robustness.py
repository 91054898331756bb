"""How much a model's answers depend on the order of a table's rows and columns.

The order says nothing about the answer, so that each change of the answer is an error (TableFormer
paper, sections 4.1 and 5.2).

Shape letters: Q questions, N perturbations.
"""

import dataclasses
import random
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np

from mate_tf.answers.answer import Answer
from mate_tf.tables.table import Coordinates, Question, Table, id_bytes

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
