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


def by_blocks_and_all_pairs(config: TableETCConfig, **options):
    """The two evaluators, with the same random weights."""
    configs = (dataclasses.replace(config, evaluator=evaluator) for evaluator in (None, "dense"))
    return small.random_weights(*(SelfAttention(HEADS, HEAD_SIZE, c, **options) for c in configs))


def inputs_of(examples, length: int, config: TableETCConfig = SMALL):
    """Features of examples, and hidden states of their global tokens and their own."""
    hidden = small.hidden_states(len(examples), config.num_global_tokens + length)
    return hidden, small.features_of(examples, length)


def compared(features: TokenFeatures, config: TableETCConfig = SMALL) -> np.ndarray:
    """1 for the global tokens and for the real ones, whose output counts. [B, G + S]."""
    mask = features.input_mask.numpy()
    return np.pad(mask, [(0, 0), (config.num_global_tokens, 0)], constant_values=1)


def reference(query, key, value, table, features: TokenFeatures, config: TableETCConfig):
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
    batch, length = features.input_mask.shape
    tokens = config.num_global_tokens + length
    return small.random_heads(seed, batch, HEADS, tokens, HEAD_SIZE, dtype=dtype)


@pytest.mark.parametrize("share", [False, True])
def test_both_evaluators_equal_the_definition(share):
    sizes = {"share_global_tokens": True, "num_global_tokens": 4} if share else {}
    config = dataclasses.replace(SMALL, **sizes)
    features = small.features_of([TABLE, TABLE[:7], TABLE[:3], []], 21)
    inputs = heads_of(features, config, seed=2)
    layers = by_blocks_and_all_pairs(config)
    table = layers[0].implementation.label_embeddings.numpy()
    expected = reference(*(x.numpy().astype(float) for x in inputs), table, features, config)
    counts = compared(features, config)[:, None, :, None]
    counts[3] = 0  # nothing to see in the last
    for layer in layers:
        actual = small.context_of(layer, inputs, features)
        np.testing.assert_allclose(actual * counts, expected * counts, atol=small.TOLERANCE)


def test_labels_start_without_effect_and_it_is_no_architecture_of_patterns():
    layer = SelfAttention(HEADS, HEAD_SIZE, SMALL)
    layer.build((None, None, small.HIDDEN))
    assert not layer.implementation.label_embeddings.numpy().any()
    with pytest.raises(ValueError, match="an architecture of patterns, got 'table_etc'"):
        head_groups(SMALL, HEADS)


def test_errs_in_bfloat16_at_most_twice_as_much_as_all_pairs():
    features = small.features_of([TABLE], 21)
    for seed in range(8):
        inputs = heads_of(features, SMALL, seed, tf.bfloat16)
        layers = by_blocks_and_all_pairs(SMALL, dtype="mixed_bfloat16")
        table = layers[0].implementation.label_embeddings.numpy().astype(float)
        expected = reference(*(x.numpy().astype(float) for x in inputs), table, features, SMALL)
        counts = compared(features)[:, None, :, None]
        found = (small.context_of(layer, inputs, features) for layer in layers)
        by_blocks, all_pairs = (np.linalg.norm((one - expected) * counts) for one in found)
        assert 0 < by_blocks <= 2 * all_pairs


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
