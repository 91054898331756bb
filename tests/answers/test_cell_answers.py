"""Reading answers off the probabilities of cells and columns.

Shapes: B batch, S sequence, C columns of the model.
"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mate_tf.answers.decoding import Asked, decode_cells
from mate_tf.features.token_features import TokenFeatures
from mate_tf.models.table_qa import TableQAConfig
from mate_tf.tables.table import Table

TABLE = Table.from_rows(
    [
        ["city", "people", "founded"],
        ["Ulm", "1,200", "854"],
        ["Bonn", "300", "11 BC"],
        ["Jena", "unknown", ""],
    ]
)
LOGITS = ("token_logits", "column_logits")
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


def test_cells_above_the_threshold_in_table_order():
    answer = decode({(2, 1): 0.9, (1, 1): 0.7, (3, 1): 0.4})
    assert answer.items == ("Ulm", "Bonn")
    assert answer.text == "Ulm, Bonn"
    assert [(cell.row, cell.column) for cell in answer.cells] == [(0, 0), (1, 0)]
    assert [cell.score for cell in answer.cells] == [0.7, 0.9]
    assert (answer.aggregation, answer.value) == ("NONE", None)
    assert answer.score == pytest.approx(0.8)


def test_of_a_softmax_over_cells_the_most_probable_is_the_answer():
    config = TableQAConfig(
        num_aggregation_labels=0, select_one_column=False, cell_cross_entropy=True
    )
    for probabilities, row in (({(1, 1): 0.2, (3, 1): 0.3}, 2), ({(1, 1): 0.6, (3, 1): 0.4}, 0)):
        answer = decode(probabilities, config=config, num_alternatives=2)
        assert [(cell.row, cell.column) for cell in answer.cells] == [(row, 0)]
        (other,) = answer.alternatives
        assert [cell.row for cell in other.cells] == [2 - row]
        assert answer.score + other.score == pytest.approx(sum(probabilities.values()))


def test_the_score_takes_in_the_probability_of_the_column():
    logits = np.array([-1e4, 1.0, 2.0, 0.0])  # [C]
    row_ids, column_ids = np.array(CELLS).T
    in_best = np.where((column_ids == 2) & (row_ids == 1), 0.9, 0.0)
    answer = decode_one(
        TABLE, column_ids, row_ids, in_best, column_logits=logits, token_logits=0.0 * row_ids
    )
    of_column = np.exp(2.0) / np.exp(logits).sum()
    assert [(cell.row, cell.column, cell.score) for cell in answer.cells] == [(0, 1, 0.9)]
    assert answer.score == pytest.approx(0.9 * of_column)


def test_the_likeliest_column_answers_where_none_is_chosen():
    logits = np.array([3.0, 0.0, 1.0, -2.0])  # [C], of which column 0 is none
    row_ids, column_ids = np.array(CELLS).T
    token_logits = np.where((row_ids == 3) & (column_ids == 2), 2.0, -2.0)
    answer = decode_one(
        TABLE, column_ids, row_ids, 0.0 * row_ids, column_logits=logits, token_logits=token_logits
    )
    assert [(cell.row, cell.column) for cell in answer.cells] == [(2, 1)]
    of_column = np.exp(1.0) / np.exp(logits).sum()
    assert answer.score == pytest.approx(of_column / (1 + np.exp(-2.0)))


@pytest.mark.parametrize(
    ("selected", "aggregation", "number"),
    [
        ([(1, 2)], 0, 1200.0),
        ([(2, 3)], 0, 11.0),
        ([(1, 1)], 0, None),
        ([(1, 2), (2, 2)], 0, None),
        ([(1, 2), (2, 2)], 1, 1500.0),
        ([(1, 1), (2, 1)], 3, 2.0),
    ],
)
def test_the_number_of_an_answer_is_that_of_its_one_item(selected, aggregation, number):
    assert decode(dict.fromkeys(selected, 1.0), aggregation).number == number


def test_the_best_cell_where_none_passes():
    answer = decode({(3, 2): 0.2, (1, 1): 0.1})
    assert answer.items == ("unknown",)
    assert answer.score == pytest.approx(0.2)


@pytest.mark.parametrize(
    ("probabilities", "count"),
    [((0.45, 0.4, 0.3), 1), ((0.5, 0.45, 0.6), 1), ((0.5, 0.5, 0.5), 2), ((0.1, 0.0, 0.0), 1)],
)
def test_as_many_cells_as_expected_are_counted_where_none_passes(probabilities, count):
    selected = dict(zip([(1, 1), (2, 1), (3, 1)], probabilities, strict=True))
    answer = decode(selected, 3)
    assert (answer.aggregation, answer.value, len(answer.cells)) == ("COUNT", count, count)
    most_probable = sorted(probabilities)[-count:]
    assert sorted(cell.score for cell in answer.cells) == pytest.approx(most_probable)
    assert [cell.row for cell in answer.cells] == sorted(cell.row for cell in answer.cells)


def test_headers_and_question_are_never_selected():
    answer = decode({(0, 1): 1.0, (0, 0): 1.0, (2, 2): 0.6})
    assert [(cell.row, cell.column) for cell in answer.cells] == [(1, 1)]


@pytest.mark.parametrize(
    ("aggregation", "selected", "items", "value", "name"),
    [
        (1, [(1, 2), (2, 2)], ("1500",), 1500.0, "SUM"),
        (2, [(1, 2), (2, 2)], ("750",), 750.0, "AVERAGE"),
        (3, [(1, 1), (2, 1), (3, 1)], ("3",), 3.0, "COUNT"),
        (1, [(1, 2), (3, 2)], ("1200",), 1200.0, "SUM"),
        (2, [(1, 2), (3, 2)], ("1200",), 1200.0, "AVERAGE"),
        (1, [(1, 1), (2, 1)], ("Ulm", "Bonn"), None, "NONE"),
        (2, [(3, 2), (3, 3)], ("unknown", ""), None, "NONE"),
    ],
)
def test_what_is_computed(aggregation, selected, items, value, name):
    answer = decode(dict.fromkeys(selected, 1.0), aggregation)
    assert (answer.items, answer.value, answer.aggregation) == (items, value, name)


def test_a_cell_is_as_probable_as_its_tokens_on_average():
    answer = decode_one(TABLE, [1, 1, 1, 2], [1, 1, 1, 1], [0.9, 0.3, 0.6, 0.58])
    assert [(cell.row, cell.column) for cell in answer.cells] == [(0, 0), (0, 1)]
    assert answer.cells[0].score == pytest.approx(0.6)


def test_score_is_cells_times_aggregation():
    answer = decode_one(TABLE, [1], [1], [0.8], [np.log(3.0), 0.0, -np.inf, -np.inf])
    assert answer.score == pytest.approx(0.8 * 0.75)


def test_no_body_token_gives_an_empty_answer():
    answer = decode_one(TABLE, [0, 1], [0, 0], [1.0, 1.0], [0.0] * 4, num_alternatives=3)
    assert (answer.items, answer.text, answer.cells, answer.score) == ((), "", (), 0.0)
    assert not answer.answered
    assert answer.alternatives == ()


@pytest.mark.parametrize(
    ("column_ids", "row_ids", "message"),
    [
        ([1], [4], r"expected tokens of at most 3 rows, got 4 \(table 'cities'\)"),
        ([9], [1], r"expected tokens of at most 3 columns, got 9 \(table 'cities'\)"),
    ],
)
def test_tokens_of_another_table_are_refused(column_ids, row_ids, message):
    table = Table(TABLE.header, TABLE.rows, "cities")
    with pytest.raises(ValueError, match=message):
        decode_one(table, column_ids, row_ids, [0.5])


def test_sums_are_in_double_precision():
    table = Table.from_rows([["n"], ["123,456,789"], ["0.1"], ["third"]])
    answer = decode_one(table, [1, 1, 1], [1, 2, 3], [1.0, 1.0, 1.0], [0, 9, 0, 0])
    assert answer.items == ("123456792.1",)


@given(st.lists(st.floats(0, 1), min_size=9, max_size=9), st.integers(0, 3))
def test_an_answer_always_has_a_cell_and_a_score_between_0_and_1(values, aggregation):
    body = [place for place in CELLS if place[0]]
    answer = decode(dict(zip(body, values, strict=True)), aggregation)
    assert answer.cells
    assert answer.items
    assert 0.0 <= answer.score <= 1.0
    coordinates = [(cell.row, cell.column) for cell in answer.cells]
    assert coordinates == sorted(set(coordinates))
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
