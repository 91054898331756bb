"""The inference function against the model itself, and what TensorFlow makes of its graph."""

import collections
import dataclasses
import os
import re

import keras
import numpy as np
import pytest
import tensorflow as tf

from mate_tf.answers.inference import inference_function
from mate_tf.config import AttentionConfig, EncoderConfig
from mate_tf.features.token_features import TokenFeatures
from mate_tf.layers import compilation
from mate_tf.layers.encoder import EncoderBlock, TableEncoder
from tests.layers.small_layers import token_features

SMALL = EncoderConfig(
    vocab_size=50,
    hidden_size=64,
    num_layers=1,
    num_heads=2,
    intermediate_size=128,
    initializer_range=0.3,
    attention=AttentionConfig("mate", bucket_size=8, global_size=6, dense_up_to=20),
)


def features(length: int) -> TokenFeatures:
    """A question of five tokens and a table of three columns, with parts of speech."""
    cell, in_table = np.maximum(np.arange(length) - 5, 0), np.arange(length) >= 5
    return token_features(
        input_ids=np.arange(length) % 50,
        input_mask=np.ones(length),
        segment_ids=in_table,
        column_ids=np.where(in_table, cell % 3 + 1, 0),
        row_ids=np.where(in_table, cell // 3, 0),
        part_of_speech_ids=np.zeros(length),
    )


def built(policy: str, config: EncoderConfig = SMALL) -> TableEncoder:
    keras.utils.set_random_seed(1)
    encoder = TableEncoder(config, dtype=policy)
    encoder.build()
    return encoder


POLICIES = ["float32", "mixed_bfloat16", "bfloat16"]


@pytest.mark.parametrize("policy", POLICIES, indirect=True)
def test_computes_what_the_model_does(policy):
    encoder = built(policy)
    run = inference_function(encoder)
    graph = tf.function(encoder, autograph=False)
    for length in (12, 40):
        found, expected = run(features(length)), graph(features(length))
        for one, wanted in zip(found[:2], expected[:2], strict=True):
            assert one.dtype == wanted.dtype
            one, wanted = (tf.cast(value, tf.float32).numpy() for value in (one, wanted))
            # In bfloat16 oneDNN sums up in another order: a few roundings of numbers up to 4.
            tolerance = 1e-5 if policy == "float32" else 4 * 4 * 2.0**-8
            np.testing.assert_allclose(one, wanted, atol=tolerance)


@pytest.mark.parametrize("pack_kernels", [False, True])
def test_packed_kernels_stay_what_they_were(pack_kernels):
    encoder = built("float32")
    run = inference_function(encoder, pack_kernels=pack_kernels)
    before = run(features(12)).sequence_output
    kernel = encoder.blocks[0].intermediate.kernel
    kernel.assign(2.0 * kernel)
    for length in (12, 20):  # traced once, whatever the length
        found = run(features(length)).sequence_output
        present = encoder(features(length)).sequence_output
        assert np.allclose(found, present, atol=1e-4) == (not pack_kernels)
    assert np.array_equal(before, run(features(12)).sequence_output) == pack_kernels


def test_tells_nine_features_from_ten_and_batches_from_examples():
    encoder = built("float32")
    run = inference_function(encoder)
    ten = features(20)
    nine = ten._replace(part_of_speech_ids=None)
    batch = TokenFeatures(*(tf.concat([one, one], axis=0) for one in ten))
    expected = encoder(nine).sequence_output
    for tokens in (nine, ten, batch):
        found = run(tokens).sequence_output
        np.testing.assert_allclose(found[-1], expected[0], atol=1e-5)


@pytest.mark.skipif(
    os.environ.get("TF_ENABLE_ONEDNN_OPTS") == "0", reason="by oneDNN; tests/test_onednn.py"
)
@pytest.mark.parametrize("policy", POLICIES, indirect=True)
@pytest.mark.parametrize("activation", ["gelu", "gelu_tanh"])
def test_projections_are_fused_with_bias_and_activation(policy, activation, tmp_path):
    run = inference_function(built(policy, dataclasses.replace(SMALL, activation=activation)))
    tokens = features(40)
    run(tokens)
    tf.profiler.experimental.start(str(tmp_path))
    run(tokens)
    tf.profiler.experimental.stop()
    # The profile names each node that ran: "NAME:OPERATION".
    (profile,) = tmp_path.glob("**/*.xplane.pb")
    ran = collections.Counter(re.findall(rb":(\w+)", profile.read_bytes()))
    fused = sum(count for name, count in ran.items() if name.endswith(b"FusedMatMul"))
    if policy != "float32" and not fused:
        pytest.skip("oneDNN has no products in bfloat16 for this machine")
    # Four projections of the layer, two of the feed-forward, and the pooler's.
    assert fused == 6 + 1
    assert ran[b"Erfc"] == ran[b"Erf"] == ran[b"Tanh"] == 0  # of the activation and the pooler


THREE = dataclasses.replace(SMALL, num_layers=3)


def traces_of_blocks(monkeypatch) -> list[str]:
    """The names of the blocks whose calls are traced from now on."""
    original, found = EncoderBlock.call, []

    def call(self, *args, **kwargs):
        found.append(self.name)
        return original(self, *args, **kwargs)

    monkeypatch.setattr(EncoderBlock, "call", call)
    return found


def test_blocks_share_a_graph_for_short_and_one_for_long_sequences_where_any_length_comes(
    monkeypatch,
):
    encoder = built("float32", THREE)
    run = inference_function(encoder)
    for length, expected in ((12, 1), (20, 0), (40, 1), (48, 0), (19, 0), (2_176, 0)):
        with monkeypatch.context() as patch:
            traced = traces_of_blocks(patch)
            found = run(features(length))
        assert traced == ["layer_0"] * expected, length
        for one, wanted in zip(found[:2], encoder(features(length))[:2], strict=True):
            np.testing.assert_allclose(one, wanted, atol=1e-5)


class First:
    """Attention of an author's own: each token attends to the first one."""

    def plan(self, features, training=False):
        return ()

    def attend(self, projected, plan, dropout, training=False):
        return tf.zeros_like(projected.value) + projected.value[:, :1]


def change_a_projection(encoder: TableEncoder) -> None:
    encoder.blocks[1].attention.query.enable_lora(2)
    encoder.blocks[1].attention.query.lora_kernel_b.assign(tf.ones([2, 64]))


def change_all_attention(encoder: TableEncoder) -> None:
    for block in encoder.blocks:
        block.attention.use(First())


@pytest.mark.parametrize("change", [change_a_projection, change_all_attention])
def test_blocks_that_differ_in_more_than_values_share_no_graph(change, monkeypatch):
    encoder = built("float32", THREE)
    change(encoder)
    expected = encoder(features(12)).sequence_output
    traced = traces_of_blocks(monkeypatch)
    found = inference_function(encoder)(features(12)).sequence_output
    assert traced == ["layer_0", "layer_1", "layer_2"]
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_nothing_is_compiled_for_its_length(monkeypatch):
    original, found = compilation.compiles_one_pass, []

    def compiles_one_pass() -> bool:
        found.append(original())
        return found[-1]

    monkeypatch.setattr(compilation, "compiles_one_pass", compiles_one_pass)
    run = inference_function(built("float32", SMALL))
    for length in (12, 2_176):
        found.clear()
        run(features(length))
        assert set(found) == {False}
