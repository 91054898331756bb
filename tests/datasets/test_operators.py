"""Operators and cells that questions ask for, derived from what they mention."""

import pytest

from mate_tf.datasets.supervision import derived, supervise
from mate_tf.tables.table import Question, Table

PLANETS = Table.from_rows(
    [
        ["Planet", "Kind", "Moons", "Year found", "Rings"],
        ["Mercury", "rock", "0", "1631", "no"],
        ["Mars", "rock", "2", "1636", "no"],
        ["Jupiter", "gas", "95", "1610", "yes"],
        ["Saturn", "gas", "146", "1655", "yes"],
        ["Uranus", "ice", "28", "1781", "yes"],
        ["Neptune", "ice", "16", "1846", "yes"],
    ]
)


@pytest.mark.parametrize(
    ("question", "answers", "aggregation", "cells"),
    [
        ("what kind is Mars?", ["rock"], "NONE", [(1, 1)]),
        ("how many moons does Mars have?", ["2"], "NONE", [(1, 2)]),
        ("what kind is listed after Mars?", ["gas"], "NONE", [(2, 1)]),
        ("what is the kind of the one with the most moons?", ["gas"], "NONE", [(3, 1)]),
        ("what is the last kind?", ["ice"], "NONE", [(5, 1)]),
        ("which planets are gas?", ["Jupiter", "Saturn"], "NONE", [(2, 0), (3, 0)]),
        ("how many planets are ice?", ["2"], "COUNT", [(4, 0), (5, 0)]),
        ("how many planets have more than 20 moons?", ["3"], "COUNT", [(2, 2), (3, 2), (4, 2)]),
        ("how many planets have rings?", ["4"], "COUNT", [(row, 0) for row in range(2, 6)]),
        ("how many planets have no rings?", ["2"], "COUNT", [(0, 0), (1, 0)]),
        ("how many planets are there?", ["6"], "COUNT", [(row, 0) for row in range(6)]),
        ("how many different kinds are there?", ["3"], "DISTINCT", [(row, 1) for row in range(6)]),
        ("how many moons do ice planets have in total?", ["44"], "SUM", [(4, 2), (5, 2)]),
        ("what is the average of moons of gas planets?", ["120.5"], "AVERAGE", [(2, 2), (3, 2)]),
        ("how many more moons has Saturn than Jupiter?", ["51"], "DIFFERENCE", [(2, 2), (3, 2)]),
        ("which has more moons, Mars or Uranus?", ["Uranus"], "GREATER", [(1, 2), (4, 2)]),
        ("which has fewer moons, Mars or Uranus?", ["Mars"], "LESS", [(1, 2), (4, 2)]),
        ("does Uranus have more moons than Mars?", ["yes"], "IS_GREATER", [(1, 2), (4, 2)]),
        ("does Mars have fewer moons than Mercury?", ["no"], "IS_LESS", [(0, 2), (1, 2)]),
        ("do Mars and Uranus have the same number of moons?", ["no"], "IS_EQUAL", [(1, 2), (4, 2)]),
    ],
)  # fmt: skip
def test_what_a_question_mentions_says_what_is_done_with_which_cells(
    question, answers, aggregation, cells
):
    found = supervise(PLANETS, Question(question, answers=answers))
    assert found.aggregation == aggregation
    assert list(found.answer_coordinates) == cells


@pytest.mark.parametrize(
    ("question", "answers"),
    [
        ("who found it?", ["Galileo"]),
        ("what is the number of the day?", ["7"]),  # nothing of the table gives it
        ("which kind is listed most?", ["gas"]),  # in two cells, and nothing is mentioned
    ],
)
def test_what_nothing_decides_is_left_open(question, answers):
    assert derived(PLANETS, Question(question, answers=answers)) is None


@pytest.mark.parametrize(
    ("answers", "cells", "aggregation"),
    [
        (["Mars"], [(1, 0)], "NONE"),
        (["2"], [(1, 2)], "NONE"),
        (["2"], [(2, 0), (3, 0)], "COUNT"),
        (["241"], [(2, 2), (3, 2)], "SUM"),
        (["120.5"], [(2, 2), (3, 2)], "AVERAGE"),
        (["51"], [(2, 2), (3, 2)], "DIFFERENCE"),
        (["146"], [(2, 2), (3, 2), (4, 2)], "MAX"),
        (["3"], [(row, 1) for row in range(6)], "DISTINCT"),
        (["Mars"], [(0, 0)], ""),
    ],
)
def test_given_cells_have_the_operator_that_gives_the_answer(answers, cells, aggregation):
    asked = Question("?", answers=answers, answer_coordinates=cells)
    found = supervise(PLANETS, asked)
    assert found.aggregation == aggregation
    assert list(found.answer_coordinates) == cells


def test_an_operator_that_is_given_is_kept():
    asked = Question("how many?", answers=["2"], aggregation="SUM", answer_coordinates=[(1, 2)])
    assert supervise(PLANETS, asked) is asked


def test_the_release_s_way_derives_nothing():
    found = supervise(PLANETS, Question("what kind is Mars?", answers=["95"]), original=True)
    assert (found.aggregation, found.answer_coordinates) == ("", ((2, 2),))
