"""The answer from a table's cells, and the best other answers.

Candidates are every aggregation of the answer's cells, and each other cell by itself. Where a
column is chosen first, so is every aggregation of the cells selected in each other column.
The best are kept that have some probability and repeat neither a better one nor the answer
(`is_repeated`). A score is the mean probability of the cells, with their column's, times that of
the aggregation. It may be above the answer's, which is of the likeliest column and aggregation.

Shapes: k body cells of the table, row by row; A aggregations; n sets of cells.
"""

from typing import NamedTuple

import numpy as np

from mate_tf.answers.answer import Answer, SelectedCell, is_repeated
from mate_tf.answers.computed import TokenFacts, answer_of_cells
from mate_tf.tables.table import AGGREGATIONS, PAIRED, Table

_NONE, _COUNT = AGGREGATIONS.index("NONE"), AGGREGATIONS.index("COUNT")


class CellProbabilities(NamedTuple):
    """The probabilities of a table's cells and of the aggregations."""

    table: Table
    cells: np.ndarray  # float64 [k], given that its column is the answer's; -inf where not seen
    with_columns: np.ndarray  # float64 [k], these times the probability of the column
    aggregations: np.ndarray  # float64 [A]
    selected_in_columns: np.ndarray  # bool [k], those of each column if it is the answer's
    facts: TokenFacts | None = None
    plain: bool = False  # `TableQAConfig.plain_answers`


def likeliest_answer(probabilities: CellProbabilities, places: np.ndarray) -> Answer:
    """The likeliest aggregation of the cells at some places, int [at least one].

    It is the cells themselves where they lack what the aggregation needs, such as a number; and
    the cell itself where a single number would be counted, if answers are to be plain.
    """
    cells, score = _cells(probabilities, places), probabilities.with_columns[places].mean()
    likeliest = int(probabilities.aggregations.argmax())
    if probabilities.plain and likeliest == _COUNT and len(cells) == 1:
        of_both = float(score * probabilities.aggregations[[_NONE, _COUNT]].sum())
        itself = answer_of_cells(probabilities.table, cells, "NONE", of_both)
        if itself is not None and itself.number is not None:
            return itself
    for aggregation in (likeliest, _NONE):
        if aggregation == _NONE != likeliest and AGGREGATIONS[likeliest] in PAIRED:
            best = places[probabilities.cells[places].argmax()][np.newaxis]
            cells = _cells(probabilities, best)
        answer = _answer(probabilities, cells, score, aggregation)
        if answer is not None:
            return answer
    raise AssertionError("cells themselves are always an answer")


def best_others(
    probabilities: CellProbabilities, places: np.ndarray, answer: Answer, number: int
) -> list[Answer]:
    """The best alternatives to the answer from the cells at some places, at most a number."""
    sets = [places, *_selections_of_other_columns(probabilities, places)]
    means = np.array([probabilities.with_columns[members].mean() for members in sets])  # [n]
    of_sets = np.outer(means, probabilities.aggregations).ravel()  # [n * A]
    is_other = probabilities.cells > -np.inf  # [k]
    is_other[places] = False
    others = np.flatnonzero(is_other)
    of_others = probabilities.with_columns[others] * probabilities.aggregations[_NONE]
    scores = np.concatenate([of_sets, of_others])
    found: list[Answer] = []
    for index in np.argsort(-scores, kind="stable").tolist():
        if len(found) == number or scores[index] <= 0.0:
            break
        if index < len(of_sets):
            members, aggregation = divmod(index, len(probabilities.aggregations))
            places_of, score = sets[members], means[members]
        else:
            place, aggregation = others[index - len(of_sets)], _NONE
            places_of, score = place[np.newaxis], probabilities.with_columns[place]
        cells = _cells(probabilities, places_of)
        other = _answer(probabilities, cells, score, aggregation)
        if other is not None and not is_repeated(other, [answer, *found]):
            found.append(other)
    return found


def _selections_of_other_columns(
    probabilities: CellProbabilities, places: np.ndarray
) -> list[np.ndarray]:
    """The places of the cells selected in each column without any of the given places."""
    width = probabilities.table.num_columns
    is_other = np.ones(width, bool)
    is_other[places % width] = False
    # Column by column.
    selected = probabilities.selected_in_columns.reshape(-1, width).T & is_other[:, np.newaxis]
    columns, rows = np.nonzero(selected)
    of_columns = np.split(rows * width + columns, 1 + np.flatnonzero(np.diff(columns)))
    return of_columns if len(columns) else []


def _cells(probabilities: CellProbabilities, places: np.ndarray) -> tuple[SelectedCell, ...]:
    rows, columns = np.divmod(places, probabilities.table.num_columns)
    return tuple(
        SelectedCell(row, column, probabilities.table.rows[row][column], probability)
        for row, column, probability in zip(
            rows.tolist(), columns.tolist(), probabilities.cells[places].tolist(), strict=True
        )
    )


def _answer(
    probabilities: CellProbabilities,
    cells: tuple[SelectedCell, ...],
    score: float,
    aggregation: int,
) -> Answer | None:
    of_aggregation = probabilities.aggregations[aggregation]
    return answer_of_cells(
        probabilities.table,
        cells,
        AGGREGATIONS[aggregation],
        float(score * of_aggregation),
        probabilities.facts,
    )
