"""Training through exported programs: their folder, its arrays, and a step as TensorFlow's."""

import dataclasses
import itertools
import json
import subprocess
import sys
from importlib.util import find_spec
from types import SimpleNamespace
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from experiments.demo_data import people
from experiments.exported import train
from experiments.exported.finish import finish
from experiments.exported.prepare import pack, prepare
from experiments.exported.programs import run_of
from experiments.exported.train import LENGTHS, MASK, TIMES, Examples, batches
from mate_tf.datasets.json_lines import read_json_lines
from mate_tf.datasets.tasks import DescribedTable
from mate_tf.features.builder import FeatureBuilder
from mate_tf.features.config import FeatureConfig, MaskedLmConfig, PretrainingConfig
from mate_tf.features.wordpiece import Wordpiece
from mate_tf.records.batches import read_records
from mate_tf.records.conversion_file import conversion_of, write_conversion
from mate_tf.records.creation import make_builder, write_split
from mate_tf.tables.operators import OPERATORS
from mate_tf.task_configs import TableQAConfig
from mate_tf.training.config import (
    ClassificationTrainingConfig,
    MaskedLMTrainingConfig,
    TableQATrainingConfig,
)
from mate_tf.training.examples import build_model
from mate_tf.training.optimizer import SCHEDULES, WarmupLinearDecay
from mate_tf.weights.folder import DEFAULT_MODEL
from mate_tf.weights.run import run_weights, weights_by_path
from tests.small import ROOT, assert_same, cases, small_encoder, write_lines, write_records

VOCABULARY = DEFAULT_MODEL / "vocab.txt"
LENGTH = 192
SIZES = ((3, 128), (2, LENGTH))
COMMON: dict[str, Any] = {
    # With dropout, so that there are seeds among the variables.
    "encoder": small_encoder(30522, hidden_dropout=0.1),
    "num_steps": 10,
    "learning_rate": 1e-3,
    "max_seq_length": LENGTH,
}
TASK = TableQAConfig(operators=tuple(OPERATORS), output_dropout=0.0)
CONFIGS = {
    "questions": TableQATrainingConfig(task=TASK, **COMMON),
    "classes": ClassificationTrainingConfig(**COMMON),
    "words": MaskedLMTrainingConfig(**COMMON),
}


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Records of questions, and of masked words, about tables that people wrote."""
    folder = tmp_path_factory.mktemp("records")
    questions, words = folder / "questions", folder / "words"
    short = (one for one in people.questions("dev") if len(str(one["table"]["rows"])) < 400)
    lines = write_lines(folder / "lines.jsonl", *itertools.islice(short, 20))
    pairs = list(read_json_lines(lines))
    builder = FeatureBuilder(Wordpiece(VOCABULARY), FeatureConfig(max_seq_length=LENGTH))
    examples = [builder.build(table, question).features for table, question in pairs]
    for number, example in enumerate(examples):
        example["classification_class_index"] = np.array([number % 2])
    drawn = PretrainingConfig(MaskedLmConfig(LENGTH, max_predictions=7), dupe_factor=1)
    described = [
        DescribedTable(str(number), table, (f"{question.text} {question.text}",))
        for number, (table, question) in enumerate(pairs)
    ]
    write_records(questions / "train.tfrecord", examples)
    words.mkdir()
    list(write_split(described, make_builder(drawn, str(VOCABULARY)), drawn, str(words), "train"))
    for made in (questions, words):
        write_conversion(made, conversion_of("JSONL", builder.config, VOCABULARY, None))
        (made / "vocab.txt").write_bytes(VOCABULARY.read_bytes())
    return {"questions": questions, "classes": questions, "words": words}


@pytest.fixture(scope="module")
def prepared(folders, tmp_path_factory):
    """The folder that `prepare` writes for each kind of training, once it is asked for."""
    made = {}

    def folder_of(kind):
        if kind not in made:
            made[kind] = tmp_path_factory.mktemp(kind)
            sizes = SIZES if kind == "questions" else SIZES[1:]
            prepare(CONFIGS[kind], [f"{folders[kind]}:1.5"], sizes, made[kind])
        return made[kind], json.loads((made[kind] / train.SPEC).read_text())

    return folder_of


@pytest.mark.medium
@cases("kind", *CONFIGS)
def test_arrays_give_back_what_a_step_reads_of_the_records(prepared, folders, kind):
    folder, spec = prepared(kind)
    stored = Examples(folder / train.RECORDS)
    suffix = f"_{LENGTH}" if kind == "words" else ""
    read = read_records(folders[kind] / f"train{suffix}.tfrecord").as_numpy_iterator()
    expected = [one for one in read if one[MASK].sum() <= LENGTH]
    assert [example[MASK].sum() for example in expected] == list(stored.lengths)
    assert set(stored.times) == {1.5}
    inputs = [
        (name, (1, *shape[1:]), dtype) for name, shape, dtype in spec["programs"][-1]["inputs"]
    ]
    for index, example in enumerate(expected):
        batch = stored.batch(inputs, [index])
        for name, _, dtype in inputs:
            np.testing.assert_array_equal(batch[name][0], example[name], err_msg=name)
            assert batch[name].dtype == example[name].dtype == dtype, name


def test_examples_that_are_too_long_are_left_out():
    of = [{MASK: np.arange(6) < n, "a": np.arange(6), "b": np.array([n, -n])} for n in (2, 5, 4)]
    times = [1.0, 2.0, 0.5]
    arrays = pack(zip(of, times, strict=True), (MASK, "a", "b"), 4)
    assert {name: values.tolist() for name, values in arrays.items()} == {
        LENGTHS: [2, 4],
        TIMES: [1.0, 0.5],
        "a": [0, 1, 0, 1, 2, 3],
        "b": [[2, -2], [4, -4]],
    }
    with pytest.raises(ValueError, match="examples of at most 1 tokens, found none"):
        pack(zip(of, times, strict=True), (MASK, "a"), 1)


def test_batches_are_full_and_an_epoch_has_each_example_as_often_as_it_should():
    examples = SimpleNamespace(
        lengths=np.tile(np.arange(1, 41), 2), times=np.repeat([2.0, 0.5], 40)
    )
    found = list(itertools.islice(batches(examples, [(4, 10), (2, 40)], seed=1), 400))
    assert {(kind, len(chosen)) for kind, chosen in found} == {(0, 4), (1, 2)}
    for kind, chosen in found:
        assert ((examples.lengths[chosen] <= 10) == (kind == 0)).all()
    all_chosen = np.concatenate([chosen for _, chosen in found])
    assert np.sum(all_chosen < 40) / np.sum(all_chosen >= 40) == pytest.approx(4.0, rel=0.1)
    again = itertools.islice(batches(examples, [(4, 10), (2, 40)], seed=1), 400)
    assert [chosen.tolist() for _, chosen in again] == [chosen.tolist() for _, chosen in found]


def test_the_rate_is_that_of_the_training_loop():
    schedule = WarmupLinearDecay(5e-5, 40, 8)
    for step in range(40):
        expected = pytest.approx(float(schedule(step)), rel=1e-5, abs=1e-12)
        assert train.rate(step, 5e-5, 40, 8) == expected


@pytest.mark.medium
def test_weights_become_a_folder_that_restores_them_and_averages_are_taken(prepared, tmp_path):
    folder, spec = prepared("questions")
    start = train.read(folder / train.START)
    model = build_model(CONFIGS["questions"])
    weights = {name: start[name] for name in weights_by_path(model)}
    assert list(weights) == spec["weights"]
    assert {name for name in start if name not in weights} == {
        name for name in spec["variables"] if "seed" in name or name == spec["rate"]
    }
    doubled = {name: 2 * value for name, value in weights.items()}
    files = [str(tmp_path / f"{name}.npz") for name in ("one", "two", "large")]
    large = {name: np.full_like(value, np.inf) for name, value in weights.items()}
    for file, values, step in zip(files, (weights, doubled, large), (7, 9, 1), strict=True):
        np.savez(file, **values, **{train.STEP: np.array(step)})
    finish(folder, files[:2], tmp_path / "model")
    restored = run_weights(tmp_path / "model")
    assert restored.step == 9
    restored.restore(model)
    assert_same(
        (value.numpy() for value in weights_by_path(model).values()),
        (np.float32(1.5) * value for value in weights.values()),
        rtol=1e-3,  # half precision, of the weights and of their mean
        atol=6e-8,
    )
    np.savez(files[1], **{spec["weights"][0]: start[spec["weights"][0]]}, step=np.array(1))
    with pytest.raises(ValueError, match="expected the weights of the model of"):
        finish(folder, files[:2], tmp_path / "other")
    with pytest.raises(ValueError, match="expected weights up to 65504"):
        finish(folder, files[2:], tmp_path / "other")


@pytest.mark.medium
def test_what_the_programs_cannot_do_is_refused(folders, tmp_path, monkeypatch):
    monkeypatch.setitem(SCHEDULES, "cosine", SCHEDULES["linear"])
    config, folder = CONFIGS["questions"], str(folders["questions"])
    for changes, sizes, message in (
        ({"ema_decay": 0.9}, SIZES, "expected no ema_decay"),
        ({"schedule": "cosine"}, SIZES, "expected schedule 'linear', .* got 'cosine'"),
        ({}, [(1, 256)], "batches of at most 192 tokens"),
    ):
        with pytest.raises(ValueError, match=message):
            prepare(dataclasses.replace(config, **changes), [folder], sizes, tmp_path)
    with pytest.raises(ValueError, match=r"expected masked_lm_ids, .* in .*, found none"):
        words = dataclasses.replace(CONFIGS["words"], max_seq_length=LENGTH)
        (tmp_path / "train_192.tfrecord").write_bytes(
            (folders["questions"] / "train.tfrecord").read_bytes()
        )
        for name in ("vocab.txt", "conversion.json"):
            (tmp_path / name).write_bytes((folders["questions"] / name).read_bytes())
        prepare(words, [str(tmp_path)], SIZES, tmp_path / "programs")


ELSEWHERE = """
import pathlib, sys
import numpy as np
from experiments.exported import train
np.savez(sys.argv[2], **train.train(pathlib.Path(sys.argv[1]), 3, 1e-3, 0.5))
assert "tensorflow" not in sys.modules
"""


@pytest.mark.medium
@pytest.mark.skipif(find_spec("jax") is None, reason="JAX is not installed")
@cases("kind", *CONFIGS)
def test_steps_elsewhere_are_those_of_tensorflow(prepared, kind, tmp_path):
    folder, spec = prepared(kind)
    command = [sys.executable, "-c", ELSEWHERE, str(folder), str(tmp_path / "weights.npz")]
    subprocess.run(command, cwd=ROOT, check=True)
    found = train.read(tmp_path / "weights.npz")
    expected = steps_of_tensorflow(folder, spec, CONFIGS[kind], 3)
    # The same program by another compiler: sums of floats in other orders. Where a gradient is
    # nearly zero, Adam makes of that a change of up to the rate.
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value, atol=1e-3, err_msg=name)
        assert np.mean(np.abs(found[name] - value)) < 2e-6, name


def steps_of_tensorflow(folder, spec, config, num_steps):
    """The weights after the same steps on the same batches."""
    keras.utils.set_random_seed(config.seed)
    model, _, trainer = run_of(dataclasses.replace(config, warmup_ratio=0.5, num_steps=num_steps))
    weights = weights_by_path(model)
    start = train.read(folder / train.START)
    for name, weight in weights.items():
        weight.assign(start[name])
    examples, programs = Examples(folder / train.RECORDS), spec["programs"]
    chosen = batches(examples, [one["size"] for one in programs], seed=1)
    step = tf.function(trainer.replica_step, jit_compile=True, autograph=False)
    for kind, indices in itertools.islice(chosen, num_steps):
        batch = examples.batch(programs[kind]["inputs"], indices)
        step({name: tf.constant(values) for name, values in batch.items()})
    return {name: weight.numpy() for name, weight in weights.items()}
