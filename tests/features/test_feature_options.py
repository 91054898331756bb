"""What an example may hold besides the plain question and table, and what may be left out."""

import dataclasses

import numpy as np
import pytest

from mate_tf.features.builder import Example, FeatureBuilder
from mate_tf.features.config import ConversionError, FeatureConfig
from mate_tf.features.tokenized_table import MAX_VALUES, histogram_cells
from mate_tf.tables.table import Question, Table
from tests.features.examples import build, pieces

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


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({"cell_trim_length": 1}, "city people new 8 new ##ville [EMPTY] a 3"),
        ({"cell_trim_length": 2}, "city name people new york 8 new ##ville [EMPTY] a new 3 x"),
        ({"strip_column_names": True}, "[EMPTY] [EMPTY] new york 8 new ##ville [EMPTY] a new york"),
        ({"use_document_title": True}, "[CLS] a [SEP] people [SEP] city name people new york"),
        ({"use_context_heading": True}, "[CLS] a [SEP] new name [SEP] city name people"),
        (TITLES, "[CLS] a [SEP] people [SEP] new name [SEP] city name people"),
    ],
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


def test_rows_are_dropped_where_cells_of_a_set_length_do_not_fit(wordpiece):
    config = {"max_seq_length": 11, "cell_trim_length": 1}
    with pytest.raises(ConversionError, match="expected at most 11 tokens, got 12"):
        build(wordpiece, TABLE, Question("a"), **config)
    example = build(wordpiece, TABLE, Question("a"), drop_rows_to_fit=True, **config)
    assert pieces(wordpiece, example) == "[CLS] a [SEP] city people new 8 new ##ville [EMPTY]"
    assert (example.report.rows_dropped, example.report.tokens_trimmed) == (1, 2)


def test_only_the_original_drops_every_row(wordpiece):
    config = {"max_seq_length": 7, "drop_rows_to_fit": True}
    with pytest.raises(ConversionError, match="the question, the header and one row"):
        build(wordpiece, TABLE, Question("a"), **config)
    example = build(wordpiece, TABLE, Question("a"), original_conversion=True, **config)
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
    example = build(wordpiece, TABLE, question, require_answers=False, label_answer_spans=True)
    where = labelled(example.features)
    ids = (example.features[name][where] for name in ("row_ids", "column_ids"))
    assert list(dict.fromkeys(zip(*ids, strict=True))) == places
    found = [answer for answer in answers if answer not in ("people", "york 8", "new ville")]
    expected = sorted(wordpiece.vocabulary[i] for ids in wordpiece.ids(found) for i in ids)
    assert sorted(pieces(wordpiece, example, labelled).split()) == expected
    assert example.report.answers_dropped == len(answers) - len(found)
    assert example.report.answer_survived == (len(found) == len(answers))


def test_answer_texts_that_are_cut_off_are_errors_except_in_the_original(wordpiece):
    question = Question("a", answers=("x",))
    config = {"max_seq_length": 14, "trim_cells": True, "label_answer_spans": True}
    with pytest.raises(ConversionError, match=r"expected 1 answer texts .*, got 0") as error:
        build(wordpiece, TABLE, question, **config)
    assert error.value.reason == "answer cut off"
    example = build(wordpiece, TABLE, question, original_conversion=True, **config)
    assert not example.features["label_ids"].any()
    assert example.report.answers_dropped == 1


def test_an_answer_text_is_found_where_it_was_not_cut(wordpiece):
    table = Table.from_rows([["a"], ["b c d new"], ["new"]])
    question = Question("a", answers=("new",))
    config = {"cell_trim_length": 2, "label_answer_spans": True, "max_seq_length": None}
    features = build(wordpiece, table, question, **config).features
    assert list(features["row_ids"][labelled(features)]) == [2]


def test_previous_answers_are_labelled_alike(wordpiece):
    question = Question("a", previous_answers=("york",))
    features = build(wordpiece, TABLE, question, label_answer_spans=True).features
    assert np.count_nonzero(features["prev_label_ids"]) == 1 and not features["label_ids"].any()


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
    features = build(wordpiece, TABLE, Question("a", "x" * 60 + "-" + "7" * 63)).features
    assert list(features["question_id_ints"]) == [ord("-") + 1, *[ord("7") + 1] * 63]


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (["b", "a", "b"], "b 2, a 1"),
        (["d", "c", "b", "a"], "d 1, c 1, b 1"),
        (["a", "b", "c", "c", "d", "d"], "c 2, d 2, a 1"),
        ([" Rio  Branco ", "rio branco", "Rio"], "Rio  Branco 2, Rio 1"),
        (["", "7", " ", "7", ""], "7 2"),
        (["", "\t"], ""),
    ],
)
def test_a_histogram_has_the_most_frequent_values_then_the_first_to_appear(cells, expected):
    assert MAX_VALUES == 3
    table = Table.from_rows([["x", "y"], *[[cell, "1"] for cell in cells]])
    assert histogram_cells(table) == (expected, f"1 {len(cells)}")
