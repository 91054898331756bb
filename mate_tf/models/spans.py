"""Spans of tokens within a cell: which there are, which answer a question, which are best.

The spans of a sequence of S tokens are in an order that follows from S alone: those of one token by
their place, then those of two, up to the longest.

Shapes: B batch, S sequence, L longest span, N spans, K best spans.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from mate_tf.models.cell_selection import LOG_ZERO


def span_bounds(length: int, max_span_length: int) -> tuple[np.ndarray, np.ndarray]:
    """The first and the last token of each span.

    Args:
        length: S.
        max_span_length: L, in tokens.

    Returns:
        int32 [N] each.
    """
    offsets = np.arange(min(max_span_length, length), dtype=np.int32)
    starts = np.concatenate([np.arange(length - offset, dtype=np.int32) for offset in offsets])
    return starts, starts + np.repeat(offsets, length - offsets)


def over_spans(
    combine: Callable[[tf.Tensor, tf.Tensor], tf.Tensor],
    starts: tf.Tensor,
    ends: tf.Tensor,
    max_span_length: int,
) -> tf.Tensor:
    """Combines what is known of each span's first and last token.

    One shift of the sequence at a time: no tensor has a vector for each span.

    Args:
        combine: from two tensors [B, s, ...] to [B, s], for any s.
        starts: [B, S, ...], of each token as a span's first.
        ends: [B, S, ...], of each token as its last.
        max_span_length: L.

    Returns:
        [B, N].
    """
    length = starts.shape[1]
    if length is None:
        length = tf.shape(starts)[1]
        counts = [tf.maximum(length - offset, 0) for offset in range(max_span_length)]
    else:
        counts = list(range(length, max(length - max_span_length, 0), -1))
    return tf.concat(
        [combine(starts[:, :count], ends[:, o:]) for o, count in enumerate(counts)], axis=1
    )


def body_cells(row_ids: tf.Tensor, column_ids: tf.Tensor) -> tf.Tensor:
    """Numbers the cells of the table's body in the order of the sequence.

    Args:
        row_ids, column_ids: int [B, S]; 0 for the header's row, the question and padding. A
            histogram row is like any other here.

    Returns:
        int32 [B, S]; 0 for a token outside the body, which no span may have.
    """
    in_body = (row_ids > 0) & (column_ids > 0)  # [B, S]
    numbers = tf.cumsum(tf.cast(~(_follows(row_ids) & _follows(column_ids)), tf.int32), axis=1)
    return tf.where(in_body, numbers, 0)


def valid_spans(cells: tf.Tensor, max_span_length: int) -> tf.Tensor:
    """Which spans are within one cell of the body: int32 [B, S] of `body_cells` to bool [B, N]."""
    return over_spans(
        lambda start, end: (start == end) & (start > 0), cells, cells, max_span_length
    )


def answer_bounds(label_ids: tf.Tensor, cells: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Where the answers begin and end: a run of labelled tokens within a cell is one.

    The release lets a run go on into the next cell.

    Args:
        label_ids: int [B, S], above 0 for the tokens of an answer.
        cells: int32 [B, S], of `body_cells`.

    Returns:
        bool [B, S] each.
    """
    labelled = (label_ids > 0) & (cells > 0)  # [B, S]
    goes_on = _follows(cells) & labelled & tf.roll(labelled, 1, axis=1)  # [B, S]
    return labelled & ~goes_on, labelled & ~tf.roll(goes_on, -1, axis=1)


def answer_spans(label_ids: tf.Tensor, cells: tf.Tensor, max_span_length: int) -> tf.Tensor:
    """Which spans are answers; a longer answer is none.

    In the release every beginning goes with every end that is near enough, also with that of
    another answer.

    Args:
        label_ids, cells: as `answer_bounds`.
        max_span_length: L.

    Returns:
        bool [B, N].
    """
    starts, ends = answer_bounds(label_ids, cells)
    answers = tf.cumsum(tf.cast(starts, tf.int32), axis=1)  # [B, S], counted from 1
    return over_spans(
        _same,
        tf.where(starts, answers, 0),
        tf.where(ends, answers, 0),
        max_span_length,
    )


def _same(start: tf.Tensor, end: tf.Tensor) -> tf.Tensor:
    return (start == end) & (start > 0)


def _follows(ids: tf.Tensor) -> tf.Tensor:
    """Whether a token has the same id as the one before it: [B, S] to bool [B, S]."""
    same = ids[:, 1:] == ids[:, :-1]  # [B, S-1]
    return tf.pad(same, [[0, 0], [1, 0]])


class BestSpans(NamedTuple):
    """The K likeliest spans of each example, best first.

    Attributes:
        starts: int32 [B, K], their first tokens.
        ends: int32 [B, K], their last.
        probabilities: float32 [B, K]; 0 for what is no valid span, where there are fewer than K.
    """

    starts: np.ndarray
    ends: np.ndarray
    probabilities: np.ndarray


def best_spans(span_logits, length: int, max_span_length: int, k: int = 1) -> BestSpans:
    """Finds the likeliest spans; of two alike the shorter, then the earlier one comes first.

    Args:
        span_logits: float32 [B, N], about -10000 for what is no valid span.
        length: S, with padding.
        max_span_length: L.
        k: K at most; it is N where there are no more spans.

    Raises:
        ValueError: if the logits are not those of a sequence of this length, or k is below 1.
    """
    logits = np.asarray(span_logits, np.float32)
    starts, ends = span_bounds(length, max_span_length)
    if logits.shape[1:] != starts.shape:
        raise ValueError(
            f"expected logits of {len(starts)} spans, for {length} tokens and spans of at most "
            f"{max_span_length}, got shape {logits.shape}"
        )
    if k < 1:
        raise ValueError(f"expected k of at least 1, got {k}")
    found = np.argsort(-logits, axis=1, kind="stable")[:, :k]  # [B, K]
    weights = np.exp(logits - logits.max(axis=1, keepdims=True, initial=LOG_ZERO))
    weights *= logits > LOG_ZERO / 2  # [B, N]
    total = np.maximum(weights.sum(axis=1, keepdims=True), np.finfo(np.float32).tiny)
    return BestSpans(starts[found], ends[found], np.take_along_axis(weights / total, found, axis=1))
