import collections
import dataclasses
import itertools
import random
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.synthesis.statement_drawing import draw_true, verbalize
from experiments.synthesis.statement_execution import (
    OPERATIONS,
    Aggregate,
    Condition,
    Count,
    Select,
)
from experiments.synthesis.statements import (
    StatementsConfig,
    counterfactual_pairs,
    synthetic_pairs,
)
from experiments.synthesis.typed_table import (
    WAYS,
    Made,
    NothingMadeError,
    cell_lengths,
    draw_often,
    draw_two,
)
from mate_tf.tables.table import Table
from tests.experiments.synthesis.small_tables import (
    ABOVE,
    AREA,
    CITIES,
    CITY,
    COUNTRY,
    FOUNDED,
    PEOPLE,
    TYPED_CITIES,
    of,
    says,
    tables,
)
from tests.small import cases, stored_cases

# The vocabulary of the tests has a piece a character.
CONFIG = StatementsConfig(
    excerpts_per_table=6, operations_per_excerpt=3, max_seq_length=600, max_statement_tokens=200
)
# All words of the templates.
GRAMMAR = set(
    """the of is to equal greater more higher less lower smaller than after later before earlier
    when where for which and number count rows entries there are exactly fewer have between
    difference gap sum total average mean lowest smallest minimum highest largest maximum earliest
    first latest last range in row""".split()
)


@cases(
    "statement, texts",
    (
        says(Select(COUNTRY, of(CITY, "Lima")), "Peru"),
        {
            "the Country of Lima is Peru",
            "the Country for Lima is Peru",
            "the Country where City is Lima is Peru",
        },
    ),
    (
        says(Select(CITY, (Condition(PEOPLE, "equal", Aggregate("maximum", PEOPLE)),)), "Lima"),
        {"the City when People is the highest is Lima"},
    ),
    (
        says(Count(ABOVE), "2"),
        {
            "there are exactly 2 rows where Area is greater than the average Area",
            "the number of rows when Area is higher than the mean Area is 2",
        },
    ),
    (says(Aggregate("minimum", FOUNDED), "1535", "less"), {"the earliest Founded is before 1535"}),
    (
        says(Aggregate("last", FOUNDED, of(COUNTRY, "Peru")), "1535", "less"),
        {
            "the last Founded where Country is Peru is before 1535",
            "the Founded in the last row where Country is Peru is earlier than 1535",
        },
    ),
    (says(Aggregate("range", AREA), "4.5"), {"the range of Area is 4.5"}),
    (
        says(Count(of(COUNTRY, "Peru")), "1", "greater"),
        {"more than 1 of the rows have Country Peru"},
    ),
)
def test_a_statement_has_several_wordings(statement, texts):
    wordings = {verbalize(statement, TYPED_CITIES, random.Random(seed)) for seed in range(300)}
    assert texts <= wordings
    assert len(wordings) > 2 * len(texts) - 2


@given(st.sampled_from(OPERATIONS), st.integers(0, 10_000))
def test_a_statement_mentions_only_columns_and_cells_and_numbers(operation, seed):
    statement = draw_true(operation, TYPED_CITIES, random.Random(seed))
    if statement is None:
        return
    text = verbalize(statement, TYPED_CITIES, random.Random(seed))
    words = {word for cells in (CITIES.header, *CITIES.rows) for c in cells for word in c.split()}
    number = re.compile(r"\d+(\.\d+)?")
    assert all(w in words | GRAMMAR or number.fullmatch(w) for w in text.split()), text


def make(table: Table, wordpiece, **changes) -> list:
    return list(synthetic_pairs(table, wordpiece, dataclasses.replace(CONFIG, **changes)))


MANY = Table.from_rows(
    [(f"city{n}", f"land{n % 7}", str(n * n % 61), str(3 * n)) for n in range(40)],
    ["City", "Country", "People", "Area"],
    "many",
)


@pytest.fixture(scope="module")
def many_pairs(wordpiece):
    return make(MANY, wordpiece, excerpts_per_table=80)


def test_neither_a_statement_nor_an_excerpt_tells_the_label(many_pairs):
    examples = [example for pair in many_pairs for example in pair.examples]
    assert {q.class_index for _, q in examples} == {0, 1}
    of_statement, of_excerpt = collections.Counter(), collections.Counter()
    for pair in many_pairs:
        (here, true), (there, false) = pair.examples
        assert true.text == false.text
        assert here.header == there.header and here.num_rows == there.num_rows
        assert here.rows != there.rows
    for table, question in examples:
        sign = 2 * question.class_index - 1
        of_statement[question.text] += sign
        of_excerpt[table.rows] += sign
    assert set(of_statement.values()) == set(of_excerpt.values()) == {0}


def kind_of_id(question_id: str) -> tuple[str, str]:
    """The operation and the way of a pair, by a statement's identifier."""
    operation, _, way = question_id.rsplit(":", 2)[1].partition("/")
    return operation, way


def test_ways_and_operations_are_spread_evenly(many_pairs):
    kinds = [kind_of_id(pair.examples[0][1].question_id) for pair in many_pairs]
    of_way = collections.Counter(way for _, way in kinds)
    assert set(of_way) == set(WAYS)
    assert min(of_way.values()) >= 0.2 * len(kinds)
    of_operation = collections.Counter(operation for operation, _ in kinds)
    assert set(of_operation) == set(OPERATIONS)
    # The rarest is always made first, so that only an excerpt that has none of it sets it back.
    assert max(of_operation.values()) <= 1.25 * min(of_operation.values())
    ids = [question.question_id for pair in many_pairs for _, question in pair.examples]
    assert len(set(ids)) == len(ids)


def test_the_ways_are_what_they_say(many_pairs):
    rows = set(MANY.rows)
    for pair in many_pairs:
        (here, true), (there, _) = pair.examples
        way = kind_of_id(true.question_id)[1]
        columns = [MANY.header.index(name) for name in here.header]
        pairs = zip(zip(*here.rows, strict=True), zip(*there.rows, strict=True), strict=True)
        same = [sorted(one) == sorted(other) for one, other in pairs]
        of_table = {tuple(row[column] for column in columns) for row in rows}
        if way == "elsewhere":
            assert set(here.rows) <= of_table and set(there.rows) <= of_table
        elif way == "swapped":
            assert all(same)
        else:
            assert same.count(False) <= 1


def test_excerpts_fit_with_their_statements(wordpiece):
    pairs = make(CITIES, wordpiece, max_seq_length=130, max_statement_tokens=70)
    assert pairs
    for pair in pairs:
        for excerpt, question in pair.examples:
            assert int(cell_lengths(wordpiece, excerpt).sum()) <= 130 - 70 - 2
            assert wordpiece.ids_and_lengths([question.text])[1][0] <= 70


def test_the_same_seed_and_name_give_the_same_statements(wordpiece):
    pairs = make(CITIES, wordpiece)
    assert pairs == make(CITIES, wordpiece)
    renamed = dataclasses.replace(CITIES, table_id="other")
    texts, of_seed, of_name = (
        {pair.examples[0][1].text for pair in made}
        for made in (pairs, make(CITIES, wordpiece, seed=1), make(renamed, wordpiece))
    )
    assert texts != of_seed and texts != of_name


@given(tables(), st.integers(0, 9))
def test_excerpts_are_of_the_table_s_cells(table, seed):
    lengths = np.ones((table.num_rows + 1, table.num_columns), int)
    limits = {"max_tokens": 9, "max_rows": 4, "max_columns": 3}
    columns, rng = range(table.num_columns), random.Random(seed)
    drawn = draw_often(
        40, lambda: draw_two(table, lengths, columns, [0], **limits, name="e", rng=rng)
    )
    if drawn is None:
        assert len(set(table.rows)) < table.num_rows  # all that could differ was the same
        return
    for excerpt in drawn[1:]:
        assert (excerpt.num_rows + 1) * excerpt.num_columns <= 9
        assert 2 <= excerpt.num_columns <= 3 and 2 <= excerpt.num_rows <= 4
        chosen = [table.header.index(name) for name in excerpt.header]
        assert chosen == sorted(chosen) and 0 in chosen
        for column, cells in zip(chosen, zip(*excerpt.rows, strict=True), strict=True):
            assert set(cells) <= {row[column] for row in table.rows}
    rows = iter([tuple(row[column] for column in chosen) for row in table.rows])
    assert all(row in rows for row in drawn[1].rows)  # each after the one before


@cases(
    "header, rows, reason",
    (["a", "b"], [("x", "1")], "one row"),
    (["a", "b"], [("x", "y"), ("z", "y")], "no column of numbers beside another"),
    (["a", "b"], [("x", "1"), ("z", "1")], "no column of numbers beside another"),
    (["b"], [("1",), ("2",)], "no column of numbers beside another"),
    (["b", "b"], [("1", "x"), ("2", "y")], "no column of numbers beside another"),
    (["a", "b"], [("x " * 400, "1"), ("y " * 400, "2")], "no excerpt fits"),
    (["a " * 195, "b " * 195], [("x", "1"), ("y", "2")], "no statement found"),
)
def test_a_table_without_a_statement_is_left_out(wordpiece, header, rows, reason):
    table = Table.from_rows(rows, header, "bad")
    with pytest.raises(NothingMadeError, match="table 'bad'") as error:
        make(table, wordpiece)
    assert error.value.reason == reason


def swap(*sentences: str, table: Table = CITIES, seed: int = 0) -> list[Made | NothingMadeError]:
    return list(counterfactual_pairs(table, sentences, seed))


def false_texts(sentence: str, table: Table = CITIES) -> set[str]:
    """What a sentence may become, by many seeds."""
    made = (swap(sentence, table=table, seed=seed)[0] for seed in range(40))
    return {pair.examples[1][1].text for pair in made if isinstance(pair, Made)}


@cases(
    "sentence, texts",
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
)
def test_an_entity_is_swapped_for_another_that_is_not_true_there(sentence, texts):
    assert false_texts(sentence) == texts


@stored_cases("sentence, reason")
def test_a_sentence_without_an_entity_to_swap_is_left_out(sentence, reason):
    (error,) = swap(sentence)
    assert isinstance(error, NothingMadeError) and error.reason == reason


def test_entities_in_two_columns_are_left_alone_and_the_longest_is_swapped_whole():
    table = dataclasses.replace(CITIES, rows=(*CITIES.rows, ("Peru", "Peru", "", "", "")))
    texts = false_texts("Lima is in Peru", table)
    assert texts == {"Santiago is in Peru", "Quito is in Peru", "Cusco is in Peru"}
    table = Table.from_rows([("New York",), ("York",), ("Rome",)], ["City"])
    assert false_texts("he saw New York", table) == {"he saw Rome"}
    table = Table.from_rows([("No Doubt",), ("The Who",)], ["Band"])  # no negation
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
    first, second = swap("Lima is in Peru", "Lima is in Peru")
    assert isinstance(first, Made)
    assert isinstance(second, NothingMadeError) and second.reason == "made before"


_sentences = st.lists(
    st.sampled_from([*(cell for row in CITIES.rows for cell in row if cell), "so", "and", "in"]),
    min_size=1,
    max_size=6,
).map(" ".join)


@given(_sentences, st.integers(0, 99))
def test_a_counterfactual_differs_in_one_entity_of_one_column(sentence, seed):
    (pair,) = swap(sentence, seed=seed)
    if isinstance(pair, NothingMadeError):
        return
    (here, true), (there, false) = pair.examples
    assert here == there == CITIES and (true.class_index, false.class_index) == (1, 0)
    assert true.text == sentence != false.text
    columns = ([cell for cell in column if cell] for column in zip(*CITIES.rows, strict=True))
    swaps = [pair for column in columns for pair in itertools.permutations(column, 2)]
    # As a word: the 4 of 400 stays.
    made = [re.sub(rf"(?<!\S){re.escape(old)}(?!\S)", new, sentence) for old, new in swaps]
    explained = [new for (_, new), text in zip(swaps, made, strict=True) if text == false.text]
    assert explained and all(new not in sentence for new in explained)
