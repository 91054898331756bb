import csv
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from decimal import Decimal
from enum import Enum

import numpy as np
import pytest

from mate_tf.tables.linked_table import LinkedTable, Passage
from mate_tf.tables.table import Question, Table, remember
from tests.datasets.linked_tables import BERGEN, CITIES, NORWAY, OSLO
from tests.small import cases, stored_cases

TOWNS = Table(("City", "People"), (("Oslo", "709037"), ("Bergen", "291940")), "cities")


class _Rate(int, Enum):
    LOW = 1


@cases(
    "value, text",
    *((None, ""), (3, "3"), (3.0, "3"), (0.1, "0.1"), (True, "True"), (np.float64(0.5), "0.5")),
    *((1e-05, "0.00001"), (np.float64(-2.5e16), "-25000000000000000")),
    *((np.float32(1e-5), "0.00001"), (Decimal("1E-7"), "0.0000001")),
    *((Decimal("0E-8"), "0.00000000"), (Decimal("1E+1000000"), "1E+1000000")),
    *((_Rate.LOW, "_Rate.LOW"), (1e300, "1e+300"), (float("inf"), "inf"), (np.int64(7), "7")),
    (" kept as it is ", " kept as it is "),
)
def test_a_cell_becomes_text(value, text):
    assert Table.from_rows([["a"], [value]]).rows == ((text,),)


def test_the_first_row_is_the_header_unless_one_is_given():
    assert Table.from_rows([["a", "b"], [1, 2]]).header == ("a", "b")
    assert Table.from_rows([["a", "a", ""], [1, 2, 3]]).header == ("a", "a", "")
    table = Table.from_rows([["a", "b"], [1, 2]], header=["x", None])
    assert (table.header, table.num_rows, table.num_columns) == (("x", ""), 2, 2)


@stored_cases("rows, message")
def test_rows_that_are_no_table_are_refused(rows, message):
    with pytest.raises(ValueError, match=message):
        Table.from_rows(rows, table_id="x")


@pytest.mark.parametrize("cell", ["a" * 1_000_000, '"' * 1_000_000, "\n" * 1_000_000])
def test_a_cell_may_be_a_megabyte_long(tmp_path, cell):
    with open(tmp_path / "long.csv", "w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([["a", "b"], [cell, "c"]])
    assert Table.from_csv(tmp_path / "long.csv").rows == ((cell, "c"),)


def test_expansions_follow_the_cells_and_equal_tables_and_questions_are_equal_keys():
    table = replace(TOWNS, expansions=(("( a capital )", ""), ("", "( in 2024 )")))
    assert table.rows == TOWNS.rows
    expanded = (("Oslo ( a capital )", "709037"), ("Bergen", "291940 ( in 2024 )"))
    assert table.expanded_rows == expanded
    assert TOWNS.expanded_rows == TOWNS.rows
    assert len({TOWNS, Table(TOWNS.header, TOWNS.rows, "cities")}) == 1
    assert len({Question("how many?", answers=["3"]), Question("how many?", answers=("3",))}) == 1


def expanded(*expansions):
    return TOWNS, {"expansions": expansions}


@cases(
    "item, changes, message",
    (*expanded(["", ""]), r"expected expansions of 2 rows, got 1 \(table 'cities'\)"),
    (*expanded(["", ""], [""]), r"2 cells .*, got 1 \(table 'cities', expansions of row 1\)"),
    (*expanded("ab", "cd"), "expected a list of cells, got the text 'ab'"),
    (*expanded(["", []], ["", ""]), "expected text, a number or None, got list"),
    (Question("where?"), {"question_id": 3}, "expected a text as question_id, got 3"),
    (Question("where?"), {"text": 3}, "expected a text as text, got 3"),
    (TOWNS, {"document_title": 3}, "expected a text as document_title, got 3 .*'cities'"),
)
def test_expansions_of_another_shape_and_names_that_are_no_texts_are_refused(
    item, changes, message
):
    with pytest.raises(ValueError, match=message):
        replace(item, **changes)


@stored_cases("fields, message")
def test_a_malformed_question_is_refused(fields, message):
    with pytest.raises(ValueError, match=message):
        Question("where?", "q", **fields)


@pytest.mark.parametrize("number", [3, 3.5, float("nan"), float("inf"), 1e300])
def test_a_question_s_number_may_be_any_float(number):
    held = Question("where?", answer_number=number).answer_number
    assert isinstance(held, float) and str(held) == str(float(number))


def test_values_used_longest_ago_are_forgotten_once_all_are_too_large():
    made = []

    def make(size):
        made.append(size)
        return [size]

    remembered = remember(make, size_of=lambda key, value: value[0], most=10_000)

    def makes(*sizes):
        made.clear()
        assert [remembered(size) for size in sizes] == [[size] for size in sizes]
        return made

    assert makes(1, 8000, 8000, 1) == [1, 8000]  # 1 counts as 2,000
    assert makes(2, 1, 2, 8000) == [2, 8000]
    assert makes(30_000, 30_000, 1, 1, 30_000) == [30_000, 1, 30_000]
    assert makes(1, 2, 3, 4, 5, 1, 2, 6, 1, 2, 3) == [1, 2, 3, 4, 5, 6, 3]


def test_a_value_that_two_threads_make_at_once_counts_once():
    made, both_make = [], threading.Barrier(2)

    def make(size):
        made.append(size)
        if len(made) <= 2:
            both_make.wait()
        return [size]

    remembered = remember(make, size_of=lambda key, value: value[0], most=10_000)
    with ThreadPoolExecutor(2) as threads:
        assert list(threads.map(remembered, [6000, 6000])) == [[6000], [6000]]
    assert [remembered(size) for size in (3000, 6000)] == [[3000], [6000]]
    assert made == [6000, 6000, 3000]


def test_passages_are_listed_once_and_row_by_row_and_a_title_is_what_the_address_spells():
    assert list(CITIES.distinct_passages()) == [OSLO, NORWAY, BERGEN]
    titles = [Passage(it, "").title for it in ("/wiki/New_York_City", "/wiki/AC/DC", "Oslo")]
    assert titles == ["New York City", "AC/DC", "Oslo"]


@pytest.mark.parametrize("passages", [(), (((),) * 3,), (((),) * 3, ((),) * 2)])
def test_passages_of_another_shape_than_the_body_are_refused(passages):
    message = r"expected passages for 2 rows of 3 cells, got rows of .* \(table 'cities'\)"
    with pytest.raises(ValueError, match=message):
        LinkedTable(CITIES.table, passages)
