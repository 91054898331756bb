"""The sum of embeddings at the bottom of an encoder.

Shapes: B batch, S sequence, N tokens (B * S), G global (0 except in TableETC), D hidden, V rows of
a table.
"""

import functools
from collections.abc import Sequence

import keras
import tensorflow as tf

from mate_tf.config import TYPE_FEATURES, EncoderConfig, TableETCConfig
from mate_tf.features.token_features import TokenFeatures
from mate_tf.layers.basic import Dropout, LayerNorm, normal_initializer
from mate_tf.layers.compilation import OnePass, custom_gradient
from mate_tf.private_apis import compiles_with_xla


def first_index_in_cell(features: TokenFeatures) -> tf.Tensor:
    """The index of the first token of each token's cell, for positions that restart in each cell.

    A cell is a run of equal ids. Question and padding are one cell that begins at index 0.

    Args:
        features: int [B, S] each, the table's tokens in row-major order.

    Returns:
        int32 [B, S].
    """
    row_ids, column_ids = features.row_ids, features.column_ids
    changed = (row_ids[:, 1:] != row_ids[:, :-1]) | (column_ids[:, 1:] != column_ids[:, :-1])
    begins = tf.pad(changed, [[0, 0], [1, 0]], constant_values=True)  # [B, S]
    length = tf.shape(row_ids)[1]
    index = tf.range(length)[None]  # [1, S]
    runs = tf.cumsum(tf.cast(begins, tf.int32), axis=1) - 1  # [B, S], the cell's number
    first = _segment_min(tf.broadcast_to(index, tf.shape(runs)), runs, length)
    outside_table = (row_ids == 0) & (column_ids == 0)
    return tf.where(outside_table, 0, first)


def original_first_index_in_cell(features: TokenFeatures) -> tf.Tensor:
    """The same, with the cell numbers of the authors' release, column * 256 + row.

    Row r >= 256 of a column shares its number with row r - 256 of the next column, and both take
    the smaller first index.
    """
    cells = features.column_ids * 256 + features.row_ids  # [B, S]
    index = tf.broadcast_to(tf.range(tf.shape(cells)[1])[None], tf.shape(cells))
    return _segment_min(index, tf.minimum(cells, 256 * 256 - 1), 256 * 256)


def _segment_min(
    values: tf.Tensor, segments: tf.Tensor, num_segments: int | tf.Tensor
) -> tf.Tensor:
    """The smallest value of each token's segment; rows share no segments. [B, S]."""
    batch = tf.shape(values)[0]
    offset = tf.range(batch)[:, None] * num_segments  # [B, 1]
    flat = tf.reshape(segments + offset, [-1])
    smallest = tf.math.unsorted_segment_min(tf.reshape(values, [-1]), flat, batch * num_segments)
    return tf.reshape(tf.gather(smallest, flat), tf.shape(values))


class TableEmbedding(keras.layers.Layer):
    """The normalised sum of word, type and position embeddings (TAPAS paper, section 3).

    Called on token features int [B, S]; returns float [B, G + S, D]. Learned global tokens come
    first. A type id beyond its vocabulary takes the last embedding, or with `original_ids`
    (EncoderConfig) none.
    """

    def __init__(self, config: EncoderConfig, **kwargs):
        super().__init__(**kwargs)
        self.config = config
        dtype = self.dtype_policy
        self.layer_norm = LayerNorm(config.layer_norm_epsilon, name="layer_norm", dtype=dtype)
        self.dropout = Dropout(config.hidden_dropout, name="dropout", dtype=dtype)

    def build(self, input_shape=None) -> None:
        config = self.config

        def table(rows: int, name: str):
            return self.add_weight(
                shape=(rows, config.hidden_size),
                initializer=normal_initializer(config.initializer_range),
                autocast=False,  # it would cast the whole table to read a few rows
                name=name,
            )

        self.word_embeddings = table(config.vocab_size, "word_embeddings")
        self.position_embeddings = None
        if config.position != "none":
            self.position_embeddings = table(config.max_position_embeddings, "position_embeddings")
        self.type_embeddings = {
            feature: table(rows, f"token_type_embeddings_{index}")
            for index, (feature, rows) in enumerate(
                zip(TYPE_FEATURES, config.type_vocab_sizes, strict=True)
            )
            if feature not in config.disabled_features
        }
        self.global_embeddings = None
        if isinstance(config.attention, TableETCConfig):
            self.global_embeddings = table(config.attention.num_global_tokens, "global_embeddings")
        self.layer_norm.build((None, None, config.hidden_size))

    def call(self, features: TokenFeatures, training: bool = False) -> tf.Tensor:
        tables, ids = [self.word_embeddings], [self._checked(features.input_ids)]
        for feature, table in self.type_embeddings.items():
            tables.append(table)
            ids.append(getattr(features, feature))
        if self.position_embeddings is not None:
            tables.append(self.position_embeddings)
            ids.append(self._positions(features))
        embedding = summed_rows(
            [tf.convert_to_tensor(table) for table in tables],
            ids,
            zero_beyond=self.config.original_ids,
        )
        if self.global_embeddings is not None:
            global_tokens = tf.cast(tf.convert_to_tensor(self.global_embeddings), embedding.dtype)
            global_tokens = tf.repeat(global_tokens[None], tf.shape(embedding)[0], axis=0)
            embedding = tf.concat([global_tokens, embedding], axis=1)  # [B, G + S, D]
        return self.dropout(self.layer_norm(embedding), training=training)

    def _checked(self, input_ids: tf.Tensor) -> tf.Tensor:
        """The ids, checked against the vocabulary, except in XLA."""
        if compiles_with_xla():
            return input_ids
        size = self.config.vocab_size
        what = f"expected input_ids from 0 to {size - 1} (vocab_size), got"
        wrong = tf.boolean_mask(input_ids, (input_ids < 0) | (input_ids >= size))
        if tf.executing_eagerly():
            if tf.size(wrong):
                raise ValueError(f"{what} {int(wrong[0])}")
            return input_ids
        check = tf.debugging.Assert(tf.equal(tf.size(wrong), 0), [what, wrong[:1]])
        with tf.control_dependencies([check]):
            return tf.identity(input_ids)

    def _positions(self, features: TokenFeatures) -> tf.Tensor:
        """Each token's index in the position table. int32 [B, S]."""
        length = features.input_ids.shape[1]
        index = tf.zeros_like(features.input_ids) + tf.range(tf.shape(features.input_ids)[1])
        limit = self.config.max_position_embeddings
        if self.config.position == "absolute":
            if length is not None and length > limit:
                raise ValueError(
                    f"expected at most {limit} tokens with absolute positions, got {length}; "
                    "use position='per_cell'"
                )
            if length is not None or compiles_with_xla():
                return index
            what = f"expected at most {limit} tokens with absolute positions, got"
            tokens = tf.shape(index)[1]
            with tf.control_dependencies([tf.debugging.Assert(tokens <= limit, [what, tokens])]):
                return tf.identity(index)
        first_index = (
            original_first_index_in_cell if self.config.original_ids else first_index_in_cell
        )
        return tf.minimum(limit - 1, index - first_index(features))


def summed_rows(
    tables: Sequence[tf.Tensor], ids: Sequence[tf.Tensor], zero_beyond: bool
) -> tf.Tensor:
    """The sum of one row of each table, in one pass over memory, and its sparse gradients.

    Args:
        tables: float [V, D] each.
        ids: int32 [B, S] each.
        zero_beyond: whether an id beyond its table adds nothing. Otherwise it adds the last row.

    Returns:
        float32 [B, S, D].
    """
    shape = tf.shape(ids[0])
    ids = [tf.reshape(one, [-1]) for one in ids]

    @custom_gradient
    def summed(*tables: tf.Tensor):
        def gradient(upstream: tf.Tensor) -> list[tf.IndexedSlices]:
            return [
                _row_gradients(upstream, table, one, zero_beyond)
                for table, one in zip(tables, ids, strict=True)
            ]

        return _SUMS[zero_beyond](*map(tf.stop_gradient, tables), *ids), gradient

    rows = summed(*tables)  # [N, D]
    return tf.reshape(rows, tf.concat([shape, [tables[0].shape[1]]], axis=0))


def _sum(*tables_and_ids: tf.Tensor, zero_beyond: bool) -> tf.Tensor:
    """The sum float32 [N, D] of rows; first all tables [V, D], then the ids [N] of each."""
    half = len(tables_and_ids) // 2
    total = 0.0
    for table, ids in zip(tables_and_ids[:half], tables_and_ids[half:], strict=True):
        rows = tf.cast(tf.gather(table, _inside(ids, table)), tf.float32)
        if zero_beyond:
            rows = tf.where(_is_inside(ids, table)[:, None], rows, 0.0)
        total += rows
    return total


def _row_gradients(
    upstream: tf.Tensor, table: tf.Tensor, ids: tf.Tensor, zero_beyond: bool
) -> tf.IndexedSlices:
    if zero_beyond:
        upstream = tf.where(_is_inside(ids, table)[:, None], upstream, 0.0)
    return tf.IndexedSlices(tf.cast(upstream, table.dtype), _inside(ids, table), tf.shape(table))


def _inside(ids: tf.Tensor, table: tf.Tensor) -> tf.Tensor:
    return tf.clip_by_value(ids, 0, tf.shape(table)[0] - 1)


def _is_inside(ids: tf.Tensor, table: tf.Tensor) -> tf.Tensor:
    return (ids >= 0) & (ids < tf.shape(table)[0])


_SUMS = {
    zero_beyond: OnePass(functools.partial(_sum, zero_beyond=zero_beyond))
    for zero_beyond in (False, True)
}
