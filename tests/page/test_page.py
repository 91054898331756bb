"""The page, by itself and in a browser."""

import contextlib
import gc
import json
import re
import socket
import sys
from urllib.parse import urlsplit

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mate_tf.answers.alternatives import answer_of_cells
from mate_tf.answers.answer import Answer, SelectedCell
from mate_tf.answers.attended_cells import AttendedCells
from mate_tf.page.app import (
    EXAMPLE_QUESTION,
    EXAMPLE_TABLE,
    Page,
    build_app,
    given_table,
    import_gradio,
    launch,
)
from mate_tf.serving.loading import from_pretrained
from mate_tf.tables.table import Table
from scripts.draw_page import headless_browser
from tests.small import export_small

WORDS = "[PAD] [EMPTY] [UNK] [CLS] [SEP] [MASK] city country rome paris planets rings".split()
CAPITALS = "city\tcountry\nrome\titaly\nparis\tfrance\n"


class FirstCell:
    """A predictor whose answer is always the first cell, which attends to itself alone."""

    def __init__(self):
        self.asked: list[str] = []

    def answer(self, table: Table, question: str) -> Answer:
        found = answer_of_cells(table, (SelectedCell(0, 0, table.rows[0][0], 0.9),), "NONE", 0.9)
        assert found is not None
        return found

    def attended_cells(self, table: Table, question: str) -> AttendedCells:
        self.asked.append(question)
        shares = np.zeros([table.num_rows + 1, table.num_columns])
        shares[1, 0] = 0.75
        return AttendedCells(self.answer(table, question), {"heads": shares}, {"heads": 0.25})


class Failing:
    """A predictor that raises an error when it is asked."""

    def __init__(self, error: Exception):
        self._error = error

    def answer(self, table, question):
        raise self._error

    attended_cells = answer


class Hidden(FirstCell):
    """A predictor whose attention is not to be seen."""

    def attended_cells(self, table, question):
        raise ValueError("expected attention <to be seen>, got table_etc")


def test_a_question_is_asked_once_and_answered_in_html():
    predictor = FirstCell()
    text = Page(predictor).ask(None, CAPITALS, "which city?")
    assert predictor.asked == ["which city?"]
    assert '<p class="text">rome</p>' in text
    assert "75 %" in text and "25 % goes to the question" in text


@pytest.mark.parametrize(
    ("pasted", "question", "sentence"),
    [
        ("", "which city?", "Expected a table, got none; choose a file or paste one."),
        ("hello", "which city?", "Expected at least 1 row below the header, got 0"),
        (CAPITALS, " ", "Expected a question, got an empty one."),
    ],
    ids=["no table", "no rows", "no question"],
)
def test_what_cannot_be_asked_is_said_and_not_asked(pasted, question, sentence):
    predictor = FirstCell()
    text = Page(predictor).ask(None, pasted, question)
    assert 'role="alert"' in text and sentence in text
    assert ("italy" in text) == (pasted == CAPITALS)  # the table stays where there is one
    assert predictor.asked == []


def test_what_the_model_does_not_take_is_said():
    page = Page(Failing(ValueError("expected at most 9 tokens, got 10")))
    text = page.ask(None, CAPITALS, "which city?")
    assert "Expected at most 9 tokens, got 10." in text and "italy" in text
    with pytest.raises(RuntimeError, match="defect"):  # which is not hidden
        Page(Failing(RuntimeError("defect"))).ask(None, CAPITALS, "which city?")


def test_an_answer_whose_attention_is_not_to_be_seen_is_still_given():
    text = Page(Hidden()).ask(None, CAPITALS, "which city?")
    assert '<p class="text">rome</p>' in text and "view-1" not in text
    assert "No attention: expected attention &lt;to be seen&gt;, got table_etc." in text
    assert 'role="alert"' not in text


def test_a_table_is_shown_before_it_is_asked(tmp_path):
    path = tmp_path / "capitals.tsv"
    path.write_text(CAPITALS)
    text, is_open = Page(FirstCell()).show(str(path), "")
    assert "capitals.tsv: 2 rows, 2 columns" in text and "paris" in text and not is_open
    text, is_open = Page(FirstCell()).show(str(tmp_path / "gone.csv"), "")
    assert 'role="alert"' in text and "gone.csv" in text and not is_open


def test_how_a_table_is_read_can_be_said_where_something_was_assumed():
    page = Page(FirstCell())
    pasted = "A report\ncity;size\nRome;1,5\nParis;2,5\n"
    text, is_open = page.show(None, pasted)
    assert is_open and "separated by &#x27;;&#x27;" in text and "<td>Rome</td>" in text
    said = (";", "", 0, 2, "", None, False)
    text, is_open = page.show(None, pasted, said)
    assert is_open and "column 1" in text and "city" not in text
    assert '<p class="text">Rome</p>' in page.ask(None, pasted, "which city?", said)
    two = "<table><tr><th>a<tr><td>1</table>" * 2
    text, is_open = page.show(None, two)
    assert is_open and "the number of a table as which, from 0 to 1" in text
    assert "1 row, 1 column" in page.show(None, two, ("", "", None, None, "", 1, False))[0]
    assert page.show(None, "") == (page.show(None, "")[0], False)


@pytest.mark.parametrize(
    "text",
    [
        "\r\n\tpeople\t\r\nOslo\t\t\r\n\t\t2\r\n",
        '[null, "people", ""]\n["Oslo", "", ""]\n["", "", 2]\n',
    ],
    ids=["spreadsheet", "lists"],
)
def test_what_is_pasted_is_a_table_as_in_a_file_and_comes_before_one(tmp_path, text):
    """Empty cells at either end of a spreadsheet stay."""
    path = tmp_path / "other.csv"
    path.write_text("a,b\n1,2\n")
    table = given_table(str(path), text)
    assert table.header == ("", "people", "")
    assert table.rows == (("Oslo", "", ""), ("", "", "2"))
    assert given_table(str(path), " \n").table_id == "other.csv"


@given(text=st.text(max_size=60) | st.text("ab,\t\n\r\"'[]{}:", max_size=60))
def test_any_text_is_a_table_or_a_sentence(text):
    try:
        assert isinstance(given_table(None, text), Table)
    except ValueError as error:
        assert str(error).startswith("expected")


def test_half_a_surrogate_pair_can_be_sent_to_the_browser():
    pasted = json.dumps(["a\ud800"]) + "\n" + json.dumps(["b\ud800"])
    page = Page(FirstCell())
    for text in (page.show(None, pasted)[0], page.ask(None, pasted, "a\udfff?")):
        assert "b?" in text.encode().decode()


def test_a_missing_gradio_and_a_missing_browser_are_named(monkeypatch):
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


@pytest.fixture(scope="module")
def predictor(tmp_path_factory):
    """An exported model with random weights, so large that its answers differ."""
    folder = export_small(tmp_path_factory.mktemp("page") / "model", 512, WORDS)
    return from_pretrained(folder, num_alternatives=2)


@pytest.fixture(scope="module")
def address(predictor):
    """Where the page is served."""
    pytest.importorskip("gradio", reason="Gradio is not installed")
    app = build_app(predictor, "<b>model</b>")
    yield launch(app, "127.0.0.1", None)
    app.close(verbose=False)


@pytest.fixture(scope="module")
def browser():
    pytest.importorskip("playwright", reason="Playwright is not installed")
    with contextlib.ExitStack() as stack:
        try:
            opened = stack.enter_context(headless_browser())
        except FileNotFoundError as error:
            pytest.skip(str(error))
        yield opened


@pytest.fixture
def page(browser, address):
    """The page in a window of its own, with what it requested and what went wrong in it."""
    page = browser.new_page(viewport={"width": 1200, "height": 900})
    page.requested, page.wrong = [], []
    page.on("request", lambda request: page.requested.append(request.url))
    page.on("websocket", lambda socket: page.requested.append(socket.url))
    page.on("pageerror", lambda error: page.wrong.append(str(error)))
    page.on("dialog", lambda dialog: page.wrong.append(dialog.message))
    page.goto(address)
    page.wait_for_selector("#result table")
    yield page
    page.close()
    assert page.wrong == []


def ask(page, question: str) -> None:
    page.get_by_label("Question").fill(question)
    page.keyboard.press("Enter")


def paste(page, text: str) -> None:
    page.get_by_label("Table, pasted").focus()
    page.keyboard.press("Control+A")
    page.keyboard.insert_text(text)  # at once, as from the clipboard


def shown_cells(page) -> list[str]:
    return page.locator("#result td:visible").all_inner_texts()


def is_wider_than_its_window(page) -> bool:
    return page.evaluate("document.documentElement.scrollWidth > window.innerWidth")


def test_the_page_begins_with_an_example_and_the_keyboard_alone_asks(page, predictor):
    assert page.get_by_label("Question").input_value() == EXAMPLE_QUESTION
    assert "Apollo 11" in shown_cells(page)
    assert page.title() == page.locator("h1").inner_text() == "Ask a table"
    assert "<b>model</b>" in page.locator("#title").inner_text()
    for _ in range(20):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.closest('#question') !== null"):
            break
    page.keyboard.press("Control+A")
    page.keyboard.type("planets rings paris")
    page.keyboard.press("Enter")
    page.wait_for_selector("#result .answer")

    example = given_table(None, EXAMPLE_TABLE)
    answer, groups, _ = predictor.attended_cells(example, "planets rings paris")
    assert page.locator("#result .answer .text").inner_text() == answer.text
    assert answer.cells
    chosen = page.locator("#result .chosen:visible")
    assert chosen.count() == len(answer.cells)
    for cell, text in zip(answer.cells, chosen.all_inner_texts(), strict=True):
        assert text.startswith(cell.text) and text.endswith(f"{cell.score:.2f}")
    plain = page.locator("#result tbody td:not(.chosen):visible").first
    colours = [
        one.evaluate("cell => getComputedStyle(cell).backgroundColor")
        for one in (chosen.first, plain)
    ]
    assert colours[0] != colours[1]
    assert page.locator("#result .others li").count() == len(answer.alternatives) == 2

    for _ in range(4):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.name === 'view'"):
            break
    row, column = np.unravel_index(groups["row heads"].argmax(), groups["row heads"].shape)
    most = f"{example.rows[row - 1][column]} {groups['row heads'][row, column]:.0%}"
    assert row > 0
    page.keyboard.press("ArrowRight")
    assert page.get_by_label("Row heads").is_checked()
    assert most.replace("%", " %") in shown_cells(page)
    page.keyboard.press("Tab")  # the table's own scroll bar
    assert page.evaluate("document.activeElement.className") == "scroll"


def test_whatever_takes_the_focus_has_a_name(page):
    ask(page, "rome")
    page.wait_for_selector("#result .answer")
    names = page.evaluate(
        """() => [...document.querySelectorAll('button, input, textarea, a[href], [tabindex="0"]')]
          .filter(element => element.checkVisibility() && element.tabIndex >= 0)
          .map(element => element.ariaLabel || element.innerText || element.title
            || [...(element.labels || [])].map(label => label.innerText).join(' '))"""
    )
    assert len(names) >= 7
    assert [name for name in names if not name.strip()] == []


def test_a_file_takes_the_place_of_what_was_pasted_and_gives_it_back(page, tmp_path):
    path = tmp_path / "towns.csv"
    path.write_text("city,country\nrome,x\nparis,y\nrome,z\n")
    page.set_input_files("#file input[type=file]", path)
    page.wait_for_selector("#result :text('towns.csv: 3 rows, 2 columns')")
    assert page.get_by_label("Table, pasted").input_value() == ""
    ask(page, "which city?")
    page.wait_for_selector("#result .answer")
    assert len(shown_cells(page)) == 6
    paste(page, CAPITALS)
    page.wait_for_selector("#result :text('the pasted table: 2 rows')")
    page.wait_for_selector("#file :text('towns')", state="detached")
    assert shown_cells(page) == ["rome", "italy", "paris", "france"]
    page.set_input_files("#file input[type=file]", path)
    page.wait_for_selector("#result :text('towns.csv: 3 rows')")
    page.get_by_label("Clear").click()
    page.wait_for_selector("#result :text('Expected a table, got none')")


def test_a_panel_says_how_the_table_is_read(page):
    panel = page.locator("#reading")
    assert not panel.is_visible()
    paste(page, "Ann;1,5\nBob;2,5\n")
    page.wait_for_selector("#result :text('There is no header')")
    panel.click()
    page.get_by_label("Header rows").fill("1")
    page.wait_for_selector("#result :text('1 row, 2 columns')")
    ask(page, "which city?")
    page.wait_for_selector("#result .answer")
    assert shown_cells(page)[0].startswith("Bob")
    paste(page, CAPITALS)
    page.wait_for_selector("#result :text('2 rows, 2 columns')")
    panel.wait_for(state="hidden")


def test_an_error_is_one_sentence_on_the_page(page):
    page.get_by_label("Table, pasted").fill("a\tb\n1\t2\t3\n")
    # Faster than a person can be, the question would be sent with the table before.
    page.wait_for_selector("#result :text('Saturn')", state="detached")
    ask(page, "which city?")
    alert = page.locator("#result [role=alert]")
    sentence = re.compile(r"Expected 2 cells as in the header, got 3 \(.*line 2\);")
    alert.filter(has_text=sentence).wait_for()
    assert "\n" not in alert.inner_text()
    assert page.locator("#result .answer").count() == 0


def test_an_answer_stays_where_its_table_comes_late(page):
    """The page tells the server of what is pasted and of what is asked in two requests."""
    held = []

    def hold_first(route):
        if held:
            route.continue_()
        else:
            held.append(route)

    page.route("**/queue/join*", hold_first)
    with page.expect_request("**/queue/join*"):
        page.get_by_label("Table, pasted").fill(CAPITALS)
    ask(page, "which city?")
    page.wait_for_selector("#result .answer")
    assert len(held) == 1
    with page.expect_response("**/queue/join*"):
        held[0].continue_()
    page.wait_for_timeout(1000)
    assert page.locator("#result .answer").count() == 1
    paste(page, "city\nrome\n")
    page.wait_for_selector("#result :text('1 row')")
    assert page.locator("#result .answer").count() == 0


def test_a_cell_is_text_whatever_it_says(page):
    attack = "<script>document.title = 'hit'</script><img src=elsewhere onerror=alert(1)>"
    paste(page, f"city\tcountry\n{attack}\t${{alert(1)}} {{{{x}}}}\nparis\tfrance\n")
    page.locator("#result td", has_text="{{x}}").first.wait_for()  # the example's name is the same
    assert shown_cells(page)[:2] == [attack, "${alert(1)} {{x}}"]
    ask(page, attack)
    page.wait_for_selector("#result .answer")
    assert attack in " ".join(shown_cells(page))
    assert page.title() == "Ask a table"
    assert not any("elsewhere" in url for url in page.requested)


def test_a_phone_scrolls_the_table_and_not_the_page(page):
    page.set_viewport_size({"width": 390, "height": 844})
    header = [f"a long name of column {number}" for number in range(12)]
    paste(page, "\n".join("\t".join(line) for line in (header, ["rome"] * 12)))
    ask(page, "which city?")
    page.wait_for_selector("#result .answer")
    assert not is_wider_than_its_window(page)
    widths = page.locator("#result .scroll:visible").evaluate("e => [e.scrollWidth, e.clientWidth]")
    assert widths[0] > widths[1]
    for name in ("Question", "Table, pasted"):
        box = page.get_by_label(name).bounding_box()
        assert box["x"] >= 0 and box["x"] + box["width"] <= 390


def test_no_request_leaves_the_machine(page):
    ask(page, "which city?")
    page.wait_for_selector("#result .answer")
    hosts = {urlsplit(url).hostname for url in page.requested if not url.startswith("data:")}
    assert len(page.requested) > 5
    assert hosts == {"127.0.0.1"}
    sources = page.evaluate(
        "[...document.querySelectorAll('[src], link[href]')].map(element => element.src "
        "|| element.href)"
    )
    assert {urlsplit(url).hostname for url in sources if url} == {"127.0.0.1"}


# Gradio leaves the socket open with which it tried the port.
@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_port_that_is_taken_is_named():
    pytest.importorskip("gradio", reason="Gradio is not installed")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(OSError, match=f"got 127.0.0.1:{port}, which is taken"):
            launch(build_app(FirstCell(), "model"), "127.0.0.1", port)
    gc.collect()  # so that its warning comes here
