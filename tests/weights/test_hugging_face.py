"""Hugging Face folders: what they say of a model, shards, and what cannot be read."""

import dataclasses
import json
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from mate_tf.models.classification import ClassificationConfig
from mate_tf.models.masked_lm import MaskedLanguageModel, MaskedLMConfig
from mate_tf.models.table_qa import TableQAConfig
from mate_tf.weights.hugging_face import (
    hugging_face_config,
    hugging_face_task_config,
    load_hugging_face,
)
from tests.weights.small_models import (
    BERT_CONFIG,
    classifier,
    encoder_config,
    table_qa,
    values_of,
    write_hugging_face,
)

# The folders of google/tapas-*-finetuned-wtq, -wikisql-supervised, -sqa and -tabfact; null is how
# transformers writes what a task does not use.
WTQ = {
    "architectures": ["TapasForQuestionAnswering"],
    "aggregation_labels": {"0": "NONE", "1": "SUM", "2": "AVERAGE", "3": "COUNT"},
    "aggregation_loss_weight": 1.0,
    "aggregation_temperature": 1.0,
    "allow_empty_column_selection": False,
    "answer_loss_cutoff": 0.664694,
    "answer_loss_importance": 1.0,
    "average_approximation_function": "ratio",
    "average_logits_per_cell": False,
    "cell_selection_preference": 0.207951,
    "disable_per_token_loss": False,
    "huber_loss_delta": 0.121194,
    "init_cell_selection_weights_to_zero": True,
    "max_num_columns": 32,
    "max_num_rows": 64,
    "no_aggregation_label_index": 0,
    "num_aggregation_labels": 4,
    "positive_label_weight": 10.0,
    "select_one_column": True,
    "temperature": 0.0352513,
    "use_answer_as_supervision": True,
    "use_gumbel_for_aggregation": False,
    "use_gumbel_for_cells": False,
    "use_normalized_answer_loss": False,
}
SUPERVISED = WTQ | {
    "allow_empty_column_selection": True,
    "answer_loss_cutoff": 36.4519,
    "cell_selection_preference": 0.903421,
    "huber_loss_delta": 222.088,
    "temperature": 0.763141,
    "use_answer_as_supervision": False,
}
NOTHING = {
    "answer_loss_cutoff": None,
    "cell_selection_preference": None,
    "huber_loss_delta": None,
    "use_answer_as_supervision": None,
}
SQA = WTQ | NOTHING | {"num_aggregation_labels": 0, "temperature": 1.0}
del SQA["aggregation_labels"]
TABFACT = SQA | {"architectures": ["TapasForSequenceClassification"]}
LIMITS: dict[str, Any] = dict(max_num_rows=64, max_num_columns=32, count_padding=True)
OF_WTQ = TableQAConfig(
    answer_loss_cutoff=0.664694,
    cell_select_pref=0.207951,
    huber_loss_delta=0.121194,
    init_cell_selection_weights_to_zero=True,
    temperature=0.0352513,
    **LIMITS,
)


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        (WTQ, OF_WTQ),
        (
            SUPERVISED,
            dataclasses.replace(
                OF_WTQ,
                allow_empty_column_selection=True,
                answer_loss_cutoff=36.4519,
                cell_select_pref=0.903421,
                huber_loss_delta=222.088,
                temperature=0.763141,
                use_answer_as_supervision=False,
            ),
        ),
        (
            SQA,
            TableQAConfig(
                num_aggregation_labels=0,
                use_answer_as_supervision=False,
                answer_loss_cutoff=None,
                init_cell_selection_weights_to_zero=True,
                **LIMITS,
            ),
        ),
        (
            WTQ
            | {
                "disable_per_token_loss": True,
                "aggregation_temperature": 0.5,
                "use_gumbel_for_aggregation": True,
            },
            dataclasses.replace(
                OF_WTQ, agg_temperature=0.5, cell_loss_importance=0.0, use_gumbel_for_agg=True
            ),
        ),
        (
            {"architectures": ["TapasForQuestionAnswering"], "num_aggregation_labels": 4},
            TableQAConfig(use_answer_as_supervision=False, answer_loss_cutoff=None, **LIMITS),
        ),
        (TABFACT, ClassificationConfig(num_classes=2)),
        (TABFACT | {"id2label": {"0": "no", "1": "yes", "2": "?"}}, ClassificationConfig(3)),
        ({"architectures": ["BertForSequenceClassification"]}, ClassificationConfig()),
        ({"architectures": ["TapasForMaskedLM"]}, MaskedLMConfig(next_sentence=False)),
        ({"architectures": ["BertForPreTraining"]}, MaskedLMConfig()),
    ],
)
def test_a_folder_describes_its_head(tmp_path, config, expected):
    (tmp_path / "config.json").write_text(
        json.dumps(BERT_CONFIG | {"model_type": "tapas"} | config)
    )
    assert hugging_face_task_config(tmp_path) == expected


@pytest.mark.parametrize(
    "config",
    [
        {},
        {"architectures": None},
        {"model_type": "tapas", "architectures": ["TapasModel"]},
        {"architectures": ["BertForQuestionAnswering"]},  # of spans of a text
    ],
)
def test_a_folder_without_a_head_of_ours_describes_none(tmp_path, config):
    (tmp_path / "config.json").write_text(json.dumps(BERT_CONFIG | config))
    assert hugging_face_task_config(tmp_path) is None


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (
            {"aggregation_labels": {"0": "NONE", "1": "COUNT", "2": "SUM", "3": "AVERAGE"}},
            r"expected aggregation_labels \['NONE', 'SUM'.* in .*config\.json, got \['NONE', 'COU",
        ),
        ({"num_aggregation_labels": 3}, "num_aggregation_labels of 0 or 4, got 3"),
        ({"temperature": "1"}, r"expected float for .*config\.json\.temperature, got '1'"),
        ({"model_type": "tapex"}, r"model_type 'bert' or 'tapas' in .*config\.json, got 'tapex'"),
    ],
)
def test_a_head_that_there_is_not_is_refused(tmp_path, config, message):
    values = BERT_CONFIG | {"model_type": "tapas"} | WTQ | config
    (tmp_path / "config.json").write_text(json.dumps(values))
    with pytest.raises(ValueError, match=message):
        hugging_face_task_config(tmp_path)


@pytest.mark.parametrize(
    ("config", "position"),
    [({}, "per_cell"), ({"reset_position_index_per_cell": False}, "absolute")],
)
def test_positions_are_those_of_the_revision(tmp_path, config, position):
    values = BERT_CONFIG | {"model_type": "tapas"} | config
    (tmp_path / "config.json").write_text(json.dumps(values))
    assert hugging_face_config(tmp_path).position == position


def test_sizes_of_another_type_are_named_with_their_file(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps(BERT_CONFIG | {"hidden_size": "8"}))
    with pytest.raises(
        ValueError, match=r"expected int for hidden_size in .*config\.json, got '8'"
    ):
        hugging_face_config(tmp_path)


def divide(folder) -> dict[str, str]:
    """Divides model.safetensors into two shards, and returns where each tensor went."""
    tensors = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    names = [f"model-{index}-of-2.safetensors" for index in (1, 2)]
    places = {tensor: names[index % 2] for index, tensor in enumerate(sorted(tensors))}
    for name in names:
        there = {tensor: tensors[tensor] for tensor in tensors if places[tensor] == name}
        save_file(there, folder / name)
    index = {"metadata": {}, "weight_map": places}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    return places


def test_shards_are_one_model(tmp_path):
    values = values_of(table_qa())
    write_hugging_face(tmp_path, values)
    divide(tmp_path)
    model = table_qa(seed=1)
    report = load_hugging_face(model, tmp_path, require_all=True)
    assert report.source == str(tmp_path / "model.safetensors.index.json")
    for name, value in values_of(model).items():
        np.testing.assert_array_equal(value, values[name])


def test_a_missing_shard_and_a_damaged_index_are_named(tmp_path):
    write_hugging_face(tmp_path, values_of(classifier()))
    divide(tmp_path)
    (tmp_path / "model-2-of-2.safetensors").unlink()
    with pytest.raises(FileNotFoundError, match=r"expected model-2-of-2\.safetensors in "):
        load_hugging_face(classifier(), tmp_path)
    for content in ("{", "[]", '{"weight_map": 3}', '{"weight_map": {"a": 3}}'):
        (tmp_path / "model.safetensors.index.json").write_text(content)
        with pytest.raises(ValueError, match=r"expected a weight_map in .*index\.json"):
            load_hugging_face(classifier(), tmp_path)


def test_pickles_are_not_read_and_the_way_out_is_said(tmp_path):
    write_hugging_face(tmp_path, values_of(classifier()))
    (tmp_path / "model.safetensors").rename(tmp_path / "pytorch_model.bin")
    message = r"model\.safetensors in .*, which has pytorch_model\.bin; .*refs/pr/.*save_pretrained"
    with pytest.raises(FileNotFoundError, match=message):
        load_hugging_face(classifier(), tmp_path)


def test_another_number_of_attention_heads_is_refused_though_every_shape_fits(tmp_path):
    write_hugging_face(tmp_path, values_of(classifier()), num_attention_heads=4)
    with pytest.raises(ValueError, match=r"expected 2 attention heads .*, got 4 in .*config\.json"):
        load_hugging_face(classifier(), tmp_path)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_weights_of_half_precision_become_float32(tmp_path, dtype):
    values = values_of(classifier())
    write_hugging_face(tmp_path, values)
    tensors = load_file(tmp_path / "model.safetensors")
    halved = {name: tensor.astype(np.dtype(dtype)) for name, tensor in tensors.items()}
    save_file(halved, tmp_path / "model.safetensors")
    model = classifier(seed=1)
    load_hugging_face(model, tmp_path, require_all=True)
    for name, value in values_of(model).items():
        expected = values[name].astype(np.dtype(dtype)).astype(np.float32)
        np.testing.assert_array_equal(value, expected)


@pytest.mark.parametrize(("shift", "message"), [(0.0, None), (1.0, "a decoder of its own")])
def test_a_decoder_of_words_has_to_be_their_embeddings(tmp_path, shift, message):
    values = values_of(classifier())
    write_hugging_face(tmp_path, values)
    tensors = load_file(tmp_path / "model.safetensors")
    decoder = tensors["tapas.embeddings.word_embeddings.weight"] + np.float32(shift)
    bias = np.arange(len(decoder), dtype=np.float32)
    tensors |= {"cls.predictions.decoder.weight": decoder, "cls.predictions.decoder.bias": bias}
    save_file(tensors, tmp_path / "model.safetensors")
    model = MaskedLanguageModel(encoder_config(), MaskedLMConfig(next_sentence=False))
    model.build()
    if message:
        with pytest.raises(ValueError, match=message):
            load_hugging_face(model, tmp_path)
    else:
        load_hugging_face(model, tmp_path)
        np.testing.assert_array_equal(model.output_bias, bias)
    # To what predicts no words it is one more head.
    report = load_hugging_face(classifier(), tmp_path)
    assert report.ignored == ("cls/predictions/decoder/weight", "cls/predictions/output_bias")
