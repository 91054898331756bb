"""Which cells an answer's cells attended to."""

import types
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from scipy import special

from mate_tf.answers import attended_cells
from mate_tf.answers.attended_cells import received_attention
from mate_tf.config import AttentionConfig
from mate_tf.layers.attention.patterns import group_mask, head_groups, window_pairs
from mate_tf.tables.table import Table
from tests.layers.attention.test_kinds import inputs_of, layer_of


def test_a_histogram_row_counts_as_text(monkeypatch):
    shares = np.array([[0.1, 0.2, 0.3, 0.4]])  # of [CLS], the header, the cell and the histogram
    monkeypatch.setattr(attended_cells, "attention_by_group", lambda *_: {"all heads": shares})
    features = types.SimpleNamespace(
        row_ids=np.array([[0, 0, 1, 2]]), column_ids=np.array([[0, 1, 1, 1]])
    )
    seen = attended_cells.attended_cells(
        encoder=None,
        table=Table.from_rows([["a"], ["b"]]),
        features=features,
        answer=types.SimpleNamespace(cells=(), alternatives=()),
        histogram_row=True,
    )
    assert seen.groups["all heads"].tolist() == [[0.2], [0.3]]
    assert seen.question["all heads"] == pytest.approx(0.5)


LENGTH = 30
WINDOW: dict[str, Any] = {"bucket_size": 3, "global_size": 4}
KINDS = {
    "tapas": AttentionConfig("tapas"),
    "sat": AttentionConfig("sat"),
    "mate": AttentionConfig("mate", **WINDOW, dense_up_to=0),
    "mate, all pairs": AttentionConfig("mate", **WINDOW, dense_up_to=LENGTH),
    "full coverage": AttentionConfig("mate", bucket_size=3, coverage=1.0, dense_up_to=0),
}


def probabilities(layer, hidden, features) -> np.ndarray:
    """The attention of each head, float64 [B, H, F, T]."""
    query, key, _ = (np.asarray(tensor, np.float64) for tensor in layer.heads(hidden))
    scores = np.einsum("BFHE,BTHE->BHFT", query, key) / layer.head_size**0.5
    first = 0
    for group in head_groups(layer.attention, layer.num_heads):
        mask = group_mask(group, features)
        in_window = window_pairs(features, group.sort_by, layer.attention)
        mask = np.asarray(mask if in_window is None else mask & in_window)  # [B, F or 1, T]
        heads = slice(first, first + group.num_heads)
        scores[:, heads] = np.where(mask[:, None], scores[:, heads], -np.inf)
        first += group.num_heads
    return special.softmax(scores, axis=-1)


@pytest.mark.parametrize("kind", KINDS)
def test_equals_the_weighted_sum_of_probabilities(kind):
    layer = layer_of(KINDS[kind])
    hidden, features = inputs_of(LENGTH)
    senders = np.random.default_rng(2).uniform(size=(1, LENGTH)).astype(np.float32)
    senders[:, -1] = 0.0  # padding
    received = received_attention(layer, hidden, layer.plan(features, training=True), senders)
    expected = np.einsum("BF,BHFT->BHT", senders, probabilities(layer, hidden, features))
    # Sums of 30 float32 probabilities.
    np.testing.assert_allclose(received, expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(tf.reduce_sum(received, -1), np.full((1, 2), senders.sum()), 1e-5)


def test_relations_and_a_projection_count_too():
    hidden, features = inputs_of(LENGTH)
    senders = np.zeros((1, LENGTH), np.float32)
    senders[0, 5] = 1.0
    biased = layer_of(AttentionConfig("tableformer"))
    plain = layer_of(AttentionConfig("tapas"))
    for name in ("query", "key"):
        getattr(plain, name).set_weights(getattr(biased, name).get_weights())
    found = {}
    for name, layer in (("biased", biased), ("plain", plain)):
        plan = layer.plan(features, training=True)
        found[name] = received_attention(layer, hidden, plan, senders).numpy()
        np.testing.assert_allclose(found[name].sum(-1), 1.0, rtol=1e-5)
    assert np.abs(found["biased"] - found["plain"]).max() > 0.01
    linformer = layer_of(AttentionConfig("linformer", sequence_length=LENGTH, projected_length=4))
    plan = linformer.plan(features, training=True)
    assert np.isfinite(received_attention(linformer, hidden, plan, senders)).all()
