"""A histogram of each column, as one more row of cells at the table's end.

SAT appends such a row, so that a model without a view of a whole column can still tell what is
frequent in it (MATE paper, section 2, on Zhang et al., 2020). What its cells say is chosen here.
"""

from collections import Counter

from mate_tf.tables.normalization import normalize_for_match
from mate_tf.tables.table import Table

MAX_VALUES = 3


def histogram_cells(table: Table) -> tuple[str, ...]:
    """For each column its most frequent values and how often each occurs.

    Of each column the MAX_VALUES most frequent, the most frequent first and equally frequent ones
    in the order of their first appearance, spelled as there. Case and white space make no other
    value, and blank cells are none: a column of blanks has a blank histogram.

    Example:
        >>> histogram_cells(Table.from_rows([["city", "year"], ["Rome", 2004], ["rome", ""]]))
        ('Rome 2', '2004 1')
    """
    return tuple(map(_histogram_cell, zip(*table.rows, strict=True)))


def _histogram_cell(cells: tuple[str, ...]) -> str:
    spellings: dict[str, str] = {}
    counts: Counter[str] = Counter()
    for cell in cells:
        value = normalize_for_match(cell)
        if value:
            spellings.setdefault(value, cell.strip())
            counts[value] += 1
    return ", ".join(f"{spellings[value]} {n}" for value, n in counts.most_common(MAX_VALUES))
