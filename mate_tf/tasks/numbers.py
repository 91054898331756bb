"""Numbers of cells, and what is computed from them."""

import math
from collections.abc import Iterable

import numpy as np

from mate_tf.tables.normalization import normalize_for_match
from mate_tf.tables.numeric import parse_text


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
    """The first number in a text, without its unit; None if it has none. A date is no number."""
    text = normalize_for_match(text)
    for span in parse_text(text):
        for value in span.values:
            if isinstance(value, float):
                try:  # the value itself is in single precision
                    digits = text[span.begin : span.end].replace(",", "")
                    return float(digits.replace("\N{MINUS SIGN}", "-"))
                except ValueError:  # an ordinal or a word
                    return value
    return None


def format_number(value: float) -> str:
    """Writes a number plainly: integers in full, others to 12 digits."""
    if not math.isfinite(value):
        return str(value)
    if value.is_integer():
        return str(int(value))
    return np.format_float_positional(float(f"{value:.12g}"), trim="-")
