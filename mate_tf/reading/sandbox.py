"""A process of its own that reads what may be hostile, and ends where it takes too much.

It is a fresh interpreter: so it starts from a notebook, from a script without a main guard and from
a server's worker alike, and has no memory of this process. It imports no module from the current
folder, which may hold a csv.py.
"""

import os
import pathlib
import pickle
import subprocess
import sys
from collections.abc import Callable
from typing import Any, TypeVar

SECONDS = 20  # of computing
MEMORY = 2**30  # bytes, beside those that the process begins with
_SECONDS_IN_ALL = 120  # on a busy machine, and on Windows, which has neither limit
_TOO_MUCH = 2  # the exit status where there is no memory left
_START = """
import sys
sys.path[:] = sys.argv[1:]
from mate_tf.reading.sandbox import serve
serve()
"""
is_inside = False  # whether this process is such a one

Result = TypeVar("Result")


def run(function: Callable[..., Result], *arguments: Any, name: str) -> Result:
    """Calls a function of this project in a process of its own; within one, in the same.

    Args:
        function: one at the top of a module.
        arguments: what it takes, which is pickled, as is its result.
        name: that of the file which it reads, for errors.

    Raises:
        ModuleNotFoundError, ValueError: as the function.
        OSError: if the process does not start.
        ValueError: if it takes more than SECONDS or MEMORY, or ends without a result.
    """
    if is_inside:
        return function(*arguments)
    command = [sys.executable, "-I", "-S", "-c", _START, *_safe_path()]
    try:
        done = subprocess.run(
            command,
            input=pickle.dumps((function, arguments)),
            capture_output=True,
            check=False,
            timeout=_SECONDS_IN_ALL,
        )
        status = done.returncode
    except subprocess.TimeoutExpired:
        status = _TOO_MUCH
    if status == 1:
        reason = done.stderr.decode(errors="replace").strip().rpartition("\n")[2]
        raise OSError(f"expected a process to start that reads '{name}', got: {reason}")
    if status:
        raise ValueError(
            f"expected a file that is read in {SECONDS} seconds and {MEMORY >> 30} GB of memory, "
            f"got one that takes more or stops its reader (file '{name}'); save it as CSV, or its "
            "first rows alone"
        )
    result: Result | Exception = pickle.loads(done.stdout)
    if isinstance(result, Exception):
        raise result
    return result


def _safe_path() -> list[str]:
    """Where Python looks for modules, without the current folder, but this package's."""
    try:
        here = os.path.realpath(os.getcwd())
    except FileNotFoundError:  # it was removed
        here = ""
    path = [folder for folder in sys.path if folder and os.path.realpath(folder) != here]
    return [*path, str(pathlib.Path(__file__).parents[2])]


def serve() -> None:
    """Reads a function and its arguments from standard input; writes its result or its error."""
    global is_inside
    is_inside = True
    function, arguments = pickle.load(sys.stdin.buffer)
    # From here on, what packages print goes nowhere.
    with os.fdopen(os.dup(1), "wb") as output, open(os.devnull, "wb") as nowhere:
        os.dup2(nowhere.fileno(), 1)
        os.dup2(nowhere.fileno(), 2)
        _limit()
        try:
            try:
                result = function(*arguments)
            except (ModuleNotFoundError, ValueError) as error:
                kinds = ModuleNotFoundError, ValueError  # those of packages are none of here
                result = kinds[isinstance(error, ValueError)](str(error))
            pickle.dump(result, output)
        except MemoryError:
            os._exit(_TOO_MUCH)


def _limit() -> None:
    """Takes from this process what it does not need, as far as the system can."""
    try:
        import resource
    except ModuleNotFoundError:  # Windows
        return
    most = {resource.RLIMIT_CPU: SECONDS, resource.RLIMIT_CORE: 0}
    if sys.platform == "linux":  # macOS does not heed it
        with open("/proc/self/statm") as sizes:
            begun = int(sizes.read().split()[0]) * resource.getpagesize()
        most[resource.RLIMIT_AS] = begun + MEMORY
    for kind, limit in most.items():
        hard = resource.getrlimit(kind)[1]
        limit = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
        resource.setrlimit(kind, (limit, hard))
