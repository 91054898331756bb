"""What a request asks, without a server."""

import dataclasses
import gzip
import json
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given

from mate_tf.answers.answer import Answer, SelectedCell
from mate_tf.answers.follow_ups import follow_up
from mate_tf.serving.http import Limits
from mate_tf.serving.http.limits import RefusedError
from mate_tf.serving.http.requests import read_request, read_tensors
from mate_tf.tables.table import Question, Table
from tests.small import cases

INSTANCES = "instances"
TABLE = f"{INSTANCES}[0].table"
LIMITS = Limits(max_questions=2, max_cells=6, max_cell_characters=5, max_question_characters=8)
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


def body(*instances: Any) -> bytes:
    return json.dumps({"instances": instances}).encode()


def refusal(data: bytes, **options: Any) -> RefusedError:
    with pytest.raises(RefusedError, match=r"expected|got") as caught:
        read_request(data, LIMITS, **options)
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
    rows = [[c[:5] if isinstance(c, str) else c for c in row] for row in rows]
    header = [c[:5] if isinstance(c, str) else c for c in header]
    asked = read_request(body(instance(question, header, rows), instance()), LIMITS)
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
    "a,b\nc,1.50\nd,\n",
)
@pytest.mark.parametrize("name", ["query", "question"])
def test_tables_come_as_rows_columns_or_csv_and_numbers_keep_their_text(table, name):
    expected = (Table(("a", "b"), (("c", "1.50"), ("d", ""))), Question("a"))
    sent = json.dumps({"instances": [{"table": table, "question": "a"}]}).replace("1.5}", "1.50}")
    sent = sent.replace("1.5]", "1.50]").replace("1.5,", "1.50,")
    assert read_request(sent.encode(), LIMITS).pairs == [expected]
    asked = {name: "a", "table": table}
    for inputs in (asked, [asked, asked]):
        sent = json.dumps({"inputs": inputs}).replace("1.5]", "1.50]").replace("1.5,", "1.50,")
        request = read_request(sent.encode(), LIMITS)
        assert request.pairs == [expected] * (2 if isinstance(inputs, list) else 1)
    one = {"answer": "c", "coordinates": [[0, 0]], "cells": ["c"], "aggregator": "NONE"}
    assert request.reply(ANSWERS)[0] == one | {"score": 0.5}


def test_columns_may_be_named_header_and_rows_beside_others():
    for columns in ({"header": ["a"], "b": [1]}, {"rows": ["a"], "header": ["b"], "c": [1]}):
        (pair,) = read_request(body(instance() | {"table": columns}), Limits()).pairs
        assert pair[0].header == tuple(columns)
        assert pair[0].rows == (tuple(str(cells[0]) for cells in columns.values()),)


def test_several_questions_on_a_table_get_a_list():
    asked = {"questions": ["a", "b"], "table": {"b": ["c"]}}
    request = read_request(body(asked), LIMITS)
    assert [question.text for _, question in request.pairs] == ["a", "b"]
    assert request.places == ["instances[0].questions[0]", "instances[0].questions[1]"]
    told = [answer.to_dict() for answer in ANSWERS]
    assert request.reply(ANSWERS) == {"predictions": [told]}
    request = read_request(body(instance(), instance()), LIMITS)
    assert request.reply(ANSWERS) == {"predictions": told}


def test_a_request_says_how_many_alternatives_and_from_which_score_on():
    sent = json.loads(body(instance())) | {"alternatives": 0, "min_score": 0.6}
    request = read_request(json.dumps(sent).encode(), LIMITS)
    found = request.finished(ANSWERS[0], 5, 0.0)
    assert not found.answered and [one.items for one in found.alternatives] == [("c",)]
    found = read_request(body(instance()), LIMITS).finished(ANSWERS[0], 1, 0.0)
    assert found == ANSWERS[0]


def test_a_question_follows_an_answer():
    one = ANSWERS[0]
    refused = Answer(answered=False, alternatives=(one,))
    for answer in (one, dataclasses.replace(one, confidence="not sure"), refused):
        sent = body(instance() | {"previous": answer.to_dict()})
        (pair,) = read_request(sent, LIMITS).pairs
        assert pair[1] == follow_up(Question("a"), answer)
        assert pair[1].previous_coordinates == ((0, 0),) and pair[1].previous_answers == ("c",)


def test_a_body_may_be_packed():
    packed = gzip.compress(body(instance()))
    expected = read_request(body(instance()), LIMITS).pairs
    assert read_request(packed, LIMITS, "gzip").pairs == expected
    for broken in (b"", b"a", packed[:-1], packed + b"a"):
        assert refusal(broken, encoding="gzip").code == "not_gzip"
    bomb = gzip.compress(bytes(LIMITS.max_body_bytes + 1))
    assert refusal(bomb, encoding="gzip").code == "body_too_large"


def test_tensors_of_text_are_asked_too():
    def read(sent: bytes) -> Any:
        return read_tensors(sent, LIMITS, "name", "identity")

    table = json.dumps(instance()["table"])
    request = read(tensors(("a", "b"), (table,), id="7", parameters={"alternatives": 1}))
    assert [(pair.rows, question.text) for pair, question in request.pairs] == [
        ((("c",),), "a"),
        ((("c",),), "b"),
    ]
    assert request.alternatives == 1
    reply = request.reply(ANSWERS)
    assert (reply["model_name"], reply["id"]) == ("name", "7")
    outputs = {output.pop("name"): output for output in reply["outputs"]}
    assert outputs["answer"] == {"shape": [2], "datatype": "BYTES", "data": ("c", "d, e")}
    assert outputs["score"]["data"] == (0.5, 0.25)
    named = read(tensors(("a", "b"), outputs=[{"name": "prediction"}, {"name": "score"}]))
    reply = named.reply(ANSWERS)
    assert [output["name"] for output in reply["outputs"]] == ["prediction", "score"]
    assert json.loads(reply["outputs"][0]["data"][0]) == ANSWERS[0].to_dict()
    for data, code in (
        ((("a", "b"), ("b\nc",) * 3), "ragged"),
        ((("a",) * 3,), "too_many_questions"),
        (((1,),), "wrong_type"),
        ((("a",), (1,)), "wrong_type"),
        ((("a",), ('{"b": 1}',)), "wrong_type"),
        ((("a",), ("{",)), "not_json"),
        ((("a",), ('"b',)), "not_csv"),
    ):
        with pytest.raises(RefusedError) as caught:
            read(tensors(*data))
        assert caught.value.code == code
    for changed, code in (
        ({"name": "x"}, "wrong_input"),
        ({"name": "table"}, "wrong_input"),
        ({"datatype": "FP32"}, "wrong_type"),
        ({"shape": [2]}, "wrong_type"),
    ):
        document = json.loads(tensors())
        document["inputs"][0] |= changed
        with pytest.raises(RefusedError) as caught:
            read(json.dumps(document).encode())
        assert caught.value.code == code
    for more, code, where, message in (
        ({"outputs": [{"name": "x"}]}, "wrong_output", "outputs[0]", "prediction, got 'x'"),
        ({"outputs": [{"name": {}}]}, "wrong_output", "outputs[0]", "expected one of answer"),
        ({"outputs": [{}]}, "missing", "outputs[0]", 'expected "name"'),
        ({"outputs": {}}, "wrong_type", "outputs", "a list, got an object"),
        ({"parameters": []}, "wrong_type", "parameters", "an object, got a list"),
        ({"id": {}}, "wrong_type", "id", "a text, got an object"),
    ):
        with pytest.raises(RefusedError, match=message) as caught:
            read(tensors(**more))
        assert (caught.value.code, caught.value.where) == (code, where)


@given(st.binary() | JSON.map(lambda value: json.dumps(value).encode()))
def test_anything_else_is_refused_with_a_reason(data):
    refused = refusal(data)
    assert refused.status == 400
    reply = json.loads(refused.body)
    assert reply["error"] and reply["code"]


@given(st.data())
def test_a_value_of_any_type_at_any_place_is_asked_or_refused_at_its_place(data):
    previous = {"cells": [{"row": 0, "column": 0}], "items": ["c"]}
    document: Any = {"instances": [instance() | {"previous": previous}]}
    document |= {"alternatives": 1, "min_score": 0.5}
    key = place = data.draw(st.sampled_from(sorted(document)))
    parent: Any = document
    while isinstance(parent[key], dict | list) and data.draw(st.booleans()):
        parent = parent[key]
        key = data.draw(st.sampled_from(sorted(parent))) if isinstance(parent, dict) else 0
        place += f".{key}" if isinstance(parent, dict) else "[0]"
    parent[key] = data.draw(JSON)
    try:
        asked = read_request(json.dumps(document).encode(), LIMITS)
    except RefusedError as refused:
        assert refused.status in (400, 413)
        is_of_all = refused.code in ("not_json", "key_twice", "number_too_large")
        assert is_of_all or refused.where.startswith(place)
    else:
        assert len(asked.pairs) >= len(document["instances"])


@cases(
    "sent, code, where, message",
    (b"", "not_json", "", "expected JSON in UTF-8"),
    (b'{"instances": [NaN]}', "not_json", "", "expected JSON in UTF-8"),
    (b'"\\ud800"', "not_json", "", "expected JSON in UTF-8"),
    (b'"\xff"', "not_json", "", "expected JSON in UTF-8"),
    (b"[" * 100_000, "not_json", "", "expected JSON in UTF-8"),
    (b"[]", "wrong_type", "", "expected an object, got a list"),
    (b"{}", "missing", "", 'expected "instances", which is missing'),
    (b'{"instances": 1}', "wrong_type", INSTANCES, "expected a list, got a number"),
    (body(), "empty", INSTANCES, "expected at least 1 element, got 0"),
    (body(instance(), 1), "wrong_type", f"{INSTANCES}[1]", "expected an object, got a number"),
    (body({**instance(), "x": 1}), "unknown_key", f"{INSTANCES}[0]", "previous, got 'x'"),
    (b'{"instances": 1, "x": 2}', "unknown_key", "", "min_score, got 'x'"),
    (b'{"instances": 1, "instances": 2}', "key_twice", "", "got 'instances' twice"),
    (b'{"instances": 18446744073709551616}', "number_too_large", "", "send it as text"),
    (b'{"instances": -9223372036854775809}', "number_too_large", "", "send it as text"),
    (b'{"instances": 1e400}', "number_too_large", "", "of 64 bits, got 1e400"),
    (body({"table": "b\nc", "questions": None}), "wrong_type", f"{INSTANCES}[0].questions", "null"),
    (body({"table": {"b": ["c"]}}), "missing", f"{INSTANCES}[0]", '"question" or "questions"'),
    (body(instance() | {"previous": 1}), "wrong_type", f"{INSTANCES}[0].previous", "an object"),
    (
        body(instance() | {"previous": {"cells": [{"row": 1, "column": 0}]}}),
        "wrong_value",
        f"{INSTANCES}[0].previous.cells[0].row",
        "expected a whole number from 0 to 0",
    ),
    (
        body(instance() | {"previous": {"cells": [{"row": 0.5, "column": 0}]}}),
        "wrong_value",
        f"{INSTANCES}[0].previous.cells[0].row",
        "whole number",
    ),
    (
        b'{"instances": [{"question": "a", "table": "b\\nc"}], "alternatives": 11}',
        "wrong_value",
        "alternatives",
        "from 0 to 10",
    ),
    (
        b'{"instances": [{"question": "a", "table": "b\\nc"}], "min_score": 2}',
        "wrong_value",
        "min_score",
        "from 0 to 1",
    ),
    (body(instance() | {"table": 'a\nb\n"c'}), "not_csv", TABLE, "expected delimited text"),
    (body(instance() | {"table": {"a": [1], "b": [1, 2]}}), "ragged", f"{TABLE}.b", "1 cells"),
    (body(instance() | {"table": {"rows": [[1]]}}), "missing", TABLE, 'expected "header"'),
    (
        body(instance() | {"table": {"header": ["a"], "rows": ["b"]}}),
        "wrong_type",
        f"{TABLE}.rows[0]",
        "columns named header and rows alone cannot come by name",
    ),
    (body(instance() | {"table": {}}), "missing", TABLE, 'expected "header"'),
    (body(instance(3)), "wrong_type", f"{INSTANCES}[0].question", "expected a text"),
    (body(instance(" ")), "empty", f"{INSTANCES}[0].question", "expected a question"),
    (body(instance(header="b")), "wrong_type", f"{TABLE}.header", "got a text"),
    (body(instance(rows=[])), "empty", f"{TABLE}.rows", "at least 1 element"),
    (body(instance(rows=[["c"], [1, 2]])), "ragged", f"{TABLE}.rows[1]", "1 cells as in the h"),
    (body(instance(rows=[["c"], [[]]])), "wrong_type", f"{TABLE}.rows[1][0]", "null, got a list"),
)
def test_what_is_no_request_is_refused_with_the_place(sent, code, where, message):
    refused = refusal(sent)
    assert (refused.status, refused.code, refused.where) == (400, code, where)
    assert message in str(refused)


@cases(
    "sent, code, message",
    (body(*[instance()] * 3), "too_many_questions", "at most 2 questions, got 3"),
    (body(instance(header=[1] * 256)), "too_many_columns", "at most 255 columns, got 256"),
    (body(instance(rows=[["c"]] * 7)), "too_many_cells", "at most 6 cells, got 7"),
    (body(instance(rows=[["c" * 6]])), "too_long", "at most 5 characters, got 6"),
    (body(instance(header=["b" * 6])), "too_long", "at most 5 characters, got 6"),
    (body(instance("a" * 9)), "too_long", "at most 8 characters, got 9"),
    (body(instance() | {"table": {"a": [1] * 7}}), "too_many_cells", "at most 6 cells, got 7"),
    (body(instance() | {"table": "a\n" * 8}), "too_many_cells", "at most 6 cells, got 8"),
    (body(instance() | {"table": "a\n" + "b" * 6}), "too_long", "at most 5 characters, got 6"),
    (body({"table": {"a": [1]}, "questions": ["a"] * 3}), "too_many_questions", "got 3"),
)
def test_what_is_beyond_a_limit_is_refused_with_the_limit(sent, code, message):
    refused = refusal(sent)
    assert (refused.status, refused.code) == (413, code)
    assert message in str(refused)
