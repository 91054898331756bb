"""The value of a cell: a number with its unit, a date, a time or a duration, or text alone.

One cell alone may be read in several ways: "1.234" is a number of one or of four digits,
"05/01/2024" a day of May or of January, "9:58" a time or a length. `read_cell` finds all of them;
the column decides (columns.py). notations.py has the expressions.

All functions are linear in the length of the text.
"""

import contextlib
import datetime
import functools
import operator
import re
import unicodedata
from itertools import pairwise
from typing import NamedTuple

from mate_tf.tables import notations, units


class Date(NamedTuple):
    """A date, or the parts of it that the text gives; `time` is in seconds after midnight."""

    year: int | None
    month: int | None
    day: int | None
    time: float | None = None

    def isoformat(self) -> str:
        """ISO 8601, as far as the date goes: 2024-01-05T10:30:00, 2024-01-05, 2024-01 or 2024."""
        year = "-" if self.year is None else f"{self.year:04}"
        parts = [year, *(f"{part:02}" for part in self[1:3] if part is not None)]
        time = "" if self.time is None else f"T{clock_text(self.time)}"
        return "-".join(parts) + time


class Cell(NamedTuple):
    """All readings of a cell; None where it cannot be read so."""

    text: str  # the cell in plain characters; "" if it has no value ("n/a", "-", "#DIV/0!")
    point: float | None = None  # the number, if a point is the decimal sign
    comma: float | None = None  # the same for a comma
    unit: str = ""  # a sign of a currency, "%", or what follows the number
    power: int = 0  # the power of ten that a word beside the number means: 3 for "5 thousand"
    factor: int = 0  # the power of ten that the unit may mean: 6 for the "m" of "5 m"
    date: Date | None = None  # if its order of day and month is certain or usual
    day_first: Date | None = None  # of a date in numbers, if the day comes first
    month_first: Date | None = None  # the same for the month
    zone: float | None = None  # how many seconds the date's clock is ahead of UTC
    clock: tuple[float, ...] = ()  # hours, minutes and seconds, or two numbers of either pair
    is_time: bool = False  # whether the clock can only be a time of day ("10:30 am")
    duration: float | None = None  # seconds of a length of time in words ("1h 30m")
    is_year: bool = False  # whether the number is one that can be a year

    @property
    def is_open(self) -> bool:
        """Whether the column has to decide if the day or the month comes first."""
        return self.date is None and self.day_first is not None


_NUMBER = re.compile(notations.NUMBER)
_RAISED = str.maketrans(notations.RAISED)
_BY_DECIMAL = {  # the decimal sign: what numbers are, and what separates their groups
    ".": (notations.POINT_DIGITS, re.compile(r"[,' ]")),
    ",": (notations.COMMA_DIGITS, re.compile(r"[.' ]")),
}
_ONE_PART = rf"(\d+(?:[.,]\d+)?) ?({notations.any_of(units.UNITS)})(?![^\W\d_])"
_PART = re.compile(rf"{_ONE_PART}[., ]*(?:and )?")
# What may be one length or number of several parts within a sentence.
SEVERAL_PARTS = re.compile(
    notations.ungrouped(rf"(?<![\w.,]){_ONE_PART}(?:[., ]*(?:and )?{_ONE_PART})+")
)
_REMARK = re.compile(rf"^{notations.ABOUT}| ?\([^()]*\)$")
_ZONE_NAME = re.compile(r" \([a-z ]+ time\)$")
# Signs of feet and inches, a Greek letter for micro, and a blank without width.
_PLAIN_MARKS = {
    **dict(zip("\u2019\u2032\u2033\u201d\u066b\u066c\uffe5\u03bc", "''\"\".,¥\u00b5", strict=True)),
    "\u200b": "",
}
LONGEST = 64  # characters of a cell that can be a value
_MAY_BE_VALUE = re.compile(r"[\d年]")
_DATE_OF_DIGITS = re.compile(
    r"\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}(?:[t ]\d{1,2}:\d{2}(?::\d{2}(?:\.\d+)?)?z?)?"
)
_PLAIN_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]{0,11})(\.[0-9]{1,20})?")
_PLAIN_GROUPS = re.compile(r"-?[1-9][0-9]{0,2}\.[0-9]{3}")
_PLAIN_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_PLAIN = re.compile(r"-?[$€£]?\d{1,3}(?:\d{0,9}|(?:,\d{3})*)(?:[.,]\d*)?%?")  # only a number


def plain_text(text: str) -> str:
    """A cell in lower case and plain characters, with single blanks."""
    text = " ".join(text.lower().split())
    if not text.isascii():
        text = "".join(map(_plain_character, text))
    return text


@functools.lru_cache(maxsize=4096)
def _plain_character(character: str) -> str:
    if "\uff01" <= character <= "\uff5e":  # full width
        return chr(ord(character) - 0xFEE0).lower()
    if character.isdecimal():
        return str(unicodedata.decimal(character))
    if notations.DIRECTIONS.match(character):
        return ""
    return _PLAIN_MARKS.get(character, notations.FRACTIONS.get(character, character))


@functools.lru_cache(maxsize=1 << 14)
def read_cell(text: str) -> Cell:
    """All readings of a cell's text."""
    return _plain_cell(text) or _any_cell(text)


def _plain_cell(text: str) -> Cell | None:
    """A number or a day as programs write them, as `_any_cell` reads it, in a tenth of the time."""
    if match := _PLAIN_NUMBER.fullmatch(text):
        number = float(text)
        if match[1] is None:
            is_year = len(text) == 4 and number in notations.YEARS
            return Cell(text, number, number, is_year=is_year)
        is_grouped = _PLAIN_GROUPS.fullmatch(text)  # 1.234 may be of four digits
        return Cell(text, number, float(text.replace(".", "")) if is_grouped else None)
    if _PLAIN_DAY.fullmatch(text):
        with contextlib.suppress(ValueError):
            day = datetime.date.fromisoformat(text)
            return Cell(text, date=Date(day.year, day.month, day.day))
    return None


def _any_cell(text: str) -> Cell:
    if len(text) > 4 * LONGEST or notations.GENERATION.fullmatch(text):
        return Cell(text.lower())
    is_milli = text.rstrip().endswith("mW")
    text = _ZONE_NAME.sub("", plain_text(text))
    if notations.MISSING.fullmatch(text):
        return Cell("")
    if text in notations.CLOCK_WORDS:
        return Cell(text, clock=(notations.CLOCK_WORDS[text],), is_time=True)
    if text in notations.NUMBER_WORDS:
        return Cell(text, notations.NUMBER_WORDS[text], notations.NUMBER_WORDS[text])
    may_be = (
        _MAY_BE_VALUE.search(text) or text in notations.MONTHS or notations.NO_MONEY.fullmatch(text)
    )
    if len(text) > LONGEST or notations.BAR in text or not may_be:
        return Cell(text)
    if (word := notations.FIRST_WORD.match(text)) and word[0] not in notations.FIRST_WORDS:
        return Cell(text)
    if _PLAIN.fullmatch(text):
        return _number(text)
    for spelling, usual in () if _DATE_OF_DIGITS.fullmatch(text) else notations.spellings():
        if match := spelling.fullmatch(text):
            text = match.expand(usual)
    if notations.RAISED_POWER.fullmatch(text):
        text = text.translate(_RAISED)
    cell = _date(text) or _clock(text) or _in_parts(text) or _number(text)
    return cell._replace(unit="mW") if is_milli and cell.unit == "mw" else cell


def _number(text: str) -> Cell:
    if (terms := notations.TERMS.fullmatch(text)) and any(terms.groups()[1:4]):
        sign, *parts, currency = terms.groups()
        powers = zip(parts, (12, 8, 4, 0), strict=True)
        value = sum(float(f"{part.replace(',', '')}e{power}") for part, power in powers if part)
        value = -value if sign == "-" else value
        return Cell(text, value, value, notations.CURRENCIES.get(currency or sign or "", ""))
    if (match := notations.MIXED.fullmatch(text)) and 0 < int(match["top"]) < int(match["bottom"]):
        value = int(match["whole"]) + int(match["top"]) / int(match["bottom"])
        value = -value if match["sign"] else value
        return Cell(text, value, value, (match["unit"] or "").strip())
    match = _NUMBER.fullmatch(text)
    if not match or (unit_and_factors := _unit(match)) is None:
        return Cell(text)
    unit, factor, weak_factor = unit_and_factors
    opened = match["open"] or match["inner_open"]
    signs = [sign for sign in match.group("sign", "inner_sign", "sign_behind") if sign]
    if bool(opened) != bool(match["close"]) or len(signs) > 1:
        return Cell(text)
    digits = match["digits"]
    if (opened or digits[-1] == ".") and unit and unit not in notations.SIGNED_UNITS:
        return Cell(text)  # ($5 each), 1. FC Köln
    is_plain = text == digits and digits.isdecimal()
    if is_plain and len(digits) > 1 and digits[0] == "0":
        return Cell(text)  # a code such as a postal code
    is_negative = bool(opened) or any("+" not in sign for sign in signs)
    point, comma = (
        -value if value is not None and is_negative else value
        for value in (_read_digits(digits, factor, decimal) for decimal in ".,")
    )
    is_year = is_plain and len(digits) == 4 and int(digits) in notations.YEARS
    return Cell(text, point, comma, unit, factor, weak_factor, is_year=is_year)


def _unit(match: re.Match[str]) -> tuple[str, int, int] | None:
    """The unit, its power of ten and the power that it may mean; None for a code such as 5a."""
    rest = (match["unit"] or "").rstrip()
    words = rest.strip()
    word, _, more = words.partition(" ")
    currency = notations.CURRENCIES.get((match["currency"] or "").strip(), "")
    unit, factor, weak_factor = words, 0, 0
    per = notations.PER.fullmatch(words)
    if per and (currency or per["currency"] in notations.CURRENCIES):
        return f"{currency or notations.CURRENCIES[per['currency']]}/{per['unit']}", 0, 0
    is_length = word == "mm" or (word == "k" and rest.startswith(" "))  # 5 mm, 5 K
    if word in notations.MULTIPLES and (currency or not is_length):
        unit, factor = more, notations.MULTIPLES[word]
        word, _, more = more.partition(" ")
        if word in notations.MULTIPLES:  # lakh crore
            unit, factor = more, factor + notations.MULTIPLES[word]
    elif word in notations.WEAK_MULTIPLES:
        weak_factor = notations.WEAK_MULTIPLES[word]
        if more.rstrip(".") in notations.CURRENCIES:  # 5 M kr
            unit, factor, weak_factor = more, weak_factor, 0
    elif word[:1] in notations.GLUED_MULTIPLES and word[1:] in notations.CURRENCIES:  # 5k€
        unit, factor = word[1:], notations.GLUED_MULTIPLES[word[0]]
    elif notations.STREET.fullmatch(words) or (
        word
        and not rest.startswith(" ")
        and word.rstrip(".") not in units.GLUED_UNITS | notations.CURRENCIES.keys()
    ):
        return None
    if currency and weak_factor:
        factor, weak_factor = weak_factor, 0
    unit = currency or (
        "%" if match["percent"] else notations.CURRENCIES.get(unit.rstrip("."), unit)
    )
    return unit, factor, weak_factor


def _read_digits(digits: str, power: int, decimal: str) -> float | None:
    pattern, others = _BY_DECIMAL[decimal]
    for text in (digits, digits.rstrip(".,")):
        if pattern.fullmatch(text):
            return float(with_power(others.sub("", text).replace(decimal, "."), power))
    return None


def with_power(digits: str, power: int) -> str:
    """The digits of a number, possibly with an exponent, times a power of ten."""
    if not power:
        return digits
    mantissa, _, exponent = digits.partition("e")
    return f"{mantissa}e{int(exponent or 0) + power}"


def _valid(year: str, month: str, day: str, time: str) -> Date | None:
    """A date of the texts of its parts; None if there is no such day or time."""
    seconds = _seconds_of_day(time)
    if seconds == -1.0:
        return None
    number = notations.MONTH_NUMBERS.get(month) or int(month or 1)
    full_year = int(year.removeprefix("'") or 2000)
    if year and len(year) != 4:
        full_year += 2000 if full_year < 69 else 1900
    try:
        date = datetime.date(full_year, number, int(day or 1))
    except ValueError:
        return None
    return Date(
        date.year if year else None, number if month else None, date.day if day else None, seconds
    )


def _seconds_of_day(text: str) -> float | None:
    """Seconds after midnight; None of an empty text, -1 of a time that does not exist."""
    match = notations.CLOCK.fullmatch(text)
    if not match:
        return None
    hour, minute = int(match["hour"]), int(match["minute"])
    second = float((match["second"] or "0").replace(",", "."))
    if match["half"]:
        if not 1 <= hour <= 12:
            return -1.0
        hour = hour % 12 + 12 * (match["half"] == "p")
    is_time = (hour < 24 and minute < 60 > second) or (hour, minute, second) == (24, 0, 0.0)
    return hour * 3600.0 + minute * 60 + second if is_time else -1.0


def _zone(text: str) -> float | None:
    """How many seconds a time's zone is ahead of UTC; None where the text does not say it."""
    match = notations.CLOCK.fullmatch(text)
    if not match or not match["offset"]:
        return notations.ZONES.get(match["zone"]) if match else None
    hours, minutes = notations.OFFSET.fullmatch(match["offset"]).groups("0")  # type: ignore[union-attr]
    ahead = int(hours) * 3600.0 + int(minutes) * 60
    return -ahead if match["offset"][0] == "-" else ahead


def _day_of_week(year: str, week: str, day: str, time: str) -> Date | None:
    """The day of a week as ISO 8601 counts them; without a day its Monday."""
    try:
        date = datetime.date.fromisocalendar(int(year), int(week), int(day or 1))
    except ValueError:
        return None
    return Date(date.year, date.month, date.day, _seconds_of_day(time))


def in_utc(date: Date, zone: float) -> Date:
    """A date whose clock is `zone` seconds ahead of UTC, in UTC."""
    if date.year is None or date.month is None or date.day is None or date.time is None:
        return date
    days, time = divmod(date.time - zone, 86_400.0)
    ordinal = datetime.date(date.year, date.month, date.day).toordinal() + int(days)
    day = datetime.date.fromordinal(min(max(ordinal, 1), datetime.date.max.toordinal()))
    return Date(day.year, day.month, day.day, time)


def _date(text: str) -> Cell | None:
    for pattern, fields in notations.dates():
        if match := pattern.fullmatch(text):
            order, year, month, day, time = match.expand(fields).split(notations.BAR)
            zone = _zone(time)
            if order in ("", "w"):
                date = (_day_of_week if order else _valid)(year, month, day, time)
                return Cell(text, date=date, zone=zone) if date else None
            first, second = _valid(year, month, day, time), _valid(year, day, month, time)
            if not (first or second):
                return None
            date = None if order == "?" and first and second else first or second
            return Cell(text, date=date, day_first=first, month_first=second, zone=zone)
    return None


def day_of_digits(text: str) -> Date | None:
    """The date that eight digits are, such as 20240131."""
    match = notations.DAY_OF_DIGITS.fullmatch(text)
    return _valid(match["year"], match["month"], match["day"], "") if match else None


def _clock(text: str) -> Cell | None:
    if (match := notations.CLOCK.fullmatch(text)) and any(match.group("half", "oclock", "zone")):
        time = _seconds_of_day(text)
        return Cell(text) if time == -1.0 else Cell(text, clock=(time or 0.0,), is_time=True)
    match = notations.LENGTH.fullmatch(text)
    if not match or int(match["b"]) > 59 or int(match["c"] or 0) > 59:
        return None
    parts = [float(part) for part in match.group("a", "b", "c") if part]
    parts[-1] += float(f"0.{match['d'] or 0}")
    if match["sign"] and match["sign"] != "+":
        parts = [-part for part in parts]
    return Cell(text, clock=tuple(parts))


def _in_parts(text: str) -> Cell | None:
    """A duration, or a number of parts: 5 ft 11 in, 2 years 3 months."""
    if (match := notations.ISO_DURATION.fullmatch(text)) and any(match.groups()):
        sizes = zip(match.groups(), (86_400, 3600, 60, 1), strict=True)
        return Cell(text, duration=sum(float(part or 0) * size for part, size in sizes))
    whole = _REMARK.sub("", text)
    parts = list(_PART.finditer(whole))
    if len(parts) < 2 or "".join(part[0] for part in parts) != whole:
        return None
    names, time = [part[2] for part in parts], units.FAMILIES["time"]
    family = time if time.keys() >= set(names) else units.family_of(names)
    if not family or any(family[a].factor <= family[b].factor for a, b in pairwise(names)):
        return None  # between 2 hours and 3 hours
    numbers = [float(part[1].replace(",", ".")) for part in parts]
    factors = [family[name].factor for name in names]
    in_base = list(map(operator.mul, numbers, factors))
    if family is time:
        return Cell(text, duration=sum(in_base))
    if any(map(operator.ge, in_base[1:], factors)) or any(number % 1 for number in numbers[:-1]):
        return None  # 4 kg 9 lb are twice the same
    value = float(f"{sum(in_base) / factors[0]:.12g}")
    return Cell(text, value, value, units.usual_name(names[0]))


def clock_text(seconds: float) -> str:
    """Seconds as h:mm:ss, with two digits for the hours of a day."""
    sign, seconds = ("-", -seconds) if seconds < 0 else ("", seconds)
    whole = int(seconds)
    rest = f"{round(seconds - whole, 6):g}"[1:] if seconds != whole else ""
    return f"{sign}{whole // 3600:02}:{whole // 60 % 60:02}:{whole % 60:02}{rest}"
