"""Selecting the cells that answer a question, and what to compute from them: logits and losses.

Cells are selected one by one, within a column or not (TAPAS, section 3), or one of all by a softmax
(MATE, section 4.1).

Shapes: B batch, S sequence, C columns, K cells. A sequence of S tokens has at most S cells, so K =
S: sizes are static, and a table may have any number of rows. A aggregations, of which 0 is NONE, 1
SUM, 2 AVERAGE and 3 COUNT; others are learned only where they are known.
"""

from typing import NamedTuple

import tensorflow as tf

from mate_tf.layers.encoder import reduce_segments
from mate_tf.task_configs import LOG_ZERO, AverageApproximation

# The logit of what is not a body cell: below any other, and finite.
_NEVER = -1e30
_EPSILON = 1e-10
_LARGEST = 1e30  # of an expected sum or average: still single precision times a loss's factor


class Cells(NamedTuple):
    """The tokens of a batch grouped into cells; the question is the cell at row 0, column 0."""

    token_cells: tf.Tensor  # int32 [B, S], the cell of each token; the numbering has gaps
    token_weights: tf.Tensor  # float32 [B, S], the weight of a token in the mean of its cell
    column_ids: tf.Tensor  # int32 [B, K], the column of each cell
    exists: tf.Tensor  # float32 [B, K], 1 for a cell that has a token, 0 for a gap
    # Bool [B, K]: no gap, header or question. A histogram row's tokens look like any others.
    in_body: tf.Tensor


def group_cells(
    column_ids,
    row_ids,
    input_mask,
    max_num_columns: int,
    max_num_rows: int | None = None,
    count_padding: bool = False,
) -> Cells:
    """Groups tokens by row and column; ids and input_mask are [B, S].

    Ids beyond the limits count as the last; a `max_num_rows` of None keeps each row apart. With
    `count_padding` padding is averaged into the question's cell, as the original does, although the
    value then depends on the padded length.
    """
    columns = tf.minimum(column_ids, max_num_columns - 1)  # [B, S]
    rows = row_ids if max_num_rows is None else tf.minimum(row_ids, max_num_rows - 1)
    keys = rows * max_num_columns + columns  # [B, S]
    # The first place of a key in sorted order is a number below S, different for each cell.
    token_cells = tf.searchsorted(tf.sort(keys, axis=-1), keys)  # [B, S]
    weights = tf.ones_like(keys) if count_padding else input_mask
    in_body = tf.where((rows > 0) & (columns > 0), input_mask, 0)  # [B, S]
    column_ids, exists, in_body = (
        reduce_segments(tf.math.unsorted_segment_max, values, token_cells)
        for values in (columns, input_mask, in_body)
    )  # [B, K] each
    exists = tf.cast(exists > 0, tf.float32)
    return Cells(token_cells, tf.cast(weights, tf.float32), column_ids, exists, in_body > 0)


def mean_by_cell(values, cells: Cells):
    """Averages token values [B, S] over each cell: float32 [B, K], 0 in gaps."""
    weights = cells.token_weights  # [B, S]
    total = reduce_segments(tf.math.unsorted_segment_sum, values * weights, cells.token_cells)
    count = reduce_segments(tf.math.unsorted_segment_sum, weights, cells.token_cells)
    return total / tf.maximum(count, 1.0)


def is_labelled(label_ids, cells: Cells):
    """Whether a token of the cell is labelled: int32 [B, S] to bool [B, K]."""
    return reduce_segments(tf.math.unsorted_segment_max, label_ids, cells.token_cells) > 0


def to_tokens(cell_values, cells: Cells):
    """Gives each token the value of its cell: [B, K] to [B, S]."""
    return tf.gather(cell_values, cells.token_cells, batch_dims=1)


def column_logits(
    token_scores, cells: Cells, num_columns: int, allow_empty: bool = False
) -> tf.Tensor:
    """Logits of the columns: the mean over cells of the mean over tokens.

    From token scores float32 [B, S] to float32 [B, C], about -10000 for a column that does not
    exist. Column 0, which stands for no column, may be chosen with `allow_empty`.
    """
    cell_scores = mean_by_cell(token_scores, cells) * cells.exists  # [B, K]
    sums, counts = (
        reduce_segments(tf.math.unsorted_segment_sum, values, cells.column_ids, num_columns)
        for values in (cell_scores, cells.exists)
    )  # [B, C] each
    is_empty_column = tf.range(num_columns) == 0  # [C]
    forbidden = (counts < 0.5) & ~is_empty_column  # [B, C]
    if not allow_empty:
        forbidden |= is_empty_column
    return sums / (counts + _EPSILON) + LOG_ZERO * tf.cast(forbidden, tf.float32)  # [B, C]


def select_in_best_column(token_logits, columns_logits, cells: Cells):
    """Averages token logits [B, S] by cell, and lowers those outside the best column by 10000.

    The best has the largest of the columns' logits, float32 [B, C]; returns float32 [B, S].
    """
    best = tf.argmax(columns_logits, axis=-1, output_type=tf.int32)[:, tf.newaxis]  # [B, 1]
    selectable = (cells.column_ids == best) & (best > 0) & (cells.exists > 0)  # [B, K]
    logits = mean_by_cell(token_logits, cells)  # [B, K]
    return to_tokens(logits + LOG_ZERO * tf.cast(~selectable, tf.float32), cells)


def token_selection_loss(logits, label_ids, input_mask, positive_weight: float):
    """Binary cross-entropy of each token, averaged over the input with the question: float32 [B].

    Logits are float32 [B, S]; a token of the answer counts `positive_weight` times. In the release
    the weight multiplies every token, labelled or not, because it compares a tensor with a number
    by identity.
    """
    labels = tf.cast(label_ids > 0, tf.float32)
    mask = tf.cast(input_mask, tf.float32)
    losses = tf.nn.sigmoid_cross_entropy_with_logits(labels, logits)  # [B, S]
    losses *= tf.where(label_ids > 0, positive_weight, 1.0) * mask
    return tf.reduce_sum(losses, axis=1) / (tf.reduce_sum(mask, axis=1) + _EPSILON)


def column_selection_loss(token_logits, columns_logits, label_ids, cells: Cells):
    """Cross-entropy of the column, plus binary cross-entropy of the cells in it: float32 [B].

    The right column has most labelled tokens. Without a label it is column 0, and the loss is about
    10000 unless that may be chosen. The mean over the column's cells includes its header, as in the
    original. Token logits are float32 [B, S], the columns' [B, C], and label_ids int32 [B, S].
    """
    num_columns = columns_logits.shape[1]
    token_columns = to_tokens(cells.column_ids, cells)  # [B, S]
    counts = reduce_segments(tf.math.unsorted_segment_sum, label_ids, token_columns, num_columns)
    column = tf.argmax(counts, axis=-1, output_type=tf.int32)  # [B]; 0 where all counts are 0
    column_loss = tf.nn.sparse_softmax_cross_entropy_with_logits(column, columns_logits)  # [B]

    labels = tf.cast(is_labelled(label_ids, cells), tf.float32)  # [B, K]
    logits = mean_by_cell(token_logits, cells)
    losses = tf.nn.sigmoid_cross_entropy_with_logits(labels, logits)  # [B, K]
    in_column = cells.exists * tf.cast(cells.column_ids == column[:, tf.newaxis], tf.float32)
    cell_loss = tf.reduce_sum(losses * in_column, axis=1)
    cell_loss /= tf.reduce_sum(in_column, axis=1) + _EPSILON  # [B]
    has_labels = tf.reduce_max(counts, axis=-1) > 0
    return column_loss + tf.where(has_labels, cell_loss, 0.0)


def no_selection_loss(token_logits, cells: Cells):
    """Binary cross-entropy of the body's cells where none is right: [B, S] to float32 [B]."""
    in_body = tf.cast(cells.in_body, tf.float32)  # [B, K]
    losses = tf.nn.softplus(mean_by_cell(token_logits, cells)) * in_body
    return tf.reduce_sum(losses, axis=1) / (tf.reduce_sum(in_body, axis=1) + _EPSILON)


def log_cell_probabilities(token_logits, cells: Cells):
    """Log-probability of each cell among all cells of the table's body: float32 [B, K].

    The logit of a cell is the mean of its tokens' (MATE, section 4.1, the equations for S and P).
    Cells of a histogram row would take part, so training refuses them. -1e30 stands for a
    probability of 0, outside the body.
    """
    logits = tf.where(cells.in_body, mean_by_cell(token_logits, cells), _NEVER)  # [B, K]
    return tf.where(cells.in_body, tf.nn.log_softmax(logits), _NEVER)


def cell_cross_entropy_loss(log_probabilities, label_ids, cells: Cells):
    """Cross-entropy of the cells, by maximum marginal likelihood where several are correct.

    The target is the model's own belief in each correct cell, normalized and held constant (MATE,
    section 4.1, the equation for L). So the gradient, but not the value, is that of the negative
    log of the correct cells' total probability. From log-probabilities float32 [B, K] and
    label_ids int32 [B, S] to float32 [B], 0 for an example without a correct cell in the table's
    body.
    """
    correct = cells.in_body & is_labelled(label_ids, cells)  # [B, K]
    candidates = tf.where(correct, log_probabilities, _NEVER)
    target = tf.stop_gradient(tf.where(correct, tf.nn.softmax(candidates), 0.0))  # [B, K]
    return -tf.reduce_sum(target * tf.where(correct, log_probabilities, 0.0), axis=1)


def log_aggregation_probability(logits):
    """Log of the probability that some function is applied, [B, A] to [B]."""
    return tf.reduce_logsumexp(logits[:, 1:], axis=-1) - tf.reduce_logsumexp(logits, axis=-1)


def needs_aggregation(logits, answer, label_ids, cell_select_pref: float):
    """Which examples have an answer to compute: float32 [B], 1 for these, without gradients.

    An answer that is not a number is selected; a number that is in no cell is computed. A number
    that is also in a cell is selected up to the probability `cell_select_pref` of an aggregation.
    Logits are float32 [B, A], the answer is float32 [B], NaN where it is no number, and label_ids
    are int32 [B, S].
    """
    prefers_cells = tf.exp(log_aggregation_probability(logits)) <= cell_select_pref  # [B]
    has_cells = tf.reduce_sum(label_ids, axis=1) > 0
    computed = ~tf.math.is_nan(answer) & ~(prefers_cells & has_cells)
    return tf.stop_gradient(tf.cast(computed, tf.float32))


def expected_result(
    probabilities,
    numeric_values,
    numeric_values_scale,
    row_ids,
    logits,
    average_approximation: AverageApproximation = "ratio",
):
    """The expected number, float32 [B], if cells and aggregation are drawn as the model believes.

    Args:
        probabilities: float32 [B, S], that the token is selected.
        numeric_values: float32 [B, S], the number of the token's cell, NaN without one.
        numeric_values_scale: float32 [B, S], the number of the cell's tokens; infinite for a token
            that counts for nothing.
        row_ids: int32 [B, S]; question, padding and headers (row 0) do not count.
        logits: float32 [B, A].
        average_approximation: "ratio" of the expected sum and count, or a Taylor expansion of
            1 / count to the given order.
    """
    scale = tf.where(numeric_values_scale > 0, numeric_values_scale, 1.0)  # NaN becomes 1
    weights = probabilities / scale * tf.cast(row_ids > 0, tf.float32)  # [B, S]
    values = tf.where(tf.math.is_nan(numeric_values), 0.0, numeric_values)  # [B, S]
    count = tf.reduce_sum(weights, axis=1, keepdims=True)  # [B, 1]
    total = tf.reduce_sum(weights * values, axis=1, keepdims=True)  # [B, 1]
    total = tf.clip_by_value(total, -_LARGEST, _LARGEST)  # infinity has no gradients
    if average_approximation == "ratio":
        average = total / (count + _EPSILON)
    else:
        others = count - weights + 1.0  # [B, S], the count if this token is selected
        inverse = 1.0 / others
        if average_approximation == "second_order":
            variances = weights * (1.0 - weights)
            variance = tf.reduce_sum(variances, axis=1, keepdims=True) - variances  # [B, S]
            inverse *= 1.0 + variance / tf.square(others)
        average = tf.reduce_sum(weights * values * inverse, axis=1, keepdims=True)  # [B, 1]
        average = tf.clip_by_value(average, -_LARGEST, _LARGEST)
    results = tf.concat([total, average, count], axis=1)  # [B, 3]
    return tf.reduce_sum(results * tf.nn.softmax(logits[:, 1:4]), axis=1)


def answer_loss(result, answer, computed, huber_loss_delta: float, normalize: bool = False):
    """Huber loss between the expected and the true number, float32 [B].

    The result, of `expected_result`, and the answer, NaN without a number, are float32 [B]. The
    loss is 0 where `computed`, float32 [B], is; it grows linearly for an error beyond
    `huber_loss_delta`. With `normalize` both are first divided by the larger one.
    """
    answer = tf.where(tf.math.is_nan(answer), 0.0, answer)
    error = tf.abs(answer - result)
    if normalize:
        error /= tf.stop_gradient(tf.maximum(tf.abs(result), tf.abs(answer)) + _EPSILON)
    near = tf.minimum(error, huber_loss_delta)
    loss = 0.5 * tf.square(near) + huber_loss_delta * (error - near)
    return tf.where(computed > 0, loss, 0.0)  # not a product: the loss may be infinite
