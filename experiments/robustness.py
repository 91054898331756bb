"""Answers all questions of a file on their tables and on tables in random orders, and compares.

    python -m experiments.robustness --model=out/wtq/saved_model --data=out/wtq_data/dev.jsonl \\
        --num_perturbations=5

Rows and columns of each table are put into random orders, the same for all of its questions, and
the cells of gold answers go along. The order says nothing about the answer, so that each change is
an error (TableFormer paper, sections 4.1 and 5.2). Prints the accuracy before and after, by the
main score of the task (mate-tf evaluate), and the variation percentage: the share of the answers
that turned from right to wrong or from wrong to right, over all perturbations. It also says how
much of that are answers beside which another is as good, to 1e-5 of their scores. A question that
the model does not accept is answered wrongly. Questions in sequences (SQA) have the model's own
previous answers.

A table that is too long for the model loses rows with --drop_rows_to_fit, and in another order it
loses others.

Shapes: Q questions, N perturbations.
"""

import dataclasses
import itertools
import json
import random
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np
from absl import flags

from experiments import program
from mate_tf.answers.answer import Answer
from mate_tf.command_line import arguments
from mate_tf.tables.table import Coordinates, Question, Table, id_bytes

_TIE = 1e-5  # between scores that rounding alone may put in either order
Pair = tuple[Table, Question]
Answered = tuple[Table, Question, Answer | ValueError]


def measure_robustness(
    answer_all: Callable[[Sequence[Pair]], Iterable[Answered]],
    pairs: Sequence[Pair],
    is_correct: Callable[[Answer | ValueError, Question], bool],
    num_perturbations: int = 1,
    seed: int = 0,
) -> dict[str, float]:
    """The `robustness_metrics` of answers to Q questions.

    `answer_all` is that of a Predictor whose answers have alternatives, or a ValueError as answer
    to a question that was not accepted. Perturbation n has the orders of seed + n.
    """

    def outcomes(asked: Sequence[Pair]) -> tuple[list[bool], list[bool]]:
        answered = [(is_correct(answer, q), is_tied(answer)) for _, q, answer in answer_all(asked)]
        right, tied = zip(*answered, strict=True)
        return list(right), list(tied)

    before, tied = outcomes(pairs)
    others = [
        outcomes([reorder(*pair, random_order(pair[0], seed + n)) for pair in pairs])
        for n in range(num_perturbations)
    ]
    ties = np.array([there for _, there in others]) | tied
    return robustness_metrics(before, [right for right, _ in others], ties)


def is_tied(answer: Answer | ValueError) -> bool:
    """Whether the scores of the answer and the next best one differ by at most `_TIE`."""
    if isinstance(answer, ValueError) or not answer.alternatives:
        return False
    return abs(answer.score - answer.alternatives[0].score) <= _TIE


def robustness_metrics(
    before: Sequence[bool],
    after: Sequence[Sequence[bool]],
    tied: Sequence[Sequence[bool]] | np.ndarray | None = None,
) -> dict[str, float]:
    """The TableFormer paper's measures of robustness (section 4.1, equation 5), from 0 to 1.

    Given is whether each answer is right before, bool [Q], and after, bool [N, Q], and whether
    another was as good, bool [N, Q]. The variation is a lower bound of the answers that changed.
    """
    first, others = np.asarray(before, bool), np.asarray(after, bool)  # [Q], [N, Q]
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
        return Order(*(tuple(map(int, np.argsort(old))) for old in self))


def random_order(table: Table, seed: int) -> Order:
    """By the seed and the table's name and size: the same for all questions of a conversation."""
    rng = random.Random(b"%d " % seed + id_bytes(table.table_id))
    sizes = table.num_rows, table.num_columns
    return Order(*(tuple(rng.sample(range(size), size)) for size in sizes))


def reorder(table: Table, question: Question, order: Order) -> Pair:
    """A table in another order, and a question about it, whose coordinates go with their cells.

    Those outside of the table, which a conversion refuses, stay as they are.
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


def main(_) -> None:
    from mate_tf.evaluation.scoring import is_correct

    given, options = flags.FLAGS, _OPTIONS()
    asked = arguments.read_asked(options)
    predictor = arguments.load_model(options, num_alternatives=1)
    rounds = itertools.count()

    def answer_all(pairs):
        number = next(rounds)
        name = f"perturbation {number}" if number else "as they are"
        return arguments.answers(predictor, asked, pairs=pairs, name=name)

    def is_right(answer, question):
        return is_correct(asked.task, Answer.of(answer), question)

    number = given.num_perturbations
    metrics = measure_robustness(answer_all, asked.pairs, is_right, number, given.seed)
    if given.json:
        print(json.dumps({"task": asked.task, "questions": len(asked.pairs), **metrics}))
        return
    print(f"questions: {len(asked.pairs)}")
    print(f"perturbations: {number}")
    print(f"accuracy before: {metrics['accuracy']:.2%}")
    print(f"accuracy after: {metrics['perturbed_accuracy']:.2%}")
    print(f"variation percentage: {metrics['variation_percentage']:.2%}")
    print(f"  of it where two scores tie: {metrics['tied_variation_percentage']:.2%}")


if __name__ == "__main__":  # flags of the module would meet those of others in the tests
    adders = arguments.add_model, arguments.add_questions, arguments.add_devices
    _OPTIONS = program.define_flags(*adders)
    flags.DEFINE_integer("num_perturbations", 1, "how many orders of each table are tried", 1)
    flags.DEFINE_bool("json", False, "print one JSON object, its metrics from 0 to 1")
    flags.DEFINE_integer("seed", 0, "of the orders: the first has this, the next one more")
    program.run(main)
