import csv

import pytest

from mate_tf.datasets.wtq import (
    read_original_questions,
    read_original_rows,
    read_original_table,
    read_wtq,
    split_list,
)
from tests.data_folders import WTQ
from tests.datasets.releases import write_files
from tests.small import cases, stored_cases

HEADER = "id\tutterance\tcontext\ttargetValue\n"


@pytest.fixture
def release(tmp_path):
    songs = '"Song","Year"\n"The \\"Blue\\" one","1999"\n"two\nlines","2000"\n'
    return write_files(tmp_path, {"csv/0.csv": songs})


def write_split(release, lines, **tables):
    files = {f"csv/{name}.csv": text for name, text in tables.items()}
    write_files(release, {"data/random-split-1-dev.tsv": HEADER + lines} | files)


def test_escapes_are_undone_and_quotation_marks_are_ordinary(release):
    write_split(
        release, 'nt-1\tis "a\\nb?\tcsv/0.csv\t"Blue|a\\pb|c\\\\n\nnt-2\tand?\tcsv/0.csv\t1999\n'
    )
    (table, first), (same_table, second) = read_wtq(release, "dev")
    assert first.text == 'is "a\nb?'
    assert first.answers == ('"Blue', "a|b", "c\\n")
    assert (first.question_id, second.question_id) == ("nt-1", "nt-2")
    assert table is same_table
    assert table.table_id == "csv/0.csv"
    assert table.rows == (('The "Blue" one', "1999"), ("two\nlines", "2000"))


@cases(
    "text, values",
    *(("", ("",)), ("a|b", ("a", "b")), (r"a\pb|c", ("a|b", "c")), (r"\\p", (r"\p",))),
    ("a\\", ("a\\",)),
)
def test_lists_are_split_before_the_escapes_are_undone(text, values):
    assert split_list(text) == values


@pytest.mark.parametrize("original", [False, True])
def test_a_table_needs_a_row_and_a_cell_may_be_a_megabyte_long(release, original):
    lines = "nt-1\tq\tcsv/0.csv\t1\n", "nt-2\tq\tcsv/1.csv\t1\n"
    write_split(release, "".join(lines), **{"1": "a,b\n"})
    with pytest.raises(ValueError, match=r"at least 1 row .*\(file '.*dev.tsv', question 'nt-2'"):
        list(read_wtq(release, "dev", original))
    write_split(release, lines[0], **{"0": '"a"\n"{}"\n'.format("b" * 1_000_000)})
    ((table, _),) = read_wtq(release, "random-split-1-dev", original)  # by its file's name
    assert table.rows == (("b" * 1_000_000,),)


@pytest.mark.parametrize(("split", "count"), [("train", 11321), ("dev", 2831)])
def test_every_official_question_is_read(split, count):
    if not WTQ.is_dir():
        pytest.skip(f"no WikiTableQuestions at {WTQ}")
    questions = [question for _, question in read_wtq(WTQ, split)]
    assert len({question.question_id for question in questions}) == count == len(questions)
    assert all(question.text and question.answers for question in questions)


def test_the_originals_way_of_reading_is_one_switch(release):
    table_id = "csv/204-csv/7.csv"
    text = '"Song [1]","","Song [1]"\n"The \\"Blue\\" One [2]","","N/A"\n'
    lines = f'nt-1\ta\\nb?\t{table_id}\tx|y\nnt-2\tq\t{table_id}\t"Blue\nnt-3\tq\tz"\n'
    write_split(release, lines, **{"204-csv/7": text})
    (table, first), (_, second) = read_wtq(release, "dev", original=True)
    assert table.table_id == "table_csv/204-7.csv"
    assert table.header == ("Song [1]", "Unnamed: 1", "Song [1].1")
    assert table.rows == (('the "blue" one', "nan", "nan"),)
    assert (first.question_id, first.text, first.answers) == ("nt-1-0_0", "a\\nb?", ("x", "y"))
    assert second.answers == ("Blue\nnt-3\tq\tz",)


@pytest.fixture
def write(tmp_path):
    return lambda text: write_files(tmp_path, {"file.csv": text}) / "file.csv"


@stored_cases("text, dialect, rows")
def test_rows_are_read_leniently(write, text, dialect, rows):
    assert read_original_rows(write(text), **dialect) == rows


@cases(
    "text, message",
    ("id\tquestion\n", r"expected the columns \['answer'\], got .*'question'.* line 1\)"),
    ("", r"expected the columns \['id', 'answer'\], got \[\] .*"),
    ("id\tanswer\n1\n", r"expected 2 cells .*, got 1 \(file '.*', question 1\)"),
)
def test_malformed_questions_are_refused(write, text, message):
    with pytest.raises(ValueError, match=message):
        list(read_original_questions(write(text), ["id", "answer"]))


def test_missing_values_become_nan_and_names_that_come_again_are_numbered(write):
    path = write('Name [1],,Name [1]\n"Málaga (A) [2]",,N/A\n,"x\\"\ny",na\n\n1\n')
    header, rows = read_original_table(path)
    assert header == ["Name [1]", "Unnamed: 1", "Name [1].1"]
    assert rows == [["malaga", "nan", "nan"], ["nan", 'x" y', "na"], ["1", "nan", "nan"]]
    known = {"a,a,a": "a a.1 a.2", "a,a.1,a": "a a.1 a.1.1", "a,a,a.1": "a a.1 a.1.1"}
    for header, names in known.items():
        assert read_original_table(write(f"{header}\n1,2,3\n"))[0] == names.split()
    with pytest.raises(ValueError, match="expected a table, got an empty file"):
        read_original_table(write(""))
    with pytest.raises(ValueError, match=r"1 cells as in the header, got 2 \(file '.*', row 1\)"):
        read_original_table(write("a\n1,2\n"))


def test_what_the_csv_module_refuses_is_named(write):
    path = write("a\nlonger\n")
    limit = csv.field_size_limit(4)
    try:
        with pytest.raises(ValueError, match=r"field larger than .* \(file '.*', line 2\)"):
            read_original_rows(path)
    finally:
        csv.field_size_limit(limit)
