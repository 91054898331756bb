"""What a request may take of a server, with an application and clients that are functions."""

import asyncio
import contextlib
import dataclasses
import json
import re

import pytest

from mate_tf.serving.http import Limits
from mate_tf.serving.http.limits import RefusedError, RequestLimits
from tests.small import cases

LIMITS = Limits(max_body_bytes=10, body_seconds=60, reply_seconds=60)

LEAVES = {"type": "http.disconnect"}


def piece(data=b"", more=True):
    return {"type": "http.request", "body": data, "more_body": more}


async def echo(scope, receive, send):
    """Replies with the body of the request."""
    message = await receive()
    assert not message["more_body"]
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": message["body"]})


def scope(headers=(), version="1.1"):
    return {
        "type": "http",
        "method": "POST",
        "path": "/a\nb",
        "client": ("1.2.3.4", 5),
        "headers": headers,
        "http_version": version,
    }


class Busy:
    """Never replies, and knows when it is told not to."""

    was_cancelled = False

    async def __call__(self, scope, receive, send):
        await receive()
        try:
            await asyncio.Future()
        except asyncio.CancelledError:
            self.was_cancelled = True
            raise


class Connection:
    """Knows what it was told; there may be none any more."""

    def __init__(self, is_open=True):
        self.told, self.is_open = [], is_open

    @contextlib.contextmanager
    def busy(self, client):
        assert client == ("1.2.3.4", 5)
        yield self if self.is_open else None

    def has_asked(self, version):
        self.told.append(version)

    def is_told(self):
        self.told.append("reply")


class Client:
    """Sends its messages and keeps what it gets; knows when it is asked for more."""

    def __init__(self, messages, headers=(), version="1.1"):
        self.left, self.got, self.is_asked_for_more = list(messages), [], asyncio.Event()
        self.scope = scope(list(headers), version)

    async def receive(self):
        if not self.left:
            self.is_asked_for_more.set()
            await asyncio.Future()
        return self.left.pop(0)

    async def send(self, message):
        self.got.append(message)


def ask(messages, app=echo, headers=(), version="1.1", connection=None, log=None, **limits):
    """Status and body that come of a client's messages, and the codes of refusals."""
    codes: list[str] = []
    lines: list[str] = [] if log is None else log
    limited = RequestLimits(
        app,
        dataclasses.replace(LIMITS, **limits),
        connection or Connection(),
        on_refused=codes.append,
        log=lines.append,
    )
    client = Client(messages, headers, version)
    asyncio.run(limited(client.scope, client.receive, client.send))
    assert limited._held == limited._num_asking == 0
    assert len(lines) == 1
    if not client.got:
        return None, None, codes
    start, end = client.got
    return start["status"], end["body"], codes


def test_a_body_in_pieces_is_handed_on_as_one():
    messages = [piece(b"123"), piece(b""), piece(b"4567890", more=False)]
    connection, log = Connection(), []
    id_ = (b"x-request-id", b"my-id.1")
    assert ask(messages, connection=connection, log=log, headers=[id_]) == (200, b"1234567890", [])
    assert connection.told == ["1.1", "reply"]
    assert re.fullmatch(r"my-id\.1 1\.2\.3\.4 POST /a%0Ab 200 ok 10 bytes \d\.\d{3} s", log[0])


@pytest.mark.parametrize("given", [b"", b"a b", b"a\r\nb", b"x" * 65])
def test_a_request_without_a_right_id_gets_one(given):
    log: list[str] = []
    ask([piece(b"1", more=False)], headers=[(b"x-request-id", given)], log=log)
    assert re.match(r"[0-9a-f]{32} ", log[0])


def test_an_error_has_at_most_2000_characters():
    refused = RefusedError("a", "b" * 5_000, "c" * 5_000)
    assert len(str(refused)) == 2_000 and len(refused.body) < 4_100
    assert str(RefusedError("a", "b" * 2_000)) == "b" * 2_000


@cases(
    "messages, headers, got",
    ([piece(b"12345678901", more=False)], (), "11"),
    ([piece(b"123456"), piece(b"78901"), piece(b"2", more=False)], (), "11 and more"),
    ([piece(b"1"), LEAVES], [(b"content-length", b"11")], "11"),
    ([], [(b"content-length", b"9" * 30), (b"expect", b"100-continue")], "9" * 20),
    ids=["whole", "streamed", "announced", "announced with expect"],
)
def test_a_body_that_is_too_large_is_refused(messages, headers, got):
    status, body, codes = ask(messages, headers=headers)
    assert (status, codes) == (413, ["body_too_large"])
    assert json.loads(body)["error"] == f"expected at most 10 bytes, got {got}"


def test_a_body_that_does_not_end_is_cut_off():
    status, body, codes = ask([piece(b"123")], body_seconds=0.01)
    assert (status, codes) == (408, ["slow_body"])
    assert json.loads(body)["error"] == "expected the body within 0.01 s, got 3 bytes of it"


@pytest.mark.parametrize("version", ["2.0", "9.9"])
def test_another_version_of_http_is_refused(version):
    status, body, codes = ask([piece(more=False)], version=version)
    assert (status, codes) == (400, ["not_http"])
    assert version in json.loads(body)["error"]


@pytest.mark.parametrize("messages", [[LEAVES], [piece(b"1"), LEAVES]])
def test_a_client_that_leaves_while_it_sends_gets_no_reply(messages):
    assert ask(messages) == (None, None, ["gone"])
    assert ask(messages, connection=Connection(is_open=False)) == (None, None, ["gone"])


def test_the_work_for_a_client_that_leaves_is_dropped():
    busy = Busy()
    assert ask([piece(b"1", more=False), LEAVES], app=busy) == (None, None, ["gone"])
    assert busy.was_cancelled


def test_an_answer_that_takes_too_long_is_given_up():
    busy = Busy()
    status, body, codes = ask([piece(b"1", more=False)], app=busy, reply_seconds=0.01)
    assert (status, codes) == (503, ["timeout"])
    assert "within 0.01 s" in json.loads(body)["error"]
    assert busy.was_cancelled


def test_what_has_no_answer_when_the_server_ends_is_told_so():
    client, codes = Client([piece(b"1", more=False)]), []

    async def ended():
        limited = RequestLimits(Busy(), LIMITS, Connection(), on_refused=codes.append)
        asking = asyncio.create_task(limited(client.scope, client.receive, client.send))
        await client.is_asked_for_more.wait()
        assert not limited.has_cut_off
        asking.cancel("the end")
        with pytest.raises(asyncio.CancelledError, match="the end"):
            await asking
        return limited

    limited = asyncio.run(ended())
    assert limited.has_cut_off and limited._held == 0
    start, end = client.got
    assert (start["status"], json.loads(end["body"])["code"]) == (503, "stopping")
    assert codes == ["stopping"]


def test_an_error_of_the_application_is_its_own():
    async def broken(scope, receive, send):
        raise RuntimeError("broken")

    with pytest.raises(RuntimeError, match="broken"):
        ask([piece(more=False)], app=broken)


def together(limits, num_clients, size):
    """The statuses of clients that announce bodies, which come when all have begun."""

    async def run():
        limited = RequestLimits(echo, limits, Connection())
        finish = asyncio.Event()
        most_held = 0

        async def client():
            nonlocal most_held
            messages, statuses = [piece(b"1" * size, more=False)], []

            async def receive():
                nonlocal most_held
                await finish.wait()
                most_held = max(most_held, limited._held)
                return messages.pop() if messages else await asyncio.Future()

            async def send(message):
                statuses.append(message.get("status"))

            await limited(scope([(b"content-length", b"%d" % size)]), receive, send)
            return statuses[0]

        asking = [asyncio.create_task(client()) for _ in range(num_clients)]
        await asyncio.sleep(0.01)
        finish.set()
        return await asyncio.gather(*asking), most_held

    return asyncio.run(run())


def test_requests_wait_until_there_is_room_for_their_bytes():
    size = 2**17
    limits = Limits(max_body_bytes=size, max_waiting_bytes=3 * size, reply_seconds=60)
    assert together(limits, 20, size) == ([200] * 20, 3 * size)


def test_more_requests_than_connections_are_refused():
    statuses, _ = together(Limits(max_connections=5, reply_seconds=60), 7, 10)
    assert sorted(statuses) == [200] * 5 + [503] * 2
