"""Tables in Parquet files, by pyarrow."""

from pathlib import Path
from typing import Any

from mate_tf.tables.text_files import open_bytes
from mate_tf.tables.typed_cells import broken_named, check_size, plain_value, reading_package


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
