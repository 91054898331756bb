"""Tables from data frames, dicts and lists, with the texts that files give."""

import collections
import csv
import dataclasses
import io
import json
import sqlite3
import types
import zipfile
from typing import Any

import narwhals
import numpy as np
import pydantic
import pytest

from mate_tf.reading.files import ReadOptions
from mate_tf.reading.sources import read_table
from mate_tf.tables.table import Table
from tests.small import cases

pd = pytest.importorskip("pandas", reason='pandas is not installed (the extra "test")')

YEARS = pd.DataFrame({"film": ["A", "B", "C"], "year": [2001, None, 1999]})
MIXED = pd.DataFrame({"a": [1, None], "b": ["x", None], "d": [pd.Timestamp("2024-01-05"), pd.NaT]})
SALES = pd.DataFrame({"region": ["N", "N", "S"], "sales": [1, 2, 3]})
DAYS = pd.date_range("2024-01-05", periods=2)
BY_YEAR = SALES.assign(year=[1, 2, 1]).groupby(["region", "year"]).sum()
SINGLE = [pd.DataFrame({k: [0.1, None]}, dtype=k) for k in ("float16", "float32", "Float32")]
OF_NUMPY = [["t"], [np.datetime64("2024-01-05")], [np.timedelta64(90, "m")]]


@cases(
    "data, expected",
    (YEARS, "film,year|A,2001|B,|C,1999"),  # whole numbers beside a missing one
    (MIXED, "a,b,d|1,x,2024-01-05|,,"),
    (SALES.groupby("region").sum(), "region,sales|N,3|S,3"),  # an index with a name, or without
    (SALES.set_index(pd.Index(["x", "y", "z"]))[:1], ",region,sales|x,N,1"),
    (SALES[SALES.sales > 2], "region,sales|S,3"),  # what is left of a numbered index
    (pd.DataFrame([[1, 2]], columns=["a", "a"]), "a,a|1,2"),
    (pd.concat(SINGLE, axis=1), "float16,float32,Float32|0.1,0.1,0.1|,,"),
    (pd.DataFrame({"t": [pd.Timedelta("1h"), pd.NaT]}), "t|1:00:00|"),
    (BY_YEAR, "region,year,sales|N,1,1|N,2,2|S,1,3"),
    (pd.DataFrame({"v": [1, 2]}, index=DAYS), ",v|2024-01-05,1|2024-01-06,2"),
    (  # names of two levels
        SALES.groupby("region").agg({"sales": ["sum", "max"]}),
        "region,sales sum,sales max|N,3,2|S,3,3",
    ),
    ([{"city": "Lima", "pop": 10}, {"city": "Quito"}], "city,pop|Lima,10|Quito,"),
    ([{"a": 1, "at": {"x": 2, "y": ["p+q"]}}, {"a": 3}], "a,at.x,at.y|1,2,p+q|3,,"),
    (pd.DataFrame({"n": [1, 2]}, index=[2019, 2021]), ",n|2019,1|2021,2"),
    (csv.DictReader(io.StringIO("a,b\n1,2\n")), "a,b|1,2"),
    (SALES.groupby("region")["sales"].sum(), "region,sales|N,3|S,3"),  # a series
    (list(SALES.itertuples(index=False)), "region,sales|N,1|N,2|S,3"),
    (SALES[:2].to_dict(), "region,sales|N,1|N,2"),
    (OF_NUMPY, "t|2024-01-05|1:30:00"),
    (narwhals.from_native(SALES.set_index("region")[:1]), "region,sales|N,1"),
    ({"a": [1, 2.0], "b": ["x", None]}, "a,b|1,x|2,"),
    ([["a"], [0.1 + 0.2]], "a|0.3"),  # as Excel shows it
    (pd.DataFrame({"a": [0.1 + 0.2]}), "a|0.3"),
    (pd.Index(["x"], name="a"), "a|x"),
    ([["a", "b"], [1, float("nan")]], "a,b|1,"),
    ({"a": [1, 2], "b": [{"x": 3}, {"y": 4}]}, "a,b.x,b.y|1,3,|2,,4"),
    (np.array([[1.5, 2], [3, 4]]), "column 1,column 2|1.5,2|3,4"),
)
def test_whatever_holds_a_table_gives_the_texts_of_a_file(data, expected):
    table = Table.of(data)
    assert "|".join(",".join(row) for row in (table.header, *table.rows)) == expected


def test_frames_of_other_libraries():
    pl = pytest.importorskip("polars", reason='polars is not installed (the extra "test")')
    pa = pytest.importorskip("pyarrow", reason='pyarrow is not installed (the extra "formats")')
    columns = {"city": ["Lima", None], "size": [0.1, 2.0], "tags": [["x", "y"], []]}
    schema = pa.schema({"city": pa.string(), "size": pa.float32(), "tags": pa.list_(pa.string())})
    expected = (("Lima", "0.1", "x, y"), ("", "2", ""))
    single = pl.DataFrame(columns).with_columns(pl.col("size").cast(pl.Float32))
    table = pa.table(columns, schema=schema)
    for frame in (single, table, table.to_batches()[0]):
        for read in (Table.of, Table.from_rows):
            assert read(frame).rows == expected
    assert Table.of(table.to_reader()).rows == expected
    assert Table.of(single.lazy()).rows == Table.of(narwhals.from_native(single).lazy()).rows
    assert Table.of(single.lazy()).rows == expected
    assert Table.of(table["city"]).rows == (("Lima",), ("",))
    without = Table.of(pl.DataFrame({"a": [1], "b": [b"\xff"]}))
    assert without == Table(("a",), (("1",),))
    assert without.assumed == ("Column 'b' holds bytes that are no text and is left out.",)


Named = collections.namedtuple("Named", "city size")
PAIRS = [("Lima", 10), ("Quito", 2)]
SIZES = pd.DataFrame(PAIRS, columns=["city", "size"])
RECORDS = SIZES.to_dict("records")
TEXT = "city;size\nLima;10\nQuito;2\n"


@dataclasses.dataclass(slots=True)
class Slotted:
    city: str
    size: int


class Model(pydantic.BaseModel):
    city: str
    size: int


class Cursor:
    """As of psycopg, whose columns have more than names."""

    description: Any = (("city", 25), ("size", 23))

    def fetchall(self):
        return PAIRS


class Result(Cursor):
    """As of SQLAlchemy."""

    description: Any = None

    def keys(self):
        return ["city", "size"]


class Lazy:
    """As of Dask and Spark."""

    def compute(self):
        return SIZES


class Capsule:
    """As of DuckDB and others that give Arrow's data."""

    def __arrow_c_stream__(self, requested_schema=None):
        return pytest.importorskip("pyarrow").table(dict(SIZES)).__arrow_c_stream__()


class Upload:
    """As of FastAPI."""

    def __init__(self):
        self.file = io.BytesIO(b"city,size\nLima,10\nQuito,2\n")

    async def read(self):
        return self.file.read()


def written(*rows):
    """An open file with these lines, at its end."""
    file = io.StringIO()
    csv.writer(file).writerows(rows)
    return file


def connection():
    database = sqlite3.connect(":memory:")
    database.execute("create table sizes (city text, size int)")
    database.executemany("insert into sizes values (?, ?)", PAIRS)
    return database


@cases(
    "data",
    connection().execute("select * from sizes"),
    Cursor(),
    Result(),
    map(list, [("city", "size"), *PAIRS]),
    [Named(*pair) for pair in PAIRS],
    [Slotted(*pair) for pair in PAIRS],
    [Model(city=city, size=size) for city, size in PAIRS],
    [types.SimpleNamespace(city=city, size=size) for city, size in PAIRS],
    {"headers": ["city", "size"], "data": PAIRS, "metadata": None},  # of Gradio
    SIZES.to_dict("split"),
    SIZES.to_dict("tight"),
    SIZES.to_dict("index"),
    SIZES.to_dict("series"),
    {"data": RECORDS},
    SIZES.style,
    SIZES.assign(id=[7, 8], code="x").style.hide(["id", "code"], axis=1),
    SIZES.set_index([["x", "y"], ["z", "z"]]).style.hide(axis=0),
    pd.concat([SIZES, SIZES]).reset_index(drop=True).style.hide([2, 3]),
    (["city", "size"], PAIRS),
    [b"city,size\n", b"Lima,10\n", b"Quito,2\n"],
    ["city,size\n", "Lima,10\n", "Quito,2"],
    SIZES.to_records(index=False),
    np.array(PAIRS, dtype=[("city", "U9"), ("size", "i4")]),
    np.array([["city", "size"], *PAIRS]),
    Lazy(),
    Capsule(),
    Upload(),
    memoryview(TEXT.encode()),
    *(TEXT, TEXT.encode(), io.StringIO(TEXT), io.BytesIO(TEXT.encode())),
    json.dumps(RECORDS, indent=1),
    written(["city", "size"], *PAIRS),
)
def test_objects_are_known_by_what_they_can_do_and_text_is_a_file(data):
    expected = Table(("city", "size"), (("Lima", "10"), ("Quito", "2")), "t")
    assert read_table(data, name="t") == expected


def test_worksheets_and_ranges_are_read_as_in_files(tmp_path):
    openpyxl = pytest.importorskip("openpyxl", reason='openpyxl is not installed (extra "formats")')
    book = openpyxl.Workbook()
    sheet = book.active
    for row in (["Sizes of cities"], ["city", "size", "code"], ["Lima", 0.1 + 0.2, 7]):
        sheet.append(row)
    sheet["C3"].number_format = "000"
    sheet.merge_cells("A1:C1")
    book.save(tmp_path / "t.xlsx")
    expected = read_table(tmp_path / "t.xlsx")
    assert expected.rows == (("Lima", "0.3", "007"),)
    loaded = openpyxl.load_workbook(tmp_path / "t.xlsx", read_only=True, data_only=True)
    for data in (sheet, book, loaded, loaded.active):
        table = read_table(data, name="t.xlsx")
        assert table == expected and table.assumed == expected.assumed
    for rows in (sheet["A2:C3"], list(sheet.rows)[1:]):
        assert read_table(rows).rows == expected.rows
    sheet.column_dimensions["B"].hidden = True
    assert read_table(sheet).header == ("city", "code")
    sheet["C3"] = "=1+2"
    with pytest.raises(ValueError, match=r"in 'Sheet'!C3; load the workbook with data_only=True"):
        read_table(sheet)


NO_TABLE = "expected a Table, a path, bytes or an open file, "


@cases(
    "data, error, message",
    (SIZES.groupby("city"), TypeError, "DataFrameGroupBy, which has no cells; aggregate it first"),
    (SIZES.groupby("city")["size"], TypeError, "got SeriesGroupBy, which has no cells"),
    (SIZES.rolling(2), TypeError, "got Rolling, which has no cells"),
    (connection().execute("update sizes set size = 1"), TypeError, "a query with rows, got Cursor"),
    (zipfile.ZipFile(io.BytesIO(), "w"), TypeError, "got a ZipFile of several; open one of them"),
    ({"a": SIZES}, TypeError, "expected one table, got several: DataFrame in a list or dict"),
    ([SIZES, SIZES], TypeError, "expected one table, got several: DataFrame in a list or dict"),
    (np.array([1, 2]), TypeError, "expected 2 dimensions, got 1 in ndarray"),
    (np.array(1), TypeError, "expected 2 dimensions, got 0 in ndarray"),
    *((data, TypeError, NO_TABLE) for data in (5, [1, 2], None)),
    ([["a"], [object()]], ValueError, "expected text, a number or None, got object"),
    ([{"a": 1}, ["a", 2]], ValueError, "got a list of different things"),
    ({"a": [1], "b": 1}, ValueError, r"got an object of other things \(table 'table'\)"),
    ({"a": [1], "b": [1, 2]}, ValueError, "expected columns of the same length, got 'a': 1"),
    (pd.DataFrame({"a": []}), ValueError, "expected at least 1 row"),
    (".", ValueError, r"expected a file, got a directory \('\.'\)"),
    ("none.csv", FileNotFoundError, r"expected a file at 'none\.csv', found none"),
)
def test_what_holds_no_table_is_refused_by_name(data, error, message):
    with pytest.raises(error, match=message):
        Table.of(data)


def test_what_has_to_be_awaited_is_refused():
    async def awaited():
        return SIZES

    with pytest.raises(TypeError, match="got coroutine, which has to be awaited"):
        Table.of(awaited())


def test_a_table_goes_back_to_pandas_and_shows_itself():
    table = Table.of(YEARS)
    assert table.to_pandas().values.tolist() == [["A", "2001"], ["B", ""], ["C", "1999"]]
    assert "<td>2001</td>" in table._repr_html_()


def test_an_open_file_has_its_name_and_options_are_for_files(tmp_path):
    (tmp_path / "t.csv").write_text("a;b,c;d\n1;2,3;4\n")
    with open(tmp_path / "t.csv", "rb") as file:
        table = read_table(file, ReadOptions(delimiter=","))
    assert table == Table(("a;b", "c;d"), (("1;2", "3;4"),), "t.csv")
    with pytest.raises(ValueError, match="expected options for a file alone, got some for a list"):
        read_table([["a"], ["1"]], ReadOptions(delimiter=","))
