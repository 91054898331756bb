"""The rows that words name, and questions that leave them open."""

import re

import numpy as np

from mate_tf.answers.answer import TableFacts
from mate_tf.answers.views import row_in_words, rows_beyond, rows_of_all
from mate_tf.tables.table import Table
from tests.small import cases, stored_cases

HEADER = ("Name", "Year", "Points", "Age", "Rank")
ROWS = (
    ("Ann Lee", "2001", "12", "30", "1"),
    ("Bob", "2003", "7", "41", "2"),
    ("Cid", "2004", "12", "19", "3"),
    ("Dee", "2007", "3", "25", "4"),
)


def facts(question, header=HEADER, rows=ROWS, values=()):
    """As the token features have them, with words for tokens, and values that are compared."""
    words = re.sub("[?,]", "", question.lower()).split()

    def share(text):
        parts = text.lower().split()
        return sum(part in words for part in parts) / len(parts)

    def of_cells(function):
        return np.array([[function(cell) for cell in row] for row in rows])

    mentioned = of_cells(share)
    places = of_cells(lambda cell: words.index(cell.lower()) if cell.lower() in words else 0)
    numbers = of_cells(lambda cell: float(f"0{cell.strip('$')}") if cell[-1].isdigit() else 0.0)
    ranks = np.stack([np.searchsorted(np.unique(v), v) + 1.0 for v in numbers.T], axis=1)
    relations = np.zeros(numbers.shape, np.int64)
    for value in values:
        relations |= 1 * (numbers == value) + 2 * (numbers > value) + 4 * (numbers < value)
    is_number = numbers > 0
    table, num_tokens = Table(header, tuple(map(tuple, rows))), of_cells(lambda it: len(it.split()))
    names = np.array([share(name) for name in header])
    ranks, relations = ranks * is_number, relations * is_number
    return TableFacts(table, mentioned, num_tokens, ranks, places, names, relations)


def row_of(question, rows=ROWS, column=0):
    named = row_in_words(question, facts(question, rows=rows), column)
    return None if named is None else named.row


def indices(found):
    return None if found is None else np.flatnonzero(found).tolist()


@stored_cases("question, row")
def test_the_row_that_is_named(question, row):
    assert row_of(question) == row


def test_the_extreme_is_among_the_rows_of_a_mentioned_cell_in_another_column():
    rows = (
        ("red", "2001", "5", "30", "1"),
        ("red", "2003", "9", "41", "2"),
        ("blue", "2004", "3", "19", "3"),
    )
    for question, row in (
        ("fewest points of red?", 0),
        ("fewest points of blue?", 2),
        ("second most points of red", 0),
        ("third most points of red", None),
    ):
        assert row_of(question, rows, 1) == row
    assert row_of("which points has the lowest points?", column=2) is None


def test_a_longer_mention_counts_more():
    more = (("Ann Lee May", "2004", "2", "19", "3"), ("Eve", "2008", "3", "3", "4"))
    assert row_of("who was there after ann lee may?", ROWS[:2] + more) == 3


@stored_cases("question, values, rows")
def test_the_rows_beyond_a_value_or_between_two(question, values, rows):
    assert indices(rows_beyond(question, facts(question, values=values))) == rows


@cases("relations, rows", ([2, 4, 2, 1], [0, 2]), ([2, 4, 2, 6], None), ([2, 4, 0, 0], None))
def test_several_values_and_columns_with_few_of_them_leave_it_open(relations, rows):
    question = "how many had over 10 points?"
    of_one_column = facts(question, ("Points",), [["x"]] * 4)
    relations = np.array([relations]).T
    assert indices(rows_beyond(question, of_one_column._replace(relations=relations))) == rows


MEMBERS = (
    ("Ann", "Red", "paid", "30", "A"),
    ("Bob", "Red", "open", "41", "B"),
    ("Cid", "Blue", "paid", "19", "A"),
    ("Dee", "Red", "paid", "45", "B"),
    ("Eve", "Blue", "open", "30", "Blue"),  # whose two mentions are one condition
)


@stored_cases("question, fewest, rows")
def test_the_rows_that_meet_all_conditions(question, fewest, rows):
    header = ("Name", "Team", "Paid", "Age", "Class")
    of_members = facts(question, header, MEMBERS, [40] if "over" in question else [])
    assert indices(rows_of_all(question, of_members, fewest)) == rows


ROOMS = (
    ("Oak", "2", "$120", "yes", "1990"),
    ("Elm", "3", "$80", "no", "2005"),
    ("Ash", "1", "$95", "yes", "1971"),
    ("Fir", "4", "$150", "no", "2010"),
    ("Yew", "2", "$70", "yes", "1999"),
)


@stored_cases("question, value, row, possible")
def test_the_extreme_of_a_kind_among_the_rows_that_meet_conditions(question, value, row, possible):
    header = ("Room", "Beds", "Rate", "Balcony", "Built")
    of_rooms = facts(question, header, ROOMS, [] if value is None else [value])
    named = row_in_words(question, of_rooms, 0)
    assert (named and named.row) == row
    if named is not None:
        assert indices(named.possible) == possible
