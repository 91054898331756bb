import dataclasses
import re
import shutil

import pytest
import tensorflow as tf

from mate_tf.features.config import FeatureConfig
from mate_tf.tables.part_of_speech import TaggedWord
from mate_tf.tables.table import Question
from mate_tf.task_configs import ClassificationConfig
from mate_tf.training.config import ClassificationTrainingConfig
from mate_tf.training.examples import check_classification as check_data
from mate_tf.training.examples import classification_metrics
from mate_tf.training.run import train_run
from tests.small import change_records, small_encoder, write_examples

Event = tf.compat.v1.Event
WORDS = ("good", "bad", "film", "very")
VOCABULARY = ("[PAD]", "[EMPTY]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS)
TAGS = {"good": "ADJ", "bad": "ADJ", "film": "NOUN", "very": "ADV"}
CONFIG = ClassificationTrainingConfig(
    num_steps=40,
    learning_rate=3e-3,
    max_seq_length=8,
    batch_size=4,
    # In one layer the first token sees the same whatever the rules.
    encoder=small_encoder(len(VOCABULARY), num_layers=2),
    task=ClassificationConfig(output_dropout=0.0),
)
GRAMMAR_GUIDED = dataclasses.replace(
    CONFIG, encoder=small_encoder(len(VOCABULARY), "grammar_hard", num_layers=2)
)
SENTENCES = [
    *(("good film", 1), ("very good film", 1), ("film very good", 1), ("good", 1)),
    *(("bad film", 0), ("very bad film", 0), ("film very bad", 0), ("bad", 0)),
]


def tag_words(text: str) -> list[TaggedWord]:
    words = re.finditer(r"\w+", text)
    return [TaggedWord(word.start(), word.end(), TAGS[word[0]]) for word in words]


def write_data(directory, tagger=tag_words):
    questions = {
        split: [
            (None, Question(text, f"{split}-{index}", class_index=label))
            for index, (text, label) in enumerate(SENTENCES)
        ]
        for split in ("train", "dev")
    }
    features = FeatureConfig(max_seq_length=8)
    return write_examples(directory, features, questions, VOCABULARY, tagger)


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory):
    return write_data(tmp_path_factory.mktemp("data"))


def test_learns_its_sentences(data_dir, tmp_path):
    metrics = train_run(GRAMMAR_GUIDED, data_dir, tmp_path)
    assert metrics["accuracy"] == metrics["f1"] == 1.0
    shown = (tmp_path / "evaluations" / "40.md").read_text()
    assert "| 0 | 4 | 0 |\n| 1 | 0 | 4 |\n" in shown
    assert "| very good film | 1 | 1 |  | yes |" in shown
    (events,) = (tmp_path / "dev").glob("events.*")
    records = tf.data.TFRecordDataset(str(events)).as_numpy_iterator()
    values = [value for event in map(Event.FromString, records) for value in event.summary.value]
    (in_tensorboard,) = {v.tensor.string_val[0] for v in values if v.tag == "confusion"}
    assert in_tensorboard.decode() in shown


def test_examples_without_tags_are_refused_for_grammar_alone(tmp_path):
    directory = write_data(tmp_path, tagger=None)
    check_data(CONFIG, directory)
    with pytest.raises(ValueError, match="'grammar_hard'; make the examples with --tagger"):
        check_data(GRAMMAR_GUIDED, directory)


@pytest.mark.parametrize("index", [2, -1])
def test_a_class_that_there_is_not_is_refused_with_its_question(data_dir, tmp_path, index):
    shutil.copytree(data_dir, tmp_path, dirs_exist_ok=True)
    feature = "classification_class_index"
    change_records(tmp_path / "train.tfrecord", lambda of: of[3][feature].fill(index))
    expected = rf"expected {feature} from 0 to 1 \(task.num_classes\), got {index} "
    place = r"\(question 'train-3', .*train.tfrecord, record 3\)"
    with pytest.raises(ValueError, match=expected + place):
        check_data(CONFIG, tmp_path)
    if index == 2:
        check_data(dataclasses.replace(CONFIG, task=ClassificationConfig(3)), tmp_path)


def test_scores_are_averaged_by_the_classes_sizes():
    # Class 0: 1 of 1 found, 1 of 2 predictions right. Class 1: 2 of 3 found, 2 of 2 right.
    scores = classification_metrics([0, 0, 1, 1], [0, 1, 1, 1])
    assert scores["accuracy"] == 3 / 4
    assert scores["precision"] == pytest.approx((1 * 1 / 2 + 3 * 1) / 4)
    # A class that is never predicted counts as zero.
    assert classification_metrics([0, 0], [0, 1])["precision"] == pytest.approx(1 / 4)
    f1_of_0, f1_of_1 = 2 * 0.5 * 1 / 1.5, 2 * 1 * (2 / 3) / (5 / 3)
    assert scores["f1"] == pytest.approx((1 * f1_of_0 + 3 * f1_of_1) / 4)
