"""Reading spans: scores and losses against loops over all pairs of tokens, and what is refused."""

import dataclasses

import keras
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

from mate_tf.answers.inference import inference_function
from mate_tf.answers.spans import best_spans
from mate_tf.config import AttentionConfig
from mate_tf.features.token_features import TAPAS_FEATURES, TokenFeatures
from mate_tf.layers.compilation import portable_graph
from mate_tf.models import make_model
from mate_tf.models.span_reading import (
    SpanHead,
    answer_bounds,
    answer_spans,
    body_cells,
    over_spans,
    valid_spans,
)
from mate_tf.task_configs import LOG_ZERO, SpanReadingConfig, span_bounds
from mate_tf.weights.initial import variables_by_name
from tests import small
from tests.layers.small_layers import token_features

ENCODER = dataclasses.replace(small.ENCODER, vocab_size=30, attention=AttentionConfig("tapas"))
CONFIGS = {
    "linear": SpanReadingConfig(max_span_length=3),
    "perceptron": SpanReadingConfig(max_span_length=3, hidden_size=6),
    "boundary": SpanReadingConfig("boundary", max_span_length=3),
    "with classes": SpanReadingConfig(max_span_length=3, num_classes=2),
}
# Float32 sums of some ten terms of size 1, in another order than the oracle's in float64.
TOLERANCE = 1e-5


def with_random_weights(head):
    """Biases too, and larger than those of a new model."""
    for variable in head.weights:
        variable.assign(keras.random.normal(variable.shape, seed=len(variable.path)))
    return head


def seeded_model(config):
    keras.utils.set_random_seed(1)
    model = make_model(ENCODER, dataclasses.replace(config, output_dropout=0.0))
    with_random_weights(model.head)
    return model


def make_batch(padding=2):
    """Two examples: a body of two cells with an answer each, and a table without body."""
    rows = np.array([[0, 0, 1, 1, 1, 1, 1], [0] * 7], np.int32)
    columns = np.array([[0, 1, 1, 1, 1, 2, 2], [0, 0, 0, 1, 1, 1, 1]], np.int32)
    labels = np.array([[0, 0, 0, 1, 1, 1, 0], [0] * 7], np.int32)
    ids = np.random.default_rng(0).integers(1, 30, rows.shape, np.int32)

    def padded(values):
        return np.pad(values, [(0, 0), (0, padding)])

    features = token_features(
        input_ids=padded(ids),
        input_mask=padded(np.ones_like(rows)),
        segment_ids=padded(columns > 0),
        row_ids=padded(rows),
        column_ids=padded(columns),
    )
    named = {name: getattr(features, name) for name in TAPAS_FEATURES}
    return named | {
        "label_ids": tf.constant(padded(labels)),
        "classification_class_index": tf.constant([[1], [0]]),
    }


def log_softmax(logits):
    logits = logits.astype(np.float64)
    return logits - np.log(np.exp(logits - logits.max()).sum()) - logits.max()


def run(model, batch):
    outputs = model(TokenFeatures.from_dict(batch))
    losses = model.compute_task_loss(batch, outputs)
    return tuple({name: np.asarray(x) for name, x in named.items()} for named in (outputs, losses))


@pytest.mark.parametrize("activation", ["gelu", "gelu_tanh"])
@pytest.mark.parametrize("hidden_size", [None, 5])
def test_scores_are_those_of_concatenated_vectors(hidden_size, activation):
    keras.utils.set_random_seed(0)
    head = SpanHead("span", 4, hidden_size, activation)
    vectors = np.random.default_rng(0).normal(size=(2, 9, 6)).astype(np.float32)  # [B, S, D]
    head.build(vectors.shape)
    scores, of_tokens = with_random_weights(head)(vectors)
    assert of_tokens is None

    starts, ends = span_bounds(9, 4)
    spans = np.concatenate([vectors[:, starts], vectors[:, ends]], axis=-1)  # [B, N, 2 D]
    spans = tf.constant(spans, tf.float64)
    if hidden_size:
        weights, bias = head.span_hidden_weights.numpy(), head.span_hidden_bias.numpy()
        hidden = spans @ tf.constant(weights, tf.float64) + bias
        spans = tf.nn.gelu(hidden, activation == "gelu_tanh")
    output = tf.constant(head.span_output_weights.numpy(), tf.float64)
    expected = tf.linalg.matvec(spans, output) + float(head.span_output_bias.numpy())
    np.testing.assert_allclose(scores, expected, rtol=TOLERANCE, atol=TOLERANCE)


@pytest.mark.parametrize("name", CONFIGS)
def test_probabilities_are_of_valid_spans_alone(name):
    outputs, _ = run(seeded_model(CONFIGS[name]), make_batch())
    starts, ends = span_bounds(9, 3)
    assert outputs["span_logits"].shape == (2, len(starts))
    # The first example's body has two cells, of the tokens 2 to 4 and 5 to 6.
    valid = ((starts >= 2) & (ends <= 4)) | ((starts >= 5) & (ends <= 6))
    logits, probabilities = outputs["span_logits"][0], outputs["span_probabilities"][0]
    np.testing.assert_array_equal(logits > LOG_ZERO / 2, valid)
    expected = np.exp(log_softmax(logits[valid]))
    np.testing.assert_allclose(probabilities[valid], expected, rtol=TOLERANCE)
    np.testing.assert_array_equal(probabilities[~valid], 0.0)
    if name == "boundary":  # whose scores are those of both ends
        both = outputs["start_logits"][0, starts] + outputs["end_logits"][0, ends]
        np.testing.assert_array_equal(logits[valid], both[valid])
    np.testing.assert_array_equal(outputs["span_logits"][1], LOG_ZERO)
    np.testing.assert_array_equal(outputs["span_probabilities"][1], 0.0)


@pytest.mark.parametrize("name", ["linear", "perceptron", "with classes"])
def test_the_loss_is_of_all_answers_and_of_examples_that_have_one(name):
    outputs, losses = run(seeded_model(CONFIGS[name]), make_batch())
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
    outputs, losses = run(seeded_model(config), make_batch())
    length = 9 if count_padding else 7
    starts = log_softmax(outputs["start_logits"][0, :length])
    ends = log_softmax(outputs["end_logits"][0, :length])
    expected = -(starts[3] + starts[5] + ends[4] + ends[5])
    np.testing.assert_allclose(losses["example_loss"], [expected, 0.0], rtol=TOLERANCE)


@pytest.mark.parametrize("name", CONFIGS)
def test_padding_changes_no_loss_and_every_weight_that_tells_scores_apart_learns(name):
    model, batch = seeded_model(CONFIGS[name]), make_batch()
    _, short = run(model, make_batch(padding=1))
    _, long = run(model, make_batch(padding=20))
    np.testing.assert_allclose(long["example_loss"], short["example_loss"], rtol=TOLERANCE)
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


def test_sequences_may_have_any_length_but_spans_are_of_one():
    with portable_graph():
        call = inference_function(seeded_model(CONFIGS["perceptron"]))
        for padding in (1, 5):
            outputs = call(TokenFeatures.from_dict(make_batch(padding)))
            assert outputs["span_logits"].shape[1] == len(span_bounds(7 + padding, 3)[0])
    message = r"logits of 7 spans, for 4 tokens and spans of at most 2, got shape \(1, 9\)"
    with pytest.raises(ValueError, match=message):
        best_spans(np.zeros((1, 9), np.float32), 4, 2)


def all_spans(length, max_span_length):
    """First and last token of each span, in the order of the spans."""
    return [
        (start, start + offset)
        for offset in range(max_span_length)
        for start in range(length - offset)
    ]


def answers_of(labels, cells):
    """The runs of labelled tokens within a cell of the body, as (first, last)."""
    runs = []
    for token, (label, cell) in enumerate(zip(labels, cells, strict=True)):
        if not label or 0 in cell:
            continue
        if runs and runs[-1][1] == token - 1 and cells[token - 1] == cell:
            runs[-1] = (runs[-1][0], token)
        else:
            runs.append((token, token))
    return runs


@st.composite
def sequences(draw):
    """A question, a header of two cells, body cells row by row, and padding; labels anywhere.

    Returns (cells, labels): of each token (row, column) and 0 or 1. A table may have no body.
    """
    sizes = st.integers(0, 5)
    cells = [(0, 0)] * draw(sizes) + [(0, 1)] * draw(sizes) + [(0, 2)] * draw(sizes)
    for row in range(1, draw(st.integers(1, 5))):
        for column in (1, 2):
            cells += [(row, column)] * draw(sizes)
    cells += [(0, 0)] * draw(st.integers(1, 5))
    labels = draw(st.lists(st.integers(0, 1), min_size=len(cells), max_size=len(cells)))
    return cells, labels


@given(st.integers(1, 40), st.integers(1, 12))
def test_spans_are_in_the_order_of_a_loop_over_offsets_then_starts(length, max_span_length):
    starts, ends = span_bounds(length, max_span_length)
    assert starts.dtype == ends.dtype == np.int32
    assert list(zip(starts, ends, strict=True)) == all_spans(length, max_span_length)


@pytest.mark.parametrize("static", [True, False])
@pytest.mark.parametrize(("length", "max_span_length"), [(7, 3), (3, 3), (2, 10), (1, 1)])
def test_combined_tokens_are_those_of_the_spans(length, max_span_length, static):
    values = tf.range(length)[None]  # [1, S]
    signature = [tf.TensorSpec([1, length if static else None], tf.int32)]
    combine = tf.function(
        lambda ids: over_spans(lambda a, b: 100 * a + b, ids, ids, max_span_length),
        input_signature=signature,
    )
    starts, ends = span_bounds(length, max_span_length)
    np.testing.assert_array_equal(combine(values)[0], 100 * starts + ends)
    if static:
        assert combine.get_concrete_function().output_shapes == (1, len(starts))


@given(sequences(), st.integers(1, 7))
def test_valid_spans_are_within_a_cell_and_answers_its_labelled_runs(sequence, max_span_length):
    cells, labels = sequence
    spans = all_spans(len(cells), max_span_length)
    rows, columns = np.array(cells, np.int32).T
    numbers, label_ids = body_cells(rows[None], columns[None]), tf.constant([labels])
    valid = [0 not in cells[s] and len(set(cells[s : end + 1])) == 1 for s, end in spans]
    np.testing.assert_array_equal(valid_spans(numbers, max_span_length)[0], valid)
    runs = answers_of(labels, cells)
    starts, ends = answer_bounds(label_ids, numbers)
    assert list(np.flatnonzero(starts[0])) == [start for start, _ in runs]
    assert list(np.flatnonzero(ends[0])) == [end for _, end in runs]
    found = answer_spans(label_ids, numbers, max_span_length)
    np.testing.assert_array_equal(found[0], [span in runs for span in spans])


@given(st.integers(0, 1000), st.integers(1, 9), st.integers(1, 4), st.integers(1, 40))
def test_best_spans_are_those_of_a_sorted_list(seed, length, max_span_length, k):
    rng = np.random.default_rng(seed)
    spans = all_spans(length, min(max_span_length, length))
    logits = rng.integers(-3, 3, (2, len(spans))).astype(np.float32)  # with many alike
    valid = rng.random(logits.shape) < 0.7
    logits[~valid] = LOG_ZERO
    found = best_spans(logits, length, max_span_length, k)
    assert found.starts.shape == (2, min(k, len(spans)))
    for row, is_valid, starts, ends, probabilities in zip(logits, valid, *found, strict=True):
        order = sorted(range(len(spans)), key=lambda i: (-row[i], i))[:k]
        assert list(zip(starts, ends, strict=True)) == [spans[i] for i in order]
        weights = np.exp(row.astype(np.float64)) * is_valid
        expected = weights / weights.sum() if is_valid.any() else weights
        np.testing.assert_allclose(probabilities, expected[order], rtol=1e-5)
