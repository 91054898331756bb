"""Sizes that hang on the data, for XLA, whose programs have static shapes."""

from collections.abc import Callable
from functools import partial

import tensorflow as tf

from mate_tf.custom_gradient import custom_gradient


def at_chosen_size(
    function: Callable[..., tf.Tensor], sizes: list[int], needed: tf.Tensor, *inputs: tf.Tensor
) -> tf.Tensor:
    """Calls a function with the smallest of some sizes that suffices.

    The gradient computes the function anew at that size: TensorFlow would make each size's
    results part of all the others', and keep them for all layers.

    Args:
        function: takes a size and the inputs, and returns a tensor; the same at each call.
        sizes: ascending; the last suffices always.
        needed: int32, at run time.
        *inputs: float, what the function is differentiated by.
    """
    index = tf.reduce_sum(tf.cast(needed > tf.constant(sizes[:-1], tf.int32), tf.int32))

    @custom_gradient
    def call(*inputs: tf.Tensor):
        def gradient(upstream: tf.Tensor) -> list[tf.Tensor]:
            def gradient_at(size: int) -> list[tf.Tensor]:
                sources = [tf.identity(tensor) for tensor in inputs]
                with tf.GradientTape() as tape:
                    tape.watch(sources)
                    result = function(size, *sources)
                gradients = tape.gradient(result, sources, upstream)
                # A gather's is a list of slices, of another length at each size.
                return [tf.convert_to_tensor(one) for one in gradients]

            return tf.switch_case(index, [partial(gradient_at, size) for size in sizes])

        branches = [partial(function, size, *inputs) for size in sizes]
        return tf.switch_case(index, branches), gradient

    return call(*inputs)
