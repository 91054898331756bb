"""Sends a running server requests that are wrong in every way, and reports what came of them.

    mate-tf serve --model=out/my_model --port=8080 --body-seconds=1 &
    python -m experiments.benchmarks.hostile_test --count=10000

Each wrong request has to get a 4xx with a reason, or to be cut off by a limit of the server (the
default ones). After every tenth, and at the end, a right request has to be answered. The program
prints the outcomes of each kind of request, the server's memory before and after, and what came
otherwise than it should. It exits with 1 if anything did. The requests are drawn at random, always
the same for a seed.
"""

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

from absl import flags

from experiments import program
from mate_tf.serving.http.limits import RefusedError
from mate_tf.serving.http.requests import Limits, read_request

CUT = "cut"  # the server ended the connection without a reply
_URL = flags.DEFINE_string("url", "http://127.0.0.1:8080", "the server")
_COUNT = flags.DEFINE_integer("count", 10_000, "how many wrong requests", lower_bound=1)
_CLIENTS = flags.DEFINE_integer("clients", 16, "how many are sent at once", lower_bound=1)
_SEED = flags.DEFINE_integer("seed", 0, "another seed makes other requests")
_PATIENCE = 60.0  # seconds until a reply is given up; no server with limits takes so long
_VALID_EVERY = 10

_VALID = {
    "instances": [
        {
            "question": "a b c",
            "table": {"header": ["a", "b"], "rows": [["c", 1], ["d", None], [2.5, True]]},
        }
    ]
}
_WRONG: list[Any] = [None, True, 1, -1.5, 10**30, "", "x", "\0", [], {}, [[]], {"a": 1}, [None]]
_NOT_TEXT = [
    b'{"instances": [NaN]}',
    b'{"instances": [Infinity]}',
    b'{"instances": [1e999]}',
    b'"\\ud800"',
    b'{"instances": [{"question": "\\udfff", "table": null}]}',
    b"\xff\xfe{\x00}\x00",
    b"\xef\xbb\xbf{}",
    b'{"instances": "\xc0\xaf"}',
    b'{"instances": "\xed\xa0\x80"}',
    b"\x80\x04\x95\x10\x00\x00\x00\x00\x00\x00\x00\x8c\x05posix\x94\x8c\x06system\x94\x93\x94.",
    b"<?xml version='1.0'?><!DOCTYPE a [<!ENTITY b 'c'>]><a>&b;</a>",
    b"",
    b"\0" * 100,
]
_PATHS = """/v1 /v1/models/nobody /v1/models/nobody:predict /v1/models/{name}:explain /v2 /v2/models
/v2/models/{name}/infer /v2/models/{name}/generate /v2/repository/index
/v2/repository/models/{name}/load /v2/repository/models/{name}/unload /openai/v1/completions
/openai/v1/models /docs /redoc /openapi.json /v1/models/..%2f..%2fetc%2fpasswd /../../etc/passwd
/v1/models/{name}:predict/ //v1/models/{name}:predict /%00 /%ff%fe /v1/models/%F0%9F%92%A5 *
/v1/models/{name}%0d%0aset-cookie:x /metrics/x /v1/models/{name}/unload http://example.com/x
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
_LENGTHS = ["-1", "x", "", "1e3", "0x10", "half", "9" * 30, "whole, 3", "+5"]
_CONTENTS = [
    ("content-type", "application/cloudevents+json", json.dumps(_VALID).encode()),
    ("content-type", "application/xml", b"<a/>"),
    ("content-type", "multipart/form-data; boundary=a", b"--a--"),
    ("content-type", "application/octet-stream", json.dumps(_VALID).encode()),
    ("content-encoding", "gzip", gzip.compress(json.dumps(_VALID).encode(), mtime=0)),
    ("inference-header-content-length", "3", b"{}" + bytes(9)),
    ("ce-specversion", "9.9", b"{}"),
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


class Hostile(NamedTuple):
    """What a client sends.

    Attributes:
        kind: what is wrong with it, for the report.
        chunks: bytes, one after the other.
        expected: the statuses, and CUT, that may come of it.
        leaves: whether the client is gone before the reply.
    """

    kind: str
    chunks: Sequence[bytes]
    expected: frozenset[int | str]
    leaves: bool = False


def hostile_requests(
    name: str, limits: Limits, max_body_bytes: int, seed: int = 0
) -> Iterator[Hostile]:
    """Requests without end to a server of a model of this name, with these limits."""
    draw = random.Random(seed)
    make = _Maker(name, limits, max_body_bytes, draw)
    weights = {
        make.mutated: 12,
        make.of_wrong_type: 25,
        make.not_text: 8,
        make.deep: 5,
        make.too_much: 6,
        make.odd_cells: 6,
        make.of_wrong_path: 10,
        make.of_wrong_method: 6,
        make.of_wrong_length: 5,
        make.of_wrong_content: 4,
        make.not_http: 5,
        make.of_odd_head: 4,
        make.chunked: 4,
        make.slow: 2,
        make.leaving: 4,
    }
    while True:
        (kind,) = draw.choices(list(weights), list(weights.values()))
        yield kind()


class _Maker:
    """Makes one request of each kind."""

    def __init__(self, name: str, limits: Limits, max_body_bytes: int, draw: random.Random):
        self._name, self._limits, self._draw = name, limits, draw
        self._path = f"/v1/models/{name}:predict"
        self._max_body_bytes = max_body_bytes

    def mutated(self) -> Hostile:
        """A valid body with some bytes lost, doubled or changed; it may still be valid."""
        draw, body = self._draw, bytearray(_json(_VALID))
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
        return self._judged("mutated JSON", bytes(body))

    def of_wrong_type(self) -> Hostile:
        """A valid body with something else in the place of one of its values."""
        draw, document = self._draw, copy.deepcopy(_VALID)
        parent: Any = document
        key: Any = "instances"
        while isinstance(parent[key], dict | list) and draw.random() < 0.8:
            parent = parent[key]
            key = draw.choice(list(parent) if isinstance(parent, dict) else range(len(parent)))
        what = draw.randrange(8)
        if what == 0:
            del parent[key]
        elif what == 1 and isinstance(parent, dict):
            parent[str(draw.random())] = 1
        else:
            parent[key] = draw.choice(_WRONG)
        return self._judged("wrong type", _json(document))

    def not_text(self) -> Hostile:
        return _sent("not JSON in UTF-8", self.post(self._draw.choice(_NOT_TEXT)), 400)

    def deep(self) -> Hostile:
        depth = self._draw.choice([10, 1_000, 10_000, 200_000])
        opening, middle, end = self._draw.choice([("[", "", "]"), ('{"instances":', "1", "}")])
        unfinished = self._draw.random() < 0.3
        body = opening * depth + middle + ("" if unfinished else end * depth)
        whole = f'{{"instances": {body}}}'.encode()
        return _sent("deep nesting", self.post(whole), 400, 408, 413, CUT)

    def too_much(self) -> Hostile:
        limits, draw = self._limits, self._draw
        document: Any = copy.deepcopy(_VALID)
        (instance,) = document["instances"]
        table = instance["table"]
        what = draw.randrange(7)
        if what == 0:
            table["rows"] = [["a", "b"]] * (limits.cells // 2 + 1)
        elif what == 1:
            table["header"] = ["a"] * (limits.columns + draw.randrange(1, 1000))
            table["rows"] = [table["header"]]
        elif what == 2:
            table["rows"][0][0] = "a" * (limits.cell_characters + 1)
        elif what == 3:
            instance["question"] = "a" * (limits.question_characters + 1)
        elif what == 4:
            document["instances"] *= limits.questions + 1
        elif what == 5:
            table["rows"] = [["a " * 10, "b"]] * 2_000  # within the limits, but not the model's
        else:
            size = self._max_body_bytes + 1 + draw.randrange(self._max_body_bytes)
            return _sent("too much", self.post(b" " * size), 408, 413, CUT)
        return _sent("too much", self.post(_json(document)), 413)

    def odd_cells(self) -> Hostile:
        document: Any = copy.deepcopy(_VALID)
        (instance,) = document["instances"]
        cell = self._draw.choice(_ODD_CELLS)(self._draw)
        instance["table"]["rows"][0][0] = cell
        if self._draw.random() < 0.5:
            instance["question"] = cell[: self._limits.question_characters]
        expected = (200, 413) if instance["question"].strip() else (400,)
        return _sent("odd texts", self.post(_json(document)), *expected)

    def of_wrong_path(self) -> Hostile:
        path = self._draw.choice(_PATHS).format(name=self._name)
        method = self._draw.choice(["GET", "POST"])
        request = self._request(method, path, _json(_VALID) if method == "POST" else b"")
        return _sent("wrong path", request, 400, 404, 405)

    def of_wrong_method(self) -> Hostile:
        method = self._draw.choice(_METHODS)
        path = self._draw.choice([self._path, "/", "/metrics", "/v2/health/ready"])
        is_health = path.startswith("/v2/health/")  # load balancers ask with HEAD
        expected = (200,) if method == "HEAD" and is_health else (400, 405)
        return _sent("wrong method", self._request(method, path), *expected)

    def of_wrong_length(self) -> Hostile:
        body = _json(_VALID)
        length = self._draw.choice(_LENGTHS)
        length = length.replace("half", str(len(body) // 2)).replace("whole", str(len(body)))
        head = [*self._head("POST", self._path), f"content-length: {length}"]
        if self._draw.random() < 0.3:
            head += [self._draw.choice(["content-length: 5", "transfer-encoding: chunked"])]
        return _sent("wrong length", _joined(head) + body, 400, 408, 413, CUT)

    def of_wrong_content(self) -> Hostile:
        name, value, body = self._draw.choice(_CONTENTS)
        head = [f"POST {self._path} HTTP/1.1", "host: a", f"{name}: {value}"]
        head += [f"content-length: {len(body)}"]
        return _sent("wrong content", _joined(head) + body, 400, 415)

    def not_http(self) -> Hostile:
        noise = self._draw.randbytes(self._draw.randrange(1, 3_000)) + b"\r\n\r\n"
        return _sent("not HTTP", self._draw.choice([noise, *_NOT_HTTP]), 400, 408, CUT)

    def of_odd_head(self) -> Hostile:
        head = [*self._head("GET", "/v1/models"), self._draw.choice(_ODD_HEADS)]
        return _sent("odd head", _joined(head), 200, 400, 501, CUT)

    def chunked(self) -> Hostile:
        head = _joined([*self._head("POST", self._path), "transfer-encoding: chunked"])
        what = self._draw.randrange(3)
        if what == 0:
            piece = b"10000\r\n" + b" " * 65_536 + b"\r\n"
            count = 3 * self._max_body_bytes // 65_536 + 1
            return Hostile("flood of chunks", [head, *[piece] * count], frozenset({408, 413, CUT}))
        if what == 1:
            pieces = b"1\r\n \r\n" * 5_000 + b"0\r\n\r\n"
            return Hostile("small chunks", [head, pieces], frozenset({400}))
        size = self._draw.choice([b"x", b"-1", b"f" * 40, b"", b"5;" + b"a" * 100_000])
        return Hostile("broken chunks", [head, size + b"\r\n{}\r\n"], frozenset({400, 408, CUT}))

    def slow(self) -> Hostile:
        """A head or a body that is begun and never ended."""
        request = self.post(_json(_VALID))
        head = request.index(b"\r\n\r\n") + 4
        end = self._draw.choice([0, 1, head - 2, head, head + 1, len(request) - 1])
        pieces = [request[at : min(at + 40, end)] for at in range(0, end, 40)]
        return Hostile("slow", pieces, frozenset({408, CUT}))

    def leaving(self) -> Hostile:
        """A client that is gone after some of the request, or all of it."""
        request = self.post(_json(_VALID))
        end = self._draw.choice([0, 10, len(request) - 1, len(request)])
        return Hostile("gone", [request[:end]], frozenset({CUT}), leaves=True)

    def valid(self) -> Hostile:
        """One that any model answers."""
        return _sent("right", self.post(_json(_VALID)), 200)

    def post(self, body: bytes) -> bytes:
        return self._request("POST", self._path, body)

    def _judged(self, kind: str, body: bytes) -> Hostile:
        """Expects what the reader of requests, which has its own tests, says about the body."""
        try:
            read_request(body, self._limits)
            return _sent(kind, self.post(body), 200, 413)  # 413: too long for the model
        except RefusedError as refused:
            return _sent(kind, self.post(body), refused.status)

    def _request(self, method: str, path: str, body: bytes = b"") -> bytes:
        return _joined([*self._head(method, path), f"content-length: {len(body)}"]) + body

    def _head(self, method: str, path: str) -> list[str]:
        return [f"{method} {path} HTTP/1.1", "host: a", "content-type: application/json"]


def _sent(kind: str, request: bytes, *expected: int | str) -> Hostile:
    return Hostile(kind, [request], frozenset(expected))


def _json(value: Any) -> bytes:
    return json.dumps(value).encode()


def _joined(head: Sequence[str]) -> bytes:
    return "\r\n".join([*head, "", ""]).encode()


class Report(NamedTuple):
    """What came of requests.

    Attributes:
        outcomes: how many of each kind had which outcome.
        wrong: a sentence for each that came otherwise than it should.
    """

    outcomes: dict[str, collections.Counter[int | str]]
    wrong: list[str]


async def send_all(url: str, name: str, requests: Iterable[Hostile], num_clients: int) -> Report:
    """Sends requests, several at once, with right ones among them and one at the end."""
    parts = urllib.parse.urlsplit(url)
    right = _Maker(name, Limits(), 0, random.Random(0)).valid()
    report = Report(collections.defaultdict(collections.Counter), [])
    queue = enumerate(requests)

    async def client() -> None:
        for number, request in queue:
            await ask(request)
            if number % _VALID_EVERY == 0:
                await ask(right)

    async def ask(request: Hostile) -> None:
        try:
            async with asyncio.timeout(_PATIENCE):
                outcome, body = await _send(parts.hostname, parts.port, request)
        except TimeoutError:
            outcome, body = "no end", b""
        report.outcomes[request.kind][outcome] += 1
        if problem := _problem(request, outcome, body):
            sent = b"".join(request.chunks)[:300]
            report.wrong.append(f"{request.kind}: {problem}, sent {sent!r}")

    await asyncio.gather(*(client() for _ in range(num_clients)))
    await ask(right)
    return report


async def _send(host, port, request: Hostile) -> tuple[int | str, bytes]:
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


def _problem(request: Hostile, outcome: int | str, body: bytes) -> str | None:
    if outcome not in request.expected:
        return f"expected {sorted(map(str, request.expected))}, got {outcome} {body[:300]!r}"
    if isinstance(outcome, int) and outcome >= 400 and body:
        reply = json.loads(body)
        if not reply.get("error") or not reply.get("code"):
            return f"expected a reason, got {body[:300]!r}"
    return None


def main(_) -> int:
    import httpx

    def memory() -> float:
        text = httpx.get(f"{_URL.value}/metrics").text
        return float(text.split("\nprocess_resident_memory_bytes ")[1].split("\n")[0]) / 1e6

    (name,) = httpx.get(f"{_URL.value}/v1/models").json()["models"]
    before = memory()
    requests = hostile_requests(name, Limits(), 2 * 1024**2, _SEED.value)
    drawn = itertools.islice(requests, _COUNT.value)
    report = asyncio.run(send_all(_URL.value, name, drawn, _CLIENTS.value))
    for kind, counts in sorted(report.outcomes.items()):
        outcomes = ", ".join(f"{outcome}: {count}" for outcome, count in counts.most_common())
        print(f"{kind}: {outcomes}")
    print(f"memory: {before:.0f} MB before, {memory():.0f} MB after")
    print("\n  ".join([f"otherwise than it should: {len(report.wrong)}", *report.wrong[:20]]))
    return int(bool(report.wrong))


if __name__ == "__main__":
    program.run(main)
