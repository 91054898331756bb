"""From a model's outputs to the cells of an answer, what is computed from them, and the next best.

A cell is as probable as its tokens are on average. Cells above one half are selected; where none
is, the most probable one, but for NO, which may have none. COUNT then takes as many of the most
probable ones as are expected: the sum of all probabilities, which training fits to the answer. What
needs two cells, such as a difference, takes the two most probable ones; a softmax over cells always
selects the most probable one. Where a column is chosen first, operators along a row choose the
likeliest row in the same way. With `plain_answers` several cells are selected where the words ask
for them or the model is sure of them, and one cell alone is in the row that the words name.

A score is the mean probability of the cells, with their column's or row's, times that of the
aggregation; for YES and NO, which need no cells, that of the aggregation alone. Where ABSENT is
likely enough, there is no answer; the alternatives begin with the best one.

Shapes: B batch, S sequence, R rows and C columns of a table, k = R * C of its cells, row by row;
P tokens of body cells, A aggregations, n sets of cells. Columns of a model are C too, with none.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from mate_tf.answers.answer import (
    Answer,
    RowFrom,
    SelectedCell,
    TableFacts,
    answer_of_cells,
    is_repeated,
    no_answer,
)
from mate_tf.answers.calibration import sigmoid, softmax
from mate_tf.answers.views import row_in_words, rows_of_all
from mate_tf.features.english import says
from mate_tf.features.token_features import TokenFeatures
from mate_tf.features.wordpiece import Wordpiece
from mate_tf.tables.operators import ABSENT, OPERATORS, TAPAS_OPERATORS
from mate_tf.tables.table import Table
from mate_tf.task_configs import TableQAConfig

SELECTION_THRESHOLD = 0.5  # a more probable cell is part of the answer
SURE = 0.8  # and so it is whatever the words say of the number of cells or of the row
_NONE = TAPAS_OPERATORS.index("NONE")  # of any model
# What `decode_cells` reads; a model may lack all but the first.
OUTPUTS = (
    "token_probabilities",
    "aggregation_logits",
    "column_logits",
    "token_logits",
    "row_scores",
)


class Asked(NamedTuple):
    """A batch of questions, as a model is asked them."""

    tables: Sequence[Table | None]  # B; None for a sentence alone, which only a classifier takes
    features: TokenFeatures  # int32 [B, S]
    wordpiece: Wordpiece | None = None  # made the features; finds a span's text in its cell
    histogram_row: bool = False  # whether the features end in a histogram row
    questions: Sequence[str] = ()  # their texts; none where they are not known
    # Whether each follows up on the answer before it; none where none does.
    follow_ups: Sequence[bool] = ()

    @property
    def given_tables(self) -> list[Table]:
        return [table for table in self.tables if table is not None]


class BodyCells(NamedTuple):
    """The body cells of a table, and their tokens."""

    token_indices: np.ndarray  # int64 [P], places in the sequence
    token_cells: np.ndarray  # int64 [P], row by row
    num_tokens: np.ndarray  # int64 [R, C]; 0 for a cell that is not in the sequence

    def means(self, values: ArrayLike) -> np.ndarray:
        """Averages token values [S] over each cell: float64 [R, C], -inf where it has no token."""
        weights = np.asarray(values, np.float64)[self.token_indices]  # [P]
        sums = np.bincount(self.token_cells, weights, self.num_tokens.size)
        sums = sums.reshape(self.num_tokens.shape)
        return np.where(self.num_tokens > 0, sums / np.maximum(self.num_tokens, 1), -np.inf)


def body_coordinates(asked: Asked) -> tuple[np.ndarray, np.ndarray]:
    """Rows and columns of each token in the body of its table, int64 [B, S], from 0.

    One of them is negative outside the body. An id beyond its table's size is a ValueError.
    """
    tables, features = asked.given_tables, asked.features
    rows = np.asarray(features.row_ids, np.int64)  # [B, S]
    # The histogram row has the largest id, which may be one of the table's where rows were dropped.
    if asked.histogram_row:
        rows = np.where(rows == rows.max(axis=1, keepdims=True), 0, rows)
    rows, columns = rows - 1, np.asarray(features.column_ids, np.int64) - 1
    for name, ids, limits in (
        ("rows", rows, [table.num_rows for table in tables]),
        ("columns", columns, [table.num_columns for table in tables]),
    ):
        largest = ids.max(axis=1, initial=-1)  # [B]
        for index in np.flatnonzero(largest >= limits)[:1]:
            raise ValueError(
                f"expected tokens of at most {limits[index]} {name}, got {largest[index] + 1} "
                f"(table '{tables[index].table_id}')"
            )
    return rows, columns


def group_body_cells(asked: Asked) -> list[BodyCells]:
    """Groups the tokens of each table by its cells; errors as `body_coordinates`."""
    grouped = []
    for table, rows, columns in zip(asked.given_tables, *body_coordinates(asked), strict=True):
        indices = np.flatnonzero((rows >= 0) & (columns >= 0))
        shape = table.num_rows, table.num_columns
        cells = rows[indices] * shape[1] + columns[indices]
        counts = np.bincount(cells, minlength=shape[0] * shape[1])
        grouped.append(BodyCells(indices, cells, counts.reshape(shape)))
    return grouped


def select_cells(probabilities: np.ndarray, threshold: float, otherwise: int) -> np.ndarray:
    """Selects the cells above a threshold, or else so many of the most probable ones.

    Probabilities are float64 of any shape, the result is bool. A cell with -inf is never selected;
    of equally probable ones the first is.
    """
    selected = probabilities > threshold
    if not selected.any():
        best = np.argsort(-probabilities, axis=None, kind="stable")[:otherwise]
        selected.flat[best] = probabilities.flat[best] > -np.inf
    return selected


def decode_cells(
    config: TableQAConfig,
    outputs: Mapping[str, ArrayLike],
    asked: Asked,
    num_alternatives: int = 0,
) -> list[Answer]:
    """Reads the answers of table question answering; arguments and errors as of `Decoder`.

    The outputs are token_probabilities [B, S]; perhaps aggregation_logits [B, A]; of a model that
    chooses a column also column_logits [B, C] and token_logits [B, S], perhaps row_scores [B, S].
    """
    asked = asked._replace(features=asked.features.map(np.asarray))
    given = {name: np.asarray(outputs[name], np.float64) for name in OUTPUTS if name in outputs}
    names = config.operators
    if "aggregation_logits" in given and given["aggregation_logits"].shape[1] != len(names):
        raise ValueError(
            f"expected a model of the operators {', '.join(names)}, as its config names them, got "
            f"one of {given['aggregation_logits'].shape[1]}"
        )
    answers = []
    for index, cells in enumerate(group_body_cells(asked)):
        own = {name: values[index] for name, values in given.items()}
        answers.append(_decode_table(config, own, asked, index, cells, num_alternatives))
    return answers


def _decode_table(
    config: TableQAConfig,
    outputs: Mapping[str, np.ndarray],
    asked: Asked,
    index: int,
    cells: BodyCells,
    num_alternatives: int,
) -> Answer:
    """The answer to one question of a batch, from its own outputs, without [B]."""
    table = asked.given_tables[index]
    probabilities, in_columns, with_columns = _cell_probabilities(cells, outputs)  # [R, C] each
    operators: tuple[str, ...] = ("NONE",)
    aggregations = np.ones(1)
    if "aggregation_logits" in outputs:
        operators, aggregations = config.operators, softmax(outputs["aggregation_logits"])  # [A]
    computes = np.array([name != ABSENT for name in operators])  # [A]
    absence = float(aggregations[~computes].sum())
    aggregations = aggregations[computes]  # of the answer, if there is one
    operators = tuple(name for name in operators if name != ABSENT)
    chosen = operators[aggregations.argmax()]
    # TAPAS's own operators do not ask for facts.
    facts = None
    if len(operators) > len(TAPAS_OPERATORS):
        facts = _table_facts(asked.features.map(lambda values: values[index]), cells, table)
    question = asked.questions[index] if config.plain_answers and asked.questions else None

    with_rows, is_in_row = None, np.zeros(probabilities.shape, bool)
    if "row_scores" in outputs:
        with_rows, is_in_row = _row_probabilities(cells, outputs["row_scores"], in_columns)
        if OPERATORS[chosen].along_row:
            probabilities = np.where(is_in_row, in_columns, np.minimum(in_columns, 0.0))
    threshold = usual_threshold = np.inf if config.cell_cross_entropy else SELECTION_THRESHOLD
    number = 1
    row_from: RowFrom = ""
    if not config.cell_cross_entropy:
        if chosen == "COUNT":
            number = max(round(float(np.maximum(probabilities, 0.0).sum())), 1)
        elif chosen == "NO":
            number = 0
        elif OPERATORS[chosen].takes_two:
            # Of one column: outside the chosen one, cells have a probability of 0.
            threshold, number = np.inf, min(max(int((probabilities > 0.0).sum()), 1), 2)
        elif chosen == "NONE" and question is not None:
            follows = bool(asked.follow_ups and asked.follow_ups[index])
            if not _asks_for_several(question.lower(), follows):
                threshold = SURE
                if facts and (named := _named_cells(question, cells, facts, probabilities)):
                    threshold, row_from = np.inf, "both" if named[0] == named[1] else "words"
                    for values in (probabilities, in_columns, with_columns):
                        values.flat[named] = values.flat[named[::-1]]
    selected = select_cells(probabilities, threshold, number)  # [R, C]
    conditions = OPERATORS[chosen].conditions
    if facts is not None and question is not None and not row_from and conditions is not None:
        rows = rows_of_all(question, facts, conditions)
        if rows is not None:
            column = probabilities.argmax() % table.num_columns
            meets_all = rows[:, np.newaxis] & (np.arange(table.num_columns) == column)
            meets_all &= probabilities > -np.inf
            if meets_all.any():
                selected, row_from = meets_all, "words"
    selected_in_columns = selected_in_row = np.zeros_like(selected)
    if num_alternatives and "column_logits" in outputs:
        by_column = [select_cells(column, usual_threshold, 1) for column in in_columns.T]
        selected_in_columns = np.stack(by_column, axis=1)
        selected_in_row = is_in_row & (in_columns > usual_threshold)

    indices = np.flatnonzero(selected)
    may_be_none = not OPERATORS[chosen].needs_cells
    if not (len(indices) or (may_be_none and table.num_rows)):
        return no_answer()
    cell_probabilities = CellProbabilities(
        table,
        in_columns.ravel(),
        with_columns.ravel(),
        aggregations,
        operators,
        selected_in_columns.ravel(),
        facts,
        None if with_rows is None else with_rows.ravel(),
        selected_in_row.ravel(),
    )
    answer = likeliest_answer(cell_probabilities, indices)
    answer = dataclasses.replace(answer, absence=absence, row_from=row_from)
    others = tuple(best_others(cell_probabilities, indices, answer, num_alternatives))
    if absence > config.absent_threshold:
        return dataclasses.replace(no_answer(absence, (answer, *others)), aggregation=ABSENT)
    return dataclasses.replace(answer, alternatives=others)


def _asks_for_several(text: str, follows_up: bool) -> bool:
    """Whether a question in lower case asks for several cells.

    A follow-up about "them" asks for one of each row: of 229 such, 214 have all rows as answer.
    """
    asks_for_each = says(text, "them") and not says(text, "superlative", "of or which")
    return says(text, "several") or (follows_up and asks_for_each)


def _named_cells(
    question: str, cells: BodyCells, facts: TableFacts, probabilities: np.ndarray
) -> list[int]:
    """The indices of the likeliest cell, and of that of its column in the row that words name.

    Nothing where the latter is not in the sequence, or the model is sure of the other alone and the
    words allow its row.
    """
    width = facts.table.num_columns
    row, column = divmod(int(probabilities.argmax()), width)
    named = row_in_words(question, facts, column)
    if named is None or not cells.num_tokens[named.row, column]:
        return []
    is_selected = row == named.row or probabilities[named.row, column] > SELECTION_THRESHOLD
    is_open = probabilities[row, column] <= SURE or not named.possible[row]
    indices = [row * width + column, named.row * width + column]
    return indices if is_selected or is_open else []


def _table_facts(features: TokenFeatures, cells: BodyCells, table: Table) -> TableFacts:
    """The facts of a table from its tokens [S]."""
    is_question = (features.segment_ids == 0) & (features.input_mask > 0)  # [S]
    mentioned, positions = np.zeros((2, len(is_question)))
    words, first = np.unique(features.input_ids[is_question], return_index=True)
    if len(words):
        nearest = np.searchsorted(words, features.input_ids).clip(max=len(words) - 1)
        mentioned = 1.0 * (words[nearest] == features.input_ids)
        positions = first[nearest] * mentioned
    in_header = (features.column_ids > 0) & (features.row_ids == 0) & (features.input_mask > 0)
    columns = features.column_ids[in_header] - 1
    counts, sums = (
        np.bincount(columns, weights, table.num_columns) for weights in (None, mentioned[in_header])
    )
    shares = np.maximum(cells.means(mentioned), 0.0)
    return TableFacts(
        table=table,
        mentioned=shares,
        num_tokens=cells.num_tokens,
        ranks=np.maximum(cells.means(features.column_ranks), 0.0),
        positions=np.maximum(cells.means(positions), 0.0) / np.where(shares > 0, shares, 1.0),
        names=sums / np.maximum(counts, 1),
        relations=cells.means(features.numeric_relations),
    )


def _cell_probabilities(
    cells: BodyCells, outputs: Mapping[str, np.ndarray]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The probability of each cell, -inf where it was not seen, in three ways: float64 [R, C].

    By itself, 0 outside the chosen column; given its column; and times the column's probability.
    """
    probabilities = cells.means(outputs["token_probabilities"])
    if "column_logits" not in outputs:
        return probabilities, probabilities.copy(), probabilities.copy()
    is_seen = cells.num_tokens > 0
    column_logits = outputs["column_logits"]  # [C]
    columns = np.minimum(np.arange(probabilities.shape[1]) + 1, len(column_logits) - 1)
    # If the model chooses column 0, which is none, the answer is in the likeliest other.
    likeliest = 1 + column_logits[1:].argmax()
    in_columns = sigmoid(cells.means(outputs["token_logits"]))
    # In the chosen column both are the same, except for rounding.
    in_columns = np.where(probabilities > 0.0, probabilities, in_columns)
    in_table = np.where(is_seen, in_columns * softmax(column_logits)[columns], -np.inf)
    in_columns = np.where(is_seen, in_columns, -np.inf)
    probabilities = np.where(columns == likeliest, in_columns, probabilities)
    return probabilities, in_columns, in_table


def _row_probabilities(
    cells: BodyCells, row_scores: np.ndarray, probabilities: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The probability of each cell times its row's, and whether its row is the likeliest: [R, C].

    The cells' own probabilities [R, C] are given their row; the scores are [S].
    """
    is_seen = cells.num_tokens > 0
    with_rows, counts = np.full(is_seen.shape, -np.inf), is_seen.sum(axis=1)
    if not is_seen.any():
        return with_rows, is_seen
    sums = np.where(is_seen, cells.means(row_scores), 0.0).sum(axis=1)
    shares = softmax(np.where(counts > 0, sums / np.maximum(counts, 1), -np.inf))  # [R]
    np.multiply(probabilities, shares[:, np.newaxis], out=with_rows, where=is_seen)
    is_likeliest = np.arange(len(shares)) == shares.argmax()
    return with_rows, is_seen & is_likeliest[:, np.newaxis]


class CellProbabilities(NamedTuple):
    """The probabilities of a table's cells and of the aggregations."""

    table: Table
    cells: np.ndarray  # float64 [k], given that its column is the answer's; -inf where not seen
    with_columns: np.ndarray  # float64 [k], these times the probability of the column
    aggregations: np.ndarray  # float64 [A]
    operators: tuple[str, ...]
    selected_in_columns: np.ndarray  # bool [k], those of each column if it is the answer's
    facts: TableFacts | None = None
    with_rows: np.ndarray | None = None  # float64 [k], as with_columns; None without rows' scores
    selected_in_row: np.ndarray | None = None  # bool [k], those of the likeliest row

    def means(self, indices: np.ndarray) -> np.ndarray:
        """The mean probability of the cells at some indices for each operator: float64 [A].

        0 for an operator that does not take them: along a row those of several rows, and in a
        column those of several columns that were chosen along a row.
        """
        columns = self.with_columns[indices].mean() if len(indices) else 0.0
        rows, (row_ids, column_ids) = 0.0, np.divmod(indices, self.table.num_columns)
        if self.with_rows is not None and len(indices):
            rows = self.with_rows[indices].mean() if len(np.unique(row_ids)) == 1 else 0.0
            columns = columns if len(np.unique(column_ids)) == 1 else 0.0
        operators = [OPERATORS[name] for name in self.operators]
        by_operator = [rows if it.along_row else columns for it in operators]
        return np.where([it.needs_cells for it in operators], by_operator, 1.0)

    def answer_of(self, indices: np.ndarray, score: float, aggregation: int) -> Answer | None:
        """An aggregation of the cells at some indices, whose own score is given."""
        rows, columns = (ids.tolist() for ids in np.divmod(indices, self.table.num_columns))
        cells = tuple(
            SelectedCell(row, column, self.table.rows[row][column], probability)
            for row, column, probability in zip(
                rows, columns, self.cells[indices].tolist(), strict=True
            )
        )
        score = float(score * self.aggregations[aggregation])
        name = self.operators[aggregation]
        return answer_of_cells(self.table, cells, name, score, self.facts)


def likeliest_answer(probabilities: CellProbabilities, indices: np.ndarray) -> Answer:
    """The likeliest aggregation of the cells at some indices, int [at least one].

    It is the cells themselves where they lack what the aggregation needs, such as a number.
    """
    likeliest = int(probabilities.aggregations.argmax())
    score = probabilities.means(indices)[likeliest]
    answer = probabilities.answer_of(indices, score, likeliest)
    if answer is None:
        operator = OPERATORS[probabilities.operators[likeliest]]
        if operator.takes_two or operator.along_row:
            indices = indices[probabilities.cells[indices].argmax()][np.newaxis]
        answer = probabilities.answer_of(indices, score, _NONE)
    assert answer is not None, "cells themselves are always an answer"
    return answer


def best_others(
    probabilities: CellProbabilities, indices: np.ndarray, answer: Answer, number: int
) -> list[Answer]:
    """The best alternatives to the answer from the cells at some indices, at most a number.

    They are every aggregation of these cells, of those selected in each other column and of those
    in the likeliest row, and each other cell by itself; those that have some probability and repeat
    neither a better one nor the answer. A score may be above that of the answer, which is of the
    likeliest column and aggregation.
    """
    if not number:
        return []
    width = probabilities.table.num_columns
    selected = np.flatnonzero(probabilities.selected_in_columns)
    other_columns = sorted(set((selected % width).tolist()) - set((indices % width).tolist()))
    sets = [indices, *(selected[selected % width == column] for column in other_columns)]
    if probabilities.selected_in_row is not None:
        in_row = np.flatnonzero(probabilities.selected_in_row)
        sets += [in_row] * (len(in_row) > 1)
    means = np.array([probabilities.means(members) for members in sets])  # [n, A]
    set_scores = (means * probabilities.aggregations).ravel()  # [n * A]
    is_other = probabilities.cells > -np.inf  # [k]
    is_other[indices] = False
    others = np.flatnonzero(is_other)
    other_scores = probabilities.with_columns[others] * probabilities.aggregations[_NONE]
    scores = np.concatenate([set_scores, other_scores])
    alternatives: list[Answer] = []
    for index in np.argsort(-scores, kind="stable").tolist():
        if len(alternatives) == number or scores[index] <= 0.0:
            break
        if index < len(set_scores):
            members, aggregation = divmod(index, len(probabilities.aggregations))
            chosen, score = sets[members], means[members, aggregation]
        else:
            chosen, aggregation = others[[index - len(set_scores)]], _NONE
            score = probabilities.with_columns[chosen[0]]
        other = probabilities.answer_of(chosen, score, aggregation)
        if other is not None and not is_repeated(other, [answer, *alternatives]):
            alternatives.append(other)
    return alternatives
