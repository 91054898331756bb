"""Pre-training against the original: predictions, losses, first update, rates, six steps."""

from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from mate_tf.features.token_features import TokenFeatures
from mate_tf.models.masked_lm import MaskedLanguageModel
from mate_tf.training.optimizer import BertAdamW, WarmupLinearDecay
from mate_tf.weights.initial import variables_by_name
from tests.golden.comparison import compare, compare_arrays, each_of, read_arrays
from tests.golden.heads import load_batch

# A float32 weight of about 1 is rounded by 6e-8, the update of 1e-3 is 1e-5 off (1 - beta_2).
OF_ONE_UPDATE = 2e-7
TOLERANCE = 1e-5
SCHEDULE = ("init_lr", "num_train_steps", "num_warmup_steps")
OPTIONS = {*SCHEDULE, "gradient_accumulation_steps", "grad_clipping"}


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


@each_of("heads", lambda name, _: name.startswith("pretrain_"))
def test_predictions_and_losses_equal(golden, name):
    entry = golden.load_index("heads")[name]
    (path,) = golden.require(f"heads/{name}.npz")
    batch = load_batch(golden, entry)
    model = pretraining_model(golden, entry, batch["input_ids"].shape[1])
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
    counts = {"sequence_output": real, "masked_lm_example_loss": is_masked}
    arrays = read_arrays(path)
    compare_arrays("pretraining", name, actual, arrays, TOLERANCE, counts=counts)


def is_plain(name: str, entry: Any) -> bool:
    return name.startswith("train_") and entry["optimizer"].keys() == set(SCHEDULE)


@pytest.mark.medium
@each_of("heads", is_plain)
def test_first_update_and_rates_are_the_originals(golden, name):
    described = golden.load_index("heads")[name]
    peak, num_steps, warmup = (described["optimizer"][key] for key in SCHEDULE)
    arrays_file, _ = golden.require(f"heads/{name}.npz", "ckpt/pretraining/model.ckpt.index")
    arrays = np.load(arrays_file)
    schedule = WarmupLinearDecay(peak, num_steps, warmup)
    rates = described["learning_rate_used_at_each_step"]
    actual_rates = [float(schedule(step)) for step in range(len(rates))]
    compare("optimizer", f"{name} learning rates", actual_rates, rates, 1e-9)

    checkpoint = tf.train.load_checkpoint(str(golden.directory / "ckpt/pretraining/model.ckpt"))
    names = [key.removeprefix("grad0:") for key in arrays.files if key.startswith("grad0:")]
    names = [key for key in names if f"after1:{key}" in arrays.files]
    variables, gradients = [], []
    for key in names:
        start = checkpoint.get_tensor(key.replace("|", "/"))
        variables.append(keras.Variable(start, name=key))
        gradients.append(tf.constant(arrays[f"grad0:{key}"]))
    # The file has some of the gradients; one more makes up for the norm of all.
    known = sum(float(tf.reduce_sum(tf.square(gradient))) for gradient in gradients)
    gradients.append(tf.constant([np.sqrt(described["global_grad_norm_step0"] ** 2 - known)]))
    variables.append(keras.Variable(np.zeros(1, np.float32), name="rest"))

    BertAdamW(schedule).apply([tf.cast(grad, tf.float32) for grad in gradients], variables)

    for key, variable in zip(names, variables[:-1], strict=True):
        expected = arrays[f"after1:{key}"]
        compare("optimizer", f"{name} {key}", variable.numpy(), expected, OF_ONE_UPDATE)


@pytest.mark.medium
@each_of("heads", lambda name, _: name.startswith("train_"))
def test_six_steps_are_the_originals(golden, name):
    """Losses, first gradients, and weights after the first and the last step.

    The original scales the gradient of each part of a batch to the norm by itself, adds up the
    parts, and cuts values before and after. Both parts are the same here, so that one scaling and
    one cut of their mean give the same.
    """
    entry = golden.load_index("heads")[name]
    (path,) = golden.require(f"heads/{name}.npz")
    batch = load_batch(golden, entry)
    unknown = entry["optimizer"].keys() - OPTIONS
    assert not unknown, f"unknown options of the optimizer: {sorted(unknown)}"
    model = pretraining_model(golden, entry, batch["input_ids"].shape[1])
    variables = variables_by_name(model)
    num_parts = entry["optimizer"].get("gradient_accumulation_steps", 1)
    rates = entry["learning_rate_used_at_each_step"][num_parts - 1 :: num_parts]
    recorded = keras.optimizers.schedules.PiecewiseConstantDecay([*range(len(rates) - 1)], rates)
    limit = entry["optimizer"].get("grad_clipping")
    optimizer = BertAdamW(recorded, max_gradient_value=limit)
    optimizer.build(model.trainable_variables)

    @tf.function(autograph=False)
    def compute():
        with tf.GradientTape() as tape:
            outputs = model(TokenFeatures.from_dict(batch), batch["masked_lm_positions"])
            losses = model.compute_task_loss(batch, outputs)
        gradients = tape.gradient(losses["loss"], [v.value for v in model.trainable_variables])
        parts = tf.stack([losses["masked_lm_loss"], losses["next_sentence_loss"]])
        return parts, [tf.convert_to_tensor(gradient) for gradient in gradients]

    def weights():
        found = {key.replace("/", "|"): variable.numpy() for key, variable in variables.items()}
        return found | {"word_embeddings_first300": found["bert|embeddings|word_embeddings"][:300]}

    losses, found = [], {}
    num_steps = len(entry["learning_rate_used_at_each_step"])
    for step in range(num_steps):
        loss, gradients = compute()
        losses.append(loss)
        if step == 0:
            of_path = dict(zip((v.path for v in model.trainable_variables), gradients, strict=True))
            for key, variable in variables.items():
                found["grad0:" + key.replace("/", "|")] = of_path[variable.path]
        if (step + 1) % num_parts == 0:
            optimizer.apply(gradients)
        if step in (0, num_steps - 1):
            found |= {f"after{step + 1}:{key}": value for key, value in weights().items()}
    losses.append(compute()[0])

    recorded_losses = entry["losses_before_each_step_and_final"]
    compare("optimizer", f"{name} losses", losses, recorded_losses, TOLERANCE)
    norm = entry["global_grad_norm_step0"]
    actual_norm = tf.linalg.global_norm(list(of_path.values()))
    compare("optimizer", f"{name} norm", actual_norm, norm, TOLERANCE)
    # The counter is of the parts since the last update.
    expected = {key: v for key, v in read_arrays(path).items() if not key.endswith(":counter")}
    compare_arrays("optimizer", name, found, expected, TOLERANCE)
