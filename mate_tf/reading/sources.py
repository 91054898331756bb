"""The one way to a Table: `read_table` takes files, text and Python's data."""

import os
from typing import Any

from mate_tf.reading.files import DEFAULTS, ReadOptions, read_content, read_file
from mate_tf.reading.layout import lay_out
from mate_tf.reading.objects import converted, file_content, plain, with_attributes
from mate_tf.reading.parquet import bytes_left_out
from mate_tf.reading.structures import value_rows
from mate_tf.reading.workbooks import has_worksheets, open_worksheets, read_sheet_rows
from mate_tf.tables.cell_texts import column_texts, dates_of
from mate_tf.tables.notations import YEARS
from mate_tf.tables.table import Table, is_frame

_ACCEPTED = (
    "a Table, a path, bytes or an open file, text of several lines, a data frame or series of "
    "pandas, polars or pyarrow, a dict of columns, a list of dicts, or a list of rows whose first "
    "is the header"
)


def read_table(source: Any, options: ReadOptions = DEFAULTS, name: str = "table") -> Table:
    r"""Reads a table from whatever holds one, with the texts that a file would give.

    Args:
        source: the path of a file of any kind (`read_file`), its bytes, an open file or upload, or
            its text, of two lines or more, or a list of its lines with their ends; a data frame,
            lazy frame, Styler (what it shows) or series of pandas, polars or pyarrow, whose named
            or labelled index becomes a column; a cursor or result of a database; a workbook,
            worksheet or range of openpyxl; an array of two dimensions; dicts and lists in any shape
            that a JSON file may have, such as columns, records (also named tuples and other objects
            with names) or rows, the first the header, or a pair of header and rows; or a Table.
        options: how a file is read.
        name: the table's name, unless its file has one; an ending such as ".csv" says of which kind
            bytes and text are, where they leave it open.

    TypeError for anything else, such as a groupby, which has no cells. Other errors are those of
    `read_file` and `Table`; ValueError also for options of what is no file.

    Example:
        >>> read_table("city,people\nLima,10\nQuito,2").header
        ('city', 'people')
    """
    if isinstance(source, str) and "\n" in source:
        return read_content(source.encode("utf-8", "surrogatepass"), name, options)
    if isinstance(source, str | os.PathLike):
        return read_file(source, options)
    content, name = file_content(source, name)
    if content is not None:
        return read_content(content, name, options)
    kind = type(source).__name__
    if options != DEFAULTS:
        raise ValueError(f"expected options for a file alone, got some for a {kind}")
    if isinstance(source, Table):
        return source
    if has_worksheets(source):
        rows = read_sheet_rows(open_worksheets(source))
        rows.name = name
        return lay_out(rows)
    while not is_frame(source) and (step := converted(source)) is not source:
        source = step
    if is_frame(source):
        return _table_of_frame(source, name)
    value = plain(with_attributes(source))
    are_rows = isinstance(value, list) and any(isinstance(row, list | dict) for row in value)
    if not are_rows and not isinstance(value, dict) and value != []:
        got = f"{kind} of other things" if isinstance(value, list) else kind
        raise TypeError(f"expected {_ACCEPTED}, got {got}")
    return table_of_value(value, name)


def table_of_value(value: list[Any] | dict[str, Any], name: str = "table") -> Table:
    """The table of lists and dicts in any shape that a JSON file may have.

    ValueError if the shape is none of these, or as `Table`.
    """
    try:
        rows, assumed = value_rows(value)
    except ValueError as error:
        raise ValueError(f"{error} (table '{name}')") from None
    header, *body = rows or [[]]
    cells: Any = body  # the constructor turns whatever cells hold into text
    return Table(tuple(header), cells, name, assumed=tuple(assumed))


def _table_of_frame(frame: Any, table_id: str) -> Table:
    import narwhals

    frame = narwhals.to_native(frame, pass_through=True)
    if not narwhals.dependencies.is_into_dataframe(frame):  # a batch of Arrow's rows
        import pyarrow

        frame = pyarrow.table(frame)
    header, columns = _names(frame), _frame_columns(frame)
    if narwhals.dependencies.is_pandas_dataframe(frame):
        index = frame.index
        has_names = any(name is not None for name in index.names)
        # Labels of the rows, but not what is left of their numbers after filtering.
        is_range = type(index).__name__ == "RangeIndex"
        is_numbered = index.nlevels == 1 and index.inferred_type == "integer"
        is_of_years = is_numbered and not is_range and all(label in YEARS for label in index)
        if has_names or is_of_years or not is_numbered:
            header = [*("" if name is None else name for name in index.names), *header]
            columns = [*_frame_columns(index.to_frame(index=False)), *columns]
    lost = [name for name, column in zip(header, columns, strict=True) if column is None]
    assumed = tuple(map(bytes_left_out, lost))
    header = [name for name, column in zip(header, columns, strict=True) if column is not None]
    rows: Any = zip(*(column for column in columns if column is not None), strict=True)
    return Table(tuple(header), tuple(rows), table_id, assumed=assumed)


def _names(frame: Any) -> list[Any]:
    names = frame.column_names if hasattr(frame, "column_names") else frame.columns
    return [
        " ".join(filter(None, map(str, name))) if isinstance(name, tuple) else name
        for name in names
    ]


def _frame_columns(frame: Any) -> list[list[Any] | None]:
    """The values of each column; None for bytes that are no text."""
    import narwhals
    import numpy as np

    if hasattr(frame, "iloc"):  # the names of pandas's columns may be alike or no texts
        frame = frame.set_axis([str(number) for number in range(frame.shape[1])], axis=1)
    columns: list[list[Any] | None] = []
    for column in narwhals.from_native(frame, eager_only=True).iter_columns():
        native = column.to_native()
        kind = str(getattr(native, "dtype", None) or getattr(native, "type", "")).lower()
        are_dates = kind.startswith("datetime64[") and "," not in kind  # without a zone
        values = dates_of(column.to_numpy()) if are_dates else column.to_list()
        if are_dates and int in set(map(type, values)):
            values = column.to_list()
        if kind in ("float16", "float32", "halffloat", "float"):
            # Written with the digits that the type holds: 0.1, not 0.10000000149.
            single = np.float16 if kind in ("float16", "halffloat") else np.float32
            values = [float(str(single(v))) if isinstance(v, float) else v for v in values]
        try:
            columns.append(column_texts(values))
        except UnicodeDecodeError:
            columns.append(None)
    return columns
