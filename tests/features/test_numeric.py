import itertools
import math
import pathlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mate_tf.features.numeric import (
    EQUAL,
    GREATER,
    LESS,
    Date,
    column_values,
    parse_text,
    question_values,
    ranks,
    relations,
    text_values,
    values_of_column,
)
from mate_tf.tables.columns import read_column
from tests.features.examples import HOSTILE, MANY
from tests.small import cases


def year(number: int) -> Date:
    return Date(number, None, None)


def said(value: float | Date) -> str:
    if isinstance(value, float):
        return repr(value)
    *parts, time = value
    assert time is None
    return "-".join("?" if part is None else str(part) for part in parts)


# A text, where numbers and dates begin and end in it, their values, and whether the original, whose
# defects are restored on request, reads it so.
LINES = pathlib.Path(__file__).with_name("numbers.txt").read_text(encoding="utf-8").splitlines()


@pytest.mark.parametrize("line", LINES)
def test_numbers_and_dates_in(line):
    text, expected, *original = line.split(" => ")
    spans = parse_text(text, original=bool(original))
    found = (f"{s.begin}:{s.end} {' '.join(map(said, s.values))}" for s in spans)
    assert ("; ".join(found) or "-") == expected
    if original:
        assert parse_text(text) != spans
        values = [value for span in spans for value in span.values]
        assert list(text_values(text, original=True)) == values


@given(st.text() | st.text("0123456789.,-+ marchy2004"))
def test_spans_are_in_order_and_not_nested(text):
    spans = parse_text(text)
    assert all(0 <= s.begin < s.end <= len(text) and s.values for s in spans)
    for first, second in itertools.pairwise(spans):
        assert first.begin < second.begin and first.end < second.end


def test_values_of_a_text_ignore_case_and_white_space():
    assert text_values("May  5,\n2010 or Two") == (Date(2010, 5, 5), 2.0)


@cases(
    "cells, values",
    *((["3 km", "x", "5 km", "7 km"], {0: 3.0, 2: 5.0, 3: 7.0}), (["3", "x", "y", "7"], {})),
    (["1999", "2003"], {0: year(1999), 1: year(2003)}),
    (["1999", "2050"], {0: year(1999), 1: year(2050)}),
    (["1999", "2150"], {0: 1999.0, 1: 2150.0}),
    *((["may 1999", "7", "8", "9", "10"], {1: 7.0, 2: 8.0, 3: 9.0, 4: 10.0}), ([], {})),
)
def test_a_column_has_values_of_one_type_where_most_cells_have_it(cells, values):
    assert column_values(cells) == values


@cases(
    "values, expected",
    ({0: 5.0, 2: 1.0, 3: 5.0, 4: 9.0}, {0: (2, 2), 2: (1, 3), 3: (2, 2), 4: (3, 1)}),
    ({0: year(2001), 1: Date(1999, 5, None)}, {0: (2, 1), 1: (1, 2)}),
    ({0: year(2001), 1: Date(None, 5, None)}, {}),
    ({}, {}),
)
def test_ranks_count_from_both_ends_and_equals_share_one(values, expected):
    assert ranks(values) == expected


def test_relations_are_added_up_over_the_questions_values_of_the_columns_type():
    values = {0: 1.0, 1: 2.0, 2: 3.0}
    asked = [2.0, 3.0, year(2000)]
    for order in (asked, asked[::-1]):
        assert relations(order, values) == {0: GREATER, 1: EQUAL | GREATER, 2: LESS | EQUAL}
    assert relations([year(2000)], values) == {}
    assert relations([], values) == {}
    assert relations(asked, {}) == {}
    assert relations([Date(None, 5, None)], {0: Date(1999, 6, 1)}) == {0: LESS}


values_of_a_kind = st.lists(st.floats(-4, 4).map(round).map(float)) | st.lists(
    st.builds(Date, *(st.none() | st.integers(low, low + 2) for low in (2000, 1, 1))).filter(
        lambda date: any(date)
    )
)


@given(values_of_a_kind, values_of_a_kind)
def test_relations_are_those_of_each_value_of_the_question_by_itself(asked, values):
    of_rows = dict(enumerate(values))
    expected = dict.fromkeys(of_rows, 0)
    for value in asked:
        for row, bits in relations([value], of_rows).items():
            expected[row] |= bits
    assert relations(asked, of_rows) == {row: bits for row, bits in expected.items() if bits}


@pytest.mark.parametrize("original", [False, True])
@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_hostile_texts_take_no_long_time_and_give_finite_numbers(text, original):
    values = text_values(text, original)
    assert all(isinstance(value, Date) or math.isfinite(value) for value in values)


@pytest.mark.parametrize("text", ["1e999", "-1e39", "9" * 100, "nan", "inf", "-inf", "infinity"])
def test_what_single_precision_does_not_hold_is_no_number(text):
    assert all(math.isfinite(v) and abs(v) <= 999 for v in text_values(text))


def test_many_numbers_in_question_and_column_are_compared_in_no_long_time():
    numbers = {row: float(row) for row in range(MANY)}
    assert relations(numbers.values(), numbers)[5] == LESS | EQUAL | GREATER
    assert ranks(numbers)[5] == (6, MANY - 5)


@given(st.lists(st.text() | st.text("0123456789.,-+ marchy2004"), max_size=8), st.booleans())
def test_any_column_gives_numbers_or_dates_and_ranks_within_its_size(cells, original):
    values = column_values(cells, original)
    assert len({type(value) for value in values.values()}) <= 1
    for first, last in ranks(values).values():
        assert 1 <= first <= len(cells) and 1 <= last <= len(cells)


def asked_case(line):
    """A column, a question, and whether each cell is "<", "=" or ">" the question's values."""
    column, _, rest = line.partition(" ? ")
    name, _, texts = column.partition(": ")
    question, _, signs = rest.partition(" => ")
    return pytest.param(name, texts.split(" | "), question, signs.split(), id=line)


ASKED = pathlib.Path(__file__).with_name("asked.txt").read_text(encoding="utf-8").splitlines()


@cases("name, texts, question, signs", *map(asked_case, ASKED))
def test_a_question_is_compared_in_the_units_and_times_of_a_column(name, texts, question, signs):
    column = read_column(texts, name)
    values = values_of_column(column, texts)
    bits = relations(question_values(question, column.convention), values)
    names = {0: "-", EQUAL: "=", LESS: ">", GREATER: "<"}
    assert [names.get(bits.get(row, 0), "several") for row in range(len(texts))] == signs
