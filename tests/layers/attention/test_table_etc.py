"""TableETC by blocks against all pairs, and both against their definition, pair by pair."""

import dataclasses

import keras
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from mate_tf.config import AttentionConfig
from mate_tf.features.token_features import TokenFeatures
from mate_tf.layers.attention.patterns import head_groups
from mate_tf.layers.attention.projections import heads_first
from mate_tf.layers.attention.table_etc import (
    TableETCAttention,
    global_local_plan,
    scores_by_distance,
    windows,
)
from tests.layers.attention.test_tiles import features_of

HEADS, HEAD_SIZE, HIDDEN = 2, 4, 8
# Some 60 products of unit size are summed in float32, in another order.
TOLERANCE = 1e-5
SMALL = AttentionConfig("table_etc", num_global_tokens=12, local_radius=4, max_relative_distance=3)
TABLE = [(0, 0, 0)] * 3 + [(1, c + 1, r) for r in range(5) for c in range(3)]


def by_blocks_and_all_pairs(config: AttentionConfig, heads: int = HEADS, **options):
    """The two evaluators, with the same random weights."""
    layers = [
        TableETCAttention(
            heads, HEAD_SIZE, dataclasses.replace(config, evaluator=evaluator), **options
        )
        for evaluator in (None, "dense")
    ]
    random = np.random.default_rng(0)
    for layer in layers:
        layer.build((None, None, HIDDEN))
    for ours, theirs in zip(layers[0].weights, layers[1].weights, strict=True):
        assert ours.path.split("/", 1)[1] == theirs.path.split("/", 1)[1]
        value = random.normal(0, 0.5, ours.shape)
        ours.assign(value)
        theirs.assign(value)
    return layers


def hidden_states(batch: int, length: int, config: AttentionConfig = SMALL) -> tf.Tensor:
    random = np.random.default_rng(1)
    return tf.constant(
        random.normal(size=(batch, config.num_global_tokens + length, HIDDEN)), tf.float32
    )


def compared(features: TokenFeatures, config: AttentionConfig = SMALL) -> np.ndarray:
    """1 for the global tokens and for the real ones, whose output counts. [B, G + S, 1]."""
    mask = features.input_mask.numpy()
    ones = np.ones((len(mask), config.num_global_tokens), mask.dtype)
    return np.concatenate([ones, mask], axis=1)[..., None]


def reference(query, key, value, table, features: TokenFeatures, config: AttentionConfig):
    """The definition in float64, pair by pair: [B, H, G + S, E]."""
    size, half = config.num_global_tokens, config.num_global_tokens // 2
    largest = config.max_relative_distance
    mask, segment = features.input_mask.numpy(), features.segment_ids.numpy()
    column, row = features.column_ids.numpy(), features.row_ids.numpy()
    batch, heads, length, head_size = query.shape
    context = np.zeros(query.shape)
    for example in range(batch):

        def relation(token, number, example=example):
            """What a token is to a global one."""
            if not (mask[example, token] and segment[example, token]):
                return "other"
            if number < half:
                return "row" if row[example, token] % half == number else "other"
            at = column[example, token] - 1
            return "column" if at >= 0 and half + at % half == number else "other"

        tokens = range(length - size)
        stands = [any(relation(t, number) != "other" for t in tokens) for number in range(size)]
        names = ["other", "row", "column"]
        for query_at in range(length):
            labels = {}
            for key_at in range(length):
                real = stands[key_at] if key_at < size else mask[example, key_at - size]
                if not real:
                    continue
                if query_at < size and key_at < size:
                    labels[key_at] = 6 + int(query_at == key_at)
                elif query_at < size:
                    labels[key_at] = 3 + names.index(relation(key_at - size, query_at))
                elif key_at < size:
                    labels[key_at] = names.index(relation(query_at - size, key_at))
                elif abs(key_at - query_at) <= config.local_radius:
                    clipped = max(-largest, min(largest, key_at - query_at))
                    labels[key_at] = 8 + largest + clipped
            if not labels:
                continue
            keys = list(labels)
            for head in range(heads):
                vectors = key[example, head, keys] + table[list(labels.values()), head]
                scores = vectors @ query[example, head, query_at] / head_size**0.5
                weights = np.exp(scores - scores.max())
                context[example, head, query_at] = (
                    weights / weights.sum() @ value[example, head, keys]
                )
    return context


def heads_of(features, config, seed, dtype=tf.float32):
    """Random queries, keys and values [B, H, G + S, E]."""
    random = np.random.default_rng(seed)
    batch, length = features.input_mask.shape
    shape = (batch, HEADS, config.num_global_tokens + length, HEAD_SIZE)
    return [tf.constant(random.normal(size=shape), dtype) for _ in range(3)]


@pytest.mark.parametrize("share", [False, True])
def test_both_evaluators_equal_the_definition(share):
    config = dataclasses.replace(SMALL, share_global_tokens=share)
    if share:
        config = dataclasses.replace(config, num_global_tokens=4)
    features = features_of([TABLE, TABLE[:7], TABLE[:3], []], 21)
    inputs = heads_of(features, config, seed=2)
    layers = by_blocks_and_all_pairs(config)
    table = layers[0].label_embeddings.numpy()
    expected = reference(*(x.numpy().astype(float) for x in inputs), table, features, config)
    counts = compared(features, config)[:, None]
    counts = counts * np.array([1, 1, 1, 0]).reshape(4, 1, 1, 1)  # nothing to see in the last
    for layer in layers:
        context = layer.attend(*map(heads_first, inputs), layer.plan(features), None)
        actual = heads_first(context).numpy()
        np.testing.assert_allclose(actual * counts, expected * counts, atol=TOLERANCE)


TOKENS = st.lists(
    st.one_of(st.just((0, 0, 0)), st.tuples(st.just(1), st.integers(0, 6), st.integers(0, 5))),
    max_size=24,
)


@settings(max_examples=60)
@given(
    examples=st.lists(TOKENS, min_size=1, max_size=3),
    more=st.integers(0, 4),
    size=st.sampled_from([2, 6, 12, 16]),
    radius=st.integers(1, 11),
    max_distance=st.integers(0, 14),
)
def test_equals_all_pairs_for_any_tokens(examples, more, size, radius, max_distance):
    config = AttentionConfig(
        "table_etc",
        num_global_tokens=size,
        local_radius=radius,
        max_relative_distance=max_distance,
        share_global_tokens=size < 12,
    )
    length = max(1, max(map(len, examples)) + more)
    features = features_of(examples, length)
    inputs = hidden_states(len(examples), length, config)
    actual, expected = (layer(inputs, features) for layer in by_blocks_and_all_pairs(config))
    assert np.isfinite(actual.numpy()).all()
    counts = compared(features, config)
    np.testing.assert_allclose(actual * counts, expected * counts, atol=TOLERANCE)


@settings(max_examples=40)
@given(
    question=st.integers(0, 6),
    rows=st.integers(1, 6),
    columns=st.integers(1, 6),
    cell=st.integers(1, 3),
    length=st.integers(1, 60),
    radius=st.integers(1, 20),
)
def test_equals_all_pairs_for_any_table_cut_or_padded(
    question, rows, columns, cell, length, radius
):
    config = dataclasses.replace(SMALL, local_radius=radius)
    cells = [(1, c + 1, r) for r in range(rows) for c in range(columns) for _ in range(cell)]
    features = features_of([([(0, 0, 0)] * question + cells)[:length]], length)
    inputs = hidden_states(1, length)
    actual, expected = (layer(inputs, features) for layer in by_blocks_and_all_pairs(config))
    counts = compared(features)
    np.testing.assert_allclose(actual * counts, expected * counts, atol=TOLERANCE)


@pytest.mark.parametrize("radius", [1, 4, 7, 30])
def test_gradients_equal_those_of_all_pairs(radius):
    config = dataclasses.replace(SMALL, local_radius=radius)
    features = features_of([TABLE, TABLE[:9], []], 21)
    inputs = hidden_states(3, 21)
    gradients = []
    for layer in by_blocks_and_all_pairs(config):
        counts = tf.constant(compared(features), tf.float32)
        with tf.GradientTape() as tape:
            tape.watch(inputs)
            loss = tf.reduce_sum(tf.sin(layer(inputs, features)) * counts)
        gradients.append(tape.gradient(loss, [inputs, *(w.value for w in layer.weights)]))
    for ours, theirs in zip(*gradients, strict=True):
        scale = max(1.0, float(tf.reduce_max(tf.abs(theirs))))
        np.testing.assert_allclose(ours, theirs, atol=TOLERANCE * scale)


def test_every_label_is_learned_from():
    features = features_of([TABLE], 18)
    inputs = hidden_states(1, 18)
    layer, _ = by_blocks_and_all_pairs(SMALL)
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tf.sin(layer(inputs, features)))
    gradient = tape.gradient(loss, layer.label_embeddings.value)
    assert gradient.shape == (8 + 7, HEADS, HEAD_SIZE)
    assert (np.abs(gradient).max(axis=(1, 2)) > 1e-6).all()


def test_labels_start_without_effect():
    layer = TableETCAttention(HEADS, HEAD_SIZE, SMALL)
    layer.build((None, None, HIDDEN))
    assert not layer.label_embeddings.numpy().any()


def test_what_stands_in_padding_and_in_global_tokens_of_nothing_changes_nothing():
    features = features_of([TABLE], 25)  # five rows and three columns of six each
    inputs = hidden_states(1, 25)
    other = inputs.numpy()
    other[:, 5:6] += 100.0
    other[:, 6 + 3 : 12] += 100.0
    other[:, 12 + len(TABLE) :] += 100.0
    seen = np.r_[0:5, 6:9, 12 : 12 + len(TABLE)]
    for layer in by_blocks_and_all_pairs(SMALL):
        expected, actual = layer(inputs, features), layer(tf.constant(other), features)
        np.testing.assert_allclose(
            actual.numpy()[:, seen], expected.numpy()[:, seen], atol=TOLERANCE
        )


def test_cost_is_linear_in_the_sequence():
    config = AttentionConfig("table_etc", share_global_tokens=True)
    for length in (1000, 4000):
        features = features_of([TABLE], length)
        plan = global_local_plan(features, config)
        pairs = int(np.prod(plan.membership.shape)) + int(np.prod(plan.long_mask.shape))
        blocks = -(-length // 84)
        assert pairs == 256 * length + blocks * 84 * (256 + 3 * 84)


def test_windows_stand_in_order_with_nothing_beyond_the_ends():
    blocks = tf.constant([[[1, 2], [3, 4], [5, 6]]])
    np.testing.assert_array_equal(
        windows(blocks, axis=1)[0], [[0, 0, 1, 2, 3, 4], [1, 2, 3, 4, 5, 6], [3, 4, 5, 6, 0, 0]]
    )


@pytest.mark.parametrize("radius", [1, 2, 5])
@pytest.mark.parametrize("max_distance", [0, 1, 3, 9, 20])
def test_distances_in_a_window_are_counted_from_each_query(radius, max_distance):
    labels = np.arange(2 * max_distance + 1.0) - max_distance
    actual = scores_by_distance(tf.constant(np.tile(labels, (2, radius, 1))))
    query = radius + np.arange(radius)[:, None]
    expected = np.clip(np.arange(3 * radius) - query, -max_distance, max_distance)
    np.testing.assert_array_equal(actual, np.tile(expected, (2, 1, 1)))


def test_errs_in_bfloat16_at_most_twice_as_much_as_all_pairs():
    features = features_of([TABLE], 21)
    for seed in range(8):
        inputs = heads_of(features, SMALL, seed, tf.bfloat16)
        layers = by_blocks_and_all_pairs(SMALL, dtype="mixed_bfloat16")
        table = layers[0].label_embeddings.numpy().astype(float)
        expected = reference(*(x.numpy().astype(float) for x in inputs), table, features, SMALL)
        counts = compared(features)[:, None]
        errors = []
        for layer in layers:
            context = layer.attend(*map(heads_first, inputs), layer.plan(features), None)
            actual = heads_first(context)
            assert actual.dtype == tf.bfloat16
            difference = (actual.numpy().astype(float) - expected) * counts
            errors.append(float(np.sqrt(np.mean(difference**2))))
        assert 0 < errors[0] <= 2 * errors[1]


def test_dropout_leaves_out_some_of_the_pairs_in_training_only():
    features = features_of([TABLE], 18)
    inputs = hidden_states(1, 18)
    for layer in by_blocks_and_all_pairs(SMALL, dropout=0.5):
        at_rest = layer(inputs, features)
        np.testing.assert_array_equal(layer(inputs, features), at_rest)
        assert np.abs(layer(inputs, features, training=True) - at_rest).max() > 1e-3


@pytest.mark.parametrize("evaluator", [None, "dense"])
def test_more_rows_or_columns_than_global_tokens_are_refused_with_both(evaluator):
    config = dataclasses.replace(SMALL, evaluator=evaluator)
    layer = TableETCAttention(HEADS, HEAD_SIZE, config)
    layer(hidden_states(1, 2), features_of([[(1, 6, 5), (1, 1, 0)]], 2))  # six of each fit
    with pytest.raises(ValueError, match=r"at most 6 rows, the header .* 12, got 7 .*set share_gl"):
        layer(hidden_states(1, 2), features_of([[(1, 1, 6)]], 2))
    with pytest.raises(ValueError, match=r"at most 6 columns .* 12, got 9 .*set share_global"):
        layer(hidden_states(1, 2), features_of([[(1, 9, 0)]], 2))
    # Of the padding and the question nothing is asked.
    layer(hidden_states(1, 2), features_of([[(0, 9, 9)]], 2))


def in_graph(layer):
    signature = [tf.TensorSpec([None, None, HIDDEN])] + [tf.TensorSpec([None, None], tf.int32)] * 9
    return tf.function(lambda x, *f: layer(x, TokenFeatures(*f)), input_signature=signature)


def test_more_rows_than_global_tokens_are_refused_inside_a_graph():
    layer, _ = by_blocks_and_all_pairs(SMALL)
    features = features_of([[(1, 1, 8)]], 2)
    message = r"at most 6 rows, the header .*\[9\] .*set share_global_tokens"
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        in_graph(layer)(hidden_states(1, 2), *features[:9])


def test_lengths_unknown_to_the_graph_work():
    layers = by_blocks_and_all_pairs(SMALL)
    runs = [in_graph(layer) for layer in layers]
    for length in (1, 4, 21):
        features = features_of([TABLE[:length]], length)
        inputs = hidden_states(1, length)
        expected = layers[1](inputs, features)
        for run in runs:
            counts = compared(features)
            np.testing.assert_allclose(
                run(inputs, *features[:9]) * counts, expected * counts, atol=TOLERANCE
            )


@pytest.mark.parametrize("index", [0, 1], ids=["by blocks", "all pairs"])
def test_compiles_with_xla(index):
    layer = by_blocks_and_all_pairs(SMALL)[index]
    features, inputs = features_of([TABLE], 18), hidden_states(1, 18)
    compiled = tf.function(layer, jit_compile=True)
    np.testing.assert_allclose(compiled(inputs, features), layer(inputs, features), atol=TOLERANCE)


def test_saved_layer_comes_back_with_its_configuration():
    layer = TableETCAttention(HEADS, HEAD_SIZE, SMALL)
    again = keras.layers.deserialize(keras.layers.serialize(layer))
    assert isinstance(again, TableETCAttention)
    assert again.attention == SMALL


def test_hidden_states_without_global_tokens_are_refused():
    layer = TableETCAttention(HEADS, HEAD_SIZE, SMALL)
    with pytest.raises(ValueError, match=r"of 14 tokens, 12 global ones .* 2, got 2"):
        layer(tf.zeros([1, 2, HIDDEN]), features_of([[(1, 1, 0)]], 2))


def test_a_pattern_that_it_does_not_have_is_refused():
    with pytest.raises(ValueError, match="an architecture of patterns, got 'table_etc'"):
        head_groups(SMALL, HEADS)
