"""Pre-training: words to fill in, and whether a table belongs to its text (TAPAS, section 4).

Shapes: B batch, S sequence, P predictions, D hidden, V vocabulary.
"""

from collections.abc import Mapping

import keras
import tensorflow as tf

from mate_tf.features.token_features import TokenFeatures
from mate_tf.layers.basic import LayerNorm, Linear
from mate_tf.models.encoder_task import EncoderTask, add_pooled_head, pooled_logits
from mate_tf.task_configs import MaskedLMConfig

# In the mean over predicted tokens, for a batch without any; as in BERT's published code.
_EPSILON = 1e-5


@keras.saving.register_keras_serializable(package="mate_tf")
class MaskedLanguageModel(EncoderTask):
    """Predicts masked words with the encoder's own embedding (Devlin et al., 2019, section 3.1).

    Call it with TokenFeatures of int32 [B, S] and the positions to predict, int32 [B, P], which may
    also be among the features as masked_lm_positions, or without for all (P = S); it returns a dict
    of float32 tensors:

        masked_lm_logits [B, P, V]
        next_sentence_logits [B, 2]: with `next_sentence`; class 1 is a table drawn at random.
    """

    normalized_by = ("masked_lm_weights",)
    label = "masked_lm_ids"
    config_class = MaskedLMConfig
    task_config: MaskedLMConfig

    def make_layers(self) -> None:
        config, dtype = self.encoder_config, self.dtype_policy
        sizes = config.hidden_size, config.activation, config.initializer_range
        self.transform = Linear(*sizes, name="transform", dtype=dtype)
        epsilon = config.layer_norm_epsilon
        self.layer_norm = LayerNorm(epsilon, name="transform_layer_norm", dtype=dtype)

    def make_weights(self) -> None:
        config = self.encoder_config
        self.transform.build((None, None, config.hidden_size))
        self.layer_norm.build((None, None, config.hidden_size))
        # Without autocast: logits are float32, whatever the encoder uses.
        self.output_bias = self.add_weight(
            shape=(config.vocab_size,), initializer="zeros", autocast=False, name="output_bias"
        )
        if self.task_config.next_sentence:
            shape, names = (2, config.hidden_size), ("next_sentence_weights", "next_sentence_bias")
            self.next_sentence_weights, self.next_sentence_bias = add_pooled_head(
                self, shape, *names, config.initializer_range
            )

    def checkpoint_variables(self) -> dict[str, keras.Variable]:
        """The variables whose names in checkpoints have a scope."""
        names = {
            "cls/predictions/transform/dense/kernel": self.transform.kernel,
            "cls/predictions/transform/dense/bias": self.transform.bias,
            "cls/predictions/transform/LayerNorm/gamma": self.layer_norm.gamma,
            "cls/predictions/transform/LayerNorm/beta": self.layer_norm.beta,
            "cls/predictions/output_bias": self.output_bias,
        }
        if self.task_config.next_sentence:
            names["cls/seq_relationship/output_weights"] = self.next_sentence_weights
            names["cls/seq_relationship/output_bias"] = self.next_sentence_bias
        return names

    def call(
        self, features: TokenFeatures, positions: tf.Tensor | None = None, training: bool = False
    ) -> dict[str, tf.Tensor]:
        if positions is None and isinstance(features, Mapping):
            positions = features.get("masked_lm_positions")
        encoded = self.encoder(features, training=training)
        hidden = encoded.sequence_output  # [B, S, D]
        if positions is not None:
            hidden = tf.gather(hidden, positions, batch_dims=1)  # [B, P, D]
        hidden = self.layer_norm(self.transform(hidden))
        words = tf.cast(tf.convert_to_tensor(self.encoder.embedding.word_embeddings), hidden.dtype)
        flat = tf.reshape(hidden, [-1, words.shape[1]])
        logits = tf.cast(tf.matmul(flat, words, transpose_b=True), tf.float32)
        logits += self.output_bias  # [B * P, V]
        shape = tf.concat([tf.shape(hidden)[:-1], [words.shape[0]]], axis=0)
        outputs = {"masked_lm_logits": tf.reshape(logits, shape)}
        if self.task_config.next_sentence:
            outputs["next_sentence_logits"] = pooled_logits(
                encoded.pooled_output, self.next_sentence_weights, self.next_sentence_bias
            )  # [B, 2]
        return outputs

    def model_inputs(self, batch: Mapping[str, tf.Tensor]) -> tuple[TokenFeatures, tf.Tensor]:
        return TokenFeatures.from_dict(batch), batch["masked_lm_positions"]

    def compute_task_loss(
        self, batch: Mapping[str, tf.Tensor], outputs: Mapping[str, tf.Tensor]
    ) -> dict[str, tf.Tensor]:
        """The weighted mean cross-entropy of the words, plus that of the tables.

        A batch has masked_lm_ids int32 and masked_lm_weights float32 [B, P], 0 where nothing is
        masked; with `next_sentence` also is_random_table int32 [B, 1]. A part of a larger batch
        also has mean_masked_lm_weights, float32 [], the weights of a mean part.

        Returns:
            "loss", the sum of "masked_lm_loss" and, with `next_sentence`, "next_sentence_loss". The
            first is "masked_lm_sum" divided by the sum of weights, in a mean part if the batch is
            one, so that the mean over parts is that of the larger batch. The second is the mean of
            "next_sentence_example_loss" [B]. Also "masked_lm_token_loss" [B, P], not weighted.
        """
        token_loss = tf.nn.sparse_softmax_cross_entropy_with_logits(
            batch["masked_lm_ids"], outputs["masked_lm_logits"]
        )  # [B, P]
        weighted = tf.reduce_sum(token_loss * batch["masked_lm_weights"])
        weight = batch.get("mean_masked_lm_weights")
        if weight is None:
            weight = tf.reduce_sum(batch["masked_lm_weights"])
        losses = {
            "masked_lm_loss": weighted / (weight + _EPSILON),
            "masked_lm_sum": weighted,
            "masked_lm_token_loss": token_loss,
        }
        loss = losses["masked_lm_loss"]
        if self.task_config.next_sentence:
            example_loss = tf.nn.sparse_softmax_cross_entropy_with_logits(
                tf.reshape(batch["is_random_table"], [-1]), outputs["next_sentence_logits"]
            )
            losses["next_sentence_example_loss"] = example_loss
            losses["next_sentence_loss"] = tf.reduce_mean(example_loss)
            loss += losses["next_sentence_loss"]
        return {"loss": loss} | losses
