"""Limits of connections, around uvicorn's protocol, and of requests, bytes and time; the log."""

import asyncio
import contextlib
import re
import socket
import time
import urllib.parse
import uuid
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from mate_tf.serving.http import Limits, RefusedError, busy, stopping

CODE = "mate_tf.code"  # of a refusal, in the scope of its request
_SMALL = 64 * 1024  # bytes of a body that uvicorn holds anyway
_PATIENCE = 1.0  # seconds that clients may keep others waiting for the bytes that they hold
_ID = re.compile(rb"[\w.:-]{1,64}")  # of a request, as clients may choose it
_PROCESSING = b"HTTP/1.1 102 Processing\r\n\r\n"  # any client passes over it
_TELL_SECONDS = 0.2
_READ_BYTES = 8 * 1024  # at once: as chunks of one byte they take 16 ms
_MOST_LINES = 20_000  # of a body in chunks; each chunk has two
_LATE = RefusedError("slow_head", "expected a request in time", status=408)
_SMALL_CHUNKS = RefusedError("too_many_chunks", "expected a body in larger chunks")


class Connection(asyncio.BufferedProtocol):
    """Passes what is read on to uvicorn's protocol, in small pieces; ends when it is idle."""

    def __init__(self, connections: "Connections", protocol: Callable[..., Any], options: Any):
        self._all = connections
        self._protocol = protocol(**options | {"app_state": {"connection": self}})
        self.pause_writing = self._protocol.pause_writing  # type: ignore[method-assign]
        self.resume_writing = self._protocol.resume_writing  # type: ignore[method-assign]
        self._buffer = bytearray(_READ_BYTES)
        self._timer: asyncio.TimerHandle | None = None
        self._has_ended = self._is_chunked = False
        self.asks_in: str | None = None  # the version of HTTP of a request that waits for its reply
        self._num_lines = self.num_requests = 0  # of these, which are being read or answered

    def connection_made(self, transport: Any) -> None:
        self.transport = transport
        if option := getattr(socket, "TCP_USER_TIMEOUT", None):  # of Linux
            # Ends a connection whose client does not read a reply for so long.
            milliseconds = int(self._all.idle_seconds * 1000)
            transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, option, milliseconds)
        self._wait_for_request()
        self._protocol.connection_made(transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self._wait()
        self._all.remove(self)
        self._protocol.connection_lost(exc)

    def get_buffer(self, sizehint: int) -> bytearray:
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        data = bytes(self._buffer[:nbytes])
        self._num_lines += data.count(b"\r\n") if self._is_chunked else 0
        if self._num_lines > _MOST_LINES:
            self._end(_SMALL_CHUNKS)
        elif not self.transport.is_closing():
            self._protocol.data_received(data)

    def eof_received(self) -> bool:
        """Keeps the connection for a reply: a client may end what it sends before it reads."""
        self._has_ended = self.asks_in is not None
        self._tell()
        return self._has_ended

    def _tell(self) -> None:
        # Whether it has rather left shows once something is sent to it, for the second time.
        if self.asks_in == "1.1":  # 1.0 knows no reply before the reply
            self.transport.write(_PROCESSING)
            self._wait(_TELL_SECONDS, self._tell)

    @contextlib.contextmanager
    def busy(self, scope: Any) -> Iterator[None]:
        """For the time of a request: it begins once its head is there."""
        self.num_requests, self._num_lines = self.num_requests + 1, 0
        self._is_chunked = any(name == b"transfer-encoding" for name, _ in scope["headers"])
        self._wait()
        try:
            yield
        finally:
            self.num_requests, self._is_chunked, self.asks_in = self.num_requests - 1, False, None
            if self._has_ended:
                self.transport.close()
            elif self.num_requests == 0 and not self.transport.is_closing():
                self._wait_for_request()

    def _wait_for_request(self) -> None:
        self._all.add(self)
        self._wait(self._all.idle_seconds, lambda: self._end(_LATE))

    def _wait(self, seconds: float = 0.0, then: Callable[[], None] | None = None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = then and asyncio.get_running_loop().call_later(seconds, then)

    def _end(self, refused: RefusedError) -> None:
        if self.transport.is_closing():  # `close` would wait for a client that does not read
            self.transport.abort()
            return
        self._all.on_refused(refused.code)
        head = f"HTTP/1.1 {refused.status} Refused\r\ncontent-type: application/json\r\n"
        head += f"content-length: {len(refused.body)}\r\nconnection: close\r\n\r\n"
        self.transport.write(head.encode() + refused.body)
        self.transport.close()


class Connections:
    """The open connections; where there are too many, the one that was idle longest is closed.

    So is one that is idle for so many seconds. `on_refused` gets the code of what is closed.
    """

    def __init__(self, most: int, idle_seconds: float, on_refused: Callable[[str], None]):
        self._most = most
        self.idle_seconds = idle_seconds
        self.on_refused = on_refused
        self._open: dict[Connection, None] = {}  # the one that has been idle longest is first

    def protocol(self, inner: Callable[..., Any]) -> Any:
        """Makes protocols for uvicorn, around those of a class of its own."""
        return lambda **options: Connection(self, inner, options)

    def add(self, connection: Connection) -> None:
        """Puts a connection behind all others."""
        self.remove(connection)
        self._open[connection] = None
        if len(self._open) > self._most:
            idle = next((one for one in self._open if one.num_requests == 0), connection)
            if idle is not connection:
                self.on_refused("idle")
                self.remove(idle)
                idle.transport.abort()

    def remove(self, connection: Connection) -> None:
        """Forgets a connection."""
        self._open.pop(connection, None)


class GoneError(Exception):
    """The client has left."""


class Bodies:
    """Reads bodies, which hold at most so many bytes together.

    Bytes count once they are there: announcing more costs nobody anything. Beyond the most, bodies
    wait until others are answered. Where none is complete the first is read on, and soon those are
    given up whose clients do not send.
    """

    def __init__(self, limits: Limits):
        self._limits = limits
        # Of large bodies: the time that each has left, in their order; the complete ones; bytes.
        self._incoming: dict[asyncio.Timeout, None] = {}
        self._num_complete = self.held = 0

    @contextlib.asynccontextmanager
    async def read(self, receive: Receive, body: bytearray) -> AsyncIterator[None]:
        """Fills a body, and counts its bytes until the end of its request.

        Raises:
            GoneError: if the client leaves.
            RefusedError: if the body is too large or comes too slowly.
        """
        clock, held, is_complete = asyncio.timeout(self._limits.body_seconds), 0, False
        try:
            async with clock:
                while not is_complete:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise GoneError
                    piece, is_last = message.get("body", b""), not message.get("more_body", False)
                    size = len(body) + len(piece)
                    self.check_size(size, "" if is_last else " and more")
                    if size > _SMALL:
                        await self._wait(len(piece), clock)
                        self.held += len(piece)
                        held += len(piece)
                    body += piece
                    is_complete = is_last
            self._incoming.pop(clock, None)
            self._num_complete += held > 0
            yield
        except TimeoutError:
            if is_complete:
                raise
            got = f"got {len(body)} bytes within {self._limits.body_seconds:g} s or less"
            raise RefusedError("slow_body", f"expected the whole body, {got}", status=408) from None
        finally:
            self.held -= held
            self._num_complete -= held > 0 and is_complete
            self._incoming.pop(clock, None)

    def check_size(self, size: int, more: str = "") -> None:
        """Refuses a body of so many bytes, if it is too large."""
        if size > self._limits.max_body_bytes:
            message = f"expected at most {self._limits.max_body_bytes} bytes, got {size}{more}"
            raise RefusedError("body_too_large", message, status=413)

    async def _wait(self, num_bytes: int, clock: asyncio.Timeout) -> None:
        """Waits until there may be so many bytes more; the body's time stands still."""
        now = asyncio.get_running_loop().time
        start = stalled = now()
        most, end = max(self._limits.max_waiting_bytes, num_bytes), clock.when()
        clock.reschedule(None)
        self._incoming.setdefault(clock)
        while self.held + num_bytes > most:
            if now() - start > self._limits.reply_seconds:
                raise busy("busy", "too many bytes wait to be read")
            if self._num_complete > 0:
                stalled = now()
            elif next(iter(self._incoming)) is clock:
                break
            elif now() - stalled > _PATIENCE:
                for other in self._incoming:
                    if other.when() is not None and not other.expired():
                        other.reschedule(now())
            await asyncio.sleep(0.02)
        clock.reschedule((end or start) + now() - start)


class Exchange:
    """A request and its reply: gives the reply the request's id, and knows what is logged."""

    def __init__(self, scope: Scope, send: Send):
        self._scope, self._send = scope, send
        given = dict(scope["headers"]).get(b"x-request-id", b"")
        self.id = given if _ID.fullmatch(given) else uuid.uuid4().hex.encode()
        self.connection: Connection = scope["state"]["connection"]
        self.asks = scope["method"] not in ("GET", "HEAD")  # health is never too much
        self.status: int | None = None
        self.body = bytearray()
        self.start = time.monotonic()

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self.connection.asks_in = None
            message["headers"] = [*message.get("headers", ()), (b"x-request-id", self.id)]
        await self._send(message)

    @property
    def code(self) -> str:
        """The code of the refusal, or "ok"."""
        return self._scope.get(CODE, "ok")

    async def refuse(self, refused: RefusedError, receive: Receive) -> None:
        self._scope[CODE] = refused.code
        headers = refused.headers | {"connection": "close"}
        await Response(refused.body, refused.status, headers)(self._scope, receive, self.send)

    def line(self) -> str:
        """A line of the access log: who, what, how it went; nothing of the contents."""
        client = (self._scope["client"] or ("-",))[0]
        method, path = (  # a blank or a newline would make fields of its own
            urllib.parse.quote(self._scope[name][:200], "/:", errors="replace")
            for name in ("method", "path")
        )
        size = f"{len(self.body)} bytes {time.monotonic() - self.start:.3f} s"
        outcome = f"{self.status or '-'} {self.code} {size}"
        return f"{self.id.decode()} {client} {method} {path} {outcome}"


class RequestLimits:
    """Pure ASGI: passes requests on once they have arrived, and ends them when their client leaves.

    `on_refused` gets the code of each refusal, `on_reply` the seconds of each request that was
    passed on, and `log` a line on each that asks something or is refused.
    """

    def __init__(
        self,
        app: ASGIApp,
        limits: Limits,
        on_refused: Callable[[str], None] = lambda code: None,
        on_reply: Callable[[float], None] = lambda seconds: None,
        log: Callable[[str], None] = lambda line: None,
    ):
        self.app, self._limits = app, limits
        self._on_refused, self._on_reply, self._log = on_refused, on_reply, log
        self.bodies = Bodies(limits)
        self.num_asking = 0
        self.has_cut_off = False  # whether a request had no answer yet when the server ended

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        exchange = Exchange(scope, send)
        self.num_asking += exchange.asks
        try:
            with exchange.connection.busy(scope):
                await self._answer(scope, receive, exchange)
        finally:
            self.num_asking -= exchange.asks
            if exchange.code != "ok":
                self._on_refused(exchange.code)
            if exchange.asks or exchange.status not in (200, 503):  # not each probe
                self._log(exchange.line())

    async def _answer(self, scope: Scope, receive: Receive, exchange: Exchange) -> None:
        version, headers = scope["http_version"], dict(scope["headers"])
        announced = headers.get(b"content-length", b"")[:20]
        try:
            if exchange.asks and self.num_asking > self._limits.max_connections:
                raise busy("busy", "too many requests")
            if version not in ("1.0", "1.1"):
                raise RefusedError("not_http", f"expected HTTP/1.1, got HTTP/{version}")
            self.bodies.check_size(int(announced) if announced.isdigit() else 0)
            async with self.bodies.read(receive, exchange.body):
                exchange.connection.asks_in = version
                await self._reply(scope, receive, exchange)
            self._on_reply(time.monotonic() - exchange.start)
        except RefusedError as refused:
            if refused.code == "body_too_large" and b"expect" not in headers:
                await _pass_over(receive, self._limits.max_body_bytes)
            await exchange.refuse(refused, receive)
        except GoneError:
            scope[CODE] = "gone"
        except asyncio.CancelledError:  # the grace period is over
            self.has_cut_off = True
            if exchange.status is None:
                await exchange.refuse(stopping(), receive)
            raise

    async def _reply(self, scope: Scope, receive: Receive, exchange: Exchange) -> None:
        messages = [{"type": "http.request", "body": bytes(exchange.body), "more_body": False}]

        async def replay() -> Message:
            return messages.pop() if messages else await asyncio.Future()

        answering = asyncio.ensure_future(self.app(scope, replay, exchange.send))
        leaving = asyncio.ensure_future(_disconnect(receive))
        both, seconds = (answering, leaving), self._limits.reply_seconds
        try:
            await asyncio.wait(both, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
            if answering.done() or exchange.status is not None:
                await answering
            elif leaving.done():
                raise GoneError
            else:
                raise busy("timeout", f"expected an answer within {seconds:g} s, got none")
        finally:
            for task in both:
                task.cancel()
            await asyncio.gather(*both, return_exceptions=True)


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
