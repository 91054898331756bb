"""One thread has the model, and answers the questions that wait."""

import itertools
import queue
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any, NamedTuple

from absl import logging

from mate_tf.answers.answer import Answer
from mate_tf.serving.http import stopping

_SECONDS_OF_TOKEN = 0.1e-3  # half of what one takes the default model on two cores


class _Waiting(NamedTuple):
    """A question in the queue."""

    # When it would be answered if nobody else asked. The earliest is answered first, so that a
    # short question passes long ones that came just before it, and none waits for ever.
    due: float
    number: int  # of equal ones the first comes first
    question: Any  # as `Predictor.prepare` made it; None ends the thread
    future: "Future[Answer]"


class Questions:
    """Answers questions one after the other, each on all cores.

    Args:
        answer: answers a question, as `Predictor.answer_prepared`; one thread calls it. A question
            has `num_tokens`.
    """

    def __init__(
        self,
        answer: Callable[[Sequence[Any]], Sequence[Answer]],
        clock: Callable[[], float] = time.monotonic,
    ):
        self._answer, self._clock = answer, clock
        self._numbers = itertools.count()
        self._waiting: queue.PriorityQueue[_Waiting] = queue.PriorityQueue()
        self._is_closed = False
        # A daemon, so that an endless computation does not keep the process.
        self._thread = threading.Thread(target=self._run, name="model", daemon=True)
        self._thread.start()

    @property
    def num_waiting(self) -> int:
        """How many questions wait whose clients still wait."""
        return sum(not one.future.cancelled() for one in self._waiting.queue[:])

    def submit(self, questions: Sequence[Any]) -> list["Future[Answer]"]:
        """Takes all questions; one whose future is cancelled in time is not asked.

        Raises:
            RefusedError: with status 503 after `close`.
        """
        if self._is_closed:
            raise stopping()
        futures: list[Future[Answer]] = [Future() for _ in questions]
        now = self._clock()
        for question, future in zip(questions, futures, strict=True):
            self._put(now + question.num_tokens * _SECONDS_OF_TOKEN, question, future)
        return futures

    def close(self, timeout: float | None = None) -> bool:
        """Answers what waits and accepts no more; returns whether the time was enough."""
        self._is_closed = True
        self._put(float("inf"), None, Future())
        self._thread.join(timeout)
        return not self._thread.is_alive()

    def _put(self, due: float, question: Any, future: "Future[Answer]") -> None:
        self._waiting.put(_Waiting(due, next(self._numbers), question, future))

    def _run(self) -> None:
        while (one := self._waiting.get()).question is not None:
            if one.future.set_running_or_notify_cancel():  # somebody waits for it
                try:
                    (answer,) = self._answer([one.question])
                    one.future.set_result(answer)
                except Exception as error:
                    logging.exception("a question was not answered")
                    one.future.set_exception(error)
