"""One thread has the model, and answers waiting questions together."""

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from typing import NamedTuple

from absl import logging

from mate_tf.answers.answer import Answer
from mate_tf.serving.http.limits import RefusedError, stopping
from mate_tf.tables.table import Question, Table

Pair = tuple[Table, Question]
Result = Answer | ValueError
AnswerAll = Callable[[Iterable[Pair]], Iterator[tuple[Table, Question, Result]]]


class _Waiting(NamedTuple):
    pair: Pair
    future: "Future[Result]"


class Batcher:
    """Answers all questions at once that came in while others were answered.

    Args:
        answer_all: answers pairs in their order, as `Predictor.answer_all`; called by one thread.
        max_batch: the most questions that are answered at once.
        max_waiting: the most questions that wait; more are refused.
        on_batch: gets the number of questions each time.
    """

    def __init__(
        self,
        answer_all: AnswerAll,
        max_batch: int = 32,
        max_waiting: int = 256,
        on_batch: Callable[[int], None] = lambda size: None,
    ):
        self._answer_all = answer_all
        self._max_batch = max_batch
        self._max_waiting = max_waiting
        self._on_batch = on_batch
        self._waiting: deque[_Waiting] = deque()
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

    def submit(self, pairs: Sequence[Pair]) -> list["Future[Result]"]:
        """Takes all questions or none; one whose future is cancelled in time is not asked.

        Raises:
            RefusedError: with status 429 if too many wait, with 503 after `close`.
        """
        futures: list[Future[Result]] = [Future() for _ in pairs]
        with self._changed:
            if self._closed:
                raise stopping()
            # Cancelled questions take no place from others.
            self._waiting = deque(one for one in self._waiting if not one.future.cancelled())
            if len(self._waiting) + len(pairs) > self._max_waiting:
                raise RefusedError(
                    "busy",
                    f"expected at most {self._max_waiting} questions to wait, got "
                    f"{len(pairs)} more than the {len(self._waiting)} that do",
                    status=429,
                    retry_after=1,
                )
            self._waiting.extend(map(_Waiting, pairs, futures))
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
        while taken := self._take():
            asked = [one for one in taken if one.future.set_running_or_notify_cancel()]
            if asked:
                self._on_batch(len(asked))
                self._answer(asked)

    def _take(self) -> list[_Waiting]:
        """The next batch; empty once there are no more and the batcher is closed."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._closed)
            count = min(len(self._waiting), self._max_batch)
            return [self._waiting.popleft() for _ in range(count)]

    def _answer(self, asked: list[_Waiting]) -> None:
        try:
            results = [result for _, _, result in self._answer_all([one.pair for one in asked])]
            for one, result in zip(asked, results, strict=True):
                one.future.set_result(result)
        except Exception as error:
            logging.exception("%d questions were not answered", len(asked))
            if len(asked) == 1:
                asked[0].future.set_exception(error)
                return
            for one in asked:  # one by one, so that the others are answered
                self._answer([one])
