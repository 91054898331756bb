import ast
import csv
import datetime
import html
import io
import json
import sys

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from mate_tf.reading.files import DEFAULTS, ReadOptions
from mate_tf.reading.sources import read_table
from mate_tf.tables.table import Table
from tests.reading.workbooks import SHEET, unzipped, workbook, zipped
from tests.small import cases

REASON = 'not installed (the extra "formats")'
pytest.importorskip("lxml", reason=f"lxml is {REASON}")
openpyxl = pytest.importorskip("openpyxl", reason=f"openpyxl is {REASON}")
pyarrow = pytest.importorskip("pyarrow", reason=f"pyarrow is {REASON}")
parquet = pytest.importorskip("pyarrow.parquet", reason=f"pyarrow is {REASON}")

ROWS = [["City", "People"], ["Oslo", "709037"], ["Bergen", "291940"]]
# All texts but half surrogates, which UTF-8 does not have, and what XML and HTML cannot hold.
ANY_TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8)
WORDS = st.text(
    st.characters(categories=["L", "M", "N", "P", "S"], exclude_characters="\0"),
    min_size=1,
    max_size=8,
)


def tables(cells, header=None):
    """Lists of rows, 1 to 4 columns and rows; with `header`, of different names in the first."""

    def of_width(width):
        size = {"min_size": width, "max_size": width}
        names = st.lists(cells, **size) if header is None else st.lists(header, unique=True, **size)
        body = st.lists(st.lists(cells, **size), min_size=1, max_size=4)
        return st.tuples(names, body).map(lambda found: [found[0], *found[1]])

    return st.integers(1, 4).flatmap(of_width)


def write(path, content):
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def rows_of(table):
    return [list(table.header), *map(list, table.rows)]


PLAIN = ReadOptions(header_rows=1, skip_rows=0)  # nothing about headers and titles is guessed


def read_back(folder, name, content, options=DEFAULTS):
    table = read_table(write(folder / name, content), options)
    assert table.table_id == name
    return rows_of(table)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("tables")


@given(tables(ANY_TEXT))
@example([["a;\nb", "c"], ["1;2", "3"]])
def test_delimited_text_is_read_back(folder, rows):
    rows = [["a" + row[0], *row[1:]] for row in rows]  # rows without text are passed over
    rows[0][-1] += "z"  # and so is a column without any
    for name, delimiter in (("t.csv", ","), ("t.TSV", "\t"), ("t.tab", "\t")):
        file = io.StringIO()
        csv.writer(file, delimiter=delimiter, quoting=csv.QUOTE_ALL).writerows(rows)
        options = ReadOptions(delimiter, None, 1, 0)
        assert read_back(folder, name, file.getvalue(), options) == rows


@given(tables(ANY_TEXT), st.booleans())
def test_json_lists_and_header_with_rows_are_read_back(folder, rows, ascii_only):
    lines = "".join(json.dumps(row, ensure_ascii=ascii_only) + "\n" for row in rows)
    for name, text in (
        ("t.jsonl", lines),
        ("t.ndjson", lines),
        ("t.json", json.dumps(rows, ensure_ascii=ascii_only)),
        ("t.json", json.dumps({"header": rows[0], "rows": rows[1:], "id": 3})),
    ):
        assert read_back(folder, name, text) == rows
    assert rows_of(Table.of(folder / "t.jsonl")) == rows


@given(tables(st.none() | ANY_TEXT, header=ANY_TEXT))
@settings(max_examples=30)
def test_parquet_and_the_shapes_of_json_that_pandas_writes_are_read_back(folder, rows):
    import pandas as pd

    frame = pd.DataFrame(rows[1:], columns=rows[0], dtype=object)
    lists = json.dumps(frame.to_dict(orient="list"))
    arrays = [pyarrow.array(frame[name].tolist(), pyarrow.string()) for name in rows[0]]
    whole = pyarrow.BufferOutputStream()
    parquet.write_table(pyarrow.Table.from_arrays(arrays, names=rows[0]), whole)
    expected = [rows[0], *[["" if cell is None else cell for cell in row] for row in rows[1:]]]
    for orient in ("records", "columns", "split"):
        assert read_back(folder, "t.json", frame.to_json(orient=orient)) == expected
    assert read_back(folder, "t.json", lists) == expected
    assert read_back(folder, "t.parquet", whole.getvalue().to_pybytes()) == expected


@given(tables(WORDS | st.integers(-(2**40), 2**40) | st.none(), header=WORDS))
@settings(max_examples=40)
def test_a_sheet_is_read_back_but_for_empty_rows_and_columns(folder, rows):
    rows = [[None if isinstance(c, str) and c.startswith("=") else c for c in r] for r in rows]
    rows[0] = [name or "a" for name in rows[0]]
    rows = [row for row in rows if any(cell is not None for cell in row)]
    assume(len(rows[0]) < 3 or all(row[0] is not None for row in rows))  # labels would be filled in
    if len(rows) == 1:
        rows.append([1] * len(rows[0]))
    texts = [["" if cell is None else str(cell) for cell in row] for row in rows]
    assert read_back(folder, "t.xlsx", workbook(rows), PLAIN) == texts


@given(tables(st.just("") | WORDS, header=WORDS))
@settings(max_examples=60)
def test_pages_also_those_of_pandas_are_read_back(folder, rows):
    import pandas as pd

    lines = ["".join(f"<td>{html.escape(cell)}</td>" for cell in row) for row in rows]
    lines[0] = lines[0].replace("td>", "th>")
    expected = [rows[0], *(filter(any, rows[1:]) if any(map(any, rows[1:])) else rows[1:])]
    of_pandas = pd.DataFrame(rows[1:], columns=rows[0]).to_html(index=False)
    for page in (f"<table>{''.join(f'<tr>{line}</tr>' for line in lines)}</table>", of_pandas):
        assert read_back(folder, "t.html", page) == expected


@pytest.mark.parametrize("text", ["1.50", "1e5", "-0.0", "123456789012345678901234", "1E400"])
def test_numbers_in_json_keep_their_text(tmp_path, text):
    for name, content in (
        ("t.json", f'{{"a": [{text}, NaN, null]}}'),
        ("t.jsonl", f'{{"a": {text}}}\n{{"a": NaN}}\n{{"a": null}}\n'),
    ):
        assert read_table(write(tmp_path / name, content)).rows == ((text,), ("",), ("",))


DAY = datetime.datetime(2020, 2, 29)
VALUES = [
    *((3.0, "3"), (3.25, "3.25"), (-0.5, "-0.5"), (1e300, "1e+300"), (7, "7"), (True, "True")),
    *((DAY, "2020-02-29"), (DAY.replace(hour=13, minute=5), "2020-02-29 13:05:00")),
    *((DAY.date(), "2020-02-29"), (datetime.time(13, 5), "13:05:00")),
]


@pytest.mark.parametrize(("value", "text"), VALUES)
def test_typed_values_become_plain_text(tmp_path, value, text):
    sheet = write(tmp_path / "t.xlsx", workbook([["a", "b"], [value, "x"], [None, "y"]]))
    assert [row[0] for row in read_table(sheet).rows] == [text, ""]
    parquet.write_table(pyarrow.table({"a": [value, None]}), tmp_path / "t.parquet")
    assert read_table(tmp_path / "t.parquet").rows == ((text,), ("",))


def test_parquet_keeps_whole_numbers_beside_nulls_and_single_precision(tmp_path):
    table = pyarrow.table(
        {
            "whole": pyarrow.array([2**53 + 1, None]),
            "single": pyarrow.array([0.1, 3.0], pyarrow.float32()),
            "nan": [float("nan"), 2.0],
            "coded": pyarrow.array(["x", "y"]).dictionary_encode(),
        }
    )
    parquet.write_table(table, tmp_path / "t.parquet")
    found = read_table(tmp_path / "t.parquet").rows
    assert found == (("9007199254740993", "0.1", "", "x"), ("", "3", "2", "y"))


def test_a_sheet_is_chosen_by_its_name_and_a_hidden_one_is_not_the_first(tmp_path):
    spread = [[None, row[0], None, row[1]] for row in ROWS]
    apart = [[], [], spread[0], [], spread[1], [], spread[2]]
    notes = [["note"], ["none"]]
    path = write(tmp_path / "t.xlsx", workbook(notes, title="Notes", more=[("Cities", apart)]))
    assert read_table(path, ReadOptions(sheet="Notes")).header == ("note",)
    assert rows_of(read_table(path, ReadOptions(sheet="Cities"))) == ROWS
    with pytest.raises(ValueError, match=r"sheets \['Notes', 'Cities'\], got 'Town' .*t\.xlsx"):
        read_table(path, ReadOptions(sheet="Town"))
    book = openpyxl.load_workbook(path)
    book["Notes"].sheet_state = "hidden"
    book.save(path)
    assert rows_of(read_table(path)) == ROWS
    assert read_table(path, ReadOptions(sheet="Notes")).header == ("note",)


@pytest.mark.parametrize("label", ["iso-8859-1", "Latin1", "us-ascii", "windows-1252"])
def test_old_labels_of_encodings_mean_what_they_do_in_html(tmp_path, label):
    page = f"<meta charset='{label}'><table><tr><td>a<tr><td>\u20ac 5\u20136 \xe9</table>"
    rows = read_back(tmp_path, "t.html", page.encode("cp1252"))
    assert rows == [["a"], ["\u20ac 5\u20136 \xe9"]]


def test_a_page_that_libxml2_does_not_read_to_its_end_is_refused(tmp_path):
    def page(depth):
        rows = ["a", "<span>" * depth + "deep" + "</span>" * depth, "last"]
        return f"<table>{''.join(f'<tr><td>{row}' for row in rows)}</table>"

    assert read_back(tmp_path, "t.html", page(1500)) == [["a"], ["deep"], ["last"]]
    with pytest.raises(ValueError, match=r"a page of HTML, got: Excessive depth.*t\.html"):
        read_back(tmp_path, "t.html", page(3000))


def write_formulas(path, results):
    """A column of numbers and one of formulas, with the results that a program has stored."""
    members = unzipped(workbook([["n", "twice"], *([i, f"=A{i + 1}*2"] for i in range(1, 3))]))
    sheet = members[SHEET].replace(b"<v />", b"<v></v>")
    for place, result in enumerate(results, start=2):
        empty = f"<f>A{place}*2</f><v></v>".encode()
        assert empty in sheet
        sheet = sheet.replace(empty, empty[:-4] + result)
    return write(path, zipped(**members | {SHEET: sheet}))


def test_formulas_have_the_results_that_were_stored(tmp_path):
    path = write_formulas(tmp_path / "t.xlsx", [b"2</v>", b"</v>"])
    assert read_table(path).rows == (("1", "2"), ("2", ""))  # as IF(...; "") gives
    empty = write_formulas(tmp_path / "empty.xlsx", [b"</v>", b"</v>"])
    members = unzipped(empty.read_bytes())
    for place in b"23":  # a text that is empty, as Excel writes it
        cell = b'<c r="B%c"' % place
        members[SHEET] = members[SHEET].replace(cell, cell + b' t="str"')
    write(empty, zipped(**members))
    assert read_table(empty) == Table(("n", "twice"), (("1", ""), ("2", "")), "empty.xlsx")
    never = write_formulas(tmp_path / "never.xlsx", [])
    with pytest.raises(ValueError, match=r"formulas with their .* got none in 'Sheet'!B2; open"):
        read_table(never)


def test_a_table_of_a_page_is_chosen_by_its_number(tmp_path):
    inner = "<table><tr><td>in<tr><td>3</table>"
    page = f"<table></table><table><tr><td>out<tr><td>1{inner}<tr><td>2</table>"
    path = write(tmp_path / "t.html", page)
    assert read_table(path, ReadOptions(which=0)) == Table(("out",), (("1",), ("2",)), "t.html")
    assert read_table(path, ReadOptions(which=1)) == Table(("in",), (("3",),), "t.html")
    named = r"0: 3 rows, 'out'; 1: 2 rows, 'in'\) \(file '.*t\.html'\)"
    with pytest.raises(ValueError, match=r"which, from 0 to 1, got 2 tables \(" + named):
        read_table(path)
    with pytest.raises(ValueError, match=r"got 2 \(" + named):
        read_table(path, ReadOptions(which=2))
    with pytest.raises(ValueError, match="expected which from 0, got -1"):
        ReadOptions(which=-1)


@given(
    st.lists(
        st.lists(
            st.tuples(st.sampled_from(["td", "th"]), st.integers(0, 3), st.integers(0, 4)),
            max_size=3,
        ),
        max_size=4,
    )
)
def test_any_spans_make_a_rectangle_that_starts_with_each_row_s_first_free_cell(folder, spans):
    lines = [
        "".join(
            f"<{name} colspan={across} rowspan={down}>{row}.{column}</{name}>"
            for column, (name, across, down) in enumerate(cells)
        )
        for row, cells in enumerate(spans)
    ]
    page = "<table>" + "".join(f"<tr>{line}</tr>" for line in lines) + "</table>"
    path = write(folder / "spans.html", page)
    filled = [cells for cells in spans if cells]
    if len(filled) < 2:
        with pytest.raises(ValueError, match=r"expected (rows below|a table)"):
            read_table(path)
        return
    table = read_table(path, PLAIN)
    assert table.num_rows <= len(filled) - 1
    seen = {word for row in (table.header, *table.rows) for cell in row for word in cell.split()}
    assert {f"{row}.0" for row, cells in enumerate(spans) if cells} <= seen


def test_the_whole_head_of_a_text_says_its_delimiter_and_one_that_is_said_is_taken(tmp_path):
    for text, rows in (
        ("\n \na;b\r\n1,5;2\r\n", [["a", "b"], ["1,5", "2"]]),
        ('"a;\nb",c\n1,2\n', [["a;\nb", "c"], ["1", "2"]]),
    ):
        assert read_back(tmp_path, "t.csv", text, ReadOptions(skip_rows=0)) == rows
    path = write(tmp_path / "t.csv", "sep=|\na;b\n1,5;2\n")
    assert read_table(path, ReadOptions(delimiter=";")).rows == (("1,5", "2"),)
    assert Table.from_csv(path, ";").header == ("a", "b")
    with pytest.raises(ValueError, match=r"as in the header, got 3 \(file 't.csv', line 3\)"):
        read_table(write(path, "sep=;\na;b\n1;2;3\n"))
    for delimiter in "", ";;", '"', "\n":
        with pytest.raises(ValueError, match="expected one character as delimiter, got "):
            read_table(path, ReadOptions(delimiter=delimiter))


def test_a_table_comes_from_standard_input(monkeypatch):
    def read(content):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
        return read_table("-")

    expected = Table(("a", "b"), (("1", "é"),), "standard input")
    assert read(b"\xef\xbb\xbfa,b\n1,\xc3\xa9\n") == expected
    with pytest.raises(ValueError, match=r"UTF-8.*\(file 'standard input', line 2\); set its enc"):
        read(b"a\n\xff\n")


@pytest.mark.parametrize("option", ["sheet='A'", "which=0", "show_hidden=True", "delimiter=';'"])
def test_an_option_is_refused_where_it_means_nothing(tmp_path, option):
    name, _, value = option.partition("=")
    path = write(tmp_path / "t.jsonl", "[1]\n[2]\n")
    with pytest.raises(ValueError, match=rf"expected {name} only for .* got {option} .*'t\.jsonl'"):
        read_table(path, ReadOptions(**{name: ast.literal_eval(value)}))


@cases(
    "name, module, content",
    *(("t.xlsx", "openpyxl", b"PK\3\4"), ("t.xls", "xlrd", b"\xd0\xcf\x11\xe0")),
    *(("t.parquet", "pyarrow.parquet", b"PAR1"), ("t.html", "lxml.html", b"<table>")),
)
def test_a_missing_package_is_named_with_its_extra(tmp_path, monkeypatch, name, module, content):
    monkeypatch.setitem(sys.modules, module, None)
    package = module.split(".")[0]
    message = rf"package {package} to read '.*{name}'; .*'mate_tf\[formats\]'"
    with pytest.raises(ModuleNotFoundError, match=message):
        read_table(write(tmp_path / name, content))
