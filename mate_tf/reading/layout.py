"""From the rows of a file to a table: which rows are titles, headers, notes, and which are data.

Spreadsheets and exports of banks put titles above the header, notes below the last row, and headers
over two rows. What was assumed stands in `Table.assumed`; `header_rows` and `skip_rows` decide it.
"""

import itertools
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from string import ascii_uppercase
from typing import Any, NamedTuple

from mate_tf.reading.header import (
    ROWS_LOOKED_AT,
    Numbered,
    count_header_rows,
    has_text,
    is_certain_header,
    is_value,
    joined_header,
    num_filled,
    with_names_of_labels,
)
from mate_tf.tables.cell_texts import are_texts, cell_texts
from mate_tf.tables.columns import read_column
from mate_tf.tables.drawing import cut, up_to
from mate_tf.tables.notations import TOTAL
from mate_tf.tables.table import Table
from mate_tf.tables.values import read_cell

_NOTE = re.compile(
    r"(sources?|notes?|quellen?|hinweise?|fuente|total rows|generated|exported|printed|updated|"
    r"last updated|as of|stand|copyright|created|end of report|anmerkung(?:en)?|bron|fonte|notas?|"
    r"kilde|källa|źródło|zdroj|источник|примечани[ея]|retrieved|accessed|legende?)\b.*"
    r"|(?:注|資料|出典|来源|备注|출처|자료|[*©†#(]).*",
    re.IGNORECASE | re.DOTALL,
)
_SOURCE = re.compile(
    r"(?:sources?|notes?|quellen?|hinweise?|fuente|fonte|bron|источник) ?: ?\S", re.IGNORECASE
)
_TYPE = re.compile(  # of databases, of polars, of R and of Arrow
    r"<[a-z0-9]+>|(?:(?:var)?char|character varying)(?:\(\d+\))?|str(?:ing)?|cat|text|"
    r"u?(?:big|small|tiny|huge)?int(?:eger)?|[iuf](?:8|16|32|64)|u?int(?:8|16|32|64)|"
    r"float(?:32|64)?|double(?: precision)?|numeric|real|decimal(?:\(.*\))?|"
    r"bool(?:ean)?|date(?:time)?(?:\[.*\])?|time|timestamp(?:\[.*\])?|object|list\[.*\]|",
    re.IGNORECASE,
)
_IMPORTED = '{"ImportId"'  # codes of Qualtrics
_STATIONS = ("TOA5", "TOACI1")  # what files of Campbell's loggers begin with
_COMMENTS = ("#", "//", "%")
_RULE = re.compile(r" *(?:[-=]{2,}|[*_]{3,}) *")
_MOST_NOTES = 50  # rows
_MOST_TITLES = 20
_TABLES_NAMED = 5
MOST_CELLS = 2_000_000  # of a table; each takes about 500 bytes until it is one
_LONGEST_NAMES = 200  # characters of a header in a sentence
_LONGEST_TITLE = 60  # characters of it in a sentence


class Source(NamedTuple):
    """A file that is read, and those of `ReadOptions` that its kind has."""

    name: str
    content: bytes = b""
    text: str = ""  # of kinds that are text
    ending: str = ""  # of its name
    delimiter: str | None = None
    sheet: str | None = None
    which: int | None = None
    show_hidden: bool = False


@dataclass
class Rows:
    """The rows of a file before it is known what they are."""

    rows: list[list[Any]]  # of different lengths; an empty row has only empty cells
    numbers: Sequence[int] = ()  # of each row, as people count lines or rows of the file; from 1
    unit: str = "row"  # what a row is called, "line" or "row"
    is_ragged: bool = False  # whether the length of a row says something, as in a CSV file
    header_rows: int | None = None  # how many rows the format itself says are the header
    title: str = ""  # the table's, if the format says it
    assumed: list[str] = field(default_factory=list)  # what was assumed so far, as sentences
    name: str = "table"  # the file's, for the table and for errors

    def __post_init__(self) -> None:
        self.numbers = self.numbers or range(1, len(self.rows) + 1)


def check_size(num_cells: int) -> None:
    """Raises ValueError if a table has more than MOST_CELLS."""
    if num_cells > MOST_CELLS:
        raise ValueError(f"expected at most {MOST_CELLS:,} cells, got more")


def chosen_table(which: int | None, described: Iterable[str]) -> int:
    """The number of the table to read, from 0; ValueError for a wrong one, or none of several."""
    tables = list(described)
    if which is None and len(tables) == 1:
        return 0
    if which is None or not 0 <= which < len(tables):
        named = [f"{number}: {table}" for number, table in enumerate(tables[:_TABLES_NAMED])]
        got = f"{len(tables)} tables" if which is None else str(which)
        raise ValueError(
            f"expected the number of a table as which, {up_to(len(tables) - 1)}, got {got} "
            f"({'; '.join([*named, '...'][: len(tables)])})"
        )
    return which


def lay_out(file: Rows, header_rows: int | None = None, skip_rows: int | None = None) -> Table:
    """Builds the table; `header_rows` and `skip_rows` are as of `ReadOptions`.

    ValueError if a row is longer than the header, for more than MOST_CELLS in rows as long as the
    longest, or as `Table`.
    """
    rows = list(zip(file.numbers, file.rows, strict=True))
    check_size(len(rows) * _longest(rows))
    if skip_rows is not None:
        rows = [(number, row) for number, row in rows if number > skip_rows]
    is_free = header_rows is None and skip_rows is None
    if file.is_ragged and is_free and len(rows) > 4 and rows[0][1][0] in _STATIONS:
        _take_titles(file, rows[:1], rows[1][0])  # of Campbell; names, units and kinds follow
        file.header_rows = 3
        rows = rows[1:]
    width = _longest(rows)
    if file.header_rows is None:
        if file.is_ragged and width > 1:
            rows = _without_last_delimiters(rows)
        if file.is_ragged and width > 1 and skip_rows is None:
            rows = [(n, row) for n, row in rows if not all(map(_RULE.fullmatch, row))]
        if width > 1 or not file.is_ragged:
            rows = [(number, row) for number, row in rows if any(map(has_text, row))]
        if skip_rows != 0:
            rows = _first_table(file, rows)
        if skip_rows is None:
            rows = _without_block_of_notes(file, rows)
        if file.is_ragged and skip_rows is None and len({len(row) for _, row in rows}) == 1:
            rows = _without_empty_columns(rows)  # so that titles are in the first
        width = _width(rows, file.is_ragged)
        if skip_rows is None:
            rows = _without_notes(file, rows, width)
            rows = _without_titles(file, rows, width)
            rows = _without_comments(file, rows, width)
        if not file.is_ragged:
            rows = _without_empty_columns(_without_tables_beside(file, rows))
            width = _longest(rows)
    rows = _rectangular(file, rows, width)
    if file.header_rows is None and file.is_ragged and skip_rows is None and width > 1:
        rows = _without_empty_columns(rows)
    body = list(_cells(rows))
    for place, (number, row) in enumerate(rows) if not are_texts(body) else ():
        try:
            body[place] = cell_texts(row)
        except TypeError as error:
            raise ValueError(f"{error} (file '{file.name}', {file.unit} {number})") from None
    if header_rows is None and file.header_rows != 0:
        body, header_rows = _without_types(file, body, file.header_rows)
    elif header_rows is None:
        header_rows = 0
    if header_rows is None:
        header_rows = count_header_rows(body)
        if header_rows == 0 and body:
            file.assumed.append("There is no header, so the columns are numbered.")
        elif header_rows > 1:
            *others, last = (str(number) for number, _ in rows[:header_rows])
            file.assumed.append(f"The header is {file.unit}s {', '.join(others)} and {last}.")
    if file.is_ragged:
        body = with_names_of_labels(body, header_rows)
    header = joined_header(body[:header_rows], max(map(len, body), default=0))
    body = body[header_rows:]
    is_guessed = file.header_rows is None and skip_rows is None
    if is_guessed and len(set(filter(None, header))) == len(header) > 1:
        once = [row for row in body if row != header]
        if 0 < len(once) < len(body):
            file.assumed.append(f"The header comes {len(body) - len(once) + 1} times.")
            body = once
    if not body and not any(header):
        raise ValueError("expected a table, got nothing")
    if not body:
        names = cut(", ".join(header), _LONGEST_NAMES)
        raise ValueError(f"expected rows below the header, got the header alone: {names}")
    if file.header_rows is None:
        body = _with_labels_filled(file, header, body)
    cells: Any = tuple(map(tuple, body))
    return Table(tuple(header), cells, file.name, file.title, assumed=tuple(file.assumed))


def _without_types(
    file: Rows, rows: list[list[str]], header_rows: int | None
) -> tuple[list[list[str]], int | None]:
    """The rows without one of types below the names, such as "string, int", and header rows."""
    if len(rows) > 3 and all(cell.startswith(_IMPORTED) for cell in rows[2]):
        file.assumed.append("The questions and codes below the header are left out.")
        return [rows[0], *rows[3:]], 1
    if len(rows) > 3 and _is_enumeration(rows[1], rows[2:]):
        left_out = f"row '{cut(', '.join(rows[1]), _LONGEST_TITLE)}' below the header is"
    elif len(rows) > 2 and all(map(_TYPE.fullmatch, rows[1])) and any(rows[1]):
        types = ", ".join(filter(None, rows[1]))
        left_out = f"types '{cut(types, _LONGEST_TITLE)}' below the header are"
    else:
        return rows, header_rows
    file.assumed.append(f"The {left_out} left out.")
    return [rows[0], *rows[2:]], 1


def _is_enumeration(row: Sequence[str], below: Sequence[Sequence[str]]) -> bool:
    """Whether a row numbers the columns: A, B, C or (1), (2), (3), above values and texts."""
    names = [cell.strip("()[] ") for cell in row]
    numbers = list(map(str, range(1, len(row) + 1)))
    if len(row) < 3 or names not in (list(ascii_uppercase[: len(row)]), numbers):
        return False
    columns = zip(*below[:ROWS_LOOKED_AT], strict=False)
    are_values = [{is_value(read_cell(it)) for it in column if it} for column in columns]
    return {True} in are_values and {False} in are_values


def _without_last_delimiters(rows: Numbered) -> Numbered:
    """The rows without delimiters at the ends of lines, where other lines have none."""
    width = _width(rows, is_ragged=True)
    size = max((_size(row) for _, row in rows if len(row) == width), default=0)
    if not 0 < size < width or all(len(row) != size for _, row in rows):
        return rows
    return [(n, row if any(map(has_text, row[size:])) else row[:size]) for n, row in rows]


def _without_tables_beside(file: Rows, rows: Numbered) -> Numbered:
    """The rows of the first of two tables that have empty columns between them."""
    filled = _filled_columns(rows)
    for place in range(3, len(filled) - 1):
        if filled[place] and not filled[place - 1] and all(filled[place : place + 2]):
            first = [(n, row[: place - 1]) for n, row in rows if num_filled(row[: place - 1])]
            second = [(n, row[place:]) for n, row in rows if num_filled(row[place:])]
            labels = [str(row[0]) for _, row in second[1:] if has_text(row[0])]
            are_labels = labels and not any(is_value(read_cell(label)) for label in labels)
            if are_labels and second[0][0] == first[0][0] and _table(first) and _table(second):
                names = cut(", ".join(map(str, filter(has_text, second[0][1]))), _LONGEST_TITLE)
                said = f"Another table, '{names}', is beside it and left out"
                file.assumed.append(f"{said}; put it on a sheet of its own to read it.")
                return first
    return rows


def _with_labels_filled(
    file: Rows, header: Sequence[str], body: list[list[str]]
) -> list[list[str]]:
    """The rows with the labels of groups, which stand in the first row of each, in all of them."""
    is_total = [TOTAL.fullmatch(next(filter(None, row), "").lower()) is not None for row in body]
    rows = [row for row, is_one in zip(body, is_total, strict=True) if not is_one]
    before = list(range(len(rows)))  # rows that may lack a label
    for index in range(len(header) - 2):
        blanks = [number for number in before if not rows[number][index]]
        labels = [row[index] for row in rows if row[index]]
        is_whole = all(row[-1] for row in rows) and any(
            all(row[other] for row in rows) for other in range(index + 1, len(header) - 1)
        )
        are_groups = len(blanks) > 1 and 2 * len(blanks) >= len(labels) and bool(rows[0][index])
        are_groups &= len(blanks) + len(labels) == len(rows) and (
            index > 0 or len(set(labels)) == len(labels)
        )
        if not (is_whole and are_groups) or any(is_value(read_cell(it)) for it in labels):
            break
        label = ""
        for row in rows:
            label = row[index] = row[index] or label
        before = blanks
        named = header[index] or "the first column"
        file.assumed.append(f"The labels of '{named}' stand once for each group; they fill it.")
    return body


def _longest(rows: Numbered) -> int:
    return max(map(len, _cells(rows)), default=0)


def _cells(rows: Numbered) -> Iterator[list[Any]]:
    return map(itemgetter(1), rows)


def _first_table(file: Rows, rows: Numbered) -> Numbered:
    """The rows up to where another table begins below empty rows."""
    gaps = [
        place
        for place, ((above, row), (below, _)) in enumerate(itertools.pairwise(rows), start=1)
        if _is_gap(file, above, row, below)
    ]
    if not gaps:
        return rows
    blocks = [rows[begin:end] for begin, end in itertools.pairwise([0, *gaps, len(rows)])]
    headers = [(place, *table[0]) for place, block in enumerate(blocks) if (table := _table(block))]
    others = (header for header in headers if header[2] != headers[0][2])
    place, begin, names = next(others, (0, 0, []))
    if not place:
        return rows
    above = rows[: [0, *gaps][place]]
    _, first, first_names = headers[0]
    if len(first_names) == 2 and len(names) == 3:
        raise ValueError(
            f"expected one table, got one with the header in {file.unit} {first} and one with the "
            f"header in {file.unit} {begin}; set skip_rows={begin - 1} to read the second"
        )
    if len(first_names) == 2 < len(names):  # pairs such as "Balance, 12.50"
        _take_titles(file, above, begin)
        return rows[len(above) :]
    left_out = f"{file.unit}s {blocks[place][0][0]} to {rows[-1][0]} are left out"
    another = f"Another table begins in {file.unit} {begin}; {left_out}."
    file.assumed.append(f"{another} Set skip_rows={begin - 1} to read it.")
    return above


def _is_gap(file: Rows, above: int, row: Sequence[Any], below: int) -> bool:
    """Whether there are empty rows below a row, between the numbers of it and the next one."""
    if file.unit == "row" or below == above + 1:
        return below > above + 1
    return below > above + 1 + sum(str(cell).count("\n") for cell in row)


def _table(block: Numbered) -> Numbered:
    """A block from its header on, without empty columns at its sides; [] if it is no table."""
    block = list(itertools.dropwhile(lambda row: num_filled(row[1]) < 2, block))
    if len(block) < 2:
        return []
    header = block[0][1]
    filled = [index for index, cell in enumerate(header) if has_text(cell)]
    rows = [(number, row[filled[0] : filled[-1] + 1]) for number, row in block]
    width = len(rows[0][1])
    return rows if (_is_table(rows) if width == 2 else is_certain_header(rows, width)) else []


def _size(row: Sequence[Any]) -> int:
    """How many cells a row has up to the last one with text."""
    return next((size for size in range(len(row), 0, -1) if has_text(row[size - 1])), 0)


def _width(rows: Numbered, is_ragged: bool) -> int:
    """The commonest size of the rows from the middle on; of equally common ones the largest."""
    if not is_ragged:
        return max((_size(row) for _, row in rows), default=0)
    lengths = [len(row) for _, row in rows[len(rows) // 2 :][:ROWS_LOOKED_AT]]
    sizes = Counter([size for size in lengths if size > 1] or lengths)  # notes have one cell
    everywhere = Counter(len(row) for _, row in rows[:ROWS_LOOKED_AT])
    return max(sizes, key=lambda size: (sizes[size], everywhere[size], size), default=0)


def _shortened(row: Sequence[Any]) -> str:
    text = " ".join(str(cell) for cell in row if has_text(cell))
    return cut(" ".join(text.split()), _LONGEST_TITLE)


def _without_notes(file: Rows, rows: Numbered, width: int) -> Numbered:
    """The rows without notes after the last one, such as "Source: ..."."""
    kept = list(rows)
    end = len(rows)
    while end > 2 and _is_alone(rows[end - 1][1]):
        end -= 1
    is_below = width > 2 and end < len(rows) and _is_gap(file, *rows[end - 1], rows[end][0])
    if is_below and not any(_is_alone(row) for _, row in rows[1:end]):
        kept = rows[:end]
    while len(kept) > 2 and width > 1:
        number, row = kept[-1]
        if not any(map(has_text, row)):
            break
        text = next(str(cell) for cell in row if has_text(cell))
        is_apart = number - kept[-2][0] > 1 and file.unit == "row"
        is_one = len(row) == 1 if file.is_ragged else _is_alone(row)
        is_note = is_one and (_NOTE.match(text) or is_apart or file.is_ragged)
        is_pair = width > 2 >= num_filled(row) and text.rstrip().endswith(":")  # Date:, 1 May
        is_pair = is_pair and not TOTAL.fullmatch(text.strip().lower())
        if not (is_note or is_pair or _SOURCE.match(text)):
            break
        kept.pop()
    _leave_out_notes(file, rows[len(kept) :])
    return kept


def _is_alone(row: Sequence[Any]) -> bool:
    return num_filled(row) == 1 and has_text(row[0])


def _leave_out_notes(file: Rows, notes: Numbered) -> None:
    rows = map(_shortened, _cells(notes))
    file.assumed += [f"The note '{row}' below the table is left out." for row in rows]


def _without_block_of_notes(file: Rows, rows: Numbered) -> Numbered:
    """The rows without those from "Notes:" on, below an empty row, shorter than the last one."""
    for place in range(max(2, len(rows) - _MOST_NOTES), len(rows)):
        (above, last), (number, row) = rows[place - 1 : place + 1]
        is_alone = _is_alone(row) and number > above + 1
        sizes = [num_filled(below) for _, below in rows[place:]]
        if is_alone and _NOTE.match(str(row[0])) and max(sizes) < num_filled(last):
            _leave_out_notes(file, rows[place:])
            return rows[:place]
    return rows


def _without_titles(file: Rows, rows: Numbered, width: int) -> Numbered:
    """The rows from the header on; what is above it is the title."""
    num_titles = num_certain = 0
    for place in range(1, min(len(rows) - 1, _MOST_TITLES)):
        (above, row), (number, header) = rows[place - 1 : place + 1]
        if num_filled(row) >= width > 0 or len(row) > width:
            break
        is_apart = _is_gap(file, above, row, number) and len(header) == width
        if is_apart and is_certain_header(rows[place:], width) and not _table(rows[:place]):
            _take_titles(file, rows[:place], number)
            return rows[place:]
    looked_at = rows[: max(len(rows) - 1, 0)][:ROWS_LOOKED_AT]
    for (_, row), (_, below) in zip(looked_at, rows[1:], strict=False):
        is_title = _is_title(row, below, width, file.is_ragged, num_titles == 0)
        # "Account, 1234", or a title in a table of two columns, where it may be their header
        is_pair = width > 1 and has_text(row[0]) and num_filled(row) == _size(row) <= 2
        is_likely = is_pair and (num_filled(row) < width or str(row[0]).rstrip().endswith(":"))
        if not (is_title or is_likely or _is_apart(rows[num_titles:], width)):
            break
        num_certain += is_title and num_certain == num_titles
        num_titles += 1
    is_header = num_titles > num_certain and is_certain_header(rows[num_titles:], width)
    if not is_header or _is_table(rows[num_certain:num_titles]):
        num_titles = num_certain
    if num_titles == len(looked_at) and num_titles:
        return rows  # then all are short, and the first is the header
    if num_titles:
        _take_titles(file, rows[:num_titles], rows[num_titles][0])
    return rows[num_titles:]


def _take_titles(file: Rows, rows: Numbered, header: int) -> None:
    first, is_one = _shortened(rows[0][1]), len(rows) == 1
    file.title = file.title or first.lstrip("#/;% ")
    titles = f"'{first}' above it is" if is_one else f"{len(rows)} {file.unit}s above it are"
    file.assumed.append(f"The header is in {file.unit} {header}; {titles} the title.")


def _is_apart(rows: Numbered, width: int) -> bool:
    """Whether the first row has values or a gap below it, and the second is a certain header."""
    (number, row), (below, _) = rows[:2]
    cells = (read_cell(str(cell)) for cell in row if has_text(cell))
    has_value = any(is_value(cell) and not cell.is_year for cell in cells)
    is_label = any(isinstance(cell, str) and cell.rstrip().endswith(":") for cell in row)
    has_value &= num_filled(row) <= 2 or len(row) != width or is_label  # no days above units
    return (has_value or below > number + 1) and is_certain_header(rows[1:], width)


def _is_title(
    row: list[Any], below: list[Any], width: int, is_ragged: bool, is_first: bool
) -> bool:
    """Whether a row above others can be nothing but a title or a comment."""
    size = len(row)
    if not is_ragged:
        return width > 1 and num_filled(row) == 1
    if size != width:
        first = next((str(cell) for cell in row if has_text(cell)), "").strip()
        is_comment = first.startswith(_COMMENTS) and size != len(below)
        return is_comment or (width > 1 and size < width - (is_first and width > 2))
    if width > 1 and all(cell.startswith(" ") and cell.strip() for cell in row[1:]):
        return is_first and not any(cell.startswith(" ") for cell in below)  # Sales, of 2024
    # A spreadsheet's titles are lines as long as the others.
    return width > 2 and num_filled(row) == 1 and has_text(row[0])


def _is_table(rows: Numbered) -> bool:
    """Whether pairs above a table are one themselves: names, and numbers below one of them."""
    numbers = [str(row[1]) for _, row in rows[1:] if len(row) > 1 and has_text(row[1])]
    return (
        len(numbers) > 1
        and is_certain_header([(n, row[:2]) for n, row in rows], 2)
        and read_column(numbers).kind == "number"
    )


def _without_comments(file: Rows, rows: Numbered, width: int) -> Numbered:
    """The rows without shorter lines between them that begin with "#"."""
    if not file.is_ragged or width < 2:
        return rows
    kept = [(n, row) for n, row in rows if len(row) == width or not row[0].startswith(_COMMENTS)]
    if num := len(rows) - len(kept):
        file.assumed.append(f"{num} comment{'s are' if num > 1 else ' is'} left out.")
    return kept


def _filled_columns(rows: Numbered) -> list[bool]:
    """Whether each column has a text."""
    width = _longest(rows)
    return [any(has_text(row[i]) for _, row in rows if i < len(row)) for i in range(width)]


def _without_empty_columns(rows: Numbered) -> Numbered:
    filled = _filled_columns(rows)
    if all(filled):
        return rows
    kept = [column for column, is_filled in enumerate(filled) if is_filled]
    return [(n, [row[c] if c < len(row) else None for c in kept]) for n, row in rows]


def _rectangular(file: Rows, rows: Numbered, width: int) -> Numbered:
    """Rows of the same length; short ones are filled, empty cells beyond the header cut off."""
    if not rows or (not file.is_ragged and set(map(len, _cells(rows))) == {width}):
        return rows
    if file.is_ragged:
        is_named = len(rows[0][1]) == width - 1 and all(len(row) == width for _, row in rows[1:])
        is_named &= not all(str(row[-1]).startswith(" ") for _, row in rows[1:])  # Oak St, Rome
        if is_named and len(rows) > 2 and file.header_rows is None:
            rows = [(rows[0][0], ["", *rows[0][1]]), *rows[1:]]  # names of rows have no name
            file.assumed.append("The first column has no name.")
        width = max(len(rows[0][1]), 1)
    short = 0
    filled = []
    for number, row in rows:
        if len(row) > width:
            if any(map(has_text, row[width:])):
                raise ValueError(
                    f"expected {width} cells as in the header, got {len(row)} (file "
                    f"'{file.name}', {file.unit} {number}); put a cell that has the delimiter in "
                    "it in quotes, or set skip_rows if the header is further down"
                )
            row = row[:width]
        elif len(row) < width:
            short += file.is_ragged
            row = [*row, *[""] * (width - len(row))]
        filled.append((number, row))
    if short:
        file.assumed.append(f"{short} short {file.unit}{'s' * (short > 1)} ended in empty cells.")
    may_end = file.header_rows is None and file.is_ragged and width > 1
    if may_end and not any(has_text(row[-1]) for _, row in filled):
        return [(number, row[:-1]) for number, row in filled]  # a delimiter ends each line
    return filled
