"""Aggregation losses against their definitions, and where numbers are missing."""

import itertools

import numpy as np
import pytest
import tensorflow as tf

from mate_tf.models import cell_selection as aggregation
from tests.small import cases

NAN = float("nan")


def certain_of(function: int) -> np.ndarray:
    return floats([30.0 * (i == function) for i in range(4)])


def floats(*rows) -> np.ndarray:
    return np.array(rows, np.float32)


def test_probability_of_an_aggregation_is_stable_where_none_is_certain():
    logits = tf.constant([[0.0, 0.0, 0.0, 0.0], [200.0, 0.0, 0.0, 0.0]])
    log_probability = aggregation.log_aggregation_probability(logits)
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
    mask = aggregation.needs_aggregation(certain_of(preferred), floats(answer), labels, 0.5)
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
    result = aggregation.expected_result(
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
        aggregation.expected_result(**features, logits=certain_of(function)).numpy()[0]
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
        return aggregation.expected_result(
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
    loss = aggregation.answer_loss(result, answer, floats(1.0, 1.0, 1.0, 0.0, 0.0), 2.0)
    np.testing.assert_allclose(loss, [0.0, 0.125, 2.0 * 10.0 - 2.0, 0.0, 0.0])
    result, answer = floats(2.0, 2e6), floats(4.0, 4e6)
    relative = aggregation.answer_loss(result, answer, floats(1.0, 1.0), 1.0, normalize=True)
    np.testing.assert_allclose(relative, [0.125, 0.125], rtol=1e-6)
    result = tf.constant([1e30, 0.0])
    with tf.GradientTape() as tape:
        tape.watch(result)
        loss = aggregation.answer_loss(result, floats(1.0, 0.0), tf.ones(2), 0.5)
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
        result = aggregation.expected_result(
            probabilities, values, ones.astype(np.float32), ones, logits, approximation
        )
        loss = aggregation.answer_loss(result, floats(NAN), tf.constant([computed]), 1265.74)
    assert np.isfinite(loss).all() and (loss.numpy() > 0) == computed
    for gradient in tape.gradient(loss, [probabilities, logits]):
        assert np.isfinite(gradient).all()
