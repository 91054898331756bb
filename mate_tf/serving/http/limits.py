"""What connections and requests may take of the server: bytes and time; and how they are refused.

uvicorn waits for a request's head without end and takes any number of connections. Each of its
protocols stands here behind one of asyncio's public interface, which passes everything on. A
connection is closed when it is idle too long, or idle among too many.
"""

import asyncio
import contextlib
import re
import socket
import time
import urllib.parse
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import orjson
from starlette.types import ASGIApp, Message, Receive, Send

from mate_tf.serving.http import Limits
from mate_tf.tables.drawing import error_text

_LATE = b'{"error": "expected a request in time", "code": "slow_head"}'
_TOO_LATE = (
    b"HTTP/1.1 408 Request Timeout\r\ncontent-type: application/json\r\n"
    b"content-length: %d\r\nconnection: close\r\n\r\n%s" % (len(_LATE), _LATE)
)
_PROCESSING = b"HTTP/1.1 102 Processing\r\n\r\n"  # any client passes over it
_LOOK_SECONDS = 0.2


class Connection(asyncio.Protocol):
    """A protocol that speaks HTTP on a connection, with limits; it is among all that are open."""

    def __init__(self, protocol: asyncio.Protocol, all_: "Connections"):
        self._protocol = protocol
        self._all = all_
        self._idle_seconds = all_.idle_seconds
        self._timer: asyncio.TimerHandle | None = None
        self._is_half_closed = self._has_asked = self._may_be_told = False
        self.num_requests = 0  # that are being read or answered
        self.name: Any = None

    def connection_made(self, transport: Any) -> None:
        self.transport = transport
        self.name = (transport.get_extra_info("peername") or (None, id(self)))[:2]
        option = getattr(socket, "TCP_USER_TIMEOUT", None)
        if option is not None:  # whoever does not read the reply is forgotten
            connection = transport.get_extra_info("socket")
            connection.setsockopt(socket.IPPROTO_TCP, option, int(self._idle_seconds * 1000))
        self._all.add(self)
        self._wait(self._idle_seconds, self._is_late)
        self._protocol.connection_made(transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self._wait()
        self._all.remove(self)
        self._protocol.connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if not self.transport.is_closing():
            self._protocol.data_received(data)

    def eof_received(self) -> bool | None:
        """Keeps the connection for a reply: a client may end what it sends before it reads.

        Whether it has rather left shows once something is sent to it.
        """
        self._is_half_closed = self._has_asked
        if self._may_be_told:
            self.transport.write(_PROCESSING)
            self._wait(_LOOK_SECONDS, self._look)
        return self._has_asked or self._protocol.eof_received()

    def pause_writing(self) -> None:
        self._protocol.pause_writing()

    def resume_writing(self) -> None:
        self._protocol.resume_writing()

    def begin(self) -> None:
        """A request has begun."""
        self.num_requests += 1
        self._wait()

    def has_asked(self, version: str) -> None:
        """All of the request is there; version 1.0 of HTTP knows no reply before the reply."""
        self._has_asked, self._may_be_told = True, version != "1.0"

    def is_told(self) -> None:
        """The reply begins."""
        self._may_be_told = False

    def end(self) -> None:
        """A request is answered."""
        self.num_requests -= 1
        if self.num_requests == 0 and not self.transport.is_closing():
            self._has_asked = self._may_be_told = False
            if self._is_half_closed:
                self.transport.close()
            else:
                self._all.add(self)
                self._wait(self._idle_seconds, self._is_late)

    def _wait(self, seconds: float = 0.0, then: Callable[[], None] | None = None) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if then is not None:
            self._timer = asyncio.get_running_loop().call_later(seconds, then)

    def _is_late(self) -> None:
        if self.transport.is_closing():  # `close` would wait for a client that does not read
            self.transport.abort()
            return
        self._all.on_refused("slow_head")
        self.transport.write(_TOO_LATE)
        self.transport.close()

    def _look(self) -> None:
        """Ends the connection if the client has closed it for good, as its system then says."""
        connection = self.transport.get_extra_info("socket")
        if connection.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
            self.transport.abort()
        else:
            self._wait(_LOOK_SECONDS, self._look)


class Connections:
    """The open connections; where there are too many, the one that was idle longest is closed.

    So is one that is idle for so many seconds. `on_refused` gets the code of what is closed.
    """

    def __init__(self, most: int, idle_seconds: float, on_refused: Callable[[str], None]):
        self._most = most
        self.idle_seconds = idle_seconds
        self.on_refused = on_refused
        self._open: dict[Any, Connection] = {}  # by address

    def add(self, connection: Connection) -> None:
        """Puts a connection behind all others."""
        self._open.pop(connection.name, None)
        self._open[connection.name] = connection
        if len(self._open) > self._most:
            idle = next((one for one in self._open.values() if one.num_requests == 0), connection)
            if idle is not connection:
                self.on_refused("idle")
                self.remove(idle)
                idle.transport.abort()

    def remove(self, connection: Connection) -> None:
        """Forgets a connection."""
        if self._open.get(connection.name) is connection:
            del self._open[connection.name]

    @contextlib.contextmanager
    def busy(self, client: Any) -> Iterator[Connection | None]:
        """The connection of a client's address, for the time of a request; None if it has left."""
        connection = self._open.get(tuple(client or ()))
        if connection is None:
            yield None
            return
        connection.begin()
        try:
            yield connection
        finally:
            connection.end()


class GuardedLoop(asyncio.SelectorEventLoop):
    """An event loop whose servers have limits on their connections."""

    def __init__(self, connections: Connections):
        super().__init__()
        self._connections = connections

    async def create_server(self, protocol_factory: Any, *args: Any, **options: Any) -> Any:
        """A server; as asyncio's."""

        def guarded() -> Connection:
            return Connection(protocol_factory(), self._connections)

        return await super().create_server(guarded, *args, **options)


CODE = "mate_tf.code"  # of a refusal, in the scope of its request
_SMALL = 64 * 1024  # bytes of a body that uvicorn holds anyway
_ID = re.compile(rb"[\w.:-]{1,64}")  # of a request, as clients may choose it


class RefusedError(ValueError):
    """A request that is not answered, and why.

    Args:
        code: the reason as a word for programs, such as "too_many_cells".
        message: the reason as a sentence: what was expected, what came.
        where: the place in the request, such as "instances[0].table.rows[3]", or "".
        status: the HTTP status.
        retry_after: seconds after which to send the same request again; 0 for never.
    """

    def __init__(
        self, code: str, message: str, where: str = "", status: int = 400, retry_after: int = 0
    ):
        super().__init__(error_text(message))
        self.code, self.where, self.status = code, where, status
        self.headers = {"retry-after": str(retry_after)} if retry_after else {}

    @property
    def body(self) -> bytes:
        """The reply, in JSON."""
        where = {"where": error_text(self.where)} if self.where else {}
        return orjson.dumps({"error": str(self), "code": self.code} | where)


def _busy(code: str, message: str) -> RefusedError:
    """The refusal of a request that may be sent again in a second."""
    return RefusedError(code, message, status=503, retry_after=1)


def stopping() -> RefusedError:
    """The refusal of requests that come or wait when the server ends."""
    return _busy("stopping", "the server is stopping")


class _GoneError(Exception):
    """The client has left."""


class _Exchange:
    """A request and its reply: gives the reply the request's id, and knows what is logged."""

    def __init__(self, scope: Any, send: Send):
        self._send = send
        given = dict(scope["headers"]).get(b"x-request-id", b"")
        self.id = given if _ID.fullmatch(given) else uuid.uuid4().hex.encode()
        self.connection: Connection | None = None
        self.status: int | None = None
        self.code = ""
        self.body = bytearray()
        self.held = 0  # bytes of it that count against the limit of all requests

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            if self.connection is not None:
                self.connection.is_told()
            message["headers"] = [*message.get("headers", ()), (b"x-request-id", self.id)]
        await self._send(message)

    async def refuse(self, refused: RefusedError) -> None:
        self.code = refused.code
        headers = refused.headers | {
            "content-type": "application/json",
            "content-length": str(len(refused.body)),
            "connection": "close",
        }
        sent = [(name.encode(), text.encode()) for name, text in headers.items()]
        await self.send({"type": "http.response.start", "status": refused.status, "headers": sent})
        await self._send({"type": "http.response.body", "body": refused.body})


class RequestLimits:
    """Pure ASGI: passes requests on once they have arrived, and ends them when their client leaves.

    `on_refused` gets the code of each refusal, `on_reply` the seconds of each request that was
    passed on, and `log` a line on each that asks something or is refused.
    """

    def __init__(
        self,
        app: ASGIApp,
        limits: Limits,
        connections: Connections,
        on_refused: Callable[[str], None] = lambda code: None,
        on_reply: Callable[[float], None] = lambda seconds: None,
        log: Callable[[str], None] = lambda line: None,
    ):
        self._app = app
        self._limits = limits
        self._connections = connections
        self._on_refused = on_refused
        self._on_reply = on_reply
        self._log = log
        self._num_asking = 0
        self._held = 0
        self._changed = asyncio.Condition()
        self.has_cut_off = False  # whether a request had no answer yet when the server ended

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        exchange = _Exchange(scope, send)
        start = time.monotonic()
        is_asking = scope["method"] not in ("GET", "HEAD")  # health is never too much
        self._num_asking += is_asking
        try:
            with self._connections.busy(scope["client"]) as connection:
                if connection is None:
                    raise _GoneError
                exchange.connection = connection
                if is_asking and self._num_asking > self._limits.max_connections:
                    raise _busy("busy", "too many requests")
                await self._read(scope, receive, exchange)
                connection.has_asked(scope["http_version"])
                await self._reply(scope, receive, exchange)
            self._on_reply(time.monotonic() - start)
        except RefusedError as refused:
            self._on_refused(refused.code)
            await exchange.refuse(refused)
        except _GoneError:
            exchange.code = "gone"
            self._on_refused("gone")
        except asyncio.CancelledError:  # the grace period is over
            self.has_cut_off = True
            if exchange.status is None:
                too_late = stopping()
                self._on_refused(too_late.code)
                await exchange.refuse(too_late)
            raise
        finally:
            self._num_asking -= is_asking
            await self._let_go(exchange)
            if is_asking or exchange.status not in (200, 503):  # not each probe
                self._log(_line(scope, exchange, time.monotonic() - start))

    async def _hold(self, num_bytes: int, exchange: _Exchange) -> None:
        """Waits until all requests together may have so many bytes more."""
        if num_bytes <= _SMALL:
            return
        most = max(self._limits.max_waiting_bytes, num_bytes)
        try:
            async with asyncio.timeout(self._limits.reply_seconds), self._changed:
                await self._changed.wait_for(lambda: self._held + num_bytes <= most)
                self._held += num_bytes
                exchange.held = num_bytes
        except TimeoutError:
            raise _busy("busy", "too many bytes wait to be read") from None

    async def _let_go(self, exchange: _Exchange) -> None:
        if exchange.held:
            self._held -= exchange.held
            async with self._changed:
                self._changed.notify_all()

    async def _read(self, scope: Any, receive: Receive, exchange: _Exchange) -> None:
        if scope["http_version"] not in ("1.0", "1.1"):
            raise RefusedError("not_http", f"expected HTTP/1.1, got HTTP/{scope['http_version']}")
        headers = dict(scope["headers"])
        announced = headers.get(b"content-length", b"")[:20]
        size = int(announced) if announced.isdigit() else 0
        most, seconds = self._limits.max_body_bytes, self._limits.body_seconds
        if b"transfer-encoding" in headers:
            size = most
        try:
            if size > most:
                raise self._too_large(announced.decode())
            await self._hold(size, exchange)
            async with asyncio.timeout(seconds):
                await self._receive_body(receive, exchange.body)
        except RefusedError:
            if b"expect" not in headers:
                await _pass_over(receive, most)
            raise
        except TimeoutError:
            got = f"got {len(exchange.body)} bytes of it"
            message = f"expected the body within {seconds:g} s, {got}"
            raise RefusedError("slow_body", message, status=408) from None

    async def _receive_body(self, receive: Receive, body: bytearray) -> None:
        more = True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise _GoneError
            body += message.get("body", b"")
            more = message.get("more_body", False)
            if len(body) > self._limits.max_body_bytes:
                raise self._too_large(f"{len(body)}{' and more' if more else ''}")

    def _too_large(self, size: str) -> RefusedError:
        most = self._limits.max_body_bytes
        return RefusedError("body_too_large", f"expected at most {most} bytes, got {size}", "", 413)

    async def _reply(self, scope: Any, receive: Receive, exchange: _Exchange) -> None:
        body = bytes(exchange.body)
        messages = [{"type": "http.request", "body": body, "more_body": False}]

        async def replay() -> Message:
            return messages.pop() if messages else await asyncio.Future()

        answering = asyncio.ensure_future(self._app(scope, replay, exchange.send))
        leaving = asyncio.ensure_future(_disconnect(receive))
        both, seconds = (answering, leaving), self._limits.reply_seconds
        try:
            await asyncio.wait(both, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
            if answering.done() or exchange.status is not None:
                await answering
            elif leaving.done():
                raise _GoneError
            else:
                raise _busy("timeout", f"expected an answer within {seconds:g} s, got none")
        finally:
            for task in both:
                task.cancel()
            await asyncio.gather(*both, return_exceptions=True)


def _line(scope: Any, exchange: _Exchange, seconds: float) -> str:
    """A line of the access log: who, what, how it went; nothing of the contents."""
    client = (scope["client"] or ("-",))[0]
    method, path = (  # a blank or a newline would make fields of its own
        urllib.parse.quote(scope[name][:200], "/:", errors="replace") for name in ("method", "path")
    )
    code = scope.get(CODE) or exchange.code or "ok"
    what = f"{method} {path} {exchange.status or '-'} {code}"
    return f"{exchange.id.decode()} {client} {what} {len(exchange.body)} bytes {seconds:.3f} s"


async def _disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _pass_over(receive: Receive, max_bytes: int) -> None:
    """Reads on for a while: a client cut off while it sends may never see the reply."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(1.0):
            while max_bytes > 0:
                message = await receive()
                if not message.get("more_body", False):
                    return
                max_bytes -= len(message["body"])
