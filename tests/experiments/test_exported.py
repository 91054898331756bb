"""Training through exported programs: their folder, its arrays, and a step as TensorFlow's."""

import dataclasses
import itertools
import json
import lzma
import subprocess
import sys
from importlib.util import find_spec
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from experiments.demo_data import people
from experiments.exported import train
from experiments.exported.arrays import LENGTHS, MASK, Examples, batch_of, batches, pack
from experiments.exported.finish import finish
from experiments.exported.prepare import LONG, prepare
from experiments.exported.programs import judged
from mate_tf.datasets.described_tables import DescribedTable
from mate_tf.datasets.json_lines import read_json_lines
from mate_tf.features.builder import FeatureBuilder
from mate_tf.features.config import FeatureConfig, MaskedLmConfig, PretrainingConfig
from mate_tf.features.wordpiece import Wordpiece
from mate_tf.records.batches import read_records
from mate_tf.records.conversion_file import conversion_of, write_conversion
from mate_tf.records.pretraining import make_builder, write_split
from mate_tf.tables.operators import OPERATORS
from mate_tf.task_configs import TableQAConfig
from mate_tf.training.config import (
    ClassificationTrainingConfig,
    MaskedLMTrainingConfig,
    TableQATrainingConfig,
)
from mate_tf.training.examples import build_model
from mate_tf.training.optimizer import WarmupLinearDecay
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
    lines = write_lines(folder / "lines.jsonl", *itertools.islice(short, 27))
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
    word_builder = make_builder(drawn, str(VOCABULARY))
    for split, part in (("train", slice(20)), ("dev", slice(20, None))):
        write_records(questions / f"{split}.tfrecord", examples[part])
        words.mkdir(exist_ok=True)
        list(write_split(described[part], word_builder, drawn, str(words), split))
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


def examples_of(folder, kind, split):
    suffix = f"_{LENGTH}" if kind == "words" else ""
    found = read_records(folder / f"{split}{suffix}.tfrecord").as_numpy_iterator()
    return [one for one in found if one[MASK].sum() <= LENGTH]


@pytest.mark.medium
@cases("kind", *CONFIGS)
def test_arrays_give_back_what_a_step_reads_of_the_records(prepared, folders, kind):
    folder, spec = prepared(kind)
    ((entry,), (dev,)) = spec["records"]["train"], spec["records"]["dev"]
    assert entry["times"] == 1.5
    for split, one in (("train", entry), ("dev", dev)):
        stored = Examples(folder / one["file"])
        expected = examples_of(folders[kind], kind, split)
        assert [example[MASK].sum() for example in expected] == list(stored.lengths)
        program = next(p for p in spec["programs"]["train"] if p["length"] == LENGTH)
        for index, example in enumerate(expected):
            batch = batch_of(program["inputs"], [(stored, index)])
            for name, _, dtype in program["inputs"]:
                np.testing.assert_array_equal(batch[name][0], example[name], err_msg=name)
                assert batch[name].dtype == example[name].dtype == dtype, name


def test_examples_that_are_too_long_are_left_out_and_small_numbers_take_a_byte():
    of = [{MASK: np.arange(6) < n, "a": np.arange(6), "b": np.array([n, -n])} for n in (2, 5, 4)]
    arrays = pack(of, (MASK, "a", "b"), 4)
    assert {name: values.tolist() for name, values in arrays.items()} == {
        LENGTHS: [2, 4],
        "a": [0, 1, 0, 1, 2, 3],
        "b": [[2, -2], [4, -4]],
    }
    assert arrays["a"].dtype == np.uint8
    with pytest.raises(ValueError, match="examples of at most 1 tokens, found none"):
        pack(of, (MASK, "a"), 1)


def test_batches_are_full_and_an_epoch_has_each_example_as_often_as_it_should(tmp_path):
    sources = []
    for number, times in enumerate((2.0, 0.5)):
        arrays = {LENGTHS: np.arange(1, 41), "a": np.zeros(820, np.uint8)}
        with lzma.open(tmp_path / f"{number}", "wb") as stream:
            np.savez(stream, allow_pickle=False, **arrays)
        sources.append((Examples(tmp_path / f"{number}"), times))
    sizes = [(4, 10), (2, 40)]
    found, counts = batches(sources, sizes, seed=1), dict.fromkeys(range(2), 0)
    shapes = set()
    for kind, chosen in itertools.islice(found, 400):
        shapes.add((kind, len(chosen)))
        for examples, index in chosen:
            assert (examples.lengths[index] <= 10) == (kind == 0)
            counts[[source for source, _ in sources].index(examples)] += 1
    assert shapes == {(0, 4), (1, 2)}
    assert counts[0] / counts[1] == pytest.approx(4.0, rel=0.1)
    again = batches(sources, sizes, seed=1)
    assert [c[0][1] for _, c in itertools.islice(again, 20)] == [
        c[0][1] for _, c in itertools.islice(batches(sources, sizes, seed=1), 20)
    ]


def test_the_counter_gives_the_programs_the_rate_of_the_training_loop():
    peak, largest, num_steps, warmup_steps = 5e-5, 1e-4, 40, 8
    schedule = WarmupLinearDecay(peak, num_steps, warmup_steps)
    long = WarmupLinearDecay(largest, LONG)
    for step in range(num_steps):
        of_step = train.rate(step, peak, num_steps, warmup_steps)
        assert of_step == pytest.approx(float(schedule(step)), rel=1e-5, abs=1e-12)
        found = float(long(train.counter(of_step, largest, LONG)))
        assert found == pytest.approx(of_step, rel=1e-5, abs=2e-10)
    assert train.counter(largest, largest, LONG) == -1
    assert float(long(-1)) == np.float32(largest)


@pytest.mark.medium
def test_weights_become_a_folder_that_restores_them_and_averages_are_taken(prepared, tmp_path):
    folder, spec = prepared("questions")
    start = train.read(folder / train.START)
    model = build_model(CONFIGS["questions"])
    weights = {name: start[name] for name in weights_by_path(model)}
    assert list(weights) == spec["weights"]
    assert {name for name in start if name not in weights} == {
        name for name in spec["variables"] if "seed" in name
    }
    doubled = {name: 2 * value for name, value in weights.items()}
    for name, values, step in (("one", weights, 7), ("two", doubled, 9)):
        train.write(tmp_path / f"{name}.npz", values, step)
    means, step = train.average([tmp_path / "one.npz", tmp_path / "two.npz"])
    train.write(tmp_path / "mean.npz", means, step)
    finish(folder, tmp_path / "mean.npz", tmp_path / "model")
    restored = run_weights(tmp_path / "model")
    assert restored.step == 9
    restored.restore(model)
    assert_same(
        (value.numpy() for value in weights_by_path(model).values()),
        (np.float32(1.5) * value for value in weights.values()),
        rtol=1e-3,  # half precision, of the weights and of their mean
        atol=6e-8,
    )
    train.write(tmp_path / "less.npz", {spec["weights"][0]: start[spec["weights"][0]]}, 1)
    with pytest.raises(ValueError, match="expected the weights of the model of"):
        finish(folder, tmp_path / "less.npz", tmp_path / "other")
    with pytest.raises(ValueError, match="expected finite weights in half precision"):
        train.write(tmp_path / "large.npz", {"a": np.array([1e6])}, 1)


@pytest.mark.medium
def test_what_the_programs_cannot_do_is_refused(folders, tmp_path):
    config, folder = CONFIGS["questions"], str(folders["questions"])
    for changes, sizes, message in (
        ({"ema_decay": 0.9}, SIZES, "expected no ema_decay"),
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


def test_a_question_is_judged_by_operator_and_all_of_its_cells():
    """A column of two cells; the second example's operator is not known."""

    class Model:
        task_config = TASK

        def model_inputs(self, batch):
            return (batch,)

        def __call__(self, batch, training):
            operators = tf.one_hot([0, 0, 1, 0, 13], len(OPERATORS))
            return {"token_probabilities": probabilities, "aggregation_logits": operators}

    probabilities = tf.constant(
        [[0.9, 0.9, 0.1], [0.0, 0.9, 0.1], [0.0, 0.9, 0.1]] + 2 * [[0.9] * 3]
    )
    batch = {
        "column_ids": tf.constant(5 * [[0, 1, 1]]),
        "row_ids": tf.constant(5 * [[0, 1, 2]]),
        MASK: tf.ones([5, 3], tf.int32),
        "label_ids": tf.constant(5 * [[0, 1, 0]]),
        "aggregation_function_id": tf.constant([[0], [0], [0], [0], [13]]),
        "aggregation_is_known": tf.constant([[1], [0], [1], [1], [1]]),
    }
    found = judged(Model(), batch)
    # All right; not counted; another operator; a cell too many; no cells matter where it is absent.
    assert found["right"].numpy().tolist() == [1, 0, 0, 0, 1]
    assert found["counted"].numpy().tolist() == [1, 0, 1, 1, 1]


ELSEWHERE = """
import pathlib, sys
import numpy as np
from experiments.exported import train
trained = train.Trained(pathlib.Path(sys.argv[1]))
trained.train(3, 1e-3, 0.5, seed=1)
np.savez(sys.argv[2], **trained.weights())
assert all(0 <= right <= counted for right, counted in trained.judge().values())
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
    from experiments.exported.programs import run_of

    keras.utils.set_random_seed(config.seed)
    model, _, trainer = run_of(dataclasses.replace(config, warmup_ratio=0.5, num_steps=num_steps))
    weights = weights_by_path(model)
    start = train.read(folder / train.START)
    for name, weight in weights.items():
        weight.assign(start[name])
    programs = sorted(spec["programs"]["train"], key=lambda one: one["length"])
    ((entry,),) = (spec["records"]["train"],)
    source = [(Examples(folder / entry["file"]), entry["times"])]
    chosen = batches(source, [(one["size"], one["length"]) for one in programs], seed=1)
    step = tf.function(trainer.replica_step, jit_compile=True, autograph=False)
    for kind, of_batch in itertools.islice(chosen, num_steps):
        batch = batch_of(programs[kind]["inputs"], of_batch)
        step({name: tf.constant(values) for name, values in batch.items()})
    return {name: weight.numpy() for name, weight in weights.items()}
