"""The part of a table that a question looks at: all of it, or some of its rows.

A follow-up is about the rows of the answer before, or about the whole table. After "which missions
flew in 1969?" the question "who commanded them?" is about two rows, and the other ones mislead a
small model. "And in 1971?" is about others. Either way the cells of the answer before are marked.
Of 592 such questions of SQA's training split, by which the rules and words were chosen, 331 are
right by the whole table and 378 by the rules.

Of a table that is longer than the model, the rows that the question needs are read
(features/row_choice.py). Where the answer counts, adds or lists rows, it is about the others too:
rows of one kind are alike to the question, so where the model selects most of a kind, it would
select them all. Kinds of which it selects a part are read on, while there is time.

Shapes: R rows of a table.
"""

import dataclasses
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from mate_tf.answers.answer import Answer, SelectedCell, answer_of_cells
from mate_tf.features.english import normalize_words, says
from mate_tf.features.row_choice import RowChoice
from mate_tf.tables.operators import OPERATORS
from mate_tf.tables.table import Coordinates, Question, Table, check_coordinates

_FEW, _MOST = 0.25, 0.7  # of a kind that the model selects
_OF_ALL = ("COUNT", "DISTINCT", "SUM", "AVERAGE")  # others are about the extremes, which are read


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


class Long(NamedTuple):
    """A table that is longer than the model, and the rows of it that a question needs."""

    table: Table
    choice: RowChoice


class View(NamedTuple):
    """The part of a table that a question looks at."""

    rows: tuple[int, ...] | None  # of the whole table; None for all
    table: Table | None
    question: Question
    long: Long | None = None  # the table from which the rows of `table` are chosen

    def of_rows(self, rows: Sequence[int], marks: Coordinates) -> "View":
        """The view of some rows of the table, with those of the marked cells that are in them."""
        assert self.table is not None
        places = {row: place for place, row in enumerate(rows)}
        marks = tuple((places[row], column) for row, column in marks if row in places)
        question = dataclasses.replace(self.question, previous_coordinates=marks)
        return self._replace(table=self.table.with_rows(rows), question=question)


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
    return [whole.of_rows(rows, () if is_computed else before)._replace(rows=rows), whole]


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


def put_together(
    table: Table,
    choice: RowChoice,
    answer: Answer,
    ask: Callable[[Sequence[int]], Answer],
    is_late: Callable[[], bool],
) -> Answer:
    """The answer about a whole table, from that about its chosen rows.

    Its cells are those of the whole table. `ask` answers the same question about other rows; it is
    called until all that count are read or `is_late`. `Answer.coverage` says what was read.
    """
    selected, read = np.zeros((2, table.num_rows), bool)  # [R]
    read[list(choice.rows)] = True
    is_of_all = answer.aggregation in _OF_ALL
    columns = {cell.column for cell in answer.cells}
    is_list = answer.aggregation != "NONE" or len(answer.cells) > 1
    if not is_list or len(columns) != 1 or OPERATORS[answer.aggregation].of_two:
        return _covering(answer, table, read, lacks_rows=is_of_all)
    (column,) = columns
    sizes = np.bincount(choice.kinds)
    own = {cell.row: cell for cell in answer.cells}
    selected[list(own)] = True
    while True:
        num_read = np.bincount(choice.kinds[read], minlength=len(sizes))
        shares = np.bincount(choice.kinds[selected], minlength=len(sizes)) / np.maximum(num_read, 1)
        is_clear = (num_read < sizes) & (shares >= _MOST)  # its other rows are like those read
        is_open = (num_read < sizes) & ~is_clear & (shares > (_FEW if is_clear.any() else 0.0))
        unread = np.flatnonzero(is_open[choice.kinds] & ~read)
        if not is_of_all or not len(unread) or is_late():
            break
        window = unread[: choice.capacity].tolist()
        read[window] = True
        selected[[cell.row for cell in ask(window).cells if cell.column == column]] = True
    if is_clear.any():
        is_known = (num_read == sizes) | is_open
        selected = np.where(is_known[choice.kinds], selected, is_clear[choice.kinds])
    score = float(np.mean([cell.score for cell in answer.cells]))
    cells = tuple(
        own.get(row) or SelectedCell(row, column, table.rows[row][column], score)
        for row in np.flatnonzero(selected).tolist()
    )
    computed = answer_of_cells(table, cells, answer.aggregation, answer.score)
    if computed is not None:
        names = ("items", "cells", "value", "number", "note")
        answer = dataclasses.replace(answer, **{name: getattr(computed, name) for name in names})
    return _covering(answer, table, read, lacks_rows=is_of_all and len(unread) > 0)


def _covering(answer: Answer, table: Table, read: np.ndarray, lacks_rows: bool) -> Answer:
    number = int(read.sum())
    coverage = f"read {number:,} of {table.num_rows:,} rows, chosen by the question"
    answer = dataclasses.replace(answer, rows_dropped=table.num_rows - number, coverage=coverage)
    if not lacks_rows:
        return answer
    return dataclasses.replace(
        answer, coverage=f"{coverage}; the answer lacks others", confidence="not sure"
    )
