import dataclasses

import numpy as np
import pytest

from mate_tf.features.config import FeatureConfig
from mate_tf.records.conversion_file import conversion_of, write_conversion
from mate_tf.tables.table import Question, Table
from mate_tf.task_configs import SpanReadingConfig
from mate_tf.training.config import SpanReadingTrainingConfig
from mate_tf.training.examples import build_model
from mate_tf.training.examples import check_span_reading as check_data
from mate_tf.training.examples import span_reading_evaluation as dev_evaluation
from mate_tf.training.run import train_run
from tests.small import cases, small_encoder, write_examples

CITIES = ("oslo", "rome", "lima", "cairo")
VOCABULARY = ("[PAD]", "[EMPTY]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "in", "of", *CITIES)
FEATURES = FeatureConfig(max_seq_length=24, label_answer_spans=True)
CONFIG = SpanReadingTrainingConfig(
    num_steps=40,
    learning_rate=5e-3,
    max_seq_length=24,
    length_buckets=(8, 16),
    batch_size=4,
    eval_interval=40,
    checkpoint_interval=40,
    encoder=small_encoder(len(VOCABULARY), num_layers=2, intermediate_size=32),
    task=SpanReadingConfig(max_span_length=3, output_dropout=0.0),
)


def pairs(split):
    """Which city is after "in"? There is another after "of"; the class is in the question."""
    for index, city in enumerate(CITIES):
        for offset in (1, 2):
            other = CITIES[(index + offset) % len(CITIES)]
            text = f"of {other} in {city}" if offset == 1 else f"in {city} of {other}"
            table = Table.from_rows([[text]], header=["in"])
            question = Question(
                ("in", "of")[offset - 1],
                question_id=f"{split}-{index}-{offset}",
                answers=(f"in {city}",),
                answer_coordinates=((0, 0),),
                class_index=offset - 1,
            )
            yield table, question


def write_data(directory, features=FEATURES):
    directory.mkdir(exist_ok=True)
    of_splits = {split: pairs(split) for split in ("train", "dev")}
    write_examples(directory, features, of_splits, VOCABULARY)
    write_conversion(directory, conversion_of("JSONL", features, directory / "vocab.txt", None))
    return directory


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory):
    return write_data(tmp_path_factory.mktemp("data"))


@cases("options", {"hidden_size": 16, "num_classes": 2}, {"kind": "boundary"})
def test_learns_to_read(data_dir, tmp_path, options):
    config = dataclasses.replace(CONFIG, task=dataclasses.replace(CONFIG.task, **options))
    metrics = train_run(config, data_dir, tmp_path, None)
    assert metrics["span_accuracy"] == 1.0
    assert metrics.get("class_accuracy", 1.0) == 1.0
    assert metrics["loss"] < np.log(9) / 2  # a cell of four tokens has nine spans of up to three


def test_an_answer_too_long_is_not_found_and_a_split_has_answers(data_dir, tmp_path):
    config = dataclasses.replace(CONFIG, task=SpanReadingConfig(max_span_length=1))
    metrics = dev_evaluation(config, data_dir, build_model(config)).evaluate()
    answers = metrics.pop("answers")
    assert metrics == {"loss": 0.0, "span_accuracy": 0.0}
    assert answers.startswith("| question | gold | predicted |")
    assert answers.endswith(" no |\n")
    directory = write_data(tmp_path)
    table, question = next(pairs("dev"))
    unanswered = dataclasses.replace(question, answers=(), answer_coordinates=())
    write_examples(directory, FEATURES, {"dev": [(table, unanswered)]}, VOCABULARY)
    evaluation = dev_evaluation(CONFIG, directory, build_model(CONFIG))
    with pytest.raises(ValueError, match="expected labelled answers in the dev split of"):
        evaluation.evaluate()


def test_labels_of_whole_cells_and_a_histogram_row_are_refused(tmp_path):
    directory = write_data(tmp_path, FeatureConfig(max_seq_length=24))
    with pytest.raises(ValueError, match="whole cells; make them with --label_answer_spans"):
        check_data(CONFIG, directory)
    (directory / "conversion.json").unlink()  # as records of the original have none
    check_data(CONFIG, directory)
    features = FeatureConfig(max_seq_length=24, label_answer_spans=True, histogram_row=True)
    directory = write_data(tmp_path, features)
    with pytest.raises(ValueError, match=r"without a histogram row.*got examples with one"):
        check_data(CONFIG, directory)
