"""Span reading against the original: spans, logits, losses and gradients."""

import numpy as np
import tensorflow as tf

from mate_tf.features.token_features import TokenFeatures
from mate_tf.models.span_reading import SpanReading, over_spans
from mate_tf.task_configs import LOG_ZERO, SpanReadingConfig, span_bounds
from tests.golden import test_heads as heads
from tests.golden.comparison import NotSupportedError, compare_arrays, each_of, read_arrays

TOLERANCE = 1e-5
# The release computes the scores of a cell selection too, which its reader makes no use of.
OF_CELL_SELECTION = "column_logits masked_token_logits out_logits out_probs token_logits".split()


@each_of("heads", lambda _, entry: heads.span_prediction(entry) not in (None, "none"))
def test_spans_losses_and_gradients_equal_the_originals(golden, name):
    entry = golden.load_index("heads")[name]
    (path,) = golden.require(f"heads/{name}.npz")
    expected = read_arrays(path)
    batch = heads.load_batch(golden, entry)
    tapas, encoder_config = heads.supported_config(golden, entry, batch["input_ids"].shape[1])
    for key in ("classification_label_weight", "num_aggregation_labels"):
        if tapas.get(key):
            raise NotSupportedError(f"{key}={tapas[key]} of a reader")
    of_cells = heads.cell_selection_arrays(golden, encoder_config, batch, tapas)
    actual = {key: of_cells[key] for key in OF_CELL_SELECTION if key in of_cells}
    actual |= span_arrays(golden, encoder_config, batch, tapas)

    real = batch["input_mask"].numpy() > 0  # padding is no contract
    counts = dict.fromkeys(heads.OF_TOKENS, real)
    counts |= heads.possible_choices(name, actual, expected, counts)
    options = {"counts": counts, "tolerances": heads.tolerances_of_gradients(expected, TOLERANCE)}
    compare_arrays("spans", name, actual, expected, TOLERANCE, **options)


def span_arrays(golden, encoder_config, batch: dict[str, tf.Tensor], tapas: dict) -> dict:
    """What the golden files hold of a reader, by their names."""
    config = SpanReadingConfig(
        kind=tapas["span_prediction"],
        num_classes=tapas.get("num_classification_labels", 0),
        count_padding=True,
    )
    model = SpanReading(encoder_config, config)
    model.build()
    report = golden.load_weights(model)
    assert not report.new, report
    outputs, losses, by_name = heads.gradients(model, batch)
    encoded = model.encoder(TokenFeatures.from_dict(batch))
    logits = outputs["span_logits"]
    found = {
        "sequence_output": encoded.sequence_output,
        "pooled": encoded.pooled_output,
        "span_logits": logits,
        "span_loss": tf.reduce_mean(losses["span_loss"]),
        "out_total_loss": losses["loss"],
        "out_logits_cls": outputs.get("class_logits"),  # None without classes
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
    return found | by_name


def start_loss(batch, outputs) -> np.ndarray:
    """Minus the log-probabilities of the first tokens of all answers."""
    labels = batch["label_ids"].numpy()
    starts = (np.diff(labels, axis=1, prepend=0) > 0).astype(np.float32)
    return -np.sum(starts * tf.nn.log_softmax(outputs["start_logits"]), axis=1)
