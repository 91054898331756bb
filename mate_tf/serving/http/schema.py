"""Requests and replies, each defined once: for reading them and for the OpenAPI document.

A request is validated with the `Limits` as context (`info.context`), and with a `Number` for each
number that is not whole.
"""

import math
from typing import Annotated, Any, ClassVar, Literal, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    TypeAdapter,
    ValidationError,
    WithJsonSchema,
    model_validator,
)

from mate_tf.answers.answer import Confidence
from mate_tf.answers.views import FollowUp
from mate_tf.reading.delimited import read_delimited_rows
from mate_tf.reading.files import FORMATS, kind_of_text, read_content
from mate_tf.reading.layout import Source, lay_out
from mate_tf.reading.sources import table_of_value
from mate_tf.reading.structures import WrittenNumber
from mate_tf.serving.http import Limits, RefusedError
from mate_tf.tables import table as tables
from mate_tf.tables.operators import OPERATORS

T = TypeVar("T")
INPUTS = {"question": "BYTES", "table": "BYTES"}  # of the V2 protocol, with their types
OUTPUTS = {"answer": "BYTES", "score": "FP64", "prediction": "BYTES"}
MOST_ALTERNATIVES = 10
_MOST_COLUMNS = 255  # as many as models have embeddings for
_NAMES = {"dict": "an object", "list": "a list", "str": "a text", "bool": "a truth value"}
_NAMES |= {"int": "a number", "Number": "a number", "NoneType": "null"}
# The codes and sentences of pydantic's errors; others are of the wrong type.
_SENTENCES = {
    "string_type": ("wrong_type", "a text, got {kind}"),
    "int_type": ("wrong_type", "a whole number, got {kind}"),
    "float_type": ("wrong_type", "a number, got {kind}"),
    "bool_type": ("wrong_type", "a truth value, got {kind}"),
    "list_type": ("wrong_type", "a list, got {kind}"),
    "dict_type": ("wrong_type", "an object, got {kind}"),
    "model_type": ("wrong_type", "an object, got {kind}"),
    "literal_error": ("wrong_type", "{expected}, got {kind}"),
    "too_short": ("empty", "at least 1 element, got 0"),
    "string_pattern_mismatch": ("empty", "a question, got an empty one"),
    "string_too_long": ("too_long", "at most {max_length} characters, got {size}"),
    "greater_than_equal": ("wrong_value", "at least {ge:g}, got {value}"),
    "less_than_equal": ("wrong_value", "at most {le:g}, got {value}"),
}
# Parts of the places of pydantic's errors that are none of a request.
_FORMS = ("<rows>", "<shape>", "<text>", "<one>", "<many>", "constrained-str")


class Number(float):
    """A number with a point or an exponent, and its text in the request: 1.50 stays 1.50."""

    text: str

    def __str__(self) -> str:
        return self.text


def validated(kind: TypeAdapter[T], value: Any, limits: Limits, where: str = "") -> T:
    """The value as of a type below; RefusedError with the place behind `where` if it is none."""
    try:
        return kind.validate_python(value, context=limits)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
    value, context = first["input"], first.get("ctx", {})
    parts = [part for part in first["loc"] if part not in _FORMS]
    if isinstance(context.get("error"), RefusedError):
        refused = context["error"]
    elif first["type"] == "missing":
        refused = RefusedError("missing", f'expected "{parts.pop()}", which is missing')
    else:
        code, sentence = _SENTENCES.get(first["type"], ("wrong_type", first["msg"]))
        if first["type"] == "literal_error" and parts[-1] == "name":
            code = "wrong_input" if parts[0] == "inputs" else "wrong_output"
        size = len(value) if isinstance(value, str) else 0
        got = {"kind": _name(value), "size": size, "value": value}
        refused = RefusedError(code, f"expected {sentence.format(**context, **got)}")
    for part in reversed(parts):
        place = f"[{part}]" if isinstance(part, int) else f".{part:.80}"
        refused.where = f"{place}{refused.where}"
    refused.where = f"{where}{refused.where}".removeprefix(".")
    raise refused


def _name(value: Any) -> str:
    return _NAMES[type(value).__name__]


def _check_size(num_rows: int, num_columns: int, limits: Limits) -> None:
    columns = ("columns", num_columns, _MOST_COLUMNS)
    for unit, size, most in (columns, ("cells", num_rows * num_columns, limits.max_cells)):
        if size > most:
            raise RefusedError(f"too_many_{unit}", f"expected at most {most} {unit}, got {size}")


def _cell(value: Any) -> Any:
    if isinstance(value, list | dict):
        expected = "a text, a number, a truth value or null"
        raise RefusedError("wrong_type", f"expected {expected}, got {_name(value)}")
    return str(value) if type(value) in (int, Number) else value


def _rows(rows: Any, info: Any) -> Any:
    """Rows whose sizes are right, before their cells are looked at."""
    size = len(info.data.get("header", ()))
    if type(rows) is not list or not size:
        return rows if size else []  # the header's error is the first
    _check_size(len(rows), size, info.context)
    for index, row in enumerate(rows):
        if type(row) is not list:
            expected = "a list of cells, as columns named header and rows alone cannot come by name"
            raise RefusedError("wrong_type", f"expected {expected}, got {_name(row)}", f"[{index}]")
        if len(row) != size:
            message = f"expected {size} cells as in the header, got {len(row)}"
            raise RefusedError("ragged", message, f"[{index}]")
    return rows


def _form_of_table(value: Any) -> str | None:
    if type(value) is str:
        return "<text>"
    if type(value) is dict and value.keys() <= {"header", "rows"}:
        return "<rows>"
    return "<shape>" if type(value) in (dict, list) else None


def _table(given: Any, info: Any) -> Any:
    """A `tables.Table` of any form."""
    if isinstance(given, Table):
        return tables.Table.from_rows(given.rows, header=given.header)
    is_text = isinstance(given, str)
    try:
        table = _table_of_text(given, info) if is_text else table_of_value(_as_written(given))
    except RefusedError:
        raise
    except (ValueError, RecursionError) as error:
        raise RefusedError("not_csv" if is_text else "no_table", str(error)) from None
    _check_size(table.num_rows, table.num_columns, info.context)
    for index, row in enumerate((table.header, *table.rows)):
        validated(_TEXT, max(row, key=len), info.context, f", row {index}")
    return table


def _table_of_text(text: str, info: Any) -> tables.Table:
    """The table of a text; its size is checked first where the text has a delimiter."""
    kind = kind_of_text(text)
    if kind == "csv":
        rows = read_delimited_rows(Source("table", text=text))
        _check_size(len(rows.rows), max(map(len, rows.rows), default=0), info.context)
        return lay_out(rows)
    if FORMATS[kind].in_sandbox:
        raise ValueError(f"expected a table as text, got {FORMATS[kind].title}; send its rows")
    return read_content(text.encode(), "table")


def _as_written(value: Any) -> Any:
    """A value whose numbers keep their text."""
    if isinstance(value, list):
        return list(map(_as_written, value))
    if isinstance(value, dict):
        return {key: _as_written(item) for key, item in value.items()}
    return WrittenNumber(value) if type(value) is Number else value


_Some = Annotated[list[T], Field(min_length=1, fail_fast=True)]
_Any = Annotated[list[T], Field(fail_fast=True)]
_AS_WHOLE = BeforeValidator(lambda it: int(it) if type(it) is Number and it.is_integer() else it)
_Whole = Annotated[int, Field(ge=0), _AS_WHOLE]
_Text = Annotated[str, Field(max_length=10_000)]
_TEXT: TypeAdapter[str] = TypeAdapter(_Text)
_CellValue = Annotated[_Text | float | bool | None, BeforeValidator(_cell)]
QuestionText = Annotated[str, Field(pattern=r"\S", max_length=2_000)]


class _Request(BaseModel):
    """A part of a request: other keys than its own are refused."""

    model_config = ConfigDict(extra="forbid", strict=True, protected_namespaces=())

    @model_validator(mode="before")
    @classmethod
    def _has_its_keys_only(cls, value: Any) -> Any:
        for key in value if type(value) is dict else ():
            if key not in cls.model_fields and cls.model_config["extra"] == "forbid":
                message = f"expected only {', '.join(cls.model_fields)}, got {key!r:.80}"
                raise RefusedError("unknown_key", message)
        return value


class Table(_Request):
    """A table by its rows, each with as many cells as the header.

    Tables may also come in any shape that `mate_tf.read_table` takes and JSON can hold: columns by
    name, records, rows, pandas's "split", or as text, such as CSV. Columns named header and rows
    alone cannot come by name.
    """

    header: _Some[_CellValue]
    rows: Annotated[_Some[_Some[_CellValue]], BeforeValidator(_rows)]


_NO_SHAPE = {"propertyNames": {"enum": ["header", "rows"]}}  # but that of rows
_SHAPE: dict[str, Any] = {"anyOf": [{"type": "array"}, {"type": "object", "not": _NO_SHAPE}]}


def _any_of(described: dict[str, Any]) -> None:
    described["anyOf"] = described.pop("oneOf")


AnyTable = Annotated[
    Annotated[Table, Tag("<rows>")]
    | Annotated[list[Any] | dict[str, Any], Tag("<shape>"), WithJsonSchema(_SHAPE)]
    | Annotated[str, Tag("<text>")],
    Discriminator(_form_of_table, "table", "an object, a list or CSV text"),
    AfterValidator(_table),
    Field(json_schema_extra=_any_of),
]


class Place(_Request, extra="ignore"):
    """A cell of the table."""

    row: _Whole
    column: _Whole


class Previous(_Request, extra="ignore"):
    """The prediction before a follow-up question, or of it just cells and items.

    Where it was not answered, the first of its alternatives is read.
    """

    cells: _Any[Place] = []
    items: _Any[_CellValue] = []
    answered: bool = True
    confidence: str = "sure"
    alternatives: _Any["Previous"] = []

    @property
    def guess(self) -> "Previous":
        """The answer that a follow-up is about."""
        return self if self.answered or not self.alternatives else self.alternatives[0]


def _form_of_list(value: Any) -> str:
    return "<many>" if isinstance(value, list) else "<one>"


_Texts = Annotated[
    Annotated[QuestionText, Tag("<one>")] | Annotated[_Some[QuestionText], Tag("<many>")],
    Discriminator(_form_of_list),
]


class _OnTable(_Request):
    question: _Texts | None = None
    table: AnyTable
    _other: ClassVar[str]  # the field in whose place `question` may be

    @model_validator(mode="after")
    def _has_either(self) -> "_OnTable":
        if (self.question is None) == (getattr(self, self._other) is None):
            raise RefusedError("missing", f'expected "question" or "{self._other}"')
        return self

    @property
    def name_of_texts(self) -> str:
        """The field that has them."""
        return self._other if self.question is None else "question"

    @property
    def texts(self) -> str | list[str]:
        """The question, or several."""
        texts: str | list[str] = getattr(self, self.name_of_texts)
        return texts

    def asked(self, text: str) -> tables.Question:
        """One of its questions."""
        return tables.Question(text)


class Question(_OnTable):
    """Either a `question` about a table or several `questions`."""

    questions: _Some[QuestionText] | None = None
    previous: Previous | None = None
    _other = "questions"

    @model_validator(mode="after")
    def _follows_cells_of_its_table(self) -> "Question":
        table: Any = self.table
        before = self.previous or Previous()
        place = ".previous" if before.guess is before else ".previous.alternatives[0]"
        for index, cell in enumerate(before.guess.cells):
            for name, size in (("row", table.num_rows), ("column", table.num_columns)):
                if getattr(cell, name) >= size:
                    message = f"expected a whole number from 0 to {size - 1}"
                    raise RefusedError("wrong_value", message, f"{place}.cells[{index}].{name}")
        return self

    def asked(self, text: str) -> tables.Question:
        """One of its questions, perhaps after an answer."""
        if self.previous is None:
            return super().asked(text)
        guess = self.previous.guess
        return FollowUp(
            text,
            previous_coordinates=tuple((cell.row, cell.column) for cell in guess.cells),
            previous_answers=tuple(map(str, guess.items)),
            is_sure=self.previous.answered and self.previous.confidence != "not sure",
        )


class Query(_OnTable):
    """Questions in the form of Hugging Face's pipelines: either `query` or `question`."""

    query: _Texts | None = None
    _other = "query"


class Options(_Request):
    """How many of the next best answers go with each, and from which score on it is given."""

    alternatives: Annotated[int, Field(ge=0, le=MOST_ALTERNATIVES), _AS_WHOLE] | None = None
    min_score: Annotated[float, Field(ge=0, le=1)] | None = None


class _Named(_Request):
    model_name: str | None = None  # clients may name what is in the path
    model_version: str | None = None
    signature_name: str | None = None


class PredictRequest(Options, _Named):
    """Questions in KServe's V1 protocol; names beside them are not read."""

    instances: _Some[Question]


class PipelineRequest(Options):
    """Questions in the form of Hugging Face's pipelines, whose parameters are not read."""

    inputs: Annotated[
        Annotated[Query, Tag("<one>")] | Annotated[_Some[Query], Tag("<many>")],
        Discriminator(_form_of_list),
    ]
    parameters: dict[str, Any] | None = None


class InputTensor(_Request):
    """A tensor of texts; a binary one has its `binary_data_size` as parameter and no data."""

    name: Literal["question", "table"]
    shape: _Some[_Whole]
    datatype: Literal["BYTES"]
    data: _Some[str]
    parameters: dict[str, Any] | None = None

    @model_validator(mode="after")
    def _has_its_shape(self) -> "InputTensor":
        if math.prod(self.shape) != len(self.data):
            raise RefusedError("wrong_type", f"expected the shape [{len(self.data)}]")
        return self


class RequestedOutput(_Request):
    """An output that the reply should have."""

    name: Literal["answer", "score", "prediction"]
    parameters: dict[str, Any] | None = None


class InferParameters(Options):
    """The options; outputs come as JSON even if they may come as binary data."""

    binary_data_output: bool | None = None


class InferRequest(_Named):
    """Questions in KServe's V2 protocol: the tensors `question` and `table`."""

    id: str | None = None
    inputs: _Some[InputTensor]
    outputs: _Any[RequestedOutput] | None = None
    parameters: InferParameters | None = None

    @model_validator(mode="after")
    def _has_both(self) -> "InferRequest":
        sizes = {one.name: len(one.data) for one in self.inputs}
        if len(sizes) != 2 or len(self.inputs) != 2:
            message = f"expected question and table once, got {', '.join(sizes)}"
            raise RefusedError("wrong_input", message, ".inputs")
        if sizes["table"] not in (1, sizes["question"]):
            message = f"expected 1 table or {sizes['question']}, got {sizes['table']}"
            raise RefusedError("ragged", message, ".inputs")
        return self


class _Reply(BaseModel):
    model_config = ConfigDict(extra="forbid", protected_namespaces=())


class Refusal(_Reply):
    """The reason why a request was not answered."""

    error: str
    code: str
    where: str = ""


class Cell(_Reply):
    """A cell that answers a question, counted from zero and without the header."""

    row: int
    column: int
    text: str
    score: float


_Aggregation = Annotated[str, Field(json_schema_extra={"enum": list(OPERATORS)})]


class Alternative(_Reply):
    """One of the next best answers."""

    answer: str
    items: list[str]
    cells: list[Cell]
    aggregation: _Aggregation
    value: float | None
    number: float | None
    class_index: int | None
    score: float
    note: str = ""


class Answer(Alternative):
    """An answer, as `mate-tf ask --json` prints it."""

    answered: bool
    confidence: Confidence
    rows_dropped: int
    coverage: str = ""
    alternatives: list[Alternative]
    assumed: list[str]


class PredictReply(_Reply):
    """The answers in the instances' order; a list of them where there were `questions`."""

    predictions: list[Answer | list[Answer]]


class PipelineAnswer(_Reply):
    """An answer in the form of Hugging Face's pipelines."""

    answer: str
    coordinates: list[list[int]]
    cells: list[str]
    aggregator: _Aggregation
    score: float


class OutputTensor(_Reply):
    """A tensor of a reply."""

    name: str
    shape: list[int]
    datatype: str
    data: list[str | float]


class InferReply(_Reply):
    """The answers in KServe's V2 protocol."""

    model_name: str
    model_version: str
    id: str
    outputs: list[OutputTensor]
