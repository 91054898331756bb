"""A server in a process of its own, in folders of its own, and a model so small that it starts."""

import contextlib
import os
import pathlib
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import NamedTuple

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
            command, cwd=folder / "work", env=environment, stdout=errors, stderr=errors, text=True
        )
    try:
        url = _wait_until_it_is_ready(log, process)
        yield Server(url, process, folder)
    finally:
        process.kill()
        process.communicate()


def _wait_until_it_is_ready(log: pathlib.Path, process: subprocess.Popen) -> str:
    while process.poll() is None:
        text = log.read_text()
        if "\nready: " in text:
            return text.removeprefix("POST ").split("/v1/")[0]
        time.sleep(0.05)
    raise AssertionError(f"the server ended with {process.returncode}: {log.read_text()}")
