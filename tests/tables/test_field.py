"""Files as people bring them: each case and its relatives are read as their authors meant them."""

import gzip
import io
import zipfile

import pytest

from mate_tf.tables.files import ReadOptions, read_content, read_table
from tests.data_folders import FIELD

openpyxl = pytest.importorskip("openpyxl", reason='not installed (the extra "formats")')
pytest.importorskip("lxml", reason='not installed (the extra "formats")')


def rows_of(table):
    return [list(table.header), *map(list, table.rows)]


def workbook(rows, hidden=(), merged=(), formats=(), wide=()):
    book = openpyxl.Workbook()
    sheet = book.active
    for row in rows:
        sheet.append(row)
    for row in hidden:
        sheet.row_dimensions[row].hidden = True
    for letter in wide:
        sheet.column_dimensions[letter].hidden = True
    for cells in merged:
        sheet.merge_cells(cells)
    for cell, number_format in formats:
        sheet[cell].number_format = number_format
    content = io.BytesIO()
    book.save(content)
    return content.getvalue()


PEOPLE = [["name", "age"], ["Ann", "30"], ["Bob", "25"]]
CITIES = [["City", "Pop"], ["Lima", "10151"], ["Quito", "1763"]]
PAGE = "<table><tr><th>City<th>Pop<tr><td>Lima<td>10151<tr><td>Quito<td>1763</table>"
SALES = [["Region", "Sales"], ["North", "100"], ["South", "200"]]

CASES = {
    "a title in a workbook": (
        "r.xlsx",
        workbook([["Sales of 2024"], [], ["Region", "Sales"], ["North", 100], ["South", 200]]),
        SALES,
        "'Sales of 2024' above it is the title",
    ),
    "a title as wide as the table": (
        "r.csv",
        "Statement;January\n\nRegion;Sales\nNorth;100\nSouth;200\n",
        SALES,
        "'Statement January' above it is the title",
    ),
    "a title with a day beside it": (
        "r.xlsx",
        workbook([["Sales", "5 May 2024"], ["Region", "Sales"], ["North", 100], ["South", 200]]),
        SALES,
        "'Sales 5 May 2024' above it is the title",
    ),
    "an empty line below the header": (
        "r.csv",
        "Item,Q1,Q2\n\nTea,n/a,n/a\nMilk,1,2\n",
        [["Item", "Q1", "Q2"], ["Tea", "n/a", "n/a"], ["Milk", "1", "2"]],
        None,
    ),
    "days above units": (
        "r.csv",
        "City,2024-01-01,2024-01-02\nunit,mm,mm\nLima,1,2\nQuito,3,4\n",
        [["City", "2024-01-01", "2024-01-02"], ["unit", "mm", "mm"], ["Lima", "1", "2"]]
        + [["Quito", "3", "4"]],
        None,
    ),
    "a header of three rows": (
        "r.xlsx",
        workbook(
            [["", "2023", "", "2024"], ["", "Men", "", "Men"], ["Age", "n", "%", "n"]]
            + [["0-9", 1, 2, 3], ["10-19", 4, 5, 6]]
        ),
        [
            ["Age", "2023 Men n", "2023 Men %", "2024 Men n"],
            ["0-9", "1", "2", "3"],
            ["10-19", "4", "5", "6"],
        ],
        "The header is rows 1, 2 and 3.",
    ),
    "notes of several lines and pairs": (
        "r.csv",
        "Region,Q1,Q2\nNorth,1,2\nSouth,3,4\n\nMade on 2024-01-05\nBy:,Joe,\n",
        [["Region", "Q1", "Q2"], ["North", "1", "2"], ["South", "3", "4"]],
        "The note 'Made on 2024-01-05' below",
    ),
    "pairs with colons as wide as the table": (
        "r.csv",
        "Report:,Sales\nDate:,2024-01-05\n,\nRegion,Sales\nNorth,100\nSouth,200\n\0",
        SALES,
        "2 lines above it are the title",
    ),
    "a data frame as it is printed": (
        "r.txt",
        "   name  age\n0   Ann   30\n1   Bob   25\n",
        [["", "name", "age"], ["0", "Ann", "30"], ["1", "Bob", "25"]],
        "The columns are separated by two or more blanks.",
    ),
    "a title and a date": (
        "r.csv",
        "Sales of 2024\nas of 1 May\n\nRegion,Sales\nNorth,100\nSouth,200\n",
        SALES,
        "The header is in line 4; 2 lines above it are the title.",
    ),
    "titles in lines as long as the others": (
        "r.csv",
        "Sales of 2024,,\nYear:,2024,\n,,\nRegion,Q1,Q2\nNorth,1,2\nSouth,3,4\n",
        [["Region", "Q1", "Q2"], ["North", "1", "2"], ["South", "3", "4"]],
        "The header is in line 4; 2 lines above it are the title.",
    ),
    "pairs above a table of a workbook": (
        "r.xlsx",
        workbook(
            [["Account", "DE12"], ["From", "2024"], [], ["Day", "For", "Sum"], ["Mon", "x", 5]]
        ),
        [["Day", "For", "Sum"], ["Mon", "x", "5"]],
        "The header is in row 4",
    ),
    "names of groups beside a name": (
        "r.csv",
        ",Men,,Women,\nAge,Count,Share,Count,Share\n0-9,5,0.5,6,0.5\n10-19,7,0.6,8,0.4\n",
        [
            ["Age", "Men Count", "Men Share", "Women Count", "Women Share"],
            ["0-9", "5", "0.5", "6", "0.5"],
            ["10-19", "7", "0.6", "8", "0.4"],
        ],
        "The header is lines 1 and 2.",
    ),
    "a header over two rows, merged": (
        "r.xlsx",
        workbook(
            [["Region", "2023", None], [None, "Q1", "Q2"], ["North", 1, 2], ["South", 3, 4]],
            merged=["B1:C1", "A1:A2"],
        ),
        [["Region", "2023 Q1", "2023 Q2"], ["North", "1", "2"], ["South", "3", "4"]],
        "The header is rows 1 and 2.",
    ),
    "a header with a line of units": (
        "r.csv",
        "name,mass,height\n,kg,cm\nAnn,60,170\nBob,80,180\n",
        [["name", "mass kg", "height cm"], ["Ann", "60", "170"], ["Bob", "80", "180"]],
        "The header is lines 1 and 2.",
    ),
    "a line of units below all names": (
        "r.csv",
        "Time;Speed\n[s];[m/s]\n0,1;5\n0,2;6\n",
        [["Time [s]", "Speed [m/s]"], ["0,1", "5"], ["0,2", "6"]],
        "The header is lines 1 and 2.",
    ),
    "days above numbers are a header": (
        "r.csv",
        "City,2024-01-01,2024-01-02\nLima,1,2\nQuito,3,4\n",
        [["City", "2024-01-01", "2024-01-02"], ["Lima", "1", "2"], ["Quito", "3", "4"]],
        None,
    ),
    "years above numbers are a header": (
        "r.csv",
        "Region,2023,2024\nNorth,17,18\nSouth,19,20\n",
        [["Region", "2023", "2024"], ["North", "17", "18"], ["South", "19", "20"]],
        None,
    ),
    "no header": (
        "r.csv",
        "Ann,30\nBob,25\n",
        [["column 1", "column 2"], *PEOPLE[1:]],
        "There is no header",
    ),
    "no header, with dates": (
        "r.csv",
        "2024-01-05,12.5\n2024-01-06,13.5\n",
        [["column 1", "column 2"], ["2024-01-05", "12.5"], ["2024-01-06", "13.5"]],
        "There is no header",
    ),
    "comments and a footer": (
        "r.csv",
        "# exported 2024\n# by hand\nname,age\nAnn,30\nBob,25\nSource: us\n",
        PEOPLE,
        "The note 'Source: us' below the table is left out.",
    ),
    "comments between lines, and the header again": (
        "r.csv",
        "name,age\n# one\nAnn,30\nname,age\n# two\nBob,25\nSource: an office, 2024\n",
        PEOPLE,
        "2 comments are left out.",
    ),
    "lines of a bank": (
        "r.csv",
        '"Account:","1234"\n\n"From:","01.01.2024"\n"Date","Payee","Purpose","Amount"\n'
        '"05.01.2024","Shop","Food","-12,50"\n"06.01.2024","Work","Pay","1.000,00"\n',
        [
            ["Date", "Payee", "Purpose", "Amount"],
            ["05.01.2024", "Shop", "Food", "-12,50"],
            ["06.01.2024", "Work", "Pay", "1.000,00"],
        ],
        "The header is in line 4",
    ),
    "semicolons and a comma in a name": (
        "r.csv",
        "geo;value, thousand EUR\nDE;10,5\nFR;9,2\n",
        [["geo", "value, thousand EUR"], ["DE", "10,5"], ["FR", "9,2"]],
        "The columns are separated by ';'.",
    ),
    "a title without the delimiter": (
        "r.csv",
        "Statement, of account\nDate;Payee;Amount\n1.2.2024;Shop;-12,5\n2.2.2024;Work;2000,0\n",
        [
            ["Date", "Payee", "Amount"],
            ["1.2.2024", "Shop", "-12,5"],
            ["2.2.2024", "Work", "2000,0"],
        ],
        "The header is in line 2",
    ),
    "columns of blanks below a title, with a rule": (
        "r.txt",
        "People of 2024\n\nname      age\n----      ---\nAnn        30\nBob        25\n",
        PEOPLE,
        "separated by two or more blanks",
    ),
    "delimiters without columns": ("r.csv", "name;;age;;\nAnn;;30;;\nBob;;25;;\n", PEOPLE, None),
    "blanks before quotes": ("r.csv", 'name, age\n"Ann", "30"\n"Bob", "25"\n', PEOPLE, None),
    "texts as Excel keeps them": (
        "r.csv",
        'id\n="007"\n="010"\n',
        [["id"], ["007"], ["010"]],
        None,
    ),
    "bars": ("r.txt", "name|age\nAnn|30\nBob|25\n", PEOPLE, "separated by '|'"),
    "UTF-16": ("r.tsv", "name\tage\nAnn\t30\nBob\t25\n".encode("utf-16"), PEOPLE, None),
    "UTF-16 without a mark": (
        "r.csv",
        "name,age\nAnn,30\nBob,25\n".encode("utf-16-le"),
        PEOPLE,
        "taken to be UTF-16",
    ),
    "Windows-1252": (
        "r.csv",
        "Stadt;Preis\nKöln;5 €\nMünchen;7 €\n".encode("cp1252"),
        [["Stadt", "Preis"], ["Köln", "5 €"], ["München", "7 €"]],
        "taken to be Windows-1252",
    ),
    "Windows-1251": (
        "r.csv",
        "город,население\nМосква,12000\nКазань,1300\n".encode("cp1251"),
        [["город", "население"], ["Москва", "12000"], ["Казань", "1300"]],
        "taken to be Windows-1251",
    ),
    "GB 18030": (
        "r.csv",
        "城市,人口\n北京,2189\n上海,2487\n".encode("gb18030"),
        [["城市", "人口"], ["北京", "2189"], ["上海", "2487"]],
        "taken to be GB 18030",
    ),
    "Shift JIS": (
        "r.csv",
        "商品,価格\nりんご,100\nバナナ,200\n".encode("cp932"),
        [["商品", "価格"], ["りんご", "100"], ["バナナ", "200"]],
        "taken to be Shift JIS",
    ),
    "gzip": ("r.csv.gz", gzip.compress(b"name,age\nAnn,30\nBob,25\n"), PEOPLE, None),
    "blank lines of a sheet": ("r.csv", "name,age\nAnn,30\n,\nBob,25\n,\n,\n", PEOPLE, None),
    "what Excel shows": (
        "r.xlsx",
        workbook(
            [["a", "b", "c", "d"], [0.125, 1.5, 7, 0.5], [-0.041, -1234.5, 42, 2.25]],
            formats=[
                *((f"A{n}", "0.0%") for n in (2, 3)),
                *((f"B{n}", '"$"#,##0.00;("$"#,##0.00)') for n in (2, 3)),
                *((f"C{n}", "00000") for n in (2, 3)),
                *((f"D{n}", "[h]:mm:ss") for n in (2, 3)),
            ],
        ),
        [
            ["a", "b", "c", "d"],
            ["12.5%", "$1.50", "00007", "12:00:00"],
            ["-4.1%", "($1,234.50)", "00042", "54:00:00"],
        ],
        None,
    ),
    "marks between digits, powers and signs that Excel shows": (
        "r.xlsx",
        workbook(
            [["a", "b", "c", "d"], [123456789, 1234567, 5, 0], [2134, 2500000, -7, 1500]],
            formats=[
                *((f"A{n}", "000-00-0000") for n in (2, 3)),
                *((f"B{n}", '0.0,,"M"') for n in (2, 3)),
                *((f"C{n}", '#,##0 "\u20ac"') for n in (2, 3)),
                *((f"D{n}", '[>=1000]0.0,"K";0;"-"') for n in (2, 3)),
            ],
        ),
        [
            ["a", "b", "c", "d"],
            ["123-45-6789", "1.2M", "5 \u20ac", "0"],
            ["000-00-2134", "2.5M", "-7 \u20ac", "1.5K"],
        ],
        None,
    ),
    "accounts, negatives without a sign, conditions and units that Excel shows": (
        "r.xlsx",
        workbook(
            [["a", "b", "c", "d", "e"], [0, -2.5, 1, 1.5, 0], [-1234.5, 3, 0, -2.5, 2500000]],
            formats=[
                *((f"A{n}", '_($* #,##0.00_);_($* (#,##0.00);_($* "-"??_);_(@_)') for n in (2, 3)),
                *((f"B{n}", "0.00%;[Red]0.00%") for n in (2, 3)),
                *((f"C{n}", '[=1]"yes";[=0]"no";General') for n in (2, 3)),
                *((f"D{n}", 'General" kg"') for n in (2, 3)),
                *((f"E{n}", '[>=1000000]0.0,,"M";[>=1000]0.0,"K";\u2013') for n in (2, 3)),
            ],
        ),
        [
            ["a", "b", "c", "d", "e"],
            ["$-", "-250.00%", "yes", "1.5 kg", "0"],
            ["$(1,234.50)", "300.00%", "no", "-2.5 kg", "2.5M"],
        ],
        None,
    ),
    "sections merged over all columns": (
        "r.xlsx",
        workbook(
            [["Accounts"], ["Item", "2024"], ["Assets"], ["Cash", 7], ["Debts"], ["Loan", 8]],
            merged=["A1:B1", "A3:B3", "A5:B5"],
        ),
        [["Item", "2024"], ["Assets", ""], ["Cash", "7"], ["Debts", ""], ["Loan", "8"]],
        "'Accounts' above it is the title",
    ),
    "merged cells": (
        "r.xlsx",
        workbook(
            [["Country", "City"], ["Peru", "Lima"], [None, "Cusco"], ["Chile", "Temuco"]],
            merged=["A2:A3"],
        ),
        [["Country", "City"], ["Peru", "Lima"], ["Peru", "Cusco"], ["Chile", "Temuco"]],
        None,
    ),
    "hidden rows and columns": (
        "r.xlsx",
        workbook([["a", "b", "c"], ["x", 1, 2], ["y", 3, 4]], hidden=[2], wide=["B"]),
        [["a", "c"], ["y", "4"]],
        "1 hidden row is left out.",
    ),
    "footnotes of a page": (
        "r.html",
        PAGE.replace("10151", "10151<sup>3</sup>").replace("1763", "1763<sup>[a]</sup>"),
        CITIES,
        None,
    ),
    "names with raised notes": (
        "r.html",
        PAGE.replace("Lima", "Lima<sup>2</sup>").replace("Pop", "Pop <sup>3</sup>"),
        CITIES,
        None,
    ),
    "the header again within a page": (
        "r.html",
        PAGE.replace("<tr><td>Quito", "<tr><th>City<th>Pop<tr><td>Quito"),
        CITIES,
        None,
    ),
    "units and ordinals raised": (
        "r.html",
        "<table><tr><th>a<th>km<sup>2</sup><tr><td>1<sup>st</sup><td>5</table>",
        [["a", "km²"], ["1st", "5"]],
        None,
    ),
    "powers, letters and notes raised": (
        "r.html",
        "<table><tr><th>City<th>Pop<tr><td>Lima<sup>a</sup><td>1.2\u00d710<sup>6</sup>"
        "<tr><td>Quito<td>1763<sup>b</sup><sup>[note 2]</sup></table>",
        [["City", "Pop"], ["Lima", "1.2\u00d710^6"], ["Quito", "1763"]],
        None,
    ),
    "a page without headings, with an empty row, in a frame": (
        "r.html",
        "<table><tr><td><table><tr><td rowspan=2>Region<td colspan=2>2023<tr><td>Q1<td>Q2"
        "<tr><td>North<td>1<td>2<tr><td><td><td><tr><td>South<td>3<td>4</table></table>",
        [["Region", "2023 Q1", "2023 Q2"], ["North", "1", "2"], ["South", "3", "4"]],
        "The header is rows 1 and 2.",
    ),
    "sections of headings that are empty": (
        "r.html",
        "<table><tr><th>Item<th>2023<tr><th>Assets<th><tr><td>Cash<td>1</table>",
        [["Item", "2023"], ["Assets", ""], ["Cash", "1"]],
        None,
    ),
    "sections of a page": (
        "r.html",
        "<table><tr><th>Item<th>2023<th>2024<tr><th colspan=3>Assets<tr><td>Cash<td>1<td>2"
        "<tr><th colspan=3>Debts<tr><td>Loan<td>5<td>6</table>",
        [
            ["Item", "2023", "2024"],
            ["Assets", "", ""],
            ["Cash", "1", "2"],
            ["Debts", "", ""],
            ["Loan", "5", "6"],
        ],
        None,
    ),
    "a title over all columns of a page": (
        "r.html",
        PAGE.replace("<tr><th>City", "<tr><th colspan=2>Cities<tr><th>City"),
        CITIES,
        None,
    ),
    "objects by name": (
        "r.json",
        '{"Ann": {"age": 30}, "Bob": {"age": 25}}',
        [["key", "age"], ["Ann", "30"], ["Bob", "25"]],
        None,
    ),
    "numbers by name": (
        "r.json",
        '{"Lima": 10, "Quito": 2.5}',
        [["key", "value"], ["Lima", "10"], ["Quito", "2.5"]],
        None,
    ),
    "objects by year": (
        "r.json",
        '{"2023": {"sales": 1}, "2024": {"sales": 3}}',
        [["key", "sales"], ["2023", "1"], ["2024", "3"]],
        None,
    ),
    "columns of objects by name": (
        "r.json",
        '{"age": {"Ann": 30, "Bob": 25}, "city": {"Ann": "Rome", "Bob": null}}',
        [["key", "age", "city"], ["Ann", "30", "Rome"], ["Bob", "25", ""]],
        None,
    ),
    "labels of pandas": (
        "r.json",
        '{"columns": ["age"], "index": ["Ann", "Bob"], "data": [[30], [25]]}',
        [["", "age"], ["Ann", "30"], ["Bob", "25"]],
        None,
    ),
    "a table within other keys": (
        "r.json",
        '{"ok": true, "result": {"fields": [{"id": "name"}], "records": [{"name": "Ann"}]}}',
        [["name"], ["Ann"]],
        None,
    ),
    "objects without the keys that are null": (
        "r.json",
        '[{"a": 1}, {"a": 2, "b": 3}]',
        [["a", "b"], ["1", ""], ["2", "3"]],
        None,
    ),
    "lines without the keys that are null": (
        "r.jsonl",
        '{"a": 1, "b": "x"}\n{"a": 2}\n',
        [["a", "b"], ["1", "x"], ["2", ""]],
        None,
    ),
    "objects by name within a key": (
        "r.json",
        '{"items": {"Ann": {"age": 30}, "Bob": {"age": 25}}}',
        [["key", "age"], ["Ann", "30"], ["Bob", "25"]],
        None,
    ),
    "objects within a key": (
        "r.json",
        '{"count": 2, "results": [{"name": "Ann", "age": 30}, {"name": "Bob", "age": 25}]}',
        PEOPLE,
        None,
    ),
    "objects in objects": (
        "r.json",
        '[{"name": "Ann", "at": {"city": "Rome", "tags": ["x", "y"]}}]',
        [["name", "at.city", "at.tags"], ["Ann", "Rome", "x, y"]],
        None,
    ),
    "numbers of JSON keep their text": (
        "r.json",
        '[["item", "price"], ["pen", 1.50], ["car", 2e4]]',
        [["item", "price"], ["pen", "1.50"], ["car", "2e4"]],
        None,
    ),
    "a page named as a workbook": ("r.xls", PAGE, CITIES, "read as a page of HTML, although"),
    "a workbook named as text": (
        "r.csv",
        workbook([["City", "Pop"], ["Lima", 10151], ["Quito", 1763]]),
        CITIES,
        "read as a workbook of Excel, although",
    ),
    "JSON named as text": ("r.txt", '[{"name": "Ann", "age": 30}]', PEOPLE[:2], "read as JSON"),
    "lines of JSON named as text": (
        "r.csv",
        '{"name": "Ann", "age": 30}\n{"name": "Bob", "age": 25}\n',
        PEOPLE,
        "read as JSON Lines, although",
    ),
    "a table as databases print it": (
        "r.txt",
        "+-----+-----+\n| name | age |\n+-----+-----+\n| Ann | 30 |\n| Bob | 25 |\n+-----+-----+\n",
        PEOPLE,
        "read as Markdown",
    ),
    "text of any name": ("r.dat2", "name,age\nAnn,30\nBob,25\n", PEOPLE, None),
    "Markdown": (
        "r.md",
        "# People\n\n| name | age |\n|---|---:|\n| Ann[^1] | 30 |\n| Bob | 25[^b] |\n\nmore\n",
        PEOPLE,
        None,
    ),
}


@pytest.mark.parametrize(("name", "content", "rows", "said"), CASES.values(), ids=CASES)
def test_a_file_is_read_as_its_author_meant_it(name, content, rows, said):
    content = content if isinstance(content, bytes) else content.encode()
    table = read_content(content, name)
    assert rows_of(table) == rows
    assert said is None or any(said in sentence for sentence in table.assumed)


OLD_ENCODINGS = {
    "cp1252": ("Windows-1252", "Málaga,España\nSão Paulo,Genève\nTromsø,x\n"),
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


def test_what_two_encodings_may_be_is_refused():
    for codec, text in (
        ("cp1255", "ירושלים,ישראל\n"),
        ("koi8-r", "город,x\nМосква,y\nКазань,z\n"),
        ("cp437", "Köln,x\nMönchengladbach,y\n"),
    ):
        with pytest.raises(ValueError, match="set its encoding, such as"):
            read_content(text.encode(codec), "t.csv")


def test_options_decide_what_is_otherwise_assumed():
    text = b"Statement\nAnn;1,5\nBob;2,5\n"
    options = ReadOptions(delimiter=";", encoding="cp1252", header_rows=0, skip_rows=1)
    assert rows_of(read_content(text, "r.csv", options))[1:] == [["Ann", "1,5"], ["Bob", "2,5"]]
    book = workbook([["a", "b"], ["x", 1], ["y", 2]], hidden=[2])
    assert read_content(book, "r.xlsx", ReadOptions(show_hidden=True)).num_rows == 2
    two = PAGE + PAGE.replace("Lima", "Rome")
    assert read_content(two.encode(), "r.html", ReadOptions(which=1)).rows[0][0] == "Rome"
    with pytest.raises(ValueError, match=r"which, from 0 to 1, got 2 tables"):
        read_content(two.encode(), "r.html")
    with pytest.raises(ValueError, match=r"may be in .* or in .*, so set its encoding"):
        read_content("产品,价格\n".encode("gb18030") + b"a,1\n", "r.csv")
    with pytest.raises(
        ValueError, match=r"header in line 1 and one .* in line 5; set skip_rows=4 to read the sec"
    ):
        read_content(b"a,b\nx,1\ny,2\n\nc,d,e\nz,3,5\nw,4,6\n", "two.csv")
    with pytest.raises(
        ValueError, match=r"expected a file, got the address 'https://x\.org/t\.csv'"
    ):
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


def opendocument(*sheets, attributes=""):
    """A workbook of OpenDocument, as far as readers need it; a cell is a text or its element."""
    schema = "urn:oasis:names:tc:opendocument:xmlns"

    def cell(text):
        plain = f'<table:table-cell office:value-type="string"><text:p>{text}</text:p>'
        return text if text.startswith("<") else f"{plain}</table:table-cell>"

    tables = "".join(
        f'<table:table table:name="{name}">{attributes}'
        + "".join(
            row
            if isinstance(row, str)
            else f"<table:table-row>{''.join(map(cell, row))}</table:table-row>"
            for row in rows
        )
        + "</table:table>"
        for name, rows in sheets
    )
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as file:
        file.writestr("mimetype", "application/vnd.oasis.opendocument.spreadsheet")
        file.writestr("META-INF/manifest.xml", '<manifest:manifest xmlns:manifest="m"/>')
        file.writestr(
            "content.xml",
            f'<office:document-content xmlns:office="{schema}:office:1.0" '
            f'xmlns:table="{schema}:table:1.0" xmlns:text="{schema}:text:1.0"><office:body>'
            f"<office:spreadsheet>{tables}</office:spreadsheet></office:body>"
            "</office:document-content>",
        )
    return content.getvalue()


def test_a_sheet_with_rows_and_columns_is_read_before_a_cover():
    book = openpyxl.load_workbook(io.BytesIO(workbook([["Annual report"], ["2024"]])))
    data = book.create_sheet("Data")
    for row in PEOPLE:
        data.append(row)
    content = io.BytesIO()
    book.save(content)
    table = read_content(content.getvalue(), "r.xlsx")
    assert rows_of(table) == PEOPLE
    assert table.assumed == ("Sheet 'Data' was read; there are also 'Sheet'.",)


@pytest.mark.parametrize(
    ("content", "what"), [(b'<?xml version="1.0"?><a>1</a>', "XML"), (b"\x03|\0\0x,y", "no text")]
)
def test_what_is_no_table_is_named(content, what):
    with pytest.raises(ValueError, match=f"got what looks like {what}"):
        read_content(content, "t.csv")


def test_a_workbook_of_opendocument_is_read():
    pytest.importorskip("python_calamine", reason='not installed (the extra "formats")')
    content = opendocument(("A", PEOPLE), ("B", [["x"], ["y"]]))
    table = read_content(content, "t.ods")
    assert rows_of(table) == PEOPLE
    assert table.assumed == ("Sheet 'A' was read; there are also 'B'.",)
    assert read_content(content, "t.ods", ReadOptions(sheet="B")).rows == (("y",),)
    with pytest.raises(ValueError, match=r"one of the sheets \['A', 'B'\], got 'C'"):
        read_content(content, "t.ods", ReadOptions(sheet="C"))


def test_formats_and_hidden_parts_of_opendocument_are_as_they_are_shown():
    pytest.importorskip("python_calamine", reason='not installed (the extra "formats")')

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
    content = opendocument(("A", rows), attributes=columns)
    table = read_content(content, "t.ods")
    assert rows_of(table) == [
        ["a", "c", "d", "e"],
        ["12.5%", "3.00 €", "007", "1.5"],
        ["x", "z", "u", "v"],
    ]
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
    rows = [[cell.replace(";", ",") for cell in row.split(",")] for row in expected.split("|")]
    assert rows_of(read_table(FIELD / "inputs" / name)) == rows
