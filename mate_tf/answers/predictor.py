"""Asking a model: features of questions, batches of like length, and answers.

Shapes: B batch, S sequence.
"""

import dataclasses
import functools
import itertools
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, overload

import numpy as np
from numpy.typing import ArrayLike

from mate_tf.answers.answer import Answer, apply_min_score, no_answer
from mate_tf.answers.calibration import Calibration, calibrated
from mate_tf.answers.decoding import OUTPUTS, Asked, decode_cells
from mate_tf.answers.spans import decode_classes, decode_spans
from mate_tf.answers.transposed import alike_columns, likelier, transposed
from mate_tf.answers.views import (
    FollowUp,
    Long,
    View,
    better,
    follow_up,
    in_whole,
    put_together,
    views_of,
)
from mate_tf.features import english
from mate_tf.features.builder import QUESTIONS_AT_ONCE, Example, FeatureBuilder, padded_length
from mate_tf.features.config import ConversionError
from mate_tf.features.token_features import TokenFeatures
from mate_tf.features.tokenized_table import TOO_LONG, may_fit
from mate_tf.tables.drawing import cut
from mate_tf.tables.table import Question, Table
from mate_tf.task_configs import TableQAConfig, TaskConfig, model_kind

if TYPE_CHECKING:
    from mate_tf.answers.attended_cells import AttendedCells
    from mate_tf.models.encoder_task import EncoderTask

# From token features int32 [B, S] to the outputs that a task reads.
ModelFunction = Callable[[TokenFeatures], Mapping[str, ArrayLike]]


class Decoding(NamedTuple):
    """How the outputs of a kind of model become answers."""

    decode: Callable[..., list[Answer]]
    outputs: tuple[str, ...]  # what it reads; a model may lack some of them
    needs_tables: bool = True  # whether it takes no sentence alone


DECODINGS = {
    "table_qa": Decoding(decode_cells, OUTPUTS),
    "classification": Decoding(decode_classes, ("class_logits",), needs_tables=False),
    "span_reading": Decoding(decode_spans, ("span_logits", "class_logits")),
}


def answering_kind(config: Any) -> str:
    """The kind of model that has these options; ValueError for one that does not answer."""
    kind = model_kind(config)
    if kind not in DECODINGS:
        raise ValueError(
            f"expected a model that answers ({', '.join(DECODINGS)}), got one for {kind}; "
            "fine-tune it first"
        )
    return kind


class Decoder:
    """Reads the answers off a model's outputs, as the model's task does.

    It is made from the options of the task; ValueError for a task that answers nothing.
    """

    def __init__(self, config: TaskConfig):
        self._config, self._decoding = config, DECODINGS[answering_kind(config)]

    def __call__(
        self, outputs: Mapping[str, ArrayLike], asked: Asked, num_alternatives: int = 0
    ) -> list[Answer]:
        """The answers of a batch, each with at most so many alternatives.

        The outputs are the model's, as DECODINGS lists them.

        Raises:
            ValueError: if an output is not finite, an id is beyond its table's size, or a question
                that needs a table has none.
        """
        for name in self._decoding.outputs:
            if name not in outputs:
                continue
            values = np.asarray(outputs[name])
            is_finite = np.isfinite(values.reshape(len(values), -1)).all(axis=1)  # [B]
            if not is_finite.all():
                raise ValueError(
                    f"expected finite {name} of the model, got NaN or infinity for "
                    f"{np.count_nonzero(~is_finite)} of {len(values)} questions; check the model's "
                    "weights, or take another checkpoint"
                )
        given, number = len(asked.given_tables), len(asked.tables)
        if self._decoding.needs_tables and given < number:
            raise ValueError(
                f"expected a table for each of {number} questions, got {given}; only a classifier "
                "takes a sentence alone"
            )
        return self._decoding.decode(self._config, outputs, asked, num_alternatives)


class Prepared(NamedTuple):
    """A question with what it sees of its table, and their features."""

    view: View
    example: Example
    whole: "Prepared | None" = None  # which is asked where the follow-up's rows have no answer

    @property
    def num_tokens(self) -> int:
        return self.example.report.num_tokens


class Predictor:
    """Answers questions with a model: of tables, a classifier or a reader of spans.

    Args:
        model: from token features to outputs; a Keras model or a signature of an exported one.
        builder: makes the features as in the model's training.
        batch_tokens: tokens in a batch, with padding; a longer table makes a batch of its own.
        fixed_length: the only length that the model takes (`EncoderConfig.fixed_length`), to which
            everything is padded; None where it takes any. Otherwise nothing is padded beyond the
            builder's max_seq_length.
        task_config: the options of the model's task.
        calibration: makes scores probabilities; None leaves them as they are.
        min_score: below this score there is no answer (`Answer.answered`).
        num_alternatives: the most alternatives that an answer gets.
        most_seconds: how long an answer may take that counts or adds the rows of a table longer
            than the model; then it is "not sure", and its coverage says that it lacks rows.
        keras_model: makes the Keras model for `model`; None where there is none.
        load_again: loads the same predictor, so that this one can be pickled; None where it cannot.

    Raises:
        ValueError: if the builder's examples may be longer than the fixed length, min_score is not
            from 0 to 1, or num_alternatives is negative.
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
        most_seconds: float = 20.0,
        keras_model: Callable[[], "EncoderTask"] | None = None,
        load_again: Callable[[], "Predictor"] | None = None,
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
        if most_seconds < 0:
            raise ValueError(f"expected most_seconds of at least 0, got {most_seconds}")
        self._model = model
        self._builder = builder
        self._batch_tokens = batch_tokens
        self._fixed_length = fixed_length
        task_config = task_config or TableQAConfig()
        self._decode = Decoder(task_config)
        # A model without rules or without thresholds answers by itself.
        self._may_transpose = bool(calibration and getattr(task_config, "plain_answers", False))
        self._calibration = calibration
        self._min_score = min_score
        self._num_alternatives = num_alternatives
        self._most_seconds = most_seconds
        self._keras_model = None if keras_model is None else functools.cache(keras_model)
        self._load_again = load_again
        self._process = os.getpid()

    def __reduce__(self) -> tuple[Callable[[], "Predictor"], tuple[()]]:
        if self._load_again is None:
            raise TypeError("only a predictor of from_pretrained can be pickled")
        return self._load_again, ()

    @property
    def model(self) -> "EncoderTask":
        """The Keras model, made when it is first asked for; ValueError where there is none."""
        if self._keras_model is None:
            raise ValueError("expected a predictor with a keras_model, of from_pretrained")
        return self._keras_model()

    def __call__(self, table: Any, question: Any = None, *, query: Any = None) -> Answer:
        """As `answer`, for one question; `query` is what Hugging Face's pipelines call it."""
        if (question is None) == (query is None):
            raise TypeError("expected a table and one question, model(table, question)")
        return self.answer(table, query if question is None else question)

    @property
    def max_seq_length(self) -> int | None:
        """Tokens of the longest question with its table; None where there is no limit."""
        return self._builder.config.max_seq_length

    @overload
    def answer(
        self, table: Any, questions: str | Question, after: Answer | None = None
    ) -> Answer: ...

    @overload
    def answer(
        self, table: Any, questions: Sequence[str | Question], after: Answer | None = None
    ) -> list[Answer]: ...

    def answer(
        self,
        table: Any,
        questions: str | Question | Sequence[str | Question],
        after: Answer | None = None,
    ) -> Answer | list[Answer]:
        """One answer to a question about a table, or a list of answers to independent ones.

        The table is a `Table` or whatever `Table.of` takes, such as a data frame or a path; or None
        for a sentence alone, which only a classifier takes. After an answer about the same table
        the questions are follow-ups: "who commanded them?" is about the rows of that answer.

        Raises:
            TypeError: if there is no table, or a question is no text.
            ValueError: if the table or a question is beyond a limit, or a question is empty.
            RuntimeError: in a process that was forked after the model was loaded.
        """
        if isinstance(questions, str | Question):
            return self.answer(table, [questions], after)[0]
        if isinstance(questions, Table) or not isinstance(questions, Iterable):
            got = type(questions).__name__
            raise TypeError(
                f"expected a question or a list of questions after the table, got {got}"
            )
        asked = [(table, [_question(one, after) for one in questions])]
        answers = []
        for _, _, answer in self.answer_all(asked):
            if isinstance(answer, ValueError):
                raise answer
            answers.append(answer)
        return answers

    def attended_cells(
        self, table: Any, question: str | Question, after: Answer | None = None
    ) -> "AttendedCells":
        """Answers a question, and finds which cells the answer's tokens attended to.

        The first call makes the Keras model, which takes some seconds. ValueError if the table or
        the question is beyond a limit, or the model is a TableETC (`received_attention`).
        """
        from mate_tf.answers.attended_cells import attended_cells

        table = Table.of(table)
        (prepared,) = self.prepare([(table, _question(question, after))])
        if isinstance(prepared, ConversionError):
            raise prepared
        (answer,) = self.answer_prepared([prepared])
        if prepared.whole is not None and answer.rows is None:
            prepared = prepared.whole
        features = self._features([prepared.example], self._padded_length(prepared.num_tokens))
        histogram_row = self._builder.config.histogram_row
        rows = prepared.view.rows
        return attended_cells(self.model.encoder, table, features, answer, histogram_row, rows)

    def answer_all(
        self, pairs: Iterable[tuple[Any, str | Question | Sequence[str | Question]]]
    ) -> Iterator[tuple[Any, Question, Answer | ValueError]]:
        """Answers questions in their order; one beyond a limit, or empty, yields its error.

        Each pair is a table and a question, or several, as `answer` takes them, with its errors for
        what is no table. A table is read once where it comes several times in a row.
        """
        asked = _asked(pairs)
        while chunk := list(itertools.islice(asked, QUESTIONS_AT_ONCE)):
            prepared = self.prepare(chunk)
            accepted = [one for one in prepared if isinstance(one, Prepared)]
            answers = iter(self.answer_prepared(accepted))
            for (table, question), one in zip(chunk, prepared, strict=True):
                yield table, question, next(answers) if isinstance(one, Prepared) else one

    def prepare(
        self, pairs: Iterable[tuple[Table | None, Question]]
    ) -> list[Prepared | ConversionError]:
        """The features of questions, or why there are none; several threads may call it."""
        prepared: list[Prepared | ConversionError] = []
        for view, *wholes in itertools.starmap(views_of, pairs):
            one = self._prepared(view)
            for behind in map(self._prepared, wholes):
                if isinstance(one, Prepared) and isinstance(behind, Prepared):
                    one = one._replace(whole=behind)
            prepared.append(one)
        return prepared

    def _prepared(self, view: View) -> Prepared | ConversionError:
        """The features of a view; of a table that is too long those of chosen rows."""
        config, text = self._builder.config, view.question.text
        if not text.strip():
            return ConversionError("empty", "expected a question, got an empty one")
        if view.table is not None and not config.original_conversion and english.asks_nothing(text):
            problem = f"expected a question about the table, got {cut(text, 40)!r}"
            return ConversionError("no question", problem)
        may_choose = view.table is not None and view.long is None
        # A table with more cells than tokens is not even tokenized.
        if view.table is not None and may_choose and not may_fit(config, view.table):
            return self._prepared(self._with_chosen_rows(view))
        try:
            return Prepared(view, self._builder.build(view.table, view.question, False))
        except ConversionError as error:
            if may_choose and error.reason in TOO_LONG:
                return self._prepared(self._with_chosen_rows(view))
            return error

    def _with_chosen_rows(self, view: View) -> View:
        """A view of those rows that its question needs."""
        assert view.table is not None
        before = view.question.previous_coordinates
        choice = self._builder.choose_rows(view.table, view.question, [row for row, _ in before])
        return view.only_rows(choice.rows, before)._replace(long=Long(view.table, choice))

    def answer_prepared(self, prepared: Sequence[Prepared]) -> list[Answer]:
        """Answers questions in their order, in batches of one padded length.

        A follow-up whose rows have no answer is asked once more, about the whole table.
        """
        if os.getpid() != self._process:  # threads do not survive a fork
            raise RuntimeError(
                "expected the process that loaded the model, got one forked from it; load the "
                "model after the fork, or start processes with multiprocessing.get_context('spawn')"
            )
        answers, asked = self._answer_all(prepared), list(prepared)
        wholes = {
            index: one.whole
            for index, one in enumerate(prepared)
            if one.whole is not None and not answers[index].answered
        }
        whole_answers = self._answer_all([*wholes.values()])
        for (index, whole), whole_answer in zip(wholes.items(), whole_answers, strict=True):
            answers[index] = better(whole.view.question.text, answers[index], whole_answer)
            if answers[index] is whole_answer:
                asked[index] = whole
        answers = list(map(self._calibrated, answers, asked))
        if self._may_transpose:
            self._read_transposed(answers, asked)
        return list(map(self._finished, answers, asked))

    def _read_transposed(self, answers: list[Answer], asked: Sequence[Prepared]) -> None:
        """Puts in the answers about transposed tables that are likelier (transposed.py)."""
        others: dict[int, Prepared] = {}
        for index, (answer, (view, *_)) in enumerate(zip(answers, asked, strict=True)):
            is_part = view.long is not None or view.rows is not None
            is_doubtful = answer.answered and not answer.sure
            if view.table is None or is_part or view.question.previous_coordinates:
                continue
            if is_doubtful and alike_columns(view.table):
                question = Question(view.question.text)
                other = self._prepared(View(None, transposed(view.table), question))
                if isinstance(other, Prepared) and other.view.long is None:
                    others[index] = other
        for (index, other), answer in zip(
            others.items(), self._answer_all([*others.values()]), strict=True
        ):
            view = asked[index].view
            assert view.table is not None
            across = self._calibrated(answer, other)
            answers[index] = likelier(view.table, view.question.text, answers[index], across)

    def _answer_all(self, prepared: Sequence[Prepared]) -> list[Answer]:
        """The model's answers, not calibrated."""
        answers: dict[int, Answer] = {}
        for batch in self._batches([one.num_tokens for one in prepared]):
            batch_answers = self._answer_batch([prepared[index] for index in batch])
            answers.update(zip(batch, batch_answers, strict=True))
        return [answers[index] for index in range(len(prepared))]

    def _batches(self, num_tokens: Sequence[int]) -> Iterator[list[int]]:
        by_length = sorted(range(len(num_tokens)), key=num_tokens.__getitem__)
        lengths = [self._padded_length(number) for number in num_tokens]
        for length, group in itertools.groupby(by_length, key=lengths.__getitem__):
            members = list(group)
            size = max(1, self._batch_tokens // length)
            for start in range(0, len(members), size):
                yield members[start : start + size]

    def _answer_batch(self, batch: Sequence[Prepared]) -> list[Answer]:
        length = self._padded_length(max(one.num_tokens for one in batch))
        features = self._features([one.example for one in batch], length)
        questions = [one.view.question for one in batch]
        asked = Asked(
            [one.view.table for one in batch],
            features,
            self._builder.wordpiece,
            self._builder.config.histogram_row,
            [question.text for question in questions],
            [isinstance(question, FollowUp) for question in questions],
        )
        outputs = self._model(features)
        # How far ahead an answer is of the next best is a sign for its calibration.
        needs_other = self._calibration is not None and bool(self._calibration.weights)
        number = max(self._num_alternatives, int(needs_other))
        return self._decode(outputs, asked, number)

    def _features(self, examples: Sequence[Example], length: int) -> TokenFeatures:
        given = [example.features for example in examples]
        names = [name for name in TokenFeatures._fields if all(name in it for it in given)]
        return TokenFeatures(
            **{name: np.stack([_fit(it[name], length) for it in given]) for name in names}
        )

    def _calibrated(self, answer: Answer, asked: Prepared) -> Answer:
        if self._calibration is None:
            return answer
        return calibrated(answer, self._calibration, asked.view.table, asked.view.question.text)

    def _finished(self, answer: Answer, asked: Prepared) -> Answer:
        view = asked.view
        # A refusal has its best guess too.
        others = answer.alternatives[: self._num_alternatives + answer.absent]
        answer = dataclasses.replace(answer, alternatives=others)
        answer = apply_min_score(answer, self._min_score)
        if view.long is not None:
            answer = in_whole(answer, view.long.choice.rows)
            end = time.monotonic() + self._most_seconds
            ask = functools.partial(self._ask_rows, view._replace(table=view.long.table))
            answer = put_together(*view.long, answer, ask, lambda: time.monotonic() > end)
        elif view.table is not None and (dropped := asked.example.report.rows_dropped):
            number = view.table.num_rows
            coverage = f"read the first {number - dropped:,} of {number:,} rows"
            answer = dataclasses.replace(answer, rows_dropped=dropped, coverage=coverage)
        if view.rows is None:
            return answer
        return dataclasses.replace(in_whole(answer, view.rows), rows=view.rows)

    def _ask_rows(self, whole: View, rows: Sequence[int]) -> Answer:
        """The answer about other rows of a long table."""
        one = self._prepared(whole.only_rows(rows, ()))
        if not isinstance(one, Prepared):
            return no_answer()
        (answer,) = self._answer_batch([one])
        return in_whole(answer, rows)

    def _padded_length(self, num_tokens: int) -> int:
        if self._fixed_length is not None:
            return self._fixed_length
        padded = padded_length(num_tokens)
        # Absolute positions may end here.
        return min(padded, self._builder.config.max_seq_length or padded)


def _asked(pairs: Iterable[tuple[Any, Any]]) -> Iterator[tuple[Table | None, Question]]:
    """Pairs of one table and one question, of what `Predictor.answer` takes."""
    source: Any = None
    table: Table | None = None
    for given, questions in pairs:
        if given is not source:
            source, table = given, None if given is None else Table.of(given)
        for one in [questions] if isinstance(questions, str | Question) else questions:
            yield table, _question(one, None)


def _question(question: str | Question, after: Answer | None) -> Question:
    if not isinstance(question, str | Question):
        raise TypeError(f"expected a question as text or Question, got {type(question).__name__}")
    question = Question(text=question) if isinstance(question, str) else question
    return question if after is None else follow_up(question, after)


def _fit(values: np.ndarray, length: int) -> np.ndarray:
    """Cuts or extends the padding of a feature [S]."""
    return np.pad(values[:length], (0, max(0, length - len(values)))).astype(np.int32)
