import dataclasses
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mate_tf.datasets.tasks import TASKS
from mate_tf.features.builder import FeatureBuilder
from mate_tf.features.config import FeatureConfig
from mate_tf.records.conversion import Summary, convert_all, outcome_counts
from mate_tf.records.conversion_file import (
    Conversion,
    check_vocabulary,
    conversion_of,
    file_sha256,
    read_conversion,
    task_of,
    write_conversion,
)
from mate_tf.tables.table import Question, Table
from mate_tf.weights.folder import DEFAULT_MODEL
from tests.small import stored_cases

A_CELL = "operator NONE (a cell)"
TABLE = Table.from_rows([["a", "b"], ["c", "1"], ["d", "1"], ["e", "3"]], table_id="t")


def question(text: str = "a", *answers: str) -> Question:
    return Question(text, "q", answers)


def convert(builder, table, asked: Question, is_training: bool, task: str = "WTQ"):
    (outcome,) = convert_all(TASKS[task], builder, [(table, asked)], is_training)
    return outcome


@pytest.mark.parametrize("is_training", [True, False])
@stored_cases("answer, config, reason, notes")
def test_training_leaves_out_what_is_noted(wordpiece, is_training, answer, config, reason, notes):
    """Notes are of evaluation; None where the question is left out there too."""
    builder = FeatureBuilder(wordpiece, FeatureConfig(**{"max_seq_length": 32, **config}))
    outcome = convert(builder, TABLE, question("a", answer), is_training)
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


def test_given_cells_and_classes_are_not_looked_for_and_sentences_need_no_table(wordpiece):
    builder = FeatureBuilder(wordpiece, FeatureConfig(max_seq_length=32))
    asked = question("a", "c")
    assert convert(builder, TABLE, asked, True, "SQA").reason == "no answer given"
    kept = convert(builder, TABLE, asked, False, "SQA")
    assert list(kept.notes) == ["no labels (no answer given)"]
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
    padding = "  padding: 96% of the records, 83% batched by length"
    assert lines[5:] == [f"  kept with {A_CELL}: 1", padding]
    # Counters of several workers come to the same, but for the messages.
    again = str(Summary(counts=summary.counts)).split("\n")
    assert again == [line for line in lines if not line.startswith("    ")]


def test_a_vocabulary_other_than_the_conversions_is_refused(tmp_path, vocab_file):
    vocabulary = tmp_path / "vocab.txt"
    vocabulary.write_bytes(vocab_file.read_bytes())
    check_vocabulary(tmp_path)  # an earlier conversion, that does not say
    write_conversion(str(tmp_path), conversion_of("WTQ", FeatureConfig(), str(vocab_file), None))
    check_vocabulary(tmp_path)
    vocabulary.write_bytes(vocab_file.read_bytes() + b"more\n")
    with pytest.raises(ValueError, match=r"the vocabulary that the records were made with.*vocab"):
        check_vocabulary(tmp_path)


OPTIONS = [field.name for field in dataclasses.fields(FeatureConfig) if field.default is False]


@given(
    st.sampled_from(["WTQ", None]),
    st.sampled_from([None, "textblob"]),
    st.dictionaries(st.sampled_from(OPTIONS), st.booleans()),
    st.none() | st.integers(4, 512),
)
def test_a_folder_says_how_it_was_made(tmp_path_factory, vocab_file, task, tagger, options, number):
    config = FeatureConfig(max_seq_length=number, cell_trim_length=number, **options)
    folder = tmp_path_factory.mktemp("conversion")
    write_conversion(folder, conversion_of(task, config, vocab_file, tagger))
    assert read_conversion(folder) == Conversion(task, config, tagger, file_sha256(vocab_file))
    assert [file.name for file in folder.iterdir()] == ["conversion.json"]


def test_options_that_came_later_are_off_and_former_ones_have_to_be(tmp_path, vocab_file):
    conversion = read_conversion(DEFAULT_MODEL)
    features = FeatureConfig(max_seq_length=2048)
    assert (conversion.task, conversion.features) == ("JSONL", features)
    config = FeatureConfig(trim_cells=True)
    write_conversion(tmp_path, conversion_of("WTQ", config, vocab_file, None))
    said = json.loads((tmp_path / "conversion.json").read_text())
    del said["features"]["prune_columns"]
    said["features"]["add_aggregation_candidates"] = False
    (tmp_path / "conversion.json").write_text(json.dumps(said))
    assert read_conversion(tmp_path).features == config


@stored_cases("content, message")
def test_what_is_no_conversion_is_named(tmp_path, vocab_file, content, message):
    write_conversion(tmp_path, conversion_of("WTQ", FeatureConfig(), vocab_file, None))
    file = tmp_path / "conversion.json"
    if isinstance(content, dict):
        content = json.dumps(json.loads(file.read_text()) | content).encode()
    file.write_bytes(content)
    error = f"conversion.json to say how the records were made, got an error: {message}"
    with pytest.raises(ValueError, match=error):
        read_conversion(tmp_path)


def test_a_folders_task_is_that_of_its_conversion_or_else_ones_own(tmp_path, vocab_file):
    with pytest.raises(FileNotFoundError, match=rf"expected conversion.json in {tmp_path}, found"):
        read_conversion(tmp_path)
    assert task_of(tmp_path) == "JSONL"
    write_conversion(tmp_path, conversion_of("SQA", FeatureConfig(), vocab_file, None))
    assert task_of(tmp_path) == "SQA"
    write_conversion(tmp_path, conversion_of(None, FeatureConfig(), vocab_file, None))
    with pytest.raises(ValueError, match=r"expected a task in .*conversion\.json, got null"):
        task_of(tmp_path)
