"""Hugging Face folders: what they say of a model, shards, and what cannot be read."""

import dataclasses
import json
import pathlib
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from mate_tf.models import make_model
from mate_tf.task_configs import ClassificationConfig, MaskedLMConfig, TableQAConfig
from mate_tf.weights.initial import (
    hugging_face_config,
    hugging_face_task_config,
    load_hugging_face,
)
from mate_tf.weights.run import FILE
from tests.small import cases
from tests.weights.small_models import (
    BERT_CONFIG,
    assert_values,
    classifier,
    classifier_values,
    encoder_config,
    table_qa,
    table_qa_values,
    write_hugging_face,
)

# The folders of google/tapas-*-finetuned-wtq, -sqa and -tabfact; null is how transformers writes
# what a task does not use.
WTQ: dict[str, Any] = json.loads(pathlib.Path(__file__).with_name("tapas_wtq.txt").read_text())
GIVEN: dict[str, Any] = {"allow_empty_column_selection": True, "use_answer_as_supervision": False}
NOTHING = dict.fromkeys(
    ("answer_loss_cutoff", "cell_selection_preference", "huber_loss_delta")
    + ("use_answer_as_supervision",)
)
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
OF_SQA = TableQAConfig(
    operators=(),
    use_answer_as_supervision=False,
    answer_loss_cutoff=None,
    init_cell_selection_weights_to_zero=True,
    **LIMITS,
)
TAPAS = {"model_type": "tapas"}


@pytest.fixture
def described(tmp_path):
    """Describes a model in a folder, which it returns."""

    def describe(config):
        (tmp_path / "config.json").write_text(json.dumps(BERT_CONFIG | config))
        return tmp_path

    return describe


@pytest.fixture
def folder(tmp_path):
    """A folder of a classifier."""
    write_hugging_face(tmp_path, classifier_values())
    return tmp_path


SHORT = {"architectures": ["TapasForQuestionAnswering"], "num_aggregation_labels": 4}
OF_SHORT = TableQAConfig(use_answer_as_supervision=False, answer_loss_cutoff=None, **LIMITS)


@cases(
    "config, expected",
    *((WTQ, OF_WTQ), (SQA, OF_SQA), (SHORT, OF_SHORT), (TABFACT, ClassificationConfig(2))),
    (WTQ | GIVEN, dataclasses.replace(OF_WTQ, **GIVEN)),
    (WTQ | {"disable_per_token_loss": True}, dataclasses.replace(OF_WTQ, cell_loss_importance=0.0)),
    (TABFACT | {"id2label": {"0": "no", "1": "yes", "2": "?"}}, ClassificationConfig(3)),
    ({"architectures": ["BertForSequenceClassification"]}, ClassificationConfig()),
    ({"architectures": ["TapasForMaskedLM"]}, MaskedLMConfig(next_sentence=False)),
    ({"architectures": ["BertForPreTraining"]}, MaskedLMConfig()),
    ({"architectures": None}, None),
    ({"architectures": ["TapasModel"]}, None),
    ({"architectures": ["BertForQuestionAnswering"]}, None),  # of spans of a text
)
def test_a_folder_describes_its_head_if_it_has_one_of_ours(described, config, expected):
    assert hugging_face_task_config(described(TAPAS | config)) == expected


COUNT_FIRST = {"0": "NONE", "1": "COUNT", "2": "SUM", "3": "AVERAGE"}


@cases(
    "config, message",
    ({"aggregation_labels": COUNT_FIRST}, r"labels \['NONE', 'SUM'.*\.json, got \['NONE', 'COU"),
    ({"num_aggregation_labels": 3}, "num_aggregation_labels of 0 or 4 in .*, got 3"),
    ({"use_gumbel_for_aggregation": True}, "False for .*use_gumbel_for_agg, .* got True"),
    ({"aggregation_temperature": 0.5}, r"1\.0 for .*agg_temperature, an option .* got 0\.5"),
    ({"temperature": "1"}, r"expected float for .*config\.json\.temperature, got '1'"),
    ({"model_type": "tapex"}, r"model_type 'bert' or 'tapas' in .*config\.json, got 'tapex'"),
)
def test_a_head_that_there_is_not_is_refused(described, config, message):
    with pytest.raises(ValueError, match=message):
        hugging_face_task_config(described(TAPAS | WTQ | config))


def test_positions_are_those_of_the_revision_and_sizes_are_numbers(described):
    assert hugging_face_config(described(TAPAS)).position == "per_cell"
    former = TAPAS | {"reset_position_index_per_cell": False}
    assert hugging_face_config(described(former)).position == "absolute"
    message = r"expected int for hidden_size in .*config\.json, got '8'"
    with pytest.raises(ValueError, match=message):
        hugging_face_config(described({"hidden_size": "8"}))


def divide(folder) -> None:
    """Divides model.safetensors into two shards."""
    tensors = load_file(folder / FILE)
    (folder / FILE).unlink()
    names = [f"model-{index}-of-2.safetensors" for index in (1, 2)]
    places = {tensor: names[index % 2] for index, tensor in enumerate(sorted(tensors))}
    for name in names:
        there = {tensor: tensors[tensor] for tensor in tensors if places[tensor] == name}
        save_file(there, folder / name)
    index = {"metadata": {}, "weight_map": places}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))


def test_shards_are_one_model(tmp_path):
    write_hugging_face(tmp_path, table_qa_values())
    divide(tmp_path)
    model = table_qa(seed=1)
    report = load_hugging_face(model, tmp_path, require_all=True)
    assert report.source == str(tmp_path / "model.safetensors.index.json")
    assert_values(model, table_qa_values())


def test_a_missing_shard_and_a_damaged_index_are_named(folder):
    divide(folder)
    (folder / "model-2-of-2.safetensors").unlink()
    model = classifier()
    with pytest.raises(FileNotFoundError, match=r"expected model-2-of-2\.safetensors in "):
        load_hugging_face(model, folder)
    for content in ("{", "[]", '{"weight_map": 3}', '{"weight_map": {"a": 3}}'):
        (folder / "model.safetensors.index.json").write_text(content)
        with pytest.raises(ValueError, match=r"expected a weight_map in .*index\.json"):
            load_hugging_face(model, folder)


def test_pickles_are_not_read_and_the_way_out_is_said(folder):
    (folder / FILE).rename(folder / "pytorch_model.bin")
    message = r"model\.safetensors in .*, which has pytorch_model\.bin; .*refs/pr/.*save_pretrained"
    with pytest.raises(FileNotFoundError, match=message):
        load_hugging_face(classifier(), folder)


def test_another_number_of_attention_heads_is_refused_though_every_shape_fits(tmp_path):
    write_hugging_face(tmp_path, classifier_values(), num_attention_heads=4)
    with pytest.raises(ValueError, match=r"expected 2 attention heads .*, got 4 in .*config\.json"):
        load_hugging_face(classifier(), tmp_path)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_weights_of_half_precision_become_float32(folder, dtype):
    narrow = np.dtype(dtype)
    tensors = load_file(folder / FILE)
    halved = {name: tensor.astype(narrow) for name, tensor in tensors.items()}
    save_file(halved, folder / FILE)
    model = classifier(seed=1)
    load_hugging_face(model, folder, require_all=True)
    values = classifier_values().items()
    assert_values(model, {name: value.astype(narrow).astype("float32") for name, value in values})


def test_a_decoder_of_words_has_to_be_their_embeddings(folder):
    tensors = load_file(folder / FILE)
    decoder = tensors["tapas.embeddings.word_embeddings.weight"]
    bias = np.arange(len(decoder), dtype=np.float32)
    tensors |= {"cls.predictions.decoder.weight": decoder, "cls.predictions.decoder.bias": bias}
    save_file(tensors, folder / FILE)
    model = make_model(encoder_config(), MaskedLMConfig(next_sentence=False))
    load_hugging_face(model, folder)
    np.testing.assert_array_equal(model.output_bias, bias)
    save_file(tensors | {"cls.predictions.decoder.weight": decoder + 1}, folder / FILE)
    with pytest.raises(ValueError, match="a decoder of its own"):
        load_hugging_face(model, folder)
    # To what predicts no words it is one more head.
    report = load_hugging_face(classifier(), folder)
    assert report.ignored == ("cls/predictions/decoder/weight", "cls/predictions/output_bias")
