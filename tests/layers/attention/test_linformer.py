import numpy as np
import pytest
import tensorflow as tf

from mate_tf.config import AttentionConfig
from mate_tf.layers.attention.kinds import SelfAttention
from tests.layers import small_layers as small


def layer_and_inputs(length=6, projected=3):
    attention = AttentionConfig("linformer", sequence_length=length, projected_length=projected)
    layer = small.random_weights(SelfAttention(2, 4, attention))
    features = small.token_features(input_mask=[[1] * length, [1] * (length - 2) + [0, 0]])
    return layer, small.hidden_states(2, length), features


def test_equals_its_definition():
    layer, inputs, features = layer_and_inputs()
    weights = layer.implementation.length_projection.numpy()

    def heads(projection):
        projected = inputs.numpy() @ projection.kernel.numpy() + projection.bias.numpy()
        return projected.reshape(2, 6, 2, 4)

    query, key, value = heads(layer.query), heads(layer.key), heads(layer.value)
    context = np.zeros((2, 6, 2, 4))
    for example, real in enumerate((6, 4)):
        for head in range(2):
            keys, values = (weights[:real].T @ x[example, :real, head] for x in (key, value))
            context[example, :, head] = small.attention_in_float64(
                query[example, :, head], keys, values
            )
    output = layer.output_projection
    expected = context.reshape(2, 6, 8) @ output.kernel.numpy() + output.bias.numpy()
    np.testing.assert_allclose(layer(inputs, features), expected, atol=1e-5)


def test_what_stands_in_the_padding_changes_nothing():
    layer, inputs, features = layer_and_inputs()
    expected = layer(inputs, features).numpy()
    other = inputs.numpy()
    other[1, 4:] += 100.0
    actual = layer(tf.constant(other), features).numpy()
    np.testing.assert_array_equal(actual[0], expected[0])
    np.testing.assert_allclose(actual[1, :4], expected[1, :4], atol=1e-6)


@pytest.mark.parametrize("length", [5, 7])
def test_another_length_is_refused_with_both_also_in_a_graph_of_any_length(length):
    layer, inputs, features = layer_and_inputs()
    run = small.of_any_length(layer)
    assert run(inputs, features).shape == inputs.shape
    other = small.hidden_states(1, length), small.token_features(input_mask=[1] * length)
    message = f"of 6 tokens, which this Linformer projects to 3, got {length}"
    with pytest.raises(ValueError, match=message):
        layer(*other)
    with pytest.raises(tf.errors.InvalidArgumentError, match="expected sequences of 6 tokens"):
        run(*other)
