"""The one way from a file to a Table: `read_table`, by the ending of the file's name."""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mate_tf.tables.html_tables import read_html_rows
from mate_tf.tables.table import Table
from mate_tf.tables.text_files import NUMBERS_AS_WRITTEN, decode_text, parse_table_rows, read_json
from mate_tf.tables.typed_files import read_excel_rows, read_parquet_rows

STANDARD_INPUT = "-"
_DELIMITED = (".csv", ".tsv", ".tab")
_EXCEL = (".xlsx", ".xlsm")
_HTML = (".html", ".htm")
_JSON_SHAPES = (
    "a list of objects, a list of lists, an object of columns, or one with header and rows or with "
    "columns and data"
)


@dataclass(frozen=True)
class ReadOptions:
    """What may be said about a file that holds a table. None lets the reader decide.

    Attributes:
        delimiter: in CSV, the character that separates the columns; see `Table.from_csv`.
        sheet: in Excel, the name of the sheet; without it the first visible one.
        which: in HTML, the number of the table on the page, from 0; needed if there are several.
    """

    delimiter: str | None = None
    sheet: str | None = None
    which: int | None = None

    def check(self, ending: str, name: str) -> None:
        """Raises ValueError if an option is given that files with this ending do not have."""
        for option, endings in _OPTIONS.items():
            value = getattr(self, option)
            if value is not None and ending not in endings:
                raise ValueError(
                    f"expected {option} only for files in {', '.join(endings)}, got "
                    f"{option}={value!r} for {name}"
                )


_OPTIONS = {"delimiter": _DELIMITED, "sheet": _EXCEL, "which": _HTML}
_DEFAULTS = ReadOptions()


def read_table(path: str | Path, options: ReadOptions = _DEFAULTS) -> Table:
    """Reads a table from a file; the ending of its name, in any case, says its kind.

    `Table.from_csv` and `Table.from_json_lines` say how CSV, TSV and JSON Lines are read;
    `read_json_rows`, `read_html_rows`, `read_excel_rows` and `read_parquet_rows` say it of the
    others. HTML, Excel and Parquet need the packages of the extra "formats". Cells are as the file
    has them: numbers in text keep their text, other numbers such as 3.0 become "3", and a cell
    without a value is empty.

    Args:
        path: the file; "-" reads CSV from standard input.
        options: what is said about the file.

    Returns:
        The table, named after its file.

    Raises:
        FileNotFoundError: if there is no such file.
        ModuleNotFoundError: if the package that reads such files is not installed.
        ValueError: if the ending is unknown, an option does not fit the file, or the file is broken
            or holds no table.
    """
    if str(path) == STANDARD_INPUT:
        options.check(".csv", "standard input")
        name = "standard input"
        text = decode_text(sys.stdin.buffer.read(), name)
        return Table.from_rows(parse_table_rows(text, name, options.delimiter), table_id=name)
    path = Path(path)
    ending = path.suffix.lower()
    if ending not in ENDINGS:
        raise ValueError(
            f"expected a table whose name ends in {', '.join(ENDINGS)}, got '{path}'; convert "
            "other files to one of these"
        )
    options.check(ending, f"'{path}'")
    return _READERS[ending](path, options)


def read_json_rows(path: str | Path) -> list[list[Any]]:
    """Reads the rows of a table that is one JSON value, the header first.

    The shapes are: a list of objects with the same keys; a list of lists, the first being the
    header; {"header": [...], "rows": [[...], ...]}; {"columns": [...], "data": [[...], ...]}
    (pandas's "split"); and an object of columns, each a list of cells or an object of cells by row
    (pandas's "columns"). Numbers are the text that the file has for them; null and NaN are None.

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
    raise ValueError(f"expected {_JSON_SHAPES}, got {_kind(value)} {where}")


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
                f"expected {_JSON_SHAPES}, got an object with {_kind(column)} as '{name}' {where}"
            )
        cells.append(column)
        if len(column) != len(cells[0]):
            raise ValueError(
                f"expected {len(cells[0])} cells in each column, got {len(column)} in '{name}' "
                f"{where}"
            )
    return [list(columns), *map(list, zip(*cells, strict=True))]


def _rows_reader(read: Callable[[Path, ReadOptions], Any]) -> Callable[[Path, ReadOptions], Table]:
    return lambda path, options: Table.from_rows(read(path, options), table_id=path.name)


_READERS: dict[str, Callable[[Path, ReadOptions], Table]] = {
    **dict.fromkeys(_DELIMITED, lambda path, options: Table.from_csv(path, options.delimiter)),
    **dict.fromkeys((".jsonl", ".ndjson"), lambda path, _: Table.from_json_lines(path)),
    ".json": _rows_reader(lambda path, _: read_json_rows(path)),
    ".parquet": _rows_reader(lambda path, _: read_parquet_rows(path)),
    **dict.fromkeys(_HTML, _rows_reader(lambda path, said: read_html_rows(path, said.which))),
    **dict.fromkeys(_EXCEL, _rows_reader(lambda path, said: read_excel_rows(path, said.sheet))),
}
ENDINGS = tuple(_READERS)
