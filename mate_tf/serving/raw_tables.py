"""Questions and tables as the signature `tables` takes them.

Shapes: B batch, R rows and C columns of the largest table of the batch.
"""

from collections.abc import Sequence

import numpy as np

from mate_tf.tables.table import Table


def raw_input(questions: Sequence[str], tables: Sequence[Table]) -> dict[str, np.ndarray]:
    """The inputs of a batch by name; characters that UTF-8 does not have are left out.

    Args:
        questions: the texts of B questions.
        tables: the table of each.

    Returns:
        questions, headers and cells as bytes, object [B], [B, C] and [B, R, C], padded with empty
        texts; num_rows and num_columns, int32 [B].

    Raises:
        ValueError: if there are no questions, or not a table for each.
    """
    if not questions or len(questions) != len(tables):
        raise ValueError(
            f"expected questions and a table for each, got {len(questions)} questions and "
            f"{len(tables)} tables"
        )
    num_rows = np.array([table.num_rows for table in tables], np.int32)
    num_columns = np.array([table.num_columns for table in tables], np.int32)
    headers = np.full((len(tables), num_columns.max()), b"", object)
    cells = np.full((len(tables), num_rows.max(), num_columns.max()), b"", object)
    for index, table in enumerate(tables):
        headers[index, : table.num_columns] = _encoded(table.header)
        for row, texts in enumerate(table.rows):
            cells[index, row, : table.num_columns] = _encoded(texts)
    return {
        "questions": np.array(_encoded(questions), object),
        "headers": headers,
        "cells": cells,
        "num_rows": num_rows,
        "num_columns": num_columns,
    }


def _encoded(texts: Sequence[str]) -> list[bytes]:
    return [text.encode("utf-8", "ignore") for text in texts]
