"""TableFormer's relations: what a token is to another, learned as attention biases.

A relation is a pattern with an integer in place of the bool: it takes the features of query and
key tokens, shaped so that they broadcast, and returns int32 [..., F, T]. Of the order of rows and
columns it knows nothing.

Shapes: B batch, F from (queries), T to (keys), H heads, E head size, K relations.
"""

import keras
import tensorflow as tf

from mate_tf.config import NUM_RELATIONS
from mate_tf.tables.token_features import TokenFeatures

# The names of the TableFormer paper's figure 2 and section 4.1, in the order of the published
# checkpoints' tables.
RELATION_NAMES = (
    "other",
    "same row",
    "same column",
    "same cell",
    "cell to its column header",
    "cell to sentence",
    "header to cell of its column",
    "header to other header",
    "header to same header",
    "header to sentence",
    "sentence to cell",
    "sentence to header",
    "sentence to sentence",
)
assert len(RELATION_NAMES) == NUM_RELATIONS


def table_relation(query: TokenFeatures, key: TokenFeatures) -> tf.Tensor:
    """The relation of each query to each key (TableFormer paper, section 4.1).

    Args:
        query: features that broadcast against the key's.
        key: the same.

    Returns:
        int32, indices of RELATION_NAMES; of padding always 0.
    """
    from_cell, from_header, from_sentence = _kinds(query)
    to_cell, to_header, to_sentence = _kinds(key)
    same_row = tf.equal(query.row_ids, key.row_ids)
    same_column = tf.equal(query.column_ids, key.column_ids)

    def where(allowed: tf.Tensor, relation: int) -> tf.Tensor:
        return tf.where(allowed, relation, 0)

    # A pair is of one kind, and of these relations only the first two can meet: 1 + 2 = 3.
    return (
        where(from_cell & to_cell & same_row, 1)
        + where(from_cell & to_cell & same_column, 2)
        + where(from_cell & to_header & same_column, 4)
        + where(from_cell & to_sentence, 5)
        + where(from_header & to_cell & same_column, 6)
        + where(from_header & to_header, 7)
        + where(from_header & to_header & same_column, 1)
        + where(from_header & to_sentence, 9)
        + where(from_sentence & to_cell, 10)
        + where(from_sentence & to_header, 11)
        + where(from_sentence & to_sentence, 12)
    )


def pairwise_relation(
    query: TokenFeatures, key: TokenFeatures, disabled: tuple[int, ...] = ()
) -> tf.Tensor:
    """The relation of each of F queries to each of T keys.

    Args:
        query: features [..., F].
        key: features [..., T].
        disabled: relations that count as "other" (TableFormer paper, section 5.6).

    Returns:
        int32 [..., F, T].
    """
    query = query.map(lambda feature: tf.expand_dims(feature, -1))  # [..., F, 1]
    key = key.map(lambda feature: tf.expand_dims(feature, -2))  # [..., 1, T]
    relation = table_relation(query, key)
    for one in disabled:
        relation = tf.where(tf.equal(relation, one), 0, relation)
    return relation


@keras.saving.register_keras_serializable(package="mate_tf")
class RelationBias(keras.layers.Layer):
    """Learned attention scores of the relations, one set for each head.

    A layer's plan holds the relations once as one-hot vectors; each layer multiplies them by its
    own small table, which is cheaper than gathering from it.

    Args:
        num_heads: H, of all head groups.
        head_size: E; of use with kind "embedding" only.
        kind: "scalar": a number for each relation and head (TableFormer paper, equation 3);
            "embedding": a vector, multiplied by the query.
        disabled: relations that count as "other".
    """

    def __init__(
        self,
        num_heads: int,
        head_size: int,
        kind: str = "scalar",
        disabled: tuple[int, ...] = (),
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.num_heads = num_heads
        self.head_size = head_size
        self.kind = kind
        self.disabled = tuple(disabled)

    def build(self, *_) -> None:
        # Zeros: training starts from the attention without relations (section 5.1).
        self.bias_table = self.add_weight(
            shape=(NUM_RELATIONS, self.num_heads),
            initializer="zeros",
            name="relative_bias_table",
        )
        self.embedding_table = None
        if self.kind == "embedding":
            self.embedding_table = self.add_weight(
                shape=(NUM_RELATIONS, self.num_heads, self.head_size),
                initializer="zeros",
                name="relative_emb_table",
            )

    def one_hot(self, query: TokenFeatures, key: TokenFeatures) -> tf.Tensor:
        """The relations, for `scores` of any layer with the same settings.

        Args:
            query: features [B, ..., F].
            key: features [B, ..., T].

        Returns:
            float [B, K, ..., F, T], in the layer's compute dtype.
        """
        relation = pairwise_relation(query, key, self.disabled)
        return tf.one_hot(relation, NUM_RELATIONS, axis=1, dtype=self.compute_dtype)

    def scores(self, query: tf.Tensor, one_hot: tf.Tensor, first_head: int) -> tf.Tensor:
        """What the relations add to the attention scores of some heads.

        Args:
            query: float [B, h, ..., F, E], of h consecutive heads.
            one_hot: float [B, K, ..., F, T].
            first_head: which of the layer's heads the first of them is.

        Returns:
            float [B, h, ..., F, T].
        """
        heads = slice(first_head, first_head + query.shape[1])
        shape = tf.shape(one_hot)
        pairs_shape = tf.concat([[shape[0], query.shape[1]], shape[2:]], axis=0)
        table = tf.convert_to_tensor(self.bias_table)[:, heads]  # [K, h]
        flat = tf.reshape(one_hot, [shape[0], NUM_RELATIONS, -1])  # [B, K, ... * F * T]
        scores = tf.reshape(tf.matmul(table, flat, transpose_a=True), pairs_shape)
        if self.embedding_table is None:
            return scores
        table = tf.convert_to_tensor(self.embedding_table)[:, heads]  # [K, h, E]
        by_relation = tf.einsum("bh...e,khe->bh...k", query, table)  # [B, h, ..., F, K]
        by_relation = tf.reshape(by_relation, [shape[0], query.shape[1], -1, NUM_RELATIONS])
        flat = tf.reshape(one_hot, [shape[0], NUM_RELATIONS, -1, shape[-1]])
        return scores + tf.reshape(tf.einsum("bhfk,bkft->bhft", by_relation, flat), pairs_shape)

    def get_config(self):
        return super().get_config() | {
            "num_heads": self.num_heads,
            "head_size": self.head_size,
            "kind": self.kind,
            "disabled": self.disabled,
        }


def _kinds(features: TokenFeatures) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """Whether each token is of a cell, a column header or the sentence; padding is none."""
    real = tf.greater(features.input_mask, 0)
    table = real & tf.equal(features.segment_ids, 1)
    header = tf.equal(features.row_ids, 0)
    return table & ~header, table & header, real & tf.equal(features.segment_ids, 0)
