"""The same two trainings on any number of replicas, and a worker of them as a program.

    python -m tests.training.distributed_runs TASK_INDEX WORKER_HOSTS FOLDER

Shapes: B batch, S sequence, P predictions, V vocabulary.
"""

import dataclasses
import pathlib
import sys

import keras
import numpy as np
import tensorflow as tf

from experiments.benchmarks.runners import scalars
from mate_tf.features.token_features import TAPAS_FEATURES
from mate_tf.models import make_model
from mate_tf.records.batches import batch_by_length
from mate_tf.task_configs import TableQAConfig
from mate_tf.training.config import TrainingConfig
from mate_tf.training.distribution import (
    Batch,
    check_like_chief,
    is_chief,
    make_strategy,
    on_workers,
)
from mate_tf.training.examples import predict_function
from mate_tf.training.loop import train
from mate_tf.training.trainer import Task
from tests.small import small_encoder

LENGTHS = (16, 32)
NUM_STEPS = 20
BATCH_SIZE = 8
PREDICTIONS = 4
ENCODER = small_encoder(40, max_position_embeddings=32)
CONFIG = TrainingConfig(
    num_steps=NUM_STEPS,
    learning_rate=0.003,
    gradient_accumulation_steps=2,
    max_gradient_value=0.01,
    ema_decay=0.9,
    encoder=ENCODER,
    summary_interval=1,
    eval_interval=NUM_STEPS,
    checkpoint_interval=NUM_STEPS,
)


def examples() -> dict[str, np.ndarray]:
    """Tables of one word a cell, each of another number of tokens, cells to find and to predict."""
    rng = np.random.default_rng(0)
    count, longest = 44, LENGTHS[-1]
    lengths = rng.integers(8, longest + 1, size=count)
    mask = (np.arange(longest) < lengths[:, np.newaxis]).astype(np.int32)  # [N, S]
    in_table = mask * (np.arange(longest) >= 4)
    cells = np.maximum(np.arange(longest) - 4, 0)
    found = dict.fromkeys(TAPAS_FEATURES, np.zeros_like(mask)) | {
        "input_ids": mask * rng.integers(1, ENCODER.vocab_size, size=mask.shape),
        "input_mask": mask,
        "segment_ids": in_table,
        "column_ids": in_table * (cells % 3 + 1),
        "row_ids": in_table * (cells // 3),
        "label_ids": in_table * (cells % 3 == rng.integers(3, size=(count, 1))) * (cells >= 3),
        "masked_lm_positions": rng.integers(4, 8, size=(count, PREDICTIONS)),
        "masked_lm_ids": rng.integers(1, ENCODER.vocab_size, size=(count, PREDICTIONS)),
    }
    # As many words are masked as an example has room for: each has its own weight in the loss.
    weights = np.arange(PREDICTIONS) < rng.integers(1, PREDICTIONS + 1, size=(count, 1))
    integers = {name: values.astype(np.int32) for name, values in found.items()}
    return integers | {"masked_lm_weights": weights.astype(np.float32)}


def train_dataset(step: int) -> tf.data.Dataset:
    """Batches of both lengths in an order of their own, without end."""
    dataset = tf.data.Dataset.from_tensor_slices(examples()).shuffle(44, seed=5)
    batches = batch_by_length(dataset, BATCH_SIZE, LENGTHS[:-1], remainder="repeat")
    return batches.repeat().skip(step)


def table_task() -> Task:
    """Finding cells."""
    keras.utils.set_random_seed(3)
    model = make_model(ENCODER, TableQAConfig(operators=(), output_dropout=0.0))
    predict = predict_function(model)
    # Five examples each, which two replicas cannot divide, and batches that two workers cannot.
    held_out = train_dataset(0).unbatch().batch(5).take(3)

    def measure(batch: Batch) -> list[float]:
        outputs, example_loss = predict(batch)
        assert example_loss.shape == (5,) == outputs["token_logits"].shape[:1]
        return example_loss.numpy().tolist()

    def evaluate() -> dict[str, float]:
        of_batches = on_workers(held_out, measure)
        means = np.mean(of_batches, axis=1)  # [3]; each has a weight of its own, so order matters
        return {"score": -float(means @ [1.0, 2.0, 4.0])}

    return Task(model, train_dataset, evaluate, "score")


class Words(keras.Model):
    """Predicts words from those at some positions alone: small, for it is traced often.

    The loss is normalised over all words that are masked in the global batch.
    """

    normalized_by = ("masked_lm_weights",)

    def __init__(self) -> None:
        super().__init__()
        shape = (ENCODER.vocab_size, ENCODER.hidden_size)
        self.table = self.add_weight(shape, "random_normal", name="table")
        self.dense = keras.layers.Dense(ENCODER.vocab_size, name="dense")
        self.dense.build((None, ENCODER.hidden_size))
        self.built = True

    def call(self, ids, positions, training=False):
        words = tf.gather(ids, positions, batch_dims=1)  # [B, P]
        return self.dense(tf.gather(tf.convert_to_tensor(self.table), words))  # [B, P, V]

    def model_inputs(self, batch):
        return batch["input_ids"], batch["masked_lm_positions"]

    def compute_task_loss(self, batch, outputs):
        token_loss = tf.nn.sparse_softmax_cross_entropy_with_logits(
            batch["masked_lm_ids"], outputs
        )  # [B, P]
        weighted = tf.reduce_sum(token_loss * batch["masked_lm_weights"])
        return {"loss": weighted / batch["mean_masked_lm_weights"]}


def masked_task() -> Task:
    """Predicting words."""
    keras.utils.set_random_seed(4)
    return Task(Words(), train_dataset, lambda: {"score": 0.0}, "score")


TASKS = {"table": table_task, "masked": masked_task}


def run(folder: pathlib.Path) -> None:
    """Trains both in the present strategy's scope."""
    for name, make_task in TASKS.items():
        train(make_task(), CONFIG, folder / name)


def losses(folder: pathlib.Path) -> np.ndarray:
    """The loss of each step of a run."""
    return np.array(list(scalars(folder / "train")["loss"].values()))


def stop_early(folder: pathlib.Path) -> None:
    """Trains until the chief's evaluations are no better; others would go on."""
    scores = iter([0.5, 0.25])

    def evaluate() -> dict[str, float]:
        score = next(scores)
        return {"score": score if is_chief() else -score}

    task = dataclasses.replace(masked_task(), evaluate=evaluate)
    config = dataclasses.replace(
        CONFIG, eval_interval=2, checkpoint_interval=10, early_stopping_loss=1e9
    )
    train(task, config, folder)


def work(task_index: int, worker_hosts: str, folder: pathlib.Path) -> None:
    """What each of several workers does."""
    strategy = make_strategy(
        "multi_worker_mirrored", worker_hosts=worker_hosts, task_index=task_index
    )
    with strategy.scope():
        run(folder)
        stop_early(folder / "stops_early")
        try:
            check_like_chief({"step": task_index}, "start them alike")
        except ValueError as error:
            print(f"refused: {error}")


if __name__ == "__main__":
    work(int(sys.argv[1]), sys.argv[2], pathlib.Path(sys.argv[3]))
