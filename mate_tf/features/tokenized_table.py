"""A table as tokens and numbers: what all questions about it share.

Shape letters: N tokens of a table, R rows and C columns of its body. A grid [R+1, C+1] has a value
for each cell at [row id, column id]; ids count from 1, and row 0 is the header. A histogram row,
where there is one, is row R+1 of the tokens and of every grid, which are then [R+2, C+1].

A histogram of each column, as one more row of cells at the table's end.

SAT appends such a row, so that a model without a view of a whole column can still tell what is
frequent in it (MATE paper, section 2, on Zhang et al., 2020). What its cells say is chosen here.
"""

from collections import Counter
from typing import NamedTuple

import numpy as np

from mate_tf.features import numeric
from mate_tf.features.normalization import normalize_for_match
from mate_tf.features.wordpiece import Wordpiece
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


class TokenizedTable(NamedTuple):
    """The tokens of a table, header first, then row by row, and the numbers in its cells.

    A histogram row has no numbers, ranks or relations, and changes nothing of the other rows.
    """

    input_ids: np.ndarray  # int32 [N]
    column_ids: np.ndarray  # int32 [N]
    row_ids: np.ndarray  # int32 [N], ascending
    word_begins: np.ndarray  # int32 [N]: where in its cell the word of a piece begins
    column_ranks: np.ndarray  # int32 [R+1, C+1]
    inv_column_ranks: np.ndarray  # int32 [R+1, C+1]
    numeric_values: np.ndarray  # float32 [R+1, C+1], NaN where there is none
    column_values: tuple[dict[int, numeric.NumericValue], ...]  # for each column, by row
    has_histogram_row: bool = False

    @property
    def num_rows(self) -> int:
        """R, without a histogram row."""
        return len(self.column_ranks) - 1 - self.has_histogram_row

    @property
    def num_columns(self) -> int:
        """C."""
        return self.column_ranks.shape[1] - 1

    @property
    def cell_ids(self) -> np.ndarray:
        """The place of each token's cell in a grid that is laid out flat: int32 [N], ascending."""
        return self.row_ids * np.int32(self.num_columns + 1) + self.column_ids

    @property
    def places_in_cell(self) -> np.ndarray:
        """The place of each token in its cell, from 0: [N]."""
        cells = self.cell_ids
        return np.arange(len(cells)) - np.searchsorted(cells, cells)


def tokenize_table(
    wordpiece: Wordpiece,
    table: Table,
    histogram_row: bool = False,
    strip_column_names: bool = False,
    original: bool = False,
) -> TokenizedTable:
    """Tokenizes all cells in one graph call and finds the numbers among them.

    With `original`, numbers are those of the authors' release (mate_tf/features/numeric.py).
    """
    header = [""] * table.num_columns if strip_column_names else table.header
    texts = [*header, *(cell for row in table.expanded_rows for cell in row)]
    if histogram_row:
        texts += histogram_cells(table)
    input_ids, lengths = wordpiece.ids_and_lengths(texts)
    last_row = table.num_rows + histogram_row
    row_ids, column_ids = np.indices((last_row + 1, table.num_columns), np.int32)
    place = np.arange(len(input_ids), dtype=np.int32)  # [N]
    cell_begins = np.repeat(np.cumsum(lengths) - lengths, lengths).astype(np.int32)  # [N]
    word_begins = np.maximum.accumulate(np.where(wordpiece.is_inner[input_ids], 0, place))

    shape = last_row + 1, table.num_columns + 1
    ranks = np.zeros((2, *shape), np.int32)
    values = np.full(shape, np.nan, np.float32)
    columns = zip(*table.rows, strict=True)
    column_values = tuple(numeric.column_values(column, original) for column in columns)
    for column, of_column in enumerate(column_values, start=1):
        for row, rank in numeric.ranks(of_column).items():
            ranks[:, row + 1, column] = rank
        for row, value in of_column.items():
            if isinstance(value, float):
                values[row + 1, column] = value
    return TokenizedTable(
        input_ids=input_ids,
        column_ids=np.repeat(column_ids.ravel() + 1, lengths),
        row_ids=np.repeat(row_ids.ravel(), lengths),
        word_begins=word_begins - cell_begins,
        column_ranks=ranks[0],
        inv_column_ranks=ranks[1],
        numeric_values=values,
        column_values=column_values,
        has_histogram_row=histogram_row,
    )


def no_table() -> TokenizedTable:
    """What stands for the table where a sentence has none."""
    none, grid = np.zeros(0, np.int32), np.zeros((1, 1), np.int32)
    values = np.full((1, 1), np.nan, np.float32)
    return TokenizedTable(none, none, none, none, grid, grid, values, ())


def question_relations(tokens: TokenizedTable, question: str, original: bool = False) -> np.ndarray:
    """How a question's numbers compare with each cell's: bits, int32 [R+1, C+1]."""
    grid = np.zeros(tokens.column_ranks.shape, np.int32)
    asked = numeric.text_values(question, original)
    for column, values in enumerate(tokens.column_values if asked else ()):
        for row, bits in numeric.relations(asked, values).items():
            grid[row + 1, column + 1] = bits
    return grid
