"""The original's checkpoints into our models: every variable, and every evaluator."""

import dataclasses
import json
import pathlib
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from mate_tf.config import AttentionConfig
from mate_tf.features.token_features import TokenFeatures
from mate_tf.models.classification import ClassificationConfig, SequenceClassification
from mate_tf.models.masked_lm import MaskedLanguageModel, MaskedLMConfig
from mate_tf.models.span_reading import SpanReading, SpanReadingConfig
from mate_tf.models.table_qa import TableQAConfig, TableQuestionAnswering
from mate_tf.weights.initial import load_weights

# Each model with the variables of its head.
MODELS: dict[str, tuple[type, Any, set[str]]] = {
    "table_qa": (
        TableQuestionAnswering,
        TableQAConfig(),
        {
            "column_output_bias",
            "column_output_weights",
            "output_bias",
            "output_bias_agg",
            "output_weights",
            "output_weights_agg",
        },
    ),
    "classification": (
        SequenceClassification,
        ClassificationConfig(),
        {"output_bias_cls", "output_weights_cls"},
    ),
    "spans": (
        SpanReading,
        SpanReadingConfig(num_classes=2),
        {
            "loss/span_output_bias",
            "loss/span_output_weights",
            "output_bias_cls",
            "output_weights_cls",
        },
    ),
    "boundaries": (
        SpanReading,
        SpanReadingConfig(kind="boundary"),
        {
            "loss/end_output_bias",
            "loss/end_output_weights",
            "loss/start_output_bias",
            "loss/start_output_weights",
        },
    ),
}
PRETRAINING = {
    "cls/predictions/output_bias",
    "cls/predictions/transform/LayerNorm/beta",
    "cls/predictions/transform/LayerNorm/gamma",
    "cls/predictions/transform/dense/bias",
    "cls/predictions/transform/dense/kernel",
    "cls/seq_relationship/output_bias",
    "cls/seq_relationship/output_weights",
}
# What adds variables to the encoder.
ARCHITECTURES = {
    "tapas": AttentionConfig("tapas"),
    "tableformer": AttentionConfig("tableformer"),
    "tableformer, vectors": AttentionConfig("tableformer", relation_kind="embedding"),
    "linformer": AttentionConfig("linformer", sequence_length=128, projected_length=32),
}
MATE = {
    "dense": AttentionConfig("mate", "dense", bucket_size=0, global_size=0),
    "masked": AttentionConfig("mate", "dense", bucket_size=64, global_size=64),
    "multi_view": AttentionConfig("mate", "multi_view", bucket_size=64, global_size=64),
    "multi_view, exact": AttentionConfig("mate", "multi_view", bucket_size=8, coverage=1.0),
}
# Two runs of one encoder that sum in another order, as between evaluators elsewhere.
TOLERANCE = 2e-5


def make(golden, kind, task_config, attention: AttentionConfig):
    config = golden.encoder_config({"reset_position_index_per_cell": True})
    model = kind(dataclasses.replace(config, attention=attention), task_config)
    model.build()
    return model


def checkpoint(golden, name: str) -> pathlib.Path:
    (index,) = golden.require(f"ckpt/{name}/model.ckpt.index")
    return index.with_suffix("")


def variables(golden, name: str) -> set[str]:
    (listed,) = golden.require("ckpt/variables.json")
    pairs = json.loads(listed.read_text(encoding="utf-8"))[name]
    return {variable for variable, _ in pairs} - {"global_step"}


def heads(names) -> set[str]:
    return {name for name in names if not name.startswith("bert/")}


def test_every_variable_of_fine_tuning_is_one_of_ours_and_the_other_way_round(golden):
    path, there = checkpoint(golden, "classifier_all"), variables(golden, "classifier_all")
    loaded: set[str] = set()
    for kind, task_config, of_task in MODELS.values():
        report = load_weights(
            make(golden, kind, task_config, ARCHITECTURES["tapas"]), path, require_all=True
        )
        assert heads(report.loaded) == of_task
        assert set(report.loaded) | set(report.ignored) == there
        loaded |= set(report.loaded)
    for attention in ARCHITECTURES.values():
        model = make(golden, SequenceClassification, ClassificationConfig(), attention)
        loaded |= set(load_weights(model, path, require_all=True).loaded)
    assert loaded == there


def test_every_variable_of_pre_training_is_one_of_ours_and_the_other_way_round(golden):
    path = checkpoint(golden, "pretraining")
    model = make(golden, MaskedLanguageModel, MaskedLMConfig(), ARCHITECTURES["tapas"])
    report = load_weights(model, path, require_all=True)
    assert set(report.loaded) == variables(golden, "pretraining")
    assert heads(report.loaded) == PRETRAINING
    # What follows it takes the encoder and names its own head as new.
    for kind, task_config, of_task in MODELS.values():
        report = load_weights(make(golden, kind, task_config, ARCHITECTURES["tapas"]), path)
        assert (set(report.new), set(report.ignored)) == (of_task, PRETRAINING)


@pytest.mark.parametrize("name", MODELS)
def test_a_checkpoint_gives_the_same_with_every_evaluator_that_sees_all(golden, name):
    """MATE adds no variable, and 64 tokens are no more than the window holds."""
    kind, task_config, _ = MODELS[name]
    (path,) = golden.require("encoder/s64__inputs.npz")
    with np.load(path) as arrays:
        features = TokenFeatures.from_dict({key: tf.constant(arrays[key]) for key in arrays.files})
    real = features.input_mask.numpy() > 0  # [B, S]
    outputs = {}
    for evaluator, attention in (MATE | {"tapas": ARCHITECTURES["tapas"]}).items():
        model = make(golden, kind, task_config, attention)
        load_weights(model, checkpoint(golden, "classifier_all"), require_all=True)
        outputs[evaluator] = {key: np.asarray(value) for key, value in model(features).items()}
    for evaluator in MATE:
        for key, expected in outputs["dense"].items():
            actual = outputs[evaluator][key]
            if actual.shape[:2] == real.shape:  # what padding computes is no contract
                actual, expected = actual[real], expected[real]
            golden.compare("evaluators", f"{name} {evaluator} {key}", actual, expected, TOLERANCE)
    first = next(iter(outputs["dense"]))
    assert np.abs(outputs["tapas"][first] - outputs["dense"][first]).max() > 0.1
