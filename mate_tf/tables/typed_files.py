"""Tables in files whose cells have types: workbooks by openpyxl, python-calamine and xlrd, Parquet.

html_tables.py shares the helpers at the top.
"""

import contextlib
import datetime
import io
import itertools
import json
import re
import warnings
import zipfile
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from mate_tf.private_apis import import_extra
from mate_tf.tables.cell_texts import nested_text, plain_value, shown_number
from mate_tf.tables.layout import Rows, check_size
from mate_tf.tables.sheet_sizes import check_archive, check_bytes, check_in_a_trial

_FORMULA = re.compile(rb"<(?:\w+:)?f[ />]")


def reading_package(name: str, path: str | Path) -> Any:
    """Imports a module of the extra "formats"; ModuleNotFoundError if it is not installed."""
    return import_extra(name, "formats", f"to read '{path}'")


@contextlib.contextmanager
def broken_named(kind: str, path: str | Path) -> Iterator[None]:
    """Turns whatever a package raises while it reads into a ValueError that names the file."""
    try:
        with warnings.catch_warnings(action="ignore"):  # packages warn of parts that they skip
            yield
    except Exception as error:  # errors of archives, XML and types have no common class
        reason = str(error).strip().split("\n")[0] or type(error).__name__
        raise ValueError(f"expected {kind}, got: {reason} (file '{path}')") from None


def read_parquet_rows(content: bytes, path: str) -> Rows:
    """Reads the rows of a table, the header first; null and NaN are None.

    Lists are joined by commas, structures are JSON. A column of bytes that are no text is left out.

    Raises:
        ModuleNotFoundError: without pyarrow.
        ValueError: if it is no Parquet file, or has more than MOST_CELLS or 256 MB.
    """
    parquet = reading_package("pyarrow.parquet", path)
    with broken_named("a Parquet file", path):
        opened = parquet.ParquetFile(io.BytesIO(content))
        about, schema = opened.metadata, opened.schema_arrow
        num_bytes = sum(about.row_group(i).total_byte_size for i in range(about.num_row_groups))
    check_size(about.num_rows * len(schema), f"(file '{path}')")
    check_bytes(num_bytes, path)
    names: list[str] = []
    columns: list[list[Any]] = []
    assumed = []
    with broken_named("a Parquet file", path):
        # A long text may stand in a million rows; as a dictionary it stands in memory once.
        texts = [field.name for field in schema if str(field.type).endswith(("string", "binary"))]
        opened = parquet.ParquetFile(io.BytesIO(content), read_dictionary=texts)
        pandas = json.loads((schema.metadata or {}).get(b"pandas", b"{}"))
        labels = [name for name in pandas.get("index_columns", ()) if isinstance(name, str)]
        read = opened.read()
        for name in sorted(read.column_names, key=lambda name: name not in labels):
            try:
                columns.append(arrow_values(read.column(name)))
            except UnicodeDecodeError:
                assumed.append(f"Column '{name}' holds bytes that are no text and is left out.")
            else:
                names.append("" if name in labels and name.startswith("__index_level_") else name)
    cells = (cell for column in columns for cell in column)
    check_bytes(sum(len(cell) for cell in cells if isinstance(cell, str)), path)
    rows = [names, *map(list, zip(*columns, strict=True))]
    return Rows(rows, range(len(rows)), path, header_rows=1, assumed=assumed)


def arrow_values(column: Any) -> list[Any]:
    """The values of a column of Arrow as a table shows them; UnicodeDecodeError for plain bytes."""
    import pyarrow

    kind = column.type
    if pyarrow.types.is_dictionary(kind):
        values: list[Any] = []
        for chunk in getattr(column, "chunks", [column]):
            texts = arrow_values(chunk.dictionary)
            values += [None if i is None else texts[i] for i in chunk.indices.to_pylist()]
        return values
    if kind in (pyarrow.float16(), pyarrow.float32()):
        # As text they have only the digits that the type holds: 0.1, not 0.10000000149.
        column = column.cast(pyarrow.float32()).cast(pyarrow.string())
        return [None if text is None else plain_value(float(text)) for text in column.to_pylist()]
    if pyarrow.types.is_timestamp(kind) and kind.unit == "ns":
        column = column.cast(pyarrow.timestamp("us", kind.tz), safe=False)
    elif pyarrow.types.is_time64(kind) and kind.unit == "ns":
        column = column.cast(pyarrow.time64("us"), safe=False)
    elif pyarrow.types.is_duration(kind) and kind.unit == "ns":
        column = column.cast(pyarrow.duration("us"), safe=False)
    return [nested_text(value) for value in column.to_pylist()]


def read_other_sheet_rows(
    content: bytes, path: str, sheet: str | None = None, show_hidden: bool = False
) -> Rows:
    """Reads the rows of a sheet of OpenDocument or of Excel's binary format (.xlsb).

    Of OpenDocument, percentages, currencies and leading zeros are as they are shown, and hidden
    rows and columns are left out. Of the others, numbers are without their format.

    Raises:
        ModuleNotFoundError: without python-calamine, or lxml for OpenDocument.
        ValueError: if it is no such file, has no such sheet or more than MOST_CELLS.
    """
    calamine = reading_package("python_calamine", path)
    is_open = content.startswith(b"PK") and b"opendocument" in content[:200]
    etree = reading_package("lxml.etree", path) if is_open else None
    if is_open:
        check_archive(content, path)
    else:
        check_in_a_trial(content, path)
    with broken_named("a workbook", path):
        book = calamine.load_workbook(io.BytesIO(content))
        visible = calamine.SheetVisibleEnum.Visible
        sizes = {
            found.name: (found.total_height, found.total_width)
            for found in map(book.get_sheet_by_name, book.sheet_names)
            if found.total_height
        }
        shown = {found.name for found in book.sheets_metadata if found.visible == visible}
    name, assumed = chosen_sheet(sizes, shown, sheet, path)
    with broken_named("a workbook", path):
        found = book.get_sheet_by_name(name)
        check_size(found.total_height * found.total_width, f"(file '{path}')")
        rows = found.to_python(skip_empty_area=False)
        hidden = _show_as_opendocument(etree, content, name, rows) if etree else (set(), set())
        for (first_row, first), (last_row, last) in found.merged_cell_ranges or ():
            fill_merged(rows, first_row, first, last_row, last)
    rows = [[plain_value(excel_number(value)) for value in row] for row in rows]
    all_rows = Rows(rows, range(1, len(rows) + 1), path, assumed=assumed)
    return all_rows if show_hidden else without_hidden(all_rows, *hidden)


_OPENDOCUMENT = "{{urn:oasis:names:tc:opendocument:xmlns:{}:1.0}}{}".format
_CODE = re.compile(r"0\d+")


def _show_as_opendocument(
    etree: Any, content: bytes, name: str, rows: list[list[Any]]
) -> tuple[set[int], set[int]]:
    """Puts the texts of cells with a format into the rows; hidden rows by number, and columns."""
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
    hidden_rows: set[int] = set()
    all_rows = table.iter(_OPENDOCUMENT("table", "table-row"))
    for row, numbers in _places(all_rows, repeated_rows, len(rows)):
        if _is_collapsed(row):
            hidden_rows.update(number + 1 for number in numbers)
        for cell, columns in _places(row, repeated, len(rows[0])):
            kind = cell.get(_OPENDOCUMENT("office", "value-type"))
            shown = "".join(cell.itertext(_OPENDOCUMENT("text", "p"))) if kind else ""
            if kind in ("percentage", "currency") or _CODE.fullmatch(shown):
                for number, column in itertools.product(numbers, columns):
                    rows[number][column] = shown or rows[number][column]
    return hidden_rows, hidden_columns


def _places(elements: Iterable[Any], repeated: str, most: int) -> Iterator[tuple[Any, range]]:
    """The elements with the places, from 0, that each has where it is repeated."""
    place = 0
    for element in elements:
        end = min(place + int(element.get(repeated, 1)), most)
        yield element, range(place, end)
        place = end


def _is_collapsed(element: Any) -> bool:
    return element.get(_OPENDOCUMENT("table", "visibility")) in ("collapse", "filter")


def chosen_sheet(
    sizes: Mapping[str, tuple[int, int]], shown: Collection[str], sheet: str | None, path: str
) -> tuple[str, list[str]]:
    """The sheet to read and what was assumed.

    It is the first visible one with several rows and columns; otherwise the first visible one.

    Args:
        sizes: the number of rows and columns of the sheets that are not empty.
        shown: those that are not hidden.
        sheet: the name that the user gives.
        path: the name of the file in errors.
    """
    if not sizes or sheet not in (None, *sizes):
        expected = f"one of the sheets {list(sizes)}" if sizes else "a sheet with cells"
        raise ValueError(f"expected {expected}, got {sheet!r} (file '{path}')")
    if sheet is not None:
        return sheet, []
    visible = [name for name in sizes if name in shown] or list(sizes)
    chosen = next((name for name in visible if min(sizes[name]) > 1), visible[0])
    others = ", ".join(f"'{name}'" for name in visible if name != chosen)
    return chosen, [f"Sheet '{chosen}' was read; there are also {others}."] if others else []


def read_excel_rows(
    content: bytes, path: str, sheet: str | None = None, show_hidden: bool = False
) -> Rows:
    """Reads the rows of a sheet. A formula has the result that was last stored.

    Percentages, currencies, leading zeros and lengths of time are as Excel shows them, other
    numbers without their format, to the 15 digits that Excel shows. Merged cells all have the value
    of the first. Hidden rows and columns are left out.

    Args:
        content: an .xlsx or .xlsm file.
        path: its name in errors.
        sheet: the name of the sheet; without it the first one that is not hidden.
        show_hidden: whether hidden rows and columns are read too.

    Raises:
        ModuleNotFoundError: without openpyxl.
        ValueError: if it is no such file, has no such sheet or more than MOST_CELLS, or if no
            formula of the sheet has a result.
    """
    openpyxl = reading_package("openpyxl", path)
    check_archive(content, path)
    with broken_named("a workbook of Excel", path):
        book = openpyxl.load_workbook(io.BytesIO(content), data_only=True)
        sheets = {found.title: found for found in book.worksheets}
    sizes = {
        name: (found.max_row, found.max_column)
        for name, found in sheets.items()
        if found.max_row > 1 or found.max_column > 1 or found["A1"].value is not None
    }
    visible = {name for name, found in sheets.items() if found.sheet_state == "visible"}
    name, assumed = chosen_sheet(sizes, visible, sheet, path)
    chosen = sheets[name]
    check_size(chosen.max_row * chosen.max_column, f"(file '{path}')")
    with broken_named("a workbook of Excel", path):
        rows = [[_excel_value(cell) for cell in row] for row in chosen.iter_rows()]
        formula = None
        # A program that computes nothing stores no result at all; with others some are empty.
        if any(None in row for row in rows) and _has_formulas(content):
            formula = _without_results(
                openpyxl.load_workbook(io.BytesIO(content), read_only=True)[name], rows
            )
    if formula is not None:
        raise ValueError(
            f"expected formulas with their last results, got none in {formula}; open the "
            f"file in Excel or LibreOffice and save it (file '{path}')"
        )
    for merged in chosen.merged_cells.ranges:
        first, top, last, bottom = merged.bounds  # from 1
        fill_merged(rows, top - 1, first - 1, bottom - 1, last - 1)
    numbers = range(1, len(rows) + 1)
    found = Rows(rows, numbers, path, assumed=assumed)
    if show_hidden:
        return found
    hidden_rows = {
        number for number, it in chosen.row_dimensions.items() if it.hidden or it.height == 0
    }
    hidden_columns = {
        column
        for it in chosen.column_dimensions.values()
        if it.hidden or it.width == 0
        for column in range(it.min - 1, min(it.max, chosen.max_column))
    }
    return without_hidden(found, hidden_rows, hidden_columns)


def without_hidden(found: Rows, hidden_rows: set[int], hidden_columns: set[int]) -> Rows:
    """The rows without hidden ones, by number, and without hidden columns, counted from 0."""
    if hidden := len(hidden_rows.intersection(found.numbers)):
        found.assumed.append(f"{hidden} hidden row{'s are' if hidden > 1 else ' is'} left out.")
    if hidden_columns:
        found.assumed.append("Hidden columns are left out.")
    kept = [number for number in found.numbers if number not in hidden_rows]
    rows = [
        [cell for column, cell in enumerate(found.rows[number - 1]) if column not in hidden_columns]
        for number in kept
    ]
    return Rows(rows, kept, found.name, assumed=found.assumed)


def fill_merged(rows: list[list[Any]], top: int, first: int, bottom: int, last: int) -> None:
    """Gives merged cells the value of the first; a title or section alone in its rows stays one."""
    is_first = not any(cell not in (None, "") for row in rows for cell in row[:first])
    others = (cell for row in rows[top : bottom + 1] for cell in row[last + 1 :])
    if last > first and is_first and not any(cell not in (None, "") for cell in others):
        last, bottom = first, top
    for row in rows[top : bottom + 1]:
        row[first : last + 1] = [rows[top][first]] * (last + 1 - first)


def excel_number(value: Any) -> Any:
    """A number to the 15 digits that Excel shows."""
    return float(f"{value:.15g}") if isinstance(value, float) else value


def _excel_value(cell: Any) -> Any:
    value = cell.value
    if value is None and cell.data_type == "str":  # the result of a formula may be an empty text
        return ""
    value = excel_number(value)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return shown_number(value, cell.number_format) or plain_value(value)
    return plain_value(value)


def _has_formulas(content: bytes) -> bool:
    with zipfile.ZipFile(io.BytesIO(content)) as file:
        sheets = [name for name in file.namelist() if name.startswith("xl/worksheets/")]
        return any(_FORMULA.search(file.read(name)) for name in sheets if name.endswith(".xml"))


def _without_results(sheet: Any, rows: list[list[Any]]) -> str | None:
    """The first cell with a formula, if no formula of the sheet has a value in the rows."""
    first = None
    sheet.reset_dimensions()
    for cells, values in zip(sheet.iter_rows(), rows, strict=False):
        for cell, value in zip(cells, values, strict=False):
            if cell.data_type == "f":
                if value is not None:
                    return None
                first = first or f"'{sheet.title}'!{cell.coordinate}"
    return first


def read_xls_rows(
    content: bytes, path: str, sheet: str | None = None, show_hidden: bool = False
) -> Rows:
    """Reads the rows of a sheet of Excel 97, as `read_excel_rows` those of later ones.

    Raises:
        ModuleNotFoundError: without xlrd.
        ValueError: if it is no such file, has no such sheet or more than MOST_CELLS, or as
            `check_in_a_trial`.
    """
    xlrd = reading_package("xlrd", path)
    check_in_a_trial(content, path)
    with broken_named("a workbook of Excel 97", path):
        book = xlrd.open_workbook(
            file_contents=content, formatting_info=True, logfile=io.StringIO()
        )
        sheets = {found.name: found for found in book.sheets()}
    sizes = {name: (it.nrows, it.ncols) for name, it in sheets.items() if it.nrows}
    shown = {name for name, it in sheets.items() if not it.visibility}
    name, assumed = chosen_sheet(sizes, shown, sheet, path)
    found = sheets[name]
    check_size(found.nrows * found.ncols, f"(file '{path}')")
    with broken_named("a workbook of Excel 97", path):
        rows = [[_xls_value(xlrd, book, cell) for cell in row] for row in found.get_rows()]
        for top, below, first, behind in found.merged_cells:
            fill_merged(rows, top, first, below - 1, behind - 1)
    all_rows = Rows(rows, range(1, len(rows) + 1), path, assumed=assumed)
    if show_hidden:
        return all_rows
    hidden_rows = {row + 1 for row, it in found.rowinfo_map.items() if it.hidden or it.height == 0}
    hidden_columns = {
        column
        for column, it in found.colinfo_map.items()
        if (it.hidden or it.width == 0) and column < found.ncols
    }
    return without_hidden(all_rows, hidden_rows, hidden_columns)


def _xls_value(xlrd: Any, book: Any, cell: Any) -> Any:
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
    if cell.ctype != xlrd.XL_CELL_NUMBER:
        return cell.value
    value = excel_number(cell.value)
    return shown_number(value, number_format) or plain_value(value)
