"""The signature `tables`: pieces, features and answers in the graph are those of the library."""

import datetime
import functools
import unicodedata

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mate_tf.answers.decoding import Asked, decode_cells
from mate_tf.answers.spans import decode_classes
from mate_tf.datasets.json_lines import read_json_lines
from mate_tf.evaluation.official import denotation_correct
from mate_tf.features.builder import FeatureBuilder
from mate_tf.features.config import FeatureConfig
from mate_tf.features.token_features import TAPAS_FEATURES, TokenFeatures
from mate_tf.features.wordpiece import Wordpiece
from mate_tf.serving.export import export_stored
from mate_tf.serving.stored import find_model
from mate_tf.tables.operators import OPERATORS, operators_by_id
from mate_tf.tables.table import Question, Table
from mate_tf.task_configs import ClassificationConfig, TableQAConfig
from mate_tf.weights.folder import DEFAULT_MODEL
from tests.serving import processes
from tests.small import ROOT, cases, text_input

pytest.importorskip("tensorflow_text", reason="this system has no package of tensorflow-text")

from mate_tf.serving.text_signature import (
    TextInput,
    build_features,
    cell_answers,
    class_answers,
    graph_wordpiece,
)

from_rows = Table.from_rows
WORDPIECE = Wordpiece(DEFAULT_MODEL / "vocab.txt")
# All that Python knows of the basic plane, and beyond it those that all editions of Unicode have.
CHARACTERS = [
    chr(code)
    for code in range(1, 0x20000)
    if (unicodedata if code < 0x10000 else unicodedata.ucd_3_2_0).category(chr(code))
    not in ("Cn", "Cs")
]
TEXTS = st.text(st.sampled_from(CHARACTERS) | st.sampled_from("abn/A 1é.,-京\u0301\t"))


@functools.cache
def pieces_in_graph():
    spec = [tf.TensorSpec([None], tf.string)]
    tokenize = tf.function(graph_wordpiece(WORDPIECE), input_signature=spec, autograph=False)
    return lambda texts: tokenize(tf.constant(texts)).to_list()


@given(st.lists(TEXTS, min_size=1))
@example([letter * length for letter in "aд京" for length in (199, 200, 201, 1000)])
@example(WORDPIECE.vocabulary)
def test_the_pieces_of_any_text_are_the_library_s(texts):
    assert pieces_in_graph()(texts) == WORDPIECE.ids(texts)


@cases("around", "{}", "a{}b", "é{}b", "x {}9")
def test_the_pieces_of_each_character_are_the_library_s(around):
    texts = [around.format(character) for character in CHARACTERS]
    assert len(texts) > 50_000
    assert pieces_in_graph()(texts) == WORDPIECE.ids(texts)


def test_invalid_bytes_are_ignored():
    assert pieces_in_graph()([b"ci\xffty", b"\xff"]) == WORDPIECE.ids(["city", ""])


@functools.cache
def features_in_graph(config=FeatureConfig(max_seq_length=256), fixed_length=None):  # noqa: B008
    specs = [tf.TensorSpec([None] * rank, tf.string) for rank in (1, 2, 3)]
    specs += [tf.TensorSpec([None], tf.int32)] * 2

    def build(*given):
        return build_features(WORDPIECE, config, fixed_length, TextInput(*given))

    return tf.function(build, input_signature=specs, autograph=False)


def features(pairs, *options):
    """The features of a batch whose padding is not empty, and its columns."""
    tables, questions = zip(*pairs, strict=True)
    return features_in_graph(*options)(*text_input(questions, tables, "2004").values())


def assert_like_the_library(pairs):
    tokens, _ = features(pairs)
    builder = FeatureBuilder(WORDPIECE, FeatureConfig(max_seq_length=None))
    for index, (table, question) in enumerate(pairs):
        expected = builder.build(table, Question(question)).features
        for name in TAPAS_FEATURES:
            actual, of_library = getattr(tokens, name)[index].numpy(), expected[name]
            of_library = np.pad(of_library, (0, len(actual) - len(of_library)))
            np.testing.assert_array_equal(actual, of_library, f"{name} of {pairs[index]}")


NUMBERS = st.one_of(
    st.integers(-30, 30).map(str),
    st.integers(-(10**6), 10**6).map("{:,}".format),
    st.decimals(-9, 9, places=1).map("{:.1f}".format),
    st.sampled_from(["", "n/a", "2004", "1999", "1875", "\u22123", ".5", "3rd", "1,000"]),
)
# The library does not order columns of several units; the signature does not know units.
NUMBERS_OF_A_UNIT = [
    NUMBERS | unit
    for unit in (
        st.integers(0, 10**4).map("${:,}.50".format) | st.just("-$5"),
        st.integers(-40, 100).map("{}%".format),
        st.integers(1, 30).map("{} km".format),
    )
]
DATES = st.one_of(
    st.dates(datetime.date(1000, 1, 1)).map("{:%Y-%m-%d}".format),
    st.dates(datetime.date(1000, 1, 1)).map("{:%Y-%m}".format),
    st.datetimes(datetime.datetime(1000, 1, 1)).map("{:%Y-%m-%d %H:%M}".format),
    st.sampled_from(
        ["2024-01-31", "2024-12-01", "2024-12", "2024", "1999", "", "2024-01-31T10:00"]
    ),
)
CLOCKS = st.times().map("{:%H:%M}".format)
WORDS = st.sampled_from(["b", "c d"])
COLUMNS = st.one_of(
    *(
        st.lists(cells, min_size=4, max_size=4)
        for cells in (*NUMBERS_OF_A_UNIT, DATES, CLOCKS, DATES | WORDS, NUMBERS | WORDS)
    )
)
QUESTIONS = st.lists(st.one_of(*NUMBERS_OF_A_UNIT) | DATES | CLOCKS, max_size=3).map(" or ".join)


@pytest.mark.medium
@settings(max_examples=150)
@given(
    st.lists(
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
def test_features_are_the_library_s_for_plain_numbers_dates_and_clocks(pairs):
    assert_like_the_library(pairs)


# As docs/serving.md lists them.
READ = (
    "1234|1,234.5|-3|+3|\u22123|3rd|$5|5 EUR|5%|5 km|2024-01-31|2024-01|2024-01-31 10:30|1500|2100|"
    "9:30|09:30:15"
)
NOT_READ = (
    "1.234,5|1 234|(3)|1e5|5 million|three|5k|~5|5 apples|31/01/2024|January 31, 2024|2024-W05|"
    "9:30 am|1h 30m|007|1 Main St"
)


@cases("cells, rank", (READ, 1), (NOT_READ, 0))
def test_what_is_read_and_what_is_not(cells, rank):
    pairs = [(from_rows([["a"], [cell]]), "more than two?") for cell in cells.split("|")]
    tokens, _ = features(pairs)
    assert set(tf.reduce_max(tokens.column_ranks, axis=1).numpy().tolist()) == {rank}
    assert not tf.reduce_max(tokens.numeric_relations).numpy()


def test_sequences_have_the_one_length_of_the_model_or_whole_steps():
    pairs = [(from_rows([["a"], ["b"]]), "c")]
    for longest, fixed, length in ((150, None, 128), (150, 150, 150), (100, None, 100)):
        tokens, _ = features(pairs, FeatureConfig(max_seq_length=longest), fixed)
        assert tokens.input_ids.shape == [1, length]


@cases(
    "changes, message",
    ({"questions": ["c", "d"]}, r"got the shapes \[2\], \[1 2\], \[1 2 2\], \[1\], \[1\]"),
    ({"headers": [["a"]]}, r"got the shapes \[1\], \[1 1\], \[1 2 2\]"),
    ({"num_rows": [2, 2]}, r"\[1 2 2\], \[2\], \[1\]"),
    ({"num_columns": [2, 2]}, r"\[1 2 2\], \[1\], \[2\]"),
    (dict.fromkeys(TextInput._fields), r"at least 1 question, got the shapes \[0\], \[0 2\]"),
    ({"num_rows": [0]}, r"num_rows from 1 to 2, as the cells have, got 0 \(example 0\)"),
    ({"num_rows": [3]}, r"num_rows from 1 to 2, as the cells have, got 3 \(example 0\)"),
    ({"num_columns": [-1]}, r"num_columns from 1 to 2, .*, got -1 \(example 0\)"),
    ({"questions": ["c " * 600]}, r"at most 256 tokens, got 608 \(example 0\)"),
    ({"questions": [b"\xff"]}, ""),
)
def test_input_that_does_not_fit_is_refused_with_what_came(changes, message):
    given = text_input(["c"], [from_rows([["a", "b"], ["1", "2"], ["3", "4"]])])
    for name, value in changes.items():
        tensor = given[name]
        given[name] = tf.zeros_like(tensor)[:0] if value is None else tf.constant(value)
    if message:
        with pytest.raises(tf.errors.InvalidArgumentError, match=message):
            features_in_graph()(*given.values())
    else:
        assert features_in_graph()(*given.values())


def test_ids_stay_below_their_limits_and_the_example_is_named():
    config = FeatureConfig(max_seq_length=512, max_column_id=3, max_row_id=4)
    fits = from_rows([["a", "b"], *[["1", "2"]] * 3])
    wide, tall = from_rows([["a"] * 3, ["1"] * 3]), from_rows([["a"], *[["1"]] * 4])
    assert features([(fits, "c")], config)[0].row_ids.numpy().max() == 3
    for tables, message in (
        ((fits, wide), r"at most 2 columns, got 3 \(example 1\)"),
        ((tall, fits), r"at most 3 rows, got 4 \(example 0\)"),
    ):
        with pytest.raises(tf.errors.InvalidArgumentError, match=message):
            features([(table, "c") for table in tables], config)


TABLES = [
    from_rows(rows)
    for rows in (
        [["team", "price"], ["x", "-2.5"], ["y", "1,000"], [" X", "997.5"]],
        [["city"], ["rome"], ["paris"]],
        [["rank", "b", "year"], ["0.1", "5 kg", "2004"], ["0.2", "5 km", "\u22120.1"]],
        [["date", "paid"], ["2024-03-01", "Yes"], ["2023-12-31", "yes"], ["2020-02-29", ""]],
    )
]
NOT_COMPUTED = ("GREATER", "LESS", "IS_GREATER", "IS_LESS", "IS_EQUAL", "SHARE")
# Alike or well apart: which of two cells is the larger by less than the rounding is not defined.
LOGITS = st.integers(-72, 72).map(lambda eighths: eighths / 8)


@functools.cache
def features_of_tables():
    return features([(table, "x") for table in TABLES])


def arrays(values, width):
    """Four rows of so many values: of cells, columns or aggregations."""
    return st.lists(values, min_size=4 * width, max_size=4 * width).map(
        lambda drawn: np.array(drawn, np.float32).reshape(4, width)
    )


@pytest.mark.medium
@settings(max_examples=80)
@given(
    *(arrays(LOGITS, width) for width in (24, 4, 5, len(operators_by_id()))),
    st.booleans(),
)
@example(np.ones((4, 24)), np.ones((4, 4)), np.ones((4, 5)), 8 * np.eye(4, 23, 10), True)  # ABSENT
def test_answers_are_the_library_s(cells, columns, rows, aggregations, chooses):
    tokens, read = features_of_tables()
    places = 4 * tokens.row_ids.numpy() + tokens.column_ids.numpy()  # [B, S]
    logits = np.take_along_axis(cells, places, axis=1)
    widths = np.array([[table.num_columns] for table in TABLES])
    columns = np.where(np.arange(4) <= widths, columns, -10_000.0)
    chosen = columns.argmax(axis=1)[:, np.newaxis] == tokens.column_ids.numpy()
    # Without a column there is no row either.
    operators = [it for it in operators_by_id() if chooses or not OPERATORS[it].along_row]
    outputs = {
        "token_probabilities": 1 / (1 + np.exp(-logits)),
        "aggregation_logits": aggregations[:, : len(operators)],
    }
    if chooses:
        outputs |= {"token_logits": logits, "column_logits": columns}
        outputs["row_scores"] = np.take_along_axis(rows, tokens.row_ids.numpy(), axis=1)
        outputs["token_probabilities"] = np.where(chosen, outputs["token_probabilities"], 0.0)
    outputs = {name: np.float32(values) for name, values in outputs.items()}
    config = TableQAConfig(operators=tuple(operators), select_one_column=chooses)
    asked = Asked(TABLES, TokenFeatures(*map(np.array, tokens[:9])))
    expected = decode_cells(config, outputs, asked)
    tensors = {name: tf.constant(values) for name, values in outputs.items()}
    found = cell_answers(config, tokens, read, tensors)
    for index, answer in enumerate(expected):
        actual = {name: values[index].numpy() for name, values in found.items()}
        aggregation, text = actual["aggregations"].decode(), actual["answers"].decode()
        if answer.aggregation != aggregation:  # the library cannot compute it, and takes cells
            assert answer.aggregation == "NONE" and (text == "" or aggregation in ("MAX", "MIN"))
            continue
        of_columns = {cell.column for cell in answer.cells}
        if aggregation in ("MAX", "MIN") and len(of_columns) > 1:
            continue  # the library compares ranks, the graph values
        of_dates = aggregation == "DIFFERENCE" and (index, of_columns) == (3, {0})
        assert text == ("" if of_dates or aggregation in NOT_COMPUTED else answer.text)
        assert actual["scores"] == pytest.approx(answer.score, rel=1e-5, abs=1e-30)
        selected = list(zip(*actual["selected"].nonzero(), strict=True))
        assert selected == [(cell.row, cell.column) for cell in answer.cells]
        scores = [actual["cell_scores"][place] for place in selected]
        assert scores == pytest.approx([cell.score for cell in answer.cells], rel=1e-5, abs=1e-30)


@cases("names", (), ("refuted", "entailed"))
def test_classes_are_the_library_s(names):
    config = ClassificationConfig(2, class_names=names)
    logits = np.array([[1.0, 2.0], [0.5, 0.5], [3.0, -1.0]], np.float32)
    actual = class_answers(config, {"class_logits": tf.constant(logits)})
    expected = decode_classes(config, {"class_logits": logits})
    assert [text.decode() for text in actual["answers"].numpy()] == [a.text for a in expected]
    assert actual["class_indices"].numpy().tolist() == [a.class_index for a in expected]
    np.testing.assert_allclose(actual["scores"], [a.score for a in expected], rtol=1e-6)


ANSWERABLE = ROOT / "experiments" / "demo_data" / "trust" / "answerable.jsonl"


@pytest.mark.medium
def test_the_default_model_answers_without_mate_tf(tmp_path):
    """The number of right answers stands in docs/serving.md."""
    export_stored(find_model(DEFAULT_MODEL), tmp_path / "model")
    tables, questions = zip(*read_json_lines(ANSWERABLE), strict=True)
    asked = text_input([question.text for question in questions], tables)
    _, outputs = processes.ask(tmp_path / "model", tmp_path, tables=asked)
    texts, aggregations = outputs["tables"]["answers"], outputs["tables"]["aggregations"]
    assert {"NONE", "COUNT", "SUM", "AVERAGE", "ABSENT"} <= set(aggregations)
    right = [
        denotation_correct(text.split(", "), question.answers)
        for text, question in zip(texts, questions, strict=True)
    ]
    assert sum(right) == pytest.approx(103, abs=2)  # another machine may round otherwise
