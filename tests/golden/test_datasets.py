"""The readers of data sets against the original's interactions.

Each folder of input is read as the original reads it, and every table and question that it made of
it must come out. test_data.py compares the features of the same interactions.
"""

import pytest

from mate_tf.datasets.sqa import read_sqa
from mate_tf.datasets.tabfact import read_tabfact
from tests.golden.interactions import load, to_question, to_table


@pytest.mark.parametrize(
    ("fixture", "reader", "directory", "split", "interactions"),
    [
        ("golden", read_sqa, "data/sqa_mini_input", "train", "data/sqa_interactions_train"),
        (
            "golden",
            read_tabfact,
            "data/tabfact_mini_input",
            "train",
            "data/tabfact_interactions_train",
        ),
        ("golden_real", read_tabfact, "inputs/tabfact_mini", "dev", "tabfact_val60_interactions"),
    ],
)
def test_tables_and_questions_equal_the_originals(
    request, fixture, reader, directory, split, interactions
):
    golden = request.getfixturevalue(fixture)
    folder, file = golden.require(directory, f"{interactions}.json.gz")
    expected = [
        (to_table(interaction["table"]), to_question(interaction["questions"], index))
        for interaction in load(file)
        for index in range(len(interaction["questions"]))
    ]
    ids = {question.question_id for _, question in expected}
    read = list(reader(folder, split, original=True))
    assert len({question.question_id for _, question in read}) == len(read)
    # The folder of real tables holds a part of what was read.
    assert [pair for pair in read if pair[1].question_id in ids] == expected
    golden.compare("data", f"{interactions} read", len(ids), len(expected), 0.0)
