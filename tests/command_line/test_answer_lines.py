"""An answer and its table as text for a person."""

import dataclasses

import pytest

from mate_tf.answers.alternatives import answer_of_cells
from mate_tf.answers.answer import Answer, SelectedCell, apply_min_score
from mate_tf.command_line.ask import answer_lines
from mate_tf.tables.drawing import draw_table
from mate_tf.tables.table import Table

TABLE = Table.from_rows([["river", "length"], ["Nile", "6,650 km"], ["Rhine", "1,230 km"]])
NILE, RHINE = (SelectedCell(row, 1, TABLE.rows[row][1], 0.9 - 0.6 * row) for row in range(2))


def answer(*others: Answer | None) -> Answer:
    best, *alternatives = [
        found
        for found in (answer_of_cells(TABLE, (NILE,), "NONE", 0.9), *others)
        if found is not None
    ]
    return dataclasses.replace(best, alternatives=tuple(alternatives))


def test_an_answer_with_its_cells_its_number_and_alternatives():
    others = (
        answer_of_cells(TABLE, (RHINE,), "NONE", 0.3),
        answer_of_cells(TABLE, (NILE, RHINE), "SUM", 0.1),
    )
    lines = list(answer_lines(TABLE, answer(*others)))
    assert lines[:7] == [
        "answer: 6,650 km",
        "score: 0.90",
        "aggregation: NONE",
        "number: 6650",
        "cell: row 0, column 1 (length): 6,650 km  (0.90)",
        "alternative: 1,230 km  (0.30), row 1, column 1 (length)",
        "alternative: 7880  (0.10), SUM of 2 cells = 7880",
    ]
    assert len(lines) == 8 and "[6,650 km]" in lines[7]


def test_no_answer_with_what_it_would_have_been():
    other = answer_of_cells(TABLE, (RHINE,), "NONE", 0.3)
    lines = list(answer_lines(TABLE, apply_min_score(answer(other), 0.95)))
    assert lines[:3] == ["answer: none", "would have been: 6,650 km", "score: 0.90"]
    assert lines[6].startswith("alternative: 1,230 km")
    assert "[6,650 km]" in lines[-1]
    lines = list(answer_lines(TABLE, Answer(answered=False)))  # where nothing was seen
    assert lines[:2] == ["answer: none", "score: 0.00"]


@pytest.mark.parametrize("rows_dropped", [0, 3])
def test_a_class_and_rows_that_were_not_read(rows_dropped):
    entailed, refuted = (
        Answer((name,), score=score, class_index=index)
        for name, score, index in (("entailed", 0.7, 1), ("refuted", 0.3, 0))
    )
    answer = dataclasses.replace(entailed, alternatives=(refuted,), rows_dropped=rows_dropped)
    lines = list(answer_lines(TABLE, answer))
    assert lines[:3] == ["answer: entailed", "score: 0.70", "class: 1"]
    assert ("not read: the last 3 of 2 rows" in lines) == (rows_dropped > 0)
    assert "alternative: refuted  (0.30)" in lines


CITIES = Table.from_rows([["city", "people"], *[[f"city {row}", row] for row in range(30)]])


def test_marked_cells_are_drawn_in_brackets_and_rows_left_out_with_a_count_but_marked_ones():
    drawing = draw_table(CITIES, {(1, 0)}).splitlines()
    assert len(drawing) == 32
    assert "[city 1]" in drawing[3]
    assert sum("[" in line for line in drawing) == 1
    drawing = draw_table(CITIES, {(29, 1)}, max_rows=4)
    assert "[29]" in drawing
    assert drawing.splitlines()[-1] == "... 26 more rows"


@pytest.mark.parametrize("text", ["a\nb", "x" * 100])
def test_a_cell_takes_one_line_of_limited_width(text):
    drawing = draw_table(Table.from_rows([["head"], [text]]), ())
    assert len(drawing.splitlines()) == 3
    assert max(map(len, drawing.splitlines())) < 40
