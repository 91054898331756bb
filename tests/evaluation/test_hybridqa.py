"""HybridQA's scores."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mate_tf.evaluation.scoring import exact_match, f1, hits_at, normalize_answer
from tests.small import cases

WORDS = st.lists(st.sampled_from(["the", "a", "Oslo", "oslo", "3", "%", "it's"])).map(" ".join)


@cases(
    "text, normalized",
    *(("The  Asian\telephant !", "asian elephant"), ("it's", "its"), ("A-an", "aan")),
    *(("–the–", "– –"), ("theatre", "theatre"), ("1,000.5", "10005"), ("Über", "über")),
    ("A", ""),
)
def test_case_ascii_punctuation_articles_and_white_space_do_not_count(text, normalized):
    assert normalize_answer(text) == normalized


@cases(
    "prediction, gold, exact, overlap",
    *(("the Oslo.", "oslo", 1.0, 1.0), ("Oslo and Rome", "Rome", 0.0, 0.5)),
    *(("Rome Rome", "Rome", 0.0, 2 / 3), ("Rome", "Oslo", 0.0, 0.0), ("", "Oslo", 0.0, 0.0)),
    *(("The", "a", 1.0, 1.0), ("", "", 1.0, 1.0)),
)
def test_words_are_counted_as_often_as_they_come(prediction, gold, exact, overlap):
    assert exact_match(prediction, gold) == exact
    assert f1(prediction, gold) == pytest.approx(overlap)


@given(WORDS, WORDS)
def test_f1_is_symmetric_from_0_to_1_and_1_for_a_match(prediction, gold):
    assert 0 <= f1(prediction, gold) == f1(gold, prediction) <= 1
    assert exact_match(prediction, gold) <= f1(prediction, gold)


@pytest.mark.parametrize(("k", "expected"), [(1, 0.0), (2, 0.0), (3, 1.0), (5, 1.0)])
def test_a_hit_is_any_of_the_answers_cells_among_the_k_best(k, expected):
    ranked = [(0, 0), (0, 0), (1, 1), (2, 0)]  # three cells, one twice
    assert hits_at(k, ranked, {(2, 0), (9, 9)}) == expected
    assert hits_at(k, ranked, set()) == hits_at(k, [], {(0, 0)}) == 0.0
