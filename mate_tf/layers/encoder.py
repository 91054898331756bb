"""A Transformer encoder that reads a question together with its table.

At its bottom the embeddings of each token's ids are summed. Then each block attends and transforms.

Shapes: B batch, S sequence, N tokens (B * S), G global (0 except in TableETC), D hidden, V rows of
a table.
"""

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import keras
import tensorflow as tf

from mate_tf.config import TYPE_FEATURES, EncoderConfig, TableETCConfig
from mate_tf.features.token_features import TokenFeatures
from mate_tf.layers.attention.kinds import ByLength, SelfAttention
from mate_tf.layers.attention.patterns import sequence_length
from mate_tf.layers.basic import Dropout, LayerNorm, Linear, normal_initializer, seeds_after
from mate_tf.layers.compilation import OnePass, custom_gradient, many_lengths, refuse_unless
from mate_tf.private_apis import compiles_with_xla, xla_barrier


def first_index_in_cell(features: TokenFeatures) -> tf.Tensor:
    """The index of the first token of each token's cell, for positions that restart in each cell.

    A cell is a run of equal ids, in row-major order. Question and padding are one cell that begins
    at index 0. From features int [B, S] to int32 [B, S].
    """
    first = _first_index(cell_numbers(features.row_ids, features.column_ids) - 1)
    outside_table = (features.row_ids == 0) & (features.column_ids == 0)
    return tf.where(outside_table, 0, first)


def cell_numbers(row_ids: tf.Tensor, column_ids: tf.Tensor) -> tf.Tensor:
    """Numbers the runs of equal ids, int [B, S] each, from 1: int32 [B, S]."""
    changed = (row_ids[:, 1:] != row_ids[:, :-1]) | (column_ids[:, 1:] != column_ids[:, :-1])
    begins = tf.pad(changed, [[0, 0], [1, 0]], constant_values=True)  # [B, S]
    return tf.cumsum(tf.cast(begins, tf.int32), axis=1)


def original_first_index_in_cell(features: TokenFeatures) -> tf.Tensor:
    """The same, with the cell numbers of the authors' release, column * 256 + row.

    Row r >= 256 of a column shares its number with row r - 256 of the next column, and both take
    the smaller first index.
    """
    cells = features.column_ids * 256 + features.row_ids  # [B, S]
    return _first_index(tf.minimum(cells, 256 * 256 - 1), 256 * 256)


def _first_index(cells: tf.Tensor, num_cells: int | None = None) -> tf.Tensor:
    index = tf.broadcast_to(tf.range(tf.shape(cells)[1])[None], tf.shape(cells))  # [B, S]
    first = reduce_segments(tf.math.unsorted_segment_min, index, cells, num_cells)
    return tf.gather(first, cells, batch_dims=1)


def reduce_segments(
    reduction: Callable[..., tf.Tensor],
    values: tf.Tensor,
    segments: tf.Tensor,
    num_segments: int | None = None,
) -> tf.Tensor:
    """Reduces values [B, N] over segments [B, N] of each example: [B, num_segments or N].

    Integers in the result are at least 0.
    """
    batch_size, length = tf.unstack(tf.shape(values))
    size = num_segments or values.shape[1] or length
    offsets = tf.range(batch_size)[:, tf.newaxis] * size  # [B, 1]
    reduced = reduction(
        tf.reshape(values, [-1]), tf.reshape(segments + offsets, [-1]), batch_size * size
    )
    reduced = tf.reshape(reduced, [batch_size, size])
    return tf.maximum(reduced, 0) if reduced.dtype.is_integer else reduced


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
            initializer = normal_initializer(config.initializer_range)
            # Autocast would cast the whole table to read a few rows.
            shape = rows, config.hidden_size
            return self.add_weight(shape, initializer, autocast=False, name=name)

        self.word_embeddings = table(config.vocab_size, "word_embeddings")
        self.position_embeddings = None
        if config.position != "none":
            self.position_embeddings = table(config.max_position_embeddings, "position_embeddings")
        sizes = zip(TYPE_FEATURES, config.type_vocab_sizes, strict=True)
        self.type_embeddings = {
            feature: table(rows, f"token_type_embeddings_{index}")
            for index, (feature, rows) in enumerate(sizes)
            if feature not in config.disabled_features
        }
        self.global_embeddings = None
        if isinstance(config.attention, TableETCConfig):
            self.global_embeddings = table(config.attention.num_global_tokens, "global_embeddings")
        self.layer_norm.build((None, None, config.hidden_size))

    def call(self, features: TokenFeatures, training: bool = False) -> tf.Tensor:
        tables = [self.word_embeddings, *self.type_embeddings.values()]
        ids = [self._checked(features.input_ids)]
        ids += [getattr(features, feature) for feature in self.type_embeddings]
        if self.position_embeddings is not None:
            tables.append(self.position_embeddings)
            ids.append(self._positions(features))
        tables = [tf.convert_to_tensor(table) for table in tables]
        embedding = summed_rows(tables, ids, zero_beyond=self.config.original_ids)
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
        wrong = tf.boolean_mask(input_ids, (input_ids < 0) | (input_ids >= size))
        message = f"expected input_ids from 0 to {size - 1} (vocab_size), got"
        check = refuse_unless(tf.equal(tf.size(wrong), 0), message, tf.reduce_max(wrong))
        with tf.control_dependencies(check):
            return tf.identity(input_ids)

    def _positions(self, features: TokenFeatures) -> tf.Tensor:
        """Each token's index in the position table. int32 [B, S]."""
        length = sequence_length(features)
        index = tf.zeros_like(features.input_ids) + tf.range(length)
        limit = self.config.max_position_embeddings
        if self.config.position == "absolute":
            what = "absolute positions, or position='per_cell'"
            message = f"expected at most {limit} tokens with {what}, got"
            check = refuse_unless(length <= limit, message, length)
            with tf.control_dependencies(check):
                return tf.identity(index)
        is_original = self.config.original_ids
        first_index = original_first_index_in_cell if is_original else first_index_in_cell
        return tf.minimum(limit - 1, index - first_index(features))


def summed_rows(
    tables: Sequence[tf.Tensor], ids: Sequence[tf.Tensor], zero_beyond: bool
) -> tf.Tensor:
    """The sum of one row of each table, in one pass over memory, and its sparse gradients.

    From tables float [V, D] and ids int32 [B, S] to float32 [B, S, D]. An id beyond its table adds
    nothing if `zero_beyond`, otherwise the last row.
    """
    shape = tf.shape(ids[0])
    ids = [tf.reshape(one, [-1]) for one in ids]

    @custom_gradient
    def summed(*tables: tf.Tensor):
        def gradient(upstream: tf.Tensor) -> list[tf.IndexedSlices]:
            slices = []
            for table, one in zip(tables, ids, strict=True):
                inside = _inside(one, table)
                rows = upstream
                if zero_beyond:
                    rows = tf.where((one == inside)[:, None], rows, 0.0)
                rows = tf.cast(rows, table.dtype)
                slices.append(tf.IndexedSlices(rows, inside, tf.shape(table)))
            return slices

        # Without the barrier XLA sums up again in the gradient, and keeps the rows of each table.
        return xla_barrier(_SUMS[zero_beyond](*map(tf.stop_gradient, tables), *ids)), gradient

    rows = summed(*tables)  # [N, D]
    return tf.reshape(rows, tf.concat([shape, [tables[0].shape[1]]], axis=0))


def _sum(*tables_and_ids: tf.Tensor, zero_beyond: bool) -> tf.Tensor:
    """The sum float32 [N, D] of rows; first all tables [V, D], then the ids [N] of each."""
    half = len(tables_and_ids) // 2
    total = 0.0
    for table, ids in zip(tables_and_ids[:half], tables_and_ids[half:], strict=True):
        inside = _inside(ids, table)
        rows = tf.cast(tf.gather(table, inside), tf.float32)
        total += tf.where((ids == inside)[:, None], rows, 0.0) if zero_beyond else rows
    return total


def _inside(ids: tf.Tensor, table: tf.Tensor) -> tf.Tensor:
    return tf.clip_by_value(ids, 0, tf.shape(table)[0] - 1)


_SUMS = {
    zero_beyond: OnePass(functools.partial(_sum, zero_beyond=zero_beyond))
    for zero_beyond in (False, True)
}


def recomputed(block: keras.layers.Layer, hidden_states: tf.Tensor, plan: Any) -> tf.Tensor:
    """Runs an `EncoderBlock` in training and keeps only its input, float [B, G + S, D].

    The gradient computes the block again (Chen et al., 2016, "Training deep nets with sublinear
    memory cost").
    """
    seeds = block.draw_seeds()  # drawn inside, they would differ the second time

    @tf.recompute_grad
    def run(hidden_states: tf.Tensor) -> tf.Tensor:
        # The second time, the hidden states wait for the gradient from above. What depends only on
        # seeds, masks and weights must wait too: most of that memory is dropout's masks.
        waiting = seeds_after(seeds, hidden_states)
        with tf.control_dependencies([hidden_states]):
            return block(hidden_states, plan=plan, training=True, seeds=waiting)

    return run(hidden_states)


class EncoderOutput(NamedTuple):
    """The encoder's output for a batch."""

    sequence_output: tf.Tensor  # float [B, S, D], a vector for each token
    pooled_output: tf.Tensor  # float [B, D], a tanh projection of the first token
    # On request "embedding" and "layer_0", "layer_1", ...: float [B, S, D].
    intermediates: dict[str, tf.Tensor]


class EncoderBlock(keras.layers.Layer):
    """Attention and feed-forward, each followed by residual sum and normalisation.

    Called on hidden states float [B, G + S, D] and the attention's plan; returns the same shape
    (Vaswani et al., 2017, section 3.1, in BERT's post-normalised form).
    """

    def __init__(self, config: EncoderConfig, **kwargs):
        super().__init__(**kwargs)
        self.config = config
        epsilon, initializer_range = config.layer_norm_epsilon, config.initializer_range
        dtype = self.dtype_policy
        self.attention = SelfAttention(
            *(config.num_heads, config.head_size, config.attention),
            *(config.softmax_temperature, config.attention_dropout, initializer_range),
            name="attention",
            dtype=dtype,
        )
        self.attention_layer_norm = LayerNorm(epsilon, name="attention_layer_norm", dtype=dtype)
        wide, narrow = config.intermediate_size, config.hidden_size
        options: dict[str, Any] = dict(initializer_range=initializer_range, dtype=dtype)
        self.intermediate = Linear(wide, config.activation, name="intermediate", **options)
        self.output_projection = Linear(narrow, name="output", **options)
        self.output_layer_norm = LayerNorm(epsilon, name="output_layer_norm", dtype=dtype)
        self.dropout = Dropout(config.hidden_dropout, name="dropout", dtype=dtype)

    def build(self, *_) -> None:
        hidden = (None, None, self.config.hidden_size)
        norms = self.attention_layer_norm, self.output_layer_norm
        for layer in (self.attention, self.intermediate, *norms):
            layer.build(hidden)
        self.output_projection.build((None, None, self.config.intermediate_size))

    def draw_seeds(self) -> tf.Tensor:
        """Seeds of dropout in the attention, after it and after the feed-forward. int32 [3, 2]."""
        dropouts = (self.attention.dropout, self.dropout, self.dropout)
        return tf.stack([dropout.draw_seed() for dropout in dropouts])

    def call(
        self,
        hidden_states: tf.Tensor,
        plan: Any,
        training: bool = False,
        seeds: tf.Tensor | None = None,
    ) -> tf.Tensor:
        first, second, third = [None] * 3 if seeds is None else tf.unstack(seeds)
        attended = self.attention(hidden_states, plan=plan, training=training, seed=first)
        attended = self.dropout(attended, training=training, seed=second)
        hidden_states = self.attention_layer_norm(attended, residual=hidden_states)
        transformed = self.output_projection(self.intermediate(hidden_states, training=training))
        transformed = self.dropout(transformed, training=training, seed=third)
        return self.output_layer_norm(transformed, residual=hidden_states)


def one_graph(
    blocks: Sequence[EncoderBlock], plan: Any
) -> Callable[[EncoderBlock, tf.Tensor], tf.Tensor] | None:
    """Runs a block in inference by a function that is traced once for all of them.

    Its arguments are the weights. None if the blocks differ in more: LoRA or int8 in some of them,
    or an attention of your own.

    The graph calls it: with a copy for each block, TensorFlow would take a second more to make it.
    """
    first = blocks[0]
    kinds = {tuple((one.shape, one.dtype) for one in block.weights) for block in blocks}
    if len(kinds) > 1 or any(block.attention.has_custom_implementation for block in blocks):
        return None

    @tf.function(autograph=False, experimental_attributes={"_noinline": True})
    def run(weights: list[tf.Tensor], hidden_states: tf.Tensor) -> tf.Tensor:
        with keras.StatelessScope(zip(first.weights, weights, strict=True)):
            return first(hidden_states, plan=plan, training=False)

    def call(block: EncoderBlock, hidden_states: tf.Tensor) -> tf.Tensor:
        # TensorFlow's optimizer does not look into the function, and warns of an unknown shape.
        given = [one.value for one in block.weights]
        return tf.ensure_shape(run(given, hidden_states), hidden_states.shape)

    return call


@keras.saving.register_keras_serializable(package="mate_tf")
class TableEncoder(keras.layers.Layer):
    """Encodes a question and its table (TAPAS and MATE papers, section 3 of each).

    Called on token features int [B, S], any S; returns an `EncoderOutput`. The attribute
    `recompute` says whether each layer's gradient computes the layer again in training, which takes
    more time and less memory; it is False until it is set.

    Example:
        >>> from mate_tf.config import EncoderConfig, TableETCConfig
        >>> encoder = TableEncoder(EncoderConfig(
        ...     vocab_size=50, hidden_size=8, num_layers=1, num_heads=2, intermediate_size=16))
        >>> features = TokenFeatures(*[tf.ones([1, 6], tf.int32)] * 9)
        >>> encoder(features).sequence_output.shape
        TensorShape([1, 6, 8])
    """

    def __init__(self, config: EncoderConfig, **kwargs):
        kwargs.setdefault("name", "encoder")
        super().__init__(**kwargs)
        self.config = config
        dtype = self.dtype_policy
        self.embedding = TableEmbedding(config, name="embedding", dtype=dtype)
        self.blocks = [
            EncoderBlock(config, name=f"layer_{index}", dtype=dtype)
            for index in range(config.num_layers)
        ]
        self.pooler = Linear(
            config.hidden_size, "tanh", config.initializer_range, name="pooler", dtype=dtype
        )
        self.recompute = False

    def build(self, input_shape=None) -> None:
        """Creates the weights; they do not depend on the input."""
        self.embedding.build()
        for block in self.blocks:
            block.build()
        self.pooler.build((None, self.config.hidden_size))
        self.built = True

    def is_short(self, length: int) -> bool:
        """Whether attention computes all pairs of so many tokens, but tiles or views of more."""
        implementation = self.blocks[0].attention.implementation
        return isinstance(implementation, ByLength) and length <= implementation.longest(False)

    def enable_lora(self, rank: int, names: Sequence[str] = ("query", "value")) -> None:
        """Trains of the encoder, from now on, only low-rank changes (Hu et al., 2021, "LoRA").

        Those are of each attention's projections: query, key, value or output_projection.
        """
        for variable in self.trainable_variables:
            variable.trainable = False
        for block in self.blocks:
            for name in names:
                getattr(block.attention, name).enable_lora(rank)

    def call(
        self,
        features: TokenFeatures,
        training: bool | None = None,
        return_intermediates: bool = False,
    ) -> EncoderOutput:
        """Encodes a batch.

        The features are int [B, S] each, also as a mapping or sequence (`TokenFeatures.of`).
        `training`, whether dropout is on, is what `fit` says if it is None, as in every Keras
        layer. With `return_intermediates` the embedding and each layer's output are returned too.

        ValueError if features are missing or differ in shape, if the sequence is longer than
        absolute positions reach, or if a table has more rows or columns than TableETC has global
        tokens for.
        """
        if isinstance(features, Mapping) and "input_ids" not in features:
            raise ValueError(f"expected input_ids among the features, got {sorted(features)}")
        training = bool(training)
        features = TokenFeatures.of(features)
        hidden_states = self.embedding(features, training=training)  # [B, G + S, D]
        intermediates = {"embedding": self._token_states(hidden_states)}
        # Orders and masks depend only on the ids, so all layers share them.
        plan = self.blocks[0].attention.plan(features, training)
        shared = one_graph(self.blocks, plan) if many_lengths() and not training else None
        for index, block in enumerate(self.blocks):
            # The last layer's gradient comes first: computing it again would save nothing.
            if training and self.recompute and block is not self.blocks[-1]:
                hidden_states = recomputed(block, hidden_states, plan)
            elif shared:
                hidden_states = shared(block, hidden_states)
            else:
                hidden_states = block(hidden_states, plan=plan, training=training)
            intermediates[f"layer_{index}"] = self._token_states(hidden_states)
        sequence_output = self._token_states(hidden_states)
        return EncoderOutput(
            sequence_output=sequence_output,
            pooled_output=self.pooler(sequence_output[:, 0]),
            intermediates=intermediates if return_intermediates else {},
        )

    def _token_states(self, hidden_states: tf.Tensor) -> tf.Tensor:
        """Cuts the global tokens off: [B, G + S, D] to [B, S, D]."""
        attention = self.config.attention
        if not isinstance(attention, TableETCConfig):
            return hidden_states
        return hidden_states[:, attention.num_global_tokens :]

    def get_config(self):
        return super().get_config() | {"config": self.config.to_dict()}

    @classmethod
    def from_config(cls, config):
        config = dict(config)
        config["config"] = EncoderConfig.from_dict(config["config"])
        return cls(**config)
