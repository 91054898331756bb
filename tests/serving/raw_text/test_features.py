"""Features that the graph makes of raw tables, against those of the library."""

import functools

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from mate_tf.features.builder import FeatureBuilder
from mate_tf.features.config import ConversionError, FeatureConfig
from mate_tf.features.token_features import TAPAS_FEATURES
from mate_tf.features.wordpiece import Wordpiece
from mate_tf.serving.raw_text.features import RawInput, build_features, raw_input
from mate_tf.tables.table import Question, Table
from tests.small import PIECES, cases, write_vocabulary
from tests.tables.test_columns import CASES as FORMATS

from_rows = Table.from_rows
NUMERIC = ("column_ranks", "inv_column_ranks", "numeric_relations")
RAW = [
    tf.TensorSpec([None], tf.string),
    tf.TensorSpec([None, None], tf.string),
    tf.TensorSpec([None, None, None], tf.string),
    tf.TensorSpec([None], tf.int32),
    tf.TensorSpec([None], tf.int32),
]
PLAIN = FeatureConfig(max_seq_length=512, numbers_version=1)
BY_COLUMN = FeatureConfig(max_seq_length=None)
CONFIGS = {
    "a limit": FeatureConfig(max_seq_length=48),
    "cut cells": FeatureConfig(max_seq_length=None, cell_trim_length=2, strip_column_names=True),
    "cut to fit": FeatureConfig(max_seq_length=48, trim_cells=True),
}


@pytest.fixture(scope="module")
def wordpiece(tmp_path_factory):
    pieces = [*PIECES, "##a", "##b", "##1", "##2", *"0123456789", *"-,.", "may"]
    return Wordpiece(write_vocabulary(tmp_path_factory.mktemp("features") / "vocab.txt", pieces))


@pytest.fixture(scope="module")
def graph(wordpiece):
    """The function that makes features in the graph, by configuration."""

    @functools.cache
    def graph_of(config):
        def make(*raw):
            return build_features(wordpiece, config, None, RawInput(*raw)).tokens

        return tf.function(make, input_signature=RAW, autograph=False)

    return graph_of


@pytest.fixture(scope="module")
def eager(wordpiece):
    """The same without a graph, which takes long to make for a single call."""

    def eager_of(config, fixed_length=None):
        return lambda *raw: build_features(wordpiece, config, fixed_length, RawInput(*raw)).tokens

    return eager_of


def tensors(pairs):
    """A batch of raw input, whose padding is not empty."""
    raw = raw_input([question for _, question in pairs], [table for table, _ in pairs])
    headers, cells = raw["headers"], raw["cells"]
    for index, (table, _) in enumerate(pairs):
        headers[index, table.num_columns :] = b"padding 2004"
        cells[index, table.num_rows :] = cells[index, :, table.num_columns :] = b"1 may 2004"
    return [tf.constant(values.tolist()) for values in raw.values()]


def tables_of(cells):
    """Tables of up to 4 columns and 5 rows, the header among them."""
    return st.integers(1, 4).flatmap(
        lambda width: st.lists(
            st.lists(cells, min_size=width, max_size=width), min_size=2, max_size=5
        ).map(from_rows)
    )


NUMBERS = st.one_of(
    st.integers(-30, 30).map(str),
    st.integers(-(10**6), 10**6).map("{:,}".format),
    st.decimals(-9, 9, places=1).map(str),
    st.sampled_from(["", "n/a", "2004", "1999", "1875", "-0", "3 km"]),
)
DATES = st.sampled_from(["may 2004", "5 may", "2004-05-06", "june", "may 5, 1999", "2004", "1999"])
COLUMNS = st.one_of(
    *(
        st.lists(cells, min_size=3, max_size=3)
        for cells in (NUMBERS, NUMBERS.filter(lambda cell: cell != "n/a"), DATES, NUMBERS | DATES)
    )
)
QUESTIONS = st.lists(NUMBERS | DATES, max_size=3).map(" or ".join)


def expected_features(wordpiece, config, pairs):
    """The library's features of each pair."""
    builder = FeatureBuilder(wordpiece, config)
    return [builder.build(table, Question(q), require_answers=False).features for table, q in pairs]


def assert_like_the_library(wordpiece, graph, config, pairs, names=TAPAS_FEATURES):
    try:
        expected = expected_features(wordpiece, config, pairs)
    except ConversionError:
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"expected at most \d+ tokens"):
            graph(config)(*tensors(pairs))
        return
    actual = graph(config)(*tensors(pairs))
    for index, features in enumerate(expected):
        for name in names:
            in_graph, in_library = getattr(actual, name)[index].numpy(), features[name]
            length = max(len(in_graph), len(in_library))
            np.testing.assert_array_equal(
                *(np.pad(values, (0, length - len(values))) for values in (in_graph, in_library)),
                err_msg=f"{name} of {pairs[index]}",
            )


@pytest.mark.medium
@pytest.mark.parametrize("config", CONFIGS)
@settings(max_examples=40)
@given(
    pairs=st.lists(
        st.tuples(tables_of(st.text("abc 1²-,.\u0301é京", max_size=12) | st.text()), st.text()),
        min_size=1,
        max_size=3,
    )
)
def test_tokens_and_their_places_are_the_library_s_for_any_text(wordpiece, graph, config, pairs):
    names = [name for name in TAPAS_FEATURES if name not in NUMERIC]
    assert_like_the_library(wordpiece, graph, CONFIGS[config], pairs, names)


@pytest.mark.medium
@given(
    pairs=st.lists(
        st.tuples(
            st.lists(COLUMNS, min_size=1, max_size=3).map(
                lambda columns: from_rows([["a"] * len(columns), *zip(*columns, strict=True)])
            ),
            QUESTIONS,
        ),
        min_size=1,
        max_size=3,
    )
)
def test_ranks_and_relations_are_the_library_s_for_plain_numbers_and_dates(wordpiece, graph, pairs):
    assert_like_the_library(wordpiece, graph, PLAIN, pairs)


ASKED = (
    "more than 1.234,56 €, 1,234.5 or 5%?|over $1.5 million since 2004|after 13/01/2024|"
    "after 5 May 2024 at 10:30 am and before 2024-05-06|under 1:02:05, 58:12 or 1:05 p.m.|"
    "the third of five, 5 m or 3 km|05/01/2024 or 03.02.2024|-75.63 or 20240105, apollo 11"
).split("|")
NAMES = "x", "Year", "Start time", "Duration", "Hours"


@pytest.mark.medium
@pytest.mark.parametrize("question", ASKED)
def test_every_format_of_a_column_is_the_library_s(wordpiece, graph, question):
    columns = [case.values[0] for case in FORMATS]
    columns += [["20240104", "20240105"], ["1999", "2004"], ["Apollo 12", "Apollo 11"]]
    columns += [["1234,5", "1.234"], ["5 m", "$3"], ["5 m", "3 b"], ["5 min", "2 h"], ["1:00", "x"]]
    pairs = [
        (from_rows([[name], *([text] for text in texts)]), question)
        for texts in columns
        for name in NAMES
    ]
    assert_like_the_library(wordpiece, graph, BY_COLUMN, pairs)


TOTALS = "N,1.5|S,2|Total,3.5;Sum:,3|a,1|b,2;a,1|Total A,1|c,5|Total,6;a,1|Total,3;x,2 h|all,2 h"


@pytest.mark.parametrize("version", [1, 2])
def test_totals_have_the_ranks_of_the_library(wordpiece, eager, version):
    tables = [[row.split(",") for row in table.split("|")] for table in TOTALS.split(";")]
    pairs = [(from_rows([["name", "x"], *rows]), "more than 2?") for rows in tables]
    config = FeatureConfig(max_seq_length=None, numbers_version=version)
    assert_like_the_library(wordpiece, eager, config, pairs)
    assert [len(table.total_rows) for table, _ in pairs] == [1, 1, 2, 0, 1]


FORMS = (
    "{:,.2f}".format,
    "{:.1f}".format,
    lambda n: f"{n:,.2f}".translate({44: ".", 46: ","}),
    lambda n: f"{n:,.1f}".replace(",", " "),
    lambda n: f"({abs(n):,.2f})" if n < 0 else f"{n:,.2f}",
    lambda n: f"${n:,.0f}",
    lambda n: f"{n:.1f} km",
    lambda n: f"{n:.0f} m",
    lambda n: f"{n:.1f} Mio. €",
    lambda n: f"${n:.2f}k",
    lambda n: f"{n:.0f}%",
    lambda n: f"{int(abs(n)) % 24}:{int(abs(n)) % 60:02}",
    lambda n: f"{int(abs(n)) % 90}:{int(abs(n)) % 60:02}:{int(abs(n)) % 59:02}",
    lambda n: f"{int(abs(n)) % 31 + 1:02}/{int(abs(n)) % 12 + 1:02}/2024",
    lambda n: f"{int(abs(n)) % 28 + 1}. {int(abs(n)) % 12 + 1}. {int(abs(n)) % 99:02}",
    lambda n: f"{int(abs(n)) % 28 + 1} Mai {int(abs(n)) % 99 + 1950}",
    lambda n: f"2024-01-{int(abs(n)) % 28 + 1:02}T{int(abs(n)) % 24:02}:00",
    lambda n: str(1900 + int(abs(n)) % 150),
    lambda n: "n/a",
    lambda n: "",
)
AMOUNTS = st.decimals(-(10**6), 10**6, places=2).map(float)
IN_FORMS = st.lists(st.sampled_from(FORMS), min_size=1, max_size=2).flatmap(
    lambda forms: st.lists(
        st.tuples(AMOUNTS, st.sampled_from(forms)).map(lambda one: one[1](one[0])),
        min_size=4,
        max_size=4,
    )
)


@pytest.mark.medium
@given(
    st.lists(IN_FORMS, min_size=3, max_size=3),
    st.lists(st.sampled_from(NAMES), min_size=3, max_size=3),
    st.lists(st.tuples(AMOUNTS, st.sampled_from(FORMS)), max_size=2),
)
def test_mixed_formats_are_the_library_s(wordpiece, graph, columns, names, asked):
    table = from_rows([names, *zip(*columns, strict=True)])
    question = " or ".join(form(amount) for amount, form in asked)
    assert_like_the_library(wordpiece, graph, BY_COLUMN, [(table, question)])


def test_a_column_has_numbers_from_seventy_percent_on(wordpiece, eager):
    columns = [["a", *["7"] * count, *["b"] * (10 - count)] for count in (6, 7)]
    pairs = [(from_rows([[text] for text in column]), "5") for column in columns]
    assert_like_the_library(wordpiece, eager, PLAIN, pairs)
    features = eager(PLAIN)(*tensors(pairs))
    assert tf.reduce_max(features.column_ranks, axis=1).numpy().tolist() == [0, 1]
    assert tf.reduce_max(features.numeric_relations, axis=1).numpy().tolist() == [0, 2]


def test_an_overlapping_date_changes_ranks_and_relations_alone(wordpiece, eager):
    pairs = [(from_rows([["a"], ["1,1024"], ["1103"], ["9"]]), "1 may 1103.")]
    (expected,) = expected_features(wordpiece, PLAIN, pairs)
    actual = eager(PLAIN)(*tensors(pairs))
    padding = (0, len(expected["input_ids"]) - actual.input_ids.shape[1])
    in_graph = {name: np.pad(getattr(actual, name)[0], padding) for name in TAPAS_FEATURES}
    different = [name for name in in_graph if not np.array_equal(in_graph[name], expected[name])]
    assert different == ["numeric_relations"]


def test_sequences_are_padded_to_the_one_length_of_the_model(wordpiece, eager):
    pairs = [(from_rows([["a"], ["b"]]), "c")]
    config = FeatureConfig(max_seq_length=150)
    assert eager(config)(*tensors(pairs)).input_ids.shape == [1, 128]
    assert eager(config, 150)(*tensors(pairs)).input_ids.shape == [1, 150]
    assert eager(FeatureConfig(max_seq_length=100))(*tensors(pairs)).input_ids.shape == [1, 100]


def one(**changes):
    """Raw input of one question about a table of 2 rows and 2 columns, with changes."""
    raw = raw_input(["c"], [from_rows([["a", "b"], ["1", "2"], ["3", "4"]])])
    raw = {name: tf.constant(values.tolist()) for name, values in raw.items()}
    return [*(raw | {name: tf.constant(value) for name, value in changes.items()}).values()]


@cases(
    "changes, message",
    (
        {"questions": ["c", "d"]},
        r"questions of shape \[1\] for cells of shape \[1 2 2\], got \[2\]",
    ),
    ({"headers": [["a"]]}, r"headers of shape \[1 2\] for cells of shape \[1 2 2\], got \[1 1\]"),
    ({"num_rows": [2, 2]}, r"num_rows of shape \[1\] .*, got \[2\]"),
    ({"num_columns": [2, 2]}, r"num_columns of shape \[1\] .*, got \[2\]"),
    ({"num_rows": [0]}, r"num_rows from 1 to 2, as the cells have, got 0 \(example 0\)"),
    ({"num_rows": [3]}, r"num_rows from 1 to 2, as the cells have, got 3 \(example 0\)"),
    ({"num_columns": [-1]}, r"num_columns from 1 to 2, .*, got -1 \(example 0\)"),
    ({"num_columns": [3]}, r"num_columns from 1 to 2, .*, got 3 \(example 0\)"),
    ({"questions": ["c " * 600]}, r"at most 512 tokens, got 608 \(example 0\)"),
)
def test_input_that_does_not_fit_is_refused_with_what_came(eager, changes, message):
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        eager(PLAIN)(*one(**changes))


def test_no_questions_are_refused(eager):
    nothing = [tf.zeros([0] * spec.shape.rank, spec.dtype) for spec in RAW]
    with pytest.raises(tf.errors.InvalidArgumentError, match="at least 1 question, got 0"):
        eager(PLAIN)(*nothing)


def test_ids_stay_below_their_limits_and_the_example_is_named(eager):
    config = FeatureConfig(max_seq_length=512, max_column_id=3, max_row_id=4)
    fits = from_rows([["a", "b"], *[["1", "2"]] * 3])
    wide, tall = from_rows([["a"] * 3, ["1"] * 3]), from_rows([["a"], *[["1"]] * 4])
    assert eager(config)(*tensors([(fits, "c")])).row_ids.numpy().max() == 3
    for tables, message in (
        ((fits, wide), r"at most 2 columns, got 3 \(example 1\)"),
        ((tall, fits), r"at most 3 rows, got 4 \(example 0\)"),
    ):
        with pytest.raises(tf.errors.InvalidArgumentError, match=message):
            eager(config)(*tensors([(table, "c") for table in tables]))
