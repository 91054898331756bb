"""What was compared with the golden files in a run of the tests, by all of its processes.

Rows of plain values, which pytest takes from a test's process to the first one in its report.
"""

import collections
import pathlib
from collections.abc import Iterable
from typing import Any, NoReturn

import pytest

from tests import data_folders

# Of the test that runs.
ROWS: list[tuple[Any, ...]] = []


def compared(family: str, name: str, difference: float, relative: float) -> None:
    """Adds a comparison, with its largest difference and that as a share of the largest value."""
    ROWS.append(("compared", family, name, difference, relative))


def left_out(family: str, name: str, reason: str) -> None:
    """Adds what is not supported or does not count."""
    ROWS.append(("left out", family, name, reason))


def absent(path: pathlib.Path) -> NoReturn:
    """Adds a file or a folder that is not there, and skips the test."""
    ROWS.append(("absent", str(path)))
    pytest.skip(f"absent: {path}")


def rows_of(reports: Iterable[Any]) -> list[tuple[Any, ...]]:
    """All rows of the reports of tests."""
    properties = [it for report in reports for it in getattr(report, "user_properties", ())]
    return [tuple(row) for kind, row in properties if kind == "golden"]


def lines(rows: list[tuple[Any, ...]]) -> list[str]:
    """A table of them; nothing where nothing was to be compared."""
    if not rows:
        return []
    families = collections.defaultdict(list)
    reasons = collections.defaultdict(list)
    for kind, family, *values in rows:
        if kind == "compared":
            families[family].append(values)
        elif kind == "left out":
            name, reason = values
            reasons[family, reason].append(name)
    found = [
        "",
        f"golden comparisons, folders {data_folders.GOLDEN} and {data_folders.GOLDEN_REAL}",
        f"{'family':<12} {'compared':>8} {'largest':>10} {'relative':>10}  worst",
    ]
    for family, compared in sorted(families.items()):
        name, _, relative = max(compared, key=lambda row: row[2])
        largest = max(row[1] for row in compared)
        found.append(f"{family:<12} {len(compared):>8} {largest:>10.2e} {relative:>10.2e}  {name}")
    for (family, reason), names in sorted(reasons.items()):
        first = ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")
        found.append(f"not compared: {len(names)} of {family} ({first}): {reason}")
    missing = sorted({row[1] for row in rows if row[0] == "absent"})
    return [*found, f"absent: {', '.join(missing) or 'nothing'}"]
