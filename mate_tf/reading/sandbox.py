"""A process of its own that reads what may be hostile, and ends where it takes too much.

It is a fresh interpreter: so it starts from a notebook, from a script without a main guard and from
a server's worker alike, and has no memory of this process. It imports no module from the current
folder or the script's, which may hold a csv.py. Plain JSON goes to it and comes from it.
"""

import contextlib
import importlib
import importlib.abc
import json
import os
import pathlib
import subprocess
import sys
from collections.abc import Callable, Iterable
from typing import Any

SECONDS = 20  # of computing
MEMORY = 2**30  # bytes, beside those that the process begins with
_SECONDS_IN_ALL = 120  # on a busy machine, and on Windows, which has neither limit
_NOT_STARTED, _TOO_MUCH, _REFUSED = 1, 2, 3  # exit statuses
_START = """
import sys
module, function, *sys.path = sys.argv[1:]
from mate_tf.reading.sandbox import serve
serve(module, function)
"""
is_inside = False  # whether this process is such a one


def run(
    function: Callable[..., Iterable[Any]], content: bytes, *arguments: Any, name: str
) -> list[Any]:
    """Calls a function with the bytes of a file in a process of its own; within one, in the same.

    The function, one at the top of a module, takes the bytes and other arguments, and yields values
    of JSON. ModuleNotFoundError and ValueError are the function's; ValueError also if it takes more
    than SECONDS or MEMORY, or ends early; OSError if the process does not start. `name` is the
    file's, for errors.
    """
    if is_inside:
        return list(function(content, *arguments))
    named = function.__module__, function.__qualname__
    command = [sys.executable, "-I", "-S", "-c", _START, *named, *_safe_path()]
    call = b"%b\n%b" % (_encode(arguments), content)
    try:
        done = subprocess.run(
            command, input=call, capture_output=True, check=False, timeout=_SECONDS_IN_ALL
        )
    except subprocess.TimeoutExpired:
        done = subprocess.CompletedProcess(command, _TOO_MUCH)
    if done.returncode == _NOT_STARTED:
        reason = done.stderr.decode(errors="replace").strip().rpartition("\n")[2]
        raise OSError(f"expected a process to start that reads '{name}', got: {reason}")
    if done.returncode not in (0, _REFUSED):
        raise ValueError(
            f"expected a file that is read in {SECONDS} seconds and {MEMORY >> 30} GB of memory, "
            f"got one that takes more or stops its reader (file '{name}'); save it as CSV, or its "
            "first rows alone"
        )
    results = list(map(_decode, done.stdout.split(b"\n")))
    if done.returncode == _REFUSED:
        is_missing, message = results[-1]
        raise ModuleNotFoundError(message) if is_missing else ValueError(message)
    return results[1:]


def _safe_path() -> list[str]:
    """Where Python looks for modules, without the current folder and the script's."""
    main = sys.modules["__main__"]
    script = getattr(main, "__file__", None) if getattr(main, "__spec__", None) is None else None
    unsafe = {os.path.realpath(os.path.dirname(script))} if script else set()
    with contextlib.suppress(FileNotFoundError):  # the current folder may have been removed
        unsafe.add(os.path.realpath(""))
    path = [it for it in sys.path if os.path.isabs(it) and os.path.realpath(it) not in unsafe]
    return [*path, str(pathlib.Path(__file__).parents[2])]


class _WithoutPandas(importlib.abc.MetaPathFinder):
    """Hides pandas, which pyarrow imports on its first value where it is, for half a second."""

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> None:
        if fullname == "pandas":
            raise ModuleNotFoundError(f"no reader needs {fullname}", name=fullname)


def serve(module: str, name: str) -> None:
    """Calls a function with what standard input holds; writes what it yields, or its error."""
    global is_inside
    is_inside = True
    sys.meta_path.insert(0, _WithoutPandas())
    function = getattr(importlib.import_module(module), name)
    arguments = _decode(sys.stdin.buffer.readline())
    content = sys.stdin.buffer.read()
    with os.fdopen(os.dup(1), "wb") as output, open(os.devnull, "wb") as nowhere:
        for stream in (1, 2):  # what packages print from here on goes nowhere
            os.dup2(nowhere.fileno(), stream)
        _limit()
        try:
            try:
                output.write(b"null")
                for value in function(content, *arguments):
                    output.write(b"\n" + _encode(value))
            except (ModuleNotFoundError, ValueError) as error:
                is_missing = isinstance(error, ModuleNotFoundError)
                output.write(b"\n" + _encode([is_missing, str(error)]))
                output.flush()
                os._exit(_REFUSED)
        except MemoryError:
            os._exit(_TOO_MUCH)


def _encode(value: Any) -> bytes:
    """A value as JSON on a line; a text may hold half a surrogate pair."""
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")


def _decode(line: bytes) -> Any:
    return json.loads(line.decode("utf-8", "surrogatepass"))


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
