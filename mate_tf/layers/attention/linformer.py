"""Linformer: attention to a learned projection of the sequence, linear in its length.

Learned weights sum the keys and values of the sequence to a fixed number of each (Wang et al.,
2020, section 4; MATE paper, section 4.3). Keys and values, and all heads, share one projection.
Each position has its own weights, so a model takes sequences of one length only, and no pattern
applies. Padding adds nothing.

Shapes: B batch, S sequence, P projected length, H heads, E head size.
"""

import dataclasses

import keras
import tensorflow as tf

from mate_tf.config import LinformerConfig
from mate_tf.features.token_features import TokenFeatures
from mate_tf.layers.attention.dense import dense_attention
from mate_tf.layers.attention.patterns import Heads, heads_first
from mate_tf.layers.basic import SeededDropout, normal_initializer


@dataclasses.dataclass(eq=False)
class Linformer:
    """An `Implementation` with a weight: `length_projection`, float [S, P]."""

    heads: Heads
    attention: LinformerConfig

    def build(self, layer: keras.layers.Layer) -> None:
        """Adds the weight to the layer."""
        # TensorFlow saves what is an attribute of the layer.
        self.length_projection = layer.length_projection = layer.add_weight(
            shape=(self.attention.sequence_length, self.attention.projected_length),
            initializer=normal_initializer(layer.initializer_range),
            name="proj_seq_length",
        )

    def plan(self, features: TokenFeatures, training: bool = False) -> tf.Tensor:
        """The weights of keys, 0 for padding, else 1: float [B, S, 1].

        Raises:
            ValueError: if S is not the attention's `sequence_length`.
        """
        expected = self.attention.sequence_length
        message = (
            f"expected sequences of {expected} tokens, which this Linformer projects to "
            f"{self.attention.projected_length}, got "
        )
        length = features.input_mask.shape[1]
        if length is not None and length != expected:
            raise ValueError(f"{message}{length}")
        check = tf.debugging.assert_equal(
            tf.shape(features.input_mask)[1], expected, f"{message}another length"
        )
        with tf.control_dependencies([] if check is None else [check]):
            return tf.cast(features.input_mask, self.heads.compute_dtype)[..., None]

    def attend(
        self,
        query: tf.Tensor,
        key: tf.Tensor,
        value: tf.Tensor,
        plan: tf.Tensor,
        dropout: SeededDropout | None,
        training: bool = False,
    ) -> tf.Tensor:
        """The context. float [B, S, H, E]."""
        # The cast is for gradients that compute it again, outside of the layer's call.
        weights = tf.cast(tf.convert_to_tensor(self.length_projection), plan.dtype)
        weights *= plan  # [B, S, P]
        context = dense_attention(
            heads_first(query),
            tf.einsum("BSP,BSHE->BHPE", weights, key),
            tf.einsum("BSP,BSHE->BHPE", weights, value),
            temperature=self.heads.temperature,
            dropout=None if dropout is None else dropout.fold_in(0),
        )
        return heads_first(context)
