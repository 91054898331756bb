"""What a connection may take: it is closed when it is idle too long, or idle among too many.

uvicorn waits for a request's head without end and takes any number of connections. Each of its
protocols stands here behind one of asyncio's public interface, which passes everything on.
"""

import asyncio
import contextlib
import socket
from collections.abc import Callable, Iterator
from typing import Any

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
