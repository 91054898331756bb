"""What the binaries share: errors as one sentence, and tables on a terminal."""

import logging as standard_logging
import os
import pathlib
import sys
from collections.abc import Callable, Collection
from typing import Any

from absl import app, logging

from mate_tf.tables.table import Table

_CELL_WIDTH = 24
# Its C++ side logs harmless errors on machines without a GPU; what matters is raised.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")


def run(main: Callable[[list[str]], Any], **kwargs) -> None:
    """Runs a binary; what the user can mend ends it with one sentence, not a stack trace."""

    def guarded(argv: list[str]) -> int | None:
        logging.get_absl_handler().addFilter(_is_ours_or_serious)
        try:
            return main(argv)
        except Exception as error:
            if not _is_for_the_user(error):
                raise
            logging.debug("%s", error, exc_info=True)
            message = str(error).strip().split("\n")[0]
            print(f"{sys.argv[0].rsplit('/', 1)[-1]}: {message}", file=sys.stderr)
            return 1

    app.run(guarded, **kwargs)


def _is_for_the_user(error: Exception) -> bool:
    """Whether an error is of the input, the files or the machine, not of the program."""
    from_tensorflow = type(error).__module__.startswith("tensorflow.python.framework.errors")
    ours = ValueError | OSError | FloatingPointError | ModuleNotFoundError
    return from_tensorflow or isinstance(error, ours)


def _is_ours_or_serious(record: standard_logging.LogRecord) -> bool:
    """Leaves out what TensorFlow and Orbit say of their own saving and loading."""
    if record.module == "function_deserialization":  # no exported model is trained further
        return False
    folders = pathlib.Path(record.pathname).parts
    return record.levelno >= standard_logging.WARNING or bool(
        {"mate_tf", "experiments"} & {*folders}
    )


def draw_table(
    table: Table, marked: Collection[tuple[int, int]], max_rows: int | None = None
) -> str:
    """The table as text, chosen cells in [brackets].

    Args:
        table: the table.
        marked: (row, column) of the chosen cells, body rows from 0.
        max_rows: draws the marked rows and the first others up to so many, the rest as "...".
    """
    rows = list(range(table.num_rows))
    if max_rows is not None and len(rows) > max_rows:
        shown = sorted({row for row, _ in marked})
        shown += [row for row in rows if row not in set(shown)][: max(0, max_rows - len(shown))]
        rows = sorted(shown)
    cells = [["row", *table.header]]
    for row in rows:
        texts = (
            f"[{text}]" if (row, column) in marked else text
            for column, text in enumerate(table.rows[row])
        )
        cells.append([str(row), *texts])
    cells = [[_shorten(text) for text in line] for line in cells]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = [
        "  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip()
        for line in cells
    ]
    lines.insert(1, "  ".join("-" * width for width in widths))
    hidden = table.num_rows - len(rows)
    return "\n".join(lines + ([f"... {hidden} more rows"] if hidden else []))


def _shorten(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _CELL_WIDTH else text[: _CELL_WIDTH - 1] + "…"
