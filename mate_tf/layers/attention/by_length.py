"""Attention that depends on the length: all pairs of short sequences, linear for longer ones.

Both give the same result. All pairs cost the square of the length, but need no sort or gather.

Shapes: B batch, S sequence, H heads, E head size.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar

import tensorflow as tf

from mate_tf.config import SORTED_ARCHITECTURES
from mate_tf.features.token_features import TokenFeatures
from mate_tf.layers.attention.dense import DenseAttention, DensePlan
from mate_tf.layers.attention.softmax import scores_are_small
from mate_tf.layers.basic import SeededDropout
from mate_tf.private_apis import compiles_with_xla


@dataclasses.dataclass(frozen=True, eq=False)  # no tuple: Keras refuses one with other things
class EitherPlan:
    """What an encoder's layers share if the faster way is known only when the graph runs.

    Attributes:
        is_dense: bool, whether all pairs are computed.
        dense: the plan of all pairs; of the first token only, if it is not used.
        linear: the linear plan; the same.
    """

    is_dense: tf.Tensor
    dense: tuple[DensePlan, ...]
    linear: Any


class LinearAttention(DenseAttention):
    """Self-attention that is linear in the length of long sequences.

    A subclass defines `linear_plan(features)` and `attend_linear`, with the arguments of `attend`.
    If the configuration names no evaluator, sequences up to `dense_up_to` tokens are computed over
    all pairs.

    Attributes:
        break_even: the default of `dense_up_to` by dtype, for inference and training; measured with
            BERT base on a CPU.
    """

    architectures = SORTED_ARCHITECTURES
    break_even: ClassVar[Mapping[str, tuple[int, int]]] = {
        "float32": (512, 448),
        "bfloat16": (480, 384),
    }

    def dense_up_to(self, training: bool = False) -> int:
        """The longest sequence that is computed over all pairs."""
        attention = self.attention
        if attention.evaluator is not None or attention.original_bucketing:
            return 0  # all pairs would differ from the release's bucketing
        if attention.dense_up_to is not None:
            return attention.dense_up_to
        dtype = self.compute_dtype if self.compute_dtype in self.break_even else "float32"
        return self.break_even[dtype][training]

    def plan(self, features: TokenFeatures, training: bool = False) -> Any:
        """The orders and masks, which depend only on the token features."""
        is_dense = self.dense_is_faster(features, training)
        if not isinstance(is_dense, bool):
            return self._either_plan(features, is_dense)
        return super().plan(features) if is_dense else self.linear_plan(features)

    def dense_is_faster(self, features: TokenFeatures, training: bool) -> bool | tf.Tensor:
        """Whether all pairs are computed; a bool [] if it is known only when the graph runs."""
        longest, length = self.dense_up_to(training), features.input_ids.shape[1]
        if length is None and longest and not compiles_with_xla():
            return tf.shape(features.input_ids)[1] <= longest
        return length is not None and length <= longest

    def _either_plan(self, features: TokenFeatures, is_dense: tf.Tensor) -> EitherPlan:
        length = tf.shape(features.input_ids)[1]

        def first(size: tf.Tensor) -> TokenFeatures:
            return features.map(lambda feature: feature[:, :size])

        # The plan that is not used covers one token, so it costs nothing.
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
        """As `softmax.scores_are_small` for heads [B, S, H, E]; None also with relations."""
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
