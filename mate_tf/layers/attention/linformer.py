"""Linformer: attention to a learned projection of the sequence, linear in its length.

Learned weights sum the keys and values of the sequence to a fixed number of each (Wang et al.,
2020, section 4; MATE paper, section 4.3). Each position has its own weights, so a model takes
sequences of one length only, and no pattern applies.

Shapes: B batch, S sequence, P projected length, H heads, E head size, D hidden.
"""

from typing import NamedTuple

import keras
import tensorflow as tf

from mate_tf.config import AttentionConfig
from mate_tf.features.token_features import TokenFeatures
from mate_tf.layers.attention.dense import dense_attention
from mate_tf.layers.attention.heads import by_groups
from mate_tf.layers.attention.projections import HeadProjections
from mate_tf.layers.basic import SeededDropout


class LinformerPlan(NamedTuple):
    """What an encoder's layers share."""

    key_weights: tf.Tensor  # float [B, S, 1]: 0 for padding, else 1


@keras.saving.register_keras_serializable(package="mate_tf")
class LinformerAttention(HeadProjections):
    """Self-attention of every token to a projection of the sequence.

    Called on hidden states float [B, S, D] and token features int [B, S]; returns float
    [B, S, D]. Keys and values, and all heads, share one projection; padding adds nothing to it.

    Raises:
        ValueError: if S is not the attention's `sequence_length`, or its architecture is another
            layer's.

    Example:
        >>> from mate_tf.config import AttentionConfig
        >>> attention = AttentionConfig("linformer", sequence_length=6, projected_length=2)
        >>> layer = LinformerAttention(num_heads=2, head_size=4, attention=attention)
        >>> features = TokenFeatures(*[tf.ones([1, 6], tf.int32)] * 9)
        >>> layer(tf.ones([1, 6, 8]), features).shape
        TensorShape([1, 6, 8])
    """

    architectures = ("linformer",)

    def build(self, hidden_shape, *_) -> None:
        super().build(hidden_shape)
        self.length_projection = self.add_weight(
            shape=(self.attention.sequence_length, self.attention.projected_length),
            initializer=keras.initializers.TruncatedNormal(stddev=self.initializer_range),
            name="proj_seq_length",
        )

    def plan(self, features: TokenFeatures, training: bool = False) -> tuple[LinformerPlan]:
        """The mask, and a check of the length."""
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
            weights = tf.cast(features.input_mask, self.compute_dtype)
        return (LinformerPlan(weights[..., None]),)

    def attend(
        self,
        query: tf.Tensor,
        key: tf.Tensor,
        value: tf.Tensor,
        plan: tuple[LinformerPlan],
        dropout: SeededDropout | None,
        training: bool = False,
    ) -> tf.Tensor:
        """The context of all heads, which are one group. float [B, S, H, E]."""
        return by_groups(self._attend_group, [self.num_heads], query, key, value, plan, dropout)

    def _attend_group(
        self,
        query: tf.Tensor,
        key: tf.Tensor,
        value: tf.Tensor,
        plan: LinformerPlan,
        first_head: int,
        dropout: SeededDropout | None,
    ) -> tf.Tensor:
        """The context. float [B, H, S, E]."""
        del first_head
        weights = tf.convert_to_tensor(self.length_projection) * plan.key_weights  # [B, S, P]
        return dense_attention(
            query,
            tf.einsum("BSP,BHSE->BHPE", weights, key),
            tf.einsum("BSP,BHSE->BHPE", weights, value),
            temperature=self.temperature,
            dropout=dropout,
        )

    @classmethod
    def default_attention(cls) -> AttentionConfig:
        """The MATE paper's: 256 keys, for its 2,048 tokens."""
        return AttentionConfig("linformer", sequence_length=2048, projected_length=256)
