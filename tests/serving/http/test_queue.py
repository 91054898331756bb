"""The order in which questions are read and asked, with a model that says what it is asked."""

import asyncio
import json
import threading
import types
from typing import NamedTuple

import hypothesis.strategies as st
import pytest
from hypothesis import given

from mate_tf.answers.answer import Answer
from mate_tf.serving.http import Limits, RefusedError
from mate_tf.serving.http.app import Service
from mate_tf.serving.http.body import Body
from mate_tf.serving.http.queue import Questions
from mate_tf.serving.http.requests import read_request

CRASHES = "crash"


class Asked(NamedTuple):
    text: str
    num_tokens: int = 100


class Model:
    """Answers with the question; waits before each until it is let go."""

    def __init__(self, is_held=False):
        self.texts: list[str] = []
        self.has_begun = threading.Semaphore(0)
        self.may_go_on = threading.Event()
        if not is_held:
            self.may_go_on.set()

    def __call__(self, asked):
        (one,) = asked
        self.texts.append(one.text)
        self.has_begun.release()
        self.may_go_on.wait()
        if one.text == CRASHES:
            raise RuntimeError("out of memory")
        return [Answer((one.text,), score=1.0)]


def asked(*texts):
    return [Asked(text) for text in texts]


def texts(futures):
    return [future.result().text for future in futures]


def test_what_waits_is_answered_in_its_order_and_counted():
    model = Model(is_held=True)
    queue = Questions(model, clock=lambda: 0.0)
    first = queue.submit(asked("1"))
    model.has_begun.acquire()
    others = queue.submit(asked("2", "3"))
    others += queue.submit([Asked("4", 129), Asked("5", 900), Asked("6", 900)])
    assert queue.num_waiting == 5
    model.may_go_on.set()
    assert texts(first + others) == list("123456")
    assert queue.close()
    assert model.texts == list("123456")


@given(st.lists(st.lists(st.sampled_from(["a", "b", CRASHES]), min_size=1, max_size=3)))
def test_one_questions_error_is_its_own(requests):
    queue = Questions(Model())
    futures = [(texts, queue.submit(asked(*texts))) for texts in requests]
    assert queue.close()
    for texts, found in futures:
        for text, future in zip(texts, found, strict=True):
            if text == CRASHES:
                assert isinstance(future.exception(), RuntimeError)
            else:
                assert future.result().text == text


def test_a_model_that_answers_too_few_questions_fails_them():
    queue = Questions(lambda asked: [])
    (future,) = queue.submit(asked("a"))
    assert isinstance(future.exception(), ValueError)
    assert queue.close()


def test_a_short_question_passes_long_ones_for_a_while_and_none_waits_for_ever():
    model, now = Model(is_held=True), 0.0
    queue = Questions(model, clock=lambda: now)
    first = queue.submit(asked("0"))
    model.has_begun.acquire()
    waiting = queue.submit([Asked("long", 8000), Asked("longer", 16000)])
    waiting += queue.submit(asked("short"))
    now = 1.0
    waiting += queue.submit(asked("late"))
    model.may_go_on.set()
    assert texts(first + waiting) == ["0", "long", "longer", "short", "late"]
    assert queue.close()
    assert model.texts == ["0", "short", "long", "late", "longer"]


def test_what_nobody_waits_for_is_not_asked():
    model = Model(is_held=True)
    queue = Questions(model)
    (running,) = queue.submit(asked("1"))
    model.has_begun.acquire()
    gone, stays = queue.submit(asked("2", "3"))
    assert gone.cancel() and not running.cancel()
    assert queue.num_waiting == 1
    model.may_go_on.set()
    assert texts([running, stays]) == ["1", "3"]
    assert queue.close()
    assert model.texts == ["1", "3"]


def test_after_the_end_what_waits_is_answered_and_nothing_more():
    model = Model(is_held=True)
    queue = Questions(model)
    futures = queue.submit(asked("1", "2", "3"))
    assert not queue.close(timeout=0.01)
    with pytest.raises(RefusedError, match="stopping") as caught:
        queue.submit(asked("4"))
    assert caught.value.status == 503
    model.may_go_on.set()
    assert queue.close()
    assert texts(futures) == list("123")


def test_a_small_body_is_read_while_a_large_one_is_and_nobody_asks_for_one_that_left():
    may_go_on, prepared = threading.Event(), []

    def prepare(pairs):
        ((table, question),) = pairs
        prepared.append(question.text)
        assert table.num_rows == 1 or may_go_on.wait(60)
        return [Asked(question.text)]

    service = Service("tables", Limits())
    service.begin(types.SimpleNamespace(prepare=prepare, answer_prepared=Model()), 0, 0.0)

    async def answer(text, num_rows):
        asked = {"question": text, "table": {"header": ["b"], "rows": [["c" * 10]] * num_rows}}
        body = Body(json.dumps({"instances": [asked]}).encode())
        return (await service.answer(body, read_request))["predictions"][0]["answer"]

    async def run():
        large, gone = [asyncio.create_task(answer(text, 3_000)) for text in ("large", "gone")]
        assert await answer("small", 1) == "small" and not large.done()
        gone.cancel()
        await asyncio.wait([gone])
        may_go_on.set()
        return await large

    assert asyncio.run(run()) == "large"
    assert service.questions.close()
    assert sorted(prepared) == ["large", "small"]
