"""Dropout whose mask is a function of a seed."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from mate_tf.layers.basic import Dropout, SeededDropout

RATE = 0.3
ONES = np.ones([100, 1000], np.float32)


@pytest.mark.parametrize("compiled", [False, True], ids=["graph", "XLA"])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_drops_a_share_of_the_units_and_scales_the_others(dtype, compiled):
    layer = Dropout(RATE, dtype=dtype)
    run = tf.function(lambda x: layer(x, training=True), jit_compile=compiled)
    dropped = tf.cast(run(tf.cast(ONES, dtype)), tf.float32).numpy()
    kept = dropped != 0
    step = 2**-8 if dtype == "bfloat16" else 2**-23  # bfloat16 has eight bits
    rate = round(RATE * 2**16) / 2**16
    np.testing.assert_allclose(dropped[kept], 1 / (1 - rate), rtol=step)
    # Of 100,000 draws the share's standard deviation is 0.0014; five of them.
    assert abs(1 - kept.mean() - rate) < 5 * np.sqrt(rate * (1 - rate) / kept.size)


def test_drops_other_units_each_time_and_the_same_ones_of_the_same_seed():
    layer = Dropout(RATE)
    seed = layer.draw_seed()
    first, again, other = (layer(ONES, training=True, seed=s) for s in (seed, seed, None))
    np.testing.assert_array_equal(first, again)
    assert np.any(first != other)


def test_what_is_folded_in_gives_another_mask_each():
    dropout = SeededDropout(RATE, tf.constant([1, 2]))
    masks = [one(ONES).numpy() for one in (dropout, dropout.fold_in(0), dropout.fold_in(1))]
    np.testing.assert_array_equal(masks[1], dropout.fold_in(0)(ONES))
    for first, second in ((0, 1), (0, 2), (1, 2)):
        # Independent masks agree in rate**2 + (1 - rate)**2 of the units; five deviations.
        assert abs(np.mean(masks[first] == masks[second]) - 0.58) < 5 * np.sqrt(0.58 * 0.42 / 1e5)


@pytest.mark.parametrize(("rate", "training"), [(0.0, True), (RATE, False)])
def test_costs_nothing_where_nothing_is_dropped(rate, training):
    layer = Dropout(rate)
    graph = tf.function(lambda x: layer(x, training=training)).get_concrete_function(ONES).graph
    assert {operation.type for operation in graph.get_operations()} <= {"Placeholder", "Identity"}
    assert rate or not layer.variables


def test_a_layer_of_the_same_seed_drops_the_same():
    first = Dropout(RATE, seed=7)
    again = keras.layers.deserialize(keras.layers.serialize(first))
    np.testing.assert_array_equal(first(ONES, training=True), again(ONES, training=True))


@pytest.mark.parametrize("rate", [-0.1, 1.0])
def test_an_impossible_rate_is_refused(rate):
    with pytest.raises(ValueError, match=f"dropout rate from 0 to below 1, got {rate}"):
        Dropout(rate)
