"""A task's training on Orbit: steps, evaluations, checkpoints, summaries and exact resume."""

import contextlib
import dataclasses
import json
import math
import pathlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import keras
import orbit
import tensorflow as tf
from absl import logging

from mate_tf.tables.token_features import TokenFeatures
from mate_tf.training.accumulation import Gradients, accumulate
from mate_tf.training.config import TrainingConfig
from mate_tf.training.distribution import Batch, distribute_batches, mean_share
from mate_tf.training.optimizer import BertAdamW, WarmupLinearDecay
from mate_tf.training.progress import Progress
from mate_tf.weights.names import weights_by_path

EVALUATIONS_FILE = "evaluations.jsonl"


@dataclasses.dataclass(frozen=True)
class Task:
    """What the loop trains.

    Attributes:
        model: with its weights created.
        train_dataset: from the number of steps already made to the batches that follow, without
            end; their order must be a function of the seed alone.
        compute_loss: from a batch and the model's outputs to metrics, among them "loss", the mean
            over the batch's examples, or a sum over "mean_NAME" (see `normalized_by`); of other
            tensors the mean is logged.
        evaluate: metrics on held-out data.
        best_by: the metric of `evaluate` that a higher value is better of.
        model_inputs: the model's positional arguments, from a batch.
        normalized_by: names of features, floats [B, ...], whose sum over the global batch the loss
            is to be divided by, such as weights of which each example has others. For each the
            batch of `compute_loss` has the scalar "mean_NAME", the feature's sum over the global
            batch by the number of parts that the batch is computed in, so that the loss does not
            depend on how many there are.
    """

    model: keras.Model
    train_dataset: Callable[[int], tf.data.Dataset]
    compute_loss: Callable[[Batch, Any], Mapping[str, tf.Tensor]]
    evaluate: Callable[[], Mapping[str, float]]
    best_by: str
    model_inputs: Callable[[Batch], tuple[Any, ...]] = lambda batch: (
        TokenFeatures.from_dict(batch),
    )
    normalized_by: tuple[str, ...] = ()


class Trainer(orbit.AbstractTrainer):
    """Makes training steps, each a traced function per shape of batch."""

    def __init__(
        self, task: Task, optimizer: BertAdamW, num_steps: int, accumulation_steps: int = 1
    ):
        self._task = task
        self._accumulation_steps = accumulation_steps
        self._optimizer = optimizer
        self._strategy = tf.distribute.get_strategy()
        self._progress = Progress(num_steps)
        self._batches: Iterator[Batch] | None = None

    @property
    def global_step(self) -> tf.Variable:
        """The number of updates made."""
        return self._optimizer.iterations.value

    def train(self, num_steps: tf.Tensor) -> dict[str, float]:
        """Makes the steps and returns their mean metrics.

        Raises:
            FloatingPointError: if the loss is no longer finite.
        """
        done = int(self.global_step.numpy())
        if self._batches is None:
            self._batches = iter(
                distribute_batches(lambda: self._task.train_dataset(done), self._accumulation_steps)
            )
        self._progress.start()
        last = done + int(num_steps)
        for step in range(done + 1, last + 1):
            self._progress.add(step, self._train_step(next(self._batches)))
        metrics = self._progress.summary()
        if not math.isfinite(metrics["loss"]):
            raise FloatingPointError(
                f"the loss is {metrics['loss']} at step {last}; lower learning_rate and start "
                "again from the last checkpoint"
            )
        return metrics

    @tf.function(autograph=False)  # there is nothing to convert, and looking for it takes seconds
    def _train_step(self, batch: Batch) -> dict[str, tf.Tensor]:
        metrics = self._strategy.run(self._replica_step, args=(batch,))
        reduce = tf.distribute.ReduceOp
        return {
            name: self._strategy.reduce(
                reduce.SUM if name.startswith("num_") else reduce.MEAN, value, axis=None
            )
            for name, value in metrics.items()
        }

    def _replica_step(self, batch: Batch) -> dict[str, tf.Tensor]:
        task = self._task
        learning_rate = tf.convert_to_tensor(self._optimizer.learning_rate)
        num_parts = self._accumulation_steps
        totals = {
            f"mean_{name}": mean_share(tf.reduce_sum(batch[name]), num_parts)
            for name in task.normalized_by
        }
        gradients, means = accumulate(
            lambda part: self._gradients({**part, **totals}), batch, num_parts
        )
        variables = zip(gradients, task.model.trainable_variables, strict=True)
        # A head that this loss does not use has no gradient, and must not decay either.
        used = [(gradient, variable) for gradient, variable in variables if gradient is not None]
        self._optimizer.apply_gradients(used)

        counts = {"num_examples": tf.shape(tf.nest.flatten(batch)[0])[0]}
        if "input_mask" in batch:
            counts["num_tokens"] = tf.reduce_sum(batch["input_mask"])
        return means | {"learning_rate": learning_rate} | counts

    def _gradients(self, batch: Batch) -> Gradients:
        task = self._task
        with tf.GradientTape() as tape:
            outputs = task.model(*task.model_inputs(batch), training=True)
            metrics = task.compute_loss(batch, outputs)
            share = metrics["loss"] / self._strategy.num_replicas_in_sync
        gradients = [
            None if gradient is None else tf.convert_to_tensor(gradient)  # of IndexedSlices too
            for gradient in tape.gradient(share, task.model.trainable_variables)
        ]
        return gradients, {name: tf.reduce_mean(value) for name, value in metrics.items()}


class Evaluator(orbit.AbstractEvaluator):
    """Runs the task's evaluation, keeps its results in a file and says which was best."""

    def __init__(self, task: Task, global_step: tf.Variable, model_dir: pathlib.Path):
        self._task = task
        self._global_step = global_step
        self._path = model_dir / EVALUATIONS_FILE

    def evaluate(self, num_steps: tf.Tensor) -> dict[str, float]:
        """Evaluates on all held-out data, whatever num_steps says."""
        step = int(self._global_step.numpy())
        metrics = {name: float(value) for name, value in self._task.evaluate().items()}
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"step": step} | metrics) + "\n")
        best = best_evaluation(self._path.parent, self._task.best_by)
        logging.info(
            "step %d evaluation: %s  (best %s %.4f at step %d)",
            step,
            "  ".join(f"{name} {value:.4f}" for name, value in metrics.items()),
            self._task.best_by,
            best[self._task.best_by],
            best["step"],
        )
        return metrics


def best_evaluation(model_dir: str | pathlib.Path, metric: str) -> dict[str, Any]:
    """The evaluation of a run, with its "step", that has the highest value of a metric."""
    text = (pathlib.Path(model_dir) / EVALUATIONS_FILE).read_text(encoding="utf-8")
    return max(map(json.loads, text.splitlines()), key=lambda evaluation: evaluation[metric])


def train(task: Task, config: TrainingConfig, model_dir: str | pathlib.Path) -> dict[str, float]:
    """Trains to the config's number of steps, from the latest checkpoint where there is one.

    A run that was interrupted and resumed gives the same weights as one that was not. Call it
    inside the strategy scope that the model was made in.

    Args:
        task: what to train.
        config: how; `save_config` it before.
        model_dir: the run's folder: takes checkpoints, TensorBoard summaries, evaluations.jsonl.

    Returns:
        The metrics of the last evaluation.
    """
    model_dir = pathlib.Path(model_dir)
    model_dir.mkdir(parents=True, exist_ok=True)
    schedule = WarmupLinearDecay(
        config.learning_rate, config.num_steps, round(config.warmup_ratio * config.num_steps)
    )
    optimizer = BertAdamW(
        schedule,
        weight_decay_rate=config.weight_decay_rate,
        max_gradient_norm=config.max_gradient_norm,
        max_gradient_value=config.max_gradient_value,
        head_learning_rate_ratio=config.head_learning_rate_ratio,
    )
    optimizer.build(task.model.trainable_variables)
    trainer = Trainer(task, optimizer, config.num_steps, config.gradient_accumulation_steps)
    step = trainer.global_step
    manager = tf.train.CheckpointManager(
        tf.train.Checkpoint(
            weights=_weights_by_path(task.model),
            random_state=_random_state(task.model),
            optimizer=[variable.value for variable in optimizer.variables],
        ),
        str(model_dir),
        max_to_keep=config.keep_checkpoints,
    )
    with _orbit_logs_at_debug_level():
        controller = orbit.Controller(
            global_step=step,
            trainer=trainer,
            evaluator=Evaluator(task, step, model_dir),
            steps_per_loop=lambda current: (
                config.summary_interval - int(current) % config.summary_interval
            ),
            checkpoint_manager=manager,
            summary_dir=str(model_dir / "train"),
            eval_summary_dir=str(model_dir / "dev"),
        )
        if int(step.numpy()):
            logging.info(
                "resuming at step %d of %d in %s", step.numpy(), config.num_steps, model_dir
            )
        metrics: dict[str, float] | None = None
        # Not controller.train_and_evaluate: after a resume it would evaluate at other steps. And
        # given an interval, the manager would save at the first opportunity, not at multiples.
        intervals = (config.eval_interval, config.checkpoint_interval)
        while (done := int(step.numpy())) < config.num_steps:
            multiples = [(done // interval + 1) * interval for interval in intervals]
            target = min(*multiples, config.num_steps)
            controller.train(target, checkpoint_at_completion=False)
            if target in (multiples[1], config.num_steps):
                manager.save(checkpoint_number=target)
            if target in (multiples[0], config.num_steps):
                metrics = controller.evaluate()
        return metrics or controller.evaluate()


def _weights_by_path(model: keras.Model) -> dict[str, tf.Variable]:
    """The weights by their path in the model.

    Given the model itself, tf.train.Checkpoint would leave out what a Keras 3 layer keeps in a
    dict, without a word.
    """
    return {path: weight.value for path, weight in weights_by_path(model).items()}


def _random_state(model: keras.Model) -> list[tf.Variable]:
    """The seeds that dropout advances: variables of the model, but not among its weights."""
    weights = {id(variable) for variable in model.weights}
    return [variable.value for variable in model.variables if id(variable) not in weights]


@contextlib.contextmanager
def _orbit_logs_at_debug_level() -> Iterator[None]:
    """Orbit prints and logs several lines a loop; one line of ours says the same."""
    original = orbit.controller._log
    orbit.controller._log = logging.debug
    try:
        yield
    finally:
        orbit.controller._log = original
