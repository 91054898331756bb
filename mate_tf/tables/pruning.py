"""Which columns of a table to keep where it is too long for a sequence: those like the question.

This is the "heuristic exact match" of Eisenschlos et al., 2020 ("Understanding tables with
intermediate pre-training"): a column's likeness is the Jaccard index of its words, those of header
and cells, with the question's. Columns are taken from the likeliest on, each that still fits, so
that a small one may follow where a large one had to be left out. Words are compared in lower case
by their Porter stems.

Shapes: N tokens of a table, C columns.
"""

import functools
import re
from collections.abc import Collection, Sequence

import numpy as np

from mate_tf.tables.table import Question, Table
from mate_tf.tables.tokenized_table import TokenizedTable

_WORDS = re.compile(r"[^\W_]+")
_TABLES_REMEMBERED = 128
_LONGEST_REMEMBERED = 64  # characters of a word


def select_columns(
    table: Table,
    question: Question,
    tokens: TokenizedTable,
    budget: int | None,
    original: bool = False,
) -> np.ndarray:
    """Selects the tokens of the columns to keep: a token selector (token_selection.py), bool [N].

    Columns that answered the previous question come before all others. Where no column fits, the
    first of them is kept, for its cells to be cut, its rows to be dropped or the table to be
    refused; with `original` none is, as in the authors' release.
    """
    if budget is None:
        return np.ones(len(tokens.column_ids), bool)
    costs = np.bincount(tokens.column_ids - 1, minlength=table.num_columns)  # [C]
    previous = {column for _, column in question.previous_coordinates}
    kept = keep_columns(table, question.text, costs.tolist(), budget, previous, original)
    return np.isin(tokens.column_ids - 1, kept)


def keep_columns(
    table: Table,
    question: str,
    costs: Sequence[int],
    budget: int,
    previous: Collection[int] = (),
    original: bool = False,
) -> list[int]:
    """Chooses the columns that a question most likely needs, as many as fit.

    Args:
        table: the table.
        question: the question's text.
        costs: the tokens of each column with its header, [C].
        budget: how many tokens there may be in all.
        previous: columns that answered the previous question of a conversation; they come before
            all others.
        original: whether no column is kept where no single one fits, rather than the likeliest.

    Returns:
        The kept columns in ascending order; all where all fit.

    Raises:
        ValueError: if the number of costs is not the number of columns.

    Example:
        >>> table = Table.from_rows([["city", "people", "note"], ["Oslo", "709,037", "a fjord"]])
        >>> keep_columns(table, "how many people live in Oslo?", costs=[2, 5, 3], budget=7)
        [0, 1]
    """
    if len(costs) != table.num_columns:
        raise ValueError(
            f"expected a cost for each of {table.num_columns} columns, got {len(costs)} "
            f"(table '{table.table_id}')"
        )
    if sum(costs) <= budget:
        return list(range(table.num_columns))
    asked = _stems(question)
    likeness = [_jaccard(stems, asked) for stems in _column_stems(table)]
    order = sorted(range(table.num_columns), key=lambda c: (c not in previous, -likeness[c], c))
    kept = []
    for column in order:
        if costs[column] <= budget:
            budget -= costs[column]
            kept.append(column)
    if not kept and not original:
        return order[:1]
    return sorted(kept)


def _jaccard(a: frozenset[str], b: frozenset[str]) -> float:
    return len(a & b) / (len(a | b) or 1)


@functools.lru_cache(_TABLES_REMEMBERED)
def _column_stems(table: Table) -> tuple[frozenset[str], ...]:
    columns = zip(table.header, *table.rows, strict=True)
    return tuple(frozenset().union(*map(_stems, cells)) for cells in columns)


def _stems(text: str) -> frozenset[str]:
    return frozenset(map(_stem, _WORDS.findall(text.lower())))


def _stem(word: str) -> str:
    stem = _remembered_stem if len(word) <= _LONGEST_REMEMBERED else _new_stem
    return stem(word)


def _new_stem(word: str) -> str:
    return _stemmer().stem(word)


_remembered_stem = functools.lru_cache(1 << 14)(_new_stem)


@functools.cache
def _stemmer():
    from nltk.stem.porter import PorterStemmer  # takes a second to import

    return PorterStemmer()
