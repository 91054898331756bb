"""The steps of a training run, on all replicas."""

from collections.abc import Iterator, Mapping
from typing import Any

import orbit
import tensorflow as tf

from mate_tf.custom_gradient import end_with_graph
from mate_tf.training.accumulation import Gradients, accumulate
from mate_tf.training.config import TrainingConfig
from mate_tf.training.distribution import Batch, distribute_batches, mean_share
from mate_tf.training.faults import Terminated, Termination
from mate_tf.training.optimizer import BertAdamW
from mate_tf.training.progress import Progress
from mate_tf.training.task import Task


class Trainer(orbit.AbstractTrainer):
    """Makes training steps, each a traced function per shape of batch."""

    def __init__(
        self, task: Task, optimizer: BertAdamW, config: TrainingConfig, termination: Termination
    ):
        self._task = task
        self._termination = termination
        self._accumulation_steps = config.gradient_accumulation_steps
        self._steps_per_loop = config.steps_per_loop
        self._optimizer = optimizer
        self._strategy = tf.distribute.get_strategy()
        self._progress = Progress(config.num_steps)
        self._batches: Iterator[Batch] | None = None

    @property
    def global_step(self) -> tf.Variable:
        """The number of updates made."""
        return self._optimizer.iterations.value

    def train(self, num_steps: tf.Tensor) -> dict[str, float]:
        """Makes the steps and returns their mean metrics.

        Raises:
            FloatingPointError: if the loss is no longer finite.
            Terminated: after a step, if one of the workers is asked to end.
        """
        done = first = int(self.global_step.numpy())
        if self._batches is None:
            self._batches = iter(
                distribute_batches(
                    lambda: self._task.train_dataset(first), self._accumulation_steps
                )
            )
        self._progress.start()
        last = first + int(num_steps)
        while done < last:
            for metrics in self._train_steps(min(self._steps_per_loop, last - done)):
                done += 1
                self._progress.add(done, metrics)
            if self._is_to_end():
                self._progress.check_finite(done)
                raise Terminated
        self._progress.check_finite(done)
        return self._progress.summary()

    def _is_to_end(self) -> bool:
        """Whether a worker was asked to end; all workers say the same after the same step."""
        is_asked = self._termination.is_asked
        if not isinstance(self._strategy, tf.distribute.MultiWorkerMirroredStrategy):
            return is_asked
        return bool(self._sum_over_replicas(tf.constant(int(is_asked))))

    @tf.function(autograph=False)
    def _sum_over_replicas(self, here: tf.Tensor) -> tf.Tensor:
        values = self._strategy.run(tf.identity, args=(here,))
        return self._strategy.reduce(tf.distribute.ReduceOp.SUM, values, axis=None)

    def _train_steps(self, num_steps: int) -> list[Mapping[str, Any]]:
        """Makes steps in one call of a graph and returns the metrics of each."""
        assert self._batches is not None
        if self._steps_per_loop == 1:
            return [self._train_step(next(self._batches))]
        of_steps = self._train_loop(self._batches, tf.constant(num_steps))
        values = {name: metric.numpy() for name, metric in of_steps.items()}  # [num_steps]
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

    @tf.function(autograph=False)  # there is nothing to convert, and looking for it takes seconds
    def _train_step(self, batch: Batch) -> dict[str, tf.Tensor]:
        metrics = self._strategy.run(self._replica_step, args=(batch,))
        end_with_graph(tf.compat.v1.get_default_graph())  # those of sums over replicas
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
        end_with_graph(tf.compat.v1.get_default_graph())  # those of recomputation
        return gradients, {name: tf.reduce_mean(value) for name, value in metrics.items()}
