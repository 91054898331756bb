"""Tables with links in JSON Lines."""

import json

import pytest

from mate_tf.datasets.json_lines import read_linked_json_lines
from mate_tf.tables.linked_table import Passage
from mate_tf.tables.table import Question
from tests.small import ROOT
from tests.test_examples import passages_example

PASSAGES = {"Oslo": "It has parks .", "Norway": "", "Lima": "Far away ."}
TABLE = {
    "id": "cities",
    "header": ["City", "Country", "People"],
    "rows": [
        [{"text": "Oslo", "links": ["Oslo", "Norway", "Oslo"]}, "Norway", 709037],
        [{"text": "Bergen"}, {"links": ["Norway", "Sea"]}, None],
    ],
    "passages": PASSAGES,
}
QUESTION = {"id": "q1", "question": "where ?", "answers": ["Oslo"]}
OSLO, NORWAY, LIMA = (Passage(*item) for item in PASSAGES.items())


def write(path, *records):
    path.write_text("".join(f"{json.dumps(record)}\n" for record in records), encoding="utf-8")
    return path


def test_a_table_in_the_line_has_links_and_passages(tmp_path):
    path = write(tmp_path / "dev.jsonl", QUESTION | {"table": TABLE})
    ((linked, question),) = read_linked_json_lines(path)
    assert question == Question("where ?", "q1", ("Oslo",))
    assert linked.table.table_id == "cities"
    assert linked.table.rows == (("Oslo", "Norway", "709037"), ("Bergen", "", ""))
    assert linked.passages == (((OSLO, NORWAY), (), ()), ((), (NORWAY,), ()))
    assert (linked.other_passages, linked.dead_links) == ((LIMA,), ("Sea",))


def test_a_table_may_be_a_file_of_its_own(tmp_path):
    (tmp_path / "tables").mkdir()
    write(tmp_path / "tables" / "cities.json", {k: TABLE[k] for k in ("header", "rows")})
    line = {"question": "where ?", "table": "tables/cities.json"}
    path = write(tmp_path / "dev.jsonl", line, line)
    (linked, question), (same, _) = read_linked_json_lines(path)
    assert linked is same
    assert (linked.table.table_id, question.question_id) == ("tables/cities.json", "dev-1")
    assert linked.dead_links == ("Oslo", "Norway", "Sea")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"passages": ["Oslo"]}, r"object of texts for 'passages', got \[\"Oslo\"\]"),
        ({"passages": {"Oslo": 3}}, r"object of texts for 'passages', got .*3"),
        ({"rows": [3]}, "expected a list of cells, got 3"),
        ({"rows": [[{"text": "Oslo", "links": "Oslo"}, "", ""]]}, "expected a cell's text, or an"),
        ({"rows": [[{"text": "Oslo", "link": ["Oslo"]}, "", ""]]}, "expected a cell's text, or an"),
        ({"rows": [[{"text": "Oslo", "links": [3]}, "", ""]]}, "expected a cell's text, or an"),
        ({"rows": [[{"text": ["Oslo"]}, "", ""]]}, "expected text, a number or None, got list"),
        ({"rows": None}, "missing .*'rows'"),
        ({"rows": []}, "at least 1 row below the header"),
        ({"header": ["City"]}, "expected 1 cells as in the header, got 3"),
    ],
)
def test_malformed_tables_are_refused_with_file_and_line(tmp_path, change, message):
    path = write(tmp_path / "dev.jsonl", QUESTION | {"table": TABLE | change})
    with pytest.raises(ValueError, match=rf"{message}.*dev\.jsonl', line 1\)"):
        list(read_linked_json_lines(path))


def test_a_file_without_links_is_a_table_without_passages(tmp_path):
    (tmp_path / "cities.csv").write_text("City;Country\nOslo;Norway\n")
    (tmp_path / "cities.json").write_text('[{"City": "Oslo", "Country": "Norway"}]')
    tables = [{"file": "cities.csv", "delimiter": ";", "document_title": "Capitals"}, "cities.json"]
    lines = [{"question": "where ?", "table": table} for table in tables]
    (titled, _), (linked, _) = read_linked_json_lines(write(tmp_path / "dev.jsonl", *lines))
    assert titled.table.document_title == "Capitals"
    assert titled.table.rows == linked.table.rows == (("Oslo", "Norway"),)
    assert titled.passages == linked.passages == (((), ()),)


def test_a_table_file_that_is_missing_or_no_table_is_refused(tmp_path):
    path = write(tmp_path / "dev.jsonl", QUESTION | {"table": "cities.json"})
    with pytest.raises(FileNotFoundError, match=r"cities\.json.*dev\.jsonl', line 1\)"):
        list(read_linked_json_lines(path))
    write(tmp_path / "cities.json", ["Oslo"])
    with pytest.raises(ValueError, match=r"got a list of different things .*line 1\)"):
        list(read_linked_json_lines(path))


def test_the_examples_of_the_documentation_are_read(tmp_path):
    text = (ROOT / "docs" / "training.md").read_text(encoding="utf-8")
    lines = text.split("## Tables with passages")[1].split("```json\n")[1].split("```")[0]
    (tmp_path / "train.jsonl").write_text(lines, encoding="utf-8")
    table = json.loads(lines.splitlines()[1])["table"]
    (tmp_path / "tables").mkdir()
    write(tmp_path / "tables" / "drivers.json", table)
    (first, _), (second, question) = read_linked_json_lines(tmp_path / "train.jsonl")
    assert first.passages == second.passages
    assert question.answers == ("12",)
    names: dict = {}
    exec(passages_example().split("pointr =")[0], names)
    assert [p.text for p in names["linked"].distinct_passages()] == ["Ada Ford plays the cello ."]
    assert names["linked"].dead_links == ("Luis Paz",)
