"""Answers from spans of tokens and from classes.

Shapes: S sequence, N spans.
"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from mate_tf.answers.answer import no_answer
from mate_tf.answers.decoding import Asked
from mate_tf.answers.spans import decode_classes, decode_spans, span_text
from mate_tf.features.builder import FeatureBuilder
from mate_tf.features.config import FeatureConfig
from mate_tf.features.token_features import TokenFeatures
from mate_tf.features.wordpiece import Wordpiece
from mate_tf.tables.table import Question, Table
from mate_tf.task_configs import LOG_ZERO, ClassificationConfig, SpanReadingConfig, span_bounds
from tests.small import cases, write_vocabulary

VOCABULARY = (
    "[PAD] [EMPTY] [UNK] [CLS] [SEP] [MASK] where a ##b ##c de ##f cafe , . 3 5 km n ##au 1".split()
)

CONFIG = SpanReadingConfig(max_span_length=4)


@pytest.fixture(scope="module")
def wordpiece(tmp_path_factory) -> Wordpiece:
    return Wordpiece(write_vocabulary(tmp_path_factory.mktemp("vocabulary") / "v", VOCABULARY))


def read(wordpiece, table, spans, features_config=None, num_alternatives=0, **outputs):
    """The answer where spans (first piece in the table, last, logit) are valid and no others."""
    config = features_config or FeatureConfig()
    builder = FeatureBuilder(wordpiece, config)
    features = builder.build(table, Question("where")).features
    batch = TokenFeatures.from_dict(features).map(lambda values: values[np.newaxis])
    length = batch.input_ids.shape[1]
    starts, ends = span_bounds(length, CONFIG.max_span_length)
    logits = np.full((1, len(starts)), LOG_ZERO)  # [1, N]
    begin = int(np.argmax(features["column_ids"] > 0))
    for first, last, logit in spans:
        logits[0, (starts == begin + first) & (ends == begin + last)] = logit
    outputs = {"span_logits": logits} | outputs
    asked = Asked([table], batch, wordpiece, config.histogram_row)
    (answer,) = decode_spans(CONFIG, outputs, asked, num_alternatives)
    return answer


# The header is piece 0, the body begins at 1.
TABLE = Table.from_rows([["a"], ["ABC  De, Café"], ["3.5 km"], ["DEF Nau"]])


@cases(
    "first, last, text, row",
    *((1, 3, "ABC", 0), (2, 3, "BC", 0), (3, 4, "C  De", 0), (4, 5, "De,", 0), (6, 6, "Café", 0)),
    *((7, 10, "3.5 km", 1), (7, 9, "3.5", 1), (12, 14, "F Nau", 2)),
)
def test_a_span_says_what_its_cell_says(wordpiece, first, last, text, row):
    answer = read(wordpiece, TABLE, [(first, last, 2.0)])
    assert (answer.items, answer.text) == ((text,), text)
    (cell,) = answer.cells
    assert (cell.row, cell.column, cell.text) == (row, 0, TABLE.rows[row][0])
    assert answer.score == cell.score == pytest.approx(1.0)
    assert (answer.aggregation, answer.value, answer.class_index) == ("NONE", None, None)
    assert answer.number == (3.5 if row == 1 else None)  # without its unit


def test_alternatives_are_the_next_spans_that_say_something_else(wordpiece):
    table = Table.from_rows([["a"], ["de"], ["De"], ["de"], ["abc"]])
    spans = [(1, 1, 3.0), (3, 3, 2.0), (2, 2, 1.0), (4, 6, 0.0), (4, 5, -1.0)]
    answer = read(wordpiece, table, spans, num_alternatives=2)
    weights = np.exp([logit for _, _, logit in spans])
    assert [other.text for other in (answer, *answer.alternatives)] == ["de", "De", "abc"]
    expected = weights[[0, 2, 3]] / weights.sum()
    scores = [other.score for other in (answer, *answer.alternatives)]
    np.testing.assert_allclose(scores, expected, rtol=1e-5)
    assert len(read(wordpiece, table, spans, num_alternatives=9).alternatives) == 3


def test_without_a_valid_span_there_is_no_answer(wordpiece):
    assert read(wordpiece, TABLE, [], num_alternatives=2) == no_answer()


def test_the_class_is_the_likeliest(wordpiece):
    answer = read(wordpiece, TABLE, [(1, 1, 0.0)], class_logits=np.array([[0.0, 2.0, 1.0]]))
    assert answer.class_index == 1


@pytest.mark.parametrize("num_alternatives", [0, 1])
def test_the_histogram_row_is_never_read_and_has_no_probability(wordpiece, num_alternatives):
    config = FeatureConfig(histogram_row=True)
    table = Table.from_rows([["a"], ["de"], ["km"]])
    # The histogram row's first piece follows the two cells.
    spans = [(3, 3, 5.0), (1, 1, 1.0), (2, 2, 0.0)]
    answer = read(wordpiece, table, spans, config, num_alternatives)
    assert answer.text == "de"
    assert answer.score == pytest.approx(1.0 / (1.0 + np.exp(-1.0)))
    assert [other.text for other in answer.alternatives] == ["km"][:num_alternatives]


def test_a_span_of_what_a_cell_expands_to_is_read_there(wordpiece):
    table = Table(("a",), (("de",),), expansions=(("Abc, km",),))
    answer = read(wordpiece, table, [(2, 4, 0.0)])
    assert (answer.text, answer.cells[0].text) == ("Abc", "de")


@cases(
    "text, pieces, first, last, expected",
    ("abc de", [8, 9], 0, 1, "##bc"),  # the cell's first piece is not in the sequence
    ("abc de", [10], 0, 0, "de"),
    ("", [1], 0, 0, ""),
    ("a\u00ad de ", [7, 10], 0, 1, "a\u00ad de"),
    ("\ud83d de", [10], 0, 0, "de"),
)
def test_texts_of_odd_cells(wordpiece, text, pieces, first, last, expected):
    assert span_text(text, pieces, first, last, wordpiece) == expected


LOGITS = np.log([[0.2, 0.5, 0.3], [0.9, 0.04, 0.06]])


def test_the_likeliest_class_is_the_answer_and_the_others_are_alternatives():
    config = ClassificationConfig(3, class_names=("refuted", "entailed", "unknown"))
    first, second = decode_classes(config, {"class_logits": LOGITS}, num_alternatives=5)
    assert (first.items, first.text, first.class_index) == (("entailed",), "entailed", 1)
    assert first.score == pytest.approx(0.5)
    assert [other.text for other in first.alternatives] == ["unknown", "refuted"]
    assert [other.class_index for other in second.alternatives] == [2, 1]
    assert (first.cells, first.aggregation, first.value, first.number) == ((), "NONE", None, None)
    # Without names they are called by their numbers.
    (unnamed, _) = decode_classes(ClassificationConfig(3), {"class_logits": LOGITS}, None, 1)
    assert [one.text for one in (unnamed, *unnamed.alternatives)] == ["1", "2"]


@given(arrays.arrays(np.float32, (2, 4), elements=st.floats(-50, 50, width=32)))
def test_every_class_is_said_once_by_falling_probability(logits):
    outputs = {"class_logits": logits}
    for answer in decode_classes(ClassificationConfig(4), outputs, num_alternatives=3):
        said = [answer, *answer.alternatives]
        assert sorted(other.class_index for other in said) == [0, 1, 2, 3]
        scores = [other.score for other in said]
        assert scores == sorted(scores, reverse=True)
        assert sum(scores) == pytest.approx(1.0)
