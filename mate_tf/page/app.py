"""Serves the page, and limits what its visitors may take of this machine.

Of HTTP that reaches Gradio which the page itself asks for, from its address, up to a size.
"""

import asyncio
import contextlib
import errno
import fnmatch
import io
import ipaddress
import json
import logging
import os
import pathlib
import signal
import socket
import tempfile
import threading
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from mate_tf.page.page import build_app
from mate_tf.private_apis import guard_visitors_files, import_extra

_MOST_SESSIONS = 1000  # whose histories are kept
_PORTS = range(7860, 7960)
_SECONDS_TO_START = 60.0
_SECONDS_TO_END = 1  # for answers that are on their way
_FOLDER = pathlib.Path(__file__).parent
_VARIABLE = "GRADIO_TEMP_DIR"  # where Gradio keeps visitors' files
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


@contextlib.contextmanager
def serving(
    predictor: Any, model_name: str, host: str, port: int | None = None, names: Sequence[str] = ()
) -> Iterator[str]:
    """Serves the page in a thread, and gives its address; at the end no visitor's file is left.

    The page shows the last part of the model's folder or name. It listens at a host's port, by
    default the first free one from 7860 on. A proxy may ask by `names` beside this machine's own.

    ModuleNotFoundError without gradio, or what it needs for the tool; OSError if the port is taken,
    there is no such address, or the page takes longer than a minute to start.
    """
    gr = import_gradio()
    before = os.environ.get(_VARIABLE)
    with (
        _listen(host, port) as listener,
        tempfile.TemporaryDirectory(prefix="mate_tf_page_", ignore_cleanup_errors=True) as folder,
    ):
        os.environ[_VARIABLE] = folder
        try:
            files = Files(pathlib.Path(folder))
            app = build_app(gr, predictor, model_name)
            guarded = _guarded(gr, app, {host, *names}, files)
            with files.cleaning(), _running(app, guarded, listener):
                number = listener.getsockname()[1]
                shown = "localhost" if host == "0.0.0.0" else f"[{host}]" if ":" in host else host
                yield f"http://{shown}:{number}/"
        finally:
            del os.environ[_VARIABLE]
            if before is not None:
                os.environ[_VARIABLE] = before


def end_on_signals() -> None:
    """From here on SIGTERM and Ctrl-C end the program by SystemExit, which closes what is open."""
    numbers = (signal.SIGTERM, signal.SIGINT)

    def end(*_: Any) -> None:
        for number in numbers:
            signal.signal(number, signal.SIG_IGN)
        raise SystemExit(0)

    for number in numbers:
        signal.signal(number, end)


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


def _guarded(gr: Any, app: Any, names: set[str], files: Files) -> Any:
    """The page as an ASGI application, of which visitors reach what it uses itself."""
    import fastapi
    from starlette.middleware import Middleware

    mono = ["ui-monospace", "Menlo", "Consolas", "monospace"]
    style, script = (
        (_FOLDER / name).read_text(encoding="utf-8") for name in ("style.css", "script.js")
    )
    app.state_session_capacity = _MOST_SESSIONS
    with contextlib.redirect_stdout(io.StringIO()):  # Gradio's lines about the tool
        mounted = gr.mount_gradio_app(
            fastapi.FastAPI(docs_url=None, openapi_url=None),
            app,
            path="/",
            show_error=False,
            ssr_mode=False,
            run_history=False,
            enable_monitoring=False,
            footer_links=[],
            max_file_size=MOST_BYTES,
            app_kwargs={
                "middleware": [Middleware(Guard, names, files)],
                "docs_url": None,
                "openapi_url": None,
            },
            theme=gr.themes.Base(font=["Inter", "system-ui", "sans-serif"], font_mono=mono),
            # As `css` it would be rewritten, its media queries wrongly.
            head=f"<style>{style}</style><script type='module'>{script}</script>",
        )
    guard_visitors_files(app)
    return mounted


def _listen(host: str, port: int | None) -> socket.socket:
    """Takes the address; without a port the first that is free."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    for number in _PORTS if port is None else [port]:
        try:
            return socket.create_server((host, number), family=family)
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                break
    raise OSError(
        f"expected an address to serve the page at, got {host}:{port or 'any port'}, which is "
        "taken or not of this machine; choose another --host or --port"
    )


@contextlib.contextmanager
def _running(app: Any, guarded: Any, listener: socket.socket) -> Iterator[None]:
    """Serves in a thread, from when the server has started.

    Gradio's own `launch` gives a busy machine a few seconds, and then says that the port is taken.
    """
    import uvicorn

    config = uvicorn.Config(
        guarded, log_level="warning", ws="none", timeout_graceful_shutdown=_SECONDS_TO_END
    )
    server = uvicorn.Server(config)
    # The server closes its own copy, also where it starts after this has given up.
    thread = threading.Thread(target=server.run, args=([listener.dup()],), daemon=True)
    thread.start()
    try:
        end = time.monotonic() + _SECONDS_TO_START
        while not server.started:
            if not thread.is_alive() or time.monotonic() > end:
                raise TimeoutError(
                    f"expected the page to start within {_SECONDS_TO_START:g} seconds, it did not; "
                    "try again when the machine is less busy"
                )
            time.sleep(0.05)
        yield
    finally:
        app.close(verbose=False)
        logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)  # of pages still open
        server.should_exit = True
        thread.join(timeout=_SECONDS_TO_END + 5)


def import_gradio() -> Any:
    """The module gradio, which from then on reports nothing; ModuleNotFoundError without it."""
    os.environ["GRADIO_ANALYTICS_ENABLED"] = "False"  # read when it is imported, and later
    return import_extra("gradio", "page", "to show the page")
