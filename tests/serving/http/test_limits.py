"""What a request may take of a server, with an application and clients that are functions."""

import asyncio
import json

import pytest

from mate_tf.serving.http.limits import RequestLimits

LEAVES = {"type": "http.disconnect"}


def piece(data=b"", more=True):
    return {"type": "http.request", "body": data, "more_body": more}


async def echo(scope, receive, send):
    """Replies with the body of the request."""
    message = await receive()
    assert not message["more_body"]
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": message["body"]})


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


class Client:
    """Sends its messages and keeps what it gets; knows when it is asked for more."""

    def __init__(self, messages, headers=(), version="1.1"):
        self.left, self.got, self.is_asked_for_more = list(messages), [], asyncio.Event()
        self.scope = {"type": "http", "headers": list(headers), "http_version": version}

    async def receive(self):
        if not self.left:
            self.is_asked_for_more.set()
            await asyncio.Future()
        return self.left.pop(0)

    async def send(self, message):
        self.got.append(message)


def ask(messages, app=echo, headers=(), version="1.1", **limits):
    """Status and body that come of a client's messages, and the codes of refusals."""
    codes: list[str] = []
    options = {"max_body_bytes": 10, "body_seconds": 60, "reply_seconds": 60} | limits
    limited = RequestLimits(app, **options, on_refused=codes.append)
    client = Client(messages, headers, version)
    asyncio.run(limited(client.scope, client.receive, client.send))
    assert limited._bytes_held == 0
    if not client.got:
        return None, None, codes
    start, end = client.got
    return start["status"], end["body"], codes


def test_a_body_in_pieces_is_handed_on_as_one():
    messages = [piece(b"123"), piece(b""), piece(b"4567890", more=False)]
    assert ask(messages) == (200, b"1234567890", [])


@pytest.mark.parametrize(
    ("messages", "headers", "got"),
    [
        ([piece(b"12345678901", more=False)], (), "11"),
        ([piece(b"123456"), piece(b"78901"), piece(b"2", more=False)], (), "11 and more"),
        ([piece(b"1"), LEAVES], [(b"content-length", b"11")], "11"),
        ([], [(b"content-length", b"9" * 30), (b"expect", b"100-continue")], "9" * 20),
    ],
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
        limited = RequestLimits(Busy(), 10, 60, 60, on_refused=codes.append)
        asking = asyncio.create_task(limited(client.scope, client.receive, client.send))
        await client.is_asked_for_more.wait()
        assert not limited.has_cut_off
        asking.cancel("the end")
        with pytest.raises(asyncio.CancelledError, match="the end"):
            await asking
        return limited

    limited = asyncio.run(ended())
    assert limited.has_cut_off and limited._bytes_held == 0
    start, end = client.got
    assert (start["status"], json.loads(end["body"])["code"]) == (503, "stopping")
    assert codes == ["stopping"]


def test_an_error_of_the_application_is_its_own():
    async def broken(scope, receive, send):
        raise RuntimeError("broken")

    with pytest.raises(RuntimeError, match="broken"):
        ask([piece(more=False)], app=broken)


def test_what_all_requests_hold_is_limited():
    async def together():
        codes = []
        limited = RequestLimits(echo, 10, 60, 60, on_refused=codes.append)
        finish = asyncio.Event()

        async def client(status):
            messages = [piece(more=False), piece(b"1234567890")]

            async def receive():
                if len(messages) == 1:
                    await finish.wait()
                return messages.pop() if messages else await asyncio.Future()

            async def send(message):
                if message["type"] == "http.response.start":
                    status.append(message["status"])
                    finish.set()

            await limited({"type": "http", "headers": [], "http_version": "1.1"}, receive, send)

        statuses: list[int] = []
        await asyncio.gather(*(client(statuses) for _ in range(33)))
        return statuses, codes

    statuses, codes = asyncio.run(together())
    assert sorted(statuses) == [200] * 32 + [429]
    assert codes == ["busy"]
