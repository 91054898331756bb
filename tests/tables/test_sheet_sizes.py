"""Files of a few bytes that say they hold very much."""

import gzip
import io
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mate_tf.tables.files import read_content
from mate_tf.tables.sheet_sizes import (
    check_archive,
    check_in_a_trial,
    parquet_batches,
    unpacked_bytes,
)
from tests.small import cases
from tests.tables import workbooks
from tests.tables.workbooks import SHEET, opendocument, unzipped, zipped

pytest.importorskip("openpyxl", reason="the extra formats is not installed")
pa = pytest.importorskip("pyarrow", reason="the extra formats is not installed")
parquet = pytest.importorskip("pyarrow.parquet", reason="the extra formats is not installed")

_SPACE = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_ROWS = "".join(f'<row r="{row}"><c><v>{row}</v></c><c><v>2</v></c></row>' for row in (1, 2, 3))
_MANY = "<row>" + "<c><v>1</v></c>" * 2000 + "</row>"
_VALUE = '<table:table-cell office:value-type="string"{}><text:p>a</text:p></table:table-cell>'
_ROW = f"<table:table-row{{}}>{_VALUE.format('') * 2}</table:table-row>"
_BILLION = 'table:number-{}-repeated="1000000000"'.format


def workbook(
    rows: str = _ROWS, after: str = "", before: str = "", encoding: str = "utf-8"
) -> bytes:
    """A workbook of Excel with these parts of its sheet."""
    columns, rest = (after, "") if after.startswith("<cols") else ("", after)
    sheet = f'<?xml version="1.0" encoding="{encoding}"?>{before}<worksheet xmlns="{_SPACE}">'
    sheet += f"{columns}<sheetData>{rows}</sheetData>{rest}</worksheet>"
    return zipped(**unzipped(workbooks.workbook([])) | {SHEET: sheet.encode(encoding)})


def parquet_of(array, times: int = 1, **options) -> bytes:
    """A Parquet file of one column, the array so many times."""
    table = pa.table({"c": array})
    file = io.BytesIO()
    with parquet.ParquetWriter(file, table.schema, **options) as writer:
        for _ in range(times):
            writer.write_table(table)
    return file.getvalue()


def spreadsheet(rows: str) -> bytes:
    """A workbook of OpenDocument with these rows."""
    return opendocument(("a", [rows]))


_MERGED = '<mergeCells><mergeCell ref="A1:XFD1048576"/></mergeCells>'
_LINKED = '<hyperlinks><hyperlink ref="A1:XFD9999"/></hyperlinks>'
_WIDE = f"<table:table-row>{_VALUE.format(' ' + _BILLION('columns'))}</table:table-row>"


@cases(
    "name, content, message",
    ("a.xlsx", workbook(f'{_ROWS}<row r="2000000000"><c/></row>'), "rows and 16,384 columns"),
    ("a.xlsx", workbook('<row r="2000000000"/>', encoding="utf-16"), "got row 2,000,000,000"),
    ("a.xlsx", workbook(f'{_ROWS}<row><c r="XFE4"/></row>'), "got row 4 and column 16,385"),
    ("a.xlsx", workbook(f'{_ROWS}<row><c r="B1000001"/></row>'), "at most 2,000,000 cells"),
    ("a.xlsx", workbook(_MANY * 1001), "at most 2,000,000 cells"),
    ("a.xlsx", workbook(after=_MERGED), "at most 2,000,000 cells"),
    ("a.xlsx", workbook(after=_LINKED), "at most 2,000,000 cells"),
    ("a.xlsx", workbook(encoding="shift_jis"), "got: multi-byte encodings .*sheet1"),
    ("a.xlsx", workbook(before="<!DOCTYPE a [<!ENTITY b 'c'>]>"), "got a document type"),
    ("a.ods", spreadsheet(_ROW.format("") + _ROW.format(" " + _BILLION("rows"))), "cells"),
    ("a.ods", spreadsheet(_ROW.format("") + _WIDE), "at most 2,000,000 cells"),
    ("a.json", json.dumps([{f"a{number}": 1} for number in range(1500)]).encode(), "cells"),
    ("a.csv", b"a,b\n" + b"," * 3000 + b"\n1,2" * 1000, "at most 2,000,000 cells"),
    ("a.csv.gz", gzip.compress(b"1,\n" * 1_000_001), "at most 2,000,000 cells"),
    ("a.html", b"<meta charset=punycode><table><tr><td>a</table>", "got 'punycode'"),
)
def test_a_file_that_says_it_holds_too_much_is_refused_at_once(name, content, message):
    with pytest.raises(ValueError, match=message):
        read_content(content, name)


def test_columns_and_empty_rows_without_end_are_passed_over():
    columns = '<cols><col min="2" max="2000000000" hidden="1"/></cols>'
    assert read_content(workbook(after=columns), "a.xlsx").num_columns == 1
    rest = f"<table:table-row {_BILLION('rows')}><table:table-cell/></table:table-row>"
    assert read_content(spreadsheet(_ROW.format("") * 3 + rest), "a.ods").num_columns == 2


def test_an_archive_that_unpacks_to_too_much_is_refused(monkeypatch):
    monkeypatch.setattr("mate_tf.tables.sheet_sizes._MOST_BYTES", 1000)
    with pytest.raises(
        ValueError, match=r"1,000 bytes once unpacked, got at least \d+,\d+ .*a\.xlsx"
    ):
        check_archive(workbook(), "a.xlsx")
    monkeypatch.setattr("mate_tf.tables.sheet_sizes._MOST_ELEMENTS", 5)
    monkeypatch.setattr("mate_tf.tables.sheet_sizes._MOST_BYTES", 10**6)
    with pytest.raises(ValueError, match="at most 5 elements, got more"):
        check_archive(workbook(), "a.xlsx")


def test_a_workbook_that_takes_too_much_is_refused_in_a_process_of_its_own(monkeypatch):
    check_in_a_trial(spreadsheet(_ROW.format("")), "a.xls")
    check_in_a_trial(b"", "a.xls")  # its error is the package's
    for trial in ("raise MemoryError", "import os; os.abort()"):
        monkeypatch.setattr("mate_tf.tables.sheet_sizes._TRIAL", trial)
        with pytest.raises(ValueError, match=r"within 30 seconds and 2,147,483,648 bytes .*a\.xls"):
            check_in_a_trial(b"", "a.xls")
        with pytest.raises(ValueError, match=r"within 30 seconds .*a\.parquet"):
            read_content(parquet_of(pa.array(["a"])), "a.parquet")


_TEXT = "a" * 10_000
_BY_DIFFERENCES = dict(use_dictionary=False, column_encoding={"c": "DELTA_BYTE_ARRAY"})
_NAMED = [pa.field(_TEXT, pa.int8())]


@cases(
    "values, kind, options",
    ([_TEXT], pa.string(), {}),
    ([_TEXT], pa.large_string(), {}),
    ([_TEXT], pa.string_view(), {}),
    ([_TEXT], pa.string(), _BY_DIFFERENCES),
    ([_TEXT.encode()], pa.binary(), {}),
    ([_TEXT.encode()], pa.binary(10_000), {}),
    ([[_TEXT.encode()] * 3], pa.list_(pa.binary(10_000)), {}),
    ([[_TEXT] * 2 + [None]], pa.list_(pa.dictionary(pa.int32(), pa.string())), {}),
    ([[_TEXT]], pa.large_list(pa.string()), {}),
    ([[_TEXT]], pa.list_view(pa.string()), {}),
    ([[_TEXT] * 2], pa.list_(pa.string(), 2), {}),
    ([[[_TEXT]]], pa.list_(pa.list_(pa.string())), {}),
    ([{"a": 1, "b": _TEXT}], pa.struct({"a": pa.int8(), "b": pa.string()}), {}),
    ([{_TEXT: 1}], pa.struct(_NAMED), {}),  # JSON says the name again for each
    ([[("a", _TEXT)]], pa.map_(pa.string(), pa.string()), {}),
    ([[7] * 500], pa.list_(pa.int8()), {}),
    ([[None] * 500], pa.list_(pa.null()), {}),
)
def test_what_shares_a_value_in_parquet_is_refused_before_it_is_made(
    monkeypatch, values, kind, options
):
    monkeypatch.setattr("mate_tf.tables.typed_files.check_in_a_trial", lambda *_: None)
    content = parquet_of(pa.array(values * 100, kind), **options)
    assert len(content) < 200_000
    assert read_content(content, "a").num_rows == 100
    monkeypatch.setattr("mate_tf.tables.sheet_sizes._MOST_BYTES", 900_000)
    made = []
    monkeypatch.setattr("mate_tf.tables.typed_files._arrow_values", made.append)
    with pytest.raises(
        ValueError, match=r"at most 900,000 bytes once unpacked, got at least [1-9],"
    ):
        read_content(content, "a.parquet")
    assert made == []


@pytest.mark.parametrize("is_list", [False, True])
def test_long_values_of_one_width_are_refused_before_a_row_is_read(monkeypatch, is_list):
    kind = pa.binary(10_000)
    array = pa.array([[_TEXT.encode()] * 1000], pa.list_(kind)) if is_list else [_TEXT] * 1000
    content = parquet_of(pa.array(array, None if is_list else kind), times=27)
    assert len(content) < 20_000
    monkeypatch.setattr("mate_tf.tables.sheet_sizes._checked_batches", None)
    with pytest.raises(ValueError, match="once unpacked, got at least 270,000,000"):
        read_content(content, "a.parquet")


def test_a_long_text_in_many_rows_of_parquet_is_refused():
    few, many = [0, 1, None], [0] * 1_000_000
    for places in (few, many):
        indices = pa.array(places, pa.int32())
        content = parquet_of(pa.DictionaryArray.from_arrays(indices, ["a" * 1000, "b"]))
        if places is few:
            assert read_content(content, "a").rows == (("a" * 1000,), ("b",), ("",))
            continue
        with pytest.raises(ValueError, match=r"bytes once unpacked, got at least 270,000,000"):
            read_content(content, "a.parquet")


@pytest.mark.parametrize("encoding", ["PLAIN", "DELTA_BYTE_ARRAY", "DELTA_LENGTH_BYTE_ARRAY"])
def test_texts_are_read_in_every_encoding_and_in_several_batches(monkeypatch, encoding):
    monkeypatch.setattr("mate_tf.tables.sheet_sizes._ROWS_AT_ONCE", 2)
    monkeypatch.setattr("mate_tf.tables.typed_files.check_in_a_trial", lambda *_: None)
    texts = ["a", "ab", None, "abc", "a", "é"]
    options = dict(use_dictionary=False, column_encoding={"c": encoding})
    for content in (parquet_of(pa.array(texts), 2, **options), parquet_of(pa.array(texts), 2)):
        found = read_content(content, "a.parquet").rows
        assert found == tuple((text or "",) for text in texts) * 2


def of_lists(children):
    """Kinds of lists and structures of other kinds, with their values."""

    def lists(child):
        kind, values = child
        several = st.none() | st.lists(values, max_size=4)
        some = st.lists(values, min_size=2, max_size=2)
        pairs = st.none() | st.lists(st.tuples(st.text(max_size=5), values), max_size=3)
        fields = st.none() | st.fixed_dictionaries({"a": values, "b": values})
        yield from ((make(kind), several) for make in (pa.list_, pa.large_list, pa.list_view))
        yield pa.list_(kind, 2), some
        yield pa.map_(pa.string(), kind), pairs
        yield pa.struct({"a": kind, "b": kind}), fields

    return children.flatmap(lambda child: st.sampled_from([*lists(child)]))


_TEXTS = st.none() | st.text(max_size=9)
_KINDS = st.recursive(
    st.sampled_from(
        [
            *((kind, _TEXTS) for kind in (pa.string(), pa.large_string(), pa.string_view())),
            (pa.dictionary(pa.int32(), pa.string()), _TEXTS),
            (pa.binary(), st.none() | st.binary(max_size=9)),
            (pa.binary(40), st.none() | st.binary(min_size=40, max_size=40)),
            (pa.decimal128(20, 2), st.none() | st.decimals(0, 99, places=2)),
            (pa.int64(), st.none() | st.integers(-9, 9)),
            (pa.bool_(), st.none() | st.booleans()),
        ]
    ),
    of_lists,
    max_leaves=3,
)


def num_bytes(value) -> int:
    """The bytes of the texts and numbers that a value holds."""
    if isinstance(value, dict):
        return sum(map(num_bytes, value.values()))
    if isinstance(value, list | tuple):
        return sum(map(num_bytes, value))
    if isinstance(value, str):
        return len(value.encode())
    return len(value) if isinstance(value, bytes) else 0 if value is None else 1


@settings(max_examples=60)
@given(data=st.data())
def test_no_value_is_larger_than_what_is_counted_for_it(data):
    kind, values = data.draw(_KINDS)
    given_values = data.draw(st.lists(values, min_size=1, max_size=6)) * 3
    _, batches = parquet_batches(parquet_of(pa.array(given_values, kind)), "a.parquet")
    found = []
    for batch in batches:
        whole, part = batch.column(0), batch.column(0)[1:2]
        assert num_bytes(part.to_pylist()) <= unpacked_bytes(part) <= unpacked_bytes(whole)
        assert num_bytes(whole.to_pylist()) <= unpacked_bytes(whole)
        found += batch.column(0).to_pylist()
    assert found == given_values
