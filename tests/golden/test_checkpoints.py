"""The original's checkpoints into our models: every variable, and every evaluator."""

import dataclasses
import json
import re

import numpy as np
import pytest
import tensorflow as tf

from mate_tf.config import AttentionConfig
from mate_tf.tables.token_features import TokenFeatures
from mate_tf.tasks.classification import ClassificationConfig, SequenceClassification
from mate_tf.tasks.table_qa import TableQAConfig, TableQuestionAnswering
from mate_tf.weights.initial import load_weights

# Each head with the variables that only a model with it has.
MODELS = {
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
}
# What an architecture adds to the encoder; its checkpoints hold all of them.
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


def make(golden, name: str, attention: AttentionConfig):
    kind, task_config, _ = MODELS[name]
    config = golden.encoder_config({"reset_position_index_per_cell": True})
    model = kind(dataclasses.replace(config, attention=attention), task_config)
    model.build()
    return model


def checkpoint(golden):
    (index,) = golden.require("ckpt/classifier_all/model.ckpt.index")
    return index.with_suffix("")


def test_every_variable_is_one_of_ours(golden):
    """In some model or architecture; none of a model starts at random."""
    (listed,) = golden.require("ckpt/variables.json")
    loaded: set[str] = set()
    for name, (_, _, heads) in MODELS.items():
        for attention in ARCHITECTURES.values():
            report = load_weights(
                make(golden, name, attention), checkpoint(golden), require_all=True
            )
            assert {head for head in report.loaded if not head.startswith("bert/")} == heads
            assert set(report.loaded) | set(report.ignored) == variables(listed)
            loaded |= set(report.loaded)
    others = variables(listed) - loaded
    assert all(re.fullmatch(r"loss/(span|start|end)_output_(weights|bias)", x) for x in others)


def variables(listed) -> set[str]:
    pairs = json.loads(listed.read_text(encoding="utf-8"))["classifier_all"]
    return {name for name, _ in pairs} - {"global_step"}


@pytest.mark.parametrize("name", MODELS)
def test_a_checkpoint_gives_the_same_with_every_evaluator_that_sees_all(golden, name):
    """MATE adds no variable, and 64 tokens are no more than the window holds."""
    (path,) = golden.require("encoder/s64__inputs.npz")
    with np.load(path) as arrays:
        features = TokenFeatures.from_dict({key: tf.constant(arrays[key]) for key in arrays.files})
    real = features.input_mask.numpy() > 0  # [B, S]
    outputs = {}
    for evaluator, attention in (MATE | {"tapas": ARCHITECTURES["tapas"]}).items():
        model = make(golden, name, attention)
        load_weights(model, checkpoint(golden), require_all=True)
        outputs[evaluator] = {key: np.asarray(value) for key, value in model(features).items()}
    for evaluator in MATE:
        for key, expected in outputs["dense"].items():
            actual = outputs[evaluator][key]
            if actual.shape[:2] == real.shape:  # what padding computes is no contract
                actual, expected = actual[real], expected[real]
            golden.compare("evaluators", f"{name} {evaluator} {key}", actual, expected, TOLERANCE)
    first = next(iter(outputs["dense"]))
    assert np.abs(outputs["tapas"][first] - outputs["dense"][first]).max() > 0.1
