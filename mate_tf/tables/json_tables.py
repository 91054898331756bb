"""Tables that are one JSON value, in the shapes that programs write them in."""

from pathlib import Path
from typing import Any

from mate_tf.tables.text_files import NUMBERS_AS_WRITTEN, read_json

_SHAPES = (
    "a list of objects, a list of lists, an object of columns, or one with header and rows or with "
    "columns and data"
)


def read_json_rows(path: str | Path) -> list[list[Any]]:
    """Reads the rows of a table, the header first.

    The shapes are: a list of objects with the same keys, or of lists, the first being the header;
    {"header": [...], "rows": [[...], ...]}; {"columns": [...], "data": [[...], ...]}, pandas's
    "split"; and an object of columns, each a list of cells or an object of them by row (pandas's
    "columns"). Numbers are the text that the file has for them; null and NaN are None.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if it is not UTF-8 or not JSON, if it has another shape, or if its rows do not
            have the same keys or its columns not the same length.
    """
    value = read_json(path, **NUMBERS_AS_WRITTEN)
    where = f"(file '{path}')"
    if isinstance(value, dict):
        for header, rows in (("header", "rows"), ("columns", "data")):
            if _is_list_of(value.get(header), object) and _is_list_of(value.get(rows), list):
                return [value[header], *value[rows]]
        return _from_columns(value, where)
    if _is_list_of(value, list):
        return value
    if _is_list_of(value, dict):
        return _from_records(value, where)
    raise ValueError(f"expected {_SHAPES}, got {_kind(value)} {where}")


def _kind(value: Any) -> str:
    if isinstance(value, list):
        return "a list of different things"
    return "a text or number" if isinstance(value, str) else type(value).__name__


def _is_list_of(value: Any, kind: type) -> bool:
    return isinstance(value, list) and all(isinstance(item, kind) for item in value)


def _from_records(records: list[dict[str, Any]], where: str) -> list[list[Any]]:
    header = list(records[0]) if records else []
    for number, record in enumerate(records):
        if set(record) != set(header):
            raise ValueError(
                f"expected the keys {header}, got {list(record)} in object {number} {where}"
            )
    return [header, *([record[name] for name in header] for record in records)]


def _from_columns(columns: dict[str, Any], where: str) -> list[list[Any]]:
    if not columns:
        return []
    cells: list[list[Any]] = []
    keys: list[str] | None = None
    for name, column in columns.items():
        if isinstance(column, dict):
            keys = list(column) if keys is None else keys
            if set(column) != set(keys):
                raise ValueError(f"expected the same rows in all columns, not in '{name}' {where}")
            column = [column[key] for key in keys]
        if not isinstance(column, list):
            raise ValueError(
                f"expected {_SHAPES}, got an object with {_kind(column)} as '{name}' {where}"
            )
        cells.append(column)
        if len(column) != len(cells[0]):
            raise ValueError(
                f"expected {len(cells[0])} cells in each column, got {len(column)} in '{name}' "
                f"{where}"
            )
    return [list(columns), *map(list, zip(*cells, strict=True))]
