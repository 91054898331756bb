"""Tables from files of any kind that is known here, by the ending of their name.

Tables in Parquet files, by pyarrow.
"""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mate_tf.tables.cells import broken_named, check_size, plain_value, reading_package
from mate_tf.tables.excel_tables import read_excel_rows
from mate_tf.tables.html_tables import read_html_rows
from mate_tf.tables.json_tables import read_json_rows
from mate_tf.tables.table import Table
from mate_tf.tables.text_files import decode_text, open_bytes, parse_table_rows


def read_parquet_rows(path: str | Path) -> list[list[Any]]:
    """Reads the rows of a table, the header first; null and NaN are None.

    Raises:
        FileNotFoundError: if there is no such file.
        ModuleNotFoundError: without pyarrow.
        ValueError: if it is not such a file or has more than MOST_CELLS.
    """
    with open_bytes(path) as file:
        parquet = reading_package("pyarrow.parquet", path)
        with broken_named("a Parquet file", path):
            opened = parquet.ParquetFile(file)
            num_cells = opened.metadata.num_rows * len(opened.schema_arrow)
        check_size(num_cells, path)
        with broken_named("a Parquet file", path):
            table = opened.read()
            columns = [_values(column) for column in table.columns]
    return [table.column_names, *map(list, zip(*columns, strict=True))]


def _values(column: Any) -> list[Any]:
    """The values of a chunked array."""
    import pyarrow

    if column.type in (pyarrow.float16(), pyarrow.float32()):
        # By way of text, which tells just the digits that the type holds: 0.1, not 0.10000000149.
        column = column.cast(pyarrow.float32()).cast(pyarrow.string())
        return [None if text is None else plain_value(float(text)) for text in column.to_pylist()]
    return [plain_value(value) for value in column.to_pylist()]


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
