"""Pre-training in the loop, from tables to a run that fine-tuning starts from."""

import dataclasses
import shutil

import numpy as np
import pytest

from mate_tf.config import AttentionConfig
from mate_tf.datasets.tasks import DescribedTable
from mate_tf.features.config import FeatureConfig, MaskedLmConfig, PretrainingConfig
from mate_tf.features.token_features import TokenFeatures
from mate_tf.layers.encoder import TableEncoder
from mate_tf.records.batches import read_records
from mate_tf.records.conversion_file import conversion_of, write_conversion
from mate_tf.records.creation import make_builder, write_split
from mate_tf.tables.table import Table
from mate_tf.training.config import ClassificationTrainingConfig, MaskedLMTrainingConfig
from mate_tf.training.examples import build_model, check_classification, make_task
from mate_tf.training.examples import check_masked_lm as check_data
from mate_tf.training.examples import masked_lm_evaluation as dev_evaluation
from mate_tf.training.loop import read_evaluations
from mate_tf.training.run import train_run
from mate_tf.weights.initial import load_weights
from tests.small import ENCODER, PIECES, cases, change_records, write_vocabulary

LENGTHS = (16, 32)
DRAWN = PretrainingConfig(
    MaskedLmConfig(LENGTHS[1], max_predictions=6, min_text_length=2, max_text_length=4),
    dupe_factor=6,
)
CONFIG = MaskedLMTrainingConfig(
    encoder=dataclasses.replace(
        ENCODER, initializer_range=0.1, hidden_dropout=0.1, attention=AttentionConfig("tapas")
    ),
    length_buckets=LENGTHS[:1],
    max_seq_length=LENGTHS[1],
    batch_size=4,
    eval_batch_size=8,
    num_steps=16,
    learning_rate=0.01,
    eval_interval=8,
    checkpoint_interval=16,
)


def corpus(split):
    """Tables of a column of one letter and one of another, and texts that say the first."""
    for number in range(8):
        letter = "cdef"[number % 4]
        rows = [[letter, "g"]] * (1 + number)
        table = Table.from_rows(rows, ["a", "b"], f"{split}-{number}")
        yield DescribedTable(table.table_id, table, (f"a {letter} {letter} a",))


@pytest.fixture(scope="session")
def data_dir(tmp_path_factory):
    directory = tmp_path_factory.mktemp("pretraining")
    vocab_file = write_vocabulary(directory / "vocab.txt")
    builder = make_builder(DRAWN, str(vocab_file))
    for split in ("train", "dev"):
        list(write_split(corpus(split), builder, DRAWN, str(directory), split))
    conversion = conversion_of("TEXTS", FeatureConfig(LENGTHS[-1]), vocab_file, None)
    write_conversion(directory, dataclasses.replace(conversion, pretraining=DRAWN))
    return directory


@pytest.fixture(scope="module")
def run_dir(data_dir, tmp_path_factory):
    """A run of its own."""
    directory = tmp_path_factory.mktemp("runs") / "run"
    train_run(CONFIG, data_dir, directory)
    return directory


def test_a_run_learns_and_gives_on_its_encoder_and_its_heads(data_dir, run_dir):
    batch = next(iter(read_records(data_dir / "dev_32.tfrecord").batch(4)))
    features = TokenFeatures.from_dict(batch)
    trained = build_model(CONFIG)
    report = load_weights(trained, run_dir)
    assert not report.new
    assert {name.removeprefix("cls/") for name in report.loaded if name.startswith("cls/")} == {
        *(f"predictions/transform/dense/{name}" for name in ("kernel", "bias")),
        *(f"predictions/transform/LayerNorm/{name}" for name in ("gamma", "beta")),
        *(f"seq_relationship/output_{name}" for name in ("weights", "bias")),
        "predictions/output_bias",
    }
    expected = trained.encoder(features).sequence_output
    other = ClassificationTrainingConfig(num_steps=1, learning_rate=0.1, encoder=CONFIG.encoder)
    classifier = build_model(other)
    report = load_weights(classifier, run_dir)
    np.testing.assert_array_equal(classifier.encoder(features).sequence_output, expected)
    assert set(report.new) == {"output_weights_cls", "output_bias_cls"}
    alone = TableEncoder(CONFIG.encoder)
    alone.build()
    load_weights(alone, run_dir)
    np.testing.assert_array_equal(alone(features).sequence_output, expected)
    first, *_, last = read_evaluations(run_dir)
    assert last["step"] == 16
    assert last["masked_lm_loss"] < first["masked_lm_loss"] < np.log(len(PIECES))
    assert all(0 <= value <= 1 for name, value in last.items() if "accuracy" in name)


def test_batches_have_the_lengths_of_their_examples(data_dir):
    model = build_model(CONFIG)
    task = make_task(CONFIG, data_dir, model, dev_evaluation(CONFIG, data_dir, model))
    batches = list(task.train_dataset(0).take(9))
    assert {tuple(batch["input_ids"].shape) for batch in batches} == {(4, 16), (4, 32)}
    assert task.model.normalized_by == ("masked_lm_weights",)
    assert {tuple(batch["masked_lm_ids"].shape) for batch in batches} == {(4, 6)}
    for skipped in (1, 6, 7):
        for batch, expected in zip(task.train_dataset(skipped), batches[skipped:], strict=False):
            np.testing.assert_array_equal(batch["input_ids"], expected["input_ids"])


@pytest.mark.parametrize("next_sentence", [True, False])
def test_the_evaluation_counts_what_the_model_gets_right(data_dir, next_sentence):
    task_config = dataclasses.replace(CONFIG.task, next_sentence=next_sentence)
    config = dataclasses.replace(
        CONFIG, task=task_config, length_buckets=(), eval_examples=5, eval_batch_size=2
    )
    model = build_model(config)
    found = dev_evaluation(config, data_dir, model).evaluate()
    batch = next(iter(read_records(data_dir / "dev_32.tfrecord").take(5).batch(5)))
    outputs = model(*model.model_inputs(batch))
    predictions = np.argmax(outputs["masked_lm_logits"], axis=-1)
    is_label = batch["masked_lm_weights"].numpy() > 0
    is_right = (predictions == batch["masked_lm_ids"].numpy())[is_label]
    columns = np.take_along_axis(
        batch["column_ids"].numpy(), batch["masked_lm_positions"].numpy(), axis=1
    )[is_label]
    expected = {
        "masked_lm_accuracy": is_right.mean(),
        "masked_lm_cell_accuracy": is_right[columns > 0].mean(),
        "masked_lm_loss": float(model.compute_task_loss(batch, outputs)["masked_lm_loss"]),
    }
    if next_sentence:
        tables = np.argmax(outputs["next_sentence_logits"], axis=-1)
        expected["next_sentence_accuracy"] = np.mean(tables == batch["is_random_table"][:, 0])
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        assert found[name] == pytest.approx(value, rel=1e-5), name


@cases(
    "name, value, message",
    ("masked_lm_positions", 32, r"masked_lm_positions from 0 to \d+, got 32 .*32.*, record 2"),
    ("masked_lm_ids", -1, r"masked_lm_ids from 0 to 13, got -1 .*train_32.tfrecord, record 2"),
)
def test_a_prediction_of_what_is_not_there_is_refused(data_dir, tmp_path, name, value, message):
    shutil.copytree(data_dir, tmp_path, dirs_exist_ok=True)
    change_records(tmp_path / "train_32.tfrecord", lambda examples: examples[2][name].fill(value))
    with pytest.raises(ValueError, match=f"expected {message}"):
        check_data(CONFIG, tmp_path)


def test_records_of_another_length_or_kind_are_refused(data_dir, tmp_path):
    config = dataclasses.replace(CONFIG, length_buckets=(), max_seq_length=64)
    message = r"expected records of 64 tokens .*, got those of 32 in .*; choose that length or"
    with pytest.raises(ValueError, match=message):
        check_data(config, data_dir)
    fine_tuning = ClassificationTrainingConfig(
        num_steps=1, learning_rate=0.1, encoder=CONFIG.encoder, max_seq_length=32
    )
    with pytest.raises(FileNotFoundError, match=r"expected train.tfrecord in "):
        check_classification(fine_tuning, data_dir)
    others = tmp_path / "others"
    shutil.copytree(data_dir, others)
    conversion = conversion_of("WTQ", FeatureConfig(32), others / "vocab.txt", None)
    write_conversion(others, conversion)
    with pytest.raises(ValueError, match=r"records to pre-train on in .*, got those of another"):
        check_data(CONFIG, others)
    # Nothing says how these were made; they say themselves that nothing is masked in them.
    (others / "conversion.json").unlink()
    for split in ("train", "dev"):
        file = others / f"{split}_32.tfrecord"
        change_records(file, lambda of: [example.pop("masked_lm_ids") for example in of])
    with pytest.raises(ValueError, match=r"of pre-training in .*, which lack masked_lm_ids"):
        check_data(CONFIG, others)


def test_a_run_of_another_model_is_refused_before_the_first_step(data_dir, run_dir, tmp_path):
    wider = dataclasses.replace(CONFIG.encoder, hidden_size=32)
    other = dataclasses.replace(CONFIG, encoder=wider)
    with pytest.raises(ValueError, match=r"expected shape .* for variable .* in .*run/best/"):
        train_run(other, data_dir, tmp_path / "next", str(run_dir))
    assert not (tmp_path / "next").exists()
