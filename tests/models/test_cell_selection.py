"""Cells, columns, aggregations and their losses against loops that spell the definitions out.

Shapes: B batch, S sequence.
"""

import collections
import itertools

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from mate_tf.models import cell_selection
from mate_tf.models.cell_selection import cell_cross_entropy_loss, log_cell_probabilities
from mate_tf.models.table_qa import CellSelectionHead
from mate_tf.task_configs import LOG_ZERO
from tests.small import cases

NUM_COLUMNS = 6
# Of float32 sums of up to 20 terms of order 1.
TOLERANCE = 1e-5


def batch_of(places, logits=0.0, labels=0, scores=0.0, padding=0) -> dict[str, np.ndarray]:
    """Examples of one table: (row, column) of each token, logits, labels and scores [S], [B, S]."""
    row_ids, column_ids = np.asarray(places, np.int32).reshape(-1, 2).T
    mask = (np.arange(len(row_ids)) < len(row_ids) - padding).astype(np.int32)
    shape = len(np.atleast_2d(logits)), len(mask)
    values = {
        "row_ids": row_ids,
        "column_ids": column_ids,
        "input_mask": mask,
        "label_ids": np.asarray(labels, np.int32),
        "token_logits": np.asarray(logits, np.float32),
        "token_scores": np.asarray(scores, np.float32),
    }
    return {name: np.array(np.broadcast_to(value, shape)) for name, value in values.items()}


def random_batch(seed, rows, columns, question, padding, label_share=0.3, logit_size=1.0):
    """Two examples of a table with one to three tokens a cell, header included; labels anywhere."""
    rng = np.random.default_rng(seed)
    cells = [(r, c) for r in range(rows + 1) for c in range(1, columns + 1)]
    table = np.repeat(np.array(cells), rng.integers(1, 4, len(cells)), axis=0)
    places = np.pad(table, [(question, padding), (0, 0)])
    logits, scores = rng.normal(size=(2, 2, len(places)))
    labels = rng.random(logits.shape) < label_share
    return batch_of(places, logit_size * logits, labels, scores, padding)


def examples_of(batch) -> list[dict[str, np.ndarray]]:
    """Each example of a batch by itself."""
    return [
        {name: values[index] for name, values in batch.items()}
        for index in range(len(batch["row_ids"]))
    ]


def cells_of(batch, **options):
    return cell_selection.group_cells(
        *(tf.convert_to_tensor(batch[key]) for key in ("column_ids", "row_ids", "input_mask")),
        **({"max_num_columns": NUM_COLUMNS} | options),
    )


def tokens_by_cell(example) -> dict[tuple[int, int], list[int]]:
    groups = collections.defaultdict(list)
    for token in np.flatnonzero(example["input_mask"]).tolist():
        groups[example["row_ids"][token], example["column_ids"][token]].append(token)
    return groups


def bce(logit: float, label: bool) -> float:
    return np.logaddexp(0.0, -logit if label else logit)


def expected_column_logits(example, allow_empty: bool) -> np.ndarray:
    means = collections.defaultdict(list)
    for (_, column), tokens in tokens_by_cell(example).items():
        means[column].append(example["token_scores"][tokens].mean())
    logits = np.full(NUM_COLUMNS, LOG_ZERO)
    for column, values in means.items():
        forbidden = column == 0 and not allow_empty
        logits[column] = np.mean(values) + (LOG_ZERO if forbidden else 0.0)
    return logits


def expected_column_loss(example, column_logits: np.ndarray) -> float:
    labels = example["label_ids"]
    counts = collections.Counter(example["column_ids"][labels > 0].tolist())
    column = min(counts, key=lambda c: (-counts[c], c)) if counts else 0
    loss = np.logaddexp.reduce(column_logits) - column_logits[column]
    if not counts:
        return loss
    losses = [
        bce(example["token_logits"][tokens].mean(), labels[tokens].max() > 0)
        for (_, c), tokens in tokens_by_cell(example).items()
        if c == column
    ]
    return loss + np.mean(losses)


def columns_and_loss(batch, allow_empty=False):
    """The logits of columns [B, C] and the losses [B]."""
    cells = cells_of(batch)
    columns = cell_selection.column_logits(batch["token_scores"], cells, NUM_COLUMNS, allow_empty)
    loss = cell_selection.column_selection_loss(
        batch["token_logits"], columns, batch["label_ids"], cells
    )
    return columns, loss


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
    batch["label_ids"] = batch["label_ids"] * (batch["row_ids"] > 0)
    columns, losses = columns_and_loss(batch, allow_empty)
    logits = [expected_column_logits(example, allow_empty) for example in examples_of(batch)]
    np.testing.assert_allclose(columns, logits, rtol=TOLERANCE, atol=TOLERANCE)
    expected = list(map(expected_column_loss, examples_of(batch), logits))
    np.testing.assert_allclose(losses, expected, rtol=TOLERANCE, atol=TOLERANCE)


@settings(max_examples=25)
@given(tables, st.booleans())
def test_selection_keeps_the_cell_means_of_the_best_column_only(shape, allow_empty):
    """Where the empty column is best, it keeps none."""
    batch = random_batch(*shape)
    columns, _ = columns_and_loss(batch, allow_empty)
    logits = cell_selection.select_in_best_column(batch["token_logits"], columns, cells_of(batch))
    best = np.argmax(columns, axis=1)
    for example, found, kept in zip(examples_of(batch), logits.numpy(), best, strict=True):
        for (_, column), tokens in tokens_by_cell(example).items():
            mean = example["token_logits"][tokens].mean()
            lowered = 0.0 if column == kept > 0 else LOG_ZERO
            np.testing.assert_allclose(found[tokens], mean + lowered, atol=2e-3)


def test_counting_padding_moves_the_empty_column_alone_and_no_loss_of_tokens():
    batch = random_batch(2, 2, 3, question=2, padding=4)
    without, counted = (
        cell_selection.column_logits(
            batch["token_scores"], cells_of(batch, count_padding=value), NUM_COLUMNS, True
        ).numpy()
        for value in (False, True)
    )
    mean = batch["token_scores"][0, batch["column_ids"][0] == 0].mean()
    np.testing.assert_allclose(counted[0, 0], mean, rtol=1e-5)
    assert abs(without[0, 0] - mean) > 1e-3
    np.testing.assert_allclose(without[:, 1:], counted[:, 1:], rtol=1e-6)
    logits = np.array([[2.0, -1.0, 100.0]], np.float32)
    labels, mask, zeros = np.array([[[1, 0, 0]], [[1, 1, 0]], [[0, 0, 0]]], np.int32)
    loss = cell_selection.token_selection_loss(logits, labels, mask, 10.0)
    np.testing.assert_allclose(loss, [(10 * bce(2.0, True) + bce(-1.0, False)) / 2], rtol=1e-6)
    assert cell_selection.token_selection_loss(logits, zeros, zeros, 10.0).numpy() == [0.0]


def test_ids_beyond_the_limits_count_as_the_last():
    batch = batch_of([(1, 1), (2, 1), (3, 1), (9, 9)], logits=[1.0, 2.0, 4.0, 8.0])
    cells = cells_of(batch, max_num_columns=4, max_num_rows=3)
    means = cell_selection.mean_by_cell(batch["token_logits"], cells)
    assert cell_selection.to_tokens(means, cells).numpy().tolist() == [[1.0, 3.0, 3.0, 8.0]]


@pytest.mark.parametrize("select_one_column", [False, True])
@pytest.mark.parametrize("initialize_to_zero", [False, True])
@pytest.mark.parametrize("select_one_row", [False, True])
def test_head_has_the_checkpoints_variables(select_one_column, initialize_to_zero, select_one_row):
    options = select_one_column, initialize_to_zero, select_one_row
    head = CellSelectionHead(*options, name="cell_selection")
    tokens, columns, rows = head(tf.random.stateless_normal([2, 5, 4], seed=[1, 2]))
    names = {variable.name: tuple(variable.shape) for variable in head.weights}
    expected = {"output_weights": (4,), "output_bias": ()}
    if select_one_column:
        expected |= {"column_output_weights": (4,), "column_output_bias": ()}
    if select_one_row:
        expected |= {"row_output_weights": (4,), "row_output_bias": ()}
    assert names == expected
    assert tokens.shape == (2, 5)
    assert (rows is not None) == select_one_row
    assert (columns is not None) == select_one_column
    assert initialize_to_zero == (not np.any(tokens))


def cross_entropy(batch):
    """Probabilities of the tokens [B, S], losses [B] and their gradients [B, S]."""
    logits = tf.constant(batch["token_logits"])
    cells = cells_of(batch, max_num_columns=512)
    with tf.GradientTape() as tape:
        tape.watch(logits)
        log_p = log_cell_probabilities(logits, cells)
        loss = cell_cross_entropy_loss(log_p, batch["label_ids"], cells)
    probabilities = np.exp(cell_selection.to_tokens(log_p, cells))
    return probabilities, loss.numpy(), tape.gradient(loss, logits).numpy()


def expected_cross_entropy(example):
    """The same of one example, in float64."""
    groups = [tokens for place, tokens in tokens_by_cell(example).items() if min(place) > 0]
    logits = example["token_logits"].astype(np.float64)
    means = np.array([logits[tokens].mean() for tokens in groups])
    p = np.exp(means - np.logaddexp.reduce(means)) if groups else means
    correct = np.array([example["label_ids"][tokens].any() for tokens in groups], bool)
    q = p * correct
    loss, gradient, probabilities = 0.0, np.zeros_like(logits), np.zeros_like(logits)
    if correct.any():
        q = q / q.sum()
        loss = -np.sum(q[correct] * np.log(p[correct]))
        for cell, tokens in enumerate(groups):
            # Of -sum q log p with constant q, that is p - q, shared by the tokens of the mean.
            gradient[tokens] = (p[cell] - q[cell]) / len(tokens)
    for cell, tokens in enumerate(groups):
        probabilities[tokens] = p[cell]
    return probabilities, loss, gradient


@settings(max_examples=60)
@given(tables, st.sampled_from([0.0, 0.1, 0.4, 1.0]), st.sampled_from([0.0, 1.0, 4.0]))
def test_cross_entropy_and_its_gradient_equal_the_definition(shape, share, size):
    batch = random_batch(*shape, share, size)
    for example, *actual in zip(examples_of(batch), *cross_entropy(batch), strict=True):
        expected = expected_cross_entropy(example)
        for one, other in zip(actual, expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=TOLERANCE, atol=TOLERANCE)
        if expected[1] == 0.0:  # nothing to learn: no label, no cell, or one cell alone
            assert actual[1] == 0.0 and not actual[2].any()


def test_logits_of_any_size_have_a_finite_loss_and_gradient():
    batch = batch_of([(0, 0), (1, 1), (1, 2), (1, 3)], [1e6, 1e6, -1e6, -1e6], [0, 0, 1, 1])
    _, loss, gradient = cross_entropy(batch)
    np.testing.assert_allclose(loss, [2e6], rtol=1e-6)
    np.testing.assert_allclose(gradient[0], [0.0, 1.0, -0.5, -0.5], atol=1e-6)


# --- Aggregation, also where numbers are missing ---

NAN = float("nan")


def certain_of(function: int) -> np.ndarray:
    return floats([30.0 * (i == function) for i in range(4)])


def floats(*rows) -> np.ndarray:
    return np.array(rows, np.float32)


def test_probability_of_an_aggregation_is_stable_where_none_is_certain():
    logits = tf.constant([[0.0, 0.0, 0.0, 0.0], [200.0, 0.0, 0.0, 0.0]])
    log_probability = cell_selection.log_aggregation_probability(logits)
    np.testing.assert_allclose(log_probability, [np.log(0.75), np.log(3) - 200.0], rtol=1e-6)


@cases(
    "answer, labelled, preferred, computed",
    pytest.param(NAN, True, 1, 0.0, id="text is selected"),
    pytest.param(NAN, False, 1, 0.0, id="text without a cell is not computed"),
    pytest.param(7.0, False, 0, 1.0, id="a number in no cell is computed"),
    pytest.param(7.0, True, 0, 0.0, id="an ambiguous number is selected if preferred"),
    pytest.param(7.0, True, 1, 1.0, id="an ambiguous number is computed if preferred"),
)
def test_which_answers_are_computed(answer, labelled, preferred, computed):
    labels = np.array([[0, labelled, 0]], np.int32)
    mask = cell_selection.needs_aggregation(certain_of(preferred), floats(answer), labels, 0.5)
    assert mask.numpy().tolist() == [computed]


def exact_expectations(probabilities, values):
    """Sum, count and average expected if cells are drawn, by enumeration."""
    totals = np.zeros(3)
    for drawn in itertools.product((0, 1), repeat=len(values)):
        drawn = np.array(drawn)
        weight = np.prod(np.where(drawn, probabilities, 1 - probabilities))
        total, count = drawn @ values, drawn.sum()
        totals += weight * np.array([total, total / max(count, 1), count])
    return totals


@cases(
    "function, position, approximation, tolerance",
    *((1, 0, "ratio", 1e-5), (3, 2, "ratio", 1e-5), (2, 1, "ratio", 0.2)),
    *((2, 1, "first_order", 0.3), (2, 1, "second_order", 0.1)),
)
def test_expected_result_approximates_the_enumeration(function, position, approximation, tolerance):
    probabilities = np.array([0.9, 0.2, 0.7, 0.4], np.float32)
    values = np.array([3.0, 8.0, -1.0, 5.0], np.float32)
    result = cell_selection.expected_result(
        probabilities[None],
        values[None],
        floats([1.0] * 4),
        np.ones((1, 4), np.int32),
        certain_of(function),
        average_approximation=approximation,
    )
    expected = exact_expectations(probabilities, values)[position]
    np.testing.assert_allclose(result, [expected], atol=tolerance)


def test_expected_result_of_several_tokens_a_cell_and_nothing_outside_the_body():
    # A cell of two tokens with the number 4, a cell without number, a histogram row, a header,
    # padding.
    features = {
        "probabilities": floats([1.0] * 6),
        "numeric_values": floats([4.0, 4.0, NAN, NAN, 100.0, NAN]),
        "numeric_values_scale": floats([2.0, 2.0, NAN, np.inf, 1.0, NAN]),
        "row_ids": np.array([[1, 1, 2, 3, 0, 0]], np.int32),
    }
    results = [
        cell_selection.expected_result(**features, logits=certain_of(function)).numpy()[0]
        for function in (1, 2, 3)
    ]
    np.testing.assert_allclose(results, [4.0, 2.0, 2.0], rtol=1e-6)


@pytest.mark.parametrize("approximation", ["ratio", "first_order", "second_order"])
def test_a_token_of_infinite_scale_has_no_part_in_the_result_or_its_gradient(approximation):
    row_ids = np.array([[1, 2, 3]], np.int32)
    values, scales = floats([4.0, 1.0, NAN]), floats([1.0, 1.0, np.inf])
    probabilities = tf.constant([[0.5, 0.25, 0.75]])

    def result(length):
        arrays = (array[:, :length] for array in (probabilities, values, scales, row_ids))
        return cell_selection.expected_result(
            *arrays, tf.zeros([1, 4]), average_approximation=approximation
        )

    with tf.GradientTape() as tape:
        tape.watch(probabilities)
        with_it = result(3)
    np.testing.assert_allclose(with_it, result(2), rtol=1e-6)
    gradient = tape.gradient(with_it, probabilities).numpy()[0]
    assert np.isfinite(gradient).all() and gradient[2] == 0.0


def test_answer_loss_is_quadratic_then_linear_or_relative_and_finite_for_huge_numbers():
    result, answer = floats(1.0, 1.5, 11.0, 5.0, 9.0), floats(1.0, 1.0, 1.0, NAN, 1.0)
    loss = cell_selection.answer_loss(result, answer, floats(1.0, 1.0, 1.0, 0.0, 0.0), 2.0)
    np.testing.assert_allclose(loss, [0.0, 0.125, 2.0 * 10.0 - 2.0, 0.0, 0.0])
    result, answer = floats(2.0, 2e6), floats(4.0, 4e6)
    relative = cell_selection.answer_loss(result, answer, floats(1.0, 1.0), 1.0, normalize=True)
    np.testing.assert_allclose(relative, [0.125, 0.125], rtol=1e-6)
    result = tf.constant([1e30, 0.0])
    with tf.GradientTape() as tape:
        tape.watch(result)
        loss = cell_selection.answer_loss(result, floats(1.0, 0.0), tf.ones(2), 0.5)
    assert np.isfinite(loss).all()
    np.testing.assert_allclose(tape.gradient(loss, result), [0.5, 0.0])


@pytest.mark.parametrize("approximation", ["ratio", "first_order", "second_order"])
@pytest.mark.parametrize("computed", [0.0, 1.0])
def test_numbers_at_the_end_of_single_precision_leave_all_finite(approximation, computed):
    probabilities, logits = tf.fill([1, 4], 0.5), tf.zeros([1, 4])
    values = np.full((1, 4), 3e38, np.float32)  # whose sum is infinite
    ones = np.ones((1, 4), np.int32)
    with tf.GradientTape() as tape:
        tape.watch([probabilities, logits])
        result = cell_selection.expected_result(
            probabilities, values, ones.astype(np.float32), ones, logits, approximation
        )
        loss = cell_selection.answer_loss(result, floats(NAN), tf.constant([computed]), 1265.74)
    assert np.isfinite(loss).all() and (loss.numpy() > 0) == computed
    for gradient in tape.gradient(loss, [probabilities, logits]):
        assert np.isfinite(gradient).all()
