"""A softmax in which some entries take no part.

Shapes: F from, T to.
"""

import tensorflow as tf

# Large enough to vanish in the softmax, small enough that a row with nothing to attend to (a
# padding query) gets finite, equal probabilities.
MASKED = -1e9


def masked_softmax(scores: tf.Tensor, mask: tf.Tensor | None) -> tf.Tensor:
    """Softmax over the last axis, in float32 whatever the dtype of the scores.

    Args:
        scores: float [..., F, T].
        mask: bool, broadcasts to the scores; False entries get probability 0 unless the whole
            row is False.

    Returns:
        [..., F, T], the dtype of the scores.
    """
    logits = tf.cast(scores, tf.float32)
    if mask is not None:
        # A sum, where a selection would do: its gradient costs nothing.
        logits += tf.where(mask, 0.0, MASKED)
    return tf.cast(tf.nn.softmax(logits), scores.dtype)
