"""The signatures of an exported model, what they are made of and what they need."""

import dataclasses
import functools

import keras
import numpy as np
import pytest
import tensorflow as tf
from tensorflow.core.protobuf import saved_model_pb2

from mate_tf.config import AttentionConfig
from mate_tf.features.builder import FeatureBuilder
from mate_tf.features.config import FeatureConfig
from mate_tf.features.token_features import TAPAS_FEATURES
from mate_tf.features.wordpiece import Wordpiece
from mate_tf.models.classification import SequenceClassification
from mate_tf.models.span_reading import SpanReading
from mate_tf.models.table_qa import TableQuestionAnswering
from mate_tf.records.records import serialize_example
from mate_tf.serving.export import why_no_tables
from mate_tf.serving.loading import from_pretrained
from mate_tf.tables.operators import TAPAS_OPERATORS, operators_by_id
from mate_tf.tables.table import Question, Table
from mate_tf.task_configs import ClassificationConfig, SpanReadingConfig, TableQAConfig
from tests.serving import processes
from tests.small import ENCODER, PIECES, cases, export_small, text_input

VOCABULARY = [*PIECES, *"0123456789.-"]
CONFIG = dataclasses.replace(ENCODER, vocab_size=len(VOCABULARY))
FEATURES = FeatureConfig(max_seq_length=64)
QUESTIONS = ["a b 2", "h 7", "c"]
TABLES = [
    Table.from_rows([["a", "b"], ["1", "c d"], ["2", "e"], ["-3", "2004"]]),
    Table.from_rows([["h"], ["7"], ["9"]]),
    Table.from_rows([["c", "d", "e"], ["1", "2", "3"]]),
]
REFUSED = "drop_rows_to_fit histogram_row original_conversion prune_columns trim_cells".split()
REFUSED += ["use_context_heading", "use_document_title"]
# Those of tensorflow_text; a server has them from the same library (its `ops_lib`).
OF_TENSORFLOW_TEXT = {"FastWordpieceTokenizeWithOffsets", "NormalizeUTF8", "RegexSplitWithOffsets"}


def exported_model(directory, make, task):
    keras.utils.set_random_seed(0)  # random weights may choose what the graph does not compute
    model = make(CONFIG, task)
    return export_small(directory / "model", 64, VOCABULARY, tables=True, model=model)


pytestmark = pytest.mark.medium


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """The folder of a model that selects cells and computes, with random weights."""
    task = TableQAConfig(operators=(*TAPAS_OPERATORS, "HEADER", "YES", "NO"))
    return exported_model(tmp_path_factory.mktemp("tables"), TableQuestionAnswering, task)


@pytest.fixture(scope="module")
def classifier(tmp_path_factory):
    task = ClassificationConfig(2, class_names=("no", "yes"))
    return exported_model(tmp_path_factory.mktemp("classes"), SequenceClassification, task)


@functools.cache
def signatures_of(directory):
    return tf.saved_model.load(str(directory)).signatures


def ask(signatures, questions=QUESTIONS, tables=TABLES):
    return signatures["tables"](**text_input(questions, tables))


@pytest.mark.parametrize("kind", ["exported", "classifier"])
def test_a_batch_of_tables_is_answered_as_by_the_library(request, kind):
    directory = request.getfixturevalue(kind)
    outputs = {name: values.numpy() for name, values in ask(signatures_of(directory)).items()}
    predictor = from_pretrained(directory)
    for index, (question, table) in enumerate(zip(QUESTIONS, TABLES, strict=True)):
        answer = predictor.answer(table, question)
        assert outputs["answers"][index].decode() == answer.text
        assert outputs["scores"][index] == pytest.approx(answer.score, rel=1e-4)
        if kind == "classifier":
            assert set(outputs) == {"answers", "class_indices", "class_logits", "scores"}
            assert outputs["class_indices"][index] == answer.class_index
            continue
        assert outputs["cell_scores"].shape == outputs["selected"].shape == (3, 3, 3)
        assert outputs["aggregations"][index].decode() == answer.aggregation
        cells = list(zip(*outputs["selected"][index].nonzero(), strict=True))
        assert cells == [(cell.row, cell.column) for cell in answer.cells]


def test_outputs_that_are_not_finite_are_an_error(classifier):
    model = tf.saved_model.load(str(classifier))
    (bias,) = [weight for weight in model.weights.values() if weight.shape == (2,)]
    bias.assign([np.nan, 0.0])
    with pytest.raises(tf.errors.InvalidArgumentError, match="expected finite class_logits"):
        ask(model.signatures)


@cases(
    "architecture, task, features, reason",
    ("tapas", SpanReadingConfig(), {}, "span_reading reads its answers outside the graph"),
    ("grammar_soft", TableQAConfig(), {}, "needs a tagger"),
    *(("tapas", TableQAConfig(), {of: True}, f"features with {of} are not made") for of in REFUSED),
)
def test_a_model_without_features_in_the_graph_says_why(architecture, task, features, reason):
    config = dataclasses.replace(CONFIG, attention=AttentionConfig(architecture))
    assert reason in why_no_tables(config, task, dataclasses.replace(FEATURES, **features))
    assert why_no_tables(CONFIG, TableQAConfig(operators=operators_by_id()), FEATURES) is None


def test_a_reader_of_spans_has_no_signature_on_tables_and_its_folder_says_so(tmp_path):
    directory = exported_model(tmp_path, SpanReading, SpanReadingConfig(max_span_length=3))
    assert set(signatures_of(directory)) == {"serving_default", "features"}
    text = (directory / "assets.extra" / "signatures.txt").read_text(encoding="utf-8")
    assert "no signature `tables` on text: a model of the kind span_reading" in text


def test_the_folder_says_what_the_signatures_take_and_return(exported):
    text = (exported / "assets.extra" / "signatures.txt").read_text(encoding="utf-8")
    signatures = signatures_of(exported)
    assert set(signatures) == {"serving_default", "features", "tables"}
    for name, signature in signatures.items():
        inputs = signature.structured_input_signature[1]
        for part in (name, *inputs, *signature.structured_outputs):
            assert part in text
    assert "cells: string [None, None, None]" in text
    assert "its scores are not calibrated" in text


def operations(directory):
    """The names of the operations of all signatures, and of the functions that they call."""
    model = saved_model_pb2.SavedModel.FromString((directory / "saved_model.pb").read_bytes())
    names, functions = set(), set()
    for graph in model.meta_graphs:
        names |= {node.op for node in graph.graph_def.node}
        for function in graph.graph_def.library.function:
            functions.add(function.signature.name)
            names |= {node.op for node in function.node_def}
    return names - functions


def test_stock_tensorflow_with_tensorflow_text_serves_all_three_signatures(exported, tmp_path):
    names = operations(exported)
    for part in ("Xla", "Mkl", "PyFunc", "EagerPy", "Custom", "Host"):
        assert not [name for name in names if part in name]
    wordpiece = Wordpiece(exported / "assets.extra" / "vocab.txt")
    builder = FeatureBuilder(wordpiece, FeatureConfig(max_seq_length=None))
    example = builder.build(TABLES[0], Question(QUESTIONS[0])).features
    unknown, outputs = processes.ask(
        exported,
        tmp_path,
        tuple(sorted(names)),
        tables=text_input(QUESTIONS[:1], TABLES[:1]),
        features={name: [example[name].tolist()] for name in TAPAS_FEATURES},
        serving_default={"examples": [serialize_example(example)]},
    )
    assert set(unknown) == OF_TENSORFLOW_TEXT
    answer = from_pretrained(exported).answer(TABLES[0], QUESTIONS[0])
    assert outputs["tables"]["answers"] == [answer.text]
    found = [outputs[name]["token_probabilities"] for name in ("features", "serving_default")]
    np.testing.assert_allclose(*found, atol=1e-6)
    assert np.max(found) > 0
