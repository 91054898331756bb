"""Workbooks: .xlsx by openpyxl, .xls by xlrd, .xlsb by python-calamine, .ods, and openpyxl's own.

Which sheet is read, and what its hidden and merged parts become, is the same for all of them.
"""

import contextlib
import datetime
import functools
import io
import re
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple
from xml.etree import ElementTree

from mate_tf.private_apis import import_extra, sheet_parser
from mate_tf.reading.layout import Rows, check_size
from mate_tf.tables.cell_texts import plain_value, shown_number
from mate_tf.tables.notations import DIRECTIONS

_VALUE = re.compile(rb"<(?:\w+:)?(?:v|is|f)[ />]")  # of a cell of .xlsx, or its formula
_STRICT = b"http://purl.oclc.org/ooxml/"
_MAIN = b"http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_OFFICE = b"http://schemas.openxmlformats.org/officeDocument/2006/"
_ROW_TAG, _COLUMN_TAG, _VALUE_TAG, _INLINE_TAG, _TEXT_TAG, _MERGED_TAG = (
    f"{{{_MAIN.decode()}}}{name}" for name in ("row", "col", "v", "is", "t", "mergeCells")
)
_LOOKED_AT = 2**24  # bytes of a sheet in which there is one


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


def read_sheet_rows(book: Book, sheet: str | None = None, show_hidden: bool = False) -> Rows:
    """Reads the rows of a sheet. A formula has the result that was last stored.

    Percentages, currencies, leading zeros and lengths of time are as they are shown, but not in
    .xlsb. Other numbers have the 15 digits that Excel shows. Merged cells all have the value of the
    first. Hidden rows and columns are left out, unless `show_hidden`.

    Without a name the sheet is the first visible one, with several rows and columns if there is
    one. ValueError without such a sheet, for more than MOST_CELLS or formulas without results.
    """
    (rows, merged, hidden_rows, hidden_columns), assumed = _chosen_sheet(book, sheet)
    rows = [
        [DIRECTIONS.sub("", cell) if isinstance(cell, str) else cell for cell in row]
        for row in rows
    ]
    _fill_merged(rows, merged)
    numbers = range(1, len(rows) + 1)
    if show_hidden:
        return Rows(rows, assumed=assumed)
    if hidden := len(hidden_rows.intersection(numbers)):
        assumed.append(f"{hidden} hidden row{'s are' if hidden > 1 else ' is'} left out.")
    if not hidden_columns.isdisjoint(range(max(map(len, rows), default=0))):
        assumed.append("Hidden columns are left out.")
    kept = [number for number in numbers if number not in hidden_rows]
    rows = [
        [cell for column, cell in enumerate(rows[number - 1]) if column not in hidden_columns]
        for number in kept
    ]
    return Rows(rows, kept, assumed=assumed)


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
    empty = (None, "")
    filled = (next((n for n, it in enumerate(row) if it not in empty), width) for row in rows)
    leftmost = min(filled, default=0)
    for top, first, bottom, last in merged:
        if top >= len(rows) or first >= width:
            continue
        last = min(last, width - 1)
        value, within = rows[top][first], rows[top : bottom + 1]
        is_alone = last > first and first <= leftmost
        is_alone = is_alone and all(cell in empty for row in within for cell in row[last + 1 :])
        for row in within:
            row[first : last + 1] = [None if is_alone else value] * (last + 1 - first)
        rows[top][first] = value


def shown_value(value: Any, number_format: str = "") -> Any:
    """A value as it is shown; a number to the 15 digits that Excel shows."""
    if isinstance(value, float):
        value = float(f"{value:.15g}")
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return (is_number and shown_number(value, number_format)) or plain_value(value)


def open_excel(content: bytes, path: str) -> Book:
    """Opens a .xlsx or .xlsm; ModuleNotFoundError without openpyxl, or its errors."""
    openpyxl = import_extra("openpyxl", "formats", f"to read '{path}'")
    # Sheets are parsed when they are read, and what else there is, such as drawings, is not.
    options = dict(read_only=True, data_only=True, keep_links=False)
    book = openpyxl.load_workbook(io.BytesIO(_transitional(content)), **options)
    sheets = {sheet.title: sheet for sheet in book.worksheets}

    def has_values(sheet: Any) -> bool:
        begin = sheet_parser(sheet).source.read(_LOOKED_AT).replace(b"\0", b"")  # also of UTF-16
        return _VALUE.search(begin) is not None

    return Book(
        {name: has_values(sheet) for name, sheet in sheets.items()},
        {name for name, sheet in sheets.items() if sheet.sheet_state == "visible"},
        lambda name: _excel_sheet(sheets[name]),
    )


def _transitional(content: bytes) -> bytes:
    """A workbook of Strict Open XML in the names that openpyxl knows; others as they are."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        if _STRICT not in archive.read("xl/workbook.xml"):
            return content
        written = io.BytesIO()
        with zipfile.ZipFile(written, "w") as copy:
            for member in archive.namelist():
                part = archive.read(member).replace(_STRICT + b"spreadsheetml/main", _MAIN)
                copy.writestr(member, part.replace(_STRICT + b"officeDocument/", _OFFICE))
    return written.getvalue()


def _excel_sheet(sheet: Any) -> Sheet:
    from openpyxl.cell.read_only import ReadOnlyCell
    from openpyxl.utils import column_index_from_string
    from openpyxl.utils.datetime import from_excel
    from openpyxl.worksheet.merge import MergeCells

    parser = sheet_parser(sheet)
    parse_any = parser.parse_cell
    first_formula, has_result = "", False
    width = 0
    rows: list[list[Any]] = []

    def parse_cell(element: Any) -> None:
        """Puts a cell into its row; openpyxl, which takes ten times as long, reads unusual ones."""
        nonlocal first_formula, has_result
        place, kind, style = element.get("r"), element.get("t", "n"), int(element.get("s", 0))
        if place and kind in plain and (text := _text_alone(element)):
            letters = place.rstrip("0123456789")
            row, column = int(place[len(letters) :]), column_index_from_string(letters)
            parser.col_counter = column
            value = plain[kind](text, style)
        else:
            cell = parse_any(element)
            row, column, value = cell["row"], cell["column"], cell["value"]
            if any(part.tag.endswith("}f") for part in element):
                first_formula = first_formula or f"'{sheet.title}'!{place}"
                has_result |= value is not None or cell["data_type"] == "str"
            if value is None and cell["data_type"] == "str":
                value = ""  # the result of a formula may be an empty text
            value = shown_value(value, format_of(style))
        if row > len(rows) or column > width:
            reserve(row, column)
        cells = rows[row - 1]
        if len(cells) < column:
            cells += [None] * (column - len(cells))
        cells[column - 1] = value

    @functools.cache
    def format_of(style: int) -> str:
        return str(ReadOnlyCell(sheet, 1, 1, None, style_id=style).number_format)

    @functools.lru_cache(maxsize=1 << 14)
    def number_or_date(text: str, style: int) -> Any:
        value: Any = int(text) if text.lstrip("-").isdecimal() else float(text)
        if style in parser.date_formats:
            try:
                is_length = style in parser.timedelta_formats
                value = from_excel(value, parser.epoch, timedelta=is_length)
            except (OverflowError, ValueError):
                value = "#VALUE!"
        return shown_value(value, format_of(style))

    plain: dict[str, Callable[[str, int], Any]] = {
        "n": number_or_date,
        "s": lambda text, _: parser.shared_strings[int(text)],
        "inlineStr": lambda text, _: text,
    }

    def reserve(row: int, column: int) -> None:
        """Makes rows, from 1, up to a cell."""
        nonlocal width
        width = max(width, column)
        check_size(max(row, len(rows)) * width)
        rows.extend([] for _ in range(row - len(rows)))

    parser.parse_cell = parse_cell
    merged_cells = None
    for _, element in ElementTree.iterparse(parser.source):
        if element.tag == _ROW_TAG:
            parser.parse_row(element)
        elif element.tag == _COLUMN_TAG:
            parser.parse_column_dimensions(element)
        elif element.tag == _MERGED_TAG:
            merged_cells = MergeCells.from_tree(element)
        else:
            continue
        element.clear()
    # A program that computes nothing stores no result at all; with others some are empty.
    if first_formula and not has_result:
        raise ValueError(
            f"expected formulas with their last results, got none in {first_formula}; open the "
            "file in Excel or LibreOffice and save it"
        )
    merged = []
    for part in merged_cells.mergeCell if merged_cells else ():
        left, top, right, bottom = part.bounds  # from 1
        reserve(bottom, right)
        rows[bottom - 1] += [None] * (right - len(rows[bottom - 1]))
        merged.append((top - 1, left - 1, bottom - 1, right - 1))
    columns = parser.column_dimensions.values()
    hidden = [(int(it["min"]), int(it["max"])) for it in columns if _is_hidden(it, "width")]
    return Sheet(
        rows,
        merged,
        {int(n) for n, it in parser.row_dimensions.items() if _is_hidden(it, "ht")},
        {column for least, most in hidden for column in range(least - 1, min(most, width))},
    )


def _text_alone(element: Any) -> str | None:
    """The text of a cell that has a value or a plain text and nothing else, such as a formula."""
    if len(element) != 1:
        return None
    part = element[0]
    if part.tag == _INLINE_TAG and len(part) == 1 and part[0].tag == _TEXT_TAG:
        part = part[0]
    elif part.tag != _VALUE_TAG:
        return None
    return part.text


def _is_hidden(attributes: Mapping[str, str], size: str) -> bool:
    is_shown = attributes.get("hidden", "0") in ("0", "f", "false")
    return not is_shown or float(attributes.get(size, 1)) == 0


def open_excel_97(content: bytes, path: str) -> Book:
    """Opens a .xls; ModuleNotFoundError without xlrd, or its errors."""
    xlrd = import_extra("xlrd", "formats", f"to read '{path}'")
    book = xlrd.open_workbook(file_contents=content, formatting_info=True, logfile=io.StringIO())
    sheets = {sheet.name: sheet for sheet in book.sheets()}

    def value_of(cell: Any) -> Any:
        if cell.ctype == xlrd.XL_CELL_ERROR:
            return xlrd.error_text_from_code.get(cell.value, "#N/A")
        if cell.ctype == xlrd.XL_CELL_BOOLEAN:
            return bool(cell.value)
        number_format = book.format_map[book.xf_list[cell.xf_index].format_key].format_str
        if cell.ctype == xlrd.XL_CELL_DATE:
            if "[h" in number_format.lower() or "[m" in number_format.lower():
                return plain_value(datetime.timedelta(days=round(cell.value, 9)))
            moment = xlrd.xldate.xldate_as_datetime(cell.value, book.datemode)
            return plain_value(moment.time() if cell.value < 1 else moment)
        is_number = cell.ctype == xlrd.XL_CELL_NUMBER
        return shown_value(cell.value, number_format) if is_number else cell.value

    def read(name: str) -> Sheet:
        sheet = sheets[name]
        check_size(sheet.nrows * sheet.ncols)
        columns = {column for column, it in sheet.colinfo_map.items() if it.hidden or it.width == 0}
        bounds = sheet.merged_cells  # their ends are behind them
        return Sheet(
            [[value_of(cell) for cell in row] for row in sheet.get_rows()],
            [(top, left, bottom - 1, right - 1) for top, bottom, left, right in bounds],
            {row + 1 for row, it in sheet.rowinfo_map.items() if it.hidden or it.height == 0},
            columns.intersection(range(sheet.ncols)),
        )

    filled = {name: bool(it.nrows) for name, it in sheets.items()}
    return Book(filled, {name for name, it in sheets.items() if not it.visibility}, read)


def open_excel_binary(content: bytes, path: str) -> Book:
    """Opens a .xlsb, of which hidden parts are not known; errors as of the others."""
    calamine = import_extra("python_calamine", "formats", f"to read '{path}'")
    book = calamine.load_workbook(io.BytesIO(content))
    sheets = {name: book.get_sheet_by_name(name) for name in book.sheet_names}

    def read(name: str) -> Sheet:
        sheet = sheets[name]
        check_size(sheet.total_height * sheet.total_width)
        rows = [list(map(shown_value, row)) for row in sheet.to_python(skip_empty_area=False)]
        merged = [(*first, *last) for first, last in sheet.merged_cell_ranges or ()]
        return Sheet(rows, merged, set(), set())

    visible = calamine.SheetVisibleEnum.Visible
    shown = {about.name for about in book.sheets_metadata if about.visible == visible}
    return Book({name: it.total_height > 0 for name, it in sheets.items()}, shown, read)


_CODE = re.compile(r"0\d+")
_DURATION = re.compile(r"PT(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:[.,]\d+)?)S)?")
_NO_NUMBERS = ("boolean", "date", "string", "time")  # kinds of values
_MOST_BLANKS = 1000  # that one element stands for
# From a name to the tag or attribute of that name.
_OF_OFFICE, _TABLE, _TEXT, _STYLE = (
    f"{{urn:oasis:names:tc:opendocument:xmlns:{name}:1.0}}".__add__
    for name in ("office", "table", "text", "style")
)


def open_opendocument(content: bytes, _: str) -> Book:
    """Opens a workbook; ElementTree's errors if its XML is not whole."""
    filled: dict[str, bool] = {}
    shown: set[str] = set()
    hidden_styles = set()
    name = style = ""
    for event, element in _ods_elements(content):
        if element.tag == _STYLE("style"):
            style = element.get(_STYLE("name"), "")
        elif element.get(_TABLE("display")) == "false":  # the properties of that style
            hidden_styles.add(style)
        elif event == "start" and element.tag == _TABLE("table"):
            name = element.get(_TABLE("name"), "")
            filled.setdefault(name, False)
            if element.get(_TABLE("style-name")) not in hidden_styles:
                shown.add(name)
        elif element.get(_OF_OFFICE("value-type")):
            filled[name] = True
    return Book(filled, shown, lambda name: _ods_sheet(content, name))


def _ods_elements(content: bytes) -> Iterator[tuple[str, Any]]:
    with zipfile.ZipFile(io.BytesIO(content)).open("content.xml") as file:
        for event, element in ElementTree.iterparse(file, ("start", "end")):
            yield event, element
            if event == "end" and element.tag == _TABLE("table-row"):
                element.clear()


def _ods_sheet(content: bytes, name: str) -> Sheet:
    rows: list[list[Any]] = []
    merged = []
    hidden_rows: list[range] = []
    hidden_columns: list[range] = []
    num_rows = num_columns = width = 0  # also those without values, behind which others may come
    is_wanted = False
    for event, element in _ods_elements(content):
        if element.tag == _TABLE("table"):
            if is_wanted:
                break
            is_wanted = element.get(_TABLE("name"), "") == name
        if event == "start" or not is_wanted:
            continue
        if element.tag == _TABLE("table-column"):
            span = range(num_columns, num_columns + _count(element, "number-columns-repeated"))
            num_columns = span.stop
            hidden_columns += [span] if _is_collapsed(element) else []
        elif element.tag == _TABLE("table-row"):
            span = range(num_rows, num_rows + _count(element, "number-rows-repeated"))
            num_rows = span.stop
            hidden_rows += [span] if _is_collapsed(element) else []
            row, spans = _ods_row(element)
            merged += [(span[0], first, span[0] + n - 1, last) for first, n, last in spans]
            if row:
                width = max(width, len(row))
                check_size(num_rows * width)
                rows.extend([] for _ in range(span.start - len(rows)))
                rows.extend(list(row) for _ in span)
    hidden = (n + 1 for span in hidden_rows for n in range(span.start, min(span.stop, len(rows))))
    columns = (n for span in hidden_columns for n in range(span.start, min(span.stop, width)))
    return Sheet(rows, merged, set(hidden), set(columns))


def _ods_row(row: Any) -> tuple[list[Any], list[tuple[int, int, int]]]:
    """The values up to the last one, and of cells that span others column, rows, last column."""
    values: list[Any] = []
    spans = []
    column = 0
    for cell in row:
        if cell.tag not in (_TABLE("table-cell"), _TABLE("covered-table-cell")):
            continue
        first, column = column, column + _count(cell, "number-columns-repeated")
        height, width = (_count(cell, f"number-{of}-spanned") for of in ("rows", "columns"))
        if max(height, width) > 1:
            spans.append((first, height, first + width - 1))
        value = _ods_value(cell)
        if value is not None:
            check_size(column)
            values += [None] * (first - len(values)) + [value] * (column - first)
    return values, spans


def _count(element: Any, name: str) -> int:
    return int(element.get(_TABLE(name), 1))


def _is_collapsed(element: Any) -> bool:
    return element.get(_TABLE("visibility")) in ("collapse", "filter")


def _ods_value(cell: Any) -> Any:
    """A cell's value; as it is shown where it is money, a percentage or has leading zeros."""
    kind = cell.get(_OF_OFFICE("value-type"))
    if kind is None:
        return None
    shown = "\n".join(_ods_paragraphs(cell))
    if (kind in ("percentage", "currency") and shown) or _CODE.fullmatch(shown):
        return shown
    text = cell.get(_OF_OFFICE(f"{kind}-value" if kind in _NO_NUMBERS else "value"), shown)
    with contextlib.suppress(ValueError):
        if kind == "date":
            return plain_value(datetime.datetime.fromisoformat(text))
        if kind == "time" and (parts := _DURATION.fullmatch(text)):
            hours, minutes, seconds = (float(part or 0) for part in parts.groups())
            length = datetime.timedelta(hours=hours, minutes=minutes, seconds=seconds)
            is_of_day = length < datetime.timedelta(days=1)
            return plain_value((datetime.datetime.min + length).time() if is_of_day else length)
        if kind == "boolean":
            return text == "true"
        if kind not in ("string", "void"):
            return shown_value(float(text))
    return text or None


def _ods_paragraphs(cell: Any) -> Iterator[str]:
    for part in cell:
        if part.tag == _OF_OFFICE("annotation"):
            continue
        for paragraph in part.iter(_TEXT("p")):
            for it in paragraph.iter():
                if it.tag in (_TEXT("s"), _TEXT("tab"), _TEXT("line-break")):
                    it.text = " " * min(int(it.get(_TEXT("c"), 1)), _MOST_BLANKS)
            yield "".join(paragraph.itertext())


def has_worksheets(data: Any) -> bool:
    """Whether it is a worksheet, or a workbook of them."""
    return hasattr(data, "sheet_state") or hasattr(type(data), "worksheets")


def open_worksheets(data: Any) -> Book:
    """The book of a workbook, or of a worksheet alone; ValueError for formulas without results."""
    sheets = {sheet.title: sheet for sheet in getattr(data, "worksheets", [data])}
    shown = {name for name, it in sheets.items() if it.sheet_state == "visible"}
    read = {name: _sheet(sheet) for name, sheet in sheets.items()}
    return Book(
        {name: any(map(any, it.rows)) for name, it in read.items()}, shown, read.__getitem__
    )


def cell_value(cell: Any) -> Any:
    """The value of a cell as it is shown; ValueError for a formula."""
    if cell.data_type == "f":
        raise ValueError(
            "expected formulas with their last results, got one alone in "
            f"'{cell.parent.title}'!{cell.coordinate}; load the workbook with data_only=True"
        )
    return shown_value(cell.value, cell.number_format or "")


def _sheet(sheet: Any) -> Sheet:
    merged = getattr(getattr(sheet, "merged_cells", None), "ranges", ())
    columns: dict[str, Any] = getattr(sheet, "column_dimensions", {})
    rows: dict[int, Any] = getattr(sheet, "row_dimensions", {})
    hidden = [column for column in columns.values() if column.hidden]
    for column in hidden:
        column.reindex()  # gives it its numbers, from 1
    bounds = [[place - 1 for place in part.bounds] for part in merged]
    return Sheet(
        [list(map(cell_value, row)) for row in sheet.iter_rows()],
        [(top, left, bottom, right) for left, top, right, bottom in bounds],
        {number for number, it in rows.items() if it.hidden},
        {place - 1 for column in hidden for place in range(column.min, column.max + 1)},
    )
