"""What releases have for scores, the formats of answers, and WTQ's definition of a right one."""

import json
import pathlib
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mate_tf.answers.answer import Answer
from mate_tf.datasets.hybridqa import read_hybridqa
from mate_tf.evaluation.official import (
    check_official_format,
    denotation_correct,
    read_golds,
    read_official,
    write_official,
)
from mate_tf.evaluation.scoring import score
from mate_tf.tables.table import Question, Table
from tests.data_folders import HYBRIDQA_SAMPLE

TABLE = Table(("a",), (("b",),), "1.csv")


def asked(*ids):
    return [(TABLE, Question("?", id_, answers=("x",))) for id_ in ids]


@pytest.fixture
def wtq(tmp_path):
    folder = tmp_path / "tagged" / "data"
    folder.mkdir(parents=True)
    for name, id_ in (("training", "nt-1"), ("pristine-unseen-tables", "nu-1")):
        text = f"id\ttargetValue\ttargetCanon\n{id_}\t1,000\t1000.0\n"
        (folder / f"{name}.tagged").write_text(text)
    return tmp_path


def test_annotated_golds_are_found_in_whichever_file_has_them_and_unknown_ids_refused(wtq):
    official = read_official("WTQ", wtq, "dev", asked("nt-1-0_0", "nu-1"))
    values = {id_: gold[0].value for id_, gold in official.golds.items()}
    assert values == {"nt-1-0_0": 1000.0, "nu-1": 1000.0}
    with pytest.raises(ValueError, match=r"of 2 questions, got none for 1 of them.*'nt-9'"):
        read_official("WTQ", wtq, "dev", asked("nt-1", "nt-9"))
    with pytest.raises(FileNotFoundError, match=r"expected \.tagged files in"):
        read_official("WTQ", wtq / "tagged", "dev", asked("nt-1"))


def test_a_task_without_official_files_or_format_is_refused():
    with pytest.raises(ValueError, match=r"one of \['WTQ', 'TABFACT', 'HYBRIDQA'\], got SQA"):
        read_official("SQA", ".", "dev", asked("q"))
    with pytest.raises(ValueError, match=r"one of \['WTQ', 'SQA', 'HYBRIDQA'\], got TABFACT"):
        check_official_format("TABFACT", ["1"])


def test_answers_are_written_in_each_format_by_the_releases_ids(tmp_path):
    path = tmp_path / "official"
    write_official("WTQ", path, {"nt-1-0_0": Answer(("a\tb", "é\n")), "nt-2": Answer()})
    assert path.read_text(encoding="utf-8") == "nt-1\ta b\té\nnt-2\n"
    write_official("HYBRIDQA", path, {"ab-0_0": Answer(("a", "b")), "cd": Answer()})
    assert json.loads(path.read_text()) == [
        {"question_id": "ab", "pred": "a, b"},
        {"question_id": "cd", "pred": ""},
    ]


@pytest.mark.parametrize("original", [False, True])
def test_the_sample_of_hybridqa_is_scored_in_the_table_and_in_passages(original):
    if not HYBRIDQA_SAMPLE.is_dir():
        pytest.skip(f"no sample of HybridQA at {HYBRIDQA_SAMPLE}")
    pairs = [(of.table, q) for of, q in read_hybridqa(HYBRIDQA_SAMPLE, "dev", original=original)]
    official = read_official("HYBRIDQA", HYBRIDQA_SAMPLE, "dev", pairs)
    predictions = {
        question.question_id: Answer((f"The {question.answers[0].split()[0]} !",))
        for _, question in pairs
    }
    metrics = score("HYBRIDQA", predictions, pairs, official)
    # The release's own figures, with two digits; those of the parts in whole questions.
    assert 100 * metrics["exact_match"] == pytest.approx(54.17, abs=0.005)
    assert 100 * metrics["f1"] == pytest.approx(82.50, abs=0.005)
    matches = 10 * metrics["exact_match_in_table"] + 13 * metrics["exact_match_in_passage"]
    # One question is in neither part: its answer, of one word, is a count.
    assert matches + 1 == pytest.approx(24 * metrics["exact_match"])


def statements(*table_ids):
    return [
        (Table(("a",), (("b",),), table_id), Question("?", f"{table_id}_0-0_0", class_index=1))
        for table_id in table_ids
    ]


@pytest.fixture
def release(tmp_path):
    (tmp_path / "data").mkdir()
    lists = {"simple": ["1.csv", "2.csv"], "complex": ["3.csv"], "small": ["9.csv"]}
    for part, ids in lists.items():
        (tmp_path / "data" / f"{part}_test_id.json").write_text(json.dumps(ids))
    return tmp_path


@pytest.mark.parametrize("prefix", ["", "table_csv/"])
def test_parts_hold_the_statements_of_their_tables_and_empty_ones_are_left_out(release, prefix):
    pairs = statements(*(f"{prefix}{number}.csv" for number in (1, 2, 3, 4)))
    assert read_official("TABFACT", release, "test", pairs).parts == {
        "simple": {f"{prefix}1.csv_0-0_0", f"{prefix}2.csv_0-0_0"},
        "complex": {f"{prefix}3.csv_0-0_0"},
    }


def test_lists_that_are_not_there_are_left_out_and_those_of_another_split_refused(release):
    pairs = statements("1.csv", "3.csv")
    (release / "data" / "simple_test_id.json").unlink()
    assert set(read_official("TABFACT", release, "test", pairs).parts) == {"complex"}
    with pytest.raises(ValueError, match="tables of the test split, got 1 about others"):
        read_official("TABFACT", release, "test", statements("4.csv"))
    with pytest.raises(FileNotFoundError, match=r"simple_test_id\.json.*found none"):
        read_official("TABFACT", release / "data", "test", pairs)


# Items that are predicted, whether they are right, and the gold ones, with bars between them.
ITEMS = pathlib.Path(__file__).with_name("items.txt").read_text(encoding="utf-8").splitlines()


@pytest.mark.parametrize("line", ITEMS)
def test_items_are_compared_as_sets_of_texts_numbers_and_dates(line):
    predicted, verdict, gold = re.fullmatch(r"(.*) (equals|is not) (.*)", line).groups()
    items = [[item for item in side.split("|") if item] for side in (predicted, gold)]
    assert denotation_correct(*items) is (verdict == "equals")


@given(st.lists(st.text(), min_size=1))
def test_an_answer_equals_itself_in_any_order(items):
    assert denotation_correct(items[::-1], items)


def test_golds_are_read_with_and_without_annotation(tmp_path):
    plain, tagged = tmp_path / "a.tsv", tmp_path / "a.tagged"
    plain.write_text("id\ttargetValue\nnt-0\t1,000|a\\pb\n")
    tagged.write_text("id\ttargetValue\ttargetCanon\nnt-0\t1,000|a\\pb\t1000.0|a\\pb\n")
    assert [item.value for item in read_golds(plain)["nt-0"]] == ["1,000", "a|b"]
    assert [item.value for item in read_golds(tagged)["nt-0"]] == [1000.0, "a|b"]
    tagged.write_text("id\ttargetValue\ttargetCanon\nnt-0\ta|b\ta\n")
    with pytest.raises(ValueError, match="expected 2 canonical values, got 1"):
        read_golds(tagged)
