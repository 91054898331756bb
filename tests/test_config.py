import dataclasses
import json

import pytest

from mate_tf.config import AttentionConfig, EncoderConfig
from mate_tf.dataclass_json import apply_overrides
from tests.small import bert_config, cases

TABLEFORMER = "attention.architecture=mate_tableformer"
TABLE_ETC = "attention.architecture=table_etc attention"


@cases(
    "values, message",
    ("attention.architecture=bert", "architecture in .*got 'bert'"),
    ("attention.evaluator=sparse", "evaluator of None or in .*got 'sparse'"),
    ("attention.coverage=0.9", "coverage of None, or of 1.0 .*got 0.9"),
    (
        "attention.evaluator=dense attention.coverage=1.0",
        "'multi_view' and without original_b.*1.0",
    ),
    ("attention.original_bucketing=True attention.coverage=1.0", "'multi_view' and without o.*1.0"),
    ("attention.architecture=linformer", "sequence_length and .*got 0 and 256"),
    (f"{TABLEFORMER} attention.relation_kind=vector", "relation_kind.*'vector'"),
    (f"{TABLEFORMER} attention.disabled_relations=3,0,13", r"1 to 12, got \[0, 13\]"),
    ("attention.bucket_size=-1", "bucket_size of at least 1"),
    (f"{TABLE_ETC}.evaluator=multi_view", r"in \('dense',\) with .* 'table_etc', got 'multi_view'"),
    (f"{TABLE_ETC}.num_global_tokens=0", "an even num_global_tokens of at least 2.* got 0"),
    (f"{TABLE_ETC}.num_global_tokens=255", "an even num_global_tokens of at least 2.* got 255"),
    (f"{TABLE_ETC}.num_global_tokens=-2", "an even num_global_tokens of at least 2.* got -2"),
    (f"{TABLE_ETC}.local_radius=0", "local_radius of at least 1, got 0"),
    (f"{TABLE_ETC}.max_relative_distance=-1", "max_relative_distance of at least 0, got -1"),
    ("num_heads=7", "multiple of num_heads, got 768 and 7"),
    ("position=relative", "position in .*got 'relative'"),
    ("activation=relu", "activation in .*got 'relu'"),
    ("type_vocab_sizes=2", "7 type_vocab_sizes, got 1"),
    ("disabled_features=rows", "got \\['rows'\\]"),
    ("num_layers=0", "num_layers of at least 1, got 0"),
    ("softmax_temperature=0", "softmax_temperature above 0, got 0"),
)
def test_a_value_that_cannot_work_is_refused(values, message):
    with pytest.raises(ValueError, match=message):
        apply_overrides(EncoderConfig(), [f"--config.{value}" for value in values.split()])


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


def test_an_override_of_another_kind_is_refused_and_kinds_know_whether_they_take_long_inputs():
    message = r"unknown key config\.attention\.local_radius; the known keys are .*bucket_size"
    with pytest.raises(ValueError, match=message):
        apply_overrides(EncoderConfig(), ["--config.attention.local_radius=8"])
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
