"""Grammar-guided attention: parts of speech decide which words attend to which.

The tables below are the rules. A hard model attends only along the hard rules. A soft one attends
everywhere, and adds a bias where a soft rule relates the words and no hard one does (grammar-guided
attention paper, section 3.2). Every token attends to itself. Tokens without a part of speech, such
as [CLS], [SEP] and those of a table, attend to all tokens, and all attend to them.

Shapes: B batch, H heads, F from (queries), T to (keys).
"""

import dataclasses
import functools
from collections.abc import Mapping

import keras
import numpy as np
import tensorflow as tf

from mate_tf.features.token_features import PART_OF_SPEECH, TokenFeatures
from mate_tf.tables.part_of_speech import NUM_TAG_IDS, UNIVERSAL_TAGS, tag_id

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
    allowed[0], allowed[:, 0] = True, True
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

        Raises:
            ValueError: if the features have no parts of speech, or, outside a graph, an id beyond
                the tags.
        """
        queries, keys = _part_of_speech_ids(query), _part_of_speech_ids(key)
        return tf.gather(tf.constant(self.tags.ravel()), queries * NUM_TAG_IDS + keys)


@keras.saving.register_keras_serializable(package="mate_tf")
class GrammarBias(keras.layers.Layer):
    """A learned number for each head, which a soft model adds to the scores of favoured pairs.

    Args:
        num_heads: H.
        initial: the paper's alpha, where training starts.
    """

    def __init__(self, num_heads: int, initial: float, **kwargs):
        super().__init__(**kwargs)
        self.num_heads = num_heads
        self.initial = initial

    def build(self, *_) -> None:
        self.bias = self.add_weight(
            shape=(self.num_heads,),
            initializer=keras.initializers.Constant(self.initial),
            name="grammar_bias",
        )

    def scores(self, favoured: tf.Tensor) -> tf.Tensor:
        """The bias [B, H, F, T] of pairs [B, 1, F, T], which are 1 if favoured, else 0."""
        # The cast is for gradients that compute it again, outside of the layer's call.
        bias = tf.cast(tf.convert_to_tensor(self.bias), favoured.dtype)
        return bias[:, None, None] * favoured

    def get_config(self):
        return super().get_config() | {"num_heads": self.num_heads, "initial": self.initial}


def _part_of_speech_ids(features: TokenFeatures) -> tf.Tensor:
    if features.part_of_speech_ids is None:
        raise ValueError(
            f"expected token features with {PART_OF_SPEECH} for grammar-guided attention, got "
            "none; make them with a tagger"
        )
    ids = features.part_of_speech_ids
    # For graphs, the records are checked when they are made or read.
    if tf.executing_eagerly():
        lowest, highest = int(tf.reduce_min(ids)), int(tf.reduce_max(ids))
        if lowest < 0 or highest >= NUM_TAG_IDS:
            raise ValueError(
                f"expected {PART_OF_SPEECH} from 0 to {NUM_TAG_IDS - 1}, got "
                f"{lowest if lowest < 0 else highest}"
            )
    return ids
