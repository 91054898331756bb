"""Tables in sheets of Excel, by openpyxl."""

from pathlib import Path
from typing import Any

from mate_tf.tables.cells import MOST_CELLS, broken_named, check_size, plain_value, reading_package
from mate_tf.tables.text_files import open_bytes


def read_excel_rows(path: str | Path, sheet: str | None = None) -> list[list[Any]]:
    """Reads the rows of a sheet, the header first: values, of formulas those last computed.

    Numbers come without their format, 50 % as 0.5, to the 15 digits that Excel shows. Rows and
    columns that are wholly empty are passed over; of merged cells the first has the value.

    Args:
        path: an .xlsx or .xlsm file.
        sheet: the name of the sheet; the first one that is not hidden unless it is given.

    Raises:
        FileNotFoundError: if there is no such file.
        ModuleNotFoundError: without openpyxl.
        ValueError: if it is not such a file, has no such sheet or more than MOST_CELLS, or if no
            formula of the sheet has been computed.
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
                rows.append([_value(cell) for cell in row])
                num_cells += len(row)
                if num_cells > MOST_CELLS:
                    break
        # What a program writes that computes nothing; of others some results are empty.
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


def _value(cell: Any) -> Any:
    value = cell.value
    if value is None and cell.data_type == "str":  # a formula's result may be no text at all
        return ""
    return plain_value(float(f"{value:.15g}") if isinstance(value, float) else value)


def _without_results(sheet: Any, rows: list[list[Any]]) -> str | None:
    """The first cell with a formula of a sheet where none of them has a value in the rows."""
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
