"""Tables in files whose cells have types: workbooks by openpyxl and python-calamine, Parquet.

html_tables.py shares the helpers at the top.
"""

import contextlib
import io
import json
import math
import re
import warnings
import zipfile
from collections.abc import Iterator, Mapping
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path
from typing import Any

from mate_tf.private_apis import import_extra
from mate_tf.tables.layout import Rows
from mate_tf.tables.table import plain_value

# A small file may hold a very large table: files are compressed, and cells may span others.
MOST_CELLS = 10_000_000
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


def check_size(num_cells: int, path: str | Path) -> None:
    """Raises ValueError if a table has more than MOST_CELLS."""
    if num_cells > MOST_CELLS:
        raise ValueError(f"expected at most {MOST_CELLS:,} cells, got more (file '{path}')")


def read_parquet_rows(content: bytes, path: str) -> Rows:
    """Reads the rows of a table, the header first; null and NaN are None.

    Lists are joined by commas, structures are JSON. A column of bytes that are no text is left out.

    Raises:
        ModuleNotFoundError: without pyarrow.
        ValueError: if it is no Parquet file or has more than MOST_CELLS.
    """
    parquet = reading_package("pyarrow.parquet", path)
    with broken_named("a Parquet file", path):
        opened = parquet.ParquetFile(io.BytesIO(content))
        num_cells = opened.metadata.num_rows * len(opened.schema_arrow)
    check_size(num_cells, path)
    names: list[str] = []
    columns: list[list[Any]] = []
    assumed = []
    with broken_named("a Parquet file", path):
        about = json.loads((opened.schema_arrow.metadata or {}).get(b"pandas", b"{}"))
        labels = [name for name in about.get("index_columns", ()) if isinstance(name, str)]
        read = opened.read()
        for name in sorted(read.column_names, key=lambda name: name not in labels):
            try:
                columns.append(arrow_values(read.column(name)))
            except UnicodeDecodeError:
                assumed.append(f"Column '{name}' holds bytes that are no text and is left out.")
            else:
                names.append("" if name in labels and name.startswith("__index_level_") else name)
    rows = [names, *map(list, zip(*columns, strict=True))]
    return Rows(rows, range(len(rows)), path, header_rows=1, assumed=assumed)


def arrow_values(column: Any) -> list[Any]:
    """The values of a column of Arrow as a table shows them; UnicodeDecodeError for plain bytes."""
    import pyarrow

    kind = column.type
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


def nested_text(value: Any) -> Any:
    """A value; a list of single ones joined by commas, other containers as JSON, bytes as text."""
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, list | tuple):
        if not any(isinstance(item, list | tuple | dict) for item in value):
            return ", ".join("" if item is None else str(nested_text(item)) for item in value)
        return json.dumps(value, ensure_ascii=False, default=str)
    if isinstance(value, dict):
        return json.dumps(value, ensure_ascii=False, default=str)
    return plain_value(value)


def read_other_sheet_rows(content: bytes, path: str, sheet: str | None = None) -> Rows:
    """Reads the rows of a sheet of Excel 97, of its binary format or of OpenDocument.

    Raises:
        ModuleNotFoundError: without python-calamine.
        ValueError: if it is no such file, has no such sheet or more than MOST_CELLS.
    """
    calamine = reading_package("python_calamine", path)
    with broken_named("a workbook", path):
        book = calamine.load_workbook(io.BytesIO(content))
        visible = calamine.SheetVisibleEnum.Visible
        states = {
            found.name: found.visible == visible
            for found in book.sheets_metadata
            if book.get_sheet_by_name(found.name).total_height
        }
        name, assumed = _chosen_sheet(states, sheet, path)
        found = book.get_sheet_by_name(name)
        check_size(found.total_height * found.total_width, path)
        rows = found.to_python(skip_empty_area=False)
        for (first_row, first), (last_row, last) in found.merged_cell_ranges or ():
            _fill(rows, first_row, first, last_row, last)
    rows = [[plain_value(_excel_number(value)) for value in row] for row in rows]
    return Rows(rows, range(1, len(rows) + 1), path, assumed=assumed)


def _chosen_sheet(
    states: Mapping[str, bool], sheet: str | None, path: str
) -> tuple[str, list[str]]:
    """The sheet to read and what was assumed; `states` says which are visible."""
    if not states or sheet not in (None, *states):
        expected = f"one of the sheets {list(states)}" if states else "a sheet with cells"
        raise ValueError(f"expected {expected}, got {sheet!r} (file '{path}')")
    if sheet is not None:
        return sheet, []
    shown = [name for name, is_visible in states.items() if is_visible] or list(states)
    others = ", ".join(f"'{name}'" for name in shown[1:])
    said = f"Sheet '{shown[0]}' was read; there are also {others}."
    return shown[0], [said] if others else []


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
    with broken_named("a workbook of Excel", path):
        book = openpyxl.load_workbook(io.BytesIO(content), data_only=True)
        sheets = {found.title: found for found in book.worksheets}
    states = {
        name: found.sheet_state == "visible"
        for name, found in sheets.items()
        if found.max_row > 1 or found.max_column > 1 or found["A1"].value is not None
    }
    name, assumed = _chosen_sheet(states, sheet, path)
    chosen = sheets[name]
    check_size(chosen.max_row * chosen.max_column, path)
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
        _fill(rows, top - 1, first - 1, bottom - 1, last - 1)
    numbers = range(1, len(rows) + 1)
    if show_hidden:
        return Rows(rows, numbers, path, assumed=assumed)
    hidden_rows = {number for number, it in chosen.row_dimensions.items() if it.hidden}
    hidden_columns = {
        column
        for it in chosen.column_dimensions.values()
        if it.hidden
        for column in range(it.min - 1, it.max)
    }
    if hidden := len(hidden_rows.intersection(numbers)):
        assumed.append(f"{hidden} hidden row{'s are' if hidden > 1 else ' is'} left out.")
    if hidden_columns:
        assumed.append("Hidden columns are left out.")
    rows = [[cell for c, cell in enumerate(row) if c not in hidden_columns] for row in rows]
    kept = [number for number in numbers if number not in hidden_rows]
    return Rows([rows[number - 1] for number in kept], kept, path, assumed=assumed)


def _fill(rows: list[list[Any]], top: int, first: int, bottom: int, last: int) -> None:
    """Gives merged cells the value of the first; a title or section alone in its rows stays one."""
    is_first = not any(cell not in (None, "") for row in rows for cell in row[:first])
    others = (cell for row in rows[top : bottom + 1] for cell in row[last + 1 :])
    if last > first and is_first and not any(cell not in (None, "") for cell in others):
        last, bottom = first, top
    for row in rows[top : bottom + 1]:
        row[first : last + 1] = [rows[top][first]] * (last + 1 - first)


def _excel_number(value: Any) -> Any:
    return float(f"{value:.15g}") if isinstance(value, float) else value


def _excel_value(cell: Any) -> Any:
    value = cell.value
    if value is None and cell.data_type == "str":  # the result of a formula may be an empty text
        return ""
    value = _excel_number(value)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return shown_number(value, cell.number_format) or plain_value(value)
    return plain_value(value)


_LITERAL = re.compile(r'"([^"]*)"|\\(.)|\[\$([^\]-]*)(?:-[^\]]*)?\]|\[[^\]]*\]|_.|\*.')
_CONDITION = re.compile(r"\[[<>=]")
_PLACES = re.compile(r"[#0?][#0?,]*(?:\.[#0?]*)?,*|\.[#0?]+")


def shown_number(value: float, number_format: str) -> str:
    """A number as Excel shows it in a format with more than digits; "" for plain formats.

    Args:
        value: the number.
        number_format: such as "0.0%", "$#,##0.00;($#,##0.00)" or "00000".
    """
    if number_format in ("General", "@", "") or not math.isfinite(value):
        return ""
    sections = number_format.split(";")
    is_own = value < 0 and len(sections) > 1 and bool(sections[1].strip())
    section = sections[1 if is_own else 2 if value == 0 and len(sections) > 2 else 0]
    if _CONDITION.search(number_format) or (value == 0 and not re.search("[0#]", section)):
        return ""
    # Literal texts become characters of their own, so that their digits are no places.
    literals: list[str] = []

    def kept(found: re.Match[str]) -> str:
        literals.append(next(filter(None, found.groups()), ""))
        return chr(0xE000 + len(literals) - 1)

    plain = _LITERAL.sub(kept, section)
    places = _PLACES.search(plain)
    if not places or re.search(r"[eE][+-]|/", plain):
        return ""
    percent = plain.count("%")

    def text(part: str) -> str:
        return "".join(literals[ord(c) - 0xE000] if c >= "\ue000" else c for c in part)

    if len(_PLACES.findall(plain)) > 1:  # 000-00-0000
        return text(_masked(value, plain)).strip() if float(value).is_integer() else ""
    before, after = text(plain[: places.start()]).lstrip(), text(plain[places.end() :]).rstrip()
    whole, _, decimals = places[0].rstrip(",").partition(".")
    scale = len(places[0]) - len(places[0].rstrip(","))
    least = whole.count("0")
    if not (percent or before or after or scale or least > 1):
        return ""
    number = Decimal(repr(value)).scaleb(2 * percent - 3 * scale)
    if is_own:
        number = abs(number)
    digits = number.quantize(Decimal(1).scaleb(-len(decimals)), ROUND_HALF_UP)
    shown = f"{abs(digits):,f}" if "," in whole else f"{abs(digits):f}"
    for _ in range(decimals.count("#") + decimals.count("?")):
        shown = shown.removesuffix("0") if "." in shown else shown
    shown = shown.rstrip(".")
    head, point, tail = shown.partition(".")
    sign = "-" if digits < 0 else ""
    space = " " if after[:1].isalpha() and after not in ("K", "M", "B") else ""
    return f"{sign}{before}{head.zfill(least)}{point}{tail}{space}{after}"


def _masked(value: float, plain: str) -> str:
    """A whole number whose digits fill the places of a format from the right."""
    digits = list(str(abs(int(value))))
    first = _PLACES.search(plain)
    filled = []
    for place, character in reversed(list(enumerate(plain))):
        if character in "#0?":
            character = digits.pop() if digits else "0" if character == "0" else ""
            if first and place == first.start():
                character = "".join(digits) + character
        filled.append(character)
    return ("-" if value < 0 else "") + "".join(reversed(filled))


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
