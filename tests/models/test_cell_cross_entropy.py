"""One cell out of a table, and its loss, against loops that spell the definition out.

Shapes: B batch, S sequence, K cells.
"""

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from mate_tf.models import cell_selection
from mate_tf.models.cell_selection import cell_cross_entropy_loss, log_cell_probabilities

# Of float32 sums of up to 20 terms of order 1.
TOLERANCE = 1e-5


def batch_of(places, logits, labels, mask=None) -> dict[str, np.ndarray]:
    """One example: (row, column) of each token, its logit and label; [1, S] each."""
    places = np.asarray(places, np.int32).reshape(-1, 2)
    return {
        "row_ids": places[None, :, 0],
        "column_ids": places[None, :, 1],
        "input_mask": np.ones((1, len(places)), np.int32) if mask is None else mask,
        "token_logits": np.asarray(logits, np.float32)[None],
        "label_ids": np.asarray(labels, np.int32)[None],
    }


def cells_of(batch) -> cell_selection.Cells:
    columns, rows, mask = (
        tf.constant(batch[key]) for key in ("column_ids", "row_ids", "input_mask")
    )
    return cell_selection.group_cells(columns, rows, mask, max_num_columns=512)


def loss_and_gradient(batch, hard_em: bool = False):
    """Of all examples [B], and of the token logits [B, S]."""
    logits = tf.constant(batch["token_logits"])
    cells = cells_of(batch)
    with tf.GradientTape() as tape:
        tape.watch(logits)
        loss = cell_cross_entropy_loss(
            log_cell_probabilities(logits, cells), batch["label_ids"], cells, hard_em
        )
    return loss.numpy(), tape.gradient(loss, logits).numpy()


def body_cells(batch) -> dict[tuple[int, int], list[int]]:
    """The tokens of each cell of the body."""
    groups: dict[tuple[int, int], list[int]] = {}
    for token in range(batch["row_ids"].shape[1]):
        place = batch["row_ids"][0, token], batch["column_ids"][0, token]
        if batch["input_mask"][0, token] and min(place) > 0:
            groups.setdefault(place, []).append(token)
    return groups


def exact(batch, hard_em: bool):
    """Probabilities of the body's tokens [S], the loss, and its gradient [S], in float64."""
    groups = body_cells(batch)
    logits = batch["token_logits"][0].astype(np.float64)
    means = np.array([logits[tokens].mean() for tokens in groups.values()])
    p = np.exp(means - np.logaddexp.reduce(means)) if groups else means
    correct = np.array([batch["label_ids"][0, tokens].any() for tokens in groups.values()], bool)
    q = p * correct
    if hard_em and correct.any():
        q = np.arange(len(p)) == np.argmax(q)
    loss, gradient, probabilities = 0.0, np.zeros_like(logits), np.zeros_like(logits)
    if correct.any():
        q = q / q.sum()
        loss = -np.sum(q[correct] * np.log(p[correct]))
        for cell, tokens in enumerate(groups.values()):
            # Of -sum q log p with constant q, that is p - q, shared by the tokens of the mean.
            gradient[tokens] = (p[cell] - q[cell]) / len(tokens)
    for cell, tokens in enumerate(groups.values()):
        probabilities[tokens] = p[cell]
    return probabilities, loss, gradient


@st.composite
def batches(draw):
    """A question, a table with its header, and padding; labels anywhere, also on none or all."""
    rows, columns = draw(st.integers(0, 4)), draw(st.integers(1, 3))
    rng = np.random.default_rng(draw(st.integers(0, 2**16)))
    cells = [(r, c) for r in range(rows + 1) for c in range(1, columns + 1)]
    table = np.repeat(np.array(cells), rng.integers(1, 4, len(cells)), axis=0)
    question, padding = draw(st.integers(1, 3)), draw(st.integers(0, 3))
    outside = np.zeros((question, 2), int), np.zeros((padding, 2), int)
    places = np.concatenate([outside[0], table, outside[1]])
    labels = rng.random(len(places)) < draw(st.sampled_from([0.0, 0.1, 0.4, 1.0]))
    logits = draw(st.sampled_from([0.0, 1.0, 4.0])) * rng.normal(size=len(places))
    mask = (np.arange(len(places)) < len(places) - padding).astype(np.int32)[None]
    return batch_of(places, logits, labels, mask)


@settings(max_examples=60)
@given(batches(), st.booleans())
def test_probabilities_loss_and_gradient_equal_the_definition(batch, hard_em):
    cells = cells_of(batch)
    log_p = log_cell_probabilities(batch["token_logits"], cells)
    probabilities, loss, gradient = exact(batch, hard_em)
    found = np.exp(cell_selection.to_tokens(log_p, cells)[0])
    np.testing.assert_allclose(found, probabilities, atol=TOLERANCE)
    actual_loss, actual_gradient = loss_and_gradient(batch, hard_em)
    np.testing.assert_allclose(actual_loss, [loss], rtol=TOLERANCE, atol=TOLERANCE)
    np.testing.assert_allclose(actual_gradient[0], gradient, atol=TOLERANCE)


@settings(max_examples=30)
@given(batches())
def test_the_gradient_is_that_of_the_correct_cells_total_probability(batch):
    logits = tf.constant(batch["token_logits"])
    groups = body_cells(batch).values()
    with tf.GradientTape() as tape:
        tape.watch(logits)
        means = [tf.reduce_mean(tf.gather(logits[0], tokens)) for tokens in groups]
        correct = [
            mean
            for mean, tokens in zip(means, groups, strict=True)
            if batch["label_ids"][0, tokens].any()
        ]
        total = tf.constant(0.0)
        if correct:
            total = tf.reduce_logsumexp(means) - tf.reduce_logsumexp(correct)
    expected = tape.gradient(total, logits, unconnected_gradients="zero")
    _, gradient = loss_and_gradient(batch)
    np.testing.assert_allclose(gradient, expected, atol=TOLERANCE)


ROW = [(0, 0), (1, 1), (1, 2), (1, 3)]


@pytest.mark.parametrize("hard_em", [False, True])
@pytest.mark.parametrize(
    ("places", "labels"),
    [
        pytest.param(ROW, [0, 0, 0, 0], id="no label"),
        pytest.param(ROW, [1, 0, 0, 0], id="a label on the question"),
        pytest.param([(0, 0), (0, 1), (1, 1), (1, 2)], [0, 1, 0, 0], id="a label on the header"),
        pytest.param([(0, 0)] * 4, [1, 1, 1, 1], id="no table"),
        pytest.param([(0, 0), (0, 1), (1, 1), (1, 1)], [0, 0, 0, 1], id="the only cell"),
    ],
)
def test_where_there_is_nothing_to_learn_the_loss_is_zero_with_its_gradient(
    places, labels, hard_em
):
    batch = batch_of(places, [3.0, -1.0, 2.0, 0.5], labels)
    loss, gradient = loss_and_gradient(batch, hard_em)
    np.testing.assert_array_equal(loss, [0.0])
    np.testing.assert_array_equal(gradient, np.zeros((1, 4)))


def test_where_every_cell_is_correct_nothing_moves():
    _, gradient = loss_and_gradient(batch_of(ROW, [3.0, -1.0, 2.0, 0.5], [0, 1, 1, 1]))
    np.testing.assert_allclose(gradient, np.zeros((1, 4)), atol=1e-6)


def test_equally_probable_cells_share_the_target_and_the_first_has_all_of_a_hard_one():
    batch = batch_of(ROW, [5.0, 1.0, 1.0, 1.0], [0, 0, 1, 1])
    third = 1 / 3
    for hard_em, expected in (
        (False, [0.0, third, third - 0.5, third - 0.5]),
        (True, [0.0, third, third - 1.0, third]),
    ):
        loss, gradient = loss_and_gradient(batch, hard_em)
        np.testing.assert_allclose(loss, [np.log(3)], rtol=1e-6)
        np.testing.assert_allclose(gradient, [expected], atol=1e-6)


def test_700_rows_are_700_rows():
    places = [(row, column) for row in range(1, 701) for column in (1, 2, 3)]
    labels = np.zeros(2100, int)
    labels[-1] = 1
    loss, gradient = loss_and_gradient(batch_of(places, np.zeros(2100), labels))
    np.testing.assert_allclose(loss, [np.log(2100)], rtol=1e-5)
    np.testing.assert_allclose(gradient[0, -1], 1 / 2100 - 1, rtol=1e-5)


@pytest.mark.parametrize("hard_em", [False, True])
def test_logits_of_any_size_have_a_finite_loss_and_gradient(hard_em):
    batch = batch_of(ROW, [1e6, 1e6, -1e6, -1e6], [0, 0, 1, 1])
    loss, gradient = loss_and_gradient(batch, hard_em)
    np.testing.assert_allclose(loss, [2e6], rtol=1e-6)
    target = [1.0, 0.0] if hard_em else [0.5, 0.5]
    np.testing.assert_allclose(gradient, [[0.0, 1.0, -target[0], -target[1]]], atol=1e-6)
