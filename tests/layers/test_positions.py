"""Position indices that restart in each cell."""

import numpy as np
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

from mate_tf.features.token_features import TokenFeatures
from mate_tf.layers.embedding import first_index_in_cell, original_first_index_in_cell


def features(row_ids, column_ids) -> TokenFeatures:
    zeros = tf.zeros_like(row_ids)
    return TokenFeatures(zeros, zeros, zeros, column_ids, row_ids, zeros, zeros, zeros, zeros)


def table(question: int, cells: list[int], columns: int, padding: int) -> TokenFeatures:
    """A question, then cells of the given numbers of tokens in row-major order, then padding."""
    row = [0] * question
    column = [0] * question
    for index, tokens in enumerate(cells):
        row += [index // columns] * tokens
        column += [index % columns + 1] * tokens
    pad = [0] * padding
    return features(tf.constant([row + pad]), tf.constant([column + pad]))


def test_each_cell_begins_anew_and_padding_counts_on():
    begins = first_index_in_cell(table(question=2, cells=[1, 2, 3], columns=2, padding=2))
    np.testing.assert_array_equal(begins, [[0, 0, 2, 3, 3, 5, 5, 5, 0, 0]])


@given(
    question=st.integers(1, 5),
    cells=st.lists(st.integers(1, 4), min_size=1, max_size=30),
    columns=st.integers(1, 6),
    padding=st.integers(0, 5),
)
def test_equals_the_original_below_256_rows(question, cells, columns, padding):
    tokens = table(question, cells, columns, padding)
    np.testing.assert_array_equal(first_index_in_cell(tokens), original_first_index_in_cell(tokens))


def test_rows_beyond_256_do_not_alias_unless_asked():
    tokens = table(question=1, cells=[1] * 2 * 300, columns=2, padding=0)
    own = np.arange(601)[None]
    np.testing.assert_array_equal(first_index_in_cell(tokens), own)
    assert (original_first_index_in_cell(tokens).numpy() < own).any()
