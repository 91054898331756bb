"""A task's training on Orbit: steps, evaluations, checkpoints, summaries and exact resume."""

import math
import pathlib
import zlib

import keras
import orbit
import tensorflow as tf
from absl import logging

from mate_tf.private_apis import orbit_logs_to
from mate_tf.training.config import TrainingConfig
from mate_tf.training.distribution import check_like_chief, folder_to_write, is_chief
from mate_tf.training.evaluator import BestSoFar, Evaluator
from mate_tf.training.faults import (
    Terminated,
    Termination,
    check_finite,
    explained,
    remove_unfinished,
)
from mate_tf.training.optimizer import BertAdamW, WarmupLinearDecay
from mate_tf.training.task import Task
from mate_tf.training.trainer import Trainer
from mate_tf.weights.names import weights_by_path
from mate_tf.weights.run import BEST_FOLDER


def train(task: Task, config: TrainingConfig, model_dir: str | pathlib.Path) -> dict[str, float]:
    """Trains to the config's number of steps, from the latest checkpoint where there is one.

    A run that was interrupted and resumed gives the same weights as one that was not. Call it
    inside the strategy scope that the model was made in, on each worker, and with a folder that
    all workers see.

    Args:
        task: what to train.
        config: how; `save_config` it before.
        model_dir: the run's folder: takes checkpoints, in "best" the weights of the best
            evaluation, TensorBoard summaries and evaluations.jsonl.

    Returns:
        The metrics of the last evaluation; but for the chief, the one that is the best by.

    Raises:
        ValueError: if the replicas cannot divide the batches among them, if a worker has another
            config or another checkpoint than the chief, or if the folder has one of another model.
        FloatingPointError: if the loss or a weight is no longer finite.
        OSError: if the disk is full.
        ConnectionError: if a worker is lost.
        Terminated: after SIGTERM, once the present step is made and saved, or the last evaluation.
    """
    with explained(pathlib.Path(model_dir)), Termination() as termination:
        metrics = _train(task, config, pathlib.Path(model_dir), termination)
        if termination.is_asked:  # too late for another step, but not for what comes after the run
            raise Terminated
        return metrics


def _train(
    task: Task, config: TrainingConfig, model_dir: pathlib.Path, termination: Termination
) -> dict[str, float]:
    optimizer = _make_optimizer(task.model, config)
    trainer = Trainer(task, optimizer, config, termination)
    step = trainer.global_step
    best = BestSoFar()
    weights = _weights_by_path(task.model)
    checkpoint = tf.train.Checkpoint(
        weights=weights,
        random_state=_random_state(task.model),
        optimizer=[variable.value for variable in optimizer.variables],
        best=best,
    )
    if latest := tf.train.latest_checkpoint(str(model_dir)):
        _restore(checkpoint, latest)
        logging.info("resuming at step %d of %d in %s", step.numpy(), config.num_steps, model_dir)
    here = {"the config's checksum": zlib.crc32(repr(config).encode()), "step": int(step.numpy())}
    check_like_chief(here, f"start all workers alike, on a folder that all see ({model_dir})")
    with folder_to_write(model_dir) as folder, orbit_logs_to(logging.debug):
        for written in (folder, folder / BEST_FOLDER):
            remove_unfinished(written)
        save = tf.train.CheckpointManager(
            checkpoint, str(folder), max_to_keep=config.keep_checkpoints
        ).save
        best_weights = tf.train.CheckpointManager(
            tf.train.Checkpoint(weights=weights), str(folder / BEST_FOLDER), max_to_keep=1
        )
        controller = orbit.Controller(
            global_step=step,
            trainer=trainer,
            evaluator=Evaluator(task, optimizer, best, best_weights, folder),
            steps_per_loop=lambda current: (
                config.summary_interval - int(current) % config.summary_interval
            ),
            summary_dir=str(folder / "train") if is_chief() else None,
            eval_summary_dir=str(folder / "dev") if is_chief() else None,
        )
        # Not controller.train_and_evaluate: after a resume it would evaluate at other steps. And
        # given an interval, the manager would save at the first opportunity, not at multiples.
        metrics: dict[str, float] | None = None
        patience = config.early_stopping_patience or math.inf
        done = int(step.numpy())
        while True:
            # Due also after a resume, for a checkpoint does not know its own step's evaluation.
            is_due = done == config.num_steps or (done and done % config.eval_interval == 0)
            if is_due and best.last_step < done:
                metrics = controller.evaluate()
            if done == config.num_steps or best.num_since >= patience:
                break
            intervals = (config.eval_interval, config.checkpoint_interval)
            multiples = [(done // interval + 1) * interval for interval in intervals]
            target = min(*multiples, config.num_steps)
            try:
                controller.train(target, checkpoint_at_completion=False)
            except Terminated:
                done = int(step.numpy())
                check_finite(list(weights.values()), done)
                save(checkpoint_number=done)
                logging.warning(
                    "ended at step %d of %d, saved in %s; start again in the same way to go on",
                    done,
                    config.num_steps,
                    model_dir,
                )
                raise
            done = target
            # The loss of this step was still made of the weights before it.
            check_finite(list(weights.values()), done)
            if done in (*multiples, config.num_steps):  # an evaluation may not come to its end
                save(checkpoint_number=done)
        if done < config.num_steps:
            logging.info("step %d: stopping, for %d evaluations were no better", done, patience)
            save(checkpoint_number=done)  # once more, for it to know of the last evaluation
        return metrics or controller.evaluate()


def _restore(checkpoint: tf.train.Checkpoint, prefix: str) -> None:
    """Restores all of a checkpoint's objects; ValueError if it lacks one or has other shapes."""
    try:
        checkpoint.restore(prefix).assert_existing_objects_matched()
    except (AssertionError, ValueError) as error:
        reason = " ".join(str(error).split())
        raise ValueError(
            f"expected a checkpoint of this model and its optimizer in {prefix}, got another "
            f"({reason:.200}); choose another folder for the run"
        ) from error


def _make_optimizer(model: keras.Model, config: TrainingConfig) -> BertAdamW:
    schedule = WarmupLinearDecay(
        config.learning_rate, config.num_steps, round(config.warmup_ratio * config.num_steps)
    )
    optimizer = BertAdamW(
        schedule,
        weight_decay_rate=config.weight_decay_rate,
        max_gradient_norm=config.max_gradient_norm,
        max_gradient_value=config.max_gradient_value,
        head_learning_rate_ratio=config.head_learning_rate_ratio,
        attention_bias_learning_rate_ratio=config.attention_bias_learning_rate_ratio,
        ema_decay=config.ema_decay,
    )
    optimizer.build(model.trainable_variables)
    return optimizer


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
