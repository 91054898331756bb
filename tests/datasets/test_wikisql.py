import itertools
import math
import sqlite3

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mate_tf.datasets.supervision import supervise
from mate_tf.datasets.wikisql import (
    NO_ANSWER,
    OPERATORS,
    QUERY_AGGREGATIONS,
    Answer,
    Condition,
    Query,
    execute,
    execute_as_original,
    read_wikisql,
)
from mate_tf.tables.table import Question, Table
from tests.small import cases, write_lines

TABLE = {
    "id": "1-10-1",
    "header": ["City", "People"],
    "types": ["text", "real"],
    "rows": [["Oslo", 709037], ["Bergen", "291,940"], ["Røst", 12.5]],
    "page_title": "Norway",
    "section_title": "Cities",
    "name": "table_10_1",
}
OTHER = {"id": "2-1", "header": ["a"], "types": ["real"], "rows": [[3], [None]]}


def ask(sel=1, agg=0, conds=(), table_id="1-10-1", question="how many?"):
    return dict(table_id=table_id, question=question, sql=dict(sel=sel, agg=agg, conds=conds))


def write(folder, questions, tables=(TABLE, OTHER)):
    for name, records in (("dev", questions), ("dev.tables", tables)):
        write_lines(folder / "data" / f"{name}.jsonl", *records)
    return folder


def test_questions_have_the_cells_that_their_query_selects(tmp_path):
    questions = [
        ask(agg=4, conds=[[1, 1, 20]]),
        ask(sel=0, agg=5, table_id="2-1"),
        ask(sel=0, conds=[[1, 0, "12.5"]], question="where?"),
    ]
    read = read_wikisql(write(tmp_path, questions), "dev")
    (table, total), (other, average), (same, where) = read
    rows = (("Oslo", "709037"), ("Bergen", "291,940"), ("Røst", "12.5"))
    assert same is table == Table(("City", "People"), rows, "1-10-1", "Norway", "Cities")
    assert other == Table(("a",), (("3",), ("",)), "2-1")
    cells = ((0, 1), (1, 1))
    assert total == Question("how many?", "dev-0-0_0", ("1000977",), cells, 1_000_977.0, "SUM")
    assert average == Question("how many?", "dev-1-0_0", aggregation="NONE")  # of no number
    assert where == Question("where?", "dev-2-0_0", ("Røst",), ((2, 0),), aggregation="NONE")


def test_weak_supervision_has_the_answers_alone_and_finds_cells(tmp_path):
    questions = [ask(sel=0, conds=[[1, 1, 500_000]]), ask(agg=3)]
    read = list(read_wikisql(write(tmp_path, questions), "dev", supervised=False))
    for _, question in read:
        assert question == Question(question.text, question.question_id, question.answers)
    found, counted = (supervise(table, question) for table, question in read)
    assert found.answer_coordinates == ((0, 0),)
    assert counted.answer_number == 3.0


def test_numbers_tables_and_answers_are_the_release_s_with_original(tmp_path):
    tables = [OTHER | {"rows": [[1e-5], [2.5e16]]}]
    write(tmp_path, [ask(sel=0, table_id="2-1")], tables)
    rows = {False: (("0.00001",), ("25000000000000000",)), True: (("1e-05",), ("2.5e+16",))}
    for original in rows:
        ((table, _),) = read_wikisql(tmp_path, "dev", original=original)
        assert table.rows == rows[original]
    write(tmp_path, [ask(conds=[[0, 0, "bergen"]])])
    ((table, question),) = read_wikisql(tmp_path, "dev", original=True)
    names = table.table_id, table.document_title, table.context_heading
    assert names == ("table_csv/1-10-1.csv", "", "")
    assert table.rows[1] == ("Bergen", "291,940")
    assert (question.answers, question.answer_number) == (("291940.0",), 291_940.0)
    assert question.question_id == "dev-0-0_0"


def test_questions_come_one_by_one(tmp_path):
    read = read_wikisql(write(tmp_path, [ask(), []]), "dev")
    assert next(read)[1].question_id == "dev-0-0_0"
    with pytest.raises(ValueError, match=r"expected texts .*dev\.jsonl', line 2\)"):
        next(read)


TYPES = ("text", "real", "text")
ROWS = [
    ["Oslo (NO)", 3, "1,200"],
    ["Bergen", "1,000.5", "7"],
    ["oslo  ( no )", 1, "x"],
    ["Rome", 3.0, ""],
]


def query(column, aggregation="", *conditions):
    return Query(column, aggregation, tuple(Condition(*condition) for condition in conditions))


def of(column, rows, *texts, number=None, by="NONE"):
    return Answer(tuple((row, column) for row in rows), by, number, texts)


def number(column, rows, text, by="NONE"):
    return of(column, rows, text, number=float(text.replace(",", "")), by=by)


NOTHING = of(0, [], "nan", number=math.nan)
OSLO, TEXTS = (0, "=", "OSLO (NO)"), ("1,200", "7", "x")
NOWHERE, ROME = (0, "=", "Paris"), (0, "=", "rome")


def as_comparable(answer: Answer):
    return [repr(value) for value in answer]  # NaN does not equal itself


# What is asked, and the answer; where the authors' release has another one, that too.
@cases(
    "asked, expected, in_release",
    (query(0, "", (1, "=", 1)), of(0, [2], "oslo  ( no )"), None),
    (query(1, "", OSLO), of(1, [0, 2], "3", "1"), None),  # texts have no case and spacing
    # One number is the answer as its cell has it.
    (query(2, "", OSLO, (1, ">", 1)), number(2, [0], "1,200"), number(2, [0], "1200.0")),
    # Greater and less, with separators in the cell.
    (query(0, "", (1, ">", "3")), of(0, [1], "Bergen"), None),
    (query(1, "", (1, "<", "1,000")), of(1, [0, 2, 3], "3", "1", "3.0"), None),
    (query(0, "", (1, "=", "3.00")), of(0, [0, 3], "Oslo (NO)", "Rome"), None),
    (query(0, "", (1, "=", "3 goals")), of(0, [0, 3], "Oslo (NO)", "Rome"), NO_ANSWER),
    # A value that is no number holds for no row, and a number is found among texts.
    (query(0, "", (1, "=", "three")), NO_ANSWER, None),
    (query(0, "", (2, "=", 7)), of(0, [1], "Bergen"), NO_ANSWER),
    (query(0, "", OSLO, (1, "<", 2)), of(0, [2], "oslo  ( no )"), None),
    (query(0, "", NOWHERE), NO_ANSWER, NOTHING),
    # An extreme is every cell that holds it.
    (query(1, "MAX"), number(1, [1], "1,000.5"), number(1, [1], "1000.5")),
    (query(1, "MAX", (1, "<", 1000)), number(1, [0, 3], "3"), number(1, [3], "3.0")),
    (query(1, "MIN", (1, ">", 1)), number(1, [0, 3], "3"), number(1, [0], "3.0")),
    (query(0, "MIN"), of(0, [1], "Bergen"), None),
    (query(1, "MAX", NOWHERE), NO_ANSWER, NOTHING),
    (query(0, "COUNT", OSLO), number(0, [0, 2], "2", "COUNT"), number(0, [0, 2], "2.0", "COUNT")),
    (query(0, "COUNT", NOWHERE), number(0, [], "0", "COUNT"), number(0, [], "0.0", "COUNT")),
    (query(0, "COUNT", ROME), number(0, [3], "1", "COUNT"), number(0, [3], "1.0", "COUNT")),
    (query(1, "SUM"), number(1, [0, 1, 2, 3], "1007.5", "SUM"), None),
    (query(1, "SUM", (1, "<", 2)), number(1, [2], "1", "SUM"), number(1, [2], "1.0", "SUM")),
    # Texts that are numbers are not added up, nor is a text, nor nothing.
    (query(2, "SUM", (0, "<", "oslo (no) no")), NO_ANSWER, of(2, [0, 1, 2], *TEXTS, by="SUM")),
    (query(0, "SUM", ROME), NO_ANSWER, None),
    (query(1, "SUM", NOWHERE), NO_ANSWER, number(0, [], "nan", "SUM")),
    (query(1, "AVG", OSLO), number(1, [0, 2], "2", "AVERAGE"), number(1, [0, 2], "2.0", "AVERAGE")),
)
def test_queries_are_executed_also_as_in_the_release(asked, expected, in_release):
    assert execute(ROWS, TYPES, asked) == expected
    found = execute_as_original(ROWS, TYPES, asked)
    assert as_comparable(found) == as_comparable(in_release or expected)


def test_cells_that_do_not_compare_have_no_extreme_in_the_release_and_sums_are_exact():
    for cells, by in itertools.product((["a", 3], ["a", None], [3, "a", 4]), ("MAX", "MIN")):
        rows = [[cell] for cell in cells]
        assert execute_as_original(rows, ["text"], query(0, by)) == NO_ANSWER
    cells = [[0.1]] * 10
    assert execute(cells, ["real"], query(0, "SUM")).texts == ("1",)
    assert execute([[1e308]] * 3, ["real"], query(0, "SUM")) == NO_ANSWER


@cases(
    "cell, number, original",
    *((12, 12.0, 12.0), (1e-07, 1e-07, 1e-07), ("1,000", 1000.0, 1000.0)),
    *(("1,000.25", 1000.25, 1000.25), ("5,5", None, 5.5), ("1.000.000", None, 1e6)),
    *(("1,00,000", None, 100_000.0), ("-3", -3.0, -3.0), ("three", None, None), (None, None, None)),
    *((math.inf, None, math.inf), (10**400, None, math.inf)),
)
def test_numbers_in_cells(cell, number, original):
    asked = query(0)
    assert execute([[cell]], ["text"], asked).number == number
    assert execute_as_original([[cell]], ["text"], asked).number == original


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
