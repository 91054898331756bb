"""Which of a table's rows are its header, and the names of its columns."""

import itertools
import re
from collections.abc import Sequence
from typing import Any

from mate_tf.tables.values import Cell, read_cell

ROWS_LOOKED_AT = 200  # when it is decided what is a header
MOST_HEADER_ROWS = 3

_UNITS = re.compile(  # what stands before units and codes
    r"units?|einheit(?:en)?|unités?|unidad(?:es)?|unità|eenheid|enhet|jednostk[ai]|birim|codes?|"
    r"\[\d*\]|[-–—]|単位|单位",
    re.IGNORECASE,
)

Numbered = list[tuple[int, list[Any]]]  # rows and their numbers in the file


def has_text(cell: Any) -> bool:
    """Whether a cell is more than blanks."""
    return cell is not None and (not isinstance(cell, str) or bool(cell.strip()))


def num_filled(row: Sequence[Any]) -> int:
    """How many cells of a row have text."""
    return sum(map(has_text, row))


def is_certain_header(rows: Numbered, width: int) -> bool:
    """Whether the first row has a name for each column, and rows below have values."""
    read = [
        [read_cell(str(cell)) if has_text(cell) else Cell("") for cell in row]
        for _, row in rows[:ROWS_LOOKED_AT]
        if len(row) == width
    ]
    if len(read) < 2 or num_filled(rows[0][1]) < width:
        return False
    is_named = all(cell.text and (not is_value(cell) or cell.is_year) for cell in read[0])
    return is_named and bool(_columns_of_values(read[1:]))


def count_header_rows(rows: Sequence[Sequence[str]]) -> int:
    """How many rows are the header, by what the rows below have: 0 to MOST_HEADER_ROWS."""
    if len(rows) < 2:
        return len(rows)
    read = [[read_cell(cell) for cell in row] for row in rows[:ROWS_LOOKED_AT]]
    if _is_data(read[0], read[1:]):
        return 0
    for count in range(min(MOST_HEADER_ROWS, len(rows) - 1), 1, -1):
        pairs = itertools.pairwise(range(count))
        if all(
            _continues(rows[i], rows[j], read[j], read[count:], j + 1 < count)
            or _is_of_units(read[0], read[j], read[count:])
            for i, j in pairs
        ):
            return count
    return 1


def is_value(cell: Cell) -> bool:
    """Whether a cell is a number, a date, a time or a length of time."""
    has_number = cell.point is not None or cell.comma is not None
    return has_number or _is_date(cell) or bool(cell.clock)


def _is_date(cell: Cell) -> bool:
    return bool(cell.date or cell.day_first or cell.month_first)


def _columns_of_values(below: Sequence[Sequence[Cell]]) -> list[int]:
    columns = [[cell for cell in column if cell.text] for column in zip(*below, strict=True)]
    return [i for i, cells in enumerate(columns) if cells and all(map(is_value, cells))]


def _is_data(first: Sequence[Cell], below: Sequence[Sequence[Cell]]) -> bool:
    """Whether the first row is one like those below, so that there is no header."""
    columns = _columns_of_values(below)
    if not columns or not all(is_value(first[index]) for index in columns):
        return False
    heads = [first[index] for index in columns]
    if any(_is_date(first[i]) and not any(_is_date(row[i]) for row in below) for i in columns):
        return False  # days above other values
    if any(cell.is_year for cell in heads):  # "Region, 2023, 2024" above other numbers
        return len(columns) == 1 and below[0][columns[0]].is_year
    numbers = [cell.point for cell in heads if cell.point is not None]
    steps = {b - a for a, b in itertools.pairwise(numbers)}
    return not (len(numbers) > 2 and steps == {1.0})  # weeks 1, 2, 3, ...


def _continues(
    first: Sequence[str],
    second: Sequence[str],
    second_read: Sequence[Cell],
    below: Sequence[Sequence[Cell]],
    is_between: bool,
) -> bool:
    """Whether the second row is part of the header; one between others may have empty cells."""
    columns = _columns_of_values(below)
    others = [index for index in range(len(first)) if index not in columns]
    is_partial = "" in second or len(set(first)) < len(first) or not others  # all are units
    have_text = [bool(second_read[i].text) for i in columns]
    has_corner = any(second[i].strip() and not first[i].strip() for i in others)
    is_partial |= has_corner and len(columns) > 1 and all(have_text)  # below groups
    if not any(have_text) or not is_partial:
        return False
    named = (index for index in others if first[index].strip())
    if any(second_read[i].text and second[i].strip() != first[i].strip() for i in named):
        return False
    return all(
        (second_read[i].text or is_between or (i == 0 and first[0].strip()))
        and (not is_value(second_read[i]) or second_read[i].is_year)
        for i in columns
    )


def _is_of_units(
    first: Sequence[Cell], second: Sequence[Cell], below: Sequence[Sequence[Cell]]
) -> bool:
    """Whether half of the columns of values have units or codes, and others nothing or "Units"."""
    columns = _columns_of_values(below)
    if len(first) < 2 or any(map(_is_date, first)) or any(map(is_value, second)):
        return False
    others = (cell.text for i, cell in enumerate(second) if i not in columns)
    num_units = sum(bool(second[i].text) for i in columns)
    is_labelled = all(not text or _UNITS.fullmatch(text) for text in others)
    return is_labelled and 2 * num_units >= len(columns) > 0


def with_names_of_labels(rows: list[list[str]], header_rows: int) -> list[list[str]]:
    """The rows; names in a row below the header, as pandas has them, go where it has none."""
    if header_rows < 2 or len(rows) < header_rows + 2:
        return rows
    top, below = rows[0], rows[header_rows]
    unnamed = [not cell for cell in top]
    if any(unnamed) and [bool(cell) for cell in below] == unnamed:
        named = [label or name for label, name in zip(below, top, strict=True)]
        return [named, *rows[1:header_rows], *rows[header_rows + 1 :]]
    return rows


def joined_header(rows: Sequence[Sequence[str]], width: int) -> list[str]:
    """The names of the columns; numbers without header rows, joined texts with several."""
    if not rows:
        return [f"column {number}" for number in range(1, width + 1)]
    if len(rows) == 1:
        return list(rows[0])
    names = []
    carried = [""] * len(rows)
    for index in range(width):
        texts = [row[index].strip() for row in rows]
        for level, text in enumerate(texts):
            if text:  # a name over several columns stands in the first
                carried[level:] = [text, *[""] * (len(rows) - level - 1)]
        parts = [
            carried[level] if any(texts[level + 1 :]) else text for level, text in enumerate(texts)
        ]
        names.append(" ".join(dict.fromkeys(filter(None, parts))))
    return names
