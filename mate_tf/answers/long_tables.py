"""Answers about tables that are longer than the model: some rows are read, the others put beside.

The model reads the rows that the question needs (features/row_choice.py). Where its answer counts,
adds or lists rows, it is about the others too: rows of one kind are alike to the question, so where
the model selects most of a kind, it would select them all. Kinds of which it selects a part are
read on, some rows after the others, while there is time.

Shapes: R rows of a table.
"""

import dataclasses
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from mate_tf.answers.answer import Answer, SelectedCell, answer_of_cells
from mate_tf.features.row_choice import RowChoice
from mate_tf.tables.operators import OPERATORS
from mate_tf.tables.table import Table

_FEW, _MOST = 0.25, 0.7  # of a kind that the model selects
_OF_ALL = ("COUNT", "DISTINCT", "SUM", "AVERAGE")  # others are about the extremes, which are read


class Long(NamedTuple):
    """A table that is longer than the model, and the rows of it that a question needs."""

    table: Table
    choice: RowChoice


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
