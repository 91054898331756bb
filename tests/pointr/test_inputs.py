"""What each stage of PointR sees of a table with passages."""

import dataclasses

import pytest
from hypothesis import given

from mate_tf.pointr.answering import (
    PointingInputs,
    cell_table,
    cell_text,
    restrict,
    restrict_pair,
)
from mate_tf.tables.table import Question
from tests.datasets.linked_tables import BERGEN, CITIES, NORWAY, OSLO, linked_tables


def test_a_table_or_its_passages_are_taken_away():
    question = Question("?", answer_coordinates=((0, 1),))
    assert restrict_pair(CITIES, question, "both") == (CITIES, question)
    alone = restrict(dataclasses.replace(CITIES, dead_links=("x",)), "table")
    assert alone.table == CITIES.table and alone.dead_links == ("x",)
    assert not list(alone.distinct_passages())
    # Passages are a row each, and cells of another table are forgotten.
    alone, asked = restrict_pair(CITIES, question, "passages")
    assert alone == restrict(CITIES, "passages")
    assert alone.table.rows == (("",),) * 3
    assert [row[0] for row in alone.passages] == [(OSLO,), (NORWAY,), (BERGEN,)]
    assert alone.table.table_id == CITIES.table.table_id
    assert asked == dataclasses.replace(question, answer_coordinates=())


@given(linked_tables())
def test_what_is_left_of_any_table_is_a_table(linked):
    assert [*restrict(linked, "passages").distinct_passages()] == [*linked.distinct_passages()]
    without = restrict(restrict(linked, "table"), "passages")
    assert without.table.rows == (("",),)


def test_a_cell_is_read_with_all_of_its_passages_and_inputs_are_within_their_range():
    assert cell_text(CITIES, 0, 0) == f"Oslo : {OSLO.text}"
    assert cell_text(CITIES, 1, 2) == "291940"
    table = cell_table(CITIES, 0, 1)
    assert table.header == ("",)
    assert table.rows == ((f"Norway : {NORWAY.text}",),)
    message = "expected evidence 'both', 'table' or 'passages', got 'text'"
    with pytest.raises(ValueError, match=message):
        PointingInputs(evidence="text")
    with pytest.raises(ValueError, match="expected num_sentences of at least 0, got -1"):
        PointingInputs(num_sentences=-1)


def test_the_number_of_sentences_is_the_configs():
    question = Question("a city with rain in Bergen ?")
    for number in (0, 1, 2):
        table = PointingInputs(num_sentences=number).expand(CITIES, question)
        said = " ".join(" ".join(row) for row in table.expansions)
        assert said.count(" .") == number  # at the end of each sentence
