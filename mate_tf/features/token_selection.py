"""Tokens of a table that are selected for a question before the limits are looked at.

A token selector is called for each question and says which tokens of the table may be in the
sequence at all. Pruning is a selector; rows are dropped and cells trimmed after it, as far as is
still necessary.

Shape letters: N tokens of a table.
"""

from collections.abc import Callable, Iterable

import numpy as np

from mate_tf.features.tokenized_table import TokenizedTable
from mate_tf.tables.table import Question, Table

# From the table, the question, the table's tokens, and how many of them the sequence has room for
# (None without a limit), to the tokens that may stay: bool [N].
TokenSelector = Callable[[Table, Question, TokenizedTable, int | None], np.ndarray]


def select_tokens(selected: Iterable[tuple[int, int, int]]) -> TokenSelector:
    """Selects the same tokens for every question.

    Args:
        selected: (row, column, token within the cell) of each token, counted from zero; row 0 is
            the header, so that row 1 is the first of the body.

    Returns:
        The selector, for the one table that the tokens are of. Tokens that the table does not have
        are passed over.
    """
    wanted = np.array(sorted(set(selected)), np.int64).reshape(-1, 3)

    def selector(
        table: Table, question: Question, tokens: TokenizedTable, budget: int | None
    ) -> np.ndarray:
        own = np.stack([tokens.row_ids, tokens.column_ids - 1, tokens.places_in_cell], axis=1)
        sizes = np.maximum(own.max(axis=0, initial=0), wanted.max(axis=0, initial=0)) + 1
        return np.isin(_keys(own, sizes), _keys(wanted, sizes))  # [N]

    return selector


def checked_selection(
    selector: TokenSelector,
    table: Table,
    question: Question,
    tokens: TokenizedTable,
    budget: int | None,
) -> np.ndarray:
    """What a selector selects; ValueError where that is not bool [N]."""
    selected = np.asarray(selector(table, question, tokens, budget))
    if selected.shape != tokens.input_ids.shape or selected.dtype != bool:
        raise ValueError(
            f"expected a token selector to return bool [{len(tokens.input_ids)}], got "
            f"{selected.dtype} {list(selected.shape)} (table '{table.table_id}', question "
            f"'{question.question_id}')"
        )
    return selected


def _keys(triples: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """One number for each triple of non-negative numbers below the sizes."""
    return (triples[:, 0] * sizes[1] + triples[:, 1]) * sizes[2] + triples[:, 2]
