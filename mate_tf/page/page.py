"""The page that asks a model: a table, a file or pasted text; a question; its answer as HTML.

Tables are read in processes of their own, which end where one takes too much.
"""

import csv
import importlib.util
import io
import logging
import pathlib
import re
import threading
import types
from collections.abc import Iterator, Sequence
from html import escape
from typing import Any, NamedTuple
from urllib.parse import urlencode

from mate_tf.answers.answer import Answer
from mate_tf.answers.drawing import error_html, note_html, result_html
from mate_tf.reading.files import ReadOptions, is_workbook_named, read_in_sandbox
from mate_tf.tables.drawing import cut, error_text, table_html, with_names
from mate_tf.tables.table import Table, remember
from mate_tf.weights.folder import DEFAULT_MODEL

# What the panel of reading options begins with.
DEFAULTS: tuple[Any, ...] = ("", "", None, None, "", None, False)
# The names of the options in the panel, in their order.
LABELS = (
    *("Delimiter", "Encoding", "Header rows", "Rows to skip"),
    *("Sheet", "Table number", "Hidden rows and columns too"),
)
MOST_ASKED = 20  # questions of a history
_LONGEST_LINK = 30_000  # characters
_OURS = re.compile(r"(.*: )?expected ", re.DOTALL)  # how errors of this project begin
_WENT_WRONG = "Something went wrong; try another question or table. The page’s log says more."
_PASTED = "the pasted table"
_MOST_WAITING = 64  # events of all visitors
_AT_ONCE = 8
_MOST_CELLS = 500_000
_MOST_KEPT_CELLS = 400_000  # of the last tables together
_READ_AT_ONCE = 2


class Example(NamedTuple):
    """A question about a table as somebody would paste it, and the right answer."""

    question: str
    table: str
    answer: str


def _examples() -> Iterator[Example]:
    """Those that the page begins with; the default model answers them right."""
    text = pathlib.Path(__file__).with_name("examples.txt").read_text(encoding="utf-8")
    parts = text.rstrip("\n").split("\n\n")
    for table, questions in zip(parts[::2], parts[1::2], strict=True):
        for line in questions.split("\n"):
            question, _, answer = line.partition(" => ")
            yield Example(question, f"{table}\n", answer)


EXAMPLES = tuple(_examples())
TABLES = {one.table for one in EXAMPLES}


class Asked(NamedTuple):
    """A question of a history."""

    question: str
    after: Answer | None  # to which it is a follow-up
    answer: Answer

    @property
    def has_cells(self) -> bool:
        """Whether there may be follow-ups."""
        return bool(self.answer.guess.cells)

    @property
    def label(self) -> str:
        """Question and answer on a line."""
        given = cut(self.answer.text, 60) if self.answer.answered else "no answer"
        before = "" if self.answer.confidence == "sure" else "perhaps "
        return f"{self.question} → {before}{given}"


class Shown(NamedTuple):
    """A table on the page."""

    html: str  # the table, or why it is none
    may_change: bool  # whether the options of reading may change it
    sheets: tuple[str, ...] = ()  # the names of a workbook's, if it has several


class Page:
    """Answers of a `Predictor` about the tables that somebody gives the page."""

    def __init__(self, predictor: Any):
        self._predictor = predictor
        self._free = threading.BoundedSemaphore(_READ_AT_ONCE)  # so that others are answered
        self._remembered = remember(self._read, most=_MOST_KEPT_CELLS)  # as one is asked about next
        self.may_look = importlib.util.find_spec("tensorflow") is not None

    def table(self, file: str | None, pasted: str, options: Sequence[Any] = DEFAULTS) -> Table:
        """The table of a file at a path, or else the one that somebody pasted as text.

        The options are the fields of `ReadOptions` in their order, "" or None for the default.
        ValueError if there is neither table, or what there is is none; as `read_in_sandbox`.
        """
        values = dict(zip(ReadOptions.__dataclass_fields__, options, strict=True))
        chosen = ReadOptions(**{name: value for name, value in values.items() if value != ""})
        if file is not None:
            if not pathlib.Path(file).is_file():
                raise ValueError("expected the file to be here still, it is not; choose it again")
            return self._remembered((file, b"", "", chosen))
        if not pasted.strip():
            raise ValueError("expected a table, got none; choose a file or paste one")
        # Not without its tabs: a spreadsheet's first cell may be empty.
        content = pasted.strip("\r\n").encode("utf-8", "replace")
        return self._remembered((None, content, _PASTED, chosen))

    def _read(self, key: tuple[str | None, bytes, str, ReadOptions]) -> Table:
        """The table of a file, or of content where there is none."""
        file, content, name, options = key
        if file is not None:
            content, name = pathlib.Path(file).read_bytes(), pathlib.Path(file).name
        with self._free:
            return read_in_sandbox(content, name, options, _MOST_CELLS)

    def show(self, file: str | None, pasted: str, options: Sequence[Any] = DEFAULTS) -> Shown:
        """The table, or why it is none."""
        is_changed = tuple(options) != DEFAULTS
        try:
            table = self.table(file, pasted, options)
        except Exception as error:
            is_given = bool(file or pasted.strip()) and isinstance(error, ValueError)
            return Shown(_error(error, file), is_given or is_changed)
        sheets = _sheets(table.assumed)
        return Shown(_valid(table_html(table)), bool(table.assumed) or is_changed, sheets)

    def ask(
        self,
        file: str | None,
        pasted: str,
        question: str,
        options: Sequence[Any] = DEFAULTS,
        after: Answer | None = None,
    ) -> tuple[str, Asked | None]:
        """The answer as HTML with its table; or why there is none.

        `file`, `pasted` and `options` are as of `table`. A follow-up comes `after` an answer.
        """
        try:
            table = self.table(file, pasted, options)
        except Exception as error:
            return _error(error, file), None
        cells = () if after is None else after.guess.cells
        if any(c.row >= table.num_rows or c.column >= table.num_columns for c in cells):
            after = None  # it is of a table that was read in another way
        try:
            answer = self._predictor.answer(table, question, after)
        except Exception as error:
            return _error(error, file) + _valid(table_html(table)), None
        one = Asked(question.strip(), after, answer)
        return _valid(result_html(table, answer, {}, {}, answer.rows)), one

    def look(
        self, file: str | None, pasted: str, one: Asked, options: Sequence[Any] = DEFAULTS
    ) -> str:
        """An answer as HTML with where the model looked, by TensorFlow, for arguments of `ask`."""
        groups: Any = {}
        to_question: dict[str, float] = {}
        note = ""
        try:
            table = self.table(file, pasted, options)
        except Exception as error:
            return _error(error, file)
        try:
            _, groups, to_question = self._predictor.attended_cells(table, one.question, one.after)
        except Exception as error:
            note = note_html(f"It is not shown where the model looked: {_message(error)}")
        html = result_html(table, one.answer, groups, to_question, one.answer.rows)
        return _valid(html + note)

    def warm_up(self) -> tuple[str, Asked | None]:
        """Asks the examples, so that no visitor waits for what comes but once; the first answer."""
        first, *_ = [self.ask(None, one.table, one.question) for one in EXAMPLES]
        return first

    def link(self, file: str | None, pasted: str, question: str, *options: Any) -> str:
        """The part of a link from its # on, which holds question and table; or why there is none.

        No browser sends this part to a server.
        """
        text = io.StringIO()
        try:
            table = self.table(file, pasted, options)
        except Exception as error:
            return _message(error, file)
        csv.writer(text, lineterminator="\n").writerows([table.header, *table.rows])
        link = urlencode({"question": _valid(question), "table": _valid(text.getvalue())})
        if len(link) > _LONGEST_LINK:
            return f"The table is too large for a link of {_LONGEST_LINK:,} characters."
        return f"#{link}"


def _sheets(assumed: Sequence[str]) -> tuple[str, ...]:
    """The sheets that the reader's sentence names."""
    for sentence in assumed:
        if match := re.fullmatch(r"Sheet '(.*)' was read; there are also '(.*)'\.", sentence):
            return (match[1], *match[2].split("', '"))
    return ()


def _error(error: Exception, file: str | None) -> str:
    """An error in the words of the page."""
    labels = [f"“{label}”" for label in LABELS]
    names = dict(zip(ReadOptions.__dataclass_fields__, labels, strict=True))
    return _valid(error_html(with_names(_message(error, file), names)))


def _message(error: Exception, file: str | None = None) -> str:
    """The text of an error of this project, without the folder of visitors' files.

    Others are in words of Python's or a library's, which go to the log.
    """
    is_ours = isinstance(error, ModuleNotFoundError | OSError | ValueError)
    if not (is_ours and _OURS.match(str(error))):
        logging.getLogger(__name__).error("a question or table failed", exc_info=error)
        return _WENT_WRONG
    text = str(getattr(error, "problem", error))  # a remedy may be no option of the page
    return error_text(text if file is None else text.replace(f"{pathlib.Path(file).parent}/", ""))


def _valid(text: str) -> str:
    """The text as UTF-8 can have it; JSON may hold halves of surrogate pairs."""
    return text.encode("utf-8", "replace").decode("utf-8")


def build_app(gr: Any, predictor: Any, model_name: str) -> Any:
    """The page as a gradio.Blocks; it begins with an example and its answer.

    It takes the module gradio, and the predictor and the name of `app.serving`.
    """
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
        pairs = zip(options, applies, strict=True)
        updates = [gr.update(value=value, visible=visible) for value, visible in pairs]
        if table.sheets:
            updates[4] |= {"visible": True, "choices": [("automatic", ""), *table.sheets]}
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
