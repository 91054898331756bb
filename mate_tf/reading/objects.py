"""Objects of Python as the lists, dicts and single values that JSON has.

Objects are known by what they can do, not by their package: a cursor has a description, a lazy
frame can be collected.
"""

import contextlib
import dataclasses
import inspect
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from mate_tf.private_apis import shown_frame
from mate_tf.reading.workbooks import cell_value
from mate_tf.tables.cell_texts import cell_text
from mate_tf.tables.table import is_frame

# Methods that give a table, or what holds one: of series, of xarray and BigQuery, of what pandas
# can hold, of Spark, of polars, of Dask, of sheets of Google and of calamine.
_METHODS = (
    *("to_frame", "to_dataframe", "to_pandas", "toPandas", "collect", "compute"),
    *("get_all_values", "to_python"),
)
_SINGLE = {str, int, float, bool, type(None)}


def has(data: Any, *names: str) -> bool:
    """Whether the type of an object has one of these methods; its columns may have any name."""
    return any(hasattr(type(data), name) for name in names)


def file_content(data: Any, name: str) -> tuple[bytes | None, str]:
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
    file = data
    if inspect.iscoroutinefunction(getattr(data, "read", None)) and hasattr(data, "file"):
        file = data.file  # of an upload of FastAPI
    if has(data, "namelist"):
        raise TypeError(f"expected one file, got a {_kind(data)} of several; open one of them")
    if has(data, "read_bytes"):  # a path, perhaps in an archive
        return data.read_bytes(), data.name
    if not hasattr(file, "read"):
        return None, name
    content = file.read()
    if inspect.isawaitable(content):
        raise _to_be_awaited(data, content)
    if not content and has(file, "seek") and file.seekable():
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


def converted(data: Any) -> Any:
    """A step from an object to its table: what it says that is, or the object itself.

    TypeError for what has no cells: a groupby, what has to be awaited, a cursor without rows.
    """
    if inspect.isawaitable(data) or has(data, "__aiter__"):
        raise _to_be_awaited(data, data)
    if has(data, "to_flat_index"):  # an index of pandas
        return data.to_frame(index=False)
    if has(data, "__arrow_c_stream__", "__arrow_c_array__") and not has(data, "to_frame"):
        return _of_arrow(data)
    for method in _METHODS:
        if has(data, method):
            return getattr(data, method)()
    if has(data, "agg", "aggregate"):
        kind = _kind(data)
        raise TypeError(f"expected a table, got {kind}, which has no cells; aggregate it first")
    if has(data, "__array__"):
        return _of_array(data)
    if has(data, "fetchall"):
        return _fetched(data)
    if is_frame(getattr(data, "data", None)) and not isinstance(data, Iterable):  # a Styler
        return shown_frame(data)
    return as_record(data)


def _of_arrow(data: Any) -> Any:
    import pyarrow

    if not isinstance(data, pyarrow.Array | pyarrow.ChunkedArray):
        return pyarrow.table(data)
    return data.to_pylist() if pyarrow.types.is_struct(data.type) else {"": data.to_pylist()}


def _of_array(data: Any) -> Any:
    import numpy as np

    array = np.asanyarray(data)
    if array.dtype.names:
        return {name: array[name] for name in array.dtype.names}
    if array.ndim != 2:
        raise TypeError(f"expected 2 dimensions, got {array.ndim} in {_kind(data)}")
    return list(map(list, array))


def _fetched(cursor: Any) -> list[Any]:
    """The rows of a cursor or of SQLAlchemy's result, below their names."""
    names = cursor.keys() if has(cursor, "keys") else cursor.description
    if names is None:
        raise TypeError(f"expected a query with rows, got {_kind(cursor)} without one")
    header = [name if isinstance(name, str) else name[0] for name in names]
    rows = cursor.fetchall()
    if inspect.isawaitable(rows):
        raise _to_be_awaited(cursor, rows)
    are_named = all(isinstance(row, Mapping) for row in rows) and rows
    return list(rows) if are_named else [header, *map(list, rows)]


def as_record(row: Any) -> Any:
    """A row that has names for its cells as a dict; other rows as they are."""
    if isinstance(row, dict):
        return row
    for method in ("_asdict", "asDict", "model_dump"):  # named tuples, Spark, pydantic
        if has(row, method):
            return getattr(row, method)()
    if dataclasses.is_dataclass(row) and not isinstance(row, type):
        return dataclasses.asdict(row)
    return dict(row) if has(row, "keys") and not is_frame(row) else row


def with_attributes(rows: Any) -> Any:
    """Rows with names for their cells as dicts, also objects with attributes, as of an ORM."""
    if isinstance(rows, Mapping | str) or not isinstance(rows, Iterable):
        return rows
    return [_attributes(as_record(row)) for row in rows]


def _attributes(row: Any) -> Any:
    if isinstance(row, Iterable | type) or callable(row) or hasattr(row, "number_format"):
        return row
    names = [*getattr(type(row), "__slots__", ()), *getattr(row, "__dict__", ())]
    public = [name for name in names if not name.startswith("_")]
    return {name: getattr(row, name) for name in public} if public else row


def plain(data: Any) -> Any:
    """Lists and dicts of rows or columns, and their single values; names are texts.

    TypeError for a frame in them.
    """
    if type(data) in _SINGLE or isinstance(data, str):
        return data
    if isinstance(data, bytes):
        with contextlib.suppress(UnicodeDecodeError):
            return data.decode()
        return data
    if is_frame(data):
        raise TypeError(f"expected one table, got several: {_kind(data)} in a list or dict")
    if isinstance(data, Mapping):
        return {_name(name): plain(item) for name, item in data.items()}
    if not isinstance(data, Iterable) or getattr(data, "shape", None) == ():
        return cell_value(data) if hasattr(data, "number_format") else data  # of a workbook
    items = list(data)
    if set(map(type, items)) <= _SINGLE:
        return items
    return list(map(plain, items))


def _name(name: Any) -> str:
    return " ".join(filter(None, map(str, name))) if isinstance(name, tuple) else cell_text(name)
