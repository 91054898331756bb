"""TableETC by blocks against all pairs, and both against their definition, pair by pair."""

import dataclasses

import numpy as np
import pytest
import tensorflow as tf

from mate_tf.config import TableETCConfig
from mate_tf.features.token_features import TokenFeatures
from mate_tf.layers.attention.kinds import SelfAttention
from mate_tf.layers.attention.patterns import head_groups
from mate_tf.layers.attention.table_etc import global_local_plan
from tests.layers import small_layers as small

HEADS, HEAD_SIZE = 2, 4
SMALL = TableETCConfig(num_global_tokens=12, local_radius=4, max_relative_distance=3)
TABLE = [small.QUESTION] * 3 + small.cells(5, 3)


def inputs_of(examples, length: int, config: TableETCConfig = SMALL):
    """Features of examples, and hidden states of their global tokens and their own."""
    hidden = small.hidden_states(len(examples), config.num_global_tokens + length)
    return hidden, small.features_of(examples, length)


def reference(query, key, value, table, features: TokenFeatures, config: TableETCConfig):
    """The definition in float64, pair by pair: [B, H, G + S, E]."""
    size, half = config.num_global_tokens, config.num_global_tokens // 2
    largest = config.max_relative_distance
    names = "input_mask", "segment_ids", "column_ids", "row_ids"
    mask, segment, column, row = (getattr(features, name).numpy() for name in names)

    def relation(example, token, number):
        """1 if a global token stands for the token's row, 2 for its column, or else 0."""
        if not (mask[example, token] and segment[example, token]):
            return 0
        if number < half:
            return int(row[example, token] % half == number)
        at = column[example, token] - 1
        return 2 * int(at >= 0 and half + at % half == number)

    labels = np.full((len(mask), *query.shape[2:3] * 2), -1)
    for example, query_at, key_at in np.ndindex(labels.shape):
        if key_at < size:
            is_real = any(relation(example, token, key_at) for token in range(mask.shape[1]))
        else:
            is_real = mask[example, key_at - size]
        distance = key_at - query_at
        if not is_real or (min(query_at, key_at) >= size and abs(distance) > config.local_radius):
            continue
        if query_at < size and key_at < size:
            label = 6 + int(query_at == key_at)
        elif query_at < size:
            label = 3 + relation(example, key_at - size, query_at)
        elif key_at < size:
            label = relation(example, query_at - size, key_at)
        else:
            label = 8 + largest + max(-largest, min(largest, distance))
        labels[example, query_at, key_at] = label
    added = np.einsum("bhqe,bqkhe->bhqk", query, table[labels]) / query.shape[-1] ** 0.5
    added = np.where(labels[:, None] < 0, -1e9, added)
    return small.attention_in_float64(query, key, value, added)


@pytest.mark.parametrize("share", [False, True])
def test_both_evaluators_equal_the_definition(share):
    sizes = {"share_global_tokens": True, "num_global_tokens": 4} if share else {}
    config = dataclasses.replace(SMALL, **sizes)
    features = small.features_of([TABLE, TABLE[:7], TABLE[:3], []], 21)
    inputs = small.random_heads(2, 4, HEADS, config.num_global_tokens + 21, HEAD_SIZE)
    kinds = (dataclasses.replace(config, evaluator=evaluator) for evaluator in (None, "dense"))
    layers = small.random_weights(*(SelfAttention(HEADS, HEAD_SIZE, kind) for kind in kinds))
    table = layers[0].implementation.label_embeddings.numpy()
    expected = reference(*(x.numpy().astype(float) for x in inputs), table, features, config)
    # The output of padding and of the last example, where there is nothing to see, does not count.
    padding = [(0, 0), (config.num_global_tokens, 0)]
    counts = np.pad(features.input_mask.numpy(), padding, constant_values=1)[:, None, :, None]
    counts[3] = 0
    for layer in layers:
        actual = small.context_of(layer, inputs, features)
        np.testing.assert_allclose(actual * counts, expected * counts, atol=small.TOLERANCE)


def test_it_is_no_architecture_of_patterns():
    with pytest.raises(ValueError, match="an architecture of patterns, got 'table_etc'"):
        head_groups(SMALL, HEADS)


def test_cost_is_linear():
    config = TableETCConfig(share_global_tokens=True)
    for length in (1000, 4000):
        features = small.features_of([TABLE], length)
        plan = global_local_plan(features, config)
        pairs = int(np.prod(plan.membership.shape)) + int(np.prod(plan.long_mask.shape))
        blocks = -(-length // 84)
        assert pairs == 256 * length + blocks * 84 * (256 + 3 * 84)


TOO_MUCH = [
    ((1, 1, 6), "rows, the header", 7),
    ((1, 1, 8), "rows, the header", 9),
    ((1, 9, 0), "columns", 9),
]


@pytest.mark.parametrize("evaluator", [None, "dense"])
def test_more_rows_or_columns_than_global_tokens_are_refused_with_both(evaluator):
    config = dataclasses.replace(SMALL, evaluator=evaluator)
    layer = small.random_weights(SelfAttention(HEADS, HEAD_SIZE, config))
    in_graph = small.of_any_length(layer)
    layer(*inputs_of([[(1, 6, 5), (1, 1, 0)]], 2))  # six of each fit
    for token, kind, number in TOO_MUCH:
        inputs = inputs_of([[token]], 2)
        with pytest.raises(ValueError, match=rf"at most 6 {kind} .* 12, got {number} .*set share"):
            layer(*inputs)
        message = rf"at most 6 {kind} .*\[{number}\] .*set share_global_tokens"
        with pytest.raises(tf.errors.InvalidArgumentError, match=message):
            in_graph(*inputs)
    # Of the padding and the question nothing is asked.
    layer(*inputs_of([[(0, 9, 9)]], 2))
