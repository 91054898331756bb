from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from mate_tf.config import AttentionConfig
from mate_tf.features.token_features import TAPAS_FEATURES, TokenFeatures
from mate_tf.models import make_model
from mate_tf.models.table_qa import TableQuestionAnswering
from mate_tf.tables.operators import ABSENT, operators_by_id
from mate_tf.task_configs import TableQAConfig
from tests.layers.small_layers import token_features
from tests.small import cases, small_encoder

DENSE = AttentionConfig("mate", "dense", bucket_size=0, global_size=0)
ENCODER = small_encoder(30, initializer_range=0.02, attention=DENSE)
NO_AGGREGATION: dict[str, Any] = {"operators": ()}
GIVEN: dict[str, Any] = {"use_answer_as_supervision": False}
ONE_CELL = NO_AGGREGATION | {"select_one_column": False, "cell_cross_entropy": True}
CONFIGS = {
    "weak": {},
    "weak, no column": {"select_one_column": False, "answer_loss_cutoff": None},
    "supervised": GIVEN | {"allow_empty_column_selection": True},
    "cells alone": NO_AGGREGATION,
    "one cell": ONE_CELL,
    "masked": {"mask_examples_without_labels": True},
    "other losses": {
        "use_normalized_answer_loss": True,
        "average_approximation_function": "second_order",
        "max_num_rows": 64,
        "max_num_columns": 32,
        "temperature": 0.1,
    },
}


@pytest.fixture(scope="module")
def batch() -> dict[str, tf.Tensor]:
    """Two examples of a question, a header and a body of three rows and two columns."""
    row_ids = np.array([[0, 0, 0, 0, 1, 1, 2, 2, 3, 3, 0, 0]] * 2, np.int32)
    column_ids = np.array([[0, 0, 1, 2, 1, 2, 1, 2, 1, 2, 0, 0]] * 2, np.int32)
    input_mask = np.array([[1] * 10 + [0] * 2] * 2, np.int32)
    label_ids = np.zeros_like(row_ids)
    label_ids[0, 6] = 1
    values = np.where((row_ids > 0) & (column_ids == 2), row_ids, np.nan).astype(np.float32)
    features = token_features(
        input_ids=np.random.default_rng(0).integers(1, 30, row_ids.shape),
        input_mask=input_mask,
        segment_ids=column_ids > 0,
        column_ids=column_ids,
        row_ids=row_ids,
    )
    arrays = {
        "label_ids": label_ids,
        "numeric_values": values,
        "numeric_values_scale": np.ones_like(values),
        "answer": np.array([[np.nan], [6.0]], np.float32),
        "aggregation_function_id": np.array([[0], [1]], np.int32),
    }
    named = {name: getattr(features, name) for name in TAPAS_FEATURES}
    return named | {name: tf.constant(value) for name, value in arrays.items()}


def build(**options) -> TableQuestionAnswering:
    keras.utils.set_random_seed(0)
    return make_model(ENCODER, TableQAConfig(**options))


def run(model: TableQuestionAnswering, batch: dict[str, tf.Tensor], training: bool = False):
    """The outputs and the losses."""
    outputs = model(TokenFeatures.from_dict(batch), training=training)
    return outputs, model.compute_task_loss(batch, outputs)


@pytest.mark.parametrize("options", CONFIGS.values(), ids=CONFIGS.keys())
def test_outputs_losses_and_gradients_are_finite(batch, options):
    model = build(**options)
    config = model.task_config
    with tf.GradientTape() as tape:
        outputs, losses = run(model, batch)
    gradients = tape.gradient(losses["loss"], model.cell_selection.trainable_variables)
    shapes = {key: tuple(value.shape) for key, value in outputs.items()}
    expected = dict.fromkeys(["token_logits", "selection_logits", "token_probabilities"], (2, 12))
    if config.select_one_column:
        expected["column_logits"] = (2, config.max_num_columns)
    if config.operators:
        expected["aggregation_logits"] = (2, 4)
    assert shapes == expected
    assert losses["loss"].shape == ()
    np.testing.assert_allclose(losses["loss"], np.mean(losses["example_loss"]), rtol=1e-6)
    assert all(np.isfinite(value).all() for value in losses.values())
    assert all(np.isfinite(gradient).all() for gradient in gradients)


def test_probabilities_are_zero_for_padding_of_one_column_or_sum_to_one(batch):
    outputs, _ = run(build(), batch)
    probabilities = outputs["token_probabilities"].numpy()
    assert not probabilities[:, 10:].any()
    for example in range(2):
        columns = set(batch["column_ids"].numpy()[example][probabilities[example] > 1e-3])
        assert len(columns) == 1
    outputs, losses = run(build(**ONE_CELL), batch)
    probabilities = outputs["token_probabilities"].numpy()
    body = batch["row_ids"].numpy() > 0
    # Each cell is one token here.
    np.testing.assert_allclose(np.where(body, probabilities, 0.0).sum(axis=1), [1, 1], rtol=1e-5)
    assert not probabilities[~body].any()
    expected = [-np.log(probabilities[0, 6]), 0.0]
    np.testing.assert_allclose(losses["example_loss"], expected, rtol=1e-5)


@cases(
    "options",
    {"select_one_column": False},
    {"select_one_column": True},
    {"select_one_column": True, "allow_empty_column_selection": True},
)
def test_examples_without_labels_are_masked_where_asked(batch, options):
    options |= NO_AGGREGATION
    plain, masked = build(**options), build(**options, mask_examples_without_labels=True)
    outputs, without = run(plain, batch)
    with_mask = masked.compute_task_loss(batch, outputs)
    labelled, unlabelled = with_mask["example_loss"].numpy()
    assert labelled == without["example_loss"].numpy()[0] > 0.0
    assert unlabelled == 0.0 < without["example_loss"].numpy()[1]
    np.testing.assert_allclose(with_mask["loss"], labelled / 2, rtol=1e-6)


def test_a_count_of_nothing_is_of_the_empty_column(batch):
    model = build(**CONFIGS["supervised"])
    batch = batch | {"aggregation_function_id": tf.constant([[0], [3]], tf.int32)}
    outputs, losses = run(model, batch)
    log_columns = tf.nn.log_softmax(outputs["column_logits"])[1].numpy()
    log_aggregations = tf.nn.log_softmax(outputs["aggregation_logits"])[1].numpy()
    expected = -log_columns[0] - log_aggregations[3]
    np.testing.assert_allclose(losses["example_loss"][1], expected, rtol=1e-5)


@pytest.mark.parametrize("weak", [True, False])
def test_a_question_that_the_table_does_not_answer_teaches_the_operator_alone(batch, weak):
    operators = operators_by_id()
    absent = operators.index(ABSENT)
    model = build(operators=operators, use_answer_as_supervision=weak)
    batch = batch | {
        "aggregation_function_id": tf.constant([[0], [absent]], tf.int32),
        "aggregation_is_known": tf.constant([[1], [1]], tf.int32),
    }
    outputs, losses = run(model, batch)
    log_aggregations = tf.nn.log_softmax(outputs["aggregation_logits"]).numpy()
    np.testing.assert_allclose(losses["example_loss"][1], -log_aggregations[1, absent], rtol=1e-5)
    of_cells = losses["selection_loss"][0] - log_aggregations[0, 0]
    np.testing.assert_allclose(losses["example_loss"][0], of_cells, rtol=1e-5)


def selection_by_numpy(tokens, scores, labels, lines):
    """The cross-entropy of the right line, of three, and the mean loss of the cells in it.

    The scores and the lines are those of tokens; each cell is a token, and the header is in a line.
    """
    labelled = labels > 0
    (right,) = set(lines[labelled])
    means = np.array([scores[lines == line].mean() for line in np.unique(lines[lines > 0])])
    of_line = np.log(np.exp(means).sum()) - means[right - 1]
    inside = lines == right
    losses = np.log1p(np.exp(tokens)) - tokens * labelled
    return of_line + losses[inside].mean()


@cases(
    "operator, labels, loss",
    *((operator, [6], "column") for operator in ("NONE", "SUM", "SHARE", "YES", "NO")),
    *((operator, [6, 7], "row") for operator in ("HEADER", "ROW_SUM", "ROW_DIFFERENCE")),
    *(("NO", [], "none"), ("YES", [], "zero"), (ABSENT, [], "zero"), (ABSENT, [6], "zero")),
)
def test_the_selection_loss_is_that_of_the_operator(batch, operator, labels, loss):
    operators = operators_by_id()
    model = build(operators=operators, use_answer_as_supervision=False)
    label_ids = np.zeros((2, 12), np.int32)
    label_ids[:, labels] = 1
    batch = batch | {
        "label_ids": tf.constant(label_ids),
        "aggregation_function_id": tf.constant([[operators.index(operator)]] * 2, tf.int32),
    }
    with tf.GradientTape() as tape:
        outputs, losses = run(model, batch)
    gradients = tape.gradient(losses["loss"], model.cell_selection.trainable_variables)
    assert all(np.isfinite(it).all() for it in gradients if it is not None)

    # The first two tokens are the question, the last two padding.
    rows, columns = (batch[name].numpy()[0] for name in ("row_ids", "column_ids"))
    is_cell = columns > 0
    for example, found in enumerate(losses["selection_loss"].numpy()):
        tokens = outputs["token_logits"].numpy()[example]
        if loss == "zero":
            expected = 0.0
        elif loss == "none":
            expected = np.log1p(np.exp(tokens[rows > 0])).mean()
        elif loss == "row":
            scores = outputs["row_scores"].numpy()[example]
            expected = selection_by_numpy(tokens, scores, label_ids[example], rows)
        else:
            means = outputs["column_logits"].numpy()[example][columns]
            expected = selection_by_numpy(tokens, means, label_ids[example], columns * is_cell)
        np.testing.assert_allclose(found, expected, rtol=1e-4)


def test_weak_supervision_sends_each_example_to_selection_or_aggregation(batch):
    _, losses = run(build(), batch)
    assert losses["aggregate_mask"].numpy().tolist() == [0.0, 1.0]
    selected, computed = losses["example_loss"].numpy()
    selection, aggregation, answer = (
        losses[key].numpy() for key in ("selection_loss", "aggregation_loss", "answer_loss")
    )
    assert answer[0] == 0.0
    np.testing.assert_allclose(selected, selection[0] + aggregation[0], rtol=1e-6)
    np.testing.assert_allclose(computed, aggregation[1] + answer[1], rtol=1e-6)
    _, losses = run(build(answer_loss_cutoff=1e-9), batch)
    assert losses["large_answer_loss_mask"].numpy().tolist() == [1.0, 0.0]
    assert losses["example_loss"].numpy()[1] == 0.0


def test_its_importance_scales_the_selection_loss_and_dropout_acts_in_training_only(batch):
    scaled = build(**CONFIGS["cells alone"], cell_loss_importance=3.0)
    outputs, expected = run(build(**CONFIGS["cells alone"]), batch)
    actual = scaled.compute_task_loss(batch, outputs)
    np.testing.assert_allclose(actual["loss"], 3.0 * expected["loss"], rtol=1e-6)
    model = build(output_dropout=0.5)
    features = TokenFeatures.from_dict(batch)
    first, second = (model(features)["token_logits"] for _ in range(2))
    np.testing.assert_array_equal(first, second)
    assert not np.allclose(first, model(features, training=True)["token_logits"])
