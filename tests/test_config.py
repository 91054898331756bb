"""Configurations: limits, and JSON in and out."""

import dataclasses
import json

import pytest

from mate_tf.config import AttentionConfig, EncoderConfig


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: AttentionConfig(architecture="bert"), "architecture in .*got 'bert'"),
        (lambda: AttentionConfig(evaluator="sparse"), "evaluator in .*got 'sparse'"),
        (
            lambda: AttentionConfig("sat", "multi_view"),
            "'mate_tableformer'.*evaluator 'multi_view'",
        ),
        (lambda: AttentionConfig(num_neighbours=0), "num_neighbours of at least 1, got 0"),
        (lambda: AttentionConfig(coverage=0.9), "coverage of None, or of 1.0 .*got 0.9"),
        (lambda: AttentionConfig("tapas", coverage=1.0), "with evaluator 'multi_view', got 1.0"),
        (
            lambda: AttentionConfig(original_bucketing=True, num_neighbours=2),
            "one neighbour and no coverage, got num_neighbours 2",
        ),
        (lambda: AttentionConfig("linformer"), "sequence_length and .*got 0 and 256"),
        (lambda: AttentionConfig(relation_kind="vector"), "relation_kind in .*got 'vector'"),
        (lambda: AttentionConfig(disabled_relations=(3, 0, 13)), r"1 to 12, got \[0, 13\]"),
        (lambda: AttentionConfig(bucket_size=-1), "bucket_size of at least 1"),
        (
            lambda: AttentionConfig("table_etc", "multi_view"),
            "evaluator 'multi_view', got 'table_etc'.*'dense' or None",
        ),
        (
            lambda: AttentionConfig("table_etc", num_global_tokens=0),
            "an even num_global_tokens of at least 2.* got 0",
        ),
        (
            lambda: AttentionConfig("table_etc", num_global_tokens=255),
            "an even num_global_tokens of at least 2.* got 255",
        ),
        (
            lambda: AttentionConfig("table_etc", num_global_tokens=-2),
            "an even num_global_tokens of at least 2.* got -2",
        ),
        (lambda: AttentionConfig("table_etc", local_radius=0), "local_radius of at least 1, got 0"),
        (
            lambda: AttentionConfig("table_etc", max_relative_distance=-1),
            "max_relative_distance of at least 0, got -1",
        ),
        (lambda: EncoderConfig(num_heads=7), "multiple of num_heads, got 768 and 7"),
        (lambda: EncoderConfig(position="relative"), "position in .*got 'relative'"),
        (lambda: EncoderConfig(activation="relu"), "activation in .*got 'relu'"),
        (lambda: EncoderConfig(type_vocab_sizes=(2,)), "7 type_vocab_sizes, got 1"),
        (lambda: EncoderConfig(disabled_features=("rows",)), "got \\['rows'\\]"),
        (lambda: EncoderConfig(num_layers=0), "num_layers of at least 1, got 0"),
        (lambda: EncoderConfig(softmax_temperature=0), "softmax_temperature above 0, got 0"),
        (
            lambda: EncoderConfig.from_dict({"layers": 3}),
            "unknown key encoder.layers; the known keys are vocab_size, hidden_size, num_layers",
        ),
        (
            lambda: EncoderConfig.from_dict({"attention": {"scale_relations": True}}),
            "expected False for encoder.attention.scale_relations, an option of former versions",
        ),
    ],
)
def test_a_value_that_cannot_work_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_dictionary_round_trip():
    config = EncoderConfig(
        disabled_features=("row_ids",),
        attention=AttentionConfig("tableformer", disabled_relations=(2, 4, 6)),
    )
    assert EncoderConfig.from_dict(json.loads(json.dumps(config.to_dict()))) == config


def test_options_of_former_versions_are_read_where_they_were_off():
    values = EncoderConfig().to_dict()
    values["attention"] |= AttentionConfig.FORMER_FIELDS
    assert EncoderConfig.from_dict(values) == EncoderConfig()


def test_one_field_chooses_the_architecture():
    assert AttentionConfig("mate").is_multi_view
    assert AttentionConfig("mate_tableformer").is_multi_view
    assert not AttentionConfig("mate", "dense").is_multi_view
    assert not AttentionConfig("tapas").is_multi_view
    assert not AttentionConfig("tableformer").is_multi_view
    assert not AttentionConfig("table_etc").is_multi_view


@pytest.mark.parametrize(
    "attention, linear",
    [
        (AttentionConfig("mate"), True),
        (AttentionConfig("mate", "dense"), False),
        (AttentionConfig("tapas"), False),
        (AttentionConfig("table_etc"), True),
        (AttentionConfig("table_etc", "dense"), False),
    ],
)
def test_knows_whether_it_takes_long_inputs(attention, linear):
    assert attention.is_linear == linear


@pytest.mark.parametrize(
    ("position", "attention", "fixed", "longest"),
    [
        ("per_cell", AttentionConfig("mate"), None, None),
        ("absolute", AttentionConfig("mate"), None, 512),
        ("none", AttentionConfig("linformer", sequence_length=300), 300, 300),
        ("absolute", AttentionConfig("linformer", sequence_length=300), 300, 300),
        ("absolute", AttentionConfig("linformer", sequence_length=2048), 2048, 512),
        # A length that was left over from a Linformer.
        ("per_cell", AttentionConfig("tapas", sequence_length=300), None, None),
    ],
)
def test_what_limits_the_length_of_a_sequence(position, attention, fixed, longest):
    config = EncoderConfig(position=position, attention=attention)
    assert (config.fixed_length, config.longest_sequence) == (fixed, longest)


def test_bert_config_round_trip(tmp_path):
    config = dataclasses.replace(EncoderConfig(), num_layers=3, softmax_temperature=0.5)
    path = tmp_path / "bert_config.json"
    path.write_text(json.dumps(config.to_bert_config()))
    assert EncoderConfig.from_bert_config(path) == config


def test_a_file_that_is_no_bert_config_is_named(tmp_path):
    path = tmp_path / "bert_config.json"
    path.write_text("{")
    with pytest.raises(ValueError, match=r"expected JSON in .*bert_config.json"):
        EncoderConfig.from_bert_config(path)
    path.write_text("{}")
    with pytest.raises(ValueError, match=r"BERT configuration in .*missing"):
        EncoderConfig.from_bert_config(path)
    sizes = EncoderConfig().to_bert_config()
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
