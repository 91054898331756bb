"""A table as tokens and numbers, which all questions about it share, and its place in a sequence.

A histogram row at the table's end may say for each column which values are frequent. SAT appends
one, so that a model that does not see a whole column still knows (MATE paper, section 2, on Zhang
et al., 2020).

Shape letters: S sequence, N tokens of a table, K those of them in the sequence, R rows and C
columns of the table's body. A grid [R+1, C+1] has a value for each cell at [row id, column id]; ids
count from 1, and row 0 is the header. A histogram row is row R+1, and grids are then [R+2, C+1].
"""

import functools
import hashlib
import re
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from mate_tf.features import numeric
from mate_tf.features.config import ConversionError, FeatureConfig, MaskedLmConfig
from mate_tf.features.english import normalize_for_match
from mate_tf.features.wordpiece import Wordpiece
from mate_tf.private_apis import import_extra
from mate_tf.tables.columns import Convention
from mate_tf.tables.table import Question, Table, id_bytes

MAX_VALUES = 3
_WORDS = re.compile(r"[^\W_]+")
_TABLES_REMEMBERED = 128
TOO_LONG = ("too long", "too many rows")  # reasons for which rows are chosen
_MORE_ROOM = "raise max_seq_length or set drop_rows_to_fit"
_LONGEST_REMEMBERED = 64  # characters of a word


def histogram_cells(table: Table) -> tuple[str, ...]:
    """For each column its MAX_VALUES most frequent values, and how often each occurs.

    Equally frequent values are in the order of their first appearance, and spelled as there. Case
    and white space do not matter, and blank cells do not count.

    Example:
        >>> histogram_cells(Table.from_rows([["city", "year"], ["Rome", 2004], ["rome", ""]]))
        ('Rome 2', '2004 1')
    """
    texts = []
    for cells in zip(*table.rows, strict=True):
        spellings: dict[str, str] = {}
        values = list(map(normalize_for_match, cells))
        for value, cell in zip(values, cells, strict=True):
            spellings.setdefault(value, cell.strip())
        counts = Counter(filter(None, values)).most_common(MAX_VALUES)
        texts.append(", ".join(f"{spellings[value]} {number}" for value, number in counts))
    return tuple(texts)


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
    wordpiece: Wordpiece, config: FeatureConfig | MaskedLmConfig, table: Table
) -> TokenizedTable:
    """Tokenizes all cells together and finds the numbers in them."""
    histogram_row = isinstance(config, FeatureConfig) and config.histogram_row
    header = [""] * table.num_columns if config.strip_column_names else table.header
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
    if config.original_conversion:
        column_values = tuple(numeric.column_values(column, True) for column in columns)
    else:
        read = list(map(table.column, range(table.num_columns)))
        column_values = tuple(map(numeric.values_of_column, read, columns))
        conventions = tuple(column.convention for column in read)
        totals = table.total_rows
    for column, by_row in enumerate(column_values, start=1):
        ranked = {row: value for row, value in by_row.items() if row not in totals}
        for row, rank in numeric.ranks(ranked).items():
            ranks[:, row + 1, column] = rank
        for row, value in by_row.items():
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
    conventions = tokens.conventions or [None] * len(tokens.column_values)
    read = {
        it: numeric.question_values(question, it) if it else numeric.text_values(question, original)
        for it in set(conventions)
    }
    columns = zip(tokens.column_values, conventions, strict=True)
    for column, (values, convention) in enumerate(columns, start=1):
        for row, bits in numeric.relations(read[convention], values).items():
            grid[row + 1, column] = bits
    return grid


_TABLE_HASH_MODULUS = 2**32 - 1


class Layout:
    """The places of a text's and a table's tokens in a sequence.

    The text, `text_ids` with [CLS] and [SEP], comes first. `kept`, bool [N], is which of the
    table's tokens follow. A `length` of None stands for no padding.
    """

    def __init__(
        self,
        tokens: TokenizedTable,
        kept: np.ndarray,
        text_ids: Sequence[int],
        length: int | None = None,
    ):
        self._tokens, self._kept, self._text_ids = tokens, kept, text_ids
        self.cells = tokens.cell_ids[kept]  # int32 [K]: places in a flattened grid
        self.start = len(text_ids)
        self.num_tokens = self.start + len(self.cells)  # without padding
        self.length = length or self.num_tokens  # S
        grid = tokens.column_ranks
        counts = np.bincount(self.cells, minlength=grid.size)
        self.tokens_of_cell = counts.reshape(grid.shape)  # [R+1, C+1]

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


def keep_columns(
    table: Table, question: Question, costs: Sequence[int], budget: int, original: bool = False
) -> list[int]:
    """Chooses the columns that a question most likely needs, as many as fit, in ascending order.

    This is the "heuristic exact match" of Eisenschlos et al., 2020: the Jaccard index of the Porter
    stems in header and cells with those of the question. Columns that answered the previous
    question come first, then the most similar ones, and each that still fits is kept. If no column
    fits, the first is kept; with `original` none is, as in the authors' release. `costs` are the
    tokens of each column with its header, [C].

    Example:
        >>> table = Table.from_rows([["city", "people", "note"], ["Oslo", "709,037", "a fjord"]])
        >>> question = Question("how many people live in Oslo?")
        >>> keep_columns(table, question, costs=[2, 5, 3], budget=7)
        [0, 1]
    """
    if sum(costs) <= budget:
        return list(range(table.num_columns))
    previous = {column for _, column in question.previous_coordinates}
    words = _stems(question.text)
    similarity = [len(stems & words) / (len(stems | words) or 1) for stems in _column_stems(table)]
    order = sorted(range(table.num_columns), key=lambda c: (c not in previous, -similarity[c], c))
    kept = []
    for column in order:
        if costs[column] <= budget:
            budget -= costs[column]
            kept.append(column)
    return sorted(kept) if kept or original else order[:1]


@functools.lru_cache(_TABLES_REMEMBERED)
def _column_stems(table: Table) -> tuple[frozenset[str], ...]:
    columns = zip(table.header, *table.rows, strict=True)
    return tuple(frozenset().union(*map(_stems, cells)) for cells in columns)


def _stems(text: str) -> frozenset[str]:
    words = _WORDS.findall(text.lower())
    has_long = any(len(word) > _LONGEST_REMEMBERED for word in words)  # none is remembered then
    return frozenset(map(_stem.__wrapped__ if has_long else _stem, words))


@functools.lru_cache(1 << 14)
def _stem(word: str) -> str:
    porter = import_extra("nltk.stem.porter", "passages", "to compare words by their stems")
    return porter.PorterStemmer().stem(word)


def most_rows(config: FeatureConfig, table: Table) -> int:
    """The number of rows that have an id."""
    if config.max_row_id is None:
        return table.num_rows
    return min(table.num_rows, config.max_row_id - 1 - config.histogram_row)


def check_columns(config: FeatureConfig, table: Table) -> None:
    """Raises ConversionError for a table with too many columns."""
    most = config.max_column_id - 1
    if table.num_columns > most:
        got = f"got {table.num_columns} (table '{table.table_id}')"
        problem = f"expected at most {most} columns, {got}; leave out columns"
        raise ConversionError("too many columns", problem)


def check_size(config: FeatureConfig, table: Table) -> int:
    """The number of rows that have an id; ConversionError for too many columns or rows."""
    most = most_rows(config, table)
    if table.num_rows > most and not config.drop_rows_to_fit:
        got = f"got {table.num_rows} (table '{table.table_id}')"
        problem = f"expected at most {most} rows, {got}"
        raise ConversionError("too many rows", problem, "set drop_rows_to_fit")
    check_columns(config, table)
    return most


def may_fit(config: FeatureConfig, table: Table) -> bool:
    """Whether a table may fit by the number of its cells, of which each is a token at least."""
    may_be_cut = config.drop_rows_to_fit or config.prune_columns or config.original_conversion
    least = 3 + (table.num_rows + 1) * table.num_columns  # [CLS], a question, [SEP], the table
    return may_be_cut or config.max_seq_length is None or least <= config.max_seq_length


def fit(
    config: FeatureConfig,
    tokens: TokenizedTable,
    num_rows: int,
    start: int,
    where: str,
    columns: Sequence[int] | None = None,
) -> tuple[int, np.ndarray]:
    """Finds the rows that fit after the question: their number, and which tokens stay, bool [N].

    At most `num_rows` rows may stay, and only `columns`, if they are given. `start` is how many
    tokens precede the table's; `where` names table and question in errors.
    """

    def in_rows(number: int) -> np.ndarray:  # the header, the first rows or the histogram row
        return (tokens.row_ids <= number) | (tokens.row_ids > tokens.num_rows)

    allowed = np.ones(len(tokens.input_ids), bool)  # [N]
    if columns is not None:
        allowed = np.isin(tokens.column_ids - 1, columns)
    if config.cell_trim_length is not None:
        allowed = allowed & (tokens.word_begins < config.cell_trim_length)
    if config.max_seq_length is None:
        return num_rows, allowed & in_rows(num_rows)
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
        got = f"got {start + tokens_needed}{what} {where}"
        problem = f"expected at most {config.max_seq_length} tokens, {got}"
        return ConversionError("too long", problem, remedy)

    if fitting < 0:
        what = f"{', '.join(least[:-1])} and {least[-1]} alone" if num_rows else "the sentence"
        raise too_long(cost[0], f" for {what}")
    if fitting < num_rows and not config.drop_rows_to_fit:
        raise too_long(cost[num_rows], "", _MORE_ROOM)
    if fitting == 0 < num_rows and not config.original_conversion:
        raise too_long(cost[1], f" for {', '.join(least)} and one row")
    kept = allowed & in_rows(fitting)
    if config.trim_cells:
        cost = np.cumsum(np.bincount(tokens.word_begins[kept]))
        kept &= tokens.word_begins < np.searchsorted(cost, budget, side="right")
    return fitting, kept
