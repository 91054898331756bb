"""What visitors of the page may take of this machine.

Of HTTP that reaches Gradio which the page itself asks for, from its address, up to a size. Tables
are read in processes of their own, which end where one takes too much.
"""

import collections
import fnmatch
import ipaddress
import logging
import multiprocessing
import pathlib
import socket
import sys
import threading
from collections.abc import Collection, Mapping
from multiprocessing.connection import Connection
from typing import Any
from urllib.parse import urlsplit

from mate_tf.tables.files import ReadOptions, read_content, read_table
from mate_tf.tables.table import Table

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


SECONDS = 120.0
_SECONDS_OF_CPU = 20
MOST_CELLS = 500_000
_MEMORY = 2 * 2**30  # bytes, beside those that a process begins with
_TABLES_KEPT = 8
_MOST_CELLS_KEPT = 50_000  # of each; more tokens than a model reads
_AT_ONCE = 2
_SECONDS_QUICK = 2.0


class Reader:
    """Reads tables, each in a process, at most two of them at a time, and two slow ones.

    A process has neither this one's memory nor its lock of the interpreter, so that a question is
    answered meanwhile. A table has limits of time and size. One that is not read quickly is read
    anew beside the others, which then no longer wait for it. The last small tables are kept: what
    is shown is asked about next.
    """

    def __init__(self, seconds: float = SECONDS, most_cells: int = MOST_CELLS):
        self._seconds = seconds
        self._most_cells = most_cells
        has_server = "forkserver" in multiprocessing.get_all_start_methods()
        self._context: Any = multiprocessing.get_context("forkserver" if has_server else "spawn")
        if hasattr(self._context, "set_forkserver_preload"):
            # Otherwise each process imports them; what is not installed is passed over.
            modules = ("__main__", __name__, "openpyxl", "lxml.etree", "python_calamine")
            self._context.set_forkserver_preload(list(modules))
        quick, slow = (threading.BoundedSemaphore(_AT_ONCE) for _ in range(2))
        self._tries = ((min(_SECONDS_QUICK, seconds), quick), (seconds, slow))
        self._kept: collections.OrderedDict[Any, Table] = collections.OrderedDict()
        self._lock = threading.Lock()

    def read(self, file: str | None, content: bytes, name: str, options: ReadOptions) -> Table:
        """The table of a file, or of content where there is none.

        Raises:
            ModuleNotFoundError, ValueError: as `read_table`, or if it takes too long, too much
                memory, or has too many cells.
        """
        key = (file, content, options)
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]
        table = self._read(file, content, name, options)
        if table.num_rows * table.num_columns <= _MOST_CELLS_KEPT:
            with self._lock:
                self._kept[key] = table
                while len(self._kept) > _TABLES_KEPT:
                    self._kept.popitem(last=False)
        return table

    def _read(self, *given: Any) -> Table:
        for seconds, free in self._tries:
            if not free.acquire(timeout=self._seconds):
                raise ValueError("expected time to read the table, got too many visitors' at once")
            try:
                return self._read_within(seconds, *given)
            except TimeoutError:
                pass
            finally:
                free.release()
        raise ValueError(
            f"expected a table that is read in {self._seconds:g} seconds, got one that takes "
            "longer; save it as CSV, or its first rows alone"
        )

    def _read_within(self, seconds: float, *given: Any) -> Table:
        ours, theirs = self._context.Pipe(duplex=False)
        arguments = (theirs, self._most_cells, *given)
        process = self._context.Process(target=_send_table, args=arguments, daemon=True)
        with ours:
            process.start()
            theirs.close()
            try:
                if not ours.poll(seconds):
                    raise TimeoutError
                result = ours.recv()
            except EOFError:
                raise ValueError(
                    f"expected a table that {_SECONDS_OF_CPU} seconds and {_MEMORY >> 30} GB are "
                    "enough for, got one that takes more; save it as CSV, or its first rows alone"
                ) from None
            finally:
                process.kill()
                process.join()
        if isinstance(result, Exception):
            raise result
        assert isinstance(result, Table)
        return result


def _send_table(
    sender: Connection,
    most_cells: int,
    file: str | None,
    content: bytes,
    name: str,
    options: ReadOptions,
) -> None:
    """What a process does: sends a table, or the error that says why there is none."""
    if sys.platform == "linux":
        import resource

        with open("/proc/self/statm") as file_of_sizes:
            most = int(file_of_sizes.read().split()[0]) * resource.getpagesize() + _MEMORY
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
        resource.setrlimit(resource.RLIMIT_CPU, (_SECONDS_OF_CPU, _SECONDS_OF_CPU))
    result: Table | Exception
    try:
        result = read_content(content, name, options) if file is None else read_table(file, options)
        size = result.num_rows * result.num_columns
        if size > most_cells:
            message = f"expected at most {most_cells:,} cells on the page, got {size:,}"
            raise ValueError(f"{message}; choose fewer rows")
    except ModuleNotFoundError as error:
        result = ModuleNotFoundError(str(error))
    except (OSError, ValueError) as error:
        result = ValueError(str(error))
    except MemoryError:
        return  # the other end sees that nothing comes
    sender.send(result)
