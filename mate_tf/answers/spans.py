"""From a model's outputs to answers: of classes, and of spans within one cell of the body.

Shapes: B batch, S sequence, C classes, N spans.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from mate_tf.answers.answer import Answer, SelectedCell, no_answer
from mate_tf.answers.calibration import softmax
from mate_tf.answers.decoding import Asked, body_coordinates
from mate_tf.features.wordpiece import Wordpiece
from mate_tf.tables.columns import read_column
from mate_tf.tables.table import Table
from mate_tf.task_configs import LOG_ZERO, ClassificationConfig, SpanReadingConfig, span_bounds

# Spans looked at for each that is wanted: neighbours often say the same, in another cell.
_SPANS_EACH = 8


def decode_classes(
    config: ClassificationConfig,
    outputs: Mapping[str, ArrayLike],
    asked: Asked | None = None,
    num_alternatives: int = 0,
) -> list[Answer]:
    """Reads the likeliest class of each example, the first of equally likely ones.

    The output is class_logits [B, C]; alternatives are the other classes.
    """
    logits = np.asarray(outputs["class_logits"], np.float64)  # [B, C]
    order = np.argsort(-logits, axis=1, kind="stable")[:, : num_alternatives + 1]
    names = config.class_names or tuple(map(str, range(config.num_classes)))
    answers = []
    for classes, probabilities in zip(order.tolist(), softmax(logits).tolist(), strict=True):
        best, *others = [
            Answer((names[index],), score=probabilities[index], class_index=index)
            for index in classes
        ]
        answers.append(dataclasses.replace(best, alternatives=tuple(others)))
    return answers


def decode_spans(
    config: SpanReadingConfig,
    outputs: Mapping[str, ArrayLike],
    asked: Asked,
    num_alternatives: int = 0,
) -> list[Answer]:
    """Reads the likeliest span of each example; arguments and errors as of `Decoder`.

    The outputs are span_logits [B, N], about -10000 for an invalid span, and perhaps class_logits
    [B, C], whose likeliest class is the answer's. Alternatives are the next spans that say
    something else.
    """
    rows, columns = body_coordinates(asked)
    wanted = num_alternatives + 1
    input_ids = np.asarray(asked.features.input_ids)
    length = input_ids.shape[1]
    starts, _ = span_bounds(length, config.max_span_length)  # [N]
    readable = ((rows >= 0) & (columns >= 0))[:, starts]  # [B, N]
    logits = np.where(readable, outputs["span_logits"], LOG_ZERO)
    number = 1 if wanted == 1 else wanted * _SPANS_EACH
    best = best_spans(logits, length, config.max_span_length, number)
    classes: list[int | None] = [None] * len(rows)
    if "class_logits" in outputs:
        classes = np.asarray(outputs["class_logits"]).argmax(axis=1).tolist()
    tokens = np.stack([input_ids, rows, columns], axis=1)  # [B, 3, S]
    answers = []
    for index, table in enumerate(asked.given_tables):
        kept: list[Answer] = []
        spans = zip(*(values[index].tolist() for values in best), strict=True)
        for first, last, score in spans:
            if len(kept) == wanted or score <= 0.0:
                break
            other = _span_answer(table, tokens[index], first, last, score, asked.wordpiece)
            if all(other.items != earlier.items for earlier in kept):
                kept.append(other)
        answer = kept[0] if kept else no_answer()
        answers.append(
            dataclasses.replace(answer, alternatives=tuple(kept[1:]), class_index=classes[index])
        )
    return answers


def _span_answer(
    table: Table, tokens: np.ndarray, first: int, last: int, score: float, wordpiece: Any
) -> Answer:
    """The answer from a span of tokens, of which piece, row and column are given: int [3, S]."""
    in_cell = (tokens[1:] == tokens[1:, first : first + 1]).all(axis=0)  # [S]
    begin = int(in_cell.argmax())
    row, column = tokens[1:, first].tolist()
    pieces, whole = tokens[0, in_cell].tolist(), table.expanded_rows[row][column]
    text = span_text(whole, pieces, first - begin, last - begin, wordpiece)
    cell = SelectedCell(row, column, table.rows[row][column], score)
    return Answer((text,), (cell,), score=score, number=read_column([text]).numbers[0])


class BestSpans(NamedTuple):
    """The likeliest spans of each example, best first."""

    starts: np.ndarray  # int32 [B, number], their first tokens
    ends: np.ndarray  # int32 [B, number], their last tokens
    probabilities: np.ndarray  # float32 [B, number]; 0 for an invalid span


def best_spans(span_logits, length: int, max_span_length: int, number: int = 1) -> BestSpans:
    """Finds the likeliest spans; of equal ones the shorter, then the earlier comes first.

    The logits are float32 [B, N], about -10000 for an invalid span; ValueError if they are not
    those of a sequence of this length, S with padding. Where there are fewer than `number`, all N.
    """
    logits = np.asarray(span_logits, np.float32)
    starts, ends = span_bounds(length, max_span_length)
    if logits.shape[1:] != starts.shape:
        raise ValueError(
            f"expected logits of {len(starts)} spans, for {length} tokens and spans of at most "
            f"{max_span_length}, got shape {logits.shape}"
        )
    order = np.argsort(-logits, axis=1, kind="stable")[:, :number]
    weights = np.exp(logits - logits.max(axis=1, keepdims=True, initial=LOG_ZERO))
    weights *= logits > LOG_ZERO / 2  # [B, N]
    total = np.maximum(weights.sum(axis=1, keepdims=True), np.finfo(np.float32).tiny)
    return BestSpans(starts[order], ends[order], np.take_along_axis(weights / total, order, axis=1))


def span_text(text: str, pieces: list[int], first: int, last: int, wordpiece: Wordpiece) -> str:
    """The part of a cell's text from one of its pieces to another, as it is written there.

    `pieces` are the ids of the cell's pieces in the sequence, `first` and `last` places among them.
    Where the sequence does not hold the cell's first pieces, it is the pieces joined to words.
    """
    text = text.encode("utf-8", "ignore").decode()  # as it is tokenized
    all_pieces, starts = wordpiece.ids_and_starts(text)
    if all_pieces[: len(pieces)] != pieces:
        words = " ".join(wordpiece.vocabulary[piece] for piece in pieces[first : last + 1])
        return words.replace(" ##", "")
    # Several pieces may begin with the same character.
    ends = [start for start in starts[last + 1 :] if start > starts[last]]
    return text[starts[first] : ends[0] if ends else len(text)].strip()
