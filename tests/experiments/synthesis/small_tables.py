"""Tables that statements are made about, random ones and one by hand."""

import hypothesis.strategies as st

from experiments.synthesis.statement_execution import (
    Aggregate,
    Comparator,
    Condition,
    Constant,
    Expression,
    Statement,
)
from experiments.synthesis.typed_table import TypedTable
from mate_tf.tables.table import Table

CITIES = Table(
    ("City", "Country", "People", "Area", "Founded"),
    (
        ("Lima", "Peru", "1,000", "5.5", "18 January 1535"),
        ("Cusco", "Peru", "400", "7", "23 March 1534"),
        ("Santiago", "Chile", "600", "2.5", "12 February 1541"),
        ("Quito", "Ecuador", "", "4", "6 December 1534"),
    ),
    "cities",
)
TYPED_CITIES = TypedTable(CITIES)
CITY, COUNTRY, PEOPLE, AREA, FOUNDED = range(5)
LARGEST = (Condition(AREA, "equal", Aggregate("maximum", AREA)),)
ABOVE = (Condition(AREA, "greater", Aggregate("average", AREA)),)


def of(column: int, text: str) -> tuple[Condition, ...]:
    return (Condition(column, "equal", Constant(text)),)


def says(
    left: Expression | str, right: Expression | str, comparator: Comparator = "equal"
) -> Statement:
    """A statement; texts are constants."""
    first, second = (Constant(side) if isinstance(side, str) else side for side in (left, right))
    return Statement(first, comparator, second)


_words = st.sampled_from(["a", "b", "c", "d e", "f"])
_numbers = st.integers(0, 9).map(str)


@st.composite
def tables(draw) -> Table:
    """A table of texts, numbers and a few gaps, of 2 to 6 rows: some values are in it twice."""
    num_rows = draw(st.integers(2, 6))

    def column(values):
        return draw(st.lists(values, min_size=num_rows, max_size=num_rows))

    kinds = draw(st.permutations([_words, _numbers, _numbers, st.one_of(_numbers, st.just(""))]))
    columns = [column(values) for values in kinds[: draw(st.integers(2, 4))]]
    header = [f"column {chr(ord('p') + i)}" for i in range(len(columns))]
    return Table.from_rows(list(zip(*columns, strict=True)), header, "random")


@st.composite
def crosstabs(draw) -> Table:
    """A table of 2 to 5 rows with a series of years of numbers, or of marks, and two dates."""
    num_rows = draw(st.integers(2, 5))
    of_series = draw(st.sampled_from([_numbers, st.sampled_from(["x", "y"])]))
    dates = st.integers(1, 9).map(lambda day: f"2024-03-0{day}")
    kinds = [_words, *[of_series] * draw(st.integers(3, 4)), dates, dates]
    years = [str(2001 + i) for i in range(len(kinds) - 3)]
    columns = [draw(st.lists(it, min_size=num_rows, max_size=num_rows)) for it in kinds]
    return Table.from_rows(list(zip(*columns, strict=True)), ["Team", *years, "In", "Out"], "years")
