"""Which aggregations of which cells give a question's number: guesses at what was meant.

Where only the number is known that answers a question, a table usually offers many ways to come to
it: the cells that sum up to it, those whose average it is, and as many cells as it says. They are
found by trial, so that long columns cost no more than short ones, with a random generator that the
question's identifier seeds.

Shape letters: K table tokens of the sequence, R rows and C columns of the table's body, P
random picks of rows, W the subsets of a pick.
"""

import hashlib
import random
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import numpy as np

from mate_tf.features.config import ConversionError
from mate_tf.features.numeric import is_single
from mate_tf.features.tokenized_table import TokenizedTable
from mate_tf.tables.table import AGGREGATIONS, Question, id_bytes

_NONE, _SUM, _AVERAGE, _COUNT = map(AGGREGATIONS.index, ("NONE", "SUM", "AVERAGE", "COUNT"))
MAX_CANDIDATES = 1000
_MAX_OF_AN_AGGREGATION = 500
_ENOUGH_OF_AN_AGGREGATION = 10_000  # to choose those from
_MAX_ROWS = 31
_MAX_TOKENS = 48_000
_TRIALS = 100
_ROWS_OF_A_TRIAL = 10
_TOLERANCE = 0.01

# From the sums of subsets and their sizes to the values of an aggregation.
_Aggregation = Callable[[np.ndarray, np.ndarray], np.ndarray]


class Candidate(NamedTuple):
    """An aggregation of cells of one column; counted from zero, in the body."""

    aggregation: int
    column: int
    rows: tuple[int, ...]


def find_candidates(
    values: np.ndarray, question: Question, original: bool = False
) -> list[Candidate]:
    """Aggregations of cells that give the question's `answer_number`.

    The cell of the answer itself comes first, where it is one, then counts, sums and averages, each
    in order and at most 500 of them. Sums and averages are within 0.01 of the number.

    Args:
        values: the number of each cell of the body, NaN where there is none: float [R, C].
        question: the question; without a finite `answer_number` there are no candidates.
        original: whether a negative number is a count of all but so many rows, and several answer
            cells are an error, as in the authors' release. Its choice among more than 500
            candidates of one aggregation depends on the version of Python and is not its own here.

    Raises:
        ConversionError: if `original`, and the question has several answer cells.
    """
    if question.answer_number is None or not is_single(question.answer_number):
        return []
    answer = float(np.float32(question.answer_number))
    rng = random.Random(_fingerprint(question.question_id))
    cells = question.answer_coordinates
    if original and len(cells) > 1:
        raise ConversionError(
            "several answer cells",
            f"expected at most 1 answer cell where aggregation candidates are added, got "
            f"{len(cells)} (question '{question.question_id}')",
        )
    chosen = [Candidate(_NONE, column, (row,)) for row, column in cells if len(cells) == 1]
    return [
        *chosen,
        *_clipped(rng, _counts(rng, values.shape, answer, original)),
        *_clipped(rng, _combinations(rng, values, answer, _SUM, lambda sums, _: sums, original)),
        *_clipped(rng, _combinations(rng, values, answer, _AVERAGE, np.divide, original)),
    ]


def candidate_features(
    tokens: TokenizedTable,
    cells: np.ndarray,
    start: int,
    question: Question,
    original: bool = False,
) -> dict[str, np.ndarray]:
    """The candidates as features.

    Args:
        tokens: the table.
        cells: the cell of each of its tokens in the sequence, int32 [K], ascending.
        start: tokens before the table's.
        question: as in `find_candidates`.
        original: as in `find_candidates`, and candidates stay whose cells are not in the sequence.

    Returns:
        cand_num [1], the number of candidates; for each, up to 1,000, the aggregation in
        can_aggregation_function_ids and the number of its tokens in can_sizes; and in can_indexes
        the places of the tokens of all, one candidate after the other. All int32.

    Raises:
        ConversionError: as `find_candidates`.
    """
    values = tokens.numeric_values[1 : tokens.num_rows + 1, 1:].astype(float)  # [R, C]
    functions, sizes = np.zeros((2, MAX_CANDIDATES), np.int32)
    indexes: list[int] = []
    count = 0
    found = find_candidates(values, question, original)
    for candidate in [c for c in found if len(c.rows) <= _MAX_ROWS][:MAX_CANDIDATES]:
        ids = (np.array(candidate.rows, int) + 1) * (tokens.num_columns + 1) + candidate.column + 1
        firsts, lasts = (np.searchsorted(cells, ids, side) for side in ("left", "right"))
        if not original and np.any(firsts == lasts):
            continue
        if len(indexes) + start + len(cells) > _MAX_TOKENS:
            break
        places = [start + i for span in zip(firsts, lasts, strict=True) for i in range(*span)]
        functions[count], sizes[count] = candidate.aggregation, len(places)
        indexes += places
        count += 1
    return {
        "cand_num": np.array([count], np.int32),
        "can_aggregation_function_ids": functions,
        "can_sizes": sizes,
        "can_indexes": np.array(indexes, np.int32),
    }


def _counts(
    rng: random.Random, shape: tuple[int, ...], answer: float, original: bool
) -> Iterator[Candidate]:
    """Random sets of so many rows, in each column."""
    num_rows, num_columns = shape
    if not answer.is_integer() or answer > num_rows or (answer < 0 and not original):
        return
    rows = list(range(num_rows))
    sets = set()
    for _ in range(_TRIALS):
        rng.shuffle(rows)
        sets.add(tuple(sorted(rows[: int(answer)])))
    for some in sets:
        for column in range(num_columns):
            yield Candidate(_COUNT, column, some)


def _combinations(
    rng: random.Random,
    values: np.ndarray,
    answer: float,
    aggregation: int,
    aggregate: _Aggregation,
    original: bool,
) -> Iterator[Candidate]:
    """The sets of cells of a column, of ten cells drawn at a time, whose aggregation fits.

    Of a column with more than 500 of them it is as many, drawn at random, and no column is looked
    at any more, in random order, once there are 10,000; but with `original` it is all.
    """
    columns = list(range(values.shape[1]))
    if not original:
        rng.shuffle(columns)
    count = 0
    for column in columns:
        if not original and count >= _ENOUGH_OF_AN_AGGREGATION:
            return
        of_column = values[:, column]
        rows = np.flatnonzero(np.isfinite(of_column)).tolist()
        picks = [rows]
        if len(rows) > _ROWS_OF_A_TRIAL:
            picks = []
            for _ in range(_TRIALS):
                if original:
                    rng.shuffle(rows)
                    picks.append(sorted(rows[:_ROWS_OF_A_TRIAL]))
                else:
                    picks.append(sorted(rng.sample(rows, _ROWS_OF_A_TRIAL)))
        picked = np.array(picks, int)  # [P, ten or fewer]
        size = picked.shape[1]
        subsets = np.arange(1, 2**size)[:, np.newaxis] >> np.arange(size) & 1  # [W, ten]
        sums = np.zeros((len(picked), len(subsets)))  # [P, W]
        for place in range(size):  # in the order of the rows: sums of floats depend on it
            sums += of_column[picked[:, place], np.newaxis] * subsets[:, place]
        fits = np.abs(aggregate(sums, subsets.sum(1)) - answer) < _TOLERANCE
        fitting = np.argwhere(fits)  # pairs of p and w
        if not original and len(fitting) > _MAX_OF_AN_AGGREGATION:
            fitting = _drawn(rng, fitting, picked, subsets)
        for some in {tuple(picked[p][subsets[w] == 1].tolist()) for p, w in fitting}:
            yield Candidate(aggregation, column, some)
            count += 1


def _drawn(
    rng: random.Random, fitting: np.ndarray, picked: np.ndarray, subsets: np.ndarray
) -> np.ndarray:
    """At most 500 of the pairs, of different sets of rows; equal rows get equal keys.

    A column of equal cells has a hundred thousand pairs, too many to make a set of each.
    """
    key_of_row = np.random.default_rng(0).integers(2**63, size=picked.max() + 1, dtype=np.uint64)
    p, w = fitting.T
    keys = np.where(subsets[w] == 1, key_of_row[picked[p]], np.uint64(0)).sum(1, dtype=np.uint64)
    _, firsts = np.unique(keys, return_index=True)
    if len(firsts) > _MAX_OF_AN_AGGREGATION:
        firsts = np.array(rng.sample(firsts.tolist(), _MAX_OF_AN_AGGREGATION))
    return fitting[firsts]


def _clipped(rng: random.Random, candidates: Iterable[Candidate]) -> list[Candidate]:
    """The candidates in order; a random choice where they are too many."""
    ordered = sorted(candidates)
    if len(ordered) > _MAX_OF_AN_AGGREGATION:
        rng.shuffle(ordered)
        ordered = sorted(ordered[:_MAX_OF_AN_AGGREGATION])
    return ordered


def _fingerprint(text: str) -> int:
    return int(hashlib.sha256(id_bytes(text)).hexdigest(), 16)
