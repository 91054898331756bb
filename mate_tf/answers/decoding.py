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
"""

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np
import tensorflow as tf
from scipy import special

from mate_tf.answers.alternatives import CellProbabilities, best_others, likeliest_answer
from mate_tf.answers.answer import Answer, no_answer
from mate_tf.features.token_features import TokenFeatures
from mate_tf.models.cell_probabilities import (
    SELECTION_THRESHOLD,
    BodyCells,
    group_body_cells,
    mean_by_cell,
    select_cells,
)
from mate_tf.models.classification import ClassificationConfig
from mate_tf.models.table_qa import TableQAConfig
from mate_tf.tables.table import AGGREGATIONS, Table


def decode_classes(
    config: ClassificationConfig, outputs: Mapping[str, tf.Tensor], num_alternatives: int = 0
) -> list[Answer]:
    """Reads the likeliest class of each example, the first of equally likely ones.

    Args:
        config: the model's.
        outputs: class_logits [B, C].
        num_alternatives: how many of the other classes are alternatives.
    """
    logits = np.asarray(outputs["class_logits"], np.float64)  # [B, C]
    probabilities = special.softmax(logits, axis=1)
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
    return Answer((name,), name, (), "NONE", None, score, class_index=index)


_COUNT = AGGREGATIONS.index("COUNT")


def decode_cells(
    config: TableQAConfig,
    tables: Sequence[Table],
    features: TokenFeatures,
    outputs: Mapping[str, tf.Tensor],
    histogram_row: bool = False,
    num_alternatives: int = 0,
) -> list[Answer]:
    """Reads the answers off the model's outputs for a batch.

    Args:
        config: the model's.
        tables: the tables asked, B of them.
        features: int32 [B, S].
        outputs: token_probabilities [B, S]; perhaps aggregation_logits [B, A]; of a model that
            chooses a column column_logits [B, C] and token_logits [B, S].
        histogram_row: whether the features end in a histogram row, which is never selected.
        num_alternatives: the most alternatives that an answer gets.

    Raises:
        ValueError: if an id is beyond its table's size.
    """
    cells = group_body_cells(tables, features.column_ids, features.row_ids, histogram_row)
    probabilities, in_columns, with_columns = _cell_probabilities(cells, outputs)  # [K] each
    aggregations = np.ones((len(tables), 1))
    if "aggregation_logits" in outputs:
        logits = np.asarray(outputs["aggregation_logits"], np.float64)
        aggregations = special.softmax(logits, axis=1)  # [B, A]

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
    of_columns = special.softmax(column_logits, axis=1)[cells.examples, columns]  # [K]
    in_columns = special.expit(mean_by_cell(outputs["token_logits"], cells))
    # In the column that was chosen it is the same, but for rounding.
    in_columns = np.where(probabilities > 0.0, probabilities, in_columns)
    in_columns = np.where(is_seen, in_columns, -np.inf)
    probabilities = np.where(columns == likeliest[cells.examples], in_columns, probabilities)
    return probabilities, in_columns, np.where(is_seen, in_columns * of_columns, -np.inf)
