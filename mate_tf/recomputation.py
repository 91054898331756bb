"""Training in less memory: activations that are computed a second time and not kept.

Chen et al., 2016, "Training deep nets with sublinear memory cost".

Shapes: B batch, S sequence, G global (0 but for TableETC), D hidden.
"""

from typing import Any

import keras
import tensorflow as tf


def recomputed(
    block: keras.layers.Layer, hidden_states: tf.Tensor, plan: Any, has_gradient: bool
) -> tf.Tensor:
    """A block in training whose gradient computes it anew, and keeps its input alone until then.

    Args:
        block: an `EncoderBlock`.
        hidden_states: float [B, G + S, D].
        plan: the attention's.
        has_gradient: whether what the plan was made of is to be differentiated by.

    Returns:
        float [B, G + S, D].
    """
    leaves = tf.nest.flatten(plan)
    # Of what the function does not take as an argument there would be no gradient.
    inputs = {
        place: leaf
        for place, leaf in enumerate(leaves)
        if has_gradient and tf.is_tensor(leaf) and leaf.dtype.is_floating
    }
    seeds = block.draw_seeds()  # drawn inside, they would be others the second time

    @tf.recompute_grad
    def run(hidden_states: tf.Tensor, *of_plan: tf.Tensor) -> tf.Tensor:
        given = dict(zip(inputs, of_plan, strict=True))
        with_inputs = [given.get(place, leaf) for place, leaf in enumerate(leaves)]
        # The second time the hidden states wait for the gradient that comes from above. What hangs
        # on seeds, masks and weights alone has to wait with them, or it would be computed early,
        # or merged with its first time, and kept. XLA sees the data alone: the masks of dropout
        # are most of it.
        is_nan = tf.reduce_any(tf.math.is_nan(tf.reshape(hidden_states, [-1])[:1]))
        waiting_seeds = seeds + tf.cast(is_nan, seeds.dtype)
        with tf.control_dependencies([hidden_states]):
            return block(
                hidden_states,
                tf.nest.pack_sequence_as(plan, with_inputs),
                training=True,
                seeds=waiting_seeds,
            )

    return run(hidden_states, *inputs.values())
