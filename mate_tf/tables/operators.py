"""The operators, in one table: each makes an answer of the cells that a model selects.

A new operator on numbers is one entry. A model knows those that its config names, in their order.
"""

import math
import statistics
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple


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
        needs_every_row: whether a row that was not read may change the result.
        conditions: how many conditions in words suffice to choose its cells by them, where 0 stands
            for a value that cells are beyond; None if words do not choose them.
        sign: the sign that it gives to the calibration of scores (mate_tf/answers/calibration.py).
    """

    source: str
    terms: tuple[str, str, str] | None = None
    compute: Callable[[Sequence[float]], float] | None = None
    takes_two: bool = False
    along_row: bool = False
    needs_cells: bool = True
    needs_every_row: bool = False
    conditions: int | None = None
    sign: str | None = "other operator"


_OF_TWO = "of two cells"  # a sign
_ADDED: dict[str, Any] = {"needs_every_row": True, "sign": "sum or average"}
_COMPARED = Operator("comparison of", takes_two=True, sign=_OF_TWO)
ABSENT = "ABSENT"  # the table does not answer the question
OPERATORS: dict[str, Operator] = {
    "NONE": Operator("read from", conditions=0, sign=None),
    "SUM": Operator("sum of", ("", " + ", ""), math.fsum, conditions=2, **_ADDED),
    "AVERAGE": Operator(
        "average of", ("(", " + ", ") ÷ {}"), statistics.fmean, conditions=2, **_ADDED
    ),
    "COUNT": Operator(
        "count of", ("rows ", ", ", ""), needs_every_row=True, conditions=1, sign="count"
    ),
    "DISTINCT": Operator(
        "different texts of", ("different ones of ", ", ", ""), needs_every_row=True
    ),
    "MAX": Operator("largest of", ("largest of ", ", ", "")),
    "MIN": Operator("smallest of", ("smallest of ", ", ", "")),
    "DIFFERENCE": Operator(
        "difference of",
        ("difference of ", " and ", ""),
        lambda pair: abs(pair[0] - pair[1]),
        takes_two=True,
        sign=_OF_TWO,
    ),
    # Which of the two, by what their rows are called; yes or no.
    **dict.fromkeys(("GREATER", "LESS", "IS_GREATER", "IS_LESS", "IS_EQUAL"), _COMPARED),
    ABSENT: Operator("not in", needs_cells=False, sign=None),
    # Whether something holds, by the cells that show it; a NO may have none.
    **dict.fromkeys(("YES", "NO"), Operator("shown by", needs_cells=False, sign="yes or no")),
    "HEADER": Operator("column of", along_row=True),
    "SHARE": Operator("share in percent of", ("", " + ", " of the whole column"), **_ADDED),
}
OPERATORS |= {
    f"ROW_{name}": OPERATORS[name]._replace(along_row=True, needs_every_row=False, conditions=None)
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
