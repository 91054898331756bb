"""What other layers are made of: normalisation, dropout, and Gaussian error linear units."""

import contextlib

import keras
import numpy as np
import pytest
import tensorflow as tf

from mate_tf.layers import basic
from mate_tf.layers.basic import Dropout, LayerNorm, SeededDropout, gelu
from mate_tf.layers.compilation import portable_graph
from tests.small import cases, two_cpus

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


def test_a_large_mean_costs_its_roundings_and_bfloat16_is_computed_in_float32():
    far = random(3, 4, SIZE) + 1000.0
    expected = definition(tf.ones(SIZE), tf.zeros(SIZE), far)
    # The inputs themselves are rounded to 2**-15 at 1,000; their sum of squares would be to 2**-4.
    compare(LayerNorm(EPSILON)(far), expected, 2.0**-12)
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


def test_replicas_compute_the_same_and_layers_of_all_widths_share_what_is_compiled():
    layer = make_layer()
    inputs = random(6, 4, SIZE)
    alone = layer(inputs, inputs)
    strategy = tf.distribute.MirroredStrategy([cpu.name for cpu in two_cpus()])
    of_replicas = strategy.run(lambda: layer(inputs, inputs)).values
    assert len(of_replicas) == 2
    for found in of_replicas:
        np.testing.assert_allclose(found, alone, atol=2e-6)
    saved = LayerNorm.from_config(LayerNorm(1e-3).get_config())
    layers = [LayerNorm(), LayerNorm(), saved]
    passes = [basic._passes(layer.epsilon, layer.compute_dtype) for layer in layers]
    assert passes[0] is passes[1] is not passes[2]
    for width in (5, 8, 5):
        inputs = tf.random.stateless_normal([3, width], seed=[1, width])
        found = LayerNorm()(inputs).numpy()
        np.testing.assert_allclose(found.mean(axis=1), np.zeros(3), atol=1e-5)
        np.testing.assert_allclose(found.std(axis=1), np.ones(3), atol=1e-4)


RATE = 0.3
ONES = np.ones([100, 1000], np.float32)


@pytest.mark.parametrize("compiled", [False, True], ids=["graph", "XLA"])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_drops_a_share_of_the_units_and_scales_the_others(dtype, compiled):
    layer = Dropout(RATE, dtype=dtype)
    run = tf.function(lambda x: layer(x, training=True), jit_compile=compiled)
    dropped = tf.cast(run(tf.cast(ONES, dtype)), tf.float32).numpy()
    kept = dropped != 0
    step = 2**-8 if dtype == "bfloat16" else 2**-23  # bfloat16 has eight bits
    rate = round(RATE * 2**16) / 2**16
    np.testing.assert_allclose(dropped[kept], 1 / (1 - rate), rtol=step)
    # Of 100,000 draws the share's standard deviation is 0.0014; five of them.
    assert abs(1 - kept.mean() - rate) < 5 * np.sqrt(rate * (1 - rate) / kept.size)


def test_drops_other_units_each_time_and_the_same_ones_of_the_same_seed():
    layer = Dropout(RATE)
    seed = layer.draw_seed()
    first, again, other = (layer(ONES, training=True, seed=s) for s in (seed, seed, None))
    np.testing.assert_array_equal(first, again)
    assert np.any(first != other)
    first = Dropout(RATE, seed=7)
    again = keras.layers.deserialize(keras.layers.serialize(first))
    np.testing.assert_array_equal(first(ONES, training=True), again(ONES, training=True))
    dropout = SeededDropout(RATE, tf.constant([1, 2]))
    masks = [one(ONES).numpy() for one in (dropout, dropout.fold_in(0), dropout.fold_in(1))]
    np.testing.assert_array_equal(masks[1], dropout.fold_in(0)(ONES))
    for first, second in ((0, 1), (0, 2), (1, 2)):
        # Independent masks agree in rate**2 + (1 - rate)**2 of the units; five deviations.
        assert abs(np.mean(masks[first] == masks[second]) - 0.58) < 5 * np.sqrt(0.58 * 0.42 / 1e5)


@pytest.mark.parametrize(("rate", "training"), [(0.0, True), (RATE, False)])
def test_costs_nothing_where_nothing_is_dropped(rate, training):
    layer = Dropout(rate)
    graph = tf.function(lambda x: layer(x, training=training)).get_concrete_function(ONES).graph
    assert {operation.type for operation in graph.get_operations()} <= {"Placeholder", "Identity"}
    assert rate or not layer.variables


@pytest.mark.parametrize("rate", [-0.1, 1.0])
def test_an_impossible_rate_is_refused(rate):
    with pytest.raises(ValueError, match=f"dropout rate from 0 to below 1, got {rate}"):
        Dropout(rate)


POINTS = np.linspace(-12.0, 12.0, 4_801, dtype=np.float32)


def trained_gelu(inputs, approximate, upstream):
    """The values, and the gradient by the inputs."""
    with tf.GradientTape() as tape:
        tape.watch(inputs)
        outputs = gelu(inputs, approximate, training=True)
    assert outputs.shape.as_list() == inputs.shape.as_list()
    return outputs, tape.gradient(outputs, inputs, upstream)


def sizes(approximate):
    """What the values and the gradient are rounded by, for each point.

    The sums 1 + erf and 1 - tanh**2 lose digits where they are near 0: their roundings of 2**-24
    are as large as what they are multiplied by, the input or the slope inside the tangent.
    """
    size = np.maximum(np.abs(POINTS), 1.0)
    return size, size * (1.0 + 0.134 * POINTS**2) if approximate else size


@pytest.mark.parametrize("approximate", [False, True])
@pytest.mark.parametrize("dtype", [tf.float32, tf.bfloat16])
def test_gelu_equals_tensorflow(approximate, dtype):
    inputs, upstream = tf.cast(POINTS, dtype), random(1, *POINTS.shape, dtype=dtype)
    found = trained_gelu(inputs, approximate, upstream)
    wide = tf.cast(inputs, tf.float64)
    with tf.GradientTape() as tape:
        tape.watch(wide)
        outputs = tf.nn.gelu(wide, approximate)
    expected = outputs, tape.gradient(outputs, wide, tf.cast(upstream, tf.float64))
    size, steep = sizes(approximate)
    digits = 2.0**-8 if dtype == tf.bfloat16 else 2.0**-22
    limits = size, steep * np.maximum(np.abs(tf.cast(upstream, tf.float32)), 1.0)
    for one, other, limit in zip(found, expected, limits, strict=True):
        assert np.all(np.abs(tf.cast(one, tf.float64) - other) <= digits * limit)


def in_a_graph_of_unknown_length(compute):
    run = tf.function(compute, autograph=False, input_signature=[tf.TensorSpec([None])])
    run(POINTS[:5])
    return [run(POINTS)]


def in_a_loop_of_the_graph(compute):
    @tf.function(autograph=False)
    def run():
        def step(number, *_):
            return number + 1, *compute(tf.constant(POINTS))

        zeros = tf.zeros_like(POINTS)
        return tf.while_loop(lambda number, *_: number < 3, step, (0, zeros, zeros))[1:]

    return [run()]


def on_two_replicas(compute):
    strategy = tf.distribute.MirroredStrategy(two_cpus())
    run = tf.function(lambda: strategy.run(compute, [tf.constant(POINTS)]), autograph=False)
    return list(zip(*map(strategy.experimental_local_results, run()), strict=True))


@pytest.mark.parametrize("approximate", [False, True])
@cases(
    "place, number",
    (in_a_graph_of_unknown_length, 1),
    (in_a_loop_of_the_graph, 1),
    (on_two_replicas, 2),
)
def test_gelu_is_the_same(place, number, approximate):
    def compute(points):
        return trained_gelu(points, approximate, tf.ones_like(points))

    results, expected = place(compute), compute(tf.constant(POINTS))
    assert len(results) == number
    # XLA's and TensorFlow's own functions differ in their last places.
    for found in results:
        for one, other, size in zip(found, expected, sizes(approximate), strict=True):
            assert np.all(np.abs(one - other) <= 2.0**-21 * size)


def test_gelu_keeps_its_input_alone_for_the_gradient():
    forward = tf.function(lambda inputs: trained_gelu(inputs, False, None), autograph=False)
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
