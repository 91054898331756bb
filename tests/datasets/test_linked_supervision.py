from dataclasses import replace

import pytest
from hypothesis import given

from mate_tf.datasets.supervision import SupervisionError, supervise_linked
from mate_tf.features.normalization import normalize_words
from mate_tf.tables.linked_table import LinkedTable
from mate_tf.tables.table import Question, Table
from tests.datasets.linked_tables import CITIES, TEXTS, linked_tables
from tests.small import cases


def found(linked, *answers, original=False):
    question = supervise_linked(linked, Question("where?", "q", answers), original=original)
    return question.answer_coordinates


def of_one_cell(text):
    return LinkedTable(Table(("x",), ((text,),), "one"), (((),),))


@cases(
    "answers, coordinates",
    *((["709037"], ((0, 2),)), (["the Capital"], ((0, 0),))),
    *((["NORWAY"], ((0, 0), (0, 1), (1, 0), (1, 1))), (["country, in Europe."], ((0, 1), (1, 1)))),
    (["parks", "291940"], ((0, 0), (1, 2))),
)
def test_every_cell_counts_that_holds_an_answer_or_links_to_it(answers, coordinates):
    assert found(CITIES, *answers) == found(CITIES, *answers, original=True) == coordinates


@pytest.mark.parametrize("answer", ["green city", "Nor", "70903", "Lima"])
def test_an_answer_in_no_cell_or_only_in_part_of_a_word_is_not_found(answer):
    with pytest.raises(SupervisionError, match=r"\(table 'cities', question 'q'\)") as error:
        found(CITIES, answer)
    assert error.value.reason == "answer not found"


def test_an_answer_has_to_be_given_known_cells_are_kept_and_any_passage_of_a_cell_counts():
    with pytest.raises(SupervisionError, match="no answer given"):
        found(CITIES)
    question = Question("where?", answers=("Lima",), answer_coordinates=((1, 2),))
    assert supervise_linked(CITIES, question) is question
    first, second = CITIES.passages[0][0][0], CITIES.passages[1][0][0]
    linked = replace(CITIES, passages=(((first, second), (), ()), ((), (), ())))
    assert found(linked, "rain") == ((0, 0),)


@cases(
    "cell, answer, is_found, is_found_by_the_original",
    *(("5 €", "5 €", True, False), ("€ 5", "€", True, False), ("costs 5 € now", "5 €", True, True)),
    *(("15 €", "5 €", False, False), ("vitamin A", "A", False, True), ("a", "A", True, False)),
    *(("( A )", "a", False, False), ("1999–2004", "1999", True, True)),
)
def test_signs_and_articles_are_found(cell, answer, is_found, is_found_by_the_original):
    for original, expected in ((False, is_found), (True, is_found_by_the_original)):
        try:
            coordinates = found(of_one_cell(cell), answer, original=original)
        except SupervisionError:
            coordinates = ()
        assert coordinates == (((0, 0),) if expected else ())


@given(linked_tables(), TEXTS)
def test_of_any_texts_all_that_the_original_finds_is_found(linked, answer):
    question = Question("where?", answers=(answer,))
    coordinates = []
    for original in (False, True):
        try:
            coordinates.append(
                supervise_linked(linked, question, original=original).answer_coordinates
            )
        except SupervisionError as error:
            assert error.reason == "answer not found"
            coordinates.append(())
    default, of_original = coordinates
    assert sorted(set(default)) == list(default)
    if normalize_words(answer):
        assert set(default) >= set(of_original)


@given(linked_tables())
def test_a_cells_own_text_is_found_in_it(linked):
    for i, row in enumerate(linked.table.rows):
        for j, cell in enumerate(row):
            if cell.strip():
                assert (i, j) in found(linked, cell)
