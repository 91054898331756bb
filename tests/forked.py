"""Processes that a test may kill, ready in a tenth of a second.

They are forked from one that has imported TensorFlow and has not yet used it, which is what it
survives.
"""

import multiprocessing
from collections.abc import Callable
from multiprocessing.process import BaseProcess
from typing import Any

_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(["tests.forked_imports"])


def start(function: Callable[..., Any], *args: Any) -> BaseProcess:
    """Starts a function of a module in a process of its own."""
    process = _CONTEXT.Process(target=function, args=args, daemon=True)
    process.start()
    return process


def finish(process: BaseProcess) -> None:
    """Waits for a process that is to succeed."""
    process.join()
    assert process.exitcode == 0


def kill(process: BaseProcess, after: float) -> bool:
    """Kills (SIGKILL) a process after so many seconds; whether it still ran."""
    process.join(after)
    process.kill()
    process.join()
    return process.exitcode != 0
