"""The heads of pre-training against the original: predictions and losses."""

import numpy as np
import pytest
import tensorflow as tf

from mate_tf.features.token_features import TokenFeatures
from mate_tf.models.masked_lm import MaskedLanguageModel
from tests.golden.comparison import read_arrays
from tests.golden.test_heads import load_batch

TOLERANCE = 1e-5


def pytest_generate_tests(metafunc) -> None:
    index = metafunc.config.golden.load_index("heads")
    names = [name for name in index if name.startswith("pretrain_")]
    metafunc.parametrize("name", names or [pytest.param("", marks=pytest.mark.skip("no heads"))])


def pretraining_model(golden, entry: dict, sequence_length: int) -> MaskedLanguageModel:
    """The model of an entry, with the weights of the pre-training checkpoint."""
    config = golden.encoder_config(
        entry["create_model_kwargs"], entry.get("bert_config_override"), sequence_length
    )
    model = MaskedLanguageModel(config)
    model.build()
    # What TableFormer and a Linformer add to BERT is in the other checkpoint alone.
    golden.load_weights(model.encoder)
    golden.load_weights(model, "pretraining")
    return model


def test_predictions_and_losses_equal_the_originals(golden, name):
    entry = golden.load_index("heads")[name]
    (path,) = golden.require(f"heads/{name}.npz")
    batch = load_batch(golden, entry)
    try:
        model = pretraining_model(golden, entry, batch["input_ids"].shape[1])
    except golden.NotSupportedError as error:
        golden.not_compared("pretraining", name, str(error))
    features = TokenFeatures.from_dict(batch)
    outputs = model(features, batch["masked_lm_positions"])
    losses = model.compute_task_loss(batch, outputs)
    encoded = model.encoder(features)
    log_probabilities = tf.nn.log_softmax(outputs["masked_lm_logits"])  # [B, P, V]
    log_probabilities = tf.reshape(log_probabilities, [-1, log_probabilities.shape[-1]])
    actual = {
        "sequence_output": encoded.sequence_output,
        "pooled": encoded.pooled_output,
        "masked_lm_loss": losses["masked_lm_loss"],
        "masked_lm_example_loss": tf.reshape(losses["masked_lm_token_loss"], [-1]),
        "masked_lm_predictions": tf.argmax(log_probabilities, axis=-1),
        "masked_lm_log_probs_first8": log_probabilities[:8],
        "next_sentence_loss": losses["next_sentence_loss"],
        "next_sentence_example_loss": losses["next_sentence_example_loss"],
        "next_sentence_log_probs": tf.nn.log_softmax(outputs["next_sentence_logits"]),
        "total_loss": losses["loss"],
    }
    real = batch["input_mask"].numpy() > 0  # [B, S]; padding is no contract
    is_masked = np.reshape(batch["masked_lm_weights"], [-1]) > 0  # [B P]; others have no loss
    golden.compare_arrays(
        "pretraining",
        name,
        actual,
        read_arrays(path),
        TOLERANCE,
        counts={"sequence_output": real, "masked_lm_example_loss": is_masked},
    )
