"""TableFormer's relations, and what they are for: no order of rows and columns matters."""

import dataclasses

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from mate_tf.config import AttentionConfig, EncoderConfig
from mate_tf.features.token_features import TokenFeatures
from mate_tf.layers.attention.relations import RELATION_NAMES, pairwise_relation
from mate_tf.layers.encoder import TableEncoder

# [CLS], a question token, two headers, two rows of two cells, the first of two tokens; padding.
SEGMENT = [0, 0, 1, 1, 1, 1, 1, 1, 1, 0]
COLUMN = [0, 0, 1, 2, 1, 1, 2, 1, 2, 0]
ROW = [0, 0, 0, 0, 1, 1, 1, 2, 2, 0]
MASK = [1] * 9 + [0]
SMALL = EncoderConfig(
    vocab_size=40,
    hidden_size=16,
    num_layers=2,
    num_heads=4,
    intermediate_size=24,
    type_vocab_sizes=(3, 8, 8, 2, 8, 8, 10),
    initializer_range=0.3,
)


def features_of(**lists) -> TokenFeatures:
    length = len(lists["segment_ids"])
    zeros = [0] * length
    return TokenFeatures(
        *(tf.constant([lists.get(name, zeros)], tf.int32) for name in TokenFeatures._fields)
    )


@pytest.mark.parametrize(
    ("query", "key", "name"),
    [
        (4, 5, "same cell"),
        (4, 6, "same row"),
        (6, 8, "same column"),
        (4, 8, "other"),
        (4, 2, "cell to its column header"),
        (4, 3, "other"),
        (4, 1, "cell to sentence"),
        (2, 7, "header to cell of its column"),
        (2, 6, "other"),
        (2, 3, "header to other header"),
        (2, 2, "header to same header"),
        (2, 0, "header to sentence"),
        (1, 4, "sentence to cell"),
        (1, 2, "sentence to header"),
        (0, 1, "sentence to sentence"),
        (9, 0, "other"),
        (0, 9, "other"),
        (9, 9, "other"),
    ],
)
def test_the_relation_of_two_tokens(query, key, name):
    features = features_of(segment_ids=SEGMENT, column_ids=COLUMN, row_ids=ROW, input_mask=MASK)
    relation = pairwise_relation(features, features).numpy()[0, query, key]
    assert RELATION_NAMES[relation] == name


def test_disabled_relations_are_other_and_the_rest_stay():
    features = features_of(segment_ids=SEGMENT, column_ids=COLUMN, row_ids=ROW, input_mask=MASK)
    everything = pairwise_relation(features, features).numpy()
    assert set(np.unique(everything)) == set(range(13))
    disabled = pairwise_relation(features, features, (2, 4, 6)).numpy()
    expected = np.where(np.isin(everything, (2, 4, 6)), 0, everything)
    np.testing.assert_array_equal(disabled, expected)


def serialized(rows: np.ndarray, columns: np.ndarray, question: int, seed: int):
    """A table's tokens in an order of its rows and columns, and of each what it is.

    Cells have one to three tokens, whose ids and ranks follow from the cell alone.
    """
    tokens = [(0, 0, 0, index, (0, 0)) for index in range(question)]
    for place, row in enumerate([0, *rows]):
        for column_place, column in enumerate(columns, start=1):
            random = np.random.default_rng((seed, row, column))
            for piece in range(random.integers(1, 4)):
                tokens.append((1, column_place, place, piece, (int(row), int(column))))
    ids, ranks = [], []
    for segment, _, _, piece, cell in tokens:
        source = (seed, 7, *cell, piece) if segment else (seed, 8, piece)
        ids.append(int(np.random.default_rng(source).integers(0, 40)))
        ranks.append(int(np.random.default_rng((seed, 9, *cell)).integers(0, 8)) if segment else 0)
    features = features_of(
        input_ids=ids,
        input_mask=[1] * len(tokens),
        segment_ids=[token[0] for token in tokens],
        column_ids=[token[1] for token in tokens],
        row_ids=[token[2] for token in tokens],
        column_ranks=ranks,
    )
    return features, {(token[4], token[3]): index for index, token in enumerate(tokens)}


@pytest.mark.parametrize(
    "attention",
    [
        AttentionConfig("tableformer"),
        AttentionConfig("mate_tableformer", "dense", bucket_size=0),
        # Buckets so large that each head's window holds the whole table.
        AttentionConfig("mate_tableformer", "multi_view", bucket_size=128, global_size=8),
        AttentionConfig("mate_tableformer", "multi_view", bucket_size=8, coverage=1.0),
    ],
    ids=["tableformer", "mate dense", "mate multi-view", "mate tile by tile"],
)
@settings(max_examples=6)
@given(
    num_rows=st.integers(1, 5),
    num_columns=st.integers(1, 4),
    question=st.integers(1, 6),
    seed=st.integers(0, 99),
)
def test_the_order_of_rows_and_columns_does_not_matter(
    attention, num_rows, num_columns, question, seed
):
    config = dataclasses.replace(
        SMALL, disabled_features=("row_ids", "column_ids"), attention=attention
    )
    encoder = TableEncoder(config)
    encoder.build()
    random = np.random.default_rng(seed)
    for weight in encoder.weights:
        if "relative_" in weight.path:
            weight.assign(random.normal(size=weight.shape))
    rows, columns = np.arange(1, num_rows + 1), np.arange(1, num_columns + 1)
    before, index_before = serialized(rows, columns, question, seed)
    after, index_after = serialized(
        random.permutation(rows), random.permutation(columns), question, seed
    )
    expected = encoder(before).sequence_output.numpy()[0]
    actual = encoder(after).sequence_output.numpy()[0]
    assert index_before.keys() == index_after.keys()
    order = [index_after[key] for key in index_before]
    # Sums of the same numbers of unit size, some hundred of them, in another order.
    np.testing.assert_allclose(actual[order], expected[list(index_before.values())], atol=2e-5)


def test_a_published_row_order_shows_without_relations():
    """The property above can fail: plain MATE with row and column ids depends on the order."""
    config = dataclasses.replace(SMALL, attention=AttentionConfig("mate", "dense", bucket_size=0))
    encoder = TableEncoder(config)
    encoder.build()
    before, index_before = serialized(np.array([1, 2, 3]), np.array([1, 2]), 3, seed=0)
    after, index_after = serialized(np.array([3, 1, 2]), np.array([2, 1]), 3, seed=0)
    expected = encoder(before).sequence_output.numpy()[0][list(index_before.values())]
    actual = encoder(after).sequence_output.numpy()[0][[index_after[key] for key in index_before]]
    assert np.abs(actual - expected).max() > 0.01


def test_relations_change_nothing_until_they_are_trained():
    config = dataclasses.replace(SMALL, attention=AttentionConfig("tableformer"))
    features, _ = serialized(np.array([1, 2, 3]), np.array([1, 2]), 3, seed=1)
    tf.keras.utils.set_random_seed(0)
    with_relations = TableEncoder(config)(features).sequence_output
    tf.keras.utils.set_random_seed(0)
    plain = dataclasses.replace(config, attention=AttentionConfig("tapas"))
    without = TableEncoder(plain)(features).sequence_output
    np.testing.assert_allclose(with_relations, without, atol=1e-6)
