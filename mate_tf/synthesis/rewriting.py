"""Tables with their numbers and dates written in another way, as people from elsewhere write them.

Wikipedia writes 1,234.5 and 5 January 2024. A model that reads only these is at a loss with
1.234,5 and 05/01/2024.
"""

import random
import re
from collections.abc import Callable, Sequence

from mate_tf.features.numeric import Date, values_in_column
from mate_tf.tables.notations import MONTHS
from mate_tf.tables.table import Table

_PLAIN = re.compile(r"\d{1,3}(?:,\d{3})*(?:\.\d+)?|\d+(?:\.\d+)?", re.ASCII)
_YEARS = range(1500, 2101)
_MONTHS = [month.title() for month in MONTHS]
_NumberStyle = Callable[[str], str]


def _grouped(sign: str, point: str) -> _NumberStyle:
    """Writes a plain number with another sign between thousands, and another decimal point."""

    def write(text: str) -> str:
        whole, _, decimals = text.replace(",", "").partition(".")
        whole = f"{int(whole):,}".replace(",", sign)
        return f"{whole}{point}{decimals}" if decimals else whole

    return write


_NUMBERS: Sequence[_NumberStyle] = (
    _grouped(",", "."),
    _grouped("", "."),
    _grouped(".", ","),
    _grouped(" ", ","),
    _grouped("'", "."),
    lambda text: f"${_grouped(',', '.')(text)}",
    lambda text: f"€ {_grouped('.', ',')(text)}",
    lambda text: f"{_grouped('.', ',')(text)} EUR",
    lambda text: f"£{_grouped(',', '.')(text)}",
    lambda text: f"{_grouped(',', '.')(text)} km",
    lambda text: f"{_grouped(',', '.')(text)} kg",
)
_PLAIN_STYLES, _SHARE_OF_UNITS = 5, 0.2
_DATES: Sequence[Callable[[int, int, int], str]] = (
    lambda year, month, day: f"{year:04}-{month:02}-{day:02}",
    lambda year, month, day: f"{day:02}/{month:02}/{year:04}",
    lambda year, month, day: f"{month:02}/{day:02}/{year:04}",
    lambda year, month, day: f"{day:02}.{month:02}.{year:04}",
    lambda year, month, day: f"{day}.{month}.{year:04}",
    lambda year, month, day: f"{day} {_MONTHS[month - 1]} {year:04}",
    lambda year, month, day: f"{_MONTHS[month - 1][:3]} {day}, {year:04}",
    lambda year, month, day: f"{year:04}-{month:02}-{day:02}T10:30",
)


def rewritten(table: Table, rng: random.Random) -> Table:
    """The table, each column of plain numbers or whole dates in a way that is drawn for it.

    A column whose values would not be read as before stays as it is.
    """
    columns = [list(cells) for cells in zip(*table.rows, strict=True)]
    for index in range(table.num_columns):
        cells = _in_another_way(table, index, rng)
        if cells is not None:
            columns[index] = cells
    rows = tuple(zip(*columns, strict=True))
    return Table(table.header, rows, table.table_id, table.document_title, table.context_heading)


def _in_another_way(table: Table, index: int, rng: random.Random) -> list[str] | None:
    cells = [row[index] for row in table.rows]
    values = values_in_column(table, index)
    if len(values) < len(cells):
        return None
    dates = [value for value in values.values() if isinstance(value, Date)]
    if dates:
        whole = [date for date in dates if None not in (date.year, date.month, date.day)]
        if len(whole) < len(cells):
            return None
        write_date = rng.choice(_DATES)
        new = [write_date(*values[row][:3]) for row in range(len(cells))]  # type: ignore[index]
    elif all(_PLAIN.fullmatch(cell) for cell in cells):
        if all(cell.isdigit() and int(cell) in _YEARS for cell in cells):
            return None
        has_unit = rng.random() < _SHARE_OF_UNITS
        write = rng.choice(_NUMBERS[_PLAIN_STYLES:] if has_unit else _NUMBERS[:_PLAIN_STYLES])
        new = list(map(write, cells))
    else:
        return None
    again = Table(("", ""), tuple((cell, "") for cell in new), "again")
    return new if values_in_column(again, 0) == values else None
