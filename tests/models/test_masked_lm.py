import keras
import numpy as np
import pytest
import tensorflow as tf

from mate_tf.features.token_features import TokenFeatures
from mate_tf.models import make_model
from mate_tf.task_configs import MaskedLMConfig
from tests.small import small_encoder

ENCODER = small_encoder(20, initializer_range=0.5)
# Float32 sums of some ten terms of size 1, in another order than the oracle's in float64.
TOLERANCE = 1e-5


def seeded_model(next_sentence=True):
    keras.utils.set_random_seed(1)
    model = make_model(ENCODER, MaskedLMConfig(next_sentence))
    model.output_bias.assign(keras.random.normal(model.output_bias.shape, seed=2))
    return model


@pytest.fixture(scope="module")
def batch():
    rng = np.random.default_rng(0)
    ones = tf.ones([2, 6], tf.int32)
    return dict.fromkeys(TokenFeatures._fields, ones) | {
        "input_ids": tf.constant(rng.integers(1, 20, (2, 6), np.int32)),
        "masked_lm_positions": tf.constant([[3, 1, 0], [5, 0, 0]]),
        "masked_lm_ids": tf.constant([[7, 2, 0], [19, 0, 0]]),
        "masked_lm_weights": tf.constant([[1.0, 1.0, 0.0], [1.0, 0.0, 0.0]]),
        "is_random_table": tf.constant([[1], [0]]),
    }


def log_softmax(logits):
    logits = np.asarray(logits, np.float64)
    return logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))


def run(model, batch):
    outputs = model(TokenFeatures.from_dict(batch), batch["masked_lm_positions"])
    return outputs, model.compute_task_loss(batch, outputs)


def test_logits_are_products_with_the_word_embeddings(batch):
    model = seeded_model()
    features, positions = TokenFeatures.from_dict(batch), batch["masked_lm_positions"]
    encoded = model.encoder(features)
    hidden = tf.gather(encoded.sequence_output, positions, batch_dims=1)
    hidden = model.layer_norm(model.transform(hidden)).numpy().astype(np.float64)
    words = model.encoder.embedding.word_embeddings.numpy()
    pooled, weights = encoded.pooled_output.numpy(), model.next_sentence_weights.numpy()
    outputs = model(features, positions)
    for name, expected in (
        ("masked_lm_logits", hidden @ words.T + model.output_bias.numpy()),
        ("next_sentence_logits", pooled @ weights.T + model.next_sentence_bias.numpy()),
    ):
        np.testing.assert_allclose(outputs[name], expected, rtol=1e-4, atol=TOLERANCE)
    everywhere = model(features)["masked_lm_logits"]  # without positions every token is predicted
    assert everywhere.shape == (2, 6, 20)
    some = tf.gather(everywhere, positions, batch_dims=1)
    np.testing.assert_allclose(outputs["masked_lm_logits"], some, rtol=TOLERANCE, atol=TOLERANCE)


@pytest.mark.parametrize("next_sentence", [True, False])
def test_the_loss_is_the_mean_over_masked_tokens_plus_that_over_tables(batch, next_sentence):
    model = seeded_model(next_sentence)
    outputs, losses = run(model, batch)
    assert ("next_sentence_logits" in outputs) == next_sentence
    words = log_softmax(outputs["masked_lm_logits"])
    masked_sum = -(words[0, 0, 7] + words[0, 1, 2] + words[1, 0, 19])
    np.testing.assert_allclose(losses["masked_lm_sum"], masked_sum, rtol=TOLERANCE)
    part = batch | {"mean_masked_lm_weights": tf.constant(4.5)}  # of two parts, the other has 6
    masked_loss = model.compute_task_loss(part, outputs)["masked_lm_loss"]
    np.testing.assert_allclose(masked_loss, masked_sum / (4.5 + 1e-5), rtol=TOLERANCE)
    expected = masked_sum / (3 + 1e-5)
    np.testing.assert_allclose(losses["masked_lm_loss"], expected, rtol=TOLERANCE)
    if next_sentence:
        tables = log_softmax(outputs["next_sentence_logits"])
        expected -= (tables[0, 1] + tables[1, 0]) / 2
    np.testing.assert_allclose(losses["loss"], expected, rtol=TOLERANCE)


def test_a_batch_without_a_masked_token_costs_nothing(batch):
    model = seeded_model(next_sentence=False)
    with tf.GradientTape() as tape:
        loss = run(model, batch | {"masked_lm_weights": tf.zeros([2, 3])})[1]["loss"]
    assert float(loss) == 0.0
    np.testing.assert_array_equal(tape.gradient(loss, model.output_bias.value), 0.0)
