"""The comparison of an exported model's signatures with the library, from the outside."""

import json

import pytest

from experiments.benchmarks.compare_signatures import different_features
from mate_tf.features.builder import FeatureBuilder
from mate_tf.features.config import FeatureConfig
from mate_tf.features.wordpiece import Wordpiece
from mate_tf.tables.table import Question, Table
from tests.small import export_small, run_binary

pytestmark = pytest.mark.medium

ROWS = [
    {"id": "first", "question": "a b", "rows": [["1", "c"], ["2", "d"]]},
    {"id": "long", "question": "c " * 90, "rows": [["1", "c"], ["2", "d"]]},
    {"id": "second", "question": "h 2", "rows": [["1", "e"], ["f", "g"], ["may 5", "h"]]},
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """An exported model with random weights, and beside it a file of questions."""
    directory = tmp_path_factory.mktemp("compare")
    export_small(directory / "model", 64, tables=True)
    lines = [
        {
            "id": row["id"],
            "question": row["question"],
            "answers": [],
            "table": {"id": row["id"], "header": ["a", "b"], "rows": row["rows"]},
        }
        for row in ROWS
    ]
    text = "".join(json.dumps(line) + "\n" for line in lines)
    (directory / "dev.jsonl").write_text(text, encoding="utf-8")
    return directory


def compare(folder, *flags):
    return run_binary(
        "experiments.benchmarks.compare_signatures", f"--model={folder / 'model'}", *flags
    )


def test_tables_are_answered_and_refused_as_by_the_library(folder):
    done = compare(folder, f"--data={folder / 'dev.jsonl'}", "--task=JSONL")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "library: 3 questions, 1 refused",
        "tables: 3 of 3 the same, 100.00 %",
    ]


def test_the_features_that_the_graph_makes_in_another_way_are_named(folder):
    builder = FeatureBuilder(Wordpiece(folder / "vocab.txt"), FeatureConfig(max_seq_length=64))
    table = Table.from_rows([["a"], ["1103"], ["1"]])
    assert different_features(builder, None, table, Question("a 1103")) == []
    # The graph reads the parts of a length of time in one order alone.
    table = Table.from_rows([["a"], ["30m 1h"], ["2h 1m"]])
    assert different_features(builder, None, table, Question("a")) == [
        "column_ranks",
        "inv_column_ranks",
    ]
