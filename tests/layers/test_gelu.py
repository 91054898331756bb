"""Gaussian error linear units in training: TensorFlow's values and gradients."""

import numpy as np
import pytest
import tensorflow as tf

from mate_tf.layers.basic import gelu
from tests.small import two_cpus

POINTS = np.linspace(-12.0, 12.0, 4_801, dtype=np.float32)


def _traced(inputs, approximate, upstream):
    with tf.GradientTape() as tape:
        tape.watch(inputs)
        outputs = gelu(inputs, approximate, training=True)
    return outputs, tape.gradient(outputs, inputs, upstream)


def _trained(inputs, approximate, upstream):
    outputs, gradient = _traced(inputs, approximate, upstream)
    return outputs.numpy(), gradient.numpy()


@pytest.mark.parametrize("approximate", [False, True])
@pytest.mark.parametrize("dtype", [tf.float32, tf.bfloat16])
def test_equals_tensorflow(approximate, dtype):
    inputs = tf.cast(POINTS, dtype)
    upstream = tf.cast(tf.random.stateless_normal(POINTS.shape, [1, 2]), dtype)
    outputs, gradient = _trained(inputs, approximate, upstream)
    wide = tf.cast(inputs, tf.float64)
    with tf.GradientTape() as tape:
        tape.watch(wide)
        expected = tf.nn.gelu(wide, approximate)
    expected_gradient = tape.gradient(expected, wide, tf.cast(upstream, tf.float64))
    # The sums 1 + erf and 1 - tanh**2 lose digits where they are near 0: their roundings of 2**-24
    # are as large as what they are multiplied by, the input or the slope inside the tangent.
    size = np.maximum(np.abs(POINTS), 1.0)
    steep = size * (1.0 + 0.134 * POINTS**2) if approximate else size
    gradient_size = steep * np.maximum(np.abs(tf.cast(upstream, tf.float32)), 1.0)
    digits = 2.0**-8 if dtype == tf.bfloat16 else 2.0**-22
    assert np.all(np.abs(outputs.astype(np.float64) - expected.numpy()) <= digits * size)
    differences = np.abs(gradient.astype(np.float64) - expected_gradient.numpy())
    assert np.all(differences <= digits * gradient_size)


@pytest.mark.parametrize("approximate", [False, True])
def test_in_a_graph_of_unknown_length(approximate):
    @tf.function(autograph=False, input_signature=[tf.TensorSpec([None, 3])] * 2)
    def run(inputs, upstream):
        outputs, gradient = _traced(inputs, approximate, upstream)
        assert outputs.shape.as_list() == [None, 3]
        return outputs, gradient

    for length in (1, 5):
        inputs = tf.random.stateless_normal([length, 3], [3, length])
        outputs, gradient = run(inputs, tf.ones_like(inputs))
        expected, expected_gradient = _trained(inputs, approximate, tf.ones_like(inputs))
        np.testing.assert_allclose(outputs, expected, rtol=0, atol=2.0**-22)
        np.testing.assert_allclose(gradient, expected_gradient, rtol=0, atol=2.0**-21)


@pytest.mark.parametrize("approximate", [False, True])
def test_on_two_replicas(approximate):
    strategy = tf.distribute.MirroredStrategy(two_cpus())
    upstream = tf.ones_like(POINTS)

    @tf.function(autograph=False)
    def run():
        return strategy.run(lambda: _traced(tf.constant(POINTS), approximate, upstream))

    outputs, gradient = map(strategy.experimental_local_results, run())
    assert len(outputs) == 2
    expected, expected_gradient = _trained(tf.constant(POINTS), approximate, upstream)
    # XLA's and TensorFlow's own functions differ in their last places; see above for the bounds.
    size = np.maximum(np.abs(POINTS), 1.0)
    steep = size * (1.0 + 0.134 * POINTS**2) if approximate else size
    for replica in range(2):
        assert np.all(np.abs(outputs[replica] - expected) <= 2.0**-21 * size)
        assert np.all(np.abs(gradient[replica] - expected_gradient) <= 2.0**-21 * steep)


def test_keeps_its_input_alone_for_the_gradient():
    forward = tf.function(lambda inputs: _traced(inputs, False, None), autograph=False)
    graph = forward.get_concrete_function(tf.TensorSpec([2, 3])).graph
    calls = [op for op in graph.get_operations() if op.type.endswith("PartitionedCall")]
    assert len(calls) == 2  # the values and the gradient
    values, gradient = calls
    (source,) = {op.name for op in graph.get_operations() if op.type == "Placeholder"}

    def origins(tensor):
        while tensor.op.type in ("StopGradient", "Identity", "IdentityN", "EnsureShape"):
            tensor = tensor.op.inputs[0]
        return tensor.op.name

    assert [origins(tensor) for tensor in values.inputs] == [source]
    assert values.name not in [origins(tensor) for tensor in gradient.inputs]
    assert source in [origins(tensor) for tensor in gradient.inputs]


def test_in_a_loop_of_the_graph():
    inputs = tf.random.stateless_normal([5, 3], [3, 4])
    upstream = tf.ones_like(inputs)

    @tf.function(autograph=False)
    def run():
        def step(number, total):
            return number + 1, total + _traced(inputs, False, upstream)[1]

        return tf.while_loop(lambda number, _: number < 3, step, (0, tf.zeros_like(inputs)))[1]

    expected = _trained(inputs, False, upstream)[1]
    np.testing.assert_allclose(run(), 3 * expected, rtol=0, atol=2.0**-20)
