"""Loads a server with clients of real tables, and prints errors, times and memory.

    python -m experiments.benchmarks.server_load --wtq=WikiTableQuestions --minutes=10

It starts `mate-tf serve` (experiments.benchmarks.starts measures how soon it is ready). --clients
ask questions of WikiTableQuestions' training split one after the other, --long_share of
them about tables of --long_tokens tokens: one column, one cell, or 60 columns. Last, requests come
at random times, at --load times the rate of answers before. One of the --clients that gets a 503
waits for as long as Retry-After says. Clients and server share the machine.
"""

import asyncio
import itertools
import json
import logging
import random
import statistics
import subprocess
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from typing import NamedTuple

from absl import app, flags

from experiments.benchmarks.runners import process_megabytes, started, wait_for
from mate_tf.datasets.tasks import read_split

_WTQ = flags.DEFINE_string("wtq", None, "the folder of WikiTableQuestions' release", required=True)
_CLIENTS = flags.DEFINE_integer("clients", 32, "clients at once", lower_bound=1)
_MINUTES = flags.DEFINE_float("minutes", 10, "minutes of clients one after the other", 0)
_OPEN_MINUTES = flags.DEFINE_float("open_minutes", 3, "minutes of requests at random times", 0)
_LOAD = flags.DEFINE_float("load", 0.8, "rate of random requests by that of answers before", 0)
_LONG_SHARE = flags.DEFINE_float("long_share", 0.01, "share of long tables", 0, 1)
_LONG_TOKENS = flags.DEFINE_integer("long_tokens", 16_384, "tokens of long tables", 512)
_SEED = flags.DEFINE_integer("seed", 1, "the seed of the order and of the times")

_PATIENCE = 300.0  # seconds
_WORDS_A_ROW = 6  # of the long tables' cells; each is one token


class Reply(NamedTuple):
    """The result of a request: the seconds, and a status or an error's name."""

    seconds: float
    outcome: str
    retry_after: int = 0  # seconds


def main(_: list[str]) -> None:
    logging.getLogger("httpx").setLevel(logging.WARNING)  # it tells each request
    limits = f"--max-tokens={_LONG_TOKENS.value}", "--max-body-bytes=4000000"
    with started("serve", "--name=tables", "--port=0", *limits) as (server, log, url):
        wait_for(log, server, "^ready")
        asyncio.run(_measure(server, url))


async def _measure(server: subprocess.Popen, url: str) -> None:
    import httpx

    limits = httpx.Limits(max_connections=1_000)
    async with httpx.AsyncClient(base_url=url, limits=limits, timeout=_PATIENCE) as client:
        bodies = _bodies(random.Random(_SEED.value))
        replies = await _clients_in_turn(client, bodies, server)
        rate = sum(reply.outcome == "200" for reply in replies) / (60 * _MINUTES.value)
        rate *= _LOAD.value
        _print(f"{_CLIENTS.value} clients, {_MINUTES.value:g} minutes", replies)
        print(f"peak: {int(process_megabytes('VmHWM', server.pid)):,} MB", flush=True)
        bodies = _bodies(random.Random(_SEED.value + 1), long_share=0)
        replies = await _at_random_times(client, bodies, rate)
        _print(f"{rate:.1f} requests a second at random times", replies)


def _bodies(draw: random.Random, long_share: float | None = None) -> Iterator[bytes]:
    """Requests without end, about tables in a random order."""
    read = read_split("WTQ", _WTQ.value, "train")
    by_table = {table.table_id: (table, question) for table, question in read}
    pairs = list(by_table.values())
    long_tables = itertools.cycle(_long_tables(_LONG_TOKENS.value - 500))
    share = _LONG_SHARE.value if long_share is None else long_share
    while True:
        if draw.random() < share:
            question, table = "which one is it?", next(long_tables)
        else:
            chosen, asked = draw.choice(pairs)
            question, table = asked.text, {"header": chosen.header, "rows": chosen.rows}
        yield json.dumps({"instances": [{"question": question, "table": table}]}).encode()


def _long_tables(tokens: int) -> Iterator[dict]:
    rows = tokens // _WORDS_A_ROW
    yield {"header": ["a"], "rows": [["one " * _WORDS_A_ROW]] * rows}
    yield {"header": ["a"], "rows": [["b " * 4_900]]}  # a cell has 10,000 characters at most
    yield {"header": ["a"] * 60, "rows": [["b"] * 60] * (tokens // 60 - 1)}


async def _ask(client, body: bytes) -> Reply:
    import httpx

    asked, retry_after = time.monotonic(), 0
    try:
        reply = await client.post("/v1/models/tables:predict", content=body)
        outcome = str(reply.status_code)
        retry_after = int(reply.headers.get("retry-after", 0))
        if reply.status_code >= 400:
            outcome += " " + reply.json()["code"]
    except httpx.TransportError as error:
        outcome = type(error).__name__
    return Reply(time.monotonic() - asked, outcome, retry_after)


async def _clients_in_turn(client, bodies: Iterator[bytes], server) -> list[Reply]:
    """The replies to clients that each wait for theirs; prints the memory each minute."""
    replies: list[Reply] = []
    end = time.monotonic() + 60 * _MINUTES.value

    async def one() -> None:
        while time.monotonic() < end:
            replies.append(await _ask(client, next(bodies)))
            await asyncio.sleep(replies[-1].retry_after)

    async def watch() -> None:
        while time.monotonic() < end:
            await asyncio.sleep(min(60, 60 * _MINUTES.value))
            megabytes = int(process_megabytes("VmRSS", server.pid))
            print(f"{len(replies)} replies, {megabytes:,} MB", flush=True)

    await asyncio.gather(watch(), *(one() for _ in range(_CLIENTS.value)))
    return replies


async def _at_random_times(client, bodies: Iterator[bytes], rate: float) -> list[Reply]:
    """The replies to requests that come whether or not others were answered."""
    draw = random.Random(_SEED.value)

    async def times() -> AsyncIterator[None]:
        due = end = time.monotonic()
        end += 60 * _OPEN_MINUTES.value
        while due < end:
            due += draw.expovariate(rate)
            await asyncio.sleep(max(due - time.monotonic(), 0))
            yield

    asked = [asyncio.create_task(_ask(client, next(bodies))) async for _ in times()]
    return await asyncio.gather(*asked)


def _print(title: str, replies: list[Reply]) -> None:
    outcomes = Counter(reply.outcome for reply in replies)
    seconds = sorted(reply.seconds for reply in replies if reply.outcome == "200")
    if not seconds:
        raise SystemExit(f"{title}: {len(replies)} requests and no answer, {dict(outcomes)}")
    median, late = statistics.median(seconds), seconds[int(0.99 * len(seconds))]
    print(
        f"{title}: {len(replies)} requests, {dict(outcomes)}; median {median:.2f} s, 99th "
        f"percentile {late:.2f} s, {late / median:.1f} times; longest {seconds[-1]:.1f} s, "
        f"of all replies {max(reply.seconds for reply in replies):.1f} s",
        flush=True,
    )


if __name__ == "__main__":
    app.run(main)
