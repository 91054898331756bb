"""What an implementation of attention knows about the layer that it computes for.

An implementation holds no weights. It has two functions: `plan(features, training)` computes, once
for all layers of an encoder, what does not depend on the hidden states; `attend(query, key, value,
plan, dropout, training)` computes the context of all heads. Implementations do not import each
other (`kinds.py` puts them together).

Shapes: B batch, S sequence, H heads, h heads of a group, E head size, F from, T to, K relations.
"""

import dataclasses
import itertools
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import tensorflow as tf

from mate_tf.config import AttentionConfig
from mate_tf.features.token_features import TokenFeatures
from mate_tf.layers.attention.grammar import GrammarBias
from mate_tf.layers.attention.patterns import HeadGroup, head_groups
from mate_tf.layers.attention.relations import RelationBias, relation_scores
from mate_tf.layers.attention.softmax import scores_are_small
from mate_tf.layers.basic import SeededDropout


class Implementation(Protocol):
    """How the heads attend."""

    def plan(self, features: TokenFeatures, training: bool = False) -> Any:
        """What the layers of an encoder share.

        Args:
            features: int [B, S] each.
            training: whether a gradient will be computed.
        """

    def attend(
        self,
        query: tf.Tensor,
        key: tf.Tensor,
        value: tf.Tensor,
        plan: Any,
        dropout: SeededDropout | None,
        training: bool = False,
    ) -> tf.Tensor:
        """The context of all heads.

        Args:
            query: float [B, S, H, E].
            key: float [B, S, H, E].
            value: float [B, S, H, E].
            plan: the result of `plan`.
            dropout: applied to the attention probabilities.
            training: whether a gradient will be computed.

        Returns:
            float [B, S, H, E].
        """


@dataclasses.dataclass(frozen=True, eq=False)
class Heads:
    """The heads of a layer.

    Attributes:
        num_heads: H.
        head_size: E.
        attention: the pattern and its parameters.
        temperature: divides the attention scores.
        compute_dtype: of the scores.
        relations: the layer's biases for TableFormer's relations, or None.
        grammar_bias: the layer's bias for favoured pairs, or None.
    """

    num_heads: int
    head_size: int
    attention: AttentionConfig
    temperature: float
    compute_dtype: str
    relations: RelationBias | None
    grammar_bias: GrammarBias | None

    @property
    def groups(self) -> tuple[HeadGroup, ...]:
        """The head groups of the architecture."""
        return head_groups(self.attention, self.num_heads)

    @property
    def sorted_groups(self) -> list[tuple[HeadGroup, str]]:
        """The head groups, each with the feature that it sorts by."""
        groups = []
        for group in self.groups:
            assert group.sort_by is not None, self.attention.architecture
            groups.append((group, group.sort_by))
        return groups

    def relation_tables(self, first_head: int, num_heads: int) -> tuple[tf.Tensor, ...]:
        """What h consecutive heads learned of the relations, for `relation_scores`."""
        assert self.relations is not None
        return self.relations.tables(first_head, num_heads)

    def relation_scores(self, query: tf.Tensor, one_hot: tf.Tensor, first_head: int) -> tf.Tensor:
        """What the relations add to the scores of h consecutive heads.

        Args:
            query: float [B, h, ..., F, E].
            one_hot: float [B, K, ..., F, T].
            first_head: the index of the first of them.

        Returns:
            float [B, h, ..., F, T], for the scores after their division.
        """
        return relation_scores(query, one_hot, *self.relation_tables(first_head, query.shape[1]))

    def scores_are_small(
        self, query: tf.Tensor, key: tf.Tensor, training: bool
    ) -> tf.Tensor | None:
        """As `softmax.scores_are_small` for heads [B, S, H, E]; None also with relations."""
        if self.relations is not None or training:
            return None
        return scores_are_small(query, key, 1.0 / (self.temperature * self.head_size**0.5))


def heads_first(tensor: tf.Tensor) -> tf.Tensor:
    """[B, S, H, E] to [B, H, S, E], or back."""
    return tf.transpose(tensor, [0, 2, 1, 3])


def by_groups(
    attend_group: Callable[..., tf.Tensor],
    group_sizes: Sequence[int],
    query: tf.Tensor,
    key: tf.Tensor,
    value: tf.Tensor,
    plans: Sequence[Any],
    dropout: SeededDropout | None,
) -> tf.Tensor:
    """Attends group by group.

    Args:
        attend_group: a function of query, key and value [B, h, S, E], the group's plan, the index
            of its first head and dropout; returns the context [B, h, S, E].
        group_sizes: h of each group.
        query: float [B, S, H, E].
        key: float [B, S, H, E].
        value: float [B, S, H, E].
        plans: the plan of each group.
        dropout: applied to the attention probabilities.

    Returns:
        float [B, S, H, E].
    """
    first_heads = itertools.accumulate([0, *group_sizes[:-1]])
    queries, keys, values = (
        tf.split(heads_first(tensor), group_sizes, axis=1) for tensor in (query, key, value)
    )
    contexts = [
        attend_group(*group, None if dropout is None else dropout.fold_in(index))
        for index, group in enumerate(zip(queries, keys, values, plans, first_heads, strict=True))
    ]
    context = tf.concat(contexts, axis=1) if len(contexts) > 1 else contexts[0]
    return heads_first(context)  # and back: [B, S, H, E]
