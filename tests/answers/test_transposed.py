"""Tables that are read once more with rows and columns exchanged."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mate_tf.answers.answer import Answer, SelectedCell
from mate_tf.answers.transposed import alike_columns, likelier, transposed
from mate_tf.serving.loading import from_pretrained
from mate_tf.tables.operators import OPERATORS
from mate_tf.tables.table import Table

CAFE = Table.from_rows(
    [
        ["Drink", "Mon", "Tue", "Wed", "Thu", "Barista"],
        ["espresso", "31", "28", "40", "35", "Ada"],
        ["tea", "12", "19", "11", "15", "Joe"],
        ["cocoa", "4", "0", "7", "2", "Kim"],
    ]
)
# Of the transposed table: the names of days are its first column.
WEDNESDAY = SelectedCell(2, 0, "Wed", 0.9)
TEA = tuple(SelectedCell(row, 2, CAFE.rows[1][row + 1], 0.9) for row in (1, 0, 2, 3))
UNSURE = Answer(("31",), (SelectedCell(0, 1, "31", 0.4),), score=0.4, confidence="not sure")


def other(*cells, items=("x",), aggregation="NONE", score=0.9, **others):
    return Answer(items, cells, aggregation, score=score, **others)


@given(
    st.integers(1, 5).flatmap(
        lambda width: st.lists(
            st.lists(st.text(max_size=4), min_size=width, max_size=width), min_size=2, max_size=6
        )
    )
)
def test_a_table_transposed_twice_is_itself(rows):
    table = Table.from_rows([[f"of {cell}" for cell in rows[0]], *rows[1:]])
    across = [list(column) for column in zip(table.header, *table.rows, strict=True)]
    if len(across) == 1:
        with pytest.raises(ValueError, match="at least 1 row"):
            transposed(table)
    else:
        other_table = transposed(table)
        assert [list(other_table.header), *map(list, other_table.rows)] == across
        assert transposed(other_table) == table


@given(
    st.lists(
        st.lists(st.sampled_from(["1", "22", "3 kg", "a", "b", "", "2001-02-03"]), min_size=6),
        min_size=1,
    )
)
def test_alike_columns_are_three_or_more_and_never_the_first(rows):
    table = Table(tuple("abcdef"), tuple(tuple(row[:6]) for row in rows))
    alike = alike_columns(table)
    assert not alike or (len(alike) >= 3 and min(alike) > 0 and max(alike) < 6)


def test_alike_columns_share_a_kind_and_unit_or_texts():
    assert alike_columns(CAFE) == {1, 2, 3, 4}
    rota = [
        ["Who", "Mon", "Tue", "Wed"],
        ["A", "early", "late", "off"],
        ["B", "off", "off", "late"],
    ]
    assert alike_columns(Table.from_rows(rota)) == {1, 2, 3}
    people = [["Name", "Town", "Trade", "Born"], ["A", "Rome", "baker", "1950"]]
    assert not alike_columns(Table.from_rows(people))
    units = [
        ["Name", "Size", "Weight", "Price"],
        ["A", "3 m", "2 kg", "$5"],
        ["B", "4 m", "1 kg", "$2"],
    ]
    assert not alike_columns(Table.from_rows(units))
    assert not alike_columns(dataclasses.replace(CAFE, rows=CAFE.rows * 30))  # no header is so long


@pytest.mark.parametrize(
    "across, name, coordinates",
    [
        (other(WEDNESDAY), "HEADER", ((0, 3),)),  # in the row that the question names
        (other(*TEA, aggregation="SUM"), "ROW_SUM", ((1, 1), (1, 2), (1, 3), (1, 4))),
        (other(*TEA[:2], aggregation="DIFFERENCE"), "ROW_DIFFERENCE", ((1, 1), (1, 2))),
        (other(*TEA[:2], aggregation="COUNT"), "COUNT", ((1, 1), (1, 2))),
        (other(TEA[0]), "NONE", ((1, 2),)),
        (other(*TEA[:2], aggregation="GREATER"), "GREATER", ((1, 1), (1, 2))),
        (other(items=("no",), aggregation="NO"), "NO", ()),
    ],
)
def test_an_answer_across_has_its_cells_where_the_table_has_them(across, name, coordinates):
    answer = likelier(CAFE, "on which day did espresso sell best?", UNSURE, across)
    assert (answer.aggregation, answer.coordinates) == (name, coordinates)
    assert (answer.items, answer.score) == (across.items, across.score)
    assert all(cell.text == CAFE.rows[cell.row][cell.column] for cell in answer.cells)
    assert answer.alternatives == (UNSURE,) and answer.assumed == CAFE.all_assumed
    assert answer.confidence == "probably"  # and never plain


@pytest.mark.parametrize(
    "across",
    [
        other(WEDNESDAY, score=0.6),  # ahead by no more than 0.2
        other(WEDNESDAY, answered=False),
        other(SelectedCell(4, 0, "Barista", 0.9)),  # not one of the alike columns
        other(SelectedCell(4, 1, "Ada", 0.9)),
        other(WEDNESDAY, TEA[0]),  # a name and a value
        other(WEDNESDAY, aggregation="COUNT"),
        other(*TEA, aggregation="SHARE"),
        *(other(*TEA, aggregation=name) for name in OPERATORS if OPERATORS[name].along_row),
    ],
)
def test_other_answers_across_change_nothing(across):
    assert likelier(CAFE, "on which day did espresso sell best?", UNSURE, across) is UNSURE


def test_the_default_model_names_columns_and_adds_along_rows():
    predictor = from_pretrained()
    day = predictor.answer(CAFE, "on which day was the most tea sold?")
    assert day.text == "Tue" and day.aggregation == "HEADER"
    assert all(cell.row == 1 for cell in day.cells) and day.answered
    total = predictor.answer(CAFE, "how much tea was sold over the four days together?")
    assert total.value == 57.0 and {cell.row for cell in total.cells} == {1}
    assert predictor.answer(CAFE, "who is the barista for cocoa?").text == "Kim"


def test_a_model_without_thresholds_reads_each_table_once():
    predictor = from_pretrained(calibrated=False)
    lengths = []
    model = predictor._model

    def counted(features):
        lengths.append(np.shape(features.input_ids))
        return model(features)

    predictor._model = counted
    predictor.answer(CAFE, "on which day was the most tea sold?")
    assert len(lengths) == 1
