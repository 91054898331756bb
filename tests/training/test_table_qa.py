import dataclasses
import re
import shutil

import keras
import numpy as np
import pytest
import tensorflow as tf

from experiments.benchmarks.runners import scalars
from mate_tf.datasets.json_lines import read_json_lines, write_json_lines
from mate_tf.datasets.supervision import supervise
from mate_tf.features.builder import FeatureBuilder
from mate_tf.features.config import FeatureConfig
from mate_tf.features.wordpiece import Wordpiece
from mate_tf.records.batches import read_records
from mate_tf.records.conversion_file import conversion_of, read_conversion, write_conversion
from mate_tf.tables.operators import TAPAS_OPERATORS, operators_by_id
from mate_tf.tables.table import Question, Table
from mate_tf.task_configs import TableQAConfig
from mate_tf.training.config import TableQATrainingConfig
from mate_tf.training.examples import build_model, make_task, records_conversion, save_conversion
from mate_tf.training.loop import train
from mate_tf.training.run import train_run
from mate_tf.training.starting_points import find_config
from mate_tf.training.table_qa import check_table_qa as check_data
from mate_tf.training.table_qa import known_records
from mate_tf.training.table_qa import table_qa_evaluation as dev_evaluation
from mate_tf.weights.folder import DEFAULT_MODEL
from tests.small import (
    cases,
    change_records,
    small_encoder,
    stored_cases,
    write_records,
    write_vocabulary,
)

NAMES = ("oslo", "rome", "lima", "cairo", "delhi", "paris")
VOCABULARY = ("[PAD]", "[EMPTY]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "city", "rank", *NAMES)
CONFIG = TableQATrainingConfig(
    num_steps=6,
    learning_rate=1e-3,
    max_seq_length=32,
    length_buckets=(),
    batch_size=4,
    eval_interval=3,
    checkpoint_interval=3,
    summary_interval=3,
    encoder=small_encoder(len(VOCABULARY) + 10, initializer_range=0.02),
)


FEATURES = FeatureConfig(max_seq_length=CONFIG.max_seq_length)


def pairs(split, count):
    """Tables of two to five cities, whose rank is asked for."""
    for index in range(count):
        names = [NAMES[(index + offset) % len(NAMES)] for offset in range(2 + index % 4)]
        rows = [[name, str(rank)] for rank, name in enumerate(names)]
        id_ = f"{split}-{index}"
        table = Table.from_rows(rows, header=["city", "rank"], table_id=id_)
        yield table, Question(f"rank {names[0]}", id_, ("0",), ((0, 1),))


def write_split(directory, split, features=FEATURES, questions=None):
    """Writes the records of a split, or of some of its questions; returns how they came about."""
    builder = FeatureBuilder(Wordpiece(directory / "vocab.txt"), features)
    questions = questions or pairs(split, 10 if split == "train" else 6)
    examples = [builder.build(*pair) for pair in questions]
    write_records(directory / f"{split}.tfrecord", (example.features for example in examples))
    return examples


@pytest.fixture(scope="session")
def data_dir(tmp_path_factory):
    directory = tmp_path_factory.mktemp("data")
    write_vocabulary(directory / "vocab.txt", [*VOCABULARY, *map(str, range(10))])
    for split, count in (("train", 10), ("dev", 6)):
        write_split(directory, split)
        write_json_lines(directory / f"{split}.jsonl", pairs(split, count))
    return directory


def copied(source, directory):
    return shutil.copytree(source, directory, dirs_exist_ok=True)


def run(config, data_dir, model_dir):
    keras.utils.set_random_seed(config.seed)
    model = build_model(config)
    task = make_task(config, data_dir, model, dev_evaluation(config, data_dir, model))
    metrics = train(task, config, model_dir)
    return model, metrics


def test_verdicts_headers_and_rows_come_from_json_lines_into_a_step(data_dir, tmp_path):
    copied(data_dir, tmp_path)
    table = Table.from_rows([["oslo", "1", "2"], ["rome", "3", "4"]], ["city", "5", "6"], "t")
    asked = (
        ("YES", ("yes",), ((0, 0),), None),
        ("NO", ("no",), (), None),
        ("HEADER", ("6",), ((0, 2),), None),
        ("ROW_SUM", ("3",), ((0, 1), (0, 2)), 3.0),
    )
    questions = [
        (table, Question("rank oslo", f"train-{i}", answers, cells, number, operator))
        for i, (operator, answers, cells, number) in enumerate(asked)
    ]
    write_json_lines(tmp_path / "train.jsonl", questions)
    read = [(t, supervise(t, q)) for t, q in read_json_lines(tmp_path / "train.jsonl")]
    examples = write_split(tmp_path, "train", questions=read)
    has_labels = [bool(example.features["label_ids"].any()) for example in examples]
    assert has_labels == [True, False, True, True]
    task = TableQAConfig(operators=operators_by_id(), use_answer_as_supervision=False)
    config = dataclasses.replace(CONFIG, task=task, num_steps=1, eval_interval=1)
    check_data(config, tmp_path)
    _, metrics = run(config, tmp_path, tmp_path / "run")
    assert np.isfinite(list(metrics.values())).all()


def test_known_questions_take_their_share_of_the_steps_also_after_a_resume(data_dir, tmp_path):
    copied(data_dir, tmp_path)
    known = [(table, dataclasses.replace(q, text="city")) for table, q in pairs("train", 10)]
    write_split(tmp_path, "known", questions=known)
    config = dataclasses.replace(CONFIG, known_share=0.4)
    model = build_model(config)
    evaluation = dev_evaluation(config, data_dir, model)
    task = make_task(config, data_dir, model, evaluation, str(tmp_path / "known.tfrecord"))
    batches = [batch["input_ids"].numpy() for batch in task.train_dataset(0).take(10)]
    is_known = [bool((ids[:, 1] == VOCABULARY.index("city")).all()) for ids in batches]
    assert is_known == [task.is_known(step) for step in range(1, 11)]
    assert sum(is_known) == 4
    for batch, again in zip(batches[5:], task.train_dataset(5).take(5), strict=True):
        np.testing.assert_array_equal(again["input_ids"].numpy(), batch)
    metrics = train(task, dataclasses.replace(config, summary_interval=1), tmp_path / "run")
    assert np.isfinite(metrics["loss"])
    assert [*scalars(tmp_path / "run" / "train")["known_loss"]] == [3, 5]


def test_the_known_questions_are_records_like_those_of_the_folder():
    vocab_file = DEFAULT_MODEL / "vocab.txt"
    conversion = conversion_of("JSONL", FeatureConfig(max_seq_length=256), vocab_file, None)
    with known_records(conversion, vocab_file) as file:
        lengths = [len(one["input_ids"]) for one in read_records(file)]
    assert 1_300 < len(lengths) <= 1_458 and {*lengths} == {256}


def test_bfloat16_trains_float32_weights(data_dir, tmp_path):
    config = dataclasses.replace(CONFIG, num_steps=2, dtype="mixed_bfloat16", perturbed_copies=1)
    model, metrics = run(config, data_dir, tmp_path)
    assert keras.config.dtype_policy().name == "float32"
    assert model.encoder.compute_dtype == "bfloat16"
    assert {weight.dtype for weight in model.weights} == {"float32"}
    assert metrics.keys() >= {"loss", "denotation_accuracy", "expected_calibration_error"}
    assert np.isfinite(metrics["loss"])


COUNTED = {"aggregation_is_known": 1, "aggregation_function_id": 3}


def pointing_model(config, sign=1.0, operator=None):
    """A model that points at the pieces of 0, or at all others, and chooses an operator."""
    model = build_model(config)

    def points(features, training=False):
        is_zero = features.input_ids == len(VOCABULARY)
        logits = sign * tf.where(is_zero, 5.0, -5.0)
        mask = tf.cast(features.input_mask, tf.float32)
        outputs = {
            "token_logits": logits,
            "selection_logits": logits,
            "token_probabilities": tf.sigmoid(logits) * mask,
        }
        if operator is None:
            return outputs
        likely = tf.one_hot(operator, len(config.task.operators), 5.0, -5.0)
        return outputs | {"aggregation_logits": tf.tile(likely[None], [tf.shape(logits)[0], 1])}

    model.call = points
    return model


@cases(
    "limit, operator, changes, expected",
    (None, None, {}, {"cell_accuracy": 1.0}),
    (None, 0, {}, {"cell_accuracy": 1.0, "aggregation_accuracy": 1.0}),
    (4, 3, {}, {"cell_accuracy": 1.0, "aggregation_accuracy": 0.0}),
    # The second is COUNT, as is known; or has a number, so that it is not known.
    (4, 3, COUNTED, {"cell_accuracy": 1.0, "aggregation_accuracy": 1 / 4}),
    (4, 0, {"answer": 7.0}, {"cell_accuracy": 1.0, "aggregation_accuracy": 1.0}),
    (4, None, {"label_ids": 0}, {"cell_accuracy": 1.0}),  # of the three with labels
)
def test_without_questions_records_measure(data_dir, tmp_path, limit, operator, changes, expected):
    directory = copied(data_dir, tmp_path)
    (directory / "dev.jsonl").unlink()
    with_changed_record(directory, directory, "dev", **changes)
    operators = () if operator is None else TAPAS_OPERATORS
    task = TableQAConfig(operators=operators, select_one_column=False)
    config = dataclasses.replace(CONFIG, eval_questions=limit, task=task)
    check_data(config, directory)
    evaluation = dev_evaluation(config, directory, pointing_model(config, operator=operator))
    metrics = evaluation.evaluate()
    scores = {name: value for name, value in metrics.items() if "accuracy" in name}
    assert scores == pytest.approx(expected) and evaluation.best_by == "cell_accuracy"
    assert "| rank oslo | 0 | " in metrics["answers"] and np.isfinite(metrics["loss"])


def test_records_without_any_label_cannot_be_measured(data_dir, tmp_path):
    directory = copied(data_dir, tmp_path)
    (directory / "dev.jsonl").unlink()
    change_records(directory / "dev.tfrecord", lambda of: [one["label_ids"].fill(0) for one in of])
    with pytest.raises(ValueError, match=r"with answers to evaluate on, got none .*'dev'"):
        dev_evaluation(CONFIG, directory, build_model(CONFIG))


KNOWN = ("dev-0", "dev-2")


@cases("limit, known, accuracy", (None, KNOWN, 2 / 6), (2, KNOWN, 1 / 2), (None, (), 0.0))
def test_wrong_answers_lower_accuracy(data_dir, tmp_path, limit, known, accuracy):
    """The model is made to point at the labelled cell, so right are those with such a label."""
    questions = [pair for pair in pairs("dev", 6) if not known or pair[1].question_id in known]
    write_split(copied(data_dir, tmp_path), "dev", questions=questions)
    task = TableQAConfig(operators=(), select_one_column=False)
    config = dataclasses.replace(CONFIG, eval_questions=limit, task=task)
    # Rank 0 is the answer of each question. Or all others, where no answer is to be right.
    model = pointing_model(config, 1.0 if known else -1.0)
    metrics = dev_evaluation(config, tmp_path, model).evaluate()
    assert metrics["denotation_accuracy"] == pytest.approx(accuracy)
    answers = metrics["answers"].splitlines()[2:]
    assert [row.endswith(" yes |") for row in answers].count(True) == round(accuracy * len(answers))
    if known:
        assert answers[0] == "| rank oslo | 0 | 0 | (0, 1) | yes |"
        assert "no example" in answers[1]
    assert "confusion" not in metrics  # there is no aggregation


FEW_PIECES = dataclasses.replace(CONFIG.encoder, vocab_size=len(VOCABULARY))


@cases(
    "changes, damage, message",
    ({}, None, "expected vocab.txt in .*mate-tf data"),
    ({}, "train.tfrecord", "expected train.tfrecord in"),
    ({"max_seq_length": 64}, "", r"64 tokens \(max_seq_length\), got 32 in .*train.tfrecord"),
    ({"encoder": FEW_PIECES}, "", r"from 0 to 13 \(encoder.vocab_size\), got 15 \(.*train-0.* 0\)"),
)
def test_data_that_does_not_fit_is_refused(data_dir, tmp_path, changes, damage, message):
    directory = tmp_path / "data"
    if damage is not None:
        copied(data_dir, directory)
        (directory / damage).unlink() if damage else None
    with pytest.raises((FileNotFoundError, ValueError), match=message):
        check_data(dataclasses.replace(CONFIG, **changes), directory)


def with_changed_record(source, directory, split, **changes):
    """The folder with other features in the second record of a split."""

    def change(examples):
        for name, values in changes.items():
            examples[1][name] = np.broadcast_to(values, examples[1][name].shape)

    if source != directory:
        copied(source, directory)
    change_records(directory / f"{split}.tfrecord", change)
    return directory


@stored_cases("options, split, changes, message")
def test_a_label_not_to_be_learned_is_refused(data_dir, tmp_path, options, split, changes, message):
    directory = with_changed_record(data_dir, tmp_path / "data", split, **changes)
    config = dataclasses.replace(CONFIG, task=TableQAConfig(**options))
    if message is None:
        check_data(config, directory)
        return
    name = rf"\(question '{split}-1', .*{split}.tfrecord, record 1\)"
    with pytest.raises(ValueError, match=message) as error:
        check_data(config, directory)
    assert re.search(name, str(error.value))


def test_sqa_is_learned_from_a_release_with_unlabelled_records(data_dir, tmp_path, caplog):
    release = with_changed_record(data_dir, tmp_path / "data", "train", label_ids=0, answer=3.0)
    with_changed_record(release, release, "dev", label_ids=0, answer=3.0)
    (release / "tf_examples").mkdir()
    for split in ("train", "dev"):
        (release / f"{split}.jsonl").unlink()
        moved = release / "tf_examples" / f"random-split-1-{split}.tfrecord"
        (release / f"{split}.tfrecord").rename(moved)
    assert find_config("sqa_base").task.mask_examples_without_labels
    config = dataclasses.replace(CONFIG, num_steps=3, task=find_config("sqa_minilm").task)
    metrics = train_run(config, release, tmp_path / "run")
    (warning,) = (line for line in caplog.messages if "without a labelled cell" in line)
    assert ": 1, the first (question 'train-1', " in warning
    # Where nothing to select is learned, one such example costs 10,000.
    (loss,) = scalars(tmp_path / "run" / "train")["loss"].values()
    assert 0 < loss < 10 and 0 < metrics["loss"] < 10
    evaluate = dev_evaluation(config, release, build_model(config)).evaluate
    with_label = evaluate()["loss"]
    change_records(moved, lambda examples: examples.pop(1))
    assert evaluate()["loss"] == pytest.approx(with_label, rel=1e-6)


def test_examples_of_other_questions_or_without_a_table_s_name_are_refused(data_dir, tmp_path):
    directory = copied(data_dir, tmp_path / "data")
    write_json_lines(directory / "dev.jsonl", pairs("dev", 5))
    message = r"the 5 questions in dev.jsonl, got another \(question 'dev-5', .*dev.tfrecord"
    with pytest.raises(ValueError, match=message):
        check_data(CONFIG, directory)
    copied(data_dir, directory)
    file = directory / "train.tfrecord"
    change_records(file, lambda of: [one.pop("table_id_hash") for one in of])
    check_data(CONFIG, directory)
    with pytest.raises(ValueError, match=r"train.tfrecord, which lack table_id_hash"):
        check_data(dataclasses.replace(CONFIG, perturbed_copies=1), directory)


def test_without_a_labelled_example_there_is_no_loss_but_a_score(data_dir, tmp_path):
    changes = {"label_ids": 0, "answer": np.nan}
    directory = with_changed_record(data_dir, tmp_path / "data", "dev", **changes)

    def keep_second(examples):
        examples[:] = examples[1:2]

    change_records(directory / "dev.tfrecord", keep_second)
    metrics = dev_evaluation(CONFIG, directory, build_model(CONFIG)).evaluate()
    assert "loss" not in metrics and "denotation_accuracy" in metrics
    of_gold_none = metrics["confusion"].splitlines()[2]
    counts = [int(count) for count in of_gold_none.removeprefix("| NONE |").strip(" |").split("|")]
    assert sum(counts) == 6 and counts[-1] == 5  # have no example, and so no answer


def with_conversion(source, directory, features):
    copied(source, directory)
    write_conversion(directory, conversion_of("JSONL", features, directory / "vocab.txt", None))
    return directory


def test_a_softmax_over_cells_takes_no_histogram_row(data_dir, tmp_path):
    softmax = TableQAConfig(operators=(), select_one_column=False, cell_cross_entropy=True)
    config = dataclasses.replace(CONFIG, task=softmax)
    check_data(config, data_dir)
    features = dataclasses.replace(FEATURES, histogram_row=True)
    directory = with_conversion(data_dir, tmp_path, features)
    message = r"cell_cross_entropy, .*, got examples with one in .*; make them without --histogram"
    with pytest.raises(ValueError, match=message):
        check_data(config, directory)


def test_a_folder_that_does_not_say_has_records_of_the_release(data_dir, tmp_path):
    check_data(CONFIG, data_dir)
    features = FeatureConfig(CONFIG.max_seq_length, trim_cells=True, original_conversion=True)
    assert records_conversion(CONFIG, data_dir).features == features
    for _ in range(2):  # the run goes on with the same
        save_conversion(CONFIG, data_dir, tmp_path)
    assert read_conversion(tmp_path) == records_conversion(CONFIG, data_dir)


@cases(
    "changes, named",
    (
        {"original_conversion": True, "use_document_title": True},
        r"use_document_title=True \(there: False\), features.original_conversion=True \(there",
    ),
    ({}, r"vocabulary_sha256=\w{64} \(there: \w{64}\)"),
)
def test_a_run_goes_on_with_records_made_in_the_same_way_alone(data_dir, tmp_path, changes, named):
    same = with_conversion(data_dir, tmp_path / "same", FEATURES)
    vocabulary = copied(data_dir, tmp_path / "changed") / "vocab.txt"
    vocabulary.write_text(vocabulary.read_text() + ("" if changes else "more\n"))
    features = dataclasses.replace(FEATURES, **changes)
    other = with_conversion(tmp_path / "changed", tmp_path / "other", features)
    (tmp_path / "run").mkdir()
    for _ in range(2):
        save_conversion(CONFIG, same, tmp_path / "run")
    kept = (tmp_path / "run" / "conversion.json").read_bytes()
    assert kept == (same / "conversion.json").read_bytes()
    with pytest.raises(ValueError, match=rf"the run in .*run, got others in .*other: .*{named}"):
        save_conversion(CONFIG, other, tmp_path / "run")
    assert (tmp_path / "run" / "conversion.json").read_bytes() == kept
