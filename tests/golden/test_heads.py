"""Cell selection, aggregation and classification against the original: logits, losses, gradients.

Of the same folder test_span_reading.py compares the span readers, test_pretraining.py the heads of
pre-training, and test_optimizer.py the training steps.
"""

import dataclasses
import gzip
import json
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from mate_tf.features.token_features import TokenFeatures
from mate_tf.models.cell_selection import LOG_ZERO
from mate_tf.models.classification import ClassificationConfig, SequenceClassification
from mate_tf.models.table_qa import TableQAConfig, TableQuestionAnswering
from mate_tf.weights.initial import load_tf1_checkpoint
from mate_tf.weights.loading import variables_by_name

TOLERANCE = 1e-5
# Of the gradients recorded here the original's own are 1.4e-5 off a float64 run, so that processors
# with other vector units round to one or the other side of 1e-5.
ILL_CONDITIONED = {"wtq_first_order": 2e-5}
ENCODER_KEYS = (
    "disable_position_embeddings",
    "disabled_features",
    "proj_value_length",
    "reset_position_index_per_cell",
    "restrict_attention_bucket_size",
    "restrict_attention_header_size",
    "restrict_attention_mode",
    "restrict_attention_row_heads_ratio",
)
# What the project does not have, with the value that leaves it out. The original takes
# cell_cross_entropy and does not act on it.
UNSUPPORTED = {
    "classification_label_weight": None,
    "cell_cross_entropy": False,
    "table_pruning_config_file": None,
    "use_gumbel_for_agg": False,  # what it draws cannot be drawn again
    "use_gumbel_for_cells": False,
}


def pytest_generate_tests(metafunc) -> None:
    index = metafunc.config.golden.load_index("heads")
    names = [
        name
        for name, entry in index.items()
        if "tapas_config" in entry and entry["tapas_config"]["span_prediction"] == "none"
    ]
    metafunc.parametrize("name", names or [pytest.param("", marks=pytest.mark.skip("no heads"))])


def test_logits_losses_and_gradients_equal_the_originals(golden, name):
    entry = golden.load_index("heads")[name]
    try:
        tapas = supported_config(golden, entry)
        kwargs = {key: tapas[key] for key in ENCODER_KEYS}
        encoder_config = golden.encoder_config(kwargs, tapas["bert_config"])
    except golden.NotSupportedError as error:
        golden.not_compared("heads", name, str(error))
    files = golden.require(f"heads/{name}.npz", "ckpt/classifier_all/model.ckpt.index")
    expected = dict(np.load(files[0]))
    batch = load_batch(golden, entry)

    table_qa = TableQuestionAnswering(encoder_config, task_config(tapas))
    table_qa.build()
    load_tf1_checkpoint(table_qa, files[1].with_suffix(""))
    actual = arrays(table_qa, batch, tapas)
    if num_classes := tapas["num_classification_labels"]:
        # The original's classifier has a head for tokens too, on which its loss does not depend.
        assert tapas["disable_per_token_loss"] and not tapas["num_aggregation_labels"]
        classifier = load_classifier(golden, encoder_config, num_classes, files[1])
        actual |= classification_arrays(classifier, batch)

    real = batch["input_mask"].numpy() > 0  # [B, S]; what padding computes is no contract
    for key, value in expected.items():
        if key not in actual:
            golden.left_out.append(("heads", f"{name} {key}", "no such array here"))
            continue
        found = np.asarray(actual[key])
        if found.shape[:2] == real.shape:
            found, value = found[real], value[real]
        # What is 10000 lower can never be chosen. It may rest on padding, and its size would
        # hide an error in the others.
        possible = value > LOG_ZERO / 2
        assert ((found > LOG_ZERO / 2) == possible).all(), f"{name} {key}: others are possible"
        tolerance = TOLERANCE
        if key.startswith("grad:"):
            tolerance = ILL_CONDITIONED.get(name, tolerance)
        if key.endswith("key|bias"):
            # It shifts all scores of a query alike: its gradient is zero but for rounding, which
            # is as large as the kernel's gradient makes it.
            tolerance *= max(1.0, np.abs(expected[key.replace("bias", "kernel")]).max())
        golden.compare("heads", f"{name} {key}", found[possible], value[possible], tolerance)


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


def load_classifier(golden, encoder_config, num_classes: int, checkpoint) -> SequenceClassification:
    """The classifier of the checkpoint, which has two classes; other heads have files."""
    classifier = SequenceClassification(encoder_config, ClassificationConfig(2))
    classifier.build()
    load_tf1_checkpoint(classifier, checkpoint.with_suffix(""))
    if num_classes == 2:
        return classifier
    (path,) = golden.require(f"ckpt/cls{num_classes}_extra.npz")
    values = np.load(path)
    other = SequenceClassification(encoder_config, ClassificationConfig(num_classes))
    other.build()
    for name, variable in variables_by_name(classifier).items():
        value = values.get(name, variable)
        variables_by_name(other)[name].assign(value)
    return other


def classification_arrays(model: SequenceClassification, batch: dict[str, tf.Tensor]) -> dict:
    """What the golden files hold of a classifier, by their names."""
    outputs, losses, by_name = gradients(model, batch)
    return by_name | {
        "out_logits_cls": outputs["class_logits"],
        "out_total_loss": losses["loss"],
    }


def arrays(model: TableQuestionAnswering, batch: dict[str, tf.Tensor], tapas: dict) -> dict:
    """What the golden files hold, by their names."""
    outputs, losses, by_name = gradients(model, batch)
    features = TokenFeatures.from_dict(batch)
    encoded = model.encoder(features)
    found: dict[str, Any] = {
        "sequence_output": encoded.sequence_output,
        "pooled": encoded.pooled_output,
        "token_logits": outputs["token_logits"],
        "masked_token_logits": outputs["selection_logits"],
        "out_logits": outputs["selection_logits"],
        "out_probs": outputs["token_probabilities"],
        "out_total_loss": losses["loss"],
    }
    if "column_logits" in outputs:
        found["column_logits"] = outputs["column_logits"]
    if "aggregation_logits" in outputs:
        found["out_logits_aggregation"] = outputs["aggregation_logits"]
    if not tapas["disable_per_token_loss"]:
        found["selection_loss_per_example"] = losses["selection_loss"]
    for key in ("aggregate_mask", "expected_result", "answer_loss", "large_answer_loss_mask"):
        if key in losses:
            found[key] = losses[key]
    if "aggregation_loss" in losses:
        loss = losses["aggregation_loss"]
        computed = losses.get("aggregate_mask", tf.zeros_like(loss))
        unscaled = loss / tapas["aggregation_loss_importance"]
        found["aggregation_loss"] = loss
        found["aggregation_loss_known"] = unscaled * (1 - computed)
        found["aggregation_loss_unknown"] = unscaled * computed
    return found | by_name


def supported_config(golden, entry: dict) -> dict:
    """The original's configuration of an entry, if the project has all that it asks for."""
    for key, value in UNSUPPORTED.items():
        if entry["tapas_config"].get(key, value) != value:
            raise golden.NotSupportedError(f"{key}={entry['tapas_config'][key]}")
    if entry["tapas_config"]["num_aggregation_labels"] not in (0, 4):
        raise golden.NotSupportedError("other aggregations")
    return entry["tapas_config"]


def task_config(tapas: dict) -> TableQAConfig:
    known = {field.name for field in dataclasses.fields(TableQAConfig)}
    optional = ("answer_loss_cutoff",)
    values = {k: v for k, v in tapas.items() if k in known and (v is not None or k in optional)}
    importance = 0.0 if tapas["disable_per_token_loss"] else 1.0
    if not tapas["select_one_column"]:
        # The original's weight multiplies every token, labelled or not.
        importance *= values.pop("positive_weight")
        values["positive_weight"] = 1.0
    return TableQAConfig(**values, cell_loss_importance=importance, count_padding=True)


def load_batch(golden, entry: dict) -> dict[str, tf.Tensor]:
    """The examples of an entry, from the converted data that it names."""
    rows = []
    for source, position in entry["batch"]:
        (path,) = golden.require(f"data/{source}.json.gz")
        with gzip.open(path, "rt", encoding="utf-8") as file:
            rows.append(json.load(file)["examples"][position]["features"])
    batch = {}
    for key, feature in rows[0].items():
        if feature["kind"] != "bytes_list" and key != "table_id_hash":
            dtype = np.int32 if feature["kind"] == "int64_list" else np.float32
            batch[key] = tf.constant(np.array([row[key]["values"] for row in rows], dtype))
    return batch
