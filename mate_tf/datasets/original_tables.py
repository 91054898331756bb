"""Delimited files as the authors' release of TAPAS reads them, for its checkpoints.

The release reads tables and questions with Python's csv module in its lenient default dialect, and
the tables of WikiTableQuestions with pandas 1.0 first. This module computes what pandas makes of a
file, so that pandas is not needed and its version does not matter.
"""

import csv
import io
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from mate_tf.features.normalization import normalize_denotation
from mate_tf.tables.text_files import check_width, read_text

_MISSING = "nan"
# What pandas 1.0 reads as a missing value, beside an empty cell.
_WORDS_FOR_MISSING = frozenset(
    "#N/A|#N/A N/A|#NA|-1.#IND|-1.#QNAN|-NaN|-nan|1.#IND|1.#QNAN|<NA>|N/A|NA|NULL|NaN|n/a|nan|null"
    "".split("|")
)


def read_original_rows(path: str | Path, delimiter: str = ",", escape: bool = False) -> list[list]:
    """Reads all rows. Quotes need not match, rows may differ in length, a blank line is `[]`.

    Args:
        path: a UTF-8 file.
        delimiter: "," for SQA's tables, "#" for TabFact's.
        escape: whether a backslash makes the next character an ordinary one.

    Raises:
        FileNotFoundError, ValueError: as `read_text`, and if the csv module refuses a row.
    """
    lines = io.StringIO(read_text(path), newline="")
    reader = csv.reader(lines, delimiter=delimiter, escapechar="\\" if escape else None)
    try:
        return list(reader)
    except csv.Error as error:
        raise ValueError(
            f"expected delimited text, got: {error} (file '{path}', line {reader.line_num})"
        ) from None


def read_original_questions(path: str | Path, columns: Sequence[str]) -> Iterator[dict[str, str]]:
    """Yields the rows of a tab-separated file of questions, by column, with quoting.

    A value that begins with a quotation mark ends at the next one, even some lines later, and
    includes everything between. Balanced quotation marks disappear.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if the file lacks one of `columns`, or a row has fewer values.
    """
    header, *rows = read_original_rows(path, "\t") or [[]]
    if missing := [name for name in columns if name not in header]:
        raise ValueError(f"expected the columns {missing}, got {header} (file '{path}', line 1)")
    for number, row in enumerate(filter(None, rows), start=1):
        if len(row) < len(header):
            check_width(row, header, f"(file '{path}', question {number})")
        yield dict(zip(header, row, strict=False))


def read_original_table(path: str | Path) -> tuple[list[str], list[list[str]]]:
    """Reads header and body of a table of WikiTableQuestions.

    Empty cells, pandas' words for a missing value such as "N/A", and cells that a short row lacks
    become "nan". Other cells are normalised as denotations. A repeated column name becomes "x.1",
    an empty one "Unnamed: 3" (counted from 0).

    Raises:
        FileNotFoundError, ValueError: as `read_original_rows`, and if a row is longer than the
            header or the file is empty.
    """
    rows = [row for row in read_original_rows(path, escape=True) if any(map(str.strip, row))]
    if not rows:
        raise ValueError(f"expected a table, got an empty file ('{path}')")
    header, *body = rows
    for number, row in enumerate(body, start=1):
        row += [""] * (len(header) - len(row))
        check_width(row, header, f"(file '{path}', row {number})")
    return _distinct_names(header), [list(map(_cell, row)) for row in body]


def _cell(text: str) -> str:
    missing = not text or text in _WORDS_FOR_MISSING
    return _MISSING if missing else normalize_denotation(text, original=True)


def _distinct_names(header: Sequence[str]) -> list[str]:
    uses: Counter[str] = Counter()
    names = []
    for column, given in enumerate(header):
        name = given or f"Unnamed: {column}"
        while count := uses[name]:
            uses[name] += 1
            name = f"{name}.{count}"
        uses[name] += 1
        names.append(name)
    return names
