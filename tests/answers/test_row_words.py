"""The rows that words name, and questions that leave them open."""

import numpy as np

from mate_tf.answers.row_words import RowFacts, row_in_words, rows_beyond, rows_of_all
from tests.small import cases

HEADER = ("Name", "Year", "Points", "Age", "Rank")
ROWS = (
    ("Ann Lee", 2001, 12, 30, 1),
    ("Bob", 2003, 7, 41, 2),
    ("Cid", 2004, 12, 19, 3),
    ("Dee", 2007, 3, 25, 4),
)


def facts(question, rows=ROWS):
    """As the token features have them, with words for tokens."""
    words = question.lower().replace("?", "").replace(",", "").split()

    def share(text):
        parts = str(text).lower().split()
        return sum(part in words for part in parts) / len(parts)

    mentioned = np.array([[share(cell) for cell in row] for row in rows])
    num_tokens = np.array([[len(str(cell).split()) for cell in row] for row in rows])
    values = np.array([[0, *row[1:]] for row in rows])
    ranks = np.stack([np.searchsorted(np.unique(v), v) + 1.0 for v in values.T], axis=1)
    ranks[:, 0] = 0.0
    names = np.array([share(name) for name in HEADER])
    nothing, cells = np.zeros(mentioned.shape), [[str(cell) for cell in row] for row in rows]
    is_time = nothing[0] > 0
    return RowFacts(mentioned, num_tokens, ranks, nothing, names, is_time, nothing, HEADER, cells)


def row_of(question, of_rows, column=0):
    named = row_in_words(question, of_rows, column)
    return None if named is None else named.row


@cases(
    "question, row",
    ("who came after Bob?", 2),
    ("who is next after ann lee", 1),
    ("which name is listed before Dee?", 2),
    ("who was there in the year previous to 2004?", 1),
    ("who is Bob?", None),
    ("what is the last name listed?", None),
    ("who had the fewest points?", 3),
    ("who is the oldest?", 1),
    ("who is the youngest?", 2),
    ("which name has the lowest points", 3),
    # The nth of them, which ends where several have it or there are no more.
    ("who has the second fewest points?", 1),
    ("who is the second oldest", 0),
    ("the 3rd youngest", 0),
    ("who is the fourth oldest?", 2),
    ("who has the second most points?", None),
    ("who has the third most points?", 1),
    # Nobody is above the first or below the last; two have the most points; a rank says where,
    # and the least is the best of it.
    ("who came before ann lee?", None),
    ("who came after Dee?", None),
    ("who had the most points?", None),
    ("who has the highest rank?", None),
    # More than one step, none, or a choice.
    ("how many came after Bob?", None),
    ("who was after Bob and before Dee?", None),
    ("who came next after the one with the most points?", None),
    ("who was first, Ann Lee or Bob?", None),
    ("who was the first to win 3 times?", None),
    ("who has the average of Bob?", None),
    ("who was not first?", None),
    ("what is the average of the most points?", None),
    ("who had at least 7 points?", None),
)
def test_the_row_that_is_named(question, row):
    assert row_of(question, facts(question), 0) == row


def test_the_extreme_is_among_the_rows_of_a_mentioned_cell():
    rows = (("red", 2001, 5, 30, 1), ("red", 2003, 9, 41, 2), ("blue", 2004, 3, 19, 3))
    for question, row in (("fewest points of red?", 0), ("fewest points of blue?", 2)):
        assert row_of(question, facts(question, rows), 1) == row
    assert row_of("second most points of red", facts("points of red", rows), 1) == 0
    assert row_of("third most points of red", facts("points of red", rows), 1) is None


def test_the_column_of_the_answer_is_not_compared():
    question = "which points has the lowest points?"
    assert row_of(question, facts(question), 2) is None


def test_a_longer_mention_counts_more():
    rows = (("Ann Lee", 2001, 1, 30, 1), ("Bob", 2003, 7, 41, 2), ("Ann Lee May", 2004, 2, 19, 3))
    rows += (("Cid", 2008, 3, 3, 4),)
    question = "who was there after ann lee may?"
    assert row_of(question, facts(question, rows), 0) == 3


def beyond(question, of_rows):
    found = rows_beyond(question, of_rows)
    return None if found is None else np.flatnonzero(found).tolist()


def of_one_column(relations):
    nothing = np.zeros(relations.shape)
    cells = [["x"]] * len(relations)
    names, is_time = np.array([1.0]), np.zeros(1, bool)
    return RowFacts(nothing, nothing, nothing, nothing, names, is_time, relations, ["P"], cells)


@cases(
    "question, value, rows",
    ("how many had over 10 points?", 10, [0, 2]),
    ("who had more than 10 points", 10, [0, 2]),
    ("points of less than twelve", 12, [1, 3]),
    ("who got 12 points or fewer?", 12, None),  # all of them are not a part
    ("those with at least 12 points", 12, [0, 2]),
    ("who got no more than 7 points?", 7, [1, 3]),
    # A column that is not named is the only one where some are.
    ("how many were there before 2004?", 2004, [0, 1]),
    ("who was there since 2004?", 2004, [2, 3]),
    ("how many are over 18?", 18, None),
    # No word for it, no value near it, or more than one of them.
    ("how many points are 10?", 10, None),
    ("points over the table of 10", 10, None),
    ("who has between 3 and over 10 points?", 10, None),
    ("points over 10 and under 12", 10, None),
    ("the top 10 points", 10, None),
)
def test_the_rows_beyond_a_value(question, value, rows):
    cells = np.array([[0, *row[1:]] for row in ROWS])
    relations = 1 * (cells == value) + 2 * (cells > value) + 4 * (cells < value)
    relations[:, 0] = 0
    assert beyond(question, facts(question)._replace(relations=relations)) == rows


@cases(
    "question, rows",
    ("who has between 3 and 10 points?", [1, 3]),
    ("points from 3 to 10", [1, 3]),
    ("points between three and ten", [1, 3]),
    ("points between those of Ann and Bob", None),
    ("what is the difference between 3 and 10 points?", None),
)
def test_the_rows_between_two_values(question, rows):
    points = np.array([[row[2] for row in ROWS]]).T  # [R, 1]
    relations = np.zeros(points.shape, np.int64)
    for value in (3, 10):
        relations |= 1 * (points == value) + 2 * (points > value) + 4 * (points < value)
    assert beyond(question, of_one_column(relations)) == rows


def test_several_values_and_columns_with_few_of_them_leave_it_open():
    for column, rows in (([2, 4, 2, 1], [0, 2]), ([2, 4, 2, 6], None), ([2, 4, 0, 0], None)):
        relations = np.array([column]).T
        assert beyond("how many had over 10 points?", of_one_column(relations)) == rows


MEMBERS = (("Name", "Team", "Paid", "Age", "Class"),) + (
    ("Ann", "Red", "paid", "30", "A"),
    ("Bob", "Red", "open", "41", "B"),
    ("Cid", "Blue", "paid", "19", "A"),
    ("Dee", "Red", "paid", "45", "B"),
    ("Eve", "Blue", "open", "30", "Blue"),  # whose two mentions are one condition
)


@cases(
    "question, fewest, rows",
    # Cells and a value; each cell alone is none.
    ("how many of team blue have paid?", 2, [2]),
    ("how many red ones have paid?", 2, [0, 3]),
    ("how many blue ones are 30?", 2, [4]),
    ("how many have paid?", 2, None),
    ("how many paid and are over 40", 2, [3]),
    ("which red ones are over 40", 0, [1, 3]),
    ("which red ones paid and are over 40", 0, [3]),
    # Of a count one is enough, of several rows and without digits.
    ("how many have paid?", 1, [0, 2, 3]),
    ("how many red ones are there?", 1, [0, 1, 3]),
    ("how many are called ann?", 1, None),
    ("how many are 30?", 1, None),
    ("how many are not red?", 1, None),
    # Without a value only where cells are counted or added up.
    ("which red ones have paid?", 0, None),
    # Where no row meets all, or words may exclude some, the value alone.
    ("how many blue ones are over 40", 2, [1, 3]),
    ("how many red or paid ones are over 40", 2, [1, 3]),
    # One letter is no mention, and neither is the value itself.
    ("how many in a class have paid?", 2, None),
    ("how many of age 30 are over 40 and paid?", 2, [3]),
)
def test_the_rows_that_meet_all_conditions(question, fewest, rows):
    words = question.replace("?", "").split()
    header, *cells = (tuple(text.lower() for text in row) for row in MEMBERS)
    mentioned = np.array([[float(cell in words) for cell in row] for row in cells])
    places = [[words.index(cell) if cell in words else 0 for cell in row] for row in cells]
    ages = np.array([int(row[3]) for row in cells])
    relations = np.zeros(mentioned.shape)
    relations[:, 3] = np.where(ages > 40, 2, 4) if "over" in words else 0
    shares = np.array([float(name in words) for name in header])
    of_tokens = mentioned, mentioned, mentioned, np.array(places), shares
    found = rows_of_all(
        question, RowFacts(*of_tokens, shares > 1, relations, header, cells), fewest
    )
    assert (None if found is None else np.flatnonzero(found).tolist()) == rows


ROOMS = (
    ("Room", "Beds", "Rate", "Balcony", "Built"),
    (
        ("Oak", "2", "$120", "yes", "1990"),
        ("Elm", "3", "$80", "no", "2005"),
        ("Ash", "1", "$95", "yes", "1971"),
        ("Fir", "4", "$150", "no", "2010"),
        ("Yew", "2", "$70", "yes", "1999"),
    ),
)


@cases(
    "question, value, row, possible",
    # Of all rows, by the kind of the column; the words give way to a model that is sure.
    ("the cheapest room", None, 4, [0, 1, 2, 3, 4]),
    ("which room costs the most?", None, 3, [0, 1, 2, 3, 4]),
    ("which was built most recently", None, 3, [0, 1, 2, 3, 4]),
    ("the oldest room", None, 2, [0, 1, 2, 3, 4]),
    # Not to one that is sure of a row that is not the second, or not below the price.
    ("the second cheapest room", None, 1, []),
    ("the room with most beds for under $100", 100, 1, [1, 2, 4]),
    ("which room was built first after 1980?", 1980, None, None),
)
def test_the_extreme_of_a_kind_among_the_rows_that_meet_conditions(question, value, row, possible):
    header, cells = ROOMS
    words = question.replace("?", "").lower().split()
    numbers = np.array(
        [
            [float(f"0{cell}".replace("$", "")) if cell[-1].isdigit() else 0 for cell in row]
            for row in cells
        ]
    )
    ranks = np.where(numbers > 0, np.argsort(np.argsort(numbers, axis=0), axis=0) + 1.0, 0.0)
    relations = np.zeros(numbers.shape)
    if value is not None:
        relations = 1 * (numbers == value) + 2 * (numbers > value) + 4 * (numbers < value)
        relations = np.where(numbers > 0, relations, 0)
    names = np.array([float(name.lower() in words) for name in header])
    said = np.zeros(numbers.shape)
    of_rooms = RowFacts(said, said + 1, ranks, said, names, said[0] > 0, relations, header, cells)
    named = row_in_words(question, of_rooms, 0)
    assert (named and named.row) == row
    if named is not None:
        assert np.flatnonzero(named.possible).tolist() == possible
