"""Our models with the weights of transformers' TAPAS models: the same logits.

Shapes: B batch, S sequence.
"""

import importlib.util
import json
import pathlib
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from mate_tf.config import TYPE_FEATURES, AttentionConfig
from mate_tf.features.token_features import TokenFeatures
from mate_tf.models import make_model
from mate_tf.weights.initial import (
    hugging_face_config,
    hugging_face_task_config,
    load_hugging_face,
)
from tests.layers.small_layers import QUESTION, cells, features_of
from tests.small import run_python
from tests.weights import transformers_oracle

MISSING = [name for name in ("torch", "transformers") if importlib.util.find_spec(name) is None]
TOLERANCE = 1e-4
LOG_ZERO = -10000.0
DENSE = AttentionConfig("tapas")
SIZES = {
    "vocab_size": 90,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 48,
    "max_position_embeddings": 64,
    "initializer_range": 0.2,  # at 0.02 the logits would all be small
}
QA = "TapasForQuestionAnswering"
WTQ = {
    "num_aggregation_labels": 4,
    "use_answer_as_supervision": True,
    "answer_loss_cutoff": 0.664694,
    "cell_selection_preference": 0.207951,
    "huber_loss_delta": 0.121194,
    "init_cell_selection_weights_to_zero": False,
    "select_one_column": True,
    "temperature": 0.0352513,
    "aggregation_labels": {0: "NONE", 1: "SUM", 2: "AVERAGE", 3: "COUNT"},
    "no_aggregation_label_index": 0,
}
CLASSES = "TapasForSequenceClassification"
# The class, and the config beside SIZES.
CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "sqa": (QA, {}),
    "sqa without reset": (QA, {"reset_position_index_per_cell": False}),
    "wtq": (QA, WTQ),
    "wtq, no column allowed": (QA, WTQ | {"allow_empty_column_selection": True}),
    "few rows and columns": (QA, {"max_num_rows": 3, "max_num_columns": 3}),
    "wikisql": (QA, {"select_one_column": False, "temperature": 0.107515}),
    "tabfact": (CLASSES, {}),
    "three classes": (CLASSES, {"num_labels": 3}),
    "masked words": ("TapasForMaskedLM", {}),
}
SHARDED, NEEDS_LABELS = "wtq", "wikisql"  # transformers gives these logits for labels alone
POOLER = ("bert/pooler/dense/kernel", "bert/pooler/dense/bias")


@pytest.fixture(scope="module")
def features() -> TokenFeatures:
    """Three tables of different sizes, with all features, padded to one length. int32 [3, S]."""
    random = np.random.default_rng(0)
    sizes = [(3, 2), (5, 4), (1, 1)]  # rows with the header, columns
    tokens = [
        [QUESTION] * 5
        + [token for cell in cells(*size) for token in [cell] * random.integers(1, 4)]
        for size in sizes
    ]
    features = features_of(tokens, 60)

    def drawn(low, high, where):
        return tf.constant(np.where(where, random.integers(low, high, where.shape), 0), tf.int32)

    real, in_table = features.input_mask.numpy() > 0, features.segment_ids.numpy() > 0
    return features._replace(
        input_ids=drawn(1, 90, real),
        numeric_relations=drawn(0, 8, real),
        prev_label_ids=drawn(0, 2, in_table),
        column_ranks=drawn(0, 5, in_table),
        inv_column_ranks=drawn(0, 5, in_table),
    )


@pytest.fixture(scope="module")
def saved(features, tmp_path_factory) -> pathlib.Path:
    """A folder with a saved model of transformers for each case."""
    if MISSING:
        pytest.skip(f"not installed: {', '.join(MISSING)} (the extra test-transformers)")
    folder = tmp_path_factory.mktemp("transformers")
    types = [getattr(features, name) for name in TYPE_FEATURES]
    inputs = {
        "input_ids": features.input_ids.numpy().astype(np.int64),
        "attention_mask": features.input_mask.numpy().astype(np.int64),
        "token_type_ids": np.stack(types, axis=-1).astype(np.int64),  # [B, S, 7]
        "labels": np.zeros(features.input_ids.shape, np.float32),
    }
    np.savez(folder / "inputs.npz", **inputs)
    cases = {
        name: {
            "class": kind,
            "config": SIZES | config,
            "needs_labels": name == NEEDS_LABELS,
            "max_shard_size": "30KB" if name == SHARDED else "1GB",
        }
        for name, (kind, config) in CASES.items()
    }
    (folder / "cases.json").write_text(json.dumps(cases))
    done = run_python(transformers_oracle.__file__, str(folder))
    assert done.returncode == 0, done.stderr
    return folder


@pytest.mark.medium
@pytest.mark.parametrize("name", CASES)
def test_logits_equal_those_of_transformers(saved, features, name):
    folder = saved / name
    task_config = hugging_face_task_config(folder)
    model = make_model(hugging_face_config(folder, attention=DENSE), task_config)
    report = load_hugging_face(model, folder, require_all=True)
    one_column = getattr(task_config, "select_one_column", True)
    unused = () if one_column else ("column_output_bias", "column_output_weights")
    pooler = () if "TapasForMaskedLM" not in CASES[name] else POOLER
    assert (report.new, report.ignored) == (pooler, unused)
    assert ("index.json" in report.source) == (name == SHARDED)

    outputs = model(features)
    with np.load(folder / "outputs.npz") as arrays:
        expected = dict(arrays)
    real = features.input_mask.numpy() > 0  # what padding gets is no contract
    if "class_logits" in outputs:
        pairs = [(outputs["class_logits"], expected["logits"])]
    else:
        logits = outputs.get("selection_logits", outputs.get("masked_lm_logits"))
        pairs = [(logits.numpy()[real], expected["logits"][real])]
    if "aggregation_logits" in outputs:
        pairs.append((outputs["aggregation_logits"], expected["logits_aggregation"]))
    for actual, wanted in pairs:
        actual = np.asarray(actual)
        possible = wanted > LOG_ZERO / 2
        np.testing.assert_array_equal(actual > LOG_ZERO / 2, possible)
        assert np.ptp(wanted[possible]) > 0.1
        np.testing.assert_allclose(actual[possible], wanted[possible], rtol=0, atol=TOLERANCE)
