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
from prometheus_client.parser import text_string_to_metric_families

from tests.small import ROOT

NAME = "tiny"


class Server(NamedTuple):
    """A running server."""

    url: str  # where it listens
    process: subprocess.Popen
    folder: pathlib.Path  # its working directory and that for temporary files are in it

    @property
    def predict(self) -> str:
        return f"{self.url}/v1/models/{NAME}:predict"

    def metrics(self) -> dict[tuple[str, ...], float]:
        """What it tells Prometheus, by name and labels."""
        families = text_string_to_metric_families(httpx.get(f"{self.url}/metrics").text)
        samples = (sample for family in families for sample in family.samples)
        return {(sample.name, *sample.labels.values()): sample.value for sample in samples}


@contextlib.contextmanager
def running(model: pathlib.Path, folder: pathlib.Path, *flags: str) -> Iterator[Server]:
    """A server that answers; it is killed at the end if it still runs."""
    for name in ("work", "tmp"):
        (folder / name).mkdir(parents=True)

    environment = os.environ | {"PYTHONPATH": str(ROOT), "TMPDIR": str(folder / "tmp")}
    command = [sys.executable, "-m", "mate_tf", "serve", f"--model={model}", "--port=0"]
    command += ["--wait-seconds=60", *flags]  # none is refused on a slow machine
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
            return text.partition("POST ")[2].partition("/v1/")[0]
        time.sleep(0.05)
    raise AssertionError(f"the server ended with {process.returncode}: {log.read_text()}")
