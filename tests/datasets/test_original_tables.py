import csv

import pytest

from mate_tf.datasets.wtq import (
    read_original_questions,
    read_original_rows,
    read_original_table,
)
from tests.small import cases


@pytest.fixture
def write(tmp_path):
    def write_text(text):
        path = tmp_path / "file.csv"
        path.write_text(text, encoding="utf-8", newline="")
        return path

    return write_text


@cases(
    "text, dialect, rows",
    ('a,b\n"x ""y""",2\n', {}, [["a", "b"], ['x "y"', "2"]]),
    ('a\n"never\nclosed', {}, [["a"], ["never\nclosed"]]),
    *(("a,b\n1\n\n", {}, [["a", "b"], ["1"], []]), ("a#b,c\n", {"delimiter": "#"}, [["a", "b,c"]])),
    *(('"a\\"b",c\n', {"escape": True}, [['a"b', "c"]]), ('"a\\"b",c\n', {}, [['a\\b"', "c"]])),
    ("", {}, []),
)
def test_rows_are_read_leniently(write, text, dialect, rows):
    assert read_original_rows(write(text), **dialect) == rows


def test_a_quotation_mark_that_begins_a_value_swallows_what_follows_to_the_next(write):
    path = write('id\tanswer\n1\t"a\n2\tb"\n3\t"c"\n4\td "e"\n')
    assert list(read_original_questions(path, ["id"])) == [
        {"id": "1", "answer": "a\n2\tb"},
        {"id": "3", "answer": "c"},
        {"id": "4", "answer": 'd "e"'},
    ]


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
    for header, names in (
        ("a,a,a", "a a.1 a.2"),
        ("a,a.1,a", "a a.1 a.1.1"),
        ("a,a,a.1", "a a.1 a.1.1"),
    ):
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
