"""A Transformer encoder that reads a question together with its table.

Shapes: B batch, S sequence, G global (0 except in TableETC), D hidden.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import keras
import tensorflow as tf

from mate_tf.config import EncoderConfig, TableETCConfig
from mate_tf.features.token_features import TokenFeatures
from mate_tf.layers.attention.kinds import SelfAttention
from mate_tf.layers.basic import Dropout, LayerNorm, Linear, seeds_after
from mate_tf.layers.embedding import TableEmbedding


def recomputed(block: keras.layers.Layer, hidden_states: tf.Tensor, plan: Any) -> tf.Tensor:
    """Runs a block in training and keeps only its input; the gradient computes the block again.

    See Chen et al., 2016, "Training deep nets with sublinear memory cost".

    Args:
        block: an `EncoderBlock`.
        hidden_states: float [B, G + S, D].
        plan: the attention's.

    Returns:
        float [B, G + S, D].
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
    """The encoder's output for a batch.

    Attributes:
        sequence_output: float [B, S, D], a vector for each token.
        pooled_output: float [B, D], a tanh projection of the first token.
        intermediates: on request "embedding" and "layer_0", "layer_1", ...: float [B, S, D].
    """

    sequence_output: tf.Tensor
    pooled_output: tf.Tensor
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
            config.num_heads,
            config.hidden_size // config.num_heads,
            config.attention,
            config.softmax_temperature,
            config.attention_dropout,
            initializer_range,
            name="attention",
            dtype=dtype,
        )
        self.attention_layer_norm = LayerNorm(epsilon, name="attention_layer_norm", dtype=dtype)
        self.intermediate = Linear(
            config.intermediate_size,
            config.activation,
            initializer_range,
            name="intermediate",
            dtype=dtype,
        )
        self.output_projection = Linear(
            config.hidden_size, None, initializer_range, name="output", dtype=dtype
        )
        self.output_layer_norm = LayerNorm(epsilon, name="output_layer_norm", dtype=dtype)
        self.dropout = Dropout(config.hidden_dropout, name="dropout", dtype=dtype)

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
        recompute: whether each layer's gradient computes the layer again in training, which takes
            more time and less memory. It is False until it is set.

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

    def call(
        self,
        features: TokenFeatures,
        training: bool | None = None,
        return_intermediates: bool = False,
    ) -> EncoderOutput:
        """Encodes a batch.

        Args:
            features: int [B, S] each; also a mapping or a sequence of them (`TokenFeatures.of`).
            training: whether dropout is on; None, as in every Keras layer, takes what `fit` says.
            return_intermediates: whether to return the embedding and each layer's output too.

        Raises:
            ValueError: if features are missing or differ in shape, if the sequence is longer than
                absolute positions reach, or if a table has more rows or columns than TableETC has
                global tokens for.
        """
        if isinstance(features, Mapping) and "input_ids" not in features:
            raise ValueError(f"expected input_ids among the features, got {sorted(features)}")
        training = bool(training)
        features = TokenFeatures.of(features)
        intermediates = {}
        hidden_states = self.embedding(features, training=training)  # [B, G + S, D]
        intermediates["embedding"] = self._of_tokens(hidden_states)
        # Orders and masks depend only on the ids, so all layers share them.
        plan = self.blocks[0].attention.plan(features, training)
        for index, block in enumerate(self.blocks):
            # The last layer's gradient comes first: computing it again would save nothing.
            if training and self.recompute and block is not self.blocks[-1]:
                hidden_states = recomputed(block, hidden_states, plan)
            else:
                hidden_states = block(hidden_states, plan=plan, training=training)
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
