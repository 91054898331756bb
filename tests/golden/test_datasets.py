"""The readers of data sets against the original's interactions and examples.

Each folder of input is read as the original reads it, and every table and question that it made of
it must come out; the features of what was read must be the original's, too.
"""

from typing import NamedTuple

import pytest

from mate_tf.datasets.sqa import read_sqa
from mate_tf.datasets.tabfact import read_tabfact
from mate_tf.features.builder import FeatureBuilder
from mate_tf.features.wordpiece import Wordpiece
from tests.golden.interactions import (
    compare_examples,
    feature_config,
    load,
    of_question,
    to_question,
    to_table,
)


class Case(NamedTuple):
    """A folder of input, what the original read from it, and what it converted it to."""

    fixture: str
    folder: str
    reader: object
    directory: str
    split: str
    interactions: str
    examples: tuple[str, ...]


CASES = {
    "sqa": Case(
        "golden",
        "data",
        read_sqa,
        "sqa_mini_input",
        "train",
        "sqa_interactions_train",
        ("sqa_train_256",),
    ),
    "tabfact": Case(
        "golden",
        "data",
        read_tabfact,
        "tabfact_mini_input",
        "train",
        "tabfact_interactions_train",
        ("tabfact_train_256",),
    ),
    "tabfact_real": Case(
        "golden_real",
        ".",
        read_tabfact,
        "inputs/tabfact_mini",
        "dev",
        "tabfact_val60_interactions",
        ("tabfact_val60_512", "tabfact_val60_512_drop", "tabfact_val60_256_drop"),
    ),
}


@pytest.fixture(params=CASES, ids=str)
def case(request) -> Case:
    return CASES[request.param]


@pytest.fixture
def folder(request, case):
    return request.getfixturevalue(case.fixture)


@pytest.fixture
def pairs(folder, case):
    """What the project reads, by the question's id, in its order."""
    (directory,) = folder.require(f"{case.folder}/{case.directory}")
    read = list(case.reader(directory, case.split, original=True))
    by_id = {question.question_id: (table, question) for table, question in read}
    assert len(by_id) == len(read)
    return by_id


def test_tables_and_questions_equal_the_originals(folder, case, pairs):
    (file,) = folder.require(f"{case.folder}/{case.interactions}.json.gz")
    expected = [
        (to_table(interaction["table"]), to_question(interaction["questions"], index))
        for interaction in load(file)
        for index in range(len(interaction["questions"]))
    ]
    ids = [question.question_id for _, question in expected]
    # The folder of real tables holds a part of what was read.
    read = [pairs[question_id] for question_id in pairs if question_id in set(ids)]
    assert read == expected


def test_features_of_what_is_read_equal_the_originals(folder, case, pairs):
    for name in case.examples:
        file, vocab_file = folder.require(
            f"{case.folder}/{name}.json.gz", f"{case.folder}/vocab.txt"
        )
        content = load(file)
        config = feature_config(content["meta"]["config"])
        builder = FeatureBuilder(Wordpiece(vocab_file), config)
        actual, expected = [], []
        for example in content["examples"]:
            table, question = of_question(pairs, example["question_id"])
            if example["features"] is None:
                assert example["error"] == "Sequence too long", f"unknown: {example['error']!r}"
                with pytest.raises(ValueError, match=r"expected at most .* tokens"):
                    builder.build(table, question)
            else:
                actual.append(builder.build(table, question).features)
                expected.append(example["features"])
        compare_examples(folder, f"{name} read from {case.directory}", actual, expected)
