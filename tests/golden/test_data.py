"""The golden conversions: interactions in, token features out, feature by feature.

Every feature of every classifier example is compared exactly, and a conversion that failed in the
original must fail here, for the same reason.
"""

from typing import Any

import numpy as np
import pytest

from mate_tf.features.builder import FeatureBuilder
from mate_tf.features.config import ConversionError, FeatureConfig
from mate_tf.features.tokenized_table import table_features
from mate_tf.features.wordpiece import Wordpiece
from mate_tf.records.batches import read_records
from mate_tf.records.records import write_records
from mate_tf.tables.table import Question
from tests.golden.interactions import (
    EMPTY_EXAMPLE,
    compare_examples,
    load,
    paired,
    parametrize_goldens,
    selected_tokens,
    to_question,
    to_table,
)

FAMILY = "data"
# What is converted from an interaction alone; test_hybridqa.py and test_masked_lm.py have the rest.
KINDS = "classifier|hybridqa reader"
# The original's options by our names.
OPTIONS = {
    "max_seq_length": "max_seq_length",
    "max_column_id": "max_column_id",
    "max_row_id": "max_row_id",
    "cell_trim_length": "cell_trim_length",
    "drop_rows_to_fit": "drop_rows_to_fit",
    "strip_column_names": "strip_column_names",
    "use_document_title": "use_document_title",
    "use_context_title": "use_context_heading",
    "update_answer_coordinates": "label_answer_spans",
}
# trim_question_ids cuts identifiers to their last 64 characters, which is always done here;
# aggregation candidates are not made here, and the other features are the same without them.
OPTIONS_WITHOUT_A_NAME = {"vocab_file", "trim_question_ids", "add_aggregation_candidates"}
CANDIDATES = ("cand_num", "can_aggregation_function_ids", "can_sizes", "can_indexes")
# A failure that supervision reports here, before a question is converted.
INVALID_ANSWER = "Invalid answer"
# A failure to make aggregation candidates.
SEVERAL_ANSWER_CELLS = "Expected a single answer coordinate."
REASONS = {
    "Sequence too long": "too long",
    "Too many columns": "too many columns",
    "Too many rows": "too many rows",
    "Couldn't find all answers": "answer cut off",
}


def feature_config(original: dict[str, Any]) -> FeatureConfig:
    unknown = original.keys() - OPTIONS - OPTIONS_WITHOUT_A_NAME
    assert not unknown, f"expected the original's options {list(OPTIONS)}, got {unknown}"
    return FeatureConfig(
        **{OPTIONS[name]: value for name, value in original.items() if name in OPTIONS},
        trim_cells="cell_trim_length" not in original,
        original_conversion=True,
    )


def without_candidates(features: dict[str, Any]) -> dict[str, Any]:
    return {name: values for name, values in features.items() if name not in CANDIDATES}


def pytest_generate_tests(metafunc) -> None:
    is_read = metafunc.function is test_records_of_the_original_are_read_and_written_again
    parametrize_goldens(metafunc, f"{KINDS}|hybridqa" if is_read else KINDS)


@pytest.fixture
def folder(request, conversion):
    """The golden folder of a conversion."""
    return request.getfixturevalue(conversion.fixture)


def test_conversion_equals_the_originals(folder, conversion):
    original = conversion.entry["config"]
    config = feature_config(original)
    files = (f"{conversion.name}.json.gz", f"{conversion.source}.json.gz", original["vocab_file"])
    examples, interactions, vocab_file = folder.require(*map(conversion.path, files))
    wordpiece = Wordpiece(vocab_file)
    builder = FeatureBuilder(wordpiece, config)
    actual, expected, reasons = [], [], {}
    for example, interaction in paired(load(examples)["examples"], load(interactions)):
        if example.get("error") in (INVALID_ANSWER, SEVERAL_ANSWER_CELLS):
            continue
        table, question, of_table = None, Question("", EMPTY_EXAMPLE), {}
        if interaction is not None:
            question = to_question(interaction["questions"], example["index"])
            table = to_table(interaction["table"])
            selected = selected_tokens(
                interaction["table"], interaction["questions"][example["index"]]
            )
            if selected:
                continue  # tokens chosen beforehand, which no part of this project does
            if selected == []:
                table, of_table = None, table_features(table)
        try:
            features = builder.build(table, question).features | of_table
        except ConversionError as error:
            reasons[example["question_id"], example["index"]] = (
                error.reason,
                REASONS.get(example.get("error")),
            )
            continue
        assert "error" not in example, f"converted in spite of {example['error']!r}"
        actual.append(features)
        expected.append(without_candidates(example["features"]))
    assert all(ours == theirs for ours, theirs in reasons.values()), reasons
    compare_examples(folder, conversion.name, actual, expected)


def test_records_of_the_original_are_read_and_written_again(folder, conversion, tmp_path):
    json_file, record_file = folder.require(
        conversion.path(f"{conversion.name}.json.gz"),
        conversion.path(f"{conversion.name}.tfrecord"),
    )
    expected = [
        without_candidates(example["features"])
        for example in load(json_file)["examples"]
        if example["features"]
    ]
    read = list(read_records(record_file).as_numpy_iterator())
    compare_examples(folder, f"{conversion.name} read", read, expected)
    written = tmp_path / "again.tfrecord"
    assert write_records(written, read) == len(expected) > 0
    again = list(read_records(written).as_numpy_iterator())
    compare_examples(folder, f"{conversion.name} written", again, expected)


def test_wordpieces_of_texts_equal_the_originals(golden):
    file, vocab_file = golden.require("data/text_goldens.json.gz", "data/vocab.txt")
    texts, _, _, expected = zip(*load(file)["tokenize"], strict=True)
    actual = Wordpiece(vocab_file).ids(texts)
    assert list(map(len, actual)) == list(map(len, expected))
    golden.compare(FAMILY, "tokenize", np.concatenate(actual), np.concatenate(expected), 0.0)
