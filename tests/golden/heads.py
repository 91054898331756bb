"""What the golden files hold of heads, as it is computed here: logits, losses and gradients."""

import dataclasses
from typing import Any

import numpy as np
import tensorflow as tf

from mate_tf.features.token_features import TokenFeatures
from mate_tf.models.classification import SequenceClassification
from mate_tf.models.span_reading import SpanReading, over_spans
from mate_tf.models.table_qa import TableQuestionAnswering
from mate_tf.tables.operators import TAPAS_OPERATORS
from mate_tf.task_configs import (
    LOG_ZERO,
    ClassificationConfig,
    SpanReadingConfig,
    TableQAConfig,
    span_bounds,
)
from mate_tf.weights.initial import variables_by_name
from tests.golden.comparison import NotSupportedError, read_arrays
from tests.golden.interactions import load

ENCODER_KEYS = tuple(
    (
        "attention_bias_disabled attention_bias_use_relative_scalar_only "
        "disable_position_embeddings disabled_features proj_value_length "
        "reset_position_index_per_cell restrict_attention_bucket_size "
        "restrict_attention_header_size restrict_attention_mode "
        "restrict_attention_row_heads_ratio"
    ).split()
)
# What the original's configuration has beside the encoder's keys and the fields of TableQAConfig.
OTHER_KEYS = {
    *"bert_config disable_per_token_loss".split(),
    *"num_classification_labels span_prediction".split(),
    # Of a run alone, without effect on a batch with weights that are given.
    *"grad_clipping init_checkpoint learning_rate num_train_steps num_warmup_steps".split(),
    *"reset_output_cls use_tpu".split(),
}
# What the project does not have, with the values that leave it out. The original takes
# cell_cross_entropy and does not act on it.
UNSUPPORTED: dict[str, tuple[Any, ...]] = {
    "cell_cross_entropy": (False,),
    "num_aggregation_labels": (0, 4),
    "table_pruning_config_file": (None, ""),
    "agg_temperature": (1.0,),
    "aggregation_loss_importance": (1.0,),
    "answer_loss_importance": (1.0,),
    "average_logits_per_cell": (False,),
    "cell_cross_entropy_hard_em": (False,),
    "classification_label_weight": (None,),
    "use_gumbel_for_agg": (False,),
    "use_gumbel_for_cells": (False,),
}
# Where these are 10000 lower than others, the column, token or span can never be chosen.
WITH_IMPOSSIBLE = ("column_logits", "masked_token_logits", "out_logits", "span_logits")


def span_prediction(entry: Any) -> str | None:
    """How a classifier's entry reads spans, "none" where it does not; None for other entries."""
    if not isinstance(entry, dict) or "tapas_config" not in entry:
        return None
    return entry["tapas_config"].get("span_prediction", "none")


def counted_examples(batch: dict, actual: dict, tapas: dict) -> dict[str, np.ndarray]:
    """Which examples count, bool [B], in the losses that the original records before its masks.

    An example without a labelled cell has a loss of about 10000 on its column; the original masks
    it where it computes the answer, and with mask_examples_without_labels.
    """
    labelled = np.any(np.asarray(batch["label_ids"]) > 0, axis=1)
    keeps_all = not tapas.get("mask_examples_without_labels")
    selects = np.ones_like(labelled) if keeps_all else labelled
    if "aggregate_mask" not in actual:
        return {"selection_loss_per_example": np.asarray(selects)}
    computes = np.asarray(actual["aggregate_mask"]) > 0
    return {
        "selection_loss_per_example": selects & ~computes,
        "expected_result": computes,
        "answer_loss": computes,
    }


def possible_choices(
    name: str, actual: dict, expected: dict, counts: dict
) -> dict[str, np.ndarray]:
    """Which logits belong to what can be chosen, and that it is the same here.

    The others may rest on padding, and their size would hide an error in these.
    """
    found = {}
    for key in set(WITH_IMPOSSIBLE) & actual.keys() & expected.keys():
        possible = expected[key] > LOG_ZERO / 2
        here = np.asarray(actual[key]) > LOG_ZERO / 2
        assert here.shape == possible.shape, f"{name} {key}: {here.shape} != {possible.shape}"
        which = counts.get(key, np.True_)
        assert ((here == possible) | ~which).all(), f"{name} {key}: others are possible"
        found[key] = np.asarray(possible & which)
    return found


def tolerances_of_gradients(expected: dict, tolerance: float) -> dict[str, float]:
    """The tolerance of each gradient of a golden file.

    The bias of the keys shifts all scores of a query alike: its gradient is zero but for rounding,
    which is as large as the kernel's gradient makes it.
    """
    found = {}
    for key in expected:
        if key.startswith("grad:"):
            found[key] = tolerance
        kernel = expected.get(key.replace("key|bias", "key|kernel"))
        if key.endswith("key|bias") and kernel is not None:
            found[key] = tolerance * max(1.0, np.abs(kernel).max())
    return found


def built(golden, model):
    """The model with the checkpoint's weights, none of which may be missing."""
    model.build()
    report = golden.load_weights(model)
    assert not report.new, report
    return model


def gradients(model, batch: dict[str, tf.Tensor]) -> tuple[dict, dict, dict]:
    """The model's outputs and losses, and the gradients by the golden files' names."""
    variables = variables_by_name(model)
    with tf.GradientTape() as tape:
        outputs = model(TokenFeatures.from_dict(batch))
        losses = model.compute_task_loss(batch, outputs)
    found = tape.gradient(losses["loss"], [v.value for v in variables.values()])
    by_name = {
        "grad:" + key.replace("/", "|"): tf.convert_to_tensor(gradient)
        for key, gradient in zip(variables, found, strict=True)
        if gradient is not None
    }
    return outputs, losses, by_name


def classification_arrays(golden, encoder_config, batch: dict, tapas: dict) -> dict[str, Any]:
    """What the golden files hold of a classifier, by their names.

    The checkpoint's has two classes; heads of other numbers have files.
    """
    num_classes = tapas["num_classification_labels"]
    model = SequenceClassification(encoder_config, ClassificationConfig(num_classes))
    model.build()
    if num_classes == 2:
        golden.load_weights(model)
    else:
        (path,) = golden.require(f"ckpt/cls{num_classes}_extra.npz")
        golden.load_weights(model.encoder)
        variables = variables_by_name(model)
        for name, value in read_arrays(path).items():
            variables[name].assign(value)
    outputs, losses, by_name = gradients(model, batch)
    return by_name | {"out_logits_cls": outputs["class_logits"], "out_total_loss": losses["loss"]}


def cell_selection_arrays(golden, encoder_config, batch: dict, tapas: dict) -> dict[str, Any]:
    """What the golden files hold of cell selection and aggregation, by their names."""
    model = built(golden, TableQuestionAnswering(encoder_config, task_config(tapas)))
    outputs, losses, by_name = gradients(model, batch)
    encoded = model.encoder(TokenFeatures.from_dict(batch))
    labelled = (batch["label_ids"].numpy() > 0).any(axis=1)
    found: dict[str, Any] = {
        "sequence_output": encoded.sequence_output,
        "pooled": encoded.pooled_output,
        "token_logits": outputs["token_logits"],
        "masked_token_logits": outputs["selection_logits"],
        "out_logits": outputs["selection_logits"],
        "out_probs": outputs["token_probabilities"],
        "out_total_loss": losses["loss"],
        "column_logits": outputs.get("column_logits"),
        "out_logits_aggregation": outputs.get("aggregation_logits"),
    }
    if not tapas.get("disable_per_token_loss"):
        found["selection_loss_per_example"] = losses["selection_loss"]
        found["masked_example_loss"] = losses["selection_loss"] * labelled
    for key in ("aggregate_mask", "expected_result", "answer_loss", "large_answer_loss_mask"):
        found[key] = losses.get(key)
    if "aggregation_loss" in losses:
        found["aggregation_loss"] = losses["aggregation_loss"]
        aggregation_loss = losses["aggregation_loss"]
        computed = losses.get("aggregate_mask", tf.zeros_like(aggregation_loss))
        found["aggregation_loss_known"] = aggregation_loss * (1 - computed)
        found["aggregation_loss_unknown"] = aggregation_loss * computed
    return {key: value for key, value in found.items() if value is not None} | by_name


def span_arrays(golden, encoder_config, batch: dict[str, tf.Tensor], tapas: dict) -> dict:
    """What the golden files hold of a reader, by their names."""
    config = SpanReadingConfig(
        kind=tapas["span_prediction"],
        num_classes=tapas.get("num_classification_labels", 0),
        count_padding=True,
    )
    model = built(golden, SpanReading(encoder_config, config))
    outputs, losses, by_name = gradients(model, batch)
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


def supported_config(golden, entry: dict, length: int) -> tuple[dict, Any]:
    """The original's configuration of an entry, and the encoder's made of it.

    Raises:
        NotSupportedError: if it asks for what the project does not have.
    """
    tapas = entry["tapas_config"]
    fields = {field.name for field in dataclasses.fields(TableQAConfig)}
    unknown = tapas.keys() - {*ENCODER_KEYS, *UNSUPPORTED} - OTHER_KEYS - fields
    assert not unknown, f"unknown keys of tapas_config: {sorted(unknown)}"
    for key, values in UNSUPPORTED.items():
        if tapas.get(key, values[0]) not in values:
            raise NotSupportedError(f"{key}={tapas[key]}")
    kwargs = {key: tapas[key] for key in ENCODER_KEYS if key in tapas}
    return tapas, golden.encoder_config(kwargs, tapas.get("bert_config"), length)


def task_config(tapas: dict) -> TableQAConfig:
    known = {field.name for field in dataclasses.fields(TableQAConfig)} - UNSUPPORTED.keys()
    optional = ("answer_loss_cutoff",)
    values = {k: v for k, v in tapas.items() if k in known and (v is not None or k in optional)}
    values["operators"] = TAPAS_OPERATORS[: tapas["num_aggregation_labels"]]
    importance = 0.0 if tapas.get("disable_per_token_loss") else 1.0
    if not tapas.get("select_one_column"):
        # The original's weight multiplies every token, labelled or not.
        importance *= values.pop("positive_weight", TableQAConfig.positive_weight)
        values["positive_weight"] = 1.0
    return TableQAConfig(**values, cell_loss_importance=importance, count_padding=True)


def load_batch(golden, entry: dict) -> dict[str, tf.Tensor]:
    """The examples of an entry, from its file of inputs or the converted data that it names."""
    if "inputs" in entry:
        (path,) = golden.require(f"heads/{entry['inputs']}")
        return {key: tf.constant(value) for key, value in read_arrays(path).items()}
    rows = []
    assert entry.get("batch"), f"expected a batch of (file, position), got {entry.get('batch')!r}"
    for source, position in entry["batch"]:
        (path,) = golden.require(f"data/{source}.json.gz")
        features = load(path)["examples"][position]["features"]
        assert features, f"expected features of example {position} in {path.name}, which has none"
        rows.append(features)
    batch = {}
    for key, feature in rows[0].items():
        if feature["kind"] != "bytes_list" and key != "table_id_hash":
            dtype = np.int32 if feature["kind"] == "int64_list" else np.float32
            batch[key] = tf.constant(np.array([row[key]["values"] for row in rows], dtype))
    return batch
