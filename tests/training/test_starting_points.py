"""Configs by name: those that come with the package, and which of them fits a folder of records."""

import dataclasses
import json
import re

import pytest

from mate_tf.config import EncoderConfig, read_json_object
from mate_tf.datasets.json_lines import write_json_lines
from mate_tf.features.config import FeatureConfig, MaskedLmConfig, PretrainingConfig
from mate_tf.records.conversion_file import conversion_of, write_conversion
from mate_tf.tables.table import Question, Table
from mate_tf.training.run import load_config
from mate_tf.training.starting_points import (
    ENCODER,
    STARTING_POINTS,
    find_config,
    fitted,
    fitting_starting_point,
    presets,
)
from mate_tf.weights.folder import DEFAULT_MODEL
from tests.small import cases, write_run, write_vocabulary

TABLE = Table.from_rows([["a", "b"], ["c", "d"]])
ASKED = Question("a", "q", answers=("c",))
CLASSIFIED = Question("a", "q", class_index=4)


def write_records(folder, question, task="JSONL", pretraining=None, **features):
    """A folder as far as starting points look at it."""
    folder.mkdir(exist_ok=True)
    config = FeatureConfig(**{"max_seq_length": 256} | features)
    conversion = conversion_of(task, config, write_vocabulary(folder / "vocab.txt"), None)
    write_conversion(folder, dataclasses.replace(conversion, pretraining=pretraining))
    for split in ("train", "dev"):
        write_json_lines(folder / f"{split}.jsonl", [(TABLE, question)])
    return folder


def test_the_model_that_comes_with_the_package_can_be_trained_further(tmp_path):
    config = read_json_object(DEFAULT_MODEL / "config.json")
    assert EncoderConfig.from_dict(config["encoder"]) == ENCODER
    assert all(config.encoder == ENCODER for config in STARTING_POINTS.values())
    # Its threshold was chosen after it was trained.
    task = STARTING_POINTS["table_questions"].task
    of_model = load_config(DEFAULT_MODEL).task
    assert dataclasses.replace(of_model, absent_threshold=task.absent_threshold) == task
    # A folder that says nothing of itself leaves the config.
    assert fitted("table_questions", tmp_path) == STARTING_POINTS["table_questions"]
    with pytest.raises(FileNotFoundError, match=r"^expected conversion\.json in "):
        fitting_starting_point(tmp_path)


@cases(
    "name, question, options",
    *(("table_questions", ASKED, {}), ("table_questions", ASKED, {"task": "WTQ"})),
    ("table_questions", dataclasses.replace(ASKED, class_index=1), {}),
    *(("classification", CLASSIFIED, {}), ("classification", CLASSIFIED, {"task": "NEW"})),
    ("span_reading", ASKED, {"label_answer_spans": True}),
    ("masked_words", ASKED, {"pretraining": PretrainingConfig(MaskedLmConfig())}),
)
def test_the_starting_point_fits_the_records(tmp_path, name, question, options):
    folder = write_records(tmp_path, question, **options)
    assert fitting_starting_point(folder)[0] == name
    config = fitted(name, folder)
    assert config.max_seq_length == 256
    assert config.length_buckets == (() if name == "masked_words" else (128, 192))
    # The one question takes the fewest steps, its evaluation is at their end.
    fewest = STARTING_POINTS[name].num_steps if name == "masked_words" else 40
    if name == "table_questions":
        assert (config.num_steps, config.known_share, config.eval_interval) == (80, 0.5, 20)
        assert config.ema_decay**80 == pytest.approx(0.3)  # what is left of the package's weights
        config = fitted(name, folder, from_default=False)
        assert (config.known_share, config.ema_decay) == (0.0, None)
    else:
        assert config.eval_interval == min(fewest, STARTING_POINTS[name].eval_interval)
    assert config.num_steps == fewest
    if name == "classification":
        assert config.task.num_classes == 5


def test_sentences_have_a_starting_point_with_its_own_steps(tmp_path):
    folder = write_records(tmp_path, CLASSIFIED, task="SST2")
    for split in ("train", "dev"):  # which sentences do not have
        (folder / f"{split}.jsonl").unlink()
    assert fitting_starting_point(folder)[0] == "classification"
    config = fitted("classification", folder)
    assert config.num_steps == STARTING_POINTS["classification"].num_steps
    assert config.max_seq_length == 256


@pytest.mark.parametrize(("count", "steps"), [(100, 76), (1_000, 301), (10_001, 1_200)])
def test_more_questions_take_more_steps(tmp_path, count, steps):
    folder = write_records(tmp_path, ASKED)
    questions = (dataclasses.replace(ASKED, question_id=f"q{number}") for number in range(count))
    write_json_lines(folder / "train.jsonl", [(TABLE, question) for question in questions])
    config = fitted("table_questions", folder, from_default=False)
    assert (config.num_steps, config.eval_interval) == (steps, -(-steps // 4))


def test_a_config_is_found_by_its_name(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text(
        "import dataclasses\n"
        "from mate_tf.training.starting_points import STARTING_POINTS\n"
        "CONFIG = dataclasses.replace(STARTING_POINTS['span_reading'], num_steps=3)\n"
    )
    assert find_config(str(file)).num_steps == 3
    run = write_run(tmp_path / "run")
    assert find_config(str(run)) == find_config(str(run / "config.json")) == load_config(run)
    assert find_config("masked_words") is STARTING_POINTS["masked_words"]
    assert "wtq_minilm" in presets() and not STARTING_POINTS.keys() & presets().keys()


@cases(
    "content, error, message",
    (None, FileNotFoundError, "expected a file with CONFIG at "),
    ("", ValueError, "to be a config of mate_tf.training.config, got None"),
    (f"CONFIG = {json.dumps({'num_steps': 3})}", ValueError, "got {'num_steps': 3}"),
)
def test_a_file_without_a_config_is_refused(tmp_path, content, error, message):
    file = tmp_path / "mine.py"
    if content is not None:
        file.write_text(content)
    with pytest.raises(error, match=re.escape(message)):
        find_config(str(file))
