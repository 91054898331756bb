"""An answer as text for a person."""

from collections.abc import Iterator

from mate_tf.command_line.table_drawing import draw_table
from mate_tf.tables.table import Table
from mate_tf.tasks.answers import Answer, SelectedCell
from mate_tf.tasks.numbers import format_number

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
