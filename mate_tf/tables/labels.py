"""Which tokens stand for an answer.

Shape letters: N tokens of a table, K those of them that are in the sequence, R rows and C columns
of its body.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from mate_tf.tables.table import Coordinates
from mate_tf.tables.tokenized_table import TokenizedTable


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
