"""Span reading against the original: spans, logits, losses and gradients."""

import numpy as np
import pytest
import tensorflow as tf

from mate_tf.features.token_features import TokenFeatures
from mate_tf.models.cell_selection import LOG_ZERO
from mate_tf.models.span_reading import SpanReading, SpanReadingConfig, over_spans, span_bounds
from mate_tf.weights.initial import load_tf1_checkpoint
from mate_tf.weights.loading import variables_by_name
from tests.golden.test_heads import ENCODER_KEYS, load_batch

TOLERANCE = 1e-5
# The release computes the scores of a cell selection too, which its reader makes no use of.
OF_CELL_SELECTION = ("token_logits", "out_logits", "out_probs")


def pytest_generate_tests(metafunc) -> None:
    index = metafunc.config.golden.load_index("heads")
    names = [
        name
        for name, entry in index.items()
        if isinstance(entry, dict)
        and entry.get("tapas_config", {}).get("span_prediction", "none") != "none"
    ]
    metafunc.parametrize("name", names or [pytest.param("", marks=pytest.mark.skip("no heads"))])


def test_spans_losses_and_gradients_equal_the_originals(golden, name):
    entry = golden.load_index("heads")[name]
    tapas = entry["tapas_config"]
    kwargs = {key: tapas[key] for key in ENCODER_KEYS}
    encoder_config = golden.encoder_config(kwargs, tapas["bert_config"])
    files = golden.require(f"heads/{name}.npz", "ckpt/classifier_all/model.ckpt.index")
    batch = load_batch(golden, entry)
    config = SpanReadingConfig(
        kind=tapas["span_prediction"],
        num_classes=tapas["num_classification_labels"],
        count_padding=True,
    )
    model = SpanReading(encoder_config, config)
    model.build()
    report = load_tf1_checkpoint(model, files[1].with_suffix(""))
    assert not report.new
    actual = arrays(model, batch)

    real = batch["input_mask"].numpy() > 0  # [B, S]; what padding computes is no contract
    with np.load(files[0]) as expected:
        for key in expected.files:
            if key in OF_CELL_SELECTION:
                continue
            found, value = np.asarray(actual[key]), expected[key]
            if found.shape[:2] == real.shape:
                found, value = found[real], value[real]
            if key == "span_logits":
                possible = value > LOG_ZERO / 2
                assert ((found > LOG_ZERO / 2) == possible).all(), "other spans are valid"
                found, value = found[possible], value[possible]
            tolerance = TOLERANCE
            if key.endswith("key|bias"):
                # It shifts all scores of a query alike: its gradient is zero but for rounding,
                # which is as large as the kernel's gradient makes it.
                kernel = expected[key.replace("bias", "kernel")]
                tolerance *= max(1.0, np.abs(kernel).max())
            golden.compare("spans", f"{name} {key}", found, value, tolerance)


def arrays(model: SpanReading, batch: dict[str, tf.Tensor]) -> dict:
    """What the golden files hold, by their names."""
    variables = variables_by_name(model)
    features = TokenFeatures.from_dict(batch)
    with tf.GradientTape() as tape:
        outputs = model(features)
        losses = model.compute_task_loss(batch, outputs)
    gradients = tape.gradient(losses["loss"], [v.value for v in variables.values()])
    encoded = model.encoder(features)
    logits = outputs["span_logits"]
    config = model.task_config
    found = {
        "sequence_output": encoded.sequence_output,
        "pooled": encoded.pooled_output,
        "span_logits": logits,
        "span_loss": tf.reduce_mean(losses["span_loss"]),
        "out_total_loss": losses["loss"],
        "out_logits_cls": outputs.get("class_logits"),
    }
    length = batch["input_mask"].shape[1]
    bounds = np.stack(span_bounds(length, config.max_span_length), axis=-1)  # [N, 2]
    found["span_indexes"] = np.tile(bounds, (len(logits), 1, 1))
    if config.kind == "boundary":
        # In the original the score of the end takes the place of that of the start.
        ends = outputs["end_logits"]
        of_ends = over_spans(lambda _, end: end, ends, ends, config.max_span_length)
        found["span_logits"] = tf.where(logits > LOG_ZERO / 2, of_ends, logits)
        # It masks the two losses one after the other and keeps the last one.
        found["masked_example_loss"] = losses["span_loss"] - start_loss(batch, outputs)
    for key, gradient in zip(variables, gradients, strict=True):
        if gradient is not None:
            found["grad:" + key.replace("/", "|")] = tf.convert_to_tensor(gradient)
    return found


def start_loss(batch, outputs) -> np.ndarray:
    """Minus the log-probabilities of the first tokens of all answers."""
    labels = batch["label_ids"].numpy()
    starts = (np.diff(labels, axis=1, prepend=0) > 0).astype(np.float32)
    return -np.sum(starts * tf.nn.log_softmax(outputs["start_logits"]), axis=1)
