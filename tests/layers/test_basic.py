"""What layers are made of: normalisation, dropout, Gaussian error linear units, sums of rows."""

import contextlib
from collections.abc import Callable, Sequence
from typing import NamedTuple

import keras
import numpy as np
import pytest
import tensorflow as tf

from mate_tf.layers import basic
from mate_tf.layers.basic import Dropout, LayerNorm, SeededDropout, gelu
from mate_tf.layers.compilation import portable_graph
from mate_tf.layers.encoder import summed_rows
from tests.small import two_cpus

SIZE = 48
EPSILON = 1e-12
POINTS = tf.reshape(tf.linspace(-12.0, 12.0, 4_800), [80, 60])
IDS = [tf.random.stateless_uniform([2, 6], [seed, 0], -1, 8, tf.int32) for seed in range(3)]
# Of values and gradients, times the largest number that is summed up.
DIGITS = {tf.float32: 2.0**-19, tf.bfloat16: 2.0**-8}


def random(seed, *shape):
    return tf.random.stateless_normal(shape, [seed, 7])


class Case(NamedTuple):
    """A function and what it is in float64, of inputs to a result of a shape."""

    ours: Callable[..., tf.Tensor]
    defined: Callable[..., tf.Tensor]
    inputs: Sequence[tf.Tensor]
    shape: Sequence[int]
    is_wide: bool = False  # whether the result is float32 in any case
    digits: float = 1.0  # of the gradients, where terms of theirs are larger than their sum

    def compute(self, upstream: tf.Tensor, *inputs: tf.Tensor) -> list[tf.Tensor]:
        """The values and the gradients."""
        with tf.GradientTape() as tape:
            tape.watch(inputs)
            outputs = self.ours(*inputs)
        assert outputs.dtype == upstream.dtype
        assert outputs.shape.rank == len(self.shape) and outputs.shape[-1] == self.shape[-1]
        gradients = tape.gradient(outputs, inputs, upstream)
        assert all(isinstance(it, tf.IndexedSlices) == self.is_wide for it in gradients)
        return [outputs, *map(tf.convert_to_tensor, gradients)]


def of_gelu(approximate: bool) -> Case:
    return Case(
        lambda inputs: gelu(inputs, approximate, training=True),
        lambda inputs: tf.nn.gelu(inputs, approximate),
        [POINTS],
        POINTS.shape,
        # 1 - tanh**2 is rounded to 2**-24 where it is near 0, and multiplied by up to 120.
        digits=8.0 if approximate else 1.0,
    )


def of_norm(num_terms: int) -> Case:
    policies = {"float32": "float32", "bfloat16": "mixed_bfloat16"}
    layers = {name: LayerNorm(EPSILON, dtype=policy) for name, policy in policies.items()}
    for layer in layers.values():
        layer.build((None, SIZE))
        assert layer.gamma.dtype == "float32"

    def ours(gamma, beta, *terms):
        layer = layers[terms[0].dtype.name]
        with keras.StatelessScope(zip(layer.weights, (gamma, beta), strict=True)):
            return layer(*terms)

    def defined(gamma, beta, *terms):
        total = tf.add_n(terms)
        mean = tf.reduce_mean(total, -1, keepdims=True)
        variance = tf.reduce_mean((total - mean) ** 2, -1, keepdims=True)
        return (total - mean) / tf.sqrt(variance + EPSILON) * gamma + beta

    terms = [3.0 * random(index, 2, 5, SIZE) + 1.0 for index in range(num_terms)]
    return Case(ours, defined, [1.0 + 0.5 * random(1, SIZE), random(2, SIZE), *terms], (2, 5, SIZE))


def of_rows(zero_beyond: bool) -> Case:
    def defined(*tables):
        total = 0.0
        for table, ids in zip(tables, IDS, strict=True):
            rows = table.shape[0]
            is_inside = tf.cast((ids >= 0) & (ids < rows), table.dtype)[..., None]
            gathered = tf.gather(table, tf.clip_by_value(ids, 0, rows - 1))
            total += gathered * is_inside if zero_beyond else gathered
        return total

    tables = [random(rows, rows, 4) for rows in (7, 3, 5)]
    return Case(
        lambda *tables: summed_rows(tables, IDS, zero_beyond),
        defined,
        tables,
        (2, 6, 4),
        is_wide=True,
        digits=4.0,  # gradients of a row are summed up in the table's dtype
    )


CASES = {
    "gelu": of_gelu(False),
    "gelu_tanh": of_gelu(True),
    "norm": of_norm(1),
    "norm of a sum": of_norm(2),
    "rows": of_rows(False),
    "rows or zero": of_rows(True),
}


def at_once(compute, inputs):
    return [compute(*inputs)]


def in_a_graph_of_any_length(compute, inputs):
    shapes = [[*[None] * (one.shape.rank - 1), one.shape[-1]] for one in inputs]
    given = [tf.TensorSpec(shape, one.dtype) for shape, one in zip(shapes, inputs, strict=True)]
    return [tf.function(compute, autograph=False, input_signature=given)(*inputs)]


def in_a_loop_of_a_graph(compute, inputs):
    @tf.function(autograph=False)
    def run():
        results = [tf.zeros(one.shape) for one in (inputs[0], *inputs[1:])]
        return tf.while_loop(
            lambda number, *_: number < 3,
            lambda number, *_: (number + 1, *compute(*inputs)),
            (0, *results),
            (tf.TensorShape([]), *[tf.TensorShape(None)] * len(results)),
        )[1:]

    return [run()]


def on_two_replicas(compute, inputs):
    strategy = tf.distribute.MirroredStrategy(two_cpus())
    run = tf.function(lambda: strategy.run(compute, inputs), autograph=False)
    results = list(zip(*map(strategy.experimental_local_results, run()), strict=True))
    assert len(results) == 2
    return results


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize(
    ("place", "dtype"),
    [
        *((place, dtype) for place in (at_once, in_a_graph_of_any_length) for dtype in DIGITS),
        *((in_a_loop_of_a_graph, tf.float32), (on_two_replicas, tf.float32)),
    ],
)
def test_values_and_gradients_are_those_of_the_definition(place, dtype, name):
    case = CASES[name]
    of_norm = name.startswith("norm")  # whose scale and shift are float32
    inputs = [
        tf.cast(one, tf.float32 if of_norm and index < 2 else dtype)
        for index, one in enumerate(case.inputs)
    ]
    upstream = tf.cast(random(9, *case.shape), tf.float32 if case.is_wide else dtype)
    wide = [tf.cast(one, tf.float64) for one in inputs]
    with tf.GradientTape() as tape:
        tape.watch(wide)
        outputs = case.defined(*wide)
    gradients = tape.gradient(outputs, wide, tf.cast(upstream, tf.float64))
    expected = [outputs, *map(tf.convert_to_tensor, gradients)]
    for found in place(case.compute, [upstream, *inputs]):
        for index, (one, other) in enumerate(zip(found, expected, strict=True)):
            compare(one, other, DIGITS[dtype] * (case.digits if index else 1.0))


def compare(found, expected, digits):
    """Roundings are as large as the largest value that is summed up, for each row or column."""
    found, expected = (tf.cast(value, tf.float64).numpy() for value in (found, expected))
    assert np.abs(found - expected).max() <= digits * max(1.0, np.abs(expected).max())


def test_a_large_mean_costs_its_roundings():
    far = random(3, 4, SIZE) + 1000.0
    expected = CASES["norm"].defined(1.0, 0.0, tf.cast(far, tf.float64))
    # The inputs themselves are rounded to 2**-15 at 1,000; their sum of squares would be to 2**-4.
    compare(LayerNorm(EPSILON)(far), expected, 2.0**-12)


def test_a_saved_model_has_nothing_to_compile():
    layer = LayerNorm(EPSILON)

    def compiled_calls(context):
        with context:
            function = tf.function(lambda x: layer(x, x), autograph=False)
            graph = function.get_concrete_function(tf.TensorSpec([None, SIZE])).graph
        functions = graph._functions.values()
        return sum("_XlaMustCompile" in one.cached_definition.attr for one in functions)

    assert compiled_calls(contextlib.nullcontext()) == 1
    assert compiled_calls(portable_graph()) == 0


def test_layers_of_all_widths_share_what_is_compiled():
    saved = LayerNorm.from_config(LayerNorm(1e-3).get_config())
    layers = [LayerNorm(), LayerNorm(), saved]
    passes = [basic._passes(layer.epsilon, layer.compute_dtype) for layer in layers]
    assert passes[0] is passes[1] is not passes[2]
    for width in (5, 8, 5):
        found = tf.function(LayerNorm())(random(1, 3, width)).numpy()
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


def test_gelu_keeps_its_input_alone_for_the_gradient():
    points = tf.TensorSpec(POINTS.shape)
    forward = tf.function(CASES["gelu"].compute, autograph=False)
    graph = forward.get_concrete_function(points, points).graph
    calls = [op for op in graph.get_operations() if op.type.endswith("PartitionedCall")]
    assert len(calls) == 2  # the values and the gradient
    values, gradient = calls
    source = graph.inputs[1].op.name

    def origins(tensor):
        while tensor.op.type in ("StopGradient", "Identity", "IdentityN", "EnsureShape"):
            tensor = tensor.op.inputs[0]
        return tensor.op.name

    assert [origins(tensor) for tensor in values.inputs] == [source]
    assert values.name not in [origins(tensor) for tensor in gradient.inputs]
    assert source in [origins(tensor) for tensor in gradient.inputs]
