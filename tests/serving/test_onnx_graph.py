"""The graph for ONNX Runtime against the Keras model, and what is said where there is none."""

import dataclasses
import json

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

from mate_tf import from_pretrained
from mate_tf.answers.onnx_runtime import GRAPH_FILE, WEIGHTS_FILE, OnnxModel
from mate_tf.config import AttentionConfig, EncoderConfig
from mate_tf.features.token_features import TokenFeatures
from mate_tf.serving.export import export_onnx, export_stored
from mate_tf.serving.onnx_graph import make_graph, why_no_graph, write_graph
from mate_tf.serving.stored import find_model, run_model
from mate_tf.tables.operators import OPERATORS
from mate_tf.tables.table import Table
from mate_tf.task_configs import ClassificationConfig, TableQAConfig
from mate_tf.weights.folder import DEFAULT_MODEL
from tests.small import ROOT, cases, write_run

pytest.importorskip("onnx", reason="onnx is not installed")
ENCODER = EncoderConfig(
    vocab_size=20,
    hidden_size=24,
    num_layers=2,
    num_heads=6,
    intermediate_size=32,
    max_position_embeddings=64,
    type_vocab_sizes=(3, 5, 5, 2, 5, 5, 10),
)
WINDOW = dict(bucket_size=3, global_size=4)
# Attention, and options of the encoder and of the task, that differ from the defaults.
MODELS = {
    "window": (WINDOW, {}, {}),
    "wide_window": (dict(bucket_size=8, global_size=40), dict(softmax_temperature=2.0), {}),
    "dense_window": (dict(evaluator="dense", **WINDOW), {}, {}),
    "no_window": (dict(evaluator="dense", bucket_size=0), dict(activation="gelu"), {}),
    "full": (dict(coverage=1.0), {}, dict(operators=tuple(OPERATORS), temperature=0.1)),
    "rows_alone": (dict(coverage=1.0, row_heads_ratio=1.0), {}, dict(max_num_columns=3)),
    "uneven": (dict(row_heads_ratio=0.4, **WINDOW), {}, dict(max_num_rows=2)),
    "neighbours": (dict(architecture="mate_neighbours", **WINDOW), {}, {}),
    "full_neighbours": (dict(architecture="mate_neighbours", coverage=1.0), {}, {}),
    "sat": (dict(architecture="sat"), dict(position="none"), dict(operators=())),
    "tapas": (
        dict(architecture="tapas"),
        dict(original_ids=True, disabled_features=("row_ids", "column_ranks")),
        dict(allow_empty_column_selection=True),
    ),
    "absolute": (dict(architecture="tapas"), dict(position="absolute"), {}),
    "one_cell": (
        dict(architecture="tapas"),
        {},
        dict(select_one_column=False, operators=(), cell_cross_entropy=True),
    ),
    "any_cell": (dict(coverage=1.0), {}, dict(select_one_column=False)),
}


@pytest.fixture(scope="module", params=MODELS)
def models(request, tmp_path_factory):
    """A Keras model with random weights, and the same by ONNX Runtime."""
    import keras

    from mate_tf.models import make_model
    from mate_tf.weights.run import packed, weights_by_path

    attention, changes, options = MODELS[request.param]
    encoder = dataclasses.replace(ENCODER, attention=AttentionConfig(**attention), **changes)
    task = TableQAConfig(**options)
    keras.utils.set_random_seed(1)
    model = make_model(encoder, task)
    draws = np.random.default_rng(1)
    for weight in model.weights:
        weight.assign(weight + draws.normal(0.0, 0.3, weight.shape))
    values = {name: np.asarray(weight) for name, weight in weights_by_path(model).items()}
    folder = tmp_path_factory.mktemp("model")
    (folder / WEIGHTS_FILE).write_bytes(packed(values, 0, exactly=True))
    graph = make_graph(encoder, task, folder / WEIGHTS_FILE)
    (folder / GRAPH_FILE).write_bytes(graph.SerializeToString())
    return model, OnnxModel(folder, encoder, task)


@st.composite
def sequences(draw) -> TokenFeatures:
    """The features of one or two questions with tables of up to 64 tokens, padded: [B, S]."""
    examples = []
    for _ in range(draw(st.integers(1, 2))):
        question, columns = draw(st.integers(1, 9)), draw(st.integers(1, 6))
        cells = draw(st.lists(st.integers(0, 3), min_size=columns, max_size=20))
        cell = np.repeat(np.arange(len(cells)), cells)[: 64 - question]
        rows, columns = (np.append([0] * question, it) for it in np.divmod(cell, columns))
        columns[question:] += 1
        seed = draw(st.integers(0, 1000))
        ids = np.random.default_rng(seed).integers(0, 20, (len(TokenFeatures._fields), len(rows)))
        features = TokenFeatures(*ids)._replace(
            input_mask=np.ones_like(rows),
            segment_ids=np.arange(len(rows)) >= question,
            row_ids=rows,
            column_ids=columns,
        )
        examples.append(features)
    size = max(len(one.row_ids) for one in examples) + draw(st.sampled_from([0, 0, 5]))
    size = min(size, 64)
    return TokenFeatures(
        *(
            np.stack([np.pad(it, (0, size - len(it))) for it in of_examples]).astype(np.int32)
            for of_examples in zip(*examples, strict=True)
        )
    )


@pytest.mark.medium
@hypothesis.given(features=sequences())
@hypothesis.settings(max_examples=8)
def test_computes_what_keras_does(models, features):
    model, by_onnx = models
    found, expected = by_onnx(features), model(features)
    assert found.keys() == expected.keys() - {"selection_logits"}
    for name, values in found.items():
        wanted = np.asarray(expected[name])
        if name in ("token_logits", "row_scores"):  # those of padding are nobody's
            wanted = wanted * features.input_mask
        assert values.dtype == np.float32
        np.testing.assert_allclose(values, wanted, rtol=1e-4, atol=1e-4, err_msg=name)
    chosen, of_keras = (it["token_probabilities"] > 0 for it in (found, expected))
    np.testing.assert_array_equal(chosen, of_keras)


@pytest.fixture(scope="module")
def predictors():
    """The default model by ONNX Runtime and by TensorFlow."""
    return from_pretrained(), from_pretrained(runtime="tensorflow")


def asked_about_the_house() -> list[tuple[Table, str]]:
    path = ROOT / "experiments" / "demo_data" / "trust" / "answerable.jsonl"
    records = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    return [
        (Table.from_rows([it["table"]["header"], *it["table"]["rows"]]), it["question"])
        for it in records
    ]


@pytest.mark.medium
def test_the_default_model_answers_alike(predictors):
    asked = asked_about_the_house()
    assert len(asked) == 150
    for table, question in asked:
        found, expected = (predictor.answer(table, question) for predictor in predictors)
        assert found.score == pytest.approx(expected.score, abs=1e-4)
        scores = dict(score=0.0, absence=0.0, cells=())
        assert dataclasses.replace(found, **scores) == dataclasses.replace(expected, **scores)
        assert [it[:2] for it in map(dataclasses.astuple, found.cells)] == [
            it[:2] for it in map(dataclasses.astuple, expected.cells)
        ]


def test_a_follow_up_and_alternatives_are_alike(predictors):
    table = ROOT / "experiments" / "demo_data" / "moon_landings.csv"
    for predictor in predictors:
        first = predictor.answer(table, "which missions flew in 1969?")
        assert first.text == "Apollo 11, Apollo 12"
        assert predictor.answer(table, "who commanded them?", first).rows == (0, 1)
    answers = [
        from_pretrained(num_alternatives=3, runtime=runtime).answer(table, "who flew first?")
        for runtime in ("onnx", "tensorflow")
    ]
    texts = [[it.text for it in one.alternatives] for one in answers]
    assert texts[0] == texts[1]
    assert len(texts[0]) == 3


def test_the_graph_that_ships_is_the_one_that_is_made():
    import onnx

    stored = run_model(DEFAULT_MODEL)
    made = make_graph(stored.encoder_config, stored.task_config, DEFAULT_MODEL / WEIGHTS_FILE)
    onnx.checker.check_model(DEFAULT_MODEL / GRAPH_FILE)
    shipped = onnx.load(DEFAULT_MODEL / GRAPH_FILE, load_external_data=False)
    assert shipped == made
    assert (DEFAULT_MODEL / GRAPH_FILE).stat().st_size < 70_000


@pytest.fixture
def folder(tmp_path):
    """Weights alone with their graph, of a small model."""
    from mate_tf.weights.run import export_weights

    run = write_run(tmp_path / "run")
    weights = export_weights(run, tmp_path / "weights")
    write_graph(weights.parent)
    return weights.parent


def test_a_folder_with_a_graph_and_without_answers_alike(folder):
    table = Table.from_rows([["a", "b"], ["c", "d"], ["e", "f"]])
    assert from_pretrained(folder, runtime="onnx").answer(table, "a c").cells
    (folder / GRAPH_FILE).unlink()
    assert from_pretrained(folder).answer(table, "a c").cells
    with pytest.raises(ValueError, match=r"got no model\.onnx in"):
        from_pretrained(folder, runtime="onnx")


def test_an_exported_model_and_a_run_answer_by_their_graphs(tmp_path):
    from mate_tf.weights.run import write_best

    run = write_run(tmp_path / "run")
    write_best(run, find_model(run).model(), 2)
    write_graph(run)
    export_stored(find_model(run), tmp_path / "exported")
    table = Table.from_rows([["a", "b"], ["c", "d"], ["e", "f"]])
    texts = {
        from_pretrained(folder, runtime=runtime).answer(table, "a c").text
        for folder in (run, tmp_path / "exported")
        for runtime in ("onnx", "tensorflow")
    }
    assert len(texts) == 1


def test_a_single_file_has_the_weights_in_it(tmp_path):
    import onnx
    import onnxruntime

    stored = find_model(write_run(tmp_path / "run"))
    export_onnx(stored, tmp_path / "onnx", single_file=True)
    names = {file.name for file in (tmp_path / "onnx").iterdir()}
    assert names == {"config.json", "conversion.json", "vocab.txt", GRAPH_FILE}
    path = tmp_path / "onnx" / GRAPH_FILE
    onnx.checker.check_model(path, full_check=True)
    assert onnxruntime.InferenceSession(path).get_outputs()[0].name == "token_scores"


@cases(
    "name, change, error",
    (WEIGHTS_FILE, lambda file: file.unlink(), FileNotFoundError),
    (WEIGHTS_FILE, lambda file: file.write_bytes(file.read_bytes()[:-64]), ValueError),
    (WEIGHTS_FILE, lambda file: file.write_bytes(file.read_bytes() + b"0"), ValueError),
    (GRAPH_FILE, lambda file: file.write_bytes(b"no graph"), ValueError),
    (GRAPH_FILE, lambda file: file.write_bytes(file.read_bytes()[:2000]), ValueError),
)
def test_weights_or_a_graph_that_do_not_fit_are_named(folder, name, change, error):
    encoder, task = dataclasses.replace(ENCODER), TableQAConfig()
    change(folder / name)
    with pytest.raises(error, match="expected") as raised:
        OnnxModel(folder, encoder, task)
    assert str(folder / name) in str(raised.value)


def test_weights_of_another_layout_are_refused(folder):
    weights = folder / WEIGHTS_FILE
    weights.write_bytes(weights.read_bytes().replace(b"encoder/", b"encoded/"))
    with pytest.raises(ValueError, match="other weights or another size"):
        OnnxModel(folder, ENCODER, TableQAConfig())


@cases(
    "options, reason",
    (dict(runtime="jax"), "expected a runtime of onnx, tensorflow, got 'jax'"),
    (dict(runtime="onnx", dtype="mixed_bfloat16"), "got dtype 'mixed_bfloat16'"),
    (dict(runtime="onnx", architecture="sat"), "got architecture 'sat'"),
)
def test_a_runtime_that_cannot_be_is_refused(options, reason):
    with pytest.raises(ValueError, match=reason):
        from_pretrained(**options)


@cases(
    "attention, task, reason",
    (dict(architecture="tableformer"), TableQAConfig(), "attention is tableformer, not one of"),
    (dict(original_bucketing=True), TableQAConfig(), "original_bucketing"),
    ({}, TableQAConfig(count_padding=True), "count_padding"),
    ({}, ClassificationConfig(), "only a model for table questions"),
)
def test_models_without_a_graph_say_why(attention, task, reason):
    encoder = dataclasses.replace(ENCODER, attention=AttentionConfig(**attention))
    assert reason in why_no_graph(encoder, task)
