"""Kinds of questions, by their words, and how many of each are answered rightly."""

import json
import os
import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from mate_tf.datasets.supervision import parse_number
from mate_tf.features.normalization import normalize_denotation
from mate_tf.tables.table import ABSENT, Question, Table

HOW_MANY, IN_A_CELL, NOT_IN_A_CELL = "how many", "how many, in a cell", "how many, not in a cell"
# The first that fits says the kind.
_PATTERNS = [
    (kind, re.compile(pattern))
    for kind, pattern in (
        (
            "yes or no",
            r"^(?:is|are|was|were|do|does|did|has|have|had|can|will)\b(?!.*\bor\b)",
        ),
        ("average", r"\b(?:average|mean)\b"),
        (
            "difference",
            r"\bdifference\b|\bhow (?:many|much) (?:\w+ ){0,2}(?:more|less|fewer|longer|older|"
            r"higher|taller|larger)\b|\bhow (?:many|much) .*\b(?:between|from .* to)\b",
        ),
        ("A or B", r"\w+,? or (?!more\b|less\b|fewer\b|higher\b|above\b|below\b)\w+"),
        ("total", r"\b(?:total|sum|combined|altogether|in all)\b"),
        (HOW_MANY, r"\bhow (?:many|often)\b|\bnumber of\b"),
        (
            "next or previous",
            r"\b(?:next|previous|after|before|following|preced\w+|follow\w*|above|below)\b",
        ),
        (
            "superlative",
            r"\b(?:most|least|fewest|highest|lowest|largest|smallest|longest|shortest|biggest|"
            r"greatest|oldest|youngest|earliest|latest|best|worst|fastest|slowest|tallest|top|"
            r"maximum|minimum|cheapest|heaviest|\w{4,}est)\b",
        ),
        ("first, last or nth", r"\b(?:first|last|second|third|fourth|final|\d+(?:st|nd|rd|th))\b"),
    )
]


class OfKind(NamedTuple):
    """How many questions of a kind there are, and how many were answered rightly."""

    questions: int
    right: int


def kind_of(table: Table, question: Question) -> str:
    """The kind of a question with answers, by its words; or that it has none."""
    if question.aggregation == ABSENT:
        return "not in the table"
    text = question.text.lower()
    kind = next((kind for kind, pattern in _PATTERNS if pattern.search(text)), "")
    if kind == HOW_MANY:
        answers = set(map(normalize_denotation, question.answers))
        cells = (normalize_denotation(cell) for row in table.rows for cell in row)
        return IN_A_CELL if any(cell in answers for cell in cells) else NOT_IN_A_CELL
    if not kind and len(question.answers) > 1:
        return "list"
    is_number = len(question.answers) == 1 and parse_number(question.answers[0]) is not None
    return kind or ("look-up, a number" if is_number else "look-up")


def read_kinds(path: str | os.PathLike[str]) -> dict[str, str]:
    """The kinds of questions in a JSON file, an object of question id and kind.

    Raises:
        FileNotFoundError: if the file is missing.
        ValueError: if it is no such object.
    """
    with open(path, encoding="utf-8") as file:
        try:
            kinds = json.load(file)
        except ValueError as error:
            raise ValueError(f"expected a JSON object of kinds in {path}: {error}") from None
    if not isinstance(kinds, dict) or not all(isinstance(kind, str) for kind in kinds.values()):
        raise ValueError(f"expected an object of question ids and kinds in {path}")
    return kinds


def by_kind(
    right: Mapping[str, bool],
    pairs: Iterable[tuple[Table, Question]],
    kinds: Mapping[str, str] | None = None,
) -> dict[str, OfKind]:
    """How many questions of each kind there are and are right, the most frequent kind first.

    Args:
        right: by question id.
        pairs: the questions with their tables and answers.
        kinds: by question id; None for those of the words. "other" is what it lacks.
    """
    found: dict[str, OfKind] = {}
    for table, question in pairs:
        id_ = question.question_id
        kind = kind_of(table, question) if kinds is None else kinds.get(id_, "other")
        before = found.get(kind, OfKind(0, 0))
        found[kind] = OfKind(before.questions + 1, before.right + right[id_])
    return dict(sorted(found.items(), key=lambda item: -item[1].questions))
