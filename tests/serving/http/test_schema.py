"""The OpenAPI document says what the server takes and replies."""

import copy
import json
from collections.abc import Iterator
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from mate_tf.answers.answer import Answer, SelectedCell
from mate_tf.serving.http import Limits, RefusedError, schema
from mate_tf.serving.http.app import Service, make_app
from tests.serving.http.test_requests import JSON, instance, read, tensors
from tests.small import cases

jsonschema = pytest.importorskip("jsonschema", reason="the extra mcp is not installed")
LIMITS = Limits()
_APP: Any = make_app(Service("a", LIMITS), print).app
DOCUMENT = _APP.openapi()
# Reasons that no schema tells: of lengths that must agree, keys of which there is one, the texts.
BEYOND_SCHEMAS = {"ragged", "not_csv", "not_json", "key_twice", "number_too_large", "missing"}
BEYOND_SCHEMAS |= {"wrong_input", "no_table"}
SENTENCES = ("alternatives, got", "of the shape", "the shape [", "alone cannot come by name")
TABLE = {"header": ["b", "c"], "rows": [["d", 1]]}
COLUMNS = {"header": ["c"], "rows": [1], "b": [None]}
CELLS = [{"row": 0, "column": 1, "score": 0.5}]
REQUESTS: list[Any] = [
    {"instances": [instance() | {"previous": {"cells": CELLS, "items": ["d"]}, "table": TABLE}]},
    {"instances": [{"questions": ["a", "e"], "table": COLUMNS}], "alternatives": 10},
    {"instances": [instance() | {"table": "b\nc", "previous": None}], "min_score": 0.5},
    {"instances": [instance()], "signature_name": "x", "model_name": "y", "model_version": "1"},
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
FORMS = (("/v1/models/{model_name}:predict", REQUESTS), ("/v2/models/{model_name}/infer", TENSORS))
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


def places(parent: Any) -> Iterator[tuple[Any, Any]]:
    """Each place in a document: its parent, and its key there."""
    for key, value in list(parent.items() if isinstance(parent, dict) else enumerate(parent)):
        yield parent, key
        if isinstance(value, dict | list):
            yield from places(value)


def mutated(document: Any, data: st.DataObject) -> Any:
    """The document with something else at some place, without it, or with one key more."""
    document = {"": copy.deepcopy(document)}
    parent, key = data.draw(st.sampled_from(list(places(document))))
    change = data.draw(st.integers(0, 5))
    if change == 0 and key != "":
        del parent[key]
    elif change == 1 and isinstance(parent[key], dict):
        parent[key][data.draw(KEYS)] = data.draw(VALUES)
    elif change == 2 and isinstance(parent[key], list):
        parent[key].append(data.draw(VALUES | st.sampled_from(parent[key] or [1])))
    elif isinstance(parent[key], int | float):
        parent[key] = data.draw(NUMBERS)
    else:
        parent[key] = data.draw(VALUES)
    return document[""]


def is_valid(document: Any, described: dict[str, Any]) -> bool:
    """Whether a document is as the content of a path's request or reply is described."""
    (content,) = described["content"].values()
    whole = content["schema"] | {"components": DOCUMENT["components"]}
    return jsonschema.Draft202012Validator(whole).is_valid(document)


def check(document: Any, path: str) -> bool:
    """Whether the server takes a document; its schema takes no less, and no more that it can."""
    sent = json.dumps(document)
    valid = is_valid(json.loads(sent), DOCUMENT["paths"][path]["post"]["requestBody"])
    try:
        read(sent.encode(), LIMITS, is_of_tensors="infer" in path)
    except RefusedError as refused:
        in_text = refused.where.startswith(("table[", "question["))  # JSON in a tensor of text
        in_limits = refused.status == 413 or refused.code in BEYOND_SCHEMAS
        in_words = any(words in str(refused) for words in SENTENCES)
        is_beyond = in_text or in_limits or in_words or "previous.cells" in refused.where
        assert not valid or is_beyond or "previous.alternatives" in refused.where, refused.body
        return False
    assert valid
    return True


@cases("path, documents", *FORMS, ids=["v1", "v2"])
@settings(max_examples=500)
@given(st.data(), st.integers(0, 2))
def test_a_schema_takes_what_the_server_takes(path, documents, data, number):
    document = data.draw(st.sampled_from(documents))
    for _ in range(number):
        document = mutated(document, data)
    check(document, path)


EMPTY: tuple[Any, ...] = (None, {}, [])
V1, V2 = (path for path, _ in FORMS)


@cases(
    "path, document, key, right, wrong",
    (V1, REQUESTS[1], "alternatives", (None, 0, 10, 1.0), (11, -1, 1.5, "1", True)),
    (V1, REQUESTS[1], "min_score", (None, 0, 1), (1.01, -0.1, "1", False)),
    (V1, REQUESTS[1], "signature_name", (None, "", "x"), (0, {}, [])),
    (V1, REQUESTS[4], "parameters", (None, {}, {"x": 1}), (0, [])),
    (V2, TENSORS[0], "parameters", (None, {}, {"binary_data_output": True}), (0, [], {"x": 1})),
    (V2, TENSORS[0], "outputs", (None, []), ({}, ["score"], [{"name": "x"}])),
    (V2, TENSORS[0], "id", (None, "", "x"), (7, {}, [])),
    (V2, TENSORS[0], "inputs", (), ([], TENSORS[0]["inputs"][:1], TENSORS[0]["inputs"] * 2)),
    (V1, instance(), "previous", (None, {}, {"cells": CELLS[:0]}), ([], {"cells": None})),
    (V1, instance(), "previous", ({"items": [1, None]},), ({"items": [[]]}, {"cells": [{}]})),
    (V1, instance(), "table", ("a\nb", COLUMNS, TABLE, {"": ["a"]}), (*EMPTY, "", {"a": []})),
    (V1, instance(), "table", ([["a"], ["b"]], [{"a": 1}], {"a": "b"}), ([1], [[]])),
    (V1, instance(), "table", (), ({"header": ["a"], "b": 1}, {"header": ["a"], "rows": ["a"]})),
    (V1, instance(), "question", ("a\n", ["a", "b"]), (None, "", " ", "\u2003", 1, [], [1])),
)
def test_at_the_edges_the_schemas_take_what_the_server_takes(path, document, key, right, wrong):
    for number, value in enumerate((*right, *wrong)):
        changed: Any = document | {key: value}
        if document == instance():
            changed = {"instances": [changed]}
        assert check(changed, path) == (number < len(right)), value


@cases(
    "answer",
    Answer(("c",), (SelectedCell(0, 0, "c", 0.9),), score=0.5, alternatives=(Answer(("d",)),)),
    Answer(("2",), (), "COUNT", 2.0, 0.25, 2.0, note="n", confidence="probably", assumed=("s",)),
)
def test_replies_are_as_the_document_says(answer):
    for path, documents in FORMS:
        for document in documents:
            assert check(document, path)
            sent = json.dumps(document).encode()
            request = read(sent, LIMITS, is_of_tensors=path == V2)
            reply = json.loads(json.dumps(request.reply([answer] * len(request.pairs))))
            described = DOCUMENT["paths"][path]["post"]["responses"]["200"]
            assert is_valid(reply, described)
            assert not is_valid(reply | {"x": 1} if isinstance(reply, dict) else [reply], described)


def test_the_document_names_its_parts():
    names = {"Question", "Table", "Answer", "Cell", "PredictRequest", "PredictReply"}
    assert names < DOCUMENT["components"]["schemas"].keys()
    described = [one for path in DOCUMENT["paths"].values() for one in path.values()]
    ids = [one["operationId"] for one in described]
    assert {"predict", "infer", "live", "ready"} < set(ids)
    assert len(set(ids)) == len(ids) and max(map(len, ids)) <= 20
    for one in described:
        refusal = one["responses"]["4XX"]["content"]["application/json"]["schema"]
        assert refusal == {"$ref": "#/components/schemas/Refusal"}
    assert schema.Table.model_json_schema()["required"] == ["header", "rows"]
