"""Heads and their patterns: which tokens may attend to which, and in what order a head sees them.

A new pattern is an entry of PATTERNS here, under the name that a config has for it
(mate_tf/config.py); windows and tiles follow from it, and all pairs (`Dense`), the reference and
the faster choice for short inputs.

A pattern is a small function of the features of query and key tokens, those of STRUCTURE
(features/token_features.py), which broadcast against each other. It returns a bool tensor that
broadcasts to [..., F, T], True where the query may attend to the key. Patterns ignore padding; the
attention layers mask it as a key.

Sorted by row or by column, tokens that may attend to each other are neighbours. The first G tokens
of an order are its global part. The rest, its long part, is cut into N buckets of R tokens, with
padding at its end (MATE paper, section 3 and figure 2).

Shapes: B batch, S sequence, P padded sequence (G + N * R), G global, N buckets, R radius (bucket
size), H heads, h heads of a group, E head size, F from (queries), T to (keys), K relations.
"""

import dataclasses
import functools
import itertools
import operator
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import tensorflow as tf

from mate_tf.config import AttentionConfig, GrammarHardConfig, GrammarSoftConfig, MateConfig
from mate_tf.dataclass_json import require
from mate_tf.features.token_features import TokenFeatures
from mate_tf.layers.attention.relations import (
    NEIGHBOURS,
    RelatedTags,
    RelationBias,
    allowed_tags,
    as_pairs,
    favoured_tags,
    relation_scores,
)
from mate_tf.layers.attention.softmax import dense_attention, scores_are_small
from mate_tf.layers.basic import SeededDropout
from mate_tf.layers.compilation import custom_gradient

Pattern = Callable[[TokenFeatures, TokenFeatures], tf.Tensor]
# A number of each token, int [...]. Tokens of the table that attend to each other share it.
SortKey = Callable[[TokenFeatures], tf.Tensor]


def everywhere(*_: TokenFeatures) -> tf.Tensor:
    """Every token to every token (TAPAS)."""
    return tf.constant(True)


def same_row(query: TokenFeatures, key: TokenFeatures) -> tf.Tensor:
    """Tokens of the same row; the column headers are a row of their own."""
    return tf.equal(query.row_ids, key.row_ids)


def same_column(query: TokenFeatures, key: TokenFeatures) -> tf.Tensor:
    """Tokens of the same column, its header included."""
    return tf.equal(query.column_ids, key.column_ids)


def global_token(query: TokenFeatures, key: TokenFeatures) -> tf.Tensor:
    """To and from the tokens outside the table: [CLS], the question and [SEP]."""
    return tf.equal(query.segment_ids, 0) | tf.equal(key.segment_ids, 0)


def row(features: TokenFeatures) -> tf.Tensor:
    """Brings the tokens of a row together."""
    return features.row_ids


def column(features: TokenFeatures) -> tf.Tensor:
    """Brings the tokens of a column together."""
    return features.column_ids


def any_of(*patterns: Pattern) -> Pattern:
    """Allowed where at least one of the patterns allows it."""
    return lambda query, key: functools.reduce(
        operator.or_, (pattern(query, key) for pattern in patterns)
    )


@dataclasses.dataclass(frozen=True)
class HeadGroup:
    """Consecutive attention heads that share a pattern."""

    num_heads: int
    pattern: Pattern  # who may attend to whom
    sort_by: SortKey | None = None  # its order brings tokens that attend to each other together
    name: str = "all heads"  # for people
    adds_itself: bool = False  # whether each token attends to itself, whatever the pattern says


def head_groups(config: AttentionConfig, num_heads: int) -> tuple[HeadGroup, ...]:
    """The head groups of an architecture, in the order of its heads.

    ValueError for TableETC, whose pattern also depends on positions and global tokens.
    """
    name = config.architecture
    message = f"expected an architecture of patterns, got {name!r}; see table_etc.py"
    require(name in PATTERNS, message)
    return tuple(group for group in PATTERNS[name](config, num_heads) if group.num_heads)


def _one_group(pattern: Pattern) -> Callable[[Any, int], tuple[HeadGroup, ...]]:
    return lambda _, num_heads: (HeadGroup(num_heads, pattern),)


def _mate(config: MateConfig, num_heads: int) -> tuple[HeadGroup, ...]:
    """As of the MATE paper, section 3."""
    row_heads = int(num_heads * config.row_heads_ratio)
    return (
        HeadGroup(row_heads, any_of(same_row, global_token), row, "row heads"),
        HeadGroup(num_heads - row_heads, any_of(same_column, global_token), column, "column heads"),
    )


def _grammar_hard(config: GrammarHardConfig, num_heads: int) -> tuple[HeadGroup, ...]:
    related = RelatedTags(allowed_tags(config.grammar_rules))
    return (HeadGroup(num_heads, related, adds_itself=True),)


PATTERNS: dict[str, Callable[[Any, int], tuple[HeadGroup, ...]]] = {
    **dict.fromkeys(("tapas", "tableformer", "linformer", "grammar_soft"), _one_group(everywhere)),
    "sat": _one_group(any_of(same_row, same_column, global_token)),
    **dict.fromkeys(("mate", "mate_tableformer", "mate_neighbours"), _mate),
    "grammar_hard": _grammar_hard,
}


@dataclasses.dataclass(frozen=True, eq=False)
class Heads:
    """The layer that an implementation of attention computes for."""

    num_heads: int  # H
    head_size: int  # E
    attention: AttentionConfig  # the pattern and its parameters
    temperature: float  # divides the attention scores
    compute_dtype: str  # of the scores
    relations: RelationBias | None = None  # the layer's

    @property
    def scale(self) -> float:
        """The factor of the attention scores."""
        return 1.0 / (self.temperature * self.head_size**0.5)

    @property
    def groups(self) -> tuple[HeadGroup, ...]:
        """The head groups of the architecture."""
        return head_groups(self.attention, self.num_heads)

    def relations_of(self, group: HeadGroup) -> RelationBias | None:
        """The relations that a group's heads may see: those within rows see no neighbouring row."""
        within_rows = group.sort_by is row
        is_seen = self.relations is None or self.relations.kind != NEIGHBOURS or not within_rows
        return self.relations if is_seen else None

    def scores_are_small(self, projected: "Projected") -> tf.Tensor | None:
        """As `softmax.scores_are_small`; None also with vectors of relations."""
        biases: tuple[tf.Tensor, ...] = ()
        if self.relations is not None:
            biases = self.relations.tables(0, self.num_heads)
        if len(biases) > 1:
            return None
        return scores_are_small(projected.query, projected.key, self.scale, *biases)


class Projected(NamedTuple):
    """Projections of hidden states to all heads: float [B, S, H, E] each, or their tiles."""

    query: tf.Tensor
    key: tf.Tensor
    value: tf.Tensor


class GroupInputs(NamedTuple):
    """The tensors that a head group attends with."""

    projected: Projected  # float [B, h, S, E] each, or their tiles
    tables: tuple[tf.Tensor, ...] = ()  # of its heads' relations (`RelationBias.tables`), if any
    dropout: SeededDropout | None = None  # applied to its attention probabilities
    scores_are_small: tf.Tensor | None = None  # as of `Heads`


def heads_first(tensor: tf.Tensor) -> tf.Tensor:
    """[B, S, H, E] to [B, H, S, E], or back."""
    return tf.transpose(tensor, [0, 2, 1, 3])


@dataclasses.dataclass(eq=False)
class ByGroups:
    """An implementation of attention (`kinds.Implementation`) that computes group by group."""

    heads: Heads

    # Whether it asks if scores are small in inference, False, and in training, True.
    asks_in: ClassVar[tuple[bool, ...]] = (False,)

    def plan_group(self, features: TokenFeatures, group: HeadGroup) -> Any:
        """The tensors that the layers share for a group."""
        raise NotImplementedError

    def attend_group(self, inputs: GroupInputs, plan: Any) -> tf.Tensor:
        """The context of a group: float [B, h, S, E]."""
        raise NotImplementedError

    def plan(self, features: TokenFeatures, training: bool = False) -> tuple[Any, ...]:
        features = features.structure()
        return tuple(self.plan_group(features, group) for group in self.heads.groups)

    def attend(
        self,
        projected: Projected,
        plan: tuple[Any, ...],
        dropout: SeededDropout | None,
        training: bool = False,
    ) -> tf.Tensor:
        are_small = self.heads.scores_are_small(projected) if training in self.asks_in else None
        sizes = [group.num_heads for group in self.heads.groups]
        first_heads = itertools.accumulate([0, *sizes[:-1]])

        def by_group(tensor: tf.Tensor) -> list[tf.Tensor]:
            """The heads of each group: [B, S, H, E] to [B, h, S, E] each."""
            if len(set(sizes)) > 1:
                return [heads_first(part) for part in tf.split(tensor, sizes, axis=2)]
            # One copy, whose parts need no other.
            shape = [-1, tf.shape(tensor)[1], len(sizes), sizes[0], self.heads.head_size]
            return tf.unstack(tf.transpose(tf.reshape(tensor, shape), [2, 0, 3, 1, 4]))

        parts = zip(self.heads.groups, first_heads, plan, *map(by_group, projected), strict=True)
        contexts: list[tf.Tensor] = []
        for index, (group, first_head, group_plan, *tensors) in enumerate(parts):
            relations = self.heads.relations_of(group)
            tables = () if relations is None else relations.tables(first_head, group.num_heads)
            dropped = dropout and dropout.fold_in(index)
            inputs = GroupInputs(Projected(*tensors), tables, dropped, are_small)
            with tf.control_dependencies(contexts):  # the views before are freed by then
                contexts.append(self.attend_group(inputs, group_plan))
        context = tf.concat(contexts, axis=1) if len(contexts) > 1 else contexts[0]
        return heads_first(context)  # and back: [B, S, H, E]


def pattern_mask(pattern: Pattern, query: TokenFeatures, key: TokenFeatures) -> tf.Tensor:
    """The pattern between features [..., F] of queries and [..., T] of keys, without padding.

    Returns bool that broadcasts to [..., F, T]; ValueError if the pattern returns anything else.
    """
    query, key = as_pairs(query, key)  # [..., F, 1], [..., 1, T]
    allowed = tf.convert_to_tensor(pattern(query, key))
    pairs = tf.broadcast_static_shape(query.input_mask.shape, key.input_mask.shape)
    try:
        fits = tf.broadcast_static_shape(allowed.shape, pairs).is_compatible_with(pairs)
    except ValueError:
        fits = False
    name = getattr(pattern, "__name__", type(pattern).__name__)
    require(
        allowed.dtype == tf.bool and fits,
        f"expected pattern {name!r} to return bool of a shape that broadcasts to {pairs}, got "
        f"{allowed.dtype.name} of shape {allowed.shape}",
    )
    return allowed & tf.greater(key.input_mask, 0)


def group_mask(group: HeadGroup, features: TokenFeatures) -> tf.Tensor:
    """The pairs of queries and real keys that a head group allows. bool [B, S or 1, S]."""
    mask = pattern_mask(group.pattern, features, features)
    if group.adds_itself:
        real = tf.greater(features.input_mask, 0)[:, None]  # [B, 1, S]
        mask |= tf.eye(tf.shape(real)[-1], dtype=tf.bool) & real
    return mask


def num_buckets(
    length: int | tf.Tensor, bucket_size: int | tf.Tensor, global_size: int
) -> int | tf.Tensor:
    """The number of buckets of the long part; at least one."""
    number = -(-(length - global_size) // bucket_size)
    return max(1, number) if isinstance(number, int) else tf.maximum(1, number)


def sequence_length(features: TokenFeatures) -> int | tf.Tensor:
    """S, an int if the shape is static."""
    static = features.input_mask.shape[-1]
    return tf.shape(features.input_mask)[-1] if static is None else static


def token_order(features: TokenFeatures, sort_by: SortKey) -> tf.Tensor:
    """The tokens sorted by a key: those outside the table first, padding last. int32 [B, S].

    Ties keep their order.
    """
    ids = sort_by(features)
    is_outside = tf.equal(features.segment_ids, 0)
    ids = tf.where(is_outside, ids.dtype.min, ids)  # the global part begins with them
    key = tf.where(features.input_mask > 0, ids, ids.dtype.max)  # [B, S]
    return tf.argsort(key, axis=-1, stable=True)


def token_rank(order: tf.Tensor) -> tf.Tensor:
    """The inverse of an order: each token's place in it. int32 [B, S]."""
    return tf.argsort(order, axis=-1, stable=True)


def ordered_features(
    features: TokenFeatures, order: tf.Tensor, length: int | tf.Tensor
) -> TokenFeatures:
    """The features in an order int32 [B, S], padded with zeros to a length: int [B, P] each."""
    padding = [[0, 0], [0, length - sequence_length(features)]]
    return features.map(lambda feature: tf.pad(tf.gather(feature, order, batch_dims=1), padding))


@custom_gradient
def in_order(tensor: tf.Tensor, order: tf.Tensor, rank: tf.Tensor):
    """Brings tokens into an order with padding: float [B, h, S, E] to [B, h, P, E].

    The order, int32 [B, P], has the positions of the tokens, then those of some token as padding;
    the rank, int32 [B, S], each token's place. The gradient is a gather too. TensorFlow's would sum
    index by index, at many times the cost.
    """

    def gradient(upstream: tf.Tensor) -> tuple[tf.Tensor, None, None]:
        return in_sequence(upstream, order, rank), None, None

    return tf.gather(tensor, order, axis=2, batch_dims=1), gradient


@custom_gradient
def in_sequence(ordered: tf.Tensor, order: tf.Tensor, rank: tf.Tensor):
    """Brings tokens back from an order with padding: the inverse of `in_order`."""

    def gradient(upstream: tf.Tensor) -> tuple[tf.Tensor, None, None]:
        is_real = tf.range(tf.shape(order)[1]) < tf.shape(rank)[1]  # [P]
        ordered = in_order(upstream, order, rank)
        return tf.where(is_real[:, None], ordered, tf.zeros([], upstream.dtype)), None, None

    return tf.gather(ordered, rank, axis=2, batch_dims=1), gradient


def bucket_ids(rank: tf.Tensor, bucket_size: int, global_size: int) -> tf.Tensor:
    """The bucket of each token, from 1; 0 for the global part. int32 [B, S]."""
    return tf.maximum((rank - global_size) // bucket_size + 1, 0)


def window_pairs(
    features: TokenFeatures, sort_by: SortKey | None, config: AttentionConfig
) -> tf.Tensor | None:
    """The pairs that a window computes, so that `Dense` can do the same: bool [B, F, T], or None.

    One of the two is in the global part, or their buckets are the same or adjacent.
    """
    if not (sort_by and isinstance(config, MateConfig) and config.bucket_size) or config.coverage:
        return None
    rank = token_rank(token_order(features, sort_by))
    bucket = bucket_ids(rank, config.bucket_size, config.global_size)  # [B, S]
    query, key = bucket[:, :, None], bucket[:, None, :]
    distance = tf.abs(query - key)
    allowed = (distance <= 1) | (query == 0) | (key == 0)
    if config.original_bucketing:  # the authors' release also joins distant buckets
        allowed |= distance == tf.shape(rank)[-1] // config.bucket_size - 2
    return allowed


class DensePlan(NamedTuple):
    """The tensors that an encoder's layers share for one head group."""

    mask: tf.Tensor  # bool, broadcasts to [B, 1, F, T]
    relations: tf.Tensor | None  # one-hot, float [B, K, F, T]
    bias: tf.Tensor | None  # float, broadcasts to [B, 1, F, T], added to the scores


class Dense(ByGroups):
    """All pairs, under the mask of a pattern.

    With a bucket size only the pairs of a window attend to each other.
    """

    asks_in = ()  # the softmax of all pairs is one kernel

    def plan(self, features: TokenFeatures, training: bool = False) -> tuple[DensePlan, ...]:
        heads, attention = self.heads, self.heads.attention
        relations = bias = None
        if heads.relations is not None:
            relations = heads.relations.one_hot(features, features)  # [B, K, F, T]
        if isinstance(attention, GrammarSoftConfig):
            related = RelatedTags(favoured_tags(attention.grammar_rules))
            favoured = pattern_mask(related, features, features)[:, None]  # [B, 1, F, T]
            bias = attention.grammar_bias * tf.cast(favoured, heads.compute_dtype)
        plans = []
        for group in heads.groups:
            mask = group_mask(group, features)  # [B, F or 1, T]
            in_window = window_pairs(features, group.sort_by, attention)
            if in_window is not None:
                mask &= in_window
            group_relations = None if heads.relations_of(group) is None else relations
            plans.append(DensePlan(mask[:, None], group_relations, bias))
        return tuple(plans)

    def attend_group(self, inputs: GroupInputs, plan: DensePlan) -> tf.Tensor:
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
