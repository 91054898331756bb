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
    """The JSON value of a body, with texts for numbers.

    Args:
        body: of a request.
        limits: of its size once it is unpacked.
        encoding: "gzip" or "identity".

    Raises:
        RefusedError: if it is no JSON, has a key twice or a number beyond 64 bits, or is too large.
    """
    if encoding == "gzip":
        body = _unpacked(body, limits.max_body_bytes)
    try:
        document = json.loads(
            body.decode(),
            parse_int=_integer,
            parse_float=_float,
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


def _integer(text: str) -> Number:
    if len(text) > 20 or not -(2**63) <= int(text) < 2**64:
        raise _too_large(text)
    return Number(text)


def _float(text: str) -> Number:
    if math.isinf(float(text)):
        raise _too_large(text)
    return Number(text)


def _too_large(text: str) -> RefusedError:
    message = f"expected numbers of 64 bits, got {text:.40}; send it as text"
    return RefusedError("number_too_large", message)


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


_CELLS = {"type": "array", "minItems": 1, "items": _of("string", "number", "boolean", "null")}
_TEXT = {"type": "string", "minLength": 1}
_TABLE = {
    "description": "rows, columns by name, or CSV text",
    "oneOf": [
        {
            "type": "object",
            "required": ["header", "rows"],
            "properties": {
                "header": _CELLS,
                "rows": {"type": "array", "minItems": 1, "items": _CELLS},
            },
            "additionalProperties": False,
        },
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


def _schema(required: Sequence[str], **properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "required": list(required),
        "properties": properties,
        "additionalProperties": False,
    }


def _one_of(*names: str) -> dict[str, Any]:
    return {"oneOf": [{"required": [name]} for name in names]}


_INSTANCE = _one_of("question", "questions") | _schema(
    ["table"],
    table=_TABLE,
    question=_TEXT,
    questions={"type": "array", "minItems": 1, "items": _TEXT},
    previous=_PREVIOUS,
)
_QUERY = _one_of("query", "question") | _schema(
    ["table"], table=_TABLE, query=_TEXT, question=_TEXT
)
SCHEMA = {
    "oneOf": [
        _schema(
            ["instances"],
            instances={"type": "array", "minItems": 1, "items": _INSTANCE},
            **_CHOSEN,
        ),
        _schema(
            ["inputs"],
            inputs={"oneOf": [_QUERY, {"type": "array", "minItems": 1, "items": _QUERY}]},
            **_CHOSEN,
        ),
    ]
}
TENSORS_SCHEMA = _schema(
    ["inputs"],
    id=_of("string"),
    inputs={
        "type": "array",
        "items": _schema(
            ["name", "shape", "datatype", "data"],
            name={"enum": ["question", "table"]},
            shape={"type": "array", "items": _of("integer")},
            datatype={"const": "BYTES"},
            data={"type": "array", "minItems": 1, "items": _TEXT},
        ),
    },
    parameters=_schema([], **_CHOSEN),
)
