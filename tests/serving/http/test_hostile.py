"""A real server, requests that are wrong in every way, and what comes of them."""

import contextlib
import functools
import gzip
import http.client
import itertools
import json
import random
import re
import socket
import urllib.parse
import zlib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import httpx
import pytest

from mate_tf.serving.http import Limits, RefusedError
from mate_tf.serving.http.requests import Body, read_request, read_tensors
from tests.serving.processes import NAME

CUT = "cut"  # the server ended the connection without a reply
MEMORY = ("process_resident_memory_bytes",)
PREDICT, INFER = f"/v1/models/{NAME}:predict", f"/v2/models/{NAME}/infer"
_LIMITS, _BODY_BYTES = Limits(), 2 * 1024**2  # of the server
_PATIENCE = 60.0  # seconds until a reply is given up; no server with limits takes so long

_TABLE = {"header": ["a", "b"], "rows": [["c", 1], ["d", None], [2.5, True]]}
_BODY = json.dumps({"instances": [{"question": "a b c", "table": _TABLE}]}).encode()
_COLUMNS = {"a": ["c", "d", 2.5], "b": [1, None, True]}
_QUERY = {"query": "a b c", "table": _COLUMNS}
_OF_PIPELINES = json.dumps({"inputs": [_QUERY], "parameters": {"padding": "longest"}}).encode()
_INPUTS = [
    {"name": name, "shape": [len(data)], "datatype": "BYTES", "data": data}
    for name, data in (("question", ["a b c", "d"]), ("table", [json.dumps(_COLUMNS)]))
]
_TENSORS = json.dumps({"inputs": _INPUTS, "outputs": [{"name": "score"}]}).encode()
_FORMS = [(PREDICT, _BODY), (PREDICT, _OF_PIPELINES), (INFER, _TENSORS)]
_VALUE = re.compile(rb'"[^"\\]*"|[0-9.]+|null|true')
_VALUES = [b"1", b"-2.5e3", b"1e400", b"null", b"true", b'""', b'" "', b"[]", b"[[1]]", b"{}"]
_VALUES += [b'"rows"', b'"\\u0000\\ud83d\\ude00"', b'"\\ud800"', b'"%b"' % (b"long " * 900)]
_LONG_TABLE = {"header": ["a", "b"], "rows": [["a " * 10, "b"]] * 2_000}
_LONG = json.dumps({"instances": [{"question": "a", "table": _LONG_TABLE}]}).encode()
_PATHS = f"""/v1 /v1/models/nobody /v1/models/nobody:predict /v1/models/{NAME}:explain /v3
/v2/models/{NAME}/infer /v2/models/{NAME}/generate /v2/repository/index
/v2/repository/models/{NAME}/load /v2/repository/models/{NAME}/unload /openai/v1/completions
/openai/v1/models /redoc /openapi.yaml /v1/models/..%2f..%2fetc%2fpasswd /../../etc/passwd
/v1/models/{NAME}:predict/ //v1/models/{NAME}:predict /%00 /%ff%fe /v1/models/%F0%9F%92%A5 *
/v1/models/{NAME}%0d%0aset-cookie:x /metrics/x /v1/models/{NAME}/unload http://example.com/x
""".split()
_METHODS = ["DELETE", "PUT", "PATCH", "TRACE", "OPTIONS", "BREW", "HEAD", "get", "PROPFIND"]
_READY = "/v2/health/ready"
_NESTINGS = [("[", "", "]"), ("[", "", ""), ('{"instances":', "1", "}")]
_MORE_LENGTHS: list[list[str]] = [[], ["content-length: 5"], ["transfer-encoding: chunked"]]
_HALF, _WHOLE = str(len(_BODY) // 2), str(len(_BODY))
_LENGTHS = ["-1", "x", "", "1e3", "0x10", _HALF, "9" * 30, f"{_WHOLE}, 3", "+5"]
_GZIP = "content-encoding: gzip"
_PACKED = gzip.compress(_BODY, mtime=0)
_BOMB = gzip.compress(bytes(100 * _BODY_BYTES), mtime=0)
_CONTENTS = [
    ("content-type: application/cloudevents+json", _BODY, 415),
    ("content-type: application/xml", b"<a/>", 415),
    ("content-type: multipart/form-data; boundary=a", b"--a--", 415),
    ("content-type: application/octet-stream", _BODY, 415),
    *((_GZIP, broken, 400) for broken in (b"", _PACKED[:9], _PACKED[:-9], _PACKED[:-1])),
    *((_GZIP, broken, 400) for broken in (_BODY, zlib.compress(_BODY), _PACKED * 2)),
    (_GZIP, gzip.compress(_PACKED, mtime=0), 400),
    (_GZIP, _BOMB, 413),
    (_GZIP, gzip.compress(_BOMB, mtime=0), 400),  # one bomb in another is no JSON
    ("content-encoding: identity", _PACKED, 400),
    ("content-encoding: deflate", zlib.compress(_BODY), 415),
    ("content-encoding: gzip, gzip", gzip.compress(_PACKED, mtime=0), 415),
    ("content-encoding: br", _BODY, 415),
    ("inference-header-content-length: 3", b"{}" + bytes(9), 400),
    ("ce-specversion: 9.9", b"{}", 400),
]
_NOT_HTTP = [
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(range(256)),
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    b"GET /\r\n\r\n",
    b"GET / HTTP/9.9\r\n\r\n",
    b"\r\n" * 1_000 + b"x\r\n\r\n",
    b"SSH-2.0-client\r\n\r\n",
    b" " * 100_000,
]
_LARGE_HEADS = [f"a: {'b' * 200_000}", "\r\n".join(f"a{number}: b" for number in range(20_000))]
_WRONG_HEADS = ["a b: c", "a\0: b", ": b", "host: b", "transfer-encoding: gzip", "a: b\rc: d"]


class Request(NamedTuple):
    """What a client sends, one chunk after the other, and what may come of it."""

    kind: str
    chunks: Sequence[bytes]
    expected: Sequence[int | str]  # statuses, and CUT
    leaves: bool = False  # whether the client is gone before the reply


def hostile_requests(seed: int = 0) -> list[Request]:
    """Requests of all kinds, in an order in which they take turns."""
    draw = random.Random(seed)
    found = [_mutated(draw, *_FORMS[number % 3]) for number in range(600)]

    def add(kind: str, *expected: int | str, head: bytes = b"", chunks=(), **options) -> None:
        found.append(Request(kind, [head, *chunks] if head else chunks, expected, **options))

    for depth, (opening, middle, end) in itertools.product((10, 10_000, 200_000), _NESTINGS):
        body = f'{{"instances": {opening * depth + middle + end * depth}}}'
        add("deep nesting", 400, 408, 413, CUT, head=_post(body.encode()))
    many = json.dumps(dict.fromkeys(map(str, range(100_000)), 0))
    for body in (many, f'{{"instances": [{many}]}}', f'{{"inputs": {{"table": {many}}}}}'):
        add("many keys", 400, 408, head=_post(body.encode()))  # late on a busy machine
    for _ in range(20):
        add("longer than the model", 200, head=_post(_LONG))
        add("too much", 408, 413, CUT, head=_post(b" " * 2 * _BODY_BYTES))
    for path in _PATHS:
        add("wrong path", 400, 404, 405, head=_whole(f"GET {path}"))
        add("wrong path", 400, 404, 405, head=_whole(f"POST {path}", _BODY))
    for method, path in itertools.product(_METHODS, (PREDICT, "/", "/metrics", _READY)):
        is_asked = (method, path) == ("HEAD", _READY)  # by load balancers
        add("wrong method", *([200] if is_asked else [400, 405]), head=_whole(f"{method} {path}"))
    for length, more in itertools.product(_LENGTHS, _MORE_LENGTHS):
        whole = _head(f"content-length: {length}", *more) + _BODY
        add("wrong length", 400, 408, 413, CUT, head=whole)
    for path, (line, content, expected) in itertools.product((PREDICT, INFER), _CONTENTS):
        lines = [f"POST {path} HTTP/1.1", "host: a", line, f"content-length: {len(content)}"]
        add("wrong content", expected, head=_joined(lines) + content)
    for noise in (*_NOT_HTTP, *(draw.randbytes(draw.randrange(1, 3_000)) for _ in range(20))):
        add("not HTTP", 400, 408, CUT, head=noise + b"\r\n\r\n")
    for line in _LARGE_HEADS:  # accepted where it arrives at once
        add("large head", 200, 400, CUT, head=_head(line, asks="GET /v1/models"))
    for line in _WRONG_HEADS:
        add("wrong head", 400, head=_head(line, asks="GET /v1/models"))
    add("folded head", 200, head=_head(" folded", asks="GET /v1/models"))
    chunked = _head("transfer-encoding: chunked")
    for number in (b"x", b"-1", b"f" * 40, b"", b"5;" + b"a" * 100_000):
        add("broken chunks", 400, 408, CUT, head=chunked + number + b"\r\n{}\r\n")
        add("small chunks", 400, head=chunked, chunks=[b"1\r\n \r\n" * 5_000 + b"0\r\n\r\n"])
        add("too many chunks", 413, CUT, head=chunked, chunks=[b"1\r\n \r\n" * 100_000])
        pieces = [b"10000\r\n" + b" " * 65_536 + b"\r\n"] * (3 * _BODY_BYTES // 65_536 + 1)
        add("flood of chunks", 408, 413, CUT, head=chunked, chunks=pieces)
    request = _post(_BODY)
    body_at = request.index(b"\r\n\r\n") + 4
    for size in (0, 1, body_at - 2, body_at, body_at + 1, len(request) - 1) * 4:
        chunks = [request[at : min(at + 40, size)] for at in range(0, size, 40)]
        add("slow", 408, CUT, chunks=chunks)
        add("gone", CUT, chunks=chunks, leaves=True)
    draw.shuffle(found)
    return found


def _mutated(draw: random.Random, path: str, right: bytes) -> Request:
    """A right body, sometimes packed, with something else in it; it may still be right."""
    lines: list[str] = []
    body = draw.choice((_damaged, _changed))(draw, right)
    if is_packed := draw.randrange(3) == 0:
        lines, body = [_GZIP], gzip.compress(body, mtime=0)
        if draw.randrange(2):
            body = _damaged(draw, body)
    try:  # tests/serving/http/test_requests.py is about the reader
        read = read_tensors if path == INFER else read_request
        read(Body(body, is_packed), _LIMITS, NAME)
        expected = [200, 413]  # 413: too long for the model
    except RefusedError as refused:
        expected = [refused.status]
    return Request("mutated body", [_whole(f"POST {path}", body, *lines)], expected)


def _damaged(draw: random.Random, right: bytes) -> bytes:
    """The body with some bytes lost, doubled or changed."""
    body = bytearray(right)
    for _ in range(draw.randrange(1, 6)):
        at = draw.randrange(len(body))
        what = draw.randrange(4)
        if what == 0:
            del body[at : at + draw.randrange(1, 20)]
        elif what == 1:
            body[at] = draw.randrange(256)
        elif what == 2:
            body[at:at] = draw.randbytes(draw.randrange(1, 20))
        else:
            body[at:at] = body[: draw.randrange(len(body))]
    return bytes(body)


def _changed(draw: random.Random, right: bytes) -> bytes:
    """The body with another value or key in one place."""
    start, end = draw.choice([match.span() for match in _VALUE.finditer(right)])
    return right[:start] + draw.choice(_VALUES) + right[end:]


def _joined(lines: Sequence[str]) -> bytes:
    return "\r\n".join([*lines, "", ""]).encode()


def _head(*lines: str, asks: str = f"POST {PREDICT}") -> bytes:
    return _joined([f"{asks} HTTP/1.1", "host: a", "content-type: application/json", *lines])


def _whole(asks: str, body: bytes = b"", *lines: str) -> bytes:
    return _head(f"content-length: {len(body)}", *lines, asks=asks) + body


def _post(body: bytes) -> bytes:
    return _whole(f"POST {PREDICT}", body)


def wrong_outcome(url: str, request: Request) -> str | None:
    """A sentence, if the outcome of a request is wrong."""
    outcome, body = _send(url, request)
    has_reason = True
    # The last is what uvicorn says itself.
    if isinstance(outcome, int) and outcome >= 400 and body and b"Invalid HTTP" not in body:
        has_reason = {"error", "code"} <= json.loads(body).keys()
    if outcome in request.expected and has_reason:
        return None
    sent = b"".join(request.chunks)[:300]
    return f"{request.kind}: got {outcome} {body[:300]!r}, sent {sent!r}"


def _send(url: str, request: Request) -> tuple[int | str, bytes]:
    """The status, or CUT, and the body of the reply."""
    parts = urllib.parse.urlsplit(url)
    try:
        client = socket.create_connection((parts.hostname, parts.port), timeout=_PATIENCE)
    except OSError:
        return "not connected", b""
    with client:
        with contextlib.suppress(OSError):  # cut off; there may be a reply all the same
            for chunk in request.chunks:
                client.sendall(chunk)
        if request.leaves:
            return CUT, b""
        is_head = bool(request.chunks) and request.chunks[0].startswith(b"HEAD")
        reply = http.client.HTTPResponse(client, method="HEAD" if is_head else "GET")
        try:
            reply.begin()
            return reply.status, reply.read()
        except TimeoutError:
            return "no end", b""
        except (OSError, http.client.HTTPException):
            return CUT, b""
        finally:
            reply.close()


def files(server) -> set:
    return {path for name in ("work", "tmp") for path in (server.folder / name).rglob("*")}


@pytest.mark.medium
@pytest.mark.parametrize("seeds", [1, pytest.param(23, marks=pytest.mark.slow)])
def test_a_server_survives_hostile_requests_and_answers_right_ones_among_them(server, seeds):
    before, files_before = server.metrics()[MEMORY], files(server)
    requests = [one for seed in range(seeds) for one in hostile_requests(seed)]
    assert len(requests) > 800 * seeds
    right = Request("right", [_post(_BODY)], [200])
    sent = [one for at in range(0, len(requests), 10) for one in (*requests[at : at + 10], right)]
    with ThreadPoolExecutor(16) as threads:
        outcomes = threads.map(functools.partial(wrong_outcome, server.url), sent)
        assert [one for one in outcomes if one] == []
    assert server.process.poll() is None
    assert files(server) == files_before  # TensorFlow's own, of what it compiled at the start
    # A body of 2 MB takes its multiple as JSON; 16 of them at once take less than this.
    assert server.metrics()[MEMORY] < before + 500e6
    many = next(request for request in requests if request.kind == "many keys")
    content = b"".join(many.chunks).partition(b"\r\n\r\n")[2]
    assert httpx.post(f"{server.url}{PREDICT}", content=content).status_code == 400
    assert wrong_outcome(server.url, right) is None
    assert httpx.get(f"{server.url}/v2/health/ready").json() == {"ready": True}
