"""Relations between tokens: TableFormer's, neighbouring rows, grammar; learned attention biases.

A relation is like a pattern, but an integer instead of a bool: it follows from the features of a
query and a key token. TableFormer's do not depend on the order of rows and columns.

In grammar-guided attention parts of speech decide which words attend to which. A hard model attends
only along the hard rules. A soft one attends everywhere, and adds a bias where a soft rule relates
the words and no hard one does (grammar-guided attention paper, section 3.2). Every token attends to
itself. Tokens without a part of speech, such as [CLS], [SEP] and those of a table, attend to all
tokens, and all attend to them.

Shapes: B batch, F from (queries), T to (keys), H heads, E head size, K relations.
"""

import dataclasses
import functools
from collections.abc import Callable, Mapping
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from mate_tf.config import RELATION_NAMES
from mate_tf.features.token_features import PART_OF_SPEECH, TokenFeatures
from mate_tf.layers.basic import attributes
from mate_tf.layers.compilation import custom_gradient
from mate_tf.tables.part_of_speech import NUM_TAG_IDS, UNIVERSAL_TAGS, tag_id

NEIGHBOURS = "neighbours"  # the kind of RelationBias for rows above and below

# The kinds of tokens.
_PADDING, _CELL, _HEADER, _SENTENCE = range(4)


def _relation_table(disabled: tuple[int, ...]) -> np.ndarray:
    """The relation by the kinds of query and key, and whether they share a row and a column."""
    table = np.zeros((4, 4, 2, 2), np.int32)
    table[_CELL, _CELL] = [[0, 2], [1, 3]]
    table[_CELL, _HEADER] = [0, 4]
    table[_CELL, _SENTENCE] = 5
    table[_HEADER, _CELL] = [0, 6]
    table[_HEADER, _HEADER] = [7, 8]
    table[_HEADER, _SENTENCE] = 9
    table[_SENTENCE, _CELL] = 10
    table[_SENTENCE, _HEADER] = 11
    table[_SENTENCE, _SENTENCE] = 12
    return np.where(np.isin(table, disabled), 0, table)


def as_pairs(query: TokenFeatures, key: TokenFeatures) -> tuple[TokenFeatures, TokenFeatures]:
    """Features [..., F] and [..., T] that broadcast: [..., F, 1] and [..., 1, T]."""
    return (
        query.map(lambda feature: tf.expand_dims(feature, -1)),
        key.map(lambda feature: tf.expand_dims(feature, -2)),
    )


def pairwise_relation(
    query: TokenFeatures, key: TokenFeatures, disabled: tuple[int, ...] = ()
) -> tf.Tensor:
    """The relation of each of F queries to each of T keys (TableFormer paper, section 4.1).

    They are indices of RELATION_NAMES, int32 [..., F, T]; padding has 0. Disabled ones count as
    "other" (section 5.6).
    """
    table = _relation_table(disabled)
    query, key = as_pairs(query, key)  # [..., F, 1], [..., 1, T]
    same_row = tf.cast(tf.equal(query.row_ids, key.row_ids), tf.int32)
    same_column = tf.cast(tf.equal(query.column_ids, key.column_ids), tf.int32)
    # One gather from the flat table; a case for each relation would need a pass over all pairs.
    index = (16 * _kind(query) + 4 * _kind(key)) + (2 * same_row + same_column)
    return tf.gather(tf.constant(table.reshape(-1)), index)


def neighbouring_row(query: TokenFeatures, key: TokenFeatures) -> tf.Tensor:
    """Whether each of T keys is a cell above or below each of F queries, in the same column.

    0 is above, 1 below, -1 neither: int32 [..., F, T].
    """
    query, key = as_pairs(query, key)  # [..., F, 1], [..., 1, T]
    are_cells = tf.equal(_kind(query), _CELL) & tf.equal(_kind(key), _CELL)
    is_beside = are_cells & tf.equal(query.column_ids, key.column_ids)
    rows = tf.cast(key.row_ids - query.row_ids, tf.int32)
    return tf.where(is_beside & tf.equal(tf.abs(rows), 1), (rows + 1) // 2, -1)


@keras.saving.register_keras_serializable(package="mate_tf")
class RelationBias(keras.layers.Layer):
    """Learned attention scores of the relations, one set for each head.

    The plan holds the relations as one-hot vectors. Each layer multiplies them by its own small
    table, which is cheaper than a gather. The kind "scalar" learns a number for each relation and
    head (TableFormer paper, equation 3), "embedding" a vector that is multiplied by the query, and
    "neighbours" a number for the cell above and one for that below, instead of TableFormer's
    relations. Disabled ones count as "other".
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
        self.num_relations = 2 if kind == NEIGHBOURS else len(RELATION_NAMES)  # K

    def build(self, *_) -> None:
        # Zeros: training starts from the attention without relations (section 5.1).
        self.bias_table = self.add_weight(
            shape=(self.num_relations, self.num_heads),
            initializer="zeros",
            name="relative_bias_table",
        )
        self.embedding_table = None
        if self.kind == "embedding":
            self.embedding_table = self.add_weight(
                shape=(len(RELATION_NAMES), self.num_heads, self.head_size),
                initializer="zeros",
                name="relative_emb_table",
            )

    def one_hot(self, query: TokenFeatures, key: TokenFeatures) -> tf.Tensor:
        """The relations of features [B, ..., F] to features [B, ..., T], one-hot.

        For `relation_scores` in any layer with the same settings: float [B, K, ..., F, T].
        """
        if self.kind == NEIGHBOURS:
            relation = neighbouring_row(query, key)
        else:
            relation = pairwise_relation(query, key, self.disabled)
        return tf.one_hot(relation, self.num_relations, axis=1, dtype=self.compute_dtype)

    def tables(self, first_head: int, num_heads: int) -> tuple[tf.Tensor, ...]:
        """The weights of h consecutive heads: biases [K, h] and, if any, vectors [K, h, E]."""
        heads = slice(first_head, first_head + num_heads)
        # The cast is for gradients that compute them again, outside of the layer's call.
        return tuple(
            tf.cast(tf.convert_to_tensor(weight), self.compute_dtype)[:, heads]
            for weight in (self.bias_table, self.embedding_table)
            if weight is not None
        )

    def get_config(self):
        names = ("num_heads", "head_size", "kind", "disabled")
        return super().get_config() | attributes(self, *names)


def relation_scores(query: tf.Tensor, one_hot: tf.Tensor, *tables: tf.Tensor) -> tf.Tensor:
    """The relations' part of the attention scores, after their division.

    From queries float [B, h, ..., F, E], one-hot relations [B, K, ..., F, T] and the tables of
    `RelationBias.tables` to float [B, h, ..., F, T].
    """
    bias_table, *embedding_table = tables
    scores = _biases(bias_table, one_hot)
    if not embedding_table:
        return scores
    by_relation = tf.einsum("bh...e,khe->bh...k", query, embedding_table[0])  # [B, h, ..., F, K]
    return scores + tf.einsum("bh...k,bk...t->bh...t", by_relation, one_hot)


@custom_gradient
def _biases(table: tf.Tensor, one_hot: tf.Tensor) -> tuple[tf.Tensor, Callable[..., Any]]:
    """The biases float [B, h, ..., F, T] of a table [K, h] and one-hot relations.

    The gradient sums a product of each query: one product over all pairs would be a single loop.
    """
    shape = tf.shape(one_hot)
    flat = tf.reshape(one_hot, [shape[0], table.shape[0], -1])  # [B, K, ... * F * T]
    pairs_shape = tf.concat([shape[:1], table.shape[1:], shape[2:]], axis=0)

    def gradient(upstream: tf.Tensor) -> tuple[tf.Tensor, None]:
        by_query = tf.einsum("bk...t,bh...t->...bkh", one_hot, upstream)
        by_query = tf.reshape(tf.cast(by_query, tf.float32), [-1, *table.shape])
        return tf.cast(tf.reduce_sum(by_query, axis=0), table.dtype), None

    return tf.reshape(tf.matmul(table, flat, transpose_a=True), pairs_shape), gradient


def _kind(features: TokenFeatures) -> tf.Tensor:
    """The kind of each token: _PADDING, _CELL, _HEADER or _SENTENCE."""
    in_table = tf.where(tf.equal(features.row_ids, 0), _HEADER, _CELL)
    kind = tf.where(tf.equal(features.segment_ids, 1), in_table, _PADDING)
    kind = tf.where(tf.equal(features.segment_ids, 0), _SENTENCE, kind)
    return tf.where(tf.greater(features.input_mask, 0), kind, _PADDING)


Rules = Mapping[str, tuple[str, ...]]  # from a query's tag to its keys'

_NOMINAL = ("NOUN", "PROPN", "PRON")

# The paper's rules. It says that a conjunction connects "various other parts of speech"; here these
# are the parts that a phrase or a clause is built around.
HARD_RULES: Rules = {
    "ADJ": ("NOUN", "PROPN"),
    "DET": ("NOUN", "PROPN"),
    "VERB": (*_NOMINAL, "ADV"),
    "ADP": _NOMINAL,
}
SOFT_RULES: Rules = {
    "ADV": ("VERB", "ADJ", "ADV"),
    "NOUN": ("VERB",),
    "PROPN": ("VERB",),
    "PRON": ("VERB",),
    "CCONJ": (*_NOMINAL, "VERB", "ADJ", "ADV"),
    "SCONJ": (*_NOMINAL, "VERB", "ADJ", "ADV"),
}

# Rules beyond the paper, whose own then hold in both directions: for words that modify, coordinate
# or negate, auxiliaries, numbers, compounds, and punctuation, which every word sees. A hard model
# allows them and a soft one favours them.
EXTENSIONS: Rules = {
    "ADJ": ("ADJ", "ADV", "AUX", "PART", "VERB"),
    "ADP": ("ADJ", "VERB"),
    "ADV": ("ADJ", "ADV", "AUX", "VERB"),
    "AUX": (*_NOMINAL, "PART", "VERB"),
    "CCONJ": (*_NOMINAL, "ADJ", "ADV", "VERB"),
    "NOUN": _NOMINAL,
    "NUM": ("NOUN", "NUM", "PROPN"),
    "PART": ("NOUN", "PROPN", "VERB"),
    "PRON": ("ADJ", "PRON", "PROPN"),
    "PROPN": ("PROPN",),
    "PUNCT": UNIVERSAL_TAGS,
    "SCONJ": (*_NOMINAL, "ADJ", "ADV", "VERB"),
    "VERB": ("VERB",),
}


@functools.cache
def allowed_tags(rules: str) -> np.ndarray:
    """Which parts of speech a hard model lets attend to which: bool, queries by keys.

    The rules are "paper" or "extended".
    """
    allowed = _with_extensions(HARD_RULES, rules)
    allowed[0] = allowed[:, 0] = True
    return allowed


@functools.cache
def favoured_tags(rules: str) -> np.ndarray:
    """Which parts of speech a soft model favours; a hard rule overrides a soft one."""
    return _with_extensions(SOFT_RULES, rules) & ~_marked(HARD_RULES)


def _with_extensions(paper: Rules, rules: str) -> np.ndarray:
    if rules == "paper":
        return _marked(paper)
    marks = _marked(paper) | _marked(EXTENSIONS)
    return marks | marks.T


def _marked(rules: Rules) -> np.ndarray:
    marks = np.zeros([NUM_TAG_IDS, NUM_TAG_IDS], bool)
    for query, keys in rules.items():
        marks[tag_id(query), [tag_id(key) for key in keys]] = True
    return marks


@dataclasses.dataclass(frozen=True)
class RelatedTags:
    """A pattern: a table `tags`, bool [NUM_TAG_IDS, NUM_TAG_IDS], of queries by keys."""

    tags: np.ndarray

    def __call__(self, query: TokenFeatures, key: TokenFeatures) -> tf.Tensor:
        """Whether each query is related to each key: bool, broadcast.

        ValueError if the features have no parts of speech. Their range is checked where records are
        made or read.
        """
        queries, keys = _part_of_speech_ids(query), _part_of_speech_ids(key)
        return tf.gather(tf.constant(self.tags.ravel()), queries * NUM_TAG_IDS + keys)


def _part_of_speech_ids(features: TokenFeatures) -> tf.Tensor:
    if features.part_of_speech_ids is None:
        raise ValueError(
            f"expected token features with {PART_OF_SPEECH} for grammar-guided attention, got "
            "none; make them with a tagger"
        )
    return features.part_of_speech_ids
