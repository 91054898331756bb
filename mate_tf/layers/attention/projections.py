"""The projections around every attention: hidden states to heads, and back.

Shapes: B batch, S sequence, H heads, E head size, D hidden.
"""

import dataclasses
import itertools
from collections.abc import Callable
from typing import Any, ClassVar

import keras
import tensorflow as tf

from mate_tf.config import AttentionConfig
from mate_tf.dataclass_json import from_dict
from mate_tf.features.token_features import TokenFeatures
from mate_tf.layers.attention.grammar import GrammarBias
from mate_tf.layers.attention.patterns import head_groups
from mate_tf.layers.attention.relations import RelationBias, relation_scores
from mate_tf.layers.basic import Dropout, Linear, SeededDropout


def heads_first(tensor: tf.Tensor) -> tf.Tensor:
    """[B, S, H, E] to [B, H, S, E], or back."""
    return tf.transpose(tensor, [0, 2, 1, 3])


class HeadProjections(keras.layers.Layer):
    """Multi-head self-attention; a subclass defines how the heads attend.

    Its `plan(features, training)` computes, once for all layers of an encoder, what does not depend
    on the hidden states, one plan for each head group. It also defines
    `attend_group(query, key, value, plan, first_head, dropout)`, or `attend` for all groups.

    Args:
        num_heads: H.
        head_size: E.
        attention: the pattern and its parameters; the subclass has a default.
        temperature: divides the attention scores.
        dropout: the rate for the attention probabilities.
        initializer_range: standard deviation of the kernels' initializer.

    Attributes:
        architectures: the architectures that the subclass computes.

    Raises:
        ValueError: if a size is below 1, or the attention's architecture is another layer's.
    """

    architectures: ClassVar[tuple[str, ...]]

    def __init__(
        self,
        num_heads: int,
        head_size: int,
        attention: AttentionConfig | dict[str, Any] | None = None,
        temperature: float = 1.0,
        dropout: float = 0.0,
        initializer_range: float = 0.02,
        **kwargs,
    ):
        super().__init__(**kwargs)
        if num_heads < 1 or head_size < 1:
            raise ValueError(
                f"expected num_heads and head_size of at least 1, got {num_heads} and {head_size}"
            )
        if attention is None:
            attention = self.default_attention()
        elif isinstance(attention, dict):
            attention = from_dict(AttentionConfig, attention, "attention")
        if attention.architecture not in self.architectures:
            raise ValueError(
                f"layer {self.name!r}, a {type(self).__name__}, expected an architecture in "
                f"{self.architectures}, got {attention.architecture!r}"
            )
        self.num_heads = num_heads
        self.head_size = head_size
        self.attention = attention
        self.temperature = temperature
        self.dropout_rate = dropout
        self.initializer_range = initializer_range
        units = num_heads * head_size
        common: dict[str, Any] = dict(initializer_range=initializer_range, dtype=self.dtype_policy)
        self.query = Linear(units, name="query", **common)
        self.key = Linear(units, name="key", **common)
        self.value = Linear(units, name="value", **common)
        self.relations = None
        if attention.has_relations:
            self.relations = RelationBias(
                num_heads,
                head_size,
                attention.relation_kind,
                attention.disabled_relations,
                name="relations",
                dtype=self.dtype_policy,
            )
        self.grammar_bias = None
        if attention.learn_grammar_bias:
            self.grammar_bias = GrammarBias(
                num_heads, attention.grammar_bias, name="grammar", dtype=self.dtype_policy
            )
        self.dropout = Dropout(dropout, name="dropout", dtype=self.dtype_policy)

    @classmethod
    def default_attention(cls) -> AttentionConfig:
        raise NotImplementedError

    def plan(self, features: TokenFeatures, training: bool = False) -> tuple[Any, ...]:
        raise NotImplementedError

    def attend_group(
        self,
        query: tf.Tensor,
        key: tf.Tensor,
        value: tf.Tensor,
        plan: Any,
        first_head: int,
        dropout: SeededDropout | None,
    ) -> tf.Tensor:
        """The context of the h heads of one group.

        Args:
            query: float [B, h, S, E].
            key: float [B, h, S, E].
            value: float [B, h, S, E].
            plan: the plan of the group.
            first_head: the index of the group's first head among all heads.
            dropout: applied to the attention probabilities.

        Returns:
            float [B, h, S, E].
        """
        raise NotImplementedError

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
        return self.by_groups(self.attend_group, query, key, value, plan, dropout)

    def by_groups(
        self,
        attend_group: Callable[..., tf.Tensor],
        query: tf.Tensor,
        key: tf.Tensor,
        value: tf.Tensor,
        plan: Any,
        dropout: SeededDropout | None,
    ) -> tf.Tensor:
        """Attends group by group, with a function like `attend_group`; as `attend`."""
        heads = [group.num_heads for group in head_groups(self.attention, self.num_heads)]
        first_heads = itertools.accumulate([0, *heads[:-1]])
        parts = (tf.split(heads_first(tensor), heads, axis=1) for tensor in (query, key, value))
        queries, keys, values = parts
        contexts = [
            attend_group(*group, dropout=None if dropout is None else dropout.fold_in(index))
            for index, group in enumerate(
                zip(queries, keys, values, plan, first_heads, strict=True)
            )
        ]
        context = tf.concat(contexts, axis=1) if len(contexts) > 1 else contexts[0]
        return heads_first(context)  # and back: [B, S, H, E]

    def build(self, hidden_shape, *_) -> None:
        hidden_size = hidden_shape[-1]
        for projection in (self.query, self.key, self.value):
            projection.build((None, None, hidden_size))
        self.output_projection = Linear(
            hidden_size,
            initializer_range=self.initializer_range,
            name="output",
            dtype=self.dtype_policy,
        )
        self.output_projection.build((None, None, self.num_heads * self.head_size))
        for biases in (self.relations, self.grammar_bias):
            if biases is not None:
                biases.build()

    def call(
        self,
        hidden_states: tf.Tensor,
        features: TokenFeatures | None = None,
        plan: Any = None,
        training: bool = False,
        seed: tf.Tensor | None = None,
    ) -> tf.Tensor:
        """Attends.

        Args:
            hidden_states: float [B, S, D].
            features: token features int [B, S], or what `TokenFeatures.of` takes; not needed with a
                plan.
            plan: the result of `plan(features)`, for callers with several layers.
            training: whether dropout is on.
            seed: int32 [2], from the dropout's `draw_seed`; None draws one.

        Returns:
            float [B, S, D].

        Raises:
            ValueError: without features and without a plan.
        """
        training = bool(training)
        if plan is None:
            if features is None:
                raise ValueError(f"layer {self.name!r} expected token features or a plan")
            plan = self.plan(TokenFeatures.of(features), training=training)
        dropout = None
        if training and self.dropout_rate:
            seed = self.dropout.draw_seed() if seed is None else seed
            dropout = SeededDropout(self.dropout_rate, seed)
        query, key, value = self.heads(hidden_states)
        context = self.attend(query, key, value, plan, dropout, training)  # [B, S, H, E]
        length = tf.shape(hidden_states)[1]
        return self.output_projection(
            tf.reshape(context, [-1, length, self.num_heads * self.head_size])
        )

    def heads(self, hidden_states: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        """Queries, keys and values of hidden states [B, S, D]: float [B, S, H, E] each."""
        query, key, value = (
            self._split_heads(projection(hidden_states))
            for projection in (self.query, self.key, self.value)
        )
        return query, key, value

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

    def relation_tables(self, first_head: int, num_heads: int) -> tuple[tf.Tensor, ...]:
        """What h consecutive heads learned of the relations, for `relation_scores`."""
        assert self.relations is not None
        return self.relations.tables(first_head, num_heads)

    def _split_heads(self, projected: tf.Tensor) -> tf.Tensor:
        """[B, S, H * E] to [B, S, H, E]."""
        return tf.reshape(projected, [-1, tf.shape(projected)[1], self.num_heads, self.head_size])

    def compute_output_shape(self, hidden_shape, *_):
        return hidden_shape

    def get_config(self):
        return super().get_config() | {
            "num_heads": self.num_heads,
            "head_size": self.head_size,
            "attention": dataclasses.asdict(self.attention),
            "temperature": self.temperature,
            "dropout": self.dropout_rate,
            "initializer_range": self.initializer_range,
        }
