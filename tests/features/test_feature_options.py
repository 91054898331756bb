"""What an example may hold besides the plain question and table, and what may be left out."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mate_tf.features.builder import FeatureBuilder, padded_length
from mate_tf.features.config import ConversionError, FeatureConfig
from mate_tf.features.tokenized_table import MAX_VALUES, histogram_cells, keep_columns
from mate_tf.tables.table import Question, Table
from tests.features.examples import build, pieces
from tests.small import cases, stored_cases

TABLE = Table(
    header=("city name", "people"),
    rows=(("New York", "8"), ("Newville", ""), ("a new york", "3 x")),
    table_id="cities",
    document_title="people",
    context_heading="new name",
)


TITLES = {"use_document_title": True, "use_context_heading": True}


def labelled(features):
    return features["label_ids"] == 1


@cases(
    "config, expected",
    ({"cell_trim_length": 1}, "city people new 8 new ##ville [EMPTY] a 3"),
    ({"cell_trim_length": 2}, "city name people new york 8 new ##ville [EMPTY] a new 3 x"),
    ({"strip_column_names": True}, "[EMPTY] [EMPTY] new york 8 new ##ville [EMPTY] a new york"),
    ({"use_document_title": True}, "[CLS] a [SEP] people [SEP] city name people new york"),
    ({"use_context_heading": True}, "[CLS] a [SEP] new name [SEP] city name people"),
    (TITLES, "[CLS] a [SEP] people [SEP] new name [SEP] city name people"),
)
def test_what_is_in_the_sequence(wordpiece, config, expected):
    example = build(wordpiece, TABLE, Question("a"), max_seq_length=32, **config)
    assert expected in pieces(wordpiece, example)
    features = example.features
    in_table = slice(example.report.num_tokens)
    assert not features["column_ids"][features["segment_ids"] == 0].any()
    assert features["segment_ids"][in_table].sum() == np.count_nonzero(features["column_ids"])
    untitled = dataclasses.replace(TABLE, document_title="", context_heading="")
    shown = pieces(wordpiece, build(wordpiece, untitled, Question("a"), **config))
    assert shown.startswith("[CLS] a [SEP] ") and shown.count("[SEP]") == 1


def test_rows_are_dropped_and_all_of_them_by_the_original_alone(wordpiece):
    config = {"max_seq_length": 11, "cell_trim_length": 1}
    with pytest.raises(ConversionError, match="expected at most 11 tokens, got 12"):
        build(wordpiece, TABLE, Question("a"), **config)
    example = build(wordpiece, TABLE, Question("a"), drop_rows_to_fit=True, **config)
    assert pieces(wordpiece, example) == "[CLS] a [SEP] city people new 8 new ##ville [EMPTY]"
    assert (example.report.rows_dropped, example.report.tokens_trimmed) == (1, 2)
    config = {"max_seq_length": 7, "drop_rows_to_fit": True}
    with pytest.raises(ConversionError, match="the question, the header and one row"):
        build(wordpiece, TABLE, Question("a"), **config)
    example = build(wordpiece, TABLE, Question("a"), original_conversion=True, **config)
    assert pieces(wordpiece, example) == "[CLS] a [SEP] city name people"
    assert example.report.rows_dropped == 3


@cases(
    "answers, places",
    *((("New York",), [(1, 1)]), (("york",), [(1, 1)]), (("a new",), [(3, 1)])),
    *((("3", "new ville"), [(3, 2)]), (("Newville", "x"), [(2, 1), (3, 2)]), (("",), [(2, 2)])),
    *((("people",), []), (("york 8",), []), ((), [])),
)
def test_labels_are_the_first_occurrence_of_each_answer_text(wordpiece, answers, places):
    question = Question("a", answers=answers, answer_coordinates=((0, 0),))
    example = build(wordpiece, TABLE, question, require_answers=False, label_answer_spans=True)
    where = labelled(example.features)
    ids = (example.features[name][where] for name in ("row_ids", "column_ids"))
    assert list(dict.fromkeys(zip(*ids, strict=True))) == places
    found = [answer for answer in answers if answer not in ("people", "york 8", "new ville")]
    expected = sorted(wordpiece.vocabulary[i] for ids in wordpiece.ids(found) for i in ids)
    assert sorted(pieces(wordpiece, example, labelled).split()) == expected
    assert example.report.answers_dropped == len(answers) - len(found)


def test_answer_texts_that_are_cut_off_are_errors_or_found_elsewhere(wordpiece):
    question = Question("a", answers=("x",))
    config = {"max_seq_length": 14, "trim_cells": True, "label_answer_spans": True}
    with pytest.raises(ConversionError, match=r"expected 1 answer texts .*, got 0") as error:
        build(wordpiece, TABLE, question, **config)
    assert error.value.reason == "answer cut off"
    example = build(wordpiece, TABLE, question, original_conversion=True, **config)
    assert not example.features["label_ids"].any()
    assert example.report.answers_dropped == 1
    table = Table.from_rows([["a"], ["b c d new"], ["new"]])
    question = Question("a", answers=("new",))
    config = {"cell_trim_length": 2, "label_answer_spans": True, "max_seq_length": None}
    features = build(wordpiece, table, question, **config).features
    assert list(features["row_ids"][labelled(features)]) == [2]
    question = Question("a", previous_answers=("york",))
    features = build(wordpiece, TABLE, question, label_answer_spans=True).features
    assert np.count_nonzero(features["prev_label_ids"]) == 1 and not features["label_ids"].any()


def test_each_question_gives_its_example_or_its_error(wordpiece):
    builder = FeatureBuilder(wordpiece, FeatureConfig(max_seq_length=20))
    pairs = [(TABLE, Question("a")), (None, Question("b " * 30)), (None, Question("b"))]
    one, error, other = builder.build_all(iter(pairs))
    assert isinstance(error, ConversionError) and "at most 20 tokens, got 32" in str(error)
    assert (one.report.num_tokens, other.report.num_tokens) == (17, 3)


def test_long_identifiers_keep_their_end(wordpiece):
    features = build(wordpiece, TABLE, Question("a", "x" * 60 + "-" + "7" * 63)).features
    assert list(features["question_id_ints"]) == [ord("-") + 1, *[ord("7") + 1] * 63]


@cases(
    "cells, expected",
    *((["b", "a", "b"], "b 2, a 1"), (["d", "c", "b", "a"], "d 1, c 1, b 1")),
    (["a", "b", "c", "c", "d", "d"], "c 2, d 2, a 1"),
    ([" Rio  Branco ", "rio branco", "Rio"], "Rio  Branco 2, Rio 1"),
    *((["", "7", " ", "7", ""], "7 2"), (["", "\t"], "")),
)
def test_a_histogram_has_the_most_frequent_values_then_the_first_to_appear(cells, expected):
    assert MAX_VALUES == 3
    table = Table.from_rows([["x", "y"], *[[cell, "1"] for cell in cells]])
    assert histogram_cells(table) == (expected, f"1 {len(cells)}")


PLACES = Table(
    header=("City", "Inhabitants", "Remarks", "Mayor"),
    rows=(
        ("Oslo", "709,037", "on the Oslofjord", "Anne Lindboe"),
        ("Bergen", "289,330", "rain, and seven mountains", "Marit Warncke"),
    ),
)
COSTS = [3, 7, 12, 7]


@stored_cases("question, budget, previous, kept")
def test_the_columns_most_like_the_question_are_kept(question, budget, previous, kept):
    asked = Question(question, previous_coordinates=tuple((0, column) for column in previous))
    assert keep_columns(PLACES, asked, COSTS, budget) == kept
    assert keep_columns(PLACES, asked, COSTS, 2, original=True) == []


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
    assert (report.columns_dropped, report.rows_dropped, report.answers_dropped) == (2, 0, 0)
    with pytest.raises(ConversionError, match="expected at most 11 tokens, got 19"):
        build(wordpiece, table, question, max_seq_length=11)
    # An answer in a pruned column is counted.
    config = {"max_seq_length": 11, "prune_columns": True, "require_answers": False}
    pruned = Question("city?", answer_coordinates=((1, 2),))
    assert build(wordpiece, table, pruned, **config).report.answers_dropped == 1


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


def test_few_lengths_are_padded_to_with_room_and_little_more():
    padded = [padded_length(number) for number in range(1, 16_385)]
    for number, length in enumerate(padded, start=1):
        assert number <= length < number + max(64, number / 4)
        assert length == padded_length(length)
    assert len(set(padded)) == 32
    assert {64, 576, 1_024, 1_280, 2_048, 16_384} < set(padded)
