"""Alternatives: all other answers there are, tried one by one, sorted by score.

Shapes: k body cells of a table, A aggregations.
"""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from scipy import special

from mate_tf.answers.answer import SelectedCell, answer_of_cells
from mate_tf.answers.decoding import CellProbabilities, best_others, likeliest_answer
from mate_tf.tables.operators import OPERATORS, TAPAS_OPERATORS
from mate_tf.tables.table import Table

TABLE = Table.from_rows(
    [["city", "people", "area"], ["Ulm", "120", "118"], ["Bonn", "330", "none"], ["Ulm", "2", "2"]]
)
NUM_CELLS = 9
ALONG_ROWS = ("NONE", "SUM", "YES", "NO", "HEADER", "SHARE", "ROW_SUM", "ROW_MAX", "ROW_DIFFERENCE")


@st.composite
def probabilities(draw) -> tuple[CellProbabilities, np.ndarray]:
    """Of the table's cells, and the places of an answer, in one column if they name it.

    Cells that the model did not see are never in an answer or a column's selection.
    """
    chances = st.sampled_from([-np.inf, 0.0, 0.01, 0.2, 0.4, 0.6, 0.9, 1.0])
    cells = draw(arrays.arrays(np.float64, NUM_CELLS, elements=chances))
    cells[draw(st.integers(0, NUM_CELLS - 1))] = draw(st.sampled_from([0.3, 0.7]))
    seen = np.flatnonzero(cells > -np.inf)
    places = draw(st.lists(st.sampled_from(seen.tolist()), min_size=1, max_size=4, unique=True))
    logits = draw(arrays.arrays(np.float64, 4, elements=st.integers(-3, 3).map(float)))
    with_columns, selected = cells, np.zeros(NUM_CELLS, bool)
    if draw(st.booleans()):  # a model that chooses a column
        columns = special.softmax(draw(arrays.arrays(np.float64, 3, elements=st.integers(-3, 3))))
        with_columns = np.where(cells > -np.inf, cells * np.tile(columns, 3), -np.inf)
        selected = draw(arrays.arrays(np.bool_, NUM_CELLS)) & (cells > -np.inf)
        places = [place for place in places if place % 3 == places[0] % 3]
    aggregations = special.softmax(logits)
    held = CellProbabilities(TABLE, cells, with_columns, aggregations, TAPAS_OPERATORS, selected)
    return held, np.sort(places)


@st.composite
def probabilities_with_rows(draw) -> tuple[CellProbabilities, np.ndarray]:
    """The same of a model that chooses a row for some operators: the answer is in a line."""
    held, places = draw(probabilities())
    cells = held.cells
    of_rows, of_operators = (
        special.softmax(draw(arrays.arrays(np.float64, size, elements=st.integers(-3, 3))))
        for size in (3, len(ALONG_ROWS))
    )
    with_rows = np.where(cells > -np.inf, cells * np.repeat(of_rows, 3), -np.inf)
    in_row = draw(arrays.arrays(np.bool_, NUM_CELLS)) & (cells > -np.inf)
    in_row &= np.arange(NUM_CELLS) // 3 == of_rows.argmax()
    line = places // 3 if draw(st.booleans()) else places % 3
    places = places[line == line[0]]
    if draw(st.integers(0, 9)) == 0:  # a no without cells
        places, of_operators = places[:0], np.roll(np.sort(of_operators), 4)
    held = held._replace(
        aggregations=of_operators, operators=ALONG_ROWS, with_rows=with_rows, selected_in_row=in_row
    )
    return held, places


def candidates_by_loops(held: CellProbabilities, places: list[int]):
    """(answer, score) of everything that may be an alternative, and the answer itself."""
    column_sets = [
        [place for place in range(column, NUM_CELLS, 3) if held.selected_in_columns[place]]
        for column in range(3)
        if column not in {place % 3 for place in places}
    ]
    in_row = [] if held.selected_in_row is None else np.flatnonzero(held.selected_in_row).tolist()
    for members in [places, *column_sets, *([in_row] if len(in_row) > 1 else [])]:
        for aggregation in held.operators:
            if members or aggregation in ("YES", "NO"):
                yield members, aggregation
    for place in range(NUM_CELLS):
        if place not in places and held.cells[place] > -np.inf:
            yield [place], "NONE"


def answers_by_loops(held: CellProbabilities, places: list[int]):
    for members, aggregation in candidates_by_loops(held, places):
        cells = tuple(
            SelectedCell(
                place // 3, place % 3, TABLE.rows[place // 3][place % 3], held.cells[place]
            )
            for place in members
        )
        score = held.aggregations[held.operators.index(aggregation)]
        score *= mean_by_loops(held, members, aggregation)
        answer = answer_of_cells(TABLE, cells, aggregation, float(score), held.facts)
        if answer is not None and answer.score > 0.0:
            yield answer


def mean_by_loops(held: CellProbabilities, members: list[int], aggregation: str) -> float:
    """The mean probability of cells in their columns or, for some operators, in their row."""
    if aggregation in ("YES", "NO"):
        return 1.0
    if OPERATORS[aggregation].along_row:
        is_one_line, chances = len({place // 3 for place in members}) == 1, held.with_rows
    else:
        is_one_line, chances = len({place % 3 for place in members}) == 1, held.with_columns
    if held.with_rows is not None and not is_one_line:
        return 0.0
    assert chances is not None
    return float(np.mean([chances[place] for place in members]))


def say_the_same(one, other) -> bool:
    if one.items != other.items:
        return False
    coordinates = [[(cell.row, cell.column) for cell in answer.cells] for answer in (one, other)]
    return {one.aggregation, other.aggregation} != {"NONE"} or coordinates[0] == coordinates[1]


@given(st.one_of(probabilities(), probabilities_with_rows()), st.integers(1, 12))
def test_they_are_the_best_that_differ(held_and_places, number):
    held, places = held_and_places
    answer = likeliest_answer(held, places)
    found = best_others(held, places, answer, number)

    for one, other in itertools.combinations([answer, *found], 2):
        assert not say_the_same(one, other)
    scores = [other.score for other in found]
    assert scores == sorted(scores, reverse=True)
    every = list(answers_by_loops(held, places.tolist()))
    for other in found:
        assert other in every
        assert other.alternatives == ()
    # Whatever was left out says the same as something at least as good, or there were enough.
    for left_out in every:
        if not any(say_the_same(left_out, taken) for taken in [answer, *found]):
            assert len(found) == number
            assert left_out.score <= scores[-1] + 1e-12


@given(st.one_of(probabilities(), probabilities_with_rows()))
def test_the_answer_is_the_likeliest_aggregation_of_its_cells(held_and_places):
    held, places = held_and_places
    answer = likeliest_answer(held, places)
    likeliest = held.operators[held.aggregations.argmax()]
    assert answer.aggregation in (likeliest, "NONE")
    expected = mean_by_loops(held, places.tolist(), likeliest)
    if answer.aggregation != likeliest and likeliest.startswith("ROW_"):
        places = places[[held.cells[places].argmax()]]  # the best of the row
    assert [cell.row * 3 + cell.column for cell in answer.cells] == places.tolist()
    expected *= held.aggregations[held.operators.index(answer.aggregation)]
    assert answer.score == pytest.approx(expected, rel=1e-12)
