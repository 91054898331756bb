"""Which connections are closed, with a protocol that is a few lines and real sockets."""

import asyncio
import contextlib

import pytest

from mate_tf.serving.http.connections import Connections

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


def run(client, most=10, idle_seconds=60.0):
    """The outcome of a client of a server, and the codes of refusals."""
    codes: list[str] = []
    connections = Connections(most, idle_seconds, codes.append)

    async def serve():
        open_: list[Echo] = []
        protocol = connections.protocol(Echo)
        loop = asyncio.get_running_loop()
        server = await loop.create_server(lambda: protocol(open_=open_), "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        writers = []

        async def connect():
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writers.append(writer)
            return reader, writer

        async with server:
            outcome = await client(connect, open_)
            for one in (*open_, *writers):
                one.transport.abort()
        return outcome

    return asyncio.run(serve()), codes


@pytest.mark.parametrize("asks", [False, True])
def test_a_connection_stays_for_its_reply_and_is_closed_when_it_is_idle_again(asks):
    async def client(connect, open_):
        reader, writer = await connect()
        if asks:
            writer.write(b"a\n")
            await asyncio.sleep(0.2)  # longer than idle
            open_[0].reply()
        return await reader.read()

    reply, codes = run(client, idle_seconds=0.1)
    assert reply.startswith((b"reply" if asks else b"") + HTTP + b"408 ")
    assert reply.endswith(b'"slow_head"}') and codes == ["slow_head"]


def test_among_too_many_the_longest_idle_one_goes_and_a_busy_one_stays():
    async def client(connect, open_):
        pairs = [await connect()]
        pairs[0][1].write(b"a\n")
        while not open_:
            await asyncio.sleep(0)
        await open_[0].asked.wait()
        for number in range(2, 5):
            pairs.append(await connect())
            while len(open_) < number:
                await asyncio.sleep(0)
        await open_[1].is_lost.wait()
        return [one.is_lost.is_set() for one in open_]

    lost, codes = run(client, most=3)
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

    assert run(client) == ((HTTP + b"102 Processing\r\n\r\n", b"reply"), [])


def test_a_body_in_too_many_chunks_is_cut_off_and_none_is_read_at_once():
    async def client(connect, open_):
        _, writer = await connect()
        writer.write(b"1\r\na\r\n" * 100_000)
        while not open_:
            await asyncio.sleep(0)
        await open_[0].is_lost.wait()
        return open_[0].sizes

    sizes, codes = run(client)
    assert codes == ["too_many_chunks"]
    assert max(sizes) <= 8 * 1024 and sum(sizes) < 100_000


def test_the_request_of_a_client_that_is_gone_ends():
    async def client(connect, open_):
        for data in (b"a\n", b"a"):  # the whole request, and a part
            _, writer = await connect()
            writer.write(data)
            await writer.drain()
            writer.close()
            while not open_:
                await asyncio.sleep(0)
            async with asyncio.timeout(30):
                await open_.pop().is_lost.wait()

    assert run(client) == (None, [])
