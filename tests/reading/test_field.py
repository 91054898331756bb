"""Files as people bring them: each case and its relatives are read as their authors meant them."""

import datetime
import gzip
import pathlib
import re

import pytest

from mate_tf.features.numeric import (
    EQUAL,
    GREATER,
    question_values,
    ranks,
    relations,
    values_in_column,
)
from mate_tf.reading.files import ReadOptions, read_content
from mate_tf.reading.sources import read_table
from tests.data_folders import FIELD
from tests.reading.workbooks import opendocument, unzipped, workbook, zipped
from tests.small import cases

pytest.importorskip("openpyxl", reason='not installed (the extra "formats")')
pytest.importorskip("lxml", reason='not installed (the extra "formats")')

FOLDER = pathlib.Path(__file__).parent


def rows_of(table):
    """The header and the rows; bars are between rows, and semicolons in place of commas."""
    rows = (table.header, *table.rows)
    return "|".join(",".join(cell.replace(",", ";") for cell in row) for row in rows)


PEOPLE = "name,age|Ann,30|Bob,25"
AGES = [row.split(",") for row in PEOPLE.split("|")]
CITIES = "City,Pop|Lima,10151|Quito,1763"
STRICT = {
    b"http://schemas.openxmlformats.org/spreadsheetml/2006/": b"http://purl.oclc.org/ooxml/spreadsheetml/",
    b"http://schemas.openxmlformats.org/officeDocument/2006/": b"http://purl.oclc.org/ooxml/officeDocument/",
}
PAGE = "<table><tr><th>City<th>Pop<tr><td>Lima<td>10151<tr><td>Quito<td>1763</table>"


def sheet(content, options=""):
    """A workbook of rows between bars and cells between commas, where numbers are numbers.

    Behind " as " are the number formats of its columns; options are as in "hidden=2;merged=A1:B1".
    """

    def value(text):
        try:
            return float(text) if "." in text else int(text)
        except ValueError:
            return text or None

    rows, _, formats = content.partition(" as ")
    given = {
        name: list(map(value, values.split(",")))
        for name, values in (option.split("=") for option in options.split(";") if option)
    }
    given["formats"] = [
        (f"{column}{number}", number_format)
        for column, number_format in zip("ABCDE", filter(None, formats.split(" & ")), strict=False)
        for number in (2, 3)
    ]
    return workbook([list(map(value, row.split(","))) for row in rows.split("|")], **given)


def strict(content):
    """A workbook of Excel as Strict Open XML names its parts."""
    members = unzipped(content)
    for name, part in members.items():
        for old, new in STRICT.items():
            part = part.replace(old, new)
        members[name] = part
    return zipped(**members)


def field_cases():
    """Cases of three lines: a name, the file's, how it is written, and what is said of it; what is
    in it, with ¶ at the end of each line; and the rows that are read.
    """
    text = FOLDER.joinpath("texts.txt").read_text(encoding="utf-8").rstrip("\n")
    for written, meant in (("\\t", "\t"), ("\\0", "\0"), ("⧵", "\\")):
        text = text.replace(written, meant)
    lines = text.split("\n")
    for head, content, rows in zip(lines[::3], lines[1::3], lines[2::3], strict=True):
        name, file, how, said = re.fullmatch(r"(.*?) \((\S+) ?(\S*)\)(?:: (.*))?", head).groups()
        if file.endswith(".xlsx"):
            content = sheet(content, how)
        else:
            content = content.replace("¶", "\n").encode(how or "utf-8")
        yield pytest.param((file, content, rows, *filter(None, [said])), id=name)


@cases(
    "case",
    *field_cases(),
    ("r.csv", sheet(CITIES), CITIES, "a workbook of Excel, although"),
    ("r.xlsx", strict(sheet(CITIES)), CITIES),
    ("r.csv.gz", gzip.compress(b"name,age\nAnn,30\nBob,25\n", mtime=0), PEOPLE),
)
def test_a_file_is_read_as_its_author_meant_it(case):
    name, content, rows, *said = case
    table = read_content(content, name)
    assert rows_of(table) == rows
    assert all(any(part in sentence for sentence in table.all_assumed) for part in said)


def test_dates_of_excel_and_texts_in_iso_form_are_ordered_and_compared_alike():
    days = [datetime.date(2024, 3, 1), "2024-01-31", "2024-03-01", datetime.datetime(2024, 2, 10)]
    rows = [["day", "n"], *([day, number] for number, day in enumerate(days))]
    table = read_content(workbook(rows, formats=[("A2", "dd/mm/yyyy")]), "t.xlsx")
    values = values_in_column(table, 0)
    assert table.column(0).kind == "date" and not table.all_assumed
    assert [rank for rank, _ in ranks(values).values()] == [3, 1, 3, 2]
    asked = question_values("on 1 March 2024", table.column(0).convention)
    assert relations(asked, values) == {0: EQUAL, 1: GREATER, 2: EQUAL, 3: GREATER}


def refused_cases():
    """A file's name, its bytes as Python writes them, and what is said of it."""
    for line in FOLDER.joinpath("refused.txt").read_text(encoding="utf-8").splitlines():
        name, content, message = line.split(" => ")
        yield name, content.encode().decode("unicode_escape").encode("latin-1"), message


@cases(
    "name, content, message",
    *refused_cases(),
    ("t.xlsm", zipped(a="b"), "looks like a zip archive"),
    ("t.csv.gz", gzip.compress(b"", mtime=0), "expected a table, got an empty file"),
    ("t.csv", "город,x\nМосква,y\nКазань,z\n".encode("koi8-r"), "set its encoding, such as"),
    ("t.xls", b"\xd0\xcf\x11\xe0" + "EncryptedPackage".encode("utf-16-le"), "a password"),
)
def test_what_would_be_misread_is_refused_with_the_file_s_name(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=message) as caught:
        read_table(tmp_path / name)
    assert name in str(caught.value) and "\n" not in str(caught.value)


def test_a_workbook_of_excel_97_is_as_it_is_shown():
    pytest.importorskip("xlrd", reason='not installed (the extra "formats")')
    # By xlwt: a title, and a row that is hidden.
    content = FOLDER.joinpath("excel_97.xls").read_bytes()
    table = read_content(content, "t.xls")
    first = "12.5%,-$1.50,00007,2024-01-05,36:00:00,x"
    second = "50.0%,$12.00,00042,2024-01-07 10:30:00,6:00:00,True"
    assert rows_of(table) == f"a,b,c,d,e,f|{first}|{second}"
    assert (table.document_title, table.assumed[0]) == ("Report", "1 hidden row is left out.")
    assert read_content(content, "t.xls", ReadOptions(show_hidden=True)).num_rows == 3


def test_options_decide_what_is_otherwise_assumed():
    text = b"Statement\nAnn;1,5\nBob;2,5\n"
    options = ReadOptions(delimiter=";", encoding="cp1252", header_rows=0, skip_rows=1)
    assert rows_of(read_content(text, "r.csv", options)).endswith("|Ann,1;5|Bob,2;5")
    book = workbook([["a", "b"], ["x", 1], ["y", 2]], hidden=[2])
    assert read_content(book, "r.xlsx", ReadOptions(show_hidden=True)).num_rows == 2
    two = PAGE + PAGE.replace("Lima", "Rome")
    assert read_content(two.encode(), "r.html", ReadOptions(which=1)).rows[0][0] == "Rome"
    with pytest.raises(ValueError, match=r"may be in .* or in .*, so set its encoding"):
        read_content("产品,价格\n".encode("gb18030") + b"a,1\n", "r.csv")
    below = r"header in line 1 and one .* in line 5; set skip_rows=4 to read the sec"
    with pytest.raises(ValueError, match=below):
        read_content(b"a,b\nx,1\ny,2\n\nc,d,e\nz,3,5\nw,4,6\n", "two.csv")
    with pytest.raises(ValueError, match=r"a file, got the address 'https://x\.org/t\.csv'"):
        read_table("https://x.org/t.csv")


@pytest.mark.parametrize("unit", ["line", "row"])
def test_of_tables_below_each_other_the_first_is_read_and_the_others_are_named(unit):
    def read(rows, **options):
        if unit == "row":
            return read_content(workbook(rows), "t.xlsx", ReadOptions(**options))
        lines = "".join(",".join(map(str, row)) + "\n" for row in rows)
        return read_content(lines.encode(), "t.csv", ReadOptions(**options))

    first = [["City", "Pop", "Area"], ["Lima", 10151, 2672], ["Quito", 1763, 372]]
    second = [["Item", "Price", "Qty"], ["Tea", 3, 35], ["Milk", 1, 900]]
    table = read([*first, [], ["Prices"], *second])
    assert table.rows == (("Lima", "10151", "2672"), ("Quito", "1763", "372"))
    said = f"Another table begins in {unit} 6; {unit}s 5 to 8 are left out. Set skip_rows=5 to read"
    assert said in table.assumed[0]
    assert read([*first, [], ["Prices"], *second], skip_rows=5).header == tuple(second[0])
    assert read([["Cities"], [], *first, [], *second]).num_rows == 2
    assert read([*second, [], [], *first, [], *first]).num_rows == 2
    # What is no table of its own is read as before.
    assert read([*first, [], ["Oslo", 709, 454]]).num_rows == 3
    assert read([*first, [], *first]).num_rows == 4
    pairs = [["Account", "Main"], ["Balance", "£12.50"], ["Available", "£9.50"]]
    wide = [["Date", "Text", "Paid out", "Paid in"], ["5 May 2024", "Shop", 3, ""]]
    assert read([*pairs, [], *wide, ["6 May 2024", "Work", "", 9]]).header == tuple(wide[0])
    with pytest.raises(ValueError, match=f"in {unit} 5; set skip_rows=4 to read the second"):
        read([*pairs, [], *second])


def test_a_sheet_with_rows_and_columns_is_read_before_a_cover_and_the_first_of_opendocument():
    table = read_content(workbook([["Annual report"], ["2024"]], more=[("Data", AGES)]), "r.xlsx")
    assert rows_of(table) == PEOPLE
    assert table.assumed == ("Sheet 'Data' was read; there are also 'Sheet'.",)
    content = opendocument(("A", AGES), ("B", [["x"], ["y"]]))
    table = read_content(content, "t.ods")
    assert rows_of(table) == PEOPLE
    assert table.assumed == ("Sheet 'A' was read; there are also 'B'.",)
    assert read_content(content, "t.ods", ReadOptions(sheet="B")).rows == (("y",),)


def test_formats_and_hidden_parts_of_opendocument_are_as_they_are_shown():

    def number(kind, value, shown, more=""):
        return (
            f'<table:table-cell office:value-type="{kind}" office:value="{value}" {more}>'
            f"<text:p>{shown}</text:p></table:table-cell>"
        )

    twice = 'table:number-columns-repeated="2"'
    hidden = '<table:table-row table:visibility="filter">{}</table:table-row>'.format
    rows = [
        ["a", "b", "c", "d", "e"],
        [number("percentage", 0.125, "12.5%", twice), number("currency", 3, "3.00 €")]
        + [number("float", 7, "007"), number("float", 1.5, "1,50")],
        hidden(number("float", 1, "1", 'table:number-columns-repeated="5"')),
        ["x", "y", "z", "u", "v"],
    ]
    columns = (
        '<table:table-column/><table:table-column table:visibility="collapse"/>'
        '<table:table-column table:number-columns-repeated="3"/>'
    )
    two = 'office:value-type="string" table:number-rows-spanned="2"'
    merged = f"<table:table-cell {two}><text:p>Peru</text:p></table:table-cell>"
    below = "<table:covered-table-cell/>"
    table = read_content(opendocument(("A", [["a", "b"], [merged, "x"], [below, "y"]])), "t.ods")
    assert rows_of(table) == "a,b|Peru,x|Peru,y"
    content = opendocument(("A", rows), attributes=columns)
    table = read_content(content, "t.ods")
    assert rows_of(table) == "a,c,d,e|12.5%,3.00 €,007,1.5|x,z,u,v"
    assert table.assumed == ("1 hidden row is left out.", "Hidden columns are left out.")
    assert read_content(content, "t.ods", ReadOptions(show_hidden=True)).num_rows == 3


# What the files of the folder of cases are, where it is there: a name and the rows.
FILES = FOLDER.joinpath("folder.txt").read_text(encoding="utf-8").splitlines()


@pytest.mark.parametrize("line", FILES)
def test_the_cases_of_the_folder_are_read(line):
    name, expected = line.split(": ", 1)
    if not FIELD.is_dir():
        pytest.skip("no folder of cases: set MATE_TF_FIELD_DIR")
    assert rows_of(read_table(FIELD / "inputs" / name)) == expected
