"""Relations: TableFormer's and neighbours; test_presets.py has that no order matters to them."""

import dataclasses

import numpy as np
import tensorflow as tf
from hypothesis import given

from mate_tf.config import RELATION_NAMES, AttentionConfig
from mate_tf.layers.attention.relations import neighbouring_row, pairwise_relation
from mate_tf.layers.encoder import TableEncoder
from tests.layers import small_layers as small
from tests.layers.small_layers import ENCODER, token_features

# [CLS], a question token, two headers, two rows of two cells, the first of two tokens; padding.
FEATURES = token_features(
    segment_ids=[0, 0, 1, 1, 1, 1, 1, 1, 1, 0],
    column_ids=[0, 0, 1, 2, 1, 1, 2, 1, 2, 0],
    row_ids=[0, 0, 0, 0, 1, 1, 1, 2, 2, 0],
    input_mask=[1] * 9 + [0],
)
SMALL = dataclasses.replace(ENCODER, initializer_range=0.3)
# Pairs of a query and a key.
RELATIONS = {
    "same cell": [(4, 5)],
    "same row": [(4, 6)],
    "same column": [(6, 8)],
    "cell to its column header": [(4, 2)],
    "cell to sentence": [(4, 1)],
    "header to cell of its column": [(2, 7)],
    "header to other header": [(2, 3)],
    "header to same header": [(2, 2)],
    "header to sentence": [(2, 0)],
    "sentence to cell": [(1, 4)],
    "sentence to header": [(1, 2)],
    "sentence to sentence": [(0, 1)],
    "other": [(4, 8), (4, 3), (2, 6), (9, 0), (0, 9), (9, 9)],
}


def test_the_relation_of_two_tokens_is_other_where_it_is_disabled():
    relations = pairwise_relation(FEATURES, FEATURES).numpy()[0]
    found = {
        name: [RELATION_NAMES[relations[pair]] for pair in pairs]
        for name, pairs in RELATIONS.items()
    }
    assert found == {name: [name] * len(pairs) for name, pairs in RELATIONS.items()}
    everything = pairwise_relation(FEATURES, FEATURES).numpy()
    assert set(np.unique(everything)) == set(range(13))
    disabled = pairwise_relation(FEATURES, FEATURES, (2, 4, 6)).numpy()
    expected = np.where(np.isin(everything, (2, 4, 6)), 0, everything)
    np.testing.assert_array_equal(disabled, expected)


@given(tokens=small.ANY_TOKENS)
def test_the_cells_above_and_below_are_those_of_the_column(tokens):
    features = small.features_of([tokens], len(tokens) + 2)
    found = neighbouring_row(features, features).numpy()[0]
    places = [(column, row) if segment and row else None for segment, column, row in tokens]
    for query, key in np.ndindex(*found.shape):
        pair = [places[i] if i < len(places) else None for i in (query, key)]
        expected = -1
        if None not in pair and pair[0][0] == pair[1][0]:
            expected = {-1: 0, 1: 1}.get(pair[1][1] - pair[0][1], -1)
        assert found[query, key] == expected


def test_relations_change_nothing_until_they_are_trained():
    features, _ = small.serialized([1, 2, 3], [1, 2], seed=1)
    outputs = []
    for architecture in ("tableformer", "tapas"):
        tf.keras.utils.set_random_seed(0)
        config = dataclasses.replace(SMALL, attention=AttentionConfig(architecture))
        outputs.append(TableEncoder(config)(features).sequence_output)
    np.testing.assert_allclose(*outputs, atol=1e-6)
