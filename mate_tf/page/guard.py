"""What of HTTP reaches Gradio: what the page itself asks for, from its address, up to a size."""

import fnmatch
import ipaddress
import logging
import pathlib
import socket
from collections.abc import Collection, Mapping
from typing import Any
from urllib.parse import urlsplit

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
_TOOL = f"{_API}mcp"


class Guard:
    """An ASGI application around Gradio's.

    The page has names beside this machine's own, and a folder for visitors' files. The tool for
    assistants (MCP) may be open too.
    """

    def __init__(self, app: Any, names: Collection[str], folder: pathlib.Path, with_tool: bool):
        self._app = app
        own = ("localhost", socket.gethostname(), socket.getfqdn())
        self._names = {name.lower() for name in (*own, *names)}
        self._folder = folder
        self._with_tool = with_tool

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            return await self._app(scope, receive, send)
        if scope["type"] != "http":
            return None
        has_begun = False

        async def sent(message: Any) -> None:
            nonlocal has_begun
            has_begun = True
            await send(message)

        status, reason = self._refusal(scope)
        if not status:
            try:
                return await self._app(scope, receive, sent)
            except Exception as error:
                if has_begun or scope["path"] != f"{_API}upload":
                    raise
                # Such as a part without a file's name, which Gradio does not expect.
                logging.getLogger(__name__).info("no upload: %r", error)
                status, reason = 400, "expected an upload of files with names"
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
        is_tool = self._with_tool and path.rstrip("/") == _TOOL
        patterns = _OPEN.get("GET" if method == "HEAD" else method, ())
        is_open = ".." not in path and any(fnmatch.fnmatchcase(path, one) for one in patterns)
        if not (is_tool or is_open):
            return 404, "there is no such page"
        if method != "POST":
            return 0, ""
        length = headers.get(b"content-length", "")
        if not length.isdecimal():
            return 411, "expected a Content-Length"
        if int(length) > MOST_BYTES + _MEGABYTE:
            return 413, f"expected at most {MOST_BYTES // _MEGABYTE} MB, got {length} bytes"
        if path == f"{_API}upload" and self._kept_bytes() + int(length) > _MOST_KEPT:
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

    def _kept_bytes(self) -> int:
        return sum(file.stat().st_size for file in self._folder.rglob("*") if file.is_file())
