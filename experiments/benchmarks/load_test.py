"""Asks a running server from many clients at once, and reports how it does.

    mate-tf serve --model=out/my_model --port=8080 &
    python -m experiments.benchmarks.load_test --data=out/my_data/dev.jsonl --seconds=600
    python -m experiments.benchmarks.load_test --data=out/my_data/dev.jsonl --seconds=120 \\
        --model=out/my_model

Each client sends the next question of the file, in a fixed random order, as soon as its last one is
answered. The program prints requests, refusals, errors, latencies, questions a second, and the
server's memory after the warm-up and at the end. A table that is too long for the model is refused
(413), which is no error. It exits with 1 if there was an error.

With --model it asks no server. It prints how many of the same questions the library answers a
second; run that while no server runs. If other work runs beside it, compare the processor time a
question, which both print.
"""

import asyncio
import collections
import itertools
import random
import time
from typing import NamedTuple

import numpy as np
import orjson
from absl import flags

from experiments import program
from mate_tf.command_line import arguments

_OPTIONS = program.define_flags(arguments.add_questions, arguments.add_model)
_URL = flags.DEFINE_string("url", "http://127.0.0.1:8080", "the server")
_CLIENTS = flags.DEFINE_integer("clients", 16, "how many ask at once", lower_bound=1)
_SECONDS = flags.DEFINE_float("seconds", 60.0, "how long is measured", lower_bound=1.0)
_WARM_UP = flags.DEFINE_float(
    "warm_up_seconds", 30.0, "for how long is asked before that", lower_bound=0.0
)
_SEED = 0


class Reply(NamedTuple):
    """When a request was sent, how many seconds it took, and its outcome."""

    sent: float
    seconds: float
    outcome: str

    @property
    def is_error(self) -> bool:
        return not self.outcome.startswith(("200", "413"))


class Usage(NamedTuple):
    """What a server reports: bytes it holds, processor seconds and answered questions so far."""

    memory: float
    processor_seconds: float
    questions: float


def main(_) -> int:
    pairs = list(arguments.read_asked(_OPTIONS()).pairs)
    random.Random(_SEED).shuffle(pairs)
    if _OPTIONS().model:
        _ask_the_model(itertools.cycle(pairs))
        return 0
    return asyncio.run(_ask_the_server(itertools.cycle([_body(*pair) for pair in pairs])))


def _ask_the_model(pairs) -> None:
    """Measures whole calls, which sort their questions by length; the first one warms up."""
    from mate_tf.features.builder import QUESTIONS_AT_ONCE

    predictor = arguments.load_model(_OPTIONS())
    collections.deque(predictor.answer_all(itertools.islice(pairs, QUESTIONS_AT_ONCE)), 0)
    answered, start, start_processor = 0, time.monotonic(), time.process_time()
    while (seconds := time.monotonic() - start) < _SECONDS.value:
        asked = itertools.islice(pairs, QUESTIONS_AT_ONCE)
        answers = [answer for _, _, answer in predictor.answer_all(asked)]
        answered += sum(not isinstance(answer, ValueError) for answer in answers)
    processor = time.process_time() - start_processor
    print(f"questions: {answered} in {seconds:.0f} s")
    print(f"questions/s: {answered / seconds:.2f}")
    print(f"processor time: {processor / answered:.3f} s a question")


async def _ask_the_server(bodies) -> int:
    import httpx

    unlimited = httpx.Limits(max_connections=None, max_keepalive_connections=None)
    async with httpx.AsyncClient(base_url=_URL.value, timeout=120.0, limits=unlimited) as client:
        (name,) = (await client.get("/v1/models")).json()["models"]
        start = time.monotonic() + _WARM_UP.value
        end = start + _SECONDS.value
        replies: list[Reply] = []
        path = f"/v1/models/{name}:predict"
        clients = [
            asyncio.create_task(_ask(client, path, bodies, end, replies))
            for _ in range(_CLIENTS.value)
        ]
        await asyncio.sleep(_WARM_UP.value)
        before = await _usage(client)
        await asyncio.gather(*clients)
        after = await _usage(client)
    measured = [reply for reply in replies if start <= reply.sent + reply.seconds <= end]
    print("\n".join(report(measured, _SECONDS.value, before, after)))
    others = sum(reply.is_error for reply in replies) - sum(reply.is_error for reply in measured)
    if others:
        print(f"errors in the warm-up or after the end: {others}")
    return int(any(reply.is_error for reply in replies))


async def _ask(client, path: str, bodies, end: float, replies: list[Reply]) -> None:
    import httpx

    while (sent := time.monotonic()) < end:
        try:
            response = await client.post(
                path, content=next(bodies), headers={"content-type": "application/json"}
            )
            outcome = str(response.status_code)
            if response.status_code != 200:
                outcome += f" {response.json().get('code')}"
        except (httpx.HTTPError, ValueError) as error:
            outcome = type(error).__name__
        replies.append(Reply(sent, time.monotonic() - sent, outcome))


def _body(table, question) -> bytes:
    asked = {"question": question.text, "table": {"header": table.header, "rows": table.rows}}
    return orjson.dumps({"instances": [asked]})


async def _usage(client) -> Usage:
    """What the server reports under /metrics."""
    from prometheus_client.parser import text_string_to_metric_families

    text = (await client.get("/metrics")).text
    samples = {
        sample.name: sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }
    return Usage(
        samples["process_resident_memory_bytes"],
        samples["process_cpu_seconds_total"],
        samples["mate_tf_questions_total"],
    )


def report(replies: list[Reply], seconds: float, before: Usage, after: Usage) -> list[str]:
    """The lines to print; latencies are those of answered questions."""
    outcomes = collections.Counter(reply.outcome for reply in replies)
    answered = [reply.seconds for reply in replies if reply.outcome == "200"]
    lines = [
        f"requests: {len(replies)}",
        f"errors: {sum(reply.is_error for reply in replies)}",
        *(f"  {outcome}: {count}" for outcome, count in outcomes.most_common()),
        f"questions/s: {len(answered) / seconds:.2f}",
    ]
    if answered:
        percentiles = np.percentile(answered, [50, 90, 99, 100])
        named = zip(("50 %", "90 %", "99 %", "all"), percentiles, strict=True)
        lines.append("latency: " + ", ".join(f"{name} {value:.2f} s" for name, value in named))
    questions = after.questions - before.questions
    if questions:
        processor = (after.processor_seconds - before.processor_seconds) / questions
        lines.append(f"processor time: {processor:.3f} s a question")
    lines.append(
        f"memory: {before.memory / 1e6:.0f} MB after the warm-up, {after.memory / 1e6:.0f} MB at "
        f"the end ({after.memory / before.memory - 1:+.1%})"
    )
    return lines


if __name__ == "__main__":
    program.run(main)
