"""The order in which questions are read and asked, with a model that says what it is asked."""

import asyncio
import contextlib
import json
import math
import threading
import types
from typing import NamedTuple

import hypothesis.strategies as st
import pytest
from hypothesis import given

from mate_tf.answers.answer import Answer
from mate_tf.serving.http import Limits, RefusedError
from mate_tf.serving.http.app import Questions, Service
from mate_tf.serving.http.requests import Body, read_request
from tests.small import cases

CRASHES = "crash"


class Asked(NamedTuple):
    text: str
    num_tokens: int = 100


class Model:
    """Answers with the question, by default in a second a token, by a clock that it moves."""

    def __init__(self):
        self.texts: list[str] = []
        self.seconds_of_token, self.now = 1.0, 0.0
        self.has_begun, self.may_go_on = threading.Semaphore(0), threading.Event()
        self.may_go_on.set()

    def __call__(self, asked):
        (one,) = asked
        self.texts.append(one.text)
        self.has_begun.release()
        self.may_go_on.wait()
        if one.text == CRASHES:
            raise RuntimeError("out of memory")
        self.now += self.seconds_of_token * one.num_tokens
        return [Answer((one.text,), score=1.0)]


@contextlib.contextmanager
def held(num_tokens=100, speeds=(), wait_seconds=math.inf):
    """A queue that is closed at the end, its model, and what it computes until then.

    Before that it has answered a question at each of the speeds.
    """
    model = Model()
    queue = Questions(model, wait_seconds, clock=lambda: model.now)
    for model.seconds_of_token in speeds:
        assert texts(queue.submit(asked("first"))) == ["first"]
        model.has_begun.acquire()
    model.may_go_on.clear()
    futures = queue.submit([Asked("held", num_tokens)])
    model.has_begun.acquire()
    yield queue, model, futures
    model.may_go_on.set()
    assert queue.close()


def measured(num_tokens, *speeds):
    """The same for a queue that has limits and knows its model's speed."""
    return held(num_tokens, speeds or [1.0], wait_seconds=8.0)


def asked(*texts):
    return [Asked(text) for text in texts]


def texts(futures):
    return [future.result().text for future in futures]


def test_what_waits_is_answered_in_its_order_and_counted():
    with held() as (queue, model, futures):
        futures += queue.submit(asked("2", "3"))
        futures += queue.submit([Asked("4", 129), Asked("5", 900), Asked("6", 900)])
        assert queue.num_waiting == 5
    assert texts(futures) == model.texts == ["held", *"23456"]


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
    with held() as (queue, model, futures):
        futures += queue.submit([Asked("long", 8000), Asked("longer", 16000), *asked("short")])
        model.now = 1.0
        futures += queue.submit(asked("late"))
    assert texts(futures) == ["held", "long", "longer", "short", "late"]
    assert model.texts == ["held", "short", "long", "late", "longer"]


def refusal(queue, num_tokens):
    with pytest.raises(RefusedError) as caught:
        queue.submit([Asked("late", num_tokens)])
    refused = caught.value
    return refused.status, refused.code, refused.headers["retry-after"], str(refused)


@cases(
    "waiting, num_tokens, refused",
    ([], 7, None),
    ([], 8, ("1", "9")),  # one second of the question that is computed is before it
    ([2, 2], 3, None),
    ([2, 2], 6, ("3", "11")),
    ([3, 4], 1, ("1", "9")),
    ([7], 100, ("8", "108")),  # long by itself: it is accepted when nothing else waits
    ids=["fits", "late", "both fit", "late by three", "just late", "long by itself"],
)
def test_what_would_be_answered_late_is_refused_at_once(waiting, num_tokens, refused):
    with measured(1) as (queue, model, futures):
        for number in waiting:
            futures += queue.submit([Asked(str(number), number)])
        if refused is None:
            futures += queue.submit([Asked("last", num_tokens)])
        else:
            after, wait = refused
            message = f"expected an answer within 8 s, it would take {wait}"
            assert refusal(queue, num_tokens) == (503, "late", after, message)
    accepted = ["held", *map(str, waiting), *(["last"] if refused is None else [])]
    assert texts(futures) == accepted and model.texts == ["first", *accepted]


def test_before_the_first_answer_only_what_is_very_long_is_refused_and_nothing_while_none_waits():
    with held(1_000, wait_seconds=8.0) as (queue, model, futures):
        futures += queue.submit([Asked("unmeasured", 1_000)])
        assert refusal(queue, 16_000)[1] == "late"
        model.may_go_on.set()
        assert texts(futures) == ["held", "unmeasured"]
        assert texts(queue.submit([Asked("huge", 1_000_000)])) == ["huge"]


def test_what_is_refused_is_accepted_after_the_seconds_that_it_was_told():
    with measured(6) as (queue, model, futures):
        assert refusal(queue, 5)[2] == "3"
        model.now += 3  # of the six that it takes
        futures += queue.submit([Asked("again", 5)])
    assert texts(futures) == ["held", "again"]


@pytest.mark.parametrize("speed, late, in_time", [(0.125, 70, 50), (2.0, 4, 2)])
def test_the_estimate_follows_a_change_of_speed(speed, late, in_time):
    with measured(1, 1.0, *[speed] * 60) as (queue, _, futures):
        assert refusal(queue, late)[1] == "late"
        futures += queue.submit([Asked("fits", in_time)])
    assert texts(futures) == ["held", "fits"]


def test_reading_counts_and_so_does_what_takes_longer_than_it_should():
    with measured(4) as (queue, model, futures):
        queue.check_wait([Asked("", 3)])
        for waited, retry_after in [(3, "2"), (20, "4")]:
            with pytest.raises(RefusedError) as caught:
                queue.check_wait([Asked("", 3)], waited)
            assert caught.value.headers["retry-after"] == retry_after
        model.now += 12  # of the four that it should take
        assert refusal(queue, 1)[2] == "2"
        model.may_go_on.set()
        assert texts(futures) == ["held"]
        queue.check_wait([Asked("", 1)], 20)  # nothing waits


def service_of(model, queue=None, prepare=None, **limits):
    """A service whose questions wait in a queue, by default in one of its own."""
    service = Service("tables", Limits(**limits))
    service.begin(types.SimpleNamespace(prepare=prepare, answer_prepared=model), 0, 0.0)
    service.questions = queue or service.questions
    return service


def test_what_is_late_is_refused_before_it_is_read_and_if_its_turn_does_not_come_in_time():
    with (
        measured(9) as (queue, model, _),
        pytest.raises(RefusedError, match="would take 9"),
    ):
        asyncio.run(service_of(model, queue).answer(Body(b"no JSON"), read_request))
    body = Body(json.dumps({"instances": [{"questions": ["a", "b"], "table": "a\nb"}]}).encode())
    with held() as (queue, model, _):
        service = service_of(model, queue, lambda _: asked("late", "too"), wait_seconds=0.01)
        with pytest.raises(RefusedError, match=r"within 0.01 s, others took longer") as caught:
            asyncio.run(service.answer(body, read_request))
        assert (caught.value.status, caught.value.code) == (503, "late")
    assert model.texts == ["held"]


def test_what_nobody_waits_for_is_not_asked():
    with held() as (queue, model, (running,)):
        gone, stays = queue.submit(asked("2", "3"))
        assert gone.cancel() and not running.cancel()
        assert queue.num_waiting == 1
    assert texts([running, stays]) == model.texts == ["held", "3"]


def test_after_the_end_what_waits_is_answered_and_nothing_more():
    with held() as (queue, _, futures):
        futures += queue.submit(asked("2", "3"))
        assert not queue.close(timeout=0.01)
        with pytest.raises(RefusedError, match="stopping") as caught:
            queue.submit(asked("4"))
        assert caught.value.status == 503
    assert texts(futures) == ["held", "2", "3"]


def test_a_small_body_is_read_while_a_large_one_is_and_nobody_asks_for_one_that_left():
    may_go_on, prepared = threading.Event(), []

    def prepare(pairs):
        ((table, question),) = pairs
        prepared.append(question.text)
        assert table.num_rows == 1 or may_go_on.wait(60)
        return [Asked(question.text)]

    service = service_of(Model(), prepare=prepare)

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
