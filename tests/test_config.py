import dataclasses
import json
import pathlib
from typing import Any

import pytest

from experiments.synthesis.questions import QuestionsConfig
from experiments.synthesis.statements import StatementsConfig
from mate_tf.config import AttentionConfig, EncoderConfig
from mate_tf.dataclass_json import apply_overrides
from mate_tf.features.config import FeatureConfig, MaskedLmConfig, PretrainingConfig
from mate_tf.models.classification import ClassificationConfig
from mate_tf.models.span_reading import SpanReadingConfig
from mate_tf.models.table_qa import TableQAConfig
from mate_tf.training.config import MaskedLMTrainingConfig, TableQATrainingConfig
from tests.small import bert_config, cases
from tests.test_dataclass_json import BASE

CONFIGS: dict[str, Any] = {
    "sample": BASE,
    "encoder": EncoderConfig(),
    "table_qa": TableQAConfig(),
    "classification": ClassificationConfig(),
    "span_reading": SpanReadingConfig(),
    "training": TableQATrainingConfig(
        num_steps=10, learning_rate=1e-3, encoder=EncoderConfig(), length_buckets=(128, 256)
    ),
    "masked_words": MaskedLMTrainingConfig(
        num_steps=1, learning_rate=1e-3, encoder=EncoderConfig()
    ),
    "pretraining": PretrainingConfig(MaskedLmConfig(max_seq_length=20)),
    "features": FeatureConfig(),
    "statements": StatementsConfig(max_seq_length=600, max_statement_tokens=200),
    "questions": QuestionsConfig(),
}
# Of each line a config, values of its fields, and what is said of them.
REFUSED = pathlib.Path(__file__).with_name("refused.txt").read_text(encoding="utf-8").splitlines()


@pytest.mark.parametrize("line", REFUSED)
def test_a_value_that_cannot_work_is_refused(line):
    values, message = line.split(": ", 1)
    config, *values = values.split()
    with pytest.raises(ValueError, match=message):
        apply_overrides(CONFIGS[config], [f"--config.{value}" for value in values])
    with pytest.raises(ValueError, match="class_names that tell classes apart"):
        ClassificationConfig(class_names=("a", ""))
    with pytest.raises(ValueError, match=r"expected --config.key=value, got learning_rate=1"):
        apply_overrides(BASE, ["learning_rate=1"])
    with pytest.raises(ValueError, match="kind 'span' or 'boundary', got 'none'"):
        SpanReadingConfig("none")


@cases(
    "values, message",
    (
        {"layers": 3},
        "unknown key encoder.layers; the known keys are vocab_size, hidden_size, num_l",
    ),
    ({"attention": {"scale_relations": True}}, "False for .*scale_relations, an option of former"),
)
def test_a_key_that_there_is_not_is_refused(values, message):
    with pytest.raises(ValueError, match=message):
        EncoderConfig.from_dict(values)


def test_dictionaries_go_round_and_bert_configs(tmp_path):
    config = EncoderConfig(
        disabled_features=("row_ids",),
        attention=AttentionConfig("tableformer", disabled_relations=(2, 4, 6)),
    )
    assert EncoderConfig.from_dict(json.loads(json.dumps(config.to_dict()))) == config
    config = dataclasses.replace(EncoderConfig(), num_layers=3, softmax_temperature=0.5)
    path = tmp_path / "bert_config.json"
    path.write_text(json.dumps(bert_config(config)))
    assert EncoderConfig.from_bert_config(path) == config


LINFORMER = AttentionConfig("linformer", sequence_length=9)


@cases(
    "overrides, expected",
    (["bucket_size=8"], AttentionConfig(bucket_size=8, coverage=1.0)),
    (["architecture=sat"], AttentionConfig("sat")),
    (
        ["architecture=mate_tableformer", "relation_kind=embedding"],
        AttentionConfig("mate_tableformer", coverage=1.0, relation_kind="embedding"),
    ),
    (["architecture=linformer", "sequence_length=9"], LINFORMER),
)
def test_overrides_change_a_kind_or_choose_another_with_the_options_of_both(overrides, expected):
    config = EncoderConfig(attention=AttentionConfig(coverage=1.0))
    changed = apply_overrides(config, [f"--config.attention.{one}" for one in overrides])
    assert changed.attention == expected


def test_kinds_know_whether_they_take_long_inputs():
    for kind in (["mate"], ["table_etc"]):
        assert AttentionConfig(*kind).is_linear and not AttentionConfig(*kind, "dense").is_linear
    assert not AttentionConfig("tapas").is_linear


@cases(
    "position, attention, fixed, longest",
    ("per_cell", AttentionConfig("mate"), None, None),
    ("absolute", AttentionConfig("mate"), None, 512),
    ("none", LINFORMER, 9, 9),
    ("absolute", LINFORMER, 9, 9),
    ("absolute", AttentionConfig("linformer", sequence_length=2048), 2048, 512),
)
def test_what_limits_the_length_of_a_sequence(position, attention, fixed, longest):
    config = EncoderConfig(position=position, attention=attention)
    assert (config.fixed_length, config.longest_sequence) == (fixed, longest)


def test_a_file_that_is_no_bert_config_is_named(tmp_path):
    path = tmp_path / "bert_config.json"
    path.write_text("{")
    with pytest.raises(ValueError, match=r"expected JSON in .*bert_config.json"):
        EncoderConfig.from_bert_config(path)
    path.write_text("{}")
    with pytest.raises(ValueError, match=r"BERT configuration in .*missing"):
        EncoderConfig.from_bert_config(path)
    sizes = bert_config(EncoderConfig())
    with pytest.raises(ValueError, match=r"hidden_act 'gelu' in .*, got 'relu'"):
        EncoderConfig.from_bert_config(sizes | {"hidden_act": "relu"})
    with pytest.raises(ValueError, match=r"in .*, missing \['hidden_size'\]"):
        EncoderConfig.from_bert_config(sizes | {"hidden_size": None})
    nulls = dict.fromkeys(("hidden_dropout_prob", "initializer_range", "type_vocab_size"))
    assert EncoderConfig.from_bert_config(sizes | nulls) == EncoderConfig()
    for value in "8", 8.0, [8]:
        path.write_text(json.dumps(sizes | {"hidden_size": value}))
        with pytest.raises(ValueError, match=r"expected int for hidden_size in .*_config\.json, "):
            EncoderConfig.from_bert_config(path)
