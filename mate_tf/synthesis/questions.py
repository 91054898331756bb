"""Synthetic questions about a table or excerpts of it, with the cells that answer them.

An excerpt is a run of rows and some columns, in their order, that fit a sequence: questions about
it ask for nothing that was cut.

Shape letters: R rows and C columns of a table's body.
"""

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from mate_tf.features.wordpiece import Wordpiece
from mate_tf.synthesis.excerpts import cell_lengths
from mate_tf.synthesis.pairs import StatementsError
from mate_tf.synthesis.question_drawing import OPERATIONS, Drawn, draw, number
from mate_tf.synthesis.question_wording import phrase
from mate_tf.synthesis.typed_table import TypedTable
from mate_tf.tables.table import Question, Table

_SPECIAL_TOKENS = 2
_FEWEST = 2  # rows, and columns
_SHARE_OF_ALL_COLUMNS = 0.5
_SHARE_FROM_THE_TOP = 0.5
_ATTEMPTS = 3  # for each question, of another operation
# How often each operation is drawn, in parts.
SHARES: Mapping[str, int] = MappingProxyType(
    {
        "look_up": 28,
        "look_up_by_two": 5,
        "select": 5,
        "other": 6,
        "largest": 10,
        "smallest": 7,
        "position": 5,
        "neighbour": 8,
        "comparison": 7,
        "beyond": 2,
        "count": 7,
        "count_of_value": 3,
        "count_beyond": 4,
        "count_all": 3,
        "sum": 3,
        "average": 2,
    }
)


@dataclass(frozen=True)
class QuestionsConfig:
    """How many questions are made of a table, and how long they are.

    Attributes:
        questions_per_table: the most that are made.
        questions_per_excerpt: of them, those about one excerpt.
        whole_tables: asks about tables as they are, not about excerpts of them.
        max_seq_length: tokens of a question with its excerpt, special tokens included; longer
            tables are left out where they are to be whole.
        max_question_tokens: of them, those of the question.
        max_rows: of an excerpt.
        operations: of OPERATIONS, those that questions are of.
        held_out_forms: asks in words that questions have nowhere else
            (mate_tf/synthesis/question_wording.py has some for look_up).
        seed: of everything that is drawn, with the table's identifier.

    Raises:
        ValueError: if there is nothing to make, or an operation is not known.
    """

    questions_per_table: int = 64
    questions_per_excerpt: int = 4
    whole_tables: bool = False
    max_seq_length: int = 192
    max_question_tokens: int = 40
    max_rows: int = 24
    operations: tuple[str, ...] = OPERATIONS
    held_out_forms: bool = False
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("questions_per_table", "questions_per_excerpt", "max_question_tokens"):
            if getattr(self, name) < 1:
                raise ValueError(f"expected {name} of at least 1, got {getattr(self, name)}")
        if self.max_rows < _FEWEST:
            raise ValueError(f"expected max_rows of at least {_FEWEST}, got {self.max_rows}")
        if self.max_table_tokens < (_FEWEST + 1) * _FEWEST:
            raise ValueError(
                f"expected max_seq_length above {self.max_question_tokens + _SPECIAL_TOKENS}, "
                f"which a question may take alone, and room for a table, got {self.max_seq_length}"
            )
        if unknown := [name for name in self.operations if name not in OPERATIONS]:
            raise ValueError(f"expected operations among {OPERATIONS}, got {unknown[0]!r}")
        if not self.operations:
            raise ValueError(f"expected some of the operations {OPERATIONS}, got none")
        if self.held_out_forms and self.operations != ("look_up",):
            raise ValueError(
                f"expected held_out_forms with the operation look_up alone, got {self.operations}"
            )

    @property
    def max_table_tokens(self) -> int:
        return self.max_seq_length - self.max_question_tokens - _SPECIAL_TOKENS


class SyntheticQuestion(NamedTuple):
    """A question with its answer, cells and aggregation.

    Attributes:
        operation: one of OPERATIONS.
        examples: the question with the table, or the excerpt, that it is about.
    """

    operation: str
    examples: tuple[tuple[Table, Question], ...]


def synthetic_questions(
    table: Table, wordpiece: Wordpiece, config: QuestionsConfig
) -> Iterator[SyntheticQuestion]:
    """Yields questions about a table, the same for the same seed and name.

    Raises:
        StatementsError: if none can be made, with the reason, before the first is yielded.
    """
    whole = TypedTable(table)
    if len(whole.of_kind()) < _FEWEST:
        raise StatementsError(
            "fewer than two columns to ask about",
            f"expected two columns with a name of their own and different values "
            f"(table '{table.table_id}')",
        )
    rng = random.Random(f"{config.seed}/{table.table_id}")
    lengths = cell_lengths(wordpiece, table)
    if config.whole_tables and lengths.sum() > config.max_table_tokens:
        raise StatementsError(
            "too long",
            f"expected at most {config.max_table_tokens} tokens, got {lengths.sum()} "
            f"(table '{table.table_id}')",
        )
    made = 0
    for index in range(-(-config.questions_per_table // config.questions_per_excerpt)):
        asked = table if config.whole_tables else _excerpt(table, lengths, index, config, rng)
        if asked is None:
            continue
        typed = whole if config.whole_tables else TypedTable(asked)
        here = min(config.questions_per_excerpt, config.questions_per_table - made)
        for operation, text, drawn in _drawn_of(typed, here, wordpiece, config, rng):
            question = _question(text, f"{table.table_id}#{made}:{operation}", drawn, typed)
            yield SyntheticQuestion(operation, ((asked, question),))
            made += 1
    if not made:
        raise StatementsError(
            "no question found", f"expected a question (table '{table.table_id}')"
        )


def _drawn_of(
    table: TypedTable, count: int, wordpiece: Wordpiece, config: QuestionsConfig, rng: random.Random
) -> Iterator[tuple[str, str, Drawn]]:
    """Draws up to so many different questions about an excerpt: operation, words, answer."""
    texts: set[str] = set()
    for _ in range(_ATTEMPTS * count):
        if len(texts) == count:
            return
        shares = [SHARES[name] for name in config.operations]
        operation = rng.choices(config.operations, shares)[0]
        drawn = draw(operation, table, rng)
        if drawn is None:
            continue
        text = phrase(drawn, table, rng, config.held_out_forms)
        is_long = wordpiece.ids_and_lengths([text])[1][0] > config.max_question_tokens
        if is_long or text in texts:
            continue
        texts.add(text)
        yield operation, text, drawn


def _question(text: str, name: str, drawn: Drawn, table: TypedTable) -> Question:
    coordinates = tuple((row, drawn.column) for row in drawn.rows)
    if drawn.aggregation == "NONE":
        cells = table.columns[drawn.column].cells
        return Question(text, name, tuple(cells[row] for row in drawn.rows), coordinates)
    result = float(len(drawn.rows))
    if drawn.aggregation != "COUNT":
        result = sum(number(table, row, drawn.column) for row in drawn.rows)
        result /= len(drawn.rows) if drawn.aggregation == "AVERAGE" else 1
    answer = f"{result:.10g}"
    return Question(text, name, (answer,), coordinates, float(answer), drawn.aggregation)


def _excerpt(
    table: Table, lengths: np.ndarray, index: int, config: QuestionsConfig, rng: random.Random
) -> Table | None:
    """Some columns and a run of rows of a table that fit; None where not two of both do.

    Args:
        table: the table.
        lengths: of its cells in wordpieces, the header's first: int [R+1, C].
        index: the excerpt's, in its identifier.
        config: the limits.
        rng: draws it.
    """
    columns: Sequence[int] = range(table.num_columns)
    if rng.random() >= _SHARE_OF_ALL_COLUMNS:
        columns = sorted(rng.sample(columns, rng.randint(_FEWEST, table.num_columns)))
    costs = lengths[:, columns].sum(axis=1)  # [R+1]
    most = min(table.num_rows, config.max_rows)
    if most < _FEWEST:
        return None
    num_rows = rng.randint(_FEWEST, most)
    start = 0 if rng.random() < _SHARE_FROM_THE_TOP else rng.randint(0, table.num_rows - num_rows)
    room = config.max_table_tokens - costs[0]
    num_rows = int((np.cumsum(costs[start + 1 : start + 1 + num_rows]) <= room).sum())
    if num_rows < _FEWEST:
        return None
    return Table(
        tuple(table.header[column] for column in columns),
        tuple(
            tuple(row[column] for column in columns) for row in table.rows[start : start + num_rows]
        ),
        f"{table.table_id}#{index}",
        table.document_title,
        table.context_heading,
    )
