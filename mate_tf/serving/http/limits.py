"""What a client may take of the server: connections, bytes and time; and how it is refused."""

import asyncio
import contextlib
import socket
import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

import orjson

from mate_tf.private_apis import http_protocol


class RefusedError(ValueError):
    """A request that is not answered, and why.

    Args:
        code: the reason as a word for programs, such as "too_many_cells".
        message: the reason as a sentence: what was expected, what came.
        where: the place in the request, such as "instances[0].table.rows[3]", or "".
        status: the HTTP status.
        retry_after: seconds after which to send the same request again; None for never.
    """

    def __init__(
        self,
        code: str,
        message: str,
        where: str = "",
        status: int = 400,
        retry_after: int | None = None,
    ):
        super().__init__(message)
        self.code = code
        self.where = where
        self.status = status
        self.retry_after = retry_after

    @property
    def body(self) -> bytes:
        """The reply, in JSON."""
        where = {"where": self.where} if self.where else {}
        return orjson.dumps({"error": str(self), "code": self.code} | where)

    @property
    def headers(self) -> dict[str, str]:
        return {} if self.retry_after is None else {"retry-after": str(self.retry_after)}

    @property
    def closing_headers(self) -> dict[str, str]:
        """The headers of a reply after which the connection is closed."""
        return self.headers | {
            "content-type": "application/json",
            "content-length": str(len(self.body)),
            "connection": "close",
        }


def stopping() -> RefusedError:
    """The refusal of requests that come or wait when the server ends."""
    return RefusedError("stopping", "the server is stopping", status=503, retry_after=1)


Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Any, Receive, Send], Awaitable[None]]


class _GoneError(Exception):
    """The client has left."""


class _Reply:
    """Sends, and knows whether it has begun."""

    def __init__(self, send: Send):
        self._send = send
        self.has_begun = False

    async def __call__(self, message: Message) -> None:
        self.has_begun = True
        await self._send(message)


class RequestLimits:
    """Pure ASGI: passes requests on once they have arrived, and ends them when their client leaves.

    Args:
        app: answers the requests.
        max_body_bytes: of a request; all that arrive at once may have 32 times as many.
        body_seconds: the time for a body to arrive.
        reply_seconds: the time for the reply to begin, after the body.
        on_refused: gets the code of each refusal.
        on_reply: gets the seconds of each request that was passed on.

    Attributes:
        has_cut_off: whether a request had no answer yet when the server ended.
    """

    def __init__(
        self,
        app: App,
        max_body_bytes: int,
        body_seconds: float,
        reply_seconds: float,
        on_refused: Callable[[str], None] = lambda code: None,
        on_reply: Callable[[float], None] = lambda seconds: None,
    ):
        self._app = app
        self._max_body_bytes = max_body_bytes
        self._body_seconds = body_seconds
        self._reply_seconds = reply_seconds
        self._on_refused = on_refused
        self._on_reply = on_reply
        self._bytes_held = 0
        self.has_cut_off = False

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        body = bytearray()
        reply = _Reply(send)
        start = time.monotonic()
        try:
            await self._read(scope, receive, body)
            await self._reply(scope, receive, reply, bytes(body))
            self._on_reply(time.monotonic() - start)
        except RefusedError as refused:
            self._on_refused(refused.code)
            await _send(refused, send)
        except _GoneError:
            self._on_refused("gone")
        except asyncio.CancelledError:  # the grace period is over
            self.has_cut_off = True
            if not reply.has_begun:
                too_late = stopping()
                self._on_refused(too_late.code)
                await _send(too_late, send)
            raise
        finally:
            self._bytes_held -= len(body)

    async def _read(self, scope: Any, receive: Receive, body: bytearray) -> None:
        if scope["http_version"] not in ("1.0", "1.1"):
            raise RefusedError("not_http", f"expected HTTP/1.1, got HTTP/{scope['http_version']}")
        try:
            async with asyncio.timeout(self._body_seconds):
                await self._receive_body(scope, receive, body)
        except RefusedError:
            if not any(name == b"expect" for name, _ in scope["headers"]):
                await _pass_over(receive, self._max_body_bytes)
            raise
        except TimeoutError:
            raise RefusedError(
                "slow_body",
                f"expected the body within {self._body_seconds:g} s, got {len(body)} bytes of it",
                status=408,
            ) from None

    async def _receive_body(self, scope: Any, receive: Receive, body: bytearray) -> None:
        announced = dict(scope["headers"]).get(b"content-length", b"")
        if announced.isdigit() and int(announced[:20]) > self._max_body_bytes:
            raise self._too_large(announced[:20].decode())
        more = True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise _GoneError
            chunk = message.get("body", b"")
            more = message.get("more_body", False)
            if len(body) + len(chunk) > self._max_body_bytes:
                raise self._too_large(f"{len(body) + len(chunk)}{' and more' if more else ''}")
            if self._bytes_held + len(chunk) > 32 * self._max_body_bytes:
                raise RefusedError(
                    "busy", "too many requests arrive at once", "", 429, retry_after=1
                )
            self._bytes_held += len(chunk)
            body += chunk

    def _too_large(self, size: str) -> RefusedError:
        return RefusedError(
            "body_too_large", f"expected at most {self._max_body_bytes} bytes, got {size}", "", 413
        )

    async def _reply(self, scope: Any, receive: Receive, reply: _Reply, body: bytes) -> None:
        messages = [{"type": "http.request", "body": body, "more_body": False}]

        async def replay() -> Message:
            return messages.pop() if messages else await asyncio.Future()

        answering = asyncio.ensure_future(self._app(scope, replay, reply))
        leaving = asyncio.ensure_future(_disconnect(receive))
        try:
            await asyncio.wait(
                (answering, leaving),
                timeout=self._reply_seconds,
                return_when=asyncio.FIRST_COMPLETED,
            )
            if answering.done() or reply.has_begun:
                await answering
            elif leaving.done():
                raise _GoneError
            else:
                raise RefusedError(
                    "timeout",
                    f"expected an answer within {self._reply_seconds:g} s, got none",
                    status=503,
                    retry_after=1,
                )
        finally:
            for task in (answering, leaving):
                task.cancel()
            await asyncio.gather(answering, leaving, return_exceptions=True)


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


async def _send(refused: RefusedError, send: Send) -> None:
    headers = [(name.encode(), text.encode()) for name, text in refused.closing_headers.items()]
    await send({"type": "http.response.start", "status": refused.status, "headers": headers})
    await send({"type": "http.response.body", "body": refused.body})


_PHRASES = {400: "Bad Request", 408: "Request Timeout", 503: "Service Unavailable"}


_HttpProtocol: Any = http_protocol()


class Connection(_HttpProtocol):
    """uvicorn's connection, with limits: on its own it waits for a request's head for ever.

    A head may have 64 KB (h11_max_incomplete_event_size). A connection that does not speak HTTP,
    is too slow or is one too many gets a reply in the server's format and is closed.
    """

    max_connections = 256
    head_seconds = 10.0
    on_refused: Callable[[str], None] = staticmethod(lambda code: None)
    _cut_off: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:
        super().connection_made(transport)
        _forget_readers_that_do_not_read(transport, self.head_seconds)
        if len(self.connections) > self.max_connections:
            message = f"expected at most {self.max_connections} connections, got one more"
            self._refuse(RefusedError("busy", message, status=503, retry_after=1))
            return
        self._expect_a_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._expect_nothing()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():
            return
        super().data_received(data)
        if self.cycle is None or self.cycle.response_complete:
            self._expect_a_head()
        else:
            self._expect_nothing()

    def send_400_response(self, msg: str) -> None:
        self._refuse(RefusedError("not_http", "expected a request in HTTP/1.1, got something else"))

    def timeout_keep_alive_handler(self) -> None:
        # `close` would wait for ever for a client that does not read its reply.
        self.transport.abort()

    def _expect_a_head(self) -> None:
        if self._cut_off is None:
            self._cut_off = self.loop.call_later(self.head_seconds, self._head_is_late)

    def _expect_nothing(self) -> None:
        if self._cut_off is not None:
            self._cut_off.cancel()
            self._cut_off = None

    def _head_is_late(self) -> None:
        if not self.transport.is_closing():
            message = f"expected a request's head within {self.head_seconds:g} s"
            self._refuse(RefusedError("slow_head", message, status=408))

    def _refuse(self, refused: RefusedError) -> None:
        """Replies without h11, which may be in any state, and closes."""
        self.on_refused(refused.code)
        head = [f"HTTP/1.1 {refused.status} {_PHRASES[refused.status]}"]
        head += [f"{name}: {text}" for name, text in refused.closing_headers.items()]
        self.transport.write("\r\n".join([*head, "", ""]).encode() + refused.body)
        self.transport.close()


def _forget_readers_that_do_not_read(transport: Any, seconds: float) -> None:
    """Ends a connection whose reply is not read for so long, if the system can."""
    option = getattr(socket, "TCP_USER_TIMEOUT", None)
    if option is not None:
        connection = transport.get_extra_info("socket")
        connection.setsockopt(socket.IPPROTO_TCP, option, int(seconds * 1000))
