"""Which columns, rows and tokens of a table stay in a sequence.

Columns are kept by their similarity with the question, the "heuristic exact match" of Eisenschlos
et al., 2020 ("Understanding tables with intermediate pre-training"): the Jaccard index of the words
in header and cells with those of the question. The most similar columns come first, and each that
still fits is kept, so that a small one may follow a large one that does not fit. Words are compared
in lower case by their Porter stems.

Shape letters: N tokens of a table, R rows and C columns of its body.
"""

import functools
import re
from collections.abc import Sequence

import numpy as np

from mate_tf.features.config import ConversionError, FeatureConfig
from mate_tf.features.tokenized_table import TokenizedTable
from mate_tf.private_apis import import_extra
from mate_tf.tables.table import Question, Table

_WORDS = re.compile(r"[^\W_]+")
_TABLES_REMEMBERED = 128
_LONGEST_REMEMBERED = 64  # characters of a word


def keep_columns(
    table: Table, question: Question, costs: Sequence[int], budget: int, original: bool = False
) -> list[int]:
    """Chooses the columns that a question most likely needs, as many as fit.

    Columns that answered the previous question come first. If no column fits, the first is kept, so
    that its cells can be cut, its rows dropped or the table refused. With `original` none is kept,
    as in the authors' release.

    Args:
        table: the table.
        question: the question.
        costs: the tokens of each column with its header, [C].
        budget: the most tokens in all.
        original: as above.

    Returns:
        The kept columns in ascending order; all of them if all fit.

    Example:
        >>> table = Table.from_rows([["city", "people", "note"], ["Oslo", "709,037", "a fjord"]])
        >>> question = Question("how many people live in Oslo?")
        >>> keep_columns(table, question, costs=[2, 5, 3], budget=7)
        [0, 1]
    """
    if sum(costs) <= budget:
        return list(range(table.num_columns))
    previous = {column for _, column in question.previous_coordinates}
    asked = _stems(question.text)
    similarity = [_jaccard(stems, asked) for stems in _column_stems(table)]
    order = sorted(range(table.num_columns), key=lambda c: (c not in previous, -similarity[c], c))
    kept = []
    for column in order:
        if costs[column] <= budget:
            budget -= costs[column]
            kept.append(column)
    if not kept and not original:
        return order[:1]
    return sorted(kept)


def _jaccard(a: frozenset[str], b: frozenset[str]) -> float:
    return len(a & b) / (len(a | b) or 1)


@functools.lru_cache(_TABLES_REMEMBERED)
def _column_stems(table: Table) -> tuple[frozenset[str], ...]:
    columns = zip(table.header, *table.rows, strict=True)
    return tuple(frozenset().union(*map(_stems, cells)) for cells in columns)


def _stems(text: str) -> frozenset[str]:
    return frozenset(map(_stem, _WORDS.findall(text.lower())))


def _stem(word: str) -> str:
    stem = _remembered_stem if len(word) <= _LONGEST_REMEMBERED else _new_stem
    return stem(word)


def _new_stem(word: str) -> str:
    return _stemmer().stem(word)


_remembered_stem = functools.lru_cache(1 << 14)(_new_stem)


@functools.cache
def _stemmer():
    porter = import_extra("nltk.stem.porter", "passages", "to compare words by their stems")
    return porter.PorterStemmer()


def check_size(config: FeatureConfig, table: Table) -> int:
    """The number of rows that have an id.

    Raises:
        ConversionError: if the table has too many columns, or has too many rows and they may not be
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
    columns: Sequence[int] | None = None,
) -> tuple[int, np.ndarray]:
    """Finds the rows that fit after the question, and their tokens.

    Args:
        config: the limits, and what may be left out.
        tokens: the table.
        num_rows: the most rows that may stay.
        start: tokens before the table's.
        where: the names of table and question, for errors.
        columns: the columns that may stay; None for all.

    Returns:
        The number of rows, and which tokens stay: bool [N].

    Raises:
        ConversionError: if the sequence is too long.
    """
    allowed = np.ones(len(tokens.input_ids), bool)  # [N]
    if columns is not None:
        allowed = np.isin(tokens.column_ids - 1, columns)
    if config.cell_trim_length is not None:
        allowed = allowed & (tokens.word_begins < config.cell_trim_length)
    if config.max_seq_length is None:
        return num_rows, allowed & _of_rows(tokens, num_rows)
    needed = allowed & (tokens.word_begins < 1) if config.trim_cells else allowed
    tokens_of_row = np.bincount(tokens.row_ids[needed], minlength=len(tokens.column_ranks))
    least = ["the question", "the header"]
    if tokens.has_histogram_row:
        least.append("the histogram row")
        tokens_of_row[0] += tokens_of_row[-1]  # neither is ever dropped
    budget = config.max_seq_length - start
    cost = np.cumsum(tokens_of_row)  # [R+1]: tokens of the header and the first rows
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
    kept = allowed & _of_rows(tokens, fitting)
    if config.trim_cells:
        cost = np.cumsum(np.bincount(tokens.word_begins[kept]))
        kept &= tokens.word_begins < np.searchsorted(cost, budget, side="right")
    return fitting, kept


def _of_rows(tokens: TokenizedTable, num_rows: int) -> np.ndarray:
    """Which tokens are in the header, the first rows or the histogram row: bool [N]."""
    return (tokens.row_ids <= num_rows) | (tokens.row_ids > tokens.num_rows)
