"""Attention whose evaluator follows the length: all pairs of short sequences, linear beyond.

Both compute the same. All pairs cost the square of the length, but with nothing to sort or gather.

Shapes: B batch, S sequence, H heads, E head size.
"""

from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple

import tensorflow as tf

from mate_tf.config import SORTED_ARCHITECTURES
from mate_tf.features.token_features import TokenFeatures
from mate_tf.layers.attention.dense import DenseAttention, DensePlan
from mate_tf.layers.attention.softmax import scores_are_small
from mate_tf.layers.basic import SeededDropout
from mate_tf.private_apis import compiles_with_xla


class EitherPlan(NamedTuple):
    """What an encoder's layers share where only running the graph tells which one is faster.

    Attributes:
        is_dense: bool, whether all pairs are computed.
        dense: of the sequence where all pairs are, else of its first token alone.
        linear: of the first token alone where all pairs are.
    """

    is_dense: tf.Tensor
    dense: tuple[DensePlan, ...]
    linear: Any


class LinearAttention(DenseAttention):
    """Self-attention that is linear in the length of long sequences.

    A subclass defines `linear_plan(features)` and `attend_linear`, with the arguments of `attend`.
    Where the configuration leaves the evaluator open, sequences up to `dense_up_to` tokens are
    computed over all pairs.

    Attributes:
        break_even: the longest of them where the configuration does not say, by dtype, in
            inference and in training; measured with BERT base on a CPU.
    """

    architectures = SORTED_ARCHITECTURES
    break_even: ClassVar[Mapping[str, tuple[int, int]]] = {
        "float32": (512, 448),
        "bfloat16": (480, 384),
    }

    def dense_up_to(self, training: bool = False) -> int:
        """The longest sequence of which all pairs are computed."""
        attention = self.attention
        if attention.evaluator is not None or attention.original_bucketing:
            return 0  # the release's bucketing is not the same over all pairs
        if attention.dense_up_to is not None:
            return attention.dense_up_to
        dtype = self.compute_dtype if self.compute_dtype in self.break_even else "float32"
        return self.break_even[dtype][training]

    def plan(self, features: TokenFeatures, training: bool = False) -> Any:
        """The orders and masks, which depend on the token features alone."""
        is_dense = self.dense_is_faster(features, training)
        if not isinstance(is_dense, bool):
            return self._either_plan(features, is_dense)
        return super().plan(features) if is_dense else self.linear_plan(features)

    def dense_is_faster(self, features: TokenFeatures, training: bool) -> bool | tf.Tensor:
        """Whether all pairs are computed; a bool [] where only running the graph tells."""
        longest, length = self.dense_up_to(training), features.input_ids.shape[1]
        if length is None and longest and not compiles_with_xla():
            return tf.shape(features.input_ids)[1] <= longest
        return length is not None and length <= longest

    def _either_plan(self, features: TokenFeatures, is_dense: tf.Tensor) -> EitherPlan:
        length = tf.shape(features.input_ids)[1]

        def first(size: tf.Tensor) -> TokenFeatures:
            return features.map(lambda feature: feature[:, :size])

        # The plan that will not be used is one of a token, and costs nothing.
        return EitherPlan(
            is_dense,
            super().plan(first(tf.where(is_dense, length, 1))),
            self.linear_plan(first(tf.where(is_dense, 1, length))),
        )

    def attend(
        self,
        query: tf.Tensor,
        key: tf.Tensor,
        value: tf.Tensor,
        plan: Any,
        dropout: SeededDropout | None,
        training: bool = False,
    ) -> tf.Tensor:
        """The context. float [B, S, H, E]."""
        given = (query, key, value)

        def by_all_pairs(plan: tuple[DensePlan, ...]) -> tf.Tensor:
            return super(LinearAttention, self).attend(*given, plan, dropout, training)

        def linear(plan: Any) -> tf.Tensor:
            return self.attend_linear(*given, plan, dropout, training)

        if isinstance(plan, EitherPlan):
            return tf.cond(
                plan.is_dense, lambda: by_all_pairs(plan.dense), lambda: linear(plan.linear)
            )
        is_dense = isinstance(plan, tuple) and isinstance(plan[0], DensePlan)
        return by_all_pairs(plan) if is_dense else linear(plan)

    def scores_are_small(
        self, query: tf.Tensor, key: tf.Tensor, training: bool
    ) -> tf.Tensor | None:
        """As `softmax.scores_are_small`, of heads [B, S, H, E]; None with relations too."""
        if self.relations is not None or training:
            return None
        return scores_are_small(query, key, 1.0 / (self.temperature * self.head_size**0.5))

    def linear_plan(self, features: TokenFeatures) -> Any:
        raise NotImplementedError

    def attend_linear(
        self,
        query: tf.Tensor,
        key: tf.Tensor,
        value: tf.Tensor,
        plan: Any,
        dropout: SeededDropout | None,
        training: bool = False,
    ) -> tf.Tensor:
        raise NotImplementedError
