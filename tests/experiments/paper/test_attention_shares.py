"""Where attention flows, against each pair of tokens by itself."""

import numpy as np
import pytest
import tensorflow as tf

from experiments.paper.attention_shares import KINDS, attention_flow
from mate_tf.answers.attended_cells import layer_inputs, received_attention
from mate_tf.config import AttentionConfig, EncoderConfig
from mate_tf.features.token_features import TokenFeatures
from mate_tf.layers.attention.patterns import group_mask, head_groups
from mate_tf.layers.encoder import TableEncoder

ATTENTIONS = {
    "tapas": AttentionConfig("tapas"),
    "mate": AttentionConfig("mate", "dense", bucket_size=0),
    "window": AttentionConfig("mate", "multi_view", bucket_size=4, global_size=4),
    "full": AttentionConfig("mate", coverage=1.0, dense_up_to=0),
    "relations": AttentionConfig("mate_tableformer", coverage=1.0, dense_up_to=0),
    "tableformer": AttentionConfig("tableformer"),
}
# Whose heads see all that their patterns allow, no token more than another.
PATTERNS_ALONE = {"tapas", "mate", "full"}
LENGTH = 34


def features_of(*sizes):
    """Token features of questions and tables, of (rows, columns), two tokens in each third cell."""
    ids = []
    for rows, columns in sizes:
        places = [(0, 0)] * 4
        for row in range(rows + 1):
            for column in range(1, columns + 1):
                places += [(row, column)] * (2 if (row + column) % 3 == 0 else 1)
        padding = [(0, 0)] * (LENGTH - len(places))
        ids.append(
            np.array(
                [(1, 0, 0)] * 4 + [(1, *at) for at in places[4:]] + [(0, *at) for at in padding]
            )
        )
    mask, rows, columns = (tf.constant(of, tf.int32) for of in np.moveaxis(np.array(ids), 2, 0))
    words = tf.random.stateless_uniform(mask.shape, (1, 2), 0, 50, tf.int32)
    zeros = tf.zeros_like(mask)
    features = TokenFeatures(*[zeros] * 9)
    return features._replace(
        input_ids=words,
        input_mask=mask,
        segment_ids=tf.cast(columns > 0, tf.int32),
        row_ids=rows,
        column_ids=columns,
    )


def kind_of(sender, receiver):
    """The index in KINDS of a pair of tokens, each (place, row, column)."""
    (_, row, column), (place, to_row, to_column) = sender, receiver
    if to_column == 0:
        return 0 if place == 0 else 1
    if to_row == 0:
        return 2 + (to_column == column)
    return 4 + (to_row == row) + 2 * (to_column == column)


@pytest.mark.parametrize("name", ATTENTIONS)
def test_flows_are_sums_over_pairs(name):
    config = EncoderConfig(
        vocab_size=50,
        hidden_size=16,
        num_layers=2,
        num_heads=4,
        intermediate_size=16,
        initializer_range=0.5,
        attention=ATTENTIONS[name],
        position="per_cell",
    )
    encoder = TableEncoder(config)
    features = features_of((4, 3), (2, 2))
    encoder(features)
    flow = attention_flow(encoder, features)
    rows, columns, mask = (
        np.asarray(ids) for ids in (features.row_ids, features.column_ids, features.input_mask)
    )
    expected, tokens = np.zeros([4, len(KINDS)]), 0
    uniform, seen = np.zeros(len(KINDS)), np.zeros(len(KINDS))
    groups = head_groups(config.attention, 4)
    masks = [np.broadcast_to(group_mask(group, features), (2, LENGTH, LENGTH)) for group in groups]
    plan = encoder.blocks[0].attention.plan(features, training=True)
    for example, place in np.argwhere((mask > 0) & (rows > 0) & (columns > 0)):
        tokens += 1
        sender = np.zeros(rows.shape, np.float32)
        sender[example, place] = 1.0
        places = list(enumerate(zip(rows[example], columns[example], strict=True)))
        kinds = [
            kind_of((0, rows[example, place], columns[example, place]), (p, *at))
            for p, at in places
        ]
        real = mask[example] > 0
        np.add.at(uniform, np.array(kinds)[real], 1 / real.sum())
        for group, mask_of_group in zip(groups, masks, strict=True):
            allowed = mask_of_group[example, place]
            np.add.at(seen, np.array(kinds)[allowed], group.num_heads / 4 / allowed.sum())
        for block, hidden in zip(encoder.blocks, layer_inputs(encoder, features), strict=True):
            received = received_attention(block.attention, hidden, plan, tf.constant(sender))
            for head in range(4):
                np.add.at(expected[head], kinds, received.numpy()[example, head] / 2)
    assert flow.tokens == tokens
    np.testing.assert_allclose(flow.uniform, uniform, rtol=1e-5)
    shares = flow.shares()
    np.testing.assert_allclose(shares["all heads"], expected.mean(axis=0) / tokens, atol=1e-5)
    if "row heads" in shares:
        np.testing.assert_allclose(
            shares["row heads"], expected[:2].mean(axis=0) / tokens, atol=1e-5
        )
        assert shares["row heads"][KINDS.index("cell, same column")] == 0
        assert shares["column heads"][KINDS.index("cell, same row")] == 0
    if name in PATTERNS_ALONE:
        np.testing.assert_allclose(shares["all heads, unasked"], seen / tokens, atol=1e-5)
    for share in shares.values():
        assert share.sum() == pytest.approx(1.0, abs=1e-4)
    twice = flow.plus(flow)
    assert twice.tokens == 2 * tokens
    np.testing.assert_allclose(twice.shares()["all heads"], shares["all heads"], rtol=1e-12)


def test_a_table_s_cells_are_needed():
    config = EncoderConfig(50, 16, 1, 4, 16)
    encoder = TableEncoder(config)
    features = features_of((4, 3), (2, 2))
    encoder(features)
    without = features._replace(column_ids=tf.zeros_like(features.column_ids))
    with pytest.raises(ValueError, match="tables with cells"):
        attention_flow(encoder, without)
