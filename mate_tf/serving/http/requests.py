"""Requests: their bodies (JSON, read stricter than usual), what they ask, and the shape of replies.

A body may be packed by gzip, and may have binary tensors behind its JSON.
"""

import collections
import dataclasses
import itertools
import json
import math
import re
import struct
import zlib
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from pydantic import TypeAdapter

from mate_tf.answers.answer import Answer, apply_min_score
from mate_tf.reading.files import kind_of_text
from mate_tf.serving.http import Limits, RefusedError, schema
from mate_tf.serving.http.schema import OUTPUTS, Number, validated
from mate_tf.tables.table import Question, Table

JSON = "application/json"
_KINDS = (JSON, "application/x-www-form-urlencoded")  # the latter is curl's for --data
_BINARY = "application/octet-stream"  # of bodies with binary tensors
ENCODINGS = ("gzip", "identity")
_SMALL = 32 * 1024  # bytes; the largest body takes seconds to read, and no small one waits
_HALF_A_PAIR = re.compile(rb"\\u[dD][89a-fA-F]")  # perhaps of surrogates
MODEL_VERSION = "1"  # a server has one model
_PREDICT: TypeAdapter[Any] = TypeAdapter(schema.PredictRequest)
_PIPELINE: TypeAdapter[Any] = TypeAdapter(schema.PipelineRequest)
_INFER = TypeAdapter(schema.InferRequest)
_TABLE: TypeAdapter[Any] = TypeAdapter(schema.AnyTable)
_TEXT: TypeAdapter[str] = TypeAdapter(schema.QuestionText)


class Body(NamedTuple):
    """A body that is not read yet."""

    content: bytes
    is_packed: bool = False
    json_size: int | None = None  # bytes of JSON before binary tensors; None for JSON alone

    @classmethod
    def of(cls, content: bytes, headers: Mapping[str, str], may_be_binary: bool) -> "Body":
        """A body by its headers; RefusedError with status 415 if they say that it is no JSON."""
        size = headers.get("inference-header-content-length") if may_be_binary else None
        kind = headers.get("content-type", JSON).partition(";")[0].strip().lower()
        if kind not in _KINDS and (size is None or kind != _BINARY):
            raise RefusedError(
                "not_json", f"expected {JSON} as content-type, got {kind!r}", "", 415
            )
        encoding = headers.get("content-encoding", "identity").strip().lower()
        if encoding not in ENCODINGS:
            message = f"expected {' or '.join(ENCODINGS)} as content-encoding, got {encoding!r}"
            raise RefusedError("not_gzip", message, "", 415)
        if size is not None and not re.fullmatch("[0-9]{1,18}", size):
            message = f"expected a size as inference-header-content-length, got {size!r}"
            raise RefusedError("wrong_binary", message)
        return cls(content, encoding == "gzip", None if size is None else int(size))

    @property
    def is_small(self) -> bool:
        """Whether it is read in no time."""
        return len(self.content) <= _SMALL and not self.is_packed

    def read(self, limits: Limits) -> Any:
        """The JSON value, with a `Number` for each number that is not whole.

        Raises:
            RefusedError: if it is no JSON, has a key twice or a number beyond 64 bits, is too
                large, or has binary tensors that are not as it says.
        """
        content = _unpacked(self.content, limits.max_body_bytes) if self.is_packed else self.content
        document = read_json(content[: self.json_size])
        if self.json_size is not None:
            _read_tensors(document, content[self.json_size :])
        return document


def read_json(content: bytes, where: str = "") -> Any:
    """The JSON value of bytes at a place of a request; values and errors as of `Body.read`."""
    try:
        document = _DECODER.decode(content.decode("utf-8-sig"))
        if _HALF_A_PAIR.search(content):
            json.dumps(document, ensure_ascii=False).encode()
        return document
    except RefusedError as refused:
        refused.where = where
        raise
    except (ValueError, RecursionError) as error:
        raise RefusedError("not_json", f"expected JSON in UTF-8: {error}", where) from None


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


def _read_tensors(document: Any, content: bytes) -> None:
    """Gives each tensor with a `binary_data_size` its texts as `data`, from the bytes behind it.

    Anything else about the document is checked where its schema is.
    """
    inputs = document.get("inputs") if isinstance(document, dict) else None
    for index, tensor in enumerate(inputs if isinstance(inputs, list) else ()):
        parameters = tensor.get("parameters") if isinstance(tensor, dict) else None
        size = parameters.get("binary_data_size") if isinstance(parameters, dict) else None
        if size is None:
            continue
        if type(size) is not int or not 0 <= size <= len(content):
            raise RefusedError(
                "wrong_binary",
                f"expected a binary_data_size from 0 to the {len(content)} bytes that are left",
                f"inputs[{index}]",
            )
        tensor["data"] = _texts(content[:size], f"inputs[{index}]")
        content = content[size:]
    if content:
        message = f"expected all bytes to be of tensors, got {len(content)} more"
        raise RefusedError("wrong_binary", message)


def _texts(content: bytes, where: str) -> list[str]:
    """The elements of a tensor of BYTES: each has its length before it, of four bytes."""
    texts, start = [], 0
    try:
        while start < len(content):
            (size,) = struct.unpack_from("<I", content, start)
            start += 4 + size
            texts.append(content[start - size : start].decode())
        if start > len(content):
            raise ValueError("the last one is cut off")
    except (struct.error, ValueError) as error:
        message = f"expected texts in UTF-8, each after its length: {error}"
        raise RefusedError("wrong_binary", message, where) from None
    return texts


def _whole(text: str) -> int:
    # Longer ones are not computed: that takes long.
    if len(text) > 20 or not -(2**63) <= int(text) < 2**64:
        raise RefusedError("number_too_large", f"{_WIDE}, got {text:.40}; send it as text")
    return int(text)


def _number(text: str) -> Number:
    number = Number(text)
    number.text = text
    if math.isinf(number):
        raise RefusedError("number_too_large", f"{_WIDE}, got {text:.40}; send it as text")
    return number


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    unique = dict(pairs)
    if len(unique) < len(pairs):
        (key, _), *_ = collections.Counter(key for key, _ in pairs).most_common(1)
        raise RefusedError("key_twice", f"expected each key once, got {key!r:.80} twice")
    return unique


_WIDE = "expected numbers of 64 bits"
_DECODER = json.JSONDecoder(
    parse_int=_whole, parse_float=_number, parse_constant=_no_constant, object_pairs_hook=_unique
)


class Request(NamedTuple):
    """A request, read."""

    pairs: list[tuple[Table, Question]]
    locations: list[str]  # of each pair in the request
    options: schema.Options
    reply: Callable[[list[Answer]], Any]  # makes the body of the reply, for JSON

    def finished(self, answer: Answer, alternatives: int, min_score: float) -> Answer:
        """An answer with as many alternatives, and if it is good enough; with the defaults."""
        asked, least = self.options.alternatives, self.options.min_score
        others = answer.alternatives[: alternatives if asked is None else asked]
        answer = dataclasses.replace(answer, alternatives=others)
        return apply_min_score(answer, min_score if least is None else least)


def read_request(body: Body, limits: Limits, model_name: str = "") -> Request:
    """A request in KServe's V1 protocol, or in the form of Hugging Face's pipelines.

    Raises:
        RefusedError: with status 400 for anything else, with 413 for what is beyond a limit.
    """
    document = body.read(limits)
    is_pipeline = isinstance(document, dict) and "inputs" in document
    request = validated(_PIPELINE if is_pipeline else _PREDICT, document, limits)
    where = "inputs" if is_pipeline else "instances"
    given = getattr(request, where)
    parts = given if isinstance(given, list) else [given]
    # How many questions each part has; None for one alone.
    sizes = [None if isinstance(one.texts, str) else len(one.texts) for one in parts]
    _check_number(sum(size or 1 for size in sizes), where, limits)
    pairs, locations = [], []
    for index, (one, size) in enumerate(zip(parts, sizes, strict=True)):
        place = f"{where}[{index}]" if parts is given else where
        for number, text in enumerate([one.texts] if size is None else one.texts):
            pairs.append((one.table, one.asked(text)))
            locations.append(place if size is None else f"{place}.{one.name_of_texts}[{number}]")

    def reply(answers: list[Answer]) -> Any:
        replies = map(_pipeline_answer if is_pipeline else Answer.to_dict, answers)
        values = [next(replies) if n is None else [*itertools.islice(replies, n)] for n in sizes]
        if is_pipeline:
            return values if parts is given else values[0]
        return {"predictions": values}

    return Request(pairs, locations, request, reply)


def _pipeline_answer(answer: Answer) -> dict[str, Any]:
    return {
        "answer": answer.text,
        "coordinates": [list(pair) for pair in answer.coordinates],
        "cells": [cell.text for cell in answer.cells],
        "aggregator": answer.aggregation,
        "score": answer.score,
    }


def read_tensors(body: Body, limits: Limits, model_name: str) -> Request:
    """A request in KServe's V2 protocol: the tensors `question` and `table`.

    A table is JSON or CSV text, and one serves for all questions. The reply has the outputs that
    are named, or all. Errors are as of `read_request`.
    """
    request = validated(_INFER, body.read(limits), limits)
    data = {tensor.name: tensor.data for tensor in request.inputs}
    _check_number(len(data["question"]), "inputs", limits)
    locations = [f"question[{index}]" for index in range(len(data["question"]))]
    questions = [
        Question(validated(_TEXT, text, limits, where))
        for text, where in zip(data["question"], locations, strict=True)
    ]
    tables = [
        _read_table(text, f"table[{index}]", limits) for index, text in enumerate(data["table"])
    ]
    pairs = [*zip(tables * (len(questions) // len(tables)), questions, strict=True)]
    names: list[str] = list(dict.fromkeys(one.name for one in request.outputs or ()))

    def reply(answers: list[Answer]) -> Any:
        rows = [(one.text, one.score, json.dumps(one.to_dict())) for one in answers]
        values = dict(zip(OUTPUTS, zip(*rows, strict=True), strict=True))
        outputs = [
            {"name": name, "shape": [len(rows)], "datatype": OUTPUTS[name], "data": values[name]}
            for name in names or OUTPUTS
        ]
        ids = {"model_name": model_name, "model_version": MODEL_VERSION, "id": request.id or ""}
        return ids | {"outputs": outputs}

    return Request(pairs, locations, request.parameters or schema.Options(), reply)


def _check_number(number: int, where: str, limits: Limits) -> None:
    if number > limits.max_questions:
        message = f"expected at most {limits.max_questions} questions, got {number}"
        raise RefusedError("too_many_questions", message, where)


def _read_table(text: str, where: str, limits: Limits) -> Table:
    """The table of a text: JSON, CSV or another kind."""
    is_json = kind_of_text(text) == "json"
    return validated(_TABLE, read_json(text.encode(), where) if is_json else text, limits, where)
