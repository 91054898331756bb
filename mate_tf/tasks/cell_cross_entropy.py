"""Selecting one cell: a softmax over a table's cells (MATE, section 4.1).

Shapes: B batch, S sequence, K cells (as many as tokens, see cell_selection.py).
"""

import tensorflow as tf

from mate_tf.tasks.cell_selection import Cells, is_labelled, mean_by_cell

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
