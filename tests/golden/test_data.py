"""The golden conversions: data sets read, interactions in, token features out, one by one.

Every feature of every classifier example is compared exactly, and a conversion that failed in the
original must fail here, for the same reason.
"""

from collections import Counter
from typing import Any

import numpy as np

from mate_tf.datasets.tabfact import read_tabfact
from mate_tf.datasets.wtq import read_sqa
from mate_tf.features.builder import FeatureBuilder
from mate_tf.features.config import ConversionError
from mate_tf.features.english import (
    normalize_denotation,
    normalize_for_match,
    normalize_words,
)
from mate_tf.features.numeric import parse_text
from mate_tf.features.tokenized_table import table_features
from mate_tf.features.wordpiece import Wordpiece
from mate_tf.records.batches import read_records
from mate_tf.tables.table import Question
from tests import golden_tally
from tests.golden.comparison import GOLDEN, GOLDEN_REAL, compare
from tests.golden.interactions import (
    CELL_SELECTION,
    CLASSIFIER,
    EMPTY_EXAMPLE,
    MASKED_LM,
    READER,
    compare_examples,
    each_conversion,
    feature_config,
    load,
    paired,
    selected_tokens,
    to_question,
    to_table,
    value,
)
from tests.small import cases, write_records

FAMILY = "data"
# What the project does not compute: aggregation candidates, and tokens chosen beforehand.
CANDIDATES = ("cand_num", "can_aggregation_function_ids", "can_sizes", "can_indexes")
WITH_CHOSEN_TOKENS = "the original chose tokens beforehand"
# Failures of the original that are none of a conversion here, and why.
ELSEWHERE = {
    "Invalid answer": "supervision refuses them before conversion, see test_wtq_outcomes.py",
    "Expected a single answer coordinate.": "the original made no aggregation candidates for them",
}
REASONS = {
    "Sequence too long": "too long",
    "Too many columns": "too many columns",
    "Too many rows": "too many rows",
    "Couldn't find all answers": "answer cut off",
}


def without_candidates(name: str, examples: list[dict]) -> list[dict[str, Any]]:
    """The features that the project has; the others are listed."""
    if left_out := [key for key in CANDIDATES if any(key in features for features in examples)]:
        reason = "the project makes no aggregation candidates"
        golden_tally.left_out(FAMILY, f"{left_out} of {name}", reason)
    return [{k: v for k, v in features.items() if k not in CANDIDATES} for features in examples]


# What is converted from an interaction alone; test_hybridqa.py has the others.
@each_conversion(CLASSIFIER, READER)
def test_conversion_equals_the_originals(conversion):
    original = conversion.entry["config"]
    config = feature_config(original)
    files = (f"{conversion.name}.json.gz", f"{conversion.source}.json.gz", original["vocab_file"])
    examples, interactions, vocab_file = conversion.require(*files)
    wordpiece = Wordpiece(vocab_file)
    builder = FeatureBuilder(wordpiece, config)
    actual, expected, refused = [], [], []
    left_out = Counter[str]()
    for example, interaction in paired(load(examples)["examples"], load(interactions)):
        if reason := ELSEWHERE.get(example.get("error")):
            left_out[reason] += 1
            continue
        table, question, of_table = None, Question("", EMPTY_EXAMPLE), {}
        if interaction is not None:
            question = to_question(interaction["questions"], example["index"])
            table = to_table(interaction["table"])
            selected = selected_tokens(
                interaction["table"], interaction["questions"][example["index"]]
            )
            if selected:
                left_out[WITH_CHOSEN_TOKENS] += 1
                continue
            if selected == []:
                table, of_table = None, table_features(table)
        try:
            features = builder.build(table, question).features | of_table
        except ConversionError as error:
            refused.append((example.get("error"), REASONS.get(example.get("error")), error.reason))
            continue
        assert "error" not in example, f"converted in spite of {example['error']!r}"
        actual.append(features)
        expected.append(example["features"])
    different = [errors for errors in refused if errors[1] != errors[2]]
    assert not different, f"the original's error, what it is here, what came: {different}"
    name = conversion.name
    golden_tally.compared(FAMILY, f"{name} refusals", 0.0, 0.0)
    for reason, count in left_out.items():
        golden_tally.left_out(FAMILY, f"{count} of {name}", reason)
    compare_examples(name, actual, without_candidates(name, expected))


@each_conversion(CLASSIFIER, READER, CELL_SELECTION, MASKED_LM)
def test_records_of_the_original_are_read_and_written_again(conversion, tmp_path):
    name = conversion.name
    json_file, record_file = conversion.require(f"{name}.json.gz", f"{name}.tfrecord")
    features = [it["features"] for it in load(json_file)["examples"] if it["features"]]
    expected = without_candidates(name, features)
    read = list(read_records(record_file).as_numpy_iterator())
    compare_examples(f"{name} read", read, expected)
    written = tmp_path / "again.tfrecord"
    assert write_records(written, read) == len(expected) > 0
    again = list(read_records(written).as_numpy_iterator())
    compare_examples(f"{name} written", again, expected)


@cases(
    "golden, reader, directory, split, interactions",
    (GOLDEN, read_sqa, "data/sqa_mini_input", "train", "data/sqa_interactions_train"),
    (GOLDEN, read_tabfact, "data/tabfact_mini_input", "train", "data/tabfact_interactions_train"),
    (GOLDEN_REAL, read_tabfact, "inputs/tabfact_mini", "dev", "tabfact_val60_interactions"),
)
def test_pairs_are_read_as_by_the_original(golden, reader, directory, split, interactions):
    input_dir, file = golden.require(directory, f"{interactions}.json.gz")
    expected = [
        (to_table(interaction["table"]), to_question(interaction["questions"], index))
        for interaction in load(file)
        for index in range(len(interaction["questions"]))
    ]
    ids = {question.question_id for _, question in expected}
    read = list(reader(input_dir, split, original=True))
    assert len({question.question_id for _, question in read}) == len(read)
    # The folder of real tables holds a part of what was read.
    assert [pair for pair in read if pair[1].question_id in ids] == expected
    compare(FAMILY, f"{interactions} read", len(ids), len(expected), 0.0)


def text_goldens(family: str):
    (file,) = GOLDEN.require("data/text_goldens.json.gz")
    return load(file)[family]


def test_wordpieces_of_texts_equal_the_originals():
    (vocab_file,) = GOLDEN.require("data/vocab.txt")
    texts, _, _, expected = zip(*text_goldens("tokenize"), strict=True)
    actual = Wordpiece(vocab_file).ids(texts)
    assert list(map(len, actual)) == list(map(len, expected))
    compare(FAMILY, "tokenize", np.concatenate(actual), np.concatenate(expected), 0.0)


def test_numbers_and_dates_in_texts_equal_the_originals():
    for case in text_goldens("parse_text"):
        expected = [
            (span.get("begin_index", 0), span["end_index"], tuple(map(value, span["values"])))
            for span in case["spans"]
        ]
        assert parse_text(case["text"], original=True) == expected, case["text"]
    golden_tally.compared("texts", "parse_text", 0.0, 0.0)


@cases(
    "family, function",
    ("normalize_for_match", normalize_for_match),
    ("wtq_normalize", lambda text: normalize_denotation(text, original=True)),
    ("hybridqa_normalize", normalize_words),
)
def test_texts_are_normalised_as_the_original_does(family, function):
    assert not [pair for pair in text_goldens(family) if function(pair[0]) != pair[1]]
    golden_tally.compared("texts", family, 0.0, 0.0)
