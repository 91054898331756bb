"""Text files, with errors that name the file and the line."""

import csv
import io
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO


def read_text(path: str | Path) -> str:
    """Reads a UTF-8 file, with or without a byte order mark; line ends are kept as they are.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if it is a directory or not UTF-8.
    """
    with _open(path) as file:
        return _decode(file.read(), path).removeprefix("\ufeff")


def _open(path: str | Path) -> BinaryIO:
    path = Path(path)
    if path.is_dir():
        raise ValueError(f"expected a file, got a directory ('{path}')")
    try:
        return path.open("rb")
    except FileNotFoundError:
        raise FileNotFoundError(f"expected a file at '{path}', found none") from None


def _decode(content: bytes, path: str | Path, first_line: int = 1) -> str:
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + first_line
        byte = error.object[error.start]
        raise ValueError(
            f"expected UTF-8 text, got the byte 0x{byte:02x} (file '{path}', line {line})"
        ) from None


def read_csv_rows(path: str | Path, **dialect: Any) -> list[list[str]]:
    """Reads the rows of a delimited file, passing over blank lines; `dialect` is the csv module's.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: as `read_text`, and if quotes do not match or a row's length is not the first's.
    """
    reader = csv.reader(io.StringIO(read_text(path), newline=""), strict=True, **dialect)
    rows: list[list[str]] = []
    try:
        for row in filter(None, reader):
            rows.append(row)
            check_width(row, rows[0], f"(file '{path}', line {reader.line_num})")
    except csv.Error as error:
        raise ValueError(
            f"expected delimited text, got: {error} (file '{path}', line {reader.line_num})"
        ) from None
    return rows


def check_width(row: Sequence[Any], header: Sequence[Any], where: str) -> None:
    """Raises ValueError, ending in `where`, unless the row has a cell for each column."""
    if len(row) != len(header):
        raise ValueError(f"expected {len(header)} cells as in the header, got {len(row)} {where}")


def read_lines(path: str | Path) -> Iterator[tuple[int, str]]:
    """Yields number and text of each line that is not blank, holding one line at a time.

    Raises:
        FileNotFoundError, ValueError: as `read_text`; of what is not UTF-8 when it is reached.
    """
    with _open(path) as file:
        for number, line in enumerate(file, start=1):
            text = _decode(line, path, number).removesuffix("\n")
            if number == 1:
                text = text.removeprefix("\ufeff")
            if text.strip():
                yield number, text.rstrip("\r")


def read_json_values(path: str | Path) -> Iterator[tuple[int, Any]]:
    """Yields line number and value of each line of JSON; blank lines are passed over.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: as `read_text`, and if a line is not JSON or has an object with a key twice.
    """
    for number, line in read_lines(path):
        try:
            value = json.loads(line, object_pairs_hook=_unique_keys)
        except ValueError as error:
            raise ValueError(
                f"expected valid JSON, got: {error} (file '{path}', line {number})"
            ) from None
        yield number, value


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    unique = dict(pairs)
    if len(unique) != len(pairs):
        raise ValueError(f"a key twice in {[key for key, _ in pairs]}")
    return unique
