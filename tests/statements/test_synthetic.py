import collections
import dataclasses
import random
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mate_tf.statements.drawing import draw_true
from mate_tf.statements.excerpts import ExcerptSize, cell_lengths, draw_excerpt
from mate_tf.statements.expressions import (
    OPERATIONS,
    Aggregate,
    Condition,
    Constant,
    Count,
    Select,
    Statement,
)
from mate_tf.statements.pairs import StatementsError, kind_of_id
from mate_tf.statements.synthetic import SyntheticConfig, synthetic_pairs
from mate_tf.statements.wording import verbalize
from mate_tf.tables.table import Table
from tests.statements.small_tables import (
    AREA,
    CITIES,
    CITY,
    COUNTRY,
    FOUNDED,
    PEOPLE,
    TYPED_CITIES,
    tables,
)

# The vocabulary of the tests has a piece a character.
CONFIG = SyntheticConfig(
    excerpts_per_table=6, pairs_per_excerpt=3, max_seq_length=600, max_statement_tokens=200
)
# All words of the templates.
GRAMMAR = set(
    """the of is to equal greater more higher less lower smaller than after later before earlier
    when where for which and number count rows entries there are exactly fewer have between
    difference gap sum total average mean lowest smallest minimum highest largest maximum earliest
    first latest last""".split()
)


def wordings(statement: Statement) -> set[str]:
    return {verbalize(statement, TYPED_CITIES, random.Random(seed)) for seed in range(300)}


@pytest.mark.parametrize(
    "statement, texts",
    [
        (
            Statement(
                Select(COUNTRY, (Condition(CITY, "equal", Constant("Lima")),)),
                "equal",
                Constant("Peru"),
            ),
            {
                "the Country of Lima is Peru",
                "the Country for Lima is Peru",
                "the Country where City is Lima is Peru",
            },
        ),
        (
            Statement(
                Select(CITY, (Condition(PEOPLE, "equal", Aggregate("maximum", PEOPLE)),)),
                "equal",
                Constant("Lima"),
            ),
            {"the City when People is the highest is Lima"},
        ),
        (
            Statement(
                Count((Condition(AREA, "greater", Aggregate("average", AREA)),)),
                "equal",
                Constant("2"),
            ),
            {
                "there are exactly 2 rows where Area is greater than the average Area",
                "the number of rows when Area is higher than the mean Area is 2",
            },
        ),
        (
            Statement(Aggregate("minimum", FOUNDED), "less", Constant("1535")),
            {"the earliest Founded is before 1535"},
        ),
        (
            Statement(
                Count((Condition(COUNTRY, "equal", Constant("Peru")),)), "greater", Constant("1")
            ),
            {"more than 1 of the rows have Country Peru"},
        ),
    ],
)
def test_a_statement_has_several_wordings(statement, texts):
    assert texts <= wordings(statement)
    assert len(wordings(statement)) > 2 * len(texts) - 2


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


def test_pairs_are_balanced_over_labels_and_operations(wordpiece):
    pairs = make(CITIES, wordpiece, excerpts_per_table=25, pairs_per_excerpt=6)
    assert {pair.true.class_index for pair in pairs} == {1}
    assert {pair.false.class_index for pair in pairs} == {0}
    of_operation = [sum(pair.operation == name for pair in pairs) for name in OPERATIONS]
    assert sum(of_operation) > 100
    # The rarest is always made first, so that only an excerpt that has none of it sets it back.
    assert max(of_operation) <= 1.25 * min(of_operation)
    ids = [q.question_id for pair in pairs for q in (pair.true, pair.false)]
    assert len(set(ids)) == len(ids)
    assert {kind_of_id(id_)[0] for id_ in ids} == set(OPERATIONS)


def test_an_excerpt_fits_with_its_statements(wordpiece):
    pairs = make(CITIES, wordpiece, max_seq_length=130, max_statement_tokens=70)
    assert pairs
    for pair in pairs:
        table = int(cell_lengths(wordpiece, pair.table).sum())
        statements = wordpiece.ids_and_lengths([pair.true.text, pair.false.text])[1]
        assert table <= 130 - 70 - 2
        assert max(statements) <= 70


def test_the_same_seed_and_name_give_the_same_statements(wordpiece):
    pairs = make(CITIES, wordpiece)
    assert pairs == make(CITIES, wordpiece)
    texts = {pair.true.text for pair in pairs}
    assert texts != {pair.true.text for pair in make(CITIES, wordpiece, seed=1)}
    renamed = dataclasses.replace(CITIES, table_id="other")
    assert texts != {pair.true.text for pair in make(renamed, wordpiece)}


@given(tables(), st.integers(0, 9))
def test_an_excerpt_is_of_the_table_s_cells_in_their_order(table, seed):
    lengths = np.ones((table.num_rows + 1, table.num_columns), int)
    columns = range(table.num_columns)
    size = ExcerptSize(max_tokens=9, max_rows=4, max_columns=3)
    drawn = draw_excerpt(table, lengths, columns, [0], size, "e", random.Random(seed))
    assert drawn is not None
    excerpt, others = drawn
    assert (excerpt.num_rows + 1) * excerpt.num_columns <= 9
    assert 2 <= excerpt.num_columns <= 3 and 2 <= excerpt.num_rows <= 4
    chosen = [table.header.index(name) for name in excerpt.header]
    assert chosen == sorted(chosen) and 0 in chosen
    rows = iter([tuple(row[column] for column in chosen) for row in table.rows])
    assert all(row in rows for row in excerpt.rows)  # each after the one before
    left = collections.Counter(tuple(row[column] for column in chosen) for row in table.rows)
    left -= collections.Counter(excerpt.rows)
    assert (others is None) == (left.total() < 2)
    assert others is None or (others.num_rows <= 4 and collections.Counter(others.rows) <= left)


@pytest.mark.parametrize(
    "header, rows, reason",
    [
        (["a", "b"], [("x", "1")], "one row"),
        (["a", "b"], [("x", "y"), ("z", "y")], "no column of numbers beside another"),
        (["a", "b"], [("x", "1"), ("z", "1")], "no column of numbers beside another"),
        (["b"], [("1",), ("2",)], "no column of numbers beside another"),
        (["b", "b"], [("1", "x"), ("2", "y")], "no column of numbers beside another"),
        (["a", "b"], [("x " * 400, "1"), ("y " * 400, "2")], "no excerpt fits"),
        (["a " * 195, "b " * 195], [("x", "1"), ("y", "2")], "no statement found"),
    ],
)
def test_a_table_that_nothing_is_said_about_is_left_out_with_a_reason(
    wordpiece, header, rows, reason
):
    table = Table.from_rows(rows, header, "bad")
    with pytest.raises(StatementsError, match="table 'bad'") as error:
        make(table, wordpiece)
    assert error.value.reason == reason


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"pairs_per_excerpt": 0}, "expected pairs_per_excerpt of at least 1, got 0"),
        ({"max_seq_length": 40}, "expected max_tokens of at least 6, got -162"),
        ({"max_rows": 1}, "expected max_rows of at least 2, got 1"),
        ({"max_columns": 1}, "expected max_columns of at least 2, got 1"),
    ],
)
def test_a_config_that_makes_nothing_is_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        dataclasses.replace(CONFIG, **changes)
