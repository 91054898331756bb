"""Activations that are computed a second time: the same, and the same gradients."""

import dataclasses
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from mate_tf.config import AttentionConfig
from mate_tf.layers import basic
from mate_tf.layers.attention import kinds
from mate_tf.layers.basic import Dropout
from mate_tf.layers.encoder import EncoderBlock, TableEncoder
from mate_tf.presets import with_architecture
from tests.layers.small_layers import ENCODER, random_features, random_weights
from tests.small import cases

LENGTH = 20
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
# The presets at small sizes, those of the same attention once, and what no preset has.
PRESETS = (
    "tapas mate mate_exact sat linformer_128 table_etc grammar_hard grammar_soft tableformer_pcp "
    "mate_tableformer mate_neighbours"
)
SIZES: dict[str, Any] = dict(bucket_size=4, global_size=6)
OF_TABLE_ETC: dict[str, Any] = dict(num_global_tokens=16, local_radius=4, max_relative_distance=3)
OPTIONS: dict[str, dict[str, Any]] = {
    **dict.fromkeys(("mate", "mate_exact", "mate_tableformer", "mate_neighbours"), SIZES),
    "linformer_128": dict(sequence_length=LENGTH, projected_length=5),
    "table_etc": OF_TABLE_ETC,
}
ATTENTIONS = {
    **{
        name: dataclasses.replace(with_architecture(SMALL, name).attention, **OPTIONS.get(name, {}))
        for name in PRESETS.split()
    },
    "mate by all pairs": AttentionConfig("mate", "dense", **SIZES),
    "table_etc by all pairs": AttentionConfig("table_etc", "dense", **OF_TABLE_ETC),
    "mate_tableformer in a window": AttentionConfig("mate_tableformer", **SIZES),
    "relations by embedding": AttentionConfig("tableformer", relation_kind="embedding"),
    "grammar": AttentionConfig("grammar_soft"),
}


def small_encoder(attention: AttentionConfig, num_layers: int = 2, **kwargs) -> TableEncoder:
    """With random weights also where they start at zero, so that each of them counts."""
    keras.utils.set_random_seed(1)
    config = dataclasses.replace(SMALL, attention=attention, num_layers=num_layers)
    return random_weights(TableEncoder(config, **kwargs), size=0.3)


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
    return [tensor.numpy() for tensor in compute(random_features(LENGTH))]


def assert_same(actual: list[np.ndarray], expected: list[np.ndarray], ulps: int) -> None:
    """To some roundings of the largest gradient: that by the keys' biases is nothing but those."""
    largest = max(float(np.abs(gradient).max()) for gradient in expected[1:])
    tolerance = ulps * float(np.finfo(np.float32).eps) * largest
    for one, other in zip(actual, expected, strict=True):
        assert np.isfinite(other).all() and one.dtype == other.dtype
        np.testing.assert_allclose(one, other, rtol=0, atol=tolerance)


@pytest.mark.parametrize("name", ATTENTIONS)
def test_gradients_are_the_same_bit_for_bit_dropout_included(name):
    encoder = small_encoder(ATTENTIONS[name])
    expected = gradients(encoder, recompute=False)
    assert_same(gradients(encoder, recompute=True), expected, ulps=0)
    assert sum(np.abs(gradient).max() > 0 for gradient in expected) >= len(expected) - 2


@pytest.mark.medium
@cases(
    "name, dtype, xla",
    ("mate", "mixed_bfloat16", False),
    ("table_etc", "float32", False),
    ("tapas", "float32", True),
)
def test_gradients_are_the_same_in_a_graph(name, dtype, xla):
    encoder = small_encoder(ATTENTIONS[name], dtype=dtype)
    options = {"in_graph": True, "jit_compile": xla}
    found = [gradients(encoder, recompute, **options) for recompute in (True, False)]
    # What is computed together, and so rounded once, differs between the two programs.
    assert_same(*found, ulps=2)


@pytest.mark.medium
@pytest.mark.parametrize("name", ["tapas", pytest.param("mate", marks=pytest.mark.slow)])
def test_xla_computes_attention_again_with_the_same_gradients(name, monkeypatch):
    encoder = small_encoder(ATTENTIONS[name])
    options = {"recompute": False, "in_graph": True, "jit_compile": True}
    found = gradients(encoder, **options)
    for module in (basic, kinds):  # and the masks of all dropout
        monkeypatch.setattr(module, "compiles_with_xla", lambda: False)
    assert_same(found, gradients(encoder, **options), ulps=2)


def test_another_mask_the_second_time_would_be_noticed(monkeypatch):
    drop = Dropout.call
    monkeypatch.setattr(
        Dropout,
        "call",
        lambda self, inputs, training=False, seed=None: drop(self, inputs, training),
    )
    encoder = small_encoder(ATTENTIONS["tapas"])
    found = [gradients(encoder, recompute) for recompute in (True, False)]
    with pytest.raises(AssertionError, match="Not equal"):
        assert_same(*found, ulps=10**5)


@pytest.mark.parametrize("recompute", [True, False])
def test_all_layers_but_the_last_are_computed_anew(monkeypatch, recompute):
    called = []
    call = EncoderBlock.call

    def counted(self, *args, **kwargs):
        called.append(self.name)
        return call(self, *args, **kwargs)

    monkeypatch.setattr(EncoderBlock, "call", counted)
    gradients(small_encoder(ATTENTIONS["tapas"], num_layers=3), recompute)
    again = ["layer_1", "layer_0"] if recompute else []
    assert called == ["layer_0", "layer_1", "layer_2", *again]
