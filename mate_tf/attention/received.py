"""How much attention each token gets from some others, in memory linear in the length.

A context is a sum of values, weighted by the attention. So the gradient of a sum of contexts by the
values is a sum of attention, whatever the way in which an architecture computes it.

Shapes: B batch, S sequence, H heads, E head size, D hidden, F from, T to.
"""

import tensorflow as tf

from mate_tf.attention.projections import HeadProjections


def received_attention(
    layer: HeadProjections, hidden_states: tf.Tensor, plan: object, senders: tf.Tensor
) -> tf.Tensor:
    """The attention that tokens get from weighted senders, in each head of a layer.

    Args:
        layer: the attention; not TableETC's, whose tokens attend through its global ones.
        hidden_states: float [B, S, D], what the layer is called on.
        plan: of `layer.plan(features, training=True)`.
        senders: float [B, S], how much each token's attention counts.

    Returns:
        float32 [B, H, T]: of each token the sum over the senders of their weight times their
        attention to it. It adds up over T to the sum of the senders. A Linformer's is what reaches
        the tokens through its projection, which may be negative.
    """
    query, key, value = layer.heads(hidden_states)  # [B, S, H, E] each
    value = tf.zeros_like(value)
    with tf.GradientTape() as tape:
        tape.watch(value)
        # What differentiates: as in training, but without dropout.
        context = layer.attend(query, key, value, plan, None, training=True)  # [B, F, H, E]
        # Each component of a value is weighted in the same way: one is enough.
        sent = tf.reduce_sum(tf.cast(context[..., 0], tf.float32) * senders[:, :, tf.newaxis])
    received = tape.gradient(sent, value)[..., 0]  # [B, T, H]
    return tf.transpose(tf.cast(received, tf.float32), [0, 2, 1])
