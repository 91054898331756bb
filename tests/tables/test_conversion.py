import json

import pytest

from mate_tf.tables.conversion import (
    Conversion,
    Summary,
    check_vocabulary,
    convert_all,
    file_sha256,
    outcome_counts,
    read_conversion,
    write_conversion,
)
from mate_tf.tables.datasets.tasks import TASKS
from mate_tf.tables.features import FeatureBuilder, FeatureConfig
from mate_tf.tables.table import Question, Table

TABLE = Table.from_rows([["a", "b"], ["c", "1"], ["d", "1"], ["e", "3"]], table_id="t")


def question(text: str = "a", *answers: str) -> Question:
    return Question(text, "q", answers)


def convert(builder, table, asked: Question, is_training: bool, task: str = "WTQ"):
    (outcome,) = convert_all(TASKS[task], builder, [(table, asked)], is_training)
    return outcome


@pytest.mark.parametrize("is_training", [True, False])
@pytest.mark.parametrize(
    ("asked", "config", "reason", "notes"),
    [
        (question("a", "c"), {}, "", []),
        (question("a", "17"), {}, "", []),
        (question("a", "1"), {}, "ambiguous answer", []),
        (question("a", "k"), {}, "answer not found", ["no labels (answer not found)"]),
        (question("a " * 99, "c"), {}, "too long", None),
        (question("a", "c"), {"drop_rows_to_fit": True, "max_seq_length": 8}, "", ["rows dropped"]),
        (
            question("a", "e"),
            {"drop_rows_to_fit": True, "max_seq_length": 8},
            "answer cut off",
            ["rows dropped", "answers cut off"],
        ),
        (question("a", "c"), {"max_column_id": 2}, "too many columns", None),
        (question("a", "c"), {"max_row_id": 2}, "too many rows", None),
    ],
)
def test_training_leaves_out_what_evaluation_notes(
    wordpiece, is_training, asked, config, reason, notes
):
    """Notes are of evaluation; None where the question is left out there too."""
    builder = FeatureBuilder(wordpiece, FeatureConfig(**{"max_seq_length": 32, **config}))
    outcome = convert(builder, TABLE, asked, is_training)
    counts = outcome_counts(outcome)
    assert counts["read"] == 1
    if reason and (is_training or notes is None):
        assert outcome.features is None
        assert outcome.reason == reason
        assert "'t'" in outcome.message
        assert counts == {"read": 1, f"left out: {reason}": 1}
    else:
        assert outcome.features is not None and not outcome.reason
        assert list(outcome.notes) == ([] if reason and is_training else notes)
        assert counts["kept"] == 1
        assert counts["tokens"] == outcome.features["input_mask"].sum() == outcome.num_tokens
        assert counts["positions"] == len(outcome.features["input_ids"])
        for note in outcome.notes:
            assert counts[f"kept with {note}"] == 1


def test_classification_looks_for_no_answer_and_sentences_need_no_table(wordpiece):
    builder = FeatureBuilder(wordpiece, FeatureConfig(max_seq_length=32))
    for table in (TABLE, None):
        outcome = convert(builder, table, Question("a", class_index=1), True, "TABFACT")
        assert outcome.features is not None and not outcome.notes


def test_a_summary_counts_names_the_first_of_each_reason_and_tells_the_padding(wordpiece):
    builder = FeatureBuilder(wordpiece, FeatureConfig(max_seq_length=256))
    summary = Summary()
    for number in range(5):
        asked = Question("a", f"q{number}", ("k",))
        summary.add(convert(builder, TABLE, asked, is_training=True))
    summary.add(convert(builder, TABLE, question("a", "c"), is_training=True))
    lines = str(summary).split("\n")
    assert lines[:2] == ["1 of 6 questions kept", "  left out: 5 answer not found"]
    assert [f"'q{number}'" in lines[2 + number] for number in range(3)] == [True] * 3
    # [CLS] a [SEP] and eight cells are 11 tokens of 256, or of 64 in a batch of its length.
    assert lines[5:] == ["  padding: 96% of the records, 83% batched by length"]
    # Counters of several workers come to the same, but for the messages.
    again = str(Summary(counts=summary.counts)).split("\n")
    assert again == [line for line in lines if not line.startswith("    ")]


def test_a_vocabulary_other_than_the_conversions_is_refused(tmp_path, vocab_file):
    vocabulary = tmp_path / "vocab.txt"
    vocabulary.write_bytes(vocab_file.read_bytes())
    check_vocabulary(tmp_path)  # an earlier conversion, that does not say
    config = FeatureConfig(max_seq_length=64, trim_cells=True)
    write_conversion(str(tmp_path), "WTQ", config, str(vocab_file), None)
    said = json.loads((tmp_path / "conversion.json").read_text())
    assert said["task"] == "WTQ"
    assert FeatureConfig(**said["features"]) == config
    check_vocabulary(tmp_path)
    vocabulary.write_bytes(vocab_file.read_bytes() + b"more\n")
    with pytest.raises(ValueError, match=r"the vocabulary that the records were made with.*vocab"):
        check_vocabulary(tmp_path)
    (tmp_path / "conversion.json").write_text("[]")
    with pytest.raises(ValueError, match=r"how the records were made, got .*conversion.json"):
        check_vocabulary(tmp_path)


@pytest.mark.parametrize(
    "config",
    [
        FeatureConfig(),
        FeatureConfig(max_seq_length=None, max_column_id=512, max_row_id=512),
        FeatureConfig(trim_cells=True, drop_rows_to_fit=True, prune_columns=True),
        FeatureConfig(strip_column_names=True, use_document_title=True, use_context_heading=True),
        FeatureConfig(cell_trim_length=4, histogram_row=True, original_conversion=True),
        FeatureConfig(label_answer_spans=True, add_aggregation_candidates=True),
    ],
)
@pytest.mark.parametrize(("task", "tagger"), [("WTQ", None), (None, "textblob")])
def test_a_folder_says_how_its_records_were_made(tmp_path, vocab_file, config, task, tagger):
    write_conversion(tmp_path, task, config, vocab_file, tagger)
    expected = Conversion(task, config, tagger, file_sha256(vocab_file))
    assert read_conversion(tmp_path) == expected
    assert [file.name for file in tmp_path.iterdir()] == ["conversion.json"]


def test_an_option_that_came_later_is_off(tmp_path, vocab_file):
    write_conversion(tmp_path, "WTQ", FeatureConfig(trim_cells=True), vocab_file, None)
    said = json.loads((tmp_path / "conversion.json").read_text())
    del said["features"]["prune_columns"]
    (tmp_path / "conversion.json").write_text(json.dumps(said))
    assert read_conversion(tmp_path).features == FeatureConfig(trim_cells=True)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"{", "Expecting property name"),
        (b"\xff", ".*can't decode byte 0xff"),
        (b"[]", "list indices must be"),
        (b'{"task": "WTQ"}', "'features'"),
        ({"features": []}, r"expected an object, got \[\]"),
        ({"features": {"color": 1}}, "unknown 'color'; known are max_seq_length, max_column_id"),
        ({"features": {"trim_cells": "true"}}, "trim_cells is 'true'"),
        ({"features": {"max_seq_length": 2}}, "expected max_seq_length to be at least 4, got 2"),
        ({"weather": "fine"}, "unknown 'weather'; known are task, features, tagger"),
        ({"vocabulary_sha256": None}, "vocabulary_sha256 is None"),
    ],
)
def test_what_is_no_conversion_is_named(tmp_path, vocab_file, content, message):
    write_conversion(tmp_path, "WTQ", FeatureConfig(), vocab_file, None)
    file = tmp_path / "conversion.json"
    if isinstance(content, dict):
        content = json.dumps(json.loads(file.read_text()) | content).encode()
    file.write_bytes(content)
    with pytest.raises(
        ValueError, match=rf"how the records were made, got .*conversion.json: {message}"
    ):
        read_conversion(tmp_path)


def test_a_folder_that_does_not_say_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=rf"expected conversion.json in {tmp_path}; exp"):
        read_conversion(tmp_path)
