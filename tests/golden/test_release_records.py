"""Folders of TAPAS's release, as its programs write them, train like mate_tf's own."""

import dataclasses
import json
import logging
import shutil
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from mate_tf.datasets.json_lines import write_json_lines
from mate_tf.features.config import FeatureConfig, MaskedLmConfig, PretrainingConfig
from mate_tf.records.conversion_file import conversion_of, read_conversion, write_conversion
from mate_tf.records.records import detect_compression
from mate_tf.tables.operators import TAPAS_OPERATORS
from mate_tf.task_configs import TableQAConfig
from mate_tf.training.config import (
    ClassificationTrainingConfig,
    MaskedLMTrainingConfig,
    SpanReadingTrainingConfig,
    TableQATrainingConfig,
)
from mate_tf.training.run import train_run
from tests.golden.comparison import GOLDEN
from tests.golden.interactions import load, to_question, to_table
from tests.small import assert_same, small_encoder

SIZES: dict[str, Any] = dict(
    num_steps=2,
    learning_rate=1e-2,
    batch_size=4,
    eval_batch_size=3,
    encoder=small_encoder(4000, max_position_embeddings=512),
)
WEAK = TableQAConfig(operators=TAPAS_OPERATORS)
SQA = TableQAConfig(operators=(), allow_empty_column_selection=True)
TF_EXAMPLES = [f"tf_examples/random-split-1-{split}.tfrecord" for split in ("train", "dev")]
GZIPPED = "train-00000-of-00002.tfrecord.gz train-00001-of-00002.tfrecord.gz", "dev.tfrecord.gz"
SHARDED = "train.tfrecord-00000-of-00002 train.tfrecord-00001-of-00002", "test.tfrecords"
PARTS = "train_part1.tfrecord train_part2.tfrecord", "dev.tfrecord"
CASES = {
    # The golden records, the config, and the names of the release's files of each split.
    "masked words": (
        "pretrain_128",
        MaskedLMTrainingConfig(**SIZES),
        "train.tfrecord",
        "test.tfrecord",
    ),
    "SQA": ("sqa_train_256", TableQATrainingConfig(task=SQA, **SIZES), *TF_EXAMPLES),
    "WTQ": ("wtq_train_256", TableQATrainingConfig(task=WEAK, **SIZES), *GZIPPED),
    "statements": ("tabfact_train_256", ClassificationTrainingConfig(**SIZES), *SHARDED),
    "spans": ("hybridqa_rc_default_train_256", SpanReadingTrainingConfig(**SIZES), *PARTS),
}
NUM_TRAIN, NUM_DEV = 12, 6


def filling(record: bytes) -> bytes:
    """The record as one that the release fills up a last batch with."""
    example = tf.train.Example.FromString(record)
    features = example.features.feature
    features["question_id"].bytes_list.value[:] = [b"EMPTY-0_0"]
    features["label_ids"].int64_list.value[:] = [0] * len(features["label_ids"].int64_list.value)
    return example.SerializeToString()


def write(paths, records, compression):
    for path, part in zip(
        paths, np.array_split(np.array(records, object), len(paths)), strict=True
    ):
        path.parent.mkdir(exist_ok=True)
        with tf.io.TFRecordWriter(str(path), compression) as writer:
            for record in part:
                writer.write(record)


@pytest.fixture(scope="module", params=CASES)
def case(request, tmp_path_factory):
    """A folder of the release, and one of mate_tf with the same records and their questions."""
    name, config, *names = CASES[request.param]
    length = int(name.rpartition("_")[2])
    config = dataclasses.replace(config, max_seq_length=length)
    (file, vocabulary) = GOLDEN.require(f"data/{name}.tfrecord", "data/vocab.txt")
    release, own = (tmp_path_factory.mktemp(of) for of in ("release", "own"))
    found = tf.data.TFRecordDataset(str(file), detect_compression(str(file)))
    records = list(found.take(NUM_TRAIN + NUM_DEV).as_numpy_iterator())
    train, dev = records[:-NUM_DEV], records[-NUM_DEV:]
    is_pretraining = isinstance(config, MaskedLMTrainingConfig)
    more = [] if is_pretraining else [filling(dev[0])]
    for split, of_split, name_of in zip(("train", "dev"), (train, dev), names, strict=True):
        write([own / f"{split}{'_128' * is_pretraining}.tfrecord"], of_split, "GZIP")
        of_split = of_split + more * (split == "dev")
        write(
            [release / one for one in name_of.split()], of_split, "" if is_pretraining else "GZIP"
        )
    for folder in (release, own):
        shutil.copy(vocabulary, folder / "vocab.txt")
    features = FeatureConfig(
        config.max_seq_length, label_answer_spans=request.param == "spans", original_conversion=True
    )
    conversion = conversion_of("JSONL", features, vocabulary, None)
    if is_pretraining:
        conversion = dataclasses.replace(
            conversion, pretraining=PretrainingConfig(MaskedLmConfig())
        )
    write_conversion(own, conversion)
    if isinstance(config, TableQATrainingConfig):
        (interactions,) = GOLDEN.require(
            f"data/{name.replace('train_256', 'interactions_train')}.json.gz"
        )
        write_json_lines(own / "dev.jsonl", questions(load(interactions)))
    return config, release, own


def questions(interactions):
    for interaction in interactions:
        for index in range(len(interaction["questions"])):
            question = to_question(interaction["questions"], index)
            if any(min(pair) < 0 for pair in question.answer_coordinates):  # they are not known
                question = dataclasses.replace(question, answer_coordinates=())
            yield to_table(interaction["table"]), question


def variables(run):
    checkpoint = tf.train.load_checkpoint(tf.train.latest_checkpoint(run))
    names = sorted(checkpoint.get_variable_to_shape_map())
    return [checkpoint.get_tensor(name) for name in names if name.startswith("weights/")]


def test_a_folder_of_the_release_trains_as_the_same_records_here(case, tmp_path, caplog):
    config, release, own = case
    with caplog.at_level(logging.INFO, logger="absl"):
        found = train_run(config, release, tmp_path / "release")
    said = caplog.text
    expected = train_run(config, own, tmp_path / "own")
    losses = [name for name in expected if name.endswith("loss")]
    assert losses and {n: found[n] for n in losses} == {n: expected[n] for n in losses}
    assert_same(*(variables(tmp_path / run) for run in ("release", "own")))
    assert "TAPAS's release: the split train is " in said
    inputs = json.loads((tmp_path / "release" / "inputs.json").read_text())
    assert len(inputs["files"]) == len(list(release.rglob("*.tfrecord*")))
    if isinstance(config, TableQATrainingConfig):
        assert "are those of the records alone" in said
        assert 0 <= found["cell_accuracy"] <= 1 and "denotation_accuracy" not in found
        assert ("aggregation_accuracy" in found) == bool(config.task.operators)
    elif not isinstance(config, MaskedLMTrainingConfig):
        assert found == expected
    features = read_conversion(tmp_path / "release").features
    assert features.original_conversion and features.max_seq_length == config.max_seq_length
