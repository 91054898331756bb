"""A real server process, from the outside."""

import asyncio
import contextlib
import functools
import gzip
import json
import shutil
import signal
import socket
import time
import urllib.parse
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from mate_tf import __version__
from mate_tf.serving.http import Limits
from mate_tf.serving.loading import from_pretrained
from mate_tf.tables.table import Table
from mate_tf.weights.folder import VOCAB_FILE
from tests.serving.processes import NAME, running

post = functools.partial(httpx.post, timeout=60)
CLOSED = ("mate_tf_refused_total", "idle")  # connections, to make room
HEADER, ROWS = ["a", "b"], [["c", "1"], ["d", "2"], ["e", "3"]]


def send(stack, server, *parts):
    """A connection on which something was sent; it is closed with the stack."""
    address = urllib.parse.urlsplit(server.url)
    client = stack.enter_context(socket.create_connection((address.hostname, address.port)))
    client.sendall(b"".join(parts))
    return client


def request(*questions, rows=ROWS):
    table = {"header": HEADER, "rows": rows}
    return {"instances": [{"question": text, "table": table} for text in questions]}


def test_answers_are_the_models_in_the_questions_order(server, tiny_model):
    predictor = from_pretrained(tiny_model, num_alternatives=2)
    table = Table.from_rows(ROWS, header=HEADER)
    questions = ["a", "b c", "g h"]
    reply = post(server.predict, json=request(*questions))
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


def without_scores(prediction):
    cells = [(cell["row"], cell["column"], cell["text"]) for cell in prediction["cells"]]
    others = [other["items"] for other in prediction["alternatives"]]
    return prediction["items"], prediction["aggregation"], cells, others


def test_an_answer_does_not_depend_on_what_is_asked_beside_it(server):
    documents = [
        request(question, rows=(ROWS * 60)[first : first + size])
        for number, question in enumerate(["a", "b c", "g h", "d e f"])
        for first, size in ((number % 3, 1 + number), (0, 30), (1, 100), (2, 130))
    ]

    def ask(document):
        return post(server.predict, json=document).json()["predictions"]

    alone = [ask(document) for document in documents]
    together = ask({"instances": [one for document in documents for one in document["instances"]]})
    with ThreadPoolExecutor(8) as threads:
        at_once = list(threads.map(ask, documents * 2))
    for one, *others in zip(alone * 2, [[one] for one in together] * 2, at_once, strict=True):
        for (found,) in others:
            assert without_scores(found) == without_scores(one[0])
            assert found["score"] == pytest.approx(one[0]["score"], abs=1e-5)
    assert len({str(without_scores(one[0])) for one in alone}) > 4


def test_health(server):
    for path, reply in (
        ("/", {"status": "alive"}),
        ("/v1/models", {"models": [NAME]}),
        (f"/v1/models/{NAME}", {"name": NAME, "ready": True}),
        ("/v2", {"name": "mate_tf", "version": __version__, "extensions": ["binary_tensor_data"]}),
        ("/v2/models", {"models": [NAME]}),
        ("/v2/health/live", {"live": True}),
        ("/v2/health/ready", {"ready": True}),
        (f"/v2/models/{NAME}/ready", {"name": NAME, "ready": True}),
        (f"/v2/models/{NAME}/versions/1/ready", {"name": NAME, "ready": True}),
    ):
        assert httpx.get(server.url + path).json() == reply


def test_there_are_no_other_ways_in(server):
    """Nor to ask; test_hostile.py has more of them."""
    for path in (f"/v2/repository/models/{NAME}/load", "/openai/v1/completions"):
        reply = post(server.url + path, json={})
        assert (reply.status_code, reply.json()["code"]) == (404, "not_found")
    for path in (f"/v2/models/{NAME}/versions/2", "/v2/models/other/ready", "/v1/models/other"):
        reply = httpx.get(server.url + path)
        assert (reply.status_code, reply.json()["code"]) == (404, "not_found")
    assert httpx.head(f"{server.url}/v2/health/ready").status_code == 200
    for method in ("GET", "HEAD", "PUT"):
        reply = httpx.request(method, server.predict)
        assert (reply.status_code, reply.headers["allow"]) == (405, "POST")


def test_each_form_gets_the_same_answer(server):
    said = post(server.predict, json=request("a")).json()["predictions"][0]
    columns = {"a": ["c", "d", "e"], "b": ["1", "2", "3"]}
    reply = post(server.predict, json={"inputs": {"query": "a", "table": columns}})
    assert reply.json()["answer"] == said["answer"]
    csv = {"instances": [{"questions": ["a", "b"], "table": "a,b\nc,1\nd,2\ne,3\n"}]}
    packed = gzip.compress(json.dumps(csv | {"alternatives": 1}).encode())
    headers = {"content-encoding": "gzip", "x-request-id": "mine"}
    reply = post(server.predict, content=packed, headers=headers)
    assert reply.headers["x-request-id"] == "mine"
    first, _ = reply.json()["predictions"][0]
    assert first["answer"] == said["answer"] and len(first["alternatives"]) == 1
    data = {"question": ["a"], "table": [json.dumps(columns)]}
    inputs = [{"name": n, "shape": [1], "datatype": "BYTES", "data": d} for n, d in data.items()]
    reply = post(f"{server.url}/v2/models/{NAME}/infer", json={"inputs": inputs})
    outputs = {output["name"]: output["data"] for output in reply.json()["outputs"]}
    assert outputs["answer"] == [said["answer"]]
    assert outputs["score"] == [pytest.approx(said["score"], abs=1e-5)]
    assert json.loads(outputs["prediction"][0])["cells"][0]["text"] == said["cells"][0]["text"]


def test_of_a_table_longer_than_the_model_rows_are_read_or_it_is_refused_with_its_place(server):
    document = request("a", "b")
    document["instances"][1]["table"] = {"header": HEADER, "rows": ROWS * 400}
    first, second = post(server.predict, json=document).json()["predictions"]
    read = 400 * len(ROWS) - second["rows_dropped"]
    assert second["coverage"].startswith(f"read {read} of {400 * len(ROWS):,} rows, chosen by")
    assert first["rows_dropped"] == 0 and "coverage" not in first
    wide = ["a " * 600, "b " * 600]
    document["instances"][1]["table"] = {"header": wide, "rows": [["c", "d"]]}
    reply = post(server.predict, json=document)
    assert reply.status_code == 413
    assert reply.json()["code"] == "too_long"
    assert reply.json()["where"] == "instances[1]"
    assert "expected at most 1024 tokens, got 12" in reply.json()["error"]


def test_prometheus_is_told_what_is_done(server):
    before = server.metrics()
    post(server.predict, json=request("a", "b"))
    post(server.predict, json=request("a", 1))
    after = server.metrics()
    assert after["mate_tf_questions_total",] == before["mate_tf_questions_total",] + 2
    refused = ("mate_tf_refused_total", "wrong_type")
    assert after[refused] == before.get(refused, 0) + 1
    assert after["mate_tf_request_seconds_count",] > before["mate_tf_request_seconds_count",]
    assert after["mate_tf_waiting_questions",] == 0
    assert after["process_resident_memory_bytes",] > 0


@pytest.mark.medium
def test_a_server_that_cannot_begin_says_why(tmp_path, tiny_model):
    """Of a port that is taken before the model is loaded, as there is none."""
    broken = shutil.copytree(tiny_model, tmp_path / "model")
    (broken / VOCAB_FILE).write_text("a\na\n")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        for name, flags, message in (
            ("taken", [f"--port={port}"], rf"Address already in use .* port {port}"),
            ("broken", [], r"(?s)ended with 1: .*mate-tf: .*vocab"),
        ):
            with (
                pytest.raises(AssertionError, match=message),
                running(broken, tmp_path / name, *flags),
            ):
                raise AssertionError("expected no server")


@pytest.mark.medium
def test_a_server_under_load_answers_all_and_ends_with_what_was_asked(tmp_path, tiny_model):
    body = json.dumps(request(*["a"] * 4, rows=[["c", "1"]] * 300)).encode()
    body += b" " * (150_000 - len(body))
    flags = ("--max-waiting-bytes=600000", "--body-seconds=60")

    async def ask(client, server):
        return (await client.post(server.predict, content=body)).status_code

    async def health(server, is_over):
        """The statuses of probes, each on a connection of its own."""
        statuses = []
        while not is_over.is_set() or not statuses:
            for probe in ("live", "ready"):
                async with httpx.AsyncClient(timeout=60) as client:
                    reply = await client.get(f"{server.url}/v2/health/{probe}")
                statuses.append(reply.status_code)
            await asyncio.sleep(0.05)
        return statuses

    async def load(server):
        limits, is_over = httpx.Limits(max_connections=None), asyncio.Event()
        probing = asyncio.create_task(health(server, is_over))
        async with httpx.AsyncClient(timeout=60, limits=limits) as client:
            replies = await asyncio.gather(*(ask(client, server) for _ in range(24)))
            is_over.set()
            replies += await probing
            last: list[asyncio.Task] = []
            # Until some are in the queue when the signal comes.
            while (await asyncio.to_thread(server.metrics))["mate_tf_waiting_questions",] == 0:
                if all(task.done() for task in last):
                    last = [asyncio.create_task(ask(client, server)) for _ in range(2)]
            server.process.send_signal(signal.SIGTERM)
            return replies, await asyncio.gather(*last)

    with running(tiny_model, tmp_path, *flags) as server, contextlib.ExitStack() as idle:
        for _ in range(300):  # more than may be open; they keep nobody out
            send(idle, server, b"POST / HTTP/1.1\r\n")
        assert server.metrics()[CLOSED] >= 300 - Limits().max_connections
        replies, last = asyncio.run(load(server))
        assert server.process.wait() == 0
    assert set(replies) == {200}
    assert last == [200, 200]


@pytest.mark.medium
def test_slow_and_gone_clients_cost_others_nothing_and_sigterm_ends_in_its_grace(
    tmp_path, tiny_model
):
    """Clients announce more than all bodies may have, send it byte by byte, or leave."""
    flags = ("--grace-seconds=3", "--max-waiting-bytes=2000000", "--body-seconds=60")
    head = b"POST /v1/models/%b:predict HTTP/1.1\r\nhost: a\r\ncontent-length: %%d\r\n\r\n"
    head %= NAME.encode()
    long = json.dumps(request(*["a"] * 16, rows=[["c", "1"]] * 250)).encode()
    with running(tiny_model, tmp_path, *flags) as server, contextlib.ExitStack() as stack:
        slow = [
            send(stack, server, head % 2_000_000, bytes(size)) for size in [0] * 100 + [50_000] * 50
        ]
        body = json.dumps(request("a")).encode() + b" " * 1_000_000
        for client in slow:
            client.sendall(b" ")
        assert post(server.predict, content=body).status_code == 200  # none of them is cut off
        assert server.metrics()["process_open_fds",] > len(slow)
        for _ in range(30):
            send(stack, server, head % len(long), long).close()
        while server.metrics().get(("mate_tf_refused_total", "gone"), 0) < 30:
            time.sleep(0.05)
        assert server.metrics()["mate_tf_waiting_questions",] == 0
        for client in slow:
            client.sendall(b" ")
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(timeout=3 + 5) == 1  # these requests are not answered
