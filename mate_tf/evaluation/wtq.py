"""Denotation accuracy on WikiTableQuestions (Pasupat and Liang, 2015, section 7.1)."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from mate_tf.datasets.wtq import read_wtq_tsv, split_list
from mate_tf.features.normalization import normalize_denotation
from mate_tf.tables.text_files import complete_text_file

_TOLERANCE = 1e-6


@dataclass(frozen=True)
class Denotation:
    """One item of an answer: its normalised text and, where it is one, its number or date.

    Attributes:
        text: the text, as `normalize_denotation` leaves it.
        value: a number, a date as (year, month, day) with None for what is unknown, or the text.
    """

    text: str
    value: float | tuple[int | None, ...] | str

    @classmethod
    def from_text(cls, text: str, canonical: str | None = None) -> "Denotation":
        """Reads an item; `canonical` is its number or date in the official annotation."""
        normalized = normalize_denotation(text)
        source = (canonical or text).replace("_", "?")  # only Python reads underscores in numbers
        number = _parse_number(source)
        value = number if number is not None else _parse_date(source)
        return cls(normalized, normalized if value is None else value)

    def matches(self, other: "Denotation") -> bool:
        """Whether texts, dates, or numbers up to 1e-6, are equal."""
        if isinstance(self.value, float) and isinstance(other.value, float):
            return self.text == other.text or abs(self.value - other.value) < _TOLERANCE
        return self.text == other.text or self.value == other.value


def denotation_correct(
    predicted_items: Sequence[str], gold_items: Sequence[str | Denotation]
) -> bool:
    """Whether two answers hold the same items, as sets.

    Gold items may carry their official annotation (`read_golds`).
    """
    predicted = _distinct(predicted_items)
    gold = _distinct(gold_items)
    return len(predicted) == len(gold) and all(
        any(item.matches(other) for other in predicted) for item in gold
    )


def write_predictions(path: str | Path, predictions: Mapping[str, Sequence[str]]) -> None:
    """Writes predictions in the official format: id, then the items, separated by tabs.

    White space within an item becomes a blank, which makes no difference in comparisons.
    """
    with complete_text_file(path) as file:
        for question_id, items in predictions.items():
            file.write("\t".join([question_id, *(" ".join(item.split()) for item in items)]) + "\n")


def read_golds(path: str | Path) -> dict[str, list[Denotation]]:
    """Reads gold answers from an official .tsv file, or with annotation from a .tagged one.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if the file is not as the release has it.
    """
    golds = {}
    for row in read_wtq_tsv(path, ("id", "targetValue")):
        texts = split_list(row["targetValue"])
        canonical = split_list(row["targetCanon"]) if "targetCanon" in row else texts
        if len(texts) != len(canonical):
            raise ValueError(
                f"expected {len(texts)} canonical values, got {len(canonical)} "
                f"(file '{path}', question '{row['id']}')"
            )
        golds[row["id"]] = list(map(Denotation.from_text, texts, canonical))
    return golds


def _distinct(items: Sequence[str | Denotation]) -> list[Denotation]:
    parsed = [Denotation.from_text(item) if isinstance(item, str) else item for item in items]
    return list({item.value: item for item in reversed(parsed)}.values())


def _parse_number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    if not math.isfinite(number):
        return None
    if abs(number - round(number)) < _TOLERANCE:
        return float(int(number))  # the official program truncates
    return number


def _parse_date(text: str) -> float | tuple[int | None, ...] | None:
    parts = text.lower().split("-")
    if len(parts) != 3:
        return None
    unknown = (("xx", "xxxx"), ("xx",), ("xx",))
    try:
        date = tuple(
            None if part in names else int(part) for part, names in zip(parts, unknown, strict=True)
        )
    except ValueError:
        return None
    year, month, day = date
    if month is None and day is None:
        return None if year is None else float(year)
    in_range = (month is None or 1 <= month <= 12) and (day is None or 1 <= day <= 31)
    return date if in_range else None
