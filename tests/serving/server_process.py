"""A server in a process of its own, in folders of its own, and a model so small that it starts."""

import contextlib
import os
import pathlib
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import NamedTuple

import httpx

from tests.small import ROOT

NAME = "tiny"


class Server(NamedTuple):
    """A running server.

    Attributes:
        url: where it listens.
        process: its process.
        folder: what it could write into: its working directory and that for temporary files.
    """

    url: str
    process: subprocess.Popen
    folder: pathlib.Path

    @property
    def predict(self) -> str:
        return f"{self.url}/v1/models/{NAME}:predict"


@contextlib.contextmanager
def running(model: pathlib.Path, folder: pathlib.Path, *flags: str) -> Iterator[Server]:
    """A server that answers; it is killed at the end if it still runs."""
    for name in ("work", "tmp"):
        (folder / name).mkdir(parents=True)

    environment = os.environ | {"PYTHONPATH": str(ROOT), "TMPDIR": str(folder / "tmp")}
    command = [sys.executable, "-m", "mate_tf", "serve", f"--model={model}", "--port=0", *flags]
    log = folder / "log"
    with log.open("w") as errors:
        process = subprocess.Popen(
            command,
            cwd=folder / "work",
            env=environment,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line.startswith("POST http://"), log.read_text()
        url = line.removeprefix("POST ").split("/v1/")[0]
        _wait_until_it_listens(url, process)
        yield Server(url, process, folder)
    finally:
        process.kill()
        process.communicate()


def _wait_until_it_listens(url: str, process: subprocess.Popen) -> None:
    while process.poll() is None:
        with contextlib.suppress(httpx.ConnectError):
            httpx.get(url)
            return
        time.sleep(0.05)
    raise AssertionError(f"the server ended with {process.returncode}")
