"""BERT's AdamW against a re-computation in numpy, alone, on two replicas and reloaded."""

import contextlib
import dataclasses

import keras
import numpy as np
import pytest
import tensorflow as tf

from mate_tf.config import AttentionConfig
from mate_tf.layers.encoder import TableEncoder
from mate_tf.training.optimizer import BertAdamW, WarmupLinearDecay
from tests.small import ENCODER, assert_same, cases, two_devices

BIAS = "relative_bias_table"


def recomputed(start, gradients, rates, decay, max_norm, max_value=np.inf):
    """The update rule of the docstring in float64, for a list of arrays."""
    values = [np.array(value, np.float64) for value in start]
    m = [np.zeros_like(value) for value in values]
    v = [np.zeros_like(value) for value in values]
    for rate, grads in zip(rates, gradients, strict=True):
        norm = np.sqrt(sum(np.sum(np.square(grad)) for grad in grads))
        scale = 1.0 if max_norm is None else min(1.0, max_norm / norm)
        for i, grad in enumerate(grads):
            grad = np.clip(np.asarray(grad, np.float64) * scale, -max_value, max_value)
            m[i] = 0.9 * m[i] + 0.1 * grad
            v[i] = 0.999 * v[i] + 0.001 * np.square(grad)
            values[i] -= rate * (m[i] / (np.sqrt(v[i]) + 1e-6) + decay[i] * values[i])
    return values


@cases("max_norm, max_value", (None, None), (1.0, None), (1e6, None), (None, 0.5), (1.0, 0.1))
def test_updates_follow_the_formula(max_norm, max_value):
    rng = np.random.default_rng(0)
    start = [rng.normal(size=(3, 4)).astype(np.float32), rng.normal(size=4).astype(np.float32)]
    layer = keras.layers.Dense(4)
    layer.build((None, 3))
    layer.set_weights(start)
    gradients = [[rng.normal(size=(3, 4)), rng.normal(size=4)] for _ in range(5)]
    schedule = WarmupLinearDecay(0.1, num_steps=5, warmup_steps=2)
    optimizer = BertAdamW(
        schedule, weight_decay_rate=0.5, max_gradient_norm=max_norm, max_gradient_value=max_value
    )
    optimizer.build(layer.trainable_variables)

    for grads in gradients:
        optimizer.apply([tf.constant(grad, tf.float32) for grad in grads])

    rates = [0.05, 0.06, 0.04, 0.02, 0.0]
    expected = recomputed(start, gradients, rates, [0.5, 0.0], max_norm, max_value or np.inf)
    # The fused kernel rounds 1 - beta_2 to float32, 1.3e-5 off, in updates of about 0.5.
    assert_same(layer.get_weights(), expected, rtol=1e-5, atol=1e-5)
    assert int(optimizer.iterations) == 5


def test_sparse_gradients_count_every_row_in_the_norm_and_weights_decay_by_their_path():
    table, dense = (keras.Variable(np.zeros((4, 2), np.float32), name="table") for _ in range(2))
    rows = tf.constant([1, 1, 3])
    values = tf.constant([[3.0, 0.0], [1.0, 0.0], [0.0, 3.0]])
    sparse_grad = tf.IndexedSlices(values, rows, dense_shape=tf.constant([4, 2]))
    dense_grad = tf.constant([[0.0, 0.0], [4.0, 0.0], [0.0, 0.0], [0.0, 3.0]])

    BertAdamW(0.1).apply([sparse_grad], [table])
    BertAdamW(0.1).apply([dense_grad], [dense])

    np.testing.assert_allclose(table.numpy(), dense.numpy())
    decayed = ["block_0/query/kernel", "word_embeddings", "cell_selection/output_weights"]
    others = ["block_0/query/bias", "layer_norm/gamma", "embeddings/LayerNorm/beta"]
    others += ["block_0/relative_bias_table", "aggregation/output_bias_agg"]
    for path in decayed + others:
        variable = variable_at(f"encoder/{path}")
        BertAdamW(0.1, weight_decay_rate=0.5).apply([tf.zeros(3)], [variable])
        np.testing.assert_allclose(variable.numpy(), 0.95 if path in decayed else 1.0)


def test_rate_rises_then_falls_to_zero_and_survives_serialisation_with_the_optimizer():
    schedule = WarmupLinearDecay(1.0, num_steps=10, warmup_steps=4)
    rates = [float(schedule(step)) for step in (0, 2, 3, 4, 8, 9, 20)]
    assert rates == pytest.approx([0.25, 0.75, 0.6, 0.5, 0.1, 0.0, 0.0], abs=1e-6)
    for warmup_steps in (-1, 11):
        with pytest.raises(ValueError, match="between 0 and num_steps"):
            WarmupLinearDecay(1.0, num_steps=10, warmup_steps=warmup_steps)
    optimizer = BertAdamW(WarmupLinearDecay(0.1, 10, 2), weight_decay_rate=0.3)
    again = keras.optimizers.deserialize(keras.optimizers.serialize(optimizer))
    assert isinstance(again, BertAdamW)
    assert again.get_config() == optimizer.get_config()


def variable_at(path):
    """A weight of three ones with a path."""
    *scopes, name = path.split("/")
    with contextlib.ExitStack() as stack:
        for scope in scopes:
            stack.enter_context(keras.name_scope(scope))
        variable = keras.Variable(np.ones(3, np.float32), name=name)
    assert variable.path == path
    return variable


@cases(
    "option, faster",
    ("head_learning_rate_ratio", ["encoder/pooler/kernel", "cell_selection/output_weights"]),
    ("attention_bias_learning_rate_ratio", [f"encoder/layer_{n}/{BIAS}" for n in range(2)]),
)
def test_some_weights_learn_faster_by_their_ratio(option, faster):
    slow = ["encoder/embedding/word_embeddings", f"encoder/layer_0/{BIAS}/kernel"]
    updates = {}
    for ratio in (1.0, 20.0):
        variables = [variable_at(f"model/{path}") for path in (*slow, *faster)]
        optimizer = BertAdamW(0.001, max_gradient_norm=None, **{option: ratio})
        optimizer.apply([tf.constant([0.5, -0.25, 2.0])] * 4, variables)
        updates[ratio] = np.stack([variable.numpy() - 1.0 for variable in variables])
    # The update is linear in the rate, decay included; values near 1 round at half an eps each.
    eps = np.finfo(np.float32).eps
    expected = updates[1.0] * np.array([1.0, 1.0, 20.0, 20.0])[:, None]
    np.testing.assert_allclose(updates[20.0], expected, rtol=0, atol=21 * eps)


def test_attention_biases_are_called_so():
    encoder = TableEncoder(dataclasses.replace(ENCODER, attention=AttentionConfig("tableformer")))
    encoder.build()
    assert [v.path for v in encoder.trainable_variables if v.path.endswith(f"/{BIAS}")]


@pytest.mark.parametrize(("max_norm", "max_value"), [(0.5, None), (None, 0.5), (2.0, 0.5)])
def test_clipping_does_not_depend_on_the_number_of_replicas(max_norm, max_value):
    shares = tf.constant([[3.0, 0.0, 1.0], [1.0, 2.0, 0.0]])  # gradient of each replica

    def run(strategy, gradient_of):
        with strategy.scope():
            variable = keras.Variable(np.ones(3, np.float32), name="kernel")
            optimizer = BertAdamW(0.1, max_gradient_norm=max_norm, max_gradient_value=max_value)
            optimizer.build([variable])

        @tf.function
        def step():
            strategy.run(lambda: optimizer.apply([gradient_of()], [variable]))

        for _ in range(3):
            step()
        moments = [value.numpy() for value in optimizer.variables[2:]]
        return [variable.numpy(), *moments]

    one = run(tf.distribute.OneDeviceStrategy("CPU:0"), lambda: tf.reduce_sum(shares, axis=0))
    two = run(
        two_devices(), lambda: shares[tf.distribute.get_replica_context().replica_id_in_sync_group]
    )
    assert_same(two, one, rtol=1e-6)
