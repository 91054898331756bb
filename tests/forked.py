"""Processes that are ready in a tenth of a second, and that a test may kill.

They are forked from one that has imported TensorFlow and not yet used it. A program in one of them
has arguments, flags, a folder and an environment of its own, as after `python -m`. Only what it
imports cannot be seen: a test of that needs a new interpreter.
"""

import atexit
import multiprocessing
import os
import pathlib
import runpy
import socket
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable, Mapping, Sequence
from multiprocessing.process import BaseProcess
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parents[1]

_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(["mate_tf.records.splits", "mate_tf.training.loop"])


def free_port() -> int:
    """A port of this machine that nothing listens at."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def start(function: Callable[..., Any], *args: Any) -> BaseProcess:
    """Starts a function of a module in a process of its own."""
    process = _CONTEXT.Process(target=function, args=args, daemon=True)
    process.start()
    return process


def finish(process: BaseProcess) -> None:
    """Waits for a process that is to succeed."""
    process.join()
    assert process.exitcode == 0


def start_program(
    output: pathlib.Path,
    module: str,
    *args: str,
    cwd: pathlib.Path = ROOT,
    env: Mapping[str, str] | None = None,
) -> BaseProcess:
    """Starts `python -m module args`, by default in the caller's environment.

    What it prints goes to the files `stdout` and `stderr` in the folder `output`.
    """
    environment = dict(os.environ if env is None else env)
    process = _CONTEXT.Process(target=_run, args=(output, module, args, cwd, environment))
    process.start()
    return process


def run_program(module: str, *args: str, **options: Any) -> subprocess.CompletedProcess:
    """Runs `python -m module args` to its end, with the options of start_program."""
    with tempfile.TemporaryDirectory() as folder:
        output = pathlib.Path(folder)
        process = start_program(output, module, *args, **options)
        process.join()
        assert process.exitcode is not None
        printed = [(output / name).read_text(encoding="utf-8") for name in ("stdout", "stderr")]
    return subprocess.CompletedProcess([module, *args], process.exitcode, *printed)


def _run(
    output: pathlib.Path,
    module: str,
    args: Sequence[str],
    cwd: pathlib.Path,
    environment: Mapping[str, str],
) -> None:
    for descriptor, name in ((1, "stdout"), (2, "stderr")):
        with (output / name).open("wb") as file:
            os.dup2(file.fileno(), descriptor)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(cwd)
    sys.argv = [module, *args]
    try:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    except Exception as error:
        traceback.print_exception(error)
        raise SystemExit(1) from error
    finally:
        atexit._run_exitfuncs()
