"""The original's checkpoints into our models: every variable of theirs is one of ours."""

import dataclasses
import json
import pathlib
from typing import Any

from mate_tf.config import AttentionConfig
from mate_tf.models.classification import SequenceClassification
from mate_tf.models.masked_lm import MaskedLanguageModel
from mate_tf.models.span_reading import SpanReading
from mate_tf.models.table_qa import TableQuestionAnswering
from mate_tf.task_configs import (
    ClassificationConfig,
    MaskedLMConfig,
    SpanReadingConfig,
    TableQAConfig,
)
from mate_tf.weights.initial import load_weights, variables_by_name
from tests.golden.comparison import GOLDEN

MODELS: list[tuple[type, Any]] = [
    (TableQuestionAnswering, TableQAConfig()),
    (SequenceClassification, ClassificationConfig()),
    (SpanReading, SpanReadingConfig(num_classes=2)),
    (SpanReading, SpanReadingConfig(kind="boundary")),
]
TAPAS = AttentionConfig("tapas")
# What adds variables to the encoder, and MATE, which adds none.
OTHERS = [
    AttentionConfig("tableformer"),
    AttentionConfig("tableformer", relation_kind="embedding"),
    AttentionConfig("linformer", sequence_length=128, projected_length=32),
    AttentionConfig("mate", bucket_size=64, global_size=64),
    AttentionConfig("mate", bucket_size=8, coverage=1.0),
]


def make(kind, task_config, attention: AttentionConfig = TAPAS):
    config = GOLDEN.encoder_config({"reset_position_index_per_cell": True})
    model = kind(dataclasses.replace(config, attention=attention), task_config)
    model.build()
    return model


def checkpoint(name: str) -> tuple[pathlib.Path, set[str]]:
    """The prefix of a checkpoint and its variables, but for the number of steps."""
    index, listed = GOLDEN.require(f"ckpt/{name}/model.ckpt.index", "ckpt/variables.json")
    pairs = json.loads(listed.read_text(encoding="utf-8"))[name]
    return index.with_suffix(""), {variable for variable, _ in pairs} - {"global_step"}


def heads(names) -> set[str]:
    return {name for name in names if not name.startswith("bert/")}


def test_every_variable_is_one_of_ours_and_the_other_way_round():
    path, there = checkpoint("classifier_all")
    loaded: set[str] = set()
    for kind, task_config in MODELS:
        report = load_weights(make(kind, task_config), path, require_all=True)
        assert set(report.loaded) | set(report.ignored) == there
        loaded |= set(report.loaded)
    for attention in OTHERS:
        model = make(SequenceClassification, ClassificationConfig(), attention)
        loaded |= set(load_weights(model, path, require_all=True).loaded)
    assert loaded == there
    path, there = checkpoint("pretraining")
    model = make(MaskedLanguageModel, MaskedLMConfig())
    report = load_weights(model, path, require_all=True)
    assert set(report.loaded) == there
    # What follows it takes the encoder and names its own head as new.
    for kind, task_config in MODELS:
        model = make(kind, task_config)
        report = load_weights(model, path)
        assert set(report.new) == heads(variables_by_name(model))
        assert set(report.ignored) == heads(there)
