"""From the rows of a file to a table: which rows are titles, headers, notes, and which are data.

Spreadsheets and exports of banks put titles above the header, notes below the last row, and headers
over two rows. What is found is said in `Table.assumed`; `header_rows` and `skip_rows` decide it.
"""

import itertools
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from mate_tf.tables.columns import read_column
from mate_tf.tables.drawing import cut
from mate_tf.tables.table import Table, cell_text
from mate_tf.tables.values import Cell, read_cell

_NOTE = re.compile(
    r"(sources?|notes?|quellen?|hinweise?|fuente|total rows|generated|exported|printed|updated|"
    r"last updated|as of|stand|copyright|created|end of report)\b.*|[*©†#(].*",
    re.IGNORECASE | re.DOTALL,
)
_SOURCE = re.compile(r"(?:sources?|notes?|quellen?|hinweise?|fuente) ?: ?\S", re.IGNORECASE)
_RULE = re.compile(r" *[-=]{2,} *")
_TABLES_NAMED = 5
_ROWS_LOOKED_AT = 200  # when it is decided what is a header
_LONGEST_TITLE = 60  # characters of it in a sentence


@dataclass
class Rows:
    """The rows of a file before it is known what they are.

    Attributes:
        rows: cells, the rows of different lengths; an empty row has only empty cells.
        numbers: of each row, as people count lines or rows of the file.
        name: the file's name, for the table and for errors.
        unit: what a row is called, "line" or "row".
        is_ragged: whether the length of a row says something, as in a CSV file.
        header_rows: how many rows the format itself says are the header; None if it does not.
        title: the table's title, if the format says it.
        assumed: sentences that say what was assumed so far.
    """

    rows: list[list[Any]]
    numbers: Sequence[int]
    name: str
    unit: str = "row"
    is_ragged: bool = False
    header_rows: int | None = None
    title: str = ""
    assumed: list[str] = field(default_factory=list)


def chosen_table(which: int | None, described: Iterable[str], where: str) -> int:
    """The number of the table to read, from 0, where a file holds several.

    Raises:
        ValueError: if there is none with that number, or several and no number.
    """
    tables = list(described)
    if which is None and len(tables) == 1:
        return 0
    if which is None or not 0 <= which < len(tables):
        named = [f"{number}: {table}" for number, table in enumerate(tables[:_TABLES_NAMED])]
        got = f"{len(tables)} tables" if which is None else str(which)
        raise ValueError(
            f"expected the number of a table as which, from 0 to {len(tables) - 1}, got {got} "
            f"({'; '.join([*named, '...'][: len(tables)])}) {where}"
        )
    return which


def lay_out(found: Rows, header_rows: int | None = None, skip_rows: int | None = None) -> Table:
    """Builds the table.

    Args:
        found: the rows.
        header_rows: how many rows are the header; 0 for a file without one, whose columns are then
            numbered. None lets the rows decide.
        skip_rows: how many rows at the top are passed over, with those that are empty. None leaves
            out what looks like titles above and notes below the table.

    Raises:
        ValueError: if a row is longer than the header, or as `Table`.
    """
    rows = list(zip(found.numbers, found.rows, strict=True))
    if skip_rows is not None:
        rows = [(number, row) for number, row in rows if number > skip_rows]
    width = max((len(row) for _, row in rows), default=0)
    if found.header_rows is None:
        if width > 1 or not found.is_ragged:
            rows = [(number, row) for number, row in rows if any(map(_has_text, row))]
        width = _width(rows, found.is_ragged)
        if skip_rows is None:
            rows = _without_notes(found, rows, width)
            rows = _without_titles(found, rows, width)
            rows = _without_comments(found, rows, width)
        if not found.is_ragged:
            rows = _without_empty_columns(rows)
            width = max((len(row) for _, row in rows), default=0)
    rows = _rectangular(found, rows, width)
    if found.header_rows is None and found.is_ragged and skip_rows is None and width > 1:
        rows = _without_empty_columns(rows)
    body = []
    for number, row in rows:
        try:
            body.append([cell_text(cell) for cell in row])
        except TypeError as error:
            where = f"(file '{found.name}', {found.unit} {number})"
            raise ValueError(f"{error} {where}") from None
    if header_rows is None:
        header_rows = found.header_rows
    if header_rows is None:
        header_rows = _count_header_rows(body)
        if header_rows == 0 and body:
            found.assumed.append("There is no header, so the columns are numbered.")
        elif header_rows > 1:
            found.assumed.append(f"The header is {found.unit}s {rows[0][0]} and {rows[1][0]}.")
    header = _joined_header(body[:header_rows], max(map(len, body), default=0))
    body = body[header_rows:]
    is_guessed = found.header_rows is None and skip_rows is None
    if is_guessed and len(set(filter(None, header))) == len(header) > 1:
        once = [row for row in body if row != header]
        if 0 < len(once) < len(body):
            found.assumed.append(f"The header comes {len(body) - len(once) + 1} times.")
            body = once
    return Table(
        tuple(header),
        tuple(map(tuple, body)),
        found.name,
        found.title,
        assumed=tuple(found.assumed),
    )


Numbered = list[tuple[int, list[Any]]]


def _has_text(cell: Any) -> bool:
    return cell is not None and (not isinstance(cell, str) or bool(cell.strip()))


def _size(row: Sequence[Any], is_ragged: bool) -> int:
    """Up to which cell a row goes: all cells of a line, the last one with text of other rows."""
    if is_ragged:
        return len(row)
    return next((i for i in range(len(row), 0, -1) if _has_text(row[i - 1])), 0)


def _width(rows: Numbered, is_ragged: bool) -> int:
    """The commonest size of the rows from the middle on; of equally common ones the largest."""
    if not is_ragged:
        return max((_size(row, is_ragged) for _, row in rows), default=0)
    sizes = Counter(len(row) for _, row in rows[len(rows) // 2 :][:_ROWS_LOOKED_AT])
    return max(sizes, key=lambda size: (sizes[size], size), default=0)


def _filled(row: Sequence[Any]) -> int:
    return sum(map(_has_text, row))


def _shortened(row: Sequence[Any]) -> str:
    text = " ".join(str(cell) for cell in row if _has_text(cell))
    return cut(" ".join(text.split()), _LONGEST_TITLE)


def _without_notes(found: Rows, rows: Numbered, width: int) -> Numbered:
    """The rows without notes after the last one, such as "Source: ..."."""
    kept = list(rows)
    while len(kept) > 2 and width > 1:
        number, row = kept[-1]
        if not any(map(_has_text, row)):
            break
        text = next(str(cell) for cell in row if _has_text(cell))
        is_apart = number - kept[-2][0] > 1 and found.unit == "row"
        is_one = len(row) == 1 if found.is_ragged else _filled(row) == 1 and _has_text(row[0])
        is_note = is_one and (_NOTE.match(text) or is_apart or found.is_ragged)
        if not (is_note or _SOURCE.match(text)):
            break
        kept.pop()
    for _, row in rows[len(kept) :]:
        found.assumed.append(f"The note '{_shortened(row)}' below the table is left out.")
    return kept


def _without_titles(found: Rows, rows: Numbered, width: int) -> Numbered:
    """The rows from the header on; what is above it is the title."""
    num_titles = num_certain = 0
    looked_at = rows[: max(len(rows) - 1, 0)][:_ROWS_LOOKED_AT]
    for (_, row), (_, below) in zip(looked_at, rows[1:], strict=False):
        is_title = _is_title(row, below, width, found.is_ragged, num_titles == 0)
        # "Account, 1234", or a title in a table of two columns, where it may be their header
        is_likely = width > 1 and _has_text(row[0]) and _filled(row) == _size(row, False) <= 2
        if not (is_title or (is_likely and _filled(row) < width)):
            break
        num_certain += is_title and num_certain == num_titles
        num_titles += 1
    is_header = num_titles > num_certain and _is_certain_header(rows[num_titles:], width)
    if not is_header or _is_table(rows[num_certain:num_titles]):
        num_titles = num_certain
    if num_titles == len(looked_at) and num_titles:
        return rows  # then all are short, and the first is the header
    titles = [_shortened(row) for _, row in rows[:num_titles]]
    if titles:
        found.title = found.title or titles[0].lstrip("# ")
        said = f"'{titles[0]}'" if num_titles == 1 else f"{num_titles} {found.unit}s"
        found.assumed.append(
            f"The header is in {found.unit} {rows[num_titles][0]}; {said} above it "
            f"{'is' if num_titles == 1 else 'are'} the title."
        )
    return rows[num_titles:]


def _is_title(
    row: list[Any], below: list[Any], width: int, is_ragged: bool, is_first: bool
) -> bool:
    """Whether a row above others can be nothing but a title or a comment."""
    size = _size(row, is_ragged)
    if is_ragged and size != width:
        first = next((str(cell) for cell in row if _has_text(cell)), "").strip()
        is_comment = first.startswith("#") and size != _size(below, True)
        return is_comment or (width > 1 and size < width - (is_first and width > 2))
    if is_ragged:  # a spreadsheet's titles are lines as long as the others
        return width > 2 and _filled(row) == 1 and _has_text(row[0])
    return width > 1 and _filled(row) == 1


def _is_certain_header(rows: Numbered, width: int) -> bool:
    """Whether the first row has a name for each column, and rows below have values."""
    read = [
        [read_cell(str(cell)) if _has_text(cell) else Cell("") for cell in row]
        for _, row in rows[:_ROWS_LOOKED_AT]
        if len(row) == width
    ]
    if len(read) < 2 or _filled(rows[0][1]) < width:
        return False
    is_named = all(not _is_value(cell) or cell.is_year for cell in read[0])
    return is_named and bool(_columns_of_values(read[1:]))


def _is_table(rows: Numbered) -> bool:
    """Whether pairs above a table are one themselves: names, and numbers below one of them."""
    numbers = [str(row[1]) for _, row in rows[1:] if len(row) > 1 and _has_text(row[1])]
    return (
        len(numbers) > 1
        and _is_certain_header([(n, row[:2]) for n, row in rows], 2)
        and read_column(numbers).kind == "number"
    )


def _without_comments(found: Rows, rows: Numbered, width: int) -> Numbered:
    """The rows without rules of dashes, and shorter lines between them that begin with "#"."""
    if not found.is_ragged or width < 2:
        return rows
    rows = [(n, row) for n, row in rows if not all(map(_RULE.fullmatch, row))]
    kept = [(n, row) for n, row in rows if len(row) == width or not row[0].startswith("#")]
    if num := len(rows) - len(kept):
        found.assumed.append(f"{num} comment{'s are' if num > 1 else ' is'} left out.")
    return kept


def _without_empty_columns(rows: Numbered) -> Numbered:
    width = max((len(row) for _, row in rows), default=0)
    has_text = [False] * width
    for _, row in rows:
        for column, cell in enumerate(row):
            has_text[column] = has_text[column] or _has_text(cell)
    kept = [column for column in range(width) if has_text[column]]
    if len(kept) == width:
        return rows
    return [(n, [row[c] if c < len(row) else None for c in kept]) for n, row in rows]


def _rectangular(found: Rows, rows: Numbered, width: int) -> Numbered:
    """Rows of the same length; short ones are filled, empty cells beyond the header cut off."""
    if not rows:
        return rows
    if found.is_ragged:
        is_named = len(rows[0][1]) == width - 1 and all(len(row) == width for _, row in rows[1:])
        if is_named and len(rows) > 2 and found.header_rows is None:
            rows = [(rows[0][0], ["", *rows[0][1]]), *rows[1:]]  # names of rows have no name
            found.assumed.append("The first column has no name.")
        width = max(len(rows[0][1]), 1)
    short = 0
    filled = []
    for number, row in rows:
        if len(row) > width:
            if any(map(_has_text, row[width:])):
                raise ValueError(
                    f"expected {width} cells as in the header, got {len(row)} (file "
                    f"'{found.name}', {found.unit} {number}); put a cell that has the delimiter in "
                    "it in quotes, or set skip_rows if the header is further down"
                )
            row = row[:width]
        elif len(row) < width:
            short += found.is_ragged
            row = [*row, *[""] * (width - len(row))]
        filled.append((number, row))
    if short:
        found.assumed.append(f"{short} short {found.unit}{'s' * (short > 1)} ended in empty cells.")
    if (
        found.header_rows is None
        and found.is_ragged
        and width > 1
        and not any(_has_text(row[-1]) for _, row in filled)
    ):
        return [(number, row[:-1]) for number, row in filled]  # a delimiter ends each line
    return filled


def _count_header_rows(rows: Sequence[Sequence[str]]) -> int:
    """How many rows are the header, by what the rows below have: 0, 1 or 2."""
    if len(rows) < 2:
        return len(rows)
    read = [[read_cell(cell) for cell in row] for row in rows[:_ROWS_LOOKED_AT]]
    if _is_data(read[0], read[1:]):
        return 0
    if len(rows) > 2 and _continues(rows[0], rows[1], read[1], read[2:]):
        return 2
    return 1


def _is_value(cell: Cell) -> bool:
    has_number = cell.point is not None or cell.comma is not None
    return has_number or _is_date(cell) or bool(cell.clock)


def _is_date(cell: Cell) -> bool:
    return bool(cell.date or cell.day_first or cell.month_first)


def _columns_of_values(below: Sequence[Sequence[Cell]]) -> list[int]:
    """The columns in which all cells with text are values."""
    found = []
    for index in range(len(below[0])):
        cells = [row[index] for row in below if row[index].text]
        if cells and all(map(_is_value, cells)):
            found.append(index)
    return found


def _is_data(first: Sequence[Cell], below: Sequence[Sequence[Cell]]) -> bool:
    """Whether the first row is one like those below, so that there is no header."""
    columns = _columns_of_values(below)
    if not columns or not all(_is_value(first[index]) for index in columns):
        return False
    heads = [first[index] for index in columns]
    if any(_is_date(first[i]) and not any(_is_date(row[i]) for row in below) for i in columns):
        return False  # days above other values
    if any(cell.is_year for cell in heads):  # "Region, 2023, 2024" above other numbers
        years = [
            cell.is_year and below[0][i].is_year for cell, i in zip(heads, columns, strict=True)
        ]
        return all(years) and len(columns) == 1
    numbers = [cell.point for cell in heads if cell.point is not None]
    steps = {b - a for a, b in itertools.pairwise(numbers)}
    return not (len(numbers) > 2 and steps == {1.0})  # weeks 1, 2, 3, ...


def _continues(
    first: Sequence[str],
    second: Sequence[str],
    second_read: Sequence[Cell],
    below: Sequence[Sequence[Cell]],
) -> bool:
    """Whether the second row is part of the header."""
    columns = _columns_of_values(below)
    others = [index for index in range(len(first)) if index not in columns]
    is_partial = "" in second or len(set(first)) < len(first) or not others  # all are units
    if not columns or not is_partial:
        return False
    named = (index for index in others if first[index].strip())
    if any(second_read[i].text and second[i].strip() != first[i].strip() for i in named):
        return False
    return all(
        second_read[i].text and (not _is_value(second_read[i]) or second_read[i].is_year)
        for i in columns
    )


def _joined_header(rows: Sequence[Sequence[str]], width: int) -> list[str]:
    if not rows:
        return [f"column {number}" for number in range(1, width + 1)]
    if len(rows) == 1:
        return list(rows[0])
    names = []
    carried = ""
    for index in range(width):
        first, *others = (row[index].strip() for row in rows)
        carried = first or carried  # a name over several columns stands in the first
        parts = [carried if any(others) else first, *others]
        names.append(" ".join(dict.fromkeys(filter(None, parts))))
    return names
