"""The golden conversions: interactions in, token features out, feature by feature.

Every feature of every classifier example is compared exactly, and a conversion that failed in the
original must fail here, with a ValueError.
"""

import re
from typing import Any

import numpy as np
import pytest

from mate_tf.tables.features import FeatureBuilder, FeatureConfig
from mate_tf.tables.records import read_records, write_records
from mate_tf.tables.wordpiece import Wordpiece
from tests.golden.interactions import (
    compare_examples,
    load,
    paired,
    to_question,
    to_table,
)

FAMILY = "data"
# What a conversion may be asked for, besides what is off.
SUPPORTED_OPTIONS = {
    "vocab_file",
    "max_seq_length",
    "max_column_id",
    "max_row_id",
    "drop_rows_to_fit",
    "trim_question_ids",
}
# Failures that supervision reports here, before a question is converted.
SUPERVISION_FAILURES = {"Invalid answer"}
FAILURES = {
    "Sequence too long": "expected at most .* tokens",
    "Too many columns": "expected at most .* columns",
    "Too many rows": "expected at most .* rows",
    "Couldn't find all answers": "answer cells in the sequence",
}


def supported_config(golden, name: str, entry: dict[str, Any]) -> FeatureConfig:
    if not entry["kind"].startswith("classifier"):
        golden.not_compared(FAMILY, name, f"no conversion of the kind {entry['kind']} yet")
    config = entry["config"]
    asked = [option for option, value in config.items() if value is not False]
    if set(asked) - SUPPORTED_OPTIONS:
        golden.not_compared(FAMILY, name, f"options {sorted(set(asked) - SUPPORTED_OPTIONS)}")
    return FeatureConfig(
        max_seq_length=config["max_seq_length"],
        max_column_id=config["max_column_id"],
        max_row_id=config["max_row_id"],
        trim_cells=True,
        drop_rows_to_fit=config.get("drop_rows_to_fit", False),
        original_conversion=True,
    )


def pytest_generate_tests(metafunc) -> None:
    index = metafunc.config.golden.load_index("data")
    names = [name for name in index if not name.startswith(("_", "pretrain"))]  # test_masked_lm.py
    if "name" in metafunc.fixturenames:
        metafunc.parametrize("name", names or [pytest.param("", marks=pytest.mark.skip("no data"))])


def test_conversion_equals_the_originals(golden, name):
    entry = golden.load_index("data")[name]
    config = supported_config(golden, name, entry)
    source = re.match(r"\w+", entry["source"])[0]
    files = golden.require(
        f"data/{name}.json.gz",
        f"data/{source}.json.gz",
        f"data/{entry['config']['vocab_file']}",
    )
    interactions = load(files[1])
    if any("table_selection_ext" in key for i in interactions for q in i["questions"] for key in q):
        golden.not_compared(FAMILY, name, "tokens selected beforehand")
    builder = FeatureBuilder(Wordpiece(files[2]), config)
    actual, expected = [], []
    for example, interaction in paired(load(files[0])["examples"], interactions):
        error = example.get("error")
        if error in SUPERVISION_FAILURES:
            continue
        table = to_table(interaction["table"])
        question = to_question(interaction["questions"], example["index"])
        if error:
            if error not in FAILURES:
                golden.not_compared(FAMILY, name, f"the original's error {error!r}")
            with pytest.raises(ValueError, match=FAILURES[error]):
                builder.build(table, question)
        else:
            actual.append(builder.build(table, question).features)
            expected.append(example["features"])
    compare_examples(golden, name, actual, expected)


def test_records_of_the_original_are_read_and_written_again(golden, name, tmp_path):
    entry = golden.load_index("data")[name]
    if not re.match("classifier|hybridqa", entry["kind"]):
        golden.not_compared(FAMILY, name, f"no records of the kind {entry['kind']} yet")
    if entry["config"].get("add_aggregation_candidates"):
        golden.not_compared(FAMILY, name, "candidates vary in number")
    json_file, record_file = golden.require(f"data/{name}.json.gz", f"data/{name}.tfrecord")
    expected = [
        example["features"] for example in load(json_file)["examples"] if example["features"]
    ]
    if not expected:
        golden.not_compared(FAMILY, name, "the original converted nothing")
    read = list(read_records(record_file).as_numpy_iterator())
    compare_examples(golden, f"{name} read", read, expected)
    written = tmp_path / "again.tfrecord"
    assert write_records(written, read) == len(expected)
    again = list(read_records(written).as_numpy_iterator())
    compare_examples(golden, f"{name} written", again, expected)


def test_wordpieces_of_texts_equal_the_originals(golden):
    file, vocab_file = golden.require("data/text_goldens.json.gz", "data/vocab.txt")
    texts, _, _, expected = zip(*load(file)["tokenize"], strict=True)
    actual = Wordpiece(vocab_file).ids(texts)
    assert list(map(len, actual)) == list(map(len, expected))
    golden.compare(FAMILY, "tokenize", np.concatenate(actual), np.concatenate(expected), 0.0)
