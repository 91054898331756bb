"""Files of a few bytes that say they hold very much."""

import gzip
import json

import pytest

from mate_tf.tables.files import read_content
from mate_tf.tables.sheet_sizes import check_archive, check_in_a_trial
from tests.small import cases
from tests.tables import workbooks
from tests.tables.workbooks import SHEET, opendocument, unzipped, zipped

pytest.importorskip("openpyxl", reason="the extra formats is not installed")

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
    with pytest.raises(ValueError, match=r"1,000 bytes once unpacked, got \d+,\d+ .*a\.xlsx"):
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


def test_a_long_text_in_many_rows_of_parquet_is_refused(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    few, many = [0, 1, None], [0] * 1_000_000
    for places in (few, many):
        indices = pyarrow.array(places, pyarrow.int32())
        texts = pyarrow.DictionaryArray.from_arrays(indices, ["a" * 1000, "b"])
        parquet.write_table(pyarrow.table({"c": texts}), tmp_path / "a.parquet")
        content = (tmp_path / "a.parquet").read_bytes()
        if places is few:
            assert read_content(content, "a").rows == (("a" * 1000,), ("b",), ("",))
            continue
        with pytest.raises(ValueError, match=r"bytes once unpacked, got 1,000,000,000"):
            read_content(content, "a.parquet")
