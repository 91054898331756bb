"""The line that says, every few seconds, how a training run is doing."""

import math
import time
from collections.abc import Callable, Mapping

from absl import logging


class Progress:
    """Averages the metrics of steps and logs a line when the last one is some seconds old.

    The metrics of a step are tensors or numbers; "num_examples" and "num_tokens" are counts, the
    others are averaged. Tensors are read only when a line is due, so that steps can overlap.

    Args:
        num_steps: of the whole run, for the time left.
        seconds: between two lines.
        clock: the time in seconds.
    """

    def __init__(
        self, num_steps: int, seconds: float = 5.0, clock: Callable[[], float] = time.monotonic
    ):
        self._num_steps = num_steps
        self._seconds = seconds
        self._clock = clock
        self._began = clock()
        self._steps_done = 0
        self._training_seconds = 0.0
        self._steps: list[Mapping] = []
        self._line: list[Mapping] = []

    def start(self) -> None:
        """Begins a stretch of steps; time between stretches counts for the time left only."""
        self._started = self._line_started = self._clock()
        self._steps, self._line = [], []

    def add(self, step: int, metrics: Mapping) -> None:
        """Takes the metrics of a step, whose number counts from 1."""
        self._steps.append(metrics)
        self._line.append(metrics)
        self._steps_done += 1
        if self._clock() - self._line_started >= self._seconds:
            means = self._summary(self._line, self._line_started)
            logging.info("%s", self._format(step, means))
            self._line, self._line_started = [], self._clock()

    def summary(self) -> dict[str, float]:
        """Means of the metrics and examples and tokens a second since `start`."""
        return self._summary(self._steps, self._started)

    def check_finite(self, step: int) -> None:
        """Refuses a loss that is no number in one of the steps since `start`, which end at `step`.

        Raises:
            FloatingPointError: with the first such step.
        """
        for number, metrics in enumerate(self._steps, start=step + 1 - len(self._steps)):
            if not math.isfinite(metrics["loss"]):
                raise FloatingPointError(
                    f"expected a finite loss, got {float(metrics['loss'])} at step {number}"
                )

    def _summary(self, steps: list[Mapping], started: float) -> dict[str, float]:
        sums = {name: sum(float(metrics[name]) for metrics in steps) for name in steps[0]}
        # After the tensors are read: only then are the steps really over.
        seconds = max(self._clock() - started, 1e-9)
        means = {name: total / len(steps) for name, total in sums.items()}
        for name in ("examples", "tokens"):
            means.pop(f"num_{name}", None)
            means[f"{name}_per_second"] = sums.get(f"num_{name}", 0.0) / seconds
        return means

    def _format(self, step: int, means: Mapping[str, float]) -> str:
        elapsed = self._clock() - self._began
        left = elapsed / self._steps_done * (self._num_steps - step)
        return (
            f"step {step}/{self._num_steps}  loss {means['loss']:.4f}  "
            f"learning rate {means['learning_rate']:.2e}  "
            f"{means['examples_per_second']:.1f} examples/s  "
            f"{means['tokens_per_second']:.0f} tokens/s  {format_seconds(left)} left"
        )


def format_seconds(seconds: float) -> str:
    """A duration as 3h 05m, 12m 09s or 8s."""
    minutes, second = divmod(round(seconds), 60)
    hours, minute = divmod(minutes, 60)
    if hours:
        return f"{hours}h {minute:02d}m"
    return f"{minute}m {second:02d}s" if minute else f"{second}s"
