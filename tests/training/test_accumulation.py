"""Batches computed in parts: the gradients and the weights of the whole batch."""

import dataclasses
import time

import pytest
import tensorflow as tf

from mate_tf.training.loop import train
from mate_tf.training.trainer import accumulate
from tests.small import assert_same, scalars, two_devices
from tests.training import distributed_runs

CONFIG = dataclasses.replace(
    distributed_runs.CONFIG, num_steps=5, eval_interval=5, checkpoint_interval=5
)


def trained(directory, num_parts, strategy=None):
    """Losses and weights of a model with a looked-up table, whose gradient is sparse."""
    with (strategy or tf.distribute.get_strategy()).scope():
        task = distributed_runs.masked_task()
        train(task, dataclasses.replace(CONFIG, gradient_accumulation_steps=num_parts), directory)
    losses = list(scalars(directory / "train")["loss"].values())
    return [losses, *(weight.numpy() for weight in task.model.weights)]


def test_a_batch_in_parts_gives_the_weights_of_the_whole(tmp_path):
    whole = trained(tmp_path / "whole", 1)
    for number, (num_parts, strategy) in enumerate([(2, None), (4, None), (2, two_devices())]):
        parts = trained(tmp_path / str(number), num_parts, strategy)
        # The same mean in another order, in five updates of at most 0.003.
        assert_same(parts, whole, rtol=1e-5, atol=1e-6)


def test_a_part_is_computed_in_one_trace_and_after_the_part_before():
    traces, order = [], []

    def record(mean):
        time.sleep(0.2 if mean == 1.0 else 0.0)  # side by side, the first would be last
        order.append(float(mean))
        return mean

    def compute(batch):
        traces.append(batch["x"].shape)
        mean = tf.reduce_mean(batch["x"])
        # Without state: TensorFlow itself would keep what has some in order.
        mean = tf.numpy_function(record, [mean], tf.float32, stateful=False)
        return [mean, None], {"loss": mean}

    @tf.function(autograph=False)
    def run(values):
        return accumulate(compute, {"x": values}, 4)

    gradients, means = run(tf.range(12.0)[:, tf.newaxis])
    assert traces == [(3, 1)]
    assert order == [1.0, 4.0, 7.0, 10.0]
    assert gradients[1] is None
    assert float(gradients[0]) == float(means["loss"]) == 5.5


def test_a_batch_that_cannot_be_divided_is_refused():
    with pytest.raises(ValueError, match=r"multiple of 3 \(gradient_accumulation_steps\), got 8"):
        accumulate(lambda batch: ([], batch), {"x": tf.zeros([8, 2])}, 3)
