import math
import sqlite3

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mate_tf.datasets.wikisql import (
    NO_ANSWER,
    OPERATORS,
    QUERY_AGGREGATIONS,
    Answer,
    Condition,
    Query,
    execute,
    execute_as_original,
)

TYPES = ("text", "real", "text")
ROWS = [
    ["Oslo (NO)", 3, "1,200"],
    ["Bergen", "1,000.5", "7"],
    ["oslo  ( no )", 1, "x"],
    ["Rome", 3.0, ""],
]


def ask(column, aggregation="", *conditions):
    return Query(column, aggregation, tuple(Condition(*condition) for condition in conditions))


def of(column, rows, *texts, number=None, by="NONE"):
    return Answer(tuple((row, column) for row in rows), by, number, texts)


NOTHING = of(0, [], "nan", number=math.nan)
OSLO = (0, "=", "OSLO (NO)")
NOWHERE = (0, "=", "Paris")

# What is asked, and the answer; where the authors' release has another one, that too.
CASES = {
    "texts have no case and spacing": (ask(1, "", OSLO), of(1, [0, 2], "3", "1")),
    "one text is not a number": (ask(0, "", (1, "=", 1)), of(0, [2], "oslo  ( no )")),
    "one number is the answer as its cell has it": (
        ask(2, "", (0, "=", "Oslo (NO)"), (1, ">", 1)),
        of(2, [0], "1,200", number=1200.0),
        of(2, [0], "1200.0", number=1200.0),
    ),
    "greater, with separators in the cell": (ask(0, "", (1, ">", "3")), of(0, [1], "Bergen")),
    "less, with separators": (ask(1, "", (1, "<", "1,000")), of(1, [0, 2, 3], "3", "1", "3.0")),
    "equal numbers": (ask(0, "", (1, "=", "3.00")), of(0, [0, 3], "Oslo (NO)", "Rome")),
    "a unit": (ask(0, "", (1, "=", "3 goals")), of(0, [0, 3], "Oslo (NO)", "Rome"), NO_ANSWER),
    "a value that is no number holds for no row": (ask(0, "", (1, "=", "three")), NO_ANSWER),
    "a number among texts": (ask(0, "", (2, "=", 7)), of(0, [1], "Bergen"), NO_ANSWER),
    "two conditions": (ask(0, "", OSLO, (1, "<", 2)), of(0, [2], "oslo  ( no )")),
    "nothing is found": (ask(0, "", NOWHERE), NO_ANSWER, NOTHING),
    "MAX is the cell that holds it": (
        ask(1, "MAX"),
        of(1, [1], "1,000.5", number=1000.5),
        of(1, [1], "1000.5", number=1000.5),
    ),
    "MAX is every cell that holds it": (
        ask(1, "MAX", (1, "<", 1000)),
        of(1, [0, 3], "3", number=3.0),
        of(1, [3], "3.0", number=3.0),
    ),
    "MIN of what is left": (
        ask(1, "MIN", (1, ">", 1)),
        of(1, [0, 3], "3", number=3.0),
        of(1, [0], "3.0", number=3.0),
    ),
    "MIN of texts": (ask(0, "MIN"), of(0, [1], "Bergen")),
    "MAX of nothing": (ask(1, "MAX", NOWHERE), NO_ANSWER, NOTHING),
    "COUNT of texts": (
        ask(0, "COUNT", OSLO),
        of(0, [0, 2], "2", number=2.0, by="COUNT"),
        of(0, [0, 2], "2.0", number=2.0, by="COUNT"),
    ),
    "COUNT of nothing is nought": (
        ask(0, "COUNT", NOWHERE),
        of(0, [], "0", number=0.0, by="COUNT"),
        of(0, [], "0.0", number=0.0, by="COUNT"),
    ),
    "COUNT of one": (
        ask(0, "COUNT", (0, "=", "rome")),
        of(0, [3], "1", number=1.0, by="COUNT"),
        of(0, [3], "1.0", number=1.0, by="COUNT"),
    ),
    "SUM": (ask(1, "SUM"), of(1, [0, 1, 2, 3], "1007.5", number=1007.5, by="SUM")),
    "SUM of one": (
        ask(1, "SUM", (1, "<", 2)),
        of(1, [2], "1", number=1.0, by="SUM"),
        of(1, [2], "1.0", number=1.0, by="SUM"),
    ),
    "SUM of texts that are numbers": (
        ask(2, "SUM", (0, "<", "oslo (no) no")),
        NO_ANSWER,
        of(2, [0, 1, 2], "1,200", "7", "x", number=None, by="SUM"),
    ),
    "SUM of a text": (ask(0, "SUM", (0, "=", "Rome")), NO_ANSWER),
    "SUM of nothing": (
        ask(1, "SUM", NOWHERE),
        NO_ANSWER,
        of(0, [], "nan", number=math.nan, by="SUM"),
    ),
    "AVG is AVERAGE": (
        ask(1, "AVG", OSLO),
        of(1, [0, 2], "2", number=2.0, by="AVERAGE"),
        of(1, [0, 2], "2.0", number=2.0, by="AVERAGE"),
    ),
}


def as_comparable(answer: Answer):
    return [repr(value) for value in answer]  # NaN does not equal itself


@pytest.mark.parametrize("name", CASES)
def test_queries_are_executed_also_as_in_the_release(name):
    asked, expected, *in_release = CASES[name]
    assert execute(ROWS, TYPES, asked) == expected
    found = execute_as_original(ROWS, TYPES, asked)
    assert as_comparable(found) == as_comparable(*(in_release or [expected]))


def test_cells_that_do_not_compare_have_no_extreme_in_the_release():
    for cells in (["a", 3], ["a", None], [3, "a", 4]):
        for aggregation in ("MAX", "MIN"):
            rows = [[cell] for cell in cells]
            assert execute_as_original(rows, ["text"], ask(0, aggregation)) == NO_ANSWER


@pytest.mark.parametrize(
    ("cell", "number", "original"),
    [
        (12, 12.0, 12.0),
        (1e-07, 1e-07, 1e-07),
        ("1,000", 1000.0, 1000.0),
        ("1,000.25", 1000.25, 1000.25),
        ("5,5", None, 5.5),
        ("1.000.000", None, 1e6),
        ("1,00,000", None, 100_000.0),
        ("-3", -3.0, -3.0),
        ("three", None, None),
        (None, None, None),
        (math.inf, None, math.inf),
        (10**400, None, math.inf),
    ],
)
def test_numbers_in_cells(cell, number, original):
    asked = ask(0)
    assert execute([[cell]], ["text"], asked).number == number
    assert execute_as_original([[cell]], ["text"], asked).number == original


def test_sums_are_exact():
    cells = [[0.1]] * 10
    assert execute(cells, ["real"], ask(0, "SUM")).texts == ("1",)
    assert execute([[1e308]] * 3, ["real"], ask(0, "SUM")) == NO_ANSWER


WORDS = st.sampled_from(["a", "b", "ab", "oslo", "rome"])
NUMBERS = st.integers(-3, 3) | st.sampled_from([0.5, 2.5])


@given(
    st.lists(st.tuples(WORDS, NUMBERS), min_size=1, max_size=6),
    st.integers(0, 1),
    st.sampled_from(QUERY_AGGREGATIONS),
    st.lists(
        st.builds(Condition, st.just(0), st.sampled_from(OPERATORS), WORDS)
        | st.builds(Condition, st.just(1), st.sampled_from(OPERATORS), NUMBERS),
        max_size=2,
    ),
)
def test_answers_are_those_of_a_database(rows, column, aggregation, conditions):
    if column == 0 and aggregation in ("SUM", "AVG"):
        aggregation = ""  # a database takes texts for 0
    with sqlite3.connect(":memory:") as database:
        database.execute("CREATE TABLE t (c0 text, c1 real)")
        database.executemany("INSERT INTO t VALUES (?, ?)", rows)
        where = " AND ".join(["1", *(f"c{c.column} {c.operator} ?" for c in conditions)])
        select = f"SELECT {aggregation}(c{column}) FROM t WHERE {where}"
        expected = [row[0] for row in database.execute(select, [c.value for c in conditions])]
    database.close()
    answer = execute(rows, ("text", "real"), Query(column, aggregation, tuple(conditions)))
    kind = str if answer.aggregation == "NONE" and column == 0 else float
    assert list(map(kind, answer.texts)) == [value for value in expected if value is not None]
    if answer.aggregation == "NONE":
        held = [rows[i][j] for i, j in answer.coordinates]
        assert set(held) == {value for value in expected if value is not None}
