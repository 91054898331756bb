"""HTTP/1.1 connections: their number, and the time of a head."""

import asyncio
import socket
from collections.abc import Callable
from typing import Any

import orjson

from mate_tf.private_apis import http_protocol
from mate_tf.serving.http.limits import RefusedError

_HttpProtocol: Any = http_protocol()
_PHRASES = {400: "Bad Request", 408: "Request Timeout", 503: "Service Unavailable"}


class Connection(_HttpProtocol):
    """uvicorn's connection, which by itself waits for a request's head for ever.

    A head has 64 KB at most (h11_max_incomplete_event_size). What is not HTTP, comes too slowly or
    is one connection too many gets a reply in the server's format and is closed.
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
        # Not `close`, which waits for ever for a client that does not read its reply.
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
        """Replies past h11, which may be in any state, and closes."""
        self.on_refused(refused.code)
        body = orjson.dumps(refused.body)
        head = [f"HTTP/1.1 {refused.status} {_PHRASES[refused.status]}"]
        fields = refused.headers | {
            "content-type": "application/json",
            "content-length": str(len(body)),
            "connection": "close",
        }
        head += [f"{name}: {value}" for name, value in fields.items()]
        self.transport.write("\r\n".join([*head, "", ""]).encode() + body)
        self.transport.close()


def _forget_readers_that_do_not_read(transport: Any, seconds: float) -> None:
    """A reply that is not taken for so long ends the connection, where the system knows how."""
    option = getattr(socket, "TCP_USER_TIMEOUT", None)
    if option is not None:
        connection = transport.get_extra_info("socket")
        connection.setsockopt(socket.IPPROTO_TCP, option, int(seconds * 1000))
