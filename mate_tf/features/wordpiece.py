"""BERT's uncased wordpieces, exact, computed inside the TensorFlow graph.

The steps are those of BERT's tokenizer (Devlin et al., 2019): clean, lower-case, decompose and drop
accents, split at whitespace, punctuation and CJK characters, then match the longest pieces. TAPAS
adds one: a text without a letter or a digit, or "n/a", is the single token [EMPTY].
"""

import functools
import os
from collections.abc import Sequence

import numpy as np
import tensorflow as tf
import tensorflow_text as tf_text

_MAX_WORD_CHARS = 200
_MAX_WORD_BYTES = 4 * _MAX_WORD_CHARS

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


class Wordpiece:
    """Texts to wordpiece ids, as BERT uncased and TAPAS have them.

    Attributes:
        vocabulary: the pieces; a piece's id is its place.
        is_inner: bool [vocabulary size], true where a piece continues a word ("##...").
        pad, unk, cls, sep, mask: ids of BERT's special tokens.
        empty: id of [EMPTY], or of [unused0], whose place it takes in TAPAS's vocabulary.

    Raises:
        FileNotFoundError: if there is no vocabulary file.
        ValueError: if the file is not a vocabulary: not UTF-8, empty lines, duplicates, or a
            special token missing.
    """

    def __init__(self, vocab_file: str | os.PathLike[str]):
        self.vocab_file = os.fspath(vocab_file)
        self.vocabulary = _read_vocabulary(self.vocab_file)
        ids = {piece: index for index, piece in enumerate(self.vocabulary)}

        def special(*names: str) -> int:
            for name in names:
                if name in ids:
                    return ids[name]
            raise ValueError(
                f"expected {' or '.join(names)} in the vocabulary {self.vocab_file}, which has "
                f"{len(ids)} pieces without it; use the vocabulary of BERT uncased or TAPAS"
            )

        self.pad, self.unk = special("[PAD]"), special("[UNK]")
        self.cls, self.sep, self.mask = special("[CLS]"), special("[SEP]"), special("[MASK]")
        self.empty = special("[EMPTY]", "[unused0]")
        self.is_inner = np.array([piece.startswith("##") for piece in self.vocabulary])
        self._matcher = tf_text.FastWordpieceTokenizer(
            vocab=self.vocabulary,
            token_out_type=tf.int32,
            unknown_token="[UNK]",
            no_pretokenization=True,
            max_bytes_per_word=_MAX_WORD_BYTES,
        )
        # There is no Python to turn into a graph, and looking for it takes longer than a question.
        self._graph = tf.function(
            self._tokenize_flat,
            input_signature=[tf.TensorSpec([None], tf.string)],
            autograph=False,
        )

    def __len__(self) -> int:
        return len(self.vocabulary)

    def check_fits(self, vocab_size: int) -> None:
        """ValueError where a model of so many embeddings has none for a piece."""
        if len(self) > vocab_size:
            raise ValueError(
                f"expected a vocabulary of at most {vocab_size} pieces for this model, got "
                f"{len(self)} in {self.vocab_file}"
            )

    def tokenize(self, texts: tf.Tensor) -> tf.RaggedTensor:
        """Ids of the pieces of each text.

        Args:
            texts: string [N], UTF-8; invalid bytes are ignored.

        Returns:
            int32 [N, (pieces)]; no row is empty.
        """
        words = tf_text.regex_split(_normalized(texts), *_SPLIT)
        return words.with_values(self._matcher.tokenize(self._matched(words))).merge_dims(1, 2)

    def ids_and_starts(self, text: str) -> tuple[list[int], list[int]]:
        """The ids of a text's pieces, and the character of the text that each begins with."""
        encoded = text.encode("utf-8", "ignore")
        characters = [character.encode() for character in encoded.decode()]
        pieces, starts, lengths = self._starts_graph(
            tf.constant(encoded), tf.constant(characters, tf.string, [len(characters)])
        )
        # Normalized, a character may be longer, shorter or nothing: count up to each one's end.
        ends = np.cumsum(lengths.numpy())
        of_text = np.searchsorted(ends, starts.numpy(), side="right")
        # The piece that stands for a text without content may begin behind all of it.
        of_text = np.minimum(of_text, max(len(characters) - 1, 0))
        return pieces.numpy().tolist(), of_text.tolist()

    def _matched(self, words: tf.RaggedTensor) -> tf.Tensor:
        """The words for the matcher, string [words]: the empty mark and long ones replaced."""
        flat = words.values
        flat = tf.where(flat == _EMPTY_MARK, self.vocabulary[self.empty], flat)
        is_long = tf.strings.length(flat, unit="UTF8_CHAR") > _MAX_WORD_CHARS
        return tf.where(is_long, "[UNK]", flat)

    def ids(self, texts: Sequence[str]) -> list[list[int]]:
        """Ids of the pieces of each text, in one graph call."""
        pieces, lengths = self.ids_and_lengths(texts)
        ends = np.cumsum(lengths)
        return [pieces[end - n : end].tolist() for end, n in zip(ends, lengths, strict=True)]

    def ids_and_lengths(self, texts: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """Ids of the pieces of all texts, one after the other, and how many each text has.

        One graph call, whatever the number of texts: int32 [pieces of all], int64 [N].
        """
        encoded = np.array([text.encode("utf-8", "ignore") for text in texts], dtype=object)
        pieces, lengths = self._graph(tf.constant(encoded, tf.string))
        return pieces.numpy(), lengths.numpy()

    @functools.cached_property
    def _starts_graph(self):
        signature = [tf.TensorSpec([], tf.string), tf.TensorSpec([None], tf.string)]
        return tf.function(self._pieces_and_starts, input_signature=signature, autograph=False)

    def _pieces_and_starts(
        self, text: tf.Tensor, characters: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        """The ids of a text's pieces, and where in the normalized text each begins.

        Returns:
            int32 [pieces] and int64 [pieces], in bytes; and for each character of the text how many
            bytes of the normalized text it makes, int32 [characters].
        """
        words, begins, _ = tf_text.regex_split_with_offsets(_normalized(text[None]), *_SPLIT)
        pieces, in_word, _ = self._matcher.tokenize_with_offsets(self._matched(words))
        starts = tf.cast(in_word, tf.int64) + begins.values[:, None]
        lengths = tf.strings.length(_without_accents(_cleaned(characters)))
        # Of blanks in a row one is left.
        is_blank = tf.strings.regex_full_match(characters, _SPACE)
        follows = tf.concat([tf.zeros_like(is_blank[:1]), is_blank[:-1]], axis=0)
        lengths = tf.where(is_blank & follows, 0, lengths)
        return pieces.values, starts.values, lengths

    def _tokenize_flat(self, texts: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        pieces = self.tokenize(texts)
        return pieces.values, pieces.row_lengths()


def _cleaned(texts: tf.Tensor) -> tf.Tensor:
    texts = tf.strings.unicode_transcode(texts, "UTF-8", "UTF-8", errors="ignore")
    texts = tf.strings.regex_replace(texts, _SPACE, " ")
    texts = tf.strings.regex_replace(texts, _DROPPED, "")
    return tf.strings.lower(texts, encoding="utf-8")


def _without_accents(texts: tf.Tensor) -> tf.Tensor:
    return tf.strings.regex_replace(tf_text.normalize_utf8(texts, "NFD"), r"\p{Mn}+", "")


def _normalized(texts: tf.Tensor) -> tf.Tensor:
    """Cleaned, in lower case and without accents; a mark in place of a text without content."""
    texts = _cleaned(texts)
    is_empty = ~tf.strings.regex_full_match(texts, _HAS_WORD_CHARACTER)
    is_empty |= tf.strings.strip(texts) == "n/a"  # [N]
    return tf.where(is_empty, _EMPTY_MARK, _without_accents(texts))


def _read_vocabulary(path: str) -> list[str]:
    if not tf.io.gfile.exists(path) or tf.io.gfile.isdir(path):
        raise FileNotFoundError(f"no vocabulary file {path}")
    with tf.io.gfile.GFile(path, "rb") as file:
        content = file.read()
    try:
        pieces = [line.strip() for line in content.decode("utf-8").rstrip("\n").split("\n")]
    except UnicodeDecodeError as error:
        raise ValueError(f"expected a vocabulary in UTF-8, got {path}: {error}") from None
    first_line: dict[str, int] = {}
    for line, piece in enumerate(pieces, start=1):
        if not piece:
            raise ValueError(f"expected one piece a line, got an empty line {line} in {path}")
        if piece in first_line:
            raise ValueError(
                f"expected each piece once, got {piece!r} in lines {first_line[piece]} and {line} "
                f"of {path}"
            )
        first_line[piece] = line
    return pieces
