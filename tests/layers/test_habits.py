"""What all layers and models do alike: a table of them, and one procedure for each habit.

Each kind of attention computes in a graph of any length what it computes at once, gives every
weight a gradient, the same where layers are computed again, stays close in bfloat16, and comes
back from a `.keras` file; so do the models of the tasks. training/test_steps.py compiles steps.
"""

import dataclasses
import functools
import subprocess
import sys
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from mate_tf.answers.inference import inference_function
from mate_tf.features.token_features import TAPAS_FEATURES, TokenFeatures
from mate_tf.layers.attention.kinds import MultiViewAttention, SelfAttention
from mate_tf.layers.attention.multi_view import MultiViewEmbedding
from mate_tf.layers.compilation import portable_graph
from mate_tf.layers.encoder import EncoderBlock, TableEncoder
from mate_tf.models import MODELS
from tests import small
from tests.layers.small_layers import (
    ENCODER,
    LENGTH,
    OF_TABLE_ETC,
    attentions,
    hidden_states,
    random_features,
    random_weights,
)
from tests.small import ROOT, cases

SMALL = dataclasses.replace(
    ENCODER,
    hidden_size=8,
    num_heads=2,
    intermediate_size=12,
    hidden_dropout=0.2,
    attention_dropout=0.3,
    initializer_range=0.3,
    position="per_cell",
)
ATTENTIONS = attentions()
ENCODERS = {
    **{name: dataclasses.replace(SMALL, attention=kind) for name, kind in ATTENTIONS.items()},
    "no positions": dataclasses.replace(SMALL, position="none", disabled_features=("row_ids",)),
}
# Other options than by default.
OPTIONS: dict[str, list[dict[str, Any]]] = {
    "table_qa": [{"temperature": 0.5, "max_num_rows": 64}, {"select_one_column": False}],
    "classification": [{"class_names": ("refuted", "entailed")}],
    "span_reading": [{"hidden_size": 6, "num_classes": 2}, {"kind": "boundary"}],
    "masked_lm": [{}, {"next_sentence": False}],
}
FEATURES = random_features(LENGTH)
NAMED = {name: getattr(FEATURES, name).numpy() for name in TAPAS_FEATURES}


def small_encoder(name: str, num_layers: int = 2, dtype: str = "float32") -> TableEncoder:
    """With random weights also where they start at zero, so that each of them counts."""
    keras.utils.set_random_seed(1)
    config = dataclasses.replace(ENCODERS[name], num_layers=num_layers)
    return random_weights(TableEncoder(config, dtype=dtype), size=0.3)


def gradients(
    encoder: TableEncoder, recompute: bool, in_graph: bool = False, **options
) -> list[np.ndarray]:
    """Of a loss by all weights."""
    encoder.recompute = recompute
    for variable in encoder.variables:
        if "seed_generator" in variable.path:
            variable.assign([1234, 0])  # the same dropout each time

    def compute(features):
        with tf.GradientTape() as tape:
            sources = [weight.value for weight in encoder.trainable_weights]
            output = encoder(features, training=True)
            sequence = tf.cast(output.sequence_output, tf.float32)
            loss = tf.reduce_mean(sequence**2 * tf.sin(tf.range(8.0)))
            loss += tf.reduce_mean(tf.cast(output.pooled_output, tf.float32))
        found = tape.gradient(loss, sources)
        return [loss, *(tf.convert_to_tensor(gradient) for gradient in found)]

    if in_graph:
        compute = tf.function(compute, autograph=False, **options)
    return [tensor.numpy() for tensor in compute(FEATURES)]


def assert_same(actual: list[np.ndarray], expected: list[np.ndarray], ulps: int) -> None:
    """To some roundings of the largest gradient: that by the keys' biases is nothing but those."""
    largest = max(float(np.abs(gradient).max()) for gradient in expected[1:])
    tolerance = ulps * float(np.finfo(np.float32).eps) * largest
    for one, other in zip(actual, expected, strict=True):
        assert np.isfinite(other).all() and one.dtype == other.dtype
        np.testing.assert_allclose(one, other, rtol=0, atol=tolerance)


@pytest.mark.parametrize("name", ENCODERS)
def test_every_weight_has_a_gradient_which_is_the_same_bit_for_bit_computed_again(name):
    encoder = small_encoder(name)
    expected = gradients(encoder, recompute=False)
    assert_same(gradients(encoder, recompute=True), expected, ulps=0)
    assert sum(np.abs(gradient).max() > 0 for gradient in expected) >= len(expected) - 2


@pytest.mark.medium
@pytest.mark.parametrize("name", ENCODERS)
def test_a_graph_of_any_length_and_bfloat16_compute_what_a_call_does(name):
    encoder, low = small_encoder(name), small_encoder(name, dtype="mixed_bfloat16")
    run = inference_function(encoder)
    for length in (LENGTH,) if name == "linformer" else (1, 27):
        features = random_features(length)
        with portable_graph():  # without XLA, whose compilation takes seconds
            expected, graph = encoder(features), run(features)
            narrow = low(features, return_intermediates=True)
        assert expected.sequence_output.shape == (2, length, 8)
        assert expected.pooled_output.shape == (2, 8)
        assert {value.dtype for value in narrow.intermediates.values()} == {tf.bfloat16}
        real = features.input_mask.numpy()[..., None]
        # bfloat16 keeps 8 bits: outputs of about 1 of two layers within a few of its steps.
        for found, tolerance in ((graph, 1e-5), (narrow, 0.1)):
            for one, other, where in zip(found[:2], expected[:2], (real, 1.0), strict=True):
                one = tf.cast(one, tf.float32)
                assert np.isfinite(one).all()
                np.testing.assert_allclose(one * where, other * where, atol=tolerance)
    assert {weight.dtype for weight in low.weights} == {"float32"}
    assert {layer.compute_dtype for layer in low._flatten_layers()} == {"bfloat16"}
    assert keras.config.dtype_policy().name == "float32"


@pytest.mark.medium
@cases(
    "name, dtype, xla",
    ("mate", "mixed_bfloat16", False),
    ("table_etc", "float32", False),
    ("tapas", "float32", True),
    pytest.param("mate, views", "float32", True, marks=pytest.mark.slow),
)
def test_gradients_are_the_same_in_a_graph_that_computes_again(name, dtype, xla):
    encoder = small_encoder(name, dtype=dtype)
    options = {"in_graph": True, "jit_compile": xla}
    found = [gradients(encoder, recompute, **options) for recompute in (True, False)]
    # What is computed together, and so rounded once, differs between the two programs.
    assert_same(*found, ulps=2)


@pytest.mark.parametrize("recompute", [True, False])
def test_all_layers_but_the_last_are_computed_anew(monkeypatch, recompute):
    called = []
    call = EncoderBlock.call

    def counted(self, *args, **kwargs):
        called.append(self.name)
        return call(self, *args, **kwargs)

    monkeypatch.setattr(EncoderBlock, "call", counted)
    gradients(small_encoder("tapas", num_layers=3), recompute)
    again = ["layer_1", "layer_0"] if recompute else []
    assert called == ["layer_0", "layer_1", "layer_2", *again]


@pytest.mark.medium
@pytest.mark.parametrize("name", ["mate", "table_etc"])
def test_a_saved_model_computes_exactly_the_same(name, tmp_path):
    module = tf.Module()
    module.encoder = encoder = small_encoder(name, num_layers=1)
    module.run = tf.function(
        lambda *x: encoder(TokenFeatures(*x)).sequence_output,
        input_signature=[tf.TensorSpec([None, None], tf.int32)] * 9,
    )
    expected = module.run(*FEATURES[:9])
    tf.saved_model.save(module, str(tmp_path))
    again = tf.saved_model.load(str(tmp_path))
    np.testing.assert_array_equal(again.run(*FEATURES[:9]), expected)


# --- `.keras` files, loaded without custom objects ---


def inputs() -> dict[str, keras.KerasTensor]:
    return {name: keras.Input([None], dtype="int32", name=name) for name in TAPAS_FEATURES}


def loaded(model: keras.Model, path, batch) -> keras.Model:
    """The model of a file, which computes exactly the same."""
    model.save(path)
    again, expected = keras.saving.load_model(path), model(batch)
    for one, other in zip(
        keras.tree.flatten(again(batch)), keras.tree.flatten(expected), strict=True
    ):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)
    assert max(np.ptp(tf.cast(other, tf.float32)) for other in keras.tree.flatten(expected)) > 0
    return again


OF_FILES = [name for name in ATTENTIONS if "grammar" not in name]  # which needs parts of speech


@pytest.mark.parametrize("name", [*OF_FILES, "as a layer of its own"])
def test_a_functional_model_of_an_attention_comes_back(tmp_path, name):
    options = {"row_heads_ratio": 1.0, "bucket_size": 5, "global_size": 7, "dense_up_to": 30}
    own = functools.partial(MultiViewAttention, 2, 4, **options)
    layer = SelfAttention(2, 4, ATTENTIONS[name]) if name in ATTENTIONS else own()
    num_global = OF_TABLE_ETC["num_global_tokens"] if name.startswith("table_etc") else 0
    values = hidden_states(2, LENGTH + num_global).numpy()
    given, hidden = inputs(), keras.Input(values.shape[1:], name="hidden")
    model = keras.Model({"hidden": hidden, **given}, layer(hidden, given))
    again = loaded(model, tmp_path / "model.keras", {"hidden": values, **NAMED})
    assert again.get_layer(layer.name).get_config() == layer.get_config()


@pytest.mark.parametrize("dtype", ["float32", "mixed_bfloat16"])
@pytest.mark.parametrize(
    ("kind", "options"), [(kind, options) for kind in MODELS for options in OPTIONS[kind]]
)
def test_the_model_of_a_task_comes_back(tmp_path, kind, options, dtype):
    model = MODELS[kind](small.ENCODER, MODELS[kind].config_class(**options), dtype=dtype)
    model.build()
    batch = NAMED | {"input_ids": NAMED["input_ids"] % 14}
    again = loaded(model, tmp_path / "model.keras", batch)
    assert type(again) is MODELS[kind]
    assert again.task_config == model.task_config
    assert again.encoder.config == small.ENCODER
    narrow = dtype.removeprefix("mixed_")
    assert again.encoder.blocks[0].intermediate.compute_dtype == narrow
    assert {output.dtype for output in again(batch).values()} == {tf.float32}


def test_views_come_back(tmp_path):
    embedding, order = keras.Input([LENGTH, 2, 4]), keras.Input([LENGTH], dtype="int32")
    views = MultiViewEmbedding(bucket_size=4, global_size=4)(embedding, order)
    random = np.random.default_rng(0)
    values = random.normal(size=(1, LENGTH, 2, 4)).astype(np.float32)
    batch = [values, random.permutation(LENGTH)[None]]
    again = loaded(keras.Model([embedding, order], [*views]), tmp_path / "model.keras", batch)
    np.testing.assert_array_equal(again(batch)[0], np.swapaxes(values, 1, 2))


@pytest.mark.medium
def test_a_fresh_process_imports_every_class_that_keras_saves_and_no_more(tmp_path):
    given = inputs()
    output = TableEncoder(SMALL)(TokenFeatures(**given))
    model = keras.Model(given, keras.layers.Dense(2)(output.pooled_output))
    model.save(tmp_path / "model.keras")
    np.savez(tmp_path / "features.npz", **NAMED)
    program = (
        "import keras, numpy, sys, mate_tf\n"
        "mate_tf.register_keras_classes()\n"
        "print(*sys.modules)\n"
        "model = keras.saving.load_model(sys.argv[1] + '/model.keras')\n"
        "batch = dict(numpy.load(sys.argv[1] + '/features.npz'))\n"
        "numpy.save(sys.argv[1] + '/output.npy', model(batch))\n"
    )
    command = [sys.executable, "-c", program, str(tmp_path)]
    run = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    np.testing.assert_allclose(np.load(tmp_path / "output.npy"), model(NAMED), rtol=1e-6)
    registering = {
        ".".join(path.relative_to(ROOT).with_suffix("").parts)
        for path in (ROOT / "mate_tf").rglob("*.py")
        if "@keras.saving.register_keras_serializable" in path.read_text(encoding="utf-8")
    }
    assert len(registering) > 5
    assert registering - set(run.stdout.split()) == {"mate_tf.training.optimizer"}


# --- Features of any type ---


@pytest.mark.medium
def test_features_are_any_integers():
    wide = {name: ids.astype(np.int64) for name, ids in NAMED.items()}
    wide["input_ids"] %= 14
    encoder = TableEncoder(small.ENCODER)
    expected = encoder(wide).sequence_output
    # Keras builds and exports models with floats where it does not know better.
    types = np.uint8, np.int16, np.uint16, np.uint32, np.uint64, np.float32
    others = [{name: ids.astype(dtype) for name, ids in wide.items()} for dtype in types]
    masked = wide | {"input_mask": wide["input_mask"].astype(bool)}
    for given in (TokenFeatures(**wide), list(wide.values()), masked, *others):
        np.testing.assert_array_equal(encoder(given).sequence_output, expected)
    for kind, model_class in MODELS.items():
        model = model_class(small.ENCODER)
        outputs = model(others[1])
        for name, output in model(wide).items():
            np.testing.assert_array_equal(output, outputs[name], err_msg=f"{kind} {name}")


def test_features_that_are_no_ids_or_of_another_number_are_refused():
    encoder = TableEncoder(SMALL)
    lacking = {name: ids for name, ids in NAMED.items() if name != "row_ids"}
    too_large = NAMED["input_ids"].astype(np.int64) + 2**32
    for changes, message in (
        ({"row_ids": NAMED["row_ids"].astype(np.complex64)}, "of integers, got row_ids of complex"),
        ({"row_ids": NAMED["row_ids"][:, :1]}, r"one shape, got row_ids of \(.*, 1\) and input_ma"),
        *(
            ({"input_ids": ids}, "expected input_ids from 0 to")
            for ids in (too_large, too_large.astype(np.uint64) + 2**63)
        ),
    ):
        with pytest.raises(ValueError, match=message):
            encoder(NAMED | changes)
    for call in (encoder, TokenFeatures.of):
        with pytest.raises(ValueError, match=r"missing \['row_ids'\]"):
            call(lacking)
    with pytest.raises(ValueError, match="expected 9 or 10 token features, got 8"):
        TokenFeatures.of([*NAMED.values()][:8])
