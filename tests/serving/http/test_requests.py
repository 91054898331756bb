"""What a request asks, without a server."""

import json
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given

from mate_tf.serving.http import Limits
from mate_tf.serving.http.limits import RefusedError
from mate_tf.serving.http.requests import read_request
from mate_tf.tables.table import Question, Table

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


def refusal(data: bytes) -> RefusedError:
    with pytest.raises(RefusedError, match=r"expected|got") as caught:
        read_request(data, LIMITS)
    return caught.value


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
    assert asked == [
        (Table.from_rows(rows, header=header), Question(question)),
        (Table.from_rows([["c"]], header=["b"]), Question("a")),
    ]


@given(st.binary() | JSON.map(lambda value: json.dumps(value).encode()))
def test_anything_else_is_refused_with_a_reason(data):
    refused = refusal(data)
    assert refused.status == 400
    reply = json.loads(refused.body)
    assert reply["error"] and reply["code"]


@given(st.data())
def test_a_value_of_any_type_at_any_place_is_asked_or_refused_at_its_place(data):
    document: Any = {"instances": [instance()]}
    parent, key, place = document, "instances", "instances"
    while isinstance(parent[key], dict | list) and data.draw(st.booleans()):
        parent = parent[key]
        key = data.draw(st.sampled_from(sorted(parent))) if isinstance(parent, dict) else 0
        place += f".{key}" if isinstance(parent, dict) else "[0]"
    parent[key] = data.draw(JSON)
    try:
        asked = read_request(json.dumps(document).encode(), LIMITS)
    except RefusedError as refused:
        assert refused.status in (400, 413)
        assert refused.code == "not_json" or refused.where.startswith(place)
    else:
        assert len(asked) == len(document["instances"])


@pytest.mark.parametrize(
    ("sent", "code", "where", "message"),
    [
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
        (body({**instance(), "x": 1}), "unknown_key", f"{INSTANCES}[0]", "only question, table, g"),
        (body(instance(3)), "wrong_type", f"{INSTANCES}[0].question", "expected a text"),
        (body(instance(" ")), "empty", f"{INSTANCES}[0].question", "expected a question"),
        (body(instance(header="b")), "wrong_type", f"{TABLE}.header", "got a text"),
        (body(instance(rows=[])), "empty", f"{TABLE}.rows", "at least 1 element"),
        (body(instance(rows=[["c"], [1, 2]])), "ragged", f"{TABLE}.rows[1]", "1 cells as in the h"),
        (
            body(instance(rows=[["c"], [[]]])),
            "wrong_type",
            f"{TABLE}.rows[1][0]",
            "null, got a list",
        ),
    ],
)
def test_what_is_no_request_is_refused_with_the_place(sent, code, where, message):
    refused = refusal(sent)
    assert (refused.status, refused.code, refused.where) == (400, code, where)
    assert message in str(refused)


@pytest.mark.parametrize(
    ("sent", "code", "message"),
    [
        (body(*[instance()] * 3), "too_many_questions", "at most 2 questions, got 3"),
        (body(instance(header=[1] * 256)), "too_many_columns", "at most 255 columns, got 256"),
        (body(instance(rows=[["c"]] * 7)), "too_many_cells", "at most 6 cells, got 7"),
        (body(instance(rows=[["c" * 6]])), "too_long", "at most 5 characters, got 6"),
        (body(instance(header=["b" * 6])), "too_long", "at most 5 characters, got 6"),
        (body(instance("a" * 9)), "too_long", "at most 8 characters, got 9"),
    ],
)
def test_what_is_beyond_a_limit_is_refused_with_the_limit(sent, code, message):
    refused = refusal(sent)
    assert (refused.status, refused.code) == (413, code)
    assert message in str(refused)
