"""A predictor takes what people have, refuses what is no question, pickles, and knows of a fork."""

import os
import pickle

import pytest

from mate_tf.features import english
from mate_tf.serving.loading import from_pretrained
from mate_tf.tables.table import Question, Table
from tests.small import run_python, two_devices

CITIES = {"city": ["Lima", "Oslo"], "people": [10, 2]}


@pytest.fixture(scope="module")
def predictor():
    return from_pretrained()


@pytest.mark.medium
def test_whatever_holds_a_table_is_asked(predictor):
    predictor.answer(CITIES, "which city?")  # the first makes no graph: its rounding differs
    expected = predictor.answer(Table.of(CITIES), "which city?")
    assert predictor.answer(CITIES, "which city?") == expected
    assert "<p class=" in expected._repr_html_()
    again = pickle.loads(pickle.dumps(predictor))
    assert again.answer(CITIES, "which city?").text == expected.text


def test_many_are_asked_of_what_one_is_asked_of(predictor):
    texts = ["which city?", "how many people are in Oslo?"]
    pairs = [(CITIES, texts[0]), (CITIES, Question(texts[1])), (CITIES, texts)]
    asked = list(predictor.answer_all(pairs))
    assert [table for table, _, _ in asked] == [Table.of(CITIES)] * 4
    assert [question.text for _, question, _ in asked] == texts * 2
    expected = predictor.answer(CITIES, texts)
    assert [answer.text for *_, answer in asked] == [answer.text for answer in expected] * 2
    with pytest.raises(TypeError, match="expected a Table, a path"):
        list(predictor.answer_all([(3, "which city?")]))


def test_what_is_no_question_is_refused(predictor):
    for question, error, match in (
        (" ", ValueError, "expected a question, got an empty one"),
        ("Hello!", ValueError, "expected a question about the table, got 'Hello!'"),
        ("thank you", ValueError, "about the table"),
        ("?", ValueError, "about the table"),
        (Table.of(CITIES), TypeError, "expected a question or a list of questions after the table"),
        ([3], TypeError, "expected a question as text or Question, got int"),
    ):
        with pytest.raises(error, match=match):
            predictor.answer(CITIES, question)
    ((_, _, answer),) = predictor.answer_all([(Table.of(CITIES), Question(" "))])
    assert str(answer) == "expected a question, got an empty one"
    for question in ("Oslo", "hello, which city?", "Hi-Lo", "¿?1", "東京", "no", "$"):
        assert not english.asks_nothing(question), question


def test_loading_and_asking_logs_nothing():
    code = (
        "import mate_tf\n"
        "model = mate_tf.from_pretrained()\n"
        "print(model.answer({'city': ['Lima', 'Oslo'], 'people': [10, 2]}, 'which city?').answered)"
    )
    env = {name: os.environ[name] for name in os.environ if name != "TF_CPP_MIN_LOG_LEVEL"}
    done = run_python("-c", code, env=env)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout in ("True\n", "False\n")


def test_a_forked_process_is_told_to_load_anew(predictor, monkeypatch):
    monkeypatch.setattr(os, "getpid", lambda: -1)
    with pytest.raises(RuntimeError, match="load the model after the fork"):
        predictor.answer(CITIES, "which city?")


@pytest.mark.medium
def test_two_devices_give_the_answers_of_one(predictor):
    long = Table.of({"city": [f"c{n}" for n in range(80)], "people": range(80)})
    texts = ("which city?", "how many people are in Oslo?", "which city has the most people?")
    pairs = [(table, Question(text)) for table in (Table.of(CITIES), long) for text in texts]
    with two_devices().scope():
        on_both = from_pretrained()
    for (_, _, one), (_, _, other) in zip(
        predictor.answer_all(pairs), on_both.answer_all(pairs), strict=True
    ):
        assert (one.items, one.coordinates) == (other.items, other.coordinates)
        assert one.score == pytest.approx(other.score, abs=1e-5)
