"""Layer normalisation against its definition, in float64."""

import contextlib

import numpy as np
import pytest
import tensorflow as tf

from mate_tf.layers import basic
from mate_tf.layers.basic import LayerNorm
from mate_tf.layers.compilation import portable_graph
from tests.small import two_cpus

SIZE = 48
EPSILON = 1e-12


def random(seed, *shape, dtype=tf.float32):
    return tf.cast(tf.random.stateless_normal(shape, [seed, 7]), dtype)


def make_layer(dtype="float32"):
    layer = LayerNorm(EPSILON, dtype=dtype)
    layer.build((None, SIZE))
    layer.gamma.assign(1.0 + 0.5 * random(1, SIZE))
    layer.beta.assign(random(2, SIZE))
    return layer


def definition(gamma, beta, *terms):
    total = tf.add_n([tf.cast(term, tf.float64) for term in terms])
    mean = tf.reduce_mean(total, -1, keepdims=True)
    variance = tf.reduce_mean((total - mean) ** 2, -1, keepdims=True)
    normal = (total - mean) / tf.sqrt(variance + EPSILON)
    return normal * tf.cast(gamma, tf.float64) + tf.cast(beta, tf.float64)


def check(layer, upstream, *terms, digits):
    given = [layer.gamma.value, layer.beta.value, *terms]
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(given)
        outputs = layer(*terms)
        expected = definition(*given)
    found = tape.gradient(outputs, given, upstream)
    wanted = tape.gradient(expected, given, tf.cast(upstream, tf.float64))
    assert outputs.dtype == terms[0].dtype
    for one, other in zip([outputs, *found], [expected, *wanted], strict=True):
        compare(one, other, digits)


def compare(found, expected, digits):
    """Roundings are as large as the largest value that is summed up, for each row or column."""
    found, expected = (tf.cast(value, tf.float64).numpy() for value in (found, expected))
    assert np.abs(found - expected).max() <= digits * max(1.0, np.abs(expected).max())


@pytest.mark.parametrize("num_terms", [1, 2])
@pytest.mark.parametrize("is_compiled", [False, True])
def test_equals_its_definition(num_terms, is_compiled):
    terms = [3.0 * random(index, 2, 5, SIZE) + 1.0 for index in range(num_terms)]
    with contextlib.nullcontext() if is_compiled else portable_graph():
        check(make_layer(), random(9, 2, 5, SIZE), *terms, digits=2.0**-19)


def test_a_large_mean_costs_no_more_than_its_roundings():
    far = random(3, 4, SIZE) + 1000.0
    expected = definition(tf.ones(SIZE), tf.zeros(SIZE), far)
    # The inputs themselves are rounded to 2**-15 at 1,000; their sum of squares would be to 2**-4.
    compare(LayerNorm(EPSILON)(far), expected, 2.0**-12)


def test_bfloat16_is_computed_in_float32():
    terms = [random(index, 3, SIZE, dtype=tf.bfloat16) for index in range(2)]
    layer = make_layer("mixed_bfloat16")
    assert layer.gamma.dtype == "float32"
    check(layer, random(9, 3, SIZE, dtype=tf.bfloat16), *terms, digits=2.0**-8)


def test_in_a_graph_of_unknown_length():
    layer = make_layer()

    @tf.function(autograph=False, input_signature=[tf.TensorSpec([None, None, SIZE])])
    def run(inputs):
        with tf.GradientTape() as tape:
            tape.watch(inputs)
            outputs = layer(inputs, inputs)
            assert outputs.shape.as_list() == [None, None, SIZE]
        return outputs, tape.gradient(outputs, inputs)

    for length in (1, 4, 7):
        inputs = random(length, 2, length, SIZE)
        outputs, gradient = run(inputs)
        compare(outputs, definition(layer.gamma, layer.beta, inputs, inputs), 2.0**-19)
        assert gradient.shape == inputs.shape


def test_a_saved_model_has_nothing_to_compile():
    layer = make_layer()

    def compiled_calls(context):
        with context:
            function = tf.function(lambda x: layer(x, x), autograph=False)
            graph = function.get_concrete_function(tf.TensorSpec([None, SIZE])).graph
        functions = graph._functions.values()
        return sum("_XlaMustCompile" in one.cached_definition.attr for one in functions)

    assert compiled_calls(contextlib.nullcontext()) == 1
    assert compiled_calls(portable_graph()) == 0


def test_replicas_compute_the_same():
    layer = make_layer()
    inputs = random(6, 4, SIZE)
    alone = layer(inputs, inputs)
    strategy = tf.distribute.MirroredStrategy([cpu.name for cpu in two_cpus()])
    of_replicas = strategy.run(lambda: layer(inputs, inputs)).values
    assert len(of_replicas) == 2
    for found in of_replicas:
        np.testing.assert_allclose(found, alone, atol=2e-6)


def test_layers_of_all_widths_share_what_is_compiled():
    saved = LayerNorm.from_config(LayerNorm(1e-3).get_config())
    layers = [LayerNorm(), LayerNorm(), saved]
    passes = [basic._passes(layer.epsilon, layer.compute_dtype) for layer in layers]
    assert passes[0] is passes[1] is not passes[2]
    for width in (5, 8, 5):
        inputs = tf.random.stateless_normal([3, width], seed=[1, width])
        found = LayerNorm()(inputs).numpy()
        np.testing.assert_allclose(found.mean(axis=1), np.zeros(3), atol=1e-5)
        np.testing.assert_allclose(found.std(axis=1), np.ones(3), atol=1e-4)
