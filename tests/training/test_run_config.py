"""Configs of training and their limits; a run's folder: its config and what it was made from."""

import dataclasses
import json
from typing import Any

import pytest
import tensorflow as tf

from mate_tf.answers.predictor import DECODINGS
from mate_tf.config import AttentionConfig, EncoderConfig
from mate_tf.task_configs import ClassificationConfig, SpanReadingConfig
from mate_tf.training.config import (
    ClassificationTrainingConfig,
    MaskedLMTrainingConfig,
    SpanReadingTrainingConfig,
    TableQATrainingConfig,
)
from mate_tf.training.examples import record_files
from mate_tf.training.run import (
    INPUTS_FILE,
    InputFile,
    RunInputs,
    _only_training,
    data_files,
    load_config,
    load_inputs,
    save_config,
    save_inputs,
)
from tests.small import stored_cases

CONFIG = TableQATrainingConfig(
    num_steps=10,
    learning_rate=1e-3,
    length_buckets=(128, 256),
    encoder=EncoderConfig(attention=AttentionConfig(bucket_size=64)),
)


def test_a_folder_of_another_run_is_refused(tmp_path):
    save_config(CONFIG, tmp_path)
    attention = AttentionConfig(bucket_size=42)
    other = dataclasses.replace(
        CONFIG, seed=2, encoder=dataclasses.replace(CONFIG.encoder, attention=attention)
    )
    message = r"seed=2 \(there: 1\), encoder.attention.bucket_size=42 \(there: 64\)"
    with pytest.raises(ValueError, match=message):
        save_config(other, tmp_path)
    with pytest.raises(ValueError, match=r"kind=classification \(there: table_qa\), num_steps=1 "):
        save_config(OF_KINDS["classification"], tmp_path)
    # It may go on past records that were damaged meanwhile.
    save_config(dataclasses.replace(CONFIG, skip_corrupt=True, recompute=True), tmp_path)
    assert load_config(tmp_path) == CONFIG


@stored_cases("content, message")
def test_a_damaged_config_is_named(tmp_path, content, message):
    (tmp_path / "config.json").write_bytes(content)
    with pytest.raises(ValueError, match=message):
        load_config(tmp_path)


BRIEF: dict[str, Any] = dict(
    num_steps=1, learning_rate=1e-3, encoder=CONFIG.encoder, ema_decay=0.9, skip_corrupt=True
)
OF_KINDS = {
    "table_qa": CONFIG,
    "classification": ClassificationTrainingConfig(
        **BRIEF, task=ClassificationConfig(2, class_names=("no", "yes"))
    ),
    "span_reading": SpanReadingTrainingConfig(
        **BRIEF, task=SpanReadingConfig("boundary"), max_gradient_value=0.5
    ),
    "masked_lm": MaskedLMTrainingConfig(**BRIEF),
}


@pytest.mark.parametrize("kind", DECODINGS)
def test_a_run_says_its_kind(tmp_path, kind):
    run = tmp_path / "new" / "run"
    for _ in range(2):  # the run begins, and goes on
        save_config(OF_KINDS[kind], run)
    assert json.loads((run / "config.json").read_text())["kind"] == kind
    assert load_config(run) == OF_KINDS[kind]


@pytest.fixture
def inputs(tmp_path):
    (tmp_path / "data").mkdir()
    for split in ("train", "dev"):
        (tmp_path / "data" / f"{split}.tfrecord").write_text(split)
    files = data_files(record_files(CONFIG, tmp_path / "data"))
    assert [file.name for file in files] == ["train.tfrecord", "dev.tfrecord"]
    return RunInputs(str(tmp_path / "data"), files, init_checkpoint="google/tapas-base")


def test_a_run_goes_on_with_its_own_first_weights_by_either_path(inputs, tmp_path, monkeypatch):
    save_inputs(inputs, tmp_path, begins=True)
    for same in (inputs, dataclasses.replace(inputs, init_checkpoint=None)):
        save_inputs(same, tmp_path, begins=False)
    changes = dict(init_checkpoint="google/tapas-large", init_revision="main", reset_heads=True)
    for name, value in changes.items():
        with pytest.raises(ValueError, match=r"began with, google/tapas-base, got google/tapas-"):
            save_inputs(dataclasses.replace(inputs, **{name: value}), tmp_path, begins=False)
    assert load_inputs(tmp_path) == inputs
    monkeypatch.chdir(tmp_path)
    save_inputs(dataclasses.replace(inputs, init_checkpoint=str(tmp_path / "a")), tmp_path, True)
    for path in ("a", "./a/", str(tmp_path / "a")):
        save_inputs(dataclasses.replace(inputs, init_checkpoint=path), tmp_path, begins=False)
    with pytest.raises(ValueError, match="got b; choose another folder for the run, or name no"):
        save_inputs(dataclasses.replace(inputs, init_checkpoint="b"), tmp_path, begins=False)


def test_a_run_goes_on_with_its_own_records_alone(inputs, tmp_path):
    # One that was killed before its first checkpoint begins anew.
    save_inputs(dataclasses.replace(inputs, init_checkpoint="b", files=()), tmp_path, begins=True)
    save_inputs(inputs, tmp_path, begins=True)
    (tmp_path / "data" / "train.tfrecord").write_text("other")
    changed = dataclasses.replace(inputs, files=data_files(record_files(CONFIG, tmp_path / "data")))
    with pytest.raises(ValueError, match=r"got others in .*data: train.tfrecord; choose"):
        save_inputs(changed, tmp_path, begins=False)
    save_inputs(changed, tmp_path, begins=False, may_differ=True)
    assert load_inputs(tmp_path) == inputs


def test_a_folder_has_one_training_at_a_time_and_nothing_else(tmp_path):
    for _ in range(2):
        with _only_training(tmp_path / "run"):
            with (
                pytest.raises(ValueError, match=r"expected no other training in .*run, found one"),
                _only_training(tmp_path / "run"),
            ):
                pass
            with _only_training(tmp_path / "other"):
                pass
    assert not list((tmp_path / "run").iterdir())
    with pytest.raises(FileNotFoundError, match=r"expected config.json in .*; is it a run's"):
        load_config(tmp_path)
    (tmp_path / INPUTS_FILE).write_text("{}")
    with pytest.raises(ValueError, match=r"inputs.json: expected the keys data_dir, files"):
        load_inputs(tmp_path)
    tf.train.Checkpoint(weight=tf.Variable(1.0)).save(str(tmp_path / "bert_model.ckpt"))
    with pytest.raises(ValueError, match=r"checkpoint bert_model.ckpt-1 and without config.json"):
        save_config(CONFIG, tmp_path)
    assert not (tmp_path / "config.json").exists()


def test_questions_that_changed_are_noticed_unless_an_earlier_version_did_not_note_them(
    inputs, tmp_path
):
    questions = [InputFile("dev.jsonl", digest) for digest in ("a", "b")]
    first, changed = (dataclasses.replace(inputs, files=(*inputs.files, it)) for it in questions)
    save_inputs(first, tmp_path, begins=True)
    save_inputs(first, tmp_path, begins=False)
    with pytest.raises(ValueError, match=r"expected the data that .* began with, .*: dev.jsonl;"):
        save_inputs(changed, tmp_path, begins=False)
    save_inputs(inputs, tmp_path, begins=True)
    save_inputs(first, tmp_path, begins=False)
