"""The loop on a small model: learning, resume, evaluation, distribution, progress."""

import dataclasses
import logging
import shutil
import types

import numpy as np
import pytest
import tensorflow as tf

from experiments.benchmarks.runners import scalars
from mate_tf.training.config import TrainingConfig
from mate_tf.training.loop import make_optimizer, train
from mate_tf.training.optimizer import SCHEDULES
from mate_tf.training.trainer import Progress, format_seconds
from mate_tf.weights.folder import CALIBRATION_FILE
from tests.small import (
    ENCODER,
    assert_same,
    best_evaluation,
    cases,
    restored_step,
    two_devices,
)
from tests.training import fault_runs
from tests.training.fault_runs import make_task

CONFIG = TrainingConfig(
    num_steps=12,
    learning_rate=0.05,
    summary_interval=2,
    eval_interval=4,
    checkpoint_interval=6,
    keep_checkpoints=3,
    encoder=ENCODER,
)


def test_training_learns_and_leaves_checkpoints_summaries_and_evaluations(tmp_path, capsys):
    task = make_task(dropout=0.0)
    before, unused = task.evaluate()["loss"], task.model.unused.kernel.numpy()
    metrics = train(task, CONFIG, tmp_path)
    assert metrics["loss"] < 0.5 * before
    # Weights without a gradient do not move.
    np.testing.assert_array_equal(task.model.unused.kernel.numpy(), unused)

    checkpoints = tf.train.get_checkpoint_state(str(tmp_path)).all_model_checkpoint_paths
    assert [path.rpartition("/")[2] for path in checkpoints] == ["ckpt-6", "ckpt-8", "ckpt-12"]
    summaries = scalars(tmp_path / "train")
    assert list(summaries["loss"]) == [2, 4, 6, 8, 10, 12]
    assert {"learning_rate", "errors", "examples_per_second", "tokens_per_second"} <= set(summaries)
    assert scalars(tmp_path / "dev")["loss"].keys() == {4, 8, 12}
    assert capsys.readouterr().out == ""

    for _ in range(2):
        again = make_task()
        assert restored_step(again.model, tmp_path) == 12
        assert again.evaluate() == metrics
        # As before the first evaluation: then the latest are taken, from among the optimizer's.
        shutil.rmtree(tmp_path / "best", ignore_errors=True)


@cases(
    "stop, config",
    (6, CONFIG),
    (7, CONFIG),
    # Between an evaluation, the second of three, and the checkpoint that would know of it.
    (10, dataclasses.replace(CONFIG, ema_decay=0.5, early_stopping_loss=1e-9)),
    # At the step of an evaluation, whose checkpoint is older than it.
    (8, dataclasses.replace(CONFIG, ema_decay=0.5, checkpoint_interval=4)),
)
def test_a_resumed_run_equals_one_that_was_not_interrupted(tmp_path, stop, config):
    whole = make_task()
    train(whole, config, tmp_path / "whole")

    first = make_task()
    ends = dataclasses.replace(first, train_dataset=lambda _: first.train_dataset(0).take(stop))
    with pytest.raises(StopIteration, match=r"^$"):
        train(ends, config, tmp_path / "resumed")
    resumed = make_task()
    train(resumed, config, tmp_path / "resumed")

    assert_same(resumed.model.variables, whole.model.variables)
    best = make_task().model
    assert_kept(tmp_path / "resumed", restored_step(best, tmp_path / "whole"), best.weights)
    evaluations = [(tmp_path / n / "evaluations.jsonl").read_text() for n in ("whole", "resumed")]
    assert evaluations[0] == evaluations[1]


def watched(task, scores, losses=()):
    """The task with scores of its evaluations, and the weights that each of them sees."""
    remaining, seen = zip(scores, losses, strict=True) if losses else zip(scores, strict=True), []

    def evaluate():
        seen.append([weight.numpy() for weight in task.model.weights])
        return dict(zip(("accuracy", "loss"), next(remaining), strict=False))

    return dataclasses.replace(task, evaluate=evaluate), seen


def assert_kept(folder, step, weights):
    model = make_task().model
    assert restored_step(model, folder) == step
    assert_same(model.weights, weights)


@pytest.fixture
def log(caplog):
    caplog.set_level(logging.INFO, "absl")
    return caplog


def test_the_best_evaluation_is_kept_with_its_weights(tmp_path, log):
    task, seen = watched(make_task(), [0.25, 0.75, 0.5])
    calibration = tmp_path / CALIBRATION_FILE
    calibration.write_text("of weights before")
    train(task, dataclasses.replace(CONFIG, keep_checkpoints=1), tmp_path)
    assert best_evaluation(tmp_path, "accuracy")["step"] == 8
    assert not calibration.exists()
    (last,) = (line for line in log.messages if line.startswith("step 12 evaluation: "))
    assert last.endswith("accuracy 0.5000  (accuracy: best 0.7500 at step 8)")
    assert_kept(tmp_path, 8, seen[1])
    assert not np.array_equal(seen[1][0], task.model.weights[0].numpy())


def test_moving_averages_are_evaluated_and_kept_and_training_goes_on_without_them(tmp_path):
    decay = 0.75
    each_step = dataclasses.replace(CONFIG, num_steps=4, eval_interval=1, keep_checkpoints=4)
    plain, found = watched(make_task(), [1.0, 2.0, 3.0, 4.0])
    train(plain, each_step, tmp_path / "plain")
    averages = found[0]
    for weights in found[1:]:
        pairs = zip(averages, weights, strict=True)
        averages = [decay * average + (1 - decay) * weight for average, weight in pairs]

    task, evaluated = watched(make_task(), [1.0, 2.0, 3.0, 4.0])
    train(task, dataclasses.replace(each_step, ema_decay=decay), tmp_path / "averaging")
    assert_same(evaluated[-1], averages, rtol=0, atol=1e-6)  # sums of weights of about 1
    assert_kept(tmp_path / "averaging", 4, evaluated[-1])
    assert_same(task.model.weights, plain.model.weights)


@cases(
    "scores, losses, ema_decay, says, kept",
    ([0.5, 0.25, 0.75, 0.5], (), None, "start 0.5000; best 0.7500 after step 8", 8),
    ([0.5, 0.25, 0.5, 0.25], (), 0.5, "start 0.5000; none is better", 0),
    # The first is worse than the start, the second is within reach.
    ([0.5, 0.4, 0.4, 0.3], [0.5, 0.75, 0.4, 0.3], 0.5, "after step 8, with a lower loss", 8),
    ([0.5, 0.4, 0.4, 0.3], [0.5, 0.5, 0.5, 0.5], None, "start 0.5000; none is better", 0),
    ([0.5, 1.0, 1.0, 1.0], [0.5, 0.5, 0.25, 0.25], None, "best 1.0000 after step 8", 8),
)
def test_the_start_is_kept_where_nothing_is_better_by_score_or_else_by_loss(
    tmp_path, log, scores, losses, ema_decay, says, kept
):
    task, seen = watched(make_task(), scores, losses)
    start = [weight.numpy() for weight in task.model.weights]
    tolerance = 0.11 if losses else 0.0
    config = dataclasses.replace(CONFIG, ema_decay=ema_decay, start_tolerance=tolerance)
    train(task, config, tmp_path, evaluates_start=True)
    assert_same(seen[0], start)
    assert f"{says})" in log.messages[-1]
    assert_kept(tmp_path, kept, seen[kept // 4])


def test_training_ends_when_all_is_learned_and_an_evaluation_is_no_better(tmp_path, log):
    def run(limit, scores, folder):
        config = dataclasses.replace(CONFIG, early_stopping_loss=limit)
        train(make_task(evaluations=iter(scores)), config, folder)
        return int(tf.train.latest_checkpoint(str(folder)).rpartition("-")[2])

    assert run(1e-9, [2.0, 1.0, 1.0], tmp_path / "not learned") == 12
    assert run(1e9, [1.0, 2.0, 3.0], tmp_path / "better") == 12
    assert run(1e9, [np.nan, 1.0], tmp_path / "no number") == 4
    assert run(1e9, [2.0, 1.0], tmp_path / "learned") == 8
    assert "step 8: stopping, for all is learned (a loss of " in log.text
    assert run(1e9, [0.0], tmp_path / "learned") == 8  # also when it is started again


@pytest.mark.parametrize("strategy", [tf.distribute.get_strategy, two_devices])
def test_several_steps_in_one_call_are_those_one_by_one(tmp_path, strategy):
    """The last call has one step left."""
    runs = {}
    for steps_per_loop in (1, 2):
        config = dataclasses.replace(
            CONFIG, num_steps=7, ema_decay=0.5, steps_per_loop=steps_per_loop
        )
        folder = tmp_path / str(steps_per_loop)
        with strategy().scope():
            task = make_task()
            train(task, config, folder)
            weights = [weight.numpy() for weight in task.model.variables]
        losses = scalars(folder / "train")["loss"]
        assert list(losses) == [2, 4, 6, 7]
        runs[steps_per_loop] = [*weights, *losses.values()]
    assert_same(runs[2], runs[1])


def test_a_line_is_due_every_few_seconds_with_short_durations(log):
    clock = types.SimpleNamespace(now=100.0)
    progress = Progress(num_steps=10, clock=lambda: clock.now)
    for step, loss in enumerate([4.0, 2.0, 1.0], start=1):
        clock.now += 3.0
        rates = {"learning_rate": 1e-4, "gradient_norm": 0.5}
        progress.add(step, {"loss": loss, **rates, "num_examples": 6, "num_tokens": 90})
    assert log.messages == [
        "step 2/10  loss 3.0000  gradient norm 0.50  learning rate 1.00e-04  2.0 examples/s  "
        "30 tokens/s  24s left"
    ]
    clock.now += 100
    progress.start()  # the summary is of all steps since then
    for loss in (1.0, 3.0):
        clock.now += 2.0
        progress.add(4, {"loss": loss, "num_examples": 8})
    found = {"loss": 2.0, "examples_per_second": 4.0, "tokens_per_second": 0.0}
    assert progress.summary() == found
    seconds = (0.2, 59.4, 59.6, 725, 11105)
    assert [*map(format_seconds, seconds)] == ["0s", "59s", "1m 00s", "12m 05s", "3h 05m"]


def test_examples_and_tokens_are_those_of_all_replicas(tmp_path, monkeypatch):
    of_steps = []
    monkeypatch.setattr(Progress, "add", lambda self, step, metrics: of_steps.append(metrics))
    monkeypatch.setattr(Progress, "summary", lambda self: {})
    config = dataclasses.replace(fault_runs.CONFIG, num_steps=1)
    with two_devices().scope():
        train(make_task(), config, tmp_path / "run")
    (metrics,) = of_steps
    assert int(metrics["num_examples"]) == fault_runs.BATCH_SIZE
    assert int(metrics["num_tokens"]) == fault_runs.NUM_TOKENS


def test_another_schedule_is_one_entry(monkeypatch):
    monkeypatch.setitem(SCHEDULES, "constant", lambda peak, num_steps, warmup_steps: peak)
    config = dataclasses.replace(CONFIG, schedule="constant", learning_rate=0.25)
    assert float(make_optimizer(make_task().model, config).learning_rate) == 0.25
