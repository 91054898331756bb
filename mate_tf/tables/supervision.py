"""Weak supervision: from the texts of an answer to the cells and the number they stand for."""

import re
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache

from mate_tf.tables.normalization import normalize_denotation
from mate_tf.tables.table import Coordinates, Question, Table

_NUMBER = re.compile(r"[+-]?(?:\d{1,3}(?:,\d{3})+|\d+)?(?:(?<=\d)\.|\.\d+)?", re.ASCII)


class SupervisionError(ValueError):
    """An answer does not say which cells or number it stands for.

    Attributes:
        reason: "answer not found", "ambiguous answer" or "some answers not found".
    """

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason = reason


def supervise(table: Table, question: Question, strict: bool = True) -> Question:
    """Finds the cells and the number of a question's answer (Herzig et al., 2020, section 3).

    Each answer text is looked for among the body cells, compared as WikiTableQuestions compares
    denotations. A single answer that is a number also sets `answer_number`; it need not be in any
    cell. Supervision that the question already has is kept as it is.

    Args:
        table: the table that the question is about.
        question: a question with answers.
        strict: whether an answer found in more cells than it is given times is an error, as is
            right for training; otherwise its last cells are taken, as the original does to
            evaluate.

    Returns:
        The question with `answer_coordinates` and `answer_number`.

    Raises:
        SupervisionError: if an answer is not found, or in too many cells.
    """
    if question.answer_coordinates or question.answer_number is not None:
        return question
    number = parse_number(question.answers[0]) if len(question.answers) == 1 else None
    coordinates: list[tuple[int, int]] = []
    missing = []
    for text, count in Counter(map(_comparable, question.answers)).items():
        cells = _cells_by_text(table).get(text, ())
        if strict and len(cells) > count:
            raise _error("ambiguous answer", f"{text!r} is in {len(cells)} cells", table, question)
        coordinates += cells[-count:]
        if not cells:
            missing.append(text)
    if not coordinates and number is None:
        detail = f"no cell holds any of {list(question.answers)}"
        raise _error("answer not found", detail, table, question)
    if coordinates and missing:
        raise _error("some answers not found", f"no cell holds {missing}", table, question)
    return replace(question, answer_coordinates=tuple(coordinates), answer_number=number)


def parse_number(text: str) -> float | None:
    """Reads a text that is one plain number, with or without thousands separators."""
    text = text.strip()
    if not _NUMBER.fullmatch(text) or not any(map(str.isdigit, text)):
        return None
    return float(text.replace(",", ""))


@lru_cache(maxsize=2048)  # a data set asks several questions of each table, in any order
def _cells_by_text(table: Table) -> Mapping[str, Coordinates]:
    cells: defaultdict[str, Coordinates] = defaultdict(tuple)
    for i, row in enumerate(table.rows):
        for j, cell in enumerate(row):
            if text := _comparable(cell):
                cells[text] += ((i, j),)
    return dict(cells)


def _comparable(text: str) -> str:
    return normalize_denotation(" ".join(text.split()))  # a note may stand on a line of its own


def _error(reason: str, detail: str, table: Table, question: Question) -> SupervisionError:
    where = f"(table '{table.table_id}', question '{question.question_id}')"
    return SupervisionError(reason, f"{detail} {where}")
