"""A real server and requests that are wrong in every way."""

import asyncio
import itertools

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from experiments.benchmarks.hostile_test import hostile_requests, send_all
from mate_tf.serving.http.requests import Limits
from tests.serving.server_process import NAME

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
    requests = itertools.islice(hostile_requests(NAME, Limits(), 2 * 1024**2), COUNT)
    report = asyncio.run(send_all(server.url, NAME, requests, num_clients=16))
    assert report.wrong == []
    assert sum(counts.total() for counts in report.outcomes.values()) == COUNT * 1.1 + 1
    assert report.outcomes["right"] == {200: COUNT // 10 + 1}
    assert server.process.poll() is None
    assert files(server) == files_before  # TensorFlow's own, of what it compiled at the start
    # A body of 2 MB takes its multiple as JSON; 16 of them at once take less than this.
    assert memory(server) < before + 500e6
    assert httpx.get(f"{server.url}/v2/health/ready").json() == {"ready": True}


@pytest.mark.parametrize("seed", [0, 1])
def test_hostile_requests_are_the_same_for_a_seed_and_of_every_kind(seed):
    first, second = (
        list(itertools.islice(hostile_requests("m", Limits(), 10_000, seed), 500)) for _ in "ab"
    )
    assert first == second
    assert len({request.kind for request in first}) == 17
