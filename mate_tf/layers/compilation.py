"""Compiles small functions with XLA, where possible, so that they take one pass over memory.

On a CPU, TensorFlow computes a chain of elementwise operations one by one, each in its own pass.
"""

import contextlib
import contextvars
import functools
from collections.abc import Callable, Iterator

import tensorflow as tf

from mate_tf.private_apis import without_chatter

_IS_PORTABLE = contextvars.ContextVar("is_portable", default=False)
_HAS_CONSTANT_KERNELS = contextvars.ContextVar("has_constant_kernels", default=False)


@contextlib.contextmanager
def true_within(variable: contextvars.ContextVar[bool]) -> Iterator[None]:
    """A context in which the variable is true."""
    token = variable.set(True)
    try:
        yield
    finally:
        variable.reset(token)


def portable_graph() -> contextlib.AbstractContextManager[None]:
    """A context in which graphs are made for other machines too, as for a SavedModel.

    Nothing is compiled, because not every server has XLA, and nothing depends on this machine.
    """
    return true_within(_IS_PORTABLE)


def is_portable() -> bool:
    """Whether the current graph is for other machines too."""
    return _IS_PORTABLE.get()


def constant_kernels() -> contextlib.AbstractContextManager[None]:
    """A context in which graphs hold the current kernels of projections as constants."""
    return true_within(_HAS_CONSTANT_KERNELS)


def has_constant_kernels() -> bool:
    """Whether the current graph holds kernels as constants."""
    return _HAS_CONSTANT_KERNELS.get() and not tf.executing_eagerly()


def compiles_one_pass() -> bool:
    """Whether `OnePass` compiles here: only in a graph for this machine.

    Outside a graph, compiling takes longer than a few calls save.
    """
    if tf.executing_eagerly():
        return False
    return tf.distribute.get_strategy().num_replicas_in_sync == 1 and not is_portable()


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

    Args:
        function: takes and returns tensors.
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
