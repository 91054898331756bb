"""The body of a request: its schemas, for OpenAPI, and as JSON, read more strictly than usual."""

import json
import math
import re
import zlib
from collections.abc import Sequence
from typing import Any

from mate_tf.serving.http import Limits
from mate_tf.serving.http.limits import RefusedError

_HALF_A_PAIR = re.compile(rb"\\u[dD][89a-fA-F]")  # perhaps of surrogates


class Number(str):
    """A number with the text that it has in the request: 1.50 stays 1.50."""


def read_document(body: bytes, limits: Limits, encoding: str) -> Any:
    """The JSON value of a body in an encoding, "gzip" or "identity", with texts for numbers.

    Raises:
        RefusedError: if it is no JSON, has a key twice or a number beyond 64 bits, or is too large.
    """
    if encoding == "gzip":
        body = _unpacked(body, limits.max_body_bytes)
    try:
        document = json.loads(
            body.decode(),
            parse_int=_number,
            parse_float=_number,
            parse_constant=_no_constant,
            object_pairs_hook=_unique,
        )
        if _HALF_A_PAIR.search(body):
            json.dumps(document, ensure_ascii=False).encode()
    except RefusedError:
        raise
    except (ValueError, RecursionError) as error:
        raise RefusedError("not_json", f"expected JSON in UTF-8: {error}") from None
    return document


def _unpacked(body: bytes, most: int) -> bytes:
    packed = zlib.decompressobj(wbits=31)
    try:
        unpacked = packed.decompress(body, most + 1)
    except zlib.error as error:
        raise RefusedError("not_gzip", f"expected a body packed by gzip: {error}") from None
    if len(unpacked) > most:
        message = f"expected at most {most} bytes once unpacked, got more"
        raise RefusedError("body_too_large", message, "", 413)
    if not packed.eof or packed.unused_data:
        raise RefusedError("not_gzip", "expected one whole body packed by gzip, got less or more")
    return unpacked


def _number(text: str) -> Number:
    if text.lstrip("-").isdigit():
        fits = len(text) <= 20 and -(2**63) <= int(text) < 2**64
    else:
        fits = not math.isinf(float(text))
    if not fits:
        message = f"expected numbers of 64 bits, got {text:.40}; send it as text"
        raise RefusedError("number_too_large", message)
    return Number(text)


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    unique: dict[str, Any] = {}
    for key, value in pairs:
        if key in unique:
            raise RefusedError("key_twice", f"expected each key once, got {key!r:.80} twice")
        unique[key] = value
    return unique


def _of(*kinds: str) -> dict[str, Any]:
    return {"type": list(kinds)}


def _list_of(items: Any) -> dict[str, Any]:
    return {"type": "array", "minItems": 1, "items": items}


def _schema(required: Sequence[str], **properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "required": list(required),
        "properties": properties,
        "additionalProperties": False,
    }


def _one_of(*names: str) -> dict[str, Any]:
    return {"oneOf": [{"required": [name]} for name in names]}


_CELLS = _list_of(_of("string", "number", "boolean", "null"))
_TEXT = {"type": "string", "minLength": 1}
_TABLE = {
    "description": "rows, columns by name, or CSV text",
    "oneOf": [
        _schema(["header", "rows"], header=_CELLS, rows=_list_of(_CELLS)),
        {"type": "object", "minProperties": 1, "additionalProperties": _CELLS},
        _TEXT,
    ],
}
_PREVIOUS = {
    "type": "object",
    "description": "the prediction before a follow-up question; its cells and items are read",
}
_CHOSEN = {
    "alternatives": {"type": "integer", "minimum": 0},
    "min_score": {"type": "number", "minimum": 0, "maximum": 1},
}
_ASKED = {"question": _TEXT, "questions": _list_of(_TEXT), "previous": _PREVIOUS}
_INSTANCE = _one_of("question", "questions") | _schema(["table"], table=_TABLE, **_ASKED)
_WORDS = {"query": _TEXT, "question": _TEXT}
_QUERY = _one_of("query", "question") | _schema(["table"], table=_TABLE, **_WORDS)
_QUERIES = {"oneOf": [_QUERY, _list_of(_QUERY)]}
SCHEMA = {
    "oneOf": [
        _schema(["instances"], instances=_list_of(_INSTANCE), **_CHOSEN),
        _schema(["inputs"], inputs=_QUERIES, **_CHOSEN),
    ]
}
_TENSOR = _schema(
    ["name", "shape", "datatype", "data"],
    name={"enum": ["question", "table"]},
    shape={"type": "array", "items": _of("integer")},
    datatype={"const": "BYTES"},
    data=_list_of(_TEXT),
)
TENSORS_SCHEMA = _schema(
    ["inputs"],
    id=_of("string"),
    inputs={"type": "array", "items": _TENSOR},
    parameters=_schema([], **_CHOSEN),
)
