"""A Transformer encoder that reads a question together with its table.

Shapes: B batch, S sequence, G global (0 but for TableETC), D hidden, P positions.
"""

from typing import Any, NamedTuple

import keras
import tensorflow as tf

from mate_tf.attention.dense import DenseAttention
from mate_tf.attention.linformer import LinformerAttention
from mate_tf.attention.multi_view import OPTIONS, MultiViewAttention
from mate_tf.attention.projections import HeadProjections
from mate_tf.attention.table_etc import TableETCAttention
from mate_tf.attention.tiles import TiledAttention
from mate_tf.config import TYPE_FEATURES, EncoderConfig
from mate_tf.dropout import Dropout
from mate_tf.layer_norm import LayerNorm
from mate_tf.linear import Linear
from mate_tf.positions import first_index_in_cell, original_first_index_in_cell
from mate_tf.recomputation import recomputed
from mate_tf.tables.token_features import TokenFeatures


class EncoderOutput(NamedTuple):
    """What the encoder makes of a batch.

    Attributes:
        sequence_output: float [B, S, D], one vector a token.
        pooled_output: float [B, D], a tanh projection of the first token.
        intermediates: on request "embedding" and "layer_0", "layer_1", ...: float [B, S, D].
    """

    sequence_output: tf.Tensor
    pooled_output: tf.Tensor
    intermediates: dict[str, tf.Tensor]


def attention_layer(config: EncoderConfig, name: str) -> HeadProjections:
    """The attention layer that a configuration asks for."""
    attention = config.attention
    common: dict[str, Any] = dict(
        num_heads=config.num_heads,
        head_size=config.head_size,
        temperature=config.softmax_temperature,
        dropout=config.attention_dropout,
        initializer_range=config.initializer_range,
        name=name,
    )
    if attention.architecture == "linformer":
        return LinformerAttention(attention=attention, **common)
    if attention.has_global_tokens:
        return TableETCAttention(attention=attention, **common)
    if not attention.is_multi_view:
        return DenseAttention(attention=attention, **common)
    if attention.coverage is not None:
        return TiledAttention(attention=attention, **common)
    return MultiViewAttention(
        **{option: getattr(attention, option) for option in OPTIONS}, **common
    )


class TableEmbedding(keras.layers.Layer):
    """The sum of word, type and position embeddings, normalised (TAPAS paper, section 3).

    Called on token features int [B, S]; returns float [B, G + S, D], an architecture's learned
    global tokens first. A type id beyond its vocabulary has the last embedding, or none with
    `original_ids` (EncoderConfig).
    """

    def __init__(self, config: EncoderConfig, **kwargs):
        super().__init__(**kwargs)
        self.config = config
        self.layer_norm = LayerNorm(config.layer_norm_epsilon, name="layer_norm")
        self.dropout = Dropout(config.hidden_dropout, name="dropout")

    def build(self, input_shape=None) -> None:
        config = self.config

        def table(rows: int, name: str):
            return self.add_weight(
                shape=(rows, config.hidden_size),
                initializer=keras.initializers.TruncatedNormal(stddev=config.initializer_range),
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
        if config.attention.has_global_tokens:
            self.global_embeddings = table(config.attention.num_global_tokens, "global_embeddings")
        self.layer_norm.build((None, None, config.hidden_size))

    def call(self, features: TokenFeatures, training: bool = False) -> tf.Tensor:
        self._check_ids(features.input_ids)
        embedding = tf.gather(tf.convert_to_tensor(self.word_embeddings), features.input_ids)
        for feature, weights in self.type_embeddings.items():
            ids = getattr(features, feature)
            embedding += _type_embedding(weights, ids, zero_beyond=self.config.original_ids)
        if self.position_embeddings is not None:
            positions = self._positions(features)
            embedding += tf.gather(tf.convert_to_tensor(self.position_embeddings), positions)
        if self.global_embeddings is not None:
            global_tokens = tf.convert_to_tensor(self.global_embeddings)[None]  # [1, G, D]
            global_tokens = tf.repeat(global_tokens, tf.shape(embedding)[0], axis=0)
            embedding = tf.concat([global_tokens, embedding], axis=1)  # [B, G + S, D]
        return self.dropout(self.layer_norm(embedding), training=training)

    def _check_ids(self, input_ids: tf.Tensor) -> None:
        """Refuses ids beyond the vocabulary, as far as they are known: not inside a graph."""
        if not tf.executing_eagerly() or not tf.size(input_ids):
            return
        lowest, highest = int(tf.reduce_min(input_ids)), int(tf.reduce_max(input_ids))
        if lowest < 0 or highest >= self.config.vocab_size:
            raise ValueError(
                f"expected input_ids from 0 to {self.config.vocab_size - 1} (vocab_size), got "
                f"{lowest if lowest < 0 else highest}"
            )

    def _positions(self, features: TokenFeatures) -> tf.Tensor:
        """The index into the position table of each token. int32 [B or 1, S]."""
        length = features.input_ids.shape[1]
        index = tf.range(tf.shape(features.input_ids)[1])[None]  # [1, S]
        limit = self.config.max_position_embeddings
        if self.config.position == "absolute":
            if length is not None and length > limit:
                raise ValueError(
                    f"expected at most {limit} tokens with absolute positions, got {length}; "
                    "use position='per_cell'"
                )
            return index
        first_index = (
            original_first_index_in_cell if self.config.original_ids else first_index_in_cell
        )
        return tf.minimum(limit - 1, index - first_index(features))


def _type_embedding(weights, ids: tf.Tensor, zero_beyond: bool) -> tf.Tensor:
    """Rows of a table; for ids beyond it the last row, or zero. float [B, S, D]."""
    weights = tf.convert_to_tensor(weights)
    rows = weights.shape[0]
    gathered = tf.gather(weights, tf.clip_by_value(ids, 0, rows - 1))
    if not zero_beyond:
        return gathered
    inside = (ids >= 0) & (ids < rows)
    return tf.where(inside[..., None], gathered, tf.zeros([], gathered.dtype))


class EncoderBlock(keras.layers.Layer):
    """Attention and feed-forward, each followed by residual sum and normalisation.

    Called on hidden states float [B, G + S, D] and the attention's plan; returns the same shape
    (Vaswani et al., 2017, section 3.1, in BERT's post-normalised form).
    """

    def __init__(self, config: EncoderConfig, **kwargs):
        super().__init__(**kwargs)
        self.config = config
        self.attention = attention_layer(config, "attention")
        self.attention_layer_norm = LayerNorm(
            config.layer_norm_epsilon, name="attention_layer_norm"
        )
        self.intermediate = Linear(
            config.intermediate_size,
            config.activation,
            config.initializer_range,
            name="intermediate",
        )
        self.output_projection = Linear(
            config.hidden_size, None, config.initializer_range, name="output"
        )
        self.output_layer_norm = LayerNorm(config.layer_norm_epsilon, name="output_layer_norm")
        self.dropout = Dropout(config.hidden_dropout, name="dropout")

    def build(self, *_) -> None:
        hidden = (None, None, self.config.hidden_size)
        for layer in (
            self.attention,
            self.attention_layer_norm,
            self.intermediate,
            self.output_layer_norm,
        ):
            layer.build(hidden)
        self.output_projection.build((None, None, self.config.intermediate_size))

    def draw_seeds(self) -> tf.Tensor:
        """Of the dropout in the attention, after it and after the feed-forward. int32 [3, 2]."""
        dropouts = (self.attention.dropout, self.dropout, self.dropout)
        return tf.stack([dropout.draw_seed() for dropout in dropouts])

    def call(
        self,
        hidden_states: tf.Tensor,
        plan: Any,
        training: bool = False,
        seeds: tf.Tensor | None = None,
    ) -> tf.Tensor:
        of_attention, of_attended, of_transformed = (
            [None] * 3 if seeds is None else tf.unstack(seeds)
        )
        attended = self.attention(hidden_states, plan=plan, training=training, seed=of_attention)
        attended = self.dropout(attended, training=training, seed=of_attended)
        hidden_states = self.attention_layer_norm(attended, residual=hidden_states)
        transformed = self.output_projection(self.intermediate(hidden_states, training=training))
        transformed = self.dropout(transformed, training=training, seed=of_transformed)
        return self.output_layer_norm(transformed, residual=hidden_states)


@keras.saving.register_keras_serializable(package="mate_tf")
class TableEncoder(keras.layers.Layer):
    """Encodes a question and its table (TAPAS and MATE papers, section 3 of each).

    Called on token features int [B, S], any S; returns an `EncoderOutput`.

    Args:
        config: sizes, positions and attention.

    Attributes:
        recompute: whether, in training, each layer's gradient computes the layer anew, which takes
            more time and less memory; False until it is set.

    Example:
        >>> from mate_tf.config import EncoderConfig
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
        self.embedding = TableEmbedding(config, name="embedding")
        self.blocks = [
            EncoderBlock(config, name=f"layer_{index}") for index in range(config.num_layers)
        ]
        self.pooler = Linear(config.hidden_size, "tanh", config.initializer_range, name="pooler")
        self.recompute = False

    def build(self, input_shape=None) -> None:
        """Creates the weights; they do not depend on the input."""
        self.embedding.build()
        for block in self.blocks:
            block.build()
        self.pooler.build((None, self.config.hidden_size))
        self.built = True

    def call(
        self,
        features: TokenFeatures,
        training: bool = False,
        return_intermediates: bool = False,
        token_weights: tf.Tensor | None = None,
    ) -> EncoderOutput:
        """Encodes a batch.

        Args:
            features: int [B, S] each.
            training: whether dropout is on.
            return_intermediates: whether to return the embedding and each layer's output too.
            token_weights: float [B, S], from 0 to 1: how much each token is attended to, in place
                of all or not at all (Krichene et al., 2021, on pruning tables).

        Raises:
            ValueError: if the sequence is longer than absolute positions reach, for weights with
                the multi-view evaluator or TableETC, or for more rows or columns than TableETC has
                global tokens for.
        """
        intermediates = {}
        hidden_states = self.embedding(features, training=training)  # [B, G + S, D]
        intermediates["embedding"] = self._of_tokens(hidden_states)
        # Orders and masks depend on the ids alone: computed once for all layers.
        plan = self.blocks[0].attention.plan(features, token_weights)
        for index, block in enumerate(self.blocks):
            # The last layer's gradient comes first: to compute it anew would save nothing.
            if training and self.recompute and block is not self.blocks[-1]:
                hidden_states = recomputed(
                    block, hidden_states, plan, has_gradient=token_weights is not None
                )
            else:
                hidden_states = block(hidden_states, plan, training=training)
            intermediates[f"layer_{index}"] = self._of_tokens(hidden_states)
        sequence_output = self._of_tokens(hidden_states)
        return EncoderOutput(
            sequence_output=sequence_output,
            pooled_output=self.pooler(sequence_output[:, 0]),
            intermediates=intermediates if return_intermediates else {},
        )

    def _of_tokens(self, hidden_states: tf.Tensor) -> tf.Tensor:
        """Cuts the global tokens off: [B, G + S, D] to [B, S, D]."""
        attention = self.config.attention
        if not attention.has_global_tokens:
            return hidden_states
        return hidden_states[:, attention.num_global_tokens :]

    def get_config(self):
        return super().get_config() | {"config": self.config.to_dict()}

    @classmethod
    def from_config(cls, config):
        config = dict(config)
        config["config"] = EncoderConfig.from_dict(config["config"])
        return cls(**config)
