"""Where answers stand."""

import pytest

from mate_tf.pointr.report import Places, place_of_answer
from mate_tf.tables.table import Question
from tests.datasets.linked_tables import CITIES


@pytest.mark.parametrize(
    ("answers", "place"),
    [
        (("Oslo",), "in table"),  # also in its passage
        (("many parks",), "in passage"),
        (("Lima",), "missing"),
        ((), "not given"),
    ],
)
def test_places(answers, place):
    assert place_of_answer(CITIES, Question("?", answers=answers)) == place


def test_cells_that_are_given_say_nothing_of_the_place():
    question = Question("?", answers=("many parks",), answer_coordinates=((1, 1),))
    assert place_of_answer(CITIES, question) == "in passage"


def test_questions_are_counted_as_they_pass():
    pairs = [
        (CITIES, Question("?", str(number), answers))
        for number, answers in enumerate([("Oslo",), ("Lima",), ("Bergen",)])
    ]
    places = Places()
    assert list(places.watch(pairs)) == pairs
    assert places.of_question == {"0": "in table", "1": "missing", "2": "in table"}
    assert str(places) == "  answers: 2 in table, 1 missing"
