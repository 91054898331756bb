"""Text files: reading with errors that name file and line, writing whole files or none."""

import contextlib
import csv
import io
import json
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, TextIO

from mate_tf.paths import as_path

# The csv module limits cells to 131,072 characters, for the whole process. Real cells are longer.
csv.field_size_limit(max(csv.field_size_limit(), 2**31 - 1))


def read_text(path: str | Path) -> str:
    """Reads a UTF-8 file, with or without a byte order mark; line ends stay as they are.

    FileNotFoundError if there is no such file, ValueError if it is a directory or not UTF-8.
    """
    with open_bytes(path) as file:
        content = file.read()
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise wrong_byte(error, path) from None


def stream_lines(path: str | Path) -> Iterator[str]:
    """Yields each line with its end, without holding the whole file; errors as of `read_text`."""
    with open_bytes(path) as file:
        for number, line in enumerate(file, start=1):
            try:
                text = line.decode("utf-8-sig" if number == 1 else "utf-8")
            except UnicodeDecodeError as error:
                raise wrong_byte(error, path, line=number) from None
            yield text


def read_csv_rows(path: str | Path, **dialect: Any) -> list[list[str]]:
    """Reads the rows of a delimited file without its blank lines; `dialect` is the csv module's.

    Errors as of `read_text`, and ValueError if quotes do not match or rows differ in length.
    """
    lines = io.StringIO(read_text(path), newline="")
    return [row for _, row in _csv_rows(lines, path, dialect)]


def _csv_rows(
    lines: Iterable[str], path: str | Path, dialect: Mapping[str, Any]
) -> Iterator[tuple[int, list[str]]]:
    """The rows that are not blank, each with the line where it begins."""
    reader = csv.reader(lines, strict=True, **dialect)
    header: list[str] = []
    line = 1
    try:
        for row in reader:
            if row:
                header = header or row
                check_width(row, header, f"(file '{path}', line {line})")
                yield line, row
            line = reader.line_num + 1  # cells may hold line breaks
    except csv.Error as error:
        raise ValueError(
            f"expected delimited text, got: {error} (file '{path}', line {line})"
        ) from None


def check_delimiter(delimiter: str) -> None:
    """Raises ValueError unless it is one character that is neither a quote nor a line end."""
    if len(delimiter) != 1 or delimiter in '"\r\n':
        raise ValueError(f"expected one character as delimiter, got {delimiter!r}")


def stream_csv_records(
    path: str | Path, columns: Sequence[str], **dialect: Any
) -> Iterator[tuple[int, dict[str, str]]]:
    """Yields line number and values by column of each row below the header, one at a time.

    Errors as of `read_csv_rows`, and ValueError if the header lacks one of `columns`.
    """
    rows = _csv_rows(stream_lines(path), path, dialect)
    line, header = next(rows, (1, []))
    if missing := [name for name in columns if name not in header]:
        raise ValueError(
            f"expected the columns {missing}, got {header} (file '{path}', line {line})"
        )
    for line, row in rows:
        yield line, dict(zip(header, row, strict=True))


def check_width(row: Sequence[Any], header: Sequence[Any], where: str) -> None:
    """Raises ValueError, which ends in `where`, unless the row has a cell for each column."""
    if len(row) != len(header):
        raise ValueError(f"expected {len(header)} cells as in the header, got {len(row)} {where}")


def read_lines(path: str | Path) -> Iterator[tuple[int, str]]:
    """Yields number and text of each line that is not blank, without holding the whole file."""
    for number, line in enumerate(stream_lines(path), start=1):
        if line.strip():
            yield number, line.rstrip("\r\n")


def read_json_values(path: str | Path) -> Iterator[tuple[int, Any]]:
    """Yields number and value of each line of JSON that is not blank; errors as of `read_json`."""
    for number, line in read_lines(path):
        yield number, parse_json(line, path, number)


def parse_json(text: str, path: str | Path, line: int | None = None, **decoding: Any) -> Any:
    """The JSON value of a file's text, or of one line of it.

    `decoding` are options of `json.loads`. ValueError, which names file and line, if it is not JSON
    or an object has a key twice.
    """
    try:
        return json.loads(text, object_pairs_hook=_unique_keys, **decoding)
    except json.JSONDecodeError as error:
        reason, line = error.msg, line or error.lineno
    except (ValueError, RecursionError) as error:
        reason = str(error)
    where = f"(file '{path}', line {line})" if line else f"(file '{path}')"
    raise ValueError(f"expected valid JSON, got: {reason} {where}")


def read_json(path: str | Path) -> Any:
    """Reads a file that holds one JSON value; errors as of `read_text` and `parse_json`."""
    return parse_json(read_text(path), path)


@contextlib.contextmanager
def complete_text_file(path: str | Path, errors: str = "strict") -> Iterator[TextIO]:
    """Yields a UTF-8 file to write to, which replaces an older one once it is complete.

    A killed process leaves a file that ends in ".unfinished", which nothing reads. A device or a
    pipe is written to directly. Of a link, the file that it leads to is replaced. `errors`, as of
    `open`, is what to do with half a surrogate pair, which UTF-8 cannot hold.
    """
    path = as_path(path)
    options: dict[str, Any] = {"encoding": "utf-8", "errors": errors, "newline": "\n"}
    if path.exists() and not path.is_file():
        with path.open("w", **options) as file:
            yield file
        return
    path = path.resolve()
    # The name is unique: several workers may write the same file.
    unfinished = path.with_name(f"{path.name}.{uuid.uuid4().hex}.unfinished")
    try:
        with unfinished.open("w", **options) as file:
            yield file
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    unique = dict(pairs)
    if len(unique) != len(pairs):
        raise ValueError(f"a key twice in {[key for key, _ in pairs]}")
    return unique


def open_bytes(path: str | Path) -> BinaryIO:
    """Opens a file to read its bytes; FileNotFoundError or ValueError if there is none."""
    if as_path(path).is_dir():
        raise ValueError(f"expected a file, got a directory ('{path}')")
    try:
        return as_path(path).open("rb")
    except FileNotFoundError:
        raise FileNotFoundError(f"expected a file at '{path}', found none") from None


def wrong_byte(
    error: UnicodeDecodeError,
    path: str | Path,
    expected: str = "UTF-8 text",
    line: int | None = None,
) -> ValueError:
    """An error that names the byte that is not in an encoding, and its line in the file."""
    line = line or error.object.count(b"\n", 0, error.start) + 1
    byte = error.object[error.start]
    return ValueError(
        f"expected {expected}, got the byte 0x{byte:02x} (file '{path}', line {line})"
    )
