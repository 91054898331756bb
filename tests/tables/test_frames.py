"""Tables from data frames, dicts and lists, with the texts that files give."""

import csv
import io

import pytest

from mate_tf.tables.table import Table

pd = pytest.importorskip("pandas", reason='pandas is not installed (the extra "test")')

YEARS = pd.DataFrame({"film": ["A", "B", "C"], "year": [2001, None, 1999]})
MIXED = pd.DataFrame({"a": [1, None], "b": ["x", None], "d": [pd.Timestamp("2024-01-05"), pd.NaT]})
SALES = pd.DataFrame({"region": ["N", "N", "S"], "sales": [1, 2, 3]})
GIVEN = {
    "whole numbers beside a missing one": (YEARS, "film,year|A,2001|B,|C,1999"),
    "dates and missing values": (MIXED, "a,b,d|1,x,2024-01-05|,,"),
    "a named index": (SALES.groupby("region").sum(), "region,sales|N,3|S,3"),
    "labels without a name": (
        SALES.set_index(pd.Index(["x", "y", "z"]))[:1],
        ",region,sales|x,N,1",
    ),
    "what is left of a numbered index": (SALES[SALES.sales > 2], "region,sales|S,3"),
    "names that are alike": (pd.DataFrame([[1, 2]], columns=["a", "a"]), "a,a|1,2"),
    "lengths of time": (pd.DataFrame({"t": [pd.Timedelta("1h"), pd.NaT]}), "t|1:00:00|"),
    "two named indexes": (
        SALES.assign(year=[1, 2, 1]).groupby(["region", "year"]).sum(),
        "region,year,sales|N,1,1|N,2,2|S,1,3",
    ),
    "an index of days": (
        pd.DataFrame({"v": [1, 2]}, index=pd.date_range("2024-01-05", periods=2)),
        ",v|2024-01-05,1|2024-01-06,2",
    ),
    "names of two levels": (
        SALES.groupby("region").agg({"sales": ["sum", "max"]}),
        "region,sales sum,sales max|N,3,2|S,3,3",
    ),
    "a list of dicts": (
        [{"city": "Lima", "pop": 10}, {"city": "Quito"}],
        "city,pop|Lima,10|Quito,",
    ),
    "a reader of dicts": (csv.DictReader(io.StringIO("a,b\n1,2\n")), "a,b|1,2"),
    "columns": ({"a": [1, 2.0], "b": ["x", None]}, "a,b|1,x|2,"),
    "rows": ([["a", "b"], [1, float("nan")]], "a,b|1,"),
}


@pytest.mark.parametrize(("data", "expected"), GIVEN.values(), ids=GIVEN)
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
        for read in (Table.of, Table.from_rows, Table.from_pandas):
            assert read(frame).rows == expected


def test_what_holds_no_table_is_refused():
    for data in (5, [1, 2], b"x", None):
        with pytest.raises(TypeError, match="expected a Table, a data frame of pandas, pol"):
            Table.of(data)
    with pytest.raises(TypeError, match="expected a list of cells as column 'a', got int"):
        Table.of({"a": 1})
    with pytest.raises(ValueError, match="expected columns of the same length, got 'a': 1"):
        Table.of({"a": [1], "b": [1, 2]})
    with pytest.raises(FileNotFoundError, match=r"expected a file at 'none\.csv', found none"):
        Table.of("none.csv")


def test_a_table_goes_back_and_shows_itself():
    table = Table.of(YEARS)
    assert table.to_pandas().values.tolist() == [["A", "2001"], ["B", ""], ["C", "1999"]]
    assert "<td>2001</td>" in table._repr_html_()
