"""Numbers and dates in text, their order within a column and their relation to a question's.

Three features of a cell tell the encoder about numbers: the rank in the column, the rank from the
other end, and how the cell compares with the question's numbers (Herzig et al., 2020, section 3).

Numbers are the values of columns (tables/columns.py): `values_of_column` and `question_values`. Of
texts and of the release the first number of each text is read, in single precision, whatever its
column holds: `column_values` and `text_values`. Words are numbers from zero to twelve and zeroth to
twelfth. A month alone must be written in full; a year alone has four digits.

The argument `original` reads numbers as the authors' release does, and so as its checkpoints saw
them. Every year is from 1700 to 2016. "fith" is a number word and "fifth" is not. "sept" is a month
only if it is capitalised, which cells never are. No month may end in a full stop and no day in "st"
or "th". February 29 needs a year. Only a hyphen is a minus sign.

The time of every function is linear in the length of its texts, except for sorting.
"""

import calendar
import datetime
import functools
import math
import re
import struct
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from mate_tf.features.english import normalize_for_match
from mate_tf.tables.columns import (
    SHARE_OF_KIND,
    Column,
    Convention,
    date_of,
    number_of,
    seconds_of_clock,
    unlike_units,
    version_number,
)
from mate_tf.tables.notations import CARDINALS, MONTHS, ORDINALS, any_of, value_in_sentence
from mate_tf.tables.table import Table
from mate_tf.tables.units import UNITS, in_unit
from mate_tf.tables.values import SEVERAL_PARTS, Date, plain_text, read_cell

NumericValue = float | Date


class NumericSpan(NamedTuple):
    """A span text[begin:end] and its possible meanings; "2004" is a number and a year."""

    begin: int
    end: int
    values: tuple[NumericValue, ...]


EQUAL, LESS, GREATER = 1, 2, 4

_MINUS = "\u2212"
_LONGEST_REMEMBERED = 64  # characters
_SINGLE = struct.Struct("f")
LEAST_TOO_LARGE = 2.0**128 - 2.0**103  # numbers from here on round to infinity
_WORD = re.compile(r"[^\W_]+")
_DIGIT = re.compile(r"\d")
_ORDINAL_SUFFIX = re.compile("(?:st|nd|rd|th)$")

# What a question says of numbers with units, of versions, times and days.
_UNIT = re.compile(rf"[ -]?({any_of(UNITS - {'in', 'a', 's'})})(?![^\W\d_])")
_GLUED = re.compile(rf"(\d)({any_of(it for it in UNITS - {'s'} if it.isalpha())})\b")  # no 1990s
_MILLIONS, _BILLIONS = re.compile(r"(?<=\d) ?M\b"), re.compile(r"(?<=\d) ?B\b")
_THOUSANDS, _MULTIPLE = re.compile(r"(?<=\d)k\b"), re.compile(r"(\d)([mb])\b")
_VERSION = re.compile(r"\d+(?:\.\d+)+|(?<=version )\d+|\bv\d+")
_HOUR = re.compile(r"\b(\d{1,2}) ?([ap])\.?m\b\.?")
_NOON, _MIDNIGHT = re.compile(r"\bnoon\b"), re.compile(r"\bmidnight\b")
_WEEK = re.compile(rf"(first|last) week (?:of|in) ({'|'.join(MONTHS)})(?:,? (\d{{4}}))?")
_THE_DAY = re.compile(
    r"\b(?:on|by|after|before|since|until|from) the (\d{1,2})(?:st|nd|rd|th)\b"
    r"(?= (?:and|or|in|at)\b|[?.,!]|$)"
)

_MONTH_NUMBERS = {month[:3]: number for number, month in enumerate(MONTHS, start=1)}
WEEKDAYS = "monday tuesday wednesday thursday friday saturday sunday".split()
_LONGEST_DATE = len("wednesday, september. 30th")  # characters
_MOST_WORDS_OF_A_DATE = 3
_WORDS_OF_DATES = frozenset([*MONTHS, *_MONTH_NUMBERS, *WEEKDAYS, "sept"])


class _Rules(NamedTuple):
    """The rules that differ between this project and the authors' release."""

    number: re.Pattern[str]
    words: Mapping[str, float]
    dates: Sequence[Sequence[re.Pattern[str]]]  # of one, two and three words
    years: range  # of dates with a month
    lone_years: range
    year_of_none: int  # the year for which a day and a month without a year are checked


def _rules(original: bool) -> _Rules:
    ordinals = ["fith" if original and word == "fifth" else word for word in ORDINALS]
    full_month = f"(?P<month>(?i:{'|'.join(MONTHS)}))"
    names = f"{'|'.join(MONTHS)}|{'|'.join(_MONTH_NUMBERS)}"
    month = rf"(?P<month>(?i:{names})|Sept)" if original else rf"(?P<month>(?i:{names}|sept))\.?"
    digits, year = r"(?P<month>\d{1,2})", r"(?P<year>\d{4})"
    day = r"(?P<day>\d{1,2})"
    ordinal_day = day if original else rf"{day}(?:st|nd|rd|th)?"
    dates = (
        (full_month, f"{year}s?"),
        (f"{month} {year}", f"{month} {ordinal_day}", f"{ordinal_day} {month}", f"{year}-{digits}"),
        (
            f"(?i:{'|'.join(WEEKDAYS)}), {month} {ordinal_day}",
            f"{month} {ordinal_day}, {year}",
            f"{ordinal_day} {month} {year}",
            f"{digits}-{day}-{year}",
            f"{year}-{digits}-{day}",
            rf"{day}\.{digits}\.{year}",
        ),
    )
    return _Rules(
        number=re.compile(
            rf"(?:(?:^|\s)[+{'' if original else _MINUS}-])?"
            r"(?:\.\d+|\d+(?:,\d\d\d)*(?:\.\d*)?)"
        ),
        words={word: float(n) for words in (CARDINALS, ordinals) for n, word in enumerate(words)},
        dates=[list(map(re.compile, patterns)) for patterns in dates],
        years=range(1700, 2017) if original else range(1, 10_000),
        lone_years=range(1700, 2017) if original else range(1500, 2101),
        year_of_none=1900 if original else 2000,
    )


_RULES, _ORIGINAL_RULES = _rules(original=False), _rules(original=True)
_VALUES_IN_WORDS = frozenset([*_RULES.words, *_ORIGINAL_RULES.words, *MONTHS])


def is_single(number: float) -> bool:
    """Whether a number is finite in single precision."""
    return abs(number) < LEAST_TOO_LARGE


def parse_text(text: str, original: bool = False) -> list[NumericSpan]:
    """The numbers and dates in a text, from left to right; the longest of nested ones."""
    rules = _ORIGINAL_RULES if original else _RULES
    values: dict[tuple[int, int], list[NumericValue]] = {}
    if _DIGIT.search(text):
        for match in rules.number.finditer(text):
            number = _parse_number(match[0])
            if number is not None:
                values[match.span()] = [number]
    begins: list[int] = []  # where the words begin, up to this one, that may be part of a date
    for match in _WORD.finditer(text):
        word, span = match[0], match.span()
        is_number = word[0].isdecimal()
        if span not in values and (is_number or word in rules.words):
            number = _parse_number(word) if is_number else rules.words[word]
            if number is not None:
                values[span] = [number]
        if not ((is_number and len(word) <= 5) or word.lower() in _WORDS_OF_DATES):
            begins.clear()
            continue
        begins = [*begins[1 - _MOST_WORDS_OF_A_DATE :], span[0]]
        for number_of_words, begin in enumerate(reversed(begins), start=1):
            date = _parse_date(text[begin : span[1]], rules, number_of_words)
            if date is not None:
                values.setdefault((begin, span[1]), []).append(date)
    spans = []
    reached = 0
    for begin, end in sorted(values, key=lambda span: (span[0], -span[1])):
        if end > reached:  # otherwise it is inside another one
            reached = end
            spans.append(NumericSpan(begin, end, tuple(values[begin, end])))
    return spans


def text_values(text: str, original: bool = False) -> tuple[NumericValue, ...]:
    """All meanings of all numbers and dates in the normalised text, from left to right."""
    values = _values if len(text) <= _LONGEST_REMEMBERED else _values.__wrapped__
    return values(text, original)


@functools.lru_cache(maxsize=1 << 13)
def _values(text: str, original: bool) -> tuple[NumericValue, ...]:
    text = normalize_for_match(text)
    if not _DIGIT.search(text) and _VALUES_IN_WORDS.isdisjoint(_WORD.findall(text)):
        return ()
    return tuple(value for span in parse_text(text, original) for value in span.values)


def column_values(cells: Sequence[str], original: bool = False) -> dict[int, NumericValue]:
    """The values of a column's cells by row, all of the type that is most common in the column.

    Empty if less than 70 % of the cells have a value of that type. Dates win a tie, because years
    are numbers too.
    """
    firsts: dict[type, dict[int, NumericValue]] = {Date: {}, float: {}}
    for row, cell in enumerate(cells):
        for value in text_values(cell, original):
            firsts[type(value)].setdefault(row, value)
    commonest = max(firsts.values(), key=len)
    return commonest if len(commonest) >= SHARE_OF_KIND * len(cells) else {}


def values_of_column(column: Column, cells: Sequence[str]) -> dict[int, NumericValue]:
    """The values of a column's cells by row, as its table reads them.

    A column of text has those of `column_values`, which order "Apollo 11" and "Apollo 12". Years
    without other numbers are Dates; questions can compare both numbers and dates with them.
    """
    if column.kind == "number" and unlike_units(column.units):
        return {}  # none of $50 and €45 is largest
    if column.convention.kind == "version":
        return {row: version_number(it) for row, it in enumerate(cells) if _DIGIT.search(it)}
    if column.kind == "text":
        read = zip(cells, map(read_cell, cells), strict=True)
        return column_values(
            [text if cell.text and not cell.is_open else "" for text, cell in read]
        )
    if column.kind == "number":
        numbers = {row: value for row, value in enumerate(column.numbers) if value is not None}
        if all(read_cell(cells[row]).is_year for row in numbers):
            return {row: Date(int(value), None, None) for row, value in numbers.items()}
        return {row: value for row, value in numbers.items() if is_single(value)}
    return {row: value for row, value in enumerate(column.values) if value is not None}


def values_in_column(table: Table, index: int) -> dict[int, NumericValue]:
    """The same of a table's column."""
    return values_of_column(table.column(index), [row[index] for row in table.rows])


def question_values(text: str, convention: Convention) -> tuple[NumericValue, ...]:
    """The values in a question, as version 2 reads them beside a column of that convention."""
    if convention.kind == "version":
        return tuple(map(version_number, _VERSION.findall(text)))
    values, text = _respelled(text, convention)
    reached = 0
    for match in value_in_sentence().finditer(text):
        values += text_values(text[reached : match.start()])
        reached = match.end()
        cell = read_cell(match[0])
        date, (number, unit) = date_of(cell, convention), number_of(cell, convention)
        if number is not None:
            behind = _UNIT.match(text, match.end())
            number = in_unit(number, behind[1] if behind else unit, convention.unit)
            values.append(number)
        if cell.is_year and number is not None:
            date = Date(int(match[0]), None, None)
        if date is not None:
            values.append(date)
        elif number is None and cell.clock:
            time = seconds_of_clock(cell.clock, convention.in_hours)
            values.append(Date(None, None, None, time) if convention.kind == "date" else time)
        elif cell.duration is not None:
            values.append(cell.duration)
    return (*values, *text_values(text[reached:]))


def _respelled(text: str, convention: Convention) -> tuple[list[NumericValue], str]:
    """Days that a question about dates names, and the rest of it in the words of cells."""
    if not convention.unit:
        text = _BILLIONS.sub(" billion", _MILLIONS.sub(" million", text))
    text = _MULTIPLE.sub(r"\1 \2", _THOUSANDS.sub(" thousand", plain_text(text)))
    text = SEVERAL_PARTS.sub(_in_one_unit, text)
    if convention.unit:
        text = _GLUED.sub(r"\1 \2", text)
    values: list[NumericValue] = []
    if convention.kind in ("date", "time"):
        text = _HOUR.sub(r"\1:00 \2m", text)
        text = _NOON.sub("12:00 pm", _MIDNIGHT.sub("12:00 am", text))
    if convention.kind == "date":
        for match in _WEEK.finditer(text):
            month, year = MONTHS.index(match[2]) + 1, int(match[3]) if match[3] else None
            last = calendar.monthrange(year or 2000, month)[1]
            begin = 1 if match[1] == "first" else last - 6
            values += [Date(year, month, day) for day in range(begin, begin + 7)]
        values += [Date(None, None, int(match[1])) for match in _THE_DAY.finditer(text)]
        text = _THE_DAY.sub("", _WEEK.sub("", text))
    return values, text


def _in_one_unit(parts: re.Match[str]) -> str:
    """Parts such as "2 hours 30 minutes" in one unit; as they are where they are several values."""
    cell = read_cell(parts[0])
    if cell.duration is not None:
        return f"{cell.duration:.12g} sec"
    return parts[0] if cell.point is None else f"{cell.point:.12g} {cell.unit}"


def ranks(values: Mapping[int, NumericValue]) -> dict[int, tuple[int, int]]:
    """For each row its rank from the smallest and from the largest; equal values share a rank."""
    keys = _sort_keys(values.values()) or []
    order = {key: rank for rank, key in enumerate(sorted(set(keys)))}
    return {
        row: (order[key] + 1, len(order) - order[key])
        for row, key in zip(values, keys, strict=False)
    }


def relations(
    question_values: Iterable[NumericValue], values: Mapping[int, NumericValue]
) -> dict[int, int]:
    """For each row, bits that say how the question's values compare with the row's value.

    They are EQUAL, LESS (the question's value is less than the cell's) and GREATER, for all of the
    question's values with the column's type. A column's values are all numbers or all dates.
    """
    comparable: defaultdict[Any, list[NumericValue]] = defaultdict(list)
    for value in question_values if values else ():
        given = tuple(field is None for field in value) if isinstance(value, Date) else None
        comparable[given].append(value)
    bits = dict.fromkeys(values, 0)
    for question in comparable.values():
        keys = _sort_keys([*values.values(), *question])
        if keys is None:
            continue
        others = set(keys[len(values) :])
        least, most = min(others), max(others)
        for row, key in zip(values, keys, strict=False):
            bits[row] |= EQUAL * (key in others) | LESS * (least < key) | GREATER * (most > key)
    return {row: bit for row, bit in bits.items() if bit}


def _sort_keys(values: Iterable[NumericValue]) -> list[Any] | None:
    """Keys that compare the values, dates by the fields that all have; None if none compare."""
    values = list(values)
    dates = [value for value in values if isinstance(value, Date)]
    if not dates:
        return values
    common = [i for i in range(4) if all(date[i] is not None for date in dates)]
    if len(dates) < len(values) or not common:
        return None
    return [tuple(date[i] for i in common) for date in dates]


def _parse_number(text: str) -> float | None:
    digits = _ORDINAL_SUFFIX.sub("", text).replace(",", "").replace(_MINUS, "-")
    try:
        number = _SINGLE.unpack(_SINGLE.pack(float(digits)))[0]
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def _parse_date(text: str, rules: _Rules, number_of_words: int) -> Date | None:
    if len(text) > _LONGEST_DATE:
        return None
    matches = (pattern.fullmatch(text) for pattern in rules.dates[number_of_words - 1])
    match = next(filter(None, matches), None)
    if match is None:
        return None
    fields = {
        name: _MONTH_NUMBERS.get(part[:3].lower()) or int(part)
        for name, part in match.groupdict().items()
    }
    year, month, day = (fields.get(name) for name in ("year", "month", "day"))
    if year is not None and year not in (rules.lone_years if month is None else rules.years):
        return None
    try:
        datetime.date(**{"year": rules.year_of_none, "month": 1, "day": 1} | fields)
    except ValueError:
        return None
    return Date(year, month, day)
