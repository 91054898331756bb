"""The page's answers to a table, a question and its history, as HTML, without Gradio."""

import csv
import importlib.util
import io
import logging
import pathlib
import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple
from urllib.parse import urlencode

from mate_tf.answers.answer import Answer
from mate_tf.answers.drawing import error_html, note_html, result_html
from mate_tf.page.visitors import Reader
from mate_tf.reading.files import ReadOptions
from mate_tf.tables.drawing import cut, error_text, table_html, with_names
from mate_tf.tables.table import Table

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
        self._reader = Reader()
        self.may_look = importlib.util.find_spec("tensorflow") is not None

    def table(self, file: str | None, pasted: str, options: Sequence[Any] = DEFAULTS) -> Table:
        """The table of a file at a path, or else the one that somebody pasted as text.

        The options are the fields of `ReadOptions` in their order, "" or None for the default.
        ValueError if there is neither table, or what there is is none; as `Reader.read`.
        """
        values = dict(zip(ReadOptions.__dataclass_fields__, options, strict=True))
        chosen = ReadOptions(**{name: value for name, value in values.items() if value != ""})
        if file is not None:
            if not pathlib.Path(file).is_file():
                raise ValueError("expected the file to be here still, it is not; choose it again")
            return self._reader.read(file, b"", "", chosen)
        if not pasted.strip():
            raise ValueError("expected a table, got none; choose a file or paste one")
        # Not without its tabs: a spreadsheet's first cell may be empty.
        content = pasted.strip("\r\n").encode("utf-8", "replace")
        return self._reader.read(None, content, _PASTED, chosen)

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
