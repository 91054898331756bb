"""One thread has the model, and answers the questions that wait together."""

import heapq
import itertools
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any, NamedTuple

from absl import logging

from mate_tf.answers.answer import Answer
from mate_tf.features.builder import padded_length
from mate_tf.serving.http import Limits, stopping

_SECONDS_OF_TOKEN = 0.1e-3  # half of what one takes the default model on two cores


class _Waiting(NamedTuple):
    """A question in the queue."""

    # When it would be answered if nobody else asked. The earliest is answered first, so that a
    # short question passes long ones that came just before it, and none waits for ever.
    due: float
    number: int  # of equal ones the first comes first
    num_tokens: int  # with its padding
    question: Any  # as `Predictor.prepare` made it
    future: "Future[Answer]"


class Batcher:
    """Answers what waits in batches of so many tokens.

    Args:
        answer: answers questions in their order, as `Predictor.answer_prepared`; one thread calls
            it. A question has `num_tokens`.
        batch_tokens: the most tokens of a batch, with padding; a longer question is answered alone.
        on_batch: gets the number of questions each time.
    """

    def __init__(
        self,
        answer: Callable[[Sequence[Any]], Sequence[Answer]],
        batch_tokens: int = Limits.max_batch_tokens,
        on_batch: Callable[[int], None] = lambda size: None,
        clock: Callable[[], float] = time.monotonic,
    ):
        self._answer_all = answer
        self._batch_tokens = batch_tokens
        self._on_batch = on_batch
        self._clock = clock
        self._numbers = itertools.count()
        self._waiting: list[_Waiting] = []  # a heap
        self._changed = threading.Condition()
        self._closed = False
        # A daemon, so that an endless computation does not keep the process.
        self._thread = threading.Thread(target=self._run, name="model", daemon=True)
        self._thread.start()

    @property
    def num_waiting(self) -> int:
        """How many questions wait whose clients still wait."""
        with self._changed:
            return sum(not one.future.cancelled() for one in self._waiting)

    def submit(self, questions: Sequence[Any]) -> list["Future[Answer]"]:
        """Takes all questions; one whose future is cancelled in time is not asked.

        Raises:
            RefusedError: with status 503 after `close`.
        """
        futures: list[Future[Answer]] = [Future() for _ in questions]
        with self._changed:
            if self._closed:
                raise stopping()
            now = self._clock()
            for question, future in zip(questions, futures, strict=True):
                num_tokens = padded_length(question.num_tokens)
                due = now + num_tokens * _SECONDS_OF_TOKEN
                one = _Waiting(due, next(self._numbers), num_tokens, question, future)
                heapq.heappush(self._waiting, one)
            self._changed.notify()
        return futures

    def close(self, timeout: float | None = None) -> bool:
        """Answers what waits and accepts no more; returns whether the time was enough."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        self._thread.join(timeout)
        return not self._thread.is_alive()

    def _run(self) -> None:
        while batch := self._take():
            self._on_batch(len(batch))
            self._answer(batch)

    def _take(self) -> list[_Waiting]:
        """The next batch; empty once there are no more and the batcher is closed."""
        batch: list[_Waiting] = []
        tokens = 0
        with self._changed:
            while not batch:
                self._changed.wait_for(lambda: self._waiting or self._closed)
                if not self._waiting:
                    return []
                while self._waiting:
                    if batch and tokens + self._waiting[0].num_tokens > self._batch_tokens:
                        break
                    one = heapq.heappop(self._waiting)
                    if one.future.set_running_or_notify_cancel():  # somebody waits for it
                        batch.append(one)
                        tokens += one.num_tokens
        return batch

    def _answer(self, batch: list[_Waiting]) -> None:
        try:
            answers = self._answer_all([one.question for one in batch])
            for one, answer in zip(batch, answers, strict=True):
                one.future.set_result(answer)
        except Exception as error:
            logging.exception("%d questions were not answered", len(batch))
            if len(batch) == 1:
                batch[0].future.set_exception(error)
                return
            for one in batch:  # one by one, so that the others are answered
                self._answer([one])
