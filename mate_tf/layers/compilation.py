"""Small functions that XLA makes one pass over memory of, where that is possible.

TensorFlow computes a chain of elementwise operations one by one on a CPU, each a pass over memory.
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
    """Within it the variable is true."""
    token = variable.set(True)
    try:
        yield
    finally:
        variable.reset(token)


def portable_graph() -> contextlib.AbstractContextManager[None]:
    """Within it graphs are made for other machines too, as for a SavedModel.

    Nothing is compiled, as not every server has XLA, and nothing follows from this machine.
    """
    return true_within(_IS_PORTABLE)


def is_portable() -> bool:
    """Whether a graph that is made now is for other machines too."""
    return _IS_PORTABLE.get()


def constant_kernels() -> contextlib.AbstractContextManager[None]:
    """Within it graphs are made with the kernels of projections as they are now."""
    return true_within(_HAS_CONSTANT_KERNELS)


def has_constant_kernels() -> bool:
    """Whether a graph that is made now holds the kernels as constants."""
    return _HAS_CONSTANT_KERNELS.get() and not tf.executing_eagerly()


def compiles_one_pass() -> bool:
    """Whether a `OnePass` that is called now is compiled: only as part of a graph of this machine.

    Op by op, compiling takes longer than a few calls save.
    """
    if tf.executing_eagerly():
        return False
    return tf.distribute.get_strategy().num_replicas_in_sync == 1 and not is_portable()


@functools.cache
def keep_first_compilation_quiet() -> None:
    """Compiles a function of one number: XLA writes about the first compilation alone."""
    with tf.init_scope():
        if tf.executing_eagerly():
            with without_chatter():
                tf.function(tf.negative, jit_compile=True, autograph=False)(tf.constant(1.0))


class OnePass:
    """A function of tensors that is compiled where it may be.

    That is not the case in a `portable_graph`, and with several replicas: XLA cannot compile for
    more than one on one host's CPU.

    It is shared by models of all sizes, so it must not need static ones, and returns none.

    Args:
        function: takes and returns tensors.
    """

    def __init__(self, function: Callable[..., tf.Tensor]) -> None:
        self._function = function
        # By dtypes and ranks: what is traced anew for other lengths is generalised to all.
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
