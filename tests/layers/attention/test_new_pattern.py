"""A new pattern is a config's name and an entry of PATTERNS: all evaluators compute it."""

import dataclasses

import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from mate_tf import config
from mate_tf.config import AttentionConfig, MateConfig
from mate_tf.layers.attention import patterns
from mate_tf.layers.attention.kinds import SelfAttention
from tests.layers import small_layers as small


@dataclasses.dataclass(frozen=True)
class DiagonalConfig(MateConfig):
    """Every head attends along the table's diagonals."""

    architecture: str = "diagonal"


def diagonal(features):
    """The same for the tokens of a diagonal; negative below the first."""
    return features.column_ids - features.row_ids


def same_diagonal(query, key):
    return tf.equal(diagonal(query), diagonal(key))


def diagonal_heads(_, num_heads):
    pattern = patterns.any_of(same_diagonal, patterns.global_token)
    return (patterns.HeadGroup(num_heads, pattern, diagonal, "diagonal heads"),)


@pytest.fixture(scope="module", autouse=True)
def registered():
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(config._KINDS, "diagonal", DiagonalConfig)
        patch.setitem(patterns.PATTERNS, "diagonal", diagonal_heads)
        yield


def layers(*options):
    kinds = (AttentionConfig("diagonal", **of_layer) for of_layer in options)
    return small.random_weights(*(SelfAttention(4, 4, kind) for kind in kinds))


@settings(max_examples=25)
@given(
    examples=st.lists(small.ANY_TOKENS, min_size=1, max_size=3),
    bucket_size=st.integers(1, 8),
    global_size=st.integers(1, 6),
)
def test_windows_and_tiles_equal_all_pairs(examples, bucket_size, global_size):
    length = max(map(len, examples)) + 1
    features = small.features_of(examples, length)
    inputs = small.hidden_states(len(examples), length)
    window = dict(bucket_size=bucket_size, global_size=global_size)
    for expected, efficient in (
        (dict(window, evaluator="dense"), dict(window, evaluator="multi_view")),
        (
            dict(evaluator="dense", bucket_size=0),
            dict(evaluator="multi_view", coverage=1.0, bucket_size=bucket_size),
        ),
    ):
        dense, other = layers(expected, efficient)
        found = other(inputs, features)
        small.assert_same_where(features.input_mask, found, dense(inputs, features))


def test_a_cell_sees_its_diagonal_and_the_question():
    tokens = [small.QUESTION, *small.cells(3, 2)]
    features = small.features_of([tokens], 7)
    (group,) = patterns.head_groups(DiagonalConfig(), 4)
    mask = patterns.group_mask(group, features)[0].numpy()
    cells = [(token[2], token[1]) for token in tokens]  # rows and columns
    last = cells.index((2, 2))
    expected = [at == 0 or c - r == 0 for at, (r, c) in enumerate(cells)]
    assert mask[last].tolist() == expected
    assert 1 < sum(expected) < len(cells)
