"""from_pretrained: one model, wherever it is stored, what its folder says, and its answers."""

import json
import operator
import shutil

import keras
import numpy as np
import pytest
import tensorflow as tf

import mate_tf
from mate_tf.answers.calibration import Calibration
from mate_tf.answers.decoding import Asked
from mate_tf.answers.predictor import DECODINGS, Decoder, Predictor
from mate_tf.config import AttentionConfig
from mate_tf.features.builder import FeatureBuilder
from mate_tf.features.token_features import TokenFeatures
from mate_tf.features.wordpiece import Wordpiece
from mate_tf.models.classification import SequenceClassification
from mate_tf.models.span_reading import SpanReading
from mate_tf.models.table_qa import TableQuestionAnswering
from mate_tf.serving.export import export_stored
from mate_tf.serving.stored import find_model, run_model
from mate_tf.tables.table import Table
from mate_tf.task_configs import ClassificationConfig, SpanReadingConfig, TableQAConfig, model_kind
from mate_tf.training.config import (
    ClassificationTrainingConfig,
    MaskedLMTrainingConfig,
    SpanReadingTrainingConfig,
)
from mate_tf.training.run import save_config
from mate_tf.weights.folder import (
    CONFIG_FILE,
    SAVED_MODEL,
    VOCAB_FILE,
    read_calibration,
    write_calibration,
)
from tests.small import ENCODER, cases, export_small, stored_cases, without_tables, write_run

pytestmark = pytest.mark.medium

TABLE = Table.from_rows([["a", "b"], ["c d", "e"], ["f", "g h"], ["c", "e e"]])
QUESTIONS = ["c e", "a g", "h h h"]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """The folder of a run, with random weights."""
    return write_run(tmp_path_factory.mktemp("run"))


@pytest.fixture(scope="module")
def exported(run, tmp_path_factory):
    folder = tmp_path_factory.mktemp("exported") / "model"
    with without_tables():
        export_stored(run_model(run, max_seq_length=512), folder)
    return folder


@pytest.fixture
def copy(exported, tmp_path):
    """A copy of the exported model, to be changed."""
    return shutil.copytree(exported, tmp_path / "model")


def change_config(folder, change) -> None:
    config = json.loads((folder / CONFIG_FILE).read_text())
    change(config)
    (folder / CONFIG_FILE).write_text(json.dumps(config))


def test_a_run_and_what_is_exported_of_it_answer_alike(run, exported):
    of_run = mate_tf.from_pretrained(run).answer(TABLE, QUESTIONS)
    assert len({answer.score for answer in of_run}) == len(QUESTIONS)
    for trust_graph in (False, True):
        others = mate_tf.from_pretrained(exported, trust_graph=trust_graph).answer(TABLE, QUESTIONS)
        for one, other in zip(others, of_run, strict=True):
            assert one.text == other.text
            assert one.score == pytest.approx(other.score, abs=1e-5)


@cases(
    "config_class, task",
    (ClassificationTrainingConfig, ClassificationConfig(3, class_names=("no", "yes", "perhaps"))),
    (SpanReadingTrainingConfig, SpanReadingConfig(max_span_length=3)),
    ids=["classification", "span_reading"],
)
def test_runs_of_other_kinds_are_exported_too(tmp_path, config_class, task):
    config = config_class(num_steps=1, learning_rate=1e-3, encoder=ENCODER, task=task)
    stored = run_model(write_run(tmp_path / "run", config), max_seq_length=256)
    assert stored.name == f"step 1 of {tmp_path / 'run'}"
    with without_tables():
        export_stored(stored, tmp_path / "model")
    of_run, of_graph = (
        mate_tf.from_pretrained(tmp_path / name, num_alternatives=2).answer(TABLE, QUESTIONS)
        for name in ("run", "model")
    )
    for one, other in zip(of_run, of_graph, strict=True):
        assert len(one.alternatives) == 2
        pairs = zip([one, *one.alternatives], [other, *other.alternatives], strict=True)
        for expected, actual in pairs:
            assert actual.score == pytest.approx(expected.score, abs=1e-5)
            assert (actual.items, actual.class_index) == (expected.items, expected.class_index)
            assert actual.coordinates == expected.coordinates


def test_another_vocabulary_is_refused(run, exported, tmp_path):
    pieces = (run / "vocab.txt").read_text().splitlines()
    other, larger = tmp_path / "other", tmp_path / "larger"
    shutil.copytree(run, other)
    (other / "vocab.txt").write_text("\n".join([*pieces[:-2], pieces[-1], pieces[-2]]))
    with pytest.raises(ValueError, match="vocabulary that the records were made with, SHA-256"):
        mate_tf.from_pretrained(other)
    shutil.copytree(exported, larger)
    (larger / VOCAB_FILE).write_text("\n".join([*pieces, *(f"x{i}" for i in range(100))]))
    with pytest.raises(ValueError, match="expected the vocabulary that the records were"):
        mate_tf.from_pretrained(larger)


def test_bfloat16_is_the_same_within_its_precision(exported):
    exact, narrow = (
        mate_tf.from_pretrained(exported, dtype=dtype).answer(TABLE, "c e")
        for dtype in ("float32", "mixed_bfloat16")
    )
    assert exact.score != narrow.score
    assert narrow.score == pytest.approx(exact.score, abs=0.05)
    assert keras.config.dtype_policy().name == "float32"


def test_the_attention_can_be_another(run, exported):
    for path in (run, exported):
        stored = find_model(path, architecture="sat")
        assert stored.encoder_config.attention == AttentionConfig("sat")
        assert stored.encoder_config.num_layers == ENCODER.num_layers
    with pytest.raises(ValueError, match=r"variable .*relation.*none there"):
        mate_tf.from_pretrained(exported, architecture="tableformer_pcp")
    with pytest.raises(ValueError, match=r"expected an architecture among .*, got 'dense'"):
        mate_tf.from_pretrained(exported, architecture="dense")


def test_what_is_no_model_that_answers_is_refused(run, exported, tmp_path):
    message = r"weights at .*nowhere, found none: .*, nor an exported model"
    with pytest.raises(FileNotFoundError, match=message):
        mate_tf.from_pretrained(tmp_path / "nowhere")
    with pytest.raises(ValueError, match="expected no revision for weights on this machine"):
        mate_tf.from_pretrained(run, revision="main")
    with pytest.raises(ValueError, match=r"expected feature options among .*, got 'histogramm'"):
        mate_tf.from_pretrained(exported, histogramm=True)
    config = MaskedLMTrainingConfig(num_steps=1, learning_rate=1e-3, encoder=ENCODER)
    save_config(config, tmp_path / "mlm")
    with pytest.raises(ValueError, match="expected a model that answers"):
        mate_tf.from_pretrained(tmp_path / "mlm")


def test_a_configuration_of_an_unknown_kind_without_a_part_or_without_an_end_is_named(copy):
    for kind in ("translation", None):
        change_config(copy, operator.methodcaller("update", kind=kind))
        with pytest.raises(ValueError, match=f"one of the kinds table_qa, .*, got '?{kind}"):
            mate_tf.from_pretrained(copy)
    change_config(copy, operator.methodcaller("update", kind="table_qa"))
    change_config(copy, operator.methodcaller("pop", "encoder"))
    with pytest.raises(ValueError, match=r"assets\.extra/config\.json: expected .*config\.encoder"):
        find_model(copy)
    (copy / CONFIG_FILE).write_text('{"a":' * 100_000)
    with pytest.raises(ValueError, match=r"expected JSON in .*config\.json"):
        find_model(copy)


def test_a_graph_is_not_loaded_unless_it_is_trusted(copy):
    (copy / SAVED_MODEL).write_bytes(b"not a graph")
    assert mate_tf.from_pretrained(copy).answer(TABLE, "c e").answered
    with pytest.raises(Exception, match=r"(?i)parse"):
        mate_tf.from_pretrained(copy, trust_graph=True)


@stored_cases("changes")
def test_a_configuration_that_is_larger_than_the_weights_is_refused_at_once(copy, changes):
    change_config(copy, lambda config: config["encoder"].update(changes))
    with pytest.raises(ValueError, match=r"weights of the configuration's size in .* layers, got"):
        find_model(copy).model()


def test_attended_cells_share_all_of_the_attention(exported):
    predictor = mate_tf.from_pretrained(exported, trust_graph=True)
    seen = predictor.attended_cells(TABLE, "c e")
    assert seen.answer == predictor.answer(TABLE, "c e")
    assert list(seen.groups) == list(seen.question) == ["row heads", "column heads"]
    for name, shares in seen.groups.items():
        assert shares.shape == (4, 2)
        assert shares.min() >= 0.0
        assert shares.sum() + seen.question[name] == pytest.approx(1.0, abs=1e-4)
    # Heads see their own rows, or columns, and the question.
    rows = {cell.row + 1 for cell in seen.answer.cells}
    columns = {cell.column for cell in seen.answer.cells}
    others = [row for row in range(4) if row not in rows]
    assert not seen.groups["row heads"][others].any()
    assert not seen.groups["column heads"][:, [c for c in range(2) if c not in columns]].any()
    assert seen.groups["row heads"].any() and seen.groups["column heads"].any()
    seen = mate_tf.from_pretrained(exported, architecture="tapas").attended_cells(TABLE, "c e")
    assert list(seen.groups) == ["all heads"] and (seen.groups["all heads"] > 0).all()


def test_a_predictor_without_a_keras_model_says_so(run):
    stored = find_model(run)
    builder = FeatureBuilder(Wordpiece(stored.vocab_file), stored.feature_config)
    predictor = Predictor(stored.model(), builder)
    with pytest.raises(ValueError, match="expected a predictor with a keras_model"):
        predictor.attended_cells(TABLE, "c e")


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
    model = SequenceClassification(ENCODER, MODELS["classification"].task_config)
    return export_small(tmp_path_factory.mktemp("classifier") / "model", 64, model=model)


@pytest.fixture(scope="module")
def predictor(classifier):
    return mate_tf.from_pretrained(classifier, num_alternatives=3)


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


@pytest.mark.parametrize("kind", DECODINGS)
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_outputs_that_are_not_finite_or_lack_their_table_are_no_answer(kind, value):
    model = MODELS[kind]
    assert model_kind(model.task_config) == kind
    features = TokenFeatures(*[tf.ones([2, 8], tf.int32)] * 9)
    outputs = {name: values.numpy() for name, values in model(features).items()}
    if kind != "classification":
        message = "expected a table for each of 2 questions, got 1; only a classifier"
        with pytest.raises(ValueError, match=message):
            Decoder(model.task_config)(outputs, Asked([TABLE, None], features))
    for name in [name for name in DECODINGS[kind].outputs if name in outputs]:
        broken = outputs[name].copy()
        broken[1, -1] = value
        message = f"expected finite {name} of the model, got NaN or infinity for 1 of 2 questions"
        with pytest.raises(ValueError, match=message):
            Decoder(model.task_config)(outputs | {name: broken}, Asked([TABLE] * 2, features))


def test_a_calibration_in_the_folder_is_applied(classifier, predictor, calibration):
    answer = predictor.answer(TABLE, "g h")
    calibrated = mate_tf.from_pretrained(classifier, num_alternatives=1).answer(TABLE, "g h")
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
    strict = mate_tf.from_pretrained(classifier, min_score=answer.score + 1e-4)
    refused = strict.answer(TABLE, "g h")
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


@pytest.mark.parametrize("content", ["{", '{"temperature": 0.0}', '{"slope": 1.0}', "[]"])
def test_a_damaged_calibration_is_named(classifier, calibration, content, tmp_path):
    (classifier / "assets.extra" / "calibration.json").write_text(content)
    with pytest.raises(ValueError, match=r"calibration\.json: "):
        read_calibration(classifier)
    with pytest.raises(FileNotFoundError, match="expected an exported model"):
        write_calibration(tmp_path, Calibration())
