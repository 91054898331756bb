"""Attention over all pairs of tokens, the reference and the faster choice for short inputs.

Linformer attends in the same way, but to a learned projection of the sequence. Learned weights sum
the keys and values to a fixed number of each, so the cost is linear in the length (Wang et al.,
2020, section 4; MATE paper, section 4.3). All heads share one projection. Each position has its own
weights, so a model takes sequences of one length only, and no pattern applies.

Shapes: B batch, S sequence, P projected length, H heads, E head size, K relations, F from, T to.
"""

import dataclasses
from typing import NamedTuple

import keras
import tensorflow as tf

from mate_tf.config import GrammarSoftConfig, LinformerConfig
from mate_tf.features.token_features import TokenFeatures
from mate_tf.layers.attention import patterns
from mate_tf.layers.attention.relations import RelatedTags, favoured_tags, relation_scores
from mate_tf.layers.attention.softmax import Attended, weighted_sum
from mate_tf.layers.basic import SeededDropout, normal_initializer
from mate_tf.layers.compilation import refuse_unless


def dense_attention(
    query: tf.Tensor,
    key: tf.Tensor,
    value: tf.Tensor,
    mask: tf.Tensor | None = None,
    *,
    bias: tf.Tensor | None = None,
    temperature: float = 1.0,
    dropout: SeededDropout | None = None,
) -> tf.Tensor:
    """Scaled dot-product attention over all pairs (Vaswani et al., 2017, equation 1).

    Args:
        query: float [B, H, F, E].
        key, value: float [B, H, T, E].
        mask: bool, broadcasts to [B, H, F, T]; True where a query may attend to a key.
        bias: float, broadcasts to [B, H, F, T]; added to the scores after their division.
        temperature: the scores are divided by it and by sqrt(E).
        dropout: applied to the attention probabilities.

    Returns float [B, H, F, E].
    """
    query *= tf.cast(1.0 / (temperature * query.shape[-1] ** 0.5), query.dtype)
    scores = tf.einsum("BHFE,BHTE->BHFT", query, key)
    if bias is not None:
        scores += bias
    return weighted_sum([Attended(scores, mask, value, "BHFT,BHTE->BHFE")], dropout)


class DensePlan(NamedTuple):
    """The tensors that an encoder's layers share for one head group."""

    mask: tf.Tensor  # bool, broadcasts to [B, 1, F, T]
    relations: tf.Tensor | None  # one-hot, float [B, K, F, T]
    bias: tf.Tensor | None  # float, broadcasts to [B, 1, F, T], added to the scores


class Dense(patterns.ByGroups):
    """All pairs, under the mask of a pattern.

    With a bucket size only the pairs of a window attend to each other.
    """

    def plan(self, features: TokenFeatures, training: bool = False) -> tuple[DensePlan, ...]:
        """The masks, relations and biases, which depend only on the token features."""
        heads, attention = self.heads, self.heads.attention
        relations = bias = None
        if heads.relations is not None:
            relations = heads.relations.one_hot(features, features)  # [B, K, F, T]
        if isinstance(attention, GrammarSoftConfig):
            related = RelatedTags(favoured_tags(attention.grammar_rules))
            favoured = patterns.pattern_mask(related, features, features)[:, None]  # [B, 1, F, T]
            bias = attention.grammar_bias * tf.cast(favoured, heads.compute_dtype)
        return tuple(
            DensePlan(
                self._mask(features, group),
                None if heads.relations_of(group) is None else relations,
                bias,
            )
            for group in heads.groups
        )

    def _mask(self, features: TokenFeatures, group: patterns.HeadGroup) -> tf.Tensor:
        """Bool [B, 1, F or 1, T]."""
        mask = patterns.group_mask(group, features)  # [B, F or 1, T]
        in_window = patterns.window_pairs(features, group.sort_by, self.heads.attention)
        if in_window is not None:
            mask &= in_window
        return mask[:, None]

    def scores_are_small(self, projected: patterns.Projected, training: bool) -> None:
        """None: the softmax of all pairs is one kernel."""

    def attend_group(self, inputs: patterns.GroupInputs, plan: DensePlan) -> tf.Tensor:
        """The context under the group's mask. float [B, h, S, E]."""
        bias = plan.bias
        if plan.relations is not None:
            scores = relation_scores(inputs.projected.query, plan.relations, *inputs.tables)
            bias = scores if bias is None else bias + scores
        return dense_attention(
            *inputs.projected,
            plan.mask,
            bias=bias,
            temperature=self.heads.temperature,
            dropout=inputs.dropout,
        )


@dataclasses.dataclass(eq=False)
class Linformer:
    """An `Implementation` with a weight: `length_projection`, float [S, P]."""

    heads: patterns.Heads
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

        ValueError if S is not the attention's `sequence_length`.
        """
        expected, length = self.attention.sequence_length, patterns.sequence_length(features)
        message = (
            f"expected sequences of {expected} tokens, which this Linformer projects to "
            f"{self.attention.projected_length}, got"
        )
        with tf.control_dependencies(refuse_unless(length == expected, message, length)):
            return tf.cast(features.input_mask, self.heads.compute_dtype)[..., None]

    def attend(
        self,
        projected: patterns.Projected,
        plan: tf.Tensor,
        dropout: SeededDropout | None,
        training: bool = False,
    ) -> tf.Tensor:
        """The context. float [B, S, H, E]."""
        # The cast is for gradients that compute it again, outside of the layer's call.
        weights = tf.cast(tf.convert_to_tensor(self.length_projection), plan.dtype)
        weights *= plan  # [B, S, P]
        context = dense_attention(
            patterns.heads_first(projected.query),
            tf.einsum("BSP,BSHE->BHPE", weights, projected.key),
            tf.einsum("BSP,BSHE->BHPE", weights, projected.value),
            temperature=self.heads.temperature,
            dropout=dropout and dropout.fold_in(0),
        )
        return patterns.heads_first(context)
