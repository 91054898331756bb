import dataclasses
import gc
import weakref

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mate_tf.features.builder import FeatureBuilder
from mate_tf.features.config import ConversionError, FeatureConfig
from mate_tf.tables.table import Question, Table
from tests.features.examples import build, pieces, rows_of
from tests.small import cases, stored_cases

TABLE = Table.from_rows(
    [["city name", "people"], ["New York", 8], ["Newville", None], ["a", "3 x"]], table_id="cities"
)
QUESTION = Question(
    "city?",
    question_id="q",
    answer_coordinates=((0, 0), (2, 1)),
    previous_coordinates=((2, 0),),
    answer_number=3.5,
    aggregation="COUNT",
    class_index=1,
)
CITIES = Table.from_rows(
    [["city", "people"], ["york", 8], ["ville", 8], ["york", 3], ["new", 1]], table_id="cities"
)
CITY = Question("city")
DROP, TRIM = {"drop_rows_to_fit": True}, {"trim_cells": True}
HISTOGRAM_ROW = {"histogram_row": True}


def test_features_of_an_example(wordpiece):
    example = build(wordpiece, TABLE, QUESTION, max_seq_length=16)
    assert pieces(wordpiece, example) == (
        "[CLS] city ? [SEP] city name people new york 8 new ##ville [EMPTY] a 3 x"
    )
    features = {name: list(values) for name, values in example.features.items()}
    expected = {
        "input_mask": [1] * 16,
        "segment_ids": [0] * 4 + [1] * 12,
        "column_ids": [0, 0, 0, 0, 1, 1, 2, 1, 1, 2, 1, 1, 2, 1, 2, 2],
        "row_ids": [0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3],
        "label_ids": [0] * 7 + [1, 1, 0, 0, 0, 0, 0, 1, 1],
        "prev_label_ids": [0] * 13 + [1, 0, 0],
        "numeric_values_scale": [1] * 7 + [2, 2, 1, 2, 2, 1, 1, 2, 2],
        "answer": [3.5],
        "aggregation_function_id": [3],
        "classification_class_index": [1],
        "question_id": [b"q"],
        "table_id": [b"cities"],
        "question_id_ints": [ord("q") + 1] + [0] * 63,
    }
    assert {name: features[name] for name in expected} == expected


def test_ranks_relations_and_values_of_a_numeric_column(wordpiece):
    rows = [["name", "people"], ["a", "8"], ["b", "3"], ["c", "8"]]
    question = Question("5 people or 3")
    features = build(wordpiece, Table.from_rows(rows), question, max_seq_length=None).features
    assert list(features["column_ids"][-6:]) == [1, 2, 1, 2, 1, 2]
    assert list(features["column_ranks"][-6:]) == [0, 2, 0, 1, 0, 2]
    assert list(features["inv_column_ranks"][-6:]) == [0, 1, 0, 2, 0, 1]
    assert list(features["numeric_relations"][-6:]) == [0, 2, 0, 5, 0, 2]
    values = features["numeric_values"][-6:]
    np.testing.assert_array_equal(values, [np.nan, 8, np.nan, 3, np.nan, 8])


@cases("original, expected", (False, [1, 2, 0]), (True, [1, 2, 3]))
def test_a_total_has_no_rank_among_what_it_is_the_total_of(wordpiece, original, expected):
    table = Table.from_rows([["name", "people"], ["a", "3"], ["b", "8"], ["Total", "11"]])
    options = {"max_seq_length": None, "original_conversion": original}
    features = build(wordpiece, table, Question("more than 10"), **options).features
    is_number = (features["column_ids"] == 2) & (features["row_ids"] > 0)
    _, firsts = np.unique(features["row_ids"][is_number], return_index=True)
    names = ("column_ranks", "numeric_relations", "numeric_values")
    ranks, relations, values = (list(features[name][is_number][firsts]) for name in names)
    assert (ranks, relations, values) == (expected, [4, 4, 2], [3.0, 8.0, 11.0])


def test_padding_is_zero_and_none_without_a_length(wordpiece):
    padded = build(wordpiece, TABLE, QUESTION, max_seq_length=20).features
    exact = build(wordpiece, TABLE, QUESTION, max_seq_length=None).features
    for name, values in padded.items():
        if len(values) != 20:
            np.testing.assert_array_equal(values, exact[name])
            continue
        padding = {"numeric_values": np.nan, "numeric_values_scale": 1}.get(name, 0)
        np.testing.assert_array_equal(values, [*exact[name], *[padding] * 4], err_msg=name)
        assert values.dtype == (np.float32 if name.startswith("numeric_values") else np.int32)


@cases(
    "config, question, expected, dropped, trimmed",
    ({"max_seq_length": 16}, QUESTION, "a 3 x", 0, 0),
    (DROP | {"max_seq_length": 15}, CITY, "a 3 x", 0, 0),
    (DROP | {"max_seq_length": 14}, CITY, "[EMPTY]", 1, 0),
    (DROP | {"max_seq_length": 11}, CITY, "york 8", 2, 0),
    (DROP | {"max_row_id": 3}, CITY, "[EMPTY]", 1, 0),
    (TRIM | {"max_seq_length": 14}, CITY, "new ##ville [EMPTY] a 3", 0, 3),  # words are whole
    (DROP | TRIM | {"max_seq_length": 10}, CITY, "[EMPTY]", 1, 2),
)
def test_what_does_not_fit_is_left_out(wordpiece, config, question, expected, dropped, trimmed):
    example = build(wordpiece, TABLE, question, **config)
    assert pieces(wordpiece, example).endswith(expected)
    assert example.report.rows_dropped == dropped
    assert example.report.tokens_trimmed == trimmed
    assert example.report.num_tokens == example.features["input_mask"].sum()


WIDE = Table.from_rows([["a"] * 300, ["b"] * 300], table_id="wide")
LONG_QUESTION = Question("city " * 600, question_id="long")


@cases(
    "table, question, config, reason, message",
    (TABLE, QUESTION, {"max_seq_length": 15}, "too long", "15 tokens, got 16 .*'q'.; raise"),
    (None, Question("new york city"), {"max_seq_length": 4}, "too long", "5 for the sentence"),
    (TABLE, LONG_QUESTION, DROP | TRIM, "too long", "512 .*, got 604 for the question and th"),
    (TABLE, CITY, DROP | {"max_seq_length": 8}, "too long", "got 9 .* and one row"),
    (WIDE, CITY, {"max_seq_length": None}, "too many columns", "255 columns, got 300 .*'wide'"),
    (TABLE, QUESTION, {"max_row_id": 3}, "too many rows", "at most 2 rows, got 3 .*'cities'"),
    (TABLE, QUESTION, DROP | TRIM | {"max_seq_length": 9}, "answer cut off", "3 .*, got 1"),
    (CITIES, CITY, HISTOGRAM_ROW | {"max_seq_length": 36}, "too long", "36 tokens, got 37"),
    (CITIES, CITY, HISTOGRAM_ROW | DROP | {"max_seq_length": 24}, "too long", "row alone"),
    (CITIES, CITY, HISTOGRAM_ROW | DROP | {"max_seq_length": 26}, "too long", "row and one row"),
    (CITIES, CITY, HISTOGRAM_ROW | {"max_row_id": 5}, "too many rows", "at most 3 rows, got 4"),
)
def test_what_does_not_fit_is_refused(wordpiece, table, question, config, reason, message):
    with pytest.raises(ConversionError, match=message) as error:
        build(wordpiece, table, question, **config)
    assert error.value.reason == reason
    assert "\n" not in str(error.value)


def test_answers_outside_of_the_table_are_refused_or_counted(wordpiece):
    for place in ((3, 0), (0, 2), (-1, 0)):
        question = Question("a", answer_coordinates=(place,))
        with pytest.raises(ConversionError, match="expected 1 answer cells in the sequence, got 0"):
            build(wordpiece, TABLE, question)
        example = build(wordpiece, TABLE, question, require_answers=False)
        assert example.report.answers_dropped == 1
        assert not example.features["label_ids"].any()


def test_a_table_is_tokenized_once(wordpiece):
    builder = FeatureBuilder(wordpiece)
    assert builder._tokenized(TABLE) is builder._tokenized(dataclasses.replace(TABLE))


# Twenty tokens; ville is no piece of the vocabulary, but five letters.
HISTOGRAM = "york 2 , v ##i ##l ##l ##e 1 , new 1 8 2 , 3 1 , 1 1"


def histogram_tokens(example):
    """Which tokens are the histogram row's: those of the last row id."""
    row_ids = example.features["row_ids"]
    return row_ids == row_ids.max()


def test_a_histogram_row_follows_the_last_row(wordpiece):
    question = Question("5 people", answer_coordinates=((3, 0),))
    example = build(wordpiece, CITIES, question, max_seq_length=64, histogram_row=True)
    assert pieces(wordpiece, example).endswith(f"new 1 {HISTOGRAM}")
    assert example.features["row_ids"].max() == 5
    tokens = histogram_tokens(example)
    own = {name: it[tokens] for name, it in example.features.items() if len(it) == len(tokens)}
    assert list(own["column_ids"]) == [1] * 12 + [2] * 8
    assert set(own["input_mask"]) == set(own["segment_ids"]) == {1}
    of_cells = "label_ids prev_label_ids column_ranks inv_column_ranks numeric_relations"
    assert not any(own[name].any() for name in of_cells.split())
    assert np.isnan(own["numeric_values"]).all()
    assert np.isinf(own["numeric_values_scale"]).all()


@given(
    rows=rows_of(st.sampled_from(["", "3", "7", "new york", "x"])),
    coordinates=st.lists(st.tuples(st.integers(-1, 6), st.integers(-1, 3)), max_size=3),
)
def test_a_histogram_row_changes_no_other_token(wordpiece, rows, coordinates):
    table = Table.from_rows(rows)
    question = Question("5 new", answer_coordinates=coordinates)
    config = {"max_seq_length": None, "require_answers": False}
    plain = build(wordpiece, table, question, **config)
    example = build(wordpiece, table, question, histogram_row=True, **config)
    length = plain.report.num_tokens
    own = np.flatnonzero(histogram_tokens(example))
    assert list(own) == list(range(length, example.report.num_tokens))
    for name, values in plain.features.items():
        np.testing.assert_array_equal(example.features[name][: len(values)], values, err_msg=name)
    assert not example.features["label_ids"][length:].any()
    assert example.report == dataclasses.replace(plain.report, num_tokens=example.report.num_tokens)


@stored_cases("config, rows_dropped, tokens_trimmed, num_tokens, end")
def test_rows_go_before_histograms(
    wordpiece, config, rows_dropped, tokens_trimmed, num_tokens, end
):
    config = DROP | {"max_seq_length": None, "histogram_row": True} | config
    asked = Question("a", answer_coordinates=((3, 1),))
    example = build(wordpiece, CITIES, asked, require_answers=False, **config)
    assert pieces(wordpiece, example).endswith(end)
    report = example.report
    assert report.answers_dropped == (rows_dropped > 0)
    assert (report.rows_dropped, report.tokens_trimmed) == (rows_dropped, tokens_trimmed)
    assert report.num_tokens == num_tokens == example.features["input_mask"].sum()
    assert example.features["row_ids"].max() == 4 - rows_dropped + 1


def test_tables_of_few_tokens_and_much_text_are_not_held(wordpiece):
    builder = FeatureBuilder(wordpiece, FeatureConfig(max_seq_length=None), most_remembered=10_000)

    def held(number_of_words):
        """Whether a table is, once another like it has been read."""
        first, second = (
            Table.from_rows([["city"], *[[letter * 10_000]] * number_of_words]) for letter in "ab"
        )
        builder.build(first, Question("a"))
        builder.build(second, Question("a"))
        there = weakref.ref(first)
        del first
        gc.collect()
        return there() is not None

    assert held(1)
    assert not held(200)  # of 10,000 bytes each, and one token


def test_half_a_surrogate_pair_in_a_name_is_escaped(wordpiece):
    table = dataclasses.replace(TABLE, table_id="t\ud800")
    question = dataclasses.replace(QUESTION, question_id="q\udfff")
    features = build(wordpiece, table, question).features
    assert features["table_id"] == [rb"t\ud800"] and features["question_id"] == [rb"q\udfff"]


@pytest.mark.parametrize("number", [np.nan, np.inf, 1e300])
def test_a_number_that_single_precision_does_not_hold_is_no_answer(wordpiece, number):
    question = dataclasses.replace(QUESTION, answer_number=number)
    assert np.isnan(build(wordpiece, TABLE, question).features["answer"][0])
