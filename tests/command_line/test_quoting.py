"""Nothing that a table, a file's name or a client brings controls a terminal or forges a log."""

import csv
import io
import json
import logging
import os
import sys
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mate_tf.command_line.arguments import showing_logs
from mate_tf.command_line.main import main
from mate_tf.serving import loading
from mate_tf.tables.drawing import escaped, quoted
from tests.page.fake import Fake

C0_AND_C1 = [chr(code) for code in (*range(0x20), *range(0x7F, 0xA0))]
BIDI = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
ATTACKS = ["\x1b[2J", "\x1b]0;title\x07", "\x9b31m", "a\nmate-tf: done", "a\r\nb", "\ud800"]
MARKS = ["\u2028", "7", "|", '"', "\\", "*", " "]
letters = st.sampled_from([*C0_AND_C1, *BIDI, *ATTACKS, *MARKS]) | st.text(max_size=4)
texts = st.lists(letters, max_size=5).map("".join)
UTF8_TEXTS = texts.map(lambda text: text.encode("utf-8", "replace").decode())
FILE_NAMES = UTF8_TEXTS.map(lambda text: text.replace("\0", "").replace("/", "")[:40] + ".csv")


def unsafe(printed: str) -> set[str]:
    """The characters that control something, but for ends of lines."""
    return {letter for letter in printed if letter in {*C0_AND_C1, *BIDI} - {"\n"}}


@given(text=texts)
@example(text="a\x1b[2J\u202eb\n")
def test_a_quoted_text_is_a_line_and_reads_as_json_does(text):
    assert unsafe(quoted(text)) == set() and "\n" not in quoted(text)
    assert len(quoted(text).splitlines()) <= 1
    plain = text.replace("\\", "").replace('"', "")
    assert json.loads(f'"{escaped(plain)}"') == plain
    printable = "".join(filter(str.isprintable, text))
    assert escaped(printable) == printable


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("tables")


@settings(max_examples=30)
@given(data=st.data(), name=FILE_NAMES)
def test_no_cell_header_question_or_name_of_a_file_controls_the_terminal(folder, data, name):
    rows = data.draw(st.lists(st.lists(UTF8_TEXTS, min_size=2, max_size=2), min_size=1, max_size=4))
    question = data.draw(UTF8_TEXTS.map(lambda text: f"which {text}"))
    path = folder / name
    with open(path, "w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows(rows)
    missing = str(folder / f"none{name}")
    for command in (
        ["show", "--full", str(path)],
        ["show", "--json", str(path)],
        ["ask", "--", str(path), question],
        ["ask", "--markdown", "--", str(path), question, question],
        ["ask", "--json", "--", str(path), question],
        ["ask", str(path), str(path), "which?"],
        ["ask", "--", missing, question],
        ["show", missing],
    ):
        out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", "backslashreplace") for _ in range(2))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(loading, "from_pretrained", lambda *_, **__: Fake())
            patch.setattr(sys, "stdout", out)
            patch.setattr(sys, "stderr", err)
            status = main(command)
        printed = {}
        for stream in (out, err):
            stream.seek(0)
            printed[stream] = stream.read()
        assert unsafe(printed[out] + printed[err]) == set(), command
        lines = printed[err].split("\n")[:-1]
        assert len(lines) == status and all(line.startswith("mate-tf: ") for line in lines)
    os.remove(path)


@given(path=texts, method=texts, status=st.sampled_from([200, 404]))
@example(path='/v1/models/x 200 ok 0 bytes\nforged "GET', method="GET /a", status=404)
def test_no_path_forges_a_field_or_a_line_of_the_access_log(path, method, status):
    from mate_tf.serving.http.limits import Exchange

    scope: Any = {
        "client": ("10.0.0.1", 5),
        "headers": [],
        "path": f"/{path}",
        "method": f"G{method}",
        "state": {"connection": None},
    }
    nobody: Any = None
    exchange = Exchange(scope, nobody)
    exchange.status = status
    line = exchange.line()
    assert line.isascii() and line.isprintable() and not {*"'\"\\"} & {*line}
    id_, client, *_, answered, code, size, unit, seconds, s = line.split(" ")
    assert len(line.split(" ")) == 10
    assert (id_, client) == (exchange.id.decode(), "10.0.0.1")
    assert (answered, code, size, unit, s) == (str(status), "ok", "0", "bytes", "s")
    assert float(seconds) >= 0


def test_a_log_is_escaped_and_further_lines_are_indented(capsys):
    with showing_logs():
        try:
            raise ValueError("a\x1b[2J\nmate-tf: forged")
        except ValueError:
            logging.getLogger("absl").exception("left out: %s", "\x9b31m\nmate-tf: forged")
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "mate-tf: left out: \\u009b31m"
    assert all(line.startswith("  ") for line in lines[1:]) and "  mate-tf: forged" in lines
    assert "  ValueError: a\\u001b[2J" in lines
