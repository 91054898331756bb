"""An answer as text for a person.

A table as text, for a terminal.
"""

from collections.abc import Collection, Iterator

from mate_tf.answers.answer import Answer, SelectedCell, format_number
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


_ROWS_SHOWN = 12


def answer_lines(table: Table, answer: Answer) -> Iterator[str]:
    """What is printed of an answer; where there is none, of what it would have been."""
    shown, others = answer, list(answer.alternatives)
    if answer.answered:
        yield f"answer: {answer.text}"
    else:
        yield "answer: none"
        if others:
            shown = others.pop(0)
            yield f"would have been: {shown.text}"
    yield f"score: {shown.score:.2f}"
    if shown.class_index is not None:
        yield f"class: {shown.class_index}"
    else:
        yield f"aggregation: {_computed(shown)}"
    if shown.number is not None and format_number(shown.number) != shown.text:
        yield f"number: {format_number(shown.number)}"
    if shown.note:
        yield f"note: {shown.note}"
    for sentence in shown.assumed:
        yield f"assumed: {sentence}"
    if answer.rows_dropped:
        yield f"not read: the last {answer.rows_dropped} of {table.num_rows} rows"
    for cell in shown.cells:
        yield f"cell: {_place(table, cell)}: {cell.text}  ({cell.score:.2f})"
    for other in others:
        line = f"alternative: {other.text}  ({other.score:.2f})"
        if other.aggregation != "NONE":
            line += f", {_computed(other)}"
        elif len(other.cells) == 1:
            line += f", {_place(table, other.cells[0])}"
        yield line
    marked = {(cell.row, cell.column) for cell in shown.cells}
    yield "\n" + draw_table(table, marked, max_rows=_ROWS_SHOWN)


def _computed(answer: Answer) -> str:
    if answer.aggregation == "NONE":
        return "NONE"
    return f"{answer.aggregation} of {len(answer.cells)} cells = {answer.text}"


def _place(table: Table, cell: SelectedCell) -> str:
    return f"row {cell.row}, column {cell.column} ({table.header[cell.column]})"
