"""The token features of questions and tables given as text, computed in the graph.

They are those of mate_tf/features/builder.py for questions without a conversation. The rare texts
that cells.py and numbers.py beside it read differently are the only exception. Pieces are left out
as in mate_tf/features/tokenized_table.py, but rows are never dropped. Wordpieces are those of
mate_tf/features/wordpiece.py; TensorFlow Text's own BERT tokenizers differ from BERT's on about
1,140 characters.

Shapes: B batch, R rows and C columns of the largest table of the batch, S sequence; N header and
body cells of all tables, table by table and row by row, P their pieces.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf
import tensorflow_text as tf_text

from mate_tf.features.config import LENGTH_STEP, FeatureConfig
from mate_tf.features.token_features import TokenFeatures
from mate_tf.features.wordpiece import MAX_WORD_CHARACTERS, Wordpiece
from mate_tf.serving.raw_text.columns import Columns, ranks, read_columns, relations
from mate_tf.serving.raw_text.numbers import question_values
from mate_tf.tables.table import Table

_SPACE = r"[\t\n\r\p{Z}]+"
_DROPPED = r"[\p{Cc}\p{Cf}\x{FFFD}]+"
_CJK = (
    r"[\x{4E00}-\x{9FFF}\x{3400}-\x{4DBF}\x{20000}-\x{2A6DF}\x{2A700}-\x{2B73F}"
    r"\x{2B740}-\x{2B81F}\x{2B820}-\x{2CEAF}\x{F900}-\x{FAFF}\x{2F800}-\x{2FA1F}]"
)
_PUNCTUATION = r"[!-/:-@\[-`{-~\p{P}]"
_ALONE = f"{_PUNCTUATION}|{_CJK}"
_SPLIT = (f" |{_ALONE}", _ALONE)  # what to split at, and what of it to keep
_HAS_WORD_CHARACTER = r"(?s).*[\p{L}\p{N}].*"
# Cleaning drops this character from every text, so that a word of it can only be ours.
_EMPTY_MARK = "\N{REPLACEMENT CHARACTER}"


class RawInput(NamedTuple):
    """Questions and their tables, padded to the largest table of the batch."""

    questions: tf.Tensor  # string [B]
    headers: tf.Tensor  # string [B, C]
    cells: tf.Tensor  # string [B, R, C]
    num_rows: tf.Tensor  # int32 [B], of each table's body
    num_columns: tf.Tensor  # int32 [B]


def raw_input(questions: Sequence[str], tables: Sequence[Table]) -> dict[str, np.ndarray]:
    """The inputs of the signature `tables` by name, padded with empty texts.

    Texts are bytes in object arrays; characters without UTF-8 are left out.

    Raises:
        ValueError: if there are no questions, or not a table for each.
    """
    if not questions or len(questions) != len(tables):
        raise ValueError(
            f"expected questions and a table for each, got {len(questions)} questions and "
            f"{len(tables)} tables"
        )

    def encoded(texts: Sequence[str]) -> list[bytes]:
        return [text.encode("utf-8", "ignore") for text in texts]

    def padded(values: list[Any]) -> np.ndarray:
        return tf.ragged.constant(values, tf.string).to_tensor().numpy()

    return {
        "questions": np.array(encoded(questions), object),
        "headers": padded([encoded(table.header) for table in tables]),
        "cells": padded([[encoded(row) for row in table.rows] for table in tables]),
        "num_rows": np.array([table.num_rows for table in tables], np.int32),
        "num_columns": np.array([table.num_columns for table in tables], np.int32),
    }


def checked(config: FeatureConfig, given: RawInput) -> RawInput:
    """The input itself, checked for matching shapes and for tables within the limits.

    Raises:
        tf.errors.InvalidArgumentError: when it is run.
    """
    shape = tf.shape(given.cells)
    for name, expected in (
        ("questions", shape[:1]),
        ("headers", tf.stack([shape[0], shape[2]])),
        ("num_rows", shape[:1]),
        ("num_columns", shape[:1]),
    ):
        actual = tf.shape(getattr(given, name))
        message = f"expected {name} of shape {{}} for cells of shape {{}}, got {{}}"
        holds = tf.reduce_all(actual == expected)
        given = _once(given, holds, message, expected, shape, actual)
    given = _once(given, shape[0] > 0, "expected at least 1 question, got {}", shape[0])
    most_rows = None if config.max_row_id is None else config.max_row_id - 1
    for name, size, most in (
        ("num_rows", shape[1], most_rows),
        ("num_columns", shape[2], config.max_column_id - 1),
    ):
        numbers = getattr(given, name)
        is_wrong = (numbers < 1) | (numbers > size)
        message = f"expected {name} from 1 to {{}}, as the cells have, got {{}} (example {{}})"
        given = _once_for_each(given, is_wrong, message, numbers, size)
        if most is not None:
            what = name.removeprefix("num_")
            message = f"expected at most {most} {what}, got {{}} (example {{}})"
            given = _once_for_each(given, getattr(given, name) > most, message, numbers)
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
        examples: int64 [P], the example of each piece, ascending.
        starts: int32 [B], the number of tokens before each table.

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
    allowed = _once_for_each(allowed, tokens > longest, message, tokens)
    if not config.trim_cells:
        return allowed
    # How many pieces of a table have a word that begins at each place of its cell: [B, places].
    places = tf.reduce_max(word_begins) + 1
    in_histogram = tf.cast(examples, tf.int32) * places + word_begins
    counted = tf.cast(allowed, tf.int32)
    histogram = tf.math.unsorted_segment_sum(counted, in_histogram, batch * places)
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


def _once(given, holds: tf.Tensor, message: str, *values: tf.Tensor):
    """The tensors if a condition holds, otherwise an error with values in its message."""
    check = tf.debugging.Assert(holds, [tf.strings.format(message, values)])
    with tf.control_dependencies([check]):
        return tf.nest.map_structure(tf.identity, given)


def _once_for_each(given, is_wrong: tf.Tensor, message: str, numbers: tf.Tensor, *values):
    """The same for a condition on each example, whose number and place go into the message."""
    example = tf.argmax(is_wrong, output_type=tf.int32)  # the first
    return _once(given, ~tf.reduce_any(is_wrong), message, *values, numbers[example], example)


class RawFeatures(NamedTuple):
    """The features of raw input."""

    tokens: TokenFeatures  # int32 [B, S]
    columns: Columns  # of the tables, with the numbers in the cells
    given: RawInput  # with cells that are padded with empty texts


def build_features(
    wordpiece: Wordpiece, config: FeatureConfig, fixed_length: int | None, given: RawInput
) -> RawFeatures:
    """The features of a batch, of a fixed length where the model takes no other.

    Raises:
        tf.errors.InvalidArgumentError: when it is run, if shapes do not match, or a question and
            its table are beyond a limit.
    """
    given = checked(config, given)
    shape = tf.shape(given.cells, tf.int64)
    is_row = tf.sequence_mask(given.num_rows, shape[1])  # [B, R]
    is_column = tf.sequence_mask(given.num_columns, shape[2])  # [B, C]
    is_cell = is_row[:, :, tf.newaxis] & is_column[:, tf.newaxis]  # [B, R, C]

    headers = tf.zeros_like(given.headers) if config.strip_column_names else given.headers
    texts = tf.concat([headers[:, tf.newaxis], given.cells], axis=1)  # [B, R+1, C]
    is_text = tf.concat([is_column[:, tf.newaxis], is_cell], axis=1)
    places = tf.where(is_text)  # int64 [N, 3]
    tokenize = graph_wordpiece(wordpiece)
    pieces = tokenize(tf.boolean_mask(texts, is_text))  # [N, (pieces)]
    places = tf.gather(places, pieces.value_rowids())  # [P, 3]

    questions = tokenize(given.questions)  # [B, (pieces)]
    cls, sep = (tf.fill([shape[0], 1], special) for special in (wordpiece.cls, wordpiece.sep))
    text_ids = tf.concat([cls, questions, sep], axis=1)
    starts = tf.cast(text_ids.row_lengths(), tf.int32)  # [B]
    kept = fitting_pieces(wordpiece, config, pieces, places[:, 0], starts)
    input_ids, places = tf.boolean_mask(pieces.values, kept), tf.boolean_mask(places, kept)

    cells = tf.where(is_cell, given.cells, "")
    version = config.numbers_version
    columns = read_columns(given.headers, cells, is_cell, given.num_rows, version)
    column_ranks, inv_column_ranks = ranks(columns, version)  # [B, R, C] each
    numeric_relations = relations(columns, question_values(given.questions, version))

    def of_cells(grid: tf.Tensor) -> tf.Tensor:
        """Values of body cells [B, R, C] at the pieces [P], 0 at those of the header."""
        return tf.gather_nd(tf.pad(grid, [[0, 0], [1, 0], [0, 0]]), places)

    one, none = tf.ones_like(input_ids), tf.zeros_like(input_ids)
    of_tables = TokenFeatures(
        input_ids=input_ids,
        input_mask=one,
        segment_ids=one,
        column_ids=tf.cast(places[:, 2], tf.int32) + 1,
        row_ids=tf.cast(places[:, 1], tf.int32),
        prev_label_ids=none,
        column_ranks=of_cells(column_ranks),
        inv_column_ranks=of_cells(inv_column_ranks),
        numeric_relations=of_cells(numeric_relations),
    )  # [P] each
    examples = tf.cast(places[:, 0], tf.int32)  # [P]
    num_pieces = tf.math.unsorted_segment_sum(one, examples, tf.shape(starts)[0])  # [B]
    length = tf.constant(fixed_length or 0)
    if fixed_length is None:
        length = -(-tf.reduce_max(starts + num_pieces) // LENGTH_STEP) * LENGTH_STEP
        length = tf.minimum(length, config.max_seq_length or length)
    # The place of a table's first piece, minus its number among all pieces.
    shifts = starts - tf.cumsum(num_pieces, exclusive=True)
    in_sequence = tf.gather(shifts, examples) + tf.range(tf.shape(one)[0])  # [P]
    values = [values for values in of_tables if values is not None]
    batch = tf.scatter_nd(
        tf.stack([examples, in_sequence], axis=1),
        tf.stack(values, axis=1),
        tf.stack([tf.shape(starts)[0], length, len(values)]),
    )  # [B, S, features]
    tokens = TokenFeatures(*tf.unstack(batch, axis=2))
    tokens = tokens._replace(
        input_ids=tokens.input_ids + text_ids.to_tensor(shape=tf.stack([-1, length])),
        input_mask=tokens.input_mask + tf.sequence_mask(starts, length, tf.int32),
    )
    return RawFeatures(tokens, columns, given._replace(cells=cells))


@functools.lru_cache(maxsize=2)
def graph_wordpiece(wordpiece: Wordpiece) -> Callable[[tf.Tensor], tf.RaggedTensor]:
    """A tokenizer with the vocabulary of another one.

    It takes texts, string [N], in UTF-8 without its invalid bytes, and gives the ids of their
    pieces, int32 [N, (pieces)]; no row is empty.
    """
    empty = wordpiece.vocabulary[wordpiece.empty]
    with tf.init_scope():  # for whatever graph comes
        matcher = tf_text.FastWordpieceTokenizer(
            vocab=wordpiece.vocabulary,
            token_out_type=tf.int32,
            unknown_token="[UNK]",
            no_pretokenization=True,
            max_bytes_per_word=4 * MAX_WORD_CHARACTERS,
        )

    def tokenize(texts: tf.Tensor) -> tf.RaggedTensor:
        words = tf_text.regex_split(_normalized(texts), *_SPLIT)
        flat = tf.where(words.values == _EMPTY_MARK, empty, words.values)
        is_long = tf.strings.length(flat, unit="UTF8_CHAR") > MAX_WORD_CHARACTERS
        flat = tf.where(is_long, "[UNK]", flat)
        return words.with_values(matcher.tokenize(flat)).merge_dims(1, 2)

    return tokenize


def _normalized(texts: tf.Tensor) -> tf.Tensor:
    """Cleaned, in lower case and without accents; a mark in place of a text without content."""
    texts = tf.strings.unicode_transcode(texts, "UTF-8", "UTF-8", errors="ignore")
    texts = tf.strings.regex_replace(texts, _SPACE, " ")
    texts = tf.strings.regex_replace(texts, _DROPPED, "")
    texts = tf.strings.lower(texts, encoding="utf-8")
    is_empty = ~tf.strings.regex_full_match(texts, _HAS_WORD_CHARACTER)
    is_empty |= tf.strings.strip(texts) == "n/a"  # [N]
    plain = tf.strings.regex_replace(tf_text.normalize_utf8(texts, "NFD"), r"\p{Mn}+", "")
    return tf.where(is_empty, _EMPTY_MARK, plain)
