import dataclasses
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mate_tf.features.config import FeatureConfig
from mate_tf.records.conversion_file import (
    Conversion,
    check_vocabulary,
    conversion_of,
    file_sha256,
    read_conversion,
    task_of,
    write_conversion,
)
from mate_tf.serving.folder import DEFAULT_MODEL


def test_a_vocabulary_other_than_the_conversions_is_refused(tmp_path, vocab_file):
    vocabulary = tmp_path / "vocab.txt"
    vocabulary.write_bytes(vocab_file.read_bytes())
    check_vocabulary(tmp_path)  # an earlier conversion, that does not say
    write_conversion(str(tmp_path), conversion_of("WTQ", FeatureConfig(), str(vocab_file), None))
    check_vocabulary(tmp_path)
    vocabulary.write_bytes(vocab_file.read_bytes() + b"more\n")
    with pytest.raises(ValueError, match=r"the vocabulary that the records were made with.*vocab"):
        check_vocabulary(tmp_path)
    (tmp_path / "conversion.json").write_text("[]")
    with pytest.raises(ValueError, match=r"conversion.json to say how the records were made"):
        check_vocabulary(tmp_path)


OPTIONS = [field.name for field in dataclasses.fields(FeatureConfig) if field.default is False]


@given(
    st.sampled_from(["WTQ", None]),
    st.sampled_from([None, "textblob"]),
    st.dictionaries(st.sampled_from(OPTIONS), st.booleans()),
    st.none() | st.integers(4, 512),
)
def test_a_folder_says_how_its_records_were_made(
    tmp_path_factory, vocab_file, task, tagger, options, number
):
    config = FeatureConfig(max_seq_length=number, cell_trim_length=number, **options)
    folder = tmp_path_factory.mktemp("conversion")
    write_conversion(folder, conversion_of(task, config, vocab_file, tagger))
    assert read_conversion(folder) == Conversion(task, config, tagger, file_sha256(vocab_file))
    assert [file.name for file in folder.iterdir()] == ["conversion.json"]


def test_options_that_came_later_are_off_and_former_ones_have_to_be(tmp_path, vocab_file):
    conversion = read_conversion(DEFAULT_MODEL)
    features = FeatureConfig(max_seq_length=1024)
    assert (conversion.task, conversion.features) == ("JSONL", features)
    config = FeatureConfig(trim_cells=True)
    write_conversion(tmp_path, conversion_of("WTQ", config, vocab_file, None))
    said = json.loads((tmp_path / "conversion.json").read_text())
    del said["features"]["prune_columns"]
    said["features"]["add_aggregation_candidates"] = False
    (tmp_path / "conversion.json").write_text(json.dumps(said))
    assert read_conversion(tmp_path).features == config


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"{", "Expecting property name"),
        (b"\xff", ".*can't decode byte 0xff"),
        (b"[]", r"expected conversion to be set by its keys task, features, .*, got \[\]"),
        (b'{"task": "WTQ"}', "expected the keys features, tagger, vocabulary_sha256 in conversion"),
        ({"features": []}, r"expected conversion.features to be set by its keys .*, got \[\]"),
        ({"features": {"color": 1}}, "unknown key conversion.features.color; the known keys are m"),
        ({"features": {"trim_cells": "true"}}, "expected bool for conversion.features.trim_cells"),
        (
            {"features": {"add_aggregation_candidates": True}},
            "expected False for conversion.features.add_aggregation_candidates, an option of",
        ),
        ({"features": {"max_seq_length": 2}}, "expected max_seq_length to be at least 4, got 2"),
        ({"weather": "fine"}, "unknown key conversion.weather; the known keys are task, features"),
        ({"vocabulary_sha256": None}, "expected str for conversion.vocabulary_sha256, got None"),
    ],
)
def test_what_is_no_conversion_is_named(tmp_path, vocab_file, content, message):
    write_conversion(tmp_path, conversion_of("WTQ", FeatureConfig(), vocab_file, None))
    file = tmp_path / "conversion.json"
    if isinstance(content, dict):
        content = json.dumps(json.loads(file.read_text()) | content).encode()
    file.write_bytes(content)
    with pytest.raises(
        ValueError,
        match=rf"conversion.json to say how the records were made, got an error: {message}",
    ):
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
