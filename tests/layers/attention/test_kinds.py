"""The kinds of attention: which one computes, by architecture or by length, and Linformer's."""

import dataclasses

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from mate_tf.config import (
    ARCHITECTURES,
    AttentionConfig,
    MateConfig,
    MateNeighboursConfig,
    MateTableFormerConfig,
)
from mate_tf.features.token_features import TokenFeatures
from mate_tf.layers.attention.kinds import (
    BREAK_EVEN_FULL,
    BREAK_EVEN_WINDOW,
    ON_GPU_FULL,
    ON_GPU_WINDOW,
    ByLength,
    Linformer,
    MultiViewAttention,
    SelfAttention,
)
from mate_tf.layers.attention.patterns import Dense
from mate_tf.layers.attention.table_etc import TableETC
from tests.layers import small_layers as small

IMPLEMENTATIONS = {
    **dict.fromkeys(ARCHITECTURES, Dense),
    **dict.fromkeys(("mate", "mate_tableformer", "mate_neighbours"), ByLength),
    "linformer": Linformer,
    "table_etc": TableETC,
}
LONGEST = 20
KINDS: dict[str, MateConfig] = {
    "mate": MateConfig(bucket_size=3, global_size=4, dense_up_to=LONGEST),
    "with relations": MateTableFormerConfig(bucket_size=3, global_size=4, dense_up_to=LONGEST),
    "with neighbours": MateNeighboursConfig(bucket_size=3, global_size=4, dense_up_to=LONGEST),
    "full coverage": MateConfig(bucket_size=3, coverage=1.0, dense_up_to=LONGEST),
}


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_each_architecture_has_its_implementation_and_comes_back(name):
    options = {"sequence_length": 6} if name == "linformer" else {}
    layer = SelfAttention(2, 4, AttentionConfig(name, **options), name="a")
    assert type(layer.implementation) is IMPLEMENTATIONS[name]
    again = SelfAttention.from_config(layer.get_config())
    assert (again.name, again.attention) == ("a", layer.attention)


@pytest.mark.parametrize("name", ["tapas", "sat", "table_etc"])
def test_multi_view_attention_takes_sorted_heads_alone(name):
    message = rf"expected architecture in \('mate', .*, 'mate_neighbours'\) .*, got '{name}'"
    with pytest.raises(ValueError, match=message):
        MultiViewAttention(2, 4, architecture=name)


def layer_of(attention: AttentionConfig):
    return small.random_weights(SelfAttention(2, small.HIDDEN // 2, attention))


def inputs_of(length: int) -> tuple[tf.Tensor, TokenFeatures]:
    """A question of up to four tokens, cells of one token in three columns, a token of padding."""
    tokens = [small.QUESTION] * 4 + small.cells(length, 3)
    return small.hidden_states(1, length), small.features_of([tokens[: max(length - 1, 1)]], length)


@pytest.mark.medium
@pytest.mark.parametrize("kind", KINDS)
def test_computes_the_same_on_both_sides_and_gradients_pass_through_both(kind):
    chosen, forced = map(layer_of, (KINDS[kind], dataclasses.replace(KINDS[kind], dense_up_to=0)))
    in_graph = small.of_any_length(chosen)

    @settings(max_examples=15)
    @given(length=st.integers(1, 2 * LONGEST))
    def check(length):
        hidden, features = inputs_of(length)
        expected = forced(hidden, features)
        for call in (chosen, in_graph):
            small.assert_same_where(features.input_mask, call(hidden, features), expected)

    check()
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
    inputs = inputs_of(12)
    found = small.of_any_length(layer, jit_compile=True)(*inputs)
    small.assert_same_where(inputs[1].input_mask, found, layer(*inputs))
    layer = layer_of(MateConfig())
    features = inputs_of(500)[1]
    assert [layer.plan(features, training).is_short for training in (False, True)] == [True, False]


def test_the_break_even_length_follows_device_dtype_and_configuration(monkeypatch):
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
    training = longest(training=True)
    monkeypatch.setattr(tf.config, "list_logical_devices", lambda kind: [kind] * (kind == "GPU"))
    assert (longest(), longest(coverage=1.0)) == (ON_GPU_WINDOW, ON_GPU_FULL)
    assert (longest(training=True), longest(dense_up_to=7)) == (training, 7)


def linformer_and_inputs():
    """One of six tokens to three, and inputs whose second example ends in padding."""
    layer = layer_of(AttentionConfig("linformer", sequence_length=6, projected_length=3))
    features = small.token_features(input_mask=[[1] * 6, [1] * 4 + [0, 0]])
    return layer, small.hidden_states(2, 6), features


def test_linformer_equals_its_definition_whatever_stands_in_the_padding():
    layer, inputs, features = linformer_and_inputs()
    weights = layer.implementation.length_projection.numpy()
    query, key, value = (heads.numpy() for heads in layer.heads(inputs))
    context = np.zeros((2, 6, 2, 4))
    for example, real in enumerate((6, 4)):
        for head in range(2):
            keys, values = (weights[:real].T @ x[example, :real, head] for x in (key, value))
            context[example, :, head] = small.attention_in_float64(
                query[example, :, head], keys, values
            )
    output = layer.output_projection
    expected = context.reshape(2, 6, 8) @ output.kernel.numpy() + output.bias.numpy()
    actual = layer(inputs, features).numpy()
    np.testing.assert_allclose(actual, expected, atol=1e-5)
    other = inputs.numpy()
    other[1, 4:] += 100.0
    changed = layer(tf.constant(other), features).numpy()
    np.testing.assert_array_equal(changed[0], actual[0])
    np.testing.assert_allclose(changed[1, :4], actual[1, :4], atol=1e-6)


@pytest.mark.parametrize("length", [5, 7])
def test_another_length_is_refused_by_linformer_also_in_a_graph_of_any_length(length):
    layer, inputs, features = linformer_and_inputs()
    run = small.of_any_length(layer)
    assert run(inputs, features).shape == inputs.shape
    other = small.hidden_states(1, length), small.token_features(input_mask=[1] * length)
    message = f"of 6 tokens, which this Linformer projects to 3, got {length}"
    with pytest.raises(ValueError, match=message):
        layer(*other)
    with pytest.raises(tf.errors.InvalidArgumentError, match="expected sequences of 6 tokens"):
        run(*other)
