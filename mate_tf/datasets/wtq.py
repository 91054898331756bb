"""WikiTableQuestions (Pasupat and Liang, 2015), and SQA: sequences about its tables.

Both are read as officially released; of SQA see Iyyer et al., 2017.

`read_original_rows` and what follows read delimited files as the authors' release of TAPAS does,
for its checkpoints: by the csv module's lenient default dialect, and tables as pandas 1.0 did.
"""

import ast
import csv
import io
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from mate_tf.datasets.json_lines import naming
from mate_tf.features.english import normalize_denotation
from mate_tf.reading.text_files import (
    check_columns,
    read_csv_rows,
    read_text,
    stream_csv_records,
)
from mate_tf.tables.table import Coordinates, Question, Table, check_width, remember

_FILES = {
    "train": "random-split-1-train.tsv",
    "dev": "random-split-1-dev.tsv",
    "test": "pristine-unseen-tables.tsv",
}
_SQA_FILES = _FILES | {"train_and_dev": "train.tsv", "test": "test.tsv"}
_SQA_COLUMNS = "id annotator position question table_file answer_coordinates answer_text".split()
_COORDINATES = re.compile(r"\s*\(\s*(-?\d+)\s*,\s*(-?\d+)\s*\)\s*", re.ASCII)
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


class _Turn(NamedTuple):
    """A question, its place in its sequence, and its line, for errors."""

    sequence: tuple[str, str]  # the id, and the table's file
    position: int
    question: Question
    where: str


def read_sqa(
    directory: str | Path, split: str, original: bool = False
) -> Iterator[tuple[Table, Question]]:
    """Yields the questions of each sequence in order, with the cells that answer them.

    Each question except a sequence's first has the cells and texts of the previous answer. An
    answer may have cells outside of the table's body, such as (-1, 0) in the header. Then its
    question has no cells, and the next question has those that are inside.

    The folder is the unpacked release, with its .tsv files and its folder `table_csv`. Splits are
    those of `read_wtq`, and "train_and_dev". "nt-639-0_1" is question 1, counted from 0, of
    sequence "nt-639" by annotator 0. The columns "aggregation", "float_answer" and "class_index" of
    TAPAS's release are read if they exist. With `original` it reads as that release does: sequences
    sorted by id, and quotation marks that need not match. Errors are those of `read_wtq`, and
    ValueError for a position that comes twice.
    """
    directory = Path(directory)
    path = directory / _SQA_FILES.get(split, f"{split}.tsv")
    read_table = remember(partial(_read_sqa_table, directory, original))
    for turns in _sequences(path, original):
        previous: Coordinates = ()
        previous_answers: tuple[str, ...] = ()
        for turn in turns:
            with naming(turn.where):
                table = read_table(turn.sequence[1])
            answer = turn.question.answer_coordinates
            inside = tuple(
                (row, column)
                for row, column in answer
                if 0 <= row < table.num_rows and 0 <= column < table.num_columns
            )
            question = replace(
                turn.question,
                answer_coordinates=answer if inside == answer else (),
                previous_coordinates=previous,
                previous_answers=previous_answers,
            )
            yield table, question
            previous, previous_answers = inside, turn.question.answers


def split_question_id(question_id: str) -> tuple[str, int]:
    """A question's sequence and position: "nt-639-0" and 1 for "nt-639-0_1", or a ValueError."""
    sequence, separator, position = question_id.rpartition("_")
    if not separator or not (position.isascii() and position.isdigit()):
        expected = "expected the id of a question in a sequence, such as 'nt-639-0_1'"
        raise ValueError(f"{expected}, got '{question_id}'")
    return sequence, int(position)


def _sequences(path: Path, original: bool) -> Iterator[list[_Turn]]:
    """The turns of each sequence by position; with `original` sorted by sequence, too."""
    rows: Iterable[tuple[int, Mapping[str, str]]]
    if original:
        unit, rows = "question", enumerate(read_original_questions(path, _SQA_COLUMNS), start=1)
    else:
        unit, rows = "line", stream_csv_records(path, _SQA_COLUMNS, delimiter="\t")
    sequences: dict[tuple[str, str], dict[int, _Turn]] = {}
    for number, row in rows:
        turn = _turn(row, f"(file '{path}', {unit} {number})")
        turns = sequences.setdefault(turn.sequence, {})
        if turn.position in turns and not original:
            expected = f"expected each position of the sequence '{turn.sequence[0]}' once"
            raise ValueError(f"{expected}, got position {turn.position} again {turn.where}")
        turns[turn.position] = turn
    for name in sorted(sequences) if original else sequences:
        yield [turn for _, turn in sorted(sequences[name].items())]


def _turn(row: Mapping[str, str], where: str) -> _Turn:
    with naming(where):
        sequence_id = f"{row['id']}-{row['annotator']}"
        position = _number(row, "position")
        question = Question(
            row["question"],
            f"{sequence_id}_{position}",
            answers=_texts(row["answer_text"]),
            answer_coordinates=tuple(sorted(map(_pair, _texts(row["answer_coordinates"])))),
            answer_number=_number(row, "float_answer", float) if row.get("float_answer") else None,
            aggregation=row.get("aggregation", "").strip().upper() or "NONE",
            class_index=_number(row, "class_index") if row.get("class_index") else None,
        )
    return _Turn((sequence_id, row["table_file"]), position, question, where)


def _number(row: Mapping[str, str], column: str, kind: type = int) -> Any:
    try:
        return kind(row[column])
    except ValueError:
        raise ValueError(f"expected a number as {column}, got {row[column]!r}") from None


def _texts(literal: str) -> tuple[str, ...]:
    """The texts of a list in Python's notation: "['a', 'b']"."""
    try:
        texts = ast.literal_eval(literal)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        texts = None
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise ValueError(f"expected a list of texts in Python's notation, got {literal!r}")
    return tuple(texts)


def _pair(text: str) -> tuple[int, int]:
    if match := _COORDINATES.fullmatch(text):
        return int(match[1]), int(match[2])
    raise ValueError(f"expected a row and a column such as '(0, 1)', got {text!r}")


def _read_sqa_table(directory: Path, original: bool, table_file: str) -> Table:
    path = directory / table_file
    rows = list(filter(None, read_original_rows(path))) if original else read_csv_rows(path)
    return Table.from_rows(rows, table_id=table_file)
