"""Reading visitors' tables in processes of their own, which end where one takes too much."""

import collections
import multiprocessing
import sys
import threading
from multiprocessing.connection import Connection
from typing import Any

from mate_tf.tables.files import ReadOptions, read_content, read_table
from mate_tf.tables.table import Table

SECONDS = 120.0
_SECONDS_OF_CPU = 20
MOST_CELLS = 500_000
_MEMORY = 2 * 2**30  # bytes, beside those that a process begins with
_TABLES_KEPT = 8
_MOST_CELLS_KEPT = 50_000  # of each; more tokens than a model reads
_AT_ONCE = 2


class Reader:
    """Reads tables, each in a process, at most two of them at a time.

    A process has neither this one's memory nor its lock of the interpreter, so that a question is
    answered meanwhile. A table has limits of time and size. The last small tables are kept: what is
    shown is asked about next.
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
        self._free = threading.BoundedSemaphore(_AT_ONCE)
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
        if not self._free.acquire(timeout=self._seconds):
            raise ValueError("expected time to read the table, got too many visitors' at once")
        try:
            table = self._read(file, content, name, options)
        finally:
            self._free.release()
        if table.num_rows * table.num_columns <= _MOST_CELLS_KEPT:
            with self._lock:
                self._kept[key] = table
                while len(self._kept) > _TABLES_KEPT:
                    self._kept.popitem(last=False)
        return table

    def _read(self, *given: Any) -> Table:
        ours, theirs = self._context.Pipe(duplex=False)
        arguments = (theirs, self._most_cells, *given)
        process = self._context.Process(target=_send_table, args=arguments, daemon=True)
        with ours:
            process.start()
            theirs.close()
            try:
                if not ours.poll(self._seconds):
                    raise ValueError(
                        f"expected a table that is read in {self._seconds:g} seconds, got one that "
                        "takes longer; save it as CSV, or its first rows alone"
                    )
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
