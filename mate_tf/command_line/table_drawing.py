"""A table as text, for a terminal."""

from collections.abc import Collection

from mate_tf.tables.table import Table

_CELL_WIDTH = 24


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
