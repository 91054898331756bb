"""Graphs: what XLA compiles in them, and custom gradients that are freed with them.

On a CPU, TensorFlow computes each elementwise operation in its own pass over memory. Small
functions are compiled, where possible, so that they take one pass.

In a graph, tf.custom_gradient registers the gradient of every call and never removes it. So a
process that trains one model after another would keep all of them, hundreds of megabytes each.
"""

import contextlib
import contextvars
import functools
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import tensorflow as tf

from mate_tf.private_apis import gradient_registry, without_chatter

_KEPT = "_mate_tf_gradients"  # an attribute of a graph


class Within:
    """A context that what runs in it can ask for: `with NAME():` and `NAME.is_on`."""

    def __init__(self, name: str) -> None:
        self._is_on = contextvars.ContextVar(name, default=False)

    @property
    def is_on(self) -> bool:
        return self._is_on.get()

    @contextlib.contextmanager
    def __call__(self) -> Iterator[None]:
        token = self._is_on.set(True)
        try:
            yield
        finally:
            self._is_on.reset(token)


# Graphs are made for other machines too, as for a SavedModel. Nothing is compiled, because not
# every server has XLA, and nothing depends on this machine.
portable_graph = Within("portable_graph")
# Graphs hold the current kernels of projections as constants.
constant_kernels = Within("constant_kernels")
# Graphs are made for inference on sequences of many lengths, all short or all long, as
# `kinds.ByLength` tells them apart. Blocks are traced together, and nothing is compiled: each
# length would take some tenths of a second and megabytes.
short_sequences = Within("short_sequences")
long_sequences = Within("long_sequences")
# Graphs are made that nobody trains, such as a SavedModel's. Otherwise TensorFlow warns, at
# loading, that a custom gradient was not saved.
without_gradients = Within("without_gradients")


def many_lengths() -> bool:
    """Whether a graph is made for `short_sequences` or `long_sequences`."""
    return short_sequences.is_on or long_sequences.is_on


def compiles_one_pass() -> bool:
    """Whether `OnePass` compiles here: only in a graph for this machine."""
    # Outside a graph, compiling takes longer than a few calls save.
    if tf.executing_eagerly() or many_lengths():
        return False
    return tf.distribute.get_strategy().num_replicas_in_sync == 1 and not portable_graph.is_on


@functools.cache
def keep_first_compilation_quiet() -> None:
    """Compiles a tiny function, because XLA writes a message at its first compilation only."""
    with tf.init_scope():
        if tf.executing_eagerly():
            with without_chatter():
                tf.function(tf.negative, jit_compile=True, autograph=False)(tf.constant(1.0))


class OnePass:
    """A function of tensors that is compiled where possible.

    It is not compiled in a `portable_graph`, or with several replicas: on one host's CPU, XLA
    compiles for one only. Models of all sizes share it, so it must not need static shapes, and its
    results have none.
    """

    def __init__(self, function: Callable[..., tf.Tensor]) -> None:
        self._function = function
        # By dtypes and ranks: after a second length, TensorFlow traces for all lengths.
        self._compiled: dict[tuple, Callable[..., tf.Tensor]] = {}

    def __call__(self, *tensors: tf.Tensor):
        if not compiles_one_pass():
            return self._function(*tensors)
        kind = tuple((tensor.dtype, tensor.shape.rank) for tensor in tensors)
        if kind not in self._compiled:
            keep_first_compilation_quiet()
            self._compiled[kind] = tf.function(
                self._function, jit_compile=True, autograph=False, reduce_retracing=True
            )
        return self._compiled[kind](*tensors)


def refuse_unless(condition: bool | tf.Tensor, *message: Any) -> list[tf.Operation]:
    """ValueError with a message, of texts and tensors, where a condition is known not to hold.

    Where only the graph will know it gives an assertion, for tf.control_dependencies, which is an
    InvalidArgumentError when it runs. XLA drops assertions.
    """
    holds = tf.get_static_value(condition) if tf.is_tensor(condition) else condition
    if holds is None:
        return [tf.debugging.Assert(condition, message)]
    if not holds:
        values = (tf.get_static_value(it) if tf.is_tensor(it) else it for it in message)
        raise ValueError(" ".join(map(str, values)))
    return []


def custom_gradient(function: Callable[..., Any]) -> Callable[..., Any]:
    """Like tf.custom_gradient, but within `without_gradients` only the function."""
    differentiable = tf.custom_gradient(function)

    @functools.wraps(function)
    def call(*tensors: tf.Tensor) -> Any:
        if without_gradients.is_on:
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
