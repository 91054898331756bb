"""What cells say, each by itself, in the graph: all readings of `read_cell` (tables/values.py).

Before them come plain characters, matches, groups and numbers of texts. The expressions are those
of the library. A part that a text does not have is NaN. Rare texts are read differently: lengths of
time in words are read with each unit once and the longest first, and beside letters that are not
ASCII the end of a word is not seen.

Shapes: N texts.
"""

import re
import unicodedata
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from mate_tf.tables import notations, values

SPACE = (
    r"[\t-\r\x{1c}-\x{20}\x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}"
    r"\x{3000}]+"
)
_BAR = "\x01"
_NAN = np.float64("nan")
_ZEROS = [code for code in range(0x110000) if unicodedata.decimal(chr(code), None) == 0]
_CHARACTERS = {0x2019: "'", 0x66B: ".", 0x66C: ",", 0xFFE5: "¥"}
_MOST_GROUPS = 9  # of a rewriting


def plain_text(texts: tf.Tensor) -> tf.Tensor:
    """Texts [N] in lower case and plain characters, with single blanks."""
    texts = tf.strings.unicode_transcode(texts, "UTF-8", "UTF-8", errors="ignore")
    texts = tf.strings.regex_replace(texts, rf"[\x{{0}}{_BAR}]", "_")
    texts = tf.strings.lower(texts, encoding="utf-8")
    texts = tf.strings.strip(tf.strings.regex_replace(texts, SPACE, " "))
    ragged = tf.strings.unicode_decode(texts, "UTF-8")
    codes = ragged.flat_values
    zeros = tf.gather(_ZEROS, tf.maximum(tf.searchsorted(_ZEROS, codes, side="right") - 1, 0))
    is_digit = (codes >= zeros) & (codes < zeros + 10)
    codes = tf.where(is_digit, codes - zeros + ord("0"), codes)
    for code, plain in _CHARACTERS.items():
        codes = tf.where(codes == code, ord(plain), codes)
    codes = tf.where((codes >= 0xFF01) & (codes <= 0xFF5E), codes - 0xFEE0, codes)
    texts = tf.strings.unicode_encode(ragged.with_flat_values(codes), "UTF-8")
    for sign, digits in notations.FRACTIONS.items():
        texts = tf.strings.regex_replace(texts, sign, digits)
    return tf.strings.regex_replace(texts, r"\x{200b}", "")


def is_match(texts: tf.Tensor, pattern: str) -> tf.Tensor:
    """Whether all of each text matches a pattern: bool [N]."""
    return tf.strings.regex_full_match(texts, pattern)


def is_one_of(texts: tf.Tensor, words: Iterable[str]) -> tf.Tensor:
    """Whether each text is one of the words: bool [N]."""
    return is_match(texts, "|".join(map(re.escape, sorted(words))))


def mapped(texts: tf.Tensor, mapping: Mapping, default, dtype: tf.DType) -> tf.Tensor:
    """The value of each text of any shape, or the default."""
    is_key = texts[..., tf.newaxis] == list(mapping)  # [..., keys]
    found = tf.gather(tf.constant(list(mapping.values()), dtype), tf.argmax(is_key, axis=-1))
    return tf.where(tf.reduce_any(is_key, axis=-1), found, tf.constant(default, dtype))


def captured(texts: tf.Tensor, pattern: str, names: list[str]) -> dict[str, tf.Tensor]:
    """The named groups of a pattern that all of a text matches, string [N] each, else ""."""
    names = [name for name in re.findall(r"\?P<(\w+)>", pattern) if name in names]
    holds = is_match(texts, pattern)
    fields: dict[str, tf.Tensor] = {}
    for begin in range(0, len(names), _MOST_GROUPS):
        some = names[begin : begin + _MOST_GROUPS]
        named = re.sub(rf"\?P<(?:{'|'.join(some)})>", "", pattern)
        named = re.sub(r"\?P<\w+>", "?:", named)
        bars = _BAR.join(rf"\{place}" for place in range(1, len(some) + 1))
        found = tf.strings.regex_replace(texts, f"^(?:{named})$", bars)
        found = tf.where(holds, found, _BAR * (len(some) - 1))
        split = tf.strings.split(found, _BAR).to_tensor("", shape=[None, len(some)])
        fields |= dict(zip(some, tf.unstack(split, axis=1), strict=True))
    return fields


def to_number(texts: tf.Tensor) -> tf.Tensor:
    """Canonical texts as float64 [N]; NaN of an empty one."""
    texts = tf.strings.regex_replace(texts, ",", ".")
    numbers = tf.strings.to_number(tf.where(texts == "", "0", texts), tf.float64)
    return tf.where(texts == "", _NAN, numbers)


_NUMBER_FIELDS = "open sign currency inner_sign inner_open percent digits unit sign_behind close"
_CLOCK_FIELDS = ["hour", "minute", "second", "half", "oclock", "zone", "offset"]
_MIXED_FIELDS = ["sign", "whole", "top", "bottom", "unit"]
_DAY = 86_400.0  # seconds
_UNITS_OF_TIME = {"d": _DAY, "h": 3600.0, "m": 60.0, "s": 1.0}
_DAYS_OF_400_YEARS = 146_097.0
_WEEKDAY_OF_DAY_0 = 1.0  # of what `days_of` counts; 0 is a Monday


class Cells(NamedTuple):
    """All readings of cells."""

    text: tf.Tensor  # string [N], in plain characters; "" of a cell without a value
    # float64 [N, 4], with a decimal point and a comma; then both times the power of ten that the
    # unit may mean.
    numbers: tf.Tensor
    is_both: tf.Tensor  # bool [N, 2], whether the number can be read with a point and with a comma
    units: tf.Tensor  # string [N, 2]; the second if the unit is a power of ten
    has_power: tf.Tensor  # bool [N]
    factor: tf.Tensor  # int32 [N]
    # float64 [N, 3, 4]: year, month, day and seconds, if the order is certain or usual, if the day
    # and if the month comes first.
    dates: tf.Tensor
    # int32 [N]: of dates in numbers, 1 if only the day can come first, 2 if only the month can, 3
    # if the column has to decide; otherwise 0.
    order: tf.Tensor
    zone: tf.Tensor  # float64 [N], how many seconds the date's clock is ahead of UTC
    clock: tf.Tensor  # float64 [N, 3]
    is_time: tf.Tensor  # bool [N]
    duration: tf.Tensor  # float64 [N]
    is_year: tf.Tensor  # bool [N]


def read_cells(texts: tf.Tensor) -> Cells:
    """All readings of texts, string [N]."""
    text = plain_text(texts)
    is_generation = is_match(texts, notations.GENERATION.pattern)
    text = tf.where(is_match(text, notations.MISSING.pattern), "", text)
    money = notations.NO_MONEY.pattern
    may_be = is_match(text, f".*[0-9年].*|{'|'.join(notations.MONTHS)}|{money}")
    may_be &= (tf.strings.length(text, unit="UTF8_CHAR") <= values.LONGEST) & ~is_generation
    words = mapped(text, notations.NUMBER_WORDS, _NAN, tf.float64)[:, tf.newaxis]
    bare = tf.where(may_be, text, "")
    for spelling, usual in notations.SPELLINGS:
        bare = tf.strings.regex_replace(bare, f"^(?:{spelling.pattern})$", usual)
    is_power = is_match(bare, notations.RAISED_POWER.pattern)
    for raised, plain in notations.RAISED.items():
        bare = tf.where(is_power, tf.strings.regex_replace(bare, raised, plain), bare)
    text = tf.where(may_be, bare, text)

    dates, order, zone, seconds, is_day = _dates(bare)
    is_read = tf.reduce_any(_has_date(dates), axis=1)
    clock, is_time, is_clock = _clocks(tf.where(is_read, "", bare), seconds, is_day)
    is_read |= is_clock
    duration = _durations(tf.where(is_read, "", bare))
    is_read |= ~tf.math.is_nan(duration)
    bare = tf.where(is_read, "", bare)
    numbers, is_both, units, has_power, factor, is_year = _numbers(bare)
    numbers = tf.where(tf.math.is_nan(words), numbers, words)
    is_both |= ~tf.math.is_nan(words)
    of_numbers = numbers, is_both, units, has_power, factor
    return Cells(text, *of_numbers, dates, order, zone, clock, is_time, duration, is_year)


def _or(numbers: tf.Tensor, default: float) -> tf.Tensor:
    return tf.where(tf.math.is_nan(numbers), tf.constant(default, tf.float64), numbers)


def _has_date(dates: tf.Tensor) -> tf.Tensor:
    return tf.reduce_any(~tf.math.is_nan(dates), axis=-1)


def _either(dates: tf.Tensor, others: tf.Tensor) -> tf.Tensor:
    """Dates [N, 4]; the others where there is none."""
    return tf.where(_has_date(dates)[:, tf.newaxis], dates, others)


def _seconds_of_day(fields: Mapping[str, tf.Tensor]) -> tf.Tensor:
    """Seconds after midnight [N]: NaN where no time is given, -1 of one that does not exist."""
    hour, minute = to_number(fields["hour"]), to_number(fields["minute"])
    second = _or(to_number(fields["second"]), 0.0)
    has_half = fields["half"] != ""
    is_end = (hour == 24) & (minute == 0) & (second == 0)
    is_right = ((hour < 24) & (minute < 60) & (second < 60)) | is_end
    is_right &= ~has_half | ((hour >= 1) & (hour <= 12))
    afternoon = tf.where(fields["half"] == "p", hour % 12 + 12, hour % 12)
    seconds = tf.where(has_half, afternoon, hour) * 3600 + minute * 60 + second
    return tf.where(is_right | tf.math.is_nan(hour), seconds, -1.0)


def _valid(year, month, day, time) -> tf.Tensor:
    """Dates [N, 4], NaN where there is no such day or time."""
    checked, in_month, of_day = _or(year, 2000.0), _or(month, 1.0), _or(day, 1.0)
    is_leap = (checked % 4 == 0) & ((checked % 100 != 0) | (checked % 400 == 0))
    february = tf.where(is_leap, np.float64(29.0), 28.0)
    is_short = (in_month == 4) | (in_month == 6) | (in_month == 9) | (in_month == 11)
    last = tf.where(is_short, np.float64(30.0), 31.0)
    last = tf.where(in_month == 2, february, last)
    holds = (checked >= 1) & (in_month >= 1) & (in_month <= 12) & (of_day >= 1) & (of_day <= last)
    holds &= _or(time, 0.0) >= 0
    dates = tf.stack([year, month, day, time], axis=1)
    return tf.where(holds[:, tf.newaxis], dates, _NAN)


def days_of(year: tf.Tensor, month: tf.Tensor, day: tf.Tensor) -> tf.Tensor:
    """Days since a fixed one, in the Gregorian calendar, whose years here begin in March."""
    is_early = month <= 2.0
    year = tf.where(is_early, year - 1.0, year)
    since_march = tf.where(is_early, month + 9.0, month - 3.0)
    leap_days = year // 4.0 - year // 100.0 + year // 400.0
    return 365.0 * year + leap_days + (153.0 * since_march + 2.0) // 5.0 + day


def _date_of_days(days: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """Year, month and day of what `days_of` gives."""
    cycles = (days - 1.0) // _DAYS_OF_400_YEARS
    of_cycle = days - 1.0 - cycles * _DAYS_OF_400_YEARS
    leap_days = of_cycle // 1460.0 - of_cycle // 36_524.0 + of_cycle // 146_096.0
    year = (of_cycle - leap_days) // 365.0
    of_year = of_cycle - (365.0 * year + year // 4.0 - year // 100.0)
    since_march = (5.0 * of_year + 2.0) // 153.0
    day = of_year - (153.0 * since_march + 2.0) // 5.0 + 1.0
    month = tf.where(since_march < 10.0, since_march + 3.0, since_march - 9.0)
    year += 400.0 * cycles
    return tf.where(month <= 2.0, year + 1.0, year), month, day


def in_utc(dates: tf.Tensor, zone: tf.Tensor) -> tf.Tensor:
    """Complete dates [..., 4] whose clocks are `zone` [...] seconds ahead of UTC, in UTC."""
    time = dates[..., 3] - zone
    days = days_of(*tf.unstack(dates[..., :3], axis=-1)) + time // _DAY
    return tf.stack([*_date_of_days(days), time - time // _DAY * _DAY], axis=-1)


def _of_week(year: tf.Tensor, week: tf.Tensor, day: tf.Tensor, time: tf.Tensor) -> tf.Tensor:
    """The day [N, 4] of a week as ISO 8601 counts them; NaN where a year has no such week."""
    fourth = days_of(year, tf.ones_like(year), tf.fill(tf.shape(year), np.float64(4.0)))
    monday = fourth - (fourth + _WEEKDAY_OF_DAY_0) % 7.0 + 7.0 * (week - 1.0)
    holds = (_date_of_days(monday + 3.0)[0] == year) & (week >= 1.0)  # its Thursday
    date = tf.stack([*_date_of_days(monday + _or(day, 1.0) - 1.0), time], axis=1)
    return tf.where(holds[:, tf.newaxis], date, _NAN)


def _dates(texts: tf.Tensor) -> tuple[tf.Tensor, ...]:
    """Dates, order and zone of `Cells`; the time, and whether the text is one and no date."""
    parts = texts
    for pattern, fields in notations.DATES:
        parts = tf.strings.regex_replace(parts, f"^(?:{pattern.pattern})$", fields)
    bar = notations.BAR
    is_date = is_match(parts, rf"[?.w]?{bar}.*")
    parts = tf.where(is_date, parts, bar * 4)
    split = tf.strings.split(parts, bar).to_tensor("", shape=[None, 5])
    order, year, month, day, time = tf.unstack(split, axis=1)
    clock = captured(tf.where(is_date, time, texts), notations.CLOCK.pattern, _CLOCK_FIELDS)
    seconds = _seconds_of_day(clock)
    said = (clock[name] != "" for name in ("half", "oclock", "zone"))
    is_day = ~is_date & tf.reduce_any(list(said), axis=0)
    year = tf.strings.regex_replace(year, "^'", "")
    century = tf.where(tf.strings.length(year) == 4, np.float64(0.0), 1900.0)
    years = to_number(year)
    years += tf.where((century > 0) & (years < 69), np.float64(2000.0), century)
    named = mapped(month, notations.MONTH_NUMBERS, _NAN, tf.float64)
    months = to_number(tf.where(is_match(month, r"\d+"), month, ""))
    months, days = tf.where(tf.math.is_nan(named), months, named), to_number(day)
    time_of_date = tf.where(is_date, seconds, _NAN)
    is_in_numbers, is_week = (order == "?") | (order == "."), order == "w"
    first = _valid(years, months, days, time_of_date)
    second = _valid(years, days, months, time_of_date)
    second = tf.where(is_in_numbers[:, tf.newaxis], second, _NAN)
    weeks = _of_week(years, months, days, time_of_date)
    first = tf.where(is_week[:, tf.newaxis], weeks, first)
    has_first, has_second = is_in_numbers & _has_date(first), _has_date(second)
    is_open = (order == "?") & has_first & has_second
    certain = tf.where(is_open[:, tf.newaxis], _NAN, _either(first, second))
    dates = tf.stack([certain, _either(first, certain), _either(second, certain)], axis=1)
    code = tf.where(has_first & ~has_second, 1, tf.where(has_second & ~has_first, 2, 0))
    zone = mapped(clock["zone"], notations.ZONES, _NAN, tf.float64)
    hours, minutes = (
        tf.strings.regex_replace(clock["offset"], f"^{notations.OFFSET.pattern}$", group)
        for group in (r"\1", r"\2")
    )
    ahead = to_number(hours) * 3600.0 + _or(to_number(minutes), 0.0) * 60.0
    ahead = tf.where(is_match(clock["offset"], "-.*"), -ahead, ahead)
    zone = tf.where(is_date, tf.where(tf.math.is_nan(ahead), zone, ahead), _NAN)
    return dates, tf.where(is_open, 3, code), zone, seconds, is_day


def day_of_digits(texts: tf.Tensor) -> tf.Tensor:
    """The dates [N, 4] that eight digits are, such as 20240131; NaN of other texts."""
    names = ["year", "month", "day"]
    fields = captured(texts, notations.DAY_OF_DIGITS.pattern, names)
    year, month, day = (to_number(fields[name]) for name in names)
    return _valid(year, month, day, tf.fill(tf.shape(texts), _NAN))


def _clocks(
    texts: tf.Tensor, time: tf.Tensor, is_day: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """The parts of clocks [N, 3], whether they can only be times, and whether it is a clock."""
    is_time = is_day & (time >= 0)
    fields = captured(texts, notations.LENGTH.pattern, ["sign", "a", "b", "c", "d"])
    a, b, c = (to_number(fields[name]) for name in "abc")
    has_c = ~tf.math.is_nan(c)
    fraction = to_number(tf.strings.join(["0.", fields["d"], "0"]))
    is_length = ~is_day & (b <= 59) & (_or(c, 0.0) <= 59)
    b, c = tf.where(has_c, b, b + fraction), c + fraction
    parts = tf.stack([a, b, c], axis=1)
    parts = tf.where(is_match(fields["sign"], "[^+]")[:, tf.newaxis], -parts, parts)
    parts = tf.where(is_length[:, tf.newaxis], parts, _NAN)
    alone = tf.pad(time[:, tf.newaxis], [[0, 0], [0, 2]], constant_values=_NAN)
    return tf.where(is_time[:, tf.newaxis], alone, parts), is_time, is_day | is_length


def _with_names(pattern: str, names: str) -> str:
    """A pattern with names, of a letter each, for its groups."""
    of_groups = iter(names)
    return re.sub(r"\((?!\?)", lambda _: f"(?P<{next(of_groups)}>", pattern)


def _durations(texts: tf.Tensor) -> tf.Tensor:
    """Seconds [N] of lengths of time in words and in the form of ISO 8601."""
    iso = _with_names(notations.ISO_DURATION.pattern, "dhms")
    by_length = sorted(notations.SECONDS, key=len, reverse=True)
    in_words = ""
    for name, size in _UNITS_OF_TIME.items():
        units = "|".join(re.escape(u) for u in by_length if notations.SECONDS[u] == size)
        in_words += rf"(?:(?P<{name}>\d+(?:[.,]\d+)?) ?(?:{units})[., ]*(?:and )?)?"
    total = tf.fill(tf.shape(texts), _NAN)
    for pattern, least in ((iso, 1), (in_words, 2)):
        fields = captured(texts, pattern, list("dhms"))
        parts = tf.stack([to_number(fields[name]) for name in "dhms"], axis=1)  # [N, 4]
        given = tf.math.count_nonzero(~tf.math.is_nan(parts), axis=1)
        seconds = tf.reduce_sum(_or(parts, 0.0) * list(_UNITS_OF_TIME.values()), axis=1)
        total = tf.where(tf.math.is_nan(total) & (given >= least), seconds, total)
    return total


def _numbers(texts: tf.Tensor) -> tuple[tf.Tensor, ...]:
    """The numbers of `Cells`, is_both, units, has_power, factor and is_year."""
    pattern = _with_names(notations.TERMS.pattern, "sabcdw")
    fields = {
        name: tf.strings.regex_replace(field, ",", "")
        for name, field in captured(texts, pattern, list("sabcdw")).items()
    }
    powers = zip("abcd", (12, 8, 4, 0), strict=True)
    terms = [tf.strings.join([fields[name], f"e{power}"]) for name, power in powers]
    terms = [tf.where(is_match(t, "e.*"), "", t) for t in terms]
    is_terms = (terms[0] != "") | (terms[1] != "") | (terms[2] != "")
    of_terms = tf.add_n([_or(to_number(term), 0.0) for term in terms])
    of_terms = tf.where(fields["s"] == "-", -of_terms, of_terms)
    sign = tf.where(fields["w"] != "", fields["w"], fields["s"])
    unit_of_terms = mapped(sign, notations.CURRENCIES, "", tf.string)
    mixed = captured(texts, notations.MIXED.pattern, _MIXED_FIELDS)
    top, bottom = to_number(mixed["top"]), to_number(mixed["bottom"])
    is_mixed = (top > 0) & (top < bottom)
    of_mixed = to_number(mixed["whole"]) + top / bottom
    of_mixed = tf.where(mixed["sign"] == "-", -of_mixed, of_mixed)
    of_terms = tf.where(is_mixed, of_mixed, of_terms)
    unit_of_terms = tf.where(is_mixed, tf.strings.strip(mixed["unit"]), unit_of_terms)
    is_terms |= is_mixed

    found = captured(tf.where(is_terms, "", texts), notations.NUMBER, _NUMBER_FIELDS.split())
    digits = found["digits"]
    unit, power, factor, is_unit = _unit(found)
    unit = tf.where(is_terms, unit_of_terms, unit)
    opened = (found["open"] != "") | (found["inner_open"] != "")
    signs = [found[name] for name in ("sign", "inner_sign", "sign_behind")]
    num_signs = tf.add_n([tf.cast(sign != "", tf.int32) for sign in signs])
    is_plain = (texts == digits) & is_match(digits, r"\d+")
    is_number = (digits != "") & is_unit & (opened == (found["close"] != "")) & (num_signs <= 1)
    has_point = opened | is_match(digits, r".*\.")
    is_number &= ~has_point | (unit == "") | is_one_of(unit, notations.SIGNED_UNITS)
    is_number &= ~(is_plain & is_match(digits, "0.+"))
    is_minus = tf.reduce_any([(s != "") & ~is_match(s, r".*\+.*") for s in signs], axis=0)
    sign = tf.where(opened | is_minus, "-", "")
    numbers = []
    for more in (0, factor):
        for form, groups in (
            (notations.POINT_DIGITS.pattern, "[,' ]"),
            (notations.COMMA_DIGITS.pattern, "[.' ]"),
        ):
            stripped = tf.strings.regex_replace(digits, "[.,]+$", "")
            read = tf.where(is_match(digits, form), digits, stripped)
            exponent = tf.strings.regex_replace(read, r"^[^e]*(?:e\+?)?", "")
            mantissa = tf.strings.regex_replace(read, f"{groups}|e.*", "")
            mantissa = tf.strings.regex_replace(mantissa, r"^[.,]", "0.")
            mantissa = tf.strings.regex_replace(mantissa, r"\.$", "")
            exponent = tf.strings.to_number(tf.where(exponent == "", "0", exponent), tf.int32)
            whole = [sign, mantissa, "e", tf.strings.as_string(exponent + power + more)]
            is_form = is_number & is_match(read, form)
            number = to_number(tf.where(is_form, tf.strings.join(whole), ""))
            numbers.append(tf.where(is_terms, of_terms, number))
    stacked = tf.stack(numbers, axis=1)
    is_both = ~tf.math.is_nan(stacked[:, :2])
    # Where one form does not fit, the other is taken.
    others = tf.gather(stacked, [1, 0, 3, 2], axis=1)
    stacked = tf.where(tf.tile(is_both, [1, 2]), stacked, others)
    is_number = ~tf.math.is_nan(stacked[:, 0])
    behind = tf.strings.regex_replace(unit, "^[^ ]* ?", "")
    sign = mapped(behind, notations.CURRENCIES, "", tf.string)
    weak_unit = tf.where(factor > 0, tf.where(sign == "", behind, sign), unit)
    is_year = is_plain & is_number & is_match(digits, r"\d{4}")
    is_year &= (stacked[:, 0] >= notations.YEARS[0]) & (stacked[:, 0] <= notations.YEARS[-1])
    units = tf.where(is_number[:, tf.newaxis], tf.stack([unit, weak_unit], axis=1), "")
    factor = tf.where(is_number, factor, 0)
    return stacked, is_both, units, is_number & (power > 0), factor, is_year


def _unit(found: Mapping[str, tf.Tensor]) -> tuple[tf.Tensor, ...]:
    """The unit, its power of ten, the power that it may mean, and whether it can be a unit."""
    rest = tf.strings.regex_replace(found["unit"], " +$", "")
    is_glued = ~is_match(rest, " .*")
    words = tf.strings.strip(rest)
    word = tf.strings.regex_replace(words, " .*", "")
    more = tf.strings.regex_replace(words, "^[^ ]* ?", "")
    sign = tf.strings.strip(found["currency"])
    currency = mapped(sign, notations.CURRENCIES, "", tf.string)
    has_currency = currency != ""
    multiple = mapped(word, notations.MULTIPLES, 0, tf.int32)
    is_length = (word == "mm") | ((word == "k") & ~is_glued)
    multiple = tf.where(has_currency | ~is_length, multiple, 0)
    is_multiple = multiple > 0
    second = mapped(tf.strings.regex_replace(more, " .*", ""), notations.MULTIPLES, 0, tf.int32)
    second = tf.where(is_multiple, second, 0)  # lakh crore
    multiple += second
    more = tf.where(second > 0, tf.strings.regex_replace(more, "^[^ ]* ?", ""), more)
    weak = mapped(word, notations.WEAK_MULTIPLES, 0, tf.int32)
    weak = tf.where(is_multiple, 0, weak)
    more_is_currency = is_one_of(tf.strings.regex_replace(more, r"\.+$", ""), notations.CURRENCIES)
    is_money = (weak > 0) & more_is_currency
    head, tail = tf.strings.substr(word, 0, 1), tf.strings.regex_replace(word, "^.", "")
    glued = mapped(head, notations.GLUED_MULTIPLES, 0, tf.int32)
    is_joined = ~is_multiple & (weak == 0) & is_one_of(tail, notations.CURRENCIES)
    glued = tf.where(is_joined, glued, 0)
    is_plain = ~is_multiple & (weak == 0) & (glued == 0)
    without_point = tf.strings.regex_replace(word, r"\.+$", "")
    is_known = is_one_of(without_point, notations.UNITS | notations.CURRENCIES.keys())
    is_street = is_match(words, notations.STREET.pattern)
    is_unit = ~(is_plain & (word != "") & ((is_glued & ~is_known) | is_street))
    unit = tf.where(is_multiple | is_money, more, tf.where(glued > 0, tail, words))
    is_money |= has_currency & (weak > 0)
    power = tf.where(is_money, weak, tf.where(is_multiple, multiple, glued))
    weak = tf.where(is_money, 0, weak)
    bare = tf.strings.regex_replace(unit, r"\.+$", "")
    is_key = is_one_of(bare, notations.CURRENCIES)
    unit = tf.where(is_key, mapped(bare, notations.CURRENCIES, "", tf.string), unit)
    unit = tf.where(found["percent"] != "", "%", unit)
    return tf.where(has_currency, currency, unit), power, weak, is_unit
