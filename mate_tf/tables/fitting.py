"""Which rows and tokens of a table stay within the limits.

Shape letters: N tokens of a table, R rows of its body.
"""

import numpy as np

from mate_tf.tables.feature_config import ConversionError, FeatureConfig
from mate_tf.tables.table import Table
from mate_tf.tables.tokenized_table import TokenizedTable


def check_size(config: FeatureConfig, table: Table) -> int:
    """The number of rows that ids suffice for.

    Raises:
        ConversionError: if the table has too many columns, or too many rows that may not be
            dropped.
    """
    most_columns = config.max_column_id - 1
    most_rows = table.num_rows
    if config.max_row_id is not None:
        most_rows = config.max_row_id - 1 - config.histogram_row
    if table.num_rows > most_rows and not config.drop_rows_to_fit:
        raise ConversionError(
            "too many rows",
            f"expected at most {most_rows} rows, got {table.num_rows} (table "
            f"'{table.table_id}'); raise max_row_id or set drop_rows_to_fit",
        )
    if table.num_columns > most_columns:
        raise ConversionError(
            "too many columns",
            f"expected at most {most_columns} columns, got {table.num_columns} (table "
            f"'{table.table_id}'); leave out columns or raise max_column_id",
        )
    return min(table.num_rows, most_rows)


def fit(
    config: FeatureConfig,
    tokens: TokenizedTable,
    num_rows: int,
    start: int,
    where: str,
    selected: np.ndarray | None = None,
) -> tuple[int, np.ndarray]:
    """Finds the rows that fit behind the question, and their tokens.

    Args:
        config: the limits, and what may be left out.
        tokens: the table.
        num_rows: how many of its rows may stay at most.
        start: tokens before the table's.
        where: the names of table and question, for errors.
        selected: the tokens that may stay at all, bool [N]; None for all.

    Returns:
        The number of rows, and which tokens stay: bool [N].

    Raises:
        ConversionError: if the sequence is too long.
    """
    allowed = np.ones(len(tokens.input_ids), bool) if selected is None else selected  # [N]
    if config.cell_trim_length is not None:
        allowed = allowed & (tokens.word_begins < config.cell_trim_length)
    if config.max_seq_length is None:
        return num_rows, allowed & of_rows(tokens, num_rows)
    needed = allowed & (tokens.word_begins < 1) if config.trim_cells else allowed
    tokens_of_row = np.bincount(tokens.row_ids[needed], minlength=len(tokens.column_ranks))
    least = ["the question", "the header"]
    if tokens.has_histogram_row:
        least.append("the histogram row")
        tokens_of_row[0] += tokens_of_row[-1]  # neither is ever dropped
    budget = config.max_seq_length - start
    cost = np.cumsum(tokens_of_row)  # [R+1]: of the header and so many rows
    fitting = int(np.searchsorted(cost[: num_rows + 1], budget, side="right")) - 1

    def too_long(tokens_needed: int, what: str, remedy: str = "raise max_seq_length"):
        return ConversionError(
            "too long",
            f"expected at most {config.max_seq_length} tokens, got {start + tokens_needed}"
            f"{what} {where}; {remedy}",
        )

    if fitting < 0:
        what = f"{', '.join(least[:-1])} and {least[-1]} alone" if num_rows else "the sentence"
        raise too_long(cost[0], f" for {what}")
    if fitting < num_rows and not config.drop_rows_to_fit:
        raise too_long(cost[num_rows], "", "raise max_seq_length or set drop_rows_to_fit")
    if fitting == 0 < num_rows and not config.original_conversion:
        raise too_long(cost[1], f" for {', '.join(least)} and one row")
    kept = allowed & of_rows(tokens, fitting)
    if config.trim_cells:
        cost = np.cumsum(np.bincount(tokens.word_begins[kept]))
        kept &= tokens.word_begins < np.searchsorted(cost, budget, side="right")
    return fitting, kept


def of_rows(tokens: TokenizedTable, num_rows: int) -> np.ndarray:
    """Which tokens are of the header, the first rows or the histogram row: bool [N]."""
    return (tokens.row_ids <= num_rows) | (tokens.row_ids > tokens.num_rows)
