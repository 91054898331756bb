"""Answers of table question answering: selected cells and what is computed from them.

A cell is as probable as its tokens are on average. Cells above one half are selected; where none
is, the most probable one, and to be counted as many of the most probable as are expected, the sum
of all probabilities, which is what training fits to the answer. Of a softmax over cells, whose
probabilities sum to one, it is always the most probable cell. Headers never are. A model that may
choose no column, and does, answers from the likeliest one, with the little probability that it has.
SUM and AVERAGE take the cells that have a number; where none has, the answer is the cells
themselves, with aggregation NONE.

Shapes: B batch, S sequence, C columns of the model, A aggregations; K body cells of all tables in
one line.

Answers of classification: a class, and the other classes as alternatives.

Shapes: B batch, C classes.

What a model says of the cells of a batch of tables, without a loop over tokens or cells.

Shapes: B batch, S sequence, P tokens of body cells, K body cells of all tables in one line: table
by table, row by row; G groups of cells, such as tables or columns.

Answers of span reading: a stretch of a cell's text.

A span's probability is among all spans that lie within one cell of the body, to which a histogram
row does not belong. Alternatives are the next spans that say something else.

Shapes: B batch, S sequence, N spans, C classes, K spans looked at.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from mate_tf.answers.alternatives import CellProbabilities, best_others, likeliest_answer
from mate_tf.answers.answer import Answer, SelectedCell, no_answer, unit_free_number
from mate_tf.answers.calibration import sigmoid, softmax
from mate_tf.features.token_features import TokenFeatures
from mate_tf.features.wordpiece import Wordpiece
from mate_tf.models.cell_selection import LOG_ZERO
from mate_tf.models.classification import ClassificationConfig
from mate_tf.models.encoder_task import TaskConfig
from mate_tf.models.span_reading import SpanReadingConfig, best_spans, span_bounds
from mate_tf.models.table_qa import TableQAConfig
from mate_tf.tables.table import AGGREGATIONS, Table
from mate_tf.tasks import TaskSpec, answering_task


class Asked(NamedTuple):
    """A batch of questions, as a model is asked them.

    Attributes:
        tables: B tables; None for a sentence alone, which only a classifier takes.
        features: int32 [B, S].
        wordpiece: made the features; finds a span's text in its cell.
        histogram_row: whether the features end in a histogram row, which is never an answer.
    """

    tables: Sequence[Table | None]
    features: TokenFeatures
    wordpiece: Wordpiece | None = None
    histogram_row: bool = False

    @property
    def given_tables(self) -> list[Table]:
        return [table for table in self.tables if table is not None]


def decode_batch(
    config: TaskConfig,
    outputs: Mapping[str, tf.Tensor],
    asked: Asked,
    num_alternatives: int = 0,
) -> list[Answer]:
    """Reads the answers off a model's outputs for a batch, as its task does.

    Args:
        config: the options of the model's task.
        outputs: the model's, as its task lists them (mate_tf/tasks.py).
        asked: the questions.
        num_alternatives: the most alternatives that an answer gets.

    Raises:
        ValueError: if an output is not finite, an id is beyond its table's size, or a question that
            needs a table has none.
    """
    task = answering_task(config)
    _check_finite(task, outputs)
    given, number = len(asked.given_tables), len(asked.tables)
    if task.needs_tables and given < number:
        raise ValueError(
            f"expected a table for each of {number} questions, got {given}; only a classifier "
            "takes a sentence alone"
        )
    return task.function("decode")(config, outputs, asked, num_alternatives)


def _check_finite(task: TaskSpec, outputs: Mapping[str, tf.Tensor]) -> None:
    """ValueError where a number that answers are read from is not finite."""
    for name in task.outputs:
        if name not in outputs:
            continue
        values = np.asarray(outputs[name])  # [B, ...]
        broken = np.flatnonzero(~np.isfinite(values.reshape(len(values), -1)).all(axis=1))  # [b]
        if len(broken):
            raise ValueError(
                f"expected finite {name} of the model, got NaN or infinity for {len(broken)} of "
                f"{len(values)} questions; check the model's weights, or take another checkpoint"
            )


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


# Spans looked at for each that is wanted: neighbours often say the same, in another cell.
_SPANS_EACH = 8


def decode_spans(
    config: SpanReadingConfig,
    outputs: Mapping[str, tf.Tensor],
    asked: Asked,
    num_alternatives: int = 0,
) -> list[Answer]:
    """Reads the likeliest span of each example.

    Args:
        config: the model's.
        outputs: span_logits [B, N], about -10000 for what is no span, and perhaps class_logits
            [B, C], the likeliest of which is the answer's class.
        asked: the questions, with their tables and the wordpiece.
        num_alternatives: the most alternatives that an answer gets.

    Raises:
        ValueError: if an id is beyond its table's size.
    """
    tables, features, wordpiece = asked.given_tables, asked.features, asked.wordpiece
    assert wordpiece is not None
    rows, columns = places_in_body(
        tables, features.column_ids, features.row_ids, asked.histogram_row
    )
    wanted = num_alternatives + 1
    length = features.input_ids.shape[1]
    number = 1 if wanted == 1 else wanted * _SPANS_EACH
    starts, _ = span_bounds(length, config.max_span_length)  # [N]
    readable = ((rows >= 0) & (columns >= 0))[:, starts]  # [B, N]
    logits = np.where(readable, outputs["span_logits"], LOG_ZERO)
    best = best_spans(logits, length, config.max_span_length, number)
    classes: list[int | None] = [None] * len(tables)
    if "class_logits" in outputs:
        classes = np.asarray(outputs["class_logits"]).argmax(axis=1).tolist()
    tokens = np.stack([features.input_ids, rows, columns], axis=1)  # [B, 3, S]
    answers = []
    for index, table in enumerate(tables):
        found: list[Answer] = []
        spans = zip(*(values[index].tolist() for values in best), strict=True)
        for start, end, score in spans:
            if len(found) == wanted or score <= 0.0:
                break
            other = _span_answer(table, tokens[index], start, end, score, wordpiece)
            if all(other.items != earlier.items for earlier in found):
                found.append(other)
        answer = found[0] if found else no_answer()
        answers.append(
            dataclasses.replace(answer, alternatives=tuple(found[1:]), class_index=classes[index])
        )
    return answers


def _span_answer(
    table: Table, tokens: np.ndarray, start: int, end: int, score: float, wordpiece: Wordpiece
) -> Answer:
    """The answer from a span of tokens; of each of these piece, row and column, int [3, S]."""
    in_cell = (tokens[1:] == tokens[1:, start : start + 1]).all(axis=0)  # [S]
    first = int(in_cell.argmax())
    row, column = tokens[1:, start].tolist()
    text = span_text(
        table.expanded_rows[row][column],
        tokens[0, in_cell].tolist(),
        start - first,
        end - first,
        wordpiece,
    )
    cell = SelectedCell(row, column, table.rows[row][column], score)
    return Answer((text,), (cell,), score=score, number=unit_free_number(text))


def span_text(text: str, pieces: list[int], first: int, last: int, wordpiece: Wordpiece) -> str:
    """What a cell's text says from one of its pieces to another, as it is written there.

    Args:
        text: the cell's.
        pieces: the ids of its pieces in the sequence.
        first: the place of the first piece among them.
        last: that of the last, which belongs to the span.
        wordpiece: what they were made with.

    Returns:
        Where only some of the cell's pieces are in the sequence, and not its first ones, the
        pieces themselves, joined to words.
    """
    text = text.encode("utf-8", "ignore").decode()  # as it is tokenized
    all_pieces, starts = wordpiece.ids_and_starts(text)
    if all_pieces[: len(pieces)] != pieces:
        words = " ".join(wordpiece.vocabulary[piece] for piece in pieces[first : last + 1])
        return words.replace(" ##", "")
    # A character may be of several pieces, which all begin with it.
    ends = [start for start in starts[last + 1 :] if start > starts[last]]
    return text[starts[first] : ends[0] if ends else len(text)].strip()


def decode_classes(
    config: ClassificationConfig,
    outputs: Mapping[str, tf.Tensor],
    asked: Asked | None = None,
    num_alternatives: int = 0,
) -> list[Answer]:
    """Reads the likeliest class of each example, the first of equally likely ones.

    Args:
        config: the model's.
        outputs: class_logits [B, C].
        asked: the questions; nothing of them is needed.
        num_alternatives: how many of the other classes are alternatives.
    """
    logits = np.asarray(outputs["class_logits"], np.float64)  # [B, C]
    probabilities = softmax(logits)
    order = np.argsort(-logits, axis=1, kind="stable")[:, : num_alternatives + 1]
    scores = np.take_along_axis(probabilities, order, axis=1)
    names = config.class_names or tuple(map(str, range(config.num_classes)))
    answers = []
    for classes, of_classes in zip(order.tolist(), scores.tolist(), strict=True):
        pairs = zip(classes, of_classes, strict=True)
        best, *others = [_class_answer(names[index], index, score) for index, score in pairs]
        answers.append(dataclasses.replace(best, alternatives=tuple(others)))
    return answers


def _class_answer(name: str, index: int, score: float) -> Answer:
    return Answer((name,), score=score, class_index=index)


_COUNT = AGGREGATIONS.index("COUNT")


def decode_cells(
    config: TableQAConfig,
    outputs: Mapping[str, tf.Tensor],
    asked: Asked,
    num_alternatives: int = 0,
) -> list[Answer]:
    """Reads the answers off the model's outputs for a batch.

    Args:
        config: the model's.
        outputs: token_probabilities [B, S]; perhaps aggregation_logits [B, A]; of a model that
            chooses a column column_logits [B, C] and token_logits [B, S].
        asked: the questions with their tables.
        num_alternatives: the most alternatives that an answer gets.

    Raises:
        ValueError: if an id is beyond its table's size.
    """
    tables, features = asked.given_tables, asked.features
    cells = group_body_cells(tables, features.column_ids, features.row_ids, asked.histogram_row)
    probabilities, in_columns, with_columns = _cell_probabilities(cells, outputs)  # [K] each
    aggregations = np.ones((len(tables), 1))
    if "aggregation_logits" in outputs:
        logits = np.asarray(outputs["aggregation_logits"], np.float64)
        aggregations = softmax(logits)  # [B, A]

    threshold, number = SELECTION_THRESHOLD, np.ones(len(tables), np.int64)  # [B]
    if config.cell_cross_entropy:
        threshold = np.inf
    else:
        expected = np.bincount(cells.examples, np.maximum(probabilities, 0.0), len(tables))
        is_count = aggregations.argmax(axis=1) == _COUNT
        number = np.where(is_count, np.maximum(np.rint(expected), 1), 1).astype(np.int64)
    selected = select_cells(probabilities, cells.examples, threshold, number)  # [K]
    selected_in_columns = np.zeros_like(selected)
    if num_alternatives and "column_logits" in outputs:
        columns = cells.examples * (cells.columns.max() + 1) + cells.columns  # [K]
        one_each = np.ones(columns.max() + 1, np.int64)
        selected_in_columns = select_cells(in_columns, columns, threshold, one_each)

    answers = []
    for index, table in enumerate(tables):
        part = slice(cells.begins[index], cells.begins[index + 1])
        places = np.flatnonzero(selected[part])
        if not len(places):
            answers.append(no_answer())
            continue
        of_table = CellProbabilities(
            table,
            in_columns[part],
            with_columns[part],
            aggregations[index],
            selected_in_columns[part],
        )
        answer = likeliest_answer(of_table, places)
        if num_alternatives:
            others = best_others(of_table, places, answer, num_alternatives)
            answer = dataclasses.replace(answer, alternatives=tuple(others))
        answers.append(answer)
    return answers


def _cell_probabilities(
    cells: BodyCells, outputs: Mapping[str, tf.Tensor]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """How probable each cell is, -inf where it was not seen.

    Returns:
        float64 [K] each: as the answer is selected, which is 0 outside a column that was chosen;
        given that its column is the answer's; and that times the probability of its column.
    """
    probabilities = mean_by_cell(outputs["token_probabilities"], cells)  # [K]
    if "column_logits" not in outputs:
        return probabilities, probabilities, probabilities
    is_seen = cells.num_tokens > 0
    column_logits = np.asarray(outputs["column_logits"], np.float64)  # [B, C]
    columns = np.minimum(cells.columns + 1, column_logits.shape[1] - 1)  # [K]
    # Where the model chooses column 0, no column, the answer is in the likeliest other.
    likeliest = 1 + column_logits[:, 1:].argmax(axis=1)  # [B]
    of_columns = softmax(column_logits)[cells.examples, columns]  # [K]
    in_columns = sigmoid(mean_by_cell(outputs["token_logits"], cells))
    # In the column that was chosen it is the same, but for rounding.
    in_columns = np.where(probabilities > 0.0, probabilities, in_columns)
    in_columns = np.where(is_seen, in_columns, -np.inf)
    probabilities = np.where(columns == likeliest[cells.examples], in_columns, probabilities)
    return probabilities, in_columns, np.where(is_seen, in_columns * of_columns, -np.inf)
