"""Where answers stand, and what is said about them."""

import pytest

from mate_tf.answers.answer import Answer, SelectedCell
from mate_tf.pointr.pipeline import answers_report, place_of_answer
from mate_tf.tables.table import Question, Table
from tests.datasets.linked_tables import CITIES


@pytest.mark.parametrize(
    ("answers", "cells", "place"),
    [
        (("Oslo",), (), "in table"),  # also in its passage
        (("many parks",), (), "in passage"),
        (("many parks",), ((1, 1),), "in passage"),  # cells that are given say nothing of it
        (("Lima",), (), "missing"),
        ((), (), "not given"),
    ],
)
def test_places(answers, cells, place):
    question = Question("?", answers=answers, answer_coordinates=cells)
    assert place_of_answer(CITIES, question) == place


def test_questions_without_an_answer_are_counted_and_not_scored():
    table = Table(("city",), (("oslo",),))
    asked = Question("?", "a", ("oslo", "the oslo"), ((0, 0),))
    pairs = [(table, asked), (table, Question("?", "b"))]
    predictions = dict.fromkeys("ab", Answer(("Oslo",), (SelectedCell(0, 0, "oslo", 1.0),)))
    places = {"a": "in table", "b": "not given"}
    report = answers_report("dev", predictions, pairs, "LINKED_JSONL", "", "dev", places)
    for row in (
        "| questions | 2 |",
        "| without a gold answer | 1 |",
        "| exact match | 100.00% |",
        "| exact match in table | 100.00% |",
    ):
        assert row in report, row


def test_a_broken_reference_is_no_missing_one(tmp_path):
    (tmp_path / "dev_reference.json").write_text("[]", encoding="utf-8")
    table = Table(("city",), (("oslo",),))
    pairs = [(table, Question("?", "a", ("oslo",)))]
    arguments = ({"a": Answer(("Oslo",))}, pairs, "HYBRIDQA", tmp_path, "dev", {})
    with pytest.raises(ValueError, match=r"dev_reference\.json"):
        answers_report("dev", *arguments)
