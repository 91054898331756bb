"""Selecting one cell: a softmax over a table's cells (MATE, section 4.1).

Shapes: B batch, S sequence, K cells (as many as tokens, see cell_selection.py).

Selecting the cells that answer a question: logits, decisions and losses (TAPAS, section 3).

Shapes: B batch, S sequence, D hidden, C columns, K cells. A sequence of S tokens has at most S
cells, so K = S: sizes stay static and a table may have any number of rows.
"""

from typing import NamedTuple

import keras
import tensorflow as tf

# Added to the logit of what must never be chosen; finite, so that its gradient is a number.
LOG_ZERO = -10000.0
_EPSILON = 1e-10


class Cells(NamedTuple):
    """The tokens of a batch grouped into cells; the question is the cell at row 0, column 0.

    Attributes:
        token_cells: int32 [B, S], the cell of each token. The numbering has gaps.
        token_weights: float32 [B, S], the weight of a token in the mean of its cell.
        column_ids: int32 [B, K], the column of each cell.
        exists: float32 [B, K], 1 for a cell that has a token, 0 for a gap.
        in_body: bool [B, K], whether a cell is of the table's body: no gap, header or question.
            The cells of a histogram row, whose tokens look like any other's, count as of the body.
    """

    token_cells: tf.Tensor
    token_weights: tf.Tensor
    column_ids: tf.Tensor
    exists: tf.Tensor
    in_body: tf.Tensor


def group_cells(
    column_ids,
    row_ids,
    input_mask,
    max_num_columns: int,
    max_num_rows: int | None = None,
    count_padding: bool = False,
) -> Cells:
    """Groups tokens by row and column.

    Args:
        column_ids: [B, S].
        row_ids: [B, S].
        input_mask: [B, S], 0 for padding.
        max_num_columns: ids beyond the last column are taken for the last.
        max_num_rows: the same for rows; None keeps each row apart.
        count_padding: averages padding into the question's cell, as the original does; its value
            then depends on how long the batch is padded.
    """
    columns = tf.minimum(column_ids, max_num_columns - 1)  # [B, S]
    rows = row_ids if max_num_rows is None else tf.minimum(row_ids, max_num_rows - 1)
    keys = rows * max_num_columns + columns  # [B, S]
    # The first place of a key in sorted order is a number below S that only its cell has.
    token_cells = tf.searchsorted(tf.sort(keys, axis=-1), keys)  # [B, S]
    weights = tf.ones_like(keys) if count_padding else input_mask
    in_body = tf.where((rows > 0) & (columns > 0), input_mask, 0)  # [B, S]
    return Cells(
        token_cells=token_cells,
        token_weights=tf.cast(weights, tf.float32),
        column_ids=_reduce(tf.math.unsorted_segment_max, columns, token_cells),
        exists=tf.cast(
            _reduce(tf.math.unsorted_segment_max, input_mask, token_cells) > 0, tf.float32
        ),
        in_body=_reduce(tf.math.unsorted_segment_max, in_body, token_cells) > 0,
    )


def _reduce(segment_reduction, values, segments, num_segments: int | None = None):
    """Reduces values [B, N] over segments [B, N], each example by itself: [B, num_segments].

    Integers are at least 0 in the result; num_segments is N by default.
    """
    batch_size, length = tf.unstack(tf.shape(values))
    size = num_segments or values.shape[1] or length
    offsets = tf.range(batch_size)[:, tf.newaxis] * size  # [B, 1]
    reduced = segment_reduction(
        tf.reshape(values, [-1]), tf.reshape(segments + offsets, [-1]), batch_size * size
    )
    reduced = tf.reshape(reduced, [batch_size, size])
    return tf.maximum(reduced, 0) if reduced.dtype.is_integer else reduced


def mean_by_cell(values, cells: Cells):
    """Averages token values [B, S] over each cell: float32 [B, K], 0 in gaps."""
    weights = cells.token_weights  # [B, S]
    total = _reduce(tf.math.unsorted_segment_sum, values * weights, cells.token_cells)
    count = _reduce(tf.math.unsorted_segment_sum, weights, cells.token_cells)
    return total / tf.maximum(count, 1.0)


def is_labelled(label_ids, cells: Cells):
    """Whether a token of the cell is labelled: int32 [B, S] to bool [B, K]."""
    return _reduce(tf.math.unsorted_segment_max, label_ids, cells.token_cells) > 0


def to_tokens(cell_values, cells: Cells):
    """Gives each token the value of its cell: [B, K] to [B, S]."""
    return tf.gather(cell_values, cells.token_cells, batch_dims=1)


def column_logits(
    token_scores, cells: Cells, num_columns: int, allow_empty: bool = False
) -> tf.Tensor:
    """Logits of the columns: the mean over cells of the mean over tokens.

    Args:
        token_scores: float32 [B, S], the column scores of the tokens.
        cells: the cells of the batch.
        num_columns: C, with column 0, which means that no column is selected.
        allow_empty: whether column 0 may be chosen.

    Returns:
        float32 [B, C], about -10000 for a column that is not there.
    """
    cell_scores = mean_by_cell(token_scores, cells) * cells.exists  # [B, K]
    sums = _reduce(tf.math.unsorted_segment_sum, cell_scores, cells.column_ids, num_columns)
    counts = _reduce(tf.math.unsorted_segment_sum, cells.exists, cells.column_ids, num_columns)
    is_empty_column = tf.range(num_columns) == 0  # [C]
    forbidden = (counts < 0.5) & ~is_empty_column  # [B, C]
    if not allow_empty:
        forbidden |= is_empty_column
    return sums / (counts + _EPSILON) + LOG_ZERO * tf.cast(forbidden, tf.float32)  # [B, C]


def select_in_best_column(token_logits, columns_logits, cells: Cells):
    """Averages logits by cell and lowers those outside the likeliest column by 10000.

    Args:
        token_logits: float32 [B, S].
        columns_logits: float32 [B, C].
        cells: the cells of the batch.

    Returns:
        float32 [B, S].
    """
    best = tf.argmax(columns_logits, axis=-1, output_type=tf.int32)[:, tf.newaxis]  # [B, 1]
    selectable = (cells.column_ids == best) & (best > 0) & (cells.exists > 0)  # [B, K]
    logits = mean_by_cell(token_logits, cells)  # [B, K]
    return to_tokens(logits + LOG_ZERO * tf.cast(~selectable, tf.float32), cells)


def token_selection_loss(logits, label_ids, input_mask, positive_weight: float):
    """Binary cross-entropy of each token, averaged over the input with the question.

    In the release the weight multiplies every token, labelled or not: its test for the label
    compares a tensor with a number by identity.

    Args:
        logits: float32 [B, S].
        label_ids: int32 [B, S], 1 for the tokens of the answer.
        input_mask: int32 [B, S].
        positive_weight: how much more a token of the answer counts.

    Returns:
        float32 [B].
    """
    labels = tf.cast(label_ids > 0, tf.float32)
    mask = tf.cast(input_mask, tf.float32)
    losses = tf.nn.sigmoid_cross_entropy_with_logits(labels, logits)  # [B, S]
    losses *= tf.where(label_ids > 0, positive_weight, 1.0) * mask
    return tf.reduce_sum(losses, axis=1) / (tf.reduce_sum(mask, axis=1) + _EPSILON)


def column_selection_loss(token_logits, columns_logits, label_ids, cells: Cells):
    """Cross-entropy of the column, plus binary cross-entropy of the cells in it.

    The column to find is the one with most labelled tokens. Without a label it is column 0, and
    the loss about 10000 unless that may be chosen: such examples are for the caller to leave out
    or to mask. The mean over the column's cells takes in its header, as the original's does.

    Args:
        token_logits: float32 [B, S].
        columns_logits: float32 [B, C].
        label_ids: int32 [B, S], 1 for the tokens of the answer.
        cells: the cells of the batch.

    Returns:
        float32 [B].
    """
    num_columns = columns_logits.shape[1]
    token_columns = to_tokens(cells.column_ids, cells)  # [B, S]
    counts = _reduce(tf.math.unsorted_segment_sum, label_ids, token_columns, num_columns)
    column = tf.argmax(counts, axis=-1, output_type=tf.int32)  # [B]; 0 where all counts are 0
    column_loss = tf.nn.sparse_softmax_cross_entropy_with_logits(column, columns_logits)  # [B]

    labels = tf.cast(is_labelled(label_ids, cells), tf.float32)  # [B, K]
    losses = tf.nn.sigmoid_cross_entropy_with_logits(
        labels, mean_by_cell(token_logits, cells)
    )  # [B, K]
    in_column = cells.exists * tf.cast(cells.column_ids == column[:, tf.newaxis], tf.float32)
    cell_loss = tf.reduce_sum(losses * in_column, axis=1)
    cell_loss /= tf.reduce_sum(in_column, axis=1) + _EPSILON  # [B]
    has_labels = tf.reduce_max(counts, axis=-1) > 0
    return column_loss + tf.where(has_labels, cell_loss, 0.0)


@keras.saving.register_keras_serializable(package="mate_tf")
class CellSelectionHead(keras.layers.Layer):
    """Scores each token for its cell and for its column, in float32 whatever the encoder uses.

    Call it with the encoder's sequence output [B, S, D]; it returns the token scores [B, S] and,
    with `select_one_column`, the column scores [B, S], otherwise None. The weights have the names
    of the original's checkpoints.
    """

    def __init__(
        self, select_one_column: bool = True, initialize_to_zero: bool = False, **kwargs
    ) -> None:
        super().__init__(dtype="float32", **{k: v for k, v in kwargs.items() if k != "dtype"})
        self.select_one_column = select_one_column
        self.initialize_to_zero = initialize_to_zero

    def build(self, input_shape) -> None:
        initializer = (
            "zeros" if self.initialize_to_zero else keras.initializers.TruncatedNormal(stddev=0.02)
        )
        shape = (input_shape[-1],)
        self.output_weights = self.add_weight(shape, initializer, name="output_weights")
        self.output_bias = self.add_weight((), "zeros", name="output_bias")
        if self.select_one_column:
            self.column_output_weights = self.add_weight(
                shape, initializer, name="column_output_weights"
            )
            self.column_output_bias = self.add_weight((), "zeros", name="column_output_bias")

    def call(self, sequence_output):
        scores = tf.linalg.matvec(sequence_output, self.output_weights) + self.output_bias
        if not self.select_one_column:
            return scores, None
        column_scores = tf.linalg.matvec(sequence_output, self.column_output_weights)
        return scores, column_scores + self.column_output_bias

    def get_config(self):
        return super().get_config() | {
            "select_one_column": self.select_one_column,
            "initialize_to_zero": self.initialize_to_zero,
        }


# The logit of what is no cell of the body: below any other, and finite, so that its gradient is a
# number.
_NEVER = -1e30


def log_cell_probabilities(token_logits, cells: Cells):
    """Log of the probability that a cell is the one to select, of all cells of the table's body.

    The logit of a cell is the mean of its tokens' (MATE, section 4.1, the equations for S and P). A
    histogram row's cells would be among them; training refuses examples with one.

    Args:
        token_logits: float32 [B, S].
        cells: the cells of the batch.

    Returns:
        float32 [B, K]; -1e30, for a probability of 0, for the question, headers and gaps.
    """
    logits = tf.where(cells.in_body, mean_by_cell(token_logits, cells), _NEVER)  # [B, K]
    return tf.where(cells.in_body, tf.nn.log_softmax(logits), _NEVER)


def cell_cross_entropy_loss(log_probabilities, label_ids, cells: Cells, hard_em: bool = False):
    """Cross-entropy of the cells, by maximum marginal likelihood where several are correct.

    The target is the model's own belief in each of the correct cells, which sums to 1 and is held
    constant (MATE, section 4.1, the equation for L). The gradient is therefore that of the negative
    log of the correct cells' total probability, though the value is not.

    Args:
        log_probabilities: float32 [B, K], of `log_cell_probabilities`.
        label_ids: int32 [B, S], 1 for the tokens of correct cells.
        cells: the cells of the batch.
        hard_em: whether the most probable of the correct cells is the whole target, the first of
            equally probable ones.

    Returns:
        float32 [B], 0 for an example without a correct cell in the table's body.
    """
    correct = cells.in_body & is_labelled(label_ids, cells)  # [B, K]
    candidates = tf.where(correct, log_probabilities, _NEVER)
    if hard_em:
        best = tf.argmax(candidates, axis=-1)  # [B]
        target = tf.one_hot(best, tf.shape(candidates)[1])  # [B, K]
    else:
        target = tf.nn.softmax(candidates)  # [B, K]
    target = tf.stop_gradient(tf.where(correct, target, 0.0))
    return -tf.reduce_sum(target * tf.where(correct, log_probabilities, 0.0), axis=1)
