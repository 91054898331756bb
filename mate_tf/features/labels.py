"""What a conversion left out, and whether the answer survived.

Shape letters: R rows and C columns of a table's body.

Which tokens stand for an answer.

Shape letters: N tokens of a table, K those of them that are in the sequence, R rows and C columns
of its body.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from mate_tf.features.layout import Layout
from mate_tf.features.tokenized_table import TokenizedTable
from mate_tf.tables.table import Coordinates


class Labels(NamedTuple):
    """The labels of the sequence's table tokens, and whether all answers have some."""

    labels: np.ndarray  # int32 [K], 1 for a token of an answer
    num_found: int
    num_missing: int


def label_cells(tokens: TokenizedTable, kept: np.ndarray, coordinates: Coordinates) -> Labels:
    """Labels all tokens of the answer's cells.

    Args:
        tokens: the table.
        kept: which of its tokens are in the sequence, bool [N].
        coordinates: the cells, (row, column) in the body, counted from zero; those outside of the
            table count as missing.
    """
    num_rows, num_columns = tokens.num_rows, tokens.num_columns
    answers = set(coordinates)
    if not answers:
        return Labels(np.zeros(np.count_nonzero(kept), np.int32), 0, 0)
    marks = np.zeros(tokens.column_ranks.size, np.int32)  # [(R+1)*(C+1)]
    marks[
        [
            (row + 1) * (num_columns + 1) + column + 1
            for row, column in answers
            if 0 <= row < num_rows and 0 <= column < num_columns
        ]
    ] = 1
    cells = tokens.cell_ids[kept]  # [K]
    labels = marks[cells]
    num_found = len(np.unique(cells[labels == 1]))
    return Labels(labels, num_found, len(answers) - num_found)


def label_spans(
    tokens: TokenizedTable, kept: np.ndarray, answers: Iterable[Sequence[int]]
) -> Labels:
    """Labels the pieces of each answer where they first occur in a cell of the body.

    An occurrence counts if all of its pieces are in the sequence.

    Args:
        tokens: the table.
        kept: which of its tokens are in the sequence, bool [N].
        answers: the ids of each answer's pieces.
    """
    labels = np.zeros(len(kept), np.int32)  # [N]
    in_body = kept & (tokens.row_ids > 0) & (tokens.row_ids <= tokens.num_rows)
    places = np.flatnonzero(in_body)  # [body]
    cells = tokens.cell_ids
    num_found = num_missing = 0
    for pieces in answers:
        begins = places[places <= len(kept) - len(pieces)]
        begins = begins[cells[begins] == cells[begins + len(pieces) - 1]]
        for offset, piece in enumerate(pieces):
            ends = begins + offset
            begins = begins[in_body[ends] & (tokens.input_ids[ends] == piece)]
            if not len(begins):  # an answer may be far longer than any cell
                break
        num_found += len(begins) > 0
        num_missing += len(begins) == 0
        for begin in begins[:1]:
            labels[begin : begin + len(pieces)] = 1
    return Labels(labels[kept], num_found, num_missing)


@dataclass(frozen=True)
class ConversionReport:
    """What became of a question and a table.

    Attributes:
        num_tokens: tokens of the sequence, without padding.
        rows_dropped: rows of the body of which no token is in the sequence.
        columns_dropped: the same of columns, of which only a token selector leaves out any.
        tokens_trimmed: tokens that were left out of the rows that remain.
        answers_dropped: answer cells (or texts, for FeatureConfig.label_answer_spans), of this and
            the previous question, that no token stands for.
        answer_survived: whether none of them was of this question.
    """

    num_tokens: int
    rows_dropped: int
    columns_dropped: int
    tokens_trimmed: int
    answers_dropped: int
    answer_survived: bool


def report_conversion(
    tokens: TokenizedTable,
    layout: Layout,
    labels: Labels,
    previous: Labels,
) -> ConversionReport:
    """Counts what is not in the sequence.

    Args:
        tokens: the table.
        layout: what of it is in the sequence.
        labels: of the question's answer.
        previous: of the previous question's answer.
    """
    tokens_of_cell = layout.tokens_of_cell
    row_remains = tokens_of_cell.max(axis=1) > 0  # [R+1]
    column_remains = tokens_of_cell.max(axis=0) > 0  # [C+1]
    num_rows = int(row_remains[1 : tokens.num_rows + 1].sum())
    num_of_rows = int(row_remains[tokens.row_ids].sum())
    return ConversionReport(
        num_tokens=layout.num_tokens,
        rows_dropped=tokens.num_rows - num_rows,
        columns_dropped=tokens.num_columns - int(column_remains.sum()),
        tokens_trimmed=num_of_rows - int(tokens_of_cell.sum()),
        answers_dropped=labels.num_missing + previous.num_missing,
        answer_survived=labels.num_missing == 0,
    )
