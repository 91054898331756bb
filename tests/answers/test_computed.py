"""What is computed from cells that are compared, and of how many texts or days."""

import numpy as np
import pytest

from mate_tf.answers.answer import SelectedCell, TokenFacts, answer_of_cells
from mate_tf.tables.table import Table

TABLE = Table.from_rows(
    [
        ["Name", "Born", "Points", "Best time", "Team", "Year"],
        ["Ann", "2001-03-05", "12", "1:30:00", "red", "2001"],
        ["Bob", "2001-02-28", "7", "0:45:30", "Blue", "1999"],
        ["Cid", "2001-03-05", "12", "", " red", "2000"],
        ["Dee", "", "", "2:00:00", "", "2000"],
    ]
)


def facts(mentions: dict[str, float]) -> TokenFacts:
    """As the features have them: ranks by value, and the names' places in a question."""
    ranks = np.zeros((TABLE.num_rows, TABLE.num_columns))
    ranks[:, 1], ranks[:, 2] = [2, 1, 2, 0], [2, 1, 2, 0]
    ranks[:, 3], ranks[:, 5] = [2, 1, 0, 3], [3, 1, 2, 2]
    texts = [cell for row in TABLE.rows for cell in row]
    mentioned = np.array([float(text in mentions) for text in texts])
    places = np.array([mentions.get(text, 0.0) for text in texts])
    return TokenFacts(ranks.ravel(), mentioned, places, np.zeros(TABLE.num_columns))


def answer(aggregation, column, rows, mentions=()):
    cells = tuple(SelectedCell(row, column, TABLE.rows[row][column], 0.9) for row in rows)
    return answer_of_cells(TABLE, cells, aggregation, 0.5, facts(dict(mentions)))


ASKED = {"Ann": 1.0, "Bob": 4.0}
TURNED = {"Bob": 1.0, "Ann": 4.0}


@pytest.mark.parametrize(
    ("aggregation", "column", "rows", "mentions", "items"),
    [
        ("DISTINCT", 4, range(4), {}, "2"),
        ("MAX", 1, range(4), {}, "2001-03-05"),
        ("MIN", 3, range(4), {}, "0:45:30"),
        ("DIFFERENCE", 2, (0, 1), {}, "5"),
        ("DIFFERENCE", 3, (0, 1), {}, "00:44:30"),
        ("DIFFERENCE", 1, (0, 1), {}, "5"),  # days
        ("DIFFERENCE", 5, (0, 1), {}, "2"),
        ("GREATER", 2, (0, 1), ASKED, "Ann"),
        ("LESS", 2, (0, 1), ASKED, "Bob"),
        ("GREATER", 1, (0, 1), {"red": 2.0, "Blue": 3.0}, "red"),
        ("IS_GREATER", 2, (0, 1), ASKED, "yes"),
        ("IS_GREATER", 2, (0, 1), TURNED, "no"),
        ("IS_LESS", 2, (0, 1), TURNED, "yes"),
        ("IS_EQUAL", 2, (0, 2), {}, "yes"),
        ("IS_EQUAL", 2, (0, 1), {}, "no"),
        ("IS_EQUAL", 4, (0, 2), {}, "yes"),  # texts, which have no order
    ],
)
def test_what_is_computed(aggregation, column, rows, mentions, items):
    found = answer(aggregation, column, rows, mentions)
    assert (found.aggregation, found.items, found.score) == (aggregation, (items,), 0.5)
    assert [cell.row for cell in found.cells] == list(rows)


@pytest.mark.parametrize(
    ("aggregation", "column", "rows"),
    [
        ("DIFFERENCE", 2, (0, 3)),  # an empty cell
        ("DIFFERENCE", 2, (0,)),
        ("DIFFERENCE", 0, (0, 1)),
        ("GREATER", 4, (0, 1)),
        ("IS_LESS", 2, (0, 1, 2)),
        ("MAX", 0, (0, 1)),
    ],
)
def test_cells_without_what_is_needed_have_no_answer(aggregation, column, rows):
    assert answer(aggregation, column, rows) is None


def test_unlike_units_have_no_difference():
    table = Table.from_rows([["a", "b"], ["x", "5 km"], ["y", "3 kg"]])
    cells = tuple(SelectedCell(row, 1, table.rows[row][1], 0.9) for row in (0, 1))
    found = answer_of_cells(table, cells, "DIFFERENCE", 0.5)
    assert found.aggregation == "NONE" and "no difference was computed" in found.note
