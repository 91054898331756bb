"""Tables from data frames, dicts and lists, with the texts that files give."""

import csv
import io

import narwhals
import numpy as np
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
    ([["a", "b"], [1, float("nan")]], "a,b|1,"),
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
    with pytest.raises(ValueError, match="texts in column 'b', got bytes that are no text; leave"):
        Table.of(pl.DataFrame({"a": [1], "b": [b"\xff"]}))


def test_what_holds_no_table_is_refused_and_a_table_goes_back_and_shows_itself():
    with pytest.raises(TypeError, match="expected rows that are all lists or all dicts"):
        Table.of([{"a": 1}, ["a", 2]])
    for data in (5, [1, 2], None):
        with pytest.raises(TypeError, match="expected a Table, a path, bytes or an open file, "):
            Table.of(data)
    with pytest.raises(TypeError, match="expected a list of cells as column 'a', got int"):
        Table.of({"a": 1})
    with pytest.raises(ValueError, match="expected columns of the same length, got 'a': 1"):
        Table.of({"a": [1], "b": [1, 2]})
    with pytest.raises(ValueError, match="expected at least 1 row"):
        Table.of(pd.DataFrame({"a": []}))
    with pytest.raises(FileNotFoundError, match=r"expected a file at 'none\.csv', found none"):
        Table.of("none.csv")
    table = Table.of(YEARS)
    assert table.to_pandas().values.tolist() == [["A", "2001"], ["B", ""], ["C", "1999"]]
    assert "<td>2001</td>" in table._repr_html_()


@pytest.mark.parametrize(
    "source",
    [
        "a;b\n1;2\n",
        b"a;b\n1;2\n",
        io.BytesIO(b"a;b\n1;2\n"),
        io.StringIO("a;b\n1;2\n"),
        '[{"a": 1, "b": 2},\n {"a": 1, "b": 2}]',
    ],
    ids=lambda source: type(source).__name__,
)
def test_text_bytes_and_open_files_are_read_as_files(source):
    table = read_table(source, name="t")
    assert (table.header, table.rows[0], table.table_id) == (("a", "b"), ("1", "2"), "t")


def test_an_open_file_has_its_name_and_options_are_for_files(tmp_path):
    (tmp_path / "t.csv").write_text("a;b,c;d\n1;2,3;4\n")
    with open(tmp_path / "t.csv", "rb") as file:
        table = read_table(file, ReadOptions(delimiter=","))
    assert (table.header, table.rows, table.table_id) == (
        ("a;b", "c;d"),
        (("1;2", "3;4"),),
        "t.csv",
    )
    with pytest.raises(ValueError, match="expected options for a file alone, got some for a list"):
        read_table([["a"], ["1"]], ReadOptions(delimiter=","))
