"""Measurements in processes of their own, and the memory of one."""

import concurrent.futures
import ctypes
import gc
import multiprocessing
import pathlib
import time
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

Result = TypeVar("Result")


def in_its_own_process(measure: Callable[..., Result], *args) -> Result:
    """Calls a function with nothing left of other measurements."""
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(1, mp_context=context) as executor:
        return executor.submit(measure, *args).result()


def interleaved(runners: Mapping[str, Callable[[], Any]], rounds: int) -> dict[str, list[float]]:
    """The seconds of each in rounds of one measurement each, after one that is not counted."""
    seconds: dict[str, list[float]] = {name: [] for name in runners}
    for done in range(rounds + 1):
        for name, runner in runners.items():
            start = time.perf_counter()
            runner()
            if done:
                seconds[name].append(time.perf_counter() - start)
    return seconds


def resident_megabytes(field: str) -> float:
    """This process's memory now, "VmRSS", or its peak since `reset_peak`, "VmHWM"."""
    status = pathlib.Path("/proc/self/status").read_text(encoding="utf-8")
    (line,) = (line for line in status.splitlines() if line.startswith(f"{field}:"))
    return int(line.split()[1]) / 1024


def give_back_freed() -> None:
    """Returns to the system what the allocator keeps of freed memory (glibc, malloc_trim(3))."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)


def reset_peak() -> None:
    """Makes the present memory the peak (Linux, proc(5), clear_refs)."""
    pathlib.Path("/proc/self/clear_refs").write_text("5", encoding="utf-8")
