"""Export to a SavedModel, and answers from it."""

import dataclasses
import shutil

import numpy as np
import pytest
import tensorflow as tf

from mate_tf.answers.predictor import Predictor
from mate_tf.config import AttentionConfig, EncoderConfig
from mate_tf.features.builder import FeatureBuilder
from mate_tf.features.config import FeatureConfig
from mate_tf.features.token_features import TAPAS_FEATURES, TokenFeatures
from mate_tf.features.wordpiece import Wordpiece
from mate_tf.models.table_qa import TableQuestionAnswering
from mate_tf.records.records import serialize_example
from mate_tf.serving.export import export_saved_model
from mate_tf.serving.loading import from_pretrained
from mate_tf.serving.stored import serving_features
from mate_tf.tables.table import Question, Table
from mate_tf.weights.folder import WARM_UP_FILE
from tests.small import ENCODER, cases, export_small, text_input, without_tables, write_vocabulary

WORDS = "[PAD] [EMPTY] [UNK] [CLS] [SEP] [MASK] city country rome paris".split()
CAPITALS = Table.from_rows(
    [["city", "country"], ["rome", "italy"], ["paris", "france"]], table_id="capitals"
)
LONG = Table.from_rows(
    [["city", "country"], *[[f"rome {row}", "paris"] for row in range(150)]], table_id="long"
)


def small_model(position="per_cell", max_position_embeddings=512, **attention):
    """A model with random weights, so large that its answers differ; it is not built yet."""
    tf.keras.utils.set_random_seed(0)
    config = dataclasses.replace(
        ENCODER,
        vocab_size=len(WORDS),
        num_layers=2,
        intermediate_size=32,
        position=position,
        max_position_embeddings=max_position_embeddings,
        attention=AttentionConfig(**attention),
    )
    return TableQuestionAnswering(config)


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """A model with random weights, its vocabulary and its exported folder."""
    directory = tmp_path_factory.mktemp("exported")
    model = small_model(bucket_size=8, global_size=16)
    folder = export_small(directory / "model", 1024, WORDS, model=model)
    return model, directory / "vocab.txt", folder


@pytest.fixture(scope="module")
def predictor(exported):
    return from_pretrained(exported[2], num_alternatives=4, trust_graph=True)


def assert_alike(actual, expected):
    assert (actual.items, actual.coordinates) == (expected.items, expected.coordinates)
    assert actual.score == pytest.approx(expected.score, abs=1e-5)


def builder_of(vocab_file, longest=None):
    return FeatureBuilder(Wordpiece(vocab_file), FeatureConfig(max_seq_length=longest))


def assert_examples_alike(model, vocab_file, signature, tables, length=None):
    """Serialized examples about tables get what the model says of their features."""
    builder = builder_of(vocab_file)
    examples = [builder.build(table, Question("which city")).features for table in tables]
    outputs = signature(examples=tf.constant([serialize_example(e) for e in examples]))
    for features, actual in zip(examples, outputs["token_probabilities"].numpy(), strict=True):
        missing = (length or len(features["input_ids"])) - len(features["input_ids"])
        padded = (np.pad(features[name], (0, missing)) for name in TAPAS_FEATURES)
        batch = TokenFeatures(*(tf.constant(values[None], tf.int32) for values in padded))
        expected = model(batch)["token_probabilities"][0]
        np.testing.assert_allclose(actual[: len(expected)], expected, atol=1e-5)
        assert not actual[len(expected) :].any()


def test_exported_model_answers_like_the_model_with_its_alternatives(exported, predictor):
    model, vocab_file, _ = exported
    ours = Predictor(model, builder_of(vocab_file, 1024), num_alternatives=4)
    for table in (LONG, CAPITALS):
        expected, actual = (p.answer(table, "which city") for p in (ours, predictor))
        assert_alike(actual, expected)
    assert len(actual.alternatives) == 4
    columns = {cell.column for answer in actual.alternatives for cell in answer.cells}
    assert columns == {0, 1}  # also of the column that was not chosen
    for one, other in zip(actual.alternatives, expected.alternatives, strict=True):
        assert_alike(one, other)


def test_tensorflow_serving_has_a_question_to_begin_with(exported):
    (record,) = tf.data.TFRecordDataset(str(exported[2] / WARM_UP_FILE))
    # Field 6 of a PredictionLog is a PredictLog, whose field 1 is a PredictRequest.
    assert record.numpy()[:1] == b"\x32" and b"\n\x05model\x1a\x08features" in record.numpy()
    for name in TAPAS_FEATURES:
        assert name.encode() in record.numpy()


def test_serving_default_takes_serialized_examples_of_different_lengths(exported):
    model, vocab_file, directory = exported
    signature = tf.saved_model.load(str(directory)).signatures["serving_default"]
    assert_examples_alike(model, vocab_file, signature, [CAPITALS, LONG])


def test_a_question_beyond_the_limit_is_an_error_and_stops_no_other(predictor):
    huge = Question("rome " * 2000, question_id="huge")
    pairs = [(CAPITALS, huge), (CAPITALS, Question("which city"))]
    (*_, first), (*_, second) = predictor.answer_all(pairs)
    assert isinstance(first, ValueError)
    assert "expected at most 1024 tokens" in str(first) and "huge" in str(first)
    assert second.cells
    with pytest.raises(ValueError, match=r"at most 1024 tokens, got .* \(table 'capitals'"):
        predictor.answer(CAPITALS, huge)
    wide = Table.from_rows([["c"] * 300, ["1"] * 300])
    with pytest.raises(ValueError, match="255 columns, got 300"):
        predictor.answer(wide, "which")


def test_a_folder_of_something_else_is_not_written_over(tmp_path, exported):
    model, vocab_file, _ = exported
    (tmp_path / "thesis.txt").write_text("precious")
    with pytest.raises(ValueError, match="expected an empty folder or an exported model"):
        export_saved_model(model, vocab_file, FeatureConfig(), tmp_path)
    assert (tmp_path / "thesis.txt").exists()


@pytest.mark.medium
def test_an_export_that_is_interrupted_costs_no_model(tmp_path, exported, monkeypatch):
    model, vocab_file, whole = exported
    directory = shutil.copytree(whole, tmp_path / "model")
    # Loaded as below: a model that was asked before may differ in its scores' last digits.
    answer = from_pretrained(whole, num_alternatives=4).answer(CAPITALS, "city")

    def interrupted(*_):
        raise KeyboardInterrupt("in a copy")

    def export():
        with without_tables():
            export_saved_model(model, vocab_file, FeatureConfig(max_seq_length=512), directory)

    with monkeypatch.context() as patch:
        patch.setattr("mate_tf.serving.export._write_folder", interrupted)
        with pytest.raises(KeyboardInterrupt, match="in a copy"):
            export()
    assert from_pretrained(directory, num_alternatives=4).answer(CAPITALS, "city") == answer
    export()
    assert from_pretrained(directory).max_seq_length == 512
    assert list(tmp_path.iterdir()) == [directory]


def rows_of_rome(count):
    return Table.from_rows([["city"], *[["rome"]] * count], table_id=f"{count} rows")


def seen_lengths(predictor, tables):
    """The lengths of the batches that a predictor makes for questions about the tables."""
    lengths, model = [], predictor._model

    def watched(features):
        lengths.append(features.input_ids.shape[1])
        return model(features)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(predictor, "_model", watched)
        for table in tables:
            predictor.answer(table, "which city")
    return lengths


ABSOLUTE = dict(position="absolute", max_position_embeddings=200)
LINFORMER = dict(architecture="linformer", sequence_length=150, projected_length=8)


@pytest.fixture(scope="module")
def linformer(tmp_path_factory):
    """A Linformer with random weights, its vocabulary, its exported folder and what answers."""
    model, directory = small_model(**LINFORMER), tmp_path_factory.mktemp("linformer")
    folder = export_small(directory / "model", 150, WORDS, tables=True, model=model)
    return model, directory / "vocab.txt", folder, from_pretrained(folder)


@pytest.mark.medium
def test_a_linformer_is_exported_and_answers_like_itself(linformer):
    model, vocab_file, directory, loaded = linformer
    builder = builder_of(vocab_file, 150)
    ours = Predictor(lambda features: model(features), builder, fixed_length=150)
    tables = [CAPITALS, rows_of_rome(20), rows_of_rome(140)]
    for table in tables:
        assert_alike(loaded.answer(table, "which city"), ours.answer(table, "which city"))
    assert seen_lengths(loaded, tables) == [150] * 3

    # In serialized examples and text.
    signatures = tf.saved_model.load(str(directory)).signatures
    signature = signatures["serving_default"]
    assert_examples_alike(model, vocab_file, signature, tables, 150)
    with pytest.raises(tf.errors.InvalidArgumentError, match="expected sequences of 150 tokens"):
        assert_examples_alike(model, vocab_file, signature, [rows_of_rome(160)])
    found = signatures["tables"](**text_input(["which city"] * 3, tables))["answers"]
    expected_texts = [loaded.answer(table, "which city").text for table in tables]
    assert [text.decode() for text in found.numpy()] == expected_texts


@pytest.mark.medium
def test_of_a_table_beyond_a_linformers_length_the_rows_are_read_that_fit(linformer):
    model, vocab_file, directory, loaded = linformer
    table = rows_of_rome(160)
    answer = loaded.answer(table, "which city")
    assert answer.coverage.startswith(f"read {160 - answer.rows_dropped} of 160 rows, chosen by")
    assert answer.rows_dropped >= 15
    answer = from_pretrained(directory, drop_rows_to_fit=True).answer(table, "which city")
    assert answer.rows_dropped == 15
    with pytest.raises(ValueError, match="at most 150, the sequence_length of this model, got 200"):
        from_pretrained(directory, max_seq_length=200)
    with pytest.raises(ValueError, match="at most 150, the one length of the model, got 200"):
        Predictor(model, builder_of(vocab_file, 200), fixed_length=150)


@cases(
    "options, longest, message",
    (LINFORMER, 151, "at most 150, the sequence_length of this model, got 151"),
    (LINFORMER, None, "at most 150, the sequence_length of this model, got None"),
    (ABSOLUTE, 201, "at most 200, the position embeddings of this model, got 201"),
)
def test_a_model_is_exported_for_input_that_it_takes(tmp_path, exported, options, longest, message):
    _, vocab_file, _ = exported
    config = FeatureConfig(max_seq_length=longest)
    with pytest.raises(ValueError, match=message):
        export_saved_model(small_model(**options), vocab_file, config, tmp_path / "model")
    larger = write_vocabulary(tmp_path / "vocab.txt", [*WORDS, "more"])
    with pytest.raises(ValueError, match="at most 10 pieces for this model, got 11 in"):
        export_saved_model(small_model(), larger, FeatureConfig(), tmp_path / "model")
    assert not (tmp_path / "model").exists()


@pytest.mark.medium
def test_absolute_positions_are_not_padded_beyond_their_end(tmp_path):
    model = small_model(**ABSOLUTE, bucket_size=8, global_size=16)
    predictor = from_pretrained(export_small(tmp_path / "model", 200, WORDS, model=model))
    assert seen_lengths(predictor, [CAPITALS, rows_of_rome(195)]) == [64, 200]
    assert predictor.answer(rows_of_rome(196), "which city").rows_dropped >= 1


def test_a_model_with_a_histogram_row_is_asked_with_it_and_never_chooses_it(exported):
    _, _, directory = exported
    loaded = from_pretrained(
        directory, max_seq_length=64, histogram_row=True, drop_rows_to_fit=True
    )
    signature = loaded._model
    histograms = []

    def choose_the_histogram(features):
        is_last = features.row_ids == tf.reduce_max(features.row_ids)
        histograms.append(np.asarray(features.input_ids)[np.asarray(is_last)].tolist())
        return dict(signature(features)) | {"token_probabilities": tf.where(is_last, 1.0, 0.1)}

    loaded._model = choose_the_histogram
    for count, has_dropped in ((10, False), (80, True)):
        answer = loaded.answer(rows_of_rome(count), "which city")
        assert (answer.rows_dropped > 0) == has_dropped
        # "rome 10" and "rome 80", of which the vocabulary knows the first word.
        assert histograms.pop() == [WORDS.index("rome"), WORDS.index("[UNK]")]
        assert answer.cells
        assert all(cell.score == pytest.approx(0.1) for cell in answer.cells)


@cases(
    "option, value",
    *(("cell_trim_length", 3), ("max_column_id", 64), ("max_row_id", 100)),
    *((name, True) for name in ("strip_column_names", "use_document_title", "trim_cells")),
    *((name, True) for name in ("use_context_heading", "histogram_row", "prune_columns")),
    ("original_conversion", True),
)
def test_a_model_s_sequences_are_made_as_in_its_training(option, value):
    trained_on = FeatureConfig(**{"max_seq_length": 24, option: value})
    for more in ({}, {"drop_rows_to_fit": True, "label_answer_spans": True}):
        found = serving_features(dataclasses.replace(trained_on, **more), EncoderConfig(), 2048)
        assert found == dataclasses.replace(trained_on, max_seq_length=2048)
