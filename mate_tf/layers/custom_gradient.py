"""Custom gradients that are freed with their graph.

In a graph, tf.custom_gradient registers the gradient of every call under a new name and never
removes it. The gradient holds the graph and its variables, so a process that trains one model after
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
_KEPT = "_mate_tf_gradients"  # an attribute of a graph


def without_gradients() -> contextlib.AbstractContextManager[None]:
    """A context in which graphs are made that nobody trains, such as a SavedModel's.

    Otherwise TensorFlow warns, at loading, that a custom gradient was not saved.
    """
    return true_within(_HAS_NO_GRADIENTS)


def custom_gradient(function: Callable[..., Any]) -> Callable[..., Any]:
    """Like tf.custom_gradient, but within `without_gradients` only the function."""
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
    """Frees, with the graph, the gradients that TensorFlow made in it, as in tf.recompute_grad."""
    for op in graph.get_operations():
        if op.type == "IdentityN":
            _end_with_graph(op)


class _OfGraph:
    """A gradient that only its graph keeps."""

    def __init__(self, gradient: Callable[..., Any]) -> None:
        self._gradient = weakref.ref(gradient)

    def __call__(self, op: tf.Operation, *upstream: tf.Tensor) -> Any:
        gradient = self._gradient()
        assert gradient is not None, op.name  # else it had left the registry
        return gradient(op, *upstream)


def _end_with_graph(op: tf.Operation) -> None:
    """Moves a gradient of tf.custom_gradient from the registry to the operation's graph."""
    try:
        name = op.get_attr("_gradient_op_type").decode()
    except ValueError:  # not made by tf.custom_gradient
        return
    registry = gradient_registry()
    entry = registry.get(name)
    if entry is None or isinstance(entry["type"], _OfGraph):
        return
    gradient = entry["type"]
    setattr(op.graph, _KEPT, [*getattr(op.graph, _KEPT, ()), gradient])
    entry["type"] = _OfGraph(gradient)
    weakref.finalize(gradient, registry.pop, name, None).atexit = False
