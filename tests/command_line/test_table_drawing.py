"""Tables on a terminal."""

import pytest

from mate_tf.command_line.answer_lines import draw_table
from mate_tf.tables.table import Table

TABLE = Table.from_rows([["city", "people"], *[[f"city {row}", row] for row in range(30)]])


def test_marked_cells_are_drawn_in_brackets():
    drawing = draw_table(TABLE, {(1, 0)}).splitlines()
    assert len(drawing) == 32
    assert "[city 1]" in drawing[3]
    assert sum("[" in line for line in drawing) == 1


def test_rows_are_left_out_with_a_count_but_marked_ones_never():
    drawing = draw_table(TABLE, {(29, 1)}, max_rows=4)
    assert "[29]" in drawing
    assert drawing.splitlines()[-1] == "... 26 more rows"


@pytest.mark.parametrize("text", ["a\nb", "x" * 100])
def test_a_cell_takes_one_line_of_limited_width(text):
    drawing = draw_table(Table.from_rows([["head"], [text]]), ())
    assert len(drawing.splitlines()) == 3
    assert max(map(len, drawing.splitlines())) < 40
