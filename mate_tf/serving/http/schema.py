"""Bodies: the schemas of requests and replies, for OpenAPI, and JSON, read stricter than usual."""

import json
import math
import re
import zlib
from collections.abc import Sequence
from typing import Any, get_args

from mate_tf.answers.answer import Confidence
from mate_tf.serving.http import Limits
from mate_tf.serving.http.limits import RefusedError
from mate_tf.tables.table import AGGREGATIONS

TENSORS = ("question", "table")  # of the V2 protocol
OUTPUTS = {"answer": "BYTES", "score": "FP64", "prediction": "BYTES"}  # and their types
OPTIONS = ("alternatives", "min_score")
OF_PIPELINES = ("model", "padding", "truncation")  # Hugging Face's; there is nothing to choose
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


def _of(*kinds: str, **more: Any) -> dict[str, Any]:
    return {"type": list(kinds)} | more


def _list_of(items: Any, **more: Any) -> dict[str, Any]:
    return {"type": "array", "minItems": 1, "items": items} | more


def _schema(required: Sequence[str], **properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "required": list(required),
        "properties": properties,
        "additionalProperties": False,
    }


def _all_of(**properties: Any) -> dict[str, Any]:
    return _schema(list(properties), **properties)


def _one_of(*names: str) -> dict[str, Any]:
    return {"oneOf": [{"required": [name]} for name in names]}


_CELLS = _list_of(_of("string", "number", "boolean", "null"))
_TEXT = {"type": "string", "pattern": r"\S"}
_COLUMNS = {
    "type": "object",
    "minProperties": 1,
    "additionalProperties": _CELLS,
    "not": {"propertyNames": {"enum": ["header", "rows"]}},
}
_TABLE = {
    "description": "rows, columns by name, or CSV text. Columns named header and rows alone cannot "
    "come by name: send such a table as rows or CSV text.",
    "oneOf": [_all_of(header=_CELLS, rows=_list_of(_CELLS)), _COLUMNS, _TEXT],
}
_PLACE = {"type": "integer", "minimum": 0}
_PREVIOUS = _of(
    "object",
    "null",
    description="the prediction before a follow-up question; its confidence, cells and items are "
    "read, or those of its first alternative where it was not answered",
    properties={
        "cells": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["row", "column"],
                "properties": {"row": _PLACE, "column": _PLACE},
            },
        },
        "items": _CELLS | {"minItems": 0},
    },
)
_ASKED = {"question": _TEXT, "questions": _list_of(_TEXT), "previous": _PREVIOUS}
_INSTANCE = _one_of("question", "questions") | _schema(["table"], table=_TABLE, **_ASKED)
_WORDS = {"query": _TEXT, "question": _TEXT}
_QUERY = _one_of("query", "question") | _schema(["table"], table=_TABLE, **_WORDS)
_QUERIES = {"oneOf": [_QUERY, _list_of(_QUERY)]}
_ANYTHING = _of("object", "null", description="is not read")


def _nullable(schema: dict[str, Any]) -> dict[str, Any]:
    return schema | {"type": ["object", "null"]}


def _options(limits: Limits) -> dict[str, Any]:
    return {
        "alternatives": _of("integer", "null", minimum=0, maximum=limits.max_alternatives),
        "min_score": _of("number", "null", minimum=0, maximum=1),
    }


def request_schema(limits: Limits) -> dict[str, Any]:
    """What `read_request` takes: KServe's V1 protocol, or the form of Hugging Face's pipelines."""
    options = _options(limits)
    ignored = _nullable(_schema([], **{name: {} for name in OF_PIPELINES}))
    return {
        "oneOf": [
            _schema(["instances"], instances=_list_of(_INSTANCE), **options),
            _schema(["inputs"], inputs=_QUERIES, parameters=ignored, **options),
        ]
    }


def tensors_schema(limits: Limits) -> dict[str, Any]:
    """What `read_tensors` takes: KServe's V2 protocol."""
    size = {"type": "integer", "minimum": 1}
    tensor = _schema(
        ["name", "shape", "datatype", "data"],
        name={"enum": list(TENSORS)},
        shape=_list_of(size, maxItems=1),
        datatype={"const": "BYTES"},
        data=_list_of(_TEXT),
        parameters=_ANYTHING,
    )
    each = [{"contains": {"properties": {"name": {"const": name}}}} for name in TENSORS]
    output = _schema(["name"], name={"enum": list(OUTPUTS)}, parameters=_ANYTHING)
    told = "the outputs to reply, each once; all of them if there are none"
    return _schema(
        ["inputs"],
        id=_of("string", "null"),
        inputs={"type": "array", "maxItems": len(TENSORS), "items": tensor, "allOf": each},
        outputs=_of("array", "null", items=output, description=told),
        parameters=_nullable(_schema([], **_options(limits))),
    )


_STRING, _NUMBER, _SCORE = {"type": "string"}, _of("number", "null"), {"type": "number"}
_CELL = _all_of(row=_PLACE, column=_PLACE, text=_STRING, score=_SCORE)
_ANSWER = {
    "answer": _STRING,
    "items": {"type": "array", "items": _STRING},
    "cells": {"type": "array", "items": _CELL},
    "aggregation": {"enum": list(AGGREGATIONS)},
    "value": _NUMBER,
    "number": _NUMBER,
    "class_index": _of("integer", "null"),
    "score": _SCORE,
}
_OTHER = _schema(list(_ANSWER), **_ANSWER, note=_STRING)
_OF_TABLE = {
    "answered": {"type": "boolean"},
    "confidence": {"enum": list(get_args(Confidence))},
    "rows_dropped": {"type": "integer"},
    "alternatives": {"type": "array", "items": _OTHER},
    "assumed": {"type": "array", "items": _STRING},
}
_PREDICTION = _schema(
    [*_ANSWER, *_OF_TABLE],
    **_ANSWER,
    **_OF_TABLE,
    note=_STRING,
)
_OF_PIPELINE = _all_of(
    answer=_STRING,
    coordinates={"type": "array", "items": {"type": "array", "items": _PLACE}},
    cells={"type": "array", "items": _STRING},
    aggregator={"enum": list(AGGREGATIONS)},
    score=_SCORE,
)
# What answers a request: predictions, or for Hugging Face's form one answer or a list.
REPLY_SCHEMA = {
    "oneOf": [
        _all_of(predictions=_list_of({"oneOf": [_PREDICTION, _list_of(_PREDICTION)]})),
        _OF_PIPELINE,
        _list_of(_OF_PIPELINE),
    ]
}
TENSORS_REPLY_SCHEMA = _all_of(
    model_name=_STRING,
    id=_STRING,
    outputs=_list_of(
        _all_of(
            name={"enum": list(OUTPUTS)},
            shape=_list_of(_PLACE, maxItems=1),
            datatype={"enum": sorted(set(OUTPUTS.values()))},
            data={"type": "array", "items": _of("string", "number")},
        )
    ),
)
