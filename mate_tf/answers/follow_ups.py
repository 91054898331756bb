"""Follow-up questions: they are about the rows of the answer before, or about the whole table.

After "which missions flew in 1969?" the question "who commanded them?" is about two rows, and the
other ones mislead a small model. "And in 1971?" is about others. Either way the cells of the answer
before are marked.

The rules and words were chosen on SQA's training questions. Of 592 about a table with more rows
than the answer before has, 331 are right by the whole table and 378 by the rules.
"""

import dataclasses
from collections.abc import Sequence
from typing import NamedTuple

from mate_tf.answers.answer import Answer
from mate_tf.answers.long_tables import Long
from mate_tf.features.english import says
from mate_tf.features.normalization import normalize_words
from mate_tf.tables.table import Question, Table, check_coordinates


@dataclasses.dataclass(frozen=True)
class FollowUp(Question):
    """A question about the answer before it, which its previous coordinates and answers hold.

    Attributes:
        is_sure: whether that answer was given and not called "not sure".
    """

    is_sure: bool = True


def follow_up(question: Question, previous: Answer) -> FollowUp:
    """The question as one about an answer; where that was not given, about the best guess."""
    guess = previous.guess
    return FollowUp(
        **vars(question)
        | {
            "previous_coordinates": guess.coordinates,
            "previous_answers": guess.items,
            "is_sure": previous.answered and previous.confidence != "not sure",
        }
    )


class View(NamedTuple):
    """The part of a table that a question looks at."""

    rows: tuple[int, ...] | None  # of the whole table; None for all
    table: Table | None
    question: Question
    long: Long | None = None  # the table from which the rows of `table` are chosen


def views_of(table: Table | None, question: Question) -> list[View]:
    """One view, or two of which the second counts where the first has no answer.

    ValueError if the answer before has cells beyond the table.
    """
    whole = View(None, table, question)
    if table is None or not isinstance(question, FollowUp):
        return [whole]
    check_coordinates(table, question)
    before = question.previous_coordinates
    rows = tuple(sorted({row for row, _ in before}))
    is_one = len(rows) == 1
    needs_whole = _is_about_others(question, table, rows[0]) if is_one else not question.is_sure
    if needs_whole or len(rows) in (0, table.num_rows):
        return [whole]
    # What was computed from cells is in none of them: marks would lead to their column.
    is_computed = question.previous_answers not in ((), tuple(table.rows[r][c] for r, c in before))
    marks = () if is_computed else tuple((rows.index(row), column) for row, column in before)
    part = dataclasses.replace(question, previous_coordinates=marks)
    return [View(rows, table.with_rows(rows), part), whole]


def _is_about_others(question: Question, table: Table, before: int) -> bool:
    """Whether a question compares a row with others or names a cell that is not in it."""
    text = normalize_words(question.text)
    # After several rows such words compare these with each other ("which of them is the oldest?").
    if says(text, "others"):
        return True
    here = set(map(normalize_words, table.rows[before]))
    cells = {normalize_words(cell) for row in table.rows for cell in row}
    return any(
        f" {cell} " in f" {text} " for cell in cells - here if len(cell) > 1 or cell.isdigit()
    )


def better(question: str, rows_answer: Answer, whole_answer: Answer) -> Answer:
    """The answer to a follow-up that has none in its rows.

    Where it refers to the answer before, the guess from these rows is better than what the whole
    table gives. It is the answer unless the whole table has none either.
    """
    if not rows_answer.alternatives or not says(question.lower(), "it or them"):
        return whole_answer
    if not whole_answer.answered:
        return rows_answer
    guess, *others = rows_answer.alternatives
    return dataclasses.replace(guess, alternatives=tuple(others))


def in_whole(answer: Answer, rows: Sequence[int]) -> Answer:
    """An answer from some rows of a table, with its cells where the whole table has them."""
    cells = (dataclasses.replace(cell, row=rows[cell.row]) for cell in answer.cells)
    others = (in_whole(other, rows) for other in answer.alternatives)
    return dataclasses.replace(answer, cells=tuple(cells), alternatives=tuple(others))
