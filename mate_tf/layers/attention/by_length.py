"""Attention that depends on the length: one implementation for short sequences, one for others.

Both give the same result. All pairs cost the square of the length, but need no sort or gather.

Shapes: B batch, S sequence, H heads, E head size.
"""

import dataclasses
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import tensorflow as tf

from mate_tf.config import AttentionConfig
from mate_tf.features.token_features import TokenFeatures
from mate_tf.layers.attention.heads import Implementation
from mate_tf.layers.basic import SeededDropout
from mate_tf.private_apis import compiles_with_xla

# The longest sequence of which all pairs are computed, by dtype, for inference and training;
# measured with BERT base on a CPU: against a window, and against full coverage.
BREAK_EVEN_WINDOW: Mapping[str, tuple[int, int]] = MappingProxyType(
    {"float32": (512, 448), "bfloat16": (480, 384)}
)
BREAK_EVEN_FULL: Mapping[str, tuple[int, int]] = MappingProxyType(
    {"float32": (512, 448), "bfloat16": (832, 384)}
)


def longest_dense(
    attention: AttentionConfig,
    break_even: Mapping[str, tuple[int, int]],
    dtype: str,
    training: bool = False,
) -> int:
    """The longest sequence that is computed over all pairs."""
    if attention.evaluator is not None or attention.original_bucketing:
        return 0  # all pairs would differ from the release's bucketing
    if attention.dense_up_to is not None:
        return attention.dense_up_to
    return break_even.get(dtype, break_even["float32"])[training]


@dataclasses.dataclass(frozen=True, eq=False)  # no tuple: Keras refuses one with other things
class EitherPlan:
    """What an encoder's layers share.

    Attributes:
        is_short: whether the short implementation computes; a bool [] if it is known only when the
            graph runs.
        short: the plan of the short implementation; None, or of the first token only, if it is not
            used.
        long: the plan of the other one; the same.
    """

    is_short: bool | tf.Tensor
    short: Any = None
    long: Any = None


class ByLength:
    """One implementation up to a length, another beyond; see `heads.Implementation`.

    Args:
        short: of sequences up to a length.
        long: of longer ones; it gives the same result.
        longest: returns the largest length of short sequences, by whether it is training.
    """

    def __init__(
        self, short: Implementation, long: Implementation, longest: Callable[[bool], int]
    ) -> None:
        self._short = short
        self._long = long
        self.longest = longest

    def plan(self, features: TokenFeatures, training: bool = False) -> EitherPlan:
        """The plan of the one that computes, or both in a graph that does not know the length."""
        longest, length = self.longest(training), features.input_ids.shape[1]
        if length is not None or not longest or compiles_with_xla():
            if length is not None and length <= longest:
                return EitherPlan(True, short=self._short.plan(features, training))
            return EitherPlan(False, long=self._long.plan(features, training))
        length = tf.shape(features.input_ids)[1]
        is_short = length <= longest

        def first(size: tf.Tensor) -> TokenFeatures:
            return features.map(lambda feature: feature[:, :size])

        # The plan that is not used covers one token, so it costs nothing.
        return EitherPlan(
            is_short,
            self._short.plan(first(tf.where(is_short, length, 1)), training),
            self._long.plan(first(tf.where(is_short, 1, length)), training),
        )

    def attend(
        self,
        query: tf.Tensor,
        key: tf.Tensor,
        value: tf.Tensor,
        plan: EitherPlan,
        dropout: SeededDropout | None,
        training: bool = False,
    ) -> tf.Tensor:
        """The context. float [B, S, H, E]."""

        def short() -> tf.Tensor:
            return self._short.attend(query, key, value, plan.short, dropout, training)

        def long() -> tf.Tensor:
            return self._long.attend(query, key, value, plan.long, dropout, training)

        if isinstance(plan.is_short, bool):
            return short() if plan.is_short else long()
        return tf.cond(plan.is_short, short, long)
