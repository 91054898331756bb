"""Files of a few bytes that say they hold very much, and files that are damaged."""

import contextlib
import gzip
import io
import json
import pathlib
import re
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mate_tf.reading.files import read_content
from tests.reading import workbooks
from tests.reading.workbooks import SHEET, opendocument, unzipped, zipped
from tests.small import cases

pytest.importorskip("openpyxl", reason="the extra formats is not installed")
pa = pytest.importorskip("pyarrow", reason="the extra formats is not installed")
parquet = pytest.importorskip("pyarrow.parquet", reason="the extra formats is not installed")

_SPACE = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_ROWS = "".join(f'<row r="{row}"><c><v>{row}</v></c><c><v>2</v></c></row>' for row in (1, 2, 3))
_MANY = "<row>" + "<c><v>1</v></c>" * 2000 + "</row>"
_VALUE = '<table:table-cell office:value-type="string"{}><text:p>a</text:p></table:table-cell>'
_ROW = f"<table:table-row{{}}>{_VALUE.format('') * 2}</table:table-row>"
_BILLION = 'table:number-{}-repeated="1000000000"'.format


def workbook(rows=_ROWS, columns="", after="", before="", encoding="utf-8") -> bytes:
    """A workbook of Excel with these parts of its sheet."""
    sheet = f'<?xml version="1.0" encoding="{encoding}"?>{before}<worksheet xmlns="{_SPACE}">'
    sheet += f"{columns}<sheetData>{rows}</sheetData>{after}</worksheet>"
    return zipped(**unzipped(workbooks.workbook([])) | {SHEET: sheet.encode(encoding)})


def parquet_of(array, times: int = 1, **options) -> bytes:
    """A Parquet file of one column, the array so many times."""
    table = pa.table({"c": array})
    file = io.BytesIO()
    with parquet.ParquetWriter(file, table.schema, **options) as writer:
        for _ in range(times):
            writer.write_table(table)
    return file.getvalue()


_MERGED = '<mergeCells><mergeCell ref="A1:XFD1048576"/></mergeCells>'
_ENTITY = "<!DOCTYPE a [<!ENTITY b SYSTEM 'file:///etc/hostname'>]>"
_SECRET = '<row><c t="str"><v>&b;</v></c></row>'
_WIDE = f"<table:table-row>{_VALUE.format(' ' + _BILLION('columns'))}</table:table-row>"


@cases(
    "name, content, message",
    ("a.xlsx", workbook(f'{_ROWS}<row r="2000000000"><c/></row>'), "at most 20,000 cells"),
    ("a.xlsx", workbook(f'{_ROWS}<row><c r="B10001"/></row>'), "at most 20,000 cells"),
    ("a.xlsx", workbook(_MANY * 11), "at most 20,000 cells"),
    ("a.xlsx", workbook(after=_MERGED), "at most 20,000 cells"),
    ("a.xlsx", workbook(encoding="shift_jis"), "got: multi-byte encodings"),
    ("a.xlsx", workbook(_SECRET, before=_ENTITY), "expected a workbook of Excel, got: "),
    ("a.ods", opendocument(("a", [_ROW.format(""), _ROW.format(" " + _BILLION("rows"))])), "cells"),
    ("a.ods", opendocument(("a", [_ROW.format(""), _WIDE])), "at most 20,000 cells"),
    ("a.json", json.dumps([{f"a{number}": 1} for number in range(150)]).encode(), "cells"),
    ("a.csv", b"a,b\n" + b"," * 300 + b"\n1,2" * 100, "at most 20,000 cells"),
    ("a.csv.gz", gzip.compress(b"1,\n" * 10_001, mtime=0), "at most 20,000 cells"),
    ("a.html", b"<meta charset=punycode><table><tr><td>a</table>", "got 'punycode'"),
    ("a.html", b"<table><tr>" + b"<td colspan=1000>a" * 21, "at most 20,000 cells"),
    ("a.parquet", parquet_of(pa.nulls(20_001)), "at most 20,000 cells"),
)
def test_a_file_that_says_it_holds_too_much_is_refused_at_once(monkeypatch, name, content, message):
    monkeypatch.setattr("mate_tf.reading.layout.MOST_CELLS", 20_000)
    with pytest.raises(ValueError, match=message):
        read_content(content, name)


def test_columns_and_empty_rows_without_end_are_passed_over_up_to_two_million_cells():
    with pytest.raises(ValueError, match="at most 2,000,000 cells"):
        read_content(workbook(f'{_ROWS}<row><c r="B1000001"/></row>'), "a.xlsx")
    columns = '<cols><col min="2" max="2000000000" hidden="1"/></cols>'
    assert read_content(workbook(columns=columns), "a.xlsx").num_columns == 1
    rest = f"<table:table-row {_BILLION('rows')}><table:table-cell/></table:table-row>"
    content = opendocument(("a", [_ROW.format("")] * 3 + [rest]))
    assert read_content(content, "a.ods").num_columns == 2


def test_a_long_text_in_many_rows_of_parquet_is_refused():
    def content(places):
        indices = pa.array(places, pa.int32())
        return parquet_of(pa.DictionaryArray.from_arrays(indices, ["a" * 1000, "b"]))

    assert read_content(content([0, 1, None]), "a").rows == (("a" * 1000,), ("b",), ("",))
    with pytest.raises(ValueError, match=r"bytes once unpacked, got more"):
        read_content(content([0] * 1_000_000), "a.parquet")


@pytest.mark.parametrize("encoding", ["PLAIN", "DELTA_BYTE_ARRAY", "DELTA_LENGTH_BYTE_ARRAY"])
def test_texts_are_read_in_every_encoding_and_in_several_batches(monkeypatch, encoding):
    monkeypatch.setattr("mate_tf.reading.structures._ROWS_AT_ONCE", 2)
    texts = ["a", "ab", None, "abc", "a", "é"]
    options = dict(use_dictionary=False, column_encoding={"c": encoding})
    for content in (parquet_of(pa.array(texts), 2, **options), parquet_of(pa.array(texts), 2)):
        found = read_content(content, "a.parquet").rows
        assert found == tuple((text or "",) for text in texts) * 2


_SEEDS = {
    "a.xlsx": workbook(),
    "a.ods": opendocument(("a", [_ROW.format("")] * 3)),
    "a.parquet": parquet_of(pa.array(["a", "b"])),
    "a.xls": pathlib.Path(__file__).with_name("excel_97.xls").read_bytes(),
    "a.csv": b"a,b\n1,2\n",
    "a.csv.gz": gzip.compress(b"a,b\n1,2\n", mtime=0),
    "a.json": b'[{"a": 1, "b": [2]}]',
    "a.jsonl": b'{"a": 1}\n{"a": 2}\n',
    "a.md": b"|a|b|\n|-|-|\n|1|2|\n",
    "a.html": b"<table><tr><td colspan=2>1<tr><td>2<td>3</table>",
}


@settings(max_examples=400)
@given(st.sampled_from([*_SEEDS]), st.floats(0, 1), st.integers(0, 9), st.binary(max_size=9))
def test_a_damaged_file_is_a_table_or_a_sentence_that_names_it(name, share, length, other):
    """Whatever a package raises; scripts/mutate_files.py tries many more."""
    content = _SEEDS[name]
    place = int(share * len(content))
    variants = [content[:place] + other + content[place + length :], other]
    if content.startswith(b"PK"):  # inside too
        members = unzipped(content)
        member = [*members][place % len(members)]
        part = members[member]
        place = int(share * len(part))
        variants.append(zipped(**members | {member: part[:place] + other + part[place + length :]}))
    for variant in variants:
        try:
            assert read_content(variant, name).num_rows > 0
        except ValueError as error:
            assert str(error).startswith("expected ") and name in str(error)
            assert "\n" not in str(error)


@cases(
    "name, mark, distance, other",
    ("a.ods", b"PK\x01\x02", 10, b"\x63"),  # a method of packing that nobody has
    ("a.ods", b"PK\x01\x02", 8, b"\x01"),  # a password
    ("a.csv.gz", b"\x1f\x8b", 12, b"\xff\xff\xff"),
)
def test_what_archives_raise_is_a_sentence(name, mark, distance, other):
    content = bytearray(_SEEDS[name])
    for place in [it.start() + distance for it in re.finditer(re.escape(mark), content)]:
        content[place : place + len(other)] = other
    with pytest.raises(ValueError, match=rf"expected .*, got: .* \(file '{name}'\)"):
        read_content(bytes(content), name)


@pytest.mark.parametrize("atom", [" ", "\t", "-", "=", "|", "- ", "|-", "#", "\n", '"', ",", "a "])
@pytest.mark.parametrize("name", ["a.csv", "a.md"])
def test_a_long_line_takes_no_time(name, atom):
    for begin in ("", "a,b\n", "|a|b|\n|-|-|\n", "a b\n"):
        started = time.process_time()
        with contextlib.suppress(ValueError):
            read_content(f"{begin}{atom * (19_000 // len(atom))}x\n1,2\n".encode(), name)
        assert time.process_time() - started < 2.5
