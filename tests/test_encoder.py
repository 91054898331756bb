"""The encoder as a Keras layer."""

import dataclasses

import keras
import numpy as np
import pytest
import tensorflow as tf

from mate_tf.config import AttentionConfig, EncoderConfig
from mate_tf.encoder import TableEncoder
from mate_tf.tables.token_features import TokenFeatures

SMALL = EncoderConfig(
    vocab_size=40,
    hidden_size=16,
    num_layers=2,
    num_heads=4,
    intermediate_size=24,
    max_position_embeddings=32,
    type_vocab_sizes=(3, 8, 8, 2, 8, 8, 10),
    attention=AttentionConfig(bucket_size=4, global_size=8),
)


def some_features(length: int = 30, batch: int = 2, seed: int = 0) -> TokenFeatures:
    random = np.random.default_rng(seed)
    row = np.sort(random.integers(0, 6, (batch, length)))
    column = random.integers(1, 5, (batch, length))
    row[:, :5] = column[:, :5] = 0
    segment = (column > 0).astype(int)
    values = [random.integers(0, 40, (batch, length)), np.ones((batch, length)), segment]
    values += [column, row] + [random.integers(0, 2, (batch, length)) for _ in range(4)]
    return TokenFeatures(*(tf.constant(value, tf.int32) for value in values))


def with_attention(**changes) -> EncoderConfig:
    return dataclasses.replace(SMALL, attention=dataclasses.replace(SMALL.attention, **changes))


@pytest.mark.parametrize(
    "config",
    [
        SMALL,
        with_attention(evaluator="dense"),
        with_attention(evaluator="dense", architecture="tapas"),
        with_attention(evaluator="dense", architecture="sat"),
        with_attention(architecture="tableformer"),
        with_attention(architecture="tableformer", relation_kind="embedding"),
        with_attention(architecture="mate_tableformer"),
        with_attention(coverage=1.0),
        with_attention(architecture="mate_tableformer", coverage=1.0),
        dataclasses.replace(SMALL, position="none", disabled_features=("row_ids",)),
    ],
    ids=[
        "mate",
        "mate dense",
        "tapas",
        "sat",
        "tableformer",
        "tableformer by embedding",
        "mate with relations",
        "mate at full coverage",
        "mate with relations at full coverage",
        "no positions",
    ],
)
def test_encodes_any_length_and_trains_every_weight(config):
    encoder = TableEncoder(config)
    for length in (6, 30):
        features = some_features(length)
        with tf.GradientTape() as tape:
            output = encoder(features, training=True)
            loss = tf.reduce_sum(output.sequence_output**2 * 0.1) + tf.reduce_sum(
                output.pooled_output
            )
        assert output.sequence_output.shape == (2, length, 16)
        assert output.pooled_output.shape == (2, 16)
        variables = [weight.value for weight in encoder.trainable_weights]
        gradients = tape.gradient(loss, variables)
        assert all(gradient is not None for gradient in gradients)


def test_a_token_of_weight_zero_is_as_good_as_padding():
    encoder = TableEncoder(with_attention(architecture="tapas"))
    features = some_features(length=12)
    weights = np.ones((2, 12), np.float32)
    weights[:, 9:] = 0.0
    actual = encoder(features, token_weights=tf.constant(weights)).sequence_output
    mask = tf.constant(weights, tf.int32)
    expected = encoder(features._replace(input_mask=mask)).sequence_output
    np.testing.assert_allclose(actual[:, :9], expected[:, :9], atol=1e-5)


def test_weights_are_refused_where_only_a_mask_is_known():
    for coverage in (None, 1.0):
        encoder = TableEncoder(with_attention(coverage=coverage))
        with pytest.raises(ValueError, match="evaluator 'dense' takes them"):
            encoder(some_features(), token_weights=tf.ones([2, 30]))


def test_intermediates_come_on_request():
    encoder = TableEncoder(SMALL)
    assert encoder(some_features()).intermediates == {}
    named = encoder(some_features(), return_intermediates=True).intermediates
    assert list(named) == ["embedding", "layer_0", "layer_1"]


def test_type_ids_beyond_their_table_add_nothing():
    encoder = TableEncoder(SMALL)
    features = some_features()
    outside = features._replace(column_ranks=tf.fill(features.column_ranks.shape, 300))
    disabled = TableEncoder(dataclasses.replace(SMALL, disabled_features=("column_ranks",)))
    encoder.build()
    disabled.build()
    ours = {weight.path.split("/", 1)[1]: weight for weight in encoder.weights}
    for weight in disabled.weights:
        weight.assign(ours[weight.path.split("/", 1)[1]])
    np.testing.assert_allclose(
        encoder(outside).sequence_output, disabled(features).sequence_output, atol=1e-6
    )


def test_absolute_positions_refuse_longer_input():
    encoder = TableEncoder(dataclasses.replace(SMALL, position="absolute"))
    with pytest.raises(ValueError, match=r"expected at most 32 tokens .*, got 40"):
        encoder(some_features(40))


def test_configuration_survives_serialization():
    encoder = TableEncoder(SMALL)
    again = keras.layers.deserialize(keras.layers.serialize(encoder))
    assert again.config == SMALL


def test_mixed_bfloat16_stays_close_and_keeps_ids_exact():
    encoder = TableEncoder(SMALL)
    expected = encoder(some_features()).sequence_output
    low = TableEncoder(SMALL, dtype="mixed_bfloat16")
    low.build()
    for ours, theirs in zip(low.weights, encoder.weights, strict=True):
        ours.assign(theirs)
    actual = tf.cast(low(some_features()).sequence_output, tf.float32)
    # bfloat16 keeps 8 bits: unit-size outputs of two layers within a few of its steps.
    np.testing.assert_allclose(actual, expected, atol=0.1)


def test_compiles_with_xla():
    encoder = TableEncoder(SMALL)
    features = some_features()
    compiled = tf.function(lambda *x: encoder(TokenFeatures(*x)).sequence_output, jit_compile=True)
    np.testing.assert_allclose(compiled(*features), encoder(features).sequence_output, atol=1e-5)
