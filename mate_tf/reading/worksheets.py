"""Workbooks and worksheets that openpyxl has open, read as those of files."""

from typing import Any

from mate_tf.reading.sheets import Book, Sheet, shown_value


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
