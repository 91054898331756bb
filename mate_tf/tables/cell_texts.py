"""The texts of cells whose values have types: as files have them, and as Excel shows them."""

import contextlib
import datetime
import itertools
import json
import math
import re
from collections.abc import Callable, Iterable
from decimal import ROUND_HALF_UP, Decimal
from numbers import Real
from operator import eq, ge, gt, le, lt, ne
from typing import Any

from mate_tf.tables.notations import GLUED_MULTIPLES, NO_MONEY
from mate_tf.tables.units import GLUED_UNITS
from mate_tf.tables.values import clock_text

_MANY = 100  # values, from which on they are read together


def plain_value(value: Any) -> Any:
    """A typed value as a table shows it: dates in ISO form, whole floats as integers, NaN as None.

    A date with the time 00:00:00 is a date, a length of time is h:mm:ss. Floats have the 15 digits
    that Excel shows, so that 0.1 + 0.2 is 0.3; from 2**53 on, where they may be inexact, they stay.
    """
    if isinstance(value, float):
        if math.isnan(value):
            return None
        if abs(value) >= 2**53:
            return value
        value = value if value.is_integer() else float(f"{value:.15g}")
        return int(value) if value.is_integer() else value
    kind = type(value).__name__
    if kind in ("NAType", "NaTType", "MaskedConstant"):  # of pandas and numpy
        return None
    if kind in ("datetime64", "timedelta64"):  # of numpy
        value = value.astype(f"{kind}[us]").item()
    if isinstance(value, datetime.datetime):
        is_date = value.time() == datetime.time() and value.tzinfo is None
        return value.date().isoformat() if is_date else value.isoformat(" ")
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    if isinstance(value, datetime.timedelta):
        return clock_text(value.total_seconds()).removeprefix("0")
    return value


def _text_of_float(value: float) -> str:
    text = f"{value:.15g}"
    if "e" in text or not text[-1].isdigit() or abs(value) >= 2**53:
        return _other_text(value)
    return "0" if text == "-0" else text


def _other_text(value: Any) -> str:
    if isinstance(value, str):
        return str.__str__(value)  # a plain one of numpy's
    if isinstance(value, bytes | list | tuple | dict | set):
        raise TypeError(f"expected text, a number or None, got {type(value).__name__}")
    value = plain_value(value)
    if value is None or isinstance(value, str):
        return value or ""
    if type(value).__str__ is object.__str__ and type(value).__repr__ is object.__repr__:
        raise TypeError(f"expected text, a number or None, got {type(value).__name__}")
    text = float.__repr__(value) if isinstance(value, float) else str(value)
    is_number = isinstance(value, Real | Decimal) and not isinstance(value, bool)
    if is_number and "e" in text.lower():
        # 1e-05 would be read as the numbers 1 and 5. But 1e-300 keeps its exponent.
        with contextlib.suppress(ArithmeticError):  # the text of an enum is its name
            number = Decimal(text)
            if not number or 1e-40 < abs(number) < 1e40:
                return format(number, "f")
    return text


def _texts_of_floats(values: list[float]) -> list[str]:
    """As `_text_of_float` of each, in a third of the time."""
    text = "%.15g\n" * len(values) % tuple(values)
    if "e" in text:
        return list(map(_text_of_float, values))
    return text.replace("-0\n", "0\n").replace("nan\n", "\n").split("\n")[:-1]


# What the commonest types need of `_other_text`; most cells of a large table are of these.
_TEXT_BY_TYPE: dict[type, Callable[[Any], str]] = {
    str: str,
    int: str,
    bool: str,
    float: _text_of_float,
    type(None): lambda _: "",
    datetime.date: datetime.date.isoformat,
    datetime.datetime: lambda moment: moment.isoformat(" ").removesuffix(" 00:00:00"),
}


def cell_text(value: Any) -> str:
    """The text of a cell's value, as files have it; TypeError for a container or bytes."""
    return _TEXT_BY_TYPE.get(type(value), _other_text)(value)


def cell_texts(values: Iterable[Any]) -> list[str]:
    """The texts of several cells, of text alone without a look at each; errors as `cell_text`."""
    values = list(values)
    types = set(map(type, values))
    if types <= {str}:
        return values
    if types <= {str, type(None)}:
        return [value or "" for value in values]
    if types == {float} and len(values) > _MANY:
        return _texts_of_floats(values)
    by_type = {it: _TEXT_BY_TYPE.get(it, _other_text) for it in types}
    if len(by_type) == 1:
        return list(map(by_type.popitem()[1], values))
    return [by_type[type(value)](value) for value in values]


def dates_of(moments: Any) -> list[Any] | None:
    """Python's dates of numpy's, without times if all are at midnight; None if it lacks one."""
    import numpy as np

    for unit in ("D", "us"):
        rounded = moments.astype(f"datetime64[{unit}]")
        if ((rounded == moments) | np.isnat(moments)).all():
            dates = list(rounded.tolist())
            return None if int in set(map(type, dates)) else dates  # after the year 9999
    return None  # with nanoseconds


def are_texts(rows: Iterable[Iterable[Any]]) -> bool:
    """Whether all cells of the rows are plain texts."""
    return set(map(type, itertools.chain.from_iterable(rows))) <= {str}


def column_texts(values: list[Any]) -> list[Any]:
    """The texts of a column as of `nested_text`; values, if one has none, which `Table` refuses."""
    if not set(map(type, values)) <= _TEXT_BY_TYPE.keys():
        values = list(map(nested_text, values))
    try:
        return cell_texts(values)
    except TypeError:
        return values


def nested_text(value: Any) -> Any:
    """A value; a list of single ones joined by commas, other containers as JSON, bytes as text."""
    if isinstance(value, bytes):
        return value.decode()
    if getattr(value, "shape", None) and hasattr(value, "tolist"):  # an array
        value = value.tolist()
    if not isinstance(value, list | tuple | dict):
        return plain_value(value)
    if isinstance(value, dict) or any(isinstance(item, list | tuple | dict) for item in value):
        return json.dumps(value, ensure_ascii=False, default=str)
    return ", ".join("" if item is None else str(nested_text(item)) for item in value)


_LITERAL = re.compile(r'"([^"]*)"|\\(.)|\[\$([^\]-]*)(?:-[^\]]*)?\]|\[[^\]]*\]|_.|\*.')
_CONDITION = re.compile(r"\[(<=|>=|<>|<|>|=)(-?[\d.]+)\]")
_HOLDS: dict[str, Callable[[float, float], bool]] = dict(
    zip("< <= = > >= <>".split(), (lt, le, eq, gt, ge, ne), strict=True)
)
_PLACES = re.compile(r"[#0?][#0?,]*(?:\.[#0?]*)?,*|\.[#0?]+|General", re.IGNORECASE)
_OF_NEGATIVES = re.compile(r"[-(\u2212\u2013\u25b3\u25bc]")


def _section(value: float, sections: list[str]) -> tuple[str, bool]:
    """The part of a number format that a value has, and whether others have another part."""
    conditions = list(map(_CONDITION.search, sections))
    if not any(conditions):
        is_negative = value < 0 and len(sections) > 1 and bool(sections[1].strip())
        place = 1 if is_negative else 2 if value == 0 and len(sections) > 2 else 0
        return sections[place], place > 0
    for section, condition in zip(sections, conditions, strict=True):
        if condition is None or _HOLDS[condition[1]](value, float(condition[2])):
            return section, True
    return "", True


def shown_number(value: float, number_format: str) -> str:
    """A number as Excel shows it in a format with more than digits; "" for plain formats.

    Formats are such as "0.0%", "$#,##0.00;($#,##0.00)", "[>=1000]0.0,K;0" or "00000". A dash alone,
    which stands for 0 in many formats, is no number to read, so that it is "" too.
    """
    if number_format in ("General", "@", "") or not math.isfinite(value):
        return ""
    section, is_one_of_several = _section(value, number_format.split(";"))
    # Literal texts become characters of their own, so that their digits are no places.
    literals: list[str] = []

    def kept(match: re.Match[str]) -> str:
        literals.append(next(filter(None, match.groups()), ""))
        return chr(0xE000 + len(literals) - 1)

    plain = _LITERAL.sub(kept, section)

    def text(part: str) -> str:
        return "".join(literals[ord(c) - 0xE000] if c >= "\ue000" else c for c in part)

    slots = _PLACES.search(plain)
    if not slots or (value == 0 and not re.search("[0#]|General", plain, re.IGNORECASE)):
        shown = text(plain.replace("?", "")).strip()
        is_shown = _CONDITION.search(section) or (value == 0 and NO_MONEY.fullmatch(shown.lower()))
        return shown if is_shown and len(shown) > 1 else ""
    if re.search(r"[eE][+-]|/", plain):
        return ""
    if len(_PLACES.findall(plain)) > 1:  # 000-00-0000
        return text(_masked(value, plain)).strip() if float(value).is_integer() else ""
    before, after = text(plain[: slots.start()]).lstrip(), text(plain[slots.end() :]).rstrip()
    has_sign = value < 0 and is_one_of_several and _OF_NEGATIVES.search(before + after)
    sign = "-" if value < 0 and not has_sign else ""
    if slots[0].lower() == "general":
        return f"{sign}{before}{plain_value(abs(value))}{after}" if before or after else ""
    percent = plain.count("%")
    whole, _, decimals = slots[0].rstrip(",").partition(".")
    scale = len(slots[0]) - len(slots[0].rstrip(","))
    least = whole.count("0")
    if not (percent or before or after or scale or least > 1 or "(" in number_format):
        return ""
    number = abs(Decimal(repr(value)).scaleb(2 * percent - 3 * scale))
    digits = number.quantize(Decimal(1).scaleb(-len(decimals)), ROUND_HALF_UP)
    shown = f"{digits:,f}" if "," in whole else f"{digits:f}"
    for _ in range(decimals.count("#") + decimals.count("?")):
        shown = shown.removesuffix("0") if "." in shown else shown
    head, point, tail = shown.rstrip(".").partition(".")
    sign = sign if digits else ""
    is_read = after.lower() in GLUED_UNITS | GLUED_MULTIPLES.keys()
    space = " " if after[:1].isalpha() and not is_read else ""
    return f"{sign}{before}{head.zfill(least)}{point}{tail}{space}{after}"


def _masked(value: float, plain: str) -> str:
    """A whole number whose digits fill the places of a format from the right."""
    digits = list(str(abs(int(value))))
    first = _PLACES.search(plain)
    filled = []
    for place, character in reversed(list(enumerate(plain))):
        if character in "#0?":
            character = digits.pop() if digits else "0" if character == "0" else ""
            if first and place == first.start():
                character = "".join(digits) + character
        filled.append(character)
    return ("-" if value < 0 else "") + "".join(reversed(filled))


def format_number(value: float) -> str:
    """Writes a number plainly: integers in full, others to 12 digits."""
    if not math.isfinite(value):
        return str(value)
    if value.is_integer():
        return str(int(value))
    return format(Decimal(repr(float(f"{value:.12g}"))), "f")
