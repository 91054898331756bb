import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mate_tf.statements.drawing import draw_true
from mate_tf.statements.execution import UndefinedError, evaluate, execute
from mate_tf.statements.expressions import (
    OPERATIONS,
    Aggregate,
    Condition,
    Constant,
    Count,
    Difference,
    Select,
    Statement,
    operation_of,
    parts,
)
from mate_tf.statements.falsification import CHANGES, falsified
from mate_tf.statements.typed_table import TypedTable
from mate_tf.statements.variants import variants
from mate_tf.tables.normalization import normalize_for_match
from mate_tf.tables.numeric import Date
from mate_tf.tables.table import Table
from tests.statements.oracle import is_true
from tests.statements.small_tables import (
    AREA,
    CITY,
    COUNTRY,
    FOUNDED,
    PEOPLE,
    TYPED_CITIES,
    tables,
)


def of(column: int, text: str) -> tuple[Condition, ...]:
    return (Condition(column, "equal", Constant(text)),)


LARGEST = (Condition(AREA, "equal", Aggregate("maximum", AREA)),)
ABOVE = (Condition(AREA, "greater", Aggregate("average", AREA)),)


def test_columns_are_typed_by_all_of_their_values():
    kinds = [column.kind for column in TYPED_CITIES.columns]
    assert kinds == ["text", "text", "number", "number", "date"]
    assert TYPED_CITIES.columns[PEOPLE].values == (1000.0, 400.0, 600.0, None)
    assert TYPED_CITIES.columns[FOUNDED].values[1] == Date(1534, 3, 23)


@pytest.mark.parametrize(
    "cells, kind",
    [
        (("$1,200", "45 %", "7th"), "number"),
        (("3-2", "4-1", "0-0"), "text"),  # two numbers
        (("Boeing 747", "Boeing 737", "A380"), "text"),
        (("1", "2", "-", "3"), "number"),
        (("1", "-", "-"), "text"),  # too few
        (("2004", "2005", "2006"), "date"),
    ],
)
def test_a_column_of_numbers_has_nothing_but_numbers(cells, kind):
    table = TypedTable(Table.from_rows([(cell,) for cell in cells], ["x"]))
    assert table.columns[0].kind == kind


@pytest.mark.parametrize("header", [["x", "X"], ["", "-"]])
def test_columns_without_a_name_of_their_own_are_not_spoken_of(header):
    assert TypedTable(Table.from_rows([("1", "2"), ("3", "4")], header)).of_kind() == []


@pytest.mark.parametrize(
    "expression, value",
    [
        (Select(COUNTRY, of(CITY, "lima")), "peru"),
        (Select(COUNTRY, of(COUNTRY, "Peru")), "peru"),  # two rows of one value
        (Select(PEOPLE, of(CITY, "Lima")), 1000.0),
        (Select(CITY, LARGEST), "cusco"),
        (Aggregate("sum", AREA), 19.0),
        (Aggregate("average", AREA, of(COUNTRY, "Peru")), 6.25),
        (Aggregate("average", AREA), 4.75),
        (Aggregate("minimum", FOUNDED), Date(1534, 3, 23)),
        (Aggregate("maximum", FOUNDED), Date(1541, 2, 12)),
        (Count(of(COUNTRY, "Peru")), 2.0),
        (Count((Condition(PEOPLE, "less", Constant("700")),)), 2.0),  # Quito has none
        (Count(ABOVE), 2.0),
        (Count(of(COUNTRY, "Brazil")), 0.0),
        (Difference(Select(AREA, of(CITY, "Quito")), Aggregate("maximum", AREA)), 3.0),
        (Difference(Aggregate("average", AREA, ABOVE), Count(ABOVE)), 4.25),
    ],
)
def test_an_expression_has_the_value_worked_out_by_hand(expression, value):
    assert evaluate(expression, TYPED_CITIES) == value


@pytest.mark.parametrize(
    "left, comparator, right, verdict",
    [
        (Select(PEOPLE, of(CITY, "Lima")), "equal", Constant("1000.0"), True),  # as numbers
        (Select(COUNTRY, of(CITY, "Lima")), "equal", Constant(" PERU"), True),
        (Select(FOUNDED, of(CITY, "Lima")), "greater", Constant("1534"), True),
        (Select(FOUNDED, of(CITY, "Quito")), "equal", Constant("December 1534"), True),
        (Constant("3"), "less", Aggregate("sum", AREA), True),
        (Aggregate("average", AREA), "greater", Aggregate("maximum", AREA), False),
    ],
)
def test_a_statement_is_true_or_false(left, comparator, right, verdict):
    assert execute(Statement(left, comparator, right), TYPED_CITIES) is verdict


@pytest.mark.parametrize(
    "statement",
    [
        Statement(Select(CITY, of(COUNTRY, "Peru")), "equal", Constant("Lima")),  # two cities
        Statement(Select(CITY, of(COUNTRY, "Brazil")), "equal", Constant("Lima")),  # none
        Statement(Select(CITY, of(COUNTRY, "Chile")), "greater", Constant("Lima")),  # texts
        Statement(Select(PEOPLE, of(CITY, "Quito")), "equal", Constant("4")),  # an empty cell
        Statement(Select(PEOPLE, of(CITY, "Lima")), "equal", Constant("many")),
        Statement(Select(PEOPLE, of(CITY, "Lima")), "less", Aggregate("minimum", FOUNDED)),
        Statement(Aggregate("sum", PEOPLE), "equal", Constant("4")),  # an empty cell
        Statement(Aggregate("sum", FOUNDED), "equal", Constant("4")),
        Statement(Aggregate("sum", CITY), "equal", Constant("4")),
        Statement(Aggregate("maximum", CITY), "equal", Constant("4")),
        Statement(Aggregate("maximum", AREA, of(CITY, "Lima")), "equal", Constant("4")),  # of one
        Statement(Select(CITY, of(COUNTRY, "Chile")), "equal", Count(ABOVE)),
        Statement(Constant("4"), "equal", Constant("4")),
    ],
)
def test_what_has_no_value_is_undefined(statement):
    with pytest.raises(UndefinedError):
        execute(statement, TYPED_CITIES)


def test_numbers_beyond_single_precision_are_undefined():
    cells = [("a", "3" + "0" * 38), ("b", "3" + "0" * 38), ("c", "1")]
    table = TypedTable(Table.from_rows(cells, ["x", "y"]))
    with pytest.raises(UndefinedError, match="single precision"):
        execute(Statement(Aggregate("sum", 1), "greater", Constant("1")), table)


@pytest.mark.parametrize(
    "statement, operation",
    [
        (Statement(Select(COUNTRY, of(CITY, "Lima")), "equal", Constant("Peru")), "selection"),
        (Statement(Select(AREA, of(CITY, "Lima")), "less", Constant("7")), "comparison"),
        (Statement(Constant("7"), "greater", Select(AREA, of(CITY, "Lima"))), "comparison"),
        (Statement(Count(of(CITY, "Lima")), "less", Constant("7")), "count"),
        (Statement(Aggregate("sum", AREA), "equal", Constant("19")), "sum"),
        (Statement(Select(CITY, LARGEST), "equal", Constant("Cusco")), "nesting"),
        (Statement(Count(ABOVE), "equal", Constant("2")), "nesting"),
        (Statement(Aggregate("sum", AREA), "less", Aggregate("sum", PEOPLE)), "nesting"),
        (
            Statement(
                Difference(Aggregate("maximum", AREA), Aggregate("minimum", AREA)),
                "equal",
                Constant("4.5"),
            ),
            "nesting",
        ),
        (
            Statement(
                Difference(Select(AREA, of(CITY, "Lima")), Select(AREA, of(CITY, "Quito"))),
                "equal",
                Constant("1.5"),
            ),
            "difference",
        ),
    ],
)
def test_a_statement_is_counted_under_its_operation(statement, operation):
    assert operation_of(statement) == operation


@given(tables(), st.sampled_from(OPERATIONS), st.integers(0, 99))
def test_the_executor_agrees_with_a_naive_one(table, operation, seed):
    typed = TypedTable(table)
    statement = draw_true(operation, typed, random.Random(seed))
    if statement is None:
        return
    assert operation_of(statement) == operation
    assert execute(statement, typed) and is_true(statement, table)
    for left in variants(statement.left, typed):
        for comparator in ("equal", "greater", "less"):
            other = Statement(left, comparator, statement.right)
            try:
                verdict = execute(other, typed)
            except UndefinedError:
                verdict = None
            if verdict is None:  # where the naive one has a number and a text that differ
                assert is_true(other, table) is not True
            else:
                assert is_true(other, table) is verdict


@given(tables(), tables(), st.sampled_from(OPERATIONS), st.integers(0, 99))
def test_a_falsified_statement_is_false_and_of_the_same_operation(table, other, operation, seed):
    typed, rng = TypedTable(table), random.Random(seed)
    same_columns = TypedTable(other) if other.header == table.header else None
    true = draw_true(operation, typed, rng)
    found = true and falsified(true, typed, same_columns, rng)
    if true is None or found is None:
        return
    change, false = found
    assert change in CHANGES
    assert operation_of(false) == operation
    cells = {normalize_for_match(cell) for row in table.rows for cell in row}
    try:
        assert not execute(false, typed)
        assert is_true(false, table) is False
    except UndefinedError:  # of a row that is not there
        assert is_true(false, table) is None
        assert any(normalize_for_match(text) not in cells for text in constants(false))
    if change == "elsewhere":
        assert execute(false, same_columns)
        return
    changed = [
        name
        for name in ("left", "comparator", "right")
        if getattr(true, name) != getattr(false, name)
    ]
    expected = {"absent": "right", "constant": "right"}.get(change, change)
    assert changed == [expected]
    if change == "absent":
        assert normalize_for_match(false.right.text) not in cells


def constants(statement):
    """The texts that conditions compare with."""
    for side in (statement.left, statement.right):
        for part in (side, *parts(side)):
            for condition in getattr(part, "conditions", ()):
                if isinstance(condition.operand, Constant):
                    yield condition.operand.text


@pytest.mark.parametrize("operation", OPERATIONS)
def test_each_operation_has_a_true_and_a_false_statement_about_a_plain_table(operation):
    found = [
        falsified(true, TYPED_CITIES, None, random.Random(seed))
        for seed in range(5)
        if (true := draw_true(operation, TYPED_CITIES, random.Random(seed)))
    ]
    assert any(found)
