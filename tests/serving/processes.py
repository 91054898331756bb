"""A server and an exported model, each in a process of its own."""

import contextlib
import json
import os
import pathlib
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

from tests.small import ROOT, run_python

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
        import httpx
        from prometheus_client.parser import text_string_to_metric_families

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


# With TensorFlow and tensorflow-text, and without mate_tf.
SCRIPT = """
import json, sys
import tensorflow as tf
from tensorflow.python.framework import op_def_registry

def as_bytes(value):
    if isinstance(value, list):
        return [as_bytes(one) for one in value]
    return value.encode("utf-8", "surrogateescape") if isinstance(value, str) else value

asked = json.load(sys.stdin)
unknown = [name for name in asked["operations"] if op_def_registry.get(name) is None]
import tensorflow_text

assert not [name for name in unknown if op_def_registry.get(name) is None]
signatures = tf.saved_model.load(asked["directory"]).signatures
outputs = {}
for name, inputs in asked["signatures"].items():
    tensors = {key: tf.constant(as_bytes(values)) for key, values in inputs.items()}
    found = signatures[name](**tensors)
    outputs[name] = {key: values.numpy().tolist() for key, values in found.items()}
assert not [name for name in sys.modules if name.startswith("mate_tf")]
print(json.dumps([unknown, outputs], default=bytes.decode))
"""


def ask(
    directory: pathlib.Path, cwd: pathlib.Path, operations: tuple[str, ...] = (), **signatures: Any
) -> tuple[list[str], dict[str, dict[str, list]]]:
    """Asks signatures of a model.

    Args:
        directory: the exported model.
        cwd: the working directory, in which there is no mate_tf.
        operations: names of operations.
        signatures: the inputs of each, as lists or tensors by name.

    Returns:
        Those of the operations that TensorFlow alone does not know, and the outputs of each
        signature, as lists.
    """

    def plain(value: Any) -> Any:
        if isinstance(value, bytes):
            return value.decode("utf-8", "surrogateescape")
        return value.numpy().tolist()

    asked = {"directory": str(directory), "operations": operations, "signatures": signatures}
    # Isolated: neither this folder nor the environment's paths are looked for modules.
    done = run_python("-I", "-c", SCRIPT, input=json.dumps(asked, default=plain), cwd=cwd)
    assert done.returncode == 0, done.stderr
    unknown, outputs = json.loads(done.stdout.splitlines()[-1])
    return unknown, outputs
