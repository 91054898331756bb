"""Small functions that XLA makes one pass over memory of, where that is possible.

TensorFlow computes a chain of elementwise operations one by one on a CPU, each a pass over memory.
"""

import contextlib
import contextvars
from collections.abc import Callable, Iterator

import tensorflow as tf

_IS_ALLOWED = contextvars.ContextVar("is_allowed", default=True)


@contextlib.contextmanager
def without_compilation() -> Iterator[None]:
    """Within it nothing is compiled, as for a SavedModel: not every server has XLA."""
    token = _IS_ALLOWED.set(False)
    try:
        yield
    finally:
        _IS_ALLOWED.reset(token)


class OnePass:
    """A function of tensors that is compiled where it may be.

    That is not the case `without_compilation`, and with several replicas: XLA cannot compile for
    more than one on one host's CPU.

    Args:
        function: takes and returns tensors; the returned shape has to follow from the first's.
    """

    def __init__(self, function: Callable[..., tf.Tensor]) -> None:
        self._function = function
        self._compiled = tf.function(
            function, jit_compile=True, autograph=False, reduce_retracing=True
        )

    def __call__(self, *tensors: tf.Tensor):
        is_alone = tf.distribute.get_strategy().num_replicas_in_sync == 1
        return (self._compiled if is_alone and _IS_ALLOWED.get() else self._function)(*tensors)
