"""The golden conversions: data sets read, interactions in, token features out, one by one.

Every feature of every classifier example is compared exactly, and a conversion that failed in the
original must fail here, for the same reason.
"""

from collections import Counter
from typing import Any

import numpy as np

from mate_tf.datasets.sqa import read_sqa
from mate_tf.datasets.tabfact import read_tabfact
from mate_tf.features.builder import FeatureBuilder
from mate_tf.features.config import ConversionError
from mate_tf.features.normalization import normalize_denotation, normalize_for_match
from mate_tf.features.numeric import NumericSpan, parse_text
from mate_tf.features.tokenized_table import table_features
from mate_tf.features.wordpiece import Wordpiece
from mate_tf.records.batches import read_records
from mate_tf.tables.table import Question
from tests.golden.interactions import (
    CELL_SELECTION,
    CLASSIFIER,
    EMPTY_EXAMPLE,
    MASKED_LM,
    READER,
    compare_examples,
    feature_config,
    load,
    paired,
    parametrize_goldens,
    selected_tokens,
    to_question,
    to_table,
    value,
)
from tests.small import cases, write_records

FAMILY = "data"
TABFACT_INTERACTIONS = "data/tabfact_interactions_train"
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


def pytest_generate_tests(metafunc) -> None:
    # What is converted from an interaction alone; test_hybridqa.py has the others.
    is_read = metafunc.function is test_records_of_the_original_are_read_and_written_again
    others = (CELL_SELECTION, MASKED_LM) if is_read else ()
    parametrize_goldens(metafunc, CLASSIFIER, READER, *others)


def without_candidates(folder, name: str, features: dict[str, Any]) -> dict[str, Any]:
    """The features that the project has; the others are listed."""
    if left_out := [key for key in CANDIDATES if key in features]:
        listed = (FAMILY, f"{left_out} of {name}", "the project makes no aggregation candidates")
        if listed not in folder.tally.left_out:
            folder.tally.left_out.append(listed)
    return {key: value for key, value in features.items() if key not in CANDIDATES}


def test_conversion_equals_the_originals(folder, conversion):
    original = conversion.entry["config"]
    config = feature_config(original)
    files = (f"{conversion.name}.json.gz", f"{conversion.source}.json.gz", original["vocab_file"])
    examples, interactions, vocab_file = folder.require(*map(conversion.path, files))
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
        expected.append(without_candidates(folder, conversion.name, example["features"]))
    different = [errors for errors in refused if errors[1] != errors[2]]
    assert not different, f"the original's error, what it is here, what came: {different}"
    folder.compare(FAMILY, f"{conversion.name} refusals", len(refused), len(refused), 0.0)
    for reason, count in left_out.items():
        folder.tally.left_out.append((FAMILY, f"{count} of {conversion.name}", reason))
    compare_examples(folder, conversion.name, actual, expected)


def test_records_of_the_original_are_read_and_written_again(folder, conversion, tmp_path):
    json_file, record_file = folder.require(
        conversion.path(f"{conversion.name}.json.gz"),
        conversion.path(f"{conversion.name}.tfrecord"),
    )
    expected = [
        without_candidates(folder, conversion.name, example["features"])
        for example in load(json_file)["examples"]
        if example["features"]
    ]
    read = list(read_records(record_file).as_numpy_iterator())
    compare_examples(folder, f"{conversion.name} read", read, expected)
    written = tmp_path / "again.tfrecord"
    assert write_records(written, read) == len(expected) > 0
    again = list(read_records(written).as_numpy_iterator())
    compare_examples(folder, f"{conversion.name} written", again, expected)


@cases(
    "fixture, reader, directory, split, interactions",
    ("golden", read_sqa, "data/sqa_mini_input", "train", "data/sqa_interactions_train"),
    ("golden", read_tabfact, "data/tabfact_mini_input", "train", TABFACT_INTERACTIONS),
    ("golden_real", read_tabfact, "inputs/tabfact_mini", "dev", "tabfact_val60_interactions"),
)
def test_pairs_are_read_as_by_the_original(
    request, fixture, reader, directory, split, interactions
):
    golden = request.getfixturevalue(fixture)
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
    golden.compare(FAMILY, f"{interactions} read", len(ids), len(expected), 0.0)


def test_wordpieces_of_texts_equal_the_originals(golden):
    file, vocab_file = golden.require("data/text_goldens.json.gz", "data/vocab.txt")
    texts, _, _, expected = zip(*load(file)["tokenize"], strict=True)
    actual = Wordpiece(vocab_file).ids(texts)
    assert list(map(len, actual)) == list(map(len, expected))
    golden.compare(FAMILY, "tokenize", np.concatenate(actual), np.concatenate(expected), 0.0)


def load_cases(golden, family: str):
    (file,) = golden.require("data/text_goldens.json.gz")
    return load(file)[family]


def test_numbers_and_dates_in_texts_equal_the_originals(golden):
    cases = load_cases(golden, "parse_text")
    different = []
    for case in cases:
        expected = [
            NumericSpan(
                span.get("begin_index", 0), span["end_index"], tuple(map(value, span["values"]))
            )
            for span in case["spans"]
        ]
        if parse_text(case["text"], original=True) != expected:
            different.append(case["text"])
    assert not different
    golden.compare("texts", "parse_text", len(cases) - len(different), len(cases), 0.0)


@cases(
    "family, function",
    ("normalize_for_match", normalize_for_match),
    ("wtq_normalize", lambda text: normalize_denotation(text, original=True)),
)
def test_texts_are_normalised_as_the_original_does(golden, family, function):
    cases = load_cases(golden, family)
    different = [(text, expected) for text, expected in cases if function(text) != expected]
    assert not different
    golden.compare("texts", family, len(cases) - len(different), len(cases), 0.0)
