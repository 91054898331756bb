"""Answers from cells, columns and aggregations; cells of a batch against the obvious loops.

Shapes: B batch, S sequence, C columns of the model.
"""

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from mate_tf.answers.answer import Answer, SelectedCell, no_answer
from mate_tf.answers.calibration import Calibration, calibrated
from mate_tf.answers.decoding import (
    Asked,
    decode_cells,
    group_body_cells,
    select_cells,
)
from mate_tf.features.token_features import TokenFeatures
from mate_tf.tables.operators import OPERATORS, operators_by_id
from mate_tf.tables.table import Table
from mate_tf.task_configs import TableQAConfig
from tests.small import cases

TABLE = Table.from_rows(
    [
        ["city", "people", "founded"],
        ["Ulm", "1,200", "854"],
        ["Bonn", "300", "11 BC"],
        ["Jena", "unknown", ""],
    ]
)

LOGITS = ("token_logits", "column_logits", "row_scores")
CELLS = [(row, column) for row in range(4) for column in range(1, 4)]


def decode_one(table, column_ids, row_ids, probabilities, aggregation_logits=None, **options):
    """The answer from the features and outputs of one example, each [S]."""
    zeros = np.zeros((1, len(row_ids)), np.int32)
    features = TokenFeatures(*[zeros] * 9)._replace(
        column_ids=np.array([column_ids]), row_ids=np.array([row_ids])
    )
    outputs = {"token_probabilities": np.array([probabilities])}
    if aggregation_logits is not None:
        outputs["aggregation_logits"] = np.array([aggregation_logits])
    outputs |= {name: np.array([options.pop(name)]) for name in LOGITS if name in options}
    config = options.pop("config", TableQAConfig())
    asked = Asked([table], features, histogram_row=options.pop("histogram_row", False))
    (answer,) = decode_cells(config, outputs, asked, **options)
    return answer


def decode(selected, aggregation=None, table=TABLE, **options):
    """Answers from probabilities by (row id, column id); each cell has one token."""
    row_ids, column_ids = np.array([(0, 0), *CELLS, (0, 0)]).T
    probabilities = [selected.get(place, 0.0) for place in zip(row_ids, column_ids, strict=True)]
    logits = None if aggregation is None else [20.0 * (i == aggregation) for i in range(4)]
    return decode_one(table, column_ids, row_ids, probabilities, logits, **options)


@cases(
    "selected, items, scores",
    ({(2, 1): 0.9, (1, 1): 0.7, (3, 1): 0.4}, ("Ulm", "Bonn"), [0.7, 0.9]),
    ({(3, 2): 0.2, (1, 1): 0.1}, ("unknown",), [0.2]),  # the best where none passes
    ({(0, 1): 1.0, (0, 0): 1.0, (2, 2): 0.6}, ("300",), [0.6]),  # neither header nor question
)
def test_cells_above_the_threshold_in_table_order(selected, items, scores):
    answer = decode(selected)
    assert (answer.items, answer.text) == (items, ", ".join(items))
    assert [cell.score for cell in answer.cells] == scores
    assert (answer.aggregation, answer.value) == ("NONE", None)
    assert answer.score == pytest.approx(np.mean(scores))


def test_of_a_softmax_over_cells_the_most_probable_is_the_answer():
    config = TableQAConfig(operators=(), select_one_column=False, cell_cross_entropy=True)
    for probabilities, row in (({(1, 1): 0.2, (3, 1): 0.3}, 2), ({(1, 1): 0.6, (3, 1): 0.4}, 0)):
        answer = decode(probabilities, config=config, num_alternatives=2)
        assert answer.coordinates == ((row, 0),)
        (other,) = answer.alternatives
        assert [cell.row for cell in other.cells] == [2 - row]
        assert answer.score + other.score == pytest.approx(sum(probabilities.values()))


@cases(
    "column_logits, chosen, place, chance",
    ([-1e4, 1.0, 2.0, 0.0], 0.9, (1, 2), 0.9),
    # Column 0 is none: where it is the likeliest, the next one answers.
    ([3.0, 0.0, 1.0, -2.0], 0.0, (3, 2), 1 / (1 + np.exp(-2.0))),
)
def test_the_score_takes_in_the_probability_of_the_likeliest_column(
    column_logits, chosen, place, chance
):
    row_ids, column_ids = np.array(CELLS).T
    is_best = (row_ids == place[0]) & (column_ids == place[1])
    logits = {"token_logits": np.where(is_best, 2.0, -2.0), "column_logits": column_logits}
    answer = decode_one(TABLE, column_ids, row_ids, chosen * is_best, **logits)
    (cell,) = answer.cells
    assert (cell.row + 1, cell.column + 1) == place and cell.score == pytest.approx(chance)
    share = np.exp(column_logits[2]) / np.exp(column_logits).sum()
    assert answer.score == pytest.approx(chance * share)


@cases(
    "probabilities, count",
    *(((0.45, 0.4, 0.3), 1), ((0.5, 0.45, 0.6), 1), ((0.5, 0.5, 0.5), 2), ((0.1, 0.0, 0.0), 1)),
)
def test_as_many_cells_as_expected_are_counted_where_none_passes(probabilities, count):
    selected = dict(zip([(1, 1), (2, 1), (3, 1)], probabilities, strict=True))
    answer = decode(selected, 3)
    assert (answer.aggregation, answer.value, len(answer.cells)) == ("COUNT", count, count)
    most_probable = sorted(probabilities)[-count:]
    assert sorted(cell.score for cell in answer.cells) == pytest.approx(most_probable)
    assert [cell.row for cell in answer.cells] == sorted(cell.row for cell in answer.cells)


def test_where_the_table_does_not_say_the_best_answer_is_only_an_alternative():
    logits = [4.0 * (name == "ABSENT") for name in OPERATORS]
    row_ids, column_ids = np.array(CELLS).T
    probabilities = [0.9 * (place == (2, 1)) for place in CELLS]
    config = TableQAConfig(operators=tuple(OPERATORS))
    answer = decode_one(TABLE, column_ids, row_ids, probabilities, logits, config=config)
    assert answer.absent and not answer.answered and (answer.text, answer.cells) == ("", ())
    chance = np.exp(4.0) / (np.exp(4.0) + len(OPERATORS) - 1)
    assert answer.score == pytest.approx(chance)
    (best,) = answer.alternatives
    assert (best.text, best.aggregation) == ("Bonn", "NONE")
    # Alternatives are calibrated, the chance that there is an answer is not.
    found = calibrated(answer, Calibration(offset=1.0), TABLE, "?")
    assert found.score == answer.score and found.alternatives[0].score > best.score
    assert Answer.from_dict(answer.to_dict()) == answer
    careful = dataclasses.replace(config, absent_threshold=0.9)
    assert decode_one(TABLE, column_ids, row_ids, probabilities, logits, config=careful) == best


@cases(
    "question, absence, is_refused",
    ("how many people live in Rome?", 0.95, True),  # names the column of the guess
    ("who is the mayor of Bonn?", 0.95, True),  # names its row
    ("how many people live in Bonn?", 0.95, False),
    ("who is the president?", 0.95, True),
    ("who is the president?", 0.85, False),
)
def test_a_refusal_that_is_not_likely_right_or_whose_cell_is_named_is_a_guess(
    question, absence, is_refused
):
    cell = SelectedCell(1, 1, "300", 0.9)
    guess = Answer(("300",), (cell,), score=0.9, absence=absence)
    refusal = dataclasses.replace(no_answer(absence, (guess,)), aggregation="ABSENT")
    # Weights, for without them no signs are made; the sign of this one is 0 here.
    weights = {"several cells": 1.0}
    calibration = Calibration(weights=weights, refusal=Calibration(sure=0.9, probably=0.9))
    found = calibrated(refusal, calibration, TABLE, question)
    assert found.absent == is_refused
    assert (found.guess.text, found.guess.confidence) == ("300", "not sure")
    assert found.score == pytest.approx(absence if is_refused else 0.9)


@cases(
    "aggregation, selected, items, value, name",
    (1, [(1, 2), (2, 2)], ("1500",), 1500.0, "SUM"),
    (2, [(1, 2), (2, 2)], ("750",), 750.0, "AVERAGE"),
    (3, [(1, 1), (2, 1), (3, 1)], ("3",), 3.0, "COUNT"),
    (1, [(1, 1), (2, 1)], ("Ulm", "Bonn"), None, "NONE"),
    (2, [(3, 2), (3, 3)], ("unknown", ""), None, "NONE"),
)
def test_what_is_computed(aggregation, selected, items, value, name):
    answer = decode(dict.fromkeys(selected, 1.0), aggregation)
    assert (answer.items, answer.value, answer.aggregation) == (items, value, name)


def test_no_body_token_gives_an_empty_answer():
    answer = decode_one(TABLE, [0, 1], [0, 0], [1.0, 1.0], [0.0] * 4, num_alternatives=3)
    assert answer == no_answer()


MONTHS = Table.from_rows(
    [
        ["team", "jan", "feb", "mar"],
        ["A", "5", "7", "1"],
        ["B", "2", "9", "4"],
        ["C", "3", "3", "8"],
    ]
)
ALL = operators_by_id()


def decode_along(operator, likely, row=2, chance=0.9, **options):
    """The answer of a model that is sure of cells (row id, column id) and of a row of MONTHS."""
    places = [(r, c) for r in range(4) for c in range(1, 5)]
    row_ids, column_ids = np.array(places).T
    token_logits = np.array([likely.get(it, -3.0) for it in places])
    options = {"row_scores": np.where(row_ids == row, 1.5, 0.5)} | options
    if options["row_scores"] is None:
        del options["row_scores"]
    probabilities = np.where((column_ids == 2) & (row_ids > 0), 1 / (1 + np.exp(-token_logits)), 0)
    others = (1 - chance) / (len(ALL) - 1)
    operator_logits = np.log(np.where(np.equal(ALL, operator), chance, others))
    return decode_one(
        *(MONTHS, column_ids, row_ids, probabilities, operator_logits),
        column_logits=np.array([0.0, 0.0, 1.0, 0.0, 0.0]),
        token_logits=token_logits,
        config=TableQAConfig(operators=ALL),
        **options,
    )


OF_ROW = np.exp([0.5, 1.5, 0.5])[1] / np.exp([0.5, 1.5, 0.5]).sum()


@cases(
    "operator, likely, items, coordinates",
    ("ROW_SUM", {(2, 2): 2.0, (2, 4): 1.0, (1, 3): 4.0}, ("6",), [(1, 1), (1, 3)]),
    ("ROW_SUM", {(3, 2): 2.0, (3, 4): 1.0, (2, 3): 4.0}, ("11",), [(2, 1), (2, 3)]),
    ("ROW_AVERAGE", {(2, 2): 2.0, (2, 3): 2.0, (2, 4): 1.0}, ("5",), [(1, 1), (1, 2), (1, 3)]),
    ("ROW_MAX", {(2, 2): 2.0, (2, 3): 2.0, (3, 4): 2.0}, ("9",), [(1, 1), (1, 2)]),
    ("ROW_MIN", {(2, 2): 2.0, (2, 3): 2.0, (3, 4): 2.0}, ("2",), [(1, 1), (1, 2)]),
    ("ROW_DIFFERENCE", {(2, 3): 2.0, (2, 4): -1.0, (1, 2): 3.0}, ("5",), [(1, 2), (1, 3)]),
    ("ROW_DIFFERENCE", {(2, 2): 3.0, (2, 3): 2.0, (2, 4): 1.0}, ("7",), [(1, 1), (1, 2)]),
    ("HEADER", {(2, 3): 2.0, (3, 4): 5.0}, ("feb",), [(1, 2)]),
    ("HEADER", {(2, 2): 1.0, (2, 4): 1.0, (1, 2): 5.0}, ("jan", "mar"), [(1, 1), (1, 3)]),
    ("HEADER", {(2, 4): -1.0, (1, 2): 5.0}, ("mar",), [(1, 3)]),  # the best where none passes
)  # fmt: skip
def test_operators_along_a_row_take_cells_of_the_likeliest_row(
    operator, likely, items, coordinates
):
    answer = decode_along(operator, likely, coordinates[0][0] + 1)
    assert (answer.aggregation, answer.items) == (operator, items)
    assert list(answer.coordinates) == coordinates
    chances = [1 / (1 + np.exp(-likely[row + 1, column + 1])) for row, column in coordinates]
    assert answer.score == pytest.approx(np.mean(chances) * OF_ROW * 0.9)


@cases(
    "operator, likely, coordinates",
    ("NO", {(2, 3): -1.0}, []),
    ("NO", {(2, 2): 1.0, (3, 2): -1.0, (3, 3): 5.0}, [(1, 1)]),
    ("YES", {(1, 2): 1.0, (2, 2): 1.0}, [(0, 1), (1, 1)]),
    ("YES", {(1, 2): -1.0}, [(0, 1)]),  # the best where none passes
)
def test_a_verdict_has_the_probability_of_its_operator(operator, likely, coordinates):
    answer = decode_along(operator, likely, num_alternatives=4)
    assert answer.answered and (answer.aggregation, answer.text) == (operator, operator.lower())
    assert list(answer.coordinates) == coordinates
    assert answer.score == pytest.approx(0.9)
    other = {"YES": "NO", "NO": "YES"}[operator]
    verdicts = [it for it in answer.alternatives if it.aggregation in ("YES", "NO")]
    assert [(it.aggregation, it.text) for it in verdicts] == [(other, other.lower())]
    assert verdicts[0].score == pytest.approx(0.1 / (len(ALL) - 1))
    assert Answer.from_dict(answer.to_dict()) == answer
    assert calibrated(answer, Calibration(), MONTHS, "is it?").text == answer.text


@cases("operator", "NONE", "SUM", "COUNT", "DIFFERENCE", "SHARE", "YES")
def test_in_a_column_the_row_head_changes_nothing(operator):
    likely = {(2, 2): 2.0, (3, 2): 1.0, (2, 3): 3.0}
    with_rows, without = (
        decode_along(operator, likely, row_scores=scores)
        for scores in (np.linspace(-1.0, 2.0, 16), None)
    )
    assert with_rows == without and with_rows.aggregation == operator


@given(st.lists(st.floats(0, 1), min_size=9, max_size=9), st.integers(0, 3))
def test_an_answer_always_has_a_cell_and_a_score_between_0_and_1(values, aggregation):
    body = [place for place in CELLS if place[0]]
    answer = decode(dict(zip(body, values, strict=True)), aggregation)
    assert answer.cells and answer.items and 0.0 <= answer.score <= 1.0
    assert list(answer.coordinates) == sorted(set(answer.coordinates))
    for cell in answer.cells:
        assert cell.text == TABLE.rows[cell.row][cell.column]


@pytest.mark.parametrize("kept_rows", [3, 2])
def test_a_histogram_row_is_never_selected(kept_rows):
    """Of three rows, perhaps one was dropped: the histogram's id is then that of the third."""
    places = [(row, column) for row in range(kept_rows + 2) for column in range(1, 4)]
    row_ids, column_ids = np.array([*places, (0, 0)]).T
    probabilities = np.where(row_ids == kept_rows + 1, 0.9, np.where(row_ids == 2, 0.3, 0.1))
    answer = decode_one(TABLE, column_ids, row_ids, probabilities, histogram_row=True)
    assert [(cell.row, cell.column) for cell in answer.cells] == [(1, 0)]
    answer = decode_one(TABLE, column_ids, row_ids, probabilities, [0, 0, 0, 9], histogram_row=True)
    # 0.3 in each cell of the second row, 0.1 in the others: so many are expected.
    assert answer.value == round(3 * 0.3 + 3 * 0.1 * (kept_rows - 1))


def empty_table(rows: int, columns: int, name: str = "table") -> Table:
    return Table(("",) * columns, (("",) * columns,) * rows, name)


def asked(tables, column_ids, row_ids, histogram_row=False) -> Asked:
    rows = np.asarray(row_ids)
    features = TokenFeatures(*[rows] * 9)._replace(column_ids=np.asarray(column_ids))
    return Asked(tables, features, histogram_row=histogram_row)


@st.composite
def batches(draw):
    """Tables, and columns, rows and values of the tokens of a batch, [B, S] each."""
    sizes = draw(st.lists(st.tuples(st.integers(1, 4), st.integers(1, 4)), min_size=1, max_size=4))
    length = draw(st.integers(1, 12))
    shape = (len(sizes), length)
    rows = draw(arrays.arrays(np.int32, shape, elements=st.integers(0, 4)))
    columns = draw(arrays.arrays(np.int32, shape, elements=st.integers(0, 4)))
    values = draw(arrays.arrays(np.float32, shape, elements=st.floats(0, 1, width=32)))
    limits = np.array(sizes)
    rows, columns = np.minimum(rows, limits[:, :1]), np.minimum(columns, limits[:, 1:])
    return [empty_table(*size) for size in sizes], columns, rows, values


def means_by_loops(table, columns, rows, values, histogram_row) -> list[float]:
    found = []
    for row in range(1, table.num_rows + 1):
        for column in range(1, table.num_columns + 1):
            of_cell = [
                float(value)
                for c, r, value in zip(columns, rows, values, strict=True)
                if (c, r) == (column, row) and not (histogram_row and r == max(rows))
            ]
            found.append(sum(of_cell) / len(of_cell) if of_cell else -np.inf)
    return found


@given(batches(), st.booleans())
def test_a_cell_has_the_mean_of_its_tokens(batch, histogram_row):
    tables, columns, rows, values = batch
    grouped = group_body_cells(asked(tables, columns, rows, histogram_row))
    for cells, table, *tokens in zip(grouped, tables, columns, rows, values, strict=True):
        means = cells.means(tokens[-1])
        assert means.shape == (table.num_rows, table.num_columns)
        expected = means_by_loops(table, *tokens, histogram_row)
        np.testing.assert_allclose(means.ravel(), expected, rtol=1e-12)


@given(
    st.lists(st.sampled_from([-np.inf, 0.0, 0.2, 0.3, 0.5, 0.6, 1.0]), min_size=1, max_size=20),
    st.sampled_from([0.5, 0.9, np.inf]),
    st.integers(0, 3),
)
def test_cells_are_above_the_threshold_or_the_best(probabilities, threshold, otherwise):
    expected = [place for place, chance in enumerate(probabilities) if chance > threshold]
    if not expected:
        seen = [place for place, chance in enumerate(probabilities) if chance > -np.inf]
        expected = sorted(sorted(seen, key=lambda place: -probabilities[place])[:otherwise])
    selected = select_cells(np.array(probabilities), threshold, otherwise)
    assert np.flatnonzero(selected).tolist() == expected


@cases(
    "column_ids, row_ids, message",
    ([[1], [1]], [[2], [4]], r"expected tokens of at most 3 rows, got 4 \(table 'b'\)"),
    ([[9], [1]], [[1], [4]], r"expected tokens of at most 3 rows, got 4 \(table 'b'\)"),
    ([[3], [3]], [[1], [1]], r"expected tokens of at most 2 columns, got 3 \(table 'a'\)"),
)
def test_tokens_of_another_table_are_refused(column_ids, row_ids, message):
    with pytest.raises(ValueError, match=message):
        tables = [empty_table(5, 2, "a"), empty_table(3, 3, "b")]
        group_body_cells(asked(tables, column_ids, row_ids))
