"""Attention over all pairs of tokens: the reference, and the faster choice for short inputs.

Shapes: B batch, S sequence, H heads, E head size, D hidden, F from, T to.
"""

import dataclasses
from typing import NamedTuple

import tensorflow as tf

from mate_tf.config import GrammarSoftConfig
from mate_tf.features.token_features import TokenFeatures
from mate_tf.layers.attention.grammar import RelatedTags, favoured_tags
from mate_tf.layers.attention.patterns import (
    HeadGroup,
    Heads,
    by_groups,
    group_mask,
    pattern_mask,
    window_pairs,
)
from mate_tf.layers.attention.softmax import Attended, weighted_sum
from mate_tf.layers.basic import SeededDropout


class DensePlan(NamedTuple):
    """What an encoder's layers share for one head group.

    Attributes:
        mask: bool, broadcasts to [B, 1, F, T].
        relations: one-hot, float [B, K, F, T], or None.
        bias: float, broadcasts to [B, 1, F, T], added to the scores, or None.
        favoured: float [B, 1, F, T], 1 for the pairs that get a learned bias, or None.
    """

    mask: tf.Tensor
    relations: tf.Tensor | None
    bias: tf.Tensor | None
    favoured: tf.Tensor | None


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
        key: float [B, H, T, E].
        value: float [B, H, T, E].
        mask: bool, broadcasts to [B, H, F, T]; True where a query may attend to a key.
        bias: float, broadcasts to [B, H, F, T]; added to the scores after their division.
        temperature: the scores are divided by it and by sqrt(E).
        dropout: applied to the attention probabilities.

    Returns:
        float [B, H, F, E].
    """
    query *= tf.cast(1.0 / (temperature * query.shape[-1] ** 0.5), query.dtype)
    scores = tf.einsum("BHFE,BHTE->BHFT", query, key)
    if bias is not None:
        scores += bias
    attended = Attended(scores, mask, value, "BHFT,BHTE->BHFE")
    return weighted_sum([attended], dropout)


@dataclasses.dataclass(eq=False)
class Dense:
    """All pairs, under the mask of a pattern; see `kinds.Implementation`.

    With a bucket size only the pairs of a window attend to each other.
    """

    heads: Heads

    def plan(self, features: TokenFeatures, training: bool = False) -> tuple[DensePlan, ...]:
        """The masks, relations and biases, which depend only on the token features."""
        heads, attention = self.heads, self.heads.attention
        relations = bias = favoured = None
        if heads.relations is not None:
            relations = heads.relations.one_hot(features, features)  # [B, K, F, T]
        if isinstance(attention, GrammarSoftConfig):
            related = RelatedTags(favoured_tags(attention.grammar_rules))
            favoured = pattern_mask(related, features, features)[:, None]  # [B, 1, F, T]
            favoured = tf.cast(favoured, heads.compute_dtype)
            if heads.grammar_bias is None:
                bias, favoured = attention.grammar_bias * favoured, None
        return tuple(
            DensePlan(self._mask(features, group), relations, bias, favoured)
            for group in heads.groups
        )

    def _mask(self, features: TokenFeatures, group: HeadGroup) -> tf.Tensor:
        """Bool [B, 1, F or 1, T]."""
        mask = group_mask(group, features)  # [B, F or 1, T]
        in_window = window_pairs(features, group.sort_by, self.heads.attention)
        if in_window is not None:
            mask &= in_window
        return mask[:, None]

    def attend(
        self,
        query: tf.Tensor,
        key: tf.Tensor,
        value: tf.Tensor,
        plan: tuple[DensePlan, ...],
        dropout: SeededDropout | None,
        training: bool = False,
    ) -> tf.Tensor:
        """The context, group by group. float [B, S, H, E]."""
        sizes = [group.num_heads for group in self.heads.groups]
        return by_groups(self._attend_group, sizes, query, key, value, plan, dropout)

    def _attend_group(
        self,
        query: tf.Tensor,
        key: tf.Tensor,
        value: tf.Tensor,
        plan: DensePlan,
        first_head: int,
        dropout: SeededDropout | None,
    ) -> tf.Tensor:
        """The context under the group's mask. float [B, h, S, E]."""
        biases = [] if plan.bias is None else [plan.bias]
        if plan.relations is not None:
            biases.append(self.heads.relation_scores(query, plan.relations, first_head))
        grammar_bias = self.heads.grammar_bias
        if grammar_bias is not None and plan.favoured is not None:
            biases.append(grammar_bias.scores(plan.favoured))
        return dense_attention(
            query,
            key,
            value,
            plan.mask,
            bias=sum(biases[1:], biases[0]) if biases else None,
            temperature=self.heads.temperature,
            dropout=dropout,
        )
