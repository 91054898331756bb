"""Tables in files whose cells have types: workbooks by openpyxl, python-calamine and xlrd, Parquet.

html_tables.py shares the helpers at the top.
"""

import contextlib
import datetime
import io
import itertools
import json
import math
import re
import warnings
import zipfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from mate_tf.private_apis import import_extra
from mate_tf.tables.cell_texts import nested_text, plain_value, shown_number
from mate_tf.tables.layout import Rows, check_size
from mate_tf.tables.sheet_sizes import (
    check_archive,
    check_bytes,
    check_in_a_trial,
    parquet_batches,
)

OLE = b"\xd0\xcf\x11\xe0"  # what files of Excel 97 begin with
_FORMULA = re.compile(rb"<(?:\w+:)?f[ />]")
_CODE = re.compile(r"0\d+")


def reading_package(name: str, path: str | Path) -> Any:
    """Imports a module of the extra "formats"; ModuleNotFoundError if it is not installed."""
    return import_extra(name, "formats", f"to read '{path}'")


@contextlib.contextmanager
def broken_named(kind: str, path: str | Path) -> Iterator[None]:
    """Turns whatever a package raises while it reads into a ValueError that names the file."""
    try:
        with warnings.catch_warnings(action="ignore"):  # packages warn of parts that they skip
            yield
    except ModuleNotFoundError:
        raise
    except Exception as error:  # errors of archives, XML and types have no common class
        if f"(file '{path}'" in str(error):  # it is one of ours
            raise
        reason = str(error).strip().split("\n")[0] or type(error).__name__
        raise ValueError(f"expected {kind}, got: {reason} (file '{path}')") from None


def read_parquet_rows(content: bytes, path: str) -> Rows:
    """Reads the rows of a table, the header first; null and NaN are None.

    Lists are joined by commas, structures are JSON. A column of bytes that are no text is left out.

    Raises:
        ModuleNotFoundError: without pyarrow.
        ValueError: if it is no Parquet file, or as `check_in_a_trial` and `parquet_batches`.
    """
    names: list[str] = []
    columns: list[list[Any]] = []
    assumed = []
    with broken_named("a Parquet file", path):
        reading_package("pyarrow.parquet", path)
        check_in_a_trial(content, path)
        schema, batches = parquet_batches(content, path)
        pandas = json.loads((schema.metadata or {}).get(b"pandas", b"{}"))
        labels = [name for name in pandas.get("index_columns", ()) if isinstance(name, str)]
        read = _arrow_columns(schema, batches, path)
        order = sorted(range(len(read)), key=lambda place: schema.names[place] not in labels)
        for name, column in ((schema.names[place], read[place]) for place in order):
            if column is None:
                assumed.append(f"Column '{name}' holds bytes that are no text and is left out.")
                continue
            columns.append(column)
            names.append("" if name in labels and name.startswith("__index_level_") else name)
    rows = [names, *map(list, zip(*columns, strict=True))]
    return Rows(rows, range(len(rows)), path, header_rows=1, assumed=assumed)


def _arrow_columns(schema: Any, batches: Iterable[Any], path: str) -> list[list[Any] | None]:
    """The values of each column; None for bytes that are no text. ValueError as `check_bytes`."""
    columns: list[list[Any] | None] = [[] for _ in schema]
    num_characters = 0
    for batch in batches:
        for place, column in enumerate(columns):
            if column is None:
                continue
            try:
                values = _arrow_values(batch.column(place))
            except UnicodeDecodeError:
                columns[place] = None
                continue
            num_characters += sum(len(value) for value in values if isinstance(value, str))
            check_bytes(num_characters, path)  # JSON may be longer than what it is made of
            column += values
    return columns


def _arrow_values(column: Any) -> list[Any]:
    """The values as a table shows them; UnicodeDecodeError for bytes that are no text."""
    import pyarrow

    kind = column.type
    if pyarrow.types.is_dictionary(kind):
        if len(column.dictionary) > len(column):  # of which each batch has a few
            return _arrow_values(column.dictionary_decode())
        texts = _arrow_values(column.dictionary)
        return [None if i is None else texts[i] for i in column.indices.to_pylist()]
    if kind in (pyarrow.float16(), pyarrow.float32()):
        # As text they have only the digits that the type holds: 0.1, not 0.10000000149.
        column = column.cast(pyarrow.float32()).cast(pyarrow.string())
        return [None if text is None else plain_value(float(text)) for text in column.to_pylist()]
    if getattr(kind, "unit", "") == "ns":  # Python has microseconds
        if pyarrow.types.is_timestamp(kind):
            plain = pyarrow.timestamp("us", kind.tz)
        else:
            plain = (
                pyarrow.time64("us") if pyarrow.types.is_time64(kind) else pyarrow.duration("us")
            )
        column = column.cast(plain, safe=False)
    return [nested_text(value.as_py()) for value in column]


class _Sheet(NamedTuple):
    """A sheet as it was read; places count from 0, but `hidden_rows` from 1."""

    rows: list[list[Any]]
    merged: Iterable[tuple[int, int, int, int]]  # first row and column, last row and column
    hidden_rows: set[int]
    hidden_columns: set[int]


class _Book(NamedTuple):
    """An open workbook."""

    sizes: dict[str, tuple[int, int]]  # rows and columns of the sheets that are not empty
    shown: set[str]  # the sheets that are not hidden
    read: Callable[[str], _Sheet]


def read_workbook_rows(
    content: bytes,
    path: str,
    is_excel: bool,
    sheet: str | None = None,
    show_hidden: bool = False,
) -> Rows:
    """Reads the rows of a sheet. A formula has the result that was last stored.

    Percentages, currencies, leading zeros and lengths of time are as they are shown, but not in
    .xlsb. Other numbers are without their format, to the 15 digits that Excel shows. Merged cells
    all have the value of the first. Hidden rows and columns are left out.

    Args:
        content: a file of Excel or OpenDocument.
        path: its name in errors.
        is_excel: whether it is .xlsx or .xlsm.
        sheet: the name of the sheet. Without it the first visible one with several rows and
            columns; if there is none, the first visible one.
        show_hidden: whether hidden rows and columns are read too.

    Raises:
        ModuleNotFoundError: if the package that reads such files is not installed.
        ValueError: if it is no such file, has no such sheet or more than MOST_CELLS, if no formula
            of the sheet has a result, or as `check_archive` and `check_in_a_trial`.
    """
    kind, opener = ("a workbook of Excel", _excel) if is_excel else ("a workbook", _other)
    if content.startswith(OLE):
        kind, opener = "a workbook of Excel 97", _excel_97
    is_archive = is_excel or _is_opendocument(content)
    (check_archive if is_archive else check_in_a_trial)(content, path)
    with broken_named(kind, path):
        book = opener(content, path)
        name, assumed = _chosen_sheet(book, sheet, path)
        check_size(math.prod(book.sizes[name]), f"(file '{path}')")
        rows, merged, hidden_rows, hidden_columns = book.read(name)
        for top, first, bottom, last in merged:
            _fill_merged(rows, top, first, bottom, last)
    numbers = range(1, len(rows) + 1)
    if show_hidden:
        return Rows(rows, numbers, path, assumed=assumed)
    if hidden := len(hidden_rows.intersection(numbers)):
        assumed.append(f"{hidden} hidden row{'s are' if hidden > 1 else ' is'} left out.")
    if hidden_columns:
        assumed.append("Hidden columns are left out.")
    kept = [number for number in numbers if number not in hidden_rows]
    rows = [
        [cell for column, cell in enumerate(rows[number - 1]) if column not in hidden_columns]
        for number in kept
    ]
    return Rows(rows, kept, path, assumed=assumed)


def _chosen_sheet(book: _Book, sheet: str | None, path: str) -> tuple[str, list[str]]:
    """The sheet to read and what was assumed."""
    sizes = book.sizes
    if not sizes or sheet not in (None, *sizes):
        expected = f"one of the sheets {list(sizes)}" if sizes else "a sheet with cells"
        raise ValueError(f"expected {expected}, got {sheet!r} (file '{path}')")
    if sheet is not None:
        return sheet, []
    visible = [name for name in sizes if name in book.shown] or list(sizes)
    chosen = next((name for name in visible if min(sizes[name]) > 1), visible[0])
    others = ", ".join(f"'{name}'" for name in visible if name != chosen)
    return chosen, [f"Sheet '{chosen}' was read; there are also {others}."] if others else []


def _fill_merged(rows: list[list[Any]], top: int, first: int, bottom: int, last: int) -> None:
    """Gives merged cells the value of the first; a title or section alone in its rows stays one."""
    is_first = not any(cell not in (None, "") for row in rows for cell in row[:first])
    others = (cell for row in rows[top : bottom + 1] for cell in row[last + 1 :])
    if last > first and is_first and not any(cell not in (None, "") for cell in others):
        last, bottom = first, top
    for row in rows[top : bottom + 1]:
        row[first : last + 1] = [rows[top][first]] * (last + 1 - first)


def _shown(value: Any, number_format: str = "") -> Any:
    """A value as it is shown; a number to the 15 digits that Excel shows."""
    if isinstance(value, float):
        value = float(f"{value:.15g}")
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return (is_number and shown_number(value, number_format)) or plain_value(value)


def _excel(content: bytes, path: str) -> _Book:
    openpyxl = reading_package("openpyxl", path)
    book = openpyxl.load_workbook(io.BytesIO(content), data_only=True)
    sheets = {found.title: found for found in book.worksheets}

    def value_of(cell: Any) -> Any:
        if cell.value is None and cell.data_type == "str":
            return ""  # the result of a formula may be an empty text
        return _shown(cell.value, cell.number_format)

    def read(name: str) -> _Sheet:
        sheet = sheets[name]
        rows = [[value_of(cell) for cell in row] for row in sheet.iter_rows()]
        # A program that computes nothing stores no result at all; with others some are empty.
        if any(None in row for row in rows) and _has_formulas(content):
            formulas = openpyxl.load_workbook(io.BytesIO(content), read_only=True)[name]
            _check_results(formulas, rows, path)
        bounds = (merged.bounds for merged in sheet.merged_cells.ranges)  # from 1
        return _Sheet(
            rows,
            [(top - 1, left - 1, bottom - 1, right - 1) for left, top, right, bottom in bounds],
            {n for n, it in sheet.row_dimensions.items() if it.hidden or it.height == 0},
            {
                column
                for it in sheet.column_dimensions.values()
                if it.hidden or it.width == 0
                for column in range(it.min - 1, min(it.max, sheet.max_column))
            },
        )

    sizes = {
        name: (found.max_row, found.max_column)
        for name, found in sheets.items()
        if found.max_row > 1 or found.max_column > 1 or found["A1"].value is not None
    }
    visible = {name for name, found in sheets.items() if found.sheet_state == "visible"}
    return _Book(sizes, visible, read)


def _has_formulas(content: bytes) -> bool:
    with zipfile.ZipFile(io.BytesIO(content)) as file:
        sheets = [name for name in file.namelist() if name.startswith("xl/worksheets/")]
        return any(_FORMULA.search(file.read(name)) for name in sheets if name.endswith(".xml"))


def _check_results(sheet: Any, rows: list[list[Any]], path: str) -> None:
    """ValueError with the first cell that has a formula, if no formula has a value in the rows."""
    first = None
    sheet.reset_dimensions()
    for cells, values in zip(sheet.iter_rows(), rows, strict=False):
        for cell, value in zip(cells, values, strict=False):
            if cell.data_type == "f":
                if value is not None:
                    return
                first = first or f"'{sheet.title}'!{cell.coordinate}"
    if first is not None:
        raise ValueError(
            f"expected formulas with their last results, got none in {first}; open the "
            f"file in Excel or LibreOffice and save it (file '{path}')"
        )


def _excel_97(content: bytes, path: str) -> _Book:
    xlrd = reading_package("xlrd", path)
    book = xlrd.open_workbook(file_contents=content, formatting_info=True, logfile=io.StringIO())
    sheets = {found.name: found for found in book.sheets()}

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
        return _shown(cell.value, number_format) if is_number else cell.value

    def read(name: str) -> _Sheet:
        sheet = sheets[name]
        columns = [place for place, it in sheet.colinfo_map.items() if it.hidden or it.width == 0]
        bounds = sheet.merged_cells  # their ends are behind them
        return _Sheet(
            [[value_of(cell) for cell in row] for row in sheet.get_rows()],
            [(top, left, bottom - 1, right - 1) for top, bottom, left, right in bounds],
            {row + 1 for row, it in sheet.rowinfo_map.items() if it.hidden or it.height == 0},
            {place for place in columns if place < sheet.ncols},
        )

    sizes = {name: (it.nrows, it.ncols) for name, it in sheets.items() if it.nrows}
    return _Book(sizes, {name for name, it in sheets.items() if not it.visibility}, read)


def _other(content: bytes, path: str) -> _Book:
    """OpenDocument, or Excel's binary format (.xlsb), whose hidden parts are not known."""
    calamine = reading_package("python_calamine", path)
    etree = reading_package("lxml.etree", path) if _is_opendocument(content) else None
    book = calamine.load_workbook(io.BytesIO(content))

    def read(name: str) -> _Sheet:
        sheet = book.get_sheet_by_name(name)
        rows = [list(map(_shown, row)) for row in sheet.to_python(skip_empty_area=False)]
        if etree:
            return _Sheet(rows, *_show_as_opendocument(etree, content, name, rows))
        merged = [(*first, *last) for first, last in sheet.merged_cell_ranges or ()]
        return _Sheet(rows, merged, set(), set())

    found = {name: book.get_sheet_by_name(name) for name in book.sheet_names}
    sizes = {name: (it.total_height, it.total_width) for name, it in found.items()}
    visible = calamine.SheetVisibleEnum.Visible
    return _Book(
        {name: size for name, size in sizes.items() if size[0]},
        {about.name for about in book.sheets_metadata if about.visible == visible},
        read,
    )


def _is_opendocument(content: bytes) -> bool:
    return content.startswith(b"PK") and b"opendocument" in content[:200]


_OPENDOCUMENT = "{{urn:oasis:names:tc:opendocument:xmlns:{}:1.0}}{}".format


def _show_as_opendocument(
    etree: Any, content: bytes, name: str, rows: list[list[Any]]
) -> tuple[list[tuple[int, int, int, int]], set[int], set[int]]:
    """Puts the texts of cells with a format into the rows; the rest of the `_Sheet`."""
    parser = etree.XMLParser(resolve_entities=False, huge_tree=True)
    with zipfile.ZipFile(io.BytesIO(content)) as file:
        document = etree.fromstring(file.read("content.xml"), parser)
    named = _OPENDOCUMENT("table", "name")
    table = next(
        it for it in document.iter(_OPENDOCUMENT("table", "table")) if it.get(named) == name
    )
    repeated_rows = _OPENDOCUMENT("table", "number-rows-repeated")
    repeated = _OPENDOCUMENT("table", "number-columns-repeated")
    places = _places(table.iter(_OPENDOCUMENT("table", "table-column")), repeated, len(rows[0]))
    hidden_columns = {place for it, span in places if _is_collapsed(it) for place in span}
    merged: list[tuple[int, int, int, int]] = []
    hidden_rows: set[int] = set()
    all_rows = table.iter(_OPENDOCUMENT("table", "table-row"))
    for row, numbers in _places(all_rows, repeated_rows, len(rows)):
        if _is_collapsed(row):
            hidden_rows.update(number + 1 for number in numbers)
        for cell, columns in _places(row, repeated, len(rows[0])):
            height, width = (
                int(cell.get(_OPENDOCUMENT("table", f"number-{of}-spanned"), 1))
                for of in ("rows", "columns")
            )
            if numbers and columns and max(height, width) > 1:
                top, first = numbers[0], columns[0]
                bottom, last = top + height - 1, first + width - 1
                merged.append((top, first, min(bottom, len(rows) - 1), min(last, len(rows[0]) - 1)))
            kind = cell.get(_OPENDOCUMENT("office", "value-type"))
            shown = "".join(cell.itertext(_OPENDOCUMENT("text", "p"))) if kind else ""
            if kind in ("percentage", "currency") or _CODE.fullmatch(shown):
                for number, column in itertools.product(numbers, columns):
                    rows[number][column] = shown or rows[number][column]
    return merged, hidden_rows, hidden_columns


def _places(elements: Iterable[Any], repeated: str, most: int) -> Iterator[tuple[Any, range]]:
    """The elements with the places, from 0, that each has where it is repeated."""
    place = 0
    for element in elements:
        end = min(place + int(element.get(repeated, 1)), most)
        yield element, range(place, end)
        place = end


def _is_collapsed(element: Any) -> bool:
    return element.get(_OPENDOCUMENT("table", "visibility")) in ("collapse", "filter")
