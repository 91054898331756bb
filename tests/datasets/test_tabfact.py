from collections import Counter
from pathlib import Path

import pytest

from mate_tf.datasets.tabfact import read_tabfact
from tests.datasets.releases import write_files

TABFACT = Path("../shared/data/tabfact")
ENTRY = [["it be blue", "it be red", 'it be "1#2"'], [1, 0, 0], "colours"]
SO = [["so"], [1], ""]


TABLES = {
    "data/all_csv/1-1.html.csv": 'name#colour\r\nsky#"blue"\r\nn/a#\r\n',
    "data/all_csv/1-2.html.csv": "name\nx\n",
}


def test_reads_statements_with_class_table_and_caption(tmp_path):
    entries = {"1-2.html.csv": SO, "1-1.html.csv": ENTRY}
    release = write_files(tmp_path, TABLES | {"tokenized_data/val_examples.json": entries})
    pairs = list(read_tabfact(release, "dev"))
    ids = [question.question_id for _, question in pairs]
    assert ids == ["1-2.html.csv_0-0_0", *(f"1-1.html.csv_{i}-0_0" for i in range(3))]
    assert [question.class_index for _, question in pairs] == [1, 1, 0, 0]
    assert pairs[3][1].text == 'it be "1#2"'
    table = pairs[1][0]
    assert (table.table_id, table.document_title) == ("1-1.html.csv", "colours")
    assert table.header == ("name", "colour")
    assert table.rows == (("sky", '"blue"'), ("n/a", ""))
    assert all(same is table for same, _ in pairs[1:])
    assert pairs == list(read_tabfact(release, "val"))


def test_original_reads_what_was_collected_without_captions(tmp_path):
    collected = {
        "collected_data/r1_training_all.json": {"1-1.html.csv": ENTRY},
        "collected_data/r2_training_all.json": {"1-2.html.csv": [["so"], [1], "x"]},
        "data/train_id.json": ["1-2.html.csv", "1-1.html.csv"],
    }
    pairs = list(read_tabfact(write_files(tmp_path, TABLES | collected), "train", original=True))
    ids = [question.question_id for _, question in pairs]
    assert ids[:2] == ["1-2.html.csv_0-0_0", "1-1.html.csv_0-0_0"]
    names = {(table.table_id, table.document_title) for table, _ in pairs}
    assert names == {("table_csv/1-1.html.csv", ""), ("table_csv/1-2.html.csv", "")}
    assert pairs[1][0].rows == (("sky", "blue"), ("n/a", ""))


@pytest.mark.parametrize("original", [False, True])
def test_a_table_without_a_row_is_refused_with_its_file(tmp_path, original):
    entries = {"1-2.html.csv": SO}
    files = {
        "data/all_csv/1-2.html.csv": "name\n",
        "tokenized_data/val_examples.json": entries,
        "collected_data/r1_training_all.json": entries,
        "collected_data/r2_training_all.json": {},
        "data/val_id.json": ["1-2.html.csv"],
    }
    release = write_files(tmp_path, files)
    with pytest.raises(ValueError, match=r"at least 1 row .*\(file '.*1-2.html.csv'\)"):
        list(read_tabfact(release, "dev", original))


def test_every_official_statement_of_the_validation_split_is_read():
    if not TABFACT.is_dir():
        pytest.skip(f"no TabFact at {TABFACT}")
    pairs = list(read_tabfact(TABFACT, "dev"))
    assert len({question.question_id for _, question in pairs}) == 12_792 == len(pairs)
    assert len({table.table_id for table, _ in pairs}) == 1_696
    assert all(table.document_title and question.text for table, question in pairs)
    counts = Counter(question.class_index for _, question in pairs)
    assert set(counts) == {0, 1}
