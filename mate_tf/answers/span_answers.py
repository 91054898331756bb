"""Answers of span reading: a stretch of a cell's text.

A span's probability is among all spans that lie within one cell of the body, to which a histogram
row does not belong. Alternatives are the next spans that say something else.

Shapes: B batch, S sequence, N spans, C classes, K spans looked at.
"""

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np
import tensorflow as tf

from mate_tf.answers.answer import Answer, SelectedCell, no_answer
from mate_tf.answers.numbers import unit_free_number
from mate_tf.features.token_features import TokenFeatures
from mate_tf.features.wordpiece import Wordpiece
from mate_tf.models.cell_probabilities import places_in_body
from mate_tf.models.cell_selection import LOG_ZERO
from mate_tf.models.span_reading import SpanReadingConfig
from mate_tf.models.spans import best_spans, span_bounds
from mate_tf.tables.table import Table

# Spans looked at for each that is wanted: neighbours often say the same, in another cell.
_SPANS_EACH = 8


def decode_spans(
    config: SpanReadingConfig,
    tables: Sequence[Table],
    features: TokenFeatures,
    outputs: Mapping[str, tf.Tensor],
    wordpiece: Wordpiece,
    histogram_row: bool = False,
    num_alternatives: int = 0,
) -> list[Answer]:
    """Reads the likeliest span of each example.

    Args:
        config: the model's.
        tables: the tables asked, B of them.
        features: int32 [B, S].
        outputs: span_logits [B, N], about -10000 for what is no span, and perhaps class_logits
            [B, C], the likeliest of which is the answer's class.
        wordpiece: what the features were made with.
        histogram_row: whether the features end in a histogram row, which is never read.
        num_alternatives: the most alternatives that an answer gets.

    Raises:
        ValueError: if an id is beyond its table's size.
    """
    rows, columns = places_in_body(tables, features.column_ids, features.row_ids, histogram_row)
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
    return Answer((text,), text, (cell,), "NONE", None, score, number=unit_free_number(text))


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
