"""The steps of a training run, on all replicas, and the line that reports them.

Shapes: B examples of a batch, P parts that it is computed in.
"""

import dataclasses
import functools
import math
import signal
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from types import FrameType
from typing import Any

import tensorflow as tf
from absl import logging

from mate_tf.layers.compilation import end_with_graph
from mate_tf.private_apis import import_extra
from mate_tf.training.config import TrainingConfig
from mate_tf.training.distribution import Batch, distribute_batches, mean_share, sum_over_workers
from mate_tf.training.optimizer import BertAdamW

orbit = import_extra("orbit", "train", "to train")
_AbstractTrainer: Any = orbit.AbstractTrainer
_KNOWN = "known_loss"
_LINE_SECONDS = 5.0  # between lines that report steps


@dataclasses.dataclass(frozen=True)
class Task:
    """A model, what it learns from, and how it is measured."""

    # An EncoderTask, or another built model with its `model_inputs`, `compute_task_loss` and
    # `normalized_by`. The loss is the mean over the batch's examples, or a sum over "mean_NAME".
    model: Any
    # From the number of steps made so far to the endless batches that follow.
    train_dataset: Callable[[int], tf.data.Dataset]
    evaluate: Callable[[], Mapping[str, float | str]]  # metrics, and texts in Markdown, by name
    best_by: str  # the metric by which the best evaluation is chosen; more is better
    known_share: float = 0.0  # of the batches: those of known questions

    def is_known(self, step: int) -> bool:
        """Whether a step, which counts from 1, learns from known questions."""
        return int(self.known_share * step) > int(self.known_share * (step - 1))


class Terminated(SystemExit):
    """Training has ended after SIGTERM, and all of its work is saved."""

    def __init__(self) -> None:
        super().__init__(128 + signal.SIGTERM)


class Termination:
    """Notes SIGTERM, which precedes a machine's end; a second one ends the process at once."""

    def __init__(self) -> None:
        self.is_asked = False

    def __enter__(self) -> "Termination":
        self._is_main = threading.current_thread() is threading.main_thread()
        if self._is_main:
            self._previous = signal.signal(signal.SIGTERM, self._note)
        return self

    def __exit__(self, *_: Any) -> None:
        if self._is_main:
            signal.signal(signal.SIGTERM, self._previous)

    def _note(self, number: int, frame: FrameType | None) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        self.is_asked = True
        logging.warning("SIGTERM: ending after this step; a second one ends at once")


# Of a batch: the gradient of each variable, None where it has none, and named means.
Gradients = tuple[list[tf.Tensor | None], dict[str, tf.Tensor]]


def accumulate(compute: Callable[[Batch], Gradients], batch: Batch, num_parts: int) -> Gradients:
    """The means over a batch, tensors [B, ...], computed in P parts, in a loop of a graph."""
    if num_parts == 1:
        return compute(batch)
    parts = {
        name: tf.reshape(values, tf.concat([[num_parts, -1], tf.shape(values)[1:]], axis=0))
        for name, values in batch.items()
    }  # [P, B / P, ...]

    def part(index: Any) -> Batch:
        return {name: values[index] for name, values in parts.items()}

    traced = tf.function(compute, autograph=False).get_concrete_function(part(0))
    kinds = tf.nest.flatten(traced.structured_outputs)
    zeros = [tf.zeros(kind.shape, kind.dtype) for kind in kinds if kind is not None]

    def add(index: tf.Tensor, sums: list[tf.Tensor]) -> tuple[tf.Tensor, list[tf.Tensor]]:
        tensors = (tensor for tensor in tf.nest.flatten(traced(part(index))) if tensor is not None)
        return index + 1, [total + tensor for total, tensor in zip(sums, tensors, strict=True)]

    # In parallel the parts would need the memory of the whole.
    _, sums = tf.while_loop(
        lambda index, _: index < num_parts, add, (tf.constant(0), zeros), parallel_iterations=1
    )
    left = iter(sums)
    means = [None if kind is None else next(left) / num_parts for kind in kinds]
    return tf.nest.pack_sequence_as(traced.structured_outputs, means)


class Progress:
    """Averages the metrics of steps, and logs a line every few seconds.

    Metrics are tensors or numbers; "num_examples" and "num_tokens" are counts, the others are
    averaged over the steps that have them: each has a "loss" or a "known_loss". Tensors are read
    only when a line is due, so that steps can overlap. `ended` are the metrics of a stretch that
    SIGTERM ended, which belong to the next summary.
    """

    def __init__(self, num_steps: int, clock: Callable[[], float] = time.monotonic):
        self._num_steps = num_steps  # of the whole run
        self._clock = clock
        self._began = clock()
        self._steps_done = 0
        self.losses: list[float] = []
        self.ended: list[dict[str, float]] = []
        self.start()

    def start(self) -> None:
        """Begins a stretch of steps; the time between stretches counts only for the time left."""
        self._started = self._line_started = self._clock()
        self._steps: list[Mapping] = []
        self._num_logged = 0

    def end_early(self) -> None:
        """Keeps the steps since `start` for the next summary."""
        self.ended += ({name: float(step[name]) for name in step} for step in self._steps)

    def add(self, step: int, metrics: Mapping) -> None:
        """Takes the metrics of a step, whose number counts from 1."""
        self._steps.append(metrics)
        self._steps_done += 1
        if self._clock() - self._line_started >= _LINE_SECONDS:
            means = self._summary(self._steps[self._num_logged :], self._line_started)
            logging.info("%s", self._format(step, means))
            self._num_logged, self._line_started = len(self._steps), self._clock()

    def summary(self) -> dict[str, float]:
        """Means of the metrics, and examples and tokens a second, since `start`."""
        means = self._summary(self._steps, self._started)
        if self.ended:
            whole = self._summary([*self.ended, *self._steps], self._started)
            means = whole | {name: means[name] for name in means if name.endswith("_per_second")}
            self.ended.clear()
        return means

    def check_finite(self, step: int) -> None:
        """Adds to `losses` those since `start`; FloatingPointError with the first not finite."""
        for number, metrics in enumerate(self._steps, start=step + 1 - len(self._steps)):
            loss = float(metrics["loss" if "loss" in metrics else _KNOWN])
            if not math.isfinite(loss):
                raise FloatingPointError(f"expected a finite loss, got {loss} at step {number}")
            if _KNOWN not in metrics:
                self.losses.append(loss)

    def _summary(self, steps: list[Mapping], started: float) -> dict[str, float]:
        values: dict[str, list[float]] = defaultdict(list)
        for metrics in steps:
            for name, value in metrics.items():
                values[name].append(float(value))
        # Only once the tensors are read are the steps really over.
        seconds = max(self._clock() - started, 1e-9)
        counts = {name: sum(values.pop(f"num_{name}", [])) for name in ("examples", "tokens")}
        means = {name: sum(numbers) / len(numbers) for name, numbers in values.items()}
        return means | {f"{name}_per_second": count / seconds for name, count in counts.items()}

    def _format(self, step: int, means: Mapping[str, float]) -> str:
        left = (self._clock() - self._began) / self._steps_done * (self._num_steps - step)
        losses = {"loss": "loss", _KNOWN: "loss of known questions"}
        shown = (f"{text} {means[name]:.4f}" for name, text in losses.items() if name in means)
        return (
            f"step {step}/{self._num_steps}  {'  '.join(shown)}  "
            f"gradient norm {means['gradient_norm']:.2f}  "
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


class Trainer(_AbstractTrainer):
    """Makes training steps, traced once for each shape of batch."""

    def __init__(
        self, task: Task, optimizer: BertAdamW, config: TrainingConfig, termination: Termination
    ):
        self._task = task
        self._termination = termination
        self._accumulation_steps = config.gradient_accumulation_steps
        self._steps_per_loop = config.steps_per_loop
        self._optimizer = optimizer
        self._strategy = tf.distribute.get_strategy()
        self.progress = Progress(config.num_steps)
        self._batches: Iterator[Batch] | None = None

    @property
    def global_step(self) -> tf.Variable:
        """The number of updates made."""
        return self._optimizer.iterations.value

    def train(self, num_steps: tf.Tensor) -> dict[str, float]:
        """Makes the steps and returns their mean metrics; FloatingPointError or Terminated."""
        done = first = int(self.global_step.numpy())
        if self._batches is None:
            batches = functools.partial(self._task.train_dataset, first)
            self._batches = iter(distribute_batches(batches, self._accumulation_steps))
        self.progress.start()
        last = first + int(num_steps)
        while done < last:
            for metrics in self._train_steps(min(self._steps_per_loop, last - done)):
                done += 1
                if self._task.is_known(done):
                    metrics = {**metrics, _KNOWN: metrics["loss"]}
                    del metrics["loss"]
                self.progress.add(done, metrics)
            # The same on all workers after the same step.
            if sum_over_workers([self._termination.is_asked])[0]:
                self.progress.check_finite(done)
                self.progress.end_early()
                raise Terminated
        self.progress.check_finite(done)
        return self.progress.summary()

    def _train_steps(self, num_steps: int) -> list[Mapping[str, Any]]:
        """Makes steps in one call of a graph and returns the metrics of each."""
        assert self._batches is not None
        if self._steps_per_loop == 1:
            return [self._train_step(next(self._batches))]
        metrics = self._train_loop(self._batches, tf.constant(num_steps))
        values = {name: metric.numpy() for name, metric in metrics.items()}  # [num_steps]
        return [
            {name: metric[step] for name, metric in values.items()} for step in range(num_steps)
        ]

    @tf.function(autograph=False)
    def _train_loop(self, batches: Any, num_steps: tf.Tensor) -> dict[str, tf.Tensor]:
        metrics = self._train_step.get_concrete_function(batches.element_spec).structured_outputs
        arrays = {
            name: tf.TensorArray(metric.dtype, num_steps, element_shape=metric.shape)
            for name, metric in metrics.items()
        }

        def make_step(step: tf.Tensor, arrays: dict) -> tuple[tf.Tensor, dict]:
            metrics = self._train_step(next(batches))
            written = {name: array.write(step, metrics[name]) for name, array in arrays.items()}
            return step + 1, written

        _, arrays = tf.while_loop(
            lambda step, _: step < num_steps, make_step, (tf.constant(0), arrays)
        )
        return {name: array.stack() for name, array in arrays.items()}

    @tf.function(autograph=False)  # converting nothing would take seconds
    def _train_step(self, batch: Batch) -> dict[str, tf.Tensor]:
        metrics = self._strategy.run(self.replica_step, args=(batch,))
        end_with_graph(tf.compat.v1.get_default_graph())  # those of sums over replicas
        reduce = tf.distribute.ReduceOp
        return {
            name: self._strategy.reduce(
                reduce.SUM if name.startswith("num_") else reduce.MEAN, value, axis=None
            )
            for name, value in metrics.items()
        }

    def replica_step(self, batch: Batch) -> dict[str, tf.Tensor]:
        """Makes the update of a replica's step, and returns its metrics."""
        task = self._task
        learning_rate = tf.convert_to_tensor(self._optimizer.learning_rate)
        num_parts = self._accumulation_steps
        totals = {
            f"mean_{name}": mean_share(tf.reduce_sum(batch[name]), num_parts)
            for name in task.model.normalized_by
        }
        gradients, means = accumulate(
            lambda part: self._gradients({**part, **totals}), batch, num_parts
        )
        variables = zip(gradients, task.model.trainable_variables, strict=True)
        # A head without a gradient must not decay either.
        used = [(gradient, variable) for gradient, variable in variables if gradient is not None]
        self._optimizer.apply_gradients(used)

        counts = {"num_examples": tf.shape(tf.nest.flatten(batch)[0])[0]}
        if "input_mask" in batch:
            counts["num_tokens"] = tf.reduce_sum(batch["input_mask"])
        # Before clipping; of several replicas the mean of their own.
        norm = tf.linalg.global_norm([gradient for gradient, _ in used])
        norm *= self._strategy.num_replicas_in_sync
        return means | {"learning_rate": learning_rate, "gradient_norm": norm} | counts

    def _gradients(self, batch: Batch) -> Gradients:
        model = self._task.model
        with tf.GradientTape() as tape:
            outputs = model(*model.model_inputs(batch), training=True)
            metrics = model.compute_task_loss(batch, outputs)
            share = metrics["loss"] / self._strategy.num_replicas_in_sync
        variables = model.trainable_variables
        gradients = [
            None
            if gradient is None  # else of IndexedSlices too
            else tf.ensure_shape(tf.convert_to_tensor(gradient), variable.shape)
            for gradient, variable in zip(tape.gradient(share, variables), variables, strict=True)
        ]
        end_with_graph(tf.compat.v1.get_default_graph())  # those of recomputation
        return gradients, {name: tf.reduce_mean(value) for name, value in metrics.items()}
