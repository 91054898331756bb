"""Limits of what visitors of the page may take of this machine.

Of HTTP that reaches Gradio which the page itself asks for, from its address, up to a size. Tables
are read in processes of their own, which end where one takes too much.
"""

import asyncio
import contextlib
import fnmatch
import ipaddress
import json
import logging
import pathlib
import socket
import threading
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from mate_tf.reading.files import ReadOptions, read_in_sandbox
from mate_tf.tables.table import Table, remember

_MEGABYTE = 2**20
MOST_BYTES = 20 * _MEGABYTE  # of a file, and of pasted text
_MOST_KEPT = 1024 * _MEGABYTE  # of all visitors' files
_API = "/gradio_api/"
# Of Gradio's hundred paths those that the page uses, and whether what is below them too.
_OPEN: Mapping[str, tuple[str, ...]] = {
    "GET": (
        *("/", "/config", "/theme.css", "/favicon.ico", "/manifest.json", "/robots.txt"),
        *("/assets/*", "/static/*", "/svelte/*", f"{_API}startup-events"),
        *(f"{_API}heartbeat/*", f"{_API}queue/data", f"{_API}upload_progress"),
    ),
    "POST": (f"{_API}queue/join", f"{_API}upload", f"{_API}cancel", f"{_API}reset"),
}
_UPLOAD = f"{_API}upload"
_SECONDS_OF_REFUSED = 2  # in which the rest of a refused request is read
_SECONDS_BETWEEN_CLEANINGS = 300
_SECONDS_KEPT = 3600 - _SECONDS_BETWEEN_CLEANINGS  # so that a file is gone after an hour


class Guard:
    """An ASGI application around Gradio's.

    The page has names beside this machine's own, and keeps visitors' files.
    """

    def __init__(self, app: Any, names: Collection[str], files: "Files"):
        self._app = app
        own = ("localhost", socket.gethostname(), socket.getfqdn())
        self._names = {name.lower() for name in (*own, *names)}
        self._files = files

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            return await self._app(scope, receive, send)
        if scope["type"] != "http":
            return None
        has_begun, is_kept, is_upload, is_read = False, False, scope["path"] == _UPLOAD, False

        async def received() -> Any:
            nonlocal is_read
            message = await receive()
            is_read = not message.get("more_body")
            if is_upload and not status:
                self._files.num_bytes += len(message.get("body", b""))
            return message

        async def sent(message: Any) -> None:
            nonlocal has_begun, is_kept
            has_begun = True
            is_kept |= is_upload and message.get("status") == 200
            if is_kept and message.get("body"):
                self._files.round_up(json.loads(message["body"]))
            await send(message)

        status, reason = self._refusal(scope)
        if not status:
            try:
                return await self._app(scope, received, sent)
            except Exception as error:
                if has_begun or not is_upload:
                    raise
                # Such as a part without a file's name, which Gradio does not expect.
                logging.getLogger(__name__).info("no upload: %r", error)
                status, reason = 400, "expected an upload of files with names"
        with contextlib.suppress(OSError):  # too late, or the client has gone
            # A connection that closes on unread bytes is reset, and takes the reply with it.
            async with asyncio.timeout(_SECONDS_OF_REFUSED):
                while not is_read:
                    await received()
        headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"connection", b"close")]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": reason.encode()})
        return None

    def _refusal(self, scope: Any) -> tuple[int, str]:
        """The status and the reason for which a request is not let through; 0 where it is."""
        headers = {name.lower(): value.decode("latin-1") for name, value in scope["headers"]}
        host, origin = headers.get(b"host", ""), headers.get(b"origin")
        if not self._is_ours(host):
            return 403, "expected the page's own address as Host"
        if origin is not None and urlsplit(origin).netloc != host:
            return 403, "expected a request of the page itself, got another Origin"
        method, path = scope["method"], scope["path"]
        patterns = _OPEN.get("GET" if method == "HEAD" else method, ())
        is_open = ".." not in path and any(fnmatch.fnmatchcase(path, one) for one in patterns)
        if not is_open:
            return 404, "there is no such page"
        if method != "POST":
            return 0, ""
        length = headers.get(b"content-length", "")
        if not length.isdecimal():
            return 411, "expected a Content-Length"
        if int(length) > MOST_BYTES + _MEGABYTE:
            return 413, f"expected at most {MOST_BYTES // _MEGABYTE} MB, got {length} bytes"
        if path == _UPLOAD and self._files.num_bytes + int(length) > _MOST_KEPT:
            return 503, "the page keeps as many files as it may; paste the table, or try later"
        return 0, ""

    def _is_ours(self, host: str) -> bool:
        """Whether a Host header is an address or a name of this machine.

        Pages of other sites can have names of theirs point at this machine, but not use its own.
        """
        try:
            name = urlsplit(f"//{host}").hostname or ""
            ipaddress.ip_address(name)
        except ValueError:
            return name in self._names
        return True


class Files:
    """Visitors' files in a folder: how many bytes of the disk they take, and how long they stay.

    The bytes are a running sum of those that come, with partial files of uploads that broke off;
    each cleaning measures them anew.
    """

    def __init__(self, folder: pathlib.Path):
        self._folder = folder
        self.num_bytes = 0

    def round_up(self, paths: Sequence[str]) -> None:
        """Adds what files that have come take beside their bytes: whole blocks, and folders."""
        for path in map(pathlib.Path, paths):
            with contextlib.suppress(FileNotFoundError):
                self.num_bytes += _on_disk(path) - path.stat().st_size + _on_disk(path.parent)

    def clean(self) -> None:
        """Removes what has been here for an hour, and measures the others."""
        total = 0
        for path in sorted(self._folder.rglob("*"), reverse=True):  # what is in a folder before it
            with contextlib.suppress(OSError):  # such as one that its upload moves meanwhile
                if path.stat().st_mtime > time.time() - _SECONDS_KEPT:
                    total += _on_disk(path)
                elif path.is_dir():
                    path.rmdir()
                else:
                    path.unlink()
        self.num_bytes = total

    @contextlib.contextmanager
    def cleaning(self) -> Iterator[None]:
        """Cleans now and then."""
        ends = threading.Event()

        def clean() -> None:
            while not ends.wait(_SECONDS_BETWEEN_CLEANINGS):
                self.clean()

        thread = threading.Thread(target=clean, daemon=True)
        thread.start()
        try:
            yield
        finally:
            ends.set()
            thread.join()


def _on_disk(path: pathlib.Path) -> int:
    """The bytes that a file takes on the disk; Windows does not say how many blocks it has."""
    status = path.stat()
    return getattr(status, "st_blocks", -(-status.st_size // 512)) * 512


MOST_CELLS = 500_000
_MOST_KEPT_CELLS = 400_000  # of the last tables together
_AT_ONCE = 2


class Reader:
    """Reads tables in processes of their own, at most two of them at a time.

    So a question is answered meanwhile. The last tables are kept: what is shown is asked about
    next.
    """

    def __init__(self, most_cells: int = MOST_CELLS, most_kept: int = _MOST_KEPT_CELLS):
        self._most_cells = most_cells
        self._free = threading.BoundedSemaphore(_AT_ONCE)
        self._remembered = remember(self._read, most=most_kept)

    def read(self, file: str | None, content: bytes, name: str, options: ReadOptions) -> Table:
        """The table of a file, or of content where there is none; errors as `read_in_sandbox`."""
        return self._remembered((file, content, name, options))

    def _read(self, key: tuple[str | None, bytes, str, ReadOptions]) -> Table:
        file, content, name, options = key
        if file is not None:
            content, name = pathlib.Path(file).read_bytes(), pathlib.Path(file).name
        with self._free:
            return read_in_sandbox(content, name, options, self._most_cells)
