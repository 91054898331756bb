"""How questions and tables become sequences: the limits, and what may be left out."""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class FeatureConfig:
    """How long a sequence may be, what may be left out to fit, and what a sequence contains.

    Raises:
        ValueError: if a limit leaves no room for anything.
    """

    # The length of every example, padded; None for each example's own length.
    max_seq_length: int | None = 512
    max_column_id: int = 256  # column ids stay below it, so a table has at most one column fewer
    # The same for rows; None for no limit. The published checkpoints embed no rows from 256 on,
    # which is no error.
    max_row_id: int | None = None
    # Whether cells may be cut so that the table fits. One limit of pieces holds for all cells, and
    # words stay whole. TAPAS's own conversion always does this, unless it is given a
    # cell_trim_length.
    trim_cells: bool = False
    # Cuts every cell after so many pieces (whole words), even if the table fits; None for no cut.
    cell_trim_length: int | None = None
    # Whether rows at the table's end may be left out, where cutting cells is not enough or allowed.
    drop_rows_to_fit: bool = False
    # Whether to leave out the columns least like the question if the table is too long
    # (tokenized_table.py), before cells are cut or rows dropped. The most similar column always
    # stays. A table with more columns than max_column_id allows is still refused.
    prune_columns: bool = False
    strip_column_names: bool = False  # whether all header cells are empty
    # Whether the title of the table's document, if it has one, follows the question after a [SEP].
    use_document_title: bool = False
    use_context_heading: bool = False  # the same for the heading of its section, which comes last
    # Whether to label the pieces of each answer text at its first occurrence in the body, for a
    # reader, instead of whole answer cells.
    label_answer_spans: bool = False
    # Whether a row of each column's most frequent values follows the last row (tokenized_table.py).
    # It counts the whole table, even if rows are dropped or cells cut, and is never dropped. It is
    # no answer: label 0, no ranks, relations or numbers, and an infinite numeric_values_scale.
    histogram_row: bool = False
    # Whether numbers and dates are read with the defects of the authors' release (numeric.py lists
    # them), as its published checkpoints were trained. Then a table may also lose all rows or
    # columns, and an answer text that is not in the sequence is no error.
    original_conversion: bool = False

    def __post_init__(self) -> None:
        least_rows = 3 if self.histogram_row else 2
        _check(self, max_seq_length=4, max_column_id=2, max_row_id=least_rows, cell_trim_length=1)


def _check(config: "FeatureConfig | MaskedLmConfig", **least: int) -> None:
    """ValueError for a limit below the least that makes sense."""
    for name, limit in least.items():
        value = getattr(config, name)
        if value is not None and value < limit:
            raise ValueError(f"expected {name} to be at least {limit}, got {value}")


class ConversionError(ValueError):
    """A question and its table do not fit the limits.

    Args:
        reason: "too many columns", "too many rows", "too long", ...
        problem: what was expected, and what came.
        remedy: what to do about it in Python; other interfaces may have no such options.
    """

    def __init__(self, reason: str, problem: str, remedy: str = "") -> None:
        super().__init__("; ".join(filter(None, (problem, remedy))))
        self.reason, self.problem = reason, problem


@dataclass(frozen=True)
class MaskedLmConfig:
    """How long a pre-training example is, what it is drawn from and how much of it is masked.

    Raises:
        ValueError: if a limit leaves no room for anything, the probability is not from 0 to 1, or
            there is no such version.
    """

    max_seq_length: int = 128  # of every example, padded
    max_predictions: int = 20  # the most masked tokens in an example, and the length of its labels
    masking_probability: float = 0.15  # the share of the tokens, special ones included, to mask
    min_text_length: int = 8  # of a text's excerpt in pieces
    max_text_length: int = 32
    # Whether an excerpt is drawn from all texts in random order; otherwise it is one whole text.
    join_texts: bool = True
    # Whether texts shorter than min_text_length are an error. Otherwise the excerpt is whatever
    # text there is, or nothing.
    require_text: bool = True
    # Whether a cell's tokens are masked together or not at all; otherwise a word's tokens are.
    whole_cells: bool = True
    strip_column_names: bool = False  # whether every column name is empty
    max_column_id: int = 256  # column ids stay below it; further columns are left out
    max_row_id: int | None = None  # the same for rows; None for no limit
    # Whether to keep defects of the authors' release: ids reach max_column_id and max_row_id, and
    # whole_cells treats a table of one column as one cell.
    original_conversion: bool = False

    def __post_init__(self) -> None:
        _check(
            self,
            max_seq_length=4,
            max_predictions=1,
            min_text_length=1,
            max_text_length=self.min_text_length,
            max_column_id=2,
            max_row_id=2,
        )
        if not 0 <= self.masking_probability <= 1:
            raise ValueError(
                f"expected a masking_probability from 0 to 1, got {self.masking_probability}"
            )


@dataclass(frozen=True)
class PretrainingConfig:
    """Examples of each table; ValueError if none is drawn."""

    masked_lm: MaskedLmConfig = field(default_factory=MaskedLmConfig)
    dupe_factor: int = 10  # examples drawn from each table, with different excerpts and masks
    seed: int = 12345  # of all draws

    def __post_init__(self) -> None:
        if self.dupe_factor < 1:
            raise ValueError(f"expected a dupe_factor of at least 1, got {self.dupe_factor}")
