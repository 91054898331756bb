"""The one way to a Table: `read_table` takes files, text and Python's data."""

import dataclasses
import itertools
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from mate_tf.reading.files import DEFAULTS, ReadOptions, read_content, read_file
from mate_tf.reading.structures import flat_record
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
        source: the path of a file of any kind (`read_file`), its bytes, an open file, or its text,
            of two lines or more; a data frame or series of pandas, polars or pyarrow, whose named
            or labelled index becomes a column; a dict of columns; a list of dicts or named tuples;
            a list of rows, the first the header; or a Table.
        options: how a file is read.
        name: the table's name, unless its file has one; an ending such as ".csv" says of which kind
            bytes and text are, where they leave it open.

    TypeError for anything else. Other errors are those of `read_file` and `Table`; ValueError also
    for options of what is no file.

    Example:
        >>> read_table("city,people\nLima,10\nQuito,2").header
        ('city', 'people')
    """
    if isinstance(source, str) and "\n" in source:
        return read_content(source.encode("utf-8", "surrogatepass"), name, options)
    if isinstance(source, str | os.PathLike):
        return read_file(source, options)
    if hasattr(source, "read"):
        content = source.read()
        content = content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content
        path = getattr(source, "name", None)
        return read_content(content, Path(path).name if isinstance(path, str) else name, options)
    if isinstance(source, bytes | bytearray):
        return read_content(bytes(source), name, options)
    kind = type(source).__name__
    if options != DEFAULTS:
        raise ValueError(f"expected options for a file alone, got some for a {kind}")
    if isinstance(source, Table):
        return source
    if not is_frame(source) and hasattr(source, "to_frame"):  # a series
        source = source.to_frame()
    if is_frame(source):
        return _table_of_frame(source, name)
    if isinstance(source, Mapping):
        return _table_of_columns(source, name)
    if not isinstance(source, Iterable):
        raise TypeError(f"expected {_ACCEPTED}, got {kind}")
    rows = [_record(row) for row in source]
    if not all(isinstance(row, Iterable) and not isinstance(row, str | bytes) for row in rows):
        raise TypeError(f"expected {_ACCEPTED}, got {kind} of other things")
    return Table.from_rows(rows, table_id=name)


def _record(row: Any) -> Any:
    """A row; what has names for its cells, such as a named tuple, as a dict."""
    if hasattr(row, "_asdict"):
        row = row._asdict()
    elif dataclasses.is_dataclass(row) and not isinstance(row, type):
        row = dataclasses.asdict(row)
    return flat_record(dict(row)) if hasattr(row, "keys") else row


def _table_of_columns(columns: Mapping[Any, Any], table_id: str) -> Table:
    if columns and all(isinstance(column, Mapping) for column in columns.values()):
        labels = list(dict.fromkeys(itertools.chain.from_iterable(columns.values())))
        names = {} if all(isinstance(label, int) for label in labels) else {"": labels}
        by_label = {name: map(column.get, labels) for name, column in columns.items()}
        return _table_of_columns(names | by_label, table_id)
    cells = []
    for name, column in columns.items():
        if isinstance(column, str | bytes | Mapping) or not isinstance(column, Iterable):
            raise TypeError(
                f"expected a list of cells as column {name!r}, got {type(column).__name__} (table "
                f"'{table_id}')"
            )
        cells.append(list(column))
    if len({len(column) for column in cells}) > 1:
        lengths = ", ".join(f"{name!r}: {len(c)}" for name, c in zip(columns, cells, strict=True))
        raise ValueError(f"expected columns of the same length, got {lengths} (table '{table_id}')")
    return Table.from_rows(zip(*cells, strict=True), header=list(columns), table_id=table_id)


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
    return Table.from_rows(zip(*columns, strict=True), header=header, table_id=table_id)


def _names(frame: Any) -> list[Any]:
    names = frame.column_names if hasattr(frame, "column_names") else frame.columns
    return [
        " ".join(filter(None, map(str, name))) if isinstance(name, tuple) else name
        for name in names
    ]


def _frame_columns(frame: Any) -> list[list[Any]]:
    import narwhals
    import numpy as np

    names = _names(frame)
    if hasattr(frame, "iloc"):  # the names of pandas's columns may be alike or no texts
        frame = frame.set_axis([str(number) for number in range(frame.shape[1])], axis=1)
    columns: list[list[Any]] = []
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
            raise ValueError(
                f"expected texts in column {names[len(columns)]!r}, got bytes that are no text; "
                "leave the column out"
            ) from None
    return columns
