"""WikiTableQuestions, in the layout of its official release (Pasupat and Liang, 2015).

`read_original_rows` and what follows read delimited files as the authors' release of TAPAS does,
for its checkpoints: by the csv module's lenient default dialect, and tables as pandas 1.0 did.
"""

import csv
import io
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from mate_tf.datasets.json_lines import naming
from mate_tf.features.english import normalize_denotation
from mate_tf.reading.text_files import (
    check_columns,
    read_csv_rows,
    read_text,
    stream_csv_records,
)
from mate_tf.tables.table import Question, Table, check_width, remember

_FILES = {
    "train": "random-split-1-train.tsv",
    "dev": "random-split-1-dev.tsv",
    "test": "pristine-unseen-tables.tsv",
}
_ESCAPED = {"n": "\n", "p": "|"}
# What pandas 1.0 reads as a missing value, beside an empty cell.
_WORDS_FOR_MISSING = frozenset(
    "#N/A|#N/A N/A|#NA|-1.#IND|-1.#QNAN|-NaN|-nan|1.#IND|1.#QNAN|<NA>|N/A|NA|NULL|NaN|n/a|nan|null"
    "".split("|")
)


def read_wtq(
    directory: str | Path, split: str, original: bool = False
) -> Iterator[tuple[Table, Question]]:
    """Yields each question with its table; answers are texts (`supervise` finds their cells).

    The folder is the unpacked release, with its folders `data` and `csv`. The split is "train" or
    "dev" (of random split 1), "test", or the name of another file in `data` without its ending.
    Ids are the official ones: "nt-2", and for a table "csv/204-csv/772.csv".

    With `original` it reads as the authors' release of TAPAS does (below). Quotation marks in the
    questions' file swallow some questions (21 of 2,831 in dev), and escapes stay. Ids are
    "nt-2-0_0" and "table_csv/204-772.csv".

    FileNotFoundError if the split or a table is missing; ValueError, with file and line or
    question, if a file differs from the release's format.
    """
    directory = Path(directory)
    path = directory / "data" / _FILES.get(split, f"{split}.tsv")
    read_rows = read_original_questions if original else read_wtq_tsv
    read_table = remember(partial(_read_table, directory, original))
    for row in read_rows(path, ("id", "utterance", "context", "targetValue")):
        text, question_id, answers = row["utterance"], row["id"], row["targetValue"]
        if original:
            question = Question(text, f"{question_id}-0_0", tuple(answers.split("|")))
        else:
            question = Question(unescape(text), question_id, split_list(answers))
        with naming(f"(file '{path}', question '{question_id}')"):
            table = read_table(row["context"])
        yield table, question


def _read_table(directory: Path, original: bool, table_id: str) -> Table:
    """A table of the release by its id, "csv/204-csv/772.csv"."""
    if original:
        header, rows = read_original_table(directory / table_id)
        name = table_id.removeprefix("csv/").replace("/", "-").replace("-csv", "")
        return Table.from_rows(rows, header, f"table_csv/{name}")
    rows = read_csv_rows(directory / table_id, escapechar="\\", doublequote=False)
    return Table.from_rows(rows, table_id=table_id)


def read_wtq_tsv(path: str | Path, columns: Sequence[str]) -> Iterator[dict[str, str]]:
    """Yields the rows of a tab-separated file; errors as `stream_csv_records`."""
    # No quoting: quotation marks belong to the answers.
    rows = stream_csv_records(path, columns, delimiter="\t", quoting=csv.QUOTE_NONE)
    return (row for _, row in rows)


def unescape(text: str) -> str:
    r"""Undoes the escapes of the release: \n is a line break, \p a bar, \\ a backslash."""
    return re.sub(r"\\(.)", lambda match: _ESCAPED.get(match[1], match[1]), text)


def split_list(text: str) -> tuple[str, ...]:
    """Splits a list of values at its bars and undoes the escapes of each."""
    return tuple(map(unescape, text.split("|")))


def read_original_rows(path: str | Path, delimiter: str = ",", escape: bool = False) -> list[list]:
    """Reads all rows. Quotes need not match, rows may differ in length, a blank line is `[]`.

    With `escape` a backslash makes the next character an ordinary one. ValueError if the csv module
    refuses a row.
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
    """Yields the rows of a tab-separated file of questions, by column.

    A value that begins with a quotation mark ends at the next one, even some lines later.
    ValueError if the file lacks one of the columns or a row has fewer values.
    """
    header, *rows = read_original_rows(path, "\t") or [[]]
    check_columns(columns, header, f"(file '{path}', line 1)")
    for number, row in enumerate(filter(None, rows), start=1):
        if len(row) < len(header):
            check_width(row, header, f"(file '{path}', question {number})")
        yield dict(zip(header, row, strict=False))


def read_original_table(path: str | Path) -> tuple[list[str], list[list[str]]]:
    """Reads header and body of a table of WikiTableQuestions; errors as `read_original_rows`.

    Empty cells, words for a missing value such as "N/A", and cells that a short row lacks become
    "nan"; others are normalised as denotations. A repeated column name becomes "x.1", an empty one
    "Unnamed: 3" (counted from 0). A ValueError also if a row is longer than the header.
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
    is_missing = not text or text in _WORDS_FOR_MISSING
    return "nan" if is_missing else normalize_denotation(text, original=True)


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
