"""A question and a table as the token features of the TAPAS schema.

The sequence is [CLS] question [SEP], the header, then the body row by row (Herzig et al., 2020,
section 3), and where asked for a histogram row after them. Nothing is cut unless the configuration
asks for it, and the report says what was.

Shape letters: S sequence, N tokens of a table, K those of them that are in the sequence, R rows and
C columns of the table's body. A grid [R+1, C+1] has a value for each cell at [row id, column id];
ids count from 1, and row 0 is the header. With a histogram row, which is row R+1, grids are
[R+2, C+1].
"""

import functools
import itertools
import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

import numpy as np

from mate_tf.features.aggregation_candidates import candidate_features
from mate_tf.features.config import ConversionError, FeatureConfig
from mate_tf.features.fitting import check_size, fit, select_columns
from mate_tf.features.labels import (
    ConversionReport,
    Labels,
    label_cells,
    label_spans,
    report_conversion,
)
from mate_tf.features.layout import Layout, table_features
from mate_tf.features.numeric import is_single
from mate_tf.features.token_features import PART_OF_SPEECH
from mate_tf.features.token_selection import TokenSelector, checked_selection
from mate_tf.features.tokenized_table import (
    TokenizedTable,
    no_table,
    question_relations,
    tokenize_table,
)
from mate_tf.features.wordpiece import Wordpiece
from mate_tf.tables.part_of_speech import Tagger, piece_tag_ids, words_with_tags
from mate_tf.tables.remembering import remember
from mate_tf.tables.table import AGGREGATIONS, Coordinates, Question, Table, id_bytes

__all__ = [
    "QUESTIONS_AT_ONCE",
    "ConversionError",
    "ConversionReport",
    "Example",
    "FeatureBuilder",
    "FeatureConfig",
]

_QUESTION_ID_LENGTH = 64
_TABLES_REMEMBERED = 1024
_BYTES_OF_TOKEN = 50  # of a tokenized table, about
QUESTIONS_AT_ONCE = 256


class Example(NamedTuple):
    """The features by name, as records hold them, and the report of how they came about."""

    features: dict[str, np.ndarray]
    report: ConversionReport


def _text_size(table: Table) -> int:
    """The memory of a table's texts, in that of tokens: of long words it is the most."""
    texts = (text for row in (table.header, *table.expanded_rows) for text in row)
    return sum(map(sys.getsizeof, texts)) // _BYTES_OF_TOKEN


class FeatureBuilder:
    """Turns questions and tables into examples; what questions of a table share is done once.

    Args:
        wordpiece: the vocabulary.
        config: the limits, and what is in a sequence.
        tagger: tags the question's words with their parts of speech, for grammar-guided
            attention; the tags that a question brings along come first. Without a tagger they are
            not used, so that all examples of a builder have the same features.
        token_selector: says for each question which of the table's tokens may be in the sequence,
            before the limits are looked at (mate_tf/features/token_selection.py); by default the
            one that the config asks for.
    """

    def __init__(
        self,
        wordpiece: Wordpiece,
        config: FeatureConfig | None = None,
        tagger: Tagger | None = None,
        token_selector: TokenSelector | None = None,
    ):
        self.wordpiece = wordpiece
        self.config = config or FeatureConfig()
        self.tagger = tagger
        if token_selector is None and self.config.prune_columns:
            token_selector = functools.partial(
                select_columns, original=self.config.original_conversion
            )
        self.token_selector = token_selector
        self._tokenized = remember(
            functools.partial(
                tokenize_table,
                self.wordpiece,
                histogram_row=self.config.histogram_row,
                strip_column_names=self.config.strip_column_names,
                original=self.config.original_conversion,
            ),
            size_of=lambda table, tokens: max(len(tokens.input_ids), _text_size(table)),
            count=_TABLES_REMEMBERED,
        )

    def build(
        self, table: Table | None, question: Question, require_answers: bool = True
    ) -> Example:
        """Converts a question and its table.

        Args:
            table: the table; None for a sentence alone.
            question: the question, with or without supervision.
            require_answers: whether an answer that no token stands for is an error, as in training,
                or only counted in the report, as in evaluation.

        Returns:
            The features in TAPAS's classifier schema: int32 or float32 [S] for the tokens, [1] for
            the example, question_id_ints [64], of the identifier's end, and the ids as bytes,
            object [1]. Padding is 0, except for numeric_values (NaN) and numeric_values_scale (1).
            The histogram row's ids are those of the row after the last one kept. With a tagger also
            part_of_speech_ids [S]; with aggregation candidates also theirs
            (aggregation_candidates.candidate_features).

        Raises:
            ConversionError: if the table has too many rows or columns, if the sequence is too long,
                or if require_answers and no token stands for an answer.
            ValueError: if the token selector returns anything but bool [N].
        """
        return self._build(table, question, require_answers, self._pieces([(table, question)]))

    def build_all(
        self, pairs: Iterable[tuple[Table | None, Question]], require_answers: bool = True
    ) -> Iterator[Example | ConversionError]:
        """Converts questions in their order; one that does not fit yields its error.

        As `build` for each, but the questions are tokenized together, which takes a fraction of the
        time. At most 256 pairs are drawn ahead of what is yielded.
        """
        pairs = iter(pairs)
        while chunk := list(itertools.islice(pairs, QUESTIONS_AT_ONCE)):
            pieces = self._pieces(chunk)
            for table, question in chunk:
                try:
                    yield self._build(table, question, require_answers, pieces)
                except ConversionError as error:
                    yield error

    def _build(
        self,
        table: Table | None,
        question: Question,
        require_answers: bool,
        pieces: Mapping[str, list[int]],
    ) -> Example:
        config = self.config
        where = f"(question '{question.question_id}')"
        if table is not None:
            where = f"(table '{table.table_id}', question '{question.question_id}')"
        num_rows = 0 if table is None else check_size(config, table)
        tokens = no_table() if table is None else self._tokenized(table)
        question_ids = list(pieces[question.text])
        for title in self._titles(table):
            question_ids += [self.wordpiece.sep, *pieces[title]]
        start = len(question_ids) + 2
        selected = None
        if self.token_selector is not None and table is not None:
            budget = None if config.max_seq_length is None else config.max_seq_length - start
            selected = checked_selection(self.token_selector, table, question, tokens, budget)
        num_rows, kept = fit(config, tokens, num_rows, start, where, selected)
        text_ids = [self.wordpiece.cls, *question_ids, self.wordpiece.sep]
        layout = Layout(tokens, kept, text_ids, config.max_seq_length)
        labels = self._labels(tokens, kept, question.answer_coordinates, question.answers, pieces)
        previous = self._labels(
            tokens, kept, question.previous_coordinates, question.previous_answers, pieces
        )
        answers_dropped = labels.num_missing + previous.num_missing
        may_miss = config.label_answer_spans and config.original_conversion
        if answers_dropped and require_answers and not may_miss:
            found = labels.num_found + previous.num_found
            unit = "texts" if config.label_answer_spans else "cells"
            raise ConversionError(
                "answer cut off",
                f"expected {found + answers_dropped} answer {unit} in the sequence, got {found} "
                f"{where}; raise max_seq_length",
            )
        features = layout.features() | {
            # A histogram row's id is that of the row after the last one kept.
            "row_ids": layout.place(np.minimum(tokens.row_ids[kept], num_rows + 1)),
            "prev_label_ids": layout.place(previous.labels),
            "numeric_relations": layout.place_grid(
                question_relations(tokens, question.text, config.original_conversion)
            ),
            "label_ids": layout.place(labels.labels),
            **_scalars(question),
            **table_features(table),
        }
        if self.tagger is not None:
            tag_ids = self._part_of_speech_ids(question, self.tagger)
            features[PART_OF_SPEECH] = np.zeros(layout.length, np.int32)
            features[PART_OF_SPEECH][1 : 1 + len(tag_ids)] = tag_ids
        if config.add_aggregation_candidates:
            features |= candidate_features(
                tokens, layout.cells, start, question, config.original_conversion
            )
        report = report_conversion(tokens, layout, labels, previous)
        return Example(features, report)

    def _pieces(self, pairs: Iterable[tuple[Table | None, Question]]) -> dict[str, list[int]]:
        """The ids of the pieces of each text around the tables, in one graph call."""
        texts: dict[str, None] = {}
        for table, question in pairs:
            texts |= dict.fromkeys((question.text, *self._titles(table)))
            if self.config.label_answer_spans:
                texts |= dict.fromkeys((*question.answers, *question.previous_answers))
        return dict(zip(texts, self.wordpiece.ids(list(texts)), strict=True))

    def _titles(self, table: Table | None) -> list[str]:
        """The texts of the table's surroundings that follow the question."""
        if table is None:
            return []
        document = table.document_title if self.config.use_document_title else ""
        context = table.context_heading if self.config.use_context_heading else ""
        return [title for title in (document, context) if title]

    def _labels(
        self,
        tokens: TokenizedTable,
        kept: np.ndarray,
        coordinates: Coordinates,
        answers: tuple[str, ...],
        pieces: Mapping[str, list[int]],
    ) -> Labels:
        if self.config.label_answer_spans:
            return label_spans(tokens, kept, [pieces[answer] for answer in answers])
        return label_cells(tokens, kept, coordinates)

    def _part_of_speech_ids(self, question: Question, tagger: Tagger) -> list[int]:
        """The part of speech of each of the question's pieces."""
        if question.part_of_speech_tags:
            words = words_with_tags(question.text, question.part_of_speech_tags)
        else:
            words = list(tagger(question.text))
        ids, starts = self.wordpiece.ids_and_starts(question.text)
        tag_ids = piece_tag_ids(words, starts)
        # The unknown piece is a special token (section 3.1 of the paper on grammar).
        unknown = self.wordpiece.unk
        return [0 if id_ == unknown else tag for id_, tag in zip(ids, tag_ids, strict=True)]


def _scalars(question: Question) -> dict[str, np.ndarray]:
    """The features of the example as a whole that are the question's."""
    question_id_ints = np.zeros(_QUESTION_ID_LENGTH, np.int32)
    end = question.question_id[-_QUESTION_ID_LENGTH:]  # what tells questions apart is at the end
    question_id_ints[: len(end)] = [ord(character) + 1 for character in end]
    answer = question.answer_number
    if answer is None or not is_single(answer):
        answer = np.nan
    return {
        "answer": np.array([answer], np.float32),
        "aggregation_function_id": np.array([AGGREGATIONS.index(question.aggregation)], np.int32),
        "classification_class_index": np.array([question.class_index or 0], np.int32),
        "question_id": np.array([id_bytes(question.question_id)], object),
        "question_id_ints": question_id_ints,
    }
