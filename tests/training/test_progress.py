"""The progress line and the means behind it."""

import dataclasses
import logging

import pytest

from mate_tf.training.loop import train
from mate_tf.training.trainer import Progress, format_seconds
from tests.small import two_devices
from tests.training import fault_runs


class Clock:
    now = 100.0

    def __call__(self):
        return self.now


def test_a_line_is_due_every_few_seconds(caplog):
    clock = Clock()
    progress = Progress(num_steps=10, seconds=5.0, clock=clock)
    progress.start()
    with caplog.at_level(logging.INFO, logger="absl"):
        for step, loss in enumerate([4.0, 2.0, 1.0], start=1):
            clock.now += 3.0
            progress.add(
                step, {"loss": loss, "learning_rate": 1e-4, "num_examples": 6, "num_tokens": 90}
            )
    (record,) = caplog.records
    assert record.getMessage() == (
        "step 2/10  loss 3.0000  learning rate 1.00e-04  2.0 examples/s  30 tokens/s  24s left"
    )


def test_the_summary_covers_all_steps_since_start():
    clock = Clock()
    progress = Progress(num_steps=10, clock=clock)
    progress.start()
    progress.add(1, {"loss": 9.0, "num_examples": 1})
    clock.now += 100
    progress.start()
    for loss in (1.0, 3.0):
        clock.now += 2.0
        progress.add(2, {"loss": loss, "num_examples": 8})
    found = {"loss": 2.0, "examples_per_second": 4.0, "tokens_per_second": 0.0}
    assert progress.summary() == found


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.2, "0s"), (59.4, "59s"), (59.6, "1m 00s"), (725, "12m 05s"), (11105, "3h 05m")],
)
def test_durations_are_short(seconds, text):
    assert format_seconds(seconds) == text


def test_examples_and_tokens_are_those_of_all_replicas(tmp_path, monkeypatch):
    of_steps = []
    monkeypatch.setattr(Progress, "add", lambda self, step, metrics: of_steps.append(metrics))
    monkeypatch.setattr(Progress, "summary", lambda self: {})
    config = dataclasses.replace(fault_runs.CONFIG, num_steps=1)
    with two_devices().scope():
        train(fault_runs.make_task(), config, tmp_path / "run")
    (metrics,) = of_steps
    assert int(metrics["num_examples"]) == fault_runs.BATCH_SIZE
    assert int(metrics["num_tokens"]) == fault_runs.NUM_TOKENS
