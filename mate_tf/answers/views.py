"""The rows that a question looks at: all, those of the answer before, or those that words name.

A follow-up is about the rows of the answer before, or about the whole table. After "which missions
flew in 1969?" the question "who commanded them?" is about two rows, and the other ones mislead a
small model. "And in 1971?" is about others. Either way the cells of the answer before are marked.
Of 592 such questions of SQA's training split, by which the rules and words were chosen, 331 are
right by the whole table and 378 by the rules.

Of a table that is longer than the model, the rows that the question needs are read
(features/row_choice.py). Where the answer counts, adds or lists rows, it is about the others too:
rows of one kind are alike to the question, so where the model selects most of a kind, it would
select them all. Kinds of which it selects a part are read on, while there is time.

A small model often finds the column of an answer and not its rows. A rule of words stands here if,
alone, it gives five more right answers of 1,000 about tables that the model was not trained on, of
WikiTableQuestions or of experiments/demo_data/people/dev.jsonl, and harms neither: the row beside
one that is mentioned (24 and 17 of 1,000), an extreme (0 and 11), the rows beyond a value (1 and 8)
and those that meet all conditions (4 and 6).

Shapes: R rows and C columns of a table.
"""

import dataclasses
import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from mate_tf.answers.answer import Answer, SelectedCell, TableFacts, answer_of_cells
from mate_tf.features import english
from mate_tf.features.english import normalize_words, says
from mate_tf.features.numeric import EQUAL, GREATER, LESS
from mate_tf.features.row_choice import RowChoice
from mate_tf.tables.operators import OPERATORS
from mate_tf.tables.table import Coordinates, Question, Table, check_coordinates

_FEW, _MOST = 0.25, 0.7  # of a kind that the model selects
_NAMED = 0.5  # the share of a column's name that the question has
_KIND_BONUS = 0.6  # what the kind of a column adds to that where its value is asked about
_RANKED = 0.6  # the share of a column's cells that have a value
_COMPARABLE = 0.6  # the share of a column's cells that compare with the value
# How the value may compare with a cell's, as bits of `numeric_relations`.
_ALLOWED = {
    "at most": EQUAL | GREATER,
    "at least": EQUAL | LESS,
    "over": LESS,
    "under": GREATER,
}
# With these, the words ask for more than one step, or for no row.
_NOT_ALONE = ("an amount", "or", "not", "but", "average", "total", "difference")
_NTH = {"second most": 2, "third most": 3, "fourth most": 4}
# Columns in which the least is the best.
_RANKS = re.compile(r"\b(?:rank\w*|pos|position|place|no|finish\w*|seed|result|score)\b|#")
_NUMBERED = re.compile(r"[a-z]{4,} \d+")  # a name with a number, not the value of a question


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

    def only_rows(self, rows: Sequence[int], marks: Coordinates) -> "View":
        """The view of some rows of the table, with those of the marked cells that are in them."""
        assert self.table is not None
        kept = {row: index for index, row in enumerate(rows)}
        marks = tuple((kept[row], column) for row, column in marks if row in kept)
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
    return [whole.only_rows(rows, () if is_computed else before)._replace(rows=rows), whole]


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
    operator = OPERATORS[answer.aggregation]
    columns = {cell.column for cell in answer.cells}
    is_list = answer.aggregation != "NONE" or len(answer.cells) > 1
    if not is_list or len(columns) != 1 or operator.takes_two:
        return _covering(answer, table, read, lacks_rows=operator.needs_every_row)
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
        if not operator.needs_every_row or not len(unread) or is_late():
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
    lacks_rows = operator.needs_every_row and len(unread) > 0
    return _covering(answer, table, read, lacks_rows)


def _covering(answer: Answer, table: Table, read: np.ndarray, lacks_rows: bool) -> Answer:
    number = int(read.sum())
    coverage = f"read {number:,} of {table.num_rows:,} rows, chosen by the question"
    if lacks_rows:
        coverage += "; the answer lacks others"
        answer = dataclasses.replace(answer, confidence="not sure")
    return dataclasses.replace(answer, rows_dropped=table.num_rows - number, coverage=coverage)


class NamedRow(NamedTuple):
    """The row that words name."""

    row: int
    possible: np.ndarray  # bool [R], rows that the words allow; a sure model keeps its row there


def row_in_words(question: str, facts: TableFacts, column: int) -> NamedRow | None:
    """The row that the words name for an answer in a column; None for none or several."""
    text = question.lower()
    nth = next((n for words, n in _NTH.items() if says(text, words)), 1)
    whole = np.where(facts.mentioned >= 1.0, facts.num_tokens, 0.0)  # [R, C]
    mentions = whole.max(axis=1)
    longest = (mentions == mentions.max()) & (mentions > 0)  # [R]
    every = np.ones(len(whole), bool)
    if says(text, *_NOT_ALONE):
        return None
    is_next, is_previous = says(text, "next"), says(text, "previous")
    if is_next != is_previous and not says(text, "superlative"):
        row = _only(longest)
        step = 1 if is_next else -1
        is_there = row is not None and 0 <= row + step < len(whole)
        return NamedRow(row + step, every) if row is not None and is_there else None
    if is_next or is_previous or says(text, "at least", "at most"):
        return None
    among = longest if longest.sum() > 1 else every
    beyond = rows_beyond(question, facts)
    among = among & beyond if beyond is not None and (among & beyond).any() else among
    row = _extreme(text, facts, column, among, nth)
    return None if row is None else NamedRow(row, among & (nth == 1))


def _extreme(text: str, facts: TableFacts, column: int, among: np.ndarray, nth: int) -> int | None:
    """The row with the nth largest or smallest value in the column that is meant, among some rows.

    It is the column that is mentioned, or else the one of the kind, or that of times.
    """
    is_ranked = (facts.ranks > 0).mean(axis=0) >= _RANKED  # [C]
    names = [name.lower() for name in facts.table.header]
    is_place = np.array([_RANKS.search(name) is not None for name in names])
    is_of_kind = columns_of_kind(text, facts)
    is_time = [
        facts.table.column(index).kind in ("date", "time") or english.is_of_times(name)
        for index, name in enumerate(names)
    ]
    for more, less, shares in (
        ("most", "least", np.where(is_place, 0.0, facts.names)),
        ("most", "least", np.where(is_of_kind & ~is_place, _NAMED + facts.names, 0.0)),
        ("latest", "earliest", np.where(is_time, _NAMED + facts.names, 0.0)),
    ):
        is_most, is_least = says(text, more), says(text, less)
        shares = np.where(is_ranked, shares, 0.0)
        if is_most == is_least or shares.max(initial=0.0) < _NAMED:
            continue
        by = np.flatnonzero(shares == shares.max())
        by = by[by != column] if len(by) > 1 else by
        if len(by) != 1 or by[0] == column:
            return None
        ranks = np.where(among, facts.ranks[:, by[0]], 0.0)
        order = np.where(ranks > 0, ranks if is_most else -ranks, -np.inf)
        if (order > -np.inf).sum() < nth:
            return None
        return _only(order == np.sort(order)[-nth])
    return None


def columns_of_kind(text: str, facts: TableFacts) -> np.ndarray:
    """The columns of a kind that a question in lower case speaks of, bool [C]."""
    kinds = english.kinds_named(text)
    first_rows = zip(facts.table.header, facts.table.rows[0], strict=True)
    texts = [f"{name} {cell}".lower() for name, cell in first_rows]
    return np.array([any(english.is_of_kind(it, kind) for kind in kinds) for it in texts])


def rows_beyond(question: str, facts: TableFacts) -> np.ndarray | None:
    """The rows with more or less than the value that the question names, or between two values.

    They are a part of the table, bool [R], by the column whose name is mentioned, or that is of the
    kind, or the only one where they are; None where the words name none.
    """
    text = question.lower()
    bounds = [bound for bound in _ALLOWED if says(text, bound)]
    is_between = says(text, "in between") and not says(text, "difference")
    is_unclear = "between" in text or "difference" in text or bounds == ["over", "under"]
    if not is_between and (is_unclear or not bounds):
        return None
    relations = facts.relations
    is_one = np.isin(relations, range(1, 8) if is_between else (EQUAL, LESS, GREATER))  # [R, C]
    bits = np.where(is_one, relations, 0).astype(np.int64)
    if is_between:  # equal to one of the values, or beyond one and below the other
        rows = ((bits & EQUAL) > 0) | (bits == LESS | GREATER)
    else:
        rows = (bits & _ALLOWED[bounds[0]]) > 0
    count = rows.sum(axis=0)  # [C]
    fits = (is_one.mean(axis=0) >= _COMPARABLE) & ((relations <= 0) | is_one).all(axis=0)
    fits &= (count > 0) & (count < len(rows))
    names = np.where(fits, facts.names + _KIND_BONUS * columns_of_kind(text, facts), -1.0)
    column = _only((names == names.max(initial=0.0)) & (names >= _NAMED))
    column = _only(fits) if column is None else column
    return None if column is None else rows[:, column]


def rows_of_all(question: str, facts: TableFacts, fewest: int) -> np.ndarray | None:
    """The rows that meet all conditions of the question, or those beyond its value: bool [R].

    A condition is a column with a cell that is mentioned whole, or a value that rows are beyond. It
    holds for a part of the rows. Columns of which the same words mention a cell are one condition.
    Where no row meets all, the value alone counts. A condition that stands alone is without digits
    and holds for several rows. None where there are fewer than `fewest` conditions; 0 needs a value
    to be beyond.
    """
    beyond = rows_beyond(question, facts)
    if says(question.lower(), "not", "or", "but") or (beyond is None and not fewest):
        return beyond
    cells = np.array([[cell.lower() for cell in row] for row in facts.table.rows], object)
    is_mentioned = (facts.mentioned >= 1.0) & (np.vectorize(len)(cells) > 1)  # [R, C]; A is not "a"
    if beyond is not None:  # not the value itself
        is_name = np.vectorize(lambda cell: _NUMBERED.fullmatch(cell) is not None)(cells)
        is_mentioned &= (facts.relations == 0) | is_name
    first = np.where(is_mentioned, facts.positions, np.inf).min(axis=0)  # [C]
    is_mentioned &= ~np.tril(first[:, np.newaxis] == first, -1).any(axis=1)
    has_digit = np.vectorize(lambda cell: any(map(str.isdigit, cell)))(cells)
    met = is_mentioned if beyond is None else np.append(is_mentioned, beyond[:, np.newaxis], axis=1)
    count = met.sum(axis=0)
    is_condition = (count > 0) & (count < len(met))
    rows, number = np.asarray(met[:, is_condition].all(axis=1)), is_condition.sum()
    if number == 1 == fewest and beyond is None and rows.sum() > 1:
        return None if (is_mentioned & is_condition & has_digit).any() else rows
    return rows if number > 1 and rows.any() else beyond


def _only(are: np.ndarray) -> int | None:
    """The index of the only true value; None for none or several."""
    indices = np.flatnonzero(are)
    return int(indices[0]) if len(indices) == 1 else None
