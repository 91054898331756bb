import dataclasses
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mate_tf.synthesis.statements import counterfactual_pairs
from mate_tf.synthesis.typed_table import Made, NothingMadeError
from mate_tf.tables.table import Table
from tests.synthesis.small_tables import CITIES


def make(*sentences: str, table: Table = CITIES, seed: int = 0) -> list[Made | NothingMadeError]:
    return list(counterfactual_pairs(table, sentences, seed))


def false_texts(sentence: str, table: Table = CITIES) -> set[str]:
    """What a sentence may become, by many seeds."""
    made = (make(sentence, table=table, seed=seed)[0] for seed in range(40))
    return {pair.examples[1][1].text for pair in made if isinstance(pair, Made)}


@pytest.mark.parametrize(
    "sentence, texts",
    [
        # Neither Cusco, which is in Peru too, nor a country for the sentence's own.
        (
            "Lima is in Peru",
            {"Santiago is in Peru", "Quito is in Peru", "Lima is in Chile", "Lima is in Ecuador"},
        ),
        ("LIMA, lima!", {f"{city}, {city}!" for city in ("Cusco", "Santiago", "Quito")}),
        ("in all 600 live there", {"in all 1,000 live there", "in all 400 live there"}),
        # Numbers by value; a name may look like a negation.
        ("600.0 or 1000 live there", {"400 or 1000 live there", "600.0 or 400 live there"}),
        ("Lima is No. 1", {f"{city} is No. 1" for city in ("Cusco", "Santiago", "Quito")}),
    ],
)
def test_an_entity_is_swapped_for_another_that_is_not_true_there(sentence, texts):
    assert false_texts(sentence) == texts


def test_a_pair_has_the_sentence_as_it_was_and_its_table_whole():
    (pair,) = make("Lima is in Peru")
    assert isinstance(pair, Made)
    (here, true), (there, false) = pair.examples
    assert (true.text, true.class_index, false.class_index) == ("Lima is in Peru", 1, 0)
    assert here == there == CITIES
    assert make("Lima is in Peru") == [pair]


@pytest.mark.parametrize(
    "sentence, reason",
    [
        ("nobody knows", "no entity of the table"),
        ("Limassol is a city of it", "no entity of the table"),
        ("Lima is not in Chile", "a negation"),
        ("Lima isn’t in Chile", "a negation"),
        ("No city but Lima is in Peru", "a negation"),
        ("1,0001 and 1600.5 are others", "no entity of the table"),
        ("Lima, Cusco, Santiago, Quito", "no other entity"),
        ("Peru, Chile and Ecuador", "no other entity"),
    ],
)
def test_a_sentence_without_an_entity_to_swap_is_left_out(sentence, reason):
    (error,) = make(sentence)
    assert isinstance(error, NothingMadeError) and error.reason == reason


def test_entities_in_two_columns_are_left_alone():
    table = dataclasses.replace(CITIES, rows=(*CITIES.rows, ("Peru", "Peru", "", "", "")))
    texts = false_texts("Lima is in Peru", table)
    assert texts == {"Santiago is in Peru", "Quito is in Peru", "Cusco is in Peru"}


def test_the_longest_entity_is_swapped_whole():
    table = Table.from_rows([("New York",), ("York",), ("Rome",)], ["City"])
    assert false_texts("he saw New York", table) == {"he saw Rome"}


def test_a_name_with_a_negation_in_it_negates_nothing():
    table = Table.from_rows([("No Doubt",), ("The Who",)], ["Band"])
    assert false_texts("she sang for No Doubt", table) == {"she sang for The Who"}


@given(st.integers(0, 10**9), st.integers(0, 3))
def test_a_number_is_found_in_any_writing(number, decimals):
    table = Table.from_rows([(str(number),), (f"{number + 7:,}",)], ["n"])
    sentence = f"about {number:,}.{'0' * decimals} of them".replace(". ", " ")
    texts = false_texts(sentence, table)
    if number == 1:
        assert not texts
    else:
        assert texts == {f"about {number + 7:,} of them"}


def test_the_same_pair_is_made_once():
    first, second = make("Lima is in Peru", "Lima is in Peru")
    assert isinstance(first, Made)
    assert isinstance(second, NothingMadeError) and second.reason == "made before"


_sentences = st.lists(
    st.sampled_from([*(cell for row in CITIES.rows for cell in row if cell), "so", "and", "in"]),
    min_size=1,
    max_size=6,
).map(" ".join)


@given(_sentences, st.integers(0, 99))
def test_a_counterfactual_differs_in_one_entity_of_one_column(sentence, seed):
    (pair,) = make(sentence, seed=seed)
    if isinstance(pair, NothingMadeError):
        return
    (_, true), (_, false) = pair.examples
    assert true.text == sentence != false.text
    explained = [
        (old, new)
        for column in zip(*CITIES.rows, strict=True)
        for old in column
        for new in column
        if old
        and new
        and old != new
        # As a word: the 4 of 400 stays.
        and false.text == re.sub(rf"(?<!\S){re.escape(old)}(?!\S)", new, sentence)
    ]
    assert explained
    assert all(new not in sentence for _, new in explained)
