"""The training of a task on Orbit: steps, evaluations, checkpoints, summaries and exact resume."""

import contextlib
import dataclasses
import errno
import json
import os
import pathlib
import zlib
from collections.abc import Iterator, Mapping

import keras
import numpy as np
import tensorflow as tf
from absl import logging

from mate_tf.paths import as_path
from mate_tf.private_apis import orbit_logs_to
from mate_tf.reading.text_files import complete_text_file
from mate_tf.training.config import TrainingConfig
from mate_tf.training.distribution import (
    check_like_chief,
    chief_values,
    folder_to_write,
    has_several_workers,
    is_chief,
)
from mate_tf.training.optimizer import OPTIONS, SCHEDULES, BertAdamW
from mate_tf.training.trainer import Progress, Task, Terminated, Termination, Trainer, orbit
from mate_tf.weights.run import BEST_FOLDER, latest_checkpoint, weights_by_path, write_best

EVALUATIONS_FILE = "evaluations.jsonl"
_SCALARS = ("step", "value", "loss", "start", "last_step", "num_since")  # of BestSoFar
_DISK_IS_FULL = (errno.ENOSPC, errno.EDQUOT)
_LOST = (
    tf.errors.UnavailableError,
    tf.errors.DeadlineExceededError,
    tf.errors.AbortedError,
    tf.errors.CancelledError,
)


def train(
    task: Task,
    config: TrainingConfig,
    model_dir: str | pathlib.Path,
    evaluates_start: bool = False,
) -> dict[str, float]:
    """Trains to the config's number of steps, from the latest checkpoint where there is one.

    With `evaluates_start` the first weights are evaluated too, as step 0: the best ones may be
    those.

    A run that was interrupted and resumed gives the same weights as one that was not. Call it on
    each worker, in the strategy scope that the model was made in, with a folder that all workers
    see. It gets checkpoints, the weights of the best evaluation in "best", TensorBoard summaries
    and evaluations.jsonl. Returned are the metrics of the last evaluation.

    ValueError if the replicas cannot divide the batches among them, a worker has another config or
    checkpoint than the chief, or the folder has a checkpoint of another model; FloatingPointError
    if the loss or a weight is not finite; OSError if the disk is full; ConnectionError if a worker
    is lost; Terminated after SIGTERM, once the present step or the last evaluation is saved.
    """
    model_dir = as_path(model_dir)
    with explained(model_dir), Termination() as termination:
        metrics = _train(task, config, model_dir, evaluates_start, termination)
        if termination.is_asked:  # too late for another step, but not for what follows the run
            raise Terminated
        return metrics


def _train(
    task: Task,
    config: TrainingConfig,
    model_dir: pathlib.Path,
    evaluates_start: bool,
    termination: Termination,
) -> dict[str, float]:
    optimizer = make_optimizer(task.model, config)
    trainer = Trainer(task, optimizer, config, termination)
    step = trainer.global_step
    best = BestSoFar(trainer.progress, config.start_tolerance)
    # Given the model itself, tf.train.Checkpoint would leave out what a Keras 3 layer keeps in a
    # dict, without a word.
    weights = {path: weight.value for path, weight in weights_by_path(task.model).items()}
    among = {id(weight) for weight in task.model.weights}
    checkpoint = tf.train.Checkpoint(
        weights=weights,
        # The seeds that dropout advances.
        random_state=[one.value for one in task.model.variables if id(one) not in among],
        optimizer=[variable.value for variable in optimizer.variables],
        best=best,
    )
    if latest := latest_checkpoint(model_dir):
        _restore(checkpoint, latest)
        logging.info("resuming at step %d of %d in %s", step.numpy(), config.num_steps, model_dir)
    here = {"the config's checksum": zlib.crc32(repr(config).encode()), "step": int(step.numpy())}
    check_like_chief(here, f"start all workers alike, on a folder that all see ({model_dir})")
    with folder_to_write(model_dir) as folder, orbit_logs_to(logging.debug):
        for written in (folder, folder / BEST_FOLDER):
            remove_unfinished(written)
        if latest and is_chief() and tf.train.latest_checkpoint(str(model_dir)) is None:
            _write_list(folder, pathlib.Path(latest).name)
        keep = config.keep_checkpoints
        manager = tf.train.CheckpointManager(checkpoint, str(folder), max_to_keep=keep)

        def save_finite() -> int:
            number = int(step.numpy())
            # The step's loss was still computed with the weights before it.
            check_finite(list(weights.values()), number)
            manager.save(checkpoint_number=number)
            return number

        controller = orbit.Controller(
            global_step=step,
            trainer=trainer,
            evaluator=Evaluator(task, optimizer, best, folder),
            steps_per_loop=lambda current: (
                config.summary_interval - int(current) % config.summary_interval
            ),
            summary_dir=str(folder / "train") if is_chief() else None,
            eval_summary_dir=str(folder / "dev") if is_chief() else None,
        )
        # Not controller.train_and_evaluate, which would evaluate at other steps after a resume. And
        # a manager with an interval would save at the first opportunity, not at multiples.
        metrics: dict[str, float] | None = None
        done = int(step.numpy())
        intervals = (config.eval_interval, config.checkpoint_interval)
        while True:
            # Due also after a resume: a checkpoint does not know its own step's evaluation.
            is_due = done == config.num_steps or done % config.eval_interval == 0
            if is_due and best.last_step < done and (done or evaluates_start):
                metrics = controller.evaluate()
            reason = best.reason_to_stop(config) if best.last_step == done else ""
            if done == config.num_steps or reason:
                break
            if best.last_step == done:
                best.losses.clear()
            multiples = [(done // interval + 1) * interval for interval in intervals]
            target = min(*multiples, config.num_steps)
            try:
                controller.train(target, checkpoint_at_completion=False)
            except Terminated:
                done = save_finite()
                ended = "ended at step %d of %d, saved in %s; start again in the same way to go on"
                logging.warning(ended, done, config.num_steps, model_dir)
                raise
            done = save_finite()  # before the evaluation, which may be interrupted
        if done < config.num_steps:
            logging.info("step %d: stopping, for %s", done, reason)
            save_finite()  # again, so that it knows of the last evaluation
        return metrics or controller.evaluate()


def _write_list(folder: pathlib.Path, name: str) -> None:
    """Writes TensorFlow's list of checkpoints anew, of one that may be removed later."""
    logging.warning("%s names no whole checkpoint; %s is one", folder / "checkpoint", name)
    saved = (folder / f"{name}.index").stat().st_mtime
    with complete_text_file(folder / "checkpoint") as file:
        file.write(
            f'model_checkpoint_path: "{name}"\nall_model_checkpoint_paths: "{name}"\n'
            f"all_model_checkpoint_timestamps: {saved}\nlast_preserved_timestamp: {saved - 1}\n"
        )


def _restore(checkpoint: tf.train.Checkpoint, prefix: str) -> None:
    try:
        checkpoint.restore(prefix).assert_existing_objects_matched()
    except (tf.errors.OpError, IndexError, RuntimeError) as error:  # which TensorFlow raises
        raise ValueError(
            f"expected a whole checkpoint in {prefix}, got a damaged one ({error!s:.200}); "
            f"remove its files, {prefix}.*, to go on from the one before"
        ) from error
    except (AssertionError, ValueError) as error:
        reason = " ".join(str(error).split())
        raise ValueError(
            f"expected a checkpoint of this model and its optimizer in {prefix}, got another "
            f"({reason:.200}); choose another folder for the run"
        ) from error


def make_optimizer(model: keras.Model, config: TrainingConfig) -> BertAdamW:
    """The optimizer of a run, with its schedule, built for the model's variables."""
    warmup_steps = round(config.warmup_ratio * config.num_steps)
    schedule = SCHEDULES[config.schedule](config.learning_rate, config.num_steps, warmup_steps)
    optimizer = BertAdamW(schedule, **{name: getattr(config, name) for name in OPTIONS})
    optimizer.build(model.trainable_variables)
    return optimizer


@contextlib.contextmanager
def explained(model_dir: pathlib.Path) -> Iterator[None]:
    """Adds to an error in a run's training what is left of the run and what to do."""
    try:
        yield
    except FloatingPointError as error:
        raise FloatingPointError(
            f"{error}; {_what_is_left(model_dir)}; begin another run, with a lower learning_rate, "
            f"where there is a checkpoint from it (--init_checkpoint={model_dir})"
        ) from error
    except (OSError, *_LOST, tf.errors.ResourceExhaustedError) as error:
        # TensorFlow has only the system's words for it; its other resource is memory.
        if any(os.strerror(number) in str(error) for number in _DISK_IS_FULL):
            raise OSError(
                f"expected room for checkpoints and summaries in {model_dir}, got none; "
                f"{_what_is_left(model_dir)}; make room and start again in the same way"
            ) from error
        if isinstance(error, _LOST) and has_several_workers():
            raise ConnectionError(
                "expected all workers to answer, got one that does not; "
                f"{_what_is_left(model_dir)}; start all workers again in the same way"
            ) from error
        raise


def check_finite(variables: list[tf.Variable], step: int) -> None:
    """FloatingPointError where a checkpoint would hold a number that is not finite."""
    if not tf.reduce_all([tf.reduce_all(tf.math.is_finite(variable)) for variable in variables]):
        raise FloatingPointError(f"expected finite weights, got NaN or infinity at step {step}")


def remove_unfinished(folder: pathlib.Path) -> None:
    """Removes the rest of unfinished files and checkpoints, which may fill a disk."""
    for file in (*folder.glob("checkpoint.tmp*"), *folder.glob("*.unfinished")):
        file.unlink()
    for path in folder.glob("ckpt-*_temp"):
        for file in path.iterdir():
            file.unlink()
        path.rmdir()


def _what_is_left(model_dir: pathlib.Path) -> str:
    if latest := latest_checkpoint(model_dir):
        return f"the checkpoint of step {latest.rpartition('-')[2]} in {model_dir} is as it was"
    return f"there is no checkpoint in {model_dir} yet"


def read_evaluations(model_dir: pathlib.Path) -> list[dict[str, float]]:
    """A run's evaluations so far, each its step and its metrics."""
    path = model_dir / EVALUATIONS_FILE
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return [json.loads(line) for line in lines]


class BestSoFar(tf.train.experimental.PythonState):
    """Which evaluation was the best, the latest, and how many followed the best.

    Of two with the same value the one with the lower loss is better, and then the earlier one; one
    with NaN never is. That of the start, step 0, counts as the same within the tolerance. The
    progress has the losses since the latest, and what SIGTERM ended.
    """

    def __init__(self, progress: Progress, tolerance: float = 0.0) -> None:
        self.tolerance = tolerance
        self.step = 0
        self.value, self.loss = float("-inf"), float("inf")
        self.start: float | None = None
        self.last_step = -1
        self.num_since = 0
        self.losses, self.ended = progress.losses, progress.ended

    def add(self, step: int, value: float, loss: float) -> bool:
        """Takes the next evaluation and returns whether it is the best so far."""
        self.last_step = step
        if step == 0:
            self.start = value
        least = self.value - (self.tolerance if self.step == 0 else 0.0)
        is_better = value > self.value or (value >= least and loss < self.loss)
        if not is_better:  # which holds for NaN too
            self.num_since += 1
            return False
        self.step, self.value, self.loss, self.num_since = step, value, loss, 0
        return True

    def reason_to_stop(self, config: TrainingConfig) -> str:
        """Why training ends after the latest evaluation; "" if it goes on."""
        if self.losses and self.num_since and config.early_stopping_loss:
            mean = sum(self.losses) / len(self.losses)
            if mean < config.early_stopping_loss:
                return f"all is learned (a loss of {mean:.4f}), and the evaluation was no better"
        return ""

    def __str__(self) -> str:  # of the log
        if self.start is None:
            return f"best {self.value:.4f} at step {self.step}"
        if self.step == 0:
            return f"start {self.value:.4f}; none is better"
        because = "" if self.value > self.start else ", with a lower loss"
        return f"start {self.start:.4f}; best {self.value:.4f} after step {self.step}{because}"

    def serialize(self) -> bytes:
        scalars = {name: getattr(self, name) for name in _SCALARS}
        return json.dumps(scalars | {"losses": self.losses, "ended": self.ended}).encode()

    def deserialize(self, string_value: bytes) -> None:
        values = json.loads(string_value)
        self.losses[:] = values["losses"]
        self.ended[:] = values.get("ended", ())  # earlier versions have none
        for name in _SCALARS:
            setattr(self, name, values[name])


@dataclasses.dataclass(eq=False)
class Evaluator(orbit.AbstractEvaluator):
    """Runs the task's evaluation, and keeps its results and the best one's weights."""

    task: Task
    optimizer: BertAdamW
    best: BestSoFar
    folder: pathlib.Path

    def evaluate(self, num_steps: tf.Tensor) -> dict[str, float]:
        """Evaluates on all held-out data, whatever num_steps is."""
        step = int(self.optimizer.iterations.numpy())
        best_by = self.task.best_by
        with self.optimizer.averaged_weights():
            results = self.task.evaluate()
            texts = {name: text for name, text in results.items() if isinstance(text, str)}
            metrics = {name: float(results[name]) for name in results if name not in texts}
            self._show(step, texts)
            metrics[best_by], loss = chief_values([metrics[best_by], metrics.get("loss", np.nan)])
            if self.best.add(step, metrics[best_by], loss) and is_chief():
                write_best(self.folder, self.task.model, step)
        self._write({"step": step} | metrics)
        scores = "  ".join(f"{name} {value:.4f}" for name, value in metrics.items())
        logging.info("step %d evaluation: %s  (%s: %s)", step, scores, best_by, self.best)
        return metrics

    def _write(self, evaluation: Mapping[str, float]) -> None:
        """Adds a line, in place of those that an interrupted run wrote from this step on."""
        earlier = read_evaluations(self.folder)
        kept = [one for one in earlier if one["step"] < evaluation["step"]]
        with complete_text_file(self.folder / EVALUATIONS_FILE) as file:
            file.write("".join(f"{json.dumps(one)}\n" for one in [*kept, evaluation]))

    def _show(self, step: int, texts: Mapping[str, str]) -> None:
        """Writes texts to the evaluation's file and for TensorBoard."""
        if not texts:
            return
        for name, text in texts.items():
            tf.summary.text(name, text, step=step)
        path = self.folder / "evaluations" / f"{step}.md"
        path.parent.mkdir(exist_ok=True)
        with complete_text_file(path) as file:
            file.write("\n".join(f"# {name}\n\n{text}" for name, text in texts.items()))
