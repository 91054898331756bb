"""mate-tf ask: what it prints and how it ends, and of several tables which it asks."""

import gzip
import io
import json
import os
import re
import subprocess
import sys
import time
import unittest.mock

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mate_tf.answers.answer import (
    Answer,
    SelectedCell,
    answer_of_cells,
    apply_min_score,
    no_answer,
)
from mate_tf.command_line import arguments
from mate_tf.command_line import ask as ask_command
from mate_tf.command_line.ask import ASKED, Library, files_of, is_path
from mate_tf.command_line.main import main
from mate_tf.pointr import answering
from mate_tf.reading.files import ReadOptions
from mate_tf.serving import loading
from mate_tf.tables.table import Question, Table
from mate_tf.weights import folder
from mate_tf.weights.folder import DEFAULT_MODEL
from tests.small import ROOT, cases, run_python

CITIES = "city,people\na,709\nb,291\n"
QUESTION = "how many people live in a?"


@pytest.fixture(scope="module")
def predictor():
    return loading.from_pretrained(DEFAULT_MODEL, num_alternatives=2)


@pytest.fixture(scope="module")
def cities(tmp_path_factory):
    path = tmp_path_factory.mktemp("tables") / "cities.csv"
    path.write_text(CITIES)
    return path


@pytest.fixture(autouse=True, scope="module")
def no_variable():
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("MATE_TF_MODEL", raising=False)
        yield


class FakePredictor:
    """Answers with the cell whose text the question holds; its score is 0.6."""

    def __init__(self, folder, tagger=None, min_score=0.0, **options):
        self.min_score, self.asked, self.after = min_score, [], []
        self.loaded_with = {"folder": folder, "tagger": tagger, "min_score": min_score, **options}

    def answer(self, table, question, after=None):
        self.asked.append((table, question))
        self.after.append(after.guess.items if after else ())
        if "too long" in question.text:
            raise ValueError(f"expected at most 3 tokens (question '{question.question_id}')\n\x1b")
        if "bug" in question.text:
            raise KeyError("a bug")
        cells = tuple(
            SelectedCell(row, column, text, 0.6)
            for row, texts in enumerate(table.rows)
            for column, text in enumerate(texts)
            if text in question.text.split()
        )
        return apply_min_score(answer_of_cells(table, cells, "NONE", 0.6), self.min_score)


@pytest.fixture
def predictors(monkeypatch):
    """The predictors that were loaded, in place of models."""
    loaded = []

    def load(*arguments, **options):
        loaded.append(FakePredictor(*arguments, **options))
        return loaded[-1]

    monkeypatch.setattr(loading, "from_pretrained", load)
    return loaded


def ask(*arguments):
    return main(["ask", *map(str, arguments)])


def records(capsys):
    """The JSON objects that were printed."""
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def set_stdin(monkeypatch, text):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode()), "utf-8"))


def test_an_answer_is_the_model_s_and_json_says_all_of_it_in_the_documented_keys(
    capsys, predictor, cities
):
    answer = predictor.answer(Table.from_csv(cities), QUESTION)
    assert ask(cities, QUESTION) == 0
    printed = capsys.readouterr().out
    assert printed.startswith(f"{answer.verdict}: {answer.text}\n")
    assert f"[{answer.cells[0].text}]" in printed
    assert ask(cities, QUESTION, "--json", "--alternatives=2") == 0
    (record,) = records(capsys)
    assert record["question"] == QUESTION and record["answered"] is True
    assert (record["answer"], tuple(record["items"])) == (answer.text, answer.items)
    assert record["cells"] == [
        {"row": c.row, "column": c.column, "text": c.text, "score": pytest.approx(c.score)}
        for c in answer.cells
    ]
    others = [other.text for other in answer.alternatives]
    assert [other["answer"] for other in record["alternatives"]] == others
    documented = (ROOT / "docs" / "tables.md").read_text(encoding="utf-8")
    keys = re.findall(r"^\| `([a-z_]+)` \|", documented, re.MULTILINE)
    assert list(record) == keys
    assert list(record["alternatives"][0]) == keys[keys.index("answer") : keys.index("score") + 1]
    assert all(f"`{key}`" in documented for key in record["cells"][0])


def test_questions_are_told_from_paths():
    assert all(map(is_path, ["a.csv", "A.TSV.GZ", "."]))
    questions = ["", ".TSV", "\0", "why " * 100, "w" * 5_000, "what is a.csv"]
    assert not any(map(is_path, questions))


def _is_a_question(text: str) -> bool:
    """Neither a path, nor what argparse takes away, nor what the fake refuses."""
    return not is_path(text) and text != "--" and not any(w in text for w in ("too long", "bug"))


@given(question=st.text(max_size=30).filter(_is_a_question))
@example(question="--config.batch_size=4")
@example(question="--full")
def test_any_question_is_answered_or_refused(cities, question):
    output = io.StringIO()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loading, "from_pretrained", FakePredictor)
        patch.setattr(sys, "stdout", output)
        patch.setattr(sys, "stderr", io.StringIO())
        status = ask("--json", "--", cities, question)
    if status:
        assert (status, question.strip()) == (1, "")
    else:
        assert json.loads(output.getvalue())["question"] == question


def test_questions_are_answered_in_their_order_wherever_options_stand(capsys, predictors, cities):
    assert ask(cities, "of a", "--alternatives=1", "of b", "--json", "of 291") == 0
    assert [record["answer"] for record in records(capsys)] == ["a", "b", "291"]
    assert ask(cities, "of a", "of b") == 0
    printed = capsys.readouterr().out
    lines = re.findall("^(?:question|answer): .*", printed, re.MULTILINE)
    assert lines == ["question: of a", "answer: a", "question: of b", "answer: b"]
    assert printed.startswith("row  city  people\n")
    # Each with its row.
    assert re.findall(r"^ +\d .*", printed, re.MULTILINE)[2:] == [
        "  1  [a]      709",
        "  2  [b]      291",
    ]
    assert ask(cities, "of a") == 0
    assert capsys.readouterr().out.startswith("answer: a\n")


@pytest.mark.parametrize("text", ["of a\nof b", "of a\r\n  of b \n", "of a\n\n\nof b\n"])
def test_questions_come_from_standard_input(capsys, monkeypatch, predictors, cities, text):
    set_stdin(monkeypatch, text)
    assert ask(cities, "--json") == 0
    found = [(record["question"], record["answer"]) for record in records(capsys)]
    assert found == [("of a", "a"), ("of b", "b")]


def test_a_table_or_no_question_comes_from_standard_input(capsys, monkeypatch, predictors, cities):
    set_stdin(monkeypatch, CITIES)
    assert ask("-", "of 291", "--json") == 0
    assert records(capsys)[0]["cells"][0]["row"] == 1
    for text in ("", "\n \n"):
        set_stdin(monkeypatch, text)
        assert ask(cities) == 1
        error = capsys.readouterr().err
        assert "questions on the command line or standard input, got none" in error


@pytest.mark.parametrize("end", ["", EOFError])
def test_questions_are_typed_at_a_terminal(capsys, monkeypatch, predictors, cities, end):
    type_in = unittest.mock.Mock(side_effect=["of a", " of b ", ":full", end])
    monkeypatch.setattr("builtins.input", type_in)
    for stream in ("stdin", "stdout"):
        monkeypatch.setattr(getattr(sys, stream), "isatty", lambda: True, raising=False)
    assert ask(cities) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("cities.csv: 2 rows, 2 columns.")
    assert printed.count("709") == 3  # above the answers, with the first, and after :full
    assert re.findall("^answer: .*", printed, re.MULTILINE) == [
        f"answer: \x1b[1;32m{text}\x1b[0m" for text in "abb"
    ]
    assert "question:" not in printed


@pytest.mark.parametrize("is_conversation", [False, True])
def test_only_a_conversation_has_a_previous_answer(predictors, cities, is_conversation):
    flags = ["--conversation"] if is_conversation else []
    assert ask(cities, "of a b", "of 291", "too long", "of b", *flags) == 1
    (predictor,) = predictors
    assert predictor.after == ([(), ("a", "b"), ("291",), ()] if is_conversation else [()] * 4)


def test_an_answer_below_the_score_is_a_guess_and_a_status(capsys, predictors, cities):
    questions = (cities, "of a", "of b", "--conversation", "--min-score=0.7")
    assert ask(*questions, "--json") == 3
    first, second = records(capsys)
    assert [(one["answered"], one["answer"]) for one in (first, second)] == [(False, "")] * 2
    assert first["alternatives"][0]["answer"] == "a"
    assert predictors[0].after == [(), ("a",)]
    assert ask(*questions) == 3
    assert "no answer; best guess: a\n" in capsys.readouterr().out
    assert ask(cities, "of a", "--min-score=0.6") == 0


class FakeReadline:
    """What is typed, up to the cursor; readline replaces what stands behind the last space."""

    def __init__(self, typed):
        self.get_line_buffer = lambda: typed
        self.get_endidx = lambda: len(typed)
        self.get_begidx = lambda: typed.rfind(" ") + 1


@cases(
    "typed, ends",
    ("which lan", ["Landing site", "Landing year"]),
    ("which landing s", ["site"]),
    ("LANDING", ["Landing site", "Landing year"]),
    ("the number of moonwalks and the lu", ["Lunar module pilot"]),
    ("which ", []),
    ("nothing", []),
)
def test_names_of_columns_are_completed_of_one_word_or_several(typed, ends):
    names = ["Landing site", "Landing year", "Lunar module pilot", ""]
    found = [ask_command.completion(FakeReadline(typed), names, number) for number in range(3)]
    assert found == [*ends, *[None] * (3 - len(ends))]


def test_a_question_that_is_not_accepted_stops_no_other(capsys, predictors, cities):
    assert ask(cities, "too long", "of b", "--min-score=0.7", "--json") == 1
    captured = capsys.readouterr()
    sentence = "expected at most 3 tokens (question '1') \\u001b"
    first, second = map(json.loads, captured.out.splitlines())
    assert first == {"question": "too long", "error": sentence}
    assert second["alternatives"][0]["answer"] == "b"
    assert captured.err == f"mate-tf: {sentence}\n"
    assert ask(cities, "too long") == 1
    assert capsys.readouterr().out == ""


def test_options_go_on_to_the_model_and_the_table(tmp_path, predictors):
    book = pytest.importorskip("openpyxl").Workbook()
    book.active.append(["note"])
    sheet = book.create_sheet("Cities")
    for row in (["city"], ["a"]):
        sheet.append(row)
    book.save(tmp_path / "t.xlsx")
    page = "<table><tr><td>x<tr><td>y</table><table><tr><td>city<tr><td>a</table>"
    (tmp_path / "t.html").write_text(page)
    options = ["--min-score=0.25", "--alternatives=2", "--most-seconds=3", "--tagger=math:floor"]
    assert ask(tmp_path / "t.xlsx", "of a", "--sheet=Cities", *options) == 0
    assert ask(tmp_path / "t.html", "of a", "--which=1") == 0
    first, second = predictors
    assert first.loaded_with.pop("tagger") is not None
    assert {one.loaded_with.pop("folder").folder for one in (first, second)} == {DEFAULT_MODEL}
    plain = {"architecture": None}
    options = {"min_score": 0.25, "num_alternatives": 2, "most_seconds": 3}
    assert first.loaded_with == plain | options
    defaults = {"tagger": None, "min_score": 0.0, "num_alternatives": 0, "most_seconds": 20}
    assert second.loaded_with == plain | defaults
    (tmp_path / "t.csv").write_text("city;people\na;1,5\n")
    for flag in "--delimiter=;", "--delimiter=tab":
        assert ask(tmp_path / "t.csv", "of a", flag) == 0
    headers = [p.asked[0][0].header for p in predictors]
    assert headers == [("city",), ("city",), ("city", "people"), ("city;people",)]


def test_what_takes_longer_than_a_moment_is_said_on_a_terminal(capsys, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    with arguments.waiting("Loading the model", seconds=0.0):
        time.sleep(0.3)
    with arguments.waiting("Loading nothing", seconds=60):
        pass
    said = capsys.readouterr().err
    assert "Loading the model" in said and "nothing" not in said


def test_the_model_is_that_of_the_flag_the_variable_or_the_default(monkeypatch, predictors, cities):
    assert ask(cities, "of a") == 0
    monkeypatch.setattr(folder, "DEFAULT_MODEL", "/nowhere")
    monkeypatch.setenv("MATE_TF_MODEL", str(DEFAULT_MODEL))
    assert ask(cities, "of a") == 0
    monkeypatch.setenv("MATE_TF_MODEL", "/nowhere/else")
    assert ask(cities, "of a", f"--model={DEFAULT_MODEL}") == 0
    assert [one.loaded_with["folder"].folder for one in predictors] == [DEFAULT_MODEL] * 3
    assert ask(cities, "of a") == 1
    assert len(predictors) == 3


def test_a_table_that_cannot_fit_is_refused_before_a_model_is_loaded(capsys, tmp_path, predictors):
    path = tmp_path / "long.csv"
    path.write_text(",".join(map(str, range(300))) + "\n" + ",".join("a" * 300))
    assert ask(path, "which?") == 1
    assert "at most 255 columns, got 300 (table 'long.csv'); leave" in capsys.readouterr().err
    assert predictors == []


def test_closed_streams_are_no_traceback(cities):
    for closed, status in (("<&-", 1), (">&-", 1), ("2>&-", 1)):
        done = subprocess.run(
            f'"{sys.executable}" -m mate_tf ask "{cities}.none" {closed}',
            cwd=ROOT, shell=True, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert (done.returncode, done.stdout) == (status, "")
        assert "Traceback" not in done.stderr


def test_an_error_is_cut_however_long_a_key_of_the_table_is(capsys, tmp_path):
    path = tmp_path / "t.json"
    path.write_text(json.dumps({name * 100_000: [[1]] for name in "ab"}))
    for command in (["show", str(path)], ["ask", str(path), "which?"]):
        assert main(command) == 1
        error = capsys.readouterr().err
        assert error.startswith("mate-tf: expected the number of a table") and len(error) < 2_050


def test_an_error_of_the_program_is_not_hidden_and_an_interrupt_ends_with_130(
    monkeypatch, predictors, cities
):
    with pytest.raises(KeyError, match="a bug"):
        ask(cities, "bug")
    interrupt = unittest.mock.Mock(side_effect=KeyboardInterrupt)
    monkeypatch.setattr(FakePredictor, "answer", interrupt)
    assert ask(cities, "of a") == 130


@pytest.mark.parametrize("arguments", [["ask", "--help"], ["ask", "none.csv", "q"]])
def test_help_and_a_wrong_path_import_nothing_slow(arguments):
    done = run_python("-X", "importtime", "-m", "mate_tf", *arguments)
    names = {*re.findall(r"^import time: .*\| +([\w]+)", done.stderr, re.MULTILINE)}
    slow = {"absl", "keras", "lxml", "numpy", "openpyxl", "pandas", "tensorflow"}
    assert "mate_tf" in names and not names & slow


def test_nobody_reading_is_quiet(tmp_path):
    command = [sys.executable, "-m", "mate_tf", "ask", "--help"]
    # Written at once, help is argparse's to write, which passes over that nobody reads it.
    environment = {name: os.environ[name] for name in os.environ if name != "PYTHONUNBUFFERED"}
    errors = tmp_path / "errors"
    with open(errors, "w", encoding="utf-8") as file:
        process = subprocess.Popen(
            command, cwd=ROOT, stdout=subprocess.PIPE, stderr=file, env=environment
        )
        assert process.stdout is not None
        process.stdout.close()  # long before the process has anything to say
        assert process.wait() == 141
    assert errors.read_text(encoding="utf-8") == ""


RIVERS, LAKES = "river,length\nNile,6650\nRhine,1230\n", "lake,depth\nBaikal,1642\n"


@pytest.fixture
def tables(tmp_path, monkeypatch):
    """A folder of tables, of which a model is asked that is sure of one."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(loading, "from_pretrained", SureOfLakes)
    (tmp_path / "tables" / "more").mkdir(parents=True)
    (tmp_path / "tables" / "rivers.csv").write_text(RIVERS)
    (tmp_path / "tables" / "more" / "lakes.tsv.gz").write_bytes(gzip.compress(LAKES.encode()))
    (tmp_path / "tables" / "notes.md").write_text("No table.")
    (tmp_path / "tables" / ".hidden.csv").write_text(RIVERS)
    (tmp_path / "tables" / "picture.png").write_bytes(b"\x89PNG")
    return "tables"


class SureOfLakes:
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


def test_the_known_a_folder_are_found_and_the_best_answer_is_named(tables, capsys):
    assert main(["ask", tables, "which one?"]) == 0
    captured = capsys.readouterr()
    lines = captured.out.splitlines()
    assert lines[0] == "answer: Baikal"
    named = "table tables/more/lakes.tsv.gz, of 2 tables; 1 file could not be read"
    assert lines[1] == f"score 0.90 · class 0 · {named}"
    assert "Baikal" in lines[-1] and captured.err == ""
    assert main(["ask", tables, "which one?", "a short one?", "none?", "--json"]) == 0
    asked = ["more/lakes.tsv.gz", "rivers.csv", "rivers.csv"]
    assert [record["table"] for record in records(capsys)] == [f"tables/{name}" for name in asked]


@cases(
    "arguments, message",
    (["{0}/rivers.csv", "none.csv", "q"], "expected a file at 'none.csv', found none"),
    (["{0}/rivers.csv", "{0}/notes.md", "q"], "expected a table with bars"),
    (["{0}/more/..", "q", "--conversation"], "expected one table with --conversation, got"),
    (["empty", "q"], "expected tables in the folder 'empty', found none"),
    (["{0}", "too long"], "expected less"),
)
def test_what_cannot_be_asked_is_one_sentence(tables, tmp_path, capsys, arguments, message):
    (tmp_path / "empty").mkdir()
    assert main(["ask", *(argument.format(tables) for argument in arguments)]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"mate-tf: {message}")


def test_a_folder_without_a_table_that_can_be_read_says_why(tables):
    with pytest.raises(ValueError, match=r"expected tables in tables/\.\., found none; .*notes.md"):
        (file,) = [file for file in files_of([tables]) if file.name == "notes.md"]
        file.rename("notes.md")
        for other in files_of([tables]):
            other.unlink()
        Library.read([f"{tables}/.."], ReadOptions())


def topics(number: int) -> list[Table]:
    return [
        Table((f"topic{i}", "value"), ((f"word{i}", f"{i}"), ("shared", "x")), f"t{i}.csv")
        for i in range(number)
    ]


@settings(max_examples=20)
@given(number=st.integers(1, 30), data=st.data())
def test_the_table_with_the_words_of_the_question_is_asked(number, data):
    pytest.importorskip("bm25s", reason="the extra search is not installed")
    known, wanted = topics(number), data.draw(st.integers(0, number - 1))
    nearest = Library(known).nearest(f"what is the value of Word{wanted}?")
    assert len(nearest) == min(number, ASKED)
    assert nearest[0] == (known[wanted], 1.0)
    assert all(0 < likeness <= 1 for _, likeness in nearest)


def test_many_tables_without_the_package_say_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "bm25s", None)
    with pytest.raises(ModuleNotFoundError, match=r"to search 6 tables; .*'mate_tf\[search\]'"):
        Library(topics(6)).answer(SureOfLakes(), Question("q"))


BRIDGES = str(ROOT / "experiments" / "demo_data" / "linked" / "tables" / "bridges.json")


@pytest.fixture
def pointr(tmp_path, monkeypatch):
    """The folder of a PointR that answers "stone", with a score of 0.6, from the first cell."""

    class Fake:
        def answer(self, linked, question):
            assert any(passage.text for passage in linked.distinct_passages())
            text = linked.table.rows[0][0]
            return Answer(("stone",), (SelectedCell(0, 0, text, 0.6),), score=0.6)

    (tmp_path / "pointr.json").write_text("{}")
    monkeypatch.setattr(answering, "load_pointr", lambda folder, num_alternatives: Fake())
    return str(tmp_path)


@pytest.mark.parametrize(("score", "status"), [("0", 0), ("0.7", 3)])
def test_a_pointr_answers_from_a_table_with_passages(capsys, pointr, score, status):
    arguments = ["ask", BRIDGES, "of what is it?", f"--model={pointr}", f"--min-score={score}"]
    assert main(arguments) == status
    assert "stone" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["ask", BRIDGES, BRIDGES, "which?"], "expected one file of a table with passages, got"),
        (["ask", BRIDGES, "which?", "--conversation"], "expected no --conversation with a PointR"),
        (["ask", BRIDGES, "which?", "--sheet=2024"], "expected no --sheet with a PointR"),
        (["ask", BRIDGES, "which?", "--max-tokens=64"], "expected no --max-tokens with a PointR"),
        (["page"], "expected a model of tables alone, got"),
    ],
)
def test_a_pointr_is_asked_about_one_table_alone(capsys, pointr, arguments, message):
    assert main([*arguments, f"--model={pointr}"]) == 1
    assert message in capsys.readouterr().err
