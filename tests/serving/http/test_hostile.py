"""A real server and requests that are wrong in every way."""

import asyncio
import itertools

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.serving.http.hostile import hostile_requests, send_all

COUNT = 2_000


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
