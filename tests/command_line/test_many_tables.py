"""mate-tf ask on several files and folders: which tables are asked, and whose answer is given."""

import gzip
import json
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mate_tf.answers.answer import Answer, no_answer
from mate_tf.command_line.ask import ASKED, Library, files_of
from mate_tf.command_line.main import main
from mate_tf.reading.files import ReadOptions
from mate_tf.serving import loading
from mate_tf.tables.table import Question, Table
from tests.small import cases

RIVERS, LAKES = "river,length\nNile,6650\nRhine,1230\n", "lake,depth\nBaikal,1642\n"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tables" / "more").mkdir(parents=True)
    (tmp_path / "tables" / "rivers.csv").write_text(RIVERS)
    (tmp_path / "tables" / "more" / "lakes.tsv.gz").write_bytes(gzip.compress(LAKES.encode()))
    (tmp_path / "tables" / "notes.md").write_text("No table.")
    (tmp_path / "tables" / ".hidden.csv").write_text(RIVERS)
    (tmp_path / "tables" / "picture.png").write_bytes(b"\x89PNG")
    return "tables"


class Fake:
    """Is as sure of a table's answer as the table's name says, and refuses what is too long."""

    def __init__(self, *_, **__):
        pass

    def answer_all(self, pairs):
        for table, question in pairs:
            score = 0.9 if "lakes" in table.table_id else 0.4
            result = Answer((table.rows[0][0],), score=score, class_index=0)
            if "none" in question.text and score > 0.5:
                result = no_answer(0.95)
            is_long = "too long" in question.text or ("short" in question.text and score > 0.5)
            yield table, question, ValueError("expected less") if is_long else result


@pytest.fixture(autouse=True)
def fake_model(monkeypatch):
    monkeypatch.setattr(loading, "from_pretrained", Fake)


def test_the_tables_of_a_folder_are_found_and_the_best_answer_is_named(folder, capsys):
    assert main(["ask", folder, "which one?"]) == 0
    captured = capsys.readouterr()
    lines = captured.out.splitlines()
    assert lines[0] == "answer: Baikal"
    named = "table tables/more/lakes.tsv.gz, of 2 tables; 1 file could not be read"
    assert lines[1] == f"score 0.90 · class 0 · {named}"
    assert "Baikal" in lines[-1] and captured.err == ""
    assert main(["ask", folder, "which one?", "a short one?", "none?", "--json"]) == 0
    records = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    asked = ["more/lakes.tsv.gz", "rivers.csv", "rivers.csv"]
    assert [record["table"] for record in records] == [f"tables/{name}" for name in asked]


@cases(
    "arguments, message",
    (["{0}/rivers.csv", "none.csv", "q"], "expected a file at 'none.csv', found none"),
    (["{0}/rivers.csv", "{0}/notes.md", "q"], "expected a table with bars"),
    (["{0}/more/..", "q", "--conversation"], "expected one table with --conversation, got"),
    (["empty", "q"], "expected tables in the folder 'empty', found none"),
    (["{0}", "too long"], "expected less"),
)
def test_what_cannot_be_asked_is_one_sentence(folder, tmp_path, capsys, arguments, message):
    (tmp_path / "empty").mkdir()
    assert main(["ask", *(argument.format(folder) for argument in arguments)]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"mate-tf: {message}")


def test_a_folder_without_a_table_that_can_be_read_says_why(folder):
    with pytest.raises(ValueError, match=r"expected tables in tables/\.\., found none; .*notes.md"):
        (file,) = [file for file in files_of([folder]) if file.name == "notes.md"]
        file.rename("notes.md")
        for other in files_of([folder]):
            other.unlink()
        Library.read([f"{folder}/.."], ReadOptions())


def topics(number: int) -> list[Table]:
    return [
        Table((f"topic{i}", "value"), ((f"word{i}", f"{i}"), ("shared", "x")), f"t{i}.csv")
        for i in range(number)
    ]


@settings(max_examples=20)
@given(number=st.integers(1, 30), data=st.data())
def test_the_table_with_the_words_of_the_question_is_asked(number, data):
    pytest.importorskip("bm25s", reason="the extra search is not installed")
    tables, wanted = topics(number), data.draw(st.integers(0, number - 1))
    nearest = Library(tables).nearest(f"what is the value of Word{wanted}?")
    assert len(nearest) == min(number, ASKED)
    assert nearest[0] == (tables[wanted], 1.0)
    assert all(0 < likeness <= 1 for _, likeness in nearest)


def test_many_tables_without_the_package_say_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "bm25s", None)
    with pytest.raises(ModuleNotFoundError, match=r"to search 6 tables; .*'mate_tf\[search\]'"):
        Library(topics(6)).answer(Fake(), Question("q"))
