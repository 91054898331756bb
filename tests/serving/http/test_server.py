"""A real server process, from the outside."""

import asyncio
import json
import signal
import socket
import urllib.parse

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from mate_tf.serving.loading import from_pretrained
from mate_tf.tables.table import Table
from tests.serving.server_process import NAME, running

HEADER, ROWS = ["a", "b"], [["c", "1"], ["d", "2"], ["e", "3"]]


def request(*questions, rows=ROWS):
    table = {"header": HEADER, "rows": rows}
    return {"instances": [{"question": text, "table": table} for text in questions]}


def metrics(server):
    families = text_string_to_metric_families(httpx.get(f"{server.url}/metrics").text)
    return {
        (sample.name, *sample.labels.values()): sample.value
        for family in families
        for sample in family.samples
    }


def test_answers_are_the_models_in_the_questions_order(server, tiny_model):
    predictor = from_pretrained(tiny_model, num_alternatives=2)
    table = Table.from_rows(ROWS, header=HEADER)
    questions = ["a", "b c", "g h"]
    reply = httpx.post(server.predict, json=request(*questions))
    assert reply.status_code == 200
    assert reply.headers["content-type"] == "application/json"
    for question, told in zip(questions, reply.json()["predictions"], strict=True):
        expected = predictor.answer(table, question)
        assert told["answer"] == expected.text and told["items"] == list(expected.items)
        assert told["score"] == pytest.approx(expected.score, abs=1e-5)
        assert len(told["alternatives"]) == len(expected.alternatives)
        assert [(c["row"], c["column"], c["text"]) for c in told["cells"]] == [
            (cell.row, cell.column, cell.text) for cell in expected.cells
        ]


def test_health(server):
    for path, reply in (
        ("/", {"status": "alive"}),
        ("/v1/models", {"models": [NAME]}),
        (f"/v1/models/{NAME}", {"name": NAME, "ready": True}),
        ("/v2/health/live", {"live": True}),
        ("/v2/health/ready", {"ready": True}),
        (f"/v2/models/{NAME}/ready", {"name": NAME, "ready": True}),
    ):
        assert httpx.get(server.url + path).json() == reply


def test_there_are_no_other_ways_in(server):
    """Nor to ask; test_hostile.py has more of them."""
    for path in ("/docs", f"/v2/models/{NAME}/infer"):
        reply = httpx.post(server.url + path, json={})
        assert (reply.status_code, reply.json()["code"]) == (404, "not_found")
    for method in ("GET", "HEAD", "PUT"):
        reply = httpx.request(method, server.predict)
        assert (reply.status_code, reply.headers["allow"]) == (405, "POST")


def test_a_table_that_is_too_long_for_the_model_is_refused_with_its_place(server):
    document = request("a", "b")
    document["instances"][1]["table"] = {"header": HEADER, "rows": ROWS * 400}
    reply = httpx.post(server.predict, json=document)
    assert reply.status_code == 413
    assert reply.json()["code"] == "too_long"
    assert reply.json()["where"] == "instances[1]"
    assert "expected at most 1024 tokens, got 24" in reply.json()["error"]


def test_prometheus_is_told_what_is_done(server):
    before = metrics(server)
    httpx.post(server.predict, json=request("a", "b"))
    httpx.post(server.predict, json=request("a", 1))
    after = metrics(server)
    assert after["mate_tf_questions_total",] == before["mate_tf_questions_total",] + 2
    refused = ("mate_tf_refused_total", "wrong_type")
    assert after[refused] == before.get(refused, 0) + 1
    for name in ("mate_tf_request_seconds_count", "mate_tf_batch_questions_sum"):
        assert after[name,] > before[name,]
    assert after["mate_tf_waiting_questions",] == 0
    assert after["process_resident_memory_bytes",] > 0


@pytest.mark.medium
def test_a_port_that_is_taken_is_said_before_the_model_is_loaded(tmp_path, tiny_model):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with (
            pytest.raises(AssertionError, match=rf"Address already in use .* port {port}"),
            running(tiny_model, tmp_path, f"--port={port}"),
        ):
            raise AssertionError("expected no server")


@pytest.mark.medium
def test_a_server_under_load_limits_what_waits_and_ends_with_what_was_asked(tmp_path, tiny_model):
    rows = [["c", "1"]] * 300
    body = json.dumps(request(*["a"] * 4, rows=rows)).encode()
    flags = ("--max_waiting=8", "--max_connections=40", "--max_batch=2")

    async def ask(client, server):
        try:
            reply = await client.post(server.predict, content=body)
        except httpx.TransportError:
            return "not connected"
        if reply.status_code != 200:
            assert reply.headers["retry-after"] == "1"
        return reply.status_code

    async def load(server):
        async with httpx.AsyncClient(timeout=60) as client:
            replies = await asyncio.gather(*(ask(client, server) for _ in range(24)))
            last: list[asyncio.Task] = []
            # Until some are in the queue when the signal comes.
            while (await waiting(client, server)) == 0:
                if all(task.done() for task in last):
                    last = [asyncio.create_task(ask(client, server)) for _ in range(2)]
            server.process.send_signal(signal.SIGTERM)
            return replies, await asyncio.gather(*last)

    async def waiting(client, server):
        text = (await client.get(f"{server.url}/metrics")).text
        return float(text.split("\nmate_tf_waiting_questions ")[1].split("\n")[0])

    with running(tiny_model, tmp_path, *flags) as server:
        address = urllib.parse.urlsplit(server.url)
        with socket.create_connection((address.hostname, address.port)) as half_open:
            half_open.sendall(b"POST / HTTP/1.1\r\n")
            replies, last = asyncio.run(load(server))
            assert server.process.wait() == 0
    assert set(replies) == {200, 429}
    assert last == [200, 200]
