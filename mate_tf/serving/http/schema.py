"""Requests and replies, each defined once: for reading them and for the OpenAPI document.

A request is validated with the `Limits` as context (`info.context`) and the numbers of body.py.
"""

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
from mate_tf.serving.http import Limits, RefusedError
from mate_tf.serving.http.body import Number
from mate_tf.tables.operators import OPERATORS

T = TypeVar("T")
INPUTS = {"question": "BYTES", "table": "BYTES"}  # of the V2 protocol, with their types
OUTPUTS = {"answer": "BYTES", "score": "FP64", "prediction": "BYTES"}
_MOST_COLUMNS = 255  # as many as models have embeddings for
_NAMES = {"dict": "an object", "list": "a list", "str": "a text", "bool": "a truth value"}
_NAMES |= {"int": "a number", "Number": "a number", "NoneType": "null"}
# What pydantic's errors expect, and their codes.
_EXPECTED = {f"{kind}_type": ("wrong_type", name) for kind, name in _NAMES.items()} | {
    "string_type": ("wrong_type", "a text"),
    "int_type": ("wrong_type", "a whole number"),
    "float_type": ("wrong_type", "a number"),
    "model_type": ("wrong_type", "an object"),
    "literal_error": ("wrong_type", "{expected}"),
    "too_short": ("empty", "at least 1 element"),
    "greater_than_equal": ("wrong_value", "at least {ge:g}"),
    "less_than_equal": ("wrong_value", "at most {le:g}"),
}
_FORMS = ("<rows>", "<columns>", "<text>", "<one>", "<many>")  # no parts of a place in a request


def validated(kind: TypeAdapter[T], value: Any, limits: Limits, where: str = "") -> T:
    """The value as of a type below; RefusedError with the place behind `where` if it is none."""
    try:
        return kind.validate_python(value, context=limits)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
    kind_of_error, context = first["type"], first.get("ctx", {})
    parts = [part for part in first["loc"] if part not in _FORMS]
    if isinstance(context.get("error"), RefusedError):
        refused = context["error"]
    elif kind_of_error == "missing":
        refused = RefusedError("missing", f'expected "{parts.pop()}", which is missing')
    else:
        code, expected = _EXPECTED.get(kind_of_error, ("wrong_type", first["msg"]))
        if kind_of_error == "literal_error" and parts[-1] == "name":
            code = "wrong_input" if parts[0] == "inputs" else "wrong_output"
        got = {"empty": "0", "wrong_value": str(first["input"])}.get(code) or _name(first["input"])
        refused = RefusedError(code, f"expected {expected.format(**context)}, got {got}")
    for part in reversed(parts):
        place = f"[{part}]" if isinstance(part, int) else f".{part:.80}"
        refused.where = f"{place}{refused.where}"
    refused.where = f"{where}{refused.where}".removeprefix(".")
    raise refused


def _name(value: Any) -> str:
    return _NAMES[type(value).__name__]


def check_length(text: str, most: int, place: str = "") -> None:
    """Refuses a text with more characters."""
    if len(text) > most:
        message = f"expected at most {most} characters, got {len(text)}"
        raise RefusedError("too_long", message, place)


def check_size(num_rows: int, num_columns: int, limits: Limits, place: str = "") -> None:
    """Refuses a table that is too large."""
    sizes = (("columns", num_columns, _MOST_COLUMNS),)
    for unit, size, most in (*sizes, ("cells", num_rows * num_columns, limits.max_cells)):
        if size > most:
            message = f"expected at most {most} {unit}, got {size}"
            raise RefusedError(f"too_many_{unit}", message, place)


def _check_row(row: Any, size: int, place: str, like: str, expected: str = "a list") -> None:
    if type(row) is not list:
        raise RefusedError("wrong_type", f"expected {expected}, got {_name(row)}", place)
    if len(row) != size:
        message = f"expected {size} cells as in the {like}, got {len(row)}"
        raise RefusedError("ragged", message, place)


def _cell(value: Any, info: Any) -> Any:
    if type(value) in (int, Number):
        return str(value)
    if isinstance(value, list | dict):
        expected = "a text, a number, a truth value or null"
        raise RefusedError("wrong_type", f"expected {expected}, got {_name(value)}")
    if type(value) is str:
        check_length(value, info.context.max_cell_characters)
    return value


def _rows(rows: Any, info: Any) -> Any:
    """Rows whose sizes are right, before their cells are looked at."""
    size = len(info.data.get("header", ()))
    if type(rows) is not list or not size:
        return rows if size else []  # the header's error is the first
    check_size(len(rows), size, info.context)
    expected = "a list of cells, as columns named header and rows alone cannot come by name"
    for index, row in enumerate(rows):
        _check_row(row, size, f"[{index}]", "header", expected)
    return rows


def _columns(columns: dict[str, Any], info: Any) -> Any:
    """Columns whose sizes are right, before their cells are looked at."""
    first = next(iter(columns.values()))
    size = len(first) if type(first) is list else 0
    check_size(size, len(columns), info.context)
    for name, cells in columns.items():
        check_length(name, info.context.max_cell_characters)
        _check_row(cells, size, f".{name:.80}", "first column")
    return columns


def _form_of_table(value: Any) -> str | None:
    if type(value) is not dict:
        return "<text>" if type(value) is str else None
    rows = value.get("rows")  # columns may have these names beside others
    has_lists = type(rows) is list and any(type(row) is list for row in rows)
    return "<rows>" if has_lists or value.keys() <= {"header", "rows"} else "<columns>"


def _question(text: str, info: Any) -> str:
    if not text.strip():
        raise RefusedError("empty", "expected a question, got an empty one")
    check_length(text, info.context.max_question_characters)
    return text


def _few(number: int, info: Any) -> int:
    if number > (most := info.context.max_alternatives):
        raise RefusedError("wrong_value", f"expected at most {most} alternatives, got {number}")
    return number


_Some = Annotated[list[T], Field(min_length=1, fail_fast=True)]
_Any = Annotated[list[T], Field(fail_fast=True)]
_Whole = Annotated[
    int,
    Field(ge=0),
    BeforeValidator(lambda it: int(it) if type(it) is Number and it.is_integer() else it),
]
_CellValue = Annotated[str | float | bool | None, BeforeValidator(_cell)]
QuestionText = Annotated[
    str, AfterValidator(_question), WithJsonSchema({"type": "string", "pattern": r"\S"})
]


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

    Tables may also come as columns by name or as CSV text. Columns named header and rows alone
    cannot come by name.
    """

    header: _Some[_CellValue]
    rows: Annotated[_Some[_Some[_CellValue]], BeforeValidator(_rows)]


AnyTable = Annotated[
    Annotated[Table, Tag("<rows>")]
    | Annotated[dict[str, _Some[_CellValue]], BeforeValidator(_columns), Tag("<columns>")]
    | Annotated[str, Tag("<text>")],
    Discriminator(_form_of_table, "table", "an object or CSV text"),
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


class _OnTable(_Request):
    question: QuestionText | None = None
    table: AnyTable
    _other: ClassVar[str]  # the field in whose place `question` may be

    @model_validator(mode="after")
    def _has_either(self) -> "_OnTable":
        if (self.question is None) == (getattr(self, self._other) is None):
            raise RefusedError("missing", f'expected "question" or "{self._other}"')
        return self


class Question(_OnTable):
    """Either a `question` about a table or several `questions`."""

    questions: _Some[QuestionText] | None = None
    previous: Previous | None = None
    _other = "questions"


class Query(_OnTable):
    """A question in the form of Hugging Face's pipelines: either `query` or `question`."""

    query: QuestionText | None = None
    _other = "query"


class Options(_Request):
    """How many of the next best answers go with each, and from which score on it is given."""

    alternatives: Annotated[_Whole, AfterValidator(_few)] | None = None
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
        Discriminator(lambda value: "<many>" if isinstance(value, list) else "<one>"),
    ]
    parameters: dict[str, Any] | None = None


class InputTensor(_Request):
    """A tensor of texts; a binary one has its `binary_data_size` as parameter and no data."""

    name: Literal["question", "table"]
    shape: _Some[_Whole]
    datatype: Literal["BYTES"]
    data: _Some[str]
    parameters: dict[str, Any] | None = None


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
