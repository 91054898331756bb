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

Shapes: B batch, S sequence, C columns of the model, A aggregations; P tokens of body cells; K body
cells of all tables in one line, table by table and row by row, k of one table; G groups of cells,
such as tables or columns; n sets of cells.
"""

import dataclasses
import itertools
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
from mate_tf.answers.row_words import row_in_words, rows_of_all
from mate_tf.features.english import says
from mate_tf.features.token_features import TokenFeatures
from mate_tf.features.wordpiece import Wordpiece
from mate_tf.tables.operators import ABSENT, OPERATORS, TAPAS_OPERATORS
from mate_tf.tables.table import Table
from mate_tf.task_configs import TableQAConfig

SELECTION_THRESHOLD = 0.5  # a more probable cell is part of the answer
SURE = 0.8  # and so it is whatever the words say of the number of cells or of the row
# By operator, how many conditions suffice: one where cells are counted, two where they are added
# up; 0 needs a value to be beyond.
_FEWEST = {"NONE": 0, "SUM": 2, "AVERAGE": 2, "COUNT": 1}
_NONE, _COUNT = TAPAS_OPERATORS.index("NONE"), TAPAS_OPERATORS.index("COUNT")  # of any model


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
    """The body cells of a batch of tables, and their tokens."""

    begins: np.ndarray  # int64 [B+1], where each table's cells begin
    examples: np.ndarray  # int64 [K], the table of each cell, ascending
    columns: np.ndarray  # int64 [K], from 0
    token_indices: np.ndarray  # int64 [P], places in the batch laid out flat, [B * S]
    token_cells: np.ndarray  # int64 [P]
    num_tokens: np.ndarray  # int64 [K]; 0 for a cell that is not in the sequence

    def table_slice(self, index: int) -> slice:
        """The cells of one table."""
        return slice(self.begins[index], self.begins[index + 1])


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


def group_body_cells(asked: Asked) -> BodyCells:
    """Groups the tokens of a batch by the cell of their table; errors as `body_coordinates`."""
    tables = asked.given_tables
    rows, columns = body_coordinates(asked)
    sizes = np.array([(table.num_rows, table.num_columns) for table in tables])  # [B, 2]
    begins = np.concatenate([[0], np.cumsum(sizes.prod(axis=1))])
    examples = np.repeat(np.arange(len(tables)), np.diff(begins))  # [K]
    cells = begins[:-1, np.newaxis] + rows * sizes[:, 1:] + columns  # [B, S]
    token_indices = np.flatnonzero((rows >= 0) & (columns >= 0))
    token_cells = cells.ravel()[token_indices]
    return BodyCells(
        begins=begins,
        examples=examples,
        columns=(np.arange(begins[-1]) - begins[examples]) % sizes[examples, 1],
        token_indices=token_indices,
        token_cells=token_cells,
        num_tokens=np.bincount(token_cells, minlength=begins[-1]),
    )


def mean_by_cell(values, cells: BodyCells) -> np.ndarray:
    """Averages token values [B, S] over each cell: float64 [K], -inf where it has no token."""
    weights = np.asarray(values, np.float64).ravel()[cells.token_indices]  # [P]
    sums = np.bincount(cells.token_cells, weights, minlength=len(cells.num_tokens))  # [K]
    return np.where(cells.num_tokens > 0, sums / np.maximum(cells.num_tokens, 1), -np.inf)


def select_cells(
    probabilities: np.ndarray,
    groups: np.ndarray,
    threshold: float | np.ndarray,
    otherwise: np.ndarray,
) -> np.ndarray:
    """Selects in each group the cells above a threshold, or else the most probable ones: bool [K].

    Probabilities are float64 [K]; a cell with -inf is never selected. Groups are int64 [K], the
    threshold one for all cells or float [K]. Where no cell of a group is above it, as many of the
    most probable ones are selected as `otherwise` says, int [G]; of equal ones the first.
    """
    selected = probabilities > threshold  # [K]
    has_any = np.bincount(groups, selected, minlength=len(otherwise)) > 0  # [G]
    left = np.flatnonzero(~has_any[groups] & (probabilities > -np.inf))
    left = left[np.lexsort((-probabilities[left], groups[left]))]  # by group, most probable first
    left_groups = groups[left]
    ranks = np.arange(len(left)) - np.searchsorted(left_groups, left_groups)
    selected[left[ranks < otherwise[left_groups]]] = True
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
    tables = asked.given_tables
    cells = group_body_cells(asked)
    probabilities, in_columns, with_columns = _cell_probabilities(cells, outputs)  # [K] each
    operators: tuple[str, ...] = ("NONE",)
    aggregations = np.ones((len(tables), 1))
    if "aggregation_logits" in outputs:
        operators = config.operators
        aggregations = softmax(np.asarray(outputs["aggregation_logits"], np.float64))  # [B, A]
        if aggregations.shape[1] != len(operators):
            raise ValueError(
                f"expected a model of the operators {', '.join(operators)}, as its config names "
                f"them, got one of {aggregations.shape[1]}"
            )
    computes = np.array([name != ABSENT for name in operators])  # [A]
    absent = aggregations[:, ~computes].sum(axis=1)  # [B]
    is_absent = absent > config.absent_threshold
    aggregations = aggregations[:, computes]  # of the answer, if there is one
    operators = tuple(name for name in operators if name != ABSENT)

    row_from: dict[int, RowFrom] = {}  # of the examples whose words name a row
    # TAPAS's own operators do not ask for facts.
    facts = _table_facts(asked, cells) if len(operators) > len(TAPAS_OPERATORS) else None
    is_plain = config.plain_answers and len(asked.questions) > 0
    threshold = np.inf if config.cell_cross_entropy else SELECTION_THRESHOLD
    thresholds, number = np.full(len(tables), threshold), np.ones(len(tables), np.int64)  # [B]
    likeliest = aggregations.argmax(axis=1)  # [B]
    chosen = [operators[index] for index in likeliest.tolist()]
    with_rows, is_in_row = None, np.zeros(len(probabilities), bool)  # [K] each
    if "row_scores" in outputs:
        with_rows, is_in_row = _row_probabilities(cells, outputs["row_scores"], in_columns)
        is_along = np.array([OPERATORS[name].along_row for name in chosen])  # [B]
        in_row = np.where(is_in_row, in_columns, np.minimum(in_columns, 0.0))
        probabilities = np.where(is_along[cells.examples], in_row, probabilities)
    if not config.cell_cross_entropy:
        expected = np.bincount(cells.examples, np.maximum(probabilities, 0.0), len(tables))
        is_count = likeliest == _COUNT
        number = np.where(is_count, np.maximum(np.rint(expected), 1), 1).astype(np.int64)
        number[np.array(chosen) == "NO"] = 0
        is_of_two = np.array([OPERATORS[name].of_two for name in chosen])
        # Of one column: outside the chosen one, cells have a probability of 0.
        possible = np.bincount(cells.examples, probabilities > 0.0, len(tables)).astype(np.int64)
        number[is_of_two] = np.clip(possible[is_of_two], 1, 2)
        thresholds[is_of_two] = np.inf
        if is_plain:
            asks_for_one = [
                not _asks_for_several(text.lower(), bool(follows))
                for text, follows in itertools.zip_longest(asked.questions, asked.follow_ups)
            ]
            is_one = (likeliest == _NONE) & asks_for_one  # [B]
            thresholds[is_one] = SURE
            if facts is not None:
                for example in np.flatnonzero(is_one).tolist():
                    if named := _named_row(asked, cells, facts[example], example, probabilities):
                        thresholds[example] = np.inf
                        row_from[example] = "both" if named[0] == named[1] else "words"
                        for values in (probabilities, in_columns, with_columns):
                            values[named] = values[named[::-1]]
    thresholds = thresholds[cells.examples]  # [K]
    selected = select_cells(probabilities, cells.examples, thresholds, number)  # [K]
    if facts is not None and is_plain:
        for example, operator in enumerate(chosen):
            if example in row_from or operator not in _FEWEST:
                continue
            part = cells.table_slice(example)
            rows = rows_of_all(asked.questions[example], facts[example], _FEWEST[operator])
            meets_all = _in_likeliest_column(rows, probabilities[part], tables[example].num_columns)
            if meets_all is not None:
                selected[part], row_from[example] = meets_all, "words"
    selected_in_columns = np.zeros_like(selected)
    selected_in_row = np.zeros_like(selected)
    if num_alternatives and "column_logits" in outputs:
        columns = cells.examples * (cells.columns.max() + 1) + cells.columns  # [K]
        one_each = np.ones(columns.max() + 1, np.int64)
        selected_in_columns = select_cells(in_columns, columns, threshold, one_each)
        selected_in_row = is_in_row & (in_columns > threshold)

    answers = []
    for index, table in enumerate(tables):
        part = cells.table_slice(index)
        indices = np.flatnonzero(selected[part])
        may_be_none = not OPERATORS[chosen[index]].needs_cells
        if not (len(indices) or (may_be_none and table.num_rows)):
            answers.append(no_answer())
            continue
        cell_probabilities = CellProbabilities(
            table,
            in_columns[part],
            with_columns[part],
            aggregations[index],
            operators,
            selected_in_columns[part],
            facts and facts[index],
            None if with_rows is None else with_rows[part],
            selected_in_row[part],
        )
        answer = likeliest_answer(cell_probabilities, indices)
        absence = float(absent[index])
        answer = dataclasses.replace(answer, absence=absence, row_from=row_from.get(index, ""))
        others = tuple(best_others(cell_probabilities, indices, answer, num_alternatives))
        if is_absent[index]:
            none = no_answer(absence, (answer, *others))
            answers.append(dataclasses.replace(none, aggregation=ABSENT))
        else:
            answers.append(dataclasses.replace(answer, alternatives=others))
    return answers


def _in_likeliest_column(
    rows: np.ndarray | None, probabilities: np.ndarray, width: int
) -> np.ndarray | None:
    """The cells of some rows, bool [R], in the column of the likeliest: bool [k]; None for none."""
    if rows is None:
        return None
    grid = rows[:, np.newaxis] & (np.arange(width) == probabilities.argmax() % width)
    selected = grid.ravel() & (probabilities > -np.inf)
    return selected if selected.any() else None


def _asks_for_several(text: str, follows_up: bool) -> bool:
    """Whether a question in lower case asks for several cells.

    A follow-up about "them" asks for one of each row: of 229 such, 214 have all rows as answer.
    """
    asks_for_each = says(text, "them") and not says(text, "superlative", "of or which")
    return says(text, "several") or (follows_up and asks_for_each)


def _named_row(
    asked: Asked, cells: BodyCells, facts: TableFacts, index: int, probabilities: np.ndarray
) -> list[int]:
    """The likeliest cell of an example, and that of its column in the row that the words name.

    Nothing where the latter is not in the sequence, or the model is sure of the other alone and the
    words allow its row.
    """
    part, width = cells.table_slice(index), len(facts.names)
    row, column = divmod(int(probabilities[part].argmax()), width)
    named = row_in_words(asked.questions[index], facts, column)
    if named is None:
        return []
    best, chosen = (int(part.start) + width * table_row + column for table_row in (row, named.row))
    is_selected = row == named.row or probabilities[chosen] > SELECTION_THRESHOLD
    is_open = probabilities[best] <= SURE or not named.possible[row]
    return [best, chosen] if cells.num_tokens[chosen] and (is_selected or is_open) else []


def _table_facts(asked: Asked, cells: BodyCells) -> list[TableFacts]:
    """The facts of each table."""
    features = asked.features.map(np.asarray)
    is_question = (features.segment_ids == 0) & (features.input_mask > 0)  # [B, S]
    mentioned, positions = np.zeros((2, *is_question.shape))
    for index, (ids, in_question) in enumerate(zip(features.input_ids, is_question, strict=True)):
        words, first = np.unique(ids[in_question], return_index=True)
        if not len(words):
            continue
        nearest = np.searchsorted(words, ids).clip(max=len(words) - 1)
        mentioned[index] = words[nearest] == ids
        positions[index] = first[nearest] * mentioned[index]
    in_header = (features.column_ids > 0) & (features.row_ids == 0) & (features.input_mask > 0)
    shares = np.maximum(mean_by_cell(mentioned, cells), 0.0)
    by_cell = (  # [K] each
        shares,
        cells.num_tokens,
        np.maximum(mean_by_cell(features.column_ranks, cells), 0.0),
        np.maximum(mean_by_cell(positions, cells), 0.0) / np.where(shares > 0, shares, 1.0),
        mean_by_cell(features.numeric_relations, cells),
    )
    facts = []
    for index, table in enumerate(asked.given_tables):
        part, width = cells.table_slice(index), table.num_columns
        *grids, relations = (values[part].reshape(-1, width) for values in by_cell)
        columns = features.column_ids[index, in_header[index]] - 1
        counts, sums = (
            np.bincount(columns, weights, width)
            for weights in (None, mentioned[index, in_header[index]])
        )
        facts.append(TableFacts(table, *grids, sums / np.maximum(counts, 1), relations))
    return facts


def _cell_probabilities(
    cells: BodyCells, outputs: Mapping[str, ArrayLike]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The probability of each cell, -inf where it was not seen, in three ways: float64 [K].

    By itself, 0 outside the chosen column; given its column; and times the column's probability.
    """
    probabilities = mean_by_cell(outputs["token_probabilities"], cells)  # [K]
    if "column_logits" not in outputs:
        return probabilities, probabilities.copy(), probabilities.copy()
    is_seen = cells.num_tokens > 0
    column_logits = np.asarray(outputs["column_logits"], np.float64)  # [B, C]
    columns = np.minimum(cells.columns + 1, column_logits.shape[1] - 1)  # [K]
    # If the model chooses column 0, which is none, the answer is in the likeliest other.
    likeliest = 1 + column_logits[:, 1:].argmax(axis=1)  # [B]
    column_probabilities = softmax(column_logits)[cells.examples, columns]  # [K]
    in_columns = sigmoid(mean_by_cell(outputs["token_logits"], cells))
    # In the chosen column both are the same, except for rounding.
    in_columns = np.where(probabilities > 0.0, probabilities, in_columns)
    in_table = np.where(is_seen, in_columns * column_probabilities, -np.inf)
    in_columns = np.where(is_seen, in_columns, -np.inf)
    probabilities = np.where(columns == likeliest[cells.examples], in_columns, probabilities)
    return probabilities, in_columns, in_table


def _row_probabilities(
    cells: BodyCells, row_scores: ArrayLike, probabilities: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The probability of each cell times its row's, and whether its row is the likeliest: [K] each.

    The cells' own probabilities [K] are given their row; the scores are [B, S].
    """
    is_seen = cells.num_tokens > 0
    scores = np.where(is_seen, mean_by_cell(row_scores, cells), 0.0)
    # A row begins where the first column does.
    rows = np.cumsum(cells.columns == 0) - 1  # [K]
    sums, counts = (np.bincount(rows, weights) for weights in (scores, is_seen))
    logits = np.where(counts > 0, sums / np.maximum(counts, 1), -np.inf)[rows]  # [K]
    with_rows, is_likeliest = np.full(len(rows), -np.inf), np.zeros(len(rows), bool)
    for example in range(len(cells.begins) - 1):
        part = cells.table_slice(example)
        if not is_seen[part].any():
            continue
        firsts = cells.columns[part] == 0
        shares = softmax(logits[part][firsts])[np.cumsum(firsts) - 1]  # [k]
        np.multiply(probabilities[part], shares, out=with_rows[part], where=is_seen[part])
        is_likeliest[part] = is_seen[part] & (rows[part] == rows[part][shares.argmax()])
    return with_rows, is_likeliest


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
        if operator.of_two or operator.along_row:
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
    sets = [indices, *_selections_of_other_columns(probabilities, indices)]
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


def _selections_of_other_columns(
    probabilities: CellProbabilities, indices: np.ndarray
) -> list[np.ndarray]:
    """The indices of the cells selected in each column without any of the given indices."""
    width = probabilities.table.num_columns
    selected = np.flatnonzero(probabilities.selected_in_columns)
    others = sorted(set((selected % width).tolist()) - set((indices % width).tolist()))
    return [selected[selected % width == column] for column in others]
