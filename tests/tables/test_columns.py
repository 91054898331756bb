"""Columns: what each cell is a value of, with cases after what people report."""

import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mate_tf.features.numeric import question_values, ranks, values_of_column
from mate_tf.tables.columns import Convention, read_column
from mate_tf.tables.table import Table
from mate_tf.tables.values import Date
from tests.small import cases

# A name, the cells, their kind and values; "-" is none, and "any" stands for some in all cells.
COLUMNS = """\
decimal commas: 1.234,56 | 330,10 | 12.000,00 -> number 1234.56 330.1 12000
commas with signs: 12,5 | 0,75 | -1.234,56 | 1.234,50 € -> number 12.5 0.75 -1234.56 1234.5
groups of spaces: 1 234,5 | 12 345 678 -> number 1234.5 12345678
groups of apostrophes: 1'234.50 | 1’000 -> number 1234.5 1000
Indian groups: 12,34,567.89 | 1,00,000 -> number 1234567.89 100000
points and commas: 1,234.56 | 0.5 | 12 -> number 1234.56 0.5 12
dashes for cents: €1.234,- | 12,- € | 5,50 € -> number 1234 12 5.5
dashes of Swiss and Indian prices: Fr. 5.– | CHF 1'099.- | Rs. 1,200/- -> number 5 1099 1200
times a power of ten: 1.2×10^6 | 3 x 10^5 | 1,5E+03 -> number 1200000 300000 1500
fractions: ½ | 1½ | -2 ¼ | 2 1/2 | 10 7/8 in | 5 -> number 0.5 1.5 -2.25 2.5 10.875 5
thirds: ⅓ | 2⅔% -> number 0.333333333333 2.666666666667
full width: １２３４ | １，２３４ -> number 1234 1234
Chinese and Japanese: 3万 | 1億2000万 | 14万2000 | 5亿 -> number 30000 120000000 142000 500000000
Chinese, Japanese and Korean money: 1億2,000万円 | 3만 | 1억 2000만원 | -5万 -> number 120000000
  30000 120000000 -50000
parentheses: 1,200.00 | (350.50) | ( 12 ) | ($5.00) | $(7) -> number 1200 -350.5 -12 -5 -7
other signs: '-75.63 | 350.50- | −4 | –5 | +3 | -$2 -> number -75.63 -350.5 -4 -5 3 -2
signs beside units: 5,00- € | 5,00 €- | (350,50) EUR | (12,5)% | minus 5 -> number -5 -5 -350.5
  -12.5 -5
dashes for no money: $ - | €- | - kr | $5 -> number 0 0 0 5
debits: 350.50 DR | △12 | 7 -> number -350.5 -12 7
errors of other languages: #ZAHL! | #¡DIV/0! | #BLOCKED! | #NV | Err:511 | -1.#IND | #DIV/0 | 5 ->
  number - - - - - - - 5
other words for nothing: (null) | <NA> | \\N | n.v. | k.A. | : | not available | 5 -> number - - - -
  - - - 5
errors: 0.5 | #DIV/0! | #N/A | 0.25 | ### -> number 0.5 - - 0.25 -
missing: 5 |  | n/a | - | 7 | 8 -> number 5 - - - 7 8
timestamps: 2024-01-05T10:30:00 | 2024-01-20 18:00 -> date 2024-01-05T10:30:00 2024-01-20T18:00:00
timestamps with zones: 2024-01-05T10:30:00.5Z | 2024-01-05 10:30:00+02 | 2024-01-05 10:30:00 CEST ->
  date 2024-01-05T10:30:00.5 2024-01-05T08:30:00 2024-01-05T08:30:00
timestamps of one zone: 2024-01-05T23:30:00+02:00 | 2024-01-06 09:00:00 +0200 -> date
  2024-01-05T23:30:00 2024-01-06T09:00:00
zones beyond the year: 2023-12-31 23:30 EST | 2024-01-01T01:00:00+05:30 | 20240101T000000Z -> date
  2024-01-01T04:30:00 2023-12-31T19:30:00 2024-01-01T00:00:00
the end of a day: 2024-01-05T24:00:00 | 2024-01-05T10 -> date 2024-01-05T24:00:00
  2024-01-05T10:00:00
weeks: 2024-W05 | 2024W101 | 2020-W53-7 | KW 1 2025 -> date 2024-01-29 2024-03-04 2021-01-03
  2024-12-30
weeks that a year has not: 2023-W53 | 2024-W00 | 2024-W1-8 -> text - - -
timestamps of programs: Fri Jan 5 10:30:00 2024 | 05/Jan/2024:10:30:00 +0000 | Fri Jan 05 2024
  10:30:00 GMT+0000 (GMT) | 10:30, 5 January 2024 | 05.01.2024 10.30 -> date 2024-01-05T10:30:00
  2024-01-05T10:30:00 2024-01-05T10:30:00 2024-01-05T10:30:00 2024-01-05T10:30:00
two digits of the year: 31/12/99 | 01/02/00 -> date 1999-12-31 2000-02-01
day first: 11/03/2011 | 20/10/2011 -> date 2011-03-11 2011-10-20
month first: 03/11/2011 | 10/20/2011 -> date 2011-03-11 2011-10-20
day first with time: 11/03/2011 14:05 | 20/10/2011 08:00 -> date any
either first: 05/01/2024 | 03/02/2024 -> text - -
each with a day above 12: 25/12/2023 | 12/26/2023 | 13.1.2024 -> date 2023-12-25 2023-12-26
  2024-01-13
points between month and day: 12.25.2023 | 01.02.2024 -> date 2023-12-25 2024-01-02
points: 05.01.2024 | 3. 2. 24 -> date 2024-01-05 2024-02-03
months: 5 May 2024 | May 6, 2024 | 7-May-24 | Mon, 8 May 2024 -> date 2024-05-05 2024-05-06
  2024-05-07 2024-05-08
months between marks: 25/Dec/2023 | 25Dec2023 | December '23 | 12/2023 | 2023.12.25. -> date
  2023-12-25 2023-12-25 2023-12 2023-12 2023-12-25
months of more languages: 5 janv. 2024 | 6. března 2024 | 7 Ocak 2024 | 8 квітня 2024 | 9 марта 2024
  г. -> date 2024-01-05 2024-03-06 2024-01-07 2024-04-08 2024-03-09
blanks beside slashes: 13 / 05 / 2024 | 1 / 6 / 24 -> date 2024-05-13 2024-06-01
days without a year: 13.5. | 1. 12. -> date --05-13 --12-01
times between Chinese signs: 2024年1月5日 10時30分 | 2024年1月6日 9时05分 -> date
  2024-01-05T10:30:00 2024-01-06T09:05:00
weekdays and months of other languages: Montag, 25. Dezember 2023 | jeudi 1er février 2024 | 25
  декабря 2023 | 1 lutego 2024 -> date 2023-12-25 2024-02-01 2023-12-25 2024-02-01
other languages: 5. März 2024 | 6 août 2024 | 7 de mayo de 2024 | 2024年1月5日 -> date 2024-03-05
  2024-08-06 2024-05-07 2024-01-05
parts of dates: 2024-05 | May 2023 -> date 2024-05 2023-05
lengths of time: 0:12:00 | 0:09:58 | 1:02:05 -> duration 720 598 3725
days and a clock: 0 days 00:12:00 | 1 day, 2:30:00 | 1d 02:30:00.5 | 05:00:00 -> duration 720 95400
  95400.5 18000
hours with h: 1h30 | 2h05 -> duration 5400 7500
minutes beside hours: 58:12 | 1:02:05 -> duration 3492 3725
hours and minutes with h: 2:05h | 1:30 h -> duration 7500 5400
lengths in words: 1h 30m | 45 min | PT2H -> duration 5400 2700 7200
times: 9:58 | 10:30 -> time 09:58:00 10:30:00
times to the end of the day: 08:00 | 24:00 | 17:30 -> time 08:00:00 24:00:00 17:30:00
times of half days: 10:30 am | 1:05 p.m. -> time 10:30:00 13:05:00
hours alone: 10 am | 3 p.m. | 9.15 Uhr -> time 10:00:00 15:00:00 09:15:00
other footnotes: 10,151 a) | *1,763 | 500[note 2] -> number 10151 1763 500
footnotes: 10,151[1] | 1,763* | 12³ -> number 10151 1763 12
codes: A3 | KX101 | iPhone 14 | 192.168.0.1 | v2.10 -> text - - - - -
leading zeros: 01234 | 10115 -> text - -
clubs: 1. FC Köln | 2. FC Nürnberg -> text - -
streets: 12 Main St | 14 Main St | 221 Oak Ave. | 5 rue Monge -> text - - - -
names behind numbers: 10115 Berlin | 80331 Munich | 1010 Wien -> text - - -
one name behind numbers: 5 people | 1 person | 7 pers. -> number 5 1 7
flags behind numbers: 10,151 e | 1,763 p | 900 -> number 10151 1763 900
generations: 5G | 4G | 3G -> text - - -
grams: 5g | 40 G -> number 5 40
ranges: 1990–1995 | 10-20 | 3/4 -> text - - -
multiples: $1.5B | $800M | $950K -> number 1500000000 800000000 950000
multiples in words: 3 million | 1,2 Mio. | 2 Mrd. € | 5 lakh | 1.5 crore -> number any
multiples of other languages: 1,5 млн | 200 тыс. | 1,5 mln zł | 2 tys. zł | 5百 -> number 1500000
  200000 1500000 2000 500
multiples with a currency: $5MM | US$1.5bn | 200 k€ -> number 5000000 1500000000 200000
multiples that are about: ~1.2M | 300k+ | 5 mm -> number 1200000 300000 5
multiples behind a blank: 1.5 M | 800 K -> number 1500000 800000
multiples of things: 1.5M users | 800K users -> number 1500000 800000
multiples that are more: 5 million+ | 300k+ | 7 + -> number 5000000 300000 7
kelvins: 5 K | 12 K -> number 5 12
other currencies: NT$1,200 | Rp 500 | S/ 12.50 | 50 đ | ₱5 -> number 1200 500 12.5 50 5
metres: 5 m | 12 m -> number 5 12
millions in capitals: 2.5M | 12 M | - -> number 2500000 12000000 -
capitals of metres: 100M | 12M | 5 -> number 100 12 5
capitals of places: 1B | 2 | 12B -> number 1 2 12
multiples of multiples: ₹2.5 lakh crore | 1 lakh | R$ 15 mil -> number 2500000000000 100000 15000
currencies of more places: RM 5 | 7 TL | ৳1,200 | ₲ 5.000 -> number 5 7 1200 5
no numbers yet: Loading... | inf | -∞ | #¿NOMBRE? | 5 -> number - - - - 5
weekdays behind: 2024年1月5日 星期五 | 2024/1/6（土） | 2024년 1월 7일 (일) 10:30 | 2024-01-08(一)
  -> date 2024-01-05 2024-01-06 2024-01-07T10:30:00 2024-01-08
points behind the year: 2024. január 5. | 2023. december 31. -> date 2024-01-05 2023-12-31
percent: 12.5% | -4 % -> number 12.5 -4
raised powers of ten: 1.2×10⁶ | 3 × 10⁻³ | 1,5 x 10¹² m³ -> number 1200000 0.003 1500000000000
arrows up and down: ▲ 3.2% | ▼ 5% | 0.0% | 1% ▲ -> number 3.2 -5 0 1
arrows of Japan: 1,200 | ▲350 | △12 -> number 1200 -350 -12
arrows up alone: ▲3.2% | ▲5% -> text - -
Soll and Haben: 350,50 S | 20,00 H | 1.200,00S -> number -350.5 20 -1200
débito and crédito: 350,50 D | 20,00 C -> number -350.5 20
seconds and hours: 5 s | 1.5 h -> duration 5 5400
debits before: DR 350.50 | CR 20.00 -> number -350.5 20
dashes far behind: 350,50 − | 20,00 -> number -350.5 20
south and west: 33.9° S | 40.7° N | 74.0°W -> number -33.9 40.7 -74
multiples before currencies: 1.2M USD | 3,4 M kr | 1 Md€ | 5 T€ | $(1.2)M -> number 1200000 3400000
  1000000000 5000 -1200000
multiples of Asia and Brazil: 1千万 | 3百万円 | 5 juta | 2,5 bilhões | 1 mil millones -> number
  10000000 3000000 5000000 2500000000 1000000000
currencies without decimals: Rp 12.345 | Rp 500 -> number 12345 500
dashes with notes: 5 | —* | -[1] | n/a† | TBC -> number 5 - - - -
results are no numbers: 4 – 3 | 0 – 2 | 3 & 2 -> text - - -
halves, brackets and underscores: [350.50] | (5 | 1_000 -> text - - -
timestamps of other programs: 05-JAN-24 10.30.00.0 AM | 2024:01:05 10:30:00 | [05/Jan/2024:10:30:00
  +0000] | 2024-01-05 10:30:00 Europe/Rome | 05/01/2024 à 10h30 | 2024年1月5日 午前10:30 -> date
  2024-01-05T10:30:00 2024-01-05T10:30:00 2024-01-05T10:30:00 2024-01-05T10:30:00 -
  2024-01-05T10:30:00
zones of one digit: 2024-01-05 10:30 UTC+1 | 2024-01-05 10:30 GMT-05:00 -> date 2024-01-05T09:30:00
  2024-01-05T15:30:00
weekdays behind, months first: 5 January 2024 (Fri) | Jan-06-2024 | the 7th of January 2024 | 8
  يناير 2024 -> date 2024-01-05 2024-01-06 2024-01-07 2024-01-08
times with zones: 09:58 CET | 22:30Z -> time 09:58:00 22:30:00
lengths with signs: +1:30:00 | -0:45:00 -> duration 5400 -2700
seconds beside minutes: 59.21 | 1:02.05 | +0.5 -> duration 59.21 62.05 0.5
powers of ten: 1e5 | 2.5e-05 -> number 100000 2.5e-05
words: twelve | 3rd -> number 12 3"""


def column_case(line):
    name, _, rest = line.partition(": ")
    texts, _, said = rest.rpartition(" -> ")
    kind, *values = said.split()
    read = float if kind in ("number", "duration") else str
    expected = [None if value == "-" else read(value) for value in values if value != "any"]
    return pytest.param([text.strip() for text in texts.split("|")], kind, expected, id=name)


CASES = [*map(column_case, COLUMNS.replace("\n  ", " ").split("\n"))]


@cases("texts, kind, values", *CASES)
def test_a_column_has_a_kind_and_values(texts, kind, values):
    column = read_column(texts)
    assert column.kind == kind
    found = column.to_dict()["values"]
    assert len(found) == len(texts)
    assert found == values if values else None not in found


@cases(
    "name, texts, total, unit",
    ("x", ["1,200.00", "(350.50)", "(5,000.00)"], -4150.5, ""),
    ("x", ["$1.5B", "$800M", "$950K"], 2.30095e9, "$"),
    ("x", ["0:12:00", "0:09:58", "1:02:05"], 5043.0, ""),
    ("Hours worked", ["7:30", "8:15", "38:00"], 193500.0, ""),
    *(("Hours", ["7:30", "8:15"], 56700.0, ""), ("Opening hours", ["7:30", "8:15"], None, "")),
    *(("x", ["5 km", "7 km"], 12.0, "km"), ("x", ["$5", "€3"], None, "")),
    *(("x", ["5 kg", "300 g"], None, ""), ("x", ["2024-01-05", "2024-01-06"], None, "")),
    *(("x", ["9:58", "10:30"], None, ""), ("year", ["1999", "2001"], None, "")),
    *(("goals", ["1999", "2001"], 4000.0, ""), ("customer id", ["17", "18"], None, "")),
    *(("customer_id", ["17", "18"], None, ""), ("videos", ["17", "18"], 35.0, "")),
    *(("date", ["20240104", "20240105"], None, ""), ("number of moons", ["17", "18"], 35.0, "")),
)
def test_sums_are_given_where_they_make_sense(name, texts, total, unit):
    said = read_column(texts, name).to_dict()
    assert (said["sum"], said["unit"]) == (pytest.approx(total), unit)
    assert said["average"] == pytest.approx(None if total is None else total / len(texts))


@cases(
    "texts, sentence",
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
)
def test_what_is_assumed_is_said(texts, sentence):
    said = read_column(texts, "x").assumed
    assert len(said) == (sentence is not None)
    assert sentence is None or sentence in said[0]


@cases(
    "rows, totals, total",
    *(("N,100|S,200|Total,300", (2,), 300.0), ("N,100|S,200|Total,310", (), 610.0)),
    *(("N,100|S,200|Totally,300", (), 600.0), ("Sum:,300|N,100|S,200", (0,), 300.0)),
    ("a,1|b,2|Total A,3|c,5|Total B,5|Grand total,8", (2, 4, 5), 8.0),
    ("N,$1.5B|S,$800M|合計,$2.3B", (2,), 2.3e9),
    *(("a,0:30:00|b,0:45:00|Gesamt,1:15:00", (2,), 4500.0), ("N,|S,0|Total,0", (), 0.0)),
)
def test_rows_that_are_totals_are_left_out_of_sums(rows, totals, total):
    table = Table.from_rows([["name", "x"], *(row.split(",") for row in rows.split("|"))])
    assert table.total_rows == totals
    assert table.column(1).to_dict(table.total_rows)["sum"] == pytest.approx(total)
    said = [it for it in table.all_assumed if "is a total of others; sums, averages and" in it]
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
