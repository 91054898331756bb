"""Spans against loops over all pairs of tokens."""

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

from mate_tf.answers.decoding import best_spans
from mate_tf.models.cell_selection import LOG_ZERO
from mate_tf.models.span_reading import (
    answer_bounds,
    answer_spans,
    body_cells,
    over_spans,
    span_bounds,
    valid_spans,
)


def all_spans(length, max_span_length):
    """First and last token of each span, in the order of the spans."""
    return [
        (start, start + offset)
        for offset in range(max_span_length)
        for start in range(length - offset)
    ]


def answers_of(labels, cells):
    """The runs of labelled tokens within a cell of the body, as (first, last)."""
    runs = []
    for token, (label, cell) in enumerate(zip(labels, cells, strict=True)):
        if not label or 0 in cell:
            continue
        if runs and runs[-1][1] == token - 1 and cells[token - 1] == cell:
            runs[-1] = (runs[-1][0], token)
        else:
            runs.append((token, token))
    return runs


@st.composite
def sequences(draw):
    """A question, a header of two cells, body cells row by row, and padding; labels anywhere.

    Returns (cells, labels): of each token (row, column) and 0 or 1. A table may have no body.
    """
    sizes = st.integers(0, 5)
    cells = [(0, 0)] * draw(sizes) + [(0, 1)] * draw(sizes) + [(0, 2)] * draw(sizes)
    for row in range(1, draw(st.integers(1, 5))):
        for column in (1, 2):
            cells += [(row, column)] * draw(sizes)
    cells += [(0, 0)] * draw(st.integers(1, 5))
    labels = draw(st.lists(st.integers(0, 1), min_size=len(cells), max_size=len(cells)))
    return cells, labels


def as_tensors(cells, labels):
    rows, columns = np.array(cells, np.int32).T
    return tf.constant(rows[None]), tf.constant(columns[None]), tf.constant([labels])


@given(st.integers(1, 40), st.integers(1, 12))
def test_spans_are_in_the_order_of_a_loop_over_offsets_then_starts(length, max_span_length):
    starts, ends = span_bounds(length, max_span_length)
    assert starts.dtype == ends.dtype == np.int32
    assert list(zip(starts, ends, strict=True)) == all_spans(length, max_span_length)


@pytest.mark.parametrize("static", [True, False])
@pytest.mark.parametrize(("length", "max_span_length"), [(7, 3), (3, 3), (2, 10), (1, 1)])
def test_combined_tokens_are_those_of_the_spans(length, max_span_length, static):
    values = tf.range(length)[None]  # [1, S]
    signature = [tf.TensorSpec([1, length if static else None], tf.int32)]
    combine = tf.function(
        lambda ids: over_spans(lambda a, b: 100 * a + b, ids, ids, max_span_length),
        input_signature=signature,
    )
    starts, ends = span_bounds(length, max_span_length)
    np.testing.assert_array_equal(combine(values)[0], 100 * starts + ends)
    if static:
        assert combine.get_concrete_function().output_shapes == (1, len(starts))


@given(sequences(), st.integers(1, 7))
def test_valid_spans_are_within_one_cell_of_the_body(sequence, max_span_length):
    cells, labels = sequence
    rows, columns, _ = as_tensors(cells, labels)
    found = valid_spans(body_cells(rows, columns), max_span_length)
    expected = [
        0 not in cells[start] and len(set(cells[start : end + 1])) == 1
        for start, end in all_spans(len(cells), max_span_length)
    ]
    np.testing.assert_array_equal(found[0], expected)


@given(sequences(), st.integers(1, 7))
def test_answers_are_the_labelled_runs_of_each_cell(sequence, max_span_length):
    cells, labels = sequence
    rows, columns, label_ids = as_tensors(cells, labels)
    numbers = body_cells(rows, columns)
    runs = answers_of(labels, cells)
    starts, ends = answer_bounds(label_ids, numbers)
    assert list(np.flatnonzero(starts[0])) == [start for start, _ in runs]
    assert list(np.flatnonzero(ends[0])) == [end for _, end in runs]
    found = answer_spans(label_ids, numbers, max_span_length)
    expected = [span in runs for span in all_spans(len(cells), max_span_length)]
    np.testing.assert_array_equal(found[0], expected)


def test_answers_side_by_side_in_two_cells_are_two():
    cells = body_cells(tf.constant([[0, 1, 1, 1, 1]]), tf.constant([[0, 1, 1, 2, 2]]))
    found = answer_spans(tf.constant([[0, 0, 1, 1, 1]]), cells, max_span_length=3)
    starts, ends = span_bounds(5, 3)
    spans = [(starts[i], ends[i]) for i in np.flatnonzero(found[0])]
    assert spans == [(2, 2), (3, 4)]


def test_an_answer_longer_than_the_longest_span_is_none():
    cells = body_cells(tf.ones([1, 4], tf.int32), tf.ones([1, 4], tf.int32))
    labels = tf.constant([[1, 1, 1, 0]])
    assert np.count_nonzero(answer_spans(labels, cells, max_span_length=3)) == 1
    assert np.count_nonzero(answer_spans(labels, cells, max_span_length=2)) == 0


@given(st.integers(0, 1000), st.integers(1, 9), st.integers(1, 4), st.integers(1, 40))
def test_best_spans_are_those_of_a_sorted_list(seed, length, max_span_length, k):
    rng = np.random.default_rng(seed)
    spans = all_spans(length, min(max_span_length, length))
    logits = rng.integers(-3, 3, (2, len(spans))).astype(np.float32)  # with many alike
    valid = rng.random(logits.shape) < 0.7
    logits[~valid] = LOG_ZERO
    found = best_spans(logits, length, max_span_length, k)
    assert found.starts.shape == (2, min(k, len(spans)))
    for row, is_valid, starts, ends, probabilities in zip(logits, valid, *found, strict=True):
        order = sorted(range(len(spans)), key=lambda i: (-row[i], i))[:k]
        assert list(zip(starts, ends, strict=True)) == [spans[i] for i in order]
        weights = np.exp(row.astype(np.float64)) * is_valid
        expected = weights / weights.sum() if is_valid.any() else weights
        np.testing.assert_allclose(probabilities, expected[order], rtol=1e-5)


def test_best_spans_of_another_length_are_refused():
    message = r"logits of 7 spans, for 4 tokens and spans of at most 2, got shape \(1, 9\)"
    with pytest.raises(ValueError, match=message):
        best_spans(np.zeros((1, 9), np.float32), 4, 2)
