import pytest
from hypothesis import given
from hypothesis import strategies as st

from mate_tf.features.config import ConversionError
from mate_tf.features.fitting import keep_columns
from mate_tf.tables.table import Question, Table
from tests.features.examples import build

TABLE = Table(
    header=("City", "Inhabitants", "Remarks", "Mayor"),
    rows=(
        ("Oslo", "709,037", "on the Oslofjord", "Anne Lindboe"),
        ("Bergen", "289,330", "rain, and seven mountains", "Marit Warncke"),
    ),
)
COSTS = [3, 7, 12, 7]


@pytest.mark.parametrize(
    ("question", "budget", "previous", "kept"),
    [
        ("anything", 29, (), [0, 1, 2, 3]),
        # None fits: the likeliest, for the rest to be cut.
        ("anything", 2, (), [0]),
        ("is there a mountain?", 2, (), [2]),
        ("is there a mountain?", 2, (3,), [3]),
        ("who is the mayor of Bergen?", 10, (), [0, 3]),
        ("which city has most inhabitants?", 10, (), [0, 1]),
        # By its stem, "mountain" is a word of the third column.
        ("is there a mountain?", 12, (), [2]),
        # The likeliest column does not fit, smaller ones do.
        ("is there a mountain?", 11, (), [0, 1]),
        ("is there a mountain?", 11, (3,), [0, 3]),
        # None is like it: from the left.
        ("why", 10, (), [0, 1]),
    ],
)
def test_the_columns_most_like_the_question_are_kept(question, budget, previous, kept):
    asked = Question(question, previous_coordinates=tuple((0, column) for column in previous))
    assert keep_columns(TABLE, asked, COSTS, budget) == kept


def test_the_release_keeps_no_column_where_none_fits():
    assert keep_columns(TABLE, Question("mayor"), COSTS, 2, original=True) == []
    assert keep_columns(TABLE, Question("mayor"), COSTS, 10, original=True) == [0, 3]


def test_where_no_column_fits_the_likeliest_is_cut_or_the_table_refused(wordpiece):
    table = Table.from_rows([["a b c", "city city"]] * 3, header=["name", "city"])
    given = wordpiece, table, Question("city?")
    config = {"max_seq_length": 9, "prune_columns": True}
    # [CLS] city ? [SEP] and five tokens: the second column has seven.
    for options, rows in (({"trim_cells": True}, 3), ({"drop_rows_to_fit": True}, 2)):
        features = build(*given, **config, **options).features
        assert set(features["column_ids"]) == {0, 2}
        assert features["row_ids"].max() == rows
    with pytest.raises(ConversionError, match="expected at most 9 tokens, got 11"):
        build(*given, **config)
    assert not build(*given, **config, original_conversion=True).features["column_ids"].any()


def test_a_table_that_is_too_long_loses_columns_and_says_so(wordpiece):
    table = Table.from_rows([["a"] * 4, ["b", "city b", "c d e", "b"]], header=["h", "i", "j", "k"])
    question = Question("city?", answer_coordinates=((1, 1),), previous_coordinates=((0, 3),))
    features, report = build(wordpiece, table, question, max_seq_length=11, prune_columns=True)
    # [CLS] city ? [SEP], then the headers and rows of the second and the fourth column.
    assert features["column_ids"].tolist() == [0] * 4 + [2, 4] * 2 + [2, 2, 4]
    assert (report.columns_dropped, report.rows_dropped, report.answer_survived) == (2, 0, True)
    with pytest.raises(ConversionError, match="expected at most 11 tokens, got 19"):
        build(wordpiece, table, question, max_seq_length=11)
    # An answer in a pruned column is refused or counted.
    config = {"max_seq_length": 11, "prune_columns": True}
    pruned = Question("city?", answer_coordinates=((1, 2),))
    with pytest.raises(ConversionError, match="expected 1 answer cells in the sequence, got 0"):
        build(wordpiece, table, pruned, **config)
    report = build(wordpiece, table, pruned, require_answers=False, **config).report
    assert not report.answer_survived


@given(
    texts=st.lists(st.text(max_size=20), min_size=1, max_size=6),
    question=st.text(max_size=40),
    costs=st.lists(st.integers(0, 50), min_size=6, max_size=6),
    budget=st.integers(0, 200),
)
def test_any_texts_keep_what_fits_and_leave_out_only_what_does_not(texts, question, costs, budget):
    table = Table(header=tuple(texts), rows=(tuple(texts),))
    costs = costs[: len(texts)]
    kept = keep_columns(table, Question(question), costs, budget)
    spent = sum(costs[column] for column in kept)
    assert kept == sorted(set(kept))
    if kept and spent > budget:
        assert len(kept) == 1 and min(costs) > budget
        return
    assert all(spent + costs[c] > budget for c in range(len(texts)) if c not in kept)
