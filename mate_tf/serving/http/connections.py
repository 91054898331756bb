"""Limits of connections that no ASGI application sees, around uvicorn's own protocol."""

import asyncio
import contextlib
import socket
from collections.abc import Callable, Iterator
from typing import Any

from mate_tf.serving.http import RefusedError

_PROCESSING = b"HTTP/1.1 102 Processing\r\n\r\n"  # any client passes over it
_TELL_SECONDS = 0.2
_READ_BYTES = 8 * 1024  # at once: as chunks of one byte they take 16 ms
_MOST_LINES = 20_000  # of a body in chunks; each chunk has two
_LATE = RefusedError("slow_head", "expected a request in time")
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
        _forget_in(transport, self._all.idle_seconds)
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
            self._end(413, _SMALL_CHUNKS)
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
        self._wait(self._all.idle_seconds, lambda: self._end(408, _LATE))

    def _wait(self, seconds: float = 0.0, then: Callable[[], None] | None = None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = then and asyncio.get_running_loop().call_later(seconds, then)

    def _end(self, status: int, refused: RefusedError) -> None:
        if self.transport.is_closing():  # `close` would wait for a client that does not read
            self.transport.abort()
            return
        self._all.on_refused(refused.code)
        self.transport.write(_last_reply(status, refused.body))
        self.transport.close()


def _last_reply(status: int, body: bytes) -> bytes:
    head = f"HTTP/1.1 {status} Refused\r\ncontent-type: application/json\r\n"
    return f"{head}content-length: {len(body)}\r\nconnection: close\r\n\r\n".encode() + body


def _forget_in(transport: Any, seconds: float) -> None:
    """Ends a connection whose client does not read a reply for so long; on Linux."""
    if option := getattr(socket, "TCP_USER_TIMEOUT", None):
        milliseconds = int(seconds * 1000)
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, option, milliseconds)


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
