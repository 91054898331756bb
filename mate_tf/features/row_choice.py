"""The rows of a long table that a question needs, chosen before the model reads them.

Rows are ranked by BM25 (Robertson and Zaragoza, 2009, equation 3.15) of the question's words and
values in their cells. Beside the best ones stand their neighbours, the extremes of each column, the
first and the last rows, and some of each kind: rows are of one kind if the question's words and
values meet their cells in the same way, so that what holds for some of them holds for the others.
A rank is that among the chosen rows, since the encoder has no embedding of the 300th.

Shapes: R rows and C columns of a table, W words and values of the question.
"""

import itertools
import math
import re
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from mate_tf.features import numeric
from mate_tf.features.english import content_words, says, share_named
from mate_tf.tables.table import Table

_SATURATION, _LENGTH = 1.2, 0.75  # k1 and b of BM25
_MOST_MATCHES = 20  # best rows; a model that reads more of them selects some
_MOST_NEIGHBOURS = 3  # best rows whose neighbours are read
_ENDS = 3  # rows at each end of a table, and of a column that the question orders
_SAMPLE = 100  # rows by which the tokens of all are estimated
_LEAST_STEM = 4  # letters
_SUFFIX = re.compile(r"(?:ies|e?s|ed|ing|y)$")


class RowChoice(NamedTuple):
    """Rows of a table for a question.

    Attributes:
        rows: the chosen ones, in their order.
        kinds: int64 [R], the number of each row's kind.
        capacity: how many rows the model reads at once, about.
    """

    rows: tuple[int, ...]
    kinds: np.ndarray
    capacity: int


def choose_rows(
    table: Table,
    question: str,
    count_tokens: Callable[[Sequence[str]], np.ndarray],
    most_tokens: int,
    most_rows: int,
    first: Sequence[int] = (),
) -> RowChoice:
    """Chooses as many rows as fit, one at least: `first`, then those that the question needs most.

    `count_tokens` gives the tokens of each text; the cells of the rows may have `most_tokens`.
    """
    kinds, scores = _meet(table, question)
    expanded = table.expanded_rows

    def tokens_of(rows: Sequence[int]) -> np.ndarray:  # [rows]
        texts = [cell for row in rows for cell in expanded[row]]
        return np.asarray(count_tokens(texts)).reshape(len(rows), -1).sum(axis=1)

    sample = np.linspace(0, table.num_rows - 1, min(_SAMPLE, table.num_rows)).astype(int).tolist()
    capacity = max(1, min(int(most_tokens / max(tokens_of(sample).mean(), 1.0)), most_rows))
    rows = list(dict.fromkeys(_by_need(table, question, kinds, scores, capacity, first)))
    rows = rows[: min(2 * capacity, most_rows)]
    costs = np.cumsum(tokens_of(rows))
    num_fitting = max(1, int(np.searchsorted(costs, most_tokens, side="right")))
    return RowChoice(tuple(sorted(rows[:num_fitting])), kinds, capacity)


def _group(word: str) -> str:
    """A pattern of a word with or without an ending."""
    if not word.isalpha() or len(word) < _LEAST_STEM:
        return f"({re.escape(word)})"
    return rf"({_SUFFIX.sub('', word)}\w{{0,3}})"


def _meet(table: Table, question: str) -> tuple[np.ndarray, np.ndarray]:
    """The kind of each row, int64 [R], and its score by BM25, float64 [R]."""
    words = dict.fromkeys(content_words(question))
    pattern = re.compile(rf"(?<![\w.,])(?:{'|'.join(map(_group, words)) or '(?!)'})(?!\w)")
    codes = np.zeros((table.num_rows, table.num_columns), np.int64)
    meets: dict[tuple[int, int], np.ndarray] = {}  # by column and word or value: bool [R]
    for index, cells in enumerate(zip(*table.rows, strict=True)):
        found = {}
        for cell in set(cells):
            found[cell] = frozenset(int(it.lastindex or 0) for it in pattern.finditer(cell.lower()))
        sets = {words: code for code, words in enumerate(set(found.values()))}
        by_set = np.array([sets[found[cell]] for cell in cells])  # [R]
        bits = np.zeros(table.num_rows, np.int64)  # [R]
        if values := numeric.question_values(question, table.column(index).convention):
            related = numeric.relations(values, numeric.values_in_column(table, index))
            bits[list(related)] = list(related.values())
        codes[:, index] = by_set * 8 + bits
        for word in frozenset().union(*sets):
            holding = [code for words, code in sets.items() if word in words]
            meets[index, word] = np.isin(by_set, holding)
        meets[index, 0] = bits & numeric.EQUAL > 0
    kinds = np.unique(codes, axis=0, return_inverse=True)[1]
    return kinds.reshape(-1), _bm25(table, meets)


def _bm25(table: Table, meets: dict[tuple[int, int], np.ndarray]) -> np.ndarray:
    lengths = np.array([sum(map(len, row)) for row in table.rows], np.float64)
    norm = _SATURATION * (1 - _LENGTH + _LENGTH * lengths / max(lengths.mean(), 1.0))
    counts: dict[int, np.ndarray] = {}  # how often each word is in a row: [R]
    for (column, word), is_met in meets.items():
        # A value counts in each column apart.
        key = word or -1 - column
        counts[key] = counts.get(key, 0) + is_met
    scores = np.zeros(table.num_rows)
    for count in counts.values():
        num_rows = np.count_nonzero(count)
        weight = math.log1p((table.num_rows - num_rows + 0.5) / (num_rows + 0.5))
        scores += weight * count * (_SATURATION + 1) / (count + norm)
    return scores


def _by_need(
    table: Table,
    question: str,
    kinds: np.ndarray,
    scores: np.ndarray,
    capacity: int,
    first: Sequence[int],
) -> Iterator[int]:
    """The rows that the question needs most; some come again."""
    last = table.num_rows - 1
    order = np.lexsort((np.arange(len(scores)), -scores))
    best = order[: np.count_nonzero(scores >= scores.max() / 2)] if scores.max() > 0 else order[:0]
    yield from first
    yield from best[:_MOST_MATCHES].tolist()
    for row in best[:_MOST_NEIGHBOURS].tolist():
        yield from (max(row - 1, 0), min(row + 1, last))
    yield from _extremes(table, question, best)
    yield from (*range(min(_ENDS, last)), *range(max(last - _ENDS + 1, 0), last + 1))
    # Of each kind some, evenly from the table's beginning to its end.
    ends = np.cumsum(np.bincount(kinds))
    members = np.split(np.argsort(kinds, kind="stable"), ends[:-1])
    members.sort(key=lambda rows: (-scores[rows].max(), -len(rows)))
    spread = [
        _halved(rows[np.linspace(0, len(rows) - 1, capacity).astype(int)])
        for rows in members[: 2 * capacity]
    ]
    yield from itertools.chain.from_iterable(zip(*spread, strict=True))


def _halved(rows: np.ndarray) -> list[int]:
    """Rows in an order whose beginnings are spread as the whole: 0, 4, 2, 6, 1, 5, 3, 7."""
    order = [0]
    while len(order) < len(rows):
        order = [2 * place for place in order] + [2 * place + 1 for place in order]
    return [int(rows[place]) for place in order if place < len(rows)]


def _extremes(table: Table, question: str, best: np.ndarray) -> Iterator[int]:
    """The rows at the ends of each column, in the table and among the best; named columns first."""
    number = _ENDS if says(question.lower(), "superlative", "more", "less") else 1
    among_best = frozenset(best.tolist())
    words = content_words(question)
    is_ordered = [table.column(it).kind not in ("text", "empty") for it in range(table.num_columns)]
    named = [share_named(name, words) for name in table.header]
    for column in sorted(np.flatnonzero(is_ordered).tolist(), key=lambda it: -named[it]):
        values = numeric.values_in_column(table, column)
        ranks = numeric.ranks({r: v for r, v in values.items() if r not in table.total_rows})
        for rows in (ranks, [row for row in ranks if row in among_best]):
            ordered = sorted(rows, key=lambda row: ranks[row])
            yield from (*ordered[:number], *ordered[-number:])
