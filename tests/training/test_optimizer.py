"""BERT's AdamW against a re-computation in numpy, alone, on two replicas and reloaded."""

import contextlib
import dataclasses

import keras
import numpy as np
import pytest
import tensorflow as tf

from mate_tf.config import AttentionConfig
from mate_tf.features.token_features import TokenFeatures
from mate_tf.layers.encoder import TableEncoder
from mate_tf.training.optimizer import BertAdamW, WarmupLinearDecay
from tests.small import ENCODER, assert_same, two_devices


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


@pytest.mark.parametrize(
    ("max_norm", "max_value"), [(None, None), (1.0, None), (1e6, None), (None, 0.5), (1.0, 0.1)]
)
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


@pytest.mark.parametrize(
    ("path", "decayed"),
    [
        ("encoder/block_0/query/kernel", True),
        ("encoder/word_embeddings", True),
        ("cell_selection/output_weights", True),
        ("encoder/block_0/query/bias", False),
        ("encoder/layer_norm/gamma", False),
        ("bert/embeddings/LayerNorm/beta", False),
        ("encoder/block_0/relative_bias_table", False),
        ("aggregation/output_bias_agg", False),
    ],
)
def test_weight_decay_is_decided_by_the_path(path, decayed):
    variable = variable_at(path)
    BertAdamW(0.1, weight_decay_rate=0.5).apply([tf.zeros(3)], [variable])
    np.testing.assert_allclose(variable.numpy(), 0.95 if decayed else 1.0)


def test_sparse_gradients_count_every_repeated_row_in_the_norm():
    table, dense = (keras.Variable(np.zeros((4, 2), np.float32), name="table") for _ in range(2))
    rows = tf.constant([1, 1, 3])
    values = tf.constant([[3.0, 0.0], [1.0, 0.0], [0.0, 3.0]])
    sparse_grad = tf.IndexedSlices(values, rows, dense_shape=tf.constant([4, 2]))
    dense_grad = tf.constant([[0.0, 0.0], [4.0, 0.0], [0.0, 0.0], [0.0, 3.0]])

    BertAdamW(0.1).apply([sparse_grad], [table])
    BertAdamW(0.1).apply([dense_grad], [dense])

    np.testing.assert_allclose(table.numpy(), dense.numpy())


@pytest.mark.parametrize(
    ("step", "rate"), [(0, 0.25), (2, 0.75), (3, 0.6), (4, 0.5), (8, 0.1), (9, 0.0), (20, 0.0)]
)
def test_rate_rises_then_falls_to_zero(step, rate):
    schedule = WarmupLinearDecay(1.0, num_steps=10, warmup_steps=4)
    assert float(schedule(step)) == pytest.approx(rate, abs=1e-6)


def test_impossible_warmup_is_refused():
    for warmup_steps in (-1, 11):
        with pytest.raises(ValueError, match="between 0 and num_steps"):
            WarmupLinearDecay(1.0, num_steps=10, warmup_steps=warmup_steps)


def test_optimizer_and_schedule_survive_serialisation():
    optimizer = BertAdamW(WarmupLinearDecay(0.1, 10, 2), weight_decay_rate=0.3, not_decayed="x")
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


def test_heads_and_pooler_learn_faster_by_the_ratio():
    paths = [
        "model/encoder/embedding/word_embeddings",
        "model/encoder/layer_11/output/kernel",
        "model/encoder/pooler/kernel",
        "model/cell_selection/output_weights",
    ]
    updates = {}
    for ratio in (1.0, 20.0):
        variables = [variable_at(path) for path in paths]
        optimizer = BertAdamW(0.001, max_gradient_norm=None, head_learning_rate_ratio=ratio)
        optimizer.apply([tf.constant([0.5, -0.25, 2.0])] * 4, variables)
        updates[ratio] = np.stack([variable.numpy() - 1.0 for variable in variables])
    # The update is linear in the rate, decay included; values near 1 round at half an eps each.
    eps = np.finfo(np.float32).eps
    expected = updates[1.0] * np.array([1.0, 1.0, 20.0, 20.0])[:, None]
    np.testing.assert_allclose(updates[20.0], expected, rtol=0, atol=21 * eps)


@pytest.mark.parametrize(
    ("attention", "bias"),
    [
        (AttentionConfig("tableformer"), "relative_bias_table"),
        (AttentionConfig("grammar_soft", learn_grammar_bias=True), "grammar_bias"),
    ],
)
def test_attention_biases_learn_faster_by_the_ratio_and_nothing_else(attention, bias):
    encoder = TableEncoder(dataclasses.replace(ENCODER, num_layers=2, attention=attention))
    encoder(TokenFeatures(*(tf.ones([1, 4], tf.int32) for _ in TokenFeatures._fields)))
    variables = encoder.trainable_variables
    start = [variable.numpy() for variable in variables]
    updates = {}
    for ratio in (1.0, 100.0):
        options = dict(weight_decay_rate=0.0, attention_bias_learning_rate_ratio=ratio)
        optimizer = BertAdamW(2.0**-10, max_gradient_norm=None, **options)
        optimizer.apply([tf.ones(variable.shape) for variable in variables], variables)
        updates[ratio] = [new - old for new, old in zip(variables, start, strict=True)]
        for variable, value in zip(variables, start, strict=True):
            variable.assign(value)
    biases = [variable.path.endswith(f"/{bias}") for variable in variables]
    assert sum(biases) == 2  # one a layer
    for is_bias, slow, fast in zip(biases, updates[1.0], updates[100.0], strict=True):
        # Updates of 3e-3 to values below 8, which float32 rounds by 2^-22: one part in 10^4.
        np.testing.assert_allclose(fast, slow * (100.0 if is_bias else 1.0), rtol=1e-3)
        assert np.all(slow != 0.0)


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
