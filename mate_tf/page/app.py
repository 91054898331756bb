"""The page that asks a model: a table, a file or pasted text; a question; its answer."""

import contextlib
import errno
import io
import logging
import os
import pathlib
import signal
import socket
import tempfile
import threading
import time
import types
from collections.abc import Iterator, Sequence
from html import escape
from typing import Any

from mate_tf.page.page import DEFAULTS, EXAMPLES, LABELS, MOST_ASKED, TABLES, Asked, Page
from mate_tf.page.visitors import MOST_BYTES, Files, Guard
from mate_tf.private_apis import guard_visitors_files, import_extra
from mate_tf.reading.files import is_workbook_named
from mate_tf.weights.folder import DEFAULT_MODEL

_MOST_WAITING = 64  # events of all visitors
_AT_ONCE = 8
_MOST_SESSIONS = 1000  # whose histories are kept
_PORTS = range(7860, 7960)
_SECONDS_TO_START = 60.0
_SECONDS_TO_END = 1  # for answers that are on their way
_FOLDER = pathlib.Path(__file__).parent
_VARIABLE = "GRADIO_TEMP_DIR"  # where Gradio keeps visitors' files


@contextlib.contextmanager
def serving(
    predictor: Any, model_name: str, host: str, port: int | None = None, names: Sequence[str] = ()
) -> Iterator[str]:
    """Serves the page in a thread, and gives its address; at the end no visitor's file is left.

    The page shows the last part of the model's folder or name. It listens at a host's port, by
    default the first free one from 7860 on. A proxy may ask by `names` beside this machine's own.

    ModuleNotFoundError without gradio, or what it needs for the tool; OSError if the port is taken,
    there is no such address, or the page takes longer than a minute to start.
    """
    import_gradio()
    before = os.environ.get(_VARIABLE)
    with (
        _listen(host, port) as listener,
        tempfile.TemporaryDirectory(prefix="mate_tf_page_", ignore_cleanup_errors=True) as folder,
    ):
        os.environ[_VARIABLE] = folder
        try:
            files = Files(pathlib.Path(folder))
            app = build_app(predictor, model_name)
            guarded = _guarded(app, {host, *names}, files)
            with files.cleaning(), _running(app, guarded, listener):
                number = listener.getsockname()[1]
                shown = "localhost" if host == "0.0.0.0" else f"[{host}]" if ":" in host else host
                yield f"http://{shown}:{number}/"
        finally:
            del os.environ[_VARIABLE]
            if before is not None:
                os.environ[_VARIABLE] = before


def end_on_signals() -> None:
    """From here on SIGTERM and Ctrl-C end the program by SystemExit, which closes what is open."""
    numbers = (signal.SIGTERM, signal.SIGINT)

    def end(*_: Any) -> None:
        for number in numbers:
            signal.signal(number, signal.SIG_IGN)
        raise SystemExit(0)

    for number in numbers:
        signal.signal(number, end)


def build_app(predictor: Any, model_name: str) -> Any:
    """The page as a gradio.Blocks; it begins with an example and its answer.

    Arguments and errors are as of `serving`.
    """
    gr = import_gradio()
    page = Page(predictor)
    html, first = page.warm_up()
    past = () if first is None else (first,)
    model = pathlib.PurePath(model_name).name
    if model_name == str(DEFAULT_MODEL):
        model = "the small one that comes with mate_tf"
    ui = types.SimpleNamespace()
    with gr.Blocks(title="Ask a table", analytics_enabled=False) as app:
        ui.history = gr.State(past)
        gr.HTML(
            "<h1>Ask a table</h1><p>A question in English, answered from the table alone, with the "
            f"cells it was read from. Model: {escape(model)}.</p>",
            elem_id="title",
            js_on_load=None,
        )
        with gr.Row(elem_id="columns"):
            with gr.Column(elem_id="source"), gr.Accordion("Your table"):
                ui.file = gr.File(
                    label="A file: CSV, Excel, JSON, HTML, Parquet …", height=118, elem_id="file"
                )
                ui.pasted = gr.Textbox(
                    EXAMPLES[0].table,
                    label="or text, pasted from a spreadsheet or as CSV",
                    lines=8,
                    max_lines=8,
                    autoscroll=False,
                    elem_id="pasted",
                )
                with gr.Group(visible=False, elem_id="reading") as ui.panel:
                    ui.reading = _reading_options(gr)
            with gr.Column(elem_id="asking"):
                with gr.Row(elem_id="line"):
                    ui.question = gr.Textbox(
                        EXAMPLES[0].question, label="Question", max_lines=1, elem_id="question"
                    )
                    ui.ask = gr.Button("Ask", variant="primary", elem_id="ask")
                ui.follow = gr.Checkbox(
                    label="Follow-up to the answer below",
                    visible=any(one.has_cells for one in past),
                    container=False,
                    elem_id="follow",
                )
                chips = {"components": ["textbox"], "type": "index"}
                ui.examples = gr.Dataset(
                    label="Examples",
                    samples=[[example.question] for example in EXAMPLES],
                    elem_id="examples",
                    **chips,
                )
                ui.result = gr.HTML(html, js_on_load=None, elem_id="result")
                ui.look = gr.Button(
                    "Where did the model look? (loads TensorFlow: some seconds, 1 GB of memory)",
                    size="sm",
                    visible=bool(past) and page.may_look,
                    elem_id="look",
                )
            with gr.Column(elem_id="more"):
                ui.earlier = gr.Dataset(
                    label="Asked about this table",
                    samples=[[one.label] for one in past],
                    samples_per_page=MOST_ASKED,
                    visible=bool(past),
                    elem_id="earlier",
                    **chips,
                )
                ui.share = gr.Button("Make a link", size="sm", elem_id="share")
                ui.link = gr.Textbox(
                    label="A link with question and table; whoever has it sees both",
                    visible=False,
                    interactive=False,
                    buttons=["copy"],
                    max_lines=1,
                    elem_id="link",
                )
        _wire(gr, page, ui)
    app.queue(max_size=_MOST_WAITING, default_concurrency_limit=_AT_ONCE)
    return app


def _wire(gr: Any, page: Page, ui: types.SimpleNamespace) -> None:
    """Connects events with functions."""
    table = [ui.result, ui.panel, ui.link, *ui.reading]
    kept = [ui.history, ui.earlier, ui.follow, ui.look]
    given = [ui.file, ui.pasted]
    hidden = gr.update(visible=False)

    def forgotten() -> list[Any]:
        return [(), hidden, gr.update(visible=False, value=False), hidden]

    def remembered(past: tuple[Asked, ...], one: Asked | None) -> list[Any]:
        if one is None:
            return [gr.skip() for _ in kept]
        others = [old for old in past if (old.question, old.after) != (one.question, one.after)]
        past = (one, *others)[:MOST_ASKED]
        earlier = gr.update(samples=[[old.label] for old in past], visible=True)
        follow = gr.update(visible=one.has_cells, value=False)
        return [past, earlier, follow, gr.update(visible=page.may_look)]

    def shown(path: str | None, text: str, options: Sequence[Any] = DEFAULTS) -> list[Any]:
        table = page.show(path, text, options)
        is_workbook = path is not None and is_workbook_named(path)
        applies = [not is_workbook] * 2 + [True, True, is_workbook, not is_workbook, is_workbook]
        fields: list[dict[str, Any]] = [
            {"value": value, "visible": visible}
            for value, visible in zip(options, applies, strict=True)
        ]
        if table.sheets:
            fields[4] |= {"visible": True, "choices": [("automatic", ""), *table.sheets]}
        updates = [gr.update(**field) for field in fields]
        return [table.html, gr.update(visible=table.may_change), hidden, *updates]

    def show_given(path: str | None, text: str, *options: Any) -> list[Any]:
        return [*shown(path, text, options or DEFAULTS), *forgotten()]

    def show_pasted(path: str | None, text: str) -> list[Any]:
        is_example = gr.update(visible=not text.strip() or text in TABLES)
        if path or not text.strip() or text in TABLES:  # a file's or an example's is shown
            return [is_example, *(gr.skip() for _ in (*table, *kept))]
        return [is_example, *show_given(None, text)]

    def ask_given(
        path: str | None, text: str, words: str, follows: bool, past: tuple[Asked, ...], *options
    ) -> list[Any]:
        after = past[0].answer if follows and past else None
        html, one = page.ask(path, text, words, options, after)
        return [html, hidden, *remembered(past, one)]

    def ask_example(index: int) -> list[Any]:
        words, text, _ = EXAMPLES[index]
        html, one = page.ask(None, text, words)
        return [html, None, text, words, *shown(None, text)[1:], *remembered((), one)]

    def ask_again(
        index: int, path: str | None, text: str, past: tuple[Asked, ...], *options: Any
    ) -> list[Any]:
        old = past[index]
        html, one = page.ask(path, text, old.question, options, old.after)
        return [html, old.question, hidden, *remembered(past, one)]

    def look(path: str | None, text: str, past: tuple[Asked, ...], *options: Any) -> str:
        return page.look(path, text, past[0], options)

    quiet = {"api_visibility": "private", "trigger_mode": "always_last", "show_progress": "hidden"}
    seen = {**quiet, "show_progress": "minimal", "show_progress_on": ui.result}

    asking = [
        gr.on([ui.question.submit, ui.ask.click], None, js="() => tables.idle()").then(
            ask_given,
            [*given, ui.question, ui.follow, ui.history, *ui.reading],
            [ui.result, ui.link, *kept],
            **seen,
        ),
        ui.examples.click(
            ask_example,
            ui.examples,
            [ui.result, ui.file, ui.pasted, ui.question, *table[1:], *kept],
            **seen,
        ),
        ui.earlier.click(
            ask_again,
            [ui.earlier, *given, ui.history, *ui.reading],
            [ui.result, ui.question, ui.link, *kept],
            **seen,
        ),
        ui.look.click(look, [*given, ui.history, *ui.reading], ui.result, **seen),
    ]

    def reads(
        events: Any, show: Any, inputs: list[Any], outputs: list[Any], cancels: Any = None
    ) -> None:
        """Shows a table on events; Ask waits meanwhile (script.js)."""
        begins = "(...given) => { tables.begin(given[0]); return given; }"
        reading = gr.on(events, show, inputs, outputs, js=begins, cancels=cancels, **quiet)
        for ended in (reading.success, reading.failure):
            ended(None, js="() => tables.end()")

    # A table is either a file or pasted: the later one takes the other's place, in the browser.
    # Gradio's `input` does not notice what is pasted, `change` does.
    ui.file.upload(None, None, ui.pasted, js="() => ''")
    ui.pasted.change(None, given, ui.file, js="(file, text) => text.trim() ? null : file")
    reads([ui.file.upload, ui.file.clear], show_given, given, [*table, *kept], asking)
    reads([ui.pasted.change], show_pasted, given, [ui.examples, *table, *kept])
    reads(
        [field.input for field in ui.reading],
        lambda *given: [*show_given(*given)[:3], *forgotten()],
        [*given, *ui.reading],
        [*table[:3], *kept],
    )
    ui.share.click(
        lambda *inputs: gr.update(value=page.link(*inputs), visible=True),
        [*given, ui.question, *ui.reading],
        ui.link,
        **quiet,
    ).then(
        None,
        ui.link,
        ui.link,
        js="(text) => text.startsWith('#') ? location.href.split('#')[0] + text : text",
    )


def _reading_options(gr: Any) -> list[Any]:
    """The fields of `ReadOptions`, in their order, each to be said by whoever reads the table."""
    decide = ("automatic", "")
    named = [("comma ,", ","), ("semicolon ;", ";"), ("tab", "tab"), ("bar |", "|")]
    encodings = ["utf-8", "cp1252", "latin-1", "utf-16", "shift_jis", "gb18030"]
    delimiter, encoding, header_rows, skip_rows, sheet, which, show_hidden = LABELS
    gr.HTML("<h2>How the table is read</h2>", js_on_load=None)

    def choice(label: str, *choices: Any) -> Any:
        of = [decide, *choices]
        return gr.Dropdown(of, label=label, allow_custom_value=True, min_width=130, value="")

    def number(label: str) -> Any:
        return gr.Number(None, label=label, precision=0, minimum=0, min_width=110)

    with gr.Row():
        fields = [choice(delimiter, *named), choice(encoding, *encodings)]
    with gr.Row():
        fields += [number(header_rows), number(skip_rows)]
    with gr.Row():
        fields += [choice(sheet), number(which)]
    return [*fields, gr.Checkbox(label=show_hidden, container=False)]


def _guarded(app: Any, names: set[str], files: Files) -> Any:
    """The page as an ASGI application, of which visitors reach what it uses itself."""
    import fastapi
    from starlette.middleware import Middleware

    gr = import_gradio()
    mono = ["ui-monospace", "Menlo", "Consolas", "monospace"]
    style, script = (
        (_FOLDER / name).read_text(encoding="utf-8") for name in ("style.css", "script.js")
    )
    app.state_session_capacity = _MOST_SESSIONS
    with contextlib.redirect_stdout(io.StringIO()):  # Gradio's lines about the tool
        mounted = gr.mount_gradio_app(
            fastapi.FastAPI(docs_url=None, openapi_url=None),
            app,
            path="/",
            show_error=False,
            ssr_mode=False,
            run_history=False,
            enable_monitoring=False,
            footer_links=[],
            max_file_size=MOST_BYTES,
            app_kwargs={
                "middleware": [Middleware(Guard, names, files)],
                "docs_url": None,
                "openapi_url": None,
            },
            theme=gr.themes.Base(font=["Inter", "system-ui", "sans-serif"], font_mono=mono),
            # As `css` it would be rewritten, its media queries wrongly.
            head=f"<style>{style}</style><script type='module'>{script}</script>",
        )
    guard_visitors_files(app)
    return mounted


def _listen(host: str, port: int | None) -> socket.socket:
    """Takes the address; without a port the first that is free."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    for number in _PORTS if port is None else [port]:
        try:
            return socket.create_server((host, number), family=family)
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                break
    raise OSError(
        f"expected an address to serve the page at, got {host}:{port or 'any port'}, which is "
        "taken or not of this machine; choose another --host or --port"
    )


@contextlib.contextmanager
def _running(app: Any, guarded: Any, listener: socket.socket) -> Iterator[None]:
    """Serves in a thread, from when the server has started.

    Gradio's own `launch` gives a busy machine a few seconds, and then says that the port is taken.
    """
    import uvicorn

    config = uvicorn.Config(
        guarded, log_level="warning", ws="none", timeout_graceful_shutdown=_SECONDS_TO_END
    )
    server = uvicorn.Server(config)
    # The server closes its own copy, also where it starts after this has given up.
    thread = threading.Thread(target=server.run, args=([listener.dup()],), daemon=True)
    thread.start()
    try:
        end = time.monotonic() + _SECONDS_TO_START
        while not server.started:
            if not thread.is_alive() or time.monotonic() > end:
                raise TimeoutError(
                    f"expected the page to start within {_SECONDS_TO_START:g} seconds, it did not; "
                    "try again when the machine is less busy"
                )
            time.sleep(0.05)
        yield
    finally:
        app.close(verbose=False)
        logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)  # of pages still open
        server.should_exit = True
        thread.join(timeout=_SECONDS_TO_END + 5)


def import_gradio() -> Any:
    """The module gradio, which from then on reports nothing; ModuleNotFoundError without it."""
    os.environ["GRADIO_ANALYTICS_ENABLED"] = "False"  # read when it is imported, and later
    return import_extra("gradio", "page", "to show the page")
