"""What files that packages read have in common: the package, what is broken, sizes and values."""

import contextlib
import datetime
import importlib
import math
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

# Small files may stand for very large tables: they are compressed, cells may span others.
MOST_CELLS = 10_000_000


def reading_package(name: str, path: str | Path) -> Any:
    """A module of a package of the extra "formats", which reads a file.

    Raises:
        ModuleNotFoundError: if it is not installed.
    """
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError:
        raise ModuleNotFoundError(
            f"expected the package {name.split('.')[0]} to read '{path}'; "
            "pip install 'mate_tf[formats]'"
        ) from None


@contextlib.contextmanager
def broken_named(kind: str, path: str | Path) -> Iterator[None]:
    """While a package reads: ValueError that names the file, whatever the package raises."""
    try:
        with warnings.catch_warnings(action="ignore"):  # of parts of a file that it passes over
            yield
    except Exception as error:  # of archives, of XML, of types: there is no one class
        reason = str(error).strip().split("\n")[0] or type(error).__name__
        raise ValueError(f"expected {kind}, got: {reason} (file '{path}')") from None


def check_size(num_cells: int, path: str | Path) -> None:
    """ValueError where a table has more than MOST_CELLS."""
    if num_cells > MOST_CELLS:
        raise ValueError(f"expected at most {MOST_CELLS:,} cells, got more (file '{path}')")


def plain_value(value: Any) -> Any:
    """What stands for a typed value in a table: a whole number, a date in ISO form, None.

    A date with the time 00:00:00 is a date; a float that is a whole number becomes one, as long as
    doubles tell whole numbers apart; NaN is None.
    """
    if isinstance(value, float):
        if math.isnan(value):
            return None
        return int(value) if value.is_integer() and abs(value) < 2**53 else value
    if isinstance(value, datetime.datetime):
        is_date = value.time() == datetime.time() and value.tzinfo is None
        return value.date().isoformat() if is_date else value.isoformat(" ")
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    return value
