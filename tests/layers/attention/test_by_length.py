"""The evaluator that follows the length, against either of the two."""

import dataclasses

import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from mate_tf.config import MateConfig, MateTableFormerConfig
from mate_tf.features.token_features import TokenFeatures
from mate_tf.layers.attention.kinds import (
    BREAK_EVEN_FULL,
    BREAK_EVEN_WINDOW,
    MultiViewAttention,
    SelfAttention,
)
from tests.layers import small_layers as small

LONGEST = 20
KINDS: dict[str, MateConfig] = {
    "mate": MateConfig(bucket_size=3, global_size=4, dense_up_to=LONGEST),
    "with relations": MateTableFormerConfig(bucket_size=3, global_size=4, dense_up_to=LONGEST),
    "full coverage": MateConfig(bucket_size=3, coverage=1.0, dense_up_to=LONGEST),
}


def layer_of(attention: MateConfig):
    return small.random_weights(SelfAttention(2, small.HIDDEN // 2, attention))


def chosen_and_forced(kind: str):
    """A layer that goes by the length, and one with the same weights that is never dense."""
    return layer_of(KINDS[kind]), layer_of(dataclasses.replace(KINDS[kind], dense_up_to=0))


def inputs_of(length: int) -> tuple[tf.Tensor, TokenFeatures]:
    """A question of up to four tokens, cells of one token in three columns, a token of padding."""
    tokens = [small.QUESTION] * 4 + small.cells(length, 3)
    return small.hidden_states(1, length), small.features_of([tokens[: max(length - 1, 1)]], length)


@pytest.mark.medium
@pytest.mark.parametrize("kind", KINDS)
def test_computes_the_same_on_both_sides_and_gradients_pass_through_both(kind):
    chosen, forced = chosen_and_forced(kind)
    in_graph = small.of_any_length(chosen)

    @settings(max_examples=15)
    @given(length=st.integers(1, 2 * LONGEST))
    def check(length):
        hidden, features = inputs_of(length)
        expected = forced(hidden, features)
        for call in (chosen, in_graph):
            small.assert_same_where(features.input_mask, call(hidden, features), expected)

    check()
    chosen, forced = chosen_and_forced(kind)
    found = small.of_any_length(
        lambda x, f: small.gradients(chosen, x, f, f.input_mask, training=True)
    )
    for length in (LONGEST, LONGEST + 1):
        hidden, features = inputs_of(length)
        assert chosen.plan(features, training=True).is_short == (length == LONGEST)
        expected = small.gradients(forced, hidden, features, features.input_mask, training=True)
        small.assert_same_gradients(found(hidden, features), expected)


def test_the_path_not_taken_costs_no_plan_and_xla_and_training_take_the_linear_one():
    layer = layer_of(KINDS["mate"])
    seen = {}

    def plan_sizes(hidden, features):
        plan = layer.plan(features)
        return tf.size(plan.short[0].mask), tf.size(plan.long[0].global_mask)

    for length in (LONGEST, 10 * LONGEST):
        dense, linear = small.of_any_length(plan_sizes)(*inputs_of(length))
        seen[length] = int(dense), int(linear)
    assert seen == {LONGEST: (LONGEST**2, 4), 10 * LONGEST: (1, 4 * 10 * LONGEST)}
    layer = layer_of(KINDS["mate"])
    inputs = inputs_of(12)
    found = small.of_any_length(layer, jit_compile=True)(*inputs)
    small.assert_same_where(inputs[1].input_mask, found, layer(*inputs))
    layer = layer_of(MateConfig())
    features = inputs_of(500)[1]
    assert [layer.plan(features, training).is_short for training in (False, True)] == [True, False]


def test_the_break_even_length_follows_the_dtype_and_the_configuration():
    def longest(training=False, dtype="float32", **options):
        attention = MateConfig(**options)
        return SelfAttention(2, 4, attention, dtype=dtype).implementation.longest(training)

    assert longest() == BREAK_EVEN_WINDOW["float32"][0]
    assert longest(training=True) == BREAK_EVEN_WINDOW["float32"][1]
    assert longest(dense_up_to=7) == longest(dense_up_to=7, training=True) == 7
    assert longest(evaluator="multi_view") == longest(original_bucketing=True) == 0
    assert longest(coverage=1.0, evaluator="multi_view") == 0
    assert longest(dtype="mixed_bfloat16") == BREAK_EVEN_WINDOW["bfloat16"][0]
    assert longest(coverage=1.0, dtype="bfloat16") == BREAK_EVEN_FULL["bfloat16"][0]
    assert longest(dtype="float16") == longest()  # not measured
    assert MultiViewAttention(2, 4).implementation.longest(False) == 0
