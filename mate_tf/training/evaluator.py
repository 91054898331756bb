"""The evaluations of a training run: their file, the best one and its weights."""

import json
import math
import pathlib
from collections.abc import Mapping

import orbit
import tensorflow as tf
from absl import logging

from mate_tf.tables.text_files import complete_text_file
from mate_tf.training.distribution import chief_values, is_chief
from mate_tf.training.optimizer import BertAdamW
from mate_tf.training.task import Task
from mate_tf.weights.run import CALIBRATION

EVALUATIONS_FILE = "evaluations.jsonl"
TEXTS_FOLDER = "evaluations"


def read_evaluations(model_dir: pathlib.Path) -> list[dict[str, float]]:
    """A run's evaluations, each its step and its metrics; none before there is a first."""
    path = model_dir / EVALUATIONS_FILE
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return [json.loads(line) for line in lines]


class BestSoFar(tf.train.experimental.PythonState):
    """Which evaluation was the best, and how many have come since.

    A later one that is just as good is no better, and one that is not a number never is.

    Attributes:
        step: of the best evaluation, 0 before there is one.
        value: of its metric.
        last_step: of the latest evaluation.
        num_since: how many evaluations were made after the best.
    """

    def __init__(self) -> None:
        self.step = 0
        self.value = float("-inf")
        self.last_step = 0
        self.num_since = 0

    def add(self, step: int, value: float) -> bool:
        """Takes the next evaluation and says whether it is better than those before."""
        self.last_step = step
        if not value > self.value:  # as it is of a NaN
            self.num_since += 1
            return False
        self.step, self.value, self.num_since = step, value, 0
        return True

    def serialize(self) -> bytes:
        return json.dumps([self.step, self.value, self.last_step, self.num_since]).encode()

    def deserialize(self, string_value: bytes) -> None:
        self.step, self.value, self.last_step, self.num_since = json.loads(string_value)


class Evaluator(orbit.AbstractEvaluator):
    """Runs the task's evaluation, keeps its results in a file and the best one's weights."""

    def __init__(
        self,
        task: Task,
        optimizer: BertAdamW,
        best: BestSoFar,
        best_weights: tf.train.CheckpointManager,
        folder: pathlib.Path,
    ):
        self._task = task
        self._optimizer = optimizer
        self._best = best
        self._best_weights = best_weights
        self._folder = folder

    def evaluate(self, num_steps: tf.Tensor) -> dict[str, float]:
        """Evaluates on all held-out data, whatever num_steps says; the chief alone does."""
        step = int(self._optimizer.iterations.numpy())
        best_by = self._task.best_by
        metrics = {best_by: math.nan}
        with self._optimizer.averaged_weights():
            if is_chief():
                results = self._task.evaluate()
                texts = {name: text for name, text in results.items() if isinstance(text, str)}
                metrics = {name: float(results[name]) for name in results if name not in texts}
                self._show(step, texts)
            (metrics[best_by],) = chief_values([metrics[best_by]])
            if self._best.add(step, metrics[best_by]):
                self._best_weights.save(checkpoint_number=step)
                if is_chief():
                    (self._folder / CALIBRATION).unlink(missing_ok=True)  # of the weights before
        self._write({"step": step} | metrics)
        logging.info(
            "step %d evaluation: %s  (best %s %.4f at step %d)",
            step,
            "  ".join(f"{name} {value:.4f}" for name, value in metrics.items()),
            best_by,
            self._best.value,
            self._best.step,
        )
        return metrics

    def _write(self, evaluation: Mapping[str, float]) -> None:
        """Adds a line, in place of those that an interrupted run wrote from this step on."""
        earlier = read_evaluations(self._folder)
        kept = [one for one in earlier if one["step"] < evaluation["step"]]
        with complete_text_file(self._folder / EVALUATIONS_FILE) as file:
            file.writelines(f"{json.dumps(one)}\n" for one in [*kept, evaluation])

    def _show(self, step: int, texts: Mapping[str, str]) -> None:
        """Puts texts into the evaluation's file and before TensorBoard."""
        if not texts:
            return
        for name, text in texts.items():
            tf.summary.text(name, text, step=step)
        path = self._folder / TEXTS_FOLDER / f"{step}.md"
        path.parent.mkdir(exist_ok=True)
        with complete_text_file(path) as file:
            file.write("\n".join(f"# {name}\n\n{text}" for name, text in texts.items()))
