"""The page in a browser, and what of HTTP it answers."""

import contextlib
import gc
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from urllib.parse import urlsplit

import httpx
import pytest

from mate_tf.page.app import serving
from mate_tf.page.page import DEFAULTS, EXAMPLES, Page
from scripts.draw_page import headless_browser
from tests.page.fake import CAPITALS, Fake
from tests.small import ROOT, cases

pytest.importorskip("gradio", reason="Gradio is not installed")
# Gradio leaves the socket open with which it tried a port that is taken.
pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
API = "gradio_api"
WIDE = "\n".join(
    "\t".join(f"{text} {column}" for column in range(30))
    for text in ("a long name of column", *["a text of more than one line, on and on," * 9] * 60)
)


@pytest.fixture(scope="module")
def address():
    """Where the page is served."""
    with serving(
        Fake(), "/srv/hidden/<b>model</b>", "127.0.0.1", names=["Tables.example"]
    ) as served:
        yield served


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
    page.set_default_timeout(120_000)  # no clock decides a test
    page.requested, page.wrong = [], []
    page.on("request", lambda request: page.requested.append(request.url))
    page.on("websocket", lambda socket: page.requested.append(socket.url))
    page.on("pageerror", lambda error: page.wrong.append(str(error)))
    page.on("dialog", lambda dialog: page.wrong.append(dialog.message))
    page.goto(address)
    wait_until_drawn(page)
    yield page
    page.close()
    assert page.wrong == []


def wait_until_drawn(page) -> None:
    """Waits for script.js, which closes the table on a phone, and at its end adds this element."""
    page.locator("#said").wait_for(state="attached")


def ask(page, question: str) -> None:
    page.get_by_label("Question").fill(question)
    page.keyboard.press("Enter")


def wait_for_answer(page, text: str) -> None:
    page.locator("#result .answer .text", has_text=re.compile(f"^{re.escape(text)}$")).wait_for()


def paste(page, text: str) -> None:
    page.get_by_label("or text, pasted").focus()
    page.keyboard.press("Control+A")
    page.keyboard.insert_text(text)  # at once, as from the clipboard


def tab_to(page, is_there: str) -> None:
    """Presses Tab until an expression is true, at most 20 times."""
    for _ in range(20):
        page.keyboard.press("Tab")
        if page.evaluate(is_there):
            break


def shown_cells(page) -> list[str]:
    return page.locator("#result td:visible").all_inner_texts()


def violations(page) -> list[str]:
    """What axe-core finds on the page as it is now."""
    module = pytest.importorskip("axe_playwright_python.sync_playwright")
    found = module.Axe().run(page).response["violations"]
    return [f"{one['impact']}: {one['id']}, {one['nodes'][0]['html'][:200]}" for one in found]


def test_the_page_begins_with_an_answer_and_the_keyboard_alone_asks(page):
    assert page.get_by_label("Question").input_value() == EXAMPLES[0].question
    wait_for_answer(page, "Apollo 11, Apollo 12")
    assert page.title() == page.locator("h1").inner_text() == "Ask a table"
    named = page.locator("#title").inner_text()
    assert "Model: b>." in named and "hidden" not in named  # the last part of the path
    tab_to(page, "document.activeElement.closest('#question') !== null")
    page.keyboard.press("Control+A")
    page.keyboard.type("who landed in 1972, perhaps?")
    page.keyboard.press("Enter")
    wait_for_answer(page, "Apollo 16, Apollo 17")
    said = "Not sure, best guess Apollo 16, Apollo 17"
    page.locator("#said[role=status]", has_text=said).wait_for(state="attached")
    chosen = page.locator("#result .chosen:visible").all_inner_texts()
    assert chosen == ["Apollo 16 cell 0.90", "Apollo 17 cell 0.90"]
    page.locator("#look").click()
    page.wait_for_selector("#result .views")
    tab_to(page, "document.activeElement.name === 'view'")
    page.keyboard.press("ArrowRight")
    assert page.get_by_label("Row heads").is_checked()
    assert "Apollo 11 75 %" in shown_cells(page)
    page.keyboard.press("Tab")  # the table's own scroll bar
    assert page.evaluate("document.activeElement.className") == "scroll"


@pytest.mark.medium
@pytest.mark.parametrize(("scheme", "width"), [("light", 1200), ("dark", 400)])
def test_axe_finds_nothing(page, scheme, width):
    page.emulate_media(color_scheme=scheme)
    page.set_viewport_size({"width": width, "height": 900})
    page.reload()
    wait_until_drawn(page)
    assert violations(page) == []
    ask(page, "who landed in 1972, perhaps?")
    wait_for_answer(page, "Apollo 16, Apollo 17")
    page.get_by_label("Follow-up").check()
    ask(page, "how many")
    wait_for_answer(page, "1")
    page.locator("#look").click()
    page.wait_for_selector("#result .views")
    page.get_by_text("Column heads", exact=True).click()
    page.locator("#share").click()
    page.wait_for_selector("#link input, #link textarea")
    assert violations(page) == []
    if width < 960:
        page.get_by_text("Your table").click()
    paste(page, "Ann;1,5\nBob;2,5\n")
    page.wait_for_selector("#reading")
    ask(page, "")
    page.wait_for_selector("#result [role=alert]")
    assert violations(page) == []


def test_a_file_takes_the_place_of_what_was_pasted_and_gives_it_back(page, tmp_path):
    path = tmp_path / "towns.csv"
    path.write_text("city,country\nrome,x\nparis,y\nrome,z\n")
    page.set_input_files("#file input[type=file]", path)
    page.wait_for_selector("#result :text('towns.csv: 3 rows, 2 columns')")
    assert page.get_by_label("or text, pasted").input_value() == ""
    ask(page, "which city?")
    wait_for_answer(page, "rome")
    assert len(shown_cells(page)) == 6
    paste(page, CAPITALS)
    page.wait_for_selector("#result :text('the pasted table: 2 rows')")
    page.wait_for_selector("#file :text('towns')", state="detached")
    assert shown_cells(page) == ["rome", "italy", "paris", "france"]
    page.set_input_files("#file input[type=file]", path)
    page.wait_for_selector("#result :text('towns.csv: 3 rows')")
    page.get_by_label("Clear").click()
    page.wait_for_selector("#result :text('Expected a table, got none')")


UPLOAD_AND = """after => {
  const chosen = new DataTransfer(), field = document.querySelector("#file input[type=file]");
  chosen.items.add(new File(["city,people\\nOslo,700000\\nBergen,300000\\n"], "towns.csv"));
  field.files = chosen.files;
  field.dispatchEvent(new Event("change", { bubbles: true }));
  document.querySelector(after).click();
}"""


def reading(page) -> list[str]:
    """What the page says in the place of its answer and in the box of the file."""
    return page.evaluate(
        """() => [["#result", "::before"], ["#file", "::after"]].map(
          ([box, part]) => getComputedStyle(document.querySelector(box), part).content)"""
    )


@pytest.mark.parametrize("slow", ["network", "reader"])
def test_a_question_waits_for_its_file_and_the_page_says_so(page, monkeypatch, slow):
    held, may_read, table = [], threading.Event(), Page.table
    if slow == "network":
        page.route("**/upload?*", lambda route: held.append(route))
    else:
        monkeypatch.setattr(
            Page, "table", lambda self, *given: (may_read.wait(), table(self, *given))[1]
        )
    page.get_by_label("Question").fill("which town is it?")
    page.evaluate(UPLOAD_AND, "#ask")
    page.wait_for_selector("#result[data-reading='towns.csv']")
    page.wait_for_timeout(1000)
    assert reading(page) == ['"Reading towns.csv …"'] * 2
    assert page.locator("#said").inner_text() == "Reading towns.csv"
    if slow == "reader":  # once the file is here, it is what there is
        assert page.get_by_label("or text, pasted").input_value() == ""
    for hidden in ("#result .answer", "#examples", "#earlier", "#share"):
        assert not page.locator(hidden).is_visible()
    for route in held:
        route.continue_()
    may_read.set()
    wait_for_answer(page, "Oslo")
    assert reading(page) == ["none"] * 2
    assert page.locator("#earlier button").all_inner_texts() == ["which town is it? → Oslo"]


def test_a_question_is_asked_though_the_upload_fails(page):
    page.route("**/upload?*", lambda route: route.fulfill(status=503, body="full"))
    page.get_by_label("Question").fill("which landed in 1972?")
    page.evaluate(UPLOAD_AND, "#ask")
    wait_for_answer(page, "Apollo 16, Apollo 17")  # the table that is still there
    assert page.get_by_label("or text, pasted").input_value() == EXAMPLES[0].table


def test_a_question_asked_as_soon_as_its_table_is_pasted_is_about_it(page, tmp_path):
    path = tmp_path / "towns.csv"
    path.write_text("city,country\nrome,x\n")
    page.set_input_files("#file input[type=file]", path)
    page.wait_for_selector("#result :text('towns.csv: 1 row')")
    paste(page, "town\nOslo\n")
    page.locator("#ask").click()
    wait_for_answer(page, "Oslo")
    page.wait_for_timeout(1000)
    assert page.locator("#result .answer").count() == 1  # nothing comes late and takes it away


def test_examples_are_offered_where_no_table_of_the_visitor_s_is(page):
    examples = page.locator("#examples")
    paste(page, CAPITALS)
    examples.wait_for(state="hidden")
    page.get_by_label("or text, pasted").fill("")
    examples.wait_for()
    page.evaluate(UPLOAD_AND, "body")
    examples.wait_for(state="hidden")
    page.wait_for_selector("#result :text('towns.csv: 2 rows')")
    assert not examples.is_visible()
    aligned = "e => getComputedStyle(e).textAlign"
    cells = page.locator("#result tr:nth-child(1) td")
    assert [cells.nth(i).evaluate(aligned) for i in range(2)] == ["left", "right"]
    page.get_by_label("Clear").click()
    examples.wait_for()


@pytest.mark.medium
def test_the_default_model_is_asked_about_a_file_as_it_is_uploaded(browser):
    from mate_tf.serving.loading import from_pretrained

    with serving(from_pretrained(num_alternatives=3), "model", "127.0.0.1") as own:
        page = browser.new_page()
        page.set_default_timeout(120_000)
        page.goto(own)
        wait_until_drawn(page)
        page.get_by_label("Question").fill("how many people live in Bergen?")
        page.evaluate(UPLOAD_AND, "#ask")
        wait_for_answer(page, "300000")
        assert page.locator("#result .chosen").first.inner_text().startswith("300000")
        page.close()


def test_a_panel_says_how_the_table_is_read(page):
    panel = page.locator("#reading")
    assert not panel.is_visible()
    paste(page, "Ann;1,5\nBob;2,5\n")
    page.wait_for_selector("#result :text('There is no header')")
    page.get_by_label("Header rows").fill("1")
    page.wait_for_selector("#result :text('1 row, 2 columns')")
    assert not page.get_by_label("Sheet", exact=True).is_visible()  # text has none
    ask(page, "which city?")
    wait_for_answer(page, "Bob")
    page.get_by_label("Delimiter").click()
    page.get_by_role("option", name="comma ,").click()
    page.wait_for_selector("#result :text('Ann;1')")
    paste(page, CAPITALS)
    page.wait_for_selector("#result :text('2 rows, 2 columns')")
    panel.wait_for(state="hidden")


def test_examples_follow_ups_and_what_was_asked_before(page):
    page.get_by_role("button", name=EXAMPLES[2].question).click()
    wait_for_answer(page, "1992")
    assert page.get_by_label("or text, pasted").input_value() == EXAMPLES[2].table
    ask(page, "which were in asia?")
    wait_for_answer(page, "1964, 1988, 2008, 2020")
    page.get_by_label("Follow-up").check()
    ask(page, "how many in Japan")
    wait_for_answer(page, "2")
    assert not page.get_by_label("Follow-up").is_checked()
    assert page.locator("#result tr.pale").count() % 16 == 0
    past = page.locator("#earlier button")
    assert past.all_inner_texts() == [
        "how many in Japan → 2",
        "which were in asia? → 1964, 1988, 2008, 2020",
        f"{EXAMPLES[2].question} → 1992",
    ]
    past.nth(1).click()
    wait_for_answer(page, "1964, 1988, 2008, 2020")
    assert page.get_by_label("Question").input_value() == "which were in asia?"
    paste(page, CAPITALS)
    page.locator("#earlier").wait_for(state="hidden")


def test_a_link_shares_question_and_table_where_it_is_asked_for(page, browser, address):
    paste(page, 'city\tland\nrome & co\titaly\n"a#b"\tspain\n')
    ask(page, "which is in spain?")
    wait_for_answer(page, "a#b")
    assert "#" not in page.url
    page.locator("#share").click()
    field = page.locator("#link input, #link textarea")
    field.wait_for()
    page.wait_for_function("e => e.value.startsWith('http')", arg=field.element_handle())
    other = browser.new_page()
    other.set_default_timeout(120_000)
    requested = []
    other.on("request", lambda request: requested.append(request.url))
    slow = "**/assets/Index-*.js"  # the code of each kind of field
    other.route(slow, lambda route: (time.sleep(0.4), route.continue_()))
    other.goto(field.input_value())
    wait_for_answer(other, "a#b")
    assert not any("spain" in url for url in requested)  # what is behind the # is not sent
    other.close()


def test_an_error_is_one_sentence_on_the_page(page):
    page.get_by_label("or text, pasted").fill("a\tb\n1\t2\t3\n")
    # Faster than a person can be, the question would be sent with the table before.
    page.wait_for_selector("#result td", state="detached")
    ask(page, "which city?")
    alert = page.locator("#result [role=alert]")
    sentence = re.compile(r"Expected 2 cells as in the header, got 3 \(.*line 2\);")
    alert.filter(has_text=sentence).wait_for()
    assert "\n" not in alert.inner_text()
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


@pytest.mark.parametrize("width", [390, 1200, 1920])
def test_a_wide_table_scrolls_within_the_page_which_is_in_the_middle(page, width):
    page.set_viewport_size({"width": width, "height": 900})
    paste(page, WIDE) if width > 960 else page.get_by_label("or text, pasted").fill(WIDE)
    page.wait_for_selector("#result :text('60 rows, 30 columns')")
    left, right, beyond = page.evaluate(
        """() => {
          const box = document.querySelector('#columns').getBoundingClientRect();
          const root = document.documentElement;
          return [box.left, root.clientWidth - box.right, root.scrollWidth - root.clientWidth];
        }"""
    )
    assert (left, beyond) == (right, 0)
    heights, first, title = page.evaluate(
        """() => {
          const scroll = document.querySelector('#result .scroll');
          scroll.scrollTo(901.5, 500.5);
          const [box, head, name] = [scroll, ...scroll.querySelectorAll(
            'thead th:nth-child(2), tbody tr:nth-child(20) td:nth-child(2)')].map(
              element => element.getBoundingClientRect());
          const height = element => element.getBoundingClientRect().height;
          return [[...scroll.querySelectorAll('tr')].map(height),
            [head.top - box.top, head.left - box.left, name.left - box.left],
            scroll.querySelector('td').title];
        }"""
    )
    assert max(heights) < 60
    # Otherwise lines of sticky cells are drawn beside those of the others.
    assert all(height == round(height) for height in heights)
    assert first == [1, 55, 55]  # behind the border and the numbers of the rows
    assert title == WIDE.split("\n")[1].split("\t")[0]
    cell = page.locator("#result td .long").nth(630)
    before = cell.evaluate("e => e.offsetHeight")
    cell.click()
    assert cell.evaluate("e => e.offsetHeight") > before


def test_no_request_leaves_the_machine(page):
    ask(page, "which city?")
    page.wait_for_selector("#result .answer")
    hosts = {urlsplit(url).hostname for url in page.requested if not url.startswith("data:")}
    assert len(page.requested) > 5
    assert hosts == {"127.0.0.1"}
    elements = "[...document.querySelectorAll('[src], link[href]')]"
    sources = page.evaluate(f"{elements}.map(element => element.src || element.href)")
    assert {urlsplit(url).hostname for url in sources if url} == {"127.0.0.1"}


GET_404 = ["monitoring", "monitoring/summary", "openapi.json", f"{API}/openapi.json", "docs"]
GET_404 += [f"{API}/info", f"{API}/runs", f"{API}/file=/etc/passwd", "assets/..%2f..%2fsetup.py"]


@cases(
    "method, path, headers, status",
    ("GET", "", {}, 200),
    *(("GET", path, {}, 404) for path in GET_404),
    ("POST", f"{API}/call/show_pasted", {}, 404),
    ("POST", f"{API}/run/predict", {}, 404),
    ("DELETE", "", {}, 404),
    ("GET", "", {"Host": "evil.example"}, 403),
    ("GET", "", {"Host": "tables.example"}, 200),
    ("GET", "", {"Host": "localhost:1"}, 200),
    ("GET", "", {"Host": "192.168.1.5"}, 200),
    ("GET", "", {"Host": "[::1]:80"}, 200),
    ("GET", "", {"Origin": "http://evil.example"}, 403),
    ("GET", "", {"Origin": "null"}, 403),
    ("GET", "", {"Host": "localhost:1", "Origin": "http://localhost:1"}, 200),
)
def test_only_what_the_page_itself_asks_for_is_answered(address, method, path, headers, status):
    url = f"{address}{path}"
    answer = httpx.request(method, url, headers=headers, content=b"{}", timeout=None)
    assert answer.status_code == status
    assert "/srv/" not in answer.text and str(ROOT) not in answer.text


def test_uploads_have_a_size_and_a_name(address, monkeypatch):
    def upload(body: bytes) -> int:
        headers = {"Content-Type": "multipart/form-data; boundary=X"}
        url = f"{address}{API}/upload?upload_id=1"
        return httpx.post(url, content=body, headers=headers, timeout=None).status_code

    part = b'--X\r\nContent-Disposition: form-data; name="files"%b\r\n\r\nabc\r\n--X--\r\n'
    assert upload(part % b'; filename="../../a.csv"') == 200
    assert upload(part % b"") == 400
    assert upload(bytes(22 << 20)) == 413
    without_length = httpx.post(f"{address}{API}/upload", content=iter([part]), timeout=None)
    assert without_length.status_code == 411
    # All visitors' files count by their blocks.
    monkeypatch.setattr("mate_tf.page.app._MOST_KEPT", 200_000)
    head = b'--X\r\nContent-Disposition: form-data; name="files"; filename="%d.csv"\r\n\r\n%d\r\n'
    many = b"".join(head % (number, number) for number in range(100)) + b"--X--\r\n"
    assert [upload(many), upload(part % b'; filename="b.csv"')] == [200, 503]


def test_a_question_is_refused_where_too_many_wait(monkeypatch):
    monkeypatch.setattr("mate_tf.page.page._MOST_WAITING", 2)
    monkeypatch.setattr("mate_tf.page.page._AT_ONCE", 1)
    predictor = Fake()
    with serving(predictor, "model", "127.0.0.1") as own, httpx.Client(base_url=own) as client:
        client.timeout = None
        config = client.get("config").json()
        dependency = next(one for one in config["dependencies"] if len(one["inputs"]) == 12)

        def status() -> int:
            data = [None, CAPITALS, "wait", False, (), *DEFAULTS]
            call = {"data": data, "fn_index": dependency["id"], "session_hash": "s"}
            return client.post(f"{API}/queue/join", json=call).status_code

        try:
            assert status() == 200
            assert predictor.is_waiting.wait(120)  # so that it is no longer in the queue
            assert [status() for _ in range(3)] == [200, 200, 503]
        finally:
            predictor.may_answer.set()


def test_a_file_that_nobody_sent_is_not_read_and_no_path_is_said(address):
    with httpx.Client(base_url=address, timeout=None) as client:
        config = client.get("config").json()
        index = next(i for i, one in enumerate(config["dependencies"]) if "upload" in str(one))
        for path in ("/etc/hostname", f"{tempfile.gettempdir()}/x.csv", str(ROOT / "setup.py")):
            file = {"path": path, "orig_name": "x.csv", "meta": {"_type": "gradio.FileData"}}
            call = {"data": [file], "fn_index": index, "session_hash": "s"}
            assert client.post(f"{API}/queue/join", json=call).status_code == 200
            events = client.get(f"{API}/queue/data", params={"session_hash": "s"}).text
            assert "process_completed" in events and '"success":false' in events
            assert str(ROOT) not in events and tempfile.gettempdir() not in events


def test_nothing_of_a_visitor_is_left_at_the_end(tmp_path):
    """Of two files one is still on its way when the page is told to end."""
    started = subprocess.Popen(
        [sys.executable, "-m", "tests.page.fake"],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    with started:
        address = started.stdout.readline().strip()
        file = {"files": ("secret.csv", b"a,b\n1,2\n")}
        httpx.post(f"{address}{API}/upload", files=file, timeout=None)
        place = urlsplit(address)
        with socket.create_connection((place.hostname, place.port)) as late:
            late.sendall(
                f"POST /{API}/upload HTTP/1.1\r\nHost: {place.netloc}\r\nContent-Length: 900000\r\n"
                "Content-Type: multipart/form-data; boundary=X\r\n\r\n--X\r\nContent-Disposition: "
                'form-data; name="files"; filename="late.csv"\r\n\r\na,b\r\n1,2\r\n'.encode()
            )
            while len(files := [one for one in tmp_path.rglob("*") if one.is_file()]) < 2:
                time.sleep(0.05)
            assert any(one.name == "secret.csv" for one in files)
            started.send_signal(signal.SIGTERM)
            assert started.wait() == 0
    assert list(tmp_path.iterdir()) == []


@pytest.mark.medium
def test_a_slow_start_is_waited_for_and_the_port_is_not_blamed(monkeypatch):
    import gradio

    begin, may_begin = gradio.Blocks.run_startup_events, threading.Event()
    monkeypatch.setattr(
        gradio.Blocks, "run_startup_events", lambda blocks: (may_begin.wait(), begin(blocks))
    )
    threading.Timer(6, may_begin.set).start()  # longer than Gradio's own 5 seconds
    with serving(Fake(), "model", "127.0.0.1") as own:
        assert may_begin.is_set()
        assert httpx.get(own, timeout=None).status_code == 200
    may_begin.clear()
    monkeypatch.setattr("mate_tf.page.app._SECONDS_TO_START", 0.5)
    with (
        pytest.raises(OSError, match=r"start within 0.5 seconds, .* when the machine is less busy"),
        serving(Fake(), "model", "127.0.0.1"),
    ):
        raise AssertionError("expected no page")
    may_begin.set()


def test_a_port_that_is_taken_is_named():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with (
            pytest.raises(OSError, match=f"got 127.0.0.1:{port}, which is taken"),
            serving(Fake(), "model", "127.0.0.1", port),
        ):
            raise AssertionError("expected no page")
    gc.collect()  # so that its warning comes here
