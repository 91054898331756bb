"""What a model says of the cells of a batch of tables, without a loop over tokens or cells.

Shapes: B batch, S sequence, P tokens of body cells, K body cells of all tables in one line: table
by table, row by row; G groups of cells, such as tables or columns.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from mate_tf.tables.table import Table

SELECTION_THRESHOLD = 0.5  # a more probable cell is part of the answer


class BodyCells(NamedTuple):
    """The body cells of a batch of tables, and the tokens that they have in it."""

    begins: np.ndarray  # int64 [B+1], where each table's cells begin
    examples: np.ndarray  # int64 [K], the table of each cell, ascending
    columns: np.ndarray  # int64 [K], from 0
    token_places: np.ndarray  # int64 [P], places in the batch laid out flat, [B * S]
    token_cells: np.ndarray  # int64 [P]
    num_tokens: np.ndarray  # int64 [K]; 0 for a cell that is not in the sequence


def places_in_body(
    tables: Sequence[Table], column_ids, row_ids, histogram_row: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """Where in the body of its table each token is.

    Args:
        tables: B of them.
        column_ids: int [B, S], 1 to the number of columns, 0 for question and padding.
        row_ids: int [B, S], 1 to the number of rows, 0 for question, padding and headers.
        histogram_row: whether the tokens end in a histogram row
            (mate_tf/features/tokenized_table.py). It has the largest row id, which may be one of
            the table's where rows were dropped, and like a header is not in the body.

    Returns:
        rows and columns, int64 [B, S], from 0; one of them is negative outside the body.

    Raises:
        ValueError: if an id is beyond its table's size.
    """
    rows = np.asarray(row_ids, np.int64)  # [B, S]
    if histogram_row:
        rows = np.where(rows == rows.max(axis=1, keepdims=True), 0, rows)
    rows, columns = rows - 1, np.asarray(column_ids, np.int64) - 1
    _check("rows", rows, [table.num_rows for table in tables], tables)
    _check("columns", columns, [table.num_columns for table in tables], tables)
    return rows, columns


def _check(name: str, places: np.ndarray, limits: list[int], tables: Sequence[Table]) -> None:
    largest = places.max(axis=1, initial=-1)  # [B]
    for index in np.flatnonzero(largest >= limits)[:1]:
        raise ValueError(
            f"expected tokens of at most {limits[index]} {name}, got {largest[index] + 1} "
            f"(table '{tables[index].table_id}')"
        )


def group_body_cells(
    tables: Sequence[Table], column_ids, row_ids, histogram_row: bool = False
) -> BodyCells:
    """Groups the tokens of a batch by the cell of their table; arguments as `places_in_body`."""
    rows, columns = places_in_body(tables, column_ids, row_ids, histogram_row)
    sizes = np.array([(table.num_rows, table.num_columns) for table in tables])  # [B, 2]
    begins = np.concatenate([[0], np.cumsum(sizes.prod(axis=1))])
    examples = np.repeat(np.arange(len(tables)), np.diff(begins))  # [K]
    cells = begins[:-1, np.newaxis] + rows * sizes[:, 1:] + columns  # [B, S]
    token_places = np.flatnonzero((rows >= 0) & (columns >= 0))
    token_cells = cells.ravel()[token_places]
    return BodyCells(
        begins=begins,
        examples=examples,
        columns=(np.arange(begins[-1]) - begins[examples]) % sizes[examples, 1],
        token_places=token_places,
        token_cells=token_cells,
        num_tokens=np.bincount(token_cells, minlength=begins[-1]),
    )


def mean_by_cell(values, cells: BodyCells) -> np.ndarray:
    """Averages token values [B, S] over each cell: float64 [K], -inf where it has no token."""
    weights = np.asarray(values, np.float64).ravel()[cells.token_places]  # [P]
    sums = np.bincount(cells.token_cells, weights, minlength=len(cells.num_tokens))  # [K]
    return np.where(cells.num_tokens > 0, sums / np.maximum(cells.num_tokens, 1), -np.inf)


def select_cells(
    probabilities: np.ndarray, groups: np.ndarray, threshold: float, otherwise: np.ndarray
) -> np.ndarray:
    """Selects in each group the cells above a threshold, or the most probable where none is.

    Args:
        probabilities: float64 [K], -inf for a cell that is not there, which is never selected.
        groups: int64 [K], the group of each cell.
        threshold: the probability above which a cell is selected.
        otherwise: int [G], how many of the most probable are selected where none is above the
            threshold; of equally probable ones the first.

    Returns:
        bool [K].
    """
    selected = probabilities > threshold  # [K]
    has_any = np.bincount(groups, selected, minlength=len(otherwise)) > 0  # [G]
    left = np.flatnonzero(~has_any[groups] & (probabilities > -np.inf))
    left = left[np.lexsort((-probabilities[left], groups[left]))]  # by group, most probable first
    of_group = groups[left]
    ranks = np.arange(len(left)) - np.searchsorted(of_group, of_group)
    selected[left[ranks < otherwise[of_group]]] = True
    return selected
