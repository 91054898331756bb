import json

import pytest

from mate_tf.evaluation.official import read_parts
from mate_tf.tables.table import Question, Table


def statements(*table_ids):
    return [
        (Table(("a",), (("b",),), table_id), Question("?", f"{table_id}_0-0_0", class_index=1))
        for table_id in table_ids
    ]


@pytest.fixture
def release(tmp_path):
    (tmp_path / "data").mkdir()
    for part, ids in {
        "simple": ["1.csv", "2.csv"],
        "complex": ["3.csv"],
        "small": ["9.csv"],
    }.items():
        (tmp_path / "data" / f"{part}_test_id.json").write_text(json.dumps(ids))
    return tmp_path


@pytest.mark.parametrize("prefix", ["", "table_csv/"])
def test_parts_hold_the_statements_of_their_tables_and_empty_ones_are_left_out(release, prefix):
    pairs = statements(*(f"{prefix}{number}.csv" for number in (1, 2, 3, 4)))
    assert read_parts(release, pairs) == {
        "simple": {f"{prefix}1.csv_0-0_0", f"{prefix}2.csv_0-0_0"},
        "complex": {f"{prefix}3.csv_0-0_0"},
    }


def test_lists_that_are_not_there_are_left_out(release):
    (release / "data" / "simple_test_id.json").unlink()
    assert set(read_parts(release, statements("1.csv", "3.csv"))) == {"complex"}


def test_statements_of_another_split_are_refused(release):
    with pytest.raises(ValueError, match="tables of the test split, got 1 about others"):
        read_parts(release, statements("4.csv"))


def test_a_folder_without_lists_is_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"simple_test_id\.json.*found none"):
        read_parts(tmp_path, statements("1.csv"))
