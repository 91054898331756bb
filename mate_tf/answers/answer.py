"""Answers that a person can read and check.

An answer as a JSON object for programs; docs/command_line.md says what its keys mean.

Numbers of cells, and what is computed from them.
"""

import dataclasses
import math
import re
from collections.abc import Iterable
from typing import Any

import numpy as np

from mate_tf.answers.calibration import Calibration
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


@dataclasses.dataclass(frozen=True)
class SelectedCell:
    """A body cell that answers the question.

    Attributes:
        row: counted from zero, without the header.
        column: counted from zero.
        text: what the cell says.
        score: the probability that it is selected; of the cell that a span was read in, the span's.
    """

    row: int
    column: int
    text: str
    score: float


@dataclasses.dataclass(frozen=True)
class Answer:
    """The answer to a question about a table.

    Attributes:
        items: the answer as a list: the texts of the cells, or one computed number, a class or a
            span.
        text: the items, joined by commas.
        cells: the cells it comes from, in table order.
        aggregation: what was computed from them, one of AGGREGATIONS.
        value: the computed number, None where nothing was computed.
        score: how probable the answer is, 0 to 1, calibrated where the model has a calibration. Of
            cells it is their mean probability, where a column is chosen first times that of their
            column, times that of the aggregation; of a class or a span its own.
        rows_dropped: rows at the table's end that the model did not see, because the table was
            too long and dropping them was asked for.
        number: the answer as a number without its unit, such as 3.5 for "3.5 km", where it is
            one item with a number: what was computed, or the first number of the cell or span.
        class_index: the number of the class, where the model tells classes apart.
        alternatives: the best other answers, best first, themselves without alternatives.
        answered: False where there is no answer: nothing of the table was seen, or the score is
            below what was asked for. Nothing is then selected or computed, the score is that of
            what would have been the answer, and the alternatives begin with it.
    """

    items: tuple[str, ...]
    text: str
    cells: tuple[SelectedCell, ...]
    aggregation: str
    value: float | None
    score: float
    rows_dropped: int = 0
    number: float | None = None
    class_index: int | None = None
    alternatives: tuple["Answer", ...] = ()
    answered: bool = True


def answer_of_cells(
    cells: tuple[SelectedCell, ...], aggregation: str, score: float
) -> Answer | None:
    """The answer that some cells give, by themselves or computed from.

    Returns:
        None where the aggregation needs a number and no cell has one.
    """
    texts = tuple(cell.text for cell in cells)
    if aggregation == "NONE":
        number = unit_free_number(texts[0]) if len(cells) == 1 else None
        return Answer(texts, ", ".join(texts), cells, aggregation, None, score, number=number)
    value = compute(aggregation, texts)
    if value is None:
        return None
    text = format_number(value)
    return Answer((text,), text, cells, aggregation, value, score, number=value)


def no_answer(score: float = 0.0, alternatives: tuple[Answer, ...] = ()) -> Answer:
    """What is said where there is no answer."""
    return Answer((), "", (), "NONE", None, score, alternatives=alternatives, answered=False)


def is_repeated(answer: Answer, others: list[Answer]) -> bool:
    """Whether one of the others is the same answer.

    Two answers are the same where they say the same, except for two selections of different cells.
    """
    return any(
        answer.items == other.items
        and (
            answer.aggregation != "NONE"
            or other.aggregation != "NONE"
            or _coordinates(answer) == _coordinates(other)
        )
        for other in others
    )


def _coordinates(answer: Answer) -> list[tuple[int, int]]:
    return [(cell.row, cell.column) for cell in answer.cells]


def calibrated(answer: Answer, calibration: Calibration) -> Answer:
    """The answer with its score and those of its alternatives calibrated; their order stays."""
    alternatives = tuple(calibrated(other, calibration) for other in answer.alternatives)
    score = float(calibration.apply(answer.score)) if answer.items else answer.score
    return dataclasses.replace(answer, score=score, alternatives=alternatives)


def apply_min_score(answer: Answer, min_score: float) -> Answer:
    """The answer where its score is at least so much, otherwise none, with it as an alternative."""
    if not answer.answered or answer.score >= min_score:
        return answer
    would_be = dataclasses.replace(answer, alternatives=())
    return no_answer(answer.score, (would_be, *answer.alternatives))


def answer_record(answer: Answer) -> dict[str, Any]:
    """What programs are told of an answer, by the command and by the server."""
    return {
        "answered": answer.answered,
        **_record(answer),
        "rows_dropped": answer.rows_dropped,
        "alternatives": [_record(other) for other in answer.alternatives],
    }


def _record(answer: Answer) -> dict[str, Any]:
    return {
        "answer": answer.text,
        "items": list(answer.items),
        "cells": [
            {"row": cell.row, "column": cell.column, "text": cell.text, "score": cell.score}
            for cell in answer.cells
        ],
        "aggregation": answer.aggregation,
        "value": answer.value,
        "number": answer.number,
        "class_index": answer.class_index,
        "score": answer.score,
    }
