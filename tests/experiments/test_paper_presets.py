"""The presets of the papers: the release's values, and that each of them trains."""

import dataclasses
import json

import numpy as np
import pytest

from experiments.config_files import PRESETS, load_preset, make_config
from mate_tf.datasets.json_lines import write_json_lines
from mate_tf.features.builder import FeatureBuilder
from mate_tf.features.config import FeatureConfig
from mate_tf.features.wordpiece import Wordpiece
from mate_tf.presets import with_architecture
from mate_tf.records.conversion_file import conversion_of, write_conversion
from mate_tf.records.records import write_records
from mate_tf.tables.table import Question, Table
from mate_tf.training.config import SpanReadingTrainingConfig
from mate_tf.training.run import train_run
from mate_tf.training.run_folder import load_config, save_config
from tests.small import PIECES, write_vocabulary

CLIPPED = {"max_gradient_value": 10.0}
# The release's values (tapas/utils/hparam_utils.py), under the names they have here; "examples" are
# the training's in all.
RELEASE = {
    "sqa_base": {
        "learning_rate": 5e-5 * 128 / 512,
        "warmup_ratio": 0.01,
        "batch_size": 128,
        "examples": 200_000 * 128,
        "max_gradient_value": None,
        "num_aggregation_labels": 0,
        "select_one_column": True,
        "allow_empty_column_selection": False,
        "init_cell_selection_weights_to_zero": False,
    },
    "wtq_base": {
        **CLIPPED,
        "learning_rate": 0.0000193581,
        "warmup_ratio": 0.128960,
        "batch_size": 512,
        "examples": 50_000 * 512,
        "num_aggregation_labels": 4,
        "use_answer_as_supervision": True,
        "answer_loss_cutoff": 0.664694,
        "cell_select_pref": 0.207951,
        "huber_loss_delta": 0.121194,
        "temperature": 0.0352513,
        "select_one_column": True,
        "allow_empty_column_selection": False,
        "init_cell_selection_weights_to_zero": True,
    },
    "wikisql_base": {
        **CLIPPED,
        "learning_rate": 0.0000617164,
        "warmup_ratio": 0.142400,
        "batch_size": 512,
        "examples": 50_000 * 512,
        "num_aggregation_labels": 4,
        "use_answer_as_supervision": True,
        "answer_loss_cutoff": 0.185567,
        "cell_select_pref": 0.611754,
        "huber_loss_delta": 1265.74,
        "temperature": 0.107515,
        "select_one_column": False,
        "allow_empty_column_selection": False,
        "init_cell_selection_weights_to_zero": False,
    },
    "wikisql_supervised_base": {
        **CLIPPED,
        "learning_rate": 0.0000412331,
        "warmup_ratio": 0.168479,
        "batch_size": 512,
        "examples": 50_000 * 512,
        "num_aggregation_labels": 4,
        "use_answer_as_supervision": False,
        "answer_loss_cutoff": 36.4519,
        "cell_select_pref": 0.903421,
        "huber_loss_delta": 222.088,
        "temperature": 0.763141,
        "select_one_column": True,
        "allow_empty_column_selection": True,
        "init_cell_selection_weights_to_zero": True,
    },
    "tabfact_base": {
        **CLIPPED,
        "learning_rate": 2e-5,
        "warmup_ratio": 0.05,
        "batch_size": 512,
        "examples": 80_000 * 512,
        "num_classes": 2,
        "attention_dropout": 0.0,
        "hidden_dropout": 0.07,
    },
    "hybridqa_mate_large": {
        **CLIPPED,
        "learning_rate": 1e-5,
        "warmup_ratio": 0.05,
        "batch_size": 128,
        "examples": 80_000 * 128,
        "max_seq_length": 2048,
        "bucket_size": 42,
        "global_size": 116,
        "eval_batch_size": 8,
        "cell_cross_entropy": True,
        "select_one_column": False,
        "allow_empty_column_selection": False,
    },
    "hybridqa_reader_large": {
        **CLIPPED,
        "learning_rate": 5e-5,
        "warmup_ratio": 0.01,
        "batch_size": 512,
        "examples": 25_000 * 512,
        "max_seq_length": 512,
        "kind": "span",
        "max_span_length": 10,
    },
}
SIZES = {
    "base": {"hidden_size": 768, "num_layers": 12, "num_heads": 12, "intermediate_size": 3072},
    "large": {"hidden_size": 1024, "num_layers": 24, "num_heads": 16, "intermediate_size": 4096},
}
# One of each kind.
TRAINED = (
    "sqa_perturbed_base",
    "wtq_tableformer_base",
    "wikisql_base",
    "wikisql_supervised_base",
    "tabfact_base",
    "hybridqa_mate_large",
    "hybridqa_reader_large",
)


@pytest.mark.parametrize("name", RELEASE)
def test_a_preset_has_the_values_of_the_release(name):
    config = load_preset(name)
    values = {
        field.name: getattr(part, field.name)
        for part in (config.task, config.encoder.attention, config.encoder, config)
        for field in dataclasses.fields(part)
    }
    values["examples"] = config.num_steps * config.batch_size
    expected = RELEASE[name] | SIZES[name.rpartition("_")[2]]
    assert {key: values[key] for key in expected} == expected


@pytest.mark.parametrize("name", [name for name in PRESETS if not name.startswith("pointr_")])
def test_a_preset_goes_to_a_file_and_back(name, tmp_path):
    config = load_preset(name)
    save_config(config, tmp_path)
    assert load_config(tmp_path) == config


@pytest.mark.parametrize("name", [name for name in RELEASE if name.endswith("_base")])
def test_tapas_s_presets_train_mate_too(name):
    config = load_preset(name)
    assert config.encoder.attention.architecture == "tapas"
    expected = dataclasses.replace(config, encoder=with_architecture(config.encoder, "mate"))
    assert make_config(name, "mate", []) == expected


@pytest.mark.parametrize("task", ["sqa", "wtq", "tabfact"])
def test_tableformer_s_presets_differ_from_tapas_s_in_the_encoder_alone(task):
    config, base = load_preset(f"{task}_tableformer_base"), load_preset(f"{task}_base")
    assert config == make_config(f"{task}_base", "tableformer_pcp", [])
    assert dataclasses.replace(config, encoder=base.encoder) == base
    assert config.encoder.position == "per_cell"


def test_copies_are_all_that_the_augmented_preset_adds():
    config = load_preset("sqa_perturbed_base")
    assert config.perturbed_copies == 8
    assert dataclasses.replace(config, perturbed_copies=0) == load_preset("sqa_base")


def test_what_presets_share_is_none():
    message = r"expected --config to be one of default_answers, .*, got '_base'"
    with pytest.raises(ValueError, match=message):
        load_preset("_base")


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Records of cells and records of spans."""
    directory = tmp_path_factory.mktemp("records")
    table = Table.from_rows([["a", "b"], ["c", "d"], ["e", "f"]])
    question = Question(
        "a", answers=("c",), answer_coordinates=((0, 0),), answer_number=None, class_index=1
    )
    made = []
    for spans in (False, True):
        folder = directory / str(spans)
        folder.mkdir()
        write_vocabulary(folder / "vocab.txt")
        features = FeatureConfig(max_seq_length=24, label_answer_spans=spans)
        builder = FeatureBuilder(Wordpiece(folder / "vocab.txt"), features)
        for split in ("train", "dev"):
            example = builder.build(table, question).features
            write_records(folder / f"{split}.tfrecord", [example] * 4)
            write_json_lines(folder / f"{split}.jsonl", [(table, question)])
        write_conversion(folder, conversion_of("JSONL", features, folder / "vocab.txt", None))
        made.append(folder)
    return made


def small(config):
    """The same at a size that trains in seconds, for two steps."""
    attention = config.encoder.attention
    if attention.evaluator == "multi_view":
        attention = dataclasses.replace(attention, bucket_size=4, global_size=4)
    encoder = dataclasses.replace(
        config.encoder,
        attention=attention,
        vocab_size=len(PIECES),
        hidden_size=16,
        num_layers=1,
        num_heads=2,
        intermediate_size=16,
    )
    return dataclasses.replace(
        config,
        encoder=encoder,
        max_seq_length=24,
        length_buckets=(),
        batch_size=4,
        num_steps=2,
        dtype="float32",
    )


@pytest.mark.parametrize("name", TRAINED)
def test_a_preset_trains_at_a_small_size(name, folders, tmp_path):
    config = small(load_preset(name))
    metrics = train_run(
        config, folders[isinstance(config, SpanReadingTrainingConfig)], tmp_path, None
    )
    assert metrics and all(map(np.isfinite, metrics.values()))
    (line,) = (tmp_path / "evaluations.jsonl").read_text().splitlines()
    assert json.loads(line)["step"] == 2
