"""The heads of pre-training against numpy, their names, saving and dtypes."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from mate_tf.config import AttentionConfig, EncoderConfig
from mate_tf.features.token_features import TokenFeatures
from mate_tf.models.masked_lm import MaskedLanguageModel, MaskedLMConfig
from mate_tf.weights.loading import variables_by_name

ENCODER = EncoderConfig(
    vocab_size=20,
    hidden_size=8,
    num_layers=1,
    num_heads=2,
    intermediate_size=16,
    initializer_range=0.5,
    hidden_dropout=0.0,
    attention_dropout=0.0,
    attention=AttentionConfig("tapas"),
)
# Float32 sums of some ten terms of size 1, in another order than the oracle's in float64.
TOLERANCE = 1e-5


def make_model(next_sentence=True, **options):
    keras.utils.set_random_seed(1)
    model = MaskedLanguageModel(ENCODER, MaskedLMConfig(next_sentence), **options)
    model.build()
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


def test_logits_are_products_with_the_word_embeddings(batch):
    model = make_model()
    features = TokenFeatures.from_dict(batch)
    outputs = model(features, batch["masked_lm_positions"])
    encoded = model.encoder(features)
    hidden = np.stack(
        [
            encoded.sequence_output[example].numpy()[positions]
            for example, positions in enumerate(batch["masked_lm_positions"].numpy())
        ]
    )
    hidden = model.layer_norm(model.transform(tf.constant(hidden))).numpy()
    words = model.encoder.embedding.word_embeddings.numpy()
    expected = hidden.astype(np.float64) @ words.T + model.output_bias.numpy()
    np.testing.assert_allclose(
        outputs["masked_lm_logits"], expected, rtol=TOLERANCE, atol=TOLERANCE
    )
    weights = model.next_sentence_weights.numpy()
    expected = encoded.pooled_output.numpy() @ weights.T + model.next_sentence_bias.numpy()
    np.testing.assert_allclose(outputs["next_sentence_logits"], expected, rtol=1e-4, atol=TOLERANCE)


def test_without_positions_every_token_is_predicted(batch):
    model = make_model()
    features = TokenFeatures.from_dict(batch)
    everywhere = model(features)["masked_lm_logits"]
    assert everywhere.shape == (2, 6, 20)
    some = model(features, batch["masked_lm_positions"])["masked_lm_logits"]
    expected = tf.gather(everywhere, batch["masked_lm_positions"], batch_dims=1)
    np.testing.assert_allclose(some, expected, rtol=TOLERANCE, atol=TOLERANCE)


@pytest.mark.parametrize("next_sentence", [True, False])
def test_the_loss_is_the_mean_over_masked_tokens_plus_that_over_tables(batch, next_sentence):
    model = make_model(next_sentence)
    outputs = model(TokenFeatures.from_dict(batch), batch["masked_lm_positions"])
    losses = model.compute_task_loss(batch, outputs)
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
    model = make_model(next_sentence=False)
    batch = batch | {"masked_lm_weights": tf.zeros([2, 3])}
    with tf.GradientTape() as tape:
        outputs = model(TokenFeatures.from_dict(batch), batch["masked_lm_positions"])
        loss = model.compute_task_loss(batch, outputs)["loss"]
    assert float(loss) == 0.0
    np.testing.assert_array_equal(tape.gradient(loss, model.output_bias.value), 0.0)


def test_words_are_learned_both_as_read_and_as_predicted(batch):
    model = make_model(next_sentence=False)
    with tf.GradientTape() as tape:
        outputs = model(TokenFeatures.from_dict(batch), batch["masked_lm_positions"])
        loss = model.compute_task_loss(batch, outputs)["loss"]
    embeddings = model.encoder.embedding.word_embeddings.value
    gradient = tf.convert_to_tensor(tape.gradient(loss, embeddings)).numpy()
    assert 7 not in batch["input_ids"].numpy()
    assert (np.abs(gradient).max(axis=1) > 0).all()  # of all words, in the softmax


@pytest.mark.parametrize("next_sentence", [True, False])
def test_variables_have_the_names_of_the_published_checkpoints(next_sentence):
    names = variables_by_name(make_model(next_sentence))
    heads = {name for name in names if not name.startswith("bert/")}
    assert heads == {
        "cls/predictions/transform/dense/kernel",
        "cls/predictions/transform/dense/bias",
        "cls/predictions/transform/LayerNorm/gamma",
        "cls/predictions/transform/LayerNorm/beta",
        "cls/predictions/output_bias",
        *(
            ["cls/seq_relationship/output_weights", "cls/seq_relationship/output_bias"]
            if next_sentence
            else []
        ),
    }
