"""What a request asks, without a server."""

import dataclasses
import gzip
import json
import re
import struct
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given

from mate_tf.answers.answer import Answer, SelectedCell
from mate_tf.answers.views import follow_up
from mate_tf.serving.http import Limits, RefusedError
from mate_tf.serving.http.requests import Body, Request, read_request, read_tensors
from mate_tf.tables.table import Question, Table
from tests.small import cases

INSTANCES = "instances"
TABLE = f"{INSTANCES}[0].table"
LIMITS = Limits(max_questions=2, max_cells=6)
LONG_CELL = "c" * 10_001
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=8,
)
# No lone surrogates, which UTF-8 cannot hold.
TEXT = st.text(st.characters(codec="utf-8"), max_size=5)
CELL = TEXT | st.none() | st.booleans() | st.integers(-9999, 99999)


def instance(question: Any = "a", header: Any = ("b",), rows: Any = (("c",),)) -> dict:
    return {"question": question, "table": {"header": header, "rows": rows}}


def body(*instances: Any, **more: Any) -> bytes:
    return json.dumps({"instances": instances} | more).encode()


def read(
    data: bytes, limits: Limits = LIMITS, is_of_tensors: bool = False, **headers: Any
) -> Request:
    """The request of a body with these headers, whose names are written with underscores."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    content = Body.of(data, named, is_of_tensors)
    return (read_tensors if is_of_tensors else read_request)(content, limits, "name")


def refusal(data: bytes, **options: Any) -> RefusedError:
    with pytest.raises(RefusedError, match=r"expected|got") as caught:
        read(data, **options)
    return caught.value


def tensors(questions: Any = ("a",), tables: Any = ("b\nc",), **more: Any) -> bytes:
    inputs = [
        {"name": name, "shape": [len(data)], "datatype": "BYTES", "data": data}
        for name, data in (("question", questions), ("table", tables))
    ]
    return json.dumps({"inputs": inputs} | more).encode()


@given(st.data())
def test_what_a_request_says_is_what_is_asked(data):
    width = data.draw(st.integers(1, 3))
    rows = data.draw(st.lists(st.lists(CELL, min_size=width, max_size=width), min_size=1))
    rows = rows[: LIMITS.max_cells // width]
    header = data.draw(st.lists(CELL, min_size=width, max_size=width))
    question = data.draw(st.text(st.characters(codec="utf-8"), max_size=8).filter(str.strip))
    asked = read(body(instance(question, header, rows), instance()))
    assert asked.pairs == [
        (Table.from_rows(rows, header=header), Question(question)),
        (Table.from_rows([["c"]], header=["b"]), Question("a")),
    ]


ANSWERS = [
    Answer(("c",), (SelectedCell(0, 0, "c", 0.9),), score=0.5, alternatives=(Answer(("d",)),)),
    Answer(("d", "e"), score=0.25),
]


@cases(
    "table",
    {"header": ["a", "b"], "rows": [["c", 1.50], ["d", None]]},
    {"a": ["c", "d"], "b": [1.50, None]},
    [{"a": "c", "b": 1.50}, {"a": "d"}],
    [["a", "b"], ["c", 1.50], ["d", None]],
    {"columns": ["a", "b"], "index": [0, 1], "data": [["c", 1.50], ["d", None]]},
    {"headers": ["a", "b"], "data": [["c", 1.50], ["d", None]], "metadata": None},
    {"a": {"0": "c", "1": "d"}, "b": {"0": 1.50, "1": None}},
    "a,b\nc,1.50\nd,\n",
    "| a | b |\n|---|---|\n| c | 1.50 |\n| d | |\n",
)
@pytest.mark.parametrize("name", ["query", "question"])
def test_tables_come_in_any_shape_or_as_text_and_numbers_keep_their_text(table, name):
    expected = (Table(("a", "b"), (("c", "1.50"), ("d", ""))), Question("a"))

    def sent(document):
        return re.sub(r"\b1\.5\b", "1.50", json.dumps(document)).encode()

    instances = sent({"instances": [{"table": table, "question": "a"}]})
    assert read(instances).pairs == [expected]
    assert read(b"\xef\xbb\xbf" + instances).pairs == [expected]  # a byte order mark
    asked = {name: "a", "table": table}
    for inputs in (asked, [asked, asked]):
        request = read(sent({"inputs": inputs}))
        assert request.pairs == [expected] * (2 if isinstance(inputs, list) else 1)
    one = {"answer": "c", "coordinates": [[0, 0]], "cells": ["c"], "aggregator": "NONE"}
    assert request.reply(ANSWERS)[0] == one | {"score": 0.5}


def test_columns_may_be_named_header_and_rows_beside_others():
    for columns in ({"header": ["a"], "b": [1]}, {"rows": ["a"], "header": ["b"], "c": [1]}):
        (pair,) = read(body(instance() | {"table": columns}), Limits()).pairs
        assert pair[0].header == tuple(columns)
        assert pair[0].rows == (tuple(str(cells[0]) for cells in columns.values()),)


def test_several_questions_on_a_table_get_a_list():
    asked = {"questions": ["a", "b"], "table": {"b": ["c"]}}
    request = read(body(asked))
    assert [question.text for _, question in request.pairs] == ["a", "b"]
    assert request.locations == ["instances[0].questions[0]", "instances[0].questions[1]"]
    told = [answer.to_dict() for answer in ANSWERS]
    assert request.reply(ANSWERS) == {"predictions": [told]}
    request = read(body(instance(), instance()))
    assert request.reply(ANSWERS) == {"predictions": told}
    request = read(body(instance(["a", "b"])))
    assert request.locations == ["instances[0].question[0]", "instances[0].question[1]"]
    request = read(json.dumps({"inputs": {"query": ["a", "b"], "table": {"b": ["c"]}}}).encode())
    assert request.locations == ["inputs.query[0]", "inputs.query[1]"]
    assert [one["answer"] for one in request.reply(ANSWERS)] == ["c", "d, e"]


def test_a_request_says_how_many_alternatives_and_from_which_score_on():
    request = read(body(instance(), alternatives=0, min_score=0.6))
    found = request.finished(ANSWERS[0], 5, 0.0)
    assert not found.answered and [one.items for one in found.alternatives] == [("c",)]
    found = read(body(instance())).finished(ANSWERS[0], 1, 0.0)
    assert found == ANSWERS[0]


def test_a_question_follows_an_answer():
    one = ANSWERS[0]
    refused = Answer(answered=False, alternatives=(one,))
    for answer in (one, dataclasses.replace(one, confidence="not sure"), refused):
        sent = body(instance() | {"previous": answer.to_dict()})
        (pair,) = read(sent).pairs
        assert pair[1] == follow_up(Question("a"), answer)
        assert pair[1].previous_coordinates == ((0, 0),) and pair[1].previous_answers == ("c",)


def test_a_body_may_be_packed():
    packed = gzip.compress(body(instance()))
    expected = read(body(instance())).pairs
    assert read(packed, content_encoding="gzip").pairs == expected
    for broken in (b"", b"a", packed[:-1], packed + b"a"):
        assert refusal(broken, content_encoding="gzip").code == "not_gzip"
    bomb = gzip.compress(bytes(LIMITS.max_body_bytes + 1))
    assert refusal(bomb, content_encoding="gzip").code == "body_too_large"


def tensors_refusal(sent: bytes, **headers: Any) -> tuple[str, str, str]:
    refused = refusal(sent, is_of_tensors=True, **headers)
    return refused.code, refused.where, str(refused)


def test_tensors_of_text_are_asked_too():
    table = json.dumps(instance()["table"])
    sent = tensors(("a", "b"), (table,), id="7", parameters={"alternatives": 1})
    request = read(sent, is_of_tensors=True)
    expected = [((("c",),), "a"), ((("c",),), "b")]
    assert [(pair.rows, question.text) for pair, question in request.pairs] == expected
    assert request.options.alternatives == 1
    reply = request.reply(ANSWERS)
    assert [reply[key] for key in ("model_name", "model_version", "id")] == ["name", "1", "7"]
    outputs = {output.pop("name"): output for output in reply["outputs"]}
    assert outputs["answer"] == {"shape": [2], "datatype": "BYTES", "data": ("c", "d, e")}
    assert outputs["score"]["data"] == (0.5, 0.25)
    sent = tensors(("a", "b"), outputs=[{"name": "prediction"}, {"name": "score"}])
    reply = read(sent, is_of_tensors=True).reply(ANSWERS)
    assert [output["name"] for output in reply["outputs"]] == ["prediction", "score"]
    assert json.loads(reply["outputs"][0]["data"][0]) == ANSWERS[0].to_dict()


def test_tensors_that_are_wrong_are_refused_at_their_place():
    for (questions, tables), code, where in (
        ((("a", "b"), ("b\nc",) * 3), "ragged", "inputs"),
        ((("a",) * 3, ("b\nc",)), "too_many_questions", "inputs"),
        (((1,), ("b\nc",)), "wrong_type", "inputs[0].data[0]"),
        ((("a",), (1,)), "wrong_type", "inputs[1].data[0]"),
        ((("a", " "), ("b\nc",)), "empty", "question[1]"),
        ((("a",), ('{"b": []}',)), "no_table", "table[0]"),
        ((("a",), ("{",)), "not_json", "table[0]"),
        ((("a",), ('{"b": 1, "b": 2}',)), "key_twice", "table[0]"),
        ((("a",), ('"b',)), "not_csv", "table[0]"),
        ((("a",), ("b\n" + LONG_CELL,)), "too_long", "table[0], row 1"),
    ):
        assert tensors_refusal(tensors(questions, tables))[:2] == (code, where)
    for changed, code in (
        ({"name": "x"}, "wrong_input"),
        ({"name": "table"}, "wrong_input"),
        ({"datatype": "FP32"}, "wrong_type"),
        ({"shape": [2]}, "wrong_type"),
    ):
        document = json.loads(tensors())
        document["inputs"][0] |= changed
        assert tensors_refusal(json.dumps(document).encode())[0] == code
    for more, code, where, message in (
        ({"outputs": [{"name": "x"}]}, "wrong_output", "outputs[0].name", "'prediction', got"),
        ({"outputs": [{"name": {}}]}, "wrong_output", "outputs[0].name", "'score' or"),
        ({"outputs": [{}]}, "missing", "outputs[0]", 'expected "name"'),
        ({"outputs": {}}, "wrong_type", "outputs", "a list, got an object"),
        ({"parameters": []}, "wrong_type", "parameters", "an object, got a list"),
        ({"id": {}}, "wrong_type", "id", "a text, got an object"),
    ):
        found = tensors_refusal(tensors(**more))
        assert found[:2] == (code, where) and message in found[2]


@given(st.lists(TEXT.filter(str.strip), min_size=1, max_size=2))
def test_binary_tensors_are_those_of_the_json_and_broken_ones_are_refused(questions):
    document = json.loads(tensors(questions))
    packed = b"".join(struct.pack("<I", len(one.encode())) + one.encode() for one in questions)
    tensor = document["inputs"][0]
    del tensor["data"]
    tensor["parameters"] = {"binary_data_size": len(packed)}
    size = len(json.dumps(document))
    headers = {"inference_header_content_length": str(size)}
    headers["content_type"] = "application/octet-stream"
    sent = json.dumps(document).encode() + packed
    request = read(sent, is_of_tensors=True, **headers)
    assert request.pairs == read(tensors(questions), is_of_tensors=True).pairs
    for broken in (sent[:-1], sent + b"x", sent[:size] + b"\xff" + sent[size + 1 :]):
        assert tensors_refusal(broken, **headers)[0] == "wrong_binary"
    for header, code in (("x", "wrong_binary"), ("-1", "wrong_binary"), ("3", "not_json")):
        changed = headers | {"inference_header_content_length": header}
        assert tensors_refusal(sent, **changed)[0] == code
    for wrong in (-1, 1.5, "1", True, 10**9):
        tensor["parameters"] = {"binary_data_size": wrong}
        assert tensors_refusal(json.dumps(document).encode())[0] in ("missing", "wrong_binary")


@given(st.binary() | JSON.map(lambda value: json.dumps(value).encode()))
def test_anything_else_is_refused_with_a_reason(data):
    refused = refusal(data)
    assert refused.status == 400
    reply = json.loads(refused.body)
    assert reply["error"] and reply["code"]


def asked(**changes: Any) -> bytes:
    """A body with one instance that has these values."""
    return body(instance() | changes)


def after(row: Any) -> dict[str, Any]:
    """A prediction before, with a cell in this row."""
    return {"cells": [{"row": row, "column": 0}]}


FIRST, PLACE = "instances[0]", "instances[0].previous.cells[0].row"
NOT_JSON = ("not_json", "", "expected JSON in UTF-8")
NAMED = "columns named header and rows alone cannot come by name"


@cases(
    "sent, code, where, message",
    *((sent, *NOT_JSON) for sent in (b"", b'"\\ud800"', b'"\xff"', b"[" * 100_000, b"[NaN]")),
    (b"[]", "wrong_type", "", "expected an object, got a list"),
    (b"{}", "missing", "", 'expected "instances", which is missing'),
    (b'{"instances": 1}', "wrong_type", INSTANCES, "expected a list, got a number"),
    (body(), "empty", INSTANCES, "expected at least 1 element, got 0"),
    (body(instance(), 1), "wrong_type", f"{INSTANCES}[1]", "expected an object, got a number"),
    (asked(x=1), "unknown_key", FIRST, "previous, got 'x'"),
    (b'{"instances": 1, "x": 2}', "unknown_key", "", "instances, got 'x'"),
    (b'{"instances": 1, "instances": 2}', "key_twice", "", "got 'instances' twice"),
    (b'{"instances": 18446744073709551616}', "number_too_large", "", "send it as text"),
    (b'{"instances": -9223372036854775809}', "number_too_large", "", "send it as text"),
    (b'{"instances": 1e400}', "number_too_large", "", "of 64 bits, got 1e400"),
    (body({"table": "b\nc", "questions": None}), "missing", FIRST, '"questions"'),
    (body({"table": {"b": ["c"]}}), "missing", FIRST, '"question" or "questions"'),
    (asked(previous=1), "wrong_type", f"{FIRST}.previous", "an object"),
    (asked(previous=after(1)), "wrong_value", PLACE, "a whole number from 0 to 0"),
    (asked(previous=after(-1)), "wrong_value", PLACE, "at least 0, got -1"),
    (asked(previous=after(0.5)), "wrong_type", PLACE, "whole number"),
    (body(instance(), alternatives=11), "wrong_value", "alternatives", "at most 10"),
    (body(instance(), min_score=2), "wrong_value", "min_score", "at most 1, got 2"),
    (asked(table='a\nb\n"c'), "not_csv", TABLE, "expected delimited text"),
    (asked(table={"a": [1], "b": [1, 2]}), "no_table", TABLE, "got 'a': 1, 'b': 2"),
    (asked(table={"a": [1], "b": 2}), "no_table", TABLE, "expected a list of objects, a list of"),
    (asked(table=[[1] * 4] * 3), "too_many_cells", TABLE, "at most 6 cells, got 12"),
    (asked(table=[["a"], [LONG_CELL]]), "too_long", f"{TABLE}, row 1", "10000 characters"),
    (asked(table="<table><tr><td>a"), "not_csv", TABLE, "got a page of HTML; send its rows"),
    (asked(table={"rows": [[1]]}), "missing", TABLE, 'expected "header"'),
    (asked(table={"header": ["a"], "rows": ["b"]}), "wrong_type", f"{TABLE}.rows[0]", NAMED),
    (asked(table={}), "missing", TABLE, 'expected "header"'),
    (asked(question=3), "wrong_type", f"{FIRST}.question", "expected a text"),
    (asked(question=" "), "empty", f"{FIRST}.question", "expected a question"),
    (body(instance(header="b")), "wrong_type", f"{TABLE}.header", "got a text"),
    (body(instance(rows=[])), "empty", f"{TABLE}.rows", "at least 1 element"),
    (body(instance(rows=[["c"], [1, 2]])), "ragged", f"{TABLE}.rows[1]", "1 cells as in the h"),
    (body(instance(rows=[["c"], [[]]])), "wrong_type", f"{TABLE}.rows[1][0]", "null, got a list"),
    (body(*[instance()] * 3), "too_many_questions", INSTANCES, "at most 2 questions, got 3"),
    (body(instance(header=[1] * 256)), "too_many_columns", f"{TABLE}.rows", "at most 255 col"),
    (body(instance(rows=[["c"]] * 7)), "too_many_cells", f"{TABLE}.rows", "at most 6 cells, got 7"),
    (body(instance(rows=[[LONG_CELL]])), "too_long", f"{TABLE}.rows[0][0]", "at most 10000 char"),
    (body(instance(header=[LONG_CELL])), "too_long", f"{TABLE}.header[0]", "rs, got 10001"),
    (asked(question="a" * 2_001), "too_long", f"{FIRST}.question", "2000 characters, got 2001"),
    (asked(table={LONG_CELL: ["c"]}), "too_long", f"{TABLE}, row 0", "10000 characters"),
    (asked(table={"a": [1] * 7}), "too_many_cells", TABLE, "at most 6 cells, got 7"),
    (asked(table="a\n" * 8), "too_many_cells", TABLE, "at most 6 cells, got 8"),
    (asked(table="a\n" + LONG_CELL), "too_long", f"{TABLE}, row 1", "10000 characters, got 10001"),
    (body({"table": {"a": [1]}, "questions": ["a"] * 3}), "too_many_questions", INSTANCES, "got 3"),
)
def test_what_is_no_request_or_beyond_a_limit_is_refused_with_its_place(sent, code, where, message):
    refused = refusal(sent)
    assert (refused.code, refused.where) == (code, where) and message in str(refused)
    assert refused.status == (413 if code.startswith("too_") else 400)
