"""The report of an evaluation beside its scores: kinds of questions, and tables in Markdown."""

import collections
import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from mate_tf.answers.answer import Answer
from mate_tf.datasets.supervision import parse_number
from mate_tf.features.english import normalize_denotation, says
from mate_tf.reading.text_files import read_json
from mate_tf.tables.operators import ABSENT
from mate_tf.tables.table import Question, Table

NUM_SHOWN = 10  # answers of an evaluation
HOW_MANY, IN_A_CELL, NOT_IN_A_CELL = "how many", "how many, in a cell", "how many, not in a cell"
# The first of which the words have a meaning is the kind.
_MEANINGS = {
    "yes or no": ("yes or no",),
    "average": ("average",),
    "difference": ("difference",),
    "A or B": ("one of two",),
    "total": ("total",),
    HOW_MANY: ("how many",),
    "next or previous": ("next", "previous"),
    "superlative": ("superlative",),
    "first, last or nth": ("first", "last", "second or so"),
}


class KindCounts(NamedTuple):
    """How many questions of a kind there are, and how many were answered rightly."""

    questions: int
    right: int


def kind_of(table: Table, question: Question) -> str:
    """The kind of a question with answers, by its words; or that it has none."""
    if question.aggregation == ABSENT:
        return "not in the table"
    text = question.text.lower()
    kind = next((kind for kind, meanings in _MEANINGS.items() if says(text, *meanings)), "")
    if kind == HOW_MANY:
        answers = set(map(normalize_denotation, question.answers))
        cells = (normalize_denotation(cell) for row in table.rows for cell in row)
        return IN_A_CELL if any(cell in answers for cell in cells) else NOT_IN_A_CELL
    if not kind and len(question.answers) > 1:
        return "list"
    is_number = len(question.answers) == 1 and parse_number(question.answers[0]) is not None
    return kind or ("look-up, a number" if is_number else "look-up")


def find_kinds(name: str, predictions: Mapping[str, Answer]) -> dict[str, str]:
    """The kind of each question by its id.

    Args:
        name: "confidence" for how sure its answer is said to be, or "refused"; "ids" for what
            stands behind its id's last colon; or a JSON file with an object of ids and kinds.
        predictions: the answers by the questions' ids.

    ValueError if the file has anything else.
    """
    if name == "confidence":
        return {id_: it.confidence if it.answered else "refused" for id_, it in predictions.items()}
    if name == "ids":
        return {id_: id_.rpartition(":")[2] for id_ in predictions}
    kinds = read_json(name)
    if not isinstance(kinds, dict) or not all(isinstance(kind, str) for kind in kinds.values()):
        raise ValueError(f"expected an object of question ids and kinds in {name}")
    return kinds


def by_kind(
    right: Mapping[str, bool],
    pairs: Iterable[tuple[Table, Question]],
    kinds: Mapping[str, str] | None = None,
) -> dict[str, KindCounts]:
    """How many questions of each kind there are and are right, the most frequent kind first.

    `right` and `kinds` are by question id; without kinds they are those of the words.
    """
    verdicts: dict[str, list[bool]] = collections.defaultdict(list)
    for table, question in pairs:
        id_ = question.question_id
        kind = kind_of(table, question) if kinds is None else kinds.get(id_, "other")
        verdicts[kind].append(right[id_])
    counts = {kind: KindCounts(len(each), sum(each)) for kind, each in verdicts.items()}
    return dict(sorted(counts.items(), key=lambda item: -item[1].questions))


class ShownAnswer(NamedTuple):
    """A question's text, right answer and predicted one, for a person to judge."""

    question: str
    gold: str
    predicted: str
    cells: Iterable[tuple[int, int]]  # (row, column) of the body, counted from zero
    is_right: bool


def answers_table(answers: Iterable[ShownAnswer]) -> str:
    """A row for each answer, which may also be the list that JSON makes of it."""
    rows = [
        (
            question,
            gold,
            predicted,
            ", ".join(f"({row}, {column})" for row, column in cells),
            "yes" if is_right else "no",
        )
        for question, gold, predicted, cells, is_right in answers
    ]
    return _table(("question", "gold", "predicted", "cells (row, column)", "right"), rows)


def confusion_table(
    golds: Sequence[str], predicted: Sequence[str], names: Sequence[str] = ()
) -> str:
    """How often each gold name (rows) was taken for each name (columns).

    Rows and columns are in the order of `names`; other names follow.
    """
    names = list(dict.fromkeys([*names, *golds, *predicted]))
    counts = collections.Counter(zip(golds, predicted, strict=True))
    rows = [(gold, *(str(counts[gold, name]) for name in names)) for gold in names]
    return _table((r"gold \ predicted", *names), rows)


def evaluations_table(evaluations: Sequence[Mapping[str, float]]) -> str:
    """A row for each evaluation of a run, each with its "step" and some of the metrics."""
    names = [name for name in dict.fromkeys(itertools.chain(*evaluations)) if name != "step"]
    rows = [
        (str(one["step"]), *(f"{one[name]:.4f}" if name in one else "" for name in names))
        for one in evaluations
    ]
    return _table(("step", *names), rows)


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "".join(f"| {' | '.join(map(_cell, line))} |\n" for line in lines)


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", r"\|")
