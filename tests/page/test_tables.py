"""Tables as the page gets them."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mate_tf.page.app import given_table
from mate_tf.tables.files import ReadOptions, read_content
from mate_tf.tables.table import Table


def pasted(text):
    return given_table(None, text)


ROWS = (("Oslo", "1"), ("Rome, Italy", "2"))


@pytest.mark.parametrize(
    "text",
    [
        "city\tpeople\nOslo\t1\nRome, Italy\t2",
        "\r\ncity\tpeople\r\nOslo\t1\r\nRome, Italy\t2\r\n",
        'city,people\nOslo,1\n"Rome, Italy",2\n\n',
        '["city", "people"]\n["Oslo", 1]\n["Rome, Italy", 2]',
        '{"city": "Oslo", "people": 1}\n{"city": "Rome, Italy", "people": "2"}\n',
    ],
    ids=["tabs", "tabs and blank lines", "commas", "lists", "objects"],
)
def test_what_is_pasted_is_read_as_what_it_looks_like(text):
    table = pasted(text)
    assert table.header == ("city", "people")
    assert table.rows == ROWS


def test_a_spreadsheet_whose_first_cell_is_empty_has_two_columns():
    table = pasted("\n\tpeople\nOslo\t1\n")
    assert (table.header, table.rows) == (("", "people"), (("Oslo", "1"),))


def test_empty_cells_at_either_end_of_a_spreadsheet_stay():
    table = pasted("\tpeople\t\nOslo\t\t\n\t\t2\n")
    assert table.header == ("", "people", "")
    assert table.rows == (("Oslo", "", ""), ("", "", "2"))


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("cities.csv", 'city,people\nOslo,1\n"Rome, Italy",2\n'),
        ("cities.TSV", "city\tpeople\nOslo\t1\nRome, Italy\t2\n"),
        ("cities.jsonl", '["city", "people"]\n["Oslo", 1]\n["Rome, Italy", 2]\n'),
    ],
)
def test_a_file_is_read_by_its_ending(tmp_path, name, content):
    (tmp_path / name).write_text(content)
    table = given_table(str(tmp_path / name), " \n")
    assert table.rows == ROWS
    assert table.table_id == name


def test_what_is_pasted_comes_before_a_file(tmp_path):
    (tmp_path / "other.csv").write_text("a,b\n1,2\n")
    assert given_table(str(tmp_path / "other.csv"), "city\nOslo\n").rows == (("Oslo",),)


def test_nothing_given_is_refused():
    with pytest.raises(ValueError, match="expected a table, got none; choose a file or paste one"):
        given_table(None, " \n\t")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("hello", r"at least 1 row below the header, got 0 \(table 'the pasted table'\)"),
        ('a,b\n"1,2', r"expected delimited text, got: .* \(file 'the pasted table', line 2\)"),
        ('{"a": 1', r"expected valid JSON, got: .* \(file 'the pasted table', line 1\)"),
    ],
    ids=["a word", "an open quote", "broken JSON"],
)
def test_what_is_no_table_is_refused(text, message):
    with pytest.raises(ValueError, match=message):
        pasted(text)


def test_a_file_that_is_no_table_or_gone_is_refused_by_its_name(tmp_path):
    (tmp_path / "picture.png").write_bytes(b"\x89PNG\r\n\xff\x00")
    with pytest.raises(ValueError, match=r"looks like a picture \(file 'picture\.png'\)"):
        given_table(str(tmp_path / "picture.png"), "")
    with pytest.raises(FileNotFoundError, match=r"expected a file at .*gone\.csv"):
        given_table(str(tmp_path / "gone.csv"), "")


@given(text=st.text(max_size=60) | st.text("ab,\t\n\r\"'[]{}:", max_size=60))
def test_any_text_is_a_table_or_a_sentence(text):
    try:
        table = given_table(None, text)
    except ValueError as error:
        assert str(error).startswith("expected")
    else:
        assert isinstance(table, Table)


# Cells as spreadsheets copy them: tabs and line breaks only in quotes, which are doubled.
cells = st.text(st.characters(codec="utf-8", exclude_characters='\r\n\t"\0'), min_size=1)


@given(
    st.integers(2, 4).flatmap(
        lambda n: st.lists(st.lists(cells, min_size=n, max_size=n), min_size=2)
    )
)
def test_cells_of_a_spreadsheet_are_read_as_they_are(rows):
    rows = [["a" + row[0], *row[1:]] for row in rows]
    text = "".join("\t".join(row) + "\n" for row in rows)
    table = read_content(text.encode(), "pasted", ReadOptions("\t", None, 1, 0))
    assert [list(table.header), *map(list, table.rows)] == rows


@given(st.lists(st.lists(st.text(), min_size=2, max_size=2), min_size=2, max_size=4))
def test_lists_of_json_are_pasted_as_they_are(rows):
    table = pasted("".join(json.dumps(row) + "\n" for row in rows))
    assert [list(table.header), *map(list, table.rows)] == rows
