"""SQA: sequences of questions about a table, as officially released (Iyyer et al., 2017)."""

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from mate_tf.datasets.json_lines import naming
from mate_tf.datasets.wtq import read_original_questions, read_original_rows
from mate_tf.reading.text_files import read_csv_rows, stream_csv_records
from mate_tf.tables.table import Coordinates, Question, Table, remember

_FILES = {
    "train": "random-split-1-train.tsv",
    "dev": "random-split-1-dev.tsv",
    "train_and_dev": "train.tsv",
}
_COLUMNS = ("id annotator position question table_file answer_coordinates answer_text").split()
_COORDINATES = re.compile(r"\s*\(\s*(-?\d+)\s*,\s*(-?\d+)\s*\)\s*", re.ASCII)


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
    path = directory / _FILES.get(split, f"{split}.tsv")
    read_table = remember(partial(_read_table, directory, original))
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
    rows: Iterable[tuple[str, Mapping[str, str]]]
    if original:
        questions = read_original_questions(path, _COLUMNS)
        rows = ((f"question {number}", row) for number, row in enumerate(questions, start=1))
    else:
        records = stream_csv_records(path, _COLUMNS, delimiter="\t")
        rows = ((f"line {line}", row) for line, row in records)
    sequences: dict[tuple[str, str], dict[int, _Turn]] = {}
    for place, row in rows:
        turn = _turn(row, f"(file '{path}', {place})")
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


def _read_table(directory: Path, original: bool, table_file: str) -> Table:
    path = directory / table_file
    rows = list(filter(None, read_original_rows(path))) if original else read_csv_rows(path)
    return Table.from_rows(rows, table_id=table_file)
