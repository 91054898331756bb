"""A table as tokens and numbers, which all questions about it share, and its place in a sequence.

A histogram row at the table's end may say for each column which values are frequent. SAT appends
one, so that a model that does not see a whole column still knows (MATE paper, section 2, on Zhang
et al., 2020). The content of its cells is chosen here.

Shape letters: S sequence, N tokens of a table, K those of them in the sequence, R rows and C
columns of the table's body. A grid [R+1, C+1] has a value for each cell at [row id, column id]; ids
count from 1, and row 0 is the header. A histogram row is row R+1, and grids are then [R+2, C+1].
"""

import hashlib
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from mate_tf.features import numeric
from mate_tf.features.normalization import normalize_for_match
from mate_tf.features.wordpiece import Wordpiece
from mate_tf.tables.columns import Convention
from mate_tf.tables.table import Table, id_bytes

MAX_VALUES = 3


def histogram_cells(table: Table) -> tuple[str, ...]:
    """For each column its MAX_VALUES most frequent values, and how often each occurs.

    The most frequent comes first; equally frequent values are in the order of their first
    appearance, and spelled as there. Case and white space do not matter, and blank cells do not
    count.

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
    """The tokens of a table, the header first, then row by row, and the numbers in its cells.

    A histogram row has no numbers, ranks or relations, and does not change the other rows.
    """

    input_ids: np.ndarray  # int32 [N]
    column_ids: np.ndarray  # int32 [N]
    row_ids: np.ndarray  # int32 [N], ascending
    word_begins: np.ndarray  # int32 [N]: the place in its cell where a piece's word begins
    column_ranks: np.ndarray  # int32 [R+1, C+1]
    inv_column_ranks: np.ndarray  # int32 [R+1, C+1]
    numeric_values: np.ndarray  # float32 [R+1, C+1], NaN for none
    column_values: tuple[dict[int, numeric.NumericValue], ...]  # for each column, by row
    conventions: tuple[Convention, ...] | None = None  # of each column, if columns were read
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
        """The place of each token's cell in a flattened grid: int32 [N], ascending."""
        return self.row_ids * np.int32(self.num_columns + 1) + self.column_ids


def tokenize_table(
    wordpiece: Wordpiece,
    table: Table,
    histogram_row: bool = False,
    strip_column_names: bool = False,
    original: bool = False,
    numbers_version: int = 2,
) -> TokenizedTable:
    """Tokenizes all cells together and finds the numbers in them.

    With `original`, numbers are read as in the authors' release, otherwise as in a version of ours
    (numeric.py).
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
    columns = list(zip(*table.rows, strict=True))
    conventions = None
    totals: tuple[int, ...] = ()  # rows that have no rank among those that they are totals of
    if original or numbers_version == 1:
        column_values = tuple(numeric.column_values(column, original) for column in columns)
    else:
        read = [table.column(column) for column in range(table.num_columns)]
        column_values = tuple(map(numeric.values_of_column, read, columns))
        conventions = tuple(column.convention for column in read)
        totals = table.total_rows
    for column, of_column in enumerate(column_values, start=1):
        ranked = {row: value for row, value in of_column.items() if row not in totals}
        for row, rank in numeric.ranks(ranked).items():
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
        conventions=conventions,
        has_histogram_row=histogram_row,
    )


def no_table() -> TokenizedTable:
    """The table of a sentence without a table."""
    none, grid = np.zeros(0, np.int32), np.zeros((1, 1), np.int32)
    values = np.full((1, 1), np.nan, np.float32)
    return TokenizedTable(none, none, none, none, grid, grid, values, ())


def question_relations(tokens: TokenizedTable, question: str, original: bool = False) -> np.ndarray:
    """How a question's numbers compare with each cell's (numeric.relations): int32 [R+1, C+1]."""
    grid = np.zeros(tokens.column_ranks.shape, np.int32)
    conventions = tokens.conventions
    if conventions is None:
        of_columns = [numeric.text_values(question, original)] * len(tokens.column_values)
    else:
        read = {found: numeric.question_values(question, found) for found in set(conventions)}
        of_columns = [read[convention] for convention in conventions]
    for column, values in enumerate(tokens.column_values):
        for row, bits in numeric.relations(of_columns[column], values).items():
            grid[row + 1, column + 1] = bits
    return grid


_TABLE_HASH_MODULUS = 2**32 - 1


class Layout:
    """The places of a text's and a table's tokens in a sequence.

    Args:
        tokens: the table.
        kept: which of its tokens are in the sequence, bool [N].
        text_ids: what comes first, with [CLS] and [SEP].
        length: S; None for no padding.

    Attributes:
        start: how many tokens precede the table's.
        num_tokens: how many tokens there are without padding.
        length: S.
        cells: the place of each token's cell in a flattened grid, int32 [K].
        tokens_of_cell: how many tokens of each cell are in the sequence, int [R+1, C+1].
    """

    def __init__(
        self,
        tokens: TokenizedTable,
        kept: np.ndarray,
        text_ids: Sequence[int],
        length: int | None = None,
    ):
        self._tokens, self._kept, self._text_ids = tokens, kept, text_ids
        self.cells = tokens.cell_ids[kept]
        self.start = len(text_ids)
        self.num_tokens = self.start + len(self.cells)
        self.length = length or self.num_tokens
        grid = tokens.column_ranks
        self.tokens_of_cell = np.bincount(self.cells, minlength=grid.size).reshape(grid.shape)

    def place(self, values: np.ndarray | int, padding: float = 0) -> np.ndarray:
        """Values of the table's tokens [K] at their places: [S], float32 for a float padding."""
        dtype = np.float32 if isinstance(padding, float) else np.int32
        placed = np.full(self.length, padding, dtype)
        placed[self.start : self.num_tokens] = values
        return placed

    def place_grid(self, grid: np.ndarray, padding: float = 0) -> np.ndarray:
        """The same for values of cells [R+1, C+1]."""
        return self.place(grid.ravel()[self.cells], padding)

    def features(self) -> dict[str, np.ndarray]:
        """The features that depend only on the tokens; those of the question are 0.

        Returns:
            Those of TokenFeatures int32 [S], numeric_values and numeric_values_scale float32 [S].
        """
        tokens, kept = self._tokens, self._kept
        input_ids, input_mask = self.place(tokens.input_ids[kept]), self.place(1)
        input_ids[: self.start] = self._text_ids
        input_mask[: self.start] = 1
        scales = self.tokens_of_cell.astype(np.float32)
        scales[0] = 1
        scales[tokens.num_rows + 1 :] = np.inf  # a histogram row
        return {
            "input_ids": input_ids,
            "input_mask": input_mask,
            "segment_ids": self.place(1),
            "column_ids": self.place(tokens.column_ids[kept]),
            "row_ids": self.place(tokens.row_ids[kept]),
            "prev_label_ids": self.place(0),
            "column_ranks": self.place_grid(tokens.column_ranks),
            "inv_column_ranks": self.place_grid(tokens.inv_column_ranks),
            "numeric_relations": self.place(0),
            "numeric_values": self.place_grid(tokens.numeric_values, np.nan),
            "numeric_values_scale": self.place_grid(scales, 1.0),
        }


def table_features(table: Table | None) -> dict[str, np.ndarray]:
    """The table's id, bytes [1], and its hash, int64 [1]; without a table those of an empty id."""
    table_id = b"" if table is None else id_bytes(table.table_id)
    table_hash = int(hashlib.sha256(table_id).hexdigest(), 16) % _TABLE_HASH_MODULUS
    return {
        "table_id": np.array([table_id], object),
        "table_id_hash": np.array([table_hash], np.int64),  # too large for 32 bits
    }
