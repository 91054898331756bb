"""Tables that Wikipedia, on which everything else is trained, lacks.

`made_tables` makes small tables as people keep them: invoices, staff, stock, league tables, with
amounts, prices and yes or no. `rewritten` writes a table's numbers and dates as people elsewhere
do: Wikipedia writes 1,234.5 and 5 January 2024; a model that reads only these is at a loss with
1.234,5 and 05/01/2024.
"""

import dataclasses
import datetime
import functools
import random
import re
from collections.abc import Callable, Iterator, Sequence

from experiments.synthesis import WORDS
from mate_tf.datasets.tasks import DescribedTable
from mate_tf.features.numeric import Date, values_in_column
from mate_tf.tables.notations import MONTHS
from mate_tf.tables.table import Table

_FEWEST_ROWS, _MOST_ROWS = 4, 14
_FEWEST_COLUMNS = 3
_SHARE_OF_CROSSTABS = 0.3
# A kind of table has its rows, then its other columns, as "name=kind", where a name has several
# wordings between bars; "cells" are the words of a kind, and "few" how many of them a column has.
_PLAIN = re.compile(r"\d{1,3}(?:,\d{3})*(?:\.\d+)?|\d+(?:\.\d+)?", re.ASCII)
_YEARS = range(1500, 2101)
_MONTHS = [month.title() for month in MONTHS]


def made_tables(number: int, seed: int) -> Iterator[DescribedTable]:
    """Yields tables; the same number and seed give the same."""
    for index in range(number):
        rng = random.Random(f"{seed}/{index}")
        name = f"made-{seed}-{index}"
        is_crosstab = rng.random() < _SHARE_OF_CROSSTABS
        columns = rng.choice(WORDS["tables"]).split("; ")
        table = _crosstab(name, rng) if is_crosstab else _table(columns, name, rng)
        if rng.random() < 0.2:
            header = tuple(column.lower() for column in table.header)
            table = dataclasses.replace(table, header=header)
        yield DescribedTable(table.table_id, table)


def _table(columns: list[str], name: str, rng: random.Random) -> Table:
    first, *others = columns
    chosen = rng.sample(others, rng.randint(_FEWEST_COLUMNS - 1, len(others)))
    if rng.random() < 0.6:  # as it is listed
        chosen.sort(key=others.index)
    num_rows = rng.randint(_FEWEST_ROWS, _MOST_ROWS)
    header, cells = [], []
    for number, column in enumerate((first, *chosen)):
        names, kind = column.split("=")
        column_cells = _cells(kind, num_rows, number == 0, rng)
        num_rows = min(num_rows, len(column_cells))
        header.append(rng.choice(names.split("|")))
        cells.append(column_cells)
    return Table(tuple(header), tuple(zip(*(c[:num_rows] for c in cells), strict=True)), name)


def _crosstab(name: str, rng: random.Random) -> Table:
    """A table whose columns but the first, or the first two, are of one kind: months, days."""
    words = WORDS["crosstabs"]
    names, kind = rng.choice(words["rows"]).split("=")
    columns = _series(rng)
    num_rows = rng.randint(_FEWEST_ROWS, _MOST_ROWS)
    subjects = _cells(kind, num_rows, True, rng)
    cell_kind = rng.choice(words["cells"])
    if cell_kind == "marks":
        marks = rng.choice(words["marks"]).split(",")
        make: Callable[[], str] = functools.partial(rng.choice, marks)
    else:
        make = _number_maker(cell_kind, rng)
    rows = tuple((subject, *(make() for _ in columns)) for subject in subjects)
    return Table((rng.choice(names.split("|")), *columns), rows, name)


def _series(rng: random.Random) -> list[str]:
    """The names of a run of columns of one kind."""
    unit = rng.choice((*WORDS["series"], "year", "round", "week"))
    number, start = rng.randint(3, 6), rng.randint(1, 3)
    if unit == "year":
        first = rng.randint(1990, 2020)
        return [str(first + i) for i in range(number)]
    if unit in ("round", "week"):
        prefix = rng.choice((f"{unit.title()} ", unit[0].upper()))
        return [f"{prefix}{start + i}" for i in range(number)]
    names = rng.choice(WORDS["series"][unit]).split(",")
    if unit in ("subject", "shop", "city", "person", "branch", "event"):
        return rng.sample(names, number)
    begin = rng.randint(0, max(0, len(names) - number))
    return names[begin : begin + number]


def _cells(kind: str, number: int, is_subject: bool, rng: random.Random) -> list[str]:
    if kind in WORDS["cells"]:
        words = WORDS["cells"][kind].split(",")
        if kind == "month":  # in turn
            return words[:number]
        if is_subject:
            return rng.sample(words, min(number, len(words)))
        most = WORDS["few"].get(kind, len(words))
        few = rng.sample(words, min(len(words), most, max(2, number // 2)))
        return [rng.choice(few) for _ in range(number)]
    if kind == "yesno":
        yes, no = rng.choice((("Yes", "No"), ("yes", "no"), ("Yes", "No"), ("Y", "N")))
        return [rng.choice((yes, no)) for _ in range(number)]
    if kind == "code":
        prefix, start = rng.choice(("INV-", "A", "2024-", "#", "R")), rng.randint(1, 900)
        return [f"{prefix}{start + i:03}" for i in range(number)]
    if kind == "date":
        return _dates(number, rng)
    if kind == "time":
        return [f"{rng.randint(6, 22):02}:{rng.randrange(0, 60, 5):02}" for _ in range(number)]
    make = _number_maker(kind, rng)
    return [make() for _ in range(number)]


def _dates(number: int, rng: random.Random) -> list[str]:
    form = rng.choice(("%Y-%m-%d", "%Y-%m-%d", "%d %B %Y", "%B %d, %Y", "%d.%m.%Y", "%d/%m/%Y"))
    begin = datetime.date(rng.randint(1995, 2025), rng.randint(1, 12), 1)
    span = rng.choice((60, 400, 4000))
    days = [rng.randint(0, span) for _ in range(number)]
    days = sorted(days) if rng.random() < 0.5 else days
    return [(begin + datetime.timedelta(day)).strftime(form) for day in days]


def _number_maker(kind: str, rng: random.Random) -> Callable[[], str]:
    """A function that makes the numbers of a column, all written in the same way."""
    # A range is drawn for every kind that has several.
    drawn = {
        name: rng.choice(ranges) if len(ranges) > 1 else ranges[0]
        for name, ranges in WORDS["numbers"].items()
    }
    low, high = drawn[kind]
    if kind == "price":
        sign = rng.choice(("", "", "", "$", "€", "£"))
        if rng.random() < 0.7:
            return lambda: f"{sign}{rng.uniform(low, high):,.2f}"
        return lambda: f"{sign}{rng.randint(low, high):,}"
    if kind == "decimal":
        return lambda: f"{rng.uniform(low, high):.1f}"
    if kind in ("pay", "large", "distance", "area"):
        step = rng.choice((1, 100, 500)) if kind in ("pay", "large") else 1
        before = rng.choice(("", "", "$", "€")) if kind == "pay" else ""
        after = rng.choice(("", " km")) if kind == "distance" else ""
        comma = "," if rng.random() < 0.6 else ""
        return lambda: f"{before}{rng.randint(low, high) // step * step:{comma}}{after}"
    return lambda: str(rng.randint(low, high))


def _grouped(sign: str, point: str, before: str = "", after: str = "") -> Callable[[str], str]:
    """Writes a plain number with other signs between thousands, as decimal point, and around."""

    def write(text: str) -> str:
        whole, _, decimals = text.replace(",", "").partition(".")
        whole = f"{int(whole):,}".replace(",", sign)
        return f"{before}{whole}{point if decimals else ''}{decimals}{after}"

    return write


_NUMBERS: Sequence[Callable[[str], str]] = (
    _grouped(",", "."),
    _grouped("", "."),
    _grouped(".", ","),
    _grouped(" ", ","),
    _grouped("'", "."),
    _grouped(",", ".", before="$"),
    _grouped(".", ",", before="€ "),
    _grouped(".", ",", after=" EUR"),
    _grouped(",", ".", before="£"),
    _grouped(",", ".", after=" km"),
    _grouped(",", ".", after=" kg"),
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
    columns = (_in_another_way(table, index, rng) for index in range(table.num_columns))
    rows = tuple(zip(*columns, strict=True))
    return Table(table.header, rows, table.table_id, table.document_title, table.context_heading)


def _in_another_way(table: Table, index: int, rng: random.Random) -> list[str]:
    cells = [row[index] for row in table.rows]
    values = values_in_column(table, index)
    if len(values) < len(cells):
        return cells
    dates = [value for value in values.values() if isinstance(value, Date)]
    if dates:
        if sum(None not in date[:3] for date in dates) < len(cells):
            return cells
        write_date = rng.choice(_DATES)
        new = [write_date(*values[row][:3]) for row in range(len(cells))]  # type: ignore[index]
    elif all(_PLAIN.fullmatch(cell) for cell in cells):
        if all(cell.isdigit() and int(cell) in _YEARS for cell in cells):
            return cells
        has_unit = rng.random() < _SHARE_OF_UNITS
        write = rng.choice(_NUMBERS[_PLAIN_STYLES:] if has_unit else _NUMBERS[:_PLAIN_STYLES])
        new = list(map(write, cells))
    else:
        return cells
    again = Table(("", ""), tuple((cell, "") for cell in new), "again")
    return new if values_in_column(again, 0) == values else cells
