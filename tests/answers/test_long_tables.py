"""Rows of long tables, chosen by a question, and answers about all of them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.benchmarks.chosen_rows import long_table
from mate_tf.answers.answer import Answer, SelectedCell
from mate_tf.answers.views import put_together
from mate_tf.features.row_choice import RowChoice, choose_rows
from mate_tf.serving.loading import from_pretrained
from mate_tf.tables.table import Table
from tests.small import cases

CELLS = st.lists(
    st.sampled_from(["a", "b c", "7", "12", "2004", "", "long " * 9]), min_size=2, max_size=2
)


def count_words(texts):
    return np.array([len(text.split()) for text in texts])


def chosen(rows, question, most_tokens=40, most_rows=99, first=()):
    table = Table.from_rows(rows, header=["name", "number"])
    return choose_rows(table, question, count_words, most_tokens, most_rows, first)


@given(
    st.lists(CELLS, min_size=1, max_size=60),
    st.text(max_size=20) | st.sampled_from(["which b is above 7?", "the largest number"]),
    st.integers(1, 80),
    st.integers(1, 30),
)
def test_chosen_rows_are_in_order_and_as_many_as_fit(rows, question, most_tokens, most_rows):
    choice = chosen(rows, question, most_tokens, most_rows)
    assert list(choice.rows) == sorted(set(choice.rows)) and set(choice.rows) <= set(
        range(len(rows))
    )
    assert 1 <= len(choice.rows) <= most_rows
    if len(choice.rows) > 1:
        assert count_words([cell for row in choice.rows for cell in rows[row]]).sum() <= most_tokens
    assert len(choice.kinds) == len(rows)


NAMES = [[f"n{row}", str(row * 3)] for row in range(500)]
NAMES[321] = ["Oslo", "960"]


@cases(
    "question, rows",
    ("what is the number of Oslo?", {320, 321, 322}),  # and its neighbours
    ("which name has the number 123?", {41}),
    ("which name has the highest number?", {497, 498, 499}),
    ("who has the second lowest number?", {0, 1, 2}),
    ("anything", {0, 1, 2, 497, 498, 499}),
)
def test_rows_that_a_question_needs_are_chosen(question, rows):
    assert rows <= set(chosen(NAMES, question, 80).rows)


def test_rows_of_the_answer_before_come_first():
    assert chosen(NAMES, "what is the number of Oslo?", 4, first=[77, 78]).rows == (77, 78)


def test_rows_that_meet_a_question_alike_are_of_one_kind():
    rows = [["Oslo" if row % 3 else "Rome", str(row)] for row in range(90)]
    kinds = chosen(rows, "how many of Oslo are above 45?").kinds
    expected = [(row % 3 > 0, (row > 45) - (row < 45)) for row in range(90)]
    assert len(set(kinds)) == len(set(expected)) == len(set(zip(kinds, expected, strict=True)))


TABLE = Table.from_rows([["x" if row % 4 else "y", str(row)] for row in range(100)], ["a", "b"])
KINDS = np.array([int(row % 4 > 0) for row in range(100)])
CHOICE = RowChoice(tuple(range(20)), KINDS, 20)


def reading(kept, aggregation="COUNT"):
    """A model's answer about some rows: it selects those that it keeps."""

    def answer(rows):
        cells = tuple(SelectedCell(row, 1, str(row), 0.9) for row in rows if kept(row))
        return Answer(tuple(it.text for it in cells), cells, aggregation, score=0.9)

    return answer


@cases(
    "kept, aggregation, is_late, text, num_read, confidence",
    # Most of a kind: all of it.
    (lambda row: row % 4, "COUNT", False, "75", 20, "sure"),
    (lambda row: row % 4 and row != 2, "SUM", False, "3750", 20, "sure"),
    (lambda row: row % 4 or row == 4, "COUNT", True, "75", 20, "sure"),
    # A part of a kind: the others are read, as long as there is time.
    (lambda row: row % 4 and row % 3 == 0, "COUNT", False, "25", 80, "sure"),
    (lambda row: row % 4 and row % 3 == 0, "COUNT", True, "5", 20, "not sure"),
    (lambda row: row % 4 and row % 3 == 0, "SHARE", False, "25.2727272727", 80, "sure"),
    (lambda row: row % 4 and row % 3 == 0, "SHARE", True, "1.0303030303", 20, "not sure"),
    # Extremes and single cells are what they are.
    (lambda row: row == 7, "NONE", False, "7", 20, "sure"),
    (lambda row: row in (7, 5), "MAX", False, "7", 20, "sure"),
)
def test_answers_are_about_all_rows(kept, aggregation, is_late, text, num_read, confidence):
    model = reading(kept, aggregation)
    first = model(CHOICE.rows)
    answer = put_together(TABLE, CHOICE, first, model, lambda: is_late)
    if aggregation == "MAX":  # which takes the ranks of all cells
        assert answer.items == first.items
    else:
        assert answer.text == text
    assert (answer.rows_dropped, answer.confidence) == (100 - num_read, confidence)
    alone = "; the answer lacks others" if confidence == "not sure" else ""
    assert answer.coverage == f"read {num_read} of 100 rows, chosen by the question{alone}"


@cases(
    "places, number, confidence",
    ([(row, 1) for row in range(20) if row % 4], 75, "sure"),
    ([(1, 0), (2, 1)], 2, "not sure"),  # over several columns
)
def test_cells_that_were_read_keep_their_scores(places, number, confidence):
    cells = tuple(SelectedCell(r, c, TABLE.rows[r][c], r / 100) for r, c in places)
    first = Answer((str(len(cells)),), cells, "COUNT", score=0.9)
    answer = put_together(TABLE, CHOICE, first, lambda rows: first, lambda: True)
    assert answer.cells[: len(cells)] == cells and len(answer.cells) == number
    assert (answer.text, answer.confidence) == (str(number), confidence)
    assert answer.coverage.endswith("; the answer lacks others") == (confidence == "not sure")


@pytest.mark.medium
def test_columns_are_left_out_before_rows_are_chosen():
    table = long_table("orders", 40)
    asked = f"what is the status of order {table.rows[3][0]}?"
    assert from_pretrained(max_seq_length=512).answer(table, asked).coverage
    answer = from_pretrained(max_seq_length=512, prune_columns=True).answer(table, asked)
    assert (answer.text, answer.coverage) == (table.rows[3][5], "")


@pytest.mark.medium
def test_the_default_model_answers_about_thousands_of_rows():
    table = long_table("orders", 3000)
    model = from_pretrained()
    order = table.rows[1234]
    asked = f"who is the customer of order {order[0]}?"
    answer = model.answer(table, asked)
    assert (answer.text, answer.cells[0].row) == (order[1], 1234)
    assert " of 3,000 rows, chosen by the question" in answer.coverage
    assert 0 < answer.rows_dropped < 3000
    after = model.answer(table, "what is its status?", after=answer)
    assert (after.text, after.rows, after.coverage) == (order[5], (1234,), "")
    returned = [row for row in table.rows if row[5] == "returned"]
    answer = model.answer(table, "how many orders are returned?")
    assert (answer.text, len(answer.cells)) == (str(len(returned)), len(returned))


@pytest.mark.medium
def test_the_first_rows_are_read_where_an_option_says_so():
    model = from_pretrained(max_seq_length=512, drop_rows_to_fit=True)
    answer = model.answer(long_table("orders", 200), "which order has the highest amount?")
    read = 200 - answer.rows_dropped
    assert 0 < read < 200 and answer.coverage == f"read the first {read} of 200 rows"


def test_a_negative_time_is_refused():
    with pytest.raises(ValueError, match="expected most_seconds of at least 0, got -1"):
        from_pretrained(most_seconds=-1)
