"""The loop on a small model: learning, resume, evaluation, distribution, damage."""

import dataclasses
import logging

import keras
import numpy as np
import pytest
import tensorflow as tf

from mate_tf.training.config import TrainingConfig
from mate_tf.training.loop import Task, best_evaluation, train
from mate_tf.weights.run import restore_weights

CONFIG = TrainingConfig(
    num_steps=12,
    learning_rate=0.05,
    summary_interval=2,
    eval_interval=4,
    checkpoint_interval=6,
    keep_checkpoints=3,
)


class Regression(keras.Model):
    def __init__(self, dropout):
        super().__init__()
        self.dropout = keras.layers.Dropout(dropout)
        self.hidden = keras.layers.Dense(8, activation="tanh", name="hidden")
        self.unused = keras.layers.Dense(1, name="unused")
        # tf.train.Checkpoint does not look into the dicts of Keras 3 layers.
        self.heads = {"last": keras.layers.Dense(1, name="last")}
        for layer, size in ((self.hidden, 3), (self.heads["last"], 8), (self.unused, 8)):
            layer.build((None, size))
        self.built = True

    def call(self, inputs, training=False):
        return self.heads["last"](self.dropout(self.hidden(inputs), training=training))


def make_task(dropout=0.5, batch_size=8, evaluations=None):
    keras.utils.set_random_seed(3)
    model = Regression(dropout)
    inputs = np.random.default_rng(0).normal(size=(40, 3)).astype(np.float32)
    labels = inputs.sum(axis=1, keepdims=True)
    mask = np.ones_like(inputs, np.int32)

    def train_dataset(step):
        data = {"x": inputs, "y": labels, "input_mask": mask}
        dataset = tf.data.Dataset.from_tensor_slices(data)
        return dataset.shuffle(40, seed=5).repeat().batch(batch_size, True).skip(step)

    def compute_loss(batch, outputs):
        errors = tf.square(outputs - batch["y"])
        return {"loss": tf.reduce_mean(errors), "errors": errors}

    def evaluate():
        loss = float(np.mean(np.square(model(inputs).numpy() - labels)))
        accuracy = -loss if evaluations is None else next(evaluations)
        return {"loss": loss, "accuracy": accuracy}

    return Task(
        model, train_dataset, compute_loss, evaluate, "accuracy", lambda batch: (batch["x"],)
    )


def events(directory):
    """The values of each TensorBoard tag, by step."""
    found = {}
    for path in directory.glob("events.*"):
        for record in tf.data.TFRecordDataset(str(path)):
            event = tf.compat.v1.Event.FromString(record.numpy())
            for value in event.summary.value:
                found.setdefault(value.tag, {})[event.step] = float(tf.make_ndarray(value.tensor))
    return found


def test_training_learns_and_leaves_checkpoints_summaries_and_evaluations(tmp_path, capsys):
    task = make_task(dropout=0.0)
    before = task.evaluate()["loss"]
    metrics = train(task, CONFIG, tmp_path)
    assert metrics["loss"] < 0.5 * before

    checkpoints = tf.train.get_checkpoint_state(str(tmp_path)).all_model_checkpoint_paths
    assert [path.rpartition("/")[2] for path in checkpoints] == ["ckpt-6", "ckpt-12"]
    summaries = events(tmp_path / "train")
    assert list(summaries["loss"]) == [2, 4, 6, 8, 10, 12]
    assert {"learning_rate", "errors", "examples_per_second", "tokens_per_second"} <= set(summaries)
    assert events(tmp_path / "dev")["loss"].keys() == {4, 8, 12}
    assert capsys.readouterr().out == ""

    again = make_task()
    assert restore_weights(again.model, tmp_path) == 12
    assert again.evaluate() == metrics


@pytest.mark.parametrize("stop", [6, 7])
def test_a_resumed_run_equals_one_that_was_not_interrupted(tmp_path, stop):
    whole = make_task()
    train(whole, CONFIG, tmp_path / "whole")

    first = make_task()
    ends = dataclasses.replace(first, train_dataset=lambda _: first.train_dataset(0).take(stop))
    with pytest.raises(StopIteration):
        train(ends, CONFIG, tmp_path / "resumed")
    resumed = make_task()
    train(resumed, CONFIG, tmp_path / "resumed")

    for actual, expected in zip(resumed.model.variables, whole.model.variables, strict=True):
        np.testing.assert_array_equal(actual.numpy(), expected.numpy())
    evaluations = [
        (tmp_path / name / "evaluations.jsonl").read_text() for name in ("whole", "resumed")
    ]
    assert evaluations[0] == evaluations[1]


def test_a_finished_run_is_only_evaluated(tmp_path):
    task = make_task()
    metrics = train(task, CONFIG, tmp_path)
    again = make_task()
    again_metrics = train(
        dataclasses.replace(again, train_dataset=lambda step: pytest.fail("trains")),
        CONFIG,
        tmp_path,
    )
    assert again_metrics == metrics


def test_the_best_evaluation_is_kept(tmp_path, caplog):
    task = make_task(evaluations=iter([0.25, 0.75, 0.5]))
    with caplog.at_level(logging.INFO, logger="absl"):
        train(task, CONFIG, tmp_path)
    assert best_evaluation(tmp_path, "accuracy")["step"] == 8
    lines = [record.getMessage() for record in caplog.records]
    last = [line for line in lines if line.startswith("step 12 evaluation: ")]
    assert last[0].endswith("accuracy 0.5000  (best accuracy 0.7500 at step 8)")


def test_a_loss_that_is_not_finite_stops_before_the_checkpoint(tmp_path):
    task = make_task()
    broken = dataclasses.replace(
        task, compute_loss=lambda batch, outputs: {"loss": np.nan * outputs[0, 0]}
    )
    with pytest.raises(FloatingPointError, match="the loss is nan at step 2; lower learning_rate"):
        train(broken, CONFIG, tmp_path)
    assert tf.train.latest_checkpoint(str(tmp_path)) is None


def test_weights_without_gradient_do_not_move(tmp_path):
    task = make_task()
    before = task.model.unused.kernel.numpy()
    train(task, CONFIG, tmp_path)
    np.testing.assert_array_equal(task.model.unused.kernel.numpy(), before)


def test_restoring_from_a_folder_without_checkpoint_is_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match="expected a checkpoint in"):
        restore_weights(make_task().model, tmp_path)


def test_two_replicas_give_the_weights_of_one(tmp_path):
    cpus = tf.config.list_logical_devices("CPU")
    if len(cpus) < 2:
        pytest.skip("needs two logical CPU devices")
    one = make_task(dropout=0.0)
    train(one, CONFIG, tmp_path / "one")
    # Collectives of several strategies in one process would collide on CPUs.
    reduction = tf.distribute.ReductionToOneDevice()
    with tf.distribute.MirroredStrategy(cpus[:2], reduction).scope():
        two = make_task(dropout=0.0)
        train(two, CONFIG, tmp_path / "two")
    for actual, expected in zip(two.model.weights, one.model.weights, strict=True):
        np.testing.assert_allclose(actual.numpy(), expected.numpy(), rtol=1e-4, atol=1e-5)
