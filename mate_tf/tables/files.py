"""The one way from a file to a Table: `read_table`, by the ending of the file's name."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mate_tf.tables.html_tables import read_html_rows
from mate_tf.tables.table import Table
from mate_tf.tables.text_files import NUMBERS_AS_WRITTEN, decode_text, parse_table_rows, read_json
from mate_tf.tables.typed_files import read_excel_rows, read_parquet_rows

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


STANDARD_INPUT = "-"
_EXCEL = (".xlsx", ".xlsm")
_HTML = (".html", ".htm")
_DELIMITED = (".csv", ".tsv", ".tab")
_READERS: dict[str, Callable[[Path], Table]] = {
    **dict.fromkeys((".jsonl", ".ndjson"), Table.from_json_lines),
    ".json": lambda path: Table.from_rows(read_json_rows(path), table_id=path.name),
    ".parquet": lambda path: Table.from_rows(read_parquet_rows(path), table_id=path.name),
}
ENDINGS = (*_DELIMITED, *_READERS, *_HTML, *_EXCEL)


def read_table(
    path: str | Path,
    sheet: str | None = None,
    which: int | None = None,
    delimiter: str | None = None,
) -> Table:
    """Reads a table from a file, whose name's ending says of what kind it is, in any case.

    CSV, TSV and JSON Lines are read as `Table.from_csv` and `Table.from_json_lines` read them; one
    JSON value as `read_json_rows`, a page of HTML as `read_html_rows`, a sheet of Excel as
    `read_excel_rows`, and Parquet as `read_parquet_rows` does. The last three need the packages of
    the extra "formats". Cells are as the file has them: numbers that it holds as text keep it, of
    others 3.0 becomes "3"; a cell without a value is empty.

    Args:
        path: the file; "-" reads CSV from standard input.
        sheet: of Excel, the name of the sheet; the first one unless it is given.
        which: of HTML, the number of the table on the page, from 0; it may be left out where there
            is one.
        delimiter: of CSV, what separates the columns; as `Table.from_csv` unless it is given.

    Returns:
        The table, named after its file.

    Raises:
        FileNotFoundError: if there is no such file.
        ModuleNotFoundError: if the package that reads such files is not installed.
        ValueError: if the ending is not known, `sheet`, `which` or `delimiter` is given for a file
            of another kind or names none of its tables, or the file is broken or holds no table.
    """
    if str(path) == STANDARD_INPUT:
        _check_choices("standard input", ".csv", sheet, which, delimiter)
        return _from_standard_input(delimiter)
    path = Path(path)
    ending = path.suffix.lower()
    if ending not in ENDINGS:
        raise ValueError(
            f"expected a table whose name ends in {', '.join(ENDINGS)}, got '{path}'; "
            "other files have to be converted to one of these"
        )
    _check_choices(f"'{path}'", ending, sheet, which, delimiter)
    if ending in _DELIMITED:
        return Table.from_csv(path, delimiter)
    if ending in _EXCEL:
        return Table.from_rows(read_excel_rows(path, sheet), table_id=path.name)
    if ending in _HTML:
        return Table.from_rows(read_html_rows(path, which), table_id=path.name)
    return _READERS[ending](path)


def _check_choices(
    name: str, ending: str, sheet: str | None, which: int | None, delimiter: str | None
) -> None:
    if delimiter is not None and ending not in _DELIMITED:
        raise ValueError(
            f"expected a delimiter only of {', '.join(_DELIMITED)}, got {delimiter!r} for {name}"
        )
    if sheet is not None and ending not in _EXCEL:
        raise ValueError(
            f"expected a sheet only of {' and '.join(_EXCEL)}, got sheet={sheet!r} for {name}"
        )
    if which is not None and ending not in _HTML:
        raise ValueError(f"expected which only of {' and '.join(_HTML)}, got {which} for {name}")


def _from_standard_input(delimiter: str | None) -> Table:
    name = "standard input"
    text = decode_text(sys.stdin.buffer.read(), name)
    return Table.from_rows(parse_table_rows(text, name, delimiter), table_id=name)
