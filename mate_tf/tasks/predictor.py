"""Answers for many questions: features in, batches of like length through a model, answers out.

Shapes: B batch, S sequence.
"""

import dataclasses
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

import numpy as np
import tensorflow as tf

from mate_tf.tables.features import (
    QUESTIONS_AT_ONCE,
    ConversionError,
    Example,
    FeatureBuilder,
)
from mate_tf.tables.table import Question, Table
from mate_tf.tables.token_features import TokenFeatures
from mate_tf.tasks.answers import Answer, apply_min_score, calibrated
from mate_tf.tasks.calibration import Calibration
from mate_tf.tasks.decoding import decode_batch
from mate_tf.tasks.kinds import TaskConfig
from mate_tf.tasks.table_qa import TableQAConfig

# From token features int32 [B, S] to the outputs that a kind of model has (kinds.KINDS).
ModelFunction = Callable[[TokenFeatures], Mapping[str, tf.Tensor]]

MaybeTable = TypeVar("MaybeTable", bound=Table | None)

# Each padded length costs memory once (kernels are cached by shape), padding costs time.
_LENGTH_STEP = 128


class Predictor:
    """Answers questions with a model, one of tables, a classifier or a reader of spans.

    Args:
        model: from token features to outputs; a Keras model or a signature of an exported one.
        builder: makes the features, in the way the model was trained with.
        batch_tokens: tokens, padding included, in a batch; one long table makes a batch of its
            own.
        fixed_length: the one length that the model takes (`EncoderConfig.fixed_length`), to which
            everything is padded; None where it takes any. Nothing is ever padded beyond the
            builder's max_seq_length otherwise.
        task_config: the model's, which says what kind it is and how its outputs are read.
        calibration: makes scores probabilities; None leaves them as they are.
        min_score: where the score is lower, there is no answer (`Answer.answered`).
        num_alternatives: the most alternatives that an answer gets.

    Raises:
        ValueError: if the builder makes examples that are longer than the fixed length, min_score
            is not from 0 to 1 or num_alternatives is negative.
    """

    def __init__(
        self,
        model: ModelFunction,
        builder: FeatureBuilder,
        batch_tokens: int = 4096,
        fixed_length: int | None = None,
        *,
        task_config: TaskConfig | None = None,
        calibration: Calibration | None = None,
        min_score: float = 0.0,
        num_alternatives: int = 0,
    ):
        longest = builder.config.max_seq_length
        if fixed_length is not None and (longest is None or longest > fixed_length):
            raise ValueError(
                f"expected max_seq_length of at most {fixed_length}, the one length of the model, "
                f"got {longest} (the builder's config)"
            )
        if not 0.0 <= min_score <= 1.0:
            raise ValueError(f"expected min_score from 0 to 1, got {min_score}")
        if num_alternatives < 0:
            raise ValueError(f"expected num_alternatives of at least 0, got {num_alternatives}")
        self._model = model
        self._builder = builder
        self._batch_tokens = batch_tokens
        self._fixed_length = fixed_length
        self._task_config = task_config or TableQAConfig()
        self._calibration = calibration
        self._min_score = min_score
        self._num_alternatives = num_alternatives

    def answer(self, table: Table | None, question: str | Question) -> Answer:
        """Answers one question; without a table a classifier judges the sentence alone.

        Raises:
            ValueError: if the table or the question is beyond a limit.
        """
        if isinstance(question, str):
            question = Question(text=question)
        example = self._builder.build(table, question, require_answers=False)
        return self._answer_batch([(table, example)])[0]

    def answer_all(
        self, pairs: Iterable[tuple[MaybeTable, Question]]
    ) -> Iterator[tuple[MaybeTable, Question, Answer | ValueError]]:
        """Answers questions in their order; one beyond a limit yields its error as the answer."""
        pairs = iter(pairs)
        while chunk := list(itertools.islice(pairs, QUESTIONS_AT_ONCE)):
            results: list[Answer | ValueError | None] = [None] * len(chunk)
            examples: dict[int, Example] = {}
            for index, example in enumerate(self._builder.build_all(chunk, require_answers=False)):
                if isinstance(example, ConversionError):
                    results[index] = example
                else:
                    examples[index] = example
            for batch in self._batches(examples):
                answers = self._answer_batch([(chunk[i][0], examples[i]) for i in batch])
                for index, answer in zip(batch, answers, strict=True):
                    results[index] = answer
            for (table, question), result in zip(chunk, results, strict=True):
                assert result is not None
                yield table, question, result

    def _batches(self, examples: Mapping[int, Example]) -> Iterator[list[int]]:
        """Indices in batches of one padded length."""
        by_length = sorted(examples, key=lambda index: examples[index].report.num_tokens)
        for length, group in itertools.groupby(
            by_length, key=lambda index: self._padded_length(examples[index].report.num_tokens)
        ):
            members = list(group)
            size = max(1, self._batch_tokens // length)
            for start in range(0, len(members), size):
                yield members[start : start + size]

    def _answer_batch(self, batch: Sequence[tuple[Table | None, Example]]) -> list[Answer]:
        length = self._padded_length(max(example.report.num_tokens for _, example in batch))
        features = TokenFeatures.from_dict(
            {
                name: tf.constant(
                    np.stack([_fit(example.features[name], length) for _, example in batch])
                )
                for name in TokenFeatures._fields
                if all(name in example.features for _, example in batch)
            }
        )  # [B, S]
        answers = decode_batch(
            self._task_config,
            [table for table, _ in batch],
            features,
            self._model(features),
            self._builder.wordpiece,
            self._builder.config.histogram_row,
            self._num_alternatives,
        )
        return [
            self._finished(answer, example.report.rows_dropped)
            for answer, (_, example) in zip(answers, batch, strict=True)
        ]

    def _finished(self, answer: Answer, rows_dropped: int) -> Answer:
        if self._calibration is not None:
            answer = calibrated(answer, self._calibration)
        answer = apply_min_score(answer, self._min_score)
        return dataclasses.replace(answer, rows_dropped=rows_dropped)

    def _padded_length(self, num_tokens: int) -> int:
        if self._fixed_length is not None:
            return self._fixed_length
        padded = -(-num_tokens // _LENGTH_STEP) * _LENGTH_STEP
        # Absolute positions may end here.
        return min(padded, self._builder.config.max_seq_length or padded)


def _fit(values: np.ndarray, length: int) -> np.ndarray:
    """Cuts or extends the padding of a feature [S]."""
    return np.pad(values[:length], (0, max(0, length - len(values)))).astype(np.int32)
