"""What a workbook or a Parquet file says of its sizes, before anything is made of it.

A few bytes may say that a cell stands in row 2,000,000,000, that a merged range has 17,000,000,000
cells, or that a row is repeated so often; the packages that read workbooks make room for all that.
So do those of Parquet for a long value that many rows share.
"""

import io
import itertools
import lzma
import re
import subprocess
import sys
import zipfile
import zlib
from collections.abc import Iterator
from typing import Any
from xml.parsers import expat

from mate_tf.tables.layout import check_size

_MOST_BYTES = 2**28  # of all parts of a file, unpacked
_MOST_ELEMENTS = 8_000_000
_MOST_ROWS, _MOST_COLUMNS = 1_048_576, 16_384  # of Excel
_MOST_MEMORY, _MOST_SECONDS = 2**31, 30  # of a trial
_ROWS_AT_ONCE = 10_000  # of a Parquet file
_LEAST_BYTES = 32  # of a value in Python
_TRIAL = """
import io, sys
sys.path[:] = sys.argv[3:]
try:
    import resource
except ImportError:  # Windows
    pass
else:
    for kind, most in zip((resource.RLIMIT_AS, resource.RLIMIT_CPU), map(int, sys.argv[1:3])):
        if not 0 <= resource.getrlimit(kind)[1] <= most:
            resource.setrlimit(kind, (most, most))
content = sys.stdin.buffer.read()
if content.startswith(b"\\xd0\\xcf"):  # Excel 97
    import xlrd
    xlrd.open_workbook(file_contents=content, formatting_info=True, logfile=io.StringIO())
elif content.startswith(b"PAR1"):
    from mate_tf.tables.sheet_sizes import parquet_batches
    for _ in parquet_batches(content, "")[1]:
        pass
else:
    import python_calamine
    book = python_calamine.load_workbook(io.BytesIO(content))
    for name in book.sheet_names:
        book.get_sheet_by_name(name)
"""
_BROKEN = (
    *(expat.ExpatError, zipfile.BadZipFile, zlib.error, lzma.LZMAError),
    *(OSError, RuntimeError, EOFError),
)
_CHUNK = 2**16
_PLACE = re.compile(r"([A-Z]{0,3})([0-9]{0,10})$")


def check_bytes(num_bytes: int, path: str) -> None:
    """Raises ValueError if a file unpacks to more than 256 MB; so many of its bytes are known."""
    if num_bytes > _MOST_BYTES:
        raise ValueError(
            f"expected at most {_MOST_BYTES:,} bytes once unpacked, got at least {num_bytes:,} "
            f"(file '{path}')"
        )


def check_archive(content: bytes, path: str) -> None:
    """Checks the parts of a workbook that is a zip archive: of Excel or OpenDocument.

    ValueError if it unpacks to more than 256 MB, or a sheet has a place beyond Excel's sizes or
    spans more than MOST_CELLS. Whatever is no XML is left to the package that reads it.
    """
    try:
        archive = zipfile.ZipFile(io.BytesIO(content))
        parts = archive.infolist()
    except (zipfile.BadZipFile, ValueError, OSError):
        return
    check_bytes(sum(part.file_size for part in parts), path)
    for part in parts:
        where = f"(file '{path}', {part.filename[:80]})"
        sizes = _Sizes(where)
        try:
            with archive.open(part) as file:
                while chunk := file.read(_CHUNK):
                    sizes.parser.Parse(chunk)
        except _BROKEN:
            continue  # what is wrong with it is said by the package
        except (LookupError, ValueError) as error:  # also of encodings that expat does not know
            reason = str(error)
            raise ValueError(
                reason if where in reason else f"expected a workbook, got: {reason} {where}"
            ) from None


def check_in_a_trial(content: bytes, path: str) -> None:
    """Reads a file in a process of its own, which ends where it takes too much.

    The binary formats of workbooks do not say their sizes in a place of their own: a cell in the
    last row and column makes the package take 100 GB, which ends the process. A Parquet file says
    them apart from its values, and may say what is not so. ValueError for more than 2 GB or 30
    seconds.
    """
    limits = str(_MOST_MEMORY), str(_MOST_SECONDS)
    command = [sys.executable, "-c", _TRIAL, *limits, *sys.path]
    try:
        done = subprocess.run(
            command, input=content, capture_output=True, check=False, timeout=2 * _MOST_SECONDS
        )
        is_too_much = done.returncode < 0 or b"MemoryError" in done.stderr
    except subprocess.TimeoutExpired:
        is_too_much = True
    if is_too_much:
        raise ValueError(
            f"expected a file that is read within {_MOST_SECONDS} seconds and "
            f"{_MOST_MEMORY:,} bytes of memory, got a larger one (file '{path}')"
        )


def parquet_batches(content: bytes, path: str) -> tuple[Any, Iterator[Any]]:
    """The schema of a Parquet file and its rows, as record batches of Arrow.

    Texts are dictionaries wherever the file has them as such: a long one may stand in a million
    rows, or as often in a list.

    Raises:
        ValueError: if it has more than MOST_CELLS or 256 MB, in which each value counts as often as
            it stands in the table. What the file does not declare is counted batch by batch, and an
            iterator raises before it gives what is too much.
    """
    from pyarrow.parquet import ParquetFile

    file = ParquetFile(io.BytesIO(content))
    about, where = file.metadata, f"(file '{path}')"
    check_size(about.num_rows * len(file.schema_arrow), where)
    leaves = range(about.num_columns)
    groups = [about.row_group(number) for number in range(about.num_row_groups)]
    check_bytes(sum(group.total_byte_size for group in groups), path)
    texts, declared = [], 0
    for place in leaves:
        leaf, parts = about.schema.column(place), [group.column(place) for group in groups]
        declared += max(_LEAST_BYTES, leaf.length) * sum(part.num_values for part in parts)
        encodings = {name for part in parts for name in part.encodings}
        # Those by differences from the text before cannot be read as dictionaries.
        if leaf.physical_type == "BYTE_ARRAY" and not any("DELTA" in name for name in encodings):
            texts.append(leaf.path)
    check_bytes(declared, path)
    file = ParquetFile(io.BytesIO(content), read_dictionary=texts)
    return file.schema_arrow, _checked_batches(file, path)


def _checked_batches(file: Any, path: str) -> Iterator[Any]:
    num_rows = num_bytes = 0
    for batch in file.iter_batches(_ROWS_AT_ONCE, use_threads=False):
        num_rows += batch.num_rows
        check_size(num_rows * batch.num_columns, f"(file '{path}')")
        num_bytes += sum(map(unpacked_bytes, batch.columns))
        check_bytes(num_bytes, path)
        yield batch


def unpacked_bytes(array: Any) -> int:
    """The bytes of an array of Arrow, where each value counts as often as it stands in it.

    So do the names of a structure's fields, which JSON repeats. A value has at least 32 bytes.
    """
    import pyarrow
    from pyarrow import compute, types

    kind, least = array.type, _LEAST_BYTES * len(array)
    if isinstance(kind, pyarrow.BaseExtensionType):
        return unpacked_bytes(array.storage)
    if types.is_struct(kind):
        names = sum(len(field.name) for field in kind) * len(array)
        return names + sum(map(unpacked_bytes, array.flatten()))
    if types.is_map(kind):
        within = slice(array.offsets[0].as_py(), array.offsets[-1].as_py())
        return least + sum(unpacked_bytes(part[within]) for part in (array.keys, array.items))
    if types.is_nested(kind):  # a list
        return least + unpacked_bytes(array.flatten())
    if types.is_dictionary(kind):
        lengths = compute.binary_length(array.dictionary).take(array.indices)
    elif "binary" in str(kind) or "string" in str(kind):
        lengths = compute.binary_length(array)
    else:
        return max(least, array.nbytes)
    return max(least, compute.sum(lengths).as_py() or 0)


class _Sizes:
    """Follows the elements of a part, and raises ValueError once they are too much."""

    def __init__(self, where: str):
        self._where = where
        self._numbers = itertools.count(1)
        self._row = self._column = 0  # of the last cell, from 1
        self._last_row = self._last_column = 0  # of cells with a value
        self._spanned = 0  # cells
        self.parser = expat.ParserCreate()
        self.parser.StartElementHandler = self._start
        self.parser.StartDoctypeDeclHandler = self._refuse_doctype

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        if next(self._numbers) > _MOST_ELEMENTS:
            raise ValueError(
                f"expected at most {_MOST_ELEMENTS:,} elements, got more {self._where}"
            )
        kind = name.rpartition(":")[2]
        if kind == "c":  # a cell of Excel
            self._row, self._column = self._place(attributes.get("r", ""))
            self._check_excel(self._column)
            self._check_place()
        elif kind in ("table-cell", "covered-table-cell"):  # of OpenDocument
            self._column += _repeated(attributes, "number-columns-repeated")
            if any(name.endswith(":value-type") for name in attributes):
                self._check_place()
        elif kind == "row":
            number = attributes.get("r", "")
            is_number = number.isdecimal() and len(number) < 12
            self._row, self._column = int(number) if is_number else self._row + 1, 0
            self._check_excel(1)
        elif kind == "table-row":
            self._row += _repeated(attributes, "number-rows-repeated")
            self._column = 0
        elif kind == "table":
            self._row = self._last_row = self._last_column = 0
        elif kind in ("mergeCell", "hyperlink"):
            first, _, last = attributes.get("ref", "").partition(":")
            if last:
                (top, left), (bottom, right) = self._place(first), self._place(last)
                self._spanned += max(0, bottom - top + 1) * max(0, right - left + 1)
                check_size(self._spanned, self._where)

    def _refuse_doctype(self, *_: Any) -> None:
        raise ValueError(f"expected a workbook, got a document type {self._where}")

    def _place(self, text: str) -> tuple[int, int]:
        """Row and column of a place such as B3; those of the next cell where it has no name."""
        match = _PLACE.match(text.upper())
        letters, digits = match.groups() if match else ("", "")
        column = 0
        for letter in letters:
            column = 26 * column + ord(letter) - ord("A") + 1
        return int(digits or self._row), column or self._column + 1

    def _check_excel(self, column: int) -> None:
        if self._row > _MOST_ROWS or column > _MOST_COLUMNS:
            raise ValueError(
                f"expected at most {_MOST_ROWS:,} rows and {_MOST_COLUMNS:,} columns, got row "
                f"{self._row:,} and column {column:,} {self._where}"
            )

    def _check_place(self) -> None:
        self._last_row = max(self._last_row, self._row)
        self._last_column = max(self._last_column, self._column)
        check_size(self._last_row * self._last_column, self._where)


def _repeated(attributes: dict[str, str], name: str) -> int:
    for key, value in attributes.items():
        if key.endswith(f":{name}") and value.isdecimal():
            return int(value[:12])
    return 1
