"""What the OpenAPI document says of requests and replies is what the code does."""

import copy
import json
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from mate_tf.answers.answer import Answer, SelectedCell
from mate_tf.serving.http import Limits
from mate_tf.serving.http.limits import RefusedError
from mate_tf.serving.http.requests import read_request, read_tensors
from mate_tf.serving.http.schema import (
    REPLY_SCHEMA,
    TENSORS_REPLY_SCHEMA,
    request_schema,
    tensors_schema,
)
from tests.serving.http.test_requests import JSON, instance, tensors
from tests.serving.server_process import NAME
from tests.small import cases

jsonschema = pytest.importorskip("jsonschema", reason="the extra mcp is not installed")
LIMITS = Limits()
# Reasons that no schema tells: of lengths that must agree, of the texts themselves.
BEYOND_SCHEMAS = {"ragged", "not_csv", "not_json", "key_twice", "number_too_large"}
TABLE = {"header": ["b", "c"], "rows": [["d", 1]]}
COLUMNS = {"header": ["c"], "rows": [1], "b": [None]}
CELLS = [{"row": 0, "column": 1, "score": 0.5}]
REQUESTS: list[Any] = [
    {"instances": [instance() | {"previous": {"cells": CELLS, "items": ["d"]}, "table": TABLE}]},
    {"instances": [{"questions": ["a", "e"], "table": COLUMNS}], "alternatives": 10},
    {"instances": [instance() | {"table": "b\nc", "previous": None}], "min_score": 0.5},
    {"inputs": {"query": "a", "table": COLUMNS}, "parameters": {"padding": "x"}},
    {"inputs": [{"question": "a", "table": TABLE}], "parameters": None, "alternatives": None},
]
TENSORS: list[Any] = [
    json.loads(tensors()) | {"id": "7", "outputs": [{"name": "score", "parameters": {}}]},
    json.loads(tensors(("a", "e"), (json.dumps(COLUMNS), "b\nc"))) | {"id": None, "outputs": []},
    json.loads(tensors()) | {"parameters": {"alternatives": 1, "min_score": None}},
]
for one in TENSORS[1]["inputs"]:
    one["parameters"] = {"content_type": "str"}
KEYS = st.sampled_from(
    "alternatives cells header id inputs instances items min_score name outputs parameters "
    "previous query question questions rows table x".split()
)
NUMBERS = st.sampled_from([0, 1, 2, 10, 11, 1.5, -1, 0.0, None, "1", True])
VALUES = (
    NUMBERS
    | JSON
    | st.sampled_from(
        ["", " ", "a", "score", "BYTES", [], ["a"], [["a"]], [1], {}]
        + [TABLE, COLUMNS, {"header": ["a"]}, {"rows": [["a"]]}, {"header": ["a"], "rows": ["a"]}]
        + [{"b": []}, {"b": ["c", []]}, [CELLS[0]], {"cells": [{"row": 0}]}, {"items": [{}]}]
        + [{"name": "prediction"}, {"name": "other"}, {"padding": 1}]
    )
)
ANSWERS = [
    Answer(("c",), (SelectedCell(0, 0, "c", 0.9),), score=0.5, alternatives=(Answer(("d",)),)),
    Answer(("2",), (), "COUNT", 2.0, 0.25, 2.0, note="n", confidence="probably", assumed=("s",)),
]


def read_v1(sent: bytes) -> Any:
    return read_request(sent, LIMITS)


def read_v2(sent: bytes) -> Any:
    return read_tensors(sent, LIMITS, "name", "identity")


def places(parent: Any) -> Iterator[tuple[Any, Any]]:
    """Each place in a document: what it is in, and its key there."""
    for key, value in list(parent.items() if isinstance(parent, dict) else enumerate(parent)):
        yield parent, key
        if isinstance(value, dict | list):
            yield from places(value)


def mutated(document: Any, data: st.DataObject) -> Any:
    """The document with something else at some place, without it, or with one key more."""
    document = {"": copy.deepcopy(document)}
    parent, key = data.draw(st.sampled_from(list(places(document))))
    what = data.draw(st.integers(0, 5))
    if what == 0 and key != "":
        del parent[key]
    elif what == 1 and isinstance(parent[key], dict):
        parent[key][data.draw(KEYS)] = data.draw(VALUES)
    elif what == 2 and isinstance(parent[key], list):
        parent[key].append(data.draw(VALUES | st.sampled_from(parent[key] or [1])))
    elif isinstance(parent[key], int | float):
        parent[key] = data.draw(NUMBERS)
    else:
        parent[key] = data.draw(VALUES)
    return document[""]


def is_valid(document: Any, schema: dict[str, Any]) -> bool:
    return jsonschema.Draft202012Validator(schema).is_valid(document)


def check(document: Any, schema: dict[str, Any], read: Callable[[bytes], Any]) -> None:
    """What the schema takes the server takes, but for what it cannot say, and nothing more."""
    sent = json.dumps(document)
    valid = is_valid(json.loads(sent), schema)
    try:
        read(sent.encode())
    except RefusedError as refused:
        in_text = refused.where.startswith(("table[", "question["))  # JSON in a tensor of text
        in_limits = refused.status == 413 or refused.code in BEYOND_SCHEMAS
        of_sizes = "previous.cells" in refused.where or "of the shape" in str(refused)
        assert not valid or in_text or in_limits or of_sizes, refused.body
    else:
        assert valid


FORMS = (
    (REQUESTS, request_schema(LIMITS), read_v1),
    (TENSORS, tensors_schema(LIMITS), read_v2),
)


@cases("documents, schema, read", *FORMS, ids=["v1", "v2"])
@settings(max_examples=500)
@given(st.data(), st.integers(0, 2))
def test_a_schema_takes_what_the_server_takes(documents, schema, read, data, number):
    document = data.draw(st.sampled_from(documents))
    for _ in range(number):
        document = mutated(document, data)
    check(document, schema, read)


EMPTY: tuple[Any, ...] = (None, {}, [])


@cases(
    "document, change",
    *((REQUESTS[1], {"alternatives": number}) for number in (None, 0, 10, 11, -1, 1.0, 1.5, "1")),
    *((REQUESTS[1], {"min_score": number}) for number in (None, 0, 1, 1.01, "1", False)),
    *((REQUESTS[3], {"parameters": value}) for value in (*EMPTY, 0, {"x": 1}, {"model": 0})),
    *((TENSORS[0], {"parameters": value}) for value in (*EMPTY, 0, {"alternatives": 11})),
    *((TENSORS[0], {"outputs": value}) for value in (*EMPTY, ["score"], [{"name": "x"}])),
    *((TENSORS[0], {"id": value}) for value in (*EMPTY, "", 7)),
    *((TENSORS[0], {"inputs": TENSORS[0]["inputs"][:number]}) for number in (0, 1)),
    (TENSORS[0], {"inputs": TENSORS[0]["inputs"] * 2}),
    *((TENSORS[0], {"inputs": [TENSORS[0]["inputs"][place]] * 2}) for place in (0, 1)),
)
def test_at_the_edges_the_schemas_take_what_the_server_takes(document, change):
    ((schema, read),) = (form for documents, *form in FORMS if document in documents)
    check(document | change, schema, read)


@cases(
    "key, value",
    *(("previous", value) for value in (*EMPTY, {"cells": None}, {"items": [[]]})),
    *(("previous", {"cells": [{"row": row, "column": 0}]}) for row in (0, -1, 0.5, None, "0")),
    *(("table", {"header": ["a"], **columns}) for columns in ({}, {"b": ["c"]}, {"rows": ["a"]})),
    *(("table", {"rows": rows, "b": ["c"]}) for rows in (["a"], [["a"]], [], "a")),
    *(("table", value) for value in (*EMPTY, "", "a", {"": ["a"]}, {"a": "b"})),
    *(("question", value) for value in (None, "", " ", "\u2003", 1, ["a"])),
)
def test_of_an_instance_the_schema_takes_what_the_server_takes(key, value):
    check({"instances": [instance() | {key: value}]}, request_schema(LIMITS), read_v1)
    if key == "table":
        inputs = {"query": "a", "table": value}
        check({"inputs": inputs}, request_schema(LIMITS), read_v1)


def test_each_request_above_is_right():
    for documents, schema, _ in FORMS:
        assert all(is_valid(document, schema) for document in documents)


@pytest.mark.parametrize("answer", ANSWERS)
def test_replies_are_as_their_schemas_say(answer):
    for documents, read, schema in (
        (REQUESTS, read_v1, REPLY_SCHEMA),
        (TENSORS, read_v2, TENSORS_REPLY_SCHEMA),
    ):
        for document in documents:
            request = read(json.dumps(document).encode())
            reply = json.loads(json.dumps(request.reply([answer] * len(request.pairs))))
            assert is_valid(reply, schema)
            assert not is_valid(reply | {"x": 1} if isinstance(reply, dict) else [reply], schema)


def test_what_a_server_takes_and_replies_is_what_its_document_says(server):
    paths = httpx.get(f"{server.url}/openapi.json").json()["paths"]
    for documents, path in (
        (REQUESTS, "/v1/models/{model_name}:predict"),
        (TENSORS, "/v2/models/{model_name}/infer"),
    ):
        told = paths[path]["post"]
        names = [parameter["name"] for parameter in told["parameters"]]
        assert names == ["model_name", "content-encoding"]
        of_request, of_reply, of_refusal = (
            one["content"]["application/json"]["schema"]
            for one in (told["requestBody"], told["responses"]["200"], told["responses"]["4XX"])
        )
        assert of_refusal == {"$ref": "#/components/schemas/Refusal"}
        for document in documents:
            assert is_valid(document, of_request)
            url = server.url + path.format(model_name=NAME)
            reply = httpx.post(url, json=document, timeout=60)
            assert reply.status_code == 200
            assert is_valid(reply.json(), of_reply)
        assert not is_valid({}, of_request) and not is_valid({}, of_reply)
