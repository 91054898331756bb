"""Gradients of one's own, and that a process does not keep the graphs that they are part of."""

import contextlib
import gc
import weakref

import pytest
import tensorflow as tf

from mate_tf.layers.compilation import custom_gradient, end_with_graph, without_gradients
from mate_tf.private_apis import gradient_registry
from tests.small import cases


def tripled(inputs: tf.Tensor) -> tf.Tensor:
    """Five times the inputs, whose gradient is said to be three times what comes from above."""

    @custom_gradient
    def function(inputs: tf.Tensor):
        # The gradient holds what is of the graph, as those of layers do.
        return 5.0 * inputs, lambda upstream: 3.0 * upstream + 0.0 * inputs

    return function(inputs)


def recomputed(inputs: tf.Tensor) -> tf.Tensor:
    return tf.recompute_grad(tripled)(inputs)


def in_branch(inputs: tf.Tensor) -> tf.Tensor:
    return tf.cond(inputs > 0.0, lambda: tripled(inputs), lambda: inputs)


def in_loop(inputs: tf.Tensor) -> tf.Tensor:
    return tf.while_loop(
        lambda step, _: step < 1, lambda step, value: (step + 1, tripled(value)), (0, inputs)
    )[1]


def in_function(inputs: tf.Tensor) -> tf.Tensor:
    return tf.function(tripled, autograph=False)(inputs)


PLACES = [tripled, recomputed, in_branch, in_loop, in_function]


def gradient_function(place, variable: tf.Variable):
    """A function of its own that gives the value of a place at a variable, and its gradient."""

    @tf.function(autograph=False)
    def with_gradient():
        with tf.GradientTape() as tape:
            value = place(variable * 1.0)
        gradient = tape.gradient(value, variable)
        end_with_graph(tf.compat.v1.get_default_graph())
        return value, gradient

    return with_gradient


def registered() -> set[str]:
    gc.collect()
    return {name for name in gradient_registry() if name.startswith("CustomGradient")}


@pytest.mark.parametrize("place", PLACES)
def test_a_gradient_is_the_given_one_and_ends_with_its_graph(place):
    before = registered()
    variable = tf.Variable(2.0)
    function = gradient_function(place, variable)
    assert [float(value) for value in function()] == [10.0, 3.0]
    assert registered() > before  # as long as the graph, to which gradients can be added
    kept = weakref.ref(variable)
    del function, variable
    assert registered() == before
    assert kept() is None


def test_a_function_that_outlives_its_first_caller_keeps_its_gradient():
    shared = tf.function(tripled, autograph=False)
    for _ in range(2):
        function = gradient_function(shared, tf.Variable(2.0))
        assert [float(value) for value in function()] == [10.0, 3.0]
        del function
        gc.collect()


@cases("context, gradient", (contextlib.nullcontext, 3.0), (without_gradients, 5.0))
def test_outside_of_graphs_and_without_gradients_it_is_the_function_alone(context, gradient):
    inputs = tf.constant(2.0)
    with context(), tf.GradientTape() as tape:
        tape.watch(inputs)
        value = tripled(inputs)
    assert [float(value), float(tape.gradient(value, inputs))] == [10.0, gradient]
