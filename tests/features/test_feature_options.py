"""What an example may hold besides the plain question and table, and what may be left out."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mate_tf.features.builder import Example, FeatureBuilder
from mate_tf.features.config import ConversionError, FeatureConfig
from mate_tf.features.token_selection import select_tokens
from mate_tf.tables.table import Question, Table

TABLE = Table(
    header=("city name", "people"),
    rows=(("New York", "8"), ("Newville", ""), ("a new york", "3 x")),
    table_id="cities",
    document_title="people",
    context_heading="new name",
)


def build(wordpiece, question, table=TABLE, require_answers=True, selector=None, **config):
    builder = FeatureBuilder(wordpiece, FeatureConfig(**config), token_selector=selector)
    return builder.build(table, question, require_answers)


def pieces(wordpiece, example, where=None):
    features = example.features
    chosen = features["input_mask"] == 1 if where is None else where(features)
    return " ".join(wordpiece.vocabulary[index] for index in features["input_ids"][chosen])


def labelled(features):
    return features["label_ids"] == 1


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({"cell_trim_length": 1}, "city people new 8 new ##ville [EMPTY] a 3"),
        ({"cell_trim_length": 2}, "city name people new york 8 new ##ville [EMPTY] a new 3 x"),
        ({"strip_column_names": True}, "[EMPTY] [EMPTY] new york 8 new ##ville [EMPTY] a new york"),
        ({"use_document_title": True}, "[CLS] a [SEP] people [SEP] city name people new york"),
        ({"use_context_heading": True}, "[CLS] a [SEP] new name [SEP] city name people"),
        (
            {"use_document_title": True, "use_context_heading": True},
            "[CLS] a [SEP] people [SEP] new name [SEP] city name people",
        ),
    ],
)
def test_what_is_in_the_sequence(wordpiece, config, expected):
    example = build(wordpiece, Question("a"), max_seq_length=32, **config)
    assert expected in pieces(wordpiece, example)
    features = example.features
    in_table = slice(example.report.num_tokens)
    assert not features["column_ids"][features["segment_ids"] == 0].any()
    assert features["segment_ids"][in_table].sum() == np.count_nonzero(features["column_ids"])


def test_a_table_without_titles_has_none(wordpiece):
    table = dataclasses.replace(TABLE, document_title="", context_heading="")
    with_titles = build(
        wordpiece, Question("a"), table, use_document_title=True, use_context_heading=True
    )
    plain = build(wordpiece, Question("a"), table)
    np.testing.assert_array_equal(with_titles.features["input_ids"], plain.features["input_ids"])


def test_rows_are_dropped_where_cells_of_a_set_length_do_not_fit(wordpiece):
    config = {"max_seq_length": 11, "cell_trim_length": 1}
    with pytest.raises(ConversionError, match="expected at most 11 tokens, got 12"):
        build(wordpiece, Question("a"), **config)
    example = build(wordpiece, Question("a"), drop_rows_to_fit=True, **config)
    assert pieces(wordpiece, example) == "[CLS] a [SEP] city people new 8 new ##ville [EMPTY]"
    assert (example.report.rows_dropped, example.report.tokens_trimmed) == (1, 2)


def test_only_the_original_drops_every_row(wordpiece):
    config = {"max_seq_length": 7, "drop_rows_to_fit": True}
    with pytest.raises(ConversionError, match="the question, the header and one row"):
        build(wordpiece, Question("a"), **config)
    example = build(wordpiece, Question("a"), original_conversion=True, **config)
    assert pieces(wordpiece, example) == "[CLS] a [SEP] city name people"
    assert example.report.rows_dropped == 3


@pytest.mark.parametrize(
    ("answers", "places"),
    [
        (("New York",), [(1, 1)]),
        (("york",), [(1, 1)]),
        (("a new",), [(3, 1)]),
        (("3", "new ville"), [(3, 2)]),
        (("Newville", "x"), [(2, 1), (3, 2)]),
        (("",), [(2, 2)]),
        (("people",), []),
        (("york 8",), []),
        ((), []),
    ],
)
def test_labels_are_the_first_occurrence_of_each_answer_text(wordpiece, answers, places):
    question = Question("a", answers=answers, answer_coordinates=((0, 0),))
    example = build(wordpiece, question, require_answers=False, label_answer_spans=True)
    where = labelled(example.features)
    cells = zip(
        example.features["row_ids"][where], example.features["column_ids"][where], strict=True
    )
    assert list(dict.fromkeys(cells)) == places
    found = [answer for answer in answers if answer not in ("people", "york 8", "new ville")]
    expected = sorted(wordpiece.vocabulary[i] for ids in wordpiece.ids(found) for i in ids)
    assert sorted(pieces(wordpiece, example, labelled).split()) == expected
    assert example.report.answers_dropped == len(answers) - len(found)
    assert example.report.answer_survived == (len(found) == len(answers))


def test_answer_texts_that_are_cut_off_are_errors_except_in_the_original(wordpiece):
    question = Question("a", answers=("x",))
    config = {"max_seq_length": 14, "trim_cells": True, "label_answer_spans": True}
    with pytest.raises(ConversionError, match=r"expected 1 answer texts .*, got 0") as error:
        build(wordpiece, question, **config)
    assert error.value.reason == "answer cut off"
    example = build(wordpiece, question, original_conversion=True, **config)
    assert not example.features["label_ids"].any()
    assert example.report.answers_dropped == 1


def test_an_answer_text_is_found_where_it_was_not_cut(wordpiece):
    table = Table.from_rows([["a"], ["b c d new"], ["new"]])
    question = Question("a", answers=("new",))
    config = {"cell_trim_length": 2, "label_answer_spans": True, "max_seq_length": None}
    features = build(wordpiece, question, table, **config).features
    assert list(features["row_ids"][labelled(features)]) == [2]


def test_previous_answers_are_labelled_alike(wordpiece):
    question = Question("a", previous_answers=("york",))
    features = build(wordpiece, question, label_answer_spans=True).features
    assert np.count_nonzero(features["prev_label_ids"]) == 1 and not features["label_ids"].any()


def test_selected_tokens_alone_are_in_the_sequence(wordpiece):
    selector = select_tokens([(0, 0, 1), (1, 0, 0), (3, 1, 1), (9, 9, 9)])
    question = Question("a", answer_coordinates=((0, 0), (2, 1)), previous_coordinates=((1, 0),))
    example = build(wordpiece, question, require_answers=False, selector=selector)
    assert pieces(wordpiece, example) == "[CLS] a [SEP] name new x"
    assert list(example.features["row_ids"][:6]) == [0, 0, 0, 0, 1, 3]
    assert list(example.features["column_ids"][:6]) == [0, 0, 0, 1, 1, 2]
    report = example.report
    assert (report.rows_dropped, report.columns_dropped) == (1, 0)
    assert (report.answers_dropped, report.answer_survived) == (1, True)


def test_columns_of_which_nothing_is_selected_are_reported(wordpiece):
    def second_column(table, question, tokens, budget):
        return tokens.column_ids == 2

    example = build(wordpiece, Question("a"), selector=second_column)
    assert pieces(wordpiece, example) == "[CLS] a [SEP] people 8 [EMPTY] 3 x"
    assert (example.report.rows_dropped, example.report.columns_dropped) == (0, 1)


def test_a_table_of_which_nothing_is_selected_leaves_the_question(wordpiece):
    example = build(wordpiece, Question("a"), selector=select_tokens([]))
    assert pieces(wordpiece, example) == "[CLS] a [SEP]"
    assert list(example.features["table_id"]) == [b"cities"]


def test_a_selector_sees_the_question_and_the_room_that_it_leaves(wordpiece):
    seen = []

    def selector(table, question, tokens, budget):
        seen.append((table.table_id, question.text, budget))
        return tokens.row_ids < 2

    build(wordpiece, Question("a b"), selector=selector, max_seq_length=16)
    build(wordpiece, Question("a b"), selector=selector, max_seq_length=None)
    assert seen == [("cities", "a b", 12), ("cities", "a b", None)]


def test_what_a_selector_must_return_is_said(wordpiece):
    with pytest.raises(ValueError, match=r"return bool \[14\], got int64 \[1\] \(table 'cities'"):
        build(wordpiece, Question("a"), selector=lambda *_: np.zeros(1, np.int64))


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 1), st.integers(0, 3))))
def test_selection_commutes_with_the_places_of_tokens(wordpiece, selected):
    everything = build(wordpiece, Question("a"), max_seq_length=None).features
    of_table = everything["segment_ids"] == 1
    rows, columns = everything["row_ids"][of_table], everything["column_ids"][of_table]
    places, seen = [], {}
    for cell in zip(rows.tolist(), columns.tolist(), strict=True):
        seen[cell] = seen.get(cell, -1) + 1
        places.append((cell[0], cell[1] - 1, seen[cell]))
    expected = [n for n, place in enumerate(places) if place in set(selected)]
    example = build(wordpiece, Question("a"), selector=select_tokens(selected), max_seq_length=None)
    np.testing.assert_array_equal(
        example.features["input_ids"][3:], everything["input_ids"][of_table][expected]
    )


def test_questions_converted_together_are_as_one_by_one(wordpiece):
    config = FeatureConfig(max_seq_length=20, use_document_title=True, label_answer_spans=True)
    pairs = [
        (TABLE, Question("a " * n, f"q{n}", answers=("york",) * (n % 3 == 0))) for n in range(9)
    ] + [(None, Question("b")), (None, Question("b " * 30))]
    together = list(FeatureBuilder(wordpiece, config).build_all(iter(pairs)))
    assert len(together) == len(pairs)
    for (table, question), result in zip(pairs, together, strict=True):
        try:
            expected = FeatureBuilder(wordpiece, config).build(table, question)
        except ConversionError as error:
            assert (type(result), str(result)) == (ConversionError, str(error))
            continue
        assert result.report == expected.report
        for name, values in expected.features.items():
            np.testing.assert_array_equal(result.features[name], values, err_msg=name)
    assert {type(result) for result in together} == {ConversionError, Example}


def test_long_identifiers_keep_their_end(wordpiece):
    features = build(wordpiece, Question("a", "x" * 60 + "-" + "7" * 63)).features
    assert list(features["question_id_ints"]) == [ord("-") + 1, *[ord("7") + 1] * 63]


def test_a_trim_length_that_leaves_nothing_is_refused():
    with pytest.raises(ValueError, match="expected cell_trim_length to be at least 1, got 0"):
        FeatureConfig(cell_trim_length=0)
