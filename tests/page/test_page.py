"""What the page answers, and how it reads tables; tests/page/test_browser.py opens it."""

import asyncio
import json
import os
import sys
import urllib.parse

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mate_tf.page.app import Files, Guard, import_gradio
from mate_tf.page.page import DEFAULTS, EXAMPLES, Page
from mate_tf.reading.files import read_content
from scripts.draw_page import headless_browser
from tests.page.fake import CAPITALS, Failing, Fake, Hidden
from tests.small import cases

HIDDEN = "It is not shown where the model looked: expected attention &lt;to be seen&gt;, got"


@pytest.fixture(scope="module")
def page():
    return Page(Fake())


def last(page: Page, pasted: str, question: str, said=DEFAULTS) -> str:
    return page.ask(None, pasted, question, said)[0]


def test_an_answer_is_given_and_on_request_where_the_model_looked(page, monkeypatch):
    text, one = page.ask(None, CAPITALS, "which city is in france?")
    assert '<p class="text">paris</p>' in text and "Row heads" not in text
    assert one.label == "which city is in france? → paris"
    text = page.look(None, CAPITALS, one)
    assert '<p class="text">paris</p>' in text and "75 %" in text
    assert "25 % went to the question" in text and "Row heads" in text
    assert 'role="alert"' in page.look(None, "", one)
    text = Page(Hidden()).look(None, CAPITALS, one)  # the answer is still given
    assert '<p class="text">paris</p>' in text and "view-1" not in text
    assert HIDDEN in text and 'role="alert"' not in text
    assert page.may_look
    monkeypatch.setitem(sys.modules, "tensorflow", None)
    assert not Page(Fake()).may_look


@cases(
    "pasted, question, sentence",
    ("", "which city?", "Expected a table, got none; choose a file or paste one."),
    ("hello", "which city?", "Expected rows below the header, got the header alone: hello"),
    (CAPITALS, " ", "Expected a question, got an empty one."),
    (CAPITALS, "why?", "Expected at most 9 tokens, got 10."),
    ids=["no table", "no rows", "no question", "not taken"],
)
def test_what_cannot_be_asked_is_said(pasted, question, sentence):
    page = Page(Failing(ValueError(sentence[0].lower() + sentence[1:])))
    text, asked = page.ask(None, pasted, question)
    assert 'role="alert"' in text and sentence in text and asked is None
    assert ("italy" in text) == (pasted == CAPITALS)  # the table stays where there is one


def test_an_error_is_cut_however_long_a_key_of_the_table_is(page):
    table = json.dumps({name * 100_000: [[1]] for name in "ab"})
    error, _ = page.ask(None, table, "which?")
    assert error.startswith('<p class="error" role="alert">Expected the number of a table')
    shown = page.show(None, table).html
    for text in (error, shown, page.link(None, table, "which?", *DEFAULTS)):
        assert 1_900 < len(text) < 2_100


@cases(
    "error",
    ValueError("tuple.index(x): x not in tuple"),
    ValueError("not enough values to unpack (expected 2, got 1)"),
    TypeError("expected str, bytes or os.PathLike object, not NoneType"),
    FileNotFoundError(2, "No such file or directory"),
    RuntimeError("defect"),
    ids=lambda error: type(error).__name__,
)
def test_what_is_no_sentence_of_ours_is_in_the_log_and_not_on_the_page(error, caplog, monkeypatch):
    page = Page(Failing(error))
    text = last(page, CAPITALS, "which city?")
    assert "Something went wrong; try another question or table." in text and "italy" in text
    monkeypatch.setattr(page, "table", lambda *_: Failing(error).answer(None, ""))
    shown, link = page.show(None, CAPITALS).html, page.link(None, CAPITALS, "which?", *DEFAULTS)
    assert link in shown
    for words in (text, shown, link):
        assert str(error) not in words
    assert [record.exc_info[1] for record in caplog.records] == [error] * 3


def test_a_follow_up_is_about_the_rows_of_the_answer_before(page):
    moon = EXAMPLES[0].table
    _, first = page.ask(None, moon, "which landed in 1971?")
    text, second = page.ask(None, moon, "how many had 3?", after=first.answer)
    assert second.after == first.answer and second.answer.rows == (2, 3)
    assert text.count('<tr class="pale">') == 4  # the rows that are not asked
    assert page.look(None, moon, second).count('<tr class="pale">') == 3 * 4  # in each view
    _, third = page.ask(None, CAPITALS, "which city?", after=second.answer)
    assert third.after is None  # of another table


def test_files_count_by_the_blocks_they_take_until_they_are_an_hour_old(tmp_path):
    paths = [tmp_path / name / "t.csv" for name in ("old", "new")]
    files = Files(tmp_path)
    for path in paths:
        path.parent.mkdir()
        path.write_bytes(b"a")
        files.num_bytes += 1
    files.round_up([str(path) for path in paths] + [str(tmp_path / "gone")])
    running = files.num_bytes
    assert running >= 2 * paths[0].stat().st_blocks * 512 > 2
    files.clean()
    assert files.num_bytes == running
    for path in (paths[0], paths[0].parent):  # a folder that has just been emptied is new
        os.utime(path, (0, 0))
        files.clean()
    assert [*tmp_path.rglob("*.csv")] == [paths[1]] and 2 * files.num_bytes == running


def test_an_upload_that_breaks_off_counts(tmp_path):
    async def application(scope, receive, send):
        while True:
            await receive()

    async def receive():
        if files.num_bytes == 3000:
            raise ConnectionError
        return {"type": "http.request", "body": bytes(1000), "more_body": True}

    async def send(message):
        pass

    files = Files(tmp_path)
    guard = Guard(application, (), files)
    headers = [(b"host", b"localhost"), (b"content-length", b"9000")]
    path = "/gradio_api/upload"
    scope = {"type": "http", "method": "POST", "path": path, "headers": headers}
    asyncio.get_event_loop().run_until_complete(guard(scope, receive, send))
    assert files.num_bytes == 3000


def test_how_a_table_is_read_can_be_said_where_something_was_assumed(page):
    pasted = "A report\ncity;size\nRome;1,5\nParis;2,5\n"
    shown = page.show(None, pasted)
    assert shown.may_change and "separated by &#x27;;&#x27;" in shown.html
    said = (";", "", 0, 2, "", None, False)
    shown = page.show(None, pasted, said)
    assert shown.may_change and "column 1" in shown.html and "city" not in shown.html
    assert '<p class="text">Rome</p>' in last(page, pasted, "which city?", said)
    two = "<table><tr><th>a<tr><td>1</table>" * 2
    shown = page.show(None, two)
    assert shown.may_change and "the number of a table as “Table number”, from 0 to 1" in shown.html
    assert "1 row, 1 column" in page.show(None, two, ("", "", None, None, "", 1, False)).html
    assert not page.show(None, "").may_change


def test_sheets_are_offered_by_name_and_errors_name_no_folder(page, tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    for name in ("of 'cities'", "more", "most"):
        sheet = book.create_sheet(name)
        sheet.append(["city", "size"])
        sheet.append([name, 1])
    book.save(tmp_path / "towns.xlsx")
    shown = page.show(str(tmp_path / "towns.xlsx"), "")
    assert shown.sheets == ("of 'cities'", "more", "most") and shown.may_change
    said = ("", "", None, None, "most", None, False)
    assert "<td>most</td>" in page.show(str(tmp_path / "towns.xlsx"), "", said).html
    (tmp_path / "broken.xlsx").write_bytes(b"PK\x03\x04 nothing")
    for file in ("broken.xlsx", "gone.csv"):
        text = page.show(str(tmp_path / file), "").html
        assert 'role="alert"' in text and tmp_path.name not in text


@cases(
    "text",
    "\r\n\tpeople\t\r\nOslo\t\t\r\n\t\t2\r\n",
    '[null, "people", ""]\n["Oslo", "", ""]\n["", "", 2]\n',
    ids=["spreadsheet", "lists"],
)
def test_what_is_pasted_is_a_table_as_in_a_file_which_comes_before_it(page, tmp_path, text):
    """Empty cells at either end of a spreadsheet stay."""
    path = tmp_path / "other.csv"
    path.write_text("a,b\n1,2\n")
    table = page.table(None, text)
    assert table.header == ("", "people", "")
    assert table.rows == (("Oslo", "", ""), ("", "", "2"))
    assert page.table(str(path), text).table_id == "other.csv"


@settings(max_examples=25)
@given(text=st.text(max_size=60) | st.text("ab,\t\n\r\"'[]{}:", max_size=60))
@example('["a\\ud800"]\n["b\\ud800"]')  # halves of surrogate pairs
def test_any_text_is_a_table_or_a_sentence(text):
    page = Page(Fake())
    page.table = lambda *_: read_content(text.encode("utf-8", "replace"), "text")
    shown = page.show(None, text).html
    for html in (shown, last(page, text, "a\udfff?")):
        assert html.encode()  # can be sent to the browser
    assert ("<table>" in shown) != ('role="alert"' in shown)
    assert "went wrong" not in shown
    link = page.link(None, text, "a\ud800?", *DEFAULTS)
    if link.startswith("#"):
        assert set(urllib.parse.parse_qs(link[1:])) == {"question", "table"}
    else:
        assert link.startswith("expected")


def test_a_link_holds_question_and_table_and_is_not_too_long(page):
    given = urllib.parse.parse_qs(page.link(None, CAPITALS, "which & what?", *DEFAULTS)[1:])
    assert given == {"question": ["which & what?"], "table": [CAPITALS.replace("\t", ",")]}
    too_long = page.link(None, "city\n" + "rome\n" * 9000, "which?", *DEFAULTS)
    assert too_long == "The table is too large for a link of 30,000 characters."


def test_a_table_of_too_many_cells_is_refused_and_the_last_ones_are_kept(monkeypatch, tmp_path):
    path = tmp_path / "small.csv"
    path.write_text("a,b\n1,2\n")
    monkeypatch.setattr("mate_tf.page.page._MOST_KEPT_CELLS", 3000)  # each counts as 2,000
    page = Page(Fake())
    first = page.table(str(path), "")
    assert page.table(str(path), "") is first
    page.table(str(path), "", ("", "", 1, None, "", None, False))
    assert page.table(str(path), "") is not first
    monkeypatch.setattr("mate_tf.page.page._MOST_CELLS", 3)
    message = r"expected at most 3 cells, got 4 \(file 'the pasted table'\); choose fewer rows"
    with pytest.raises(ValueError, match=message):
        page.table(None, "a,b\n1,2\n3,4\n")


@pytest.mark.medium
def test_the_default_model_answers_the_examples_right():
    from mate_tf.serving.loading import from_pretrained

    model = from_pretrained()
    for question, text, expected in EXAMPLES:
        table = read_content(text.encode(), "the pasted table")
        assert model.answer(table, question).text == expected, question


def test_a_missing_package_and_a_missing_browser_are_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "gradio", None)
    message = r"package gradio to show the page; pip install 'mate_tf\[page\]'"
    with pytest.raises(ModuleNotFoundError, match=message):
        import_gradio()
    pytest.importorskip("playwright", reason="Playwright is not installed")
    monkeypatch.setenv("PATH", "")
    with (
        pytest.raises(FileNotFoundError, match="chromium-browser, google-chrome on PATH, found"),
        headless_browser(),
    ):
        raise AssertionError("expected no browser")
