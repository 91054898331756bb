"""What each stage of PointR sees, and how a cell and a span that is read become an answer."""

import dataclasses

import pytest
from hypothesis import given

from mate_tf.answers.answer import Answer, SelectedCell, no_answer
from mate_tf.pointr.answering import (
    Pointed,
    Pointer,
    PointingInputs,
    PointR,
    cell_table,
    cell_text,
    load_pointr,
    reading_cells,
    restrict,
    restrict_pair,
)
from mate_tf.tables.linked_table import LinkedTable
from mate_tf.tables.table import Question, Table
from tests.datasets.linked_tables import BERGEN, CITIES, NORWAY, OSLO, linked_tables
from tests.small import cases

QUESTION = Question("where does rain fall ?", "q1", ("rain",))


class Model:
    """In place of a predictor: gives its answers in turn, and knows what it was asked."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.tables: list[Table] = []

    def answer_all(self, pairs):
        for table, question in pairs:
            self.tables.append(table)
            yield table, question, self.answers[len(self.tables) - 1]


def cell(row, column, score, *others) -> Answer:
    text = CITIES.table.rows[row][column]
    selected = SelectedCell(row, column, text, score)
    return Answer((text,), (selected,), score=score, alternatives=others)


def span(text, score) -> Answer:
    return Answer((text,), (SelectedCell(0, 0, "x", score),), score=score)


def test_the_text_is_the_readers_and_the_cell_the_pointers():
    other = cell(0, 0, 0.3)
    pointer, reader = Model(cell(1, 0, 0.5, other)), Model(span("rain", 0.5))
    pointr = PointR(Pointer(pointer), reader)
    answer = pointr.answer(CITIES, QUESTION)
    assert (answer.text, answer.score) == ("rain", 0.25)
    assert answer.cells == (SelectedCell(1, 0, "Bergen", 0.5),)
    assert answer.alternatives == (other,)
    (asked,) = pointer.tables
    assert asked.rows == CITIES.table.rows
    assert "Rain falls in Bergen on most days ." in asked.expansions[1][0]
    (read,) = reader.tables
    assert read.rows == ((f"Bergen : {BERGEN.text}",),)


def test_each_question_gets_its_own_answer_or_error():
    too_long = ValueError("expected at most 4 tokens")
    pointer = Model(cell(0, 0, 1.0), too_long, no_answer(), cell(1, 0, 1.0), cell(0, 1, 1.0))
    reader = Model(span("a", 1.0), too_long, span("c", 1.0))
    questions = [Question("?", f"q{number}") for number in range(5)]
    answered = list(PointR(Pointer(pointer), reader).answer_all((CITIES, q) for q in questions))
    assert [question for _, question, _ in answered] == questions
    answers = [answer for _, _, answer in answered]
    assert [isinstance(answer, ValueError) for answer in answers] == [0, 1, 0, 0, 0]
    # What cannot be read has no answer, and still the cells.
    assert not answers[3].answered and answers[3].alternatives[0].text == "Bergen"
    assert answers[0].text == "a"
    assert not answers[2].answered
    assert answers[4].text == "c" and answers[4].cells[0].column == 1
    with pytest.raises(ValueError, match="at most 4 tokens"):
        PointR(Pointer(Model(too_long)), reader).answer(CITIES, "?")


def test_the_pointer_of_passages_alone_points_into_them():
    model = Model(Answer(("",), (SelectedCell(2, 0, "", 1.0),), score=1.0))
    pointer = Pointer(model, PointingInputs(evidence="passages"))
    (pointed,) = pointer.point_all([(CITIES, QUESTION)])
    assert model.tables[0].num_columns == 1
    ((table, _),) = reading_cells([pointed])
    assert table.rows == ((f" : {BERGEN.text}",),)


IN_NORWAY = Question("?", "q", ("norway",))  # in four cells


@cases(
    "answer, question, read",
    # The best of those that hold the answer.
    (cell(0, 2, 0.5, cell(1, 1, 0.3), cell(0, 0, 0.2)), IN_NORWAY, (1, 1)),
    # The first in the table, where none of the ranked ones does.
    (cell(0, 2, 0.5, cell(1, 2, 0.3)), IN_NORWAY, (0, 0)),
    (ValueError("too long"), IN_NORWAY, (0, 0)),
    # The best one, where no cell does.
    (cell(0, 2, 0.5), Question("?", "q", ("Lima",)), (0, 2)),
    # Of several answers those that the cell holds.
    (cell(0, 1, 0.5), Question("?", "q", ("Peru", "Norway", "Lima")), (0, 1)),
)
def test_training_reads_the_best_cell_that_holds_the_answer(answer, question, read):
    ((table, asked),) = reading_cells([Pointed(CITIES, question, answer)])
    held = ("Norway",) if len(question.answers) > 1 else question.answers
    assert asked == dataclasses.replace(question, answers=held)
    row, column = read
    assert table.rows[0][0].startswith(CITIES.table.rows[row][column])


def test_a_table_without_passages_is_answered():
    """And a cell in which nothing is read leaves the cells; a question may be a text."""
    plain = LinkedTable(CITIES.table, (((),) * 3,) * 2)
    pointer = Model(cell(0, 0, 1.0), cell(0, 0, 1.0, cell(1, 0, 0.1)))
    reader = Model(span("Oslo", 1.0), no_answer())
    pointr = PointR(Pointer(pointer), reader)
    assert pointr.answer(plain, "which city has parks ?").text == "Oslo"
    assert reader.tables[0].rows == (("Oslo",),)
    answer = pointr.answer(plain, "?")
    assert not answer.answered and answer.text == ""
    assert [other.text for other in answer.alternatives] == ["Oslo", "Bergen"]


def test_a_folder_that_is_no_pointr_is_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"expected pointr\.json in .*found none"):
        load_pointr(tmp_path)


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
    assert PointingInputs(num_sentences=0).expand(CITIES, QUESTION) == CITIES.table
