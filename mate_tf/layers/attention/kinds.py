"""The attention layer, and the kinds of attention that it computes.

A layer projects hidden states to heads and back, and is given an implementation, which computes
what the heads see: all pairs, a window of views, tiles, or two of them by length. Implementations
do not import each other, but for what the multi-view parts are made of.

Shapes: B batch, S sequence, P projected length, H heads, E head size, D hidden.
"""

import dataclasses
import functools
from types import MappingProxyType
from typing import Any, Protocol

import keras
import tensorflow as tf

from mate_tf.config import (
    AttentionConfig,
    LinformerConfig,
    MateConfig,
    MateNeighboursConfig,
    TableETCConfig,
    TableFormerConfig,
    architectures_of,
)
from mate_tf.dataclass_json import from_dict, require
from mate_tf.features.token_features import TokenFeatures
from mate_tf.layers.attention.multi_view import MultiViews
from mate_tf.layers.attention.patterns import (
    Dense,
    Heads,
    Projected,
    heads_first,
    sequence_length,
)
from mate_tf.layers.attention.relations import NEIGHBOURS, RelationBias
from mate_tf.layers.attention.softmax import dense_attention
from mate_tf.layers.attention.table_etc import TableETC
from mate_tf.layers.attention.tiles import Tiles
from mate_tf.layers.basic import (
    Dropout,
    Linear,
    SeededDropout,
    attributes,
    normal_initializer,
    seeds_after,
)
from mate_tf.layers.compilation import many_lengths, refuse_unless, short_sequences
from mate_tf.private_apis import compiles_with_xla

# The longest sequence of which all pairs are computed, by dtype, for inference and training;
# measured with BERT base on a CPU: against a window, and against full coverage.
BREAK_EVEN_WINDOW = MappingProxyType({"float32": (512, 448), "bfloat16": (480, 384)})
BREAK_EVEN_FULL = MappingProxyType({"float32": (512, 448), "bfloat16": (832, 384)})
# The same on a GPU, for inference (an H100, docs/speed.md): against a window, and against full
# coverage, whose rounds are slower there at any length; beyond it all pairs take too much memory.
ON_GPU_WINDOW, ON_GPU_FULL = 2048, 4096


class Implementation(Protocol):
    """How the heads attend. One with weights of its own has a `build(layer)` that adds them."""

    def plan(self, features: TokenFeatures, training: bool = False) -> Any:
        """The tensors that the layers share: they do not depend on the hidden states."""

    def attend(
        self,
        projected: Projected,
        plan: Any,
        dropout: SeededDropout | None,
        training: bool = False,
    ) -> tf.Tensor:
        """The context of all heads: float [B, S, H, E]."""


def implementation_of(heads: Heads) -> Implementation:
    """The implementation of a kind of attention."""
    attention = heads.attention
    if isinstance(attention, LinformerConfig):
        return Linformer(heads, attention)
    if isinstance(attention, TableETCConfig):
        return TableETC(heads, attention)
    if not isinstance(attention, MateConfig) or attention.evaluator == "dense":
        return Dense(heads)
    long = MultiViews(heads, attention) if attention.coverage is None else Tiles(heads, attention)
    return ByLength(attention, Dense(heads), long, heads.compute_dtype)


@dataclasses.dataclass(frozen=True, eq=False)  # no tuple: Keras refuses one with other things
class EitherPlan:
    """Which implementation computes, a bool [] if only the graph knows, and its plan.

    The plan of the other one is None, or of the first token only.
    """

    is_short: bool | tf.Tensor
    short: Any = None
    long: Any = None


@dataclasses.dataclass(eq=False)
class ByLength:
    """One implementation for short sequences, another for long ones, with the same result.

    All pairs cost the square of the length, but need no sort or gather.
    """

    attention: MateConfig
    short: Implementation
    long: Implementation
    dtype: str

    def longest(self, training: bool) -> int:
        """The longest sequence that the short implementation computes."""
        attention = self.attention
        if attention.evaluator is not None or attention.original_bucketing:
            return 0  # all pairs would differ from the release's bucketing
        if attention.dense_up_to is not None:
            return attention.dense_up_to
        has_window = attention.coverage is None
        if not training and tf.config.list_logical_devices("GPU"):
            return ON_GPU_WINDOW if has_window else ON_GPU_FULL
        break_even = BREAK_EVEN_WINDOW if has_window else BREAK_EVEN_FULL
        return break_even.get(self.dtype, break_even["float32"])[training]

    def plan(self, features: TokenFeatures, training: bool = False) -> EitherPlan:
        """The plan of the one that computes, or both in a graph that does not know the length."""
        longest, length = self.longest(training), sequence_length(features)
        is_short = length <= longest
        if not isinstance(length, int):
            if many_lengths():
                is_short = short_sequences.is_on
            elif not longest or compiles_with_xla():
                is_short = False
        if is_short is True:
            return EitherPlan(True, short=self.short.plan(features, training))
        if is_short is False:
            return EitherPlan(False, long=self.long.plan(features, training))

        def plan(implementation: Implementation, size: tf.Tensor) -> Any:
            first = features.map(lambda feature: feature[:, :size])
            return implementation.plan(first, training)

        # The plan that is not used covers one token, so it costs nothing.
        sizes = tf.where(is_short, length, 1), tf.where(is_short, 1, length)
        return EitherPlan(is_short, *map(plan, (self.short, self.long), sizes))

    def attend(
        self,
        projected: Projected,
        plan: EitherPlan,
        dropout: SeededDropout | None,
        training: bool = False,
    ) -> tf.Tensor:
        options = dropout, training
        short = functools.partial(self.short.attend, projected, plan.short, *options)
        long = functools.partial(self.long.attend, projected, plan.long, *options)
        if isinstance(plan.is_short, bool):
            return short() if plan.is_short else long()
        return tf.cond(plan.is_short, short, long)


@dataclasses.dataclass(eq=False)
class Linformer:
    """An `Implementation` with a weight: `length_projection`, float [S, P].

    It sums the keys and values to a fixed number of each, so the cost is linear in the length (Wang
    et al., 2020, section 4; MATE paper, section 4.3). All heads share one projection. Each position
    has its own weights, so a model takes sequences of one length only, and no pattern applies.
    """

    heads: Heads
    attention: LinformerConfig

    def build(self, layer: keras.layers.Layer) -> None:
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
        expected, length = self.attention.sequence_length, sequence_length(features)
        message = (
            f"expected sequences of {expected} tokens, which this Linformer projects to "
            f"{self.attention.projected_length}, got"
        )
        with tf.control_dependencies(refuse_unless(length == expected, message, length)):
            return tf.cast(features.input_mask, self.heads.compute_dtype)[..., None]

    def attend(
        self,
        projected: Projected,
        plan: tf.Tensor,
        dropout: SeededDropout | None,
        training: bool = False,
    ) -> tf.Tensor:
        # The cast is for gradients that compute it again, outside of the layer's call.
        weights = tf.cast(tf.convert_to_tensor(self.length_projection), plan.dtype)
        weights *= plan  # [B, S, P]
        context = dense_attention(
            heads_first(projected.query),
            tf.einsum("BSP,BSHE->BHPE", weights, projected.key),
            tf.einsum("BSP,BSHE->BHPE", weights, projected.value),
            temperature=self.heads.temperature,
            dropout=dropout and dropout.fold_in(0),
        )
        return heads_first(context)


@keras.saving.register_keras_serializable(package="mate_tf")
class SelfAttention(keras.layers.Layer):
    """Multi-head self-attention of any kind (Vaswani et al., 2017, section 3.2).

    Called on hidden states float [B, S, D] and token features int [B, S]; returns float
    [B, S, D]. TableETC's hidden states begin with its global tokens.

    Args:
        num_heads: H; ValueError if it is below 1.
        head_size: E; the same.
        attention: the kind of attention and its options.
        temperature: divides the attention scores.
        dropout: the rate for the attention probabilities.
        initializer_range: standard deviation of the kernels' initializer.
    """

    def __init__(
        self,
        num_heads: int,
        head_size: int,
        attention: AttentionConfig | dict[str, Any],
        temperature: float = 1.0,
        dropout: float = 0.0,
        initializer_range: float = 0.02,
        **kwargs,
    ):
        super().__init__(**kwargs)
        expected = "expected num_heads and head_size of at least 1"
        require(min(num_heads, head_size) > 0, f"{expected}, got {num_heads} and {head_size}")
        if isinstance(attention, dict):
            attention = from_dict(AttentionConfig, attention, "attention")
        self.num_heads = num_heads
        self.head_size = head_size
        self.attention = attention
        self.temperature = temperature
        self.dropout_rate = dropout
        self.initializer_range = initializer_range
        units = num_heads * head_size
        self.query = self._linear(units, "query")
        self.key = self._linear(units, "key")
        self.value = self._linear(units, "value")
        self.relations = None
        options: tuple = ()
        if isinstance(attention, TableFormerConfig):
            options = attention.relation_kind, attention.disabled_relations
        elif isinstance(attention, MateNeighboursConfig):
            options = (NEIGHBOURS,)
        sizes, dtype = (num_heads, head_size), self.dtype_policy
        if options:
            self.relations = RelationBias(*sizes, *options, name="relations", dtype=dtype)
        self.dropout = Dropout(dropout, name="dropout", dtype=dtype)
        self.supports_masking = True
        heads = Heads(*sizes, attention, temperature, self.compute_dtype, self.relations)
        self.use(implementation_of(heads))
        self.has_custom_implementation = False

    def _linear(self, units: int, name: str) -> Linear:
        return Linear(units, None, self.initializer_range, name=name, dtype=self.dtype_policy)

    def use(self, implementation: Implementation) -> None:
        """Attends by an implementation from now on, which may be your own (docs/layers.md)."""
        self.implementation, self.has_custom_implementation = implementation, True
        self.plan, self.attend = implementation.plan, implementation.attend

    def build(self, hidden_shape, *_) -> None:
        hidden_size = hidden_shape[-1]
        for projection in (self.query, self.key, self.value):
            projection.build((None, None, hidden_size))
        self.output_projection = self._linear(hidden_size, "output")
        self.output_projection.build((None, None, self.num_heads * self.head_size))
        if self.relations is not None:
            self.relations.build()
        if isinstance(self.implementation, Linformer | TableETC):
            self.implementation.build(self)

    def call(
        self,
        hidden_states: tf.Tensor,
        features: TokenFeatures | None = None,
        plan: Any = None,
        training: bool = False,
        seed: tf.Tensor | None = None,
        hidden_states_mask: tf.Tensor | None = None,
        *,
        return_attention_scores: bool = False,
    ) -> tf.Tensor | tuple[tf.Tensor, tf.Tensor]:
        """Attends, from float [B, S, D] to float [B, S, D].

        It takes token features int [B, S], or what `TokenFeatures.of` takes; or, for callers with
        several layers, the result of `plan(features)`; ValueError without both. The seed, int32
        [2], is from the dropout's `draw_seed`; None draws one. Keras's mask of the hidden states,
        bool [B, S], hides tokens as `input_mask` does; it is for features, not for a plan.

        With `return_attention_scores` the probabilities, float [B, H, S, S], are returned too, as
        by Keras's MultiHeadAttention; ValueError for an attention that has none of pairs of tokens.
        """
        training = bool(training)
        if plan is None:
            if features is None:
                raise ValueError(f"layer {self.name!r} expected token features or a plan")
            features = TokenFeatures.of(features)
            if hidden_states_mask is not None:
                seen = tf.cast(hidden_states_mask, tf.int32)[:, -sequence_length(features) :]
                features = features._replace(input_mask=features.input_mask * seen)
            plan = self.plan(features, training=training)
        dropout = None
        if training and self.dropout_rate:
            seed = self.dropout.draw_seed() if seed is None else seed
            dropout = SeededDropout(self.dropout_rate, seed)
        attend = self._recomputed if training and compiles_with_xla() else self.attend
        projected = self.heads(hidden_states)
        context = attend(projected, plan, dropout, training)  # [B, S, H, E]
        shape = [-1, tf.shape(hidden_states)[1], self.num_heads * self.head_size]
        outputs = self.output_projection(tf.reshape(context, shape))
        if not return_attention_scores:
            return outputs
        return outputs, self._scores(projected, plan, training)

    def _scores(self, projected: Projected, plan: Any, training: bool) -> tf.Tensor:
        """The context of values that are the identity, E columns at a time: [B, H, S, S]."""
        self._check_pairs()
        shape, size = tf.shape(projected.value), self.head_size
        columns = tf.eye(shape[1], -(-shape[1] // size) * size, dtype=projected.value.dtype)
        parts = tf.transpose(tf.reshape(columns, [shape[1], -1, size]), [1, 0, 2])  # [N, S, E]

        @tf.autograph.experimental.do_not_convert
        def attend(part: tf.Tensor) -> tf.Tensor:
            value = tf.broadcast_to(part[:, None], shape)
            return self.attend(projected._replace(value=value), plan, None, training)

        scores = tf.transpose(tf.map_fn(attend, parts), [1, 3, 2, 0, 4])  # [B, H, S, N, E]
        return tf.reshape(scores, [shape[0], shape[2], shape[1], -1])[..., : shape[1]]

    def _check_pairs(self) -> None:
        if isinstance(self.attention, LinformerConfig | TableETCConfig):
            raise ValueError(
                "expected an attention among pairs of tokens for return_attention_scores, got "
                f"{self.attention.architecture!r}, which has global or projected ones between them"
            )

    def _recomputed(
        self, projected: Projected, plan: Any, dropout: SeededDropout | None, training: bool
    ) -> tf.Tensor:
        """The same context; the gradient computes it again from query, key and value.

        Views, scores, probabilities and masks take several times the memory of all else in a layer,
        and few of its operations. On an accelerator memory is what is short.
        """

        @tf.recompute_grad
        def attend(*tensors: tf.Tensor) -> tf.Tensor:
            again = dropout and dropout._replace(seed=seeds_after(dropout.seed, tensors[0]))
            return self.attend(Projected(*tensors), plan, again, training)

        return attend(*projected)

    def heads(self, hidden_states: tf.Tensor) -> Projected:
        """Queries, keys and values of hidden states [B, S, D]: float [B, S, H, E] each."""
        shape = [-1, tf.shape(hidden_states)[1], self.num_heads, self.head_size]
        projections = (self.query, self.key, self.value)
        return Projected(*(tf.reshape(project(hidden_states), shape) for project in projections))

    def compute_output_shape(self, hidden_shape, *_):
        return hidden_shape

    def compute_output_spec(self, hidden, *args, return_attention_scores=False, **kwargs):
        output = super().compute_output_spec(hidden, *args, **kwargs)
        if not return_attention_scores:
            return output
        self._check_pairs()
        shape = hidden.shape[0], self.num_heads, hidden.shape[1], hidden.shape[1]
        return output, keras.KerasTensor(shape, self.compute_dtype)

    def get_config(self):
        names = ("num_heads", "head_size", "temperature", "initializer_range")
        attention = dataclasses.asdict(self.attention)
        own = attributes(self, *names) | {"attention": attention, "dropout": self.dropout_rate}
        return super().get_config() | own


@keras.saving.register_keras_serializable(package="mate_tf")
class MultiViewAttention(SelfAttention):
    """MATE's self-attention, linear in the sequence length (MATE paper, section 3).

    Called on hidden states float [B, S, D] and token features int [B, S]; returns float
    [B, S, D], for any S. Question tokens beyond the global part see only neighbouring buckets.
    docs/mate_in_one_file.py computes the same in NumPy, in few lines, to be read.

    Args:
        num_heads, head_size: H and E.
        row_heads_ratio, bucket_size, global_size, original_bucketing, dense_up_to: as `MateConfig`
            has them.
        architecture: "mate", or "mate_tableformer" to learn biases for TableFormer's relations,
            whose `relation_kind` and `disabled_relations` are options then, or "mate_neighbours"
            for biases of the cells above and below.
        **kwargs: temperature, dropout and initializer_range of `SelfAttention`, and Keras's.

    Example:
        >>> from mate_tf.features.token_features import TokenFeatures
        >>> ids = tf.constant([[0, 0, 1, 1, 2, 2]])
        >>> zeros, ones = tf.zeros_like(ids), tf.ones_like(ids)
        >>> features = TokenFeatures(
        ...     input_ids=ones, input_mask=ones, segment_ids=tf.minimum(ids, 1),
        ...     column_ids=tf.constant([[0, 0, 1, 2, 1, 2]]), row_ids=ids, prev_label_ids=zeros,
        ...     column_ranks=zeros, inv_column_ranks=zeros, numeric_relations=zeros)
        >>> layer = MultiViewAttention(num_heads=2, head_size=4, bucket_size=2, global_size=2)
        >>> layer(tf.ones([1, 6, 8]), features).shape
        TensorShape([1, 6, 8])
    """

    def __init__(
        self,
        num_heads: int,
        head_size: int,
        row_heads_ratio: float = 0.5,
        bucket_size: int = 42,
        global_size: int = 116,
        original_bucketing: bool = False,
        architecture: str = "mate",
        relation_kind: str = "scalar",
        disabled_relations: tuple[int, ...] = (),
        dense_up_to: int | None = 0,
        **kwargs: Any,
    ):
        names = architectures_of(MateConfig)
        expected = f"expected architecture in {names} of a MultiViewAttention"
        require(architecture in names, f"{expected}, got {architecture!r}")
        options: dict[str, Any] = dict(
            architecture=architecture,
            row_heads_ratio=row_heads_ratio,
            bucket_size=bucket_size,
            global_size=global_size,
            original_bucketing=original_bucketing,
            dense_up_to=dense_up_to,
        )
        if architecture == "mate_tableformer":
            disabled = tuple(disabled_relations)
            options |= dict(relation_kind=relation_kind, disabled_relations=disabled)
        attention = from_dict(AttentionConfig, options, "attention")
        super().__init__(num_heads, head_size, attention, **kwargs)

    def get_config(self):
        config, left_out = super().get_config(), ("evaluator", "coverage")
        attention = config.pop("attention").items()
        return config | {name: value for name, value in attention if name not in left_out}
