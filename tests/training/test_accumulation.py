"""Batches computed in parts: the gradients and the weights of the whole batch."""

import dataclasses
import time

import keras
import numpy as np
import pytest
import tensorflow as tf

from mate_tf.training.config import TrainingConfig
from mate_tf.training.loop import train
from mate_tf.training.trainer import Task, accumulate
from tests.small import two_cpus

CONFIG = TrainingConfig(
    num_steps=5, learning_rate=0.05, eval_interval=5, checkpoint_interval=5, summary_interval=5
)
ROWS = 6


class Lookup(keras.Model):
    """The sum of a looked-up row, whose gradient is sparse; and a weight that nothing uses."""

    def __init__(self):
        super().__init__()
        self.table = self.add_weight((ROWS, 4), "random_normal", name="table")
        self.unused = self.add_weight((2,), "ones", name="unused")
        self.built = True

    def call(self, ids, training=False):
        return tf.reduce_sum(tf.gather(tf.convert_to_tensor(self.table), ids), axis=-1)


def make_task(batch_size=8):
    keras.utils.set_random_seed(3)
    model = Lookup()
    ids = np.arange(40, dtype=np.int32) % ROWS

    def train_dataset(step):
        data = {"ids": ids, "labels": np.sin(ids).astype(np.float32)}
        dataset = tf.data.Dataset.from_tensor_slices(data)
        return dataset.shuffle(40, seed=5).repeat().batch(batch_size, True).skip(step)

    def compute_loss(batch, outputs):
        errors = tf.square(outputs - batch["labels"])
        return {"loss": tf.reduce_mean(errors), "error": errors}

    def evaluate():
        loss = float(np.mean(np.square(model(ids).numpy() - np.sin(ids))))
        return {"loss": loss, "accuracy": -loss}

    return Task(
        model, train_dataset, compute_loss, evaluate, "accuracy", lambda batch: (batch["ids"],)
    )


def trained(directory, num_parts, strategy=None):
    with (strategy or tf.distribute.get_strategy()).scope():
        task = make_task()
        config = dataclasses.replace(CONFIG, gradient_accumulation_steps=num_parts)
        metrics = train(task, config, directory)
    return [*(weight.numpy() for weight in task.model.weights), metrics["loss"]]


def test_a_batch_in_parts_gives_the_weights_of_the_whole(tmp_path):
    whole = trained(tmp_path / "whole", 1)
    two = tf.distribute.MirroredStrategy(two_cpus(), tf.distribute.ReductionToOneDevice())
    for number, (num_parts, strategy) in enumerate([(2, None), (4, None), (2, two)]):
        parts = trained(tmp_path / str(number), num_parts, strategy)
        # The same mean in another order, in five updates of at most 0.05.
        for actual, expected in zip(parts, whole, strict=True):
            np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-5)


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
