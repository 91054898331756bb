"""Steps in parts, with activations computed anew, and compiled by XLA: those of plain steps."""

import dataclasses
import time

import keras
import numpy as np
import pytest
import tensorflow as tf

from experiments.benchmarks.runners import scalars
from mate_tf.layers.basic import Dropout
from mate_tf.models import make_model
from mate_tf.task_configs import ClassificationConfig
from mate_tf.training.config import ClassificationTrainingConfig
from mate_tf.training.loop import train
from mate_tf.training.optimizer import BertAdamW
from mate_tf.training.trainer import Task, Termination, Trainer, accumulate
from tests.layers.small_layers import attentions, token_features
from tests.small import assert_same, cases, small_encoder, two_devices
from tests.training import distributed_runs

CONFIG = dataclasses.replace(
    distributed_runs.CONFIG, num_steps=5, eval_interval=5, checkpoint_interval=5
)


def trained(directory, num_parts, strategy=None):
    """Losses and weights of a model with a looked-up table, whose gradient is sparse."""
    with (strategy or tf.distribute.get_strategy()).scope():
        task = distributed_runs.masked_task()
        train(task, dataclasses.replace(CONFIG, gradient_accumulation_steps=num_parts), directory)
    losses = list(scalars(directory / "train")["loss"].values())
    return [losses, *(weight.numpy() for weight in task.model.weights)]


def test_a_batch_in_parts_gives_the_weights_of_the_whole(tmp_path):
    whole = trained(tmp_path / "whole", 1)
    for number, (num_parts, strategy) in enumerate([(2, None), (4, None), (2, two_devices())]):
        parts = trained(tmp_path / str(number), num_parts, strategy)
        # The same mean in another order, in five updates of at most 0.003.
        assert_same(parts, whole, rtol=1e-5, atol=1e-6)


def test_a_part_is_computed_in_one_trace_and_after_the_part_before():
    traces, order = [], []

    def record(mean):
        time.sleep(0.2 if mean == 1.0 else 0.0)  # side by side, the first would be last
        order.append(float(mean))
        return mean

    def compute(batch):
        traces.append(batch["x"].shape)
        mean = tf.reduce_mean(batch["x"])
        # Without state: TensorFlow itself would keep what has some in order.
        mean = tf.ensure_shape(tf.numpy_function(record, [mean], tf.float32, stateful=False), [])
        return [mean, None], {"loss": mean}

    @tf.function(autograph=False)
    def run(values):
        return accumulate(compute, {"x": values}, 4)

    gradients, means = run(tf.range(12.0)[:, tf.newaxis])
    assert traces == [(3, 1)]
    assert order == [1.0, 4.0, 7.0, 10.0]
    assert gradients[1] is None
    assert float(gradients[0]) == float(means["loss"]) == 5.5


def test_a_run_that_computes_layers_again_gives_the_same_weights(tmp_path, monkeypatch):
    encoder = dataclasses.replace(distributed_runs.ENCODER, num_layers=2, hidden_dropout=0.1)
    monkeypatch.setattr(distributed_runs, "ENCODER", encoder)
    weights = []
    for recompute in (False, True):
        with two_devices().scope():
            task = dataclasses.replace(distributed_runs.table_task(), evaluate=lambda: {"score": 0})
            task.model.encoder.recompute = recompute
            train(task, CONFIG, tmp_path / str(recompute))
        weights.append([weight.numpy() for weight in task.model.weights])
    # Five updates by the rate times a tenth of the gradient over at least 1e-6: some thousand times
    # the rounding of gradients below 0.1, which is some 1e-9.
    assert_same(*weights, atol=1e-5)


def test_replicas_drop_different_units_and_go_on_alike():
    strategy = two_devices()
    with strategy.scope():
        layer = Dropout(0.5)
        run = tf.function(lambda: strategy.run(lambda: layer(tf.ones([1000]), training=True)))
        masks = [
            one.numpy() for _ in range(2) for one in strategy.experimental_local_results(run())
        ]
    for index, one in enumerate(masks):
        for other in masks[:index]:
            # Independent masks agree in half of the units; five standard deviations.
            assert abs(np.mean(one == other) - 0.5) < 5 * 0.5 / np.sqrt(1000)
    states = strategy.experimental_local_results(layer.seed_generator.state.value)
    np.testing.assert_array_equal(states[0], states[1])


# --- Whole steps as one XLA program, as a TPU needs them ---

BATCH, LENGTH = 2, 40
# Without dropout, for which XLA draws other numbers.
XLA_ENCODER = small_encoder(60, intermediate_size=32, type_vocab_sizes=(3, 16, 16, 2, 16, 16, 10))

ATTENTIONS = attentions(LENGTH)
# Their sample in `make test`: what the others are made of.
SAMPLE = (
    *("linformer", "table_etc", "grammar_soft", "tableformer"),
    *("mate_tableformer, tiles", "mate_neighbours, tiles"),
)


def batch() -> dict[str, tf.Tensor]:
    """A question of six tokens, cells of two in three columns, and padding."""
    cell = np.maximum(np.arange(LENGTH) - 6, 0) // 2
    in_table = (np.arange(LENGTH) >= 6) & (np.arange(LENGTH) < LENGTH - 5)
    random = np.random.default_rng(0)
    fields = token_features(
        input_ids=random.integers(1, 60, (BATCH, LENGTH)),
        input_mask=[np.arange(LENGTH) < LENGTH - 5] * BATCH,
        segment_ids=[in_table] * BATCH,
        column_ids=[np.where(in_table, cell % 3 + 1, 0)] * BATCH,
        row_ids=[np.where(in_table, cell // 3, 0)] * BATCH,
        part_of_speech_ids=[np.where(in_table, 0, np.arange(LENGTH) % 5)] * BATCH,
    )
    return fields._asdict() | {"classification_class_index": tf.constant([[0], [1]])}


def trainer_of(name: str) -> Trainer:
    keras.utils.set_random_seed(1)
    encoder = dataclasses.replace(XLA_ENCODER, attention=ATTENTIONS[name])
    model = make_model(encoder, ClassificationConfig(output_dropout=0.0))
    task = Task(model, lambda _: tf.data.Dataset.range(0), dict, "loss")
    optimizer = BertAdamW(1e-2)
    optimizer.build(model.trainable_variables)
    config = ClassificationTrainingConfig(
        num_steps=1, learning_rate=1e-2, max_seq_length=LENGTH, encoder=encoder
    )
    return Trainer(task, optimizer, config, Termination())


@cases(
    "name, policy",
    *(
        pytest.param(name, "float32", marks=() if name in SAMPLE else pytest.mark.slow)
        for name in ATTENTIONS
    ),
    ("mate, views", "mixed_bfloat16"),
    # What attends with weights of its own.
    ("linformer", "mixed_bfloat16"),
    ("grammar_soft", "mixed_bfloat16"),
    ("tableformer", "mixed_bfloat16"),
    pytest.param("mate_tableformer, tiles", "mixed_bfloat16", marks=pytest.mark.slow),
    pytest.param("table_etc", "mixed_bfloat16", marks=pytest.mark.slow),
    indirect=["policy"],
)
def test_a_training_step_compiles_and_learns_what_the_plain_one_does(name, policy):
    results = []
    for compiled in (False, True):
        trainer = trainer_of(name)
        variables = trainer._task.model.trainable_variables
        before = [variable.numpy() for variable in variables]
        # The strategy's function compiles this on a TPU.
        step = tf.function(trainer.replica_step, jit_compile=compiled, autograph=False)
        results.append([float(step(batch())["loss"]) for _ in range(3)])
        moved = [one.numpy() - other for one, other in zip(variables, before, strict=True)]
        assert all(np.isfinite(one).all() for one in moved)
        assert sum(bool(one.any()) for one in moved) > len(moved) / 2
    # In bfloat16 XLA rounds elsewhere: a few of its steps, of losses near 1.
    tolerance = 1e-4 if policy == "float32" else 0.1
    np.testing.assert_allclose(*results, rtol=tolerance)
