"""Numbers of cells, and what is computed from them."""

import math
import re
from collections.abc import Iterable

import numpy as np

from mate_tf.features.normalization import normalize_for_match
from mate_tf.features.numeric import parse_text

EN_DASH = "\N{EN DASH}"
MINUS_SIGNS = f"-{EN_DASH}\N{MINUS SIGN}"
CURRENCY_SIGNS = "$€£¥₹"
DOLLARS = "us|au|ca|nz|hk|mx|a|c|s|r"  # what stands before the sign of some
MULTIPLES = "k|m|mn|b|bn|thousand|million|billion|trillion"  # as units, which are not read
POWER_OF_TEN = rf"[{MINUS_SIGNS}]?[0-9]+(?:\.[0-9]+)?e[+-]?[0-9][0-9]?"  # 2.5e-05, alone in a cell
LARGEST_POWER = 1e38  # the features are in single precision
_CURRENCY = f"(?:{DOLLARS})?[{CURRENCY_SIGNS}]"
# What makes a number negative that the features read without it, since the models were trained so.
_SIGN_BEFORE = re.compile(
    rf"(?:{EN_DASH}|[{MINUS_SIGNS}]{_CURRENCY} ?|{_CURRENCY} ?[{MINUS_SIGNS}])(?=\.?\d)"
    rf"|(?:\( ?{_CURRENCY} ?|{_CURRENCY} ?\( ?)(?=\.?\d[\d,.]* ?(?:%|{MULTIPLES})? ?\)$)"
)


def compute(aggregation: str, texts: Iterable[str]) -> float | None:
    """SUM, AVERAGE or COUNT of cells, in double precision.

    SUM and AVERAGE take the cells that have a number; None where none has.
    """
    texts = list(texts)
    if aggregation == "COUNT":
        return float(len(texts))
    numbers = [number for text in texts if (number := unit_free_number(text)) is not None]
    if not numbers:
        return None
    total = math.fsum(numbers)
    return total if aggregation == "SUM" else total / len(numbers)


def unit_free_number(text: str) -> float | None:
    """The first number in a text, without its unit; None if it has none. A date is no number.

    It is negative also where the text begins with an en dash, or with a minus sign beside that of a
    currency, and where it is but an amount of money in parentheses, as accounts write it. A text
    that is a number with a power of ten, as programs write them, is read whole.
    """
    text = normalize_for_match(text)
    if re.fullmatch(POWER_OF_TEN, text):
        power = float(re.sub(f"[{MINUS_SIGNS}]", "-", text))
        if abs(power) < LARGEST_POWER:
            return power
    sign_before = _SIGN_BEFORE.match(text)
    for span in parse_text(text):
        for value in span.values:
            if isinstance(value, float):
                try:  # the value itself is in single precision
                    digits = text[span.begin : span.end].replace(",", "")
                    value = float(digits.replace("\N{MINUS SIGN}", "-"))
                except ValueError:  # an ordinal or a word
                    pass
                return 0.0 - value if sign_before and sign_before.end() == span.begin else value
    return None


def format_number(value: float) -> str:
    """Writes a number plainly: integers in full, others to 12 digits."""
    if not math.isfinite(value):
        return str(value)
    if value.is_integer():
        return str(int(value))
    return np.format_float_positional(float(f"{value:.12g}"), trim="-")
