"""Models of our layers in `.keras` files: saved, and loaded again without custom objects."""

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import pytest

from mate_tf.config import AttentionConfig
from mate_tf.features.token_features import TAPAS_FEATURES, TokenFeatures
from mate_tf.layers.attention.kinds import MultiViewAttention, SelfAttention
from mate_tf.layers.attention.multi_view import MultiViewEmbedding
from mate_tf.layers.encoder import TableEncoder
from mate_tf.models import MODELS
from tests.layers.small_layers import QUESTION, cells, features_of, hidden_states
from tests.small import ENCODER, ROOT

# Other options than by default.
OPTIONS: dict[str, list[dict[str, Any]]] = {
    "table_qa": [{"temperature": 0.5, "max_num_rows": 64}, {"select_one_column": False}],
    "classification": [{"class_names": ("refuted", "entailed")}],
    "span_reading": [{"hidden_size": 6, "num_classes": 2}, {"kind": "boundary"}],
    "masked_lm": [{}, {"next_sentence": False}],
}

LENGTH = 24
NUM_GLOBAL = 12
LAYERS: dict[str, Callable[[], keras.layers.Layer]] = {
    "dense": lambda: SelfAttention(2, 4, AttentionConfig("sat")),
    "multi-view": lambda: MultiViewAttention(
        2, 4, row_heads_ratio=1.0, bucket_size=5, global_size=7, dense_up_to=30
    ),
    "full coverage": lambda: SelfAttention(2, 4, AttentionConfig(bucket_size=4, coverage=1.0)),
    "linformer": lambda: SelfAttention(
        2, 4, AttentionConfig("linformer", sequence_length=LENGTH, projected_length=4)
    ),
    "table_etc": lambda: SelfAttention(
        2, 4, AttentionConfig("table_etc", num_global_tokens=NUM_GLOBAL, local_radius=4)
    ),
}


def features() -> dict[str, np.ndarray]:
    """Four tokens of a question, cells of two tokens in two columns."""
    tokens = features_of([[QUESTION] * 4 + cells(5, 2, size=2)], LENGTH)
    named = {name: getattr(tokens, name).numpy() for name in TAPAS_FEATURES}
    return named | {"input_ids": np.arange(LENGTH, dtype=np.int32)[None] % 14}


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


@pytest.mark.medium
@pytest.mark.parametrize(("as_tuple", "dtype"), [(False, "float32"), (True, "mixed_bfloat16")])
def test_a_functional_model_of_the_encoder_comes_back(tmp_path, as_tuple, dtype):
    model = encoder_model(as_tuple, dtype)
    again = loaded(model, tmp_path / "model.keras")
    expected = model(features())
    assert np.ptp(expected) > 0
    np.testing.assert_array_equal(again(features()), expected)
    assert any(isinstance(layer, TableEncoder) for layer in again.layers)
    layers = {layer.name: layer.compute_dtype for layer in again._flatten_layers()}
    narrow = dtype.removeprefix("mixed_")
    assert layers["encoder"] == layers["layer_0"] == layers["pooler"] == narrow


@pytest.mark.parametrize("kind", LAYERS)
def test_a_functional_model_of_an_attention_comes_back(tmp_path, kind):
    given, layer = inputs(), LAYERS[kind]()
    values = hidden_states(1, LENGTH + NUM_GLOBAL * (kind == "table_etc")).numpy()
    hidden = keras.Input(values.shape[1:], name="hidden")
    model = keras.Model({"hidden": hidden, **given}, layer(hidden, given))
    batch = {"hidden": values, **features()}
    again = loaded(model, tmp_path / "model.keras")
    np.testing.assert_array_equal(again(batch), model(batch))
    assert again.get_layer(layer.name).get_config() == layer.get_config()


@pytest.mark.parametrize("dtype", ["float32", "mixed_bfloat16"])
@pytest.mark.parametrize(
    ("kind", "options"), [(kind, options) for kind in MODELS for options in OPTIONS[kind]]
)
def test_the_model_of_a_task_comes_back(tmp_path, kind, options, dtype):
    model = MODELS[kind](ENCODER, MODELS[kind].config_class(**options), dtype=dtype)
    model.build()
    expected = model(features())
    again = loaded(model, tmp_path / "model.keras")
    assert type(again) is MODELS[kind]
    assert again.task_config == model.task_config
    assert again.encoder.config == ENCODER
    narrow = dtype.removeprefix("mixed_")
    assert again.encoder.blocks[0].intermediate.compute_dtype == narrow
    for name, output in again(features()).items():
        assert output.dtype == "float32", name
        np.testing.assert_array_equal(output, expected[name], err_msg=name)


@pytest.mark.medium
def test_a_fresh_process_imports_every_class_that_keras_saves_and_no_more(tmp_path):
    model = encoder_model()
    model.save(tmp_path / "model.keras")
    np.savez(tmp_path / "features.npz", **features())
    program = (
        "import keras, numpy, sys, mate_tf\n"
        "mate_tf.register_keras_classes()\n"
        "print(*sys.modules)\n"
        "model = keras.saving.load_model(sys.argv[1] + '/model.keras')\n"
        "batch = dict(numpy.load(sys.argv[1] + '/features.npz'))\n"
        "numpy.save(sys.argv[1] + '/output.npy', model(batch))\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path)],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    np.testing.assert_allclose(np.load(tmp_path / "output.npy"), model(features()), rtol=1e-6)
    registering = {
        ".".join(path.relative_to(ROOT).with_suffix("").parts)
        for path in (ROOT / "mate_tf").rglob("*.py")
        if "@keras.saving.register_keras_serializable" in path.read_text(encoding="utf-8")
    }
    assert len(registering) > 5
    assert registering - set(run.stdout.split()) == {"mate_tf.training.optimizer"}


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


@pytest.mark.medium
def test_features_are_any_integers():
    wide = {name: ids.astype(np.int64) for name, ids in features().items()}
    encoder = TableEncoder(ENCODER)
    expected = encoder(features()).sequence_output
    # Keras builds and exports models with floats where it does not know better.
    kinds = np.uint8, np.int16, np.uint16, np.uint32, np.uint64, np.float32
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


def test_features_that_are_no_ids_or_of_another_number_are_refused():
    encoder = TableEncoder(ENCODER)
    with pytest.raises(ValueError, match="of integers, got row_ids of complex64"):
        encoder(features() | {"row_ids": features()["row_ids"].astype(np.complex64)})
    with pytest.raises(ValueError, match=r"of one shape, got row_ids of \(.*, 1\) and input_mask"):
        encoder(features() | {"row_ids": features()["row_ids"][:, :1]})
    with pytest.raises(ValueError, match=r"missing \['row_ids'\]"):
        encoder({name: ids for name, ids in features().items() if name != "row_ids"})
    too_large = features()["input_ids"].astype(np.int64) + 2**32
    for ids in too_large, too_large.astype(np.uint64), too_large.astype(np.uint64) + 2**63:
        with pytest.raises(ValueError, match="expected input_ids from 0 to"):
            encoder(features() | {"input_ids": ids})
    values = list(features().values())
    with pytest.raises(ValueError, match="expected 9 or 10 token features, got 8"):
        TokenFeatures.of(values[:8])
    with pytest.raises(ValueError, match=r"missing \['row_ids'\]"):
        TokenFeatures.of({name: 0 for name in TAPAS_FEATURES if name != "row_ids"})
