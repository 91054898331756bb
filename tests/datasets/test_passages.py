"""Tables with passages: the cells that hold an answer, and what of the passages cells show."""

import contextlib
import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mate_tf.datasets import hybridqa as passages
from mate_tf.datasets.hybridqa import expand_cells, score_sentences, split_sentences
from mate_tf.datasets.supervision import SupervisionError, supervise_linked
from mate_tf.features.builder import FeatureBuilder
from mate_tf.features.config import FeatureConfig
from mate_tf.features.english import normalize_words
from mate_tf.tables.linked_table import LinkedTable, Passage
from mate_tf.tables.table import Question, Table
from tests.datasets.linked_tables import CITIES, CITY, NORWAY, OSLO, TEXTS, linked_tables
from tests.small import cases

PARKS = Question("the capital and its parks")


def test_sentences_like_the_question_follow_the_cells_that_link_to_them():
    table = expand_cells(CITIES, PARKS, num_sentences=2)
    assert table.expansions == (
        ("( Oslo is the capital of Norway . It has many parks . )", "", ""),
        ("", "", ""),
    )
    assert table.expanded_rows[0][0] == (
        "Oslo ( Oslo is the capital of Norway . It has many parks . )"
    )
    with pytest.raises(ValueError, match="expected num_sentences to be at least 0, got -1"):
        expand_cells(CITIES, PARKS, num_sentences=-1)
    assert expand_cells(CITIES, PARKS, num_sentences=0) == CITIES.table
    for text in ("", "zebra", "?"):  # no word of the passages
        assert expand_cells(CITIES, Question(text)) == CITIES.table


def test_a_passage_linked_twice_counts_once_and_several_links_have_parentheses_each():
    table = expand_cells(CITIES, Question("a country in europe with many fjords"), 2)
    expansion = "( Norway is a country in Europe . It has many fjords . )"
    assert [row[1] for row in table.expansions] == [expansion, expansion]
    linked = replace(CITIES, passages=(((OSLO, NORWAY), (), ()), ((), (), ())))
    table = expand_cells(linked, Question("the capital and the fjords"), with_titles=True)
    assert table.expansions[0][0] == (
        "( Oslo : Oslo is the capital of Norway . ) ( Norway : It has many fjords . )"
    )


def test_sentences_that_no_cell_can_show_or_that_are_shared_take_no_place():
    question = Question("a green city with many parks")
    assert any(expand_cells(CITIES, question, num_sentences=1).expansions[0])
    assert CITY.text in score_sentences(CITIES, question, original=True)[0]
    assert not any(map(any, expand_cells(CITIES, question, 1, original=True).expansions))
    same = Passage("/wiki/Christiania", "It has many parks .")
    linked = replace(CITIES, passages=(((OSLO, same), (), ()), ((), (), ())))
    question = Question("many parks or a capital ?")
    assert "capital" in expand_cells(linked, question, 2).expansions[0][0]
    assert "capital" not in expand_cells(linked, question, 2, original=True).expansions[0][0]


def column_of(*texts) -> LinkedTable:
    """A table of one column, whose cells link to a passage each."""
    passages = (((Passage(f"/wiki/{number}", text),),) for number, text in enumerate(texts))
    return LinkedTable(Table(("x",), (("",),) * len(texts)), tuple(passages))


def test_equally_good_sentences_are_taken_row_by_row():
    linked = column_of("Rome is old .", "Oslo is old .")
    sentences, scores = score_sentences(linked, Question("how old ?"))
    assert sentences == ("Rome is old .", "Oslo is old .")
    assert scores[0] == scores[1]
    table = expand_cells(linked, Question("rome or oslo ?"), num_sentences=1)
    assert table.expansions == (("( Rome is old . )",), ("",))


@cases("text, expansion", ("", ""), ("a . ? !", ""), ("A lone park .", "( A lone park . )"))
def test_passages_of_a_sentence_or_none_are_no_error(text, expansion):
    table = expand_cells(column_of(text), Question("which park ?"))
    assert table.expanded_rows[0][0].strip() == expansion


def test_texts_are_split_at_their_full_stops():
    assert split_sentences("  One . Two !  \n Three") == ("One .", "Two !", "Three")
    assert split_sentences(" \n ") == ()


@given(linked_tables(), TEXTS, st.integers(0, 6), st.booleans(), st.booleans())
def test_only_linked_cells_grow_always_alike(linked, text, num_sentences, with_titles, original):
    question = Question(text)
    table = expand_cells(linked, question, num_sentences, with_titles, original)
    assert replace(table, expansions=()) == linked.table
    passages._index.cache_clear()
    assert table == expand_cells(linked, question, num_sentences, with_titles, original)
    for row, passages_of_row in zip(table.expansions, linked.passages, strict=False):
        for expansion, in_cell in zip(row, passages_of_row, strict=True):
            assert in_cell or not expansion
    assert table.expansions or not num_sentences or not any(score_sentences(linked, question)[1])
    _, scores = score_sentences(linked, question, original)
    assert np.isfinite(scores).all() and (scores >= 0).all() and (scores <= 1).all()


@given(st.lists(st.integers(1, 4), min_size=1, max_size=4), st.sets(st.integers(0, 15)), st.data())
def test_the_sentences_asked_for_are_shown_up_to_their_limit(lengths, asked, data):
    numbers = iter(range(16))
    texts = [" ".join(f"word{next(numbers)} ." for _ in range(length)) for length in lengths]
    linked = column_of(*texts)
    limit = data.draw(st.integers(0, 16))
    question = Question(" ".join(f"word{number}" for number in sorted(asked)))
    text = " ".join(cell for (cell,) in expand_cells(linked, question, limit).expansions)
    matching = sorted(number for number in asked if number < sum(lengths))
    assert [int(n) for n in re.findall(r"word(\d+)", text)] == matching[:limit]


@cases("piece", "one . Two ", "word" * 3000 + " ", ". ", ".", "?", "... ", '." ')
def test_a_long_text_is_split_without_losing_a_word_or_a_hang(piece):
    text = piece * (400_000 // len(piece))
    assert "".join(split_sentences(text)).replace(" ", "") == text.replace(" ", "")


def test_tokens_are_of_the_expanded_cells_and_numbers_of_the_cells_own_texts(wordpiece):
    builder = FeatureBuilder(wordpiece, FeatureConfig(max_seq_length=None))
    rows = [["city", "people"], ["new", "12"], ["york", "30"]]
    table = Table.from_rows(rows)
    expanded = replace(table, expansions=(("", "( 99 )"), ("( 7 )", "")))
    plain, grown = (builder.build(t, Question("name 12")).features for t in (table, expanded))
    for name in ("numeric_values", "column_ranks", "inv_column_ranks", "numeric_relations"):
        for row, column in ((1, 1), (1, 2), (2, 1), (2, 2)):
            of_cell = [
                f[name][(f["row_ids"] == row) & (f["column_ids"] == column)] for f in (plain, grown)
            ]
            assert len(of_cell[1]) >= len(of_cell[0])
            assert np.array_equal(np.unique(of_cell[0]), np.unique(of_cell[1]), equal_nan=True)
    pieces = wordpiece.ids(["12 ( 99 )"])[0]
    in_cell = (grown["row_ids"] == 1) & (grown["column_ids"] == 2)
    assert grown["input_ids"][in_cell].tolist() == pieces
    assert np.unique(grown["numeric_values"][in_cell]).tolist() == [12]


def found(linked, *answers, original=False):
    question = supervise_linked(linked, Question("where?", "q", answers), original=original)
    return question.answer_coordinates


def found_or_none(linked, answer, original):
    with contextlib.suppress(SupervisionError):
        return found(linked, answer, original=original)
    return ()


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
    linked = LinkedTable(Table(("x",), ((cell,),), "one"), (((),),))
    for original, expected in ((False, is_found), (True, is_found_by_the_original)):
        assert found_or_none(linked, answer, original) == (((0, 0),) if expected else ())


@given(linked_tables(), TEXTS)
def test_of_any_texts_all_that_the_original_finds_is_found(linked, answer):
    default, of_original = (found_or_none(linked, answer, of) for of in (False, True))
    assert sorted(set(default)) == list(default)
    if normalize_words(answer):
        assert set(default) >= set(of_original)


@given(linked_tables())
def test_a_cells_own_text_is_found_in_it(linked):
    for i, row in enumerate(linked.table.rows):
        for j, cell in enumerate(row):
            if cell.strip():
                assert (i, j) in found(linked, cell)
