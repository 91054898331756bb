"""BERT's uncased wordpieces, exact, in plain Python.

The steps are those of BERT's tokenizer (Devlin et al., 2019): clean, lower-case, decompose and drop
accents, split at white space, punctuation and CJK characters, then match the longest pieces. TAPAS
adds one: a text without a letter or a digit, or "n/a", is the single token [EMPTY].
mate_tf/serving/text_signature.py does the same inside a graph.
"""

import bisect
import functools
import itertools
import os
import re
import unicodedata
from collections.abc import Sequence

import numpy as np

from mate_tf.features.english import CharacterTable
from mate_tf.paths import as_path

MAX_WORD_CHARACTERS = 200  # a longer word is unknown
_WORDS_REMEMBERED = 1 << 16
_WORD_CHARACTER = re.compile(r"[^\W_]")
# Of texts in ASCII, which need neither table below.
_ASCII_CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_ASCII_WORDS = re.compile(r"[a-z0-9]+|[^a-z0-9\s]")
_SIGN_OR_CJK = re.compile(
    r"[!-/:-@\[-`{-~"
    "\u4e00-\u9fff\u3400-\u4dbf\U00020000-\U0002a6df\U0002a700-\U0002b73f"
    "\U0002b740-\U0002b81f\U0002b820-\U0002ceaf\uf900-\ufaff\U0002f800-\U0002fa1f]"
)


class Wordpiece:
    """Texts to wordpiece ids, as BERT uncased and TAPAS have them; pad, unk, ... are special ids.

    FileNotFoundError if there is no vocabulary file, ValueError if the file is none.
    """

    def __init__(self, vocab_file: str | os.PathLike[str]):
        self.vocab_file = os.fspath(vocab_file)
        self.vocabulary = read_vocabulary(self.vocab_file)  # a piece's id is its place
        ids = {piece: index for index, piece in enumerate(self.vocabulary)}

        def special(*names: str) -> int:
            if found := [ids[name] for name in names if name in ids]:
                return found[0]
            raise ValueError(
                f"expected {' or '.join(names)} in the vocabulary {self.vocab_file}, which has "
                f"{len(ids)} pieces without it; use the vocabulary of BERT uncased or TAPAS"
            )

        self.pad, self.unk = special("[PAD]"), special("[UNK]")
        self.cls, self.sep, self.mask = special("[CLS]"), special("[SEP]"), special("[MASK]")
        self.empty = special("[EMPTY]", "[unused0]")  # whose place it takes in TAPAS's vocabulary
        # Whether a piece continues a word: bool [vocabulary size].
        self.is_inner = np.array([piece.startswith("##") for piece in self.vocabulary])
        self._first = {piece: id_ for piece, id_ in ids.items() if not self.is_inner[id_]}
        self._inner = {piece[2:]: id_ for piece, id_ in ids.items() if self.is_inner[id_]}
        self._longest = max(map(len, self.vocabulary))
        self._pieces = functools.lru_cache(_WORDS_REMEMBERED)(self._longest_matches)

    def __len__(self) -> int:
        return len(self.vocabulary)

    def check_fits(self, vocab_size: int) -> None:
        """ValueError where a model of so many embeddings has none for a piece."""
        if len(self) > vocab_size:
            raise ValueError(
                f"expected a vocabulary of at most {vocab_size} pieces for this model, got "
                f"{len(self)} in {self.vocab_file}"
            )

    def ids(self, texts: Sequence[str]) -> list[list[int]]:
        """Ids of the pieces of each text; at least one each."""
        return list(map(self._ids, texts))

    def ids_and_lengths(self, texts: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """Ids of the pieces of all texts, int32, and how many each of N texts has, int64 [N]."""
        ids = self.ids(texts)
        lengths = np.array(list(map(len, ids)), np.int64)
        return np.array(list(itertools.chain.from_iterable(ids)), np.int32), lengths

    def ids_and_starts(self, text: str) -> tuple[list[int], list[int]]:
        """The ids of a text's pieces, and the character of the text that each begins with."""
        text = _without_surrogates(text)
        cleaned = list(map(_cleaned.__getitem__, map(ord, text)))
        # Lower case may be longer; where it depends on its neighbours its length does not.
        lengths = [len(character.lower()) for character in cleaned]
        lower = iter("".join(cleaned).lower())
        parts = ["".join(itertools.islice(lower, length)).translate(_split) for length in lengths]
        ends = list(itertools.accumulate(map(len, parts)))

        def character_at(place: int) -> int:
            return min(bisect.bisect_right(ends, place), max(len(text) - 1, 0))

        words = _words(text)
        if words is None:
            return [self.empty], [character_at(0)]
        starts: list[int] = []
        place, joined = 0, "".join(parts)
        for word in words:
            place = joined.index(word, place)
            sizes = [len(self.vocabulary[id_].removeprefix("##")) for id_ in self._pieces(word)]
            starts += map(character_at, itertools.accumulate(sizes[:-1], initial=place))
            place += len(word)
        return self._ids(text), starts

    def _ids(self, text: str) -> list[int]:
        words = _words(text)
        if words is None:
            return [self.empty]
        return list(itertools.chain.from_iterable(map(self._pieces, words)))

    def _longest_matches(self, word: str) -> tuple[int, ...]:
        """The longest piece that a word begins with, and so on; unknown where there is none."""
        if len(word) > MAX_WORD_CHARACTERS:
            return (self.unk,)
        ids: list[int] = []
        begin, pieces = 0, self._first
        while begin < len(word):
            for end in range(min(len(word), begin + self._longest), begin, -1):
                if (id_ := pieces.get(word[begin:end])) is not None:
                    break
            else:
                return (self.unk,)
            ids.append(id_)
            begin, pieces = end, self._inner
        return tuple(ids)


def _clean(character: str) -> str:
    category = unicodedata.category(character)
    if character in "\t\n\r" or category in ("Zs", "Zl", "Zp"):
        return " "
    return "" if category in ("Cc", "Cf") or character == "\ufffd" else character


def _split_off(character: str) -> str:
    """Without accents, and between blanks where it is a word of its own."""
    parts = [(c, unicodedata.category(c)) for c in unicodedata.normalize("NFD", character)]
    return "".join(
        f" {c} " if category.startswith("P") or _SIGN_OR_CJK.match(c) else c
        for c, category in parts
        if category != "Mn"
    )


_cleaned, _split = CharacterTable(_clean), CharacterTable(_split_off)


def _without_surrogates(text: str) -> str:
    return text if text.isascii() else text.encode("utf-8", "ignore").decode()


def _words(text: str) -> list[str] | None:
    """The words of a text, in lower case and without accents; None of one without content."""
    is_ascii = text.isascii()
    if is_ascii:
        text = _ASCII_CONTROLS.sub("", text.lower())
    else:
        text = _without_surrogates(text).translate(_cleaned).lower()
    if not _WORD_CHARACTER.search(text) or text.strip() == "n/a":
        return None
    return _ASCII_WORDS.findall(text) if is_ascii else text.translate(_split).split()


def read_vocabulary(path: str | os.PathLike[str]) -> list[str]:
    """The pieces of a vocabulary, each at its index; errors as of `Wordpiece`."""
    if not as_path(path).is_file():
        raise FileNotFoundError(f"expected a vocabulary file at {path}, found none")
    content = as_path(path).read_bytes()
    try:
        pieces = [line.strip() for line in content.decode("utf-8").rstrip("\n").split("\n")]
    except UnicodeDecodeError as error:
        raise ValueError(f"expected a vocabulary in UTF-8, got {path}: {error}") from None
    lines: dict[str, int] = {}
    for line, piece in enumerate(pieces, start=1):
        if not piece:
            raise ValueError(f"expected one piece a line, got an empty line {line} in {path}")
        if (first := lines.setdefault(piece, line)) != line:
            where = f"in lines {first} and {line} of {path}"
            raise ValueError(f"expected each piece once, got {piece!r} {where}")
    return pieces
