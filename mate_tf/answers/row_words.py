"""The rows that a question's words name: the next one, the extreme, those beyond a value.

A small model often finds the column of an answer and not its rows. A rule stands here if, alone, it
gives five more right answers of 1,000 about tables that the model was not trained on, of
WikiTableQuestions or of experiments/demo_data/people/dev.jsonl, and harms neither: the row beside
one that is mentioned (24 and 17 of 1,000), an extreme (0 and 11), the rows beyond a value (1 and 8)
and those that meet all conditions (4 and 6).

Shapes: R rows and C columns of a table.
"""

import re
from typing import NamedTuple

import numpy as np

from mate_tf.answers.answer import TableFacts
from mate_tf.features import english
from mate_tf.features.english import says
from mate_tf.features.numeric import EQUAL, GREATER, LESS

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


class NamedRow(NamedTuple):
    """The row that words name."""

    row: int
    possible: np.ndarray  # bool [R], rows that the words allow; a sure model keeps its row there


def row_in_words(question: str, facts: TableFacts, column: int) -> NamedRow | None:
    """The row that the words name for an answer in a column; None for none or several."""
    text = question.lower()
    nth = next((n for words, n in _NTH.items() if says(text, words)), 1)
    whole = np.where(facts.mentioned >= 1.0, facts.num_tokens, 0.0)  # [R, C]
    longest = _most(whole.max(axis=1))  # [R]
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


def _most(values: np.ndarray) -> np.ndarray:
    return (values == values.max()) & (values > 0)


def _only(are: np.ndarray) -> int | None:
    """The index of the only true value; None for none or several."""
    indices = np.flatnonzero(are)
    return int(indices[0]) if len(indices) == 1 else None
