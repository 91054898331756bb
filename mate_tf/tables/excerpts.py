"""Random excerpts of texts and tables, as long as a sequence has room for.

TAPAS is pre-trained on a stretch of the text around a table and on the table's upper left corner,
with cells cut after so many pieces (Herzig et al., 2020, section 4). The generator's draws and
their order are the original's: the same seed gives the same excerpt.

Shape letters: N tokens of a table, M those of them that may fit.
"""

import random
from collections.abc import Sequence

import numpy as np

from mate_tf.tables.tokenized_table import TokenizedTable


def draw_text(
    texts: Sequence[Sequence[int]],
    is_inner: np.ndarray,
    shortest: int,
    longest: int,
    join: bool,
    rng: random.Random,
) -> list[int] | None:
    """Draws a stretch of the texts, or one of them.

    Draws: a shuffle of the texts; with join and enough pieces, where the stretch begins and ends.

    Args:
        texts: the pieces of each text.
        is_inner: bool [vocabulary size], true where a piece continues a word.
        shortest, longest: limits of the number of pieces; words at either end of a stretch are
            completed, past the limit if need be.
        join: whether the stretch is of all texts, joined in random order. Otherwise it is the first
            of them, in random order, whose length is within the limits.
        rng: the generator.

    Returns:
        The pieces; None where the texts are too short, or none is of a length that fits.
    """
    order = list(texts)
    rng.shuffle(order)
    if not join:
        return next((list(ids) for ids in order if shortest <= len(ids) <= longest), None)
    ids = [id_ for text in order for id_ in text]
    if len(ids) < shortest:
        return None
    begin = rng.randint(0, len(ids) - shortest)
    while begin and is_inner[ids[begin]]:
        begin -= 1
    end = rng.randint(begin + shortest, min(begin + longest, len(ids)))
    while end < len(ids) and is_inner[ids[end]]:
        end += 1
    return ids[begin:end]


def draw_corner(
    tokens: TokenizedTable, budget: int, max_columns: int, max_rows: int, rng: random.Random
) -> np.ndarray | None:
    """Draws how many columns, rows and pieces of a cell of a table to take.

    From one each on, they grow in turn, one by one with even odds, until the table is complete or
    the next step would not fit. A cell's last word is complete.

    Draws: one number for each chance to grow.

    Args:
        tokens: the table.
        budget: the most tokens to take.
        max_columns, max_rows: the most columns and body rows to take.
        rng: the generator.

    Returns:
        Which tokens to take, bool [N]; None where not even the first words of the first column's
        header and cell fit.
    """
    # A token is taken if its place on each axis is below the size there; the header's row is -1.
    places = np.stack([tokens.column_ids - 1, tokens.row_ids - 1, tokens.word_begins])  # [3, N]
    size = [1, 1, 1]
    cost = int(np.count_nonzero((places < 1).all(axis=0)))
    if cost > budget:
        return None
    # The original has one row too many to grow to, which takes draws of the generator.
    most = [
        min(max_columns, int(tokens.column_ids[-1])),
        min(max_rows, tokens.num_rows + 1),
        _longest_cell(tokens),
    ]
    # As each cell has a token, no size that fits is above the budget.
    possible = places[:, (places <= budget).all(axis=0)]  # [3, M]
    sorted_by = [possible[:, np.argsort(of_axis, kind="stable")] for of_axis in possible]
    begins = [
        np.searchsorted(by[axis], np.arange(budget + 3)).tolist()
        for axis, by in enumerate(sorted_by)
    ]
    while size != most and cost <= budget:
        for axis in range(3):
            if size[axis] >= most[axis] or rng.random() >= 0.5:
                continue
            if size[axis] <= budget:
                begin, end = begins[axis][size[axis] : size[axis] + 2]
                added = sorted_by[axis][:, begin:end]
                first, second = (other for other in range(3) if other != axis)
                fits = (added[first] < size[first]) & (added[second] < size[second])
                cost += int(np.count_nonzero(fits))
            if cost > budget:
                break
            size[axis] += 1
    return np.all(places < np.array(size)[:, np.newaxis], axis=0)


def _longest_cell(tokens: TokenizedTable) -> int:
    """The number of pieces of the longest cell."""
    changes = (np.diff(tokens.column_ids) != 0) | (np.diff(tokens.row_ids) != 0)  # [N-1]
    ends = np.append(np.flatnonzero(changes) + 1, len(tokens.column_ids))
    return int(np.diff(ends, prepend=0).max())
