"""Texts in the graph: plain characters, matches, groups and numbers. Shapes: N texts."""

import re
import unicodedata
from collections.abc import Iterable, Mapping

import numpy as np
import tensorflow as tf

from mate_tf.tables import notations

SPACE = (
    r"[\t-\r\x{1c}-\x{20}\x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}"
    r"\x{3000}]+"
)
_BAR = "\x01"
_NAN = np.float64("nan")
_ZEROS = [code for code in range(0x110000) if unicodedata.decimal(chr(code), None) == 0]
_CHARACTERS = {0x2019: "'", 0x66B: ".", 0x66C: ",", 0xFFE5: "¥"}
_MOST_GROUPS = 9  # of a rewriting


def plain_text(texts: tf.Tensor) -> tf.Tensor:
    """Texts [N] in lower case and plain characters, with single blanks."""
    texts = tf.strings.unicode_transcode(texts, "UTF-8", "UTF-8", errors="ignore")
    texts = tf.strings.regex_replace(texts, rf"[\x{{0}}{_BAR}]", "_")
    texts = tf.strings.lower(texts, encoding="utf-8")
    texts = tf.strings.strip(tf.strings.regex_replace(texts, SPACE, " "))
    ragged = tf.strings.unicode_decode(texts, "UTF-8")
    codes = ragged.flat_values
    zeros = tf.gather(_ZEROS, tf.maximum(tf.searchsorted(_ZEROS, codes, side="right") - 1, 0))
    is_digit = (codes >= zeros) & (codes < zeros + 10)
    codes = tf.where(is_digit, codes - zeros + ord("0"), codes)
    for code, plain in _CHARACTERS.items():
        codes = tf.where(codes == code, ord(plain), codes)
    codes = tf.where((codes >= 0xFF01) & (codes <= 0xFF5E), codes - 0xFEE0, codes)
    texts = tf.strings.unicode_encode(ragged.with_flat_values(codes), "UTF-8")
    for sign, digits in notations.FRACTIONS.items():
        texts = tf.strings.regex_replace(texts, sign, digits)
    return tf.strings.regex_replace(texts, r"\x{200b}", "")


def is_match(texts: tf.Tensor, pattern: str) -> tf.Tensor:
    """Whether all of each text matches a pattern: bool [N]."""
    return tf.strings.regex_full_match(texts, pattern)


def is_one_of(texts: tf.Tensor, words: Iterable[str]) -> tf.Tensor:
    """Whether each text is one of the words: bool [N]."""
    return is_match(texts, "|".join(map(re.escape, sorted(words))))


def mapped(texts: tf.Tensor, mapping: Mapping, default, dtype: tf.DType) -> tf.Tensor:
    """The value of each text of any shape, or the default."""
    is_key = texts[..., tf.newaxis] == list(mapping)  # [..., keys]
    found = tf.gather(tf.constant(list(mapping.values()), dtype), tf.argmax(is_key, axis=-1))
    return tf.where(tf.reduce_any(is_key, axis=-1), found, tf.constant(default, dtype))


def captured(texts: tf.Tensor, pattern: str, names: list[str]) -> dict[str, tf.Tensor]:
    """The named groups of a pattern that all of a text matches, string [N] each, else ""."""
    names = [name for name in re.findall(r"\?P<(\w+)>", pattern) if name in names]
    holds = is_match(texts, pattern)
    fields: dict[str, tf.Tensor] = {}
    for begin in range(0, len(names), _MOST_GROUPS):
        some = names[begin : begin + _MOST_GROUPS]
        named = re.sub(rf"\?P<(?:{'|'.join(some)})>", "", pattern)
        named = re.sub(r"\?P<\w+>", "?:", named)
        bars = _BAR.join(rf"\{place}" for place in range(1, len(some) + 1))
        found = tf.strings.regex_replace(texts, f"^(?:{named})$", bars)
        found = tf.where(holds, found, _BAR * (len(some) - 1))
        split = tf.strings.split(found, _BAR).to_tensor("", shape=[None, len(some)])
        fields |= dict(zip(some, tf.unstack(split, axis=1), strict=True))
    return fields


def to_number(texts: tf.Tensor) -> tf.Tensor:
    """Canonical texts as float64 [N]; NaN of an empty one."""
    texts = tf.strings.regex_replace(texts, ",", ".")
    numbers = tf.strings.to_number(tf.where(texts == "", "0", texts), tf.float64)
    return tf.where(texts == "", _NAN, numbers)
