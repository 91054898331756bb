"""The limits of raw input, checked in the graph, and which pieces of cells stay within them.

What may be left out is as in mate_tf/features/fitting.py; rows are never dropped here.

Shapes: B batch, R rows and C columns of the largest table of the batch; N header and body cells of
all tables, P their pieces.
"""

from typing import NamedTuple

import tensorflow as tf

from mate_tf.features.config import FeatureConfig
from mate_tf.features.wordpiece import Wordpiece


class RawInput(NamedTuple):
    """Questions and their tables, padded to the largest table of the batch.

    Attributes:
        questions: string [B].
        headers: string [B, C].
        cells: string [B, R, C].
        num_rows: int32 [B], of each table's body.
        num_columns: int32 [B].
    """

    questions: tf.Tensor
    headers: tf.Tensor
    cells: tf.Tensor
    num_rows: tf.Tensor
    num_columns: tf.Tensor


def checked(config: FeatureConfig, given: RawInput) -> RawInput:
    """The input itself, once it is known to have shapes that fit and tables within the limits.

    Raises:
        tf.errors.InvalidArgumentError: when it is run, if it has not.
    """
    shape = tf.shape(given.cells)
    for name, expected in (
        ("questions", shape[:1]),
        ("headers", tf.stack([shape[0], shape[2]])),
        ("num_rows", shape[:1]),
        ("num_columns", shape[:1]),
    ):
        actual = tf.shape(getattr(given, name))
        given = _once(
            given,
            tf.reduce_all(actual == expected),
            f"expected {name} of shape {{}} for cells of shape {{}}, got {{}}",
            (expected, shape, actual),
        )
    given = _once(given, shape[0] > 0, "expected at least 1 question, got {}", (shape[0],))
    most_rows = None if config.max_row_id is None else config.max_row_id - 1
    for name, size, most in (
        ("num_rows", shape[1], most_rows),
        ("num_columns", shape[2], config.max_column_id - 1),
    ):
        numbers = getattr(given, name)
        is_wrong = (numbers < 1) | (numbers > size)
        message = f"expected {name} from 1 to {{}}, as the cells have, got {{}} (example {{}})"
        given = _once_for_each(given, is_wrong, message, (size,), numbers)
        if most is not None:
            message = (
                f"expected at most {most} {name.removeprefix('num_')}, got {{}} (example {{}})"
            )
            given = _once_for_each(given, getattr(given, name) > most, message, (), numbers)
    return given


def fitting_pieces(
    wordpiece: Wordpiece,
    config: FeatureConfig,
    pieces: tf.RaggedTensor,
    examples: tf.Tensor,
    starts: tf.Tensor,
) -> tf.Tensor:
    """Which pieces of the tables are in the sequences: bool [P].

    Args:
        wordpiece: the vocabulary.
        config: the limits, and what may be left out.
        pieces: int32 [N, (pieces)], of each cell.
        examples: int64 [P], the example that each piece is of, ascending.
        starts: int32 [B], the tokens before each table's.

    Raises:
        tf.errors.InvalidArgumentError: when it is run, if a sequence is too long.
    """
    word_begins = _word_begins(wordpiece, pieces)  # [P]
    allowed = tf.ones_like(word_begins, tf.bool)
    if config.cell_trim_length is not None:
        allowed = word_begins < config.cell_trim_length
    longest = config.max_seq_length
    if longest is None:
        return allowed
    needed = allowed & (word_begins < 1) if config.trim_cells else allowed
    batch = tf.shape(starts)[0]
    tokens = starts + tf.math.unsorted_segment_sum(tf.cast(needed, tf.int32), examples, batch)
    message = f"expected at most {longest} tokens, got {{}} (example {{}})"
    allowed = _once_for_each((allowed,), tokens > longest, message, (), tokens)[0]
    if not config.trim_cells:
        return allowed
    # By where its word begins in its cell, how many of a table's pieces there are: [B, places].
    places = tf.reduce_max(word_begins) + 1
    in_histogram = tf.cast(examples, tf.int32) * places + word_begins
    histogram = tf.math.unsorted_segment_sum(
        tf.cast(allowed, tf.int32), in_histogram, batch * places
    )
    cost = tf.cumsum(tf.reshape(histogram, [batch, places]), axis=1)
    budgets = longest - starts
    limits = tf.math.count_nonzero(cost <= budgets[:, tf.newaxis], axis=1, dtype=tf.int32)
    return allowed & (word_begins < tf.gather(limits, examples))


def _word_begins(wordpiece: Wordpiece, pieces: tf.RaggedTensor) -> tf.Tensor:
    """Where in its cell the word of each piece begins: int32 [P]."""
    begins_word = ~tf.gather(wordpiece.is_inner, pieces.values)
    places = tf.range(tf.shape(begins_word)[0])
    words = tf.cumsum(tf.cast(begins_word, tf.int32)) - 1  # the word of each piece
    of_word = tf.gather(tf.boolean_mask(places, begins_word), words)
    return of_word - tf.cast(tf.gather(pieces.row_starts(), pieces.value_rowids()), tf.int32)


def _once(given, holds: tf.Tensor, message: str, values: tuple):
    """The tensors, once a condition holds, otherwise an error with values in its message."""
    check = tf.debugging.Assert(holds, [tf.strings.format(message, values)])
    with tf.control_dependencies([check]):
        tensors = [tf.identity(tensor) for tensor in given]
    return type(given)(*tensors) if hasattr(given, "_fields") else tensors


def _once_for_each(given, is_wrong: tf.Tensor, message: str, values: tuple, numbers: tf.Tensor):
    """The same for a condition on each example, with its number and its place in the message."""
    example = tf.argmax(is_wrong, output_type=tf.int32)  # the first
    values = (*values, numbers[example], example)
    return _once(given, ~tf.reduce_any(is_wrong), message, values)
