"""WikiTableQuestions, in the layout of its official release (Pasupat and Liang, 2015)."""

import re
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from mate_tf.datasets.json_lines import naming
from mate_tf.datasets.original_tables import read_original_questions, read_original_table
from mate_tf.tables.table import Question, Table, remember
from mate_tf.tables.text_files import read_csv_rows, stream_lines

_FILES = {
    "train": "random-split-1-train.tsv",
    "dev": "random-split-1-dev.tsv",
    "test": "pristine-unseen-tables.tsv",
}
_ESCAPED = {"n": "\n", "p": "|"}


def read_wtq(
    directory: str | Path, split: str, original: bool = False
) -> Iterator[tuple[Table, Question]]:
    """Yields each question with its table; answers are texts (`supervise` finds their cells).

    Cells are as in the files. Ids are the official ones: "nt-2" for a question,
    "csv/204-csv/772.csv" for a table.

    Args:
        directory: the unpacked release, with its folders `data` and `csv`.
        split: "train" and "dev" (of random split 1), "test", or the name of another file in
            `data` without its ending, such as "random-split-2-dev".
        original: whether to read as the authors' release of TAPAS does (original_tables.py), and as
            its checkpoints were trained. An empty cell is "nan", other cells are normalised, and
            column names are made distinct. Quotation marks in the questions' file swallow some
            questions (21 of 2,831 in dev), and escapes stay. Ids are "nt-2-0_0" and
            "table_csv/204-772.csv".

    Raises:
        FileNotFoundError: if the split or a table is missing.
        ValueError: if a file differs from the release's format. It names file and line, or the
            question whose table is malformed.
    """
    directory = Path(directory)
    path = directory / "data" / _FILES.get(split, f"{split}.tsv")
    read_rows = read_original_questions if original else read_wtq_tsv
    read_table = remember(partial(_read_original_table if original else read_wtq_table, directory))
    for row in read_rows(path, ("id", "utterance", "context", "targetValue")):
        text, question_id, answers = row["utterance"], row["id"], row["targetValue"]
        if original:
            question = Question(text, f"{question_id}-0_0", tuple(answers.split("|")))
        else:
            question = Question(unescape(text), question_id, split_list(answers))
        with naming(f"(file '{path}', question '{question_id}')"):
            table = read_table(row["context"])
        yield table, question


def read_wtq_table(directory: str | Path, table_id: str) -> Table:
    """A table of the release by its id, "csv/204-csv/772.csv".

    Raises:
        FileNotFoundError: if there is no such table.
        ValueError: if it is malformed.
    """
    rows = read_csv_rows(Path(directory) / table_id, escapechar="\\", doublequote=False)
    return Table.from_rows(rows, table_id=table_id)


def read_wtq_tsv(path: str | Path, columns: Sequence[str]) -> Iterator[dict[str, str]]:
    """Yields the rows of one of the release's tab-separated files; values are still escaped.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if the file lacks one of `columns`, or a line has another number of values
            than the header.
    """
    lines = (line.removesuffix("\n") for line in stream_lines(path))
    header = next(lines, "").split("\t")
    if missing := [name for name in columns if name not in header]:
        raise ValueError(f"expected the columns {missing}, got {header} (file '{path}', line 1)")
    for number, line in enumerate(lines, start=2):
        if not line:
            continue
        values = line.split("\t")  # no quoting: quotation marks belong to the answers
        if len(values) != len(header):
            raise ValueError(
                f"expected {len(header)} values, got {len(values)} (file '{path}', line {number})"
            )
        yield dict(zip(header, values, strict=True))


def unescape(text: str) -> str:
    r"""Undoes the escapes of the release: \n is a line break, \p a bar, \\ a backslash."""
    return re.sub(r"\\(.)", lambda match: _ESCAPED.get(match[1], match[1]), text)


def split_list(text: str) -> tuple[str, ...]:
    """Splits a list of values at its bars and undoes the escapes of each."""
    return tuple(map(unescape, text.split("|")))


def _read_original_table(directory: Path, table_id: str) -> Table:
    header, rows = read_original_table(directory / table_id)
    name = table_id.removeprefix("csv/").replace("/", "-").replace("-csv", "")
    return Table.from_rows(rows, header, f"table_csv/{name}")
