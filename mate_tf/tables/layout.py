"""Tokens of a text and a table, one after the other, as features.

Shape letters: S sequence, N tokens of a table.
"""

import hashlib

import numpy as np

from mate_tf.tables.table import Table
from mate_tf.tables.tokenized_table import TokenizedTable

_TABLE_HASH_MODULUS = 2**32 - 1


def token_features(
    tokens: TokenizedTable, kept: np.ndarray, text_ids: list[int], length: int
) -> dict[str, np.ndarray]:
    """The features of a text and the tokens that are kept of a table.

    Args:
        tokens: the table.
        kept: which tokens to keep, bool [N].
        text_ids: what comes first, [CLS] and [SEP] included.
        length: S; the rest is padding.

    Returns:
        Those of TokenFeatures int32 [S], numeric_values and numeric_values_scale float32 [S]. No
        cell is a previous answer or compared with a question.
    """
    row_ids, column_ids = tokens.row_ids[kept], tokens.column_ids[kept]
    start, num_tokens = len(text_ids), len(text_ids) + len(row_ids)

    def place(values: np.ndarray | int, padding: float = 0) -> np.ndarray:
        placed = np.full(length, padding, np.float32 if isinstance(padding, float) else np.int32)
        placed[start:num_tokens] = values
        return placed  # [S]

    cells = row_ids.astype(np.int64) * tokens.column_ranks.shape[1] + column_ids
    _, cell, sizes = np.unique(cells, return_inverse=True, return_counts=True)
    input_ids = place(tokens.input_ids[kept])
    input_ids[:start] = text_ids
    input_mask = place(1)
    input_mask[:start] = 1
    return {
        "input_ids": input_ids,
        "input_mask": input_mask,
        "segment_ids": place(1),
        "column_ids": place(column_ids),
        "row_ids": place(row_ids),
        "prev_label_ids": place(0),
        "column_ranks": place(tokens.column_ranks[row_ids, column_ids]),
        "inv_column_ranks": place(tokens.inv_column_ranks[row_ids, column_ids]),
        "numeric_relations": place(0),
        "numeric_values": place(tokens.numeric_values[row_ids, column_ids], np.nan),
        "numeric_values_scale": place(np.where(row_ids > 0, sizes[cell], 1), 1.0),
    }


def table_features(table: Table | None) -> dict[str, np.ndarray]:
    """The table's id, bytes [1], and its hash, int64 [1]; without a table those of an empty id."""
    table_id = b"" if table is None else table.table_id.encode()
    table_hash = int(hashlib.sha256(table_id).hexdigest(), 16) % _TABLE_HASH_MODULUS
    return {
        "table_id": np.array([table_id], object),
        "table_id_hash": np.array([table_hash], np.int64),  # does not fit in 32 bits
    }
