"""TableETC: ETC's global-local attention, with a global token for each row and column of a table.

The attention sees G global tokens followed by the S tokens. The first half of the global tokens
stands for rows, the header row first; the second half stands for columns. A global token attends
to everything. A token attends to the global tokens, and to the tokens within a radius.

Each pair of tokens has an integer label. For two tokens of the sequence it is their clipped
distance. For a pair with a global token it says whether the token belongs to that row or column. A
learned vector of the label is added to the key (Shaw et al., 2018, equation 4; ETC: Ainslie et al.,
2020, section 3; MATE paper, section 5.1). Computed by blocks, the cost is linear in S.

Shapes: B batch, S sequence, G global, L long (N * R), N blocks, R radius (block size), W window
(3 * R), M largest relative distance, K labels, H heads, E head size, D hidden, F from, T to.
"""

import dataclasses
from typing import Any, NamedTuple

import keras
import tensorflow as tf

from mate_tf.config import TableETCConfig
from mate_tf.features.token_features import TokenFeatures
from mate_tf.layers.attention import patterns
from mate_tf.layers.attention.multi_view import MultiView, multi_view_attention
from mate_tf.layers.attention.softmax import dense_attention
from mate_tf.layers.basic import SeededDropout
from mate_tf.layers.compilation import refuse_unless

# Labels of pairs with a global token: token to another global token, to its row, to its column;
# global token to another token, row to its token, column to its token; global token to another, to
# itself. The labels of clipped distances follow, from DISTANCE on.
FROM_GLOBAL, GLOBAL_TO_GLOBAL, DISTANCE = 3, 6, 8


def membership(features: TokenFeatures, attention: TableETCConfig) -> tf.Tensor:
    """Each token's label, from 0 to 2, for each global token: other, its row or its column.

    Only tokens of the table belong to a row or column; a token of column 0 belongs to a row only.

    From features int [B, S]; returns int32 [B, S, G]. If an example has more rows or columns than
    there are global tokens, and they are not shared, it is refused (`refuse_unless`); in XLA such
    rows and columns belong to no global token.
    """
    half = attention.num_global_tokens // 2
    in_table = (features.input_mask > 0) & tf.equal(features.segment_ids, 1)  # [B, S]
    row = tf.where(in_table, tf.cast(features.row_ids, tf.int32), -1)
    column = tf.where(in_table, tf.cast(features.column_ids, tf.int32) - 1, -1)
    checks = []
    if attention.share_global_tokens:
        row = tf.where(row >= 0, row % half, -1)
        column = tf.where(column >= 0, column % half, -1)
    else:
        names = {"rows, the header row among them,": row, "columns": column}
        for name, ids in names.items():
            count = tf.reduce_max(ids) + 1
            checks += refuse_unless(
                count <= half,
                f"expected at most {half} {name} with num_global_tokens "
                f"{attention.num_global_tokens}, got",
                count,
                "in an example; raise num_global_tokens or set share_global_tokens",
            )
    with tf.control_dependencies(checks):
        numbers = tf.range(half)
        own_row = tf.cast(tf.equal(row[..., None], numbers), tf.int32)  # [B, S, G / 2]
        own_column = tf.cast(tf.equal(column[..., None], numbers), tf.int32)
        return tf.concat([own_row, 2 * own_column], axis=-1)


def real_keys(features: TokenFeatures, to_global: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Global tokens that stand for a row or column, bool [B, G]; the real tokens, bool [B, S]."""
    return tf.reduce_any(to_global > 0, axis=1), tf.greater(features.input_mask, 0)


class AllPairsPlan(NamedTuple):
    """The tensors that an encoder's layers share, to compute all pairs."""

    mask: tf.Tensor  # bool [B, 1, G + S, G + S]
    label: tf.Tensor  # int32 [B, G + S, G + S]


class GlobalLocalPlan(NamedTuple):
    """The tensors that an encoder's layers share, to compute blocks."""

    global_mask: tf.Tensor  # bool [B, 1, 1, G + S]
    long_mask: tf.Tensor  # bool [B, 1, N, R, G + W]
    membership: tf.Tensor  # int32 [B, 1, G, S], see the function `membership`
    long_membership: tf.Tensor  # int32 [B, 1, N, R, G], the same by blocks of tokens


def all_pairs_plan(features: TokenFeatures, attention: TableETCConfig) -> AllPairsPlan:
    """The mask and the label of every pair, from features int [B, S]."""
    to_global = membership(features, attention)  # [B, S, G]
    keys = tf.concat(real_keys(features, to_global), axis=1)  # [B, G + S]
    batch, length = tf.unstack(tf.shape(features.input_mask))
    size = attention.num_global_tokens
    position = tf.range(length)
    distance = position - position[:, None]  # [S, S], how far each key is after each query
    near = tf.abs(distance) <= attention.local_radius
    allowed = tf.pad(near, [[size, 0], [size, 0]], constant_values=True)  # [G + S, G + S]

    def repeated(label: tf.Tensor) -> tf.Tensor:
        return tf.repeat(label[None], batch, axis=0)

    largest = attention.max_relative_distance
    by_distance = DISTANCE + tf.clip_by_value(distance, -largest, largest) + largest
    to_token = FROM_GLOBAL + tf.transpose(to_global, [0, 2, 1])  # [B, G, S]
    between = GLOBAL_TO_GLOBAL + repeated(tf.eye(size, dtype=tf.int32))  # [B, G, G]
    from_global = tf.concat([between, to_token], axis=2)  # [B, G, G + S]
    from_token = tf.concat([to_global, repeated(by_distance)], axis=2)  # [B, S, G + S]
    return AllPairsPlan(
        mask=(allowed & keys[:, None])[:, None],
        label=tf.concat([from_global, from_token], axis=1),
    )


def global_local_plan(features: TokenFeatures, attention: TableETCConfig) -> GlobalLocalPlan:
    """The masks and labels of the blocks, from features int [B, S]."""
    radius, size = attention.local_radius, attention.num_global_tokens
    to_global = membership(features, attention)  # [B, S, G]
    real_global, real = real_keys(features, to_global)  # [B, G], [B, S]
    length = patterns.sequence_length(features)
    blocks = patterns.num_buckets(length, radius, 0)
    missing = blocks * radius - length
    long_membership = tf.pad(to_global, [[0, 0], [0, missing], [0, 0]])
    long_membership = tf.reshape(long_membership, [-1, blocks, radius, size])
    position = tf.reshape(tf.range(blocks * radius), [1, blocks, radius])
    real_blocks = tf.reshape(tf.pad(real, [[0, 0], [0, missing]]), [-1, blocks, radius])
    distance = windows(position, axis=1)[:, :, None] - position[..., None]  # [1, N, R, W]
    to_window = tf.abs(distance) <= radius
    to_window &= windows(real_blocks, axis=1)[:, :, None]  # [B, N, R, W]
    to_globals = real_global[:, None, None] & tf.ones([blocks, radius, 1], tf.bool)
    return GlobalLocalPlan(
        global_mask=tf.concat([real_global, real], axis=1)[:, None, None],
        long_mask=tf.concat([to_globals, to_window], axis=-1)[:, None],
        membership=tf.transpose(to_global, [0, 2, 1])[:, None],
        long_membership=long_membership[:, None],
    )


def windows(blocks: tf.Tensor, axis: int) -> tf.Tensor:
    """Each block on an axis between the previous and the next one, with zeros beyond the ends.

    Unlike in MATE's windows, the ends are not joined, so no key is repeated. Keys are in the order
    of their positions, so a distance is a shift. [..., N, R, ...] to [..., N, W, ...].
    """
    paddings = [[0, 0]] * blocks.shape.rank
    paddings[axis] = [1, 1]
    padded = tf.pad(blocks, paddings)
    number = blocks.shape[axis] or tf.shape(blocks)[axis]
    # Here and below a split, because the gradient of a slice is many times slower on a CPU.
    previous, _ = tf.split(padded, [number, 2], axis=axis)
    _, following = tf.split(padded, [2, number], axis=axis)
    return tf.concat([previous, blocks, following], axis=axis + 1)


def global_local_views(tensor: tf.Tensor, num_global_tokens: int, radius: int) -> MultiView:
    """The views of projected hidden states [B, H, G + S, E] that attend to each other."""
    length = (tensor.shape[2] or tf.shape(tensor)[2]) - num_global_tokens
    blocks = patterns.num_buckets(length, radius, 0)
    global_, tokens = tf.split(tensor, [num_global_tokens, length], axis=2)
    tokens = tf.pad(tokens, [[0, 0], [0, 0], [0, blocks * radius - length], [0, 0]])
    _, heads, _, head_size = tensor.shape
    long = tf.reshape(tokens, [-1, heads, blocks, radius, head_size])  # [B, H, N, R, E]
    return MultiView(tensor, global_, long, windows(long, axis=2))


def scores_by_membership(scores: tf.Tensor, label: tf.Tensor) -> tf.Tensor:
    """The score of each pair, float [..., F, T], from those with each of few labels, [..., F, k].

    The labels, int32 from 0 to k - 1, broadcast to [..., F, T].
    """
    picked, *others = tf.split(scores, scores.shape[-1], axis=-1)
    for index, score in enumerate(others, start=1):
        picked = tf.where(tf.equal(label, index), score, picked)
    return picked


def scores_by_distance(scores: tf.Tensor) -> tf.Tensor:
    """The score of each pair of a block and its window, from those of the clipped distances.

    From float [..., R, 2 * M + 1], of distances from -M to M, to [..., R, W]. Each query has a row
    of all distances between a block and its window. Its own window starts one place earlier than
    that of the query before, so the rows are read one place too short (Huang et al., 2018, section
    3.4). Without a gather, no gradient is scattered.
    """
    *_, radius, distances = scores.shape
    largest, clipped = 2 * radius - 1, distances // 2
    inner = min(largest, clipped)
    _, scores, _ = tf.split(scores, [clipped - inner, 2 * inner + 1, clipped - inner], axis=-1)
    first, _ = tf.split(scores, [1, 2 * inner], axis=-1)
    _, last = tf.split(scores, [2 * inner, 1], axis=-1)
    leading = tf.shape(scores)[:-2]
    beyond = tf.concat([leading, [radius, largest - inner]], axis=0)
    row = 4 * radius
    before, after = tf.broadcast_to(first, beyond), tf.broadcast_to(last, beyond)
    # [..., R, 4 * R]: distances from -(2 * R - 1) to 2 * R - 1, and one place to shift
    strip = tf.concat([before, scores, after, tf.zeros_like(first)], axis=-1)
    flat = tf.reshape(strip, tf.concat([leading, [radius * row]], axis=0))
    _, flat, _ = tf.split(flat, [radius - 1, radius * (row - 1), 1], axis=-1)
    shifted = tf.reshape(flat, tf.concat([leading, [radius, row - 1]], axis=0))
    to_window, _ = tf.split(shifted, [3 * radius, radius - 1], axis=-1)
    return to_window


@dataclasses.dataclass(eq=False)
class TableETC:
    """An `Implementation` with weights: `label_embeddings`, float [K, H, E].

    It attends from and to G + S tokens, the global tokens first; global tokens and others share
    their projections. With evaluator "dense" all pairs are computed, with the same mask and labels.
    The labels' vectors start at zero, so training begins with BERT's plain attention.
    """

    heads: patterns.Heads
    attention: TableETCConfig

    def build(self, layer: keras.layers.Layer) -> None:
        num_labels = DISTANCE + 2 * self.attention.max_relative_distance + 1
        # TensorFlow saves what is an attribute of the layer.
        self.label_embeddings = layer.label_embeddings = layer.add_weight(
            shape=(num_labels, self.heads.num_heads, self.heads.head_size),
            initializer="zeros",
            name="relative_label_embeddings",
        )

    def plan(
        self, features: TokenFeatures, training: bool = False
    ) -> AllPairsPlan | GlobalLocalPlan:
        make = global_local_plan if self.attention.is_linear else all_pairs_plan
        return make(features, self.attention)

    def attend(
        self,
        projected: patterns.Projected,
        plan: AllPairsPlan | GlobalLocalPlan,
        dropout: SeededDropout | None,
        training: bool = False,
    ) -> tf.Tensor:
        query, key, value = map(patterns.heads_first, projected)  # [B, H, G + S, E]
        table = tf.cast(tf.convert_to_tensor(self.label_embeddings), query.dtype)  # [K, H, E]
        # It is added to the scores after their division, so it is divided too.
        table *= tf.cast(self.heads.scale, query.dtype)
        options: dict[str, Any] = dict(temperature=self.heads.temperature, dropout=dropout)
        if isinstance(plan, AllPairsPlan):
            by_label = tf.einsum("BHFE,KHE->BHFK", query, table)
            label = tf.repeat(plan.label[:, None], self.heads.num_heads, axis=1)  # [B, H, F, T]
            bias = tf.gather(by_label, label, batch_dims=3)
            return patterns.heads_first(
                dense_attention(query, key, value, plan.mask, bias=bias, **options)
            )
        size, radius = self.attention.num_global_tokens, self.attention.local_radius
        views = [global_local_views(tensor, size, radius) for tensor in (query, key, value)]
        global_bias, long_bias = self._label_scores(views[0], table, plan)
        context = multi_view_attention(
            *views,
            global_mask=plan.global_mask,
            long_mask=plan.long_mask,
            global_bias=global_bias,
            long_bias=long_bias,
            **options,
        )  # [B, H, G + L, E]
        return patterns.heads_first(tf.slice(context, [0] * 4, [-1, -1, tf.shape(query)[2], -1]))

    def _label_scores(
        self, queries: MultiView, table: tf.Tensor, plan: GlobalLocalPlan
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """The labels' part of the scores: float [B, H, G, G + S] and [B, H, N, R, G + W]."""
        sizes = [FROM_GLOBAL, GLOBAL_TO_GLOBAL - FROM_GLOBAL, DISTANCE - GLOBAL_TO_GLOBAL, -1]
        to_global, from_global, between, distance = tf.split(table, sizes)

        def by_label(part: tf.Tensor, vectors: tf.Tensor) -> tf.Tensor:
            return tf.einsum("bh...e,khe->bh...k", part, vectors)

        def by_membership(part: tf.Tensor, vectors: tf.Tensor, label: tf.Tensor) -> tf.Tensor:
            return scores_by_membership(by_label(part, vectors), label)

        global_, long = queries.global_, queries.long
        itself = tf.eye(self.attention.num_global_tokens, dtype=tf.int32)
        global_scores = [
            by_membership(global_, between, itself),
            by_membership(global_, from_global, plan.membership),
        ]
        long_scores = [
            by_membership(long, to_global, plan.long_membership),
            scores_by_distance(by_label(long, distance)),
        ]
        return tf.concat(global_scores, axis=-1), tf.concat(long_scores, axis=-1)
