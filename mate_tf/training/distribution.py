"""Batches and numbers on several replicas: each worker and each of its devices takes its share.

Shapes: B examples of a global batch, R replicas.
"""

from collections.abc import Callable, Mapping

import tensorflow as tf

Batch = Mapping[str, tf.Tensor]


def check_batch_size(batch_size: int, num_parts: int = 1) -> None:
    """Refuses a global batch that the present strategy's replicas cannot divide among them.

    Args:
        batch_size: B.
        num_parts: how many parts a replica computes its share in (gradient_accumulation_steps).

    Raises:
        ValueError: if B is no multiple of the replicas times the parts.
    """
    num_replicas = tf.distribute.get_strategy().num_replicas_in_sync
    if batch_size % (num_replicas * num_parts):
        raise ValueError(
            f"expected batch_size to be a multiple of {num_replicas * num_parts} ({num_replicas} "
            f"replicas, gradient_accumulation_steps {num_parts}), got {batch_size}"
        )


def distribute_batches(
    dataset: Callable[[], tf.data.Dataset], num_parts: int = 1
) -> tf.distribute.DistributedDataset:
    """Deals the examples of each global batch out to the present strategy's replicas.

    Every worker reads all of the batches, in the same order, and takes the examples that are its
    replicas' own: one batch's replicas have one padded length, and what is learned from does not
    depend on their number.

    Args:
        dataset: makes global batches, tensors [B, ...], on each worker the same.
        num_parts: as `check_batch_size`.

    Returns:
        For each global batch, tensors [B / R, ...] for each replica.

    Raises:
        ValueError: as `check_batch_size`.
    """

    def shares(context: tf.distribute.InputContext) -> tf.data.Dataset:
        num_replicas = context.num_replicas_in_sync
        num_here = num_replicas // context.num_input_pipelines
        first = context.input_pipeline_id * num_here

        def divide(batch: Batch) -> tf.data.Dataset:
            return tf.data.Dataset.from_tensor_slices(
                {
                    name: tf.stack(tf.split(values, num_replicas)[first : first + num_here])
                    for name, values in batch.items()
                }
            )

        batches = dataset()
        batch_size = tf.nest.flatten(batches.element_spec)[0].shape[0]
        if batch_size is not None:
            check_batch_size(batch_size, num_parts)
        if num_replicas > 1:
            batches = batches.flat_map(divide)
        return batches.prefetch(num_here)

    return tf.distribute.get_strategy().distribute_datasets_from_function(shares)


def mean_share(total: tf.Tensor, num_parts: int) -> tf.Tensor:
    """The mean, over all parts of all replicas, of a sum that each replica has its share of.

    A loss that is a sum over this mean, averaged over parts and replicas, is the sum over the
    global batch divided by its total. Call it in a replica.
    """
    context = tf.distribute.get_replica_context()
    num_replicas = context.num_replicas_in_sync
    if num_replicas > 1:
        total = context.all_reduce(tf.distribute.ReduceOp.SUM, total)
    return total / (num_replicas * num_parts)
