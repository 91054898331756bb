"""Configs of runs: limits, and the copy in the run's folder."""

import dataclasses

import pytest

from mate_tf.config import AttentionConfig, EncoderConfig
from mate_tf.tasks.classification import ClassificationConfig
from mate_tf.training.config import (
    ClassificationTrainingConfig,
    SpanReadingTrainingConfig,
    TableQATrainingConfig,
    TrainingConfig,
    load_config,
    load_finetuning_config,
    save_config,
)

CONFIG = TableQATrainingConfig(
    num_steps=10,
    learning_rate=1e-3,
    length_buckets=(128, 256),
    encoder=EncoderConfig(attention=AttentionConfig(bucket_size=64)),
)
LINFORMER = EncoderConfig(attention=AttentionConfig("linformer", sequence_length=384))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"num_steps": 0}, "num_steps of at least 1, got 0"),
        ({"batch_size": -1}, "batch_size of at least 1"),
        ({"eval_interval": 0}, "eval_interval of at least 1"),
        ({"warmup_ratio": 1.5}, "warmup_ratio between 0 and 1, got 1.5"),
        ({"max_gradient_value": 0.0}, "max_gradient_value above 0 or None, got 0.0"),
        ({"gradient_accumulation_steps": 0}, "gradient_accumulation_steps of at least 1, got 0"),
        (
            {"gradient_accumulation_steps": 3, "batch_size": 32},
            r"batch_size to be a multiple of gradient_accumulation_steps \(3\), got 32",
        ),
        ({"head_learning_rate_ratio": 0.0}, "head_learning_rate_ratio above 0, got 0.0"),
        ({"perturbed_copies": -1}, "perturbed_copies of at least 0, got -1"),
        ({"length_buckets": (256, 128)}, "length_buckets to ascend"),
        ({"length_buckets": (512,)}, r"below max_seq_length \(512\)"),
        (
            {"encoder": EncoderConfig(position="absolute"), "max_seq_length": 1024},
            "at most 512 with absolute positions, got 1024",
        ),
        (
            {"encoder": LINFORMER, "length_buckets": (), "max_seq_length": 512},
            r"one length, encoder.attention.sequence_length \(384\), got 512 and \(\)",
        ),
        ({"encoder": LINFORMER, "max_seq_length": 384}, r"got 384 and \(128, 256\)"),
    ],
)
def test_impossible_values_are_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        dataclasses.replace(CONFIG, **changes)


def test_a_config_is_read_back(tmp_path):
    save_config(CONFIG, tmp_path / "new" / "run")
    save_config(CONFIG, tmp_path / "new" / "run")
    assert load_config(tmp_path / "new" / "run") == CONFIG


def test_a_run_may_go_on_past_records_that_were_damaged_meanwhile(tmp_path):
    save_config(CONFIG, tmp_path)
    save_config(dataclasses.replace(CONFIG, skip_corrupt=True), tmp_path)
    assert load_config(tmp_path) == CONFIG


def test_a_folder_of_another_run_is_refused(tmp_path):
    save_config(CONFIG, tmp_path)
    attention = AttentionConfig(bucket_size=42)
    other = dataclasses.replace(
        CONFIG, seed=2, encoder=dataclasses.replace(CONFIG.encoder, attention=attention)
    )
    message = r"seed=2 \(there: 1\), encoder.attention.bucket_size=42 \(there: 64\)"
    with pytest.raises(ValueError, match=message):
        save_config(other, tmp_path)
    assert load_config(tmp_path) == CONFIG


def test_a_folder_without_config_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"expected config.json in .*; is it a run's"):
        load_config(tmp_path)


@pytest.mark.parametrize("content", [b"{", b"\xff", b"{}", b'{"colour": 1}', b"[]"])
def test_a_damaged_config_is_named(tmp_path, content):
    (tmp_path / "config.json").write_bytes(content)
    with pytest.raises(ValueError, match=r"config\.json: "):
        load_config(tmp_path, TrainingConfig)


@pytest.mark.parametrize(
    "config",
    [
        CONFIG,
        ClassificationTrainingConfig(
            num_steps=1,
            learning_rate=1e-3,
            encoder=CONFIG.encoder,
            task=ClassificationConfig(2, class_names=("no", "yes")),
        ),
        SpanReadingTrainingConfig(num_steps=1, learning_rate=1e-3, encoder=CONFIG.encoder),
    ],
)
def test_a_run_is_of_the_kind_that_its_task_is(tmp_path, config):
    save_config(config, tmp_path)
    assert load_finetuning_config(tmp_path) == config


def test_the_kind_of_a_run_without_a_config_is_not_guessed(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"expected config.json in .*; is it a run's"):
        load_finetuning_config(tmp_path)
    for content in ("{}", "[]", '{"task": 1}'):
        (tmp_path / "config.json").write_text(content)
        with pytest.raises(ValueError, match=r"config\.json: "):
            load_finetuning_config(tmp_path)
