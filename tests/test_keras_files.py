"""Models of our layers in `.keras` files: saved, and loaded again without custom objects."""

import subprocess
import sys
from typing import Any

import keras
import numpy as np
import pytest

from mate_tf.config import AttentionConfig
from mate_tf.features.token_features import TAPAS_FEATURES, TokenFeatures
from mate_tf.layers.attention.dense import DenseAttention
from mate_tf.layers.attention.linformer import LinformerAttention
from mate_tf.layers.attention.multi_view import MultiViewAttention
from mate_tf.layers.attention.tiles import TiledAttention
from mate_tf.layers.attention.views import MultiViewEmbedding
from mate_tf.layers.encoder import TableEncoder
from mate_tf.tasks import TASKS
from tests.small import ENCODER, ROOT

MODELS = {name: task.model_class for name, task in TASKS.items()}
# Other options than by default.
OPTIONS: dict[str, list[dict[str, Any]]] = {
    "table_qa": [{"temperature": 0.5, "max_num_rows": 64}, {"select_one_column": False}],
    "classification": [{"class_names": ("refuted", "entailed"), "label_weights": (0.5, 2.0)}],
    "span_reading": [{"hidden_size": 6, "num_classes": 2}, {"kind": "boundary"}],
    "masked_lm": [{}, {"next_sentence": False}],
}

LENGTH = 24
LAYERS = {
    "dense": lambda: DenseAttention(num_heads=2, head_size=4),
    "multi-view": lambda: MultiViewAttention(
        num_heads=2, head_size=4, bucket_size=4, global_size=4
    ),
    "full coverage": lambda: TiledAttention(num_heads=2, head_size=4),
    "linformer": lambda: LinformerAttention(
        num_heads=2,
        head_size=4,
        attention=AttentionConfig("linformer", sequence_length=LENGTH, projected_length=4),
    ),
}


def features() -> dict[str, np.ndarray]:
    """Four tokens of a question, cells of two tokens in two columns."""
    cell = np.maximum(np.arange(LENGTH) - 4, -1) // 2
    fields = {
        "input_ids": np.arange(LENGTH) % 14,
        "input_mask": np.ones(LENGTH),
        "segment_ids": cell >= 0,
        "column_ids": np.where(cell >= 0, cell % 2 + 1, 0),
        "row_ids": np.where(cell >= 0, cell // 2, 0),
    }
    return {
        name: np.asarray(fields.get(name, np.zeros(LENGTH)), np.int32)[None]
        for name in TAPAS_FEATURES
    }


def inputs() -> dict[str, keras.KerasTensor]:
    return {name: keras.Input([None], dtype="int32", name=name) for name in TAPAS_FEATURES}


def encoder_model(as_tuple: bool = False, dtype: str = "float32") -> keras.Model:
    given = inputs()
    encoder = TableEncoder(ENCODER, dtype=dtype)
    output = encoder(TokenFeatures(**given) if as_tuple else given)
    return keras.Model(given, keras.layers.Dense(2)(output.pooled_output))


def loaded(model: keras.Model, path) -> keras.Model:
    model.save(path)
    return keras.saving.load_model(path)


@pytest.mark.parametrize("as_tuple", [False, True])
def test_a_functional_model_of_the_encoder_comes_back(tmp_path, as_tuple):
    model = encoder_model(as_tuple)
    again = loaded(model, tmp_path / "model.keras")
    expected = model(features())
    assert np.ptp(expected) > 0
    np.testing.assert_array_equal(again(features()), expected)
    assert any(isinstance(layer, TableEncoder) for layer in again.layers)


def test_a_dtype_comes_back(tmp_path):
    model = encoder_model(dtype="mixed_bfloat16")
    again = loaded(model, tmp_path / "model.keras")
    np.testing.assert_array_equal(again(features()), model(features()))
    layers = {layer.name: layer.compute_dtype for layer in again._flatten_layers()}
    assert layers["encoder"] == layers["layer_0"] == layers["pooler"] == "bfloat16"


@pytest.mark.parametrize("kind", LAYERS)
def test_a_functional_model_of_an_attention_comes_back(tmp_path, kind):
    given = inputs()
    hidden = keras.Input([LENGTH, 8], name="hidden")
    model = keras.Model({"hidden": hidden, **given}, LAYERS[kind]()(hidden, given))
    values = np.random.default_rng(0).normal(size=(1, LENGTH, 8)).astype(np.float32)
    batch = {"hidden": values, **features()}
    again = loaded(model, tmp_path / "model.keras")
    np.testing.assert_array_equal(again(batch), model(batch))


def test_an_attention_of_a_former_version_comes_back():
    config = LAYERS["multi-view"]().get_config()
    again = MultiViewAttention.from_config(config | AttentionConfig.FORMER_FIELDS)
    assert again.get_config() == config
    with pytest.raises(ValueError, match=r"False for attention\.scale_relations, .* got True"):
        MultiViewAttention.from_config(config | {"scale_relations": True})


@pytest.mark.parametrize("dtype", ["float32", "mixed_bfloat16"])
@pytest.mark.parametrize(
    ("kind", "options"), [(kind, options) for kind in MODELS for options in OPTIONS[kind]]
)
def test_the_model_of_a_task_comes_back(tmp_path, kind, options, dtype):
    model = MODELS[kind](ENCODER, TASKS[kind].config_class(**options), dtype=dtype)
    model.build()
    expected = model(features())
    again = loaded(model, tmp_path / "model.keras")
    assert type(again) is MODELS[kind]
    assert again.task_config == model.task_config
    narrow = dtype.removeprefix("mixed_")
    assert again.encoder.blocks[0].intermediate.compute_dtype == narrow
    for name, output in again(features()).items():
        assert output.dtype == "float32", name
        np.testing.assert_array_equal(output, expected[name], err_msg=name)


def test_a_fresh_process_imports_the_layers_and_no_more(tmp_path):
    model = encoder_model()
    model.save(tmp_path / "model.keras")
    np.savez(tmp_path / "features.npz", **features())
    program = (
        "import keras, numpy, sys, mate_tf\n"
        "mate_tf.register_keras_classes()\n"
        "model = keras.saving.load_model(sys.argv[1] + '/model.keras')\n"
        "batch = dict(numpy.load(sys.argv[1] + '/features.npz'))\n"
        "numpy.save(sys.argv[1] + '/output.npy', model(batch))\n"
    )
    subprocess.run([sys.executable, "-c", program, str(tmp_path)], cwd=ROOT, check=True)
    np.testing.assert_allclose(np.load(tmp_path / "output.npy"), model(features()), rtol=1e-6)


def test_views_in_a_functional_model_come_back(tmp_path):
    embedding, order = keras.Input([LENGTH, 2, 4]), keras.Input([LENGTH], dtype="int32")
    views = MultiViewEmbedding(bucket_size=4, global_size=4)(embedding, order)
    model = keras.Model([embedding, order], [*views])
    random = np.random.default_rng(0)
    values = random.normal(size=(1, LENGTH, 2, 4)).astype(np.float32)
    batch = [values, random.permutation(LENGTH)[None]]
    again = loaded(model, tmp_path / "model.keras")
    for actual, expected in zip(again(batch), model(batch), strict=True):
        np.testing.assert_array_equal(actual, expected)
    np.testing.assert_array_equal(again(batch)[0], np.swapaxes(values, 1, 2))


def test_features_are_any_integers():
    wide = {name: ids.astype(np.int64) for name, ids in features().items()}
    encoder = TableEncoder(ENCODER)
    expected = encoder(features()).sequence_output
    kinds = np.uint8, np.int16, np.uint16, np.uint32, np.uint64
    others = [{name: ids.astype(kind) for name, ids in wide.items()} for kind in kinds]
    masked = wide | {"input_mask": wide["input_mask"].astype(bool)}
    assert max(ids.max() for ids in wide.values()) < 256
    for given in (wide, TokenFeatures(**wide), list(wide.values()), masked, *others):
        np.testing.assert_array_equal(encoder(given).sequence_output, expected)
    for kind, model_class in MODELS.items():
        model = model_class(ENCODER)
        outputs = model(features())
        for name, output in model(wide).items():
            np.testing.assert_array_equal(output, outputs[name], err_msg=f"{kind} {name}")


def test_features_that_are_no_ids_are_refused():
    encoder = TableEncoder(ENCODER)
    for values in features()["row_ids"].astype(np.float32), features()["row_ids"] + 0.5:
        with pytest.raises(ValueError, match=r"of integers, got row_ids of float.* dtype='int32'"):
            encoder(features() | {"row_ids": values})
    undeclared = {name: keras.Input([None], name=name) for name in TAPAS_FEATURES}
    with pytest.raises(ValueError, match="of integers, got input_ids of float32"):
        encoder(undeclared)
    too_large = features()["input_ids"].astype(np.int64) + 2**32
    for ids in too_large, too_large.astype(np.uint64), too_large.astype(np.uint64) + 2**63:
        with pytest.raises(ValueError, match="expected input_ids from 0 to"):
            encoder(features() | {"input_ids": ids})


def test_features_of_another_number_are_refused():
    values = list(features().values())
    with pytest.raises(ValueError, match="expected 9 or 10 token features, got 8"):
        TokenFeatures.of(values[:8])
    with pytest.raises(ValueError, match=r"missing \['row_ids'\]"):
        TokenFeatures.of({name: 0 for name in TAPAS_FEATURES if name != "row_ids"})


def test_every_class_that_keras_saves_is_imported():
    """Each registration but the optimizer's is of a module that is imported."""
    program = "import mate_tf, sys; mate_tf.register_keras_classes(); print(*sys.modules)"
    run = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, check=True, capture_output=True, text=True
    )
    registering = {
        ".".join(path.relative_to(ROOT).with_suffix("").parts)
        for path in (ROOT / "mate_tf").rglob("*.py")
        if "@keras.saving.register_keras_serializable" in path.read_text(encoding="utf-8")
    }
    assert len(registering) > 5
    assert registering - set(run.stdout.split()) == {"mate_tf.training.optimizer"}
