"""Attention whose evaluator follows the length: all pairs of short sequences, linear beyond.

Both compute the same. All pairs cost the square of the length, but with nothing to sort or gather.

Shapes: B batch, S sequence, H heads, E head size.
"""

from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple

import tensorflow as tf

from mate_tf.attention.dense import DenseAttention, DensePlan
from mate_tf.compilation import compiles_with_xla
from mate_tf.dropout import SeededDropout
from mate_tf.tables.token_features import TokenFeatures


class EitherPlan(NamedTuple):
    """What an encoder's layers share where the graph does not know the length.

    Attributes:
        is_short: bool, whether all pairs are computed.
        dense: of the sequence where it is short, else of its first token alone.
        linear: of the first token alone where the sequence is short.
    """

    is_short: tf.Tensor
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

    def plan(
        self,
        features: TokenFeatures,
        token_weights: tf.Tensor | None = None,
        training: bool = False,
    ) -> Any:
        """The orders and masks, which depend on the token features alone."""
        if token_weights is not None:
            raise ValueError(
                "expected no token_weights without evaluator 'dense', which takes them"
            )
        longest, length = self.dense_up_to(training), features.input_ids.shape[1]
        if length is None and longest and not compiles_with_xla():
            return self._either_plan(features, longest)
        is_short = length is not None and length <= longest
        return super().plan(features) if is_short else self.linear_plan(features)

    def _either_plan(self, features: TokenFeatures, longest: int) -> EitherPlan:
        length = tf.shape(features.input_ids)[1]
        is_short = length <= longest

        def first(size: tf.Tensor) -> TokenFeatures:
            return features.map(lambda feature: feature[:, :size])

        # The plan that will not be used is one of a token, and costs nothing.
        return EitherPlan(
            is_short,
            super().plan(first(tf.where(is_short, length, 1))),
            self.linear_plan(first(tf.where(is_short, 1, length))),
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
                plan.is_short, lambda: by_all_pairs(plan.dense), lambda: linear(plan.linear)
            )
        is_dense = isinstance(plan, tuple) and isinstance(plan[0], DensePlan)
        return by_all_pairs(plan) if is_dense else linear(plan)

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
