"""A question and a table as the token features of the TAPAS schema.

The sequence is [CLS] question [SEP], the header, and the body row by row (Herzig et al., 2020,
section 3); on request a histogram row follows. Nothing is cut unless the configuration allows it,
and the report says what was.

Shape letters: S sequence, N tokens of a table, K those of them in the sequence; grids [R+1, C+1] as
in tokenized_table.py.
"""

import functools
import itertools
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from mate_tf.features.config import ConversionError, FeatureConfig
from mate_tf.features.numeric import is_single
from mate_tf.features.row_choice import RowChoice, choose_rows
from mate_tf.features.token_features import PART_OF_SPEECH
from mate_tf.features.tokenized_table import (
    Layout,
    TokenizedTable,
    check_size,
    fit,
    keep_columns,
    most_rows,
    no_table,
    question_relations,
    table_features,
    tokenize_table,
)
from mate_tf.features.wordpiece import Wordpiece
from mate_tf.tables.operators import operators_by_id
from mate_tf.tables.part_of_speech import Tagger, piece_tag_ids, words_with_tags
from mate_tf.tables.table import (
    MOST_REMEMBERED,
    Coordinates,
    Question,
    Table,
    id_bytes,
    remember,
)

_QUESTION_ID_LENGTH = 64
_BYTES_OF_TOKEN = 50  # of a tokenized table, about
QUESTIONS_AT_ONCE = 256
_TOKENS_OF_CHOSEN_ROWS = 1_024  # with the question
_LEAST_OF_HEADERS = 3  # or so many times the tokens of the question and the header


def padded_length(num_tokens: int) -> int:
    """The length to which tokens are padded for an answer, where any length is possible.

    Lengths are multiples of 64 up to 1,024 tokens, and then four to each doubling. Each costs a
    megabyte once, for the kernels of its shape; padding costs time.
    """
    step = 64 if num_tokens <= 1_024 else (1 << (num_tokens - 1).bit_length()) // 8
    return -(-num_tokens // step) * step


@dataclass(frozen=True)
class ConversionReport:
    """The parts that a conversion left out."""

    num_tokens: int  # of the sequence, without padding
    rows_dropped: int  # rows of the body without a token in the sequence
    columns_dropped: int  # the same for columns; only prune_columns drops any
    tokens_trimmed: int  # tokens left out of the rows that remain
    # Answer cells of this and the previous question without a token in the sequence; with
    # FeatureConfig.label_answer_spans, answer texts.
    answers_dropped: int


class Example(NamedTuple):
    """The features of a question and its table, and the report of what was left out."""

    features: dict[str, np.ndarray]  # by name, as records hold them
    report: ConversionReport


class _Labels(NamedTuple):
    """The labels of the table's tokens in the sequence, and how many answers have any."""

    labels: np.ndarray  # int32 [K], 1 for a token of an answer
    num_found: int
    num_missing: int


@dataclass(eq=False)
class FeatureBuilder:
    """Turns questions and tables into examples; a table is tokenized once for all its questions."""

    wordpiece: Wordpiece
    config: FeatureConfig = field(default_factory=FeatureConfig)
    # Tags the question's words with their parts of speech, for grammar-guided attention. A
    # question's own tags take precedence. Without a tagger they are ignored, so that all examples
    # of a builder have the same features.
    tagger: Tagger | None = None
    most_remembered: int = MOST_REMEMBERED  # tokens of tables that it keeps

    @functools.cached_property
    def _tokenized(self) -> Callable[[Table], TokenizedTable]:
        def size_of(table: Table, tokens: TokenizedTable) -> int:
            # Of texts in tokens' memory; long words take more than their tokens.
            texts = itertools.chain(table.header, *table.expanded_rows)
            return max(len(tokens.input_ids), sum(map(sys.getsizeof, texts)) // _BYTES_OF_TOKEN)

        tokenized = functools.partial(tokenize_table, self.wordpiece, self.config)
        return remember(tokenized, size_of, self.most_remembered)

    def choose_rows(self, table: Table, question: Question, first: Sequence[int] = ()) -> RowChoice:
        """The rows of a long table that a question needs, `first` before all others."""

        def count_tokens(texts: Sequence[str]) -> np.ndarray:
            return self.wordpiece.ids_and_lengths(list(texts))[1]

        around = len(self._text_ids(table, question)) + int(count_tokens(table.header).sum())
        longest = max(_TOKENS_OF_CHOSEN_ROWS, _LEAST_OF_HEADERS * around)
        most_tokens = min(self.config.max_seq_length or longest, longest) - around
        most = most_rows(self.config, table)
        return choose_rows(table, question.text, count_tokens, most_tokens, most, first)

    def build(
        self, table: Table | None, question: Question, require_answers: bool = True
    ) -> Example:
        """Converts a question, with or without supervision, and its table, or None for a sentence.

        The features are in TAPAS's classifier schema: int32 or float32 [S] for the tokens, [1] for
        the example, question_id_ints [64] for the end of the id, and the ids as bytes, object [1].
        Padding is 0, but NaN in numeric_values and 1 in numeric_values_scale. A histogram row has
        the row id after the last one kept. With a tagger there are also part_of_speech_ids [S].

        ConversionError if the table has too many rows or columns, if the sequence is too long, or
        if an answer has no token and `require_answers`, as in training.
        """
        config = self.config
        named = "" if table is None else f"table '{table.table_id}', "
        where = f"({named}question '{question.question_id}')"
        num_rows = 0 if table is None else check_size(config, table)
        tokens = no_table() if table is None else self._tokenized(table)
        text_ids = self._text_ids(table, question)
        start = len(text_ids)
        columns = None
        if config.prune_columns and config.max_seq_length is not None and table is not None:
            costs = np.bincount(tokens.column_ids - 1, minlength=table.num_columns).tolist()  # [C]
            budget = config.max_seq_length - start
            columns = keep_columns(table, question, costs, budget, config.original_conversion)
        num_rows, kept = fit(config, tokens, num_rows, start, where, columns)
        layout = Layout(tokens, kept, text_ids, config.max_seq_length)

        def label(coordinates: Coordinates, answers: Sequence[str]) -> _Labels:
            if config.label_answer_spans:
                return _label_spans(tokens, kept, self.wordpiece.ids(answers))
            return _label_cells(tokens, kept, coordinates)

        labels = label(question.answer_coordinates, question.answers)
        previous = label(question.previous_coordinates, question.previous_answers)
        num_missing = labels.num_missing + previous.num_missing
        may_miss = config.label_answer_spans and config.original_conversion
        if num_missing and require_answers and not may_miss:
            num_found = labels.num_found + previous.num_found
            unit = "texts" if config.label_answer_spans else "cells"
            expected = f"expected {num_found + num_missing} answer {unit} in the sequence"
            raise ConversionError(
                "answer cut off", f"{expected}, got {num_found} {where}", "raise max_seq_length"
            )
        features = layout.features() | {
            # A histogram row has the id after the last row kept.
            "row_ids": layout.place(np.minimum(tokens.row_ids[kept], num_rows + 1)),
            "prev_label_ids": layout.place(previous.labels),
            "numeric_relations": layout.place_grid(
                question_relations(tokens, question.text, config.original_conversion)
            ),
            "label_ids": layout.place(labels.labels),
            **_scalars(question, config.original_conversion),
            **table_features(table),
        }
        if self.tagger is not None:
            tag_ids = self._part_of_speech_ids(question, self.tagger)
            features[PART_OF_SPEECH] = np.zeros(layout.length, np.int32)
            features[PART_OF_SPEECH][1 : 1 + len(tag_ids)] = tag_ids
        return Example(features, _report(tokens, layout, num_missing))

    def build_all(
        self, pairs: Iterable[tuple[Table | None, Question]], require_answers: bool = True
    ) -> Iterator[Example | ConversionError]:
        """Builds the examples of questions in order; one that does not fit yields its error."""
        for table, question in pairs:
            try:
                yield self.build(table, question, require_answers)
            except ConversionError as error:
                yield error

    def _text_ids(self, table: Table | None, question: Question) -> list[int]:
        """The ids of [CLS], the question and the titles, each with its [SEP]."""
        texts = [question.text]
        if table is not None and self.config.use_document_title and table.document_title:
            texts.append(table.document_title)
        if table is not None and self.config.use_context_heading and table.context_heading:
            texts.append(table.context_heading)
        text_ids = [self.wordpiece.cls]
        for ids in self.wordpiece.ids(texts):
            text_ids += [*ids, self.wordpiece.sep]
        return text_ids

    def _part_of_speech_ids(self, question: Question, tagger: Tagger) -> list[int]:
        if question.part_of_speech_tags:
            words = words_with_tags(question.text, question.part_of_speech_tags)
        else:
            words = list(tagger(question.text))
        ids, starts = self.wordpiece.ids_and_starts(question.text)
        tag_ids = piece_tag_ids(words, starts)
        # The unknown piece is a special token (section 3.1 of the paper on grammar).
        unknown = self.wordpiece.unk
        return [0 if id_ == unknown else tag for id_, tag in zip(ids, tag_ids, strict=True)]


def _scalars(question: Question, original: bool) -> dict[str, np.ndarray]:
    """The features of the whole example; the release's do not say if the aggregation is known."""
    aggregation = operators_by_id().index(question.aggregation or "NONE")
    is_known = np.array([bool(question.aggregation)], np.int32)
    question_id_ints = np.zeros(_QUESTION_ID_LENGTH, np.int32)
    end = question.question_id[-_QUESTION_ID_LENGTH:]  # questions differ at the end
    question_id_ints[: len(end)] = [ord(character) + 1 for character in end]
    answer = question.answer_number
    has_answer = answer is not None and is_single(answer)
    return {
        "answer": np.array([answer if has_answer else np.nan], np.float32),
        "aggregation_function_id": np.array([aggregation], np.int32),
        **({} if original else {"aggregation_is_known": is_known}),
        "classification_class_index": np.array([question.class_index or 0], np.int32),
        "question_id": np.array([id_bytes(question.question_id)], object),
        "question_id_ints": question_id_ints,
    }


def _label_cells(tokens: TokenizedTable, kept: np.ndarray, coordinates: Coordinates) -> _Labels:
    """Labels all tokens of the answer's cells; those outside of the table count as missing."""
    num_rows, num_columns = tokens.num_rows, tokens.num_columns
    answers = set(coordinates)
    marks = np.zeros(tokens.column_ranks.shape, np.int32)  # [R+1, C+1]
    for row, column in answers:
        if 0 <= row < num_rows and 0 <= column < num_columns:
            marks[row + 1, column + 1] = 1
    cells = tokens.cell_ids[kept]  # [K]
    labels = marks.ravel()[cells]
    num_found = len(np.unique(cells[labels == 1]))
    return _Labels(labels, num_found, len(answers) - num_found)


def _label_spans(
    tokens: TokenizedTable, kept: np.ndarray, answers: Iterable[Sequence[int]]
) -> _Labels:
    """Labels the pieces of each answer where a cell of the body first has all in the sequence."""
    labels = np.zeros(len(kept), np.int32)  # [N]
    in_body = kept & (tokens.row_ids > 0) & (tokens.row_ids <= tokens.num_rows)
    indices = np.flatnonzero(in_body)  # [body]
    cells = tokens.cell_ids
    num_found = num_missing = 0
    for pieces in answers:
        begins = indices[indices <= len(kept) - len(pieces)]
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
    return _Labels(labels[kept], num_found, num_missing)


def _report(tokens: TokenizedTable, layout: Layout, answers_dropped: int) -> ConversionReport:
    tokens_of_cell = layout.tokens_of_cell
    row_remains = tokens_of_cell.max(axis=1) > 0  # [R+1]
    rows_kept = int(row_remains[1 : tokens.num_rows + 1].sum())
    tokens_of_rows = int(row_remains[tokens.row_ids].sum())
    return ConversionReport(
        num_tokens=layout.num_tokens,
        rows_dropped=tokens.num_rows - rows_kept,
        columns_dropped=tokens.num_columns - int((tokens_of_cell.max(axis=0) > 0).sum()),
        tokens_trimmed=tokens_of_rows - int(tokens_of_cell.sum()),
        answers_dropped=answers_dropped,
    )
