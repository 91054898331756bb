"""Tables of Parquet files, by pyarrow."""

import io
import json
from typing import Any

from mate_tf.private_apis import import_extra
from mate_tf.reading.layout import Rows, Source, check_size
from mate_tf.tables.cell_texts import column_texts, dates_of, plain_value

_ROWS_AT_ONCE = 10_000


def bytes_left_out(name: str) -> str:
    """The sentence about a column that is left out."""
    return f"Column '{name}' holds bytes that are no text and is left out."


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
    names: list[str] = []
    columns: list[list[Any]] = []
    assumed = []
    named = zip(schema.names, _arrow_columns(file), strict=True)
    for name, column in sorted(named, key=lambda it: it[0] not in labels):
        if column is None:
            assumed.append(bytes_left_out(name))
            continue
        columns.append(column)
        names.append("" if name in labels and name.startswith("__index_level_") else name)
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
    if types.is_date32(kind) or (types.is_timestamp(kind) and not kind.tz):
        values = dates_of(column.to_numpy(zero_copy_only=False))
        if int not in set(map(type, values)):
            return values
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
