"""The operators, in one table: each makes an answer of the cells that a model selects.

A new operator on numbers is one entry. A model knows those that its config names, in their order.
"""

import math
import statistics
from collections.abc import Callable, Sequence
from typing import NamedTuple


class Operator(NamedTuple):
    """An operation on cells, and how it is shown.

    Attributes:
        source: stands before the cells that an answer comes from: "sum of".
        terms: stand before, between and after the cells' texts; {} is how many there are. None
            where they are not shown as terms.
        compute: the result of the cells' numbers, one at least; None where the texts, ranks or
            dates of the cells decide (mate_tf/answers/answer.py).
        takes_two: whether it takes exactly two cells.
        along_row: whether it takes cells of one row, and not of one column.
        needs_cells: whether there is no answer without cells.
    """

    source: str
    terms: tuple[str, str, str] | None = None
    compute: Callable[[Sequence[float]], float] | None = None
    takes_two: bool = False
    along_row: bool = False
    needs_cells: bool = True


_COMPARED = Operator("comparison of", takes_two=True)
ABSENT = "ABSENT"  # the table does not answer the question
OPERATORS: dict[str, Operator] = {
    "NONE": Operator("read from"),
    "SUM": Operator("sum of", ("", " + ", ""), math.fsum),
    "AVERAGE": Operator("average of", ("(", " + ", ") ÷ {}"), statistics.fmean),
    "COUNT": Operator("count of", ("rows ", ", ", "")),
    "DISTINCT": Operator("different texts of", ("different ones of ", ", ", "")),
    "MAX": Operator("largest of", ("largest of ", ", ", "")),
    "MIN": Operator("smallest of", ("smallest of ", ", ", "")),
    "DIFFERENCE": Operator(
        "difference of",
        ("difference of ", " and ", ""),
        lambda pair: abs(pair[0] - pair[1]),
        takes_two=True,
    ),
    # Which of the two, by what their rows are called; yes or no.
    **dict.fromkeys(("GREATER", "LESS", "IS_GREATER", "IS_LESS", "IS_EQUAL"), _COMPARED),
    ABSENT: Operator("not in", needs_cells=False),
    # Whether something holds, by the cells that show it; a NO may have none.
    "YES": Operator("shown by", needs_cells=False),
    "NO": Operator("shown by", needs_cells=False),
    "HEADER": Operator("column of", along_row=True),
    "SHARE": Operator("share in percent of", ("", " + ", " of the whole column")),
}
OPERATORS |= {
    f"ROW_{name}": OPERATORS[name]._replace(along_row=True)
    for name in ("SUM", "AVERAGE", "MAX", "MIN", "DIFFERENCE")
}
TAPAS_OPERATORS = ("NONE", "SUM", "AVERAGE", "COUNT")
# By the ids in records, of which TAPAS's are the first.
_WITH_IDS = (
    *(*TAPAS_OPERATORS, "DISTINCT", "MAX", "MIN", "DIFFERENCE"),
    *("GREATER", "LESS", "IS_GREATER", "IS_LESS", "IS_EQUAL", ABSENT),
    *("YES", "NO", "HEADER", "SHARE"),
    *("ROW_SUM", "ROW_AVERAGE", "ROW_MAX", "ROW_MIN", "ROW_DIFFERENCE"),
)


def operators_by_id() -> tuple[str, ...]:
    """The operators by their ids in records; those without an id of their own come last."""
    return (*_WITH_IDS, *(name for name in OPERATORS if name not in _WITH_IDS))
