"""Which questions are asked together, with a model that says what it is asked."""

import threading

import hypothesis.strategies as st
import pytest
from hypothesis import given

from mate_tf.answers.answer import Answer
from mate_tf.serving.http.batching import Batcher
from mate_tf.serving.http.limits import RefusedError
from mate_tf.tables.table import Question, Table

TABLE = Table(("a",), (("b",),))
CRASHES = "crash"
REFUSED = "refused"


def pairs(*texts):
    return [(TABLE, Question(text)) for text in texts]


class Model:
    """Answers with the question; waits before each batch until it is let go."""

    def __init__(self, is_held=False):
        self.batches: list[list[str]] = []
        self.has_begun = threading.Semaphore(0)
        self.may_go_on = threading.Event()
        if not is_held:
            self.may_go_on.set()

    def __call__(self, asked):
        asked = list(asked)
        texts = [question.text for _, question in asked]
        self.batches.append(texts)
        self.has_begun.release()
        self.may_go_on.wait()
        if CRASHES in texts:
            raise RuntimeError("out of memory")
        for table, question in asked:
            text = question.text
            yield table, question, ValueError(text) if text == REFUSED else answer(text)


def answer(text):
    return Answer((text,), score=1.0)


def test_what_waits_is_answered_together_in_its_order():
    model, sizes = Model(is_held=True), []
    batcher = Batcher(model, max_batch=3, on_batch=sizes.append)
    first = batcher.submit(pairs("1"))
    model.has_begun.acquire()
    others = batcher.submit(pairs("2", "3")) + batcher.submit(pairs("4", "5"))
    assert batcher.num_waiting == 4
    model.may_go_on.set()
    assert [future.result().text for future in first + others] == list("12345")
    assert batcher.close()
    assert model.batches == [["1"], ["2", "3", "4"], ["5"]]
    assert sizes == [1, 3, 1]


@given(st.lists(st.lists(st.sampled_from(["a", "b", REFUSED, CRASHES]), min_size=1, max_size=3)))
def test_one_questions_error_is_its_own(requests):
    batcher = Batcher(Model(), max_batch=4)
    asked = [(texts, batcher.submit(pairs(*texts))) for texts in requests]
    assert batcher.close()
    for texts, futures in asked:
        for text, future in zip(texts, futures, strict=True):
            if text == CRASHES:
                assert isinstance(future.exception(), RuntimeError)
            elif text == REFUSED:
                assert isinstance(future.result(), ValueError)
            else:
                assert future.result() == answer(text)


def test_a_model_that_answers_too_few_questions_fails_them():
    batcher = Batcher(lambda asked: iter([]))
    (future,) = batcher.submit(pairs("a"))
    assert isinstance(future.exception(), ValueError)
    assert batcher.close()


def test_more_than_may_wait_is_refused_whole_and_what_nobody_waits_for_is_not_asked():
    model = Model(is_held=True)
    batcher = Batcher(model, max_waiting=3)
    (running,) = batcher.submit(pairs("1"))
    model.has_begun.acquire()
    gone, stays = batcher.submit(pairs("2", "3"))
    with pytest.raises(RefusedError, match=r"at most 3 questions to wait, got 2 more .* 2 that do"):
        batcher.submit(pairs("4", "5"))
    assert gone.cancel() and not running.cancel()
    assert batcher.num_waiting == 1  # it keeps no place from others
    others = batcher.submit(pairs("4", "5"))
    with pytest.raises(RefusedError, match=r"at most 3 questions to wait, got 1 more .* 3 that do"):
        batcher.submit(pairs("6"))
    model.may_go_on.set()
    assert [future.result().text for future in (running, stays, *others)] == list("1345")
    assert batcher.close()
    assert model.batches == [["1"], ["3", "4", "5"]]


def test_after_the_end_what_waits_is_answered_and_nothing_more():
    model = Model(is_held=True)
    batcher = Batcher(model, max_batch=1)
    futures = batcher.submit(pairs("1", "2", "3"))
    assert not batcher.close(timeout=0.01)
    with pytest.raises(RefusedError, match="stopping") as caught:
        batcher.submit(pairs("4"))
    assert caught.value.status == 503
    model.may_go_on.set()
    assert batcher.close()
    assert [future.result().text for future in futures] == list("123")
