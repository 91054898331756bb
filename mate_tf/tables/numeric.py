"""Numbers and dates in text, their order within a column and their relation to a question's.

TAPAS tells the encoder about numbers by three features of a cell: its rank in the column, the rank
counted from the other end, and how it compares with the numbers in the question (Herzig et al.,
2020, section 3). What counts as a number or date is what published checkpoints were trained with:
a year has four digits and lies between 1700 and 2016, a lone month is written in full, numbers are
single precision, and the words are zero to twelve and zeroth to twelfth ("fifth" excepted: the
original misspells it).
"""

import datetime
import functools
import math
import re
import struct
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from mate_tf.tables.normalization import normalize_for_match


class Date(NamedTuple):
    """A date, or as much of one as the text says."""

    year: int | None
    month: int | None
    day: int | None


NumericValue = float | Date


class NumericSpan(NamedTuple):
    """A stretch text[begin:end] and what it may mean; "2004" is a number and a year."""

    begin: int
    end: int
    values: tuple[NumericValue, ...]


EQUAL, LESS, GREATER = 1, 2, 4

_MIN_YEAR, _MAX_YEAR = 1700, 2016
_YEAR_OF_DATES_WITHOUT_YEAR = 1900
_MAX_WORDS_OF_A_DATE = 3
_COMMON_TYPE_SHARE = 0.7

_CARDINALS = "zero one two three four five six seven eight nine ten eleven twelve".split()
_ORDINALS = (
    "zeroth first second third fourth fith sixth seventh eighth ninth tenth eleventh twelfth"
).split()
_NUMBER_WORDS = {
    word: float(n) for words in (_CARDINALS, _ORDINALS) for n, word in enumerate(words)
}

_MONTHS = (
    "january february march april may june july august september october november december"
).split()
_MONTH_NUMBERS = {month[:3]: number for number, month in enumerate(_MONTHS, start=1)}
_FULL_MONTH = f"(?P<month>(?i:{'|'.join(_MONTHS)}))"
_MONTH = f"(?P<month>(?i:{'|'.join(_MONTHS)}|{'|'.join(_MONTH_NUMBERS)})|Sept)"
_MONTH_DIGITS = r"(?P<month>\d{1,2})"
_YEAR = r"(?P<year>\d{4})"
_DAY = r"(?P<day>\d{1,2})"
_WEEKDAY = "(?i:monday|tuesday|wednesday|thursday|friday|saturday|sunday)"
_DATES = [
    re.compile(pattern)
    for pattern in (
        _FULL_MONTH,
        f"{_YEAR}s?",
        f"{_MONTH} {_YEAR}",
        f"(?:{_WEEKDAY}, )?{_MONTH} {_DAY}",
        f"{_DAY} {_MONTH}",
        f"{_MONTH} {_DAY}, {_YEAR}",
        f"{_DAY} {_MONTH} {_YEAR}",
        f"{_MONTH_DIGITS}-{_DAY}-{_YEAR}",
        f"{_YEAR}-{_MONTH_DIGITS}(?:-{_DAY})?",
        rf"{_DAY}\.{_MONTH_DIGITS}\.{_YEAR}",
    )
]
_MAYBE_DATE = re.compile(rf"\d|{'|'.join(_MONTH_NUMBERS)}", re.IGNORECASE)

_WORD = re.compile(r"[^\W_]+")
_NUMBER = re.compile(r"(?:(?:^|\s)[+-])?(?:\.\d+|\d+(?:,\d\d\d)*(?:\.\d*)?)")
_ORDINAL_SUFFIX = re.compile("(?:st|nd|rd|th)$")


def parse_text(text: str) -> list[NumericSpan]:
    """The numbers and dates in a text, from left to right; of nested ones, the longest."""
    found: dict[tuple[int, int], list[NumericValue]] = {}
    for match in _NUMBER.finditer(text):
        number = _parse_number(match[0])
        if number is not None:
            found[match.span()] = [number]
    words = [match.span() for match in _WORD.finditer(text)]
    for begin, end in words:
        if (begin, end) not in found:
            number = _parse_word(text[begin:end])
            if number is not None:
                found[begin, end] = [number]
    for begin, end in _ngrams(words, _MAX_WORDS_OF_A_DATE) if _MAYBE_DATE.search(text) else ():
        date = _parse_date(text[begin:end])
        if date is not None:
            found.setdefault((begin, end), []).append(date)
    longest: list[tuple[int, int]] = []
    for begin, end in sorted(found, key=lambda span: (span[0] - span[1], span[0])):
        if not any(b <= begin and end <= e for b, e in longest):
            longest.append((begin, end))
    return [NumericSpan(*span, tuple(found[span])) for span in sorted(longest)]


@functools.lru_cache(maxsize=1 << 16)
def text_values(text: str) -> tuple[NumericValue, ...]:
    """Every meaning of every number and date in a text, normalised first, left to right."""
    return tuple(value for span in parse_text(normalize_for_match(text)) for value in span.values)


def column_values(cells: Sequence[str]) -> dict[int, NumericValue]:
    """The value of each cell of a column that has one, all of the column's commonest type.

    Nothing where less than 70 % of the cells have a value of that type. Dates win a tie, for years
    are numbers too.
    """
    values = {row: text_values(cell) for row, cell in enumerate(cells)}
    values = {row: of_cell for row, of_cell in values.items() if of_cell}
    counts = Counter(kind for of_cell in values.values() for kind in set(map(type, of_cell)))
    if not counts or max(counts.values()) < _COMMON_TYPE_SHARE * len(cells):
        return {}
    commonest = Date if counts[Date] >= counts[float] else float
    firsts = {
        row: next((value for value in of_cell if type(value) is commonest), None)
        for row, of_cell in values.items()
    }
    return {row: value for row, value in firsts.items() if value is not None}


def ranks(values: Mapping[int, NumericValue]) -> dict[int, tuple[int, int]]:
    """For each row its rank from the smallest and from the largest, from 1; equals share one."""
    keys = _sort_keys(values.values())
    if keys is None:
        return {}
    order = {key: rank for rank, key in enumerate(sorted(set(keys)))}
    return {
        row: (order[key] + 1, len(order) - order[key])
        for row, key in zip(values, keys, strict=True)
    }


def relations(
    question_values: Iterable[NumericValue], values: Mapping[int, NumericValue]
) -> dict[int, int]:
    """For each row the bits of how the question's values compare with its value.

    EQUAL, LESS where the question's value is less than the cell's, and GREATER, added up over the
    question's values that are of the column's type.
    """
    bits = dict.fromkeys(values, 0)
    for question_value in question_values:
        keys = _sort_keys([*values.values(), question_value])
        if keys is None:
            continue
        asked = keys[-1]
        for row, key in zip(values, keys, strict=False):
            bits[row] |= EQUAL if asked == key else LESS if asked < key else GREATER
    return {row: bit for row, bit in bits.items() if bit}


def _sort_keys(values: Iterable[NumericValue]) -> list[Any] | None:
    """Keys in which the values compare; dates by the fields that all have; None where none do."""
    values = list(values)
    dates = [value for value in values if isinstance(value, Date)]
    if not dates:
        return values
    common = [i for i in range(3) if all(date[i] is not None for date in dates)]
    if len(dates) < len(values) or not common:
        return None
    return [tuple(date[i] for i in common) for date in dates]


def _ngrams(words: Sequence[tuple[int, int]], longest: int) -> Iterator[tuple[int, int]]:
    for last, (_, end) in enumerate(words):
        for begin, _ in words[max(0, last + 1 - longest) : last + 1]:
            yield begin, end


def _parse_word(word: str) -> float | None:
    number = _parse_number(word)
    return _NUMBER_WORDS.get(word) if number is None else number


def _parse_number(text: str) -> float | None:
    try:
        number = float(_ORDINAL_SUFFIX.sub("", text).replace(",", ""))
        number = struct.unpack("f", struct.pack("f", number))[0]
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def _parse_date(text: str) -> Date | None:
    for pattern in _DATES:
        match = pattern.fullmatch(text)
        if match:
            fields = match.groupdict()
            year, month, day = (fields.get(name) for name in Date._fields)
            if month and not month.isdecimal():
                month = _MONTH_NUMBERS[month[:3].lower()]
            return _valid_date(year, month, day)
    return None


def _valid_date(year: str | None, month: str | int | None, day: str | None) -> Date | None:
    date = Date(*(None if field is None else int(field) for field in (year, month, day)))
    try:
        full_year = datetime.date(
            _YEAR_OF_DATES_WITHOUT_YEAR if date.year is None else date.year,
            1 if date.month is None else date.month,
            1 if date.day is None else date.day,
        ).year
    except ValueError:
        return None
    return date if _MIN_YEAR <= full_year <= _MAX_YEAR else None
