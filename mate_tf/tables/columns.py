"""The kind of a column, and the value of each of its cells.

The column decides where a cell alone may be read in several ways (values.py): which sign is the
decimal one, whether the day or the month comes first, whether "9:58" is a time or a length. What
cannot be decided keeps a plain reading or none, and `assumed` says so.
"""

import dataclasses
import datetime
import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from mate_tf.tables import notations
from mate_tf.tables import units as families
from mate_tf.tables.notations import CURRENCIES, CURRENCY_UNITS
from mate_tf.tables.units import FAMILIES, SECONDS, UNITS, in_unit
from mate_tf.tables.values import (
    Cell,
    Date,
    clock_text,
    day_of_digits,
    in_utc,
    read_cell,
    with_power,
)

Kind = Literal["number", "date", "time", "duration", "text", "empty"]
SHARE_OF_KIND = 0.7  # of the cells with a value

LENGTH_NAME = re.compile(
    r"duration|length|elapsed|runtime|running|lap|split|pace|time taken|dauer|laufzeit|durée|duree|"
    r"mm:ss|deficit|difference|(?:finish|net|gun|chip|total|race) ?time|time \(min"
)
TIME_NAME = re.compile(
    r"start|end|begin|d[eé]part|arriv|open|clos|clock|time of day|schedule|kick|uhrzeit|heure|hora|"
    r"salida|llegada|abfahrt|ankunft|partenza|vertrek|orario|\bhh?:mm am"
)
# Where two numbers are hours and minutes of a length.
HOURS_NAME = re.compile(
    r"\b(?:hours|hrs|worked|overtime|arbeitszeit|heures|horas)\b|stunden\b|hh?:mm(?:$|[^:])"
)
YEAR_NAME = re.compile(
    r"\byears?\b|jahr|année|annee|\baño|\banno\b|\bano\b|season|founded|established|born|年"
)
# Where eight digits are a date.
DAY_NAME = re.compile(
    r"(?:date|datum|(?:^|[^a-z])(?:day|fecha|data|tag|jour|dato|tarihi?))(?:$|[^a-z])"
    r"|日付|日期|年月日|날짜|дата"
)
_DATE_NAME = re.compile(r"(?:^|[^a-z])(?:date|datum|fecha|tarihi?)(?:$|[^a-z])|日付|日期|날짜|дата")
_EPOCH_NAME = re.compile(
    r"timestamp|epoch|created|updated|modified|(?:^|[^a-z])(?:time|date|ts|at|unix)(?:$|[^a-z])"
)
_MONTH_NAME = re.compile(r"(?:month|monat|mois|mes|mese|mês|月)(?: ?(?:no\.?|number|#))?")
_VERSION_NAME = re.compile(r"version|firmware|kernel|release|(?:^|[^a-z])ver(?:$|[^a-z])")
_RECORD_NAME = re.compile(r"\bw\W?[ldt]\b|\bw\W[ldt]\W[ldt]\b|record|won.lost|win.?loss")
_RECORD = re.compile(r"\d{1,2}-\d{1,2}-\d{1,2}")
_ISO_DATE = re.compile(r"\d{4}-\d\d?(?!\d)")
_VERSION = re.compile(r"v?\d+(?:\.\d+)+(?:[-+.]?[a-z][\w.-]*)?")
# Numbers that are dates by a column's name: a name, how many are a day, the day 1970-01-01, and the
# first and last day that they may be.
_NUMBERS_OF_DAYS = (
    (_DATE_NAME, 1.0, 25_569.0, 0, 47_482),  # Excel's serial days
    *((_EPOCH_NAME, 86_400.0 * unit, 0.0, 5_787, 47_482) for unit in (1, 1e3, 1e6)),
)
_SIZE = re.compile(r"(?:\d+(?:\.\d+)?([KMGTP])?B?|-?)")  # as `du -h` has them
_SIZE_NAME = re.compile("size|used|avail|disk|mem")
_DEGREES, _DEGREES_NAME = re.compile(r"-?\d+(?:\.\d+)?[CF]"), re.compile("temp|weather|wetter")
_NAMED_UNIT = re.compile(r".*[(\[,] ?([^()\[\],]+?) ?[)\]]?")
_LABEL_NAME = re.compile(
    r"(?:.*[\W_])?(id|ids|zip|zipcode|plz|postcode|postal|code|phone|telephone|fax|isbn|ean|sku|"
    r"latitude|longitude)(?:[\W_].*)?|no\.?|nr\.?|number|#|rank|position"
)


@dataclass(frozen=True)
class Convention:
    """How a column writes numbers and dates; also the way in which a question about it is read."""

    decimal: str = "."
    day_first: bool | None = None  # None: undecided
    weak_multiples: bool = False  # "5 m" is 5 million
    unit: str = ""  # of the column's numbers, or of its name: "Weight (kg)"
    in_hours: bool = True  # "2:30" is hours and minutes, not minutes and seconds
    kind: Literal["", "date", "time", "version"] = ""


@dataclass(frozen=True)
class Column:
    """A column as it was understood."""

    name: str  # the header
    kind: Kind  # of most cells; "text" where fewer than 70 % of those with a value have one kind
    # Of each cell, of the column's kind: numbers, Dates, seconds after midnight of times, seconds
    # of durations; None where a cell has none, and for all cells of text.
    values: tuple[float | Date | None, ...]
    numbers: tuple[float | None, ...]  # each cell as a number, whatever the kind; or in seconds
    units: tuple[str, ...]  # of each cell; "" without one
    convention: Convention  # how it was read
    assumed: tuple[str, ...] = ()  # sentences that say what was assumed

    @property
    def unit(self) -> str:
        """The unit that all numbers with one share; "" if there is none or several."""
        pairs = zip(self.units, self.values, strict=True)
        units = {unit for unit, value in pairs if unit and value is not None}
        return units.pop() if len(units) == 1 else ""

    def sum_and_average(self, totals: Collection[int] = ()) -> tuple[float | None, float | None]:
        """Both without the rows of totals, in the column's unit or seconds; None without sense."""
        is_label = self.kind == "number" and _LABEL_NAME.fullmatch(self.name.lower())
        rows = enumerate(self.values)
        values = [it for row, it in rows if isinstance(it, float) and row not in totals]
        is_of_numbers = self.kind in ("number", "duration") and values
        if not is_of_numbers or is_label or unlike_units(self.units, with_unknown=True):
            return None, None
        total = math.fsum(values)
        return total, total / len(values)

    def to_dict(self, totals: Collection[int] = ()) -> dict[str, object]:
        """The column as `mate-tf show --json` prints it; `totals` are rows left out of its sum."""
        total, average = self.sum_and_average(totals)
        values: list[object] = [
            value.isoformat() if isinstance(value, Date) else value for value in self.values
        ]
        if self.kind == "time":
            values = [clock_text(it) if isinstance(it, float) else it for it in values]
        return {
            "name": self.name,
            "kind": self.kind,
            "values": values,
            "unit": self.unit,
            "sum": total,
            "average": average,
        }


def unlike_units(units: Iterable[str], with_unknown: bool = False) -> tuple[str, ...]:
    """The units, if they are several known ones, which cannot be added; otherwise ().

    Unknown ones are alike if they begin with the same two letters: "1 goal" and "3 goals".
    """
    by_name: dict[str, str] = {}
    for unit in filter(None, units):
        known = _known_unit(unit) or (_known_unit(unit.split(" ")[0]) if with_unknown else "")
        if known:
            by_name.setdefault(families.usual_name(known) if known in UNITS else known, known)
        elif with_unknown and any(map(str.isalpha, unit)):
            by_name.setdefault(unit if "/" in unit else unit[:2], unit)
    return tuple(by_name.values()) if len(by_name) > 1 else ()


def _known_unit(unit: str) -> str:
    unit = unit.split(" (")[0].rstrip(".").replace(". ", " ")
    return unit if unit in UNITS or unit in CURRENCY_UNITS else ""


def _in_one_unit(
    cells: Sequence[Cell], numbers: list[float | None], units: list[str]
) -> tuple[list[float | None], list[str]]:
    """Numbers in the unit of most cells, if all are of one family; but lengths of time stay."""
    if not any(units):
        return numbers, units
    names = []
    for cell, number, unit in zip(cells, numbers, units, strict=True):
        word = cell.text.rsplit(" ", 1)[-1]  # "pounds" may be a weight, and "ft" a length
        unit = word if unit in CURRENCY_UNITS and word in UNITS else _known_unit(unit)
        names.append(unit if number is not None else "")
    family = families.family_of(set(filter(None, names)))
    is_of_lengths = family is FAMILIES["time"] and (
        all(family[name].factor >= 1 for name in names if name) or any(it.duration for it in cells)
    )
    if not family or is_of_lengths or set(units) <= CURRENCY_UNITS | {""}:
        return numbers, units
    counts = Counter(family[name] for name in names if name)
    usual = next(name for name in names if name and counts[family[name]] == max(counts.values()))
    numbers = [
        number if number is None else in_unit(number, name, usual)
        for name, number in zip(names, numbers, strict=True)
    ]
    return numbers, [usual if name else unit for name, unit in zip(names, units, strict=True)]


def read_column(texts: Sequence[str], name: str = "") -> Column:
    """Reads all cells of a column together, in one pass for each decision."""
    cells = [read_cell(text) for text in _with_signs(_with_units(texts, name))]
    are_versions = _are_versions(cells, name)
    are_texts = _VERSION if are_versions else _RECORD if _RECORD_NAME.search(name.lower()) else None
    if are_texts:
        cells = [Cell(cell.text) if are_texts.fullmatch(cell.text) else cell for cell in cells]
    decimal, number_notes = _decimal_sign(cells, name)
    day_first, date_notes = _order_of_dates(cells, name)
    convention = Convention(decimal, day_first, _has_multiples(cells, texts))
    pairs = [number_of(cell, convention) for cell in cells]
    numbers, units = [number for number, _ in pairs], [unit for _, unit in pairs]
    if _are_labels(units):
        numbers, units = [None] * len(cells), [""] * len(cells)
    numbers, units = _with_sides(cells, numbers, units)
    as_written = numbers
    numbers, units = _in_one_unit(cells, numbers, units)
    kinds = _values_by_kind(cells, numbers, units, convention, name)
    num_filled = sum(bool(cell.text) for cell in cells)
    counts = {kind: len(values) - values.count(None) for kind, values in kinds.items()}
    kind: Kind = max(counts, key=counts.__getitem__)
    if counts[kind] < SHARE_OF_KIND * num_filled or not num_filled:
        kind = "text" if num_filled else "empty"
    values = kinds.get(kind, [None] * len(cells))
    if kind == "duration":
        numbers = [value if isinstance(value, float) else None for value in values]
        units = [""] * len(cells)
    assumed = number_notes if kind == "number" else date_notes if kind == "date" else []
    named = _named(name)
    if kind == "number":
        if numbers != as_written:
            unit = next(filter(_known_unit, units))
            assumed.append(f"{named} has numbers in several units, which were read in {unit}.")
        if unlike := " and ".join(unlike_units(units)):
            assumed.append(f"{named} has numbers in {unlike}, which are not added up or compared.")
    elif kind == "date":
        if _has_zones(cells):
            assumed.append(f"{named} has clocks of several zones, which were read in UTC.")
        others = [cell.text for cell in cells if cell.text and not _ISO_DATE.match(cell.text)]
        if not assumed and 0 < len(others) < num_filled:
            assumed = [f"{named} has dates such as 2024-01-31 and others, such as '{others[0]}'."]
    elif kind == "text" and day_first is None:
        undecided = [cell.text for cell in cells if cell.is_open]
        if undecided and len(undecided) + counts["date"] >= SHARE_OF_KIND * num_filled:
            assumed = [
                f"{named}: '{undecided[0]}' may have the day or the month first, so it was "
                "not read as dates; write dates such as 2024-01-31."
            ]
    parts = tuple(values), tuple(numbers), tuple(units)
    column = Column(name, kind, *parts, convention, tuple(assumed))
    return dataclasses.replace(column, convention=_with_kind(column, are_versions, cells))


def _with_kind(column: Column, are_versions: bool, cells: Sequence[Cell]) -> Convention:
    """The column's convention with its unit, or with its kind where that reads a question."""
    if column.kind not in ("number", "duration"):
        kind: Any = column.kind if column.kind in ("date", "time") else ""
        return dataclasses.replace(column.convention, kind="version" if are_versions else kind)
    named = _NAMED_UNIT.fullmatch(column.name.lower())
    unit = _known_unit(column.unit) or (named[1] if named and not any(column.units) else "")
    is_duration = column.kind == "duration"
    unit = "s" if is_duration else unit
    has_minutes = any(len(cell.clock) == 2 for cell in cells) or not any(
        value is not None and value >= 3600 for value in column.numbers
    )
    return dataclasses.replace(
        column.convention,
        unit=unit if unit in UNITS else "",
        in_hours=not is_duration or _is_of_hours(column.name) or not has_minutes,
    )


def _are_versions(cells: Sequence[Cell], name: str) -> bool:
    """Whether all are versions, by the name or with three parts, and mostly no dates."""
    filled = [cell for cell in cells if cell.text]
    are_dates = 2 * sum(cell.date is not None for cell in filled) >= len(filled)
    fewest = 1 if _VERSION_NAME.search(name.lower()) else 2
    are_versions = (_VERSION.fullmatch(it.text) and it.text.count(".") >= fewest for it in filled)
    return all(are_versions) and (fewest == 1 or not are_dates)


def version_number(text: str) -> float:
    """A version as a number that sorts by its parts, each below 1000: 3.010 of "v3.10"."""
    parts = re.findall(r"\d+", text.split("-")[0])
    return sum(min(int(part), 999) / 1000.0**place for place, part in enumerate(parts))


def _with_units(texts: Sequence[str], name: str) -> Sequence[str]:
    """The texts with the whole units of temperatures, "20C", and of sizes, "1.6G" beside "20K"."""
    filled = [text.strip() for text in texts if text.strip()]
    if _DEGREES_NAME.search(name.lower()) and all(map(_DEGREES.fullmatch, filled)):
        return [re.sub("([CF])$", r"°\1", text.strip()) for text in texts]
    if "G" not in "".join(texts):
        return texts
    sizes = [_SIZE.fullmatch(text.strip()) for text in texts]
    letters = {size[1] for size in sizes if size} - {None}
    are_several = len(letters) > 1 or _SIZE_NAME.search(name.lower())
    if "G" not in letters or None in sizes or not are_several:
        return texts
    return [re.sub("([KMGTP])$", r"\1iB", text.strip()) for text in texts]


def _with_signs(texts: Sequence[str]) -> Sequence[str]:
    """The texts with signs for arrows that point up, where the column says what they mean."""
    if not notations.UP.search("".join(texts)):
        return texts
    ups = [bool(notations.UP.search(text)) for text in texts]
    if any(map(notations.DOWN.search, texts)):
        return [notations.UP.sub("+", text) for text in texts]
    others = (text for text, is_up in zip(texts, ups, strict=True) if not is_up)
    if any(map(notations.NOT_ZERO.search, others)):
        return [notations.UP.sub("-", text) for text in texts]
    return texts


def _with_sides(
    cells: Sequence[Cell], numbers: list[float | None], units: list[str]
) -> tuple[list[float | None], list[str]]:
    """Numbers and units; debits are negative where each cell is a debit or a credit."""
    texts = [cell.text for cell in cells if cell.text]
    for debit, credit in notations.SIDES:
        if not texts or not (debit.fullmatch(texts[0]) or credit.fullmatch(texts[0])):
            continue
        num_debits, num_credits = (len(list(filter(it.fullmatch, texts))) for it in (debit, credit))
        if num_debits and num_credits and num_debits + num_credits == len(texts):
            signed = [
                -number if number is not None and debit.fullmatch(cell.text) else number
                for cell, number in zip(cells, numbers, strict=True)
            ]
            return signed, [""] * len(units)
    return numbers, units


def _are_labels(units: Sequence[str]) -> bool:
    """Whether what follows the numbers are names, as in "12 Main" and "80331 Munich", no units."""
    words = [unit for unit in units if len(unit) > 1]
    others = [unit[:2] for unit in words if not _known_unit(unit) or unit == "us"]  # as in #88 US
    different = sum(other != others[0] for other in others)
    return different > 0 and 2 * different >= len(words)


def _named(name: str) -> str:
    return f"Column '{name}'" if name else "A column without a name"


def _decimal_sign(cells: Sequence[Cell], name: str) -> tuple[str, list[str]]:
    points = sum(cell.point is not None and cell.comma is None for cell in cells)
    commas = sum(cell.comma is not None and cell.point is None for cell in cells)
    open_ = [it for it in cells if None not in (it.point, it.comma) and it.point != it.comma]
    commas += sum(cell.unit in notations.POINTED_CURRENCIES for cell in open_)
    if commas > points:
        return ",", [f"{_named(name)} has a decimal comma."]
    if points and commas:
        return ".", [f"{_named(name)} has both decimal points and decimal commas."]
    for cell in open_ if not points else ():
        if "." in cell.text:
            reading = f"'{cell.text}' was read as {cell.point:g}, with a decimal point."
            return ".", [f"{_named(name)}: {reading}"]
    return ".", []


def _order_of_dates(cells: Sequence[Cell], name: str) -> tuple[bool | None, list[str]]:
    """Whether the day comes first in dates of numbers; None where nothing decides it."""
    open_ = [cell for cell in cells if cell.is_open]
    days = any(cell.day_first and not cell.month_first for cell in cells)
    months = any(cell.month_first and not cell.day_first for cell in cells)
    if days and months:
        both = f"{_named(name)} has dates with the day first and others with the month first."
        return None, [f"{both} '{cell.text}' may be either and is none." for cell in open_[:1]]
    if days or months:
        order = "day, month, year" if days else "month, day, year"
        sentence = f"{_named(name)} has dates in the order {order}, as a day above 12 shows."
        was_assumed = open_ or (months and any(cell.day_first for cell in cells))
        return days, [sentence] if was_assumed else []
    if open_ and all("/" not in cell.text for cell in open_):
        order = "dates were read in the order month, day, year; no day is above 12."
        return False, [f"{_named(name)}: {order}"]
    return None, []


def _has_multiples(cells: Sequence[Cell], texts: Sequence[str]) -> bool:
    """Whether the "m" of "5 m" is a million: beside currencies or other powers, or as 2.5M."""
    weak = {cell.factor for cell in cells if cell.factor}
    others = any(cell.power or cell.unit in CURRENCY_UNITS for cell in cells)
    filled = [text for text, cell in zip(texts, cells, strict=True) if cell.text]
    if not others and any(cell.unit in UNITS for cell in cells if not cell.factor):
        return False  # 5 kg, 3 m
    if not weak or others or len(weak) > 1:
        return bool(weak)
    has_parts = any(map(notations.IN_PARTS.fullmatch, filled))
    return has_parts and all(map(notations.IN_CAPITALS.fullmatch, filled))


def number_of(cell: Cell, convention: Convention) -> tuple[float | None, str]:
    """The cell as a number, and its unit."""
    both = (cell.comma, cell.point) if convention.decimal == "," else (cell.point, cell.comma)
    number = both[1] if both[0] is None else both[0]
    if number is not None and cell.factor and convention.weak_multiples:
        words = cell.unit.split(" ", 1)
        unit = CURRENCIES.get(words[1], words[1]) if len(words) > 1 else ""
        return float(with_power(repr(number), cell.factor)), unit
    return number, cell.unit


def date_of(cell: Cell, convention: Convention) -> Date | None:
    """The cell as a date; a year alone is none."""
    if convention.day_first is None:
        return cell.date
    return (cell.day_first if convention.day_first else cell.month_first) or cell.date


def _has_zones(cells: Sequence[Cell]) -> bool:
    return len({cell.zone for cell in cells if cell.zone is not None}) > 1


def _values_by_kind(
    cells: Sequence[Cell],
    numbers: Sequence[float | None],
    units: Sequence[str],
    convention: Convention,
    name: str,
) -> dict[Kind, list[float | Date | None]]:
    dates: list[float | Date | None] = [date_of(cell, convention) for cell in cells]
    if _has_zones(cells):
        dates = [
            in_utc(date, cell.zone) if isinstance(date, Date) and cell.zone is not None else date
            for cell, date in zip(cells, dates, strict=True)
        ]
    lower = name.lower()
    are_years = all(cell.is_year for cell in cells if cell.text)
    if any(dates) or YEAR_NAME.search(lower) or (are_years and _DATE_NAME.search(lower)):
        dates = [
            Date(int(cell.point), None, None) if cell.is_year and cell.point else date
            for cell, date in zip(cells, dates, strict=True)
        ]
    months = {cell.text: notations.MONTH_NUMBERS.get(cell.text.rstrip(".")) for cell in cells}
    months.pop("", None)
    if len(set(months.values())) > 1 and all(months.values()):
        dates = [Date(None, months[cell.text], None) if cell.text else None for cell in cells]
    if not any(dates) and DAY_NAME.search(lower):
        dates = [day_of_digits(cell.text) for cell in cells]
    if not any(dates) and not any(units):
        dates = _dates_of_numbers(numbers, lower) or dates
    clocks = [cell for cell in cells if cell.clock]
    lengths: list[float | Date | None] = [cell.duration for cell in cells]
    times: list[float | Date | None] = [None] * len(cells)
    if clocks:
        as_time = _are_times(clocks, name, any(length is not None for length in lengths))
        in_hours = as_time or _is_of_hours(name)
        seconds = [seconds_of_clock(cell.clock, in_hours) if cell.clock else None for cell in cells]
        if as_time:
            times = [  # 9h beside 9h30
                3600 * number if number is not None and unit == "h" and 0 <= number < 24 else time
                for time, number, unit in zip(seconds, numbers, units, strict=True)
            ]
        else:
            lengths = [s if d is None else d for s, d in zip(seconds, lengths, strict=True)]
            if any(cell.clock[-1] % 1 for cell in clocks):  # 59.20 beside 1:02.05
                lengths = [
                    number if length is None and not unit else length
                    for length, number, unit in zip(lengths, numbers, units, strict=True)
                ]
    by_unit = [SECONDS.get(unit) for unit in units]
    if any(length is not None for length in lengths) or len(set(by_unit) - {None}) > 1:
        lengths = [
            number * size if length is None and number is not None and size else length
            for length, number, size in zip(lengths, numbers, by_unit, strict=True)
        ]
    # In the order of preference where two kinds have as many cells.
    return {"date": dates, "time": times, "duration": lengths, "number": list(numbers)}


def _dates_of_numbers(numbers: Sequence[float | None], name: str) -> list[float | Date | None]:
    """Dates of epochs, Excel's serial days and numbers of months; [] if the numbers are none."""
    given = [number for number in numbers if number is not None]
    if _MONTH_NAME.fullmatch(name) and all(number in range(1, 13) for number in given):
        return [number and Date(None, int(number), None) for number in numbers]
    for named, size, first, least, most in _NUMBERS_OF_DAYS if given else ():
        days = [number if number is None else number / size - first for number in numbers]
        if named.search(name) and all(day is None or least <= day < most for day in days):
            has_time = any(day and day % 1 for day in days)
            return [day if day is None else _date_of_days(day, has_time) for day in days]
    return []


def _date_of_days(days: float, has_time: bool) -> Date:
    day, seconds = divmod(round(days * 86_400, 3), 86_400)
    date = datetime.date(1970, 1, 1) + datetime.timedelta(day)
    return Date(*date.timetuple()[:3], round(seconds, 3) if has_time else None)


def _are_times(clocks: Sequence[Cell], name: str, has_lengths: bool) -> bool:
    """Whether the column's clocks are times of day, not lengths of time."""

    def can_be_time(clock: tuple[float, ...]) -> bool:
        is_within = (min(clock) >= 0 and clock[0] < 24) or (clock[0] == 24 and not any(clock[1:]))
        return is_within and clock[-1] == int(clock[-1])

    if any(cell.is_time for cell in clocks):
        return True
    parts = [cell.clock for cell in clocks]
    is_signed = any(cell.text[0] == "+" for cell in clocks)
    if has_lengths or is_signed or not all(map(can_be_time, parts)):
        return False
    is_of_lengths = LENGTH_NAME.search(name.lower()) or _is_of_hours(name)
    if is_of_lengths or len(set(map(len, parts))) > 1:
        return False
    if TIME_NAME.search(name.lower()) or len(parts[0]) != 3:
        return True
    hours = [cell.text.split(":")[0] for cell in clocks]  # "0:12:00", mostly "00:12:00": lengths
    return min(map(len, hours)) > 1 and 2 * hours.count("00") < len(clocks)


def _is_of_hours(name: str) -> bool:
    return bool(HOURS_NAME.search(name.lower())) and not TIME_NAME.search(name.lower())


def seconds_of_clock(clock: tuple[float, ...], in_hours: bool = True) -> float:
    """Seconds of a cell's clock; `in_hours` if two numbers are hours and minutes."""
    if len(clock) == 1:
        return clock[0]
    # Two numbers are hours and minutes of a time, minutes and seconds of a length.
    first = 3600.0 if in_hours or len(clock) == 3 else 60.0
    return sum(part * size for part, size in zip(clock, (first, first / 60, 1.0), strict=False))
