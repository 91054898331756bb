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
from mate_tf.serving.http.app import Questions, Service
from mate_tf.serving.http.requests import Body, read_request
from tests.small import cases

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


class TimedModel(Model):
    """Takes some seconds a token, by a clock that it moves."""

    def __init__(self, seconds_of_token):
        super().__init__()
        self.seconds_of_token, self.now = seconds_of_token, 0.0

    def __call__(self, asked):
        answers = super().__call__(asked)
        self.now += self.seconds_of_token * sum(one.num_tokens for one in asked)
        return answers

    def queue(self):
        return Questions(self, wait_seconds=8.0, clock=lambda: self.now)

    def hold(self, queue, num_tokens):
        """Begins a question that is computed until the model may go on."""
        while self.has_begun.acquire(blocking=False):
            pass
        self.may_go_on.clear()
        futures = queue.submit([Asked("held", num_tokens)])
        self.has_begun.acquire()
        return futures


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
    model = TimedModel(1.0)
    queue = model.queue()
    assert texts(queue.submit(asked("first"))) == ["first"]
    futures = model.hold(queue, 1)
    for number in waiting:
        futures += queue.submit([Asked(str(number), number)])
    if refused is None:
        futures += queue.submit([Asked("last", num_tokens)])
    else:
        after, wait = refused
        message = f"expected an answer within 8 s, it would take {wait}"
        assert refusal(queue, num_tokens) == (503, "late", after, message)
    model.may_go_on.set()
    assert queue.close()
    accepted = ["held", *map(str, waiting), *(["last"] if refused is None else [])]
    assert texts(futures) == accepted and model.texts == ["first", *accepted]


def test_before_the_first_answer_only_what_is_very_long_is_refused_and_nothing_while_none_waits():
    model = TimedModel(1.0)
    queue = model.queue()
    futures = model.hold(queue, 1_000)
    futures += queue.submit([Asked("unmeasured", 1_000)])
    assert refusal(queue, 16_000)[1] == "late"
    model.may_go_on.set()
    assert texts(futures) == ["held", "unmeasured"]
    assert texts(queue.submit([Asked("huge", 1_000_000)])) == ["huge"]
    assert queue.close()


def test_what_is_refused_is_accepted_after_the_seconds_that_it_was_told():
    model = TimedModel(1.0)
    queue = model.queue()
    texts(queue.submit(asked("first")))
    futures = model.hold(queue, 6)
    assert refusal(queue, 5)[2] == "3"
    model.now += 3  # of the six that it takes
    futures += queue.submit([Asked("again", 5)])
    model.may_go_on.set()
    assert texts(futures) == ["held", "again"] and queue.close()


@pytest.mark.parametrize("speed, late, in_time", [(0.125, 70, 50), (2.0, 4, 2)])
def test_the_estimate_follows_a_change_of_speed(speed, late, in_time):
    model = TimedModel(1.0)
    queue = model.queue()
    texts(queue.submit(asked("first")))
    model.seconds_of_token = speed
    for _ in range(60):
        texts(queue.submit(asked("again")))
    futures = model.hold(queue, 1)
    assert refusal(queue, late)[1] == "late"
    futures += queue.submit([Asked("fits", in_time)])
    model.may_go_on.set()
    assert texts(futures) == ["held", "fits"] and queue.close()


def test_what_is_late_is_refused_before_it_is_read():
    model = TimedModel(1.0)
    service = Service("tables", Limits())
    service.begin(types.SimpleNamespace(prepare=None, answer_prepared=model), 0, 0.0)
    service.questions = queue = model.queue()
    texts(queue.submit(asked("first")))
    futures = model.hold(queue, 9)
    with pytest.raises(RefusedError, match="would take 9"):
        asyncio.run(service.answer(Body(b"no JSON"), read_request))
    model.may_go_on.set()
    assert texts(futures) == ["held"] and queue.close()


def test_reading_counts_and_so_does_what_takes_longer_than_it_should():
    model = TimedModel(1.0)
    queue = model.queue()
    texts(queue.submit(asked("first")))
    futures = model.hold(queue, 4)
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
    assert queue.close()


def test_what_was_accepted_is_refused_if_its_turn_does_not_come_in_time():
    model = Model(is_held=True)
    service = Service("tables", Limits(wait_seconds=0.01))
    prepared = [Asked("late"), Asked("late too")]
    service.begin(types.SimpleNamespace(prepare=lambda _: prepared, answer_prepared=model), 0, 0.0)
    service.questions = queue = Questions(model)
    futures = queue.submit(asked("held"))
    model.has_begun.acquire()
    body = Body(json.dumps({"instances": [{"questions": ["a", "b"], "table": "a\nb"}]}).encode())
    with pytest.raises(RefusedError, match=r"within 0.01 s, others took longer") as caught:
        asyncio.run(service.answer(body, read_request))
    assert (caught.value.status, caught.value.code) == (503, "late")
    model.may_go_on.set()
    assert texts(futures) == ["held"] and queue.close()
    assert model.texts == ["held"]


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
