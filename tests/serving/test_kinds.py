"""What an exported model's folder says of it: its kind, and a calibration of its scores."""

import json

import numpy as np
import pytest
import tensorflow as tf

from mate_tf.answers.calibration import Calibration
from mate_tf.answers.decoding import Asked
from mate_tf.answers.predictor import Decoder, Predictor
from mate_tf.features.config import FeatureConfig
from mate_tf.features.token_features import TokenFeatures
from mate_tf.models.classification import ClassificationConfig, SequenceClassification
from mate_tf.models.span_reading import SpanReading, SpanReadingConfig
from mate_tf.models.table_qa import TableQAConfig, TableQuestionAnswering
from mate_tf.serving.export import export_saved_model
from mate_tf.serving.folder import read_calibration, write_calibration
from mate_tf.serving.loading import from_pretrained
from mate_tf.tables.table import Table
from mate_tf.tasks import ANSWERING, TASKS, task_of
from tests.small import ENCODER, without_tables, write_vocabulary

TABLE = Table.from_rows([["a", "b"], ["c", "d"], ["e", "f"]])
MODELS = {
    "table_qa": TableQuestionAnswering(ENCODER, TableQAConfig()),
    "classification": SequenceClassification(
        ENCODER, ClassificationConfig(2, class_names=("refuted", "entailed"))
    ),
    "span_reading": SpanReading(ENCODER, SpanReadingConfig(max_span_length=3, num_classes=2)),
}


@pytest.fixture(scope="module")
def classifier(tmp_path_factory):
    """An exported classifier with random weights; a test that calibrates it undoes that."""
    directory = tmp_path_factory.mktemp("classifier")
    vocab_file = write_vocabulary(directory / "vocab.txt")
    tf.keras.utils.set_random_seed(0)
    model = SequenceClassification(ENCODER, MODELS["classification"].task_config)
    model.build()
    with without_tables():
        export_saved_model(model, vocab_file, FeatureConfig(max_seq_length=64), directory / "model")
    return directory / "model"


@pytest.fixture(scope="module")
def predictor(classifier):
    return from_pretrained(classifier, num_alternatives=3)


@pytest.fixture
def calibration(classifier):
    calibration = Calibration(temperature=2.0, offset=-0.25)
    write_calibration(classifier, calibration)
    yield calibration
    (classifier / "assets.extra" / "calibration.json").unlink()


def test_a_statement_is_judged_with_a_table_and_without(predictor):
    for table in (TABLE, None):
        answer = predictor.answer(table, "g h")
        (other,) = answer.alternatives
        assert {answer.text, other.text} == {"refuted", "entailed"}
        assert {answer.class_index, other.class_index} == {0, 1}
        assert answer.score + other.score == pytest.approx(1.0)
        assert answer.score >= other.score


@pytest.mark.parametrize("kind", ["table_qa", "span_reading"])
def test_a_question_that_needs_a_table_is_refused_without_one(kind):
    model = MODELS[kind]
    features = TokenFeatures(*[tf.ones([2, 8], tf.int32)] * 9)
    message = "expected a table for each of 2 questions, got 1; only a classifier"
    with pytest.raises(ValueError, match=message):
        Decoder(model.task_config)(model(features), Asked([TABLE, None], features))


@pytest.mark.parametrize("kind", ANSWERING)
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_outputs_that_are_not_finite_are_no_answer(kind, value):
    model = MODELS[kind]
    assert task_of(model.task_config) is TASKS[kind]
    features = TokenFeatures(*[tf.ones([2, 8], tf.int32)] * 9)
    outputs = {name: values.numpy() for name, values in model(features).items()}
    for name in TASKS[kind].outputs:
        broken = outputs[name].copy()
        broken[1, -1] = value
        message = f"expected finite {name} of the model, got NaN or infinity for 1 of 2 questions"
        with pytest.raises(ValueError, match=message):
            Decoder(model.task_config)(outputs | {name: broken}, Asked([TABLE] * 2, features))


def test_a_calibration_in_the_folder_is_applied(classifier, predictor, calibration):
    answer = predictor.answer(TABLE, "g h")
    calibrated = from_pretrained(classifier, num_alternatives=1).answer(TABLE, "g h")
    assert calibrated.items == answer.items
    scores = [answer.score, answer.alternatives[0].score]
    found = [calibrated.score, calibrated.alternatives[0].score]
    np.testing.assert_allclose(found, calibration.apply(scores), rtol=1e-6)
    assert read_calibration(classifier) == calibration
    write_calibration(classifier, Calibration())
    assert read_calibration(classifier) == Calibration()


def test_below_the_score_asked_for_there_is_no_answer(classifier, predictor):
    assert read_calibration(classifier) is None
    answer = predictor.answer(TABLE, "g h")
    assert answer.answered
    refused = from_pretrained(classifier, min_score=answer.score + 1e-4).answer(TABLE, "g h")
    assert not refused.answered
    assert refused.score == pytest.approx(answer.score, abs=1e-5)
    (would_be,) = refused.alternatives
    assert would_be.items == answer.items


def test_what_cannot_be_asked_for_is_refused(predictor):
    for score in (1.5, float("nan")):
        with pytest.raises(ValueError, match=f"min_score from 0 to 1, got {score}"):
            Predictor(MODELS["table_qa"], predictor._builder, min_score=score)
    with pytest.raises(ValueError, match="num_alternatives of at least 0, got -1"):
        Predictor(MODELS["table_qa"], predictor._builder, num_alternatives=-1)


def test_a_folder_of_an_unknown_kind_is_refused(classifier):
    path = classifier / "assets.extra" / "mate_tf.json"
    written = path.read_text()
    for kind in ("translation", None):
        path.write_text(json.dumps(json.loads(written) | {"kind": kind}))
        with pytest.raises(ValueError, match=f"classification, span_reading at .*, got {kind}"):
            from_pretrained(classifier)
    path.write_text(written)


@pytest.mark.parametrize("content", ["{", '{"temperature": 0.0}', '{"slope": 1.0}', "[]"])
def test_a_damaged_calibration_is_named_and_one_needs_a_model(
    classifier, calibration, content, tmp_path
):
    (classifier / "assets.extra" / "calibration.json").write_text(content)
    with pytest.raises(ValueError, match=r"calibration\.json: "):
        read_calibration(classifier)
    with pytest.raises(FileNotFoundError, match="expected an exported model"):
        write_calibration(tmp_path, Calibration())
