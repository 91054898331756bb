"""Columns: what each cell is a value of, with cases after what people report."""

import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mate_tf.features.numeric import question_values, ranks, values_of_column
from mate_tf.tables.columns import Convention, read_column
from mate_tf.tables.table import Table
from mate_tf.tables.values import Date

COLUMNS = {
    "decimal commas": (["1.234,56", "330,10", "12.000,00"], "number", [1234.56, 330.1, 12000.0]),
    "commas with signs": (
        ["12,5", "0,75", "-1.234,56", "1.234,50 €"],
        "number",
        [12.5, 0.75, -1234.56, 1234.5],
    ),
    "groups of spaces": (["1 234,5", "12 345 678"], "number", [1234.5, 12345678.0]),
    "groups of apostrophes": (["1'234.50", "1’000"], "number", [1234.5, 1000.0]),
    "Indian groups": (["12,34,567.89", "1,00,000"], "number", [1234567.89, 100000.0]),
    "points and commas": (["1,234.56", "0.5", "12"], "number", [1234.56, 0.5, 12.0]),
    "dashes for cents": (["€1.234,-", "12,- €", "5,50 €"], "number", [1234.0, 12.0, 5.5]),
    "dashes of Swiss and Indian prices": (
        ["Fr. 5.–", "CHF 1'099.-", "Rs. 1,200/-"],
        "number",
        [5.0, 1099.0, 1200.0],
    ),
    "times a power of ten": (["1.2×10^6", "3 x 10^5", "1,5E+03"], "number", [1.2e6, 3e5, 1500.0]),
    "fractions": (
        ["½", "1½", "-2 ¼", "2 1/2", "10 7/8 in", "5"],
        "number",
        [0.5, 1.5, -2.25, 2.5, 10.875, 5.0],
    ),
    "thirds": (["⅓", "2⅔%"], "number", [0.333333333333, 2.666666666667]),
    "full width": (["１２３４", "１，２３４"], "number", [1234.0, 1234.0]),
    "Chinese and Japanese": (
        ["3万", "1億2000万", "14万2000", "5亿"],
        "number",
        [3e4, 1.2e8, 142000.0, 5e8],
    ),
    "Chinese, Japanese and Korean money": (
        ["1億2,000万円", "3만", "1억 2000만원", "-5万"],
        "number",
        [1.2e8, 3e4, 1.2e8, -5e4],
    ),
    "parentheses": (
        ["1,200.00", "(350.50)", "( 12 )", "($5.00)", "$(7)"],
        "number",
        [1200.0, -350.5, -12.0, -5.0, -7.0],
    ),
    "other signs": (
        ["'-75.63", "350.50-", "−4", "–5", "+3", "-$2"],
        "number",
        [-75.63, -350.5, -4.0, -5.0, 3.0, -2.0],
    ),
    "signs beside units": (
        ["5,00- €", "5,00 €-", "(350,50) EUR", "(12,5)%", "minus 5"],
        "number",
        [-5.0, -5.0, -350.5, -12.5, -5.0],
    ),
    "dashes for no money": (["$ -", "€-", "- kr", "$5"], "number", [0.0, 0.0, 0.0, 5.0]),
    "debits": (["350.50 DR", "△12", "7"], "number", [-350.5, -12.0, 7.0]),
    "errors of other languages": (
        ["#ZAHL!", "#¡DIV/0!", "#BLOCKED!", "#NV", "Err:511", "-1.#IND", "#DIV/0", "5"],
        "number",
        [*[None] * 7, 5.0],
    ),
    "other words for nothing": (
        ["(null)", "<NA>", "\\N", "n.v.", "k.A.", ":", "not available", "5"],
        "number",
        [*[None] * 7, 5.0],
    ),
    "errors": (["0.5", "#DIV/0!", "#N/A", "0.25", "###"], "number", [0.5, None, None, 0.25, None]),
    "missing": (["5", "", "n/a", "-", "7", "8"], "number", [5.0, None, None, None, 7.0, 8.0]),
    "timestamps": (
        ["2024-01-05T10:30:00", "2024-01-20 18:00"],
        "date",
        ["2024-01-05T10:30:00", "2024-01-20T18:00:00"],
    ),
    "timestamps with zones": (
        ["2024-01-05T10:30:00.5Z", "2024-01-05 10:30:00+02", "2024-01-05 10:30:00 CEST"],
        "date",
        ["2024-01-05T10:30:00.5", *["2024-01-05T08:30:00"] * 2],
    ),
    "timestamps of one zone": (
        ["2024-01-05T23:30:00+02:00", "2024-01-06 09:00:00 +0200"],
        "date",
        ["2024-01-05T23:30:00", "2024-01-06T09:00:00"],
    ),
    "zones beyond the year": (
        ["2023-12-31 23:30 EST", "2024-01-01T01:00:00+05:30", "20240101T000000Z"],
        "date",
        ["2024-01-01T04:30:00", "2023-12-31T19:30:00", "2024-01-01T00:00:00"],
    ),
    "the end of a day": (
        ["2024-01-05T24:00:00", "2024-01-05T10"],
        "date",
        ["2024-01-05T24:00:00", "2024-01-05T10:00:00"],
    ),
    "weeks": (
        ["2024-W05", "2024W101", "2020-W53-7", "KW 1 2025"],
        "date",
        ["2024-01-29", "2024-03-04", "2021-01-03", "2024-12-30"],
    ),
    "weeks that a year has not": (["2023-W53", "2024-W00", "2024-W1-8"], "text", [None] * 3),
    "timestamps of programs": (
        [
            "Fri Jan 5 10:30:00 2024",
            "05/Jan/2024:10:30:00 +0000",
            "Fri Jan 05 2024 10:30:00 GMT+0000 (GMT)",
            "10:30, 5 January 2024",
            "05.01.2024 10.30",
        ],
        "date",
        ["2024-01-05T10:30:00"] * 5,
    ),
    "two digits of the year": (["31/12/99", "01/02/00"], "date", ["1999-12-31", "2000-02-01"]),
    "day first": (["11/03/2011", "20/10/2011"], "date", ["2011-03-11", "2011-10-20"]),
    "month first": (["03/11/2011", "10/20/2011"], "date", ["2011-03-11", "2011-10-20"]),
    "day first with time": (["11/03/2011 14:05", "20/10/2011 08:00"], "date", None),
    "either first": (["05/01/2024", "03/02/2024"], "text", [None, None]),
    "each with a day above 12": (
        ["25/12/2023", "12/26/2023", "13.1.2024"],
        "date",
        ["2023-12-25", "2023-12-26", "2024-01-13"],
    ),
    "points between month and day": (
        ["12.25.2023", "01.02.2024"],
        "date",
        ["2023-12-25", "2024-01-02"],
    ),
    "points": (["05.01.2024", "3. 2. 24"], "date", ["2024-01-05", "2024-02-03"]),
    "months": (
        ["5 May 2024", "May 6, 2024", "7-May-24", "Mon, 8 May 2024"],
        "date",
        ["2024-05-05", "2024-05-06", "2024-05-07", "2024-05-08"],
    ),
    "months between marks": (
        ["25/Dec/2023", "25Dec2023", "December '23", "12/2023", "2023.12.25."],
        "date",
        ["2023-12-25", "2023-12-25", "2023-12", "2023-12", "2023-12-25"],
    ),
    "months of more languages": (
        ["5 janv. 2024", "6. března 2024", "7 Ocak 2024", "8 квітня 2024", "9 марта 2024 г."],
        "date",
        ["2024-01-05", "2024-03-06", "2024-01-07", "2024-04-08", "2024-03-09"],
    ),
    "blanks beside slashes": (
        ["13 / 05 / 2024", "1 / 6 / 24"],
        "date",
        ["2024-05-13", "2024-06-01"],
    ),
    "days without a year": (["13.5.", "1. 12."], "date", ["--05-13", "--12-01"]),
    "times between Chinese signs": (
        ["2024年1月5日 10時30分", "2024年1月6日 9时05分"],
        "date",
        ["2024-01-05T10:30:00", "2024-01-06T09:05:00"],
    ),
    "weekdays and months of other languages": (
        ["Montag, 25. Dezember 2023", "jeudi 1er février 2024", "25 декабря 2023", "1 lutego 2024"],
        "date",
        ["2023-12-25", "2024-02-01", "2023-12-25", "2024-02-01"],
    ),
    "other languages": (
        ["5. März 2024", "6 août 2024", "7 de mayo de 2024", "2024年1月5日"],
        "date",
        ["2024-03-05", "2024-08-06", "2024-05-07", "2024-01-05"],
    ),
    "parts of dates": (["2024-05", "May 2023"], "date", ["2024-05", "2023-05"]),
    "lengths of time": (["0:12:00", "0:09:58", "1:02:05"], "duration", [720.0, 598.0, 3725.0]),
    "days and a clock": (
        ["0 days 00:12:00", "1 day, 2:30:00", "1d 02:30:00.5", "05:00:00"],
        "duration",
        [720.0, 95400.0, 95400.5, 18000.0],
    ),
    "hours with h": (["1h30", "2h05"], "duration", [5400.0, 7500.0]),
    "minutes beside hours": (["58:12", "1:02:05"], "duration", [3492.0, 3725.0]),
    "hours and minutes with h": (["2:05h", "1:30 h"], "duration", [7500.0, 5400.0]),
    "lengths in words": (["1h 30m", "45 min", "PT2H"], "duration", [5400.0, 2700.0, 7200.0]),
    "times": (["9:58", "10:30"], "time", ["09:58:00", "10:30:00"]),
    "times to the end of the day": (
        ["08:00", "24:00", "17:30"],
        "time",
        ["08:00:00", "24:00:00", "17:30:00"],
    ),
    "times of half days": (["10:30 am", "1:05 p.m."], "time", ["10:30:00", "13:05:00"]),
    "hours alone": (["10 am", "3 p.m.", "9.15 Uhr"], "time", ["10:00:00", "15:00:00", "09:15:00"]),
    "other footnotes": (["10,151 a)", "*1,763", "500[note 2]"], "number", [10151.0, 1763.0, 500.0]),
    "footnotes": (["10,151[1]", "1,763*", "12³"], "number", [10151.0, 1763.0, 12.0]),
    "codes": (["A3", "KX101", "iPhone 14", "192.168.0.1", "v2.10"], "text", [None] * 5),
    "leading zeros": (["01234", "10115"], "text", [None, None]),
    "clubs": (["1. FC Köln", "2. FC Nürnberg"], "text", [None] * 2),
    "streets": (["12 Main St", "14 Main St", "221 Oak Ave.", "5 rue Monge"], "text", [None] * 4),
    "names behind numbers": (["10115 Berlin", "80331 Munich", "1010 Wien"], "text", [None] * 3),
    "one name behind numbers": (["5 people", "1 person", "7 pers."], "number", [5.0, 1.0, 7.0]),
    "flags behind numbers": (["10,151 e", "1,763 p", "900"], "number", [10151.0, 1763.0, 900.0]),
    "generations": (["5G", "4G", "3G"], "text", [None] * 3),
    "grams": (["5g", "40 G"], "number", [5.0, 40.0]),
    "ranges": (["1990–1995", "10-20", "3/4"], "text", [None] * 3),
    "multiples": (["$1.5B", "$800M", "$950K"], "number", [1.5e9, 8e8, 9.5e5]),
    "multiples in words": (
        ["3 million", "1,2 Mio.", "2 Mrd. €", "5 lakh", "1.5 crore"],
        "number",
        None,
    ),
    "multiples of other languages": (
        ["1,5 млн", "200 тыс.", "1,5 mln zł", "2 tys. zł", "5百"],
        "number",
        [1.5e6, 2e5, 1.5e6, 2000.0, 500.0],
    ),
    "multiples with a currency": (["$5MM", "US$1.5bn", "200 k€"], "number", [5e6, 1.5e9, 2e5]),
    "multiples that are about": (["~1.2M", "300k+", "5 mm"], "number", [1.2e6, 3e5, 5.0]),
    "multiples behind a blank": (["1.5 M", "800 K"], "number", [1.5e6, 8e5]),
    "multiples of things": (["1.5M users", "800K users"], "number", [1.5e6, 8e5]),
    "multiples that are more": (["5 million+", "300k+", "7 +"], "number", [5e6, 3e5, 7.0]),
    "kelvins": (["5 K", "12 K"], "number", [5.0, 12.0]),
    "other currencies": (
        ["NT$1,200", "Rp 500", "S/ 12.50", "50 đ", "₱5"],
        "number",
        [1200.0, 500.0, 12.5, 50.0, 5.0],
    ),
    "metres": (["5 m", "12 m"], "number", [5.0, 12.0]),
    "percent": (["12.5%", "-4 %"], "number", [12.5, -4.0]),
    "powers of ten": (["1e5", "2.5e-05"], "number", [1e5, 2.5e-05]),
    "words": (["twelve", "3rd"], "number", [12.0, 3.0]),
}


@pytest.mark.parametrize(("texts", "kind", "values"), COLUMNS.values(), ids=COLUMNS)
def test_a_column_has_a_kind_and_values(texts, kind, values):
    column = read_column(texts)
    assert column.kind == kind
    found = column.to_dict()["values"]
    assert len(found) == len(texts)
    if values is None:
        assert None not in found
    else:
        assert found == values


@pytest.mark.parametrize(
    ("name", "texts", "total", "unit"),
    [
        ("x", ["1,200.00", "(350.50)", "(5,000.00)"], -4150.5, ""),
        ("x", ["$1.5B", "$800M", "$950K"], 2.30095e9, "$"),
        ("x", ["0:12:00", "0:09:58", "1:02:05"], 5043.0, ""),
        ("Hours worked", ["7:30", "8:15", "38:00"], 193500.0, ""),
        ("Hours", ["7:30", "8:15"], 56700.0, ""),
        ("Opening hours", ["7:30", "8:15"], None, ""),
        ("x", ["5 km", "7 km"], 12.0, "km"),
        ("x", ["$5", "€3"], None, ""),
        ("x", ["5 kg", "300 g"], None, ""),
        ("x", ["2024-01-05", "2024-01-06"], None, ""),
        ("x", ["9:58", "10:30"], None, ""),
        ("year", ["1999", "2001"], None, ""),
        ("goals", ["1999", "2001"], 4000.0, ""),
        ("customer id", ["17", "18"], None, ""),
        ("date", ["20240104", "20240105"], None, ""),
        ("number of moons", ["17", "18"], 35.0, ""),
    ],
)
def test_sums_are_given_where_they_make_sense(name, texts, total, unit):
    said = read_column(texts, name).to_dict()
    assert (said["sum"], said["unit"]) == (pytest.approx(total), unit)
    assert said["average"] == pytest.approx(None if total is None else total / len(texts))


@pytest.mark.parametrize(
    ("texts", "sentence"),
    [
        (["1,5", "2,5"], "Column 'x' has a decimal comma."),
        (["1.234", "2.345"], "'1.234' was read as 1.234, with a decimal point."),
        (["1,5", "2.5", "3.5"], "both decimal points and decimal commas"),
        (["13/01/2024", "02/01/2024"], "in the order day, month, year"),
        (["01.13.2024", "02.01.2024"], "in the order month, day, year"),
        (["13.01.2024", "02.01.2024"], None),
        (["13/01/2024", "01/14/2024", "02/15/2024", "02/01/2024"], "'02/01/2024' may be either"),
        (["2024-01-05T10:30Z", "2024-01-05T10:30+01:00"], "of several zones, which were read in"),
        (["05/01/2024", "02/01/2024"], "may have the day or the month first"),
        (["05-01-2024", "02-01-2024"], "were read in the order month, day, year"),
        (["$5", "€3"], r"numbers in $ and €, which are not added up"),
        (["1,234.5", "12"], None),
    ],
)
def test_what_is_assumed_is_said(texts, sentence):
    said = read_column(texts, "x").assumed
    assert len(said) == (sentence is not None)
    assert sentence is None or sentence in said[0]


@pytest.mark.parametrize(
    ("rows", "totals", "total"),
    [
        ("N,100|S,200|Total,300", (2,), 300.0),
        ("N,100|S,200|Total,310", (), 610.0),
        ("N,100|S,200|Totally,300", (), 600.0),
        ("Sum:,300|N,100|S,200", (0,), 300.0),
        ("a,1|b,2|Total A,3|c,5|Total B,5|Grand total,8", (2, 4, 5), 8.0),
        ("N,$1.5B|S,$800M|合計,$2.3B", (2,), 2.3e9),
        ("a,0:30:00|b,0:45:00|Gesamt,1:15:00", (2,), 4500.0),
        ("N,|S,0|Total,0", (), 0.0),
    ],
)
def test_rows_that_are_totals_are_left_out_of_sums(rows, totals, total):
    table = Table.from_rows([["name", "x"], *(row.split(",") for row in rows.split("|"))])
    assert table.total_rows == totals
    assert table.column(1).to_dict(table.total_rows)["sum"] == pytest.approx(total)
    said = [it for it in table.all_assumed if "is a total of others; sums, averages and" in it]
    assert len(said) == len(totals)


def test_eight_digits_are_dates_where_the_name_says_so():
    cells = ["20240104", "20231231"]
    assert read_column(cells, "Order date").to_dict()["values"] == ["2024-01-04", "2023-12-31"]
    assert read_column(cells, "order").values == (20240104.0, 20231231.0)


def test_ranks_do_not_tie_where_single_precision_does():
    cells = ["20240104", "20240105"]
    assert ranks(values_of_column(read_column(cells), cells)) == {0: (1, 2), 1: (2, 1)}


def test_a_column_of_labels_keeps_the_order_of_their_numbers():
    cells = ["Apollo 12", "Apollo 11"]
    assert values_of_column(read_column(cells), cells) == {0: 12.0, 1: 11.0}


@pytest.mark.parametrize(
    ("question", "convention", "values"),
    [
        ("more than 1.234,56 €?", Convention(","), (1234.56,)),
        ("more than 1,234.56?", Convention(), (1234.56,)),
        ("over $1.5 million in 2004", Convention(), (1.5e6, 2004.0, Date(2004, None, None))),
        ("after 13/01/2024", Convention(day_first=True), (Date(2024, 1, 13),)),
        ("after May 5, 2024 at 10:30 am", Convention(), (Date(2024, 5, 5, 37800.0),)),
        ("under 1:02:05", Convention(), (3725.0,)),
        ("the third of five", Convention(), (3.0, 5.0)),
    ],
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
