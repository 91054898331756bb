"""Tables of typed values: JSON in the shapes that programs write, JSON Lines and Parquet."""

import io
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from numbers import Real
from typing import Any

from mate_tf.private_apis import import_extra
from mate_tf.reading.header import ROWS_LOOKED_AT, count_header_rows, joined_header
from mate_tf.reading.layout import Rows, Source, check_size, chosen_table
from mate_tf.reading.text_files import parse_json
from mate_tf.tables.cell_texts import column_texts, dates_of, nested_text, plain_value
from mate_tf.tables.values import read_cell

_SHAPES = (
    "a list of objects, a list of lists, an object of columns or of rows, or one with header and "
    "rows, columns and data, or a list of objects in one of its keys"
)


class WrittenNumber(str):
    """A number as it is written."""


_NUMBERS_AS_WRITTEN: dict[str, Any] = {  # 1.50 and 1e5; NaN stands for a missing value
    "parse_int": WrittenNumber,
    "parse_float": WrittenNumber,
    "parse_constant": lambda name: None if name == "NaN" else name,
}
_VALUE_BEGIN = re.compile(r"[\s,]*[\[{]")
_OF_CELLS = {"value", "v", "f", "type", "datatype", "xml:lang", "format"}  # keys
_HEADERS = ("header", "headers", "columns", "column_names", "fields", "cols", "schema")
_BODIES = ("rows", "data", "values", "records", "items")
_ROWS_AT_ONCE = 10_000  # of a Parquet file
_WRAPPERS = (*_BODIES, *"table result results response content body payload hits docs".split())


def read_json_rows(source: Source) -> Rows:
    """The rows of a table that is one JSON value.

    The shapes are _SHAPES. Objects may lack keys; those cells are empty. Objects in objects become
    columns such as "city.name", lists of texts one text. Numbers keep their text; null and NaN are
    empty. Of several tables in an object `which` is one, from 0. ValueError for anything else.
    """
    values = _json_values(source.text, source.name)
    rows, assumed = value_rows(values[0] if len(values) == 1 else values, source.which)
    return Rows(rows, is_ragged=True, header_rows=1, assumed=assumed)


def value_rows(value: Any, which: int | None = None) -> tuple[list[list[Any]], list[str]]:
    """The rows of a JSON value, the header first, and what was assumed; as `read_json_rows`."""
    rows = [list(map(_without_object, row)) for row in _rows(value, which)]
    are_alike = _is_list_of(value, list) and len(set(map(len, rows))) == 1
    if are_alike and any(_is_typed_number(cell) for cell in rows[0]):
        texts = [["" if c is None else str(c) for c in row] for row in rows[:ROWS_LOOKED_AT]]
        if count_header_rows(texts) == 0:  # pandas's "values"
            assumed = ["There is no header, so the columns are numbered."]
            return [joined_header([], len(rows[0])), *rows], assumed
    return rows, []


def read_json_line_rows(source: Source) -> Rows:
    """The rows of JSON Lines: objects, whose keys are the header, or lists, the first the header.

    ValueError if a line is not JSON, or is neither.
    """
    values: list[Any] = []
    numbers: list[int] = []
    for number, line in enumerate(source.text.split("\n"), start=1):
        if not line.strip():
            continue
        for value in _json_values(line, source.name, number):
            if not isinstance(value, type(values[0]) if values else dict | list):
                expected = type(values[0]).__name__ if values else "object or list"
                got = f"{_kind(value)} (file '{source.name}', line {number})"
                raise ValueError(f"expected a row as {expected}, got {got}")
            values.append(value)
            numbers.append(number)
    if not values or isinstance(values[0], list):
        return Rows(values, numbers, "line", is_ragged=True, header_rows=1)
    if len(values) == 1 and values[0] and _is_list_of(list(values[0].values()), list):
        return read_json_rows(source)  # an object of columns
    return Rows(_rows_of_records(values), [0, *numbers], "line", header_rows=1)


def _json_values(text: str, name: str, line: int | None = None) -> list[Any]:
    """The values of a text that has one after another; errors as of `parse_json`."""
    try:
        return [parse_json(text, name, line, **_NUMBERS_AS_WRITTEN)]
    except ValueError as error:
        if "Extra data" not in str(error):
            raise
    values, begin = [], 0
    while match := _VALUE_BEGIN.match(text, begin):
        begin = match.end() - 1
        try:
            end = json.JSONDecoder().raw_decode(text, begin)[1]
        except ValueError:
            end = len(text)
        values.append(parse_json(text[begin:end], name, line, **_NUMBERS_AS_WRITTEN))
        begin = end
    if text[begin:].strip():
        raise ValueError(f"expected JSON, got more behind it: {text[begin:].strip()[:20]!r}")
    return values


def _without_object(cell: Any) -> Any:
    """The value of a cell that is an object of it and of its type or format."""
    for key in ("value", "v"):
        if isinstance(cell, Mapping) and key in cell and cell.keys() <= _OF_CELLS:
            return cell[key]
    return cell


def _cells(row: Any) -> Any:
    """The cells of a row that is an object of them, as of BigQuery and of Google's charts."""
    is_row = isinstance(row, Mapping) and len(row) == 1 and set(row) <= {"f", "c"}
    cells = next(iter(row.values())) if is_row else row
    return cells if isinstance(cells, list) else row


def _rows(value: Any, which: int | None) -> list[list[Any]]:
    if isinstance(value, list):
        if len(value) == 2 and isinstance(value[0], Mapping) and isinstance(value[1], list):
            value = value[1]  # what is said about a table, and the table
        value = [item for item in value if item is not None]
        if value and all(isinstance(item, str) and item.startswith("{") for item in value):
            value = [json.loads(item, **_NUMBERS_AS_WRITTEN) for item in value]
    if _is_list_of(value, list):
        return [value[0], *value[1]] if _is_header_with_rows(value) else value
    if _is_list_of(value, Mapping):
        return _rows_of_records(value)
    if not isinstance(value, Mapping):
        raise ValueError(f"expected {_SHAPES}, got {_kind(value)}")
    value = _with_names_beside(value)
    columns = list(value.values())
    for header in _HEADERS:
        for body in _BODIES:
            rows = value.get(body)
            rows = list(map(_cells, rows)) if isinstance(rows, list) else rows
            if _is_list_of(value.get(header), object) and _is_list_of(rows, list):
                names = [
                    next((name[key] for key in ("name", "title", "label", "id") if key in name), "")
                    if isinstance(name, Mapping)
                    else name
                    for name in value[header]
                ]
                return _with_labels(value.get("index"), [names, *rows])
    inner = [item for key, item in value.items() if len(value) == 1 or key.lower() in _WRAPPERS]
    if len(inner) == 1 and isinstance(inner[0], Mapping) and _holds_table(inner[0]):
        return _rows(inner[0], which)
    are_tables = all(map(_has_columns, columns)) and len(set(map(tuple, columns))) > 1
    if columns and _is_list_of(columns, Mapping) and not are_tables:
        return _rows_of_objects(value)
    if columns and _is_list_of(columns, list):
        have_lists = [any(isinstance(it, dict | list) for it in column) for column in columns]
        are_columns = {*_HEADERS, *_WRAPPERS}.isdisjoint(map(str.lower, value))
        if not any(have_lists) or (are_columns and not all(have_lists)):
            if len(set(map(len, columns))) > 1:
                lengths = ", ".join(f"{name!r}: {len(cells)}" for name, cells in value.items())
                raise ValueError(f"expected columns of the same length, got {lengths}")
            rows = list(map(list, zip(*columns, strict=True)))
            if not any(have_lists):
                return [list(value), *rows]
            return _rows_of_records([dict(zip(value, row, strict=True)) for row in rows])
    tables = {key: item for key, item in value.items() if _are_rows(item) or _has_columns(item)}
    if not tables and not any(isinstance(item, list) for item in columns):
        if len(value) > 1 and all(_is_number(item) for item in columns):
            return [["key", "value"], *map(list, value.items())]
        return _rows_of_records([value]) if value else []  # one row
    if not tables:
        raise ValueError(f"expected {_SHAPES}, got an object of other things")
    keys = [key for key in tables if key.lower() not in _HEADERS] or list(tables)
    return _rows(tables[keys[chosen_table(which, [f"'{key}'" for key in keys])]], None)


def _with_names_beside(value: Mapping[str, Any]) -> Mapping[str, Any]:
    """An object with the names of columns that Socrata and BigQuery have in an object in it."""
    names: Any = value
    for key in ("meta", "view", "columns") if "data" in value else ("schema", "fields"):
        names = names.get(key) if isinstance(names, Mapping) else None
    return {**value, "header": names} if isinstance(names, list) else value


def _with_labels(labels: Any, rows: list[list[Any]]) -> list[list[Any]]:
    """The rows with pandas's labels before them, if these are more than their numbers."""
    are_labels = isinstance(labels, list) and len(labels) == len(rows) - 1
    if not are_labels or all(str(label).isdecimal() for label in labels):
        return rows
    return [[name, *row] for name, row in zip(["", *labels], rows, strict=True)]


def _holds_table(value: Mapping[str, Any]) -> bool:
    """Whether an object is or holds a table of its own: lists or objects of objects."""
    items = list(value.values())
    inner = [item for item in items if isinstance(item, Mapping)]
    is_one = len(items) == len(inner) > 1 or _has_columns(value)
    is_one = is_one or (_is_list_of(items, list) and len(set(map(len, items))) > 1)
    return is_one or any(map(_are_rows, items)) or any(map(_holds_table, inner))


def _has_columns(value: Any) -> bool:
    """Whether an object is one of columns of the same length, with more than one cell each."""
    columns = list(value.values()) if isinstance(value, Mapping) else []
    are_lists = bool(columns) and _is_list_of(columns, list)
    if not are_lists or set(map(len, columns)) != {max(2, len(columns[0]))}:
        return False
    return not any(isinstance(cell, dict | list) for column in columns for cell in column)


def _is_header_with_rows(value: list[list[Any]]) -> bool:
    """Whether a list is a pair: the names of two columns or more, and rows that are as long."""
    if len(value) != 2 or len(value[0]) < 2 or not all(isinstance(it, str) for it in value[0]):
        return False
    return _is_list_of(value[1], list) and set(map(len, value[1])) == {len(value[0])}


def _kind(value: Any) -> str:
    if isinstance(value, list):
        return "a list of different things"
    return "a text or number" if isinstance(value, str) else type(value).__name__


def _is_number(value: Any) -> bool:
    is_text = isinstance(value, str)
    return read_cell(value).point is not None if is_text else _is_typed_number(value)


def _is_typed_number(value: Any) -> bool:
    return isinstance(value, WrittenNumber | Real | Decimal) and not isinstance(value, bool)


def _is_list_of(value: Any, kind: type) -> bool:
    return isinstance(value, list) and all(isinstance(item, kind) for item in value)


def _are_rows(value: Any) -> bool:
    return bool(value) and (_is_list_of(value, Mapping) or _is_list_of(value, list))


def _rows_of_records(records: Sequence[Mapping[str, Any]]) -> list[list[Any]]:
    """Objects as rows; the header has all keys, in the order in which they come."""
    if all(
        isinstance(cell, Mapping) and _without_object(cell) is not cell
        for record in records
        for cell in record.values()
    ):  # as of SPARQL
        records = [{key: _without_object(cell) for key, cell in it.items()} for it in records]
    flat = list(map(_flat_record, records))
    header = list(dict.fromkeys(key for record in flat for key in record))
    if not header:
        raise ValueError("expected objects with keys, got empty ones")
    check_size(len(header) * len(flat))
    return [header, *([record.get(key) for key in header] for record in flat)]


def _rows_of_objects(items: Mapping[str, Mapping[str, Any]]) -> list[list[Any]]:
    """An object of objects: by row, as pandas's "index", or by column with numbered rows."""
    inner = list(dict.fromkeys(key for item in items.values() for key in item))
    check_size(len(inner) * len(items))
    by_key = [[item.get(key) for item in items.values()] for key in inner]
    if inner and all(key.isdecimal() for key in inner):  # pandas's "columns"
        return [list(items), *by_key]
    if len(inner) > 1 and _are_columns(items.values()):
        return [["key", *items], *([key, *row] for key, row in zip(inner, by_key, strict=True))]
    rows = _rows_of_records(list(items.values()))
    if list(items) == list(map(str, range(len(items)))):
        return rows
    return [[key, *row] for key, row in zip(["key", *items], rows, strict=True)]


def _are_columns(items: Iterable[Mapping[str, Any]]) -> bool:
    """Whether each object has only numbers or only others, and some have these and some those."""
    kinds = [{_is_number(it) for it in item.values() if it is not None} for item in items]
    is_alike = len(set(map(tuple, items))) == 1 and all(len(kind) < 2 for kind in kinds)
    return is_alike and set().union(*kinds) == {True, False}


def _flat_record(record: Mapping[Any, Any], prefix: str = "") -> dict[Any, Any]:
    """An object without objects in it: their keys are such as "city.name", lists are texts."""
    flat: dict[Any, Any] = {}
    for key, value in record.items():
        if isinstance(value, Mapping) and value and prefix.count(".") < 8:
            flat |= _flat_record(value, f"{prefix}{key}.")
        else:
            name = f"{prefix}{key}" if prefix else key
            flat[name] = nested_text(value) if isinstance(value, list) else value
    return flat


def without_bytes(
    named: Iterable[tuple[str, list[Any] | None]],
) -> tuple[list[str], list[list[Any]], list[str]]:
    """The names and values of the columns that have texts, and sentences about the others."""
    names, columns, assumed = [], [], []
    for name, values in named:
        if values is None:
            assumed.append(f"Column '{name}' holds bytes that are no text and is left out.")
        else:
            names.append(name)
            columns.append(values)
    return names, columns, assumed


def read_parquet_rows(source: Source) -> Rows:
    """Reads the rows of a table, the header first; null and NaN are None.

    Lists are joined by commas, structures are JSON. A column of bytes that are no text is left out.
    ModuleNotFoundError without pyarrow, ValueError for more than MOST_CELLS, or pyarrow's errors.
    """
    parquet = import_extra("pyarrow.parquet", "formats", f"to read '{source.name}'")
    file = parquet.ParquetFile(io.BytesIO(source.content))
    schema = file.schema_arrow
    check_size(file.metadata.num_rows * len(schema))
    pandas = json.loads((schema.metadata or {}).get(b"pandas", b"{}"))
    labels = [name for name in pandas.get("index_columns", ()) if isinstance(name, str)]
    named = zip(schema.names, _arrow_columns(file), strict=True)
    names, columns, assumed = without_bytes(sorted(named, key=lambda it: it[0] not in labels))
    names = ["" if it in labels and it.startswith("__index_level_") else it for it in names]
    rows: list[Any] = [names, *zip(*columns, strict=True)]
    return Rows(rows, range(len(rows)), header_rows=1, assumed=assumed)


def _arrow_columns(file: Any) -> list[list[Any] | None]:
    """The texts of each column; None for bytes that are no text."""
    columns: list[list[Any] | None] = [[] for _ in file.schema_arrow]
    num_rows = 0
    for batch in file.iter_batches(_ROWS_AT_ONCE, use_threads=False):
        num_rows += batch.num_rows  # a file may have more than it says
        check_size(num_rows * len(columns))
        for index, column in enumerate(columns):
            if column is None:
                continue
            try:
                column += column_texts(_arrow_values(batch.column(index)))
            except UnicodeDecodeError:
                columns[index] = None
    return columns


def _arrow_values(column: Any) -> list[Any]:
    """The values as a table shows them; UnicodeDecodeError for bytes that are no text."""
    import pyarrow
    from pyarrow import types

    kind = column.type
    if types.is_dictionary(kind):
        if len(column.dictionary) > len(column):  # of which each batch has a few
            return _arrow_values(column.dictionary_decode())
        texts = column_texts(_arrow_values(column.dictionary))
        return [None if i is None else texts[i] for i in column.indices.to_pylist()]
    if kind in (pyarrow.float16(), pyarrow.float32()):
        # As text they have only the digits that the type holds: 0.1, not 0.10000000149.
        column = column.cast(pyarrow.float32()).cast(pyarrow.string())
        return [None if text is None else plain_value(float(text)) for text in column.to_pylist()]
    are_dates = types.is_date32(kind) or (types.is_timestamp(kind) and not kind.tz)
    if are_dates and (dates := dates_of(column.to_numpy(zero_copy_only=False))) is not None:
        return dates
    if getattr(kind, "unit", "") == "ns":  # Python has microseconds
        if types.is_timestamp(kind):
            plain = pyarrow.timestamp("us", kind.tz)
        else:
            plain = pyarrow.time64("us") if types.is_time64(kind) else pyarrow.duration("us")
        column = column.cast(plain, safe=False)
    if types.is_integer(kind) and not column.null_count:
        return list(column.to_numpy().tolist())  # a tenth of the time of `to_pylist`
    if types.is_float64(kind) or types.is_string(kind) or types.is_large_string(kind):
        return list(column.to_numpy(zero_copy_only=False).tolist())
    return list(column.to_pylist())
