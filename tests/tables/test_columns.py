"""Columns: what each cell is a value of, and in which unit, with cases after what people report."""

import datetime
import pathlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mate_tf.features.numeric import question_values, ranks, values_of_column
from mate_tf.tables.cell_texts import cell_text, cell_texts
from mate_tf.tables.columns import Convention, read_column
from mate_tf.tables.table import Table
from mate_tf.tables.values import Date, _any_cell, _plain_cell
from tests.small import cases, stored_cases


def lines_of(name):
    """The lines of a file beside this one; those that begin with blanks go on."""
    text = pathlib.Path(__file__).with_name(name).read_text(encoding="utf-8").rstrip("\n")
    return text.replace("\n  ", " ").split("\n")


def column_case(line):
    """A name, the cells, their kind and values; "-" is none, "any" stands for some in all cells."""
    name, _, rest = line.partition(": ")
    texts, _, said = rest.rpartition(" -> ")
    kind, *values = said.split()
    read = float if kind in ("number", "duration") else str
    expected = [None if value == "-" else read(value) for value in values if value != "any"]
    return pytest.param([text.strip() for text in texts.split("|")], kind, expected, id=name)


@cases("texts, kind, values", *map(column_case, lines_of("columns.txt")))
def test_a_column_has_a_kind_and_values(texts, kind, values):
    column = read_column(texts)
    assert column.kind == kind
    found = column.to_dict()["values"]
    assert len(found) == len(texts)
    assert found == values if values else None not in found


@stored_cases("name, texts, total, unit")
def test_sums_are_given_where_they_make_sense(name, texts, total, unit):
    said = read_column(texts, name).to_dict()
    assert (said["sum"], said["unit"]) == (pytest.approx(total), unit)
    assert said["average"] == pytest.approx(None if total is None else total / len(texts))


@stored_cases("texts, sentence")
def test_what_is_assumed_is_said(texts, sentence):
    said = read_column(texts, "x").assumed
    assert len(said) == (sentence is not None)
    assert sentence is None or sentence in said[0]


@stored_cases("rows, totals, total")
def test_rows_that_are_totals_are_left_out_of_sums(rows, totals, total):
    table = Table.from_rows([["name", "x"], *(row.split(",") for row in rows.split("|"))])
    assert table.total_rows == totals
    assert table.column(1).to_dict(table.total_rows)["sum"] == pytest.approx(total)
    said = [it for it in table.all_assumed if " others; sums, averages and" in it]
    assert len(said) == len(totals)


def test_eight_digits_are_dates_by_name_and_ranks_tie_neither_for_them_nor_for_labels():
    cells = ["20240104", "20231231"]
    for name in "Order date", "order_date", "Buchungsdatum", "取引日付", "Sipariş tarihi":
        assert read_column(cells, name).to_dict()["values"] == ["2024-01-04", "2023-12-31"]
    hours = read_column(["9h", "14h30", "0h"], "heure").to_dict()["values"]
    assert hours == ["09:00:00", "14:30:00", "00:00:00"]
    assert read_column(cells, "order").values == (20240104.0, 20231231.0)
    cells = ["20240104", "20240105"]
    assert ranks(values_of_column(read_column(cells), cells)) == {0: (1, 2), 1: (2, 1)}
    cells = ["Apollo 12", "Apollo 11"]
    assert values_of_column(read_column(cells), cells) == {0: 12.0, 1: 11.0}


@cases(
    "question, convention, values",
    ("more than 1.234,56 €?", Convention(","), (1234.56,)),
    ("more than 1,234.56?", Convention(), (1234.56,)),
    ("over $1.5 million in 2004", Convention(), (1.5e6, 2004.0, Date(2004, None, None))),
    ("after 13/01/2024", Convention(day_first=True), (Date(2024, 1, 13),)),
    ("after May 5, 2024 at 10:30 am", Convention(), (Date(2024, 5, 5, 37800.0),)),
    ("under 1:02:05", Convention(), (3725.0,)),
    ("the third of five", Convention(), (3.0, 5.0)),
    ("over 2 hours 30 minutes?", Convention(unit="min"), (150.0,)),
    ("2h and 30m in 2 races", Convention(unit="s"), (9000.0, 2.0)),
    ("taller than 5 ft 6 in", Convention(unit="in"), (66.0,)),
    ("between 2 hours and 3 hours", Convention(unit="h"), (2.0, 3.0)),
)
def test_a_question_is_read_as_the_column(question, convention, values):
    assert question_values(question, convention) == values


AMOUNTS = st.lists(st.integers(-(10**9), 10**9).map(lambda n: n / 100), min_size=3, max_size=8)


@given(AMOUNTS.filter(lambda a: any(round(n * 100) % 10 for n in a)), st.booleans())
def test_amounts_are_read_back_in_the_way_they_are_grouped(amounts, has_comma):
    texts = [f"{amount:,.2f}" for amount in amounts]
    if has_comma:
        texts = [text.translate({44: ".", 46: ","}) for text in texts]
    assert list(read_column(texts).values) == amounts


@given(st.lists(st.dates(datetime.date(1970, 1, 1)), min_size=1, max_size=6))
def test_dates_are_read_back_in_any_certain_form(dates):
    dates = [date for date in dates if date.year < 2069] or [datetime.date(2000, 1, 31)]
    for form in "%Y-%m-%d", "%d.%m.%Y", "%d %B %Y", "%B %d, %Y", "%Y-%m-%dT12:00:00":
        found = read_column([date.strftime(form) for date in dates]).to_dict()["values"]
        assert [value[:10] for value in found] == [date.isoformat() for date in dates]


PIECES = (
    "0 1 12 99 2024 05 . , ' - \u2013 + ( ) / : % $ \u20ac k m b min min. h s d million mio. may "
    "m\u00e4rz th st of t z am p.m. e5 \u4e07 \u5104 \u5e74 \u6708 [1] * \u00b2 kg usd rs. # about"
).split(" ")
LIKE_VALUES = st.lists(st.sampled_from([*PIECES, " ", " "]), max_size=9).map("".join)


@given(st.lists(st.text(max_size=12) | LIKE_VALUES, min_size=1, max_size=6))
def test_any_texts_are_a_column(texts):
    column = read_column(texts, "x")
    assert len(column.values) == len(column.numbers) == len(texts)
    assert column.kind in ("number", "date", "time", "duration", "text", "empty")


@given(st.from_regex(r"-?\d{1,14}(\.\d{1,22})?|[0129]\d{3}-[01]\d-[0-3]\d", fullmatch=True))
def test_plain_cells_are_read_as_all_others(text):
    assert (plain := _plain_cell(text)) is None or repr(plain) == repr(_any_cell(text))


@given(st.lists(st.floats() | st.integers(-(2**54), 2**54).map(float), min_size=101))
def test_many_floats_have_the_texts_of_each(numbers):
    assert cell_texts(numbers) == [cell_text(np.float64(number)) for number in numbers]


def unit_case(line):
    """A column, then its kind and unit, values, order of rows and sum; "any" is not compared."""
    column, *expected = line.split(" => ")
    name, _, texts = column.partition(": ")
    return pytest.param(name, texts.split(" | "), *expected, id=column)


@cases("name, texts, kind, values, order, total", *map(unit_case, lines_of("units.txt")))
def test_a_column_is_read_in_one_unit(name, texts, kind, values, order, total):
    column = read_column(texts, name)
    by_row = values_of_column(column, texts)
    ranked = {row: rank for row, (rank, _) in ranks(by_row).items()}
    said = column.to_dict()
    shown = [f"{it:.12g}" if isinstance(it, float) else str(it) for it in said["values"]]
    found = (
        (kind, f"{said['kind']} {said['unit'] or '-'}"),
        (values, "-" if set(said["values"]) == {None} else " ".join(shown)),
        (order, " ".join(map(str, sorted(ranked, key=ranked.__getitem__))) or "none"),
    )
    assert all("any" in wanted or wanted == got for wanted, got in found), found
    if total != "any":
        expected = None if total == "none" else pytest.approx(float(total), rel=1e-9)
        assert said["sum"] == expected
