"""Which questions are read and asked together, with a model that says what it is asked."""

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
from mate_tf.serving.http.batching import Batcher
from mate_tf.serving.http.body import Body
from mate_tf.serving.http.requests import read_request

CRASHES = "crash"


class Asked(NamedTuple):
    text: str
    num_tokens: int = 100  # padded to 128


class Model:
    """Answers with the question; waits before each batch until it is let go."""

    def __init__(self, is_held=False):
        self.batches: list[list[str]] = []
        self.has_begun = threading.Semaphore(0)
        self.may_go_on = threading.Event()
        if not is_held:
            self.may_go_on.set()

    def __call__(self, asked):
        texts = [one.text for one in asked]
        self.batches.append(texts)
        self.has_begun.release()
        self.may_go_on.wait()
        if CRASHES in texts:
            raise RuntimeError("out of memory")
        return [Answer((text,), score=1.0) for text in texts]


def asked(*texts):
    return [Asked(text) for text in texts]


def texts(futures):
    return [future.result().text for future in futures]


def test_what_waits_is_answered_together_in_its_order_up_to_so_many_tokens():
    model, sizes = Model(is_held=True), []
    batcher = Batcher(model, 3 * 128, on_batch=sizes.append, clock=lambda: 0.0)
    first = batcher.submit(asked("1"))
    model.has_begun.acquire()
    others = batcher.submit(asked("2", "3"))
    others += batcher.submit([Asked("4", 129), Asked("5", 900), Asked("6", 900)])
    assert batcher.num_waiting == 5
    model.may_go_on.set()
    assert texts(first + others) == list("123456")
    assert batcher.close()
    assert model.batches == [["1"], ["2", "3"], ["4"], ["5"], ["6"]]
    assert sizes == [1, 2, 1, 1, 1]


@given(st.lists(st.lists(st.sampled_from(["a", "b", CRASHES]), min_size=1, max_size=3)))
def test_one_questions_error_is_its_own(requests):
    batcher = Batcher(Model(), batch_tokens=512)
    futures = [(texts, batcher.submit(asked(*texts))) for texts in requests]
    assert batcher.close()
    for texts, found in futures:
        for text, future in zip(texts, found, strict=True):
            if text == CRASHES:
                assert isinstance(future.exception(), RuntimeError)
            else:
                assert future.result().text == text


def test_a_model_that_answers_too_few_questions_fails_them():
    batcher = Batcher(lambda asked: [])
    (future,) = batcher.submit(asked("a"))
    assert isinstance(future.exception(), ValueError)
    assert batcher.close()


def test_a_short_question_passes_long_ones_for_a_while_and_none_waits_for_ever():
    model, now = Model(is_held=True), 0.0
    batcher = Batcher(model, batch_tokens=1, clock=lambda: now)
    first = batcher.submit(asked("0"))
    model.has_begun.acquire()
    waiting = batcher.submit([Asked("long", 8000), Asked("longer", 16000)])
    waiting += batcher.submit(asked("short"))
    now = 1.0
    waiting += batcher.submit(asked("late"))
    model.may_go_on.set()
    assert texts(first + waiting) == ["0", "long", "longer", "short", "late"]
    assert batcher.close()
    assert model.batches == [["0"], ["short"], ["long"], ["late"], ["longer"]]


def test_what_nobody_waits_for_is_not_asked():
    model = Model(is_held=True)
    batcher = Batcher(model, batch_tokens=1280)
    (running,) = batcher.submit(asked("1"))
    model.has_begun.acquire()
    gone, stays = batcher.submit(asked("2", "3"))
    assert gone.cancel() and not running.cancel()
    assert batcher.num_waiting == 1
    model.may_go_on.set()
    assert texts([running, stays]) == ["1", "3"]
    assert batcher.close()
    assert model.batches == [["1"], ["3"]]


def test_after_the_end_what_waits_is_answered_and_nothing_more():
    model = Model(is_held=True)
    batcher = Batcher(model, batch_tokens=1)
    futures = batcher.submit(asked("1", "2", "3"))
    assert not batcher.close(timeout=0.01)
    with pytest.raises(RefusedError, match="stopping") as caught:
        batcher.submit(asked("4"))
    assert caught.value.status == 503
    model.may_go_on.set()
    assert batcher.close()
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
    assert service.batcher.close()
    assert sorted(prepared) == ["large", "small"]
