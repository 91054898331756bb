"""What a request may take of a server, with an application and clients that are functions.

And which connections are closed, with a protocol that is a few lines and real sockets.
"""

import asyncio
import contextlib
import dataclasses
import json
import re

import pytest

from mate_tf.serving.http import Limits, RefusedError
from mate_tf.serving.http.limits import Connections, RequestLimits
from tests.small import cases

LIMITS = Limits(max_body_bytes=10, body_seconds=60, reply_seconds=60)

LEAVES = {"type": "http.disconnect"}


def piece(data=b"", more=True):
    return {"type": "http.request", "body": data, "more_body": more}


WHOLE = piece(b"1", more=False)


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


class Connection:
    """Knows what it was told."""

    def __init__(self):
        self.versions = []

    @contextlib.contextmanager
    def busy(self, scope):
        yield
        self.versions.append("end")

    asks_in = property(fset=lambda self, version: self.versions.append(version))


class Client:
    """Sends messages, more of them when it gets them, and keeps what it is sent."""

    def __init__(self, *messages, headers=(), version="1.1", connection=None):
        self.queue, self.got, self.is_asked_for_more = asyncio.Queue(), [], asyncio.Event()
        for message in messages:
            self.queue.put_nowait(message)
        self.scope = {"type": "http", "method": "POST", "path": "/a\nb", "http_version": version}
        self.scope |= {"client": ("1.2.3.4", 5), "headers": list(headers)}
        self.scope["state"] = {"connection": connection or Connection()}

    async def receive(self):
        if self.queue.empty():
            self.is_asked_for_more.set()
        return await self.queue.get()

    async def send(self, message):
        self.got.append(message)

    async def asks(self, limited):
        """Asks an application; returns the status of its reply, if there is one."""
        await limited(self.scope, self.receive, self.send)
        return self.got[0]["status"] if self.got else None


def ask(*messages, app=echo, log=None, headers=(), version="1.1", connection=None, **limits):
    """Status and body that come of a client's messages, and the codes of refusals."""
    codes: list[str] = []
    lines: list[str] = [] if log is None else log

    async def run():
        made = dataclasses.replace(LIMITS, **limits)
        limited = RequestLimits(app, made, on_refused=codes.append, log=lines.append)
        client = Client(*messages, headers=headers, version=version, connection=connection)
        status = await client.asks(limited)
        assert limited.bodies.held == limited.num_asking == 0 and len(lines) == 1
        return status, client.got[1]["body"] if client.got else None

    return *asyncio.run(run()), codes


def test_a_body_in_pieces_is_handed_on_as_one():
    messages = [piece(b"123"), piece(b""), piece(b"4567890", more=False)]
    connection, log = Connection(), []
    id_ = (b"x-request-id", b"my-id.1")
    assert ask(*messages, connection=connection, log=log, headers=[id_]) == (200, b"1234567890", [])
    assert connection.versions == ["1.1", None, "end"]
    assert re.fullmatch(r"my-id\.1 1\.2\.3\.4 POST /a%0Ab 200 ok 10 bytes \d\.\d{3} s", log[0])


@pytest.mark.parametrize("given", [b"", b"a b", b"a\r\nb", b"x" * 65])
def test_a_request_without_a_right_id_gets_one(given):
    log: list[str] = []
    ask(WHOLE, headers=[(b"x-request-id", given)], log=log)
    assert re.match(r"[0-9a-f]{32} ", log[0])


def test_an_error_has_at_most_2000_characters():
    refused = RefusedError("a", "b" * 5_000, "c" * 5_000)
    assert len(str(refused)) == 2_000 and len(refused.body) < 4_100
    assert str(RefusedError("a", "b" * 2_000)) == "b" * 2_000


TOO_LARGE = [piece(b"12345678901", more=False)]
STREAMED = [piece(b"123456"), piece(b"78901"), piece(b"2", more=False)]
ANNOUNCED = (b"content-length", b"11")
EXPECTING = [(b"content-length", b"9" * 30), (b"expect", b"100-continue")]


@cases(
    "messages, options, status, code, error",
    (TOO_LARGE, {}, 413, "body_too_large", "expected at most 10 bytes, got 11"),
    (STREAMED, {}, 413, "body_too_large", "expected at most 10 bytes, got 11 and more"),
    ([piece(b"1"), LEAVES], {"headers": [ANNOUNCED]}, 413, "body_too_large", "bytes, got 11"),
    ([], {"headers": EXPECTING}, 413, "body_too_large", f"bytes, got {'9' * 20}"),
    ([piece(b"123")], {"body_seconds": 0.01}, 408, "slow_body", "3 bytes within 0.01 s or less"),
    ([WHOLE], {"version": "2.0"}, 400, "not_http", "expected HTTP/1.1, got HTTP/2.0"),
    ([WHOLE], {"version": "9.9"}, 400, "not_http", "expected HTTP/1.1, got HTTP/9.9"),
    ids=["whole", "streamed", "announced", "announced with expect", "no end", "2.0", "9.9"],
)
def test_what_is_too_large_too_slow_or_no_http_is_refused(messages, options, status, code, error):
    found, body, codes = ask(*messages, **options)
    assert (found, codes) == (status, [code])
    assert json.loads(body)["error"].endswith(error)


@cases(
    "messages, status, code",
    ([LEAVES], None, "gone"),
    ([piece(b"1"), LEAVES], None, "gone"),
    ([WHOLE, LEAVES], None, "gone"),
    ([WHOLE], 503, "timeout"),
)
def test_the_work_for_a_client_that_leaves_or_waits_too_long_is_dropped(messages, status, code):
    busy = Busy()
    found, body, codes = ask(*messages, app=busy, reply_seconds=60 if LEAVES in messages else 0.01)
    assert (found, codes) == (status, [code])
    assert body is None or "within 0.01 s" in json.loads(body)["error"]
    assert busy.was_cancelled == (WHOLE in messages)


def test_what_has_no_answer_when_the_server_ends_is_told_so():
    codes: list[str] = []

    async def run():
        client = Client(WHOLE)
        limited = RequestLimits(Busy(), LIMITS, on_refused=codes.append)
        asking = asyncio.create_task(client.asks(limited))
        await client.is_asked_for_more.wait()
        assert not limited.has_cut_off
        asking.cancel("the end")
        with pytest.raises(asyncio.CancelledError, match="the end"):
            await asking
        assert limited.has_cut_off and limited.bodies.held == 0
        return client.got

    start, end = asyncio.run(run())
    assert (start["status"], json.loads(end["body"])["code"]) == (503, "stopping")
    assert codes == ["stopping"]


def test_an_error_of_the_application_is_its_own():
    async def broken(scope, receive, send):
        raise RuntimeError("broken")

    with pytest.raises(RuntimeError, match="broken"):
        ask(WHOLE, app=broken)


def together(clients, **limits):
    """The statuses that clients of one server get, by name; they begin in their order.

    A client announces `length` bytes and sends pieces of some sizes; the number of its last pieces
    says how many come only when the client named "right" is answered, or once all have begun.
    """

    async def run():
        limited = RequestLimits(echo, dataclasses.replace(LIMITS, **limits))
        tasks, late = {}, []
        for name, sizes, num_late in clients:
            pieces = [*(piece(bytes(n)) for n in sizes[:-1]), piece(bytes(sizes[-1]), more=False)]
            headers = [(b"content-length", b"%d" % sum(sizes))]
            client = Client(*pieces[: len(pieces) - num_late], headers=headers)
            late += [(client, one) for one in pieces[len(pieces) - num_late :]]
            tasks[name] = asyncio.create_task(client.asks(limited))
            await asyncio.sleep(0)
        await asyncio.sleep(0.01)
        if "right" in tasks:
            await tasks["right"]
        for client, one in late:
            client.queue.put_nowait(one)
        statuses = {name: await task for name, task in tasks.items()}
        assert limited.bodies.held == 0
        return statuses

    return asyncio.run(run())


SIZE = 2**17  # of a body; the first 2**16 bytes do not count
POOL = {"max_body_bytes": SIZE, "max_waiting_bytes": SIZE}
RIGHT = ("right", [SIZE // 2] * 2, 0)


def test_bodies_wait_until_there_is_space_for_their_bytes_and_all_are_answered():
    clients = [(number, [SIZE // 4] * 4, 0) for number in range(20)]
    assert together(clients, **POOL) == dict.fromkeys(range(20), 200)


def test_clients_that_announce_more_than_they_send_cost_others_nothing():
    slow = [(number, [1] * 10 + [SIZE - 10], 1) for number in range(100)]
    assert set(together([*slow, RIGHT], **POOL).values()) == {200}


def test_clients_that_hold_bytes_and_send_no_more_are_given_up_when_others_wait():
    slow = [(number, [SIZE // 2, SIZE // 4, SIZE // 4], 1) for number in range(4)]
    expected = dict.fromkeys(range(4), 408) | {"right": 200}
    assert together([*slow, RIGHT], **POOL) == expected


def test_more_requests_than_connections_are_refused():
    statuses = together([(number, [10], 1) for number in range(7)], max_connections=5)
    assert sorted(statuses.values()) == [200] * 5 + [503] * 2


HTTP = b"HTTP/1.1 "
CHUNKED = {"headers": [(b"transfer-encoding", b"chunked")]}


class Echo(asyncio.Protocol):
    """Answers each line once `reply` is called; a line is a request."""

    def __init__(self, app_state, open_):
        self.connection = app_state["connection"]
        open_.append(self)
        self.is_lost, self.asked = asyncio.Event(), asyncio.Event()
        self.request = contextlib.ExitStack()
        self.sizes: list[int] = []

    def connection_made(self, transport):
        self.transport = transport

    def connection_lost(self, exc):
        self.request.close()
        self.is_lost.set()

    def data_received(self, data):
        self.sizes.append(len(data))
        if not self.asked.is_set():
            self.request.enter_context(self.connection.busy(CHUNKED))
        if data.endswith(b"\n"):
            self.connection.asks_in = "1.1"
            self.asked.set()

    def reply(self):
        self.connection.asks_in = None
        self.transport.write(b"reply")
        self.request.close()


def serve(client, most=10, idle_seconds=60.0):
    """The outcome of a client of a server, and the codes of refusals."""
    codes: list[str] = []
    connections = Connections(most, idle_seconds, codes.append)

    async def run():
        open_: list[Echo] = []
        protocol = connections.protocol(Echo)
        loop = asyncio.get_running_loop()
        server = await loop.create_server(lambda: protocol(open_=open_), "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        writers = []

        async def connect():
            number = len(open_)
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writers.append(writer)
            while len(open_) == number:
                await asyncio.sleep(0)
            return reader, writer

        async with server:
            outcome = await client(connect, open_)
            for one in (*open_, *writers):
                one.transport.abort()
        return outcome

    return asyncio.run(run()), codes


@pytest.mark.parametrize("asks", [False, True])
def test_a_connection_stays_for_its_reply_and_is_closed_when_it_is_idle_again(asks):
    async def client(connect, open_):
        reader, writer = await connect()
        if asks:
            writer.write(b"a\n")
            await asyncio.sleep(0.2)  # longer than idle
            open_[0].reply()
        return await reader.read()

    reply, codes = serve(client, idle_seconds=0.1)
    assert reply.startswith((b"reply" if asks else b"") + HTTP + b"408 ")
    assert reply.endswith(b'"slow_head"}') and codes == ["slow_head"]


def test_among_too_many_the_longest_idle_one_goes_and_a_busy_one_stays():
    async def client(connect, open_):
        pairs = [await connect()]
        pairs[0][1].write(b"a\n")
        await open_[0].asked.wait()
        pairs += [await connect() for _ in range(3)]
        await open_[1].is_lost.wait()
        return [one.is_lost.is_set() for one in open_]

    lost, codes = serve(client, most=3)
    assert lost == [False, True, False, False]
    assert codes == ["idle"]


def test_a_client_that_ends_what_it_sends_gets_its_reply():
    async def client(connect, open_):
        reader, writer = await connect()
        writer.write(b"a\n")
        writer.write_eof()
        interim = await reader.readuntil(b"\r\n\r\n")
        open_[0].reply()
        return interim, await reader.read()

    assert serve(client) == ((HTTP + b"102 Processing\r\n\r\n", b"reply"), [])


def test_a_body_in_too_many_chunks_is_cut_off_and_none_is_read_at_once():
    async def client(connect, open_):
        _, writer = await connect()
        writer.write(b"1\r\na\r\n" * 100_000)
        await open_[0].is_lost.wait()
        return open_[0].sizes

    sizes, codes = serve(client)
    assert codes == ["too_many_chunks"]
    assert max(sizes) <= 8 * 1024 and sum(sizes) < 100_000


def test_the_request_of_a_client_that_is_gone_ends():
    async def client(connect, open_):
        for data in (b"a\n", b"a"):  # the whole request, and a part
            _, writer = await connect()
            writer.write(data)
            await writer.drain()
            writer.close()
            async with asyncio.timeout(30):
                await open_.pop().is_lost.wait()

    assert serve(client) == (None, [])
