"""Cells, columns and their losses against loops that spell the definitions out."""

import collections

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from mate_tf.models import cell_selection
from mate_tf.models.cell_selection import LOG_ZERO
from mate_tf.models.table_qa import CellSelectionHead

NUM_COLUMNS = 6


def random_batch(seed: int, rows: int, columns: int, question: int, padding: int, batch: int = 2):
    """Token features and scores of a table with one to three tokens a cell, header included."""
    rng = np.random.default_rng(seed)
    cells = [(r, c) for r in range(rows + 1) for c in range(1, columns + 1)]
    counts = rng.integers(1, 4, len(cells))
    table = np.repeat(np.array(cells).reshape(-1, 2), counts, axis=0)
    places = np.concatenate([np.zeros((question, 2), int), table, np.zeros((padding, 2), int)])
    mask = np.ones(len(places), int)
    mask[len(places) - padding :] = 0
    row_ids, column_ids, mask = (
        np.tile(ids, (batch, 1)).astype(np.int32) for ids in (*places.T, mask)
    )
    scores = rng.normal(size=(3, *mask.shape)).astype(np.float32)
    labels = (rng.random(mask.shape) < 0.3) & (row_ids > 0)
    return {
        "row_ids": row_ids,
        "column_ids": column_ids,
        "input_mask": mask,
        "label_ids": labels.astype(np.int32),
        "token_logits": scores[0],
        "token_scores": scores[1],
    }


def cells_of(batch, **options):
    return cell_selection.group_cells(
        *(tf.convert_to_tensor(batch[key]) for key in ("column_ids", "row_ids", "input_mask")),
        **({"max_num_columns": NUM_COLUMNS} | options),
    )


def tokens_by_cell(batch, example: int) -> dict[tuple[int, int], list[int]]:
    groups = collections.defaultdict(list)
    for token, real in enumerate(batch["input_mask"][example]):
        if real:
            row, column = batch["row_ids"][example, token], batch["column_ids"][example, token]
            groups[row, column].append(token)
    return groups


def bce(logit: float, label: bool) -> float:
    return np.logaddexp(0.0, -logit if label else logit)


def expected_column_logits(batch, example: int, allow_empty: bool) -> np.ndarray:
    means = collections.defaultdict(list)
    for (_, column), tokens in tokens_by_cell(batch, example).items():
        means[column].append(batch["token_scores"][example, tokens].mean())
    logits = np.full(NUM_COLUMNS, LOG_ZERO)
    for column, values in means.items():
        forbidden = column == 0 and not allow_empty
        logits[column] = np.mean(values) + (LOG_ZERO if forbidden else 0.0)
    return logits


def expected_column_loss(batch, example: int, column_logits: np.ndarray) -> float:
    labels = batch["label_ids"][example]
    counts = collections.Counter(batch["column_ids"][example][labels > 0].tolist())
    column = min(counts, key=lambda c: (-counts[c], c)) if counts else 0
    loss = np.logaddexp.reduce(column_logits) - column_logits[column]
    if not counts:
        return loss
    losses = [
        bce(batch["token_logits"][example, tokens].mean(), labels[tokens].max() > 0)
        for (_, c), tokens in tokens_by_cell(batch, example).items()
        if c == column
    ]
    return loss + np.mean(losses)


tables = st.tuples(
    st.integers(0, 2**16),  # seed
    st.integers(0, 5),  # rows
    st.integers(1, NUM_COLUMNS - 1),  # columns
    st.integers(1, 4),  # question
    st.integers(0, 5),  # padding
)


@settings(max_examples=25)
@given(tables, st.booleans())
def test_column_logits_and_loss_equal_the_definition(shape, allow_empty):
    batch = random_batch(*shape)
    cells = cells_of(batch)
    columns = cell_selection.column_logits(batch["token_scores"], cells, NUM_COLUMNS, allow_empty)
    losses = cell_selection.column_selection_loss(
        batch["token_logits"], columns, batch["label_ids"], cells
    )
    for example in range(2):
        logits = expected_column_logits(batch, example, allow_empty)
        np.testing.assert_allclose(columns[example], logits, rtol=1e-5, atol=1e-5)
        expected = expected_column_loss(batch, example, logits)
        np.testing.assert_allclose(losses[example], expected, rtol=1e-5, atol=1e-5)


@settings(max_examples=15)
@given(tables)
def test_selection_keeps_the_cell_means_of_the_best_column_only(shape):
    batch = random_batch(*shape)
    cells = cells_of(batch)
    columns = cell_selection.column_logits(batch["token_scores"], cells, NUM_COLUMNS)
    logits = cell_selection.select_in_best_column(batch["token_logits"], columns, cells).numpy()
    for example in range(2):
        best = np.argmax(columns[example])
        for (_, column), tokens in tokens_by_cell(batch, example).items():
            mean = batch["token_logits"][example, tokens].mean()
            lowered = 0.0 if column == best else LOG_ZERO
            np.testing.assert_allclose(logits[example, tokens], mean + lowered, atol=2e-3)


def test_no_cell_is_selected_where_the_empty_column_is_best():
    batch = random_batch(0, rows=2, columns=2, question=3, padding=1)
    batch["token_scores"] = np.where(batch["column_ids"] == 0, 5.0, -5.0).astype(np.float32)
    cells = cells_of(batch)
    columns = cell_selection.column_logits(batch["token_scores"], cells, NUM_COLUMNS, True)
    assert np.argmax(columns, axis=1).tolist() == [0, 0]
    logits = cell_selection.select_in_best_column(batch["token_logits"], columns, cells)
    assert np.max(logits) < LOG_ZERO / 2


def test_padding_changes_nothing():
    short, long = (random_batch(1, 3, 3, question=2, padding=n) for n in (0, 9))
    size = short["input_mask"].shape[1]
    for key in ("token_logits", "token_scores"):
        long[key][:, :size] = short[key]
    long["label_ids"][:, :size] = short["label_ids"]
    long["label_ids"][:, size:] = 0
    for allow_empty in (False, True):
        results = []
        for batch in (short, long):
            cells = cells_of(batch)
            columns = cell_selection.column_logits(
                batch["token_scores"], cells, NUM_COLUMNS, allow_empty
            )
            losses = cell_selection.column_selection_loss(
                batch["token_logits"], columns, batch["label_ids"], cells
            )
            results.append((columns, losses))
        for a, b in zip(*results, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-6)


def test_counting_padding_moves_the_empty_column_alone():
    batch = random_batch(2, 2, 3, question=2, padding=4)
    without, counted = (
        cell_selection.column_logits(
            batch["token_scores"], cells_of(batch, count_padding=value), NUM_COLUMNS, True
        ).numpy()
        for value in (False, True)
    )
    outside = batch["column_ids"] == 0
    mean = batch["token_scores"][0, outside[0]].mean()
    np.testing.assert_allclose(counted[0, 0], mean, rtol=1e-5)
    assert abs(without[0, 0] - mean) > 1e-3
    np.testing.assert_allclose(without[:, 1:], counted[:, 1:], rtol=1e-6)


def test_any_cell_of_a_table_with_700_rows_and_40_columns_can_be_selected_alone():
    places = np.array([(r, c) for r in range(701) for c in range(1, 41)], np.int32)
    batch = {
        "row_ids": places[None, :, 0],
        "column_ids": places[None, :, 1],
        "input_mask": np.ones((1, len(places)), np.int32),
    }
    cells = cells_of(batch, max_num_columns=512)
    for row, column in ((700, 40), (64, 31), (1, 33)):
        here = (places == (row, column)).all(axis=1)
        column_scores = np.where(batch["column_ids"] == column, 3.0, 0.0).astype(np.float32)
        columns = cell_selection.column_logits(column_scores, cells, 512)
        token_logits = np.where(here, 9.0, -9.0).astype(np.float32)[None]
        logits = cell_selection.select_in_best_column(token_logits, columns, cells)
        assert np.flatnonzero(logits[0] > 0).tolist() == np.flatnonzero(here).tolist()


def test_ids_beyond_the_limits_count_as_the_last_row_and_column():
    batch = {
        "row_ids": np.array([[1, 2, 3, 9]], np.int32),
        "column_ids": np.array([[1, 1, 1, 9]], np.int32),
        "input_mask": np.ones((1, 4), np.int32),
    }
    cells = cells_of(batch, max_num_columns=4, max_num_rows=3)
    means = cell_selection.mean_by_cell(np.array([[1.0, 2.0, 4.0, 8.0]], np.float32), cells)
    assert cell_selection.to_tokens(means, cells).numpy().tolist() == [[1.0, 3.0, 3.0, 8.0]]


def test_token_loss_weighs_the_answer_and_leaves_padding_out():
    logits = np.array([[2.0, -1.0, 100.0]], np.float32)
    labels, mask, zeros = np.array([[[1, 0, 0]], [[1, 1, 0]], [[0, 0, 0]]], np.int32)
    loss = cell_selection.token_selection_loss(logits, labels, mask, 10.0)
    np.testing.assert_allclose(loss, [(10 * bce(2.0, True) + bce(-1.0, False)) / 2], rtol=1e-6)
    assert cell_selection.token_selection_loss(logits, zeros, zeros, 10.0).numpy() == [0.0]


@pytest.mark.parametrize("select_one_column", [False, True])
@pytest.mark.parametrize("initialize_to_zero", [False, True])
def test_head_has_the_checkpoints_variables(select_one_column, initialize_to_zero):
    head = CellSelectionHead(select_one_column, initialize_to_zero, name="cell_selection")
    states = tf.random.stateless_normal([2, 5, 4], seed=[1, 2])
    tokens, columns = head(states)
    names = {variable.name: tuple(variable.shape) for variable in head.weights}
    expected = {"output_weights": (4,), "output_bias": ()}
    if select_one_column:
        expected |= {"column_output_weights": (4,), "column_output_bias": ()}
    assert names == expected
    assert tokens.shape == (2, 5)
    assert (columns is not None) == select_one_column
    assert initialize_to_zero == (not np.any(tokens))
    restored = CellSelectionHead.from_config(head.get_config())
    assert restored.get_config() == head.get_config()
