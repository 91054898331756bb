import dataclasses
import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mate_tf.datasets import json_lines
from mate_tf.datasets.json_lines import read_json_lines, read_linked_json_lines
from mate_tf.reading.files import ReadOptions
from mate_tf.tables.linked_table import Passage
from mate_tf.tables.operators import OPERATORS
from mate_tf.tables.table import Question, Table
from tests.datasets.releases import write_files
from tests.reading.workbooks import workbook
from tests.small import ROOT, write_lines
from tests.test_examples import passages_example

DOCUMENTATION = ROOT / "docs" / "training.md"
TABLE = {"header": ["City", "People"], "rows": [["Oslo", 709037], ["Bergen", None]]}
TEXT = st.text()
CELLS = st.tuples(TEXT, TEXT)
COORDINATES = st.lists(st.tuples(st.just(0), st.integers(0, 1)))
NUMBERS = st.none() | st.floats(allow_nan=False)
TABLES = st.builds(Table, CELLS, st.lists(CELLS, min_size=1), TEXT, TEXT, TEXT)
TABLES |= st.builds(Table, CELLS, st.tuples(CELLS), expansions=st.tuples(CELLS))
ASKED = (
    TEXT.filter(str.strip),
    TEXT,
    st.lists(TEXT),
    COORDINATES,
    NUMBERS,
    st.sampled_from(list(OPERATORS)),
)
QUESTIONS = st.builds(Question, *ASKED, COORDINATES, st.integers(0, 9))


@pytest.mark.medium
@given(st.lists(st.tuples(TABLES, QUESTIONS), unique_by=lambda pair: pair[1].question_id))
def test_what_is_written_is_read_back(tmp_path_factory, pairs):
    path = tmp_path_factory.mktemp("pairs") / "pairs.jsonl"
    half = Table.from_rows([["a"], ["\ud800"]]), Question("\udfff?", "half")  # of a surrogate pair
    for written in (pairs, [half]):
        assert json_lines.write_json_lines(path, written) == len(written)
        assert list(read_json_lines(path)) == written


def test_an_id_given_twice_and_files_that_cannot_be_opened_are_refused_with_their_line(tmp_path):
    record = {"id": "q1", "question": "where?", "table": TABLE}
    path = write_lines(tmp_path / "mine.jsonl", record, record | {"id": "q2"}, record)
    with pytest.raises(ValueError, match=r"got 'q1' again, which line 1 has \(file .*, line 3\)"):
        list(read_json_lines(path))
    (tmp_path / "b.csv").mkdir()
    bad = {"none": "expected a file at", "b": "directory", "a\x00b": "null byte"}
    for name, message in (bad | {"a" * 5_000: "too long"}).items():
        path = write_lines(tmp_path / "q.jsonl", {"question": "?", "table": f"{name}.csv"})
        with pytest.raises((OSError, ValueError), match=rf"{message}.*q\.jsonl', line 1\)"):
            list(read_json_lines(path))


def test_names_are_made_where_there_are_none_one_for_tables_that_say_the_same(tmp_path):
    asked = {"question": "where?", "answers": [3], "table": TABLE}
    path = write_lines(tmp_path / "mine.jsonl", asked)
    ((table, question),) = read_json_lines(path)
    assert question == Question("where?", "mine-1", ("3",))
    assert re.fullmatch("table-[0-9a-f]{12}", table.table_id)
    rows = ("Oslo", "709037"), ("Bergen", "")
    assert table == Table(("City", "People"), rows, table.table_id)
    other = TABLE | {"rows": TABLE["rows"][:1]}
    tables = TABLE, other, dict(reversed(TABLE.items())), TABLE | {"header": ["City", "Men"]}
    path = write_lines(tmp_path / "q.jsonl", *({"question": "where?", "table": t} for t in tables))
    first, second, third, fourth = (table.table_id for table, _ in read_json_lines(path))
    assert first == third
    assert len({first, second, fourth}) == 3


def test_a_table_may_be_a_file_beside_it(tmp_path):
    oslo = {"tables/c.csv": "City\nOslo\n", "tables/c.jsonl": '["City"]\n["Oslo"]\n'}
    write_files(tmp_path, oslo | {"c.csv": "City\nBergen\n"})
    names = ["tables/c.csv", "tables/c.jsonl", "tables/c.csv", "tables/../c.csv"]
    path = write_lines(tmp_path / "q.jsonl", *({"question": "?", "table": name} for name in names))
    first, second, third, fourth = (table for table, _ in read_json_lines(path))
    assert first.rows == second.rows == (("Oslo",),)
    assert first is third
    # Each is divided, scored and named in errors by itself: by its place, not by its file's name.
    ids = [table.table_id for table in (first, second, fourth)]
    assert ids == ["tables/c.csv", "tables/c.jsonl", "c.csv"]


def test_a_table_file_of_any_kind_is_read_with_what_is_said_about_it(tmp_path):
    pytest.importorskip("openpyxl", reason='not installed (the extra "formats")')
    sheets = workbook([], more=[("Cities", [["City"], ["Lima"]])])
    texts = {"c.csv": "City;People\nOslo;709037\n", "c.json": {"City": ["Bergen"]}}
    write_files(tmp_path, texts | {"c.xlsx": sheets})
    tables = [
        {"file": "c.xlsx", "sheet": "Cities"},
        {"file": "c.csv", "delimiter": ";", "context_heading": "Norway"},
        "./c.json",
    ]
    path = write_lines(tmp_path / "q.jsonl", *({"question": "?", "table": t} for t in tables))
    assert [table for table, _ in read_json_lines(path)] == [
        Table(("City",), (("Lima",),), "c.xlsx#Cities"),
        Table(("City", "People"), (("Oslo", "709037"),), "c.csv#delimiter=;", "", "Norway"),
        Table(("City",), (("Bergen",),), "c.json"),
    ]


def test_the_documented_example_is_read_and_every_key_explained(tmp_path):
    text = DOCUMENTATION.read_text(encoding="utf-8")
    text = text.split("## The format")[1].split("## Data sets")[0]
    (lines,) = re.findall(r"```json\n(.*?)```", text, re.DOTALL)
    countries = "Country,Capital\nPeru,Lima\n"
    folder = write_files(tmp_path, {"countries.csv": countries, "train.jsonl": lines})
    ids = [question.question_id for _, question in read_json_lines(folder / "train.jsonl")]
    assert ids == ["train-1", "q2", "q3", "s1"]
    explained = set(re.findall(r"`(\w+)`", " ".join(re.findall(r"^\| (.*?) \|", text, re.M))))
    table_keys = {"header", "rows", "document_title", "context_heading", "expansions", "file"}
    table_keys |= {field.name for field in dataclasses.fields(ReadOptions)}
    assert explained == {*json_lines._KINDS, *table_keys}


# Tables with links, and their passages.
PASSAGES = {"Oslo": "It has parks .", "Norway": "", "Lima": "Far away ."}
LINKED_TABLE = {
    "id": "cities",
    "header": ["City", "Country", "People"],
    "rows": [
        [{"text": "Oslo", "links": ["Oslo", "Norway", "Oslo"]}, "Norway", 709037],
        [{"text": "Bergen"}, {"links": ["Norway", "Sea"]}, None],
    ],
    "passages": PASSAGES,
}
WHERE = {"id": "q1", "question": "where ?", "answers": ["Oslo"]}
OSLO, NORWAY, LIMA = (Passage(*item) for item in PASSAGES.items())


def test_a_table_with_links_and_passages_is_in_the_line_or_a_file_of_its_own(tmp_path):
    path = write_lines(tmp_path / "dev.jsonl", WHERE | {"table": LINKED_TABLE})
    ((linked, question),) = read_linked_json_lines(path)
    assert question == Question("where ?", "q1", ("Oslo",))
    assert linked.table.table_id == "cities"
    assert linked.table.rows == (("Oslo", "Norway", "709037"), ("Bergen", "", ""))
    assert linked.passages == (((OSLO, NORWAY), (), ()), ((), (NORWAY,), ()))
    assert (linked.other_passages, linked.dead_links) == ((LIMA,), ("Sea",))
    cells = {key: LINKED_TABLE[key] for key in ("header", "rows")}
    write_lines(tmp_path / "tables" / "cities.json", cells)
    line = {"question": "where ?", "table": "tables/cities.json"}
    path = write_lines(tmp_path / "dev.jsonl", line, line)
    (linked, question), (same, _) = read_linked_json_lines(path)
    assert linked is same
    assert (linked.table.table_id, question.question_id) == ("tables/cities.json", "dev-1")
    assert linked.dead_links == ("Oslo", "Norway", "Sea")


def test_a_table_file_may_lack_links_and_not_be_no_table(tmp_path):
    path = write_lines(tmp_path / "dev.jsonl", WHERE | {"table": "cities.json"})
    write_files(tmp_path, {"cities.json": ["Oslo"]})
    with pytest.raises(ValueError, match=r"got a list of different things .*line 1\)"):
        list(read_linked_json_lines(path))
    written = {"cities.json": [{"City": "Oslo", "Country": "Norway"}]}
    write_files(tmp_path, written | {"cities.csv": "City;Country\nOslo;Norway\n"})
    tables = [{"file": "cities.csv", "delimiter": ";", "document_title": "Capitals"}, "cities.json"]
    lines = [{"question": "where ?", "table": table} for table in tables]
    (titled, _), (linked, _) = read_linked_json_lines(write_lines(tmp_path / "dev.jsonl", *lines))
    assert titled.table.document_title == "Capitals"
    assert titled.table.rows == linked.table.rows == (("Oslo", "Norway"),)
    assert titled.passages == linked.passages == (((), ()),)


def test_the_examples_of_tables_with_links_are_read(tmp_path):
    text = DOCUMENTATION.read_text(encoding="utf-8")
    lines = text.split("## Tables with passages")[1].split("```json\n")[1].split("```")[0]
    table = json.loads(lines.splitlines()[1])["table"]
    write_files(tmp_path, {"train.jsonl": lines, "tables/drivers.json": table})
    (first, _), (second, question) = read_linked_json_lines(tmp_path / "train.jsonl")
    assert first.passages == second.passages
    assert question.answers == ("12",)
    names: dict = {}
    exec(passages_example().split("pointr =")[0], names)
    assert [p.text for p in names["linked"].distinct_passages()] == ["Ada Ford plays the cello ."]
    assert names["linked"].dead_links == ("Luis Paz",)
