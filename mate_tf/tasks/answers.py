"""From a model's probabilities to an answer that a person can read and check."""

import math
from dataclasses import dataclass

import numpy as np

from mate_tf.tables.normalization import normalize_for_match
from mate_tf.tables.numeric import parse_text
from mate_tf.tables.table import AGGREGATIONS, Table


@dataclass(frozen=True)
class SelectedCell:
    """A body cell that answers the question.

    Attributes:
        row: counted from zero, without the header.
        column: counted from zero.
        text: what the cell says.
        score: the probability that it is selected.
    """

    row: int
    column: int
    text: str
    score: float


@dataclass(frozen=True)
class Answer:
    """The answer to a question about a table.

    Attributes:
        items: the answer as a list: the texts of the cells, or one computed number.
        text: the items, joined by commas.
        cells: the cells it comes from, in table order.
        aggregation: what was computed from them, one of AGGREGATIONS.
        value: the computed number, None where nothing was computed.
        score: the mean probability of the cells, times that of the aggregation; 0 to 1.
        rows_dropped: rows at the table's end that the model did not see, because the table was
            too long and dropping them was asked for.
    """

    items: tuple[str, ...]
    text: str
    cells: tuple[SelectedCell, ...]
    aggregation: str
    value: float | None
    score: float
    rows_dropped: int = 0


def decode_answer(
    table: Table,
    column_ids,
    row_ids,
    token_probabilities,
    aggregation_logits=None,
    threshold: float = 0.5,
    histogram_row: bool = False,
) -> Answer:
    """Reads the answer off the probabilities of one example.

    A cell is as probable as its tokens are on average. Cells above the threshold are selected;
    where none is, the most probable one, and to be counted as many of the most probable as are
    expected, the sum of all probabilities, which is what training fits to the answer. Headers
    never are. SUM and AVERAGE take the cells that
    have a number; where none has, the answer is the cells themselves, with aggregation NONE.

    Args:
        table: the table that the tokens come from.
        column_ids: int [S], 1 to the number of columns, 0 for question and padding.
        row_ids: int [S], 1 to the number of rows, 0 for question, padding and headers.
        token_probabilities: float [S].
        aggregation_logits: float [A], in the order of AGGREGATIONS; None if nothing is computed.
        threshold: the probability above which a cell is selected.
        histogram_row: whether the tokens end in a histogram row (mate_tf/tables/histogram.py). It
            has the largest row id, which may be one of the table's where rows were dropped, and
            like a header is never selected.

    Raises:
        ValueError: if an id is beyond the table's size.
    """
    if histogram_row:
        row_ids = np.asarray(row_ids)
        row_ids = np.where(row_ids == row_ids.max(), 0, row_ids)
    probabilities = _cell_probabilities(table, column_ids, row_ids, token_probabilities)
    aggregation, certainty = _most_probable_aggregation(aggregation_logits)
    chosen = np.argwhere(probabilities > threshold)
    if not len(chosen) and probabilities.max() >= 0:
        chosen = _most_probable_cells(probabilities, aggregation)
    cells = tuple(
        SelectedCell(row, column, table.rows[row][column], float(probabilities[row, column]))
        for row, column in chosen.tolist()
    )
    value = _compute(aggregation, cells)
    if value is None:
        aggregation, items = "NONE", tuple(cell.text for cell in cells)
    else:
        items = (format_number(value),)
    score = certainty * float(np.mean([cell.score for cell in cells])) if cells else 0.0
    return Answer(items, ", ".join(items), cells, aggregation, value, score)


def format_number(value: float) -> str:
    """Writes a number plainly: integers in full, others to 12 digits."""
    if not math.isfinite(value):
        return str(value)
    if value.is_integer():
        return str(int(value))
    return np.format_float_positional(float(f"{value:.12g}"), trim="-")


def _cell_probabilities(table: Table, column_ids, row_ids, token_probabilities) -> np.ndarray:
    """Mean token probability of each body cell, [rows, columns]; -1 where it has no token."""
    rows = np.asarray(row_ids, np.int64) - 1
    columns = np.asarray(column_ids, np.int64) - 1
    for name, ids, size in (
        ("rows", rows, table.num_rows),
        ("columns", columns, table.num_columns),
    ):
        if ids.size and ids.max() >= size:
            raise ValueError(
                f"expected tokens of at most {size} {name}, got {ids.max() + 1} "
                f"(table '{table.table_id}')"
            )
    in_body = (rows >= 0) & (columns >= 0)
    cells = (rows * table.num_columns + columns)[in_body]
    size = table.num_rows * table.num_columns
    weights = np.asarray(token_probabilities, np.float64)[in_body]
    counts = np.bincount(cells, minlength=size)
    sums = np.bincount(cells, weights, minlength=size)
    means = np.where(counts > 0, sums / np.maximum(counts, 1), -1.0)
    return means.reshape(table.num_rows, table.num_columns)


def _most_probable_cells(probabilities: np.ndarray, aggregation: str) -> np.ndarray:
    """Coordinates [n, 2], in table order, where no cell is above the threshold."""
    number = 1
    if aggregation == "COUNT":
        number = max(1, round(float(np.sum(np.maximum(probabilities, 0.0)))))
    best = np.argsort(-probabilities, axis=None, kind="stable")[:number]
    return np.stack(np.unravel_index(np.sort(best), probabilities.shape), axis=1)


def _most_probable_aggregation(logits) -> tuple[str, float]:
    if logits is None:
        return "NONE", 1.0
    logits = np.asarray(logits, np.float64)
    best = int(np.argmax(logits))
    return AGGREGATIONS[best], float(1.0 / np.sum(np.exp(logits - logits[best])))


def _compute(aggregation: str, cells: tuple[SelectedCell, ...]) -> float | None:
    if aggregation == "NONE":
        return None
    if aggregation == "COUNT":
        return float(len(cells))
    numbers = [number for cell in cells if (number := _number(cell.text)) is not None]
    if not numbers:
        return None
    total = math.fsum(numbers)
    return total if aggregation == "SUM" else total / len(numbers)


def _number(text: str) -> float | None:
    """The first number in a cell's text, None if it has none; a date is no number."""
    text = normalize_for_match(text)
    for span in parse_text(text):
        for value in span.values:
            if isinstance(value, float):
                try:  # the value itself is in single precision
                    return float(text[span.begin : span.end].replace(",", ""))
                except ValueError:  # an ordinal or a word
                    return value
    return None
