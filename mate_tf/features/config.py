"""What a conversion may be asked for, and how it says that a table does not fit."""

from dataclasses import dataclass


@dataclass(frozen=True)
class FeatureConfig:
    """How long a sequence may be, what may be left out to make one fit, and what is in it.

    Attributes:
        max_seq_length: length of every example, padded; None for as long as each one is.
        max_column_id: column ids stay below it, so a table has at most one column fewer.
        max_row_id: the same for rows; None for no limit. Rows from 256 on have no embedding of
            their own in the published checkpoints, which is no error.
        trim_cells: whether cells may be cut after so many pieces (whole words, one limit for all
            cells) that the table fits. TAPAS's own conversion always does, unless it is given a
            cell_trim_length.
        cell_trim_length: the pieces after which every cell is cut (whole words), whether the table
            fits or not; None for no cut.
        drop_rows_to_fit: whether rows at the table's end may be left out, where cutting cells is
            not allowed or does not suffice.
        prune_columns: whether the columns that are least like the question are left out where the
            table is too long (mate_tf/features/fitting.py), before cells are cut or rows dropped;
            the likeliest one always stays. A table of more columns than max_column_id allows is
            refused all the same.
        strip_column_names: whether the header's cells are all empty.
        use_document_title: whether the title of the table's document, if it has one, follows the
            question as a part of it, after a [SEP].
        use_context_heading: the same for the heading of the section that the table stands in; it
            comes last.
        label_answer_spans: whether the labels are the pieces of each answer text where it first
            occurs in the body, for a reader, and not those of the whole answer cells.
        add_aggregation_candidates: whether the example also says which aggregations of which cells
            give the answer's number (mate_tf/features/aggregation_candidates.py).
        histogram_row: whether a row of each column's most frequent values follows the last row
            (mate_tf/features/tokenized_table.py). It is of the whole table, also where rows are
            dropped or cells trimmed, is never dropped itself, and is no answer: label 0, no ranks,
            relations or numbers, and an infinite numeric_values_scale, so that no count or sum
            takes it in.
            Decoding has to be told of it (mate_tf/answers/answer.py).
        original_conversion: whether numbers and dates are read with the defects of the authors'
            release (mate_tf/features/numeric.py says which), as its published checkpoints were
            trained. Then also a table may lose all its rows or columns, an answer text that is not
            in the sequence is no error, and aggregation candidates are found as the release finds
            them.

    Raises:
        ValueError: if a limit leaves no room for anything.
    """

    max_seq_length: int | None = 512
    max_column_id: int = 256
    max_row_id: int | None = None
    trim_cells: bool = False
    cell_trim_length: int | None = None
    drop_rows_to_fit: bool = False
    prune_columns: bool = False
    strip_column_names: bool = False
    use_document_title: bool = False
    use_context_heading: bool = False
    label_answer_spans: bool = False
    add_aggregation_candidates: bool = False
    histogram_row: bool = False
    original_conversion: bool = False

    def __post_init__(self) -> None:
        for name, least in (
            ("max_seq_length", 4),
            ("max_column_id", 2),
            ("max_row_id", 3 if self.histogram_row else 2),
            ("cell_trim_length", 1),
        ):
            value = getattr(self, name)
            if value is not None and value < least:
                raise ValueError(f"expected {name} to be at least {least}, got {value}")


class ConversionError(ValueError):
    """A question and its table do not fit the limits.

    Attributes:
        reason: "too many columns", "too many rows", "too long", "answer cut off" or "several
            answer cells".
    """

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason
