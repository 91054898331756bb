"""A question and a table as the token features of the TAPAS schema.

The sequence is [CLS] question [SEP], the header, then the body row by row (Herzig et al., 2020,
section 3), and where asked for a histogram row after them. Nothing is cut unless the configuration
asks for it, and the report says what was.

Shape letters: S sequence, N tokens of a table (some of which may be left out), R rows and C
columns of its body. A grid [R+1, C+1] has a value for each cell at [row id, column id]; ids count
from 1, and row 0 is the header. With a histogram row, which is row R+1, grids are [R+2, C+1].
"""

import functools
import hashlib
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from mate_tf.tables import numeric
from mate_tf.tables.part_of_speech import Tagger, piece_tag_ids, words_with_tags
from mate_tf.tables.table import AGGREGATIONS, Coordinates, Question, Table
from mate_tf.tables.token_features import PART_OF_SPEECH
from mate_tf.tables.tokenized_table import TokenizedTable, no_table, tokenize_table
from mate_tf.tables.wordpiece import Wordpiece

_QUESTION_ID_LENGTH = 64
_TABLE_HASH_MODULUS = 2**32 - 1
_TABLES_REMEMBERED = 1024


@dataclass(frozen=True)
class FeatureConfig:
    """How long a sequence may be, and what may be left out to make one fit.

    Attributes:
        max_seq_length: length of every example, padded; None for as long as each one is.
        max_column_id: column ids stay below it, so a table has at most one column fewer.
        max_row_id: the same for rows; None for no limit. Rows from 256 on have no embedding of
            their own in the published checkpoints, which is no error.
        trim_cells: whether cells may be cut after so many pieces (whole words, one limit for all
            cells) that the table fits. TAPAS's own conversion always does.
        drop_rows_to_fit: whether rows at the table's end may be left out, where cutting cells is
            not allowed or does not suffice.
        histogram_row: whether a row of each column's most frequent values follows the last row
            (mate_tf/tables/histogram.py). It is of the whole table, also where rows are dropped or
            cells trimmed, is never dropped itself, and is no answer: label 0, no ranks, relations
            or numbers, and an infinite numeric_values_scale, so that no count or sum takes it in.
            Decoding has to be told of it (mate_tf/tasks/answers.py).
        original_conversion: whether numbers and dates are read with the defects of the authors'
            release (mate_tf/tables/numeric.py says which), as its published checkpoints were
            trained.

    Raises:
        ValueError: if a limit leaves no room for anything.
    """

    max_seq_length: int | None = 512
    max_column_id: int = 256
    max_row_id: int | None = None
    trim_cells: bool = False
    drop_rows_to_fit: bool = False
    histogram_row: bool = False
    original_conversion: bool = False

    def __post_init__(self) -> None:
        least_row_id = 3 if self.histogram_row else 2
        for name, least in (
            ("max_seq_length", 4),
            ("max_column_id", 2),
            ("max_row_id", least_row_id),
        ):
            value = getattr(self, name)
            if value is not None and value < least:
                raise ValueError(f"expected {name} to be at least {least}, got {value}")


@dataclass(frozen=True)
class ConversionReport:
    """What became of a question and a table.

    Attributes:
        num_tokens: tokens of the sequence, without padding.
        rows_dropped: rows at the table's end that were left out.
        tokens_trimmed: tokens cut from the cells that remain.
        answers_dropped: answer cells, of this and the previous question, that no token stands for.
    """

    num_tokens: int
    rows_dropped: int
    tokens_trimmed: int
    answers_dropped: int


class Example(NamedTuple):
    """The features by name, as records hold them, and the report of how they came about."""

    features: dict[str, np.ndarray]
    report: ConversionReport


class ConversionError(ValueError):
    """A question and its table do not fit the limits.

    Attributes:
        reason: "too many columns", "too many rows", "too long" or "answer cut off".
    """

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class FeatureBuilder:
    """Turns questions and tables into examples; what questions of a table share is done once.

    Args:
        wordpiece: the vocabulary.
        config: the limits.
        tagger: tags the question's words with their parts of speech, for grammar-guided
            attention; those that a question brings along come first.
    """

    def __init__(
        self,
        wordpiece: Wordpiece,
        config: FeatureConfig | None = None,
        tagger: Tagger | None = None,
    ):
        self.wordpiece = wordpiece
        self.config = config or FeatureConfig()
        self.tagger = tagger
        self._tokenized = functools.lru_cache(_TABLES_REMEMBERED)(
            functools.partial(
                tokenize_table,
                self.wordpiece,
                histogram_row=self.config.histogram_row,
                original=self.config.original_conversion,
            )
        )

    def build(
        self, table: Table | None, question: Question, require_answers: bool = True
    ) -> Example:
        """Converts a question and its table.

        Args:
            table: the table; None for a sentence alone.
            question: the question, with or without supervision.
            require_answers: whether an answer cell that no token stands for is an error, as in
                training, or only counted in the report, as in evaluation.

        Returns:
            The features in TAPAS's classifier schema: int32 or float32 [S] for the tokens, [1] for
            the example, question_id_ints [64], and the ids as bytes, object [1]. Padding is 0,
            except for numeric_values (NaN) and numeric_values_scale (1). The histogram row's ids
            are those of the row after the last one kept. With a tagger or tags also
            part_of_speech_ids [S].

        Raises:
            ConversionError: if the table has too many rows or columns, if the sequence is too long,
                or if require_answers and no token stands for an answer cell.
        """
        where = f"(question '{question.question_id}')"
        if table is not None:
            where = f"(table '{table.table_id}', question '{question.question_id}')"
        question_ids, part_of_speech_ids = self._tokenize_question(question)
        start = len(question_ids) + 2
        num_rows = 0 if table is None else self._check_size(table)
        tokens = no_table() if table is None else self._tokenized(table)
        num_rows, kept = self._fit(tokens, num_rows, start, where)
        row_ids, column_ids = tokens.row_ids[kept], tokens.column_ids[kept]
        num_tokens = start + len(row_ids)
        length = self.config.max_seq_length or num_tokens

        def place(values: np.ndarray | int, padding: float = 0) -> np.ndarray:
            dtype = np.float32 if isinstance(padding, float) else np.int32
            placed = np.full(length, padding, dtype)
            placed[start:num_tokens] = values
            return placed  # [S]

        def place_grid(grid: np.ndarray, padding: float = 0) -> np.ndarray:
            return place(grid[row_ids, column_ids], padding)  # [S]

        shape = tokens.column_ranks.shape
        tokens_of_cell = np.zeros(shape, np.int32)
        np.add.at(tokens_of_cell, (row_ids, column_ids), 1)
        scales = np.where(np.arange(shape[0])[:, np.newaxis] > 0, tokens_of_cell, 1.0)
        scales[tokens.num_rows + 1 :] = np.inf
        answers, previous = question.answer_coordinates, question.previous_coordinates
        labels, previous_labels = (_marks(of, tokens.num_rows, shape) for of in (answers, previous))
        found = sum(np.count_nonzero(of * tokens_of_cell) for of in (labels, previous_labels))
        answers_dropped = len(set(answers)) + len(set(previous)) - int(found)
        if answers_dropped and require_answers:
            raise ConversionError(
                "answer cut off",
                f"expected {found + answers_dropped} answer cells in the sequence, got {found} "
                f"{where}; raise max_seq_length",
            )
        features = {
            "input_ids": place(tokens.input_ids[kept]),
            "input_mask": place(1),
            "segment_ids": place(1),
            "column_ids": place(column_ids),
            "row_ids": place(np.minimum(row_ids, num_rows + 1)),
            "prev_label_ids": place_grid(previous_labels),
            "column_ranks": place_grid(tokens.column_ranks),
            "inv_column_ranks": place_grid(tokens.inv_column_ranks),
            "numeric_relations": place_grid(
                _relations(tokens, question, self.config.original_conversion)
            ),
            "numeric_values": place_grid(tokens.numeric_values, np.nan),
            "numeric_values_scale": place_grid(scales, 1.0),
            "label_ids": place_grid(labels),
            **_scalars(table, question),
        }
        features["input_ids"][:start] = [self.wordpiece.cls, *question_ids, self.wordpiece.sep]
        features["input_mask"][:start] = 1
        if part_of_speech_ids is not None:
            features[PART_OF_SPEECH] = np.zeros(length, np.int32)
            features[PART_OF_SPEECH][1 : start - 1] = part_of_speech_ids
        report = ConversionReport(
            num_tokens=num_tokens,
            rows_dropped=0 if table is None else table.num_rows - num_rows,
            tokens_trimmed=int(np.count_nonzero(_of_rows(tokens, num_rows))) - len(row_ids),
            answers_dropped=answers_dropped,
        )
        return Example(features, report)

    def _tokenize_question(self, question: Question) -> tuple[list[int], list[int] | None]:
        """The ids of the question's pieces and of their parts of speech, if they are known."""
        if question.part_of_speech_tags:
            words = words_with_tags(question.text, question.part_of_speech_tags)
        elif self.tagger is not None:
            words = list(self.tagger(question.text))
        else:
            return self.wordpiece.ids([question.text])[0], None
        ids, starts = self.wordpiece.ids_and_starts(question.text)
        tag_ids = piece_tag_ids(words, starts)
        # The unknown piece is a special token (section 3.1 of the paper on grammar).
        unknown = self.wordpiece.unk
        return ids, [0 if id_ == unknown else tag for id_, tag in zip(ids, tag_ids, strict=True)]

    def _check_size(self, table: Table) -> int:
        """The number of rows that ids suffice for."""
        most_columns = self.config.max_column_id - 1
        most_rows = table.num_rows
        if self.config.max_row_id is not None:
            most_rows = self.config.max_row_id - 1 - self.config.histogram_row
        if table.num_rows > most_rows and not self.config.drop_rows_to_fit:
            raise ConversionError(
                "too many rows",
                f"expected at most {most_rows} rows, got {table.num_rows} (table "
                f"'{table.table_id}'); raise max_row_id or set drop_rows_to_fit",
            )
        if table.num_columns > most_columns:
            raise ConversionError(
                "too many columns",
                f"expected at most {most_columns} columns, got {table.num_columns} (table "
                f"'{table.table_id}'); leave out columns or raise max_column_id",
            )
        return min(table.num_rows, most_rows)

    def _fit(
        self, tokens: TokenizedTable, num_rows: int, start: int, where: str
    ) -> tuple[int, np.ndarray]:
        """The number of rows that fit behind start tokens, and which tokens: bool [N]."""
        if self.config.max_seq_length is None:
            return num_rows, _of_rows(tokens, num_rows)
        budget = self.config.max_seq_length - start
        needed = tokens.word_begins < 1 if self.config.trim_cells else np.True_
        tokens_of_row = np.bincount(tokens.row_ids, needed * np.ones(len(tokens.row_ids)), 1)
        least = ["the question", "the header"]
        if tokens.has_histogram_row:
            least.append("the histogram row")
            tokens_of_row[0] += tokens_of_row[-1]  # neither is ever dropped
        cost = np.cumsum(tokens_of_row).astype(int)  # [R+1]: of the header and so many rows
        fitting = int(np.searchsorted(cost[: num_rows + 1], budget, side="right")) - 1
        if fitting < 0:
            what = f"{', '.join(least[:-1])} and {least[-1]} alone" if num_rows else "the sentence"
            raise ConversionError(
                "too long",
                f"expected at most {self.config.max_seq_length} tokens, got {start + cost[0]} for "
                f"{what} {where}; raise max_seq_length",
            )
        if fitting < num_rows and not self.config.drop_rows_to_fit:
            raise ConversionError(
                "too long",
                f"expected at most {self.config.max_seq_length} tokens, got "
                f"{start + cost[num_rows]} {where}; raise max_seq_length or set drop_rows_to_fit",
            )
        if fitting == 0 < num_rows:
            raise ConversionError(
                "too long",
                f"expected at most {self.config.max_seq_length} tokens, got {start + cost[1]} for "
                f"{', '.join(least)} and one row {where}; raise max_seq_length",
            )
        kept = _of_rows(tokens, fitting)
        if self.config.trim_cells:
            cost = np.cumsum(np.bincount(tokens.word_begins[kept]))
            kept &= tokens.word_begins < np.searchsorted(cost, budget, side="right")
        return fitting, kept


def _of_rows(tokens: TokenizedTable, num_rows: int) -> np.ndarray:
    """Which tokens are of the header, the first rows or the histogram row: bool [N]."""
    return (tokens.row_ids <= num_rows) | (tokens.row_ids > tokens.num_rows)


def _marks(coordinates: Coordinates, num_rows: int, shape: tuple[int, ...]) -> np.ndarray:
    """A grid with 1 at the coordinates, as far as they lie in the body: int32 [R+1, C+1]."""
    marks = np.zeros(shape, np.int32)
    for row, column in coordinates:
        if 0 <= row < num_rows and 0 <= column < shape[1] - 1:
            marks[row + 1, column + 1] = 1
    return marks


def _relations(tokens: TokenizedTable, question: Question, original: bool) -> np.ndarray:
    """How the question's numbers compare with each cell's: bits, int32 [R+1, C+1]."""
    grid = np.zeros(tokens.column_ranks.shape, np.int32)
    asked = numeric.text_values(question.text, original)
    for column, values in enumerate(tokens.column_values if asked else ()):
        for row, bits in numeric.relations(asked, values).items():
            grid[row + 1, column + 1] = bits
    return grid


def _scalars(table: Table | None, question: Question) -> dict[str, np.ndarray]:
    """The features of the example as a whole."""
    question_id_ints = np.zeros(_QUESTION_ID_LENGTH, np.int32)
    for place, character in enumerate(question.question_id[:_QUESTION_ID_LENGTH]):
        question_id_ints[place] = ord(character) + 1
    table_id = b"" if table is None else table.table_id.encode()
    table_hash = int(hashlib.sha256(table_id).hexdigest(), 16) % _TABLE_HASH_MODULUS
    answer = np.nan if question.answer_number is None else question.answer_number
    return {
        "answer": np.array([answer], np.float32),
        "aggregation_function_id": np.array([AGGREGATIONS.index(question.aggregation)], np.int32),
        "classification_class_index": np.array([question.class_index], np.int32),
        "question_id": np.array([question.question_id.encode()], object),
        "question_id_ints": question_id_ints,
        "table_id": np.array([table_id], object),
        "table_id_hash": np.array([table_hash], np.int64),  # does not fit in 32 bits
    }
