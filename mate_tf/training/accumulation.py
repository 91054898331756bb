"""The gradients of a batch that does not fit into memory at once.

Shapes: B examples of a batch, P parts.
"""

from collections.abc import Callable, Mapping

import tensorflow as tf

Batch = Mapping[str, tf.Tensor]
# Of a batch: the gradient of each variable, None where it has none, and named means.
Gradients = tuple[list[tf.Tensor | None], dict[str, tf.Tensor]]


def accumulate(compute: Callable[[Batch], Gradients], batch: Batch, num_parts: int) -> Gradients:
    """Computes a batch in parts, one after the other, and averages what comes of them.

    Where the loss is a mean over examples that is what the whole batch gives. Call it in a graph,
    in which `compute` is traced once.

    Args:
        compute: from a batch to its gradients and means; dense tensors.
        batch: tensors [B, ...].
        num_parts: P.

    Raises:
        ValueError: if B is no multiple of P.
    """
    if num_parts == 1:
        return compute(batch)
    parts = {name: _divide(values, num_parts) for name, values in batch.items()}  # [P, B/P, ...]
    traced = tf.function(compute, autograph=False)
    # What depends on a call of a function itself need not wait for its results.
    sums = _map(tf.identity, traced({name: values[0] for name, values in parts.items()}))
    for index in range(1, num_parts):
        # Side by side the parts would need the memory of the whole.
        done = [tensor for tensor in tf.nest.flatten(sums) if tensor is not None]
        with tf.control_dependencies(done):
            found = traced({name: values[index] for name, values in parts.items()})
        sums = _map(tf.add, sums, found)
    return _map(lambda total: total / num_parts, sums)


def _map(function: Callable[..., tf.Tensor], *structures: Gradients) -> Gradients:
    return tf.nest.map_structure(
        lambda *tensors: None if tensors[0] is None else function(*tensors), *structures
    )


def _divide(values: tf.Tensor, num_parts: int) -> tf.Tensor:
    size = values.shape[0]
    if size is not None and size % num_parts:
        raise ValueError(
            f"expected on each replica a batch whose size is a multiple of {num_parts} "
            f"(gradient_accumulation_steps), got {size}"
        )
    return tf.reshape(values, tf.concat([[num_parts, -1], tf.shape(values)[1:]], axis=0))
