"""The wordpieces of mate_tf/features/wordpiece.py, computed inside a TensorFlow graph.

TensorFlow Text, whose operations this takes, has no packages for Windows and Intel Macs. Its own
BERT tokenizers differ from BERT's on about 1,140 characters; these steps do not.
"""

import functools

import tensorflow as tf
import tensorflow_text as tf_text

from mate_tf.features.wordpiece import MAX_WORD_CHARACTERS, Wordpiece

_SPACE = r"[\t\n\r\p{Z}]+"
_DROPPED = r"[\p{Cc}\p{Cf}\x{FFFD}]+"
_CJK = (
    r"[\x{4E00}-\x{9FFF}\x{3400}-\x{4DBF}\x{20000}-\x{2A6DF}\x{2A700}-\x{2B73F}"
    r"\x{2B740}-\x{2B81F}\x{2B820}-\x{2CEAF}\x{F900}-\x{FAFF}\x{2F800}-\x{2FA1F}]"
)
_PUNCTUATION = r"[!-/:-@\[-`{-~\p{P}]"
_ALONE = f"{_PUNCTUATION}|{_CJK}"
_SPLIT = (f" |{_ALONE}", _ALONE)  # what to split at, and what of it to keep
_HAS_WORD_CHARACTER = r"(?s).*[\p{L}\p{N}].*"
# Cleaning drops this character from every text, so that a word of it can only be ours.
_EMPTY_MARK = "\N{REPLACEMENT CHARACTER}"


class GraphWordpiece:
    """Texts to wordpiece ids, with the vocabulary of another tokenizer."""

    def __init__(self, wordpiece: Wordpiece):
        self._empty = wordpiece.vocabulary[wordpiece.empty]
        with tf.init_scope():  # for whatever graph comes
            self._matcher = tf_text.FastWordpieceTokenizer(
                vocab=wordpiece.vocabulary,
                token_out_type=tf.int32,
                unknown_token="[UNK]",
                no_pretokenization=True,
                max_bytes_per_word=4 * MAX_WORD_CHARACTERS,
            )

    def tokenize(self, texts: tf.Tensor) -> tf.RaggedTensor:
        """Ids of the pieces of each text.

        Args:
            texts: string [N], UTF-8; invalid bytes are ignored.

        Returns:
            int32 [N, (pieces)]; no row is empty.
        """
        words = tf_text.regex_split(_normalized(texts), *_SPLIT)
        flat = words.values
        flat = tf.where(flat == _EMPTY_MARK, self._empty, flat)
        is_long = tf.strings.length(flat, unit="UTF8_CHAR") > MAX_WORD_CHARACTERS
        flat = tf.where(is_long, "[UNK]", flat)
        return words.with_values(self._matcher.tokenize(flat)).merge_dims(1, 2)


graph_wordpiece = functools.lru_cache(maxsize=2)(GraphWordpiece)


def _normalized(texts: tf.Tensor) -> tf.Tensor:
    """Cleaned, in lower case and without accents; a mark in place of a text without content."""
    texts = tf.strings.unicode_transcode(texts, "UTF-8", "UTF-8", errors="ignore")
    texts = tf.strings.regex_replace(texts, _SPACE, " ")
    texts = tf.strings.regex_replace(texts, _DROPPED, "")
    texts = tf.strings.lower(texts, encoding="utf-8")
    is_empty = ~tf.strings.regex_full_match(texts, _HAS_WORD_CHARACTER)
    is_empty |= tf.strings.strip(texts) == "n/a"  # [N]
    plain = tf.strings.regex_replace(tf_text.normalize_utf8(texts, "NFD"), r"\p{Mn}+", "")
    return tf.where(is_empty, _EMPTY_MARK, plain)
