"""Gradients of one's own, which end with the graph that they are part of.

tf.custom_gradient registers the gradient of every call within a graph, under a new name, for ever,
and with it the graph, what it was made of and its variables: a process that trains one model after
another would keep all of them, hundreds of megabytes each.
"""

import contextlib
import contextvars
import functools
import weakref
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from mate_tf.layers.compilation import true_within
from mate_tf.private_apis import gradient_registry

_HAS_NO_GRADIENTS = contextvars.ContextVar("has_no_gradients", default=False)
_KEPT = "_mate_tf_gradients"  # of a graph


def without_gradients() -> contextlib.AbstractContextManager[None]:
    """Within it graphs are made that nobody trains, as of a SavedModel.

    TensorFlow warns whoever loads one with a function whose own gradient was not saved.
    """
    return true_within(_HAS_NO_GRADIENTS)


def custom_gradient(function: Callable[..., Any]) -> Callable[..., Any]:
    """As tf.custom_gradient; within `without_gradients` the function alone."""
    differentiable = tf.custom_gradient(function)

    @functools.wraps(function)
    def call(*tensors: tf.Tensor) -> Any:
        if _HAS_NO_GRADIENTS.get():
            return function(*tensors)[0]
        results = differentiable(*tensors)
        if not tf.executing_eagerly():
            _end_with_graph(tf.nest.flatten(results)[0].op)
        return results

    return call


def end_with_graph(graph: tf.Graph) -> None:
    """The same for those that TensorFlow itself has made in a graph, as tf.recompute_grad does."""
    for op in graph.get_operations():
        if op.type == "IdentityN":
            _end_with_graph(op)


class _OfGraph:
    """A gradient that its graph alone keeps."""

    def __init__(self, gradient: Callable[..., Any]) -> None:
        self._gradient = weakref.ref(gradient)

    def __call__(self, op: tf.Operation, *upstream: tf.Tensor) -> Any:
        gradient = self._gradient()
        assert gradient is not None, op.name  # it would have left the registry
        return gradient(op, *upstream)


def _end_with_graph(op: tf.Operation) -> None:
    """Gives the gradient of what tf.custom_gradient made to the graph that this is part of."""
    try:
        name = op.get_attr("_gradient_op_type").decode()
    except ValueError:  # one of another origin
        return
    registry = gradient_registry()
    entry = registry.get(name)
    if entry is None or isinstance(entry["type"], _OfGraph):
        return
    gradient = entry["type"]
    setattr(op.graph, _KEPT, [*getattr(op.graph, _KEPT, ()), gradient])
    entry["type"] = _OfGraph(gradient)
    weakref.finalize(gradient, registry.pop, name, None).atexit = False
