"""A whole training step of every architecture as one XLA program, as a TPU needs it."""

import dataclasses
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from mate_tf.config import ARCHITECTURES, AttentionConfig
from mate_tf.features.token_features import TokenFeatures
from mate_tf.models.classification import ClassificationConfig, SequenceClassification
from mate_tf.training.config import ClassificationTrainingConfig
from mate_tf.training.optimizer import BertAdamW
from mate_tf.training.trainer import Task, Termination, Trainer
from tests.small import cases, small_encoder

BATCH, LENGTH = 2, 40
# Without dropout, for which XLA draws other numbers.
ENCODER = small_encoder(60, intermediate_size=32, type_vocab_sizes=(3, 16, 16, 2, 16, 16, 10))
OF_ITS_OWN: dict[str, dict[str, Any]] = {
    "linformer": dict(sequence_length=LENGTH, projected_length=6),
    "table_etc": dict(num_global_tokens=32, local_radius=4),
    "grammar_soft": dict(learn_grammar_bias=True),
}
MULTI_VIEW: dict[str, dict[str, Any]] = {
    "views": dict(bucket_size=4, global_size=6),
    "tiles": dict(bucket_size=8, coverage=1.0),
}
ATTENTIONS = {
    **{name: AttentionConfig(name, **OF_ITS_OWN.get(name, {})) for name in ARCHITECTURES},
    **{
        f"{name}, {kind}": AttentionConfig(name, "multi_view", **options)
        for name in ("mate", "mate_tableformer", "mate_neighbours")
        for kind, options in MULTI_VIEW.items()
    },
}
# Their sample in `make test`: what the others are made of.
SAMPLE = (
    *("linformer", "table_etc", "grammar_soft", "tableformer"),
    *("mate_tableformer, views", "mate_tableformer, tiles"),
    "mate_neighbours, tiles",
)


def batch() -> dict[str, tf.Tensor]:
    """A question of six tokens, cells of two in three columns, and padding."""
    cell = np.maximum(np.arange(LENGTH) - 6, 0) // 2
    in_table = (np.arange(LENGTH) >= 6) & (np.arange(LENGTH) < LENGTH - 5)
    random = np.random.default_rng(0)
    fields = {
        "input_ids": random.integers(1, 60, (BATCH, LENGTH)),
        "input_mask": np.arange(LENGTH) < LENGTH - 5,
        "segment_ids": in_table,
        "column_ids": np.where(in_table, cell % 3 + 1, 0),
        "row_ids": np.where(in_table, cell // 3, 0),
        "part_of_speech_ids": np.where(in_table, 0, np.arange(LENGTH) % 5),
    }
    arrays = {
        name: np.broadcast_to(fields.get(name, 0), (BATCH, LENGTH)).astype(np.int32)
        for name in TokenFeatures._fields
    }
    arrays["classification_class_index"] = np.array([[0], [1]], np.int32)
    return {name: tf.constant(array) for name, array in arrays.items()}


def trainer_of(name: str) -> Trainer:
    keras.utils.set_random_seed(1)
    encoder = dataclasses.replace(ENCODER, attention=ATTENTIONS[name])
    model = SequenceClassification(encoder, ClassificationConfig(output_dropout=0.0))
    model.build()
    task = Task(model, lambda _: tf.data.Dataset.range(0), model.compute_task_loss, dict, "loss")
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
        model = trainer._task.model
        before = [weight.numpy() for weight in model.trainable_variables]
        # The strategy's function compiles this on a TPU.
        step = tf.function(trainer.replica_step, jit_compile=compiled, autograph=False)
        losses = [float(step(batch())["loss"]) for _ in range(3)]
        after = [weight.numpy() for weight in model.trainable_variables]
        moved = [one - other for one, other in zip(after, before, strict=True)]
        assert all(np.isfinite(one).all() for one in moved)
        assert sum(bool(one.any()) for one in moved) > len(moved) / 2
        results.append(losses)
    # In bfloat16 XLA rounds elsewhere: a few of its steps, of losses
    # near 1, and of weights that three steps of Adam have moved by up to 0.03 each.
    tolerance = 1e-4 if policy == "float32" else 0.1
    np.testing.assert_allclose(*results, rtol=tolerance)
