"""Sends a running server requests that are wrong in every way, and says what came of them.

    python -m experiments.serve --model=out/my_model --port=8080 --body_seconds=1 &
    python -m experiments.hostile_test --count=10000

Every tenth request is a right one. Each wrong one has to get a 4xx with a reason, or to be cut off
by a limit; each right one has to be answered; and afterwards the server has to answer still. Prints
a line for each kind of request with what came of it, the server's memory before and after, and what
came otherwise than it should. Exits with 1 if anything did. The server's limits are expected to be
the defaults.
"""

import asyncio
import collections
import itertools
import json
import urllib.parse
from collections.abc import Iterable
from typing import NamedTuple

from absl import flags

from experiments import terminal
from experiments.hostile_requests import CUT, Hostile, hostile_requests, valid_request

_URL = flags.DEFINE_string("url", "http://127.0.0.1:8080", "the server")
_COUNT = flags.DEFINE_integer("count", 10_000, "how many wrong requests", lower_bound=1)
_CLIENTS = flags.DEFINE_integer("clients", 16, "how many are sent at once", lower_bound=1)
_SEED = flags.DEFINE_integer("seed", 0, "another seed makes other requests")
_PATIENCE = 60.0  # seconds until a reply is given up; none of a server with limits takes so long
_VALID_EVERY = 10


class Report(NamedTuple):
    """What came of requests.

    Attributes:
        outcomes: how many of each kind had which outcome.
        wrong: what came otherwise than it should, a sentence each.
    """

    outcomes: dict[str, collections.Counter[int | str]]
    wrong: list[str]


def main(_) -> int:
    import httpx

    from experiments.serving.requests import Limits

    def memory() -> float:
        text = httpx.get(f"{_URL.value}/metrics").text
        return float(text.split("\nprocess_resident_memory_bytes ")[1].split("\n")[0])

    (name,) = httpx.get(f"{_URL.value}/v1/models").json()["models"]
    before = memory()
    requests = hostile_requests(name, Limits(), 2 * 1024**2, _SEED.value)
    drawn = itertools.islice(requests, _COUNT.value)
    report = asyncio.run(send_all(_URL.value, name, drawn, _CLIENTS.value))
    for kind, counts in sorted(report.outcomes.items()):
        outcomes = ", ".join(f"{outcome}: {count}" for outcome, count in counts.most_common())
        print(f"{kind}: {outcomes}")
    print(f"memory: {before / 1e6:.0f} MB before, {memory() / 1e6:.0f} MB after")
    print(f"otherwise than it should: {len(report.wrong)}")
    for line in report.wrong[:20]:
        print(f"  {line}")
    return int(bool(report.wrong))


async def send_all(url: str, name: str, requests: Iterable[Hostile], num_clients: int) -> Report:
    """Sends them, some at once, with right ones among them and one at the end."""
    parts = urllib.parse.urlsplit(url)
    right = Hostile("right", [valid_request(name)], frozenset({200}))
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
            sent = b"".join(chunk or b"" for chunk in request.chunks)
            report.wrong.append(f"{request.kind}: {problem}, sent {sent[:300]!r}")

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
                if chunk is not None:
                    writer.write(chunk)
                    await writer.drain()
            if request.leaves:
                return CUT, b""
        except OSError:
            pass  # cut off; there may be a reply all the same
        head = await reader.readuntil(b"\r\n\r\n")
        lines = head.decode("latin-1").split("\r\n")
        fields = dict(line.lower().split(": ", 1) for line in lines[1:] if ": " in line)
        is_head = request.chunks[0] is not None and request.chunks[0].startswith(b"HEAD")
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


if __name__ == "__main__":
    terminal.run(main)
