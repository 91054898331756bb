"""The projections around every attention: hidden states to heads, and back.

Shapes: B batch, S sequence, H heads, E head size, D hidden.
"""

import dataclasses
from typing import Any, ClassVar

import keras
import tensorflow as tf

from mate_tf.config import AttentionConfig
from mate_tf.dataclass_json import from_dict
from mate_tf.features.token_features import TokenFeatures
from mate_tf.layers.attention.grammar import GrammarBias
from mate_tf.layers.attention.heads import Heads, Implementation
from mate_tf.layers.attention.relations import RelationBias
from mate_tf.layers.basic import Dropout, Linear, SeededDropout


class HeadProjections(keras.layers.Layer):
    """Multi-head self-attention: projections to heads and back around an implementation.

    A subclass names the implementation, `implementation_of` the heads, or computes `plan` and
    `attend` itself where it has weights of its own (see `heads.Implementation`).

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
        self.implementation = self.implementation_of(
            Heads(
                num_heads,
                head_size,
                attention,
                temperature,
                self.compute_dtype,
                self.relations,
                self.grammar_bias,
            )
        )

    @classmethod
    def default_attention(cls) -> AttentionConfig:
        raise NotImplementedError

    def implementation_of(self, heads: Heads) -> Implementation | None:
        """How these heads attend; None if the layer computes it itself."""
        del heads
        return None

    def plan(self, features: TokenFeatures, training: bool = False) -> Any:
        """What the layers of an encoder share; as `Implementation.plan`."""
        assert self.implementation is not None
        return self.implementation.plan(features, training)

    def attend(
        self,
        query: tf.Tensor,
        key: tf.Tensor,
        value: tf.Tensor,
        plan: Any,
        dropout: SeededDropout | None,
        training: bool = False,
    ) -> tf.Tensor:
        """The context of all heads, float [B, S, H, E]; as `Implementation.attend`."""
        assert self.implementation is not None
        return self.implementation.attend(query, key, value, plan, dropout, training)

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
