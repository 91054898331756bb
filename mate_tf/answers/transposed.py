"""Tables that are read once more with rows and columns exchanged.

In a table of months or teams as columns, "which month was the dearest?" asks for a column's name.
The model knows little of that, and much of names in a first column. So where the answer is not
sure, and several columns are alike, the table is also read transposed. That answer is taken if its
score is ahead by far and it is about the alike columns. With the weights before the stage
`conversations`, by which this was chosen, 6 of 931 questions about WikiTableQuestions' training
tables that were kept become right and 1 wrong, and of 2,602 that people wrote
(experiments/demo_data/people/dev.jsonl) 22 and 3; with those after it, of the latter 13 and 4.
"""

import dataclasses

from mate_tf.answers.answer import Answer
from mate_tf.features import english
from mate_tf.tables.operators import OPERATORS
from mate_tf.tables.table import Table

_FEWEST_ALIKE = 3  # columns
_MOST_ROWS = 64  # which become columns
_AHEAD = 0.2  # of the other score
_SHARED = 0.5  # of the texts of the column that has fewer


def transposed(table: Table) -> Table:
    """The table with each column as a row, and its header as the first column."""
    columns = list(zip(table.header, *table.rows, strict=True))
    return dataclasses.replace(
        table, header=columns[0], rows=tuple(columns[1:]), expansions=(), assumed=()
    )


def alike_columns(table: Table) -> frozenset[int]:
    """The largest group of columns that hold the same, such as a price in each month.

    Their values are of one kind and unit, or half of the texts of one are in the other. The first
    column names rows and is in none. Nothing if there are fewer than three, or more rows than a
    header may well have.
    """
    if table.num_rows > _MOST_ROWS or table.num_columns <= _FEWEST_ALIKE:
        return frozenset()
    of_measure: dict[tuple[str, str, str], set[int]] = {}
    texts: dict[int, set[str]] = {}
    for index in range(1, table.num_columns):
        column = table.column(index)
        if column.kind == "text":
            texts[index] = {row[index].strip().lower() for row in table.rows}
        elif column.kind != "empty":
            measure = column.kind, column.unit, column.convention.unit
            of_measure.setdefault(measure, set()).add(index)

    def shares(one: set[str], other: set[str]) -> bool:
        return len(one & other) >= _SHARED * min(len(one), len(other))

    sharing = ({i for i, other in texts.items() if shares(one, other)} for one in texts.values())
    largest = max([*of_measure.values(), *sharing], key=len, default=set())
    return frozenset(largest) if len(largest) >= _FEWEST_ALIKE else frozenset()


def likelier(table: Table, question: str, answer: Answer, across: Answer) -> Answer:
    """The answer, or that about the transposed table if its score is ahead by far.

    That one becomes an answer about the table: its cells are where the table has them, and its
    operator is along a row. It is "probably" right at best: of 31 that were said plainly 20 were
    right. The other is its first alternative. Scores are calibrated.
    """
    is_ahead = across.answered and across.score > answer.score + _AHEAD
    turned = _turned(table, question, across) if is_ahead else None
    if turned is None:
        return answer
    others = (dataclasses.replace(answer, alternatives=()), *answer.alternatives)
    confidence = "probably" if turned.sure else turned.confidence
    return dataclasses.replace(turned, alternatives=others, confidence=confidence)


def _turned(table: Table, question: str, across: Answer) -> Answer | None:
    """An answer about the transposed table as one about the table; None for what it has none for.

    Cells of the first column are names of columns of the table.
    """
    operator, name = OPERATORS[across.aggregation], across.aggregation
    are_names = {cell.column == 0 for cell in across.cells}
    alike = alike_columns(table)
    if operator.along_row or name == "SHARE" or len(are_names) > 1:
        return None
    if any(cell.row + 1 not in alike for cell in across.cells):
        return None
    if True in are_names:
        if name != "NONE":
            return None
        name, row = "HEADER", _named_row(table, question)
        places = [(row, cell.row + 1) for cell in across.cells]
    else:
        name = f"ROW_{name}" if f"ROW_{name}" in OPERATORS else name
        places = [(cell.column - 1, cell.row + 1) for cell in across.cells]
    cells = [
        dataclasses.replace(cell, row=row, column=column, text=table.rows[row][column])
        for cell, (row, column) in zip(across.cells, places, strict=True)
    ]
    cells.sort(key=lambda cell: (cell.row, cell.column))
    return dataclasses.replace(
        across, cells=tuple(cells), aggregation=name, assumed=table.all_assumed
    )


def _named_row(table: Table, question: str) -> int:
    """The row that the question names best, by its first cell."""
    words = english.content_words(question)
    named = [english.share_named(row[0], words) for row in table.rows]
    return named.index(max(named))
