"""Drawn questions, answered a second time by what their names say."""

import random

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from mate_tf.synthesis import question_wording as wording
from mate_tf.synthesis.question_drawing import OPERATIONS, draw
from mate_tf.synthesis.question_wording import phrase
from mate_tf.synthesis.typed_table import TypedTable
from mate_tf.tables.table import Table
from tests.synthesis.small_tables import CITIES, COUNTRY, PEOPLE, TYPED_CITIES, tables


def answer_rows(drawn, table: Table) -> set[int]:
    """The rows that answer a question, by texts and numbers of the table alone."""
    every = range(table.num_rows)

    def text(row, name):
        return table.rows[row][drawn.columns[name]]

    def value(row):
        return float(text(row, "N"))

    def quoted(name):
        row, column = drawn.cells[name]
        return table.rows[row][column]

    where = {row for row in every if "K" in drawn.columns and text(row, "K") == quoted("v")}
    named = {
        name: next(row for row in every if text(row, "T") == quoted(name))
        for name in ("a", "b")
        if name in drawn.cells
    }
    operation = drawn.operation
    if operation in ("look_up", "select", "count", "count_of_value"):
        return where
    if operation in ("sum", "average", "sum_where", "average_where"):
        return where if "K" in drawn.columns else set(every)
    if operation == "look_up_by_two":
        return {row for row in where if text(row, "L") == quoted("w")}
    if operation == "other":
        return where - {named["a"]}
    if operation == "count_all":
        return set(every)
    if operation.startswith("position"):
        ends = {"position_first": 0, "position_last": table.num_rows - 1}
        steps = {"position_next": 1, "position_previous": -1}
        return {ends[operation]} if operation in ends else {named["a"] + steps[operation]}
    if operation.startswith("comparison"):
        choose = max if "_more_" in operation else min
        return {choose(named.values(), key=value)}
    numbers = {row: value(row) for row in every if text(row, "N")}
    if operation.startswith(("largest", "smallest")):
        extreme = (max if operation.startswith("largest") else min)(numbers.values())
        return {row for row, number in numbers.items() if number == extreme}
    threshold = float(quoted("v"))
    is_more = "_more_" in operation
    return {
        row
        for row, number in numbers.items()
        if number != threshold and (number > threshold) == is_more
    }


@settings(max_examples=200, deadline=None)
@given(tables(), st.sampled_from(OPERATIONS), st.integers(0, 9))
def test_the_cells_are_those_that_answer(table, operation, seed):
    drawn = draw(operation, TypedTable(table), random.Random(seed))
    if drawn is None:
        return
    assert set(drawn.rows) == answer_rows(drawn, table)
    assert list(drawn.rows) == sorted(set(drawn.rows))
    if "T" in drawn.columns:
        assert drawn.column == drawn.columns["T"]
    computed = {"count": "COUNT", "sum": "SUM", "average": "AVERAGE"}
    assert drawn.aggregation == computed.get(operation.split("_")[0], "NONE")


@pytest.mark.parametrize("operation", OPERATIONS)
def test_each_operation_is_found_and_put_in_words(operation):
    wide = Table(
        (*CITIES.header, "Coast"),
        tuple((*row, coast) for row, coast in zip(CITIES.rows, "xyyx", strict=True)),
        "wide",
    )
    table = TypedTable(wide)
    found = 0
    for seed in range(80):
        rng = random.Random(seed)
        drawn = draw(operation, table, rng)
        if drawn is None:
            continue
        found += 1
        text = phrase(drawn, table, rng)
        assert text == text.lower() and "{" not in text
    assert found


def test_every_form_has_its_places():
    known = {"T": "t", "K": "k", "L": "l", "N": "n", "v": "v", "w": "w", "a": "a", "b": "b"}
    held_out = {form for forms in wording._HELD_OUT.values() for form in forms}
    for operation, forms in wording._FORMS.items():
        assert len(set(forms)) == len(forms) >= 3, operation
        assert not held_out & set(forms)
        for form in forms:
            assert form.format(who="who", **known).strip()


def test_a_question_that_is_none_is_not_drawn():
    same = TypedTable(Table(("a", "b"), (("x", "y"), ("x", "y")), "same"))
    for operation in OPERATIONS:
        assert draw(operation, same, random.Random(0)) is None
    # Quito's people are not known: no extreme, no sum over all.
    for seed in range(40):
        drawn = draw("sum", TYPED_CITIES, random.Random(seed))
        assert drawn is None or drawn.column != PEOPLE or 3 not in drawn.rows
        drawn = draw("count", TYPED_CITIES, random.Random(seed))
        assert drawn is None or drawn.columns["K"] != COUNTRY or drawn.rows in ((0, 1), (2,), (3,))
