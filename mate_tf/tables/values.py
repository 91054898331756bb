"""What a cell says: a number with its unit, a date, a time or a duration, or nothing but text.

One cell alone may be read in several ways: "1.234" is a number of one or of four digits,
"05/01/2024" a day of May or of January, "9:58" a time or a length. `read_cell` finds all of them;
the column decides (columns.py). The expressions here are written for Python and for RE2, so that
the graph of an exported model reads cells alike (serving/raw_text).

All functions are linear in the length of the text.
"""

import datetime
import functools
import re
import unicodedata
from typing import NamedTuple


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
    """All readings of a cell; None where it cannot be read so.

    Attributes:
        text: the cell in plain characters; "" if it has no value ("n/a", "-", "#DIV/0!").
        point, comma: the number, if a point or if a comma is the decimal sign.
        unit: the number's unit: a sign of a currency, "%", or what follows the number.
        power: the power of ten that a word beside the number means, as 3 for "5 thousand".
        factor: the power of ten that the unit may mean, as 6 for the "m" of "5 m".
        date: the date, if its order of day and month is certain.
        day_first, month_first: the date if the day or if the month comes first.
        clock: hours, minutes and seconds, or two numbers that may be either pair of these.
        is_time: whether the clock can only be a time of day ("10:30 am").
        duration: seconds of a length of time in words ("1h 30m").
        is_year: whether the number is one that can be a year.
    """

    text: str
    point: float | None = None
    comma: float | None = None
    unit: str = ""
    power: int = 0
    factor: int = 0
    date: Date | None = None
    day_first: Date | None = None
    month_first: Date | None = None
    clock: tuple[float, ...] = ()
    is_time: bool = False
    duration: float | None = None
    is_year: bool = False


MISSING = frozenset(
    "- -- --- \u2013 \u2014 . .. ... \u2026 ? n/a na n.a. n.a n/d nan nat null none nil tba tbd "
    "unknown #div/0! #n/a #name? #null! #num! #ref! #value! #spill! #calc! #error! #n/v #wert! "
    "#bezug! err:502 err:503 err:504 err:508 err:509 err:522".split()
)
_CELL_OF_SIGNS = re.compile(r"#+")  # a column that is too narrow, as a spreadsheet shows it

MONTHS = (
    "january february march april may june july august september october november december"
).split()
# Names that are not English, by the number of the month.
_OTHER_MONTHS = {
    "januar janvier enero gennaio janeiro januari jan": 1,
    "februar février fevrier febrero febbraio fevereiro februari feb févr fév fevr": 2,
    "märz maerz mars marzo março marco maart mar mär mrz": 3,
    "avril abril aprile apr avr abr": 4,
    "mai mayo maggio maio mei": 5,
    "juni juin junio giugno junho jun giu": 6,
    "juli juillet julio luglio julho jul juil lug": 7,
    "août aout agosto augustus aug ago": 8,
    "septembre septiembre settembre setembro sept sep set": 9,
    "oktober octobre octubre ottobre outubro oct okt ott out": 10,
    "novembre noviembre novembro nov": 11,
    "dezember décembre decembre diciembre dicembre dezembro dec dez déc dic": 12,
}
MONTH_NUMBERS = {
    **{name: number for names, number in _OTHER_MONTHS.items() for name in names.split()},
    **{month: number for number, month in enumerate(MONTHS, start=1)},
}
CARDINALS = "zero one two three four five six seven eight nine ten eleven twelve".split()
ORDINALS = (
    "zeroth first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth"
).split()
NUMBER_WORDS = {word: float(n) for words in (CARDINALS, ORDINALS) for n, word in enumerate(words)}
YEARS = range(1500, 2101)  # four digits alone that may be a year

# Powers of ten in words; those of WEAK_MULTIPLES are so only beside a currency or others of these.
MULTIPLES = {
    **dict.fromkeys("k thousand thousands tsd tsd. tausend mille 千".split(), 3),
    **dict.fromkeys(
        "million millions mn mln mio mio. millionen millón millones milhões milhão".split(), 6
    ),
    **dict.fromkeys("bn billion billions mrd mrd. mld mld. milliarde milliarden".split(), 9),
    **dict.fromkeys("milliard milliards mds miliardi".split(), 9),
    **dict.fromkeys("tn trillion trillions 兆".split(), 12),
    **dict.fromkeys("lakh lakhs lac lacs".split(), 5),
    **dict.fromkeys("crore crores".split(), 7),
    **dict.fromkeys("bio bio.".split(), 12),
    "万": 4,
    "萬": 4,
    "億": 8,
    "亿": 8,
}
WEAK_MULTIPLES = {"m": 6, "b": 9, "t": 12, "cr": 7, "l": 5, "md": 9}
GLUED_MULTIPLES = {"k": 3, "m": 6, "b": 9}
_CODES = (
    "usd eur gbp jpy cny inr chf cad aud nzd hkd sgd sek nok dkk pln czk huf rub try brl mxn zar "
    "krw us$ au$ ca$ a$ c$ nz$ hk$ s$ r$ mx$ rs rs. kr kr. zł kč ft lei euro euros dollar dollars "
    "pounds yen fr. sfr. 円 元"
).split()
_SIGNS_OF_CURRENCIES = "$€£¥₹₽₩₺₪₫₴₦฿¢"
CURRENCIES = {
    **{code: code.strip(".").upper() for code in _CODES},
    **dict(zip(_SIGNS_OF_CURRENCIES, _SIGNS_OF_CURRENCIES, strict=True)),
    "usd": "$",
    "us$": "$",
    "dollar": "$",
    "dollars": "$",
    "eur": "€",
    "euro": "€",
    "euros": "€",
    "gbp": "£",
    "pounds": "£",
    "inr": "₹",
    "rs": "₹",
    "rs.": "₹",
    "jpy": "¥",
    "yen": "¥",
    "円": "¥",
}
# Units that cannot be added to each other.
UNITS = frozenset(
    "% ‰ mm cm dm m km in inch inches ft feet yd yards mi miles nm mg g kg t lb lbs oz ml cl dl l "
    "m2 m² km2 km² ha acres sq m3 m³ b kb mb gb tb kib mib gib hz khz mhz ghz w kw mw gw kwh mwh "
    "gwh kj kcal kv mah pa hpa bar psi °c °f °k ° kmh km/h mph m/s kn s sec secs min mins h hr hrs "
    "hours minutes seconds days weeks months years".split()
)
CURRENCY_UNITS = frozenset(CURRENCIES.values())
SIGNED_UNITS = UNITS | CURRENCY_UNITS
SECONDS = {
    **dict.fromkeys("d day days tag tage jours".split(), 86_400.0),
    **dict.fromkeys("h hr hrs hour hours std stunden heures".split(), 3600.0),
    **dict.fromkeys("m min mins min. minute minutes minuten".split(), 60.0),
    **dict.fromkeys("s sec secs sec. second seconds sek sekunden secondes".split(), 1.0),
}

_DASHES = "\u2010\u2011\u2012\u2212\u2013\u2014"  # hyphens, the minus sign, dashes
_MINUS = rf"[-{_DASHES}]"
_CURRENCY = (
    f"(?:[{_SIGNS_OF_CURRENCIES}]|"
    + "|".join(map(re.escape, sorted(_CODES, key=len, reverse=True)))
    + ")"
)
_ABOUT = (
    r"(?:(?:~|≈|<|>|≤|≥|±|c\.|ca\.?|circa|about|approx\.?|over|under|around|nearly|almost|#) ?)?"
)
_DIGITS = r"(?:\d|[.,]\d)(?:[.,' ]?\d)*[.,]?(?:e[+-]?\d{1,2})?"
# Number, unit and signs of a cell. Words of the unit are letters and signs without digits.
NUMBER = (
    rf"(?P<open>\( ?)?{_ABOUT}(?P<sign>(?:\+|{_MINUS}) ?)?(?P<currency>{_CURRENCY} ?)?"
    rf"(?P<inner_sign>(?:\+|{_MINUS}) ?)?(?P<inner_open>\( ?)?(?P<percent>% ?)?"
    rf"(?P<digits>{_DIGITS})(?P<ordinal>(?:st|nd|rd|th|º|ª)\b)?\+?"
    r"(?P<unit> ?[^\d\s()\[\]+;:,\-][^\d()\[\]+;:]*[23]?)?"
    rf"(?P<sign_behind> ?{_MINUS})?(?P<close> ?\))?(?P<remark> ?(?:\([^()]*\)|\[[^\[\]]*\])[^\d]*)?"
)
_NUMBER = re.compile(NUMBER)
MARKED = re.compile(r"(.*?[\w%.)$€£¥])(?: ?\[[^\[\]]{1,12}\]|[*†‡§¶])+|(.*[\d%)])[⁰¹²³⁴⁵⁶⁷⁸⁹ᵃᵇᶜᵈ]+")
POINT_DIGITS = re.compile(
    r"(?:[1-9]\d{0,2}(?:,\d{3})+|[1-9]\d?(?:,\d{2})+,\d{3}|[1-9]\d{0,2}(?:[ ']\d{3})+|\d+)"
    r"(?:\.\d*)?(?:e[+-]?\d{1,2})?|\.\d+"
)
COMMA_DIGITS = re.compile(
    r"(?:[1-9]\d{0,2}(?:\.\d{3})+|[1-9]\d{0,2}(?:[ ']\d{3})+|\d+)(?:,\d+)?(?:e[+-]?\d{1,2})?|,\d+"
)
_SEPARATORS, _DOTS = re.compile(r"[,' ]"), re.compile(r"[.' ]")
TERMS = re.compile(
    r"(?:(\d+(?:\.\d+)?)兆)?(?:(\d+(?:\.\d+)?)[億亿])?(?:(\d+(?:\.\d+)?)[万萬])?(\d+)?"
)

_MONTH = rf"(?P<name>{'|'.join(sorted(MONTH_NUMBERS, key=len, reverse=True))})"
_WEEKDAY = (
    r"(?:(?:mon|tues?|wed(?:nes)?|thu(?:rs)?|fri|sat(?:ur)?|sun)(?:day)?[.,]? (?:the )?|"
    r"(?:mo|di|mi|do|fr|sa|so)\.?,? )?"
)
_TIME = (
    r"(?P<hour>\d{1,2}):(?P<minute>\d{2})(?::(?P<second>\d{2}(?:[.,]\d+)?))?"
    r"(?: ?(?P<half>[ap])\.?m\.?)?(?: uhr)?(?: ?(?:z|utc|gmt|[+-]\d{2}:?\d{2}))?"
)
_YEAR = r"(?P<year>\d{4}|'?\d{2})"
_DAY = r"(?P<day>\d{1,2})(?:st|nd|rd|th|\.)?"
_FULL_YEAR = r"(?P<year>\d{4})"
# Dates whose order is certain.
DATES = (
    r"(?P<year>\d{4})(?:[-/.](?P<month>\d{1,2})[-/.](?P<day>\d{1,2})|[-/](?P<month2>\d{1,2}))",
    r"(?P<year>\d{4}) ?[年년] ?(?P<month>\d{1,2}) ?[月월](?: ?(?P<day>\d{1,2}) ?[日일])?",
    rf"{_DAY}[ -]?(?:of |de )?{_MONTH}\.?,?(?:[ -](?:de )?{_YEAR})?",
    rf"{_MONTH}\.? {_DAY}(?:,? (?P<year>\d{{4}}|'\d{{2}}))?",
    rf"{_MONTH}\.?,?[ -](?:de )?{_FULL_YEAR}",
    rf"{_MONTH}[-'](?P<year>\d{{2}})",
    rf"(?P<year>\d{{4}})[ -]{_MONTH}\.?(?:[ -]{_DAY})?",
    rf"(?P<name>{'|'.join(MONTHS)})",
    r"(?P<year>(?:1[5-9]|20)\d\d)s",
    r"(?P<year>\d{4})(?P<month>\d{2})(?P<day>\d{2})t(?P<hour>\d{2})(?P<minute>\d{2})"
    r"(?P<second>\d{2})z?",
)
_AND_TIME = rf"(?:(?:t| |, | at )(?:{_TIME}))?"
DATE_CELLS = [
    re.compile(_WEEKDAY + (date if "hour" in date else date + _AND_TIME)) for date in DATES
]
# Two numbers and a year: the column decides which is the day.
SHORT_DATE = re.compile(
    rf"{_WEEKDAY}(?:(?P<a>\d{{1,2}})/(?P<b>\d{{1,2}})/(?P<c>\d{{4}}|\d{{2}})"
    r"|(?P<a1>\d{1,2})-(?P<b1>\d{1,2})-(?P<c1>\d{4})|(?P<a2>\d{2})-(?P<b2>\d{2})-(?P<c2>\d{2})"
    r"|(?P<a3>\d{1,2})\. ?(?P<b3>\d{1,2})\. ?(?P<c3>\d{4}|\d{2}))" + _AND_TIME
)
CLOCK = re.compile(_TIME)
_UNNAMED = re.compile(r"\?P<\w+>")
# What may be a value within a sentence; each is then read as a cell.
VALUE_IN_SENTENCE = re.compile(
    _UNNAMED.sub(
        "?:",
        rf"\b(?:{'|'.join(DATES[:7])}){_AND_TIME}\b|\b{SHORT_DATE.pattern}\b"
        rf"|\b{_TIME}|(?:{_MINUS})?(?:{_CURRENCY} ?)?\b\d+(?:[.,']\d+)*(?:e[+-]?\d{{1,2}})?\b"
        rf"(?: ?(?:{'|'.join(sorted(map(re.escape, MULTIPLES), key=len, reverse=True))}|[mb])\b)?"
        rf"(?: ?(?:%|[{_SIGNS_OF_CURRENCIES}]))?",
    )
)
LENGTH = re.compile(
    r"(?P<sign>-)?(?P<a>\d{1,4}):(?P<b>\d{2})(?::(?P<c>\d{2}))?(?:[.,](?P<d>\d{1,6}))?"
)
_PART_OF_DURATION = re.compile(
    rf"(\d+(?:[.,]\d+)?) ?({'|'.join(map(re.escape, sorted(SECONDS, key=len, reverse=True)))})"
    r"(?![^\W\d_])[., ]*"
    r"(?:and )?"
)
ISO_DURATION = re.compile(r"p(?:(\d+)d)?(?:t(?:(\d+)h)?(?:(\d+)m)?(?:(\d+(?:\.\d+)?)s)?)?")
LONGEST = 64  # characters of a cell that can be a value
_MAY_BE_VALUE = re.compile(r"[\d年]")


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
    return {"\u2019": "'", "\u066b": ".", "\u066c": ",", "\uffe5": "¥", "\u200b": ""}.get(
        character, character
    )


@functools.lru_cache(maxsize=1 << 14)
def read_cell(text: str) -> Cell:
    """All readings of a cell's text."""
    if len(text) > 4 * LONGEST:
        return Cell(text)
    text = plain_text(text)
    if text in MISSING or _CELL_OF_SIGNS.fullmatch(text):
        return Cell("")
    if text in NUMBER_WORDS:
        return Cell(text, NUMBER_WORDS[text], NUMBER_WORDS[text])
    if len(text) > LONGEST or not (_MAY_BE_VALUE.search(text) or text in MONTHS):
        return Cell(text)
    if marked := MARKED.fullmatch(text):
        text = marked[1] or marked[2]
    bare = text.removeprefix("'")
    return _date(bare) or _short_date(bare) or _clock(bare) or _duration(bare) or _number(bare)


def _number(text: str) -> Cell:
    if (terms := TERMS.fullmatch(text)) and any(terms.groups()[:3]):
        powers = zip(terms.groups(), (12, 8, 4, 0), strict=True)
        value = sum(float(f"{digits}e{power}") for digits, power in powers if digits)
        return Cell(text, value, value)
    found = _NUMBER.fullmatch(text)
    if not found or (said := _unit(found)) is None:
        return Cell(text)
    unit, factor, weak_factor = said
    opened = found["open"] or found["inner_open"]
    signs = [sign for sign in found.group("sign", "inner_sign", "sign_behind") if sign]
    if bool(opened) != bool(found["close"]) or len(signs) > 1:
        return Cell(text)
    if opened and unit and unit not in SIGNED_UNITS:
        return Cell(text)  # ($5 each)
    digits = found["digits"]
    is_plain = text == digits and digits.isdecimal()
    if is_plain and len(digits) > 1 and digits[0] == "0":
        return Cell(text)  # a code such as a postal code
    is_negative = bool(opened) or any("+" not in sign for sign in signs)
    point, comma = (
        -value if value is not None and is_negative else value
        for value in (_point_number(digits, factor), _comma_number(digits, factor))
    )
    is_year = is_plain and len(digits) == 4 and int(digits) in YEARS
    return Cell(text, point, comma, unit, factor, weak_factor, is_year=is_year)


def _unit(found: re.Match[str]) -> tuple[str, int, int] | None:
    """The unit, its power of ten and the power that it may mean; None for a code such as 5a."""
    rest = (found["unit"] or "").rstrip()
    words = rest.strip()
    word, _, more = words.partition(" ")
    currency = CURRENCIES.get((found["currency"] or "").strip(), "")
    unit, factor, weak_factor = words, 0, 0
    if word in MULTIPLES and (word != "k" or not rest.startswith(" ") or currency):
        unit, factor = more, MULTIPLES[word]
    elif word in WEAK_MULTIPLES and (not more or more in CURRENCIES):
        weak_factor = WEAK_MULTIPLES[word]
    elif word[:1] in GLUED_MULTIPLES and word[1:] in CURRENCIES:  # 5k€
        unit, factor = word[1:], GLUED_MULTIPLES[word[0]]
    elif word and not rest.startswith(" ") and word.rstrip(".") not in UNITS | CURRENCIES.keys():
        return None
    if currency and weak_factor:
        factor, weak_factor = weak_factor, 0
    unit = currency or ("%" if found["percent"] else CURRENCIES.get(unit.rstrip("."), unit))
    return unit, factor, weak_factor


def _point_number(digits: str, power: int) -> float | None:
    for text in (digits, digits.rstrip(".,")):
        if POINT_DIGITS.fullmatch(text):
            return float(with_power(_SEPARATORS.sub("", text), power))
    return None


def _comma_number(digits: str, power: int) -> float | None:
    for text in (digits, digits.rstrip(".,")):
        if COMMA_DIGITS.fullmatch(text):
            return float(with_power(_DOTS.sub("", text).replace(",", "."), power))
    return None


def with_power(digits: str, power: int) -> str:
    """The digits of a number, possibly with an exponent, times a power of ten."""
    if not power:
        return digits
    mantissa, _, exponent = digits.partition("e")
    return f"{mantissa}e{int(exponent or 0) + power}"


def _full_year(text: str) -> int:
    year = int(text.removeprefix("'"))
    return year if len(text) == 4 else 2000 + year if year < 69 else 1900 + year


def _valid(year: int | None, month: int | None, day: int | None, time: float | None) -> Date | None:
    try:
        datetime.date(2000 if year is None else year, month or 1, day or 1)
    except ValueError:
        return None
    return Date(year, month, day, time)


def _time_of(found: re.Match[str]) -> float | None:
    """Seconds after midnight; -1 for a time that does not exist."""
    if found["hour"] is None:
        return None
    hour, minute = int(found["hour"]), int(found["minute"])
    second = float((found["second"] or "0").replace(",", "."))
    half = found["half"] if "half" in found.re.groupindex else None
    if half:
        if not 1 <= hour <= 12:
            return -1.0
        hour = hour % 12 + 12 * (half == "p")
    return hour * 3600.0 + minute * 60 + second if hour < 24 and minute < 60 > second else -1.0


def _date(text: str) -> Cell | None:
    for pattern in DATE_CELLS:
        found = pattern.fullmatch(text)
        if not found:
            continue
        fields = found.groupdict()
        time = _time_of(found) if "hour" in fields else None
        month = fields.get("month") or fields.get("month2")
        number = MONTH_NUMBERS[fields["name"]] if fields.get("name") else month and int(month)
        year, day = fields.get("year"), fields.get("day")
        date = _valid(
            _full_year(year) if year else None, number or None, int(day) if day else None, time
        )
        if date and time != -1.0 and (month is None or int(month)):
            return Cell(text, date=date)
    return None


def _short_date(text: str) -> Cell | None:
    found = SHORT_DATE.fullmatch(text)
    if not found:
        return None
    fields = found.groupdict()
    a, b, c = next(
        (fields[f"a{i}"], fields[f"b{i}"], fields[f"c{i}"])
        for i in ("", "1", "2", "3")
        if fields[f"a{i}"]
    )
    time = _time_of(found)
    if time == -1.0:
        return None
    year = _full_year(c)
    day_first, month_first = _valid(year, int(b), int(a), time), _valid(year, int(a), int(b), time)
    if fields["a3"]:  # points: the day comes first
        return Cell(text, date=day_first) if day_first else None
    if not (day_first or month_first):
        return None
    return Cell(text, day_first=day_first, month_first=month_first)


def _clock(text: str) -> Cell | None:
    if (found := CLOCK.fullmatch(text)) and (found["half"] or text.endswith("uhr")):
        time = _time_of(found)
        return Cell(text) if time == -1.0 else Cell(text, clock=(time or 0.0,), is_time=True)
    found = LENGTH.fullmatch(text)
    if not found or int(found["b"]) > 59 or int(found["c"] or 0) > 59:
        return None
    parts = [float(found["a"]), float(found["b"])]
    if found["c"]:
        parts.append(float(found["c"]))
    parts[-1] += float(f"0.{found['d']}") if found["d"] else 0.0
    if found["sign"]:
        parts = [-part for part in parts]
    return Cell(text, clock=tuple(parts))


def _duration(text: str) -> Cell | None:
    if (found := ISO_DURATION.fullmatch(text)) and any(found.groups()):
        sizes = zip(found.groups(), (86_400, 3600, 60, 1), strict=True)
        return Cell(text, duration=sum(float(part or 0) * size for part, size in sizes))
    parts = list(_PART_OF_DURATION.finditer(text))
    if len(parts) < 2 or "".join(part[0] for part in parts) != text:
        return None
    seconds = (float(part[1].replace(",", ".")) * SECONDS[part[2]] for part in parts)
    return Cell(text, duration=sum(seconds))


def clock_text(seconds: float) -> str:
    """Seconds as h:mm:ss, with two digits for the hours of a day."""
    sign, seconds = ("-", -seconds) if seconds < 0 else ("", seconds)
    whole = int(seconds)
    rest = f"{round(seconds - whole, 6):g}"[1:] if seconds != whole else ""
    return f"{sign}{whole // 3600:02}:{whole // 60 % 60:02}:{whole % 60:02}{rest}"
