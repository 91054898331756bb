import itertools
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.synthesis.statement_drawing import draw_true
from experiments.synthesis.statement_execution import (
    COMPARATORS,
    OPERATIONS,
    Aggregate,
    Condition,
    Constant,
    Count,
    Difference,
    Select,
    Statement,
    UndefinedError,
    evaluate,
    execute,
    is_refuted,
    operation_of,
    parts,
    variants,
)
from experiments.synthesis.typed_table import TypedTable
from mate_tf.features.english import normalize_for_match
from mate_tf.features.numeric import Date
from mate_tf.tables.table import Table
from tests.experiments.synthesis.small_tables import (
    ABOVE,
    AREA,
    CITY,
    COUNTRY,
    FOUNDED,
    LARGEST,
    PEOPLE,
    TYPED_CITIES,
    of,
    says,
    tables,
)
from tests.small import cases


def test_columns_are_typed_by_all_of_their_values():
    kinds = [column.kind for column in TYPED_CITIES.columns]
    assert kinds == ["text", "text", "number", "number", "date"]
    assert TYPED_CITIES.columns[PEOPLE].values == (1000.0, 400.0, 600.0, None)
    assert TYPED_CITIES.columns[FOUNDED].values[1] == Date(1534, 3, 23)


@cases(
    "cells, kind",
    (("$1,200", "45 %", "7th"), "number"),
    (("3-2", "4-1", "0-0"), "text"),  # two numbers
    (("Boeing 747", "Boeing 737", "A380"), "text"),
    (("1", "2", "-", "3"), "number"),
    (("1", "-", "-"), "text"),  # too few
    (("2004", "2005", "2006"), "date"),
)
def test_a_column_of_numbers_has_nothing_but_numbers(cells, kind):
    table = TypedTable(Table.from_rows([(cell,) for cell in cells], ["x"]))
    assert table.columns[0].kind == kind


@pytest.mark.parametrize("header", [["x", "X"], ["", "-"]])
def test_columns_without_a_name_of_their_own_are_not_spoken_of(header):
    assert TypedTable(Table.from_rows([("1", "2"), ("3", "4")], header)).select() == []


@cases(
    "expression, value",
    (Select(COUNTRY, of(CITY, "lima")), "peru"),
    (Select(COUNTRY, of(COUNTRY, "Peru")), "peru"),  # two rows of one value
    (Select(PEOPLE, of(CITY, "Lima")), 1000.0),
    (Select(CITY, LARGEST), "cusco"),
    (Aggregate("minimum", FOUNDED), Date(1534, 3, 23)),
    (Aggregate("maximum", FOUNDED), Date(1541, 2, 12)),
    (Aggregate("first", CITY), "lima"),
    (Aggregate("last", FOUNDED, of(COUNTRY, "Peru")), Date(1534, 3, 23)),
    (Count((Condition(PEOPLE, "less", Constant("700")),)), 2.0),  # Quito has none
    (Count(of(COUNTRY, "Brazil")), 0.0),
    (Difference(Select(AREA, of(CITY, "Quito")), Aggregate("maximum", AREA)), 3.0),
    (Difference(Aggregate("average", AREA, ABOVE), Count(ABOVE)), 4.25),
)
def test_an_expression_has_the_value_worked_out_by_hand(expression, value):
    assert evaluate(expression, TYPED_CITIES) == value


@cases(
    "statement, verdict",
    (says(Select(PEOPLE, of(CITY, "Lima")), "1000.0"), True),  # as numbers
    (says(Select(COUNTRY, of(CITY, "Lima")), " PERU"), True),
    (says(Select(FOUNDED, of(CITY, "Lima")), "1534", "greater"), True),
    (says(Select(FOUNDED, of(CITY, "Quito")), "December 1534"), True),
    (says("3", Aggregate("sum", AREA), "less"), True),
    (says(Aggregate("average", AREA), Aggregate("maximum", AREA), "greater"), False),
)
def test_a_statement_is_true_or_false(statement, verdict):
    assert execute(statement, TYPED_CITIES) is verdict


@cases(
    "statement, message",
    (says(Select(CITY, of(COUNTRY, "Peru")), "Lima"), "rows of one value, got 2"),
    (says(Select(CITY, of(COUNTRY, "Brazil")), "Lima"), "rows of one value, got 0"),
    (says(Select(CITY, of(COUNTRY, "Chile")), "Lima", "greater"), "order, got a text"),
    (says(Select(PEOPLE, of(CITY, "Quito")), "4"), "got an empty cell"),
    (says(Select(PEOPLE, of(CITY, "Lima")), "many"), "expected a float, got 'many'"),
    (
        says(Select(PEOPLE, of(CITY, "Lima")), Aggregate("minimum", FOUNDED), "less"),
        "got one of each",
    ),
    (says(Aggregate("sum", PEOPLE), "4"), "got an empty cell"),
    (says(Aggregate("sum", FOUNDED), "4"), "expected numbers"),
    (says(Aggregate("sum", CITY), "4"), "expected numbers"),
    (says(Aggregate("range", FOUNDED), "4"), "expected numbers"),
    (says(Aggregate("first", CITY, of(CITY, "Lima")), "Lima"), "at least 2 rows, got 1"),
    (says(Aggregate("first", PEOPLE), "1000"), "got an empty cell"),
    (says(Aggregate("maximum", CITY), "4"), "that have an order"),
    (says(Aggregate("maximum", AREA, of(CITY, "Lima")), "4"), "at least 2 rows, got 1"),
    (says(Select(CITY, of(COUNTRY, "Chile")), Count(ABOVE)), "order, got a text"),
    (says("4", "4"), "got a constant"),
)
def test_what_has_no_value_is_undefined(statement, message):
    with pytest.raises(UndefinedError, match=message):
        execute(statement, TYPED_CITIES)


@cases(
    "statement, operation",
    (says(Select(COUNTRY, of(CITY, "Lima")), "Peru"), "selection"),
    (says(Select(AREA, of(CITY, "Lima")), "7", "less"), "comparison"),
    (says("7", Select(AREA, of(CITY, "Lima")), "greater"), "comparison"),
    (says(Count(of(CITY, "Lima")), "7", "less"), "count"),
    (says(Aggregate("sum", AREA), "19"), "sum"),
    (says(Aggregate("first", CITY), "Lima"), "first"),
    (says(Select(CITY, LARGEST), "Cusco"), "nesting"),
    (says(Count(ABOVE), "2"), "nesting"),
    (says(Aggregate("sum", AREA), Aggregate("sum", PEOPLE), "less"), "nesting"),
    (says(Difference(Aggregate("maximum", AREA), Aggregate("minimum", AREA)), "4.5"), "nesting"),
    (
        says(Difference(Select(AREA, of(CITY, "Lima")), Select(AREA, of(CITY, "Quito"))), "2"),
        "difference",
    ),
)
def test_a_statement_is_counted_under_its_operation(statement, operation):
    assert operation_of(statement) == operation


# A second, naive executor: columns of plain numbers and texts, statements by brute force. It knows
# no dates and no rounding but that of computed values, and gives None for the undefined.


def is_true(statement: Statement, table: Table) -> bool | None:
    left, right = (naive_value(side, table) for side in (statement.left, statement.right))
    if left is None or right is None:
        return None
    return naive_holds(left, statement.comparator, right)


def naive_holds(left, comparator, right) -> bool | None:
    first, second = naive_number(left), naive_number(right)
    if first is None or second is None:
        return left == right if comparator == "equal" else None
    distance = round(first, 2) - round(second, 2)
    return {"equal": distance == 0, "greater": distance > 0, "less": distance < 0}[comparator]


def naive_number(value) -> float | None:
    try:
        return float(value)
    except ValueError:
        return None


def naive_rows(conditions, table: Table) -> list[tuple[str, ...]]:
    rows = list(table.rows)
    for condition in conditions:
        operand = naive_value(condition.operand, table)
        if operand is None:
            return []
        rows = [
            row
            for row in rows
            if row[condition.column]
            and naive_holds(row[condition.column], condition.comparator, operand)
        ]
    return rows


def naive_value(expression, table: Table):
    match expression:
        case Constant(text):
            return text
        case Count(conditions):
            return str(len(naive_rows(conditions, table)))
        case Select(column, conditions):
            values = {row[column] for row in naive_rows(conditions, table)}
            return values.pop() if len(values) == 1 and "" not in values else None
        case Difference(left, right):
            sides = [naive_value(side, table) for side in (left, right)]
            return None if None in sides else str(abs(float(sides[0]) - float(sides[1])))
        case Aggregate(aggregation, column, conditions):
            cells = [row[column] for row in naive_rows(conditions, table)]
            if len(cells) < 2 or "" in cells:
                return None
            if aggregation in ("first", "last"):
                return cells[0 if aggregation == "first" else -1]
            numbers = [number for cell in cells if (number := naive_number(cell)) is not None]
            if len(numbers) < len(cells):
                return None
            total, average = sum(numbers), sum(numbers) / len(numbers)
            of_all = {"sum": total, "average": average}
            of_all |= {"minimum": min(numbers), "maximum": max(numbers)}
            of_all["range"] = max(numbers) - min(numbers)
            return str(round(of_all[aggregation], 2))
    raise AssertionError(expression)


@given(tables(), st.sampled_from(OPERATIONS), st.integers(0, 99))
def test_the_executor_agrees_with_a_naive_one(table, operation, seed):
    typed = TypedTable(table)
    statement = draw_true(operation, typed, random.Random(seed))
    if statement is None:
        return
    assert operation_of(statement) == operation
    assert execute(statement, typed) and is_true(statement, table)
    for left, comparator in itertools.product(variants(statement.left, typed), COMPARATORS):
        other = Statement(left, comparator, statement.right)
        try:
            assert is_true(other, table) is execute(other, typed)
        except UndefinedError:  # where the naive one has a number and a text that differ
            assert is_true(other, table) is not True


@given(tables(), tables(), st.sampled_from(OPERATIONS), st.integers(0, 99))
def test_what_is_refuted_is_false_or_of_a_row_that_is_not_there(table, other, operation, seed):
    true = draw_true(operation, TypedTable(table), random.Random(seed))
    kinds = [[column.kind for column in TypedTable(one).columns] for one in (table, other)]
    if true is None or kinds[0] != kinds[1]:
        return
    verdict = is_true(true, other)
    if is_refuted(true, TypedTable(other)):
        assert verdict is not True
        columns = [
            {normalize_for_match(cell) for cell in cells} for cells in zip(*other.rows, strict=True)
        ]
        assert verdict is False or any(
            normalize_for_match(condition.operand.text) not in columns[condition.column]
            for side in (true.left, true.right)
            for part in (side, *parts(side))
            for condition in getattr(part, "conditions", ())
            if isinstance(condition.operand, Constant)
        )
    else:
        assert verdict is not False


def test_a_row_that_is_there_in_another_writing_is_not_absent():
    rows = [("Peru", "18 January 1535"), ("Chile", "20 May 1535"), ("Mali", "1 May 1600")]
    table = TypedTable(Table.from_rows(rows, ["Country", "Founded"], "t"))

    # Of two rows, as 1535 is, it is undefined.
    for text, refuted in (("1535", 0), ("1601", 1), ("1 May 1600", 1), ("18 January 1535", 0)):
        assert is_refuted(says(Select(0, of(1, text)), "Peru"), table) == refuted, text


def test_what_is_first_of_dates_of_several_kinds_is_undefined():
    rows = [("a", "14 July 1948"), ("b", "25 August 1948"), ("c", "1940")]
    latest, earliest = Aggregate("maximum", 1), Aggregate("minimum", 1)
    table = TypedTable(Table.from_rows(rows, ["name", "Born"], "t"))
    with pytest.raises(UndefinedError, match="several that are as far"):
        evaluate(latest, table)
    assert evaluate(earliest, table) == Date(1940, None, None)


def test_numbers_that_single_precision_confuses_are_undefined():
    rows = [("a", "20,666,667"), ("b", "6,800,000"), ("c", "20,666,668"), ("d", "3" + "0" * 38)]
    table = TypedTable(Table.from_rows(rows, ["name", "n"], "t"))
    first, second, third = (Select(1, of(0, name)) for name in "abc")
    for statement in (
        says(Difference(first, second), "13866668"),
        says(first, third, "less"),
        says(Aggregate("sum", 1), "1", "greater"),
    ):
        with pytest.raises(UndefinedError, match="numbers up to 16777216"):
            execute(statement, table)
    assert execute(says(second, "6800000"), table)
