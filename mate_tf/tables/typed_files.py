"""Tables in files whose cells have types: Excel by openpyxl, Parquet by pyarrow.

html_tables.py shares the helpers at the top.
"""

import contextlib
import datetime
import math
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mate_tf.private_apis import import_extra
from mate_tf.tables.text_files import open_bytes

# A small file may hold a very large table: files are compressed, and cells may span others.
MOST_CELLS = 10_000_000


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


def _plain_value(value: Any) -> Any:
    """A typed value as a table shows it: dates in ISO form, whole floats as integers, NaN as None.

    A date with the time 00:00:00 is a date. Floats from 2**53 on, which may be inexact, stay.
    """
    if isinstance(value, float):
        if math.isnan(value):
            return None
        return int(value) if value.is_integer() and abs(value) < 2**53 else value
    if isinstance(value, datetime.datetime):
        is_date = value.time() == datetime.time() and value.tzinfo is None
        return value.date().isoformat() if is_date else value.isoformat(" ")
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    return value


def read_parquet_rows(path: str | Path) -> list[list[Any]]:
    """Reads the rows of a table, the header first; null and NaN are None.

    Raises:
        FileNotFoundError: if there is no such file.
        ModuleNotFoundError: without pyarrow.
        ValueError: if it is no Parquet file or has more than MOST_CELLS.
    """
    with open_bytes(path) as file:
        parquet = reading_package("pyarrow.parquet", path)
        with broken_named("a Parquet file", path):
            opened = parquet.ParquetFile(file)
            num_cells = opened.metadata.num_rows * len(opened.schema_arrow)
        check_size(num_cells, path)
        with broken_named("a Parquet file", path):
            table = opened.read()
            columns = [_parquet_values(column) for column in table.columns]
    return [table.column_names, *map(list, zip(*columns, strict=True))]


def _parquet_values(column: Any) -> list[Any]:
    import pyarrow

    if column.type in (pyarrow.float16(), pyarrow.float32()):
        # As text they have only the digits that the type holds: 0.1, not 0.10000000149.
        column = column.cast(pyarrow.float32()).cast(pyarrow.string())
        return [None if text is None else _plain_value(float(text)) for text in column.to_pylist()]
    return [_plain_value(value) for value in column.to_pylist()]


def read_excel_rows(path: str | Path, sheet: str | None = None) -> list[list[Any]]:
    """Reads the rows of a sheet, the header first. A formula has the result that was last stored.

    Numbers come without their format (50 % as 0.5), to the 15 digits that Excel shows. Empty rows
    and columns are left out. Only the first of merged cells has the value.

    Args:
        path: an .xlsx or .xlsm file.
        sheet: the name of the sheet; without it the first one that is not hidden.

    Raises:
        FileNotFoundError: if there is no such file.
        ModuleNotFoundError: without openpyxl.
        ValueError: if it is no such file, has no such sheet or more than MOST_CELLS, or if no
            formula of the sheet has a result.
    """
    with open_bytes(path) as file:
        openpyxl = reading_package("openpyxl", path)
        with broken_named("a workbook of Excel", path):
            book = openpyxl.load_workbook(file, read_only=True, data_only=True)
            sheets = {found.title: found for found in book.worksheets}
        if not sheets or sheet not in (None, *sheets):
            expected = f"one of the sheets {list(sheets)}" if sheets else "a sheet with cells"
            raise ValueError(f"expected {expected}, got {sheet!r} (file '{path}')")
        shown = [found for found in sheets.values() if found.sheet_state == "visible"]
        chosen = sheets[sheet] if sheet is not None else [*shown, *sheets.values()][0]
        rows, num_cells = [], 0
        with broken_named("a workbook of Excel", path):
            chosen.reset_dimensions()  # some programs write wrong ones
            for row in chosen.iter_rows():
                rows.append([_excel_value(cell) for cell in row])
                num_cells += len(row)
                if num_cells > MOST_CELLS:
                    break
        # A program that computes nothing stores no result at all; with others some are empty.
        if any(None in row for row in rows):
            with broken_named("a workbook of Excel", path):
                book = openpyxl.load_workbook(file, read_only=True)
                formula = _without_results(book[chosen.title], rows)
            if formula is not None:
                raise ValueError(
                    f"expected formulas with their last results, got none in {formula}; open the "
                    f"file in Excel or LibreOffice and save it (file '{path}')"
                )
    rows = [row for row in rows if not all(map(_is_empty, row))]
    width = max(map(len, rows), default=0)
    check_size(max(num_cells, width * len(rows)), path)
    rows = [row + [None] * (width - len(row)) for row in rows]
    filled = [c for c in range(width) if not all(_is_empty(row[c]) for row in rows)]
    return [[row[column] for column in filled] for row in rows]


def _excel_value(cell: Any) -> Any:
    value = cell.value
    if value is None and cell.data_type == "str":  # the result of a formula may be an empty text
        return ""
    return _plain_value(float(f"{value:.15g}") if isinstance(value, float) else value)


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


def _is_empty(value: Any) -> bool:
    return value is None or value == ""
