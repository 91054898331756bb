"""A real server, requests that are wrong in every way, and what comes of them."""

import asyncio
import collections
import copy
import gzip
import itertools
import json
import random
import urllib.parse
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from mate_tf.serving.http.limits import RefusedError
from mate_tf.serving.http.requests import Limits, read_request
from tests.serving.server_process import NAME

COUNT = 2_000
CUT = "cut"  # the server ended the connection without a reply
PREDICT = f"/v1/models/{NAME}:predict"
_LIMITS, _BODY_BYTES = Limits(), 2 * 1024**2  # of the server
_PATIENCE = 60.0  # seconds until a reply is given up; no server with limits takes so long
_RIGHT_EVERY = 10

_TABLE = {"header": ["a", "b"], "rows": [["c", 1], ["d", None], [2.5, True]]}
_RIGHT = {"instances": [{"question": "a b c", "table": _TABLE}]}
_BODY = json.dumps(_RIGHT).encode()
_PATHS = f"""/v1 /v1/models/nobody /v1/models/nobody:predict /v1/models/{NAME}:explain /v2
/v2/models /v2/models/{NAME}/infer /v2/models/{NAME}/generate /v2/repository/index
/v2/repository/models/{NAME}/load /v2/repository/models/{NAME}/unload /openai/v1/completions
/openai/v1/models /docs /redoc /openapi.json /v1/models/..%2f..%2fetc%2fpasswd /../../etc/passwd
/v1/models/{NAME}:predict/ //v1/models/{NAME}:predict /%00 /%ff%fe /v1/models/%F0%9F%92%A5 *
/v1/models/{NAME}%0d%0aset-cookie:x /metrics/x /v1/models/{NAME}/unload http://example.com/x
""".split()
_METHODS = ["DELETE", "PUT", "PATCH", "TRACE", "OPTIONS", "BREW", "HEAD", "get", "PROPFIND"]
_ODD_CELLS: list[Callable[[random.Random], str]] = [
    lambda draw: "9" * draw.randrange(1, 9_000),
    lambda draw: "1," * draw.randrange(1, 400),
    lambda draw: "-" * draw.randrange(1, 200) + "1",
    lambda draw: "1e" + "9" * draw.randrange(1, 50),
    lambda draw: " " * draw.randrange(1, 9_000),
    lambda draw: "million " * draw.randrange(1, 100),
    lambda draw: "".join(chr(draw.randrange(32)) for _ in range(50)),
    lambda draw: "a" + "\u0301" * draw.randrange(1, 500),
    lambda draw: "".join(chr(draw.randrange(0x10000, 0x110000)) for _ in range(50)),
    lambda draw: "\u202e\ufeff\u200b[SEP][CLS][PAD]##a",
    lambda draw: "31 31 31/31/31 99:99:99 0000-00-00 " * draw.randrange(1, 20),
    lambda draw: "٣.٤,٥ Ⅻ ½ ² 一万",
]
_HALF, _WHOLE = str(len(_BODY) // 2), str(len(_BODY))
_LENGTHS = ["-1", "x", "", "1e3", "0x10", _HALF, "9" * 30, f"{_WHOLE}, 3", "+5"]
_CONTENTS = [
    ("content-type: application/cloudevents+json", _BODY),
    ("content-type: application/xml", b"<a/>"),
    ("content-type: multipart/form-data; boundary=a", b"--a--"),
    ("content-type: application/octet-stream", _BODY),
    ("content-encoding: gzip", gzip.compress(_BODY, mtime=0)),
    ("inference-header-content-length: 3", b"{}" + bytes(9)),
    ("ce-specversion: 9.9", b"{}"),
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
_ODD_HEADS = [
    f"a: {'b' * 200_000}",
    "\r\n".join(f"a{number}: b" for number in range(20_000)),
    *("a b: c", "a\0: b", ": b", "host: b", "transfer-encoding: gzip", " folded", "a: b\rc: d"),
]


class Request(NamedTuple):
    """What a client sends, one chunk after the other, and what may come of it.

    Attributes:
        expected: statuses, and CUT.
        leaves: whether the client is gone before the reply.
    """

    kind: str
    chunks: Sequence[bytes]
    expected: Sequence[int | str]
    leaves: bool = False


def hostile_requests(seed: int = 0) -> Iterator[Request]:
    """Requests without end."""
    draw = random.Random(seed)
    while True:
        (make,) = draw.choices(list(_WEIGHTS), list(_WEIGHTS.values()))
        yield make(draw)


def _mutated(draw: random.Random) -> Request:
    """A right body with some bytes lost, doubled or changed; it may still be right."""
    body = bytearray(_BODY)
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
    try:  # tests/serving/http/test_requests.py is about the reader
        read_request(bytes(body), _LIMITS)
        expected = [200, 413]  # 413: too long for the model
    except RefusedError as refused:
        expected = [refused.status]
    return Request("mutated JSON", [_post(bytes(body))], expected)


def _deep(draw: random.Random) -> Request:
    depth = draw.choice([10, 1_000, 10_000, 200_000])
    opening, middle, end = draw.choice([("[", "", "]"), ('{"instances":', "1", "}")])
    unfinished = draw.random() < 0.3
    body = opening * depth + middle + ("" if unfinished else end * depth)
    whole = f'{{"instances": {body}}}'.encode()
    return Request("deep nesting", [_post(whole)], [400, 408, 413, CUT])


def _too_much(draw: random.Random) -> Request:
    """More than the model takes, or than a body may have; test_requests.py has the other limits."""
    if draw.random() < 0.5:
        table = {"header": ["a", "b"], "rows": [["a " * 10, "b"]] * 2_000}
        document = {"instances": [{"question": "a", "table": table}]}
        return Request("too much", [_post(json.dumps(document).encode())], [413])
    size = _BODY_BYTES + 1 + draw.randrange(_BODY_BYTES)
    return Request("too much", [_post(b" " * size)], [408, 413, CUT])


def _odd_cells(draw: random.Random) -> Request:
    document: Any = copy.deepcopy(_RIGHT)
    (instance,) = document["instances"]
    cell = draw.choice(_ODD_CELLS)(draw)
    instance["table"]["rows"][0][0] = cell
    if draw.random() < 0.5:
        instance["question"] = cell[: _LIMITS.question_characters]
    expected = [200, 413] if instance["question"].strip() else [400]
    return Request("odd texts", [_post(json.dumps(document).encode())], expected)


def _wrong_path(draw: random.Random) -> Request:
    method, path = draw.choice(["GET", "POST"]), draw.choice(_PATHS)
    whole = _whole(f"{method} {path}", _BODY if method == "POST" else b"")
    return Request("wrong path", [whole], [400, 404, 405])


def _wrong_method(draw: random.Random) -> Request:
    method = draw.choice(_METHODS)
    path = draw.choice([PREDICT, "/", "/metrics", "/v2/health/ready"])
    is_health = path.startswith("/v2/health/")  # load balancers ask with HEAD
    expected = [200] if method == "HEAD" and is_health else [400, 405]
    return Request("wrong method", [_whole(f"{method} {path}")], expected)


def _wrong_length(draw: random.Random) -> Request:
    lines = [f"content-length: {draw.choice(_LENGTHS)}"]
    if draw.random() < 0.3:
        lines += [draw.choice(["content-length: 5", "transfer-encoding: chunked"])]
    return Request("wrong length", [_head(*lines) + _BODY], [400, 408, 413, CUT])


def _wrong_content(draw: random.Random) -> Request:
    line, body = draw.choice(_CONTENTS)
    lines = [f"POST {PREDICT} HTTP/1.1", "host: a", line, f"content-length: {len(body)}"]
    return Request("wrong content", [_joined(lines) + body], [400, 415])


def _not_http(draw: random.Random) -> Request:
    noise = draw.randbytes(draw.randrange(1, 3_000)) + b"\r\n\r\n"
    return Request("not HTTP", [draw.choice([noise, *_NOT_HTTP])], [400, 408, CUT])


def _odd_head(draw: random.Random) -> Request:
    head = _head(draw.choice(_ODD_HEADS), asks="GET /v1/models")
    return Request("odd head", [head], [200, 400, 501, CUT])


def _chunked(draw: random.Random) -> Request:
    head = _head("transfer-encoding: chunked")
    what = draw.randrange(3)
    if what == 0:
        piece = b"10000\r\n" + b" " * 65_536 + b"\r\n"
        pieces = [piece] * (3 * _BODY_BYTES // 65_536 + 1)
        return Request("flood of chunks", [head, *pieces], [408, 413, CUT])
    if what == 1:
        small = b"1\r\n \r\n" * 5_000 + b"0\r\n\r\n"
        return Request("small chunks", [head, small], [400])
    size = draw.choice([b"x", b"-1", b"f" * 40, b"", b"5;" + b"a" * 100_000])
    return Request("broken chunks", [head, size + b"\r\n{}\r\n"], [400, 408, CUT])


def _slow(draw: random.Random) -> Request:
    """A head or a body that is begun and never ended."""
    request = _post(_BODY)
    head = request.index(b"\r\n\r\n") + 4
    end = draw.choice([0, 1, head - 2, head, head + 1, len(request) - 1])
    return Request(
        "slow", [request[at : min(at + 40, end)] for at in range(0, end, 40)], [408, CUT]
    )


def _gone(draw: random.Random) -> Request:
    """A client that leaves after some of the request, or all of it."""
    request = _post(_BODY)
    end = draw.choice([0, 10, len(request) - 1, len(request)])
    return Request("gone", [request[:end]], [CUT], leaves=True)


# How often each is drawn.
_WEIGHTS: dict[Callable[[random.Random], Request], int] = {
    _mutated: 45,
    _deep: 5,
    _too_much: 6,
    _odd_cells: 6,
    _wrong_path: 10,
    _wrong_method: 6,
    _wrong_length: 5,
    _wrong_content: 4,
    _not_http: 5,
    _odd_head: 4,
    _chunked: 4,
    _slow: 2,
    _gone: 4,
}


def _joined(lines: Sequence[str]) -> bytes:
    return "\r\n".join([*lines, "", ""]).encode()


def _head(*lines: str, asks: str = f"POST {PREDICT}") -> bytes:
    return _joined([f"{asks} HTTP/1.1", "host: a", "content-type: application/json", *lines])


def _whole(asks: str, body: bytes = b"") -> bytes:
    return _head(f"content-length: {len(body)}", asks=asks) + body


def _post(body: bytes) -> bytes:
    return _whole(f"POST {PREDICT}", body)


async def send_all(
    url: str, requests: Iterable[Request], num_clients: int
) -> tuple[dict[str, collections.Counter[int | str]], list[str]]:
    """Sends requests, several at once, with right ones among them and one at the end.

    Returns:
        How many of each kind had which outcome, and a sentence for each that was wrong.
    """
    parts = urllib.parse.urlsplit(url)
    right = Request("right", [_post(_BODY)], [200])
    outcomes: dict = collections.defaultdict(collections.Counter)
    wrong = []
    queue = enumerate(requests)

    async def client() -> None:
        for number, request in queue:
            await ask(request)
            if number % _RIGHT_EVERY == 0:
                await ask(right)

    async def ask(request: Request) -> None:
        try:
            async with asyncio.timeout(_PATIENCE):
                outcome, body = await _send(parts.hostname, parts.port, request)
        except TimeoutError:
            outcome, body = "no end", b""
        outcomes[request.kind][outcome] += 1
        refusal = json.loads(body) if isinstance(outcome, int) and outcome >= 400 and body else None
        has_reason = refusal is None or (refusal.get("error") and refusal.get("code"))
        if outcome not in request.expected or not has_reason:
            sent = b"".join(request.chunks)[:300]
            wrong.append(f"{request.kind}: got {outcome} {body[:300]!r}, sent {sent!r}")

    await asyncio.gather(*(client() for _ in range(num_clients)))
    await ask(right)
    return outcomes, wrong


async def _send(host, port, request: Request) -> tuple[int | str, bytes]:
    """The status, or CUT, and the body of the reply."""
    try:
        reader, writer = await asyncio.open_connection(host, port)
    except OSError:
        return "not connected", b""
    try:
        try:
            for chunk in request.chunks:
                writer.write(chunk)
                await writer.drain()
            if request.leaves:
                return CUT, b""
        except OSError:
            pass  # cut off; there may be a reply all the same
        head = await reader.readuntil(b"\r\n\r\n")
        lines = head.decode("latin-1").split("\r\n")
        fields = dict(line.lower().split(": ", 1) for line in lines[1:] if ": " in line)
        is_head = bool(request.chunks) and request.chunks[0].startswith(b"HEAD")
        length = 0 if is_head else int(fields.get("content-length", 0))
        return int(lines[0].split(" ")[1]), await reader.readexactly(length)
    except (OSError, asyncio.IncompleteReadError):
        return CUT, b""
    finally:
        writer.transport.abort()


def memory(server) -> float:
    families = text_string_to_metric_families(httpx.get(f"{server.url}/metrics").text)
    (found,) = (f for f in families if f.name == "process_resident_memory_bytes")
    return found.samples[0].value


def files(server) -> set:
    return {path for name in ("work", "tmp") for path in (server.folder / name).rglob("*")}


@pytest.mark.medium
def test_a_server_survives_hostile_requests_and_answers_right_ones_among_them(server):
    before, files_before = memory(server), files(server)
    requests = itertools.islice(hostile_requests(), COUNT)
    outcomes, wrong = asyncio.run(send_all(server.url, requests, num_clients=16))
    assert wrong == []
    assert sum(counts.total() for counts in outcomes.values()) == COUNT * 1.1 + 1
    assert len(outcomes) == 16  # kinds of requests
    assert outcomes["right"] == {200: COUNT // 10 + 1}
    assert server.process.poll() is None
    assert files(server) == files_before  # TensorFlow's own, of what it compiled at the start
    # A body of 2 MB takes its multiple as JSON; 16 of them at once take less than this.
    assert memory(server) < before + 500e6
    assert httpx.get(f"{server.url}/v2/health/ready").json() == {"ready": True}
