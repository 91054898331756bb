"""What a conversion left out, and whether the answer survived.

Shape letters: R rows and C columns of a table's body.
"""

from dataclasses import dataclass

from mate_tf.tables.labels import Labels
from mate_tf.tables.layout import Layout
from mate_tf.tables.tokenized_table import TokenizedTable


@dataclass(frozen=True)
class ConversionReport:
    """What became of a question and a table.

    Attributes:
        num_tokens: tokens of the sequence, without padding.
        rows_dropped: rows of the body of which no token is in the sequence.
        columns_dropped: the same of columns, of which only a token selector leaves out any.
        tokens_trimmed: tokens that were left out of the rows that remain.
        answers_dropped: answer cells (or texts, for FeatureConfig.label_answer_spans), of this and
            the previous question, that no token stands for.
        answer_survived: whether none of them was of this question.
    """

    num_tokens: int
    rows_dropped: int
    columns_dropped: int
    tokens_trimmed: int
    answers_dropped: int
    answer_survived: bool


def report_conversion(
    tokens: TokenizedTable,
    layout: Layout,
    labels: Labels,
    previous: Labels,
) -> ConversionReport:
    """Counts what is not in the sequence.

    Args:
        tokens: the table.
        layout: what of it is in the sequence.
        labels: of the question's answer.
        previous: of the previous question's answer.
    """
    tokens_of_cell = layout.tokens_of_cell
    row_remains = tokens_of_cell.max(axis=1) > 0  # [R+1]
    column_remains = tokens_of_cell.max(axis=0) > 0  # [C+1]
    num_rows = int(row_remains[1 : tokens.num_rows + 1].sum())
    num_of_rows = int(row_remains[tokens.row_ids].sum())
    return ConversionReport(
        num_tokens=layout.num_tokens,
        rows_dropped=tokens.num_rows - num_rows,
        columns_dropped=tokens.num_columns - int(column_remains.sum()),
        tokens_trimmed=num_of_rows - int(tokens_of_cell.sum()),
        answers_dropped=labels.num_missing + previous.num_missing,
        answer_survived=labels.num_missing == 0,
    )
