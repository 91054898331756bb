"""Tokens of a text and of a table, one after the other, as features.

Shape letters: S sequence, N tokens of a table, K those of them that are in the sequence. A grid
[R+1, C+1] has a value for each cell at [row id, column id] (mate_tf/features/tokenized_table.py).
"""

import hashlib
from collections.abc import Sequence

import numpy as np

from mate_tf.features.tokenized_table import TokenizedTable
from mate_tf.tables.table import Table, id_bytes

_TABLE_HASH_MODULUS = 2**32 - 1


class Layout:
    """Where the tokens of a text and of a table stand in a sequence.

    Args:
        tokens: the table.
        kept: which of its tokens are in the sequence, bool [N].
        text_ids: what comes first, [CLS] and [SEP] included.
        length: S; None for as long as it takes. The rest is padding.

    Attributes:
        start: the tokens before the table's.
        num_tokens: the tokens without padding.
        length: S.
        cells: the place of each token's cell in a grid that is laid out flat, int32 [K].
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
        """Values of the table's tokens [K] at their places: [S], float32 if the padding is."""
        dtype = np.float32 if isinstance(padding, float) else np.int32
        placed = np.full(self.length, padding, dtype)
        placed[self.start : self.num_tokens] = values
        return placed

    def place_grid(self, grid: np.ndarray, padding: float = 0) -> np.ndarray:
        """The same of values of cells [R+1, C+1]."""
        return self.place(grid.ravel()[self.cells], padding)

    def features(self) -> dict[str, np.ndarray]:
        """The features that follow from the tokens alone.

        Returns:
            Those of TokenFeatures int32 [S], numeric_values and numeric_values_scale float32 [S].
            No cell is a previous answer or compared with a question.
        """
        tokens, kept = self._tokens, self._kept
        input_ids, input_mask = self.place(tokens.input_ids[kept]), self.place(1)
        input_ids[: self.start] = self._text_ids
        input_mask[: self.start] = 1
        scales = self.tokens_of_cell.astype(np.float32)
        scales[0] = 1
        scales[tokens.num_rows + 1 :] = np.inf  # of a histogram row
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
        "table_id_hash": np.array([table_hash], np.int64),  # does not fit in 32 bits
    }
