"""One thread has the model, and answers the questions that wait."""

import itertools
import math
import queue
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any, NamedTuple

from absl import logging

from mate_tf.answers.answer import Answer
from mate_tf.serving.http import RefusedError, stopping

_SECONDS_OF_TOKEN = 0.1e-3  # half of what one takes the default model on two cores
_MEMORY = 0.9  # after each answer so much counts of those before
_DOUBLE = 3_000  # tokens in one column, where attention doubles what each takes


class _Waiting(NamedTuple):
    """A question in the queue."""

    # When it would be answered if nobody else asked. The earliest is answered first, so that a
    # short question passes long ones that came just before it, and none waits for ever.
    due: float
    number: int  # of equal ones the first comes first
    question: Any  # as `Predictor.prepare` made it; None ends the thread
    future: "Future[Answer]"


def _work(question: Any) -> float:
    """About what a question takes, in the tokens of a short one that take as long."""
    return question.num_tokens * (1 + question.num_tokens / _DOUBLE)


class Questions:
    """Answers questions one after the other, each on all cores.

    It measures how long a token takes, and refuses at once what would be answered late.

    Args:
        answer: answers a question, as `Predictor.answer_prepared`; one thread calls it. A question
            has `num_tokens`.
        wait_seconds: the most that a request may be expected to take while others wait.
        clock: the time in seconds.
    """

    def __init__(
        self,
        answer: Callable[[Sequence[Any]], Sequence[Answer]],
        wait_seconds: float = math.inf,
        clock: Callable[[], float] = time.monotonic,
    ):
        self._answer, self._wait_seconds, self._clock = answer, wait_seconds, clock
        self._seconds_of_work = 2 * _SECONDS_OF_TOKEN  # until it is measured
        self._seconds = self._work_done = 0.0  # measured; older ones count less
        self._running_until: float | None = None  # when what is computed should have its answer
        self._numbers = itertools.count()
        self._waiting: queue.PriorityQueue[_Waiting] = queue.PriorityQueue()
        self._is_closed = False
        # A daemon, so that an endless computation does not keep the process.
        self._thread = threading.Thread(target=self._run, name="model", daemon=True)
        self._thread.start()

    @property
    def num_waiting(self) -> int:
        """How many questions wait whose clients still wait."""
        return len(self._work_waiting())

    def check_wait(self, questions: Sequence[Any] = (), waited: float = 0.0) -> None:
        """Refuses a request that came some seconds ago and would be answered late.

        What is long by itself is accepted when nothing else waits or is computed.

        Raises:
            RefusedError: with status 503, and the seconds after which it would be accepted.
        """
        now, running_until = self._clock(), self._running_until
        # What takes longer than it should is expected to take as long again.
        before = 0.0 if running_until is None else abs(running_until - now)
        before += sum(self._work_waiting()) * self._seconds_of_work
        wait = waited + before + sum(map(_work, questions)) * self._seconds_of_work
        if (too_long := min(before, wait - self._wait_seconds)) > 0:
            most = f"{self._wait_seconds:g}"
            message = f"expected an answer within {most} s, it would take {wait:.0f}"
            raise RefusedError("late", message, status=503, retry_after=math.ceil(too_long))

    def submit(self, questions: Sequence[Any], waited: float = 0.0) -> list["Future[Answer]"]:
        """Takes all questions; one whose future is cancelled in time is not asked.

        Raises:
            RefusedError: with status 503 after `close`, or as `check_wait`.
        """
        if self._is_closed:
            raise stopping()
        self.check_wait(questions, waited)
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

    def _work_waiting(self) -> list[float]:
        return [
            _work(one.question)
            for one in self._waiting.queue[:]
            if one.question is not None and not one.future.cancelled()
        ]

    def _put(self, due: float, question: Any, future: "Future[Answer]") -> None:
        self._waiting.put(_Waiting(due, next(self._numbers), question, future))

    def _run(self) -> None:
        while (one := self._waiting.get()).question is not None:
            if one.future.set_running_or_notify_cancel():  # somebody waits for it
                try:
                    one.future.set_result(self._timed(one.question))
                except Exception as error:
                    logging.exception("a question was not answered")
                    one.future.set_exception(error)

    def _timed(self, question: Any) -> Answer:
        """The answer, whose time is measured."""
        start, work = self._clock(), _work(question)
        self._running_until = start + work * self._seconds_of_work
        try:
            (answer,) = self._answer([question])
        finally:
            self._running_until = None
        self._seconds = _MEMORY * self._seconds + self._clock() - start
        self._work_done = _MEMORY * self._work_done + work
        self._seconds_of_work = self._seconds / self._work_done
        return answer
