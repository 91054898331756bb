"""The evaluator that follows the length, against either of the two."""

import dataclasses

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from mate_tf.config import AttentionConfig, EncoderConfig
from mate_tf.features.token_features import TokenFeatures
from mate_tf.layers.attention.by_length import EitherPlan
from mate_tf.layers.attention.dense import DensePlan
from mate_tf.layers.attention.multi_view import MultiViewAttention
from mate_tf.layers.attention.tiles import TiledAttention
from mate_tf.layers.encoder import attention_layer

HIDDEN, LONGEST = 8, 20
KINDS = {
    "mate": AttentionConfig("mate", bucket_size=3, global_size=4, dense_up_to=LONGEST),
    "with relations": AttentionConfig(
        "mate_tableformer", bucket_size=3, global_size=4, dense_up_to=LONGEST
    ),
    "full coverage": AttentionConfig("mate", bucket_size=3, coverage=1.0, dense_up_to=LONGEST),
}


def layer_of(attention: AttentionConfig):
    config = EncoderConfig(
        hidden_size=HIDDEN, num_heads=2, attention_dropout=0.0, attention=attention
    )
    layer = attention_layer(config)
    layer.build((None, None, HIDDEN))
    random = np.random.default_rng(0)
    for weight in layer.weights:
        weight.assign(random.normal(0, 0.5, weight.shape))
    return layer


def inputs_of(length: int) -> tuple[tf.Tensor, TokenFeatures]:
    """A question of up to four tokens, cells of one token in three columns, a token of padding."""
    cell = np.arange(length) - 4
    real, in_table = np.arange(length) < max(length - 1, 1), cell >= 0
    fields = {
        "input_mask": real,
        "segment_ids": in_table & real,
        "column_ids": np.where(in_table & real, cell % 3 + 1, 0),
        "row_ids": np.where(in_table & real, cell // 3, 0),
    }
    arrays = (
        np.asarray(fields.get(name, np.zeros(length)), np.int32) for name in TokenFeatures._fields
    )
    hidden = np.random.default_rng(1).normal(size=(1, length, HIDDEN))
    return tf.constant(hidden, tf.float32), TokenFeatures(*(tf.constant(a[None]) for a in arrays))


def of_any_length(function, **options):
    """A graph function that does not know the length."""
    hidden = tf.TensorSpec([None, None, HIDDEN])
    features = [tf.TensorSpec([None, None], tf.int32)] * len(TokenFeatures._fields)

    @tf.function(input_signature=[hidden, *features], autograph=False, **options)
    def run(hidden, *features):
        return function(hidden, TokenFeatures(*features))

    return lambda hidden, features: run(hidden, *features)


@pytest.mark.parametrize("kind", KINDS)
def test_computes_the_same_on_both_sides(kind):
    chosen = layer_of(KINDS[kind])
    forced = layer_of(dataclasses.replace(KINDS[kind], dense_up_to=0))
    in_graph = of_any_length(chosen)

    @settings(max_examples=15)
    @given(length=st.integers(1, 2 * LONGEST))
    def check(length):
        hidden, features = inputs_of(length)
        num_real = max(length - 1, 1)
        expected = forced(hidden, features)[:, :num_real]
        for call in (chosen, in_graph):
            np.testing.assert_allclose(
                call(hidden, features)[:, :num_real], expected, rtol=1e-5, atol=1e-5
            )

    check()


@pytest.mark.parametrize("kind", KINDS)
def test_a_static_length_leaves_one_path_in_the_graph(kind):
    layer = layer_of(KINDS[kind])
    # In training no table is asked for what it holds.
    plans = [layer.plan(inputs_of(length)[1], training=True) for length in (20, 21)]
    is_dense = [isinstance(plan[0], DensePlan) for plan in plans]
    assert is_dense == [True, False]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("length", [LONGEST, LONGEST + 1])
def test_gradients_pass_through_the_choice(kind, length):
    chosen = layer_of(KINDS[kind])
    forced = layer_of(dataclasses.replace(KINDS[kind], dense_up_to=0))
    real = inputs_of(length)[1].input_mask

    def gradients_of(layer):
        variables = [weight.value for weight in layer.trainable_weights]

        def gradients(hidden, features):
            with tf.GradientTape() as tape:
                tape.watch(hidden)
                context = layer(hidden, features, training=True)
                loss = tf.reduce_sum(tf.where(real[..., None] > 0, context, 0.0) ** 2)
            return tape.gradient(loss, [hidden, *variables])

        return gradients

    inputs = inputs_of(length)
    found = of_any_length(gradients_of(chosen))(*inputs)
    expected = gradients_of(forced)(*inputs)
    for one, wanted in zip(found, expected, strict=True):
        # Sums of up to 21 * 21 products of numbers up to 10.
        np.testing.assert_allclose(one, wanted, rtol=1e-4, atol=1e-3)


def test_the_path_that_is_not_taken_costs_no_plan():
    layer = layer_of(KINDS["mate"])
    seen = {}

    def plan_sizes(hidden, features):
        plan = layer.plan(features)
        assert isinstance(plan, EitherPlan)
        return tf.size(plan.dense[0].mask), tf.size(plan.linear.groups[0].global_mask)

    for length in (LONGEST, 10 * LONGEST):
        dense, linear = of_any_length(plan_sizes)(*inputs_of(length))
        seen[length] = int(dense), int(linear)
    assert seen == {LONGEST: (LONGEST**2, 4), 10 * LONGEST: (1, 4 * 10 * LONGEST)}


def test_xla_takes_the_linear_path_of_a_length_it_does_not_know():
    layer = layer_of(KINDS["mate"])
    inputs = inputs_of(12)
    found = of_any_length(layer, jit_compile=True)(*inputs)
    np.testing.assert_allclose(found[:, :11], layer(*inputs)[:, :11], rtol=1e-5, atol=1e-5)


def test_the_break_even_length_follows_the_dtype_and_the_configuration():
    def longest(training=False, **options):
        attention = AttentionConfig("mate", **options)
        kind = MultiViewAttention if attention.coverage is None else TiledAttention
        layer = layer_of(attention)
        assert isinstance(layer, kind)
        return layer.dense_up_to(training)

    assert longest() == MultiViewAttention.break_even["float32"][0]
    assert longest(training=True) == MultiViewAttention.break_even["float32"][1]
    assert longest(dense_up_to=7) == longest(dense_up_to=7, training=True) == 7
    assert longest(evaluator="multi_view") == longest(original_bucketing=True) == 0
    assert longest(coverage=1.0, evaluator="multi_view") == 0
    narrow = MultiViewAttention(2, 4, dense_up_to=None, dtype="mixed_bfloat16")
    assert narrow.dense_up_to() == MultiViewAttention.break_even["bfloat16"][0]
    tiled = TiledAttention(2, 4, AttentionConfig(coverage=1.0), dtype="bfloat16")
    assert tiled.dense_up_to() == TiledAttention.break_even["bfloat16"][0]
    half = MultiViewAttention(2, 4, dense_up_to=None, dtype="float16")
    assert half.dense_up_to() == longest()  # not measured
    assert MultiViewAttention(2, 4).dense_up_to() == 0


@pytest.mark.parametrize("num_columns", [1, 9])
def test_a_table_of_one_long_column_is_computed_over_all_pairs(num_columns):
    attention = AttentionConfig("mate", bucket_size=4, coverage=1.0, dense_up_to=10)
    layer = layer_of(attention)
    hidden, features = inputs_of(90)
    cell = tf.maximum(tf.range(90) - 4, 0)[None]
    features = features._replace(
        column_ids=tf.where(features.column_ids > 0, cell % num_columns + 1, 0),
        row_ids=tf.where(features.column_ids > 0, cell // 43, 0),  # two rows
    )
    assert layer.dense_is_faster(features, training=False) == (num_columns == 1)
    assert not layer.dense_is_faster(features, training=True)
    forced = layer_of(dataclasses.replace(attention, evaluator="multi_view"))
    in_graph = of_any_length(layer)
    expected = forced(hidden, features)[:, :89]
    for call in (layer, in_graph):
        np.testing.assert_allclose(call(hidden, features)[:, :89], expected, rtol=1e-5, atol=1e-5)


def test_training_takes_the_linear_path_earlier():
    layer = layer_of(AttentionConfig("mate"))
    features = inputs_of(500)[1]
    kinds = [type(layer.plan(features, training=training)[0]) for training in (False, True)]
    assert kinds == [DensePlan, tuple]


def test_the_layer_keeps_its_choice_when_saved():
    layer = MultiViewAttention(2, 4, dense_up_to=30)
    assert MultiViewAttention.from_config(layer.get_config()).dense_up_to() == 30
