"""The page that asks a model: a table, a file or pasted text; a question; its answer."""

import html
import os
import pathlib
from collections.abc import Sequence
from typing import Any

from mate_tf.answers.drawing import error_html, note_html, result_html
from mate_tf.private_apis import import_extra
from mate_tf.serving.folder import DEFAULT_MODEL
from mate_tf.tables.drawing import table_html
from mate_tf.tables.files import ReadOptions, read_content, read_table
from mate_tf.tables.table import Table

# What the panel of reading options begins with: nothing is said.
NOT_SAID: tuple[Any, ...] = ("", "", None, None, "", None, False)


def given_table(file: str | None, pasted: str, said: Sequence[Any] = NOT_SAID) -> Table:
    """The table that somebody pasted, or else the file's.

    Args:
        file: its path.
        pasted: a table as text.
        said: the fields of `ReadOptions` in their order, "" or None for what is not said.

    Raises:
        ValueError: if there is neither, or what there is is no table; as `read_table` otherwise.
    """
    given = dict(zip(ReadOptions.__dataclass_fields__, said, strict=True))
    options = ReadOptions(**{name: value for name, value in given.items() if value != ""})
    if pasted.strip():
        # Not without its tabs: a spreadsheet's first cell may be empty.
        content = pasted.strip("\r\n").encode("utf-8", "replace")
        return read_content(content, "the pasted table", options)
    if file is None:
        raise ValueError("expected a table, got none; choose a file or paste one")
    return read_table(file, options)


EXAMPLE_QUESTION = "which missions landed in 1969?"
EXAMPLE_TABLE = """\
Mission,Year,Commander,Lunar module pilot,Landing site,Number of moonwalks
Apollo 11,1969,Neil Armstrong,Buzz Aldrin,Sea of Tranquility,1
Apollo 12,1969,Pete Conrad,Alan Bean,Ocean of Storms,2
Apollo 14,1971,Alan Shepard,Edgar Mitchell,Fra Mauro,2
Apollo 15,1971,David Scott,James Irwin,Hadley Rille,3
Apollo 16,1972,John Young,Charles Duke,Descartes Highlands,3
Apollo 17,1972,Eugene Cernan,Harrison Schmitt,Taurus-Littrow,3
"""
_MENDABLE = (ModuleNotFoundError, OSError, ValueError)
_SECONDS_BETWEEN_CLEANINGS = 3600
_SECONDS_KEPT = 24 * 3600
_STYLE = pathlib.Path(__file__).with_name("style.css")


class Page:
    """What the page does with what somebody gives it.

    Args:
        predictor: a `Predictor`.
    """

    def __init__(self, predictor: Any):
        self._predictor = predictor

    def show(
        self, file: str | None, pasted: str, said: Sequence[Any] = NOT_SAID
    ) -> tuple[str, bool]:
        """The table, or why it is none, as HTML; and whether reading options may change it."""
        is_said = tuple(said) != NOT_SAID
        try:
            table = given_table(file, pasted, said)
        except _MENDABLE as error:
            is_given = bool(file or pasted.strip()) and isinstance(error, ValueError)
            return _valid(error_html(str(error))), is_given or is_said
        return _valid(table_html(table)), bool(table.assumed) or is_said

    def ask(
        self, file: str | None, pasted: str, question: str, said: Sequence[Any] = NOT_SAID
    ) -> str:
        """The answer, or why there can be none, as HTML with the table where there is one."""
        try:
            table = given_table(file, pasted, said)
        except _MENDABLE as error:
            return _valid(error_html(str(error)))
        try:
            return _valid(self._answer(table, question))
        except (OSError, ValueError) as error:
            return _valid(error_html(str(error)) + table_html(table))

    def _answer(self, table: Table, question: str) -> str:
        if not question.strip():
            raise ValueError("expected a question, got an empty one")
        try:
            found = self._predictor.attended_cells(table, question)
        except ValueError as reason:
            # Where the question is the reason, this raises it again.
            answer = self._predictor.answer(table, question)
            return result_html(table, answer, {}, {}) + note_html(f"No attention: {reason}")
        return result_html(table, found.answer, found.groups, found.question)


def _valid(text: str) -> str:
    """The text as UTF-8 can have it; JSON may hold halves of surrogate pairs."""
    return text.encode("utf-8", "replace").decode("utf-8")


def build_app(predictor: Any, model_name: str) -> Any:
    """The page as a gradio.Blocks; it begins with an example.

    Args:
        predictor: as `Page` takes it.
        model_name: the folder or name of the model, which the page shows.

    Raises:
        ModuleNotFoundError: if gradio is not installed.
    """
    gr = import_gradio()
    page = Page(predictor)
    if model_name == str(DEFAULT_MODEL):
        model_name = "that comes with the package"
    with gr.Blocks(
        title="Ask a table",
        analytics_enabled=False,
        delete_cache=(_SECONDS_BETWEEN_CLEANINGS, _SECONDS_KEPT),
    ) as app:
        gr.HTML(
            f"<h1>Ask a table</h1><p>Answers from the model {html.escape(model_name)}</p>",
            elem_id="title",
        )
        with gr.Row(elem_id="columns"):
            with gr.Column(scale=1, min_width=270, elem_id="source"):
                pasted = gr.Textbox(
                    EXAMPLE_TABLE,
                    label="Table, pasted from a spreadsheet or as CSV",
                    lines=6,
                    max_lines=6,
                    autoscroll=False,
                    elem_id="pasted",
                )
                file = gr.File(
                    label="or a file: CSV, Excel, JSON, HTML, Parquet and more",
                    height=150,
                    elem_id="file",
                )
                with gr.Accordion(
                    "How the table is read", open=False, visible=False, elem_id="reading"
                ) as panel:
                    reading = _reading_options(gr)
            with gr.Column(scale=3, min_width=320, elem_id="asking"):
                with gr.Row(elem_id="line"):
                    question = gr.Textbox(
                        EXAMPLE_QUESTION, label="Question", max_lines=1, elem_id="question"
                    )
                    ask = gr.Button("Ask", variant="primary", elem_id="ask")
                result = gr.HTML(
                    page.show(None, EXAMPLE_TABLE)[0],
                    js_on_load=None,
                    elem_id="result",
                )
        table = [result, panel, *reading]
        # One after the other, in one queue: side by side a table could be shown after the answer
        # to its question, in its place.
        in_turn = {
            "api_visibility": "private",
            "trigger_mode": "always_last",
            "concurrency_id": "result",
        }
        # The pasted text whose answer is shown. A question that is sent as soon as its table is
        # pasted may come before the event of pasting, which must not take the answer away.
        asked = gr.State(None)

        def shown(path: str | None, text: str, said: Sequence[Any] = NOT_SAID) -> list[Any]:
            html, is_open = page.show(path, text, said)
            return [html, gr.update(visible=is_open), *said]

        def show_pasted(path: str | None, text: str, asked: str | None) -> list[Any]:
            is_file = path and not text.strip()  # which has just taken its place
            if is_file or (not path and text == asked):
                return [gr.skip() for _ in range(4 + len(reading))]
            return [None, None, *shown(None, text)]

        def ask_given(
            path: str | None, text: str, words: str, *said: Any
        ) -> tuple[str, str | None]:
            return page.ask(path, text, words, said), None if path else text

        # A table is either pasted or a file: the later one takes the other's place. Gradio's
        # `input` does not notice what is pasted, `change` does.
        pasted.change(
            show_pasted,
            [file, pasted, asked],
            [file, asked, *table],
            show_progress="hidden",
            **in_turn,
        )
        file.upload(
            lambda path: ["", None, *shown(path, "")], file, [pasted, asked, *table], **in_turn
        )
        file.clear(lambda text: shown(None, text), pasted, table, **in_turn)
        gr.on(
            [field.input for field in reading],
            lambda path, text, *said: [None, *shown(path, text, said)[:2]],
            [file, pasted, *reading],
            [asked, result, panel],
            show_progress="hidden",
            **in_turn,
        )
        gr.on(
            [question.submit, ask.click],
            ask_given,
            [file, pasted, question, *reading],
            [result, asked],
            show_progress="minimal",
            **in_turn,
        )
    return app


def _reading_options(gr: Any) -> list[Any]:
    """The fields of `ReadOptions`, in their order, each to be said by whoever reads the table."""
    with gr.Row():
        delimiter = gr.Textbox(label="Delimiter", placeholder="; or tab", min_width=100)
        encoding = gr.Textbox(label="Encoding", placeholder="cp1252", min_width=100)
    with gr.Row():
        header_rows = gr.Number(None, label="Header rows", precision=0, minimum=0, min_width=100)
        skip_rows = gr.Number(None, label="Rows to skip", precision=0, minimum=0, min_width=100)
    with gr.Row():
        sheet = gr.Textbox(label="Sheet", min_width=100)
        which = gr.Number(None, label="Table number", precision=0, minimum=0, min_width=100)
    show_hidden = gr.Checkbox(label="Show hidden rows and columns")
    return [delimiter, encoding, header_rows, skip_rows, sheet, which, show_hidden]


def launch(app: Any, host: str, port: int | None) -> str:
    """Serves the page in a thread until `app.close()`, and returns its address.

    Args:
        app: what `build_app` gave.
        host: the address to listen at.
        port: where; None for the first that is free from Gradio's own on.

    Raises:
        OSError: if the port is taken or there is no such address.
    """
    gr = import_gradio()
    fonts = {"font": ["system-ui", "sans-serif"], "font_mono": ["ui-monospace", "monospace"]}
    try:
        _, address, _ = app.launch(
            server_name=host,
            server_port=port,
            prevent_thread_lock=True,
            quiet=True,
            share=False,
            ssr_mode=False,
            run_history=False,
            footer_links=[],
            theme=gr.themes.Base(**fonts),
            # As `css` it would be rewritten, its media queries wrongly.
            head=f"<style>{_STYLE.read_text(encoding='utf-8')}</style>",
        )
    except OSError:
        raise OSError(
            f"expected an address to serve the page at, got {host}:{port or 'any port'}, which is "
            "taken or not of this machine"
        ) from None
    return address


def import_gradio() -> Any:
    """The module gradio, which from then on reports nothing to anybody.

    Raises:
        ModuleNotFoundError: if it is not installed.
    """
    os.environ["GRADIO_ANALYTICS_ENABLED"] = "False"  # read when it is imported, and later
    return import_extra("gradio", "page", "to show the page")
