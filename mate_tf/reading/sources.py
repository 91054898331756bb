"""The one way to a Table: `read_table` takes files, text and Python's data.

Objects of Python become the lists, dicts and single values that JSON has. They are known by what
they can do, not by their package: a cursor has a description, a lazy frame can be collected.
"""

import contextlib
import dataclasses
import inspect
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from mate_tf.private_apis import shown_frame
from mate_tf.reading.files import DEFAULTS, ReadOptions, read_content, read_file
from mate_tf.reading.layout import lay_out
from mate_tf.reading.structures import value_rows, without_bytes
from mate_tf.reading.workbooks import (
    cell_value,
    has_worksheets,
    open_worksheets,
    read_sheet_rows,
)
from mate_tf.tables.cell_texts import cell_text, column_texts, dates_of
from mate_tf.tables.notations import YEARS
from mate_tf.tables.table import Table, is_frame

_ACCEPTED = (
    "a Table, a path, bytes or an open file, text of several lines, a data frame or series of "
    "pandas, polars or pyarrow, a dict of columns, a list of dicts, or a list of rows whose first "
    "is the header"
)
# Methods that give a table, or what holds one: of series, of xarray and BigQuery, of what pandas
# can hold, of Spark, of polars, of Dask, of sheets of Google and of calamine.
_METHODS = (
    *("to_frame", "to_dataframe", "to_pandas", "toPandas", "collect", "compute"),
    *("get_all_values", "to_python"),
)
_SINGLE = {str, int, float, bool, type(None)}


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
    content, name = _file_content(source, name)
    if content is not None:
        return read_content(content, name, options)
    kind = type(source).__name__
    if options != DEFAULTS:
        raise ValueError(f"expected options for a file alone, got some for a {kind}")
    if isinstance(source, Table):
        return source
    if has_worksheets(source):
        return lay_out(dataclasses.replace(read_sheet_rows(open_worksheets(source)), name=name))
    while not is_frame(source) and (step := _converted(source)) is not source:
        source = step
    if is_frame(source):
        return _table_of_frame(source, name)
    if isinstance(source, Iterable) and not isinstance(source, Mapping | str):
        source = map(_attributes, source)
    value = _plain(source)
    are_rows = isinstance(value, list) and any(isinstance(row, list | dict) for row in value)
    if not are_rows and not isinstance(value, dict) and value != []:
        got = f"{kind} of other things" if isinstance(value, list) else kind
        raise TypeError(f"expected {_ACCEPTED}, got {got}")
    return table_of_value(value, name)


def table_of_value(value: list[Any] | dict[str, Any], name: str = "table") -> Table:
    """The table of lists and dicts in a shape that JSON may have; ValueError for others."""
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
    names = frame.column_names if hasattr(frame, "column_names") else frame.columns
    header, columns = list(map(_name, names)), _frame_columns(frame)
    if narwhals.dependencies.is_pandas_dataframe(frame):
        index = frame.index
        has_names = any(name is not None for name in index.names)
        # Labels of the rows, but not what is left of their numbers after filtering.
        is_range = type(index).__name__ == "RangeIndex"
        is_numbered = index.nlevels == 1 and index.inferred_type == "integer"
        is_of_years = is_numbered and not is_range and all(label in YEARS for label in index)
        if has_names or is_of_years or not is_numbered:
            header = [*map(_name, index.names), *header]
            columns = [*_frame_columns(index.to_frame(index=False)), *columns]
    header, texts, assumed = without_bytes(zip(header, columns, strict=True))
    rows: Any = zip(*texts, strict=True)
    return Table(tuple(header), tuple(rows), table_id, assumed=tuple(assumed))


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
        values = dates_of(column.to_numpy()) if are_dates else None
        values = column.to_list() if values is None else values
        if kind in ("float16", "float32", "halffloat", "float"):
            # Written with the digits that the type holds: 0.1, not 0.10000000149.
            single = np.float16 if kind in ("float16", "halffloat") else np.float32
            values = [float(str(single(v))) if isinstance(v, float) else v for v in values]
        try:
            columns.append(column_texts(values))
        except UnicodeDecodeError:
            columns.append(None)
    return columns


def _has(data: Any, *names: str) -> bool:
    """Whether the type of an object has one of these methods; its columns may have any name."""
    return any(hasattr(type(data), name) for name in names)


def _file_content(data: Any, name: str) -> tuple[bytes | None, str]:
    """The bytes of an open file or of an upload, and its name; None for what is no file.

    What was written and not rewound is read from its begin. A list of lines with their ends, as of
    `readlines`, is a file's too. TypeError for what has to be awaited, and for a zip archive.
    """
    if isinstance(data, bytes | bytearray | memoryview):
        return bytes(data), name
    kinds = set(map(type, data)) if isinstance(data, list) else set()
    if kinds == {str} and "\n" in data[0]:
        return "".join(data).encode("utf-8", "surrogatepass"), name
    if kinds == {bytes} and b"\n" in data[0]:
        return b"".join(data), name
    is_upload = inspect.iscoroutinefunction(getattr(data, "read", None)) and hasattr(data, "file")
    file = data.file if is_upload else data  # of FastAPI
    if _has(data, "namelist"):
        raise TypeError(f"expected one file, got a {_kind(data)} of several; open one of them")
    if _has(data, "read_bytes"):  # a path, perhaps in an archive
        return data.read_bytes(), data.name
    if not hasattr(file, "read"):
        return None, name
    content = file.read()
    if inspect.isawaitable(content):
        raise _to_be_awaited(data, content)
    if not content and _has(file, "seek") and file.seekable():
        file.seek(0)
        content = file.read()
    content = content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content
    path = getattr(data, "filename", None) or getattr(data, "name", None)
    return content, Path(path).name if isinstance(path, str) else name


def _to_be_awaited(data: Any, awaitable: Any) -> TypeError:
    if inspect.iscoroutine(awaitable):
        awaitable.close()
    return TypeError(f"expected a table, got {_kind(data)}, which has to be awaited")


def _kind(data: Any) -> str:
    return type(data).__name__


def _converted(data: Any) -> Any:
    """A step from an object to its table, or the object itself; TypeError for what has no cells."""
    if inspect.isawaitable(data) or _has(data, "__aiter__"):
        raise _to_be_awaited(data, data)
    if _has(data, "to_flat_index"):  # an index of pandas
        return data.to_frame(index=False)
    if _has(data, "__arrow_c_stream__", "__arrow_c_array__") and not _has(data, "to_frame"):
        import pyarrow

        if not isinstance(data, pyarrow.Array | pyarrow.ChunkedArray):
            return pyarrow.table(data)
        return data.to_pylist() if pyarrow.types.is_struct(data.type) else {"": data.to_pylist()}
    for method in _METHODS:
        if _has(data, method):
            return getattr(data, method)()
    if _has(data, "agg", "aggregate"):
        kind = _kind(data)
        raise TypeError(f"expected a table, got {kind}, which has no cells; aggregate it first")
    if _has(data, "__array__"):
        import numpy as np

        array = np.asanyarray(data)
        if array.dtype.names:
            return {name: array[name] for name in array.dtype.names}
        if array.ndim != 2:
            raise TypeError(f"expected 2 dimensions, got {array.ndim} in {_kind(data)}")
        return list(map(list, array))
    if _has(data, "fetchall"):
        return _fetched(data)
    if is_frame(getattr(data, "data", None)) and not isinstance(data, Iterable):  # a Styler
        return shown_frame(data)
    return _as_record(data)


def _fetched(cursor: Any) -> list[Any]:
    """The rows of a cursor or of SQLAlchemy's result, below their names."""
    names = cursor.keys() if _has(cursor, "keys") else cursor.description
    if names is None:
        raise TypeError(f"expected a query with rows, got {_kind(cursor)} without one")
    header = [name if isinstance(name, str) else name[0] for name in names]
    rows = cursor.fetchall()
    if inspect.isawaitable(rows):
        raise _to_be_awaited(cursor, rows)
    are_named = all(isinstance(row, Mapping) for row in rows) and rows
    return list(rows) if are_named else [header, *map(list, rows)]


def _as_record(row: Any) -> Any:
    """A row that has names for its cells as a dict; other rows as they are."""
    if isinstance(row, dict):
        return row
    for method in ("_asdict", "asDict", "model_dump"):  # named tuples, Spark, pydantic
        if _has(row, method):
            return getattr(row, method)()
    if dataclasses.is_dataclass(row) and not isinstance(row, type):
        return dataclasses.asdict(row)
    return dict(row) if _has(row, "keys") and not is_frame(row) else row


def _attributes(row: Any) -> Any:
    """A row with names for its cells as a dict, also an object with attributes, as of an ORM."""
    row = _as_record(row)
    if isinstance(row, Iterable | type) or callable(row) or hasattr(row, "number_format"):
        return row
    names = [*getattr(type(row), "__slots__", ()), *getattr(row, "__dict__", ())]
    public = [name for name in names if not name.startswith("_")]
    return {name: getattr(row, name) for name in public} if public else row


def _plain(data: Any) -> Any:
    """Lists and dicts of rows or columns and their single values; TypeError for a frame in them."""
    if type(data) in _SINGLE or isinstance(data, str):
        return data
    if isinstance(data, bytes):
        with contextlib.suppress(UnicodeDecodeError):
            return data.decode()
        return data
    if is_frame(data):
        raise TypeError(f"expected one table, got several: {_kind(data)} in a list or dict")
    if isinstance(data, Mapping):
        return {_name(name): _plain(item) for name, item in data.items()}
    if not isinstance(data, Iterable) or getattr(data, "shape", None) == ():
        return cell_value(data) if hasattr(data, "number_format") else data  # of a workbook
    items = list(data)
    if set(map(type, items)) <= _SINGLE:
        return items
    return list(map(_plain, items))


def _name(name: Any) -> str:
    return " ".join(filter(None, map(str, name))) if isinstance(name, tuple) else cell_text(name)
