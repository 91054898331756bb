"""Files as people bring them: each case and its relatives are read as their authors meant them."""

import gzip
import pathlib
import re

import pytest

from mate_tf.reading.files import ReadOptions, read_content
from mate_tf.reading.sources import read_table
from tests.data_folders import FIELD
from tests.reading.workbooks import opendocument, workbook
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
PAGE = "<table><tr><th>City<th>Pop<tr><td>Lima<td>10151<tr><td>Quito<td>1763</table>"
SALES = "Region,Sales|North,100|South,200"


def of_columns(*formats):
    """The number formats of rows 2 and 3."""
    return [(f"{a}{n}", f) for a, f in zip("ABCDE", formats, strict=False) for n in (2, 3)]


def sheet(rows, **options):
    """A workbook; rows are between bars, cells between commas, numbers are numbers."""

    def value(text):
        try:
            return float(text) if "." in text else int(text)
        except ValueError:
            return text or None

    lines = [list(map(value, row.split(","))) for row in rows.split("|")]
    return workbook(lines, **options)


DATED = "a,b,c,d|N,A,1,2"
ACCOUNTS = '_($* #,##0.00_);_($* (#,##0.00);_($* "-"??_);_(@_)'
# By name: the file's name, what is in it, the rows that are read, and what is said.
CASES: dict[str, tuple] = {
    "a title in a workbook": (
        *("r.xlsx", sheet("Sales of 2024||Region,Sales|North,100|South,200"), SALES),
        "'Sales of 2024' above it is the title",
    ),
    "a title with a day beside it": (
        *("r.xlsx", sheet("Sales,5 May 2024|Region,Sales|North,100|South,200"), SALES),
        "'Sales 5 May 2024' above it is the title",
    ),
    "a header of three rows": (
        "r.xlsx",
        sheet(",2023,,2024|,Men,,Men|Age,n,%,n|0-9,1,2,3|10-19,4,5,6"),
        "Age,2023 Men n,2023 Men %,2024 Men n|0-9,1,2,3|10-19,4,5,6",
        "The header is rows 1, 2 and 3.",
    ),
    "titles in lines as long as the others": (
        "r.csv",
        "Sales of 2024,,\nYear:,2024,\n,,\nRegion,Q1,Q2\nNorth,1,2\nSouth,3,4\n",
        "Region,Q1,Q2|North,1,2|South,3,4",
        "The header is in line 4; 2 lines above it are the title.",
    ),
    "pairs above a table of a workbook": (
        *("r.xlsx", sheet("Account,DE12|From,2024||Day,For,Sum|Mon,x,5"), "Day,For,Sum|Mon,x,5"),
        "The header is in row 4",
    ),
    "a header over two rows, merged": (
        "r.xlsx",
        sheet("Region,2023,|,Q1,Q2|North,1,2|South,3,4", merged=["B1:C1", "A1:A2"]),
        "Region,2023 Q1,2023 Q2|North,1,2|South,3,4",
        "The header is rows 1 and 2.",
    ),
    "lines of a bank": (
        "r.csv",
        '"Account:","1234"\n\n"From:","01.01.2024"\n"Date","Payee","Purpose","Amount"\n'
        '"05.01.2024","Shop","Food","-12,50"\n"06.01.2024","Work","Pay","1.000,00"\n',
        "Date,Payee,Purpose,Amount|05.01.2024,Shop,Food,-12;50|06.01.2024,Work,Pay,1.000;00",
        "The header is in line 4",
    ),
    "gzip": ("r.csv.gz", gzip.compress(b"name,age\nAnn,30\nBob,25\n"), PEOPLE),
    "what Excel shows": (
        "r.xlsx",
        sheet(
            "a,b,c,d|0.125,1.5,7,0.5|-0.041,-1234.5,42,2.25",
            formats=of_columns("0.0%", '"$"#,##0.00;("$"#,##0.00)', "00000", "[h]:mm:ss"),
        ),
        "a,b,c,d|12.5%,$1.50,00007,12:00:00|-4.1%,($1;234.50),00042,54:00:00",
    ),
    "marks between digits, powers and signs that Excel shows": (
        "r.xlsx",
        sheet(
            "a,b,c,d|123456789,1234567,5,0|2134,2500000,-7,1500",
            formats=of_columns(
                *("000-00-0000", '0.0,,"M"', '#,##0 "\u20ac"', '[>=1000]0.0,"K";0;"-"')
            ),
        ),
        "a,b,c,d|123-45-6789,1.2M,5 €,0|000-00-2134,2.5M,-7 €,1.5K",
    ),
    "accounts, negatives without a sign, conditions and units that Excel shows": (
        "r.xlsx",
        sheet(
            "a,b,c,d,e|0,-2.5,1,1.5,0|-1234.5,3,0,-2.5,2500000",
            formats=of_columns(
                *(ACCOUNTS, "0.00%;[Red]0.00%", '[=1]"yes";[=0]"no";General', 'General" kg"'),
                '[>=1000000]0.0,,"M";[>=1000]0.0,"K";\u2013',
            ),
        ),
        "a,b,c,d,e|$-,-250.00%,yes,1.5 kg,0|$(1;234.50),300.00%,no,-2.5 kg,2.5M",
    ),
    "multiples and units in quotes that Excel shows": (
        "r.xlsx",
        sheet("a,b|12000,1.5|3400000,2", formats=of_columns('#,##0,"k"', '0.0"x"')),
        "a,b|12k,1.5x|3;400k,2.0x",
    ),
    "units below a title beside a name": (
        *("r.xlsx", sheet("Energy||Year,Coal,Gas|,TWh,TWh|2022,10.5,20|2023,9,21.5")),
        *("Year,Coal TWh,Gas TWh|2022,10.5,20|2023,9,21.5", "The header is rows 3 and 4."),
    ),
    "groups above a header whose first cell alone is a name": (
        *("r.xlsx", sheet(",2023,|,Men,Women|Age,n,n|0-9,1,2|10-19,3,4", merged=["B1:C1"])),
        "Age,2023 Men n,2023 Women n|0-9,1,2|10-19,3,4",
    ),
    "a title and a day beside it, above a gap": (
        "r.xlsx",
        sheet(f"ACME,,Printed:,2024-01-05|Statement||{DATED}"),
        *(DATED, "The header is in row 4; 2 rows above it are the title."),
    ),
    "sections merged over all columns": (
        "r.xlsx",
        sheet("Accounts|Item,2024|Assets|Cash,7|Debts|Loan,8", merged=["A1:B1", "A3:B3", "A5:B5"]),
        "Item,2024|Assets,|Cash,7|Debts,|Loan,8",
        "'Accounts' above it is the title",
    ),
    "merged cells": (
        "r.xlsx",
        sheet("Country,City|Peru,Lima|,Cusco|Chile,Temuco", merged=["A2:A3"]),
        "Country,City|Peru,Lima|Peru,Cusco|Chile,Temuco",
    ),
    "hidden rows and columns": (
        *("r.xlsx", sheet("a,b,c|x,1,2|y,3,4", hidden=[2], hidden_columns=["B"]), "a,c|y,4"),
        "1 hidden row is left out.",
    ),
    "names with raised notes": (
        "r.html",
        PAGE.replace("Lima", "Lima<sup>2</sup>").replace("Pop", "Pop <sup>3</sup>"),
        CITIES,
    ),
    "powers, letters and notes raised": (
        "r.html",
        "<table><tr><th>City<th>Pop<tr><td>Lima<sup>a</sup><td>1.2\u00d710<sup>6</sup>"
        "<tr><td>Quito<td>1763<sup>b</sup><sup>[note 2]</sup></table>",
        "City,Pop|Lima,1.2×10^6|Quito,1763",
    ),
    "a page without headings, with an empty row, in a frame": (
        "r.html",
        "<table><tr><td><table><tr><td rowspan=2>Region<td colspan=2>2023<tr><td>Q1<td>Q2"
        "<tr><td>North<td>1<td>2<tr><td><td><td><tr><td>South<td>3<td>4</table></table>",
        "Region,2023 Q1,2023 Q2|North,1,2|South,3,4",
        "The header is rows 1 and 2.",
    ),
    "sections of a page": (
        "r.html",
        "<table><tr><th>Item<th>2023<th>2024<tr><th colspan=3>Assets<tr><td>Cash<td>1<td>2"
        "<tr><th colspan=3>Debts<tr><td>Loan<td>5<td>6</table>",
        "Item,2023,2024|Assets,,|Cash,1,2|Debts,,|Loan,5,6",
    ),
    "a workbook named as text": ("r.csv", sheet(CITIES), CITIES, "a workbook of Excel, although"),
    "marks.html": (
        "marks.html",
        "<table><tr><th>a<th>b<tr><td>x<td>10<a class=footnote>2</a><tr><td>y<td>$9<sup>.95</sup>"
        "</table>",
        "a,b|x,10|y,$9.95",
    ),
    "a day beside a title": ("d.xlsx", sheet(f"Report,,Date:,2024-01-05|{DATED}"), DATED),
}


def text_cases():
    """Cases of three lines: a name, the file's and its encoding, and what is said of it; what is in
    it, with ¶ at the end of each line; and the rows that are read.
    """
    text = FOLDER.joinpath("texts.txt").read_text(encoding="utf-8").rstrip("\n")
    lines = text.replace("\\t", "\t").replace("\\0", "\0").split("\n")
    for head, content, rows in zip(lines[::3], lines[1::3], lines[2::3], strict=True):
        name, file, codec, said = re.fullmatch(r"(.*?) \((\S+) ?(\S*)\)(?:: (.*))?", head).groups()
        content = content.replace("¶", "\n").encode(codec or "utf-8")
        yield pytest.param((file, content, rows, *filter(None, [said])), id=name)


@cases("case", *(pytest.param(case, id=name) for name, case in CASES.items()), *text_cases())
def test_a_file_is_read_as_its_author_meant_it(case):
    name, content, rows, *said = case
    table = read_content(content if isinstance(content, bytes) else content.encode(), name)
    assert rows_of(table) == rows
    assert all(any(part in sentence for sentence in table.assumed) for part in said)


@cases(
    "name, content, message",
    ("t.csv", "name,street\nA,Main St, Rome\nB,Oak St, Oslo\nC,Elm St, Bern\n", "in quotes, or"),
    ("t.csv", 'a,b\n"5" pipe",x\n', "write a quote within quotes twice"),
    ("t.csv", "version https://git-lfs.github.com/spec/v1\n", "a pointer of Git LFS"),
    ("t.zip", b"PK\3\4", r"a zip archive; unpack it first \(file 't.zip'\)"),
    ("t.csv", "Köln,x\nMünchen,y\n".encode("mac_roman"), "set its encoding, such as"),
    *(
        ("t.csv", text.encode(codec), "set its encoding, such as")  # it may be of two
        for codec, text in (
            ("cp1255", "ירושלים,ישראל\n"),
            ("koi8-r", "город,x\nМосква,y\nКазань,z\n"),
            ("cp437", "Köln,x\nMönchengladbach,y\n"),
        )
    ),
    ("t.csv", b'<?xml version="1.0"?><a>1</a>', "got what looks like XML"),
    ("t.csv", b"\x03|\0\0x,y", "got what looks like no text"),
    ("t.xls", b"\xd0\xcf\x11\xe0" + "EncryptedPackage".encode("utf-16-le"), "a password"),
)
def test_what_would_be_misread_is_refused_with_a_remedy(name, content, message):
    with pytest.raises(ValueError, match=message):
        read_content(content if isinstance(content, bytes) else content.encode(), name)


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


OLD_ENCODINGS = {
    "cp1251": ("Windows-1251", "город,население\nМосква,12000\nКазань,1300\n"),
    "gb18030": ("GB 18030", "城市,人口\n北京,2189\n上海,2487\n"),
    "cp932": ("Shift JIS", "商品,価格\nりんご,100\nバナナ,200\n"),
    "cp1252": ("Windows-1252", "Málaga,España\nSão Paulo,Genève\nTromsø,5 €\n"),
    "cp1250": ("Windows-1250", "Praha,Plzeň\nGyőr,Zűr\nWrocław,Gdańsk\n"),
    "iso8859_2": ("ISO 8859-2", "Łódź,Śląsk\nludność,x\n"),
    "cp1254": ("Windows-1254", "İstanbul,Beyoğlu\nŞişli,x\n"),
    "cp1253": ("Windows-1253", "Αθήνα,Ελλάδα\n"),
    "cp1256": ("Windows-1256", "القاهرة,مصر\n"),
    "big5": ("Big5", "臺北,中華\n高雄,港口\n"),
    "euc_jp": ("EUC-JP", "りんご,みかん\n東京,日本\n"),
    "cp949": ("EUC-KR", "서울,대한민국\n부산,광역시\n"),
}


@pytest.mark.parametrize(("codec", "said", "text"), [(c, *it) for c, it in OLD_ENCODINGS.items()])
def test_an_old_encoding_is_told_by_the_letters_that_it_gives(codec, said, text):
    table = read_content(f"name,other\n{text}".encode(codec), "t.csv", ReadOptions(header_rows=1))
    assert "\n".join(",".join(row) for row in table.rows) == text.rstrip()
    assert table.assumed == (f"The encoding was taken to be {said}.",)


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


# What the files of the folder of cases are, where it is there.
FILES = {
    "01/report.xlsx": "Region,Sales|North,100|South,200|Total,300",
    "04/two.xlsx": "Region,2023 Q1,2023 Q2|North,1,2",
    "05/giro.csv": "Date,Payee,Purpose,Amount|05.01.2024,Shop,Food,-12;50",
    "08/noheader.csv": "column 1,column 2|Ann,30|Bob,25|Cy,41",
    "09/euro.csv": "geo,value; thousand EUR|DE,10;5|FR,9;2",
    "11/konto.csv": "Date,Payee,Amount|01.02.2024,Shop,-12|02.02.2024,Work,2000",
    "14/unicode.tsv": "City,Inhabitants|Lima,10151000|Bogotá,7674366|Quito,1763275",
    "16/gbk.csv": "城市,人口|北京,2189|上海,2487",
    "16/sjis.csv": "都市,人口|東京,1396",
    "27/ratio.csv": "item,ratio|a,0.5|b,#DIV/0!|c,#N/A|d,0.25",
    "34/years.csv": "film,year|A,2001|B,|C,1999",
    "34/years.parquet": "film,year|A,2001|B,|C,1999",
    "46/p.xlsx": "Product,Growth,Price|Tea,12.5%,$1.50|Coffee,-4.1%,$12.00|Milk,100.0%,$23;999.99",
    "49/m.xlsx": "Country,City,Pop|Peru,Lima,10|Peru,Cusco,1|Chile,Santiago,6|Chile,Temuco,1",
    "49/m.html": "Country,City|Peru,Lima|Peru,Cusco",
    "51/f.xlsx": "Item,Qty|a,1|c,3",
    "53/s.html": "City,Pop|Lima,10151|Quito,1763",
    "55/a.html": "Item,2023,2024|Assets,,|Cash,1,2|Debts,,|Loan,5,6",
    "59/i.json": "key,age,city|Ann,30,Rome|Bob,25,Oslo",
    "61/r.json": "a,b|1,|2,3",
    "61/r.jsonl": "a,b|1,x|2,",
    "73/u.csv": "who,mood|José,😀|Zoë,中",
    "79/t.json": "item,price|pen,1.50|car,2e4",
    "85/a.xls": "a|1",
    "85/b.xlsx": "a|1",
    "85/c.csv": "a|1",
    "87/a.txt": "a,b|1,2",
    "91/s.csv": "product,qty,price|Tea,35,1|Milk,900,2|Rice,12,3",
}


@pytest.mark.parametrize(("name", "expected"), FILES.items())
def test_the_cases_of_the_folder_are_read(name, expected):
    if not FIELD.is_dir():
        pytest.skip("no folder of cases: set MATE_TF_FIELD_DIR")
    assert rows_of(read_table(FIELD / "inputs" / name)) == expected
