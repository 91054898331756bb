"""Linformer's projection: padding adds nothing, one length only."""

import numpy as np
import pytest
import tensorflow as tf

from mate_tf.config import AttentionConfig
from mate_tf.features.token_features import TokenFeatures
from mate_tf.layers.attention.linformer import LinformerAttention


def layer_and_inputs(length=6, projected=3):
    attention = AttentionConfig("linformer", sequence_length=length, projected_length=projected)
    layer = LinformerAttention(2, 4, attention)
    inputs = tf.constant(np.random.default_rng(0).normal(size=(2, length, 8)), tf.float32)
    mask = tf.constant([[1] * length, [1] * (length - 2) + [0, 0]])
    return layer, inputs, TokenFeatures(*[mask] * 9)


def test_equals_its_definition():
    layer, inputs, features = layer_and_inputs()
    actual = layer(inputs, features).numpy()
    weights = np.random.default_rng(1).normal(size=layer.length_projection.shape)
    layer.length_projection.assign(weights)
    actual = layer(inputs, features).numpy()

    def heads(projection):
        projected = inputs.numpy() @ projection.kernel.numpy() + projection.bias.numpy()
        return projected.reshape(2, 6, 2, 4)

    query, key, value = heads(layer.query), heads(layer.key), heads(layer.value)
    context = np.zeros((2, 6, 2, 4))
    for example in range(2):
        real = 6 if example == 0 else 4
        for head in range(2):
            keys = weights[:real].T @ key[example, :real, head]  # [P, E]
            values = weights[:real].T @ value[example, :real, head]
            scores = np.exp(query[example, :, head] @ keys.T / 2.0)
            context[example, :, head] = scores / scores.sum(-1, keepdims=True) @ values
    output = layer.output_projection
    expected = context.reshape(2, 6, 8) @ output.kernel.numpy() + output.bias.numpy()
    np.testing.assert_allclose(actual, expected, atol=1e-5)


def test_what_stands_in_the_padding_changes_nothing():
    layer, inputs, features = layer_and_inputs()
    expected = layer(inputs, features).numpy()
    other = inputs.numpy()
    other[1, 4:] += 100.0
    actual = layer(tf.constant(other), features).numpy()
    np.testing.assert_array_equal(actual[0], expected[0])
    np.testing.assert_allclose(actual[1, :4], expected[1, :4], atol=1e-6)


@pytest.mark.parametrize("length", [5, 7])
def test_another_length_is_refused_with_both(length):
    layer, _, _ = layer_and_inputs()
    mask = tf.ones([1, length], tf.int32)
    message = f"of 6 tokens, which this Linformer projects to 3, got {length}"
    with pytest.raises(ValueError, match=message):
        layer(tf.zeros([1, length, 8]), TokenFeatures(*[mask] * 9))


def test_another_length_is_refused_inside_a_graph_of_any_length():
    layer, _, _ = layer_and_inputs()
    layer.build((None, None, 8))

    @tf.function(input_signature=[tf.TensorSpec([None, None], tf.int32)])
    def run(mask):
        hidden = tf.zeros([tf.shape(mask)[0], tf.shape(mask)[1], 8])
        return layer(hidden, TokenFeatures(*[mask] * 9))

    assert run(tf.ones([1, 6], tf.int32)).shape == (1, 6, 8)
    with pytest.raises(tf.errors.InvalidArgumentError, match="expected sequences of 6 tokens"):
        run(tf.ones([1, 7], tf.int32))
