"""How long large tables take to read: processor seconds of this process and of its readers.

    python -m experiments.benchmarks.large_tables

Reads a Parquet file and a data frame of 100,000 rows, a workbook of 20,000 and a CSV file of
50,000, each with six columns of texts, numbers, dates and empty cells, and types the columns of the
last. The start of a process that reads, with a file of one row, counts apart.
"""

import datetime
import functools
import gc
import os
import pathlib
import random
import statistics
import tempfile
from collections.abc import Callable
from typing import Any

from absl import app

from mate_tf import read_table
from mate_tf.tables.columns import read_column

_ROUNDS = 5


def main(_: Any) -> None:
    """Prints the medians."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for size, kind in ((100_000, "parquet"), (20_000, "xlsx")):
            for num_rows in (1, size):
                path = folder / f"{num_rows}.{kind}"
                frame = _frame(num_rows)
                write = frame.to_parquet if kind == "parquet" else frame.to_excel
                write(path, index=False)
                _measure(f"{kind}, {num_rows:,} rows", functools.partial(read_table, path))
        frame = _frame(100_000)
        _measure("data frame, 100,000 rows", functools.partial(read_table, frame))
        path = folder / "table.csv"
        _frame(50_000).to_csv(path, index=False)
        _measure("csv, 50,000 rows", functools.partial(read_table, path))
        table = read_table(path)
        for index, column in enumerate(table.header):
            texts = [row[index] for row in table.rows]
            _measure(f"types of '{column}'", functools.partial(read_column, texts, column))


def _frame(num_rows: int) -> Any:
    import pandas

    chance = random.Random(0)
    first = datetime.datetime(2020, 1, 1)
    rows = [
        (
            f"City {chance.randrange(3_000)}",
            chance.randrange(10**6),
            chance.choice([None, *[round(100 * chance.random(), 3)] * 19]),
            first + datetime.timedelta(days=chance.randrange(3_000)),
            chance.choice([None, *[f"K{chance.randrange(10**7)}"] * 19]),
            chance.randrange(10**6) / 100,
        )
        for _ in range(num_rows)
    ]
    return pandas.DataFrame(rows, columns=["city", "people", "share", "founded", "code", "price"])


def _measure(what: str, function: Callable[[], Any]) -> None:
    seconds = []
    for _ in range(_ROUNDS):
        gc.collect()
        before = os.times()
        function()
        seconds.append(sum(os.times()[:4]) - sum(before[:4]))
    print(f"{what:28} {statistics.median(seconds):.2f} s")


if __name__ == "__main__":
    app.run(main)
