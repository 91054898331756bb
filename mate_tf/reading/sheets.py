"""Workbooks: which sheet is read, and what its hidden and merged parts become."""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from mate_tf.reading.layout import Rows
from mate_tf.tables.cell_texts import plain_value, shown_number
from mate_tf.tables.notations import DIRECTIONS


class Sheet(NamedTuple):
    """A sheet as it was read; places count from 0, but `hidden_rows` from 1."""

    rows: list[list[Any]]
    merged: Iterable[tuple[int, int, int, int]]  # first row and column, last row and column
    hidden_rows: set[int]
    hidden_columns: set[int]


class Book(NamedTuple):
    """An open workbook."""

    filled: dict[str, bool]  # by the names of its sheets, whether they have cells
    shown: set[str]  # the sheets that are not hidden
    read: Callable[[str], Sheet]


def read_sheet_rows(
    book: Book, path: str, sheet: str | None = None, show_hidden: bool = False
) -> Rows:
    """Reads the rows of a sheet. A formula has the result that was last stored.

    Percentages, currencies, leading zeros and lengths of time are as they are shown, but not in
    .xlsb. Other numbers are without their format, to the 15 digits that Excel shows. Merged cells
    all have the value of the first. Hidden rows and columns are left out, unless `show_hidden`.

    Without a name the sheet is the first visible one with several rows and columns; if there is
    none, the first visible one. ValueError if there is no such sheet, if it has more than
    MOST_CELLS, or if none of its formulas has a result.
    """
    (rows, merged, hidden_rows, hidden_columns), assumed = _chosen_sheet(book, sheet)
    rows = [[_without_directions(cell) for cell in row] for row in rows]
    _fill_merged(rows, merged)
    width = max(map(len, rows), default=0)
    numbers = range(1, len(rows) + 1)
    if show_hidden:
        return Rows(rows, numbers, path, assumed=assumed)
    if hidden := len(hidden_rows.intersection(numbers)):
        assumed.append(f"{hidden} hidden row{'s are' if hidden > 1 else ' is'} left out.")
    if not hidden_columns.isdisjoint(range(width)):
        assumed.append("Hidden columns are left out.")
    kept = [number for number in numbers if number not in hidden_rows]
    rows = [
        [cell for column, cell in enumerate(rows[number - 1]) if column not in hidden_columns]
        for number in kept
    ]
    return Rows(rows, kept, path, assumed=assumed)


def _chosen_sheet(book: Book, name: str | None) -> tuple[Sheet, list[str]]:
    """The sheet to read and what was assumed."""
    names = [name for name, is_filled in book.filled.items() if is_filled]
    if not names or name not in (None, *names):
        expected = f"one of the sheets {names}" if names else "a sheet with cells"
        raise ValueError(f"expected {expected}, got {name!r}")
    if name is not None:
        return book.read(name), []
    names = [name for name in names if name in book.shown] or names
    chosen, sheet = names[0], book.read(names[0])
    for name in names:
        other = sheet if name == chosen else book.read(name)
        if len(other.rows) > 1 and max(map(len, other.rows)) > 1:
            chosen, sheet = name, other
            break
    others = ", ".join(f"'{other}'" for other in names if other != chosen)
    return sheet, [f"Sheet '{chosen}' was read; there are also {others}."] if others else []


def _fill_merged(rows: list[list[Any]], merged: Iterable[tuple[int, int, int, int]]) -> None:
    """Gives merged cells the value of the first; a title or section alone in its rows stays one."""
    width = max(map(len, rows), default=0)
    for row in rows:
        row += [None] * (width - len(row))
    filled = (next((n for n, cell in enumerate(row) if not _is_empty(cell)), width) for row in rows)
    leftmost = min(filled, default=0)
    for top, first, bottom, last in merged:
        if top >= len(rows) or first >= width:
            continue
        last = min(last, width - 1)
        value, within = rows[top][first], rows[top : bottom + 1]
        is_alone = last > first and first <= leftmost
        is_alone = is_alone and all(_is_empty(cell) for row in within for cell in row[last + 1 :])
        for row in within:
            row[first : last + 1] = [None if is_alone else value] * (last + 1 - first)
        rows[top][first] = value


def _without_directions(cell: Any) -> Any:
    is_other = isinstance(cell, str) and not cell.isascii()
    return DIRECTIONS.sub("", cell) if is_other else cell


def _is_empty(cell: Any) -> bool:
    return cell is None or cell == ""


def shown_value(value: Any, number_format: str = "") -> Any:
    """A value as it is shown; a number to the 15 digits that Excel shows."""
    if isinstance(value, float):
        value = float(f"{value:.15g}")
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return (is_number and shown_number(value, number_format)) or plain_value(value)
