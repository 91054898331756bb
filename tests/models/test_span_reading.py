"""The reader: its scores against a loop over spans, its losses, saving, and what is refused."""

import dataclasses

import keras
import numpy as np
import pytest
import tensorflow as tf

from mate_tf.config import AttentionConfig, EncoderConfig
from mate_tf.features.token_features import TokenFeatures
from mate_tf.models.cell_selection import LOG_ZERO
from mate_tf.models.span_reading import SpanHead, SpanReading, SpanReadingConfig, span_bounds
from mate_tf.weights.loading import variables_by_name

ENCODER = EncoderConfig(
    vocab_size=30,
    hidden_size=8,
    num_layers=1,
    num_heads=2,
    intermediate_size=16,
    initializer_range=0.5,
    attention=AttentionConfig("tapas"),
)
CONFIGS = {
    "linear": SpanReadingConfig(max_span_length=3),
    "perceptron": SpanReadingConfig(max_span_length=3, hidden_size=6),
    "boundary": SpanReadingConfig("boundary", max_span_length=3),
    "with classes": SpanReadingConfig(max_span_length=3, num_classes=2),
}
# Float32 sums of some ten terms of size 1, in another order than the oracle's in float64.
TOLERANCE = 1e-5


def make_model(config, encoder=ENCODER, **options):
    keras.utils.set_random_seed(1)
    model = SpanReading(encoder, dataclasses.replace(config, output_dropout=0.0), **options)
    model.build()
    for variable in model.head.weights:  # biases too, and larger than a new model's
        variable.assign(keras.random.normal(variable.shape, seed=len(variable.path)))
    return model


def make_batch(padding=2):
    """Two examples: a body of two cells with an answer each, and a table without body."""
    rows = np.array([[0, 0, 1, 1, 1, 1, 1], [0] * 7], np.int32)
    columns = np.array([[0, 1, 1, 1, 1, 2, 2], [0, 0, 0, 1, 1, 1, 1]], np.int32)
    labels = np.array([[0, 0, 0, 1, 1, 1, 0], [0] * 7], np.int32)
    ids = np.random.default_rng(0).integers(1, 30, rows.shape, np.int32)

    def padded(values):
        return tf.constant(np.pad(values, [(0, 0), (0, padding)]))

    zeros = np.zeros_like(rows)
    return {name: padded(zeros) for name in TokenFeatures._fields} | {
        "input_ids": padded(ids),
        "input_mask": padded(np.ones_like(rows)),
        "segment_ids": padded((columns > 0).astype(np.int32)),
        "row_ids": padded(rows),
        "column_ids": padded(columns),
        "label_ids": padded(labels),
        "classification_class_index": tf.constant([[1], [0]]),
    }


def log_softmax(logits):
    logits = logits.astype(np.float64)
    return logits - np.log(np.exp(logits - logits.max()).sum()) - logits.max()


def run(model, batch):
    outputs = model(TokenFeatures.from_dict(batch))
    losses = model.compute_task_loss(batch, outputs)
    arrays = (
        {name: np.asarray(value) for name, value in tensors.items()}
        for tensors in (outputs, losses)
    )
    return tuple(arrays)


@pytest.mark.parametrize("activation", ["gelu", "gelu_tanh"])
@pytest.mark.parametrize("hidden_size", [None, 5])
def test_scores_are_those_of_concatenated_vectors(hidden_size, activation):
    keras.utils.set_random_seed(0)
    head = SpanHead("span", 4, hidden_size, activation)
    vectors = np.random.default_rng(0).normal(size=(2, 9, 6)).astype(np.float32)  # [B, S, D]
    head.build(vectors.shape)
    for variable in head.weights:
        variable.assign(keras.random.normal(variable.shape, seed=len(variable.path)))
    scores, of_tokens = head(vectors)
    assert of_tokens is None

    starts, ends = span_bounds(9, 4)
    spans = np.concatenate([vectors[:, starts], vectors[:, ends]], axis=-1)  # [B, N, 2 D]
    spans = tf.constant(spans, tf.float64)
    if hidden_size:
        weights, bias = head.span_hidden_weights.numpy(), head.span_hidden_bias.numpy()
        spans = tf.nn.gelu(
            spans @ tf.constant(weights, tf.float64) + bias, activation == "gelu_tanh"
        )
    output = tf.constant(head.span_output_weights.numpy(), tf.float64)
    expected = tf.linalg.matvec(spans, output) + float(head.span_output_bias.numpy())
    np.testing.assert_allclose(scores, expected, rtol=TOLERANCE, atol=TOLERANCE)


@pytest.mark.parametrize("name", CONFIGS)
def test_probabilities_are_of_valid_spans_alone(name):
    outputs, _ = run(make_model(CONFIGS[name]), make_batch())
    starts, ends = span_bounds(9, 3)
    assert outputs["span_logits"].shape == (2, len(starts))
    within = [(2, 4), (5, 6)]  # the cells of the first example's body
    valid = np.array(
        [
            any(first <= start and end <= last for first, last in within)
            for start, end in zip(starts, ends, strict=True)
        ]
    )
    logits, probabilities = outputs["span_logits"][0], outputs["span_probabilities"][0]
    np.testing.assert_array_equal(logits > LOG_ZERO / 2, valid)
    expected = np.exp(log_softmax(logits[valid]))
    np.testing.assert_allclose(probabilities[valid], expected, rtol=TOLERANCE)
    np.testing.assert_array_equal(probabilities[~valid], 0.0)
    np.testing.assert_array_equal(outputs["span_logits"][1], LOG_ZERO)
    np.testing.assert_array_equal(outputs["span_probabilities"][1], 0.0)


def test_boundary_scores_are_those_of_both_ends():
    outputs, _ = run(make_model(CONFIGS["boundary"]), make_batch())
    starts, ends = span_bounds(9, 3)
    expected = outputs["start_logits"][0, starts] + outputs["end_logits"][0, ends]
    valid = outputs["span_logits"][0] > LOG_ZERO / 2
    np.testing.assert_array_equal(outputs["span_logits"][0, valid], expected[valid])


@pytest.mark.parametrize("name", ["linear", "perceptron", "with classes"])
def test_the_loss_is_of_all_answers_and_of_examples_that_have_one(name):
    outputs, losses = run(make_model(CONFIGS[name]), make_batch())
    spans = list(zip(*span_bounds(9, 3), strict=True))
    log_probabilities = log_softmax(outputs["span_logits"][0])
    answers = [spans.index((3, 4)), spans.index((5, 5))]
    span_loss = np.array([-log_probabilities[answers].sum(), 0.0])
    np.testing.assert_allclose(losses["span_loss"], span_loss, rtol=TOLERANCE)
    example_loss = span_loss
    if name == "with classes":
        classes = outputs["class_logits"]
        class_loss = [-log_softmax(classes[0])[1], -log_softmax(classes[1])[0]]
        np.testing.assert_allclose(losses["class_loss"], class_loss, rtol=TOLERANCE)
        example_loss = span_loss + class_loss
    np.testing.assert_allclose(losses["example_loss"], example_loss, rtol=TOLERANCE)
    np.testing.assert_allclose(losses["loss"], example_loss.mean(), rtol=TOLERANCE)


@pytest.mark.parametrize("count_padding", [False, True])
def test_the_boundary_loss_is_of_all_first_and_last_tokens(count_padding):
    config = dataclasses.replace(CONFIGS["boundary"], count_padding=count_padding)
    outputs, losses = run(make_model(config), make_batch())
    length = 9 if count_padding else 7
    starts = log_softmax(outputs["start_logits"][0, :length])
    ends = log_softmax(outputs["end_logits"][0, :length])
    expected = -(starts[3] + starts[5] + ends[4] + ends[5])
    np.testing.assert_allclose(losses["example_loss"], [expected, 0.0], rtol=TOLERANCE)


@pytest.mark.parametrize("name", CONFIGS)
def test_padding_changes_no_loss(name):
    model = make_model(CONFIGS[name])
    _, short = run(model, make_batch(padding=1))
    _, long = run(model, make_batch(padding=20))
    np.testing.assert_allclose(long["example_loss"], short["example_loss"], rtol=TOLERANCE)


@pytest.mark.parametrize("name", CONFIGS)
def test_every_weight_but_those_that_shift_all_scores_alike_has_a_gradient(name):
    model, batch = make_model(CONFIGS[name]), make_batch()
    with tf.GradientTape() as tape:
        loss = model.compute_task_loss(batch, model(TokenFeatures.from_dict(batch)))["loss"]
    named = variables_by_name(model)
    gradients = tape.gradient(loss, {key: variable.value for key, variable in named.items()})
    without = {key for key, gradient in gradients.items() if gradient is None}
    # The pooled first token is of use to a class alone.
    expected = {"bert/pooler/dense/kernel", "bert/pooler/dense/bias"}
    assert without == (set() if name == "with classes" else expected)
    for key in gradients.keys() - without:
        if key.startswith("loss/") and not key.endswith("bias"):
            assert np.abs(gradients[key]).max() > 0, key


@pytest.mark.parametrize("name", CONFIGS)
def test_a_model_comes_back_from_its_file(name, tmp_path):
    model, batch = make_model(CONFIGS[name]), make_batch()
    model.save(tmp_path / "model.keras")
    again = keras.models.load_model(tmp_path / "model.keras")
    assert again.task_config == model.task_config
    for key, value in run(again, batch)[0].items():
        np.testing.assert_array_equal(value, run(model, batch)[0][key])


def test_outputs_are_float32_at_any_length_in_bfloat16():
    config = dataclasses.replace(CONFIGS["perceptron"], num_classes=2)
    model = make_model(config, dtype="mixed_bfloat16")
    assert model.encoder.compute_dtype == "bfloat16"
    call = tf.function(lambda batch: model(TokenFeatures.from_dict(batch)))
    for padding in (1, 5):
        outputs = call(make_batch(padding))
        assert {value.dtype for value in outputs.values()} == {tf.float32}
        assert outputs["span_logits"].shape[1] == len(span_bounds(7 + padding, 3)[0])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kind": "none"}, "kind 'span' or 'boundary', got 'none'"),
        ({"max_span_length": 0}, "max_span_length of at least 1, got 0"),
        ({"hidden_size": 0}, "hidden_size of at least 1 with kind 'span', or None, got 0"),
        ({"kind": "boundary", "hidden_size": 8}, "with kind 'span', or None, got 8"),
        ({"num_classes": 1}, "num_classes of 0 or at least 2, got 1"),
        ({"output_dropout": 1.0}, "output_dropout from 0 to below 1, got 1.0"),
    ],
)
def test_what_cannot_work_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        SpanReadingConfig(**options)
